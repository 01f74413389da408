"""Extraction on real model folders against one plain pass through the model, word by word, in slow loops.

Numbers agree up to 1e-5 of the largest value: both sides compute in float32, but matrices of other shapes are summed in
another order.
"""

from __future__ import annotations

import shutil

import numpy as np
import polars as pl
import pytest
import transformers
from small_models import (
    CAUSAL,
    FAMILIES,
    TEXT,
    PlainReader,
    assert_near,
    byte_level_tokenizer,
    extract,
    pool,
    words_table,
    write_model,
)

import lpact
from lpact.config import GridConfig
from lpact.datasets.base import Recording, RecordingId, Stimulus, TimeSeries, Units
from lpact.errors import ConfigError, FeatureError
from lpact.features.language.reader import cut
from lpact.features.language.text import WordTokens
from lpact.grid import build_grid

WORDS = TEXT.split()
SHORT = WORDS[:30]
POOLINGS = ("last", "first", "mean", "sum")


def assert_same(found, expected, tolerance=1e-5):
    """A feature set holds what the plain reader has read."""
    assert found.n_layers == len(expected.hidden)
    for layer in range(found.n_layers):
        assert_near(found.hidden(layer), expected.hidden[layer], tolerance)
    assert_near(found.surprisal(), expected.surprisal, tolerance)
    assert_near(found.entropy(), expected.entropy, tolerance)


def assert_equal_sets(found, expected, rows=None, tolerance=1e-5):
    """Two feature sets hold the same; ``rows`` are the rows of ``expected`` in the order of ``found``."""
    rows = slice(None) if rows is None else rows
    for layer in range(expected.n_layers):
        assert_near(found.hidden(layer), expected.hidden(layer)[rows], tolerance)
    assert_near(found.surprisal(), expected.surprisal()[rows], tolerance)
    assert_near(found.entropy(), expected.entropy()[rows], tolerance)


@pytest.mark.parametrize("family", CAUSAL)
def test_a_story_in_one_pass(family, folder_of, reader_of, tmp_path):
    (found,) = extract(folder_of(family), SHORT, tmp_path)
    expected = reader_of(family).read(SHORT)
    assert found.hidden(0).shape == (len(SHORT), 32)
    assert_same(found, expected)
    # The oracle itself can tell words apart: bits differ, states differ, and words have one to several tokens.
    assert np.std(expected.surprisal) > 1
    assert np.std(expected.hidden[-1], axis=0).min() > 0.01
    sizes = {last - first + 1 for first, last, _ in reader_of(family).tokens(SHORT)[1]}
    assert {1, 2} <= sizes


@pytest.mark.parametrize("family", CAUSAL)
def test_stories_are_documents_of_their_own(family, folder_of, reader_of, tmp_path):
    stories = {"b": WORDS[:17], "a": WORDS[30:36], "c": WORDS[50:81]}
    (found,) = extract(folder_of(family), stories, tmp_path)
    reads = [reader_of(family).read(words) for words in stories.values()]
    assert_near(found.hidden(3), np.concatenate([r.hidden[3] for r in reads]))
    assert_near(found.surprisal(), np.concatenate([r.surprisal for r in reads]))
    assert_near(found.entropy(), np.concatenate([r.entropy for r in reads]))


@pytest.mark.parametrize("family", CAUSAL)
def test_a_window_that_holds_the_story_is_one_pass(family, folder_of, reader_of, tmp_path):
    expected = reader_of(family).read(SHORT)
    n_tokens = len(reader_of(family).tokens(SHORT)[0])
    for window, stride in ((n_tokens + 1, 20), (n_tokens + 20, n_tokens)):
        (found,) = extract(folder_of(family), SHORT, tmp_path, window_tokens=window, stride_tokens=stride)
        assert_same(found, expected)


@pytest.mark.parametrize("family", CAUSAL)
@pytest.mark.parametrize(("window", "stride"), [(33, 12), (41, None)])
def test_each_word_is_read_in_its_window(family, window, stride, folder_of, reader_of, tmp_path):
    reader = reader_of(family)
    ids, places = reader.tokens(WORDS)
    first, last, lead = np.array(places).T
    room = window - 1
    step = stride or room // 4
    (found,) = extract(
        folder_of(family),
        WORDS,
        tmp_path,
        window_tokens=window,
        stride_tokens=stride,
        min_context_tokens=room - step,
    )
    tokens = WordTokens(np.array(ids), first, last, lead)
    windows = list(cut(tokens, room=room, stride=step, place=str))
    assert len(windows) >= 4
    reads = []
    for w in windows:
        own = range(w.first, w.last)
        reads.append(reader.read(WORDS, window=(w.begin, w.stop), wanted=own))
        for word in own:
            assert places[word][0] - w.begin >= min(places[word][0], room - step)
    for layer in range(found.n_layers):
        assert_near(found.hidden(layer), np.concatenate([r.hidden[layer] for r in reads], axis=0))
    assert_near(found.surprisal(), np.concatenate([r.surprisal for r in reads]))
    assert_near(found.entropy(), np.concatenate([r.entropy for r in reads]))


