"""Windows of long passages: every word once, whole, with its minimum of context, and nothing of the future."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpact.errors import FeatureError
from lpact.features.language.reader import Window, cut, tail
from lpact.features.language.text import WordTokens


def make_tokens(sizes, gaps, merged, after=0):
    """Words of ``sizes`` tokens; before each, ``gaps`` tokens of no word, or it shares its first with the last word."""
    first, last, lead, at = [], [], [], 0
    for size, gap, shared in zip(sizes, gaps, merged, strict=True):
        at += gap
        begin = at - 1 if shared and first and not gap else at
        first.append(begin)
        last.append(begin + size - 1)
        lead.append(max(at - gap, begin - 1) if gap else begin)
        at = begin + size
    arrays = (np.array(values, dtype=np.int64) for values in (first, last, lead))
    return WordTokens(np.arange(at + after), *arrays)


@st.composite
def passages(draw, longest=6):
    n = draw(st.integers(1, 25))
    sizes = draw(st.lists(st.integers(1, longest), min_size=n, max_size=n))
    gaps = draw(st.lists(st.sampled_from((0, 0, 0, 1, 2, 15)), min_size=n, max_size=n))
    merged = draw(st.lists(st.sampled_from((False, False, True)), min_size=n, max_size=n))
    return make_tokens(sizes, gaps, merged, draw(st.sampled_from((0, 0, 3))))


@st.composite
def tasks(draw):
    """A passage, room and stride, with every word within the stride."""
    tokens = draw(passages())
    longest = int((tokens.last - tokens.first).max()) + 1
    stride = draw(st.integers(longest, 30))
    return tokens, stride + draw(st.integers(0, 30)), stride


def windows_of(tokens, room, stride, overhang=0):
    return list(cut(tokens, room=room, stride=stride, overhang=overhang, place=str))


def inside_a_word(tokens, place):
    """Whether a window that begins here begins with the rest of a word."""
    starts = place in tokens.first
    cuts = any(a < place <= b for a, b in zip(tokens.first, tokens.last, strict=True))
    return cuts and not starts


@settings(max_examples=300, deadline=None)
@given(tasks())
def test_every_word_is_read_once_whole_and_with_its_context(task):
    tokens, room, stride = task
    windows = windows_of(tokens, room, stride)
    read = [word for w in windows for word in range(w.first, w.last)]
    assert read == list(range(len(tokens.first)))
    for w in windows:
        first, last = int(tokens.first[w.first]), int(tokens.last[w.last - 1])
        assert 0 <= w.begin <= first
        assert w.stop == last + 1
        assert w.stop - w.begin <= room
        for word in range(w.first, w.last):
            own = int(tokens.first[word])
            assert own - w.begin >= min(own, room - stride)


@settings(max_examples=300, deadline=None)
@given(tasks())
def test_a_window_begins_at_a_word_where_that_leaves_room(task):
    tokens, room, stride = task
    for w in windows_of(tokens, room, stride):
        if inside_a_word(tokens, w.begin):
            cut_word = max(i for i in range(len(tokens.first)) if tokens.first[i] < w.begin)
            assert tokens.last[w.first] - tokens.first[cut_word] + 1 > room


@settings(max_examples=300, deadline=None)
@given(tasks())
def test_a_window_takes_as_many_words_as_fit(task):
    tokens, room, stride = task
    for w in windows_of(tokens, room, stride)[:-1]:
        assert tokens.last[w.last] - w.begin + 1 > room


@settings(max_examples=200, deadline=None)
@given(tasks(), st.integers(0, 24))
def test_what_follows_a_word_never_moves_its_window(task, n_kept):
    tokens, room, stride = task
    n_kept = min(n_kept, len(tokens.first) - 1) + 1
    stop = int(tokens.last[n_kept - 1]) + 1
    parts = (values[:n_kept] for values in (tokens.first, tokens.last, tokens.lead))
    short = WordTokens(tokens.ids[:stop], *parts)
    begins = [
        {word: w.begin for w in windows_of(t, room, stride) for word in range(w.first, w.last)} for t in (tokens, short)
    ]
    assert {word: begins[0][word] for word in range(n_kept)} == begins[1]


@settings(max_examples=200, deadline=None)
@given(tasks(), st.integers(1, 15))
def test_where_the_future_is_seen_a_word_has_some_of_it(task, overhang):
    tokens, room, stride = task
    longest = int((tokens.last - tokens.first).max()) + 1
    windows = windows_of(tokens, room, stride, overhang)
    assert [i for w in windows for i in range(w.first, w.last)] == list(range(len(tokens.first)))
    for w in windows:
        last = int(tokens.last[w.last - 1])
        assert last < w.stop <= len(tokens.ids)
        assert w.stop - w.begin <= room
        own = int(tokens.first[w.first])
        assert own - w.begin >= min(own, room - stride)
        begins_late = own - w.begin <= room - stride
        if begins_late and longest + overhang <= stride:
            assert w.stop - 1 - last >= min(overhang, len(tokens.ids) - 1 - last)


def test_a_passage_that_fits_is_one_window():
    tokens = make_tokens([2, 1, 3], [0, 0, 0], [False] * 3)
    for stride in (3, 4, 6):
        assert windows_of(tokens, 6, stride) == [Window(0, 6, 0, 3)]


def test_windows_by_hand():
    # Words of two tokens; 8 tokens of room, of which 4 are for the words that follow.
    tokens = make_tokens([2] * 6, [0] * 6, [False] * 6)
    assert windows_of(tokens, 8, 4) == [Window(0, 8, 0, 4), Window(4, 12, 4, 6)]


def test_a_long_stretch_without_words_does_not_hide_the_words_after_it():
    # A preface of 50 tokens in no word, and one of 50 tokens amid the text.
    tokens = make_tokens([1] * 4, [50, 0, 50, 0], [False] * 4)
    assert windows_of(tokens, 10, 4) == [Window(44, 52, 0, 2), Window(96, 104, 2, 4)]


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 20))
def test_a_word_longer_than_the_stride_is_an_error_that_tells_the_stride(size, stride, more):
    tokens = make_tokens([1] * 30 + [size, 1], [0] * 32, [False] * 32)
    room = stride + more
    if size <= stride:
        assert windows_of(tokens, room, stride)[-1].last == 32
        return
    with pytest.raises(FeatureError, match="the word number 30") as caught:
        list(cut(tokens, room=room, stride=stride, place=lambda word: f"the word number {word}"))
    assert f"{size} tokens" in str(caught.value)
    assert f"raise stride_tokens to at least {size}" in str(caught.value)


@given(passages(), st.integers(1, 60))
def test_the_tail_of_a_passage_is_all_that_fits_before_its_last_word(tokens, room):
    first, last = int(tokens.first[-1]), int(tokens.last[-1])
    n_words = len(tokens.first)
    if last + 1 - first > room:
        with pytest.raises(FeatureError, match="does not fit"):
            tail(tokens, room=room, where="here")
        return
    w = tail(tokens, room=room, where="here")
    assert (w.first, w.last, w.stop) == (n_words - 1, n_words, last + 1)
    fitting = [0, *tokens.first.tolist()]
    assert w.begin == min(begin for begin in fitting if last + 1 - begin <= room)
