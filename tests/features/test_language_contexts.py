"""Contexts: each word is read afresh in the text that its context makes, and nothing comes from the future.

Rows agree up to 1e-5 of the largest value, not bit for bit: a batch of another shape sums its float32 products in
another order.
"""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
import torch
import transformers
from small_models import (
    CAUSAL,
    TEXT,
    PlainReader,
    assert_near,
    extract,
    words_table,
    write_model,
)

import lpact
from lpact.errors import ConfigError
from lpact.features.language.reader import word_passage
from lpact.features.language.text import read_stories
from lpact.math.seeding import keyed_rng

WORDS = TEXT.split()
PAST = ("full", "sentence_reset", "reversed", "shuffled", "fixed-3")
CHANGED = 0.01
"""States of other words differ by more than this somewhere; rounding by less than 1e-4."""


def assert_same_rows(found, expected, n_rows):
    for layer in range(expected.n_layers):
        assert_near(found.hidden(layer)[:n_rows], expected.hidden(layer)[:n_rows])
    assert_near(found.surprisal()[:n_rows], expected.surprisal()[:n_rows])
    assert_near(found.entropy()[:n_rows], expected.entropy()[:n_rows])


def change(found, expected):
    """Largest change of each row's last state, [rows]."""
    layer = expected.n_layers - 1
    return np.abs(found.hidden(layer) - expected.hidden(layer)).max(axis=1)


@pytest.mark.parametrize(("family", "window"), [("gpt2", None), *((family, 24) for family in CAUSAL)])
def test_no_word_knows_what_follows_it(family, window, folder_of, tmp_path):
    n_past, words = 27, WORDS[:34]
    options = {
        "contexts": PAST,
        "window_tokens": window,
        "stride_tokens": window and 12,
        "word_context_tokens": window or 256,
    }
    past, future = words[:n_past], words[n_past:]
    other = [word[::-1].upper() for word in future]
    before = extract(folder_of(family), words, tmp_path, **options)
    for stories in (
        {"story": past + other},
        {"story": past},
        {"story": past + other + future},
        {"story": past + future[:1], "another": other},
    ):
        after = extract(folder_of(family), stories, tmp_path, **options)
        for found, expected in zip(after, before, strict=True):
            assert_same_rows(found, expected, n_past)
    after = extract(folder_of(family), past + other, tmp_path, **options)
    for found, expected in zip(after, before, strict=True):
        assert change(found, expected)[n_past:].min() > CHANGED


@pytest.mark.parametrize("family", CAUSAL)
def test_a_word_knows_what_its_context_holds(family, folder_of, tmp_path):
    """Another word at place 2 changes all after it in full context, reversed and shuffled; else those within reach."""
    words = WORDS[:24]
    changed = [*words[:2], "storm", *words[3:]]
    before = extract(folder_of(family), words, tmp_path, contexts=PAST)
    after = extract(folder_of(family), changed, tmp_path, contexts=PAST)
    assert words[13].endswith(".")
    reach = {"full": 24, "sentence_reset": 14, "reversed": 24, "shuffled": 24, "fixed-3": 6}
    for context, found, expected in zip(PAST, after, before, strict=True):
        moved = change(found, expected)
        stop = reach[context]
        assert moved[2:stop].min() > 1e-3, context
        assert moved[:2].max(initial=0) < 1e-4, context
        assert moved[stop:].max(initial=0) < 1e-4, context


@pytest.mark.parametrize("family", CAUSAL)
def test_sentences_are_read_on_their_own(family, folder_of, reader_of, tmp_path):
    words = WORDS[:32]
    found, full = extract(folder_of(family), words, tmp_path, contexts=["sentence_reset", "full"])
    ends = [i + 1 for i, word in enumerate(words) if word.endswith(".")]
    bounds = [0, *ends, len(words)]
    assert len(bounds) == 5
    reads = [reader_of(family).read(words[a:b]) for a, b in pairwise(bounds)]
    for layer in range(4):
        assert_near(found.hidden(layer), np.concatenate([r.hidden[layer] for r in reads]))
    assert_near(found.surprisal(), np.concatenate([r.surprisal for r in reads]))
    assert_near(found.entropy(), np.concatenate([r.entropy for r in reads]))
    # Afresh: other than the full-context rows from the second sentence on.
    moved = change(found, full)
    assert moved[: ends[0]].max() < 1e-4
    assert moved[ends[0] :].min() > CHANGED