def test_a_minimum_that_the_window_does_not_grant_is_an_error(folder_of, tmp_path):
    with pytest.raises(ConfigError, match="min_context_tokens"):
        extract(
            folder_of("gpt2"),
            WORDS,
            tmp_path,
            window_tokens=33,
            stride_tokens=12,
            min_context_tokens=21,
        )


def test_a_long_story_is_read_where_the_model_has_no_room_for_it(folder_of, reader_of, tmp_path):
    """128 positions, one of them for the start token; without options the window is the model's own limit."""
    assert len(reader_of("gpt2").tokens(WORDS * 2)[0]) > 300
    (found,) = extract(folder_of("gpt2"), WORDS * 2, tmp_path)
    expected = reader_of("gpt2").read(SHORT)
    assert_near(found.hidden(3)[: len(SHORT)], expected.hidden[3])
    assert np.isfinite(found.surprisal()).all()
    with pytest.raises(ConfigError, match="window_tokens"):
        extract(folder_of("gpt2"), WORDS, tmp_path, window_tokens=129)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_size_of_a_batch_changes_nothing(family, folder_of, tmp_path):
    stories = {"a": WORDS[:14], "b": WORDS[40:43], "c": WORDS[43:48]}
    contexts = ["full", "sentence_reset", "shuffled", "static"]
    batches = [1, 64, 10000]
    found = [
        extract(
            folder_of(family),
            stories,
            tmp_path / str(n),
            contexts=contexts,
            batch_tokens=n,
            window_tokens=30,
            word_context_tokens=20,
        )
        for n in batches
    ]
    for several in zip(*found, strict=True):
        assert_equal_sets(several[1], several[0])
        assert_equal_sets(several[2], several[0])


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_the_order_of_stories_changes_nothing(family, folder_of, tmp_path):
    stories = {"a": WORDS[:40], "b": WORDS[40:43], "c": WORDS[43:60]}
    turned = {name: stories[name] for name in ("c", "a", "b")}
    contexts = ["full", "sentence_reset", "shuffled", "reversed"]
    options = {"contexts": contexts, "window_tokens": 30, "word_context_tokens": 20}
    before = extract(folder_of(family), stories, tmp_path, **options)
    after = extract(folder_of(family), turned, tmp_path, **options)
    rows = np.concatenate([np.arange(43, 60), np.arange(43)])
    for found, expected in zip(after, before, strict=True):
        assert found.path != expected.path
        assert_equal_sets(found, expected, rows)


@pytest.mark.parametrize("family", ["gpt2", "qwen3", "bert"])
def test_the_side_on_which_a_tokenizer_pads_changes_nothing(family, folder_of, tmp_path):
    stories = {"a": WORDS[:40], "b": WORDS[40:43], "c": WORDS[43:60]}
    options = {"window_tokens": 30, "word_context_tokens": 20}
    (plain,) = extract(folder_of(family), stories, tmp_path / "plain", **options)
    for side in ("left", "right"):
        folder = tmp_path / f"model-{side}"
        shutil.copytree(folder_of(family), folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), padding_side=side)
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        tokenizer.save_pretrained(str(folder))
        assert transformers.AutoTokenizer.from_pretrained(str(folder)).padding_side == side
        (found,) = extract(folder, stories, tmp_path / side, **options)
        assert_equal_sets(found, plain)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooling_over_the_tokens_of_a_word(family, pooling, folder_of, reader_of, tmp_path):
    words = ["lighthouses,", "unforeseeable", "keepers", "a", "antidisestablishment."]
    reader = reader_of(family)
    sizes = [last - first + 1 for first, last, _ in reader.tokens(words)[1]]
    assert min(sizes) == 1
    assert sorted(sizes)[1] >= 2
    assert max(sizes) >= 6
    (found,) = extract(folder_of(family), words, tmp_path, pooling=pooling)
    assert_same(found, reader.read(words, pooling=pooling))


