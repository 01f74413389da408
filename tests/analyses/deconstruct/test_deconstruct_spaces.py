"""Feature spaces of positions, lengths and autocorrelation, against values by hand and SciPy's kernel written out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from lpact.analyses.deconstruct.spaces import chunks_of, oasm, one_hot, space_of, word_position

# Two stories of two and three sentences, of 2, 3 | 1, 2 and 2 words.
SENTENCE = [0, 0, 1, 1, 1, 2, 3, 3, 4, 4]
STORY = ["a"] * 5 + ["b"] * 5
WORDS = pl.DataFrame({"word": list("abcdefghij"), "sentence_id": SENTENCE, "story_id": STORY})


def prepared(first, words=WORDS):
    """What the simple spaces read of a recording whose events begin at these words."""
    return SimpleNamespace(stimulus=SimpleNamespace(words=words), grid=SimpleNamespace(first_word=np.array(first)))


def workspace():
    return SimpleNamespace(config=SimpleNamespace(models=()))


def simple(name, first, words=WORDS):
    return space_of(name, prepared(first, words), workspace())


def gaussian_row(n, place, sigma):
    """A spike at ``place`` among n, smoothed: SciPy's kernel, cut off at 4 σ and reflected at the ends."""
    radius = int(4.0 * sigma + 0.5)
    offsets = np.arange(-radius, radius + 1)
    kernel = np.exp(-0.5 * (offsets / sigma) ** 2)
    kernel /= kernel.sum()
    row = np.zeros(n)
    for to in range(n):
        for offset, weight in zip(offsets, kernel, strict=True):
            source = (to + offset) % (2 * n)  # d c b a | a b c d | d c b a
            source = source if source < n else 2 * n - 1 - source
            row[to] += weight * (source == place)
    return row


# --- positions and lengths ----------------------------------------------------------------------------------------


def test_sentence_position_is_one_hot_within_the_story():
    first = [0, 2, 5, 6, 8]
    expected = [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    np.testing.assert_array_equal(simple("SP", first), expected)
    # Positions that no event has are no columns; words of a sentence share its position.
    np.testing.assert_array_equal(simple("SP", [0, 1, 8, 9]), [[1, 0], [1, 0], [0, 1], [0, 1]])
    np.testing.assert_array_equal(one_hot(np.array([3, 0, 3])), [[0, 1], [1, 0], [0, 1]])


def test_sentence_length_in_words():
    np.testing.assert_array_equal(simple("SL", [0, 2, 5, 6, 8])[:, 0], [2, 3, 1, 2, 2])
    np.testing.assert_array_equal(simple("SL", [3, 9])[:, 0], [3, 2])


def test_word_position_counts_within_the_sentence():
    got = simple("WP", range(10))
    np.testing.assert_array_equal(got[:, 0], [0, 1, 0, 1, 2, 0, 0, 1, 0, 1])
    assert got.shape == (10, 1 + 3)
    for row, place in zip(got, [0, 1, 0, 1, 2, 0, 0, 1, 0, 1], strict=True):
        np.testing.assert_allclose(row[1:], gaussian_row(3, place, 1.0), atol=1e-15)


def test_word_position_of_eight_words():
    """Fedorenko et al. (2016): a ramp of 0 … 7 and eight smoothed positions."""
    words = pl.DataFrame({"word": ["w"] * 24, "sentence_id": np.repeat([0, 1, 2], 8), "story_id": ["s"] * 24})
    got = simple("WP", range(24), words)
    assert got.shape == (24, 9)
    np.testing.assert_array_equal(got[:8], got[16:])
    np.testing.assert_array_equal(got[:8, 0], np.arange(8))
    smooth = np.array([gaussian_row(8, place, 1.0) for place in range(8)])
    np.testing.assert_allclose(got[:8, 1:], smooth, atol=1e-15)
    # By hand: exp(−d²/2) over its sum for −4 … 4; at the ends, what lies beyond is reflected.
    unit = np.exp(-0.5 * np.arange(5) ** 2)
    unit /= unit[0] + 2.0 * unit[1:].sum()
    np.testing.assert_allclose(got[3, 1:5], unit[[3, 2, 1, 0]] + [unit[4], 0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(got[0, 1:6], unit + np.append(unit[1:], 0.0), atol=1e-15)
    np.testing.assert_array_equal(word_position(np.arange(8), 8), got[:8])


# --- autocorrelation ----------------------------------------------------------------------------------------------


def test_the_golden_block_of_four_sentences():
    near, far = 0.99616374, 0.00383626
    middle = 0.99232748
    expected = [
        [near, far, 0, 0],
        [far, middle, far, 0],
        [0, far, middle, far],
        [0, 0, far, near],
    ]
    np.testing.assert_allclose(oasm(np.zeros(4), 0.3), expected, atol=5e-9)


@pytest.mark.parametrize("sigma", [0.1, 0.6, 2.2, 5.0])
def test_blocks_are_orthogonal_and_smoothed_alone(sigma):
    chunks = np.repeat([3, 0, 7, 0], [4, 3, 1, 6])  # a number that comes back is another chunk
    got = oasm(chunks, sigma)
    assert got.shape == (14, 14)
    products = got @ got.T
    start = 0
    for size in (4, 3, 1, 6):
        own = slice(start, start + size)
        block = np.array([gaussian_row(size, place, sigma) for place in range(size)])
        np.testing.assert_allclose(got[own, own], block, atol=1e-12)
        assert not got[own, :start].any()
        assert not got[own, own.stop :].any()
        assert not products[own, :start].any()
        start += size
    np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-12)


def test_chunks_are_sentences_for_words_and_stories_otherwise():
    grid = SimpleNamespace(sentence=np.array([0, 0, 1, 1, 1, 4]), story=np.array([0, 0, 0, 1, 1, 1]))
    np.testing.assert_array_equal(chunks_of(grid, "words"), [1, 1, 2, 3, 3, 4])
    for events in ("sentences", "trs"):
        np.testing.assert_array_equal(chunks_of(grid, events), [0, 0, 0, 1, 1, 1])
