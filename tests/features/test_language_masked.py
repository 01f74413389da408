"""Masked models: words read last or with their future, surprisal from masks, against one plain pass for each number.

Numbers agree up to 1e-5 of the largest value: float32, summed in another order.
"""

from __future__ import annotations

import numpy as np
import pytest
from small_models import (
    ENCODERS,
    TEXT,
    assert_near,
    extract,
)

from lpact.features.language.reader import cut, tail
from lpact.features.language.text import WordTokens

WORDS = TEXT.split()
CHANGED = 0.01
LIMIT = {"bert": 128, "roberta": 126}
"""Tokens that fit: 128 positions, of which RoBERTa counts two for padding."""


def assert_near_sets(found, hidden, surprisal, entropy):
    for layer in range(found.n_layers):
        assert_near(found.hidden(layer), hidden[layer])
    assert_near(found.surprisal(), surprisal)
    assert_near(found.entropy(), entropy)


def next_entropy(reader, words, window=None):
    """Entropy in bits of a mask that follows the last word."""
    ids, places = reader.tokens(words)
    begin, stop = window or (0, len(ids))
    assert stop == places[-1][1] + 1
    asked = [*reader.start, *ids[begin:stop], reader.tokenizer.mask_token_id, *reader.end]
    log2 = reader.look(asked)[1][-1 - len(reader.end)]
    return -(2**log2 * log2).sum()


def read_last(reader, texts, room=None, pooling="last"):
    """The last word of each text, which is all that is read, or its tail of ``room`` tokens."""
    reads, entropies = [], []
    for text in texts:
        ids, places = reader.tokens(text)
        window = None
        if room is not None:
            w = tail(WordTokens(np.array(ids), *np.array(places).T), room=room, where="")
            window = (w.begin, w.stop)
        wanted = [len(text) - 1]
        reads.append(reader.read(text, wanted=wanted, window=window, pooling=pooling))
        entropies.append(next_entropy(reader, text, window))
    hidden = np.concatenate([r.hidden for r in reads], axis=1)
    return hidden, np.concatenate([r.surprisal for r in reads]), np.array(entropies)


@pytest.mark.parametrize("pooling", ["last", "first", "mean", "sum"])
@pytest.mark.parametrize("family", ENCODERS)
def test_each_word_is_read_last(family, pooling, folder_of, reader_of, tmp_path):
    words, reader = [*WORDS[:9], "antidisestablishment"], reader_of(family)
    sizes = [last - first + 1 for first, last, _ in reader.tokens(words)[1]]
    assert min(sizes) == 1
    assert max(sizes) >= 6
    (found,) = extract(folder_of(family), words, tmp_path, pooling=pooling)
    texts = [words[: i + 1] for i in range(len(words))]
    assert_near_sets(found, *read_last(reader, texts, pooling=pooling))
    assert np.std(found.surprisal()) > 1


@pytest.mark.parametrize("family", ENCODERS)
def test_contexts_of_words_read_last(family, folder_of, reader_of, tmp_path):
    words, reader = WORDS[:20], reader_of(family)
    contexts = ["sentence_reset", "reversed", "fixed-2"]
    found = extract(folder_of(family), words, tmp_path, contexts=contexts)
    assert words[13].endswith(".")
    places = range(len(words))
    reset = [words[0 if i < 14 else 14 : i + 1] for i in places]
    backwards = [[*words[:i][::-1], words[i]] for i in places]
    fixed = [words[max(0, i - 2) : i + 1] for i in places]
    for features, texts in zip(found, (reset, backwards, fixed), strict=True):
        assert_near_sets(features, *read_last(reader, texts))


@pytest.mark.parametrize("family", ENCODERS)
def test_a_passage_for_one_word_never_outgrows_the_model(family, folder_of, reader_of, tmp_path):
    """A story longer than the model: room for the word's past, for the frame and for one mask, and none is wasted."""
    words, reader = WORDS + WORDS[:40], reader_of(family)
    room = LIMIT[family] - 3
    ids, places = reader.tokens(words)
    assert len(ids) > LIMIT[family] + 20
    (full,) = extract(folder_of(family), words, tmp_path, contexts=["full"])
    (backwards,) = extract(folder_of(family), words, tmp_path, contexts=["reversed"])
    late = [i for i, (_, last, _) in enumerate(places) if last >= room][::4]
    texts, turned = [], []
    for i in late:
        begin = min(j for j in range(i + 1) if places[i][1] - places[j][0] + 1 <= room)
        assert begin > 0
        forward, backward = words[begin : i + 1], [*words[begin:i][::-1], words[i]]
        while len(reader.tokens(forward)[0]) > room:  # a word at the start may have more tokens there
            forward = forward[1:]
        texts.append(forward)
        while len(reader.tokens(backward)[0]) > room:  # the farthest word goes
            backward = [*backward[:-2], words[i]]
        turned.append(backward)
    for found, those in ((full, texts), (backwards, turned)):
        hidden, surprisal, entropy = read_last(reader, those, room)
        assert_near(found.hidden(3)[late], hidden[3])
        assert_near(found.surprisal()[late], surprisal)
        assert_near(found.entropy()[late], entropy)