def read_last(reader, texts, **options):
    """The last word of each text, each in a pass of its own: hidden [layers, texts, width], surprisal, entropy."""
    reads = [reader.read(words, wanted=[len(words) - 1], **options) for words in texts]
    hidden = np.concatenate([r.hidden for r in reads], axis=1)
    return (
        hidden,
        *(np.concatenate([getattr(r, n) for r in reads]) for n in ("surprisal", "entropy")),
    )


def assert_last(found, expected):
    hidden, surprisal, entropy = expected
    for layer in range(found.n_layers):
        assert_near(found.hidden(layer), hidden[layer])
    assert_near(found.surprisal(), surprisal)
    assert_near(found.entropy(), entropy)


@pytest.mark.parametrize("family", CAUSAL)
def test_words_are_read_last_in_texts_of_their_own(family, folder_of, reader_of, tmp_path):
    words, reader = WORDS[:18], reader_of(family)
    contexts = ["reversed", "fixed-1", "fixed-4", "full"]
    found = extract(folder_of(family), words, tmp_path, contexts=contexts)
    backwards = [[*words[:i][::-1], words[i]] for i in range(len(words))]
    assert_last(found[0], read_last(reader, backwards))
    for n_before, fixed in ((1, found[1]), (4, found[2])):
        texts = [words[max(0, i - n_before) : i + 1] for i in range(len(words))]
        assert_last(fixed, read_last(reader, texts))
    for fresh, same in ((found[0], 2), (found[1], 2), (found[2], 5)):
        moved = change(fresh, found[3])
        assert moved[: same - (fresh is found[0])].max() < 1e-4
        assert moved[same:].min() > CHANGED


def test_context_words_make_the_full_context_as_short(folder_of, tmp_path):
    words = WORDS[:18]
    (fixed,) = extract(folder_of("gpt2"), words, tmp_path, contexts=["fixed-4"])
    (full,) = extract(folder_of("gpt2"), words, tmp_path, contexts=["full"], context_words=4)
    assert_same_rows(full, fixed, len(words))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("options", [{"word_context_tokens": 17}, {"window_tokens": 17}])
def test_what_is_too_long_for_a_word_loses_its_farthest_words(family, options, folder_of, reader_of, tmp_path):
    """Words are taken while the story's own tokens fit; what is longer when rearranged loses the farthest ones."""
    words, reader = WORDS[:30], reader_of(family)
    (found,) = extract(folder_of(family), words, tmp_path, contexts=["reversed"], **options)
    places = reader.tokens(words)[1]
    parts = []
    n_shortened = 0
    for i in range(len(words)):
        begin = i
        while begin > 0 and places[i][1] - places[begin - 1][0] + 1 <= 16:
            begin -= 1
        assert begin > 0 or i < 16
        text = [*words[begin:i][::-1], words[i]]
        while len(reader.tokens(text)[0]) > 16:
            n_shortened += 1
            text = [*text[:-2], words[i]]
        parts.append(read_last(reader, [text]))
    assert n_shortened > 0 or family == "llama"
    hidden = np.concatenate([p[0] for p in parts], axis=1)
    assert_last(found, (hidden, *(np.concatenate([p[n] for p in parts]) for n in (1, 2))))


def test_more_words_than_a_model_can_read_are_not_silently_fewer(folder_of, tmp_path):
    with pytest.raises(ConfigError, match="29 words before each word") as caught:
        extract(folder_of("gpt2"), WORDS[:30], tmp_path, contexts=["fixed-29"], word_context_tokens=17)
    assert "row " in str(caught.value)


def shuffled_orders(words, draw):
    """The words before each word, in the order in which the context has them."""
    (story,) = read_stories(words_table({"story": words}), where="")
    return [word_passage("shuffled", draw, story, 0, i)[1].tolist() for i in range(len(words))]


@pytest.mark.parametrize("family", CAUSAL)
def test_shuffled_words_are_read_in_each_draw_s_order(family, folder_of, reader_of, tmp_path):
    words, reader = WORDS[:14], reader_of(family)
    found = extract(folder_of(family), words, tmp_path, contexts=["shuffled"], shuffled_draws=2)
    orders = [shuffled_orders(words, draw) for draw in (0, 1)]
    for draw, features in enumerate(found):
        for word, order in enumerate(orders[draw]):
            assert order[-1] == word
            assert sorted(order) == list(range(word + 1))
        texts = [[words[i] for i in order] for order in orders[draw]]
        assert_last(features, read_last(reader, texts))
    assert orders[0][6:] != orders[1][6:]
    assert change(found[0], found[1])[6:].max() > CHANGED
    again = extract(folder_of(family), words, tmp_path / "again", contexts=["shuffled"], shuffled_draws=2)
    for first, second in zip(found, again, strict=True):
        for layer in range(4):
            assert (first.hidden(layer) == second.hidden(layer)).all()