def sentence_grid(table, pooling):
    """An event grid with one event a sentence, over a recording that covers all words."""
    onset = np.arange(table.height) * 0.5
    words = table.with_columns(onset_s=pl.Series(onset), offset_s=pl.Series(onset + 0.4))
    signal = TimeSeries(np.zeros((table.height * 5 + 10, 1)), 10.0)
    recording = Recording(RecordingId("1", "1", "1", "s"), signal, Units(("u",), ("r",)), "run.npy")
    config = GridConfig(events="sentences", lags_ms=(0.0,), pooling=pooling)
    return build_grid(recording, Stimulus("s", words, "words.tsv"), config)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_sentences_are_pooled_from_their_words(pooling, folder_of, reader_of, tmp_path):
    table = words_table({"story": SHORT})
    (found,) = lpact.extract_features(folder_of("gpt2"), table, tmp_path, pooling=pooling)
    grid = sentence_grid(table, pooling)
    ends = [i for i, word in enumerate(SHORT) if word.endswith(".")]
    assert ends[-1] == len(SHORT) - 1
    starts = [0, *(end + 1 for end in ends[:-1])]
    assert grid.n_events == len(starts) >= 3
    rows = found.hidden(2)
    pooled = grid.pool(rows)
    parts = [pool(rows[a : b + 1], pooling) for a, b in zip(starts, ends, strict=True)]
    np.testing.assert_allclose(pooled, parts, rtol=1e-12)
    if pooling == "sum":  # summed over words and over sentences: the sum over all tokens of a sentence
        ids, places = reader_of("gpt2").tokens(SHORT)
        states = reader_of("gpt2").look([*reader_of("gpt2").start, *ids])[0][2][1:]
        token_sums = [states[places[a][0] : places[b][1] + 1].sum(axis=0) for a, b in zip(starts, ends, strict=True)]
        assert_near(pooled, np.array(token_sums))


@pytest.mark.parametrize("family", CAUSAL)
def test_odd_words(family, folder_of, reader_of, tmp_path):
    """Punctuation alone and attached, quotes, dashes, digits, accents, other scripts, symbols of several tokens."""
    text = "“Why?” — she didn't (really) know: 3,141.59 naïve Äpfel ночь 日本語 😀 ... ! e-mail co-op's"
    words = text.split()
    stories = {"odd": words, "one word": ["lighthouse"], "one token": ["a"]}
    found = extract(folder_of(family), stories, tmp_path, contexts=["full", "reversed", "fixed-1"])
    reader = reader_of(family)
    assert len(reader.tokens(["a"])[0]) == 1
    reads = [reader.read(w) for w in stories.values()]
    assert_near(found[0].hidden(3), np.concatenate([r.hidden[3] for r in reads]))
    assert_near(found[0].surprisal(), np.concatenate([r.surprisal for r in reads]))
    assert_near(found[0].entropy(), np.concatenate([r.entropy for r in reads]))
    for backwards in found[1:]:
        assert_near(backwards.hidden(3)[-2:], np.concatenate([r.hidden[3] for r in reads[1:]]))
        pair = reader.read(words[:2][::-1] if backwards is found[1] else words[:2])
        assert backwards.surprisal()[0] == pytest.approx(reader.read(words[:1]).surprisal[0])
        if backwards is found[2]:
            assert backwards.surprisal()[1] == pytest.approx(pair.surprisal[1])


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("joiner", ["  ", "   ", "\n"])
def test_blanks_between_words_count_into_the_word_after(family, joiner, folder_of, reader_of, tmp_path):
    words = SHORT[:12]
    reader = reader_of(family)
    (found,) = extract(folder_of(family), words, tmp_path, joiner=joiner)
    assert_same(found, reader.read(words, joiner=joiner))
    if joiner == "   ":
        places = reader.tokens(words, joiner)[1]
        assert any(lead < first for first, _, lead in places)


def test_a_word_that_no_token_covers_is_named(folder_of, tmp_path):
    words = ["the", "sea", "\u00ad", "was", "calm"]
    with pytest.raises(FeatureError, match=r"no token") as caught:
        extract(folder_of("bert"), words, tmp_path)
    message = str(caught.value)
    assert "U+00AD" in message
    assert "row 3" in message


@pytest.mark.parametrize("family", ["gpt2", "qwen2"])
def test_a_model_without_a_start_token_expects_nothing_of_the_first_word(family, tmp_path_factory, tmp_path):
    folder = write_model(tmp_path_factory.mktemp("bare"), family, tokenizer=byte_level_tokenizer(None, None))
    stories = {"a": SHORT, "one token": ["a"], "b": WORDS[40:50]}
    reader = PlainReader(folder, family, framed=False)
    found, reset = extract(folder, stories, tmp_path, contexts=["full", "sentence_reset"])
    reads = [reader.read(words) for words in stories.values()]
    surprisal = np.concatenate([r.surprisal for r in reads])
    assert np.flatnonzero(np.isnan(surprisal)).tolist() == [0, 30, 31]
    assert_near(found.surprisal(), surprisal)
    assert_near(found.entropy(), np.concatenate([r.entropy for r in reads]))
    assert_near(found.hidden(3), np.concatenate([r.hidden[3] for r in reads]))
    starts = words_table(stories)["sentence_id"].diff().fill_null(1).to_numpy() != 0
    assert (np.isnan(reset.surprisal()) == starts).all()