@pytest.mark.parametrize("family", ENCODERS)
def test_a_hidden_future_is_not_seen(family, folder_of, tmp_path):
    n_past, words = 16, WORDS[:22]
    past, future = words[:n_past], words[n_past:]
    other = [word[::-1].upper() for word in future]
    contexts = ["full", "sentence_reset", "reversed", "shuffled", "fixed-1"]
    for tokens, wanted in ((16, contexts), (256, contexts[:1])):
        options = {"contexts": wanted, "word_context_tokens": tokens}
        before = extract(folder_of(family), words, tmp_path, **options)
        for changed in (past + other, past, past + other + words[:5]):
            after = extract(folder_of(family), changed, tmp_path, **options)
            for found, expected in zip(after, before, strict=True):
                for layer in range(4):
                    assert_near(found.hidden(layer)[:n_past], expected.hidden(layer)[:n_past])
                assert_near(found.surprisal()[:n_past], expected.surprisal()[:n_past])
                assert_near(found.entropy()[:n_past], expected.entropy()[:n_past])


@pytest.mark.parametrize("family", ENCODERS)
def test_a_future_that_is_seen_changes_what_is_before_it(family, folder_of, tmp_path):
    words = WORDS[:22]
    changed = [*words[:-1], "storm"]
    (before,) = extract(folder_of(family), words, tmp_path, future="seen")
    (after,) = extract(folder_of(family), changed, tmp_path, future="seen")
    moved = np.abs(after.hidden(3) - before.hidden(3)).max(axis=1)
    assert moved.min() > 1e-3
    assert np.abs(after.surprisal() - before.surprisal()).min() > 1e-4
    at_the_input = np.abs(after.hidden(0) - before.hidden(0)).max(axis=1)
    assert at_the_input[:-1].max() < 1e-5 < CHANGED < at_the_input[-1]


@pytest.mark.parametrize("family", ENCODERS)
def test_a_story_with_its_future_is_one_pass(family, folder_of, reader_of, tmp_path):
    stories = {"a": WORDS[:20], "b": WORDS[20:26]}
    found, reset = extract(folder_of(family), stories, tmp_path, contexts=["full", "sentence_reset"], future="seen")
    parts = [stories["a"], stories["b"]]
    sentences = [WORDS[:14], WORDS[14:20], WORDS[20:22], WORDS[22:26]]
    for features, texts in ((found, parts), (reset, sentences)):
        reads = [reader_of(family).read(words) for words in texts]
        hidden = np.concatenate([r.hidden for r in reads], axis=1)
        surprisal = np.concatenate([r.surprisal for r in reads])
        assert_near_sets(features, hidden, surprisal, np.full(len(surprisal), np.nan))


@pytest.mark.parametrize("family", ENCODERS)
def test_windows_keep_words_after_the_last_where_the_future_is_seen(family, folder_of, reader_of, tmp_path):
    words, reader = WORDS[:60], reader_of(family)
    ids, places = reader.tokens(words)
    room, stride = 38, 24
    (found,) = extract(
        folder_of(family),
        words,
        tmp_path,
        future="seen",
        window_tokens=room + 2,
        stride_tokens=stride,
    )
    tokens = WordTokens(np.array(ids), *np.array(places).T)
    windows = list(cut(tokens, room=room, stride=stride, overhang=stride // 2, place=str))
    assert len(windows) >= 4
    reads = []
    for w in windows:
        wanted = range(w.first, w.last)
        reads.append(reader.read(words, window=(w.begin, w.stop), wanted=wanted))
        last = places[w.last - 1][1]
        assert w.stop - 1 - last >= min(stride // 2, len(ids) - 1 - last)
    hidden = np.concatenate([r.hidden for r in reads], axis=1)
    surprisal = np.concatenate([r.surprisal for r in reads])
    assert_near_sets(found, hidden, surprisal, np.full(len(words), np.nan))