def test_every_order_of_three_words_comes_up(folder_of, reader_of, tmp_path):
    """Known without the code's own orders: the row is that of one of six texts, and all six are drawn."""
    words, reader = ["boats", "came", "near", "home"], reader_of("gpt2")
    sets = extract(folder_of("gpt2"), words, tmp_path, contexts=["shuffled"], shuffled_draws=24)
    texts = [[*(words[i] for i in order), words[3]] for order in permutations(range(3))]
    states = read_last(reader, texts)[0][3]
    drawn = []
    for features in sets:
        distance = np.abs(states - features.hidden(3)[3]).max(axis=1)
        assert distance.min() < 1e-4 < CHANGED < np.sort(distance)[1]
        drawn.append(int(np.argmin(distance)))
    assert set(drawn) == set(range(6))


@pytest.mark.parametrize("family", [*CAUSAL, "bert"])
def test_static_vectors_are_those_of_the_input(family, folder_of, reader_of, tmp_path):
    words, reader = ["it", "boats", "lighthouse", "boats", "lighthouse", "boats"], reader_of(family)
    ids, places = reader.tokens(words)
    table = reader.network.get_input_embeddings().weight.detach().numpy()
    for pooling, summed in (("last", False), ("first", False), ("mean", False), ("sum", True)):
        (found,) = extract(folder_of(family), words, tmp_path, contexts=["static"], pooling=pooling)
        rows = [table[ids[first : last + 1]] for first, last, _ in places]
        expected = [row.sum(axis=0) if summed else row.mean(axis=0) for row in rows]
        assert found.n_layers == 1
        assert_near(found.hidden(0), np.array(expected))
        assert (found.hidden(0)[[1, 1, 2]] == found.hidden(0)[[3, 5, 4]]).all()
        assert np.isnan(found.surprisal()).all()


@pytest.mark.parametrize("family", [*CAUSAL, "bert"])
def test_untrained_models_are_drawn_from_the_configuration(family, folder_of, tmp_path):
    words, folder = WORDS[:12], folder_of(family)
    options = {"contexts": ["untrained", "full"], "untrained_seeds": 2, "future": "seen"}
    first, second, trained = extract(folder, words, tmp_path, **options)
    reader = PlainReader(folder, family)
    for draw, found in enumerate((first, second)):
        config = transformers.AutoConfig.from_pretrained(str(folder))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(keyed_rng(draw, "untrained weights").integers(2**31)))
            reader.network = type(reader.network)(config).eval()
        expected = reader.read(words)
        assert found.n_layers == trained.n_layers
        for layer in range(found.n_layers):
            assert_near(found.hidden(layer), expected.hidden[layer])
        assert_near(found.surprisal(), expected.surprisal)
        assert change(found, trained).min() > CHANGED
    assert change(first, second).min() > CHANGED
    again = extract(folder, words, tmp_path / "again", **options)
    assert (again[0].hidden(3) == first.hidden(3)).all()
    assert (again[1].hidden(3) == second.hidden(3)).all()


def test_untrained_models_do_not_depend_on_trained_weights(tmp_path):
    one = write_model(tmp_path / "one", "gpt2", seed=1)
    two = write_model(tmp_path / "two", "gpt2", seed=2)
    options = {"contexts": ["untrained", "full"], "untrained_seeds": 1, "name": "model"}
    sets = [extract(folder, WORDS[:12], tmp_path / "out", **options) for folder in (one, two)]
    assert sets[0][0].path == sets[1][0].path
    assert sets[0][1].path != sets[1][1].path
    (elsewhere, _) = extract(two, WORDS[:12], tmp_path / "elsewhere", **options)
    assert (elsewhere.hidden(3) == sets[0][0].hidden(3)).all()


def test_sentences_must_be_known_to_be_read_on_their_own(folder_of, tmp_path):
    table = words_table({"story": WORDS[:12]}).drop("sentence_id")
    with pytest.raises(ConfigError, match="sentence_id"):
        lpact.extract_features(folder_of("gpt2"), table, tmp_path, contexts=["sentence_reset"])
