"""Splits prove themselves; compared with scikit-learn's, the engine's and the seed's folds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    cross_val_score,
)

from lpact import splits
from lpact.errors import SplitError
from lpact.math.splits import BlockedFolds, contiguous_folds


def same(found, expected):
    assert len(found) == len(expected)
    for (train, test), (other_train, other_test) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(train, other_train)
        np.testing.assert_array_equal(test, other_test)


def assert_disjoint(split):
    """Row by row, without the split's own proof."""
    tested = []
    for train, test in split:
        assert len(train)
        assert len(test)
        assert np.abs(train[:, None] - test[None, :]).min() > split.gap
        tested += test.tolist()
    assert sorted(tested) == list(range(split.n_rows))


X = np.zeros((30, 1))
STORIES = np.repeat(["b", "a", "d", "c"], [9, 8, 6, 7])
SCATTERED = np.array(["x", "y", "z"] * 10)

EVERY = [
    splits.contiguous(30, 4, gap=2),
    splits.grouped(STORIES, gap=1),
    splits.grouped(STORIES, 2),
    splits.grouped(SCATTERED),
    splits.leave_one_out(30, gap=3),
    splits.shuffled(30, 4, seed=5),
    splits.cross_session(STORIES),
    splits.cross_session(np.tile(["one", "two"], 15), np.repeat(["s", "t"], 15)),
    splits.cross_subject(STORIES),
    splits.balanced(np.repeat(list("abcdef"), 5), np.repeat(list("xyz"), 10)),
]


@pytest.mark.parametrize("split", EVERY, ids=lambda split: split.kind)
def test_every_split_is_disjoint_and_proves_it(split):
    assert_disjoint(split)
    proof = split.check()
    distances = [np.abs(a[:, None] - b[None, :]).min() for a, b in split]
    assert proof == splits.Proof(
        len(split),
        30,
        min(len(train) for train, _ in split),
        min(len(test) for _, test in split),
        min(distances),
    )


@pytest.mark.parametrize("split", EVERY, ids=lambda split: split.kind)
def test_inner_folds_see_neither_test_rows_nor_their_gap(split):
    for fold, (train, test) in enumerate(split):
        validated = []
        for inner_train, validation in split.inner(fold):
            assert set(inner_train) <= set(train)
            assert set(validation) <= set(train)
            for held_out in (validation, test):
                if inner_train.size:
                    assert np.abs(inner_train[:, None] - held_out[None, :]).min() > split.gap
            validated += validation.tolist()
        n_left = np.bincount(split.fold[train], minlength=len(split))
        used = 2 * n_left >= np.bincount(split.fold)
        used[fold] = False
        assert sorted(validated) == train[used[split.fold[train]]].tolist()


@pytest.mark.parametrize("gap", [0, 2, 4, 7])
def test_inner_folds_are_those_of_the_engine(gap):
    split = splits.contiguous(30, 5, gap=gap)
    rows, folds = np.arange(30), split.folds
    for outer in range(5):
        expected = [
            (folds.train_rows(outer, inner), rows[folds.validation_rows(inner, outer)])
            for inner in range(5)
            if inner != outer
        ]
        same(list(split.inner(outer)), [pair for pair in expected if pair[1].size])


def test_they_are_those_of_scikit_learn():
    same(splits.contiguous(30, 4), list(KFold(4).split(X)))
    same(splits.leave_one_out(30), list(LeaveOneOut().split(X)))
    by_story = {str(STORIES[test][0]): (train, test) for train, test in splits.grouped(STORIES)}
    for train, test in LeaveOneGroupOut().split(X, groups=STORIES):
        same([by_story[STORIES[test][0]]], [(train, test)])
    folds = {frozenset(test.tolist()) for _, test in splits.grouped(SCATTERED, 3)}
    expected = GroupKFold(3).split(X, groups=SCATTERED)
    assert folds == {frozenset(test.tolist()) for _, test in expected}


def test_scikit_learn_takes_them_as_cv():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    split = splits.contiguous(30, 4, gap=2)
    expected = [Ridge().fit(x[a], y[a]).score(x[b], y[b]) for a, b in split]
    np.testing.assert_allclose(cross_val_score(Ridge(), x, y, cv=split), expected)


@given(st.integers(2, 60), st.integers(2, 9), st.integers(0, 12))
def test_contiguous_folds_are_those_of_the_engine(n, k, gap):
    if n < k:
        with pytest.raises(SplitError, match="cannot split"):
            splits.contiguous(n, k, gap=gap)
        return
    split = splits.contiguous(n, k, gap=gap)
    folds = contiguous_folds(n, k, gap=gap)
    order, blocks = split.blocks()
    assert blocks == folds
    assert splits.Split.of_blocks(folds) == split
    np.testing.assert_array_equal(order, np.arange(n))
    for block, (train, test) in enumerate(split):
        np.testing.assert_array_equal(train, folds.train_rows(block))
        np.testing.assert_array_equal(test, np.arange(*folds.bounds(block)))


def test_stories_are_the_segments_of_the_engine():
    segments = np.repeat([4, 1, 7], [3, 4, 2])
    assert splits.grouped(segments, gap=1).folds == BlockedFolds((0, 3, 7), 9, 1)
    with pytest.raises(SplitError, match="not contiguous"):
        splits.grouped(SCATTERED).folds  # noqa: B018


def test_halves_are_disjoint_blocks():
    first, second = splits.alternating_halves(20, 4)
    assert first.tolist() == [*range(0, 5), *range(10, 15)]
    assert sorted([*first, *second]) == list(range(20))


def test_any_partition_becomes_blocks_by_sorting_rows():
    order, folds = splits.shuffled(30, 4, seed=1).blocks()
    for block, (train, test) in enumerate(splits.shuffled(30, 4, seed=1)):
        assert sorted(order[folds.rows(block)]) == test.tolist()
        assert sorted(order[folds.train_rows(block)]) == train.tolist()
    for split in (splits.grouped(SCATTERED, gap=1), EVERY[7]):
        with pytest.raises(SplitError, match="ridge engine"):
            split.blocks()


def test_shuffled_is_a_diagnostic_with_a_seed():
    split = splits.shuffled(30, 4, seed=3)
    assert split.diagnostic
    assert not any(other.diagnostic for other in EVERY if other.kind != "shuffled")
    same(split, list(splits.shuffled(30, 4, seed=3)))
    assert not np.array_equal(split.fold, splits.shuffled(30, 4, seed=4).fold)
    like = splits.shuffled(splits.grouped(STORIES, gap=4), seed=0)
    sizes = sorted(len(test) for _, test in like)
    assert sizes == [6, 7, 8, 9]
    assert (like.kind, like.gap) == ("shuffled", 0)
    assert like.check().nearest == 1


def test_sessions_are_of_the_same_subject():
    sessions, subjects = np.tile(["1", "2", "2"], 10), np.repeat(["s", "t"], 15)
    split = splits.cross_session(sessions, subjects)
    assert split.names == ("s/1", "s/2", "t/1", "t/2")
    for name, (train, test) in zip(split.names, split, strict=True):
        subject, session = name.split("/")
        assert set(subjects[test]) == set(subjects[train]) == {subject}
        assert set(sessions[test]) == {session}
        assert session not in sessions[train]
    with pytest.raises(SplitError, match="one session only") as caught:
        splits.cross_session(["1", "2", "1"], ["s", "s", "t"])
    assert "found:    t" in str(caught.value)


def test_subjects_are_left_out_whole():
    for name, (train, test) in zip("badc", splits.cross_subject(STORIES), strict=True):
        assert set(STORIES[test]) == {name}
        assert name not in STORIES[train]


def pereira(n_passages, sizes):
    """Fold label of every sentence: 24 categories × passages, a fold per passage number and half of the categories."""
    labels, passage = [], 0
    for category in range(24):
        for number in range(n_passages):
            labels += [f"{number}-{category // 12}"] * sizes[passage]
            passage += 1
    return np.array(labels)


EXP1 = pereira(4, [4] * 96)
EXP2 = pereira(3, [4] * 27 + [3] * 45)
FEDORENKO = np.repeat(np.arange(52), 8)
BLANK = np.repeat(np.arange(8), [165, 165, 165, 165, 165, 164, 164, 164])


@pytest.mark.parametrize(
    ("labels", "n_folds", "n_rows", "n_outer"),
    [(EXP1, None, 384, 8), (EXP2, None, 243, 6), (FEDORENKO, 13, 416, 13), (BLANK, None, 1317, 8)],
    ids=["EXP1", "EXP2", "Fedorenko", "Blank"],
)
def test_the_folds_of_the_seed(labels, n_folds, n_rows, n_outer):
    """Seed 001, A.3: 8/7, 6/5, 13/12 and 8/7 outer/inner folds, whole passages, sentences or stories held out."""
    split = splits.grouped(labels, n_folds)
    assert (split.n_rows, len(split)) == (n_rows, n_outer)
    split.check()
    for fold, (train, test) in enumerate(split):
        assert not set(labels[train]) & set(labels[test])
        assert len(list(split.inner(fold))) == n_outer - 1
    if n_rows in (384, 416):
        assert {len(test) for _, test in split} == {n_rows // n_outer}


def test_a_split_that_is_wrong_does_not_prove_itself(monkeypatch):
    good = splits.contiguous(12, 3)
    wrong = {
        "in training and test": lambda self, fold: (np.arange(12), np.arange(4)),
        "within the gap": lambda self, fold: (np.array([4]), np.arange(4)),
        "no training row": lambda self, fold: (np.array([], dtype=int), np.arange(4)),
        "exactly once": lambda self, fold: (np.array([8]), np.arange(4)),
    }
    for text, rows in wrong.items():
        split = replace(good, gap=2)
        monkeypatch.setattr(splits.Split, "rows", rows)
        with pytest.raises(SplitError, match=text):
            split.check()
    labelled = replace(good, within=np.arange(12))
    with pytest.raises(SplitError, match="another label"):
        labelled.check()
    monkeypatch.undo()
    with pytest.raises(SplitError, match=r"no training row[\s\S]*smaller gap"):
        splits.contiguous(6, 2, gap=5).check()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: splits.contiguous(5, 6), "cannot split 5 rows into 6 folds"),
        (lambda: splits.contiguous(5, 1), "at least 2 folds"),
        (lambda: splits.contiguous(5, 2, gap=-1), "negative gap"),
        (lambda: splits.grouped(["a", "a"]), "into 1 folds"),
        (lambda: splits.grouped(["a", "b"], 3), "cannot split 2 groups"),
        (lambda: splits.grouped([["a", "b"]]), "wrong shape"),
        (lambda: splits.grouped(None), "wrong shape"),
        (lambda: splits.grouped(["a", None, "b"]), r"1 rows without a label[\s\S]*rows \[1\]"),
        (lambda: splits.cross_subject([1.0, 2.0, np.nan]), "1 rows without a label"),
        (lambda: splits.grouped(["a", "a", "b", np.nan]), r"1 rows without a label[\s\S]*\[3\]"),
        (lambda: splits.contiguous(30, 5, gap=1.5), r"gap is not a whole number[\s\S]*1\.5"),
        (lambda: splits.contiguous(30, 4.0), "number of folds is not a whole number"),
        (lambda: splits.contiguous(X, 4), r"number of rows is not[\s\S]*shape \(30, 1\)"),
        (lambda: splits.grouped(STORIES, 2.0), "number of folds is not a whole number"),
        (lambda: splits.leave_one_out(1), "cannot split"),
        (lambda: splits.shuffled(8), "no number of folds"),
        (lambda: splits.cross_session(["1", "2"], ["s"]), "another length"),
        (lambda: splits.balanced(["1", "2", "3"], ["s", "t"]), "another length"),
        (lambda: splits.balanced(["1", "2"], ["s", "s"], parts=2), "cannot split 1 categories"),
        (lambda: splits.balanced(["1", "2"], ["s", "t"], parts=0), "into 0 folds"),
        (lambda: splits.balanced(["1", "2"], ["s", None]), "1 rows without a label"),
        (
            lambda: splits.balanced(["1", "2", "1"], ["s", "t", "t"]),
            r"more than one category[\s\S]*group '1' has several",
        ),
        (
            lambda: splits.balanced(["1", "2", "3", "4"], ["s", "s", "s", "t"]),
            r"a fold without rows[\s\S]*no group for fold 3 of 5[\s\S]*as many groups",
        ),
        (lambda: splits.balanced(["1", "2"], ["s", "t"], parts=1), "cannot split 2 groups into 1"),
    ],
)
def test_impossible_splits_are_errors(make, text):
    with pytest.raises(SplitError, match=text):
        make()


# --- passages, sentences and stories: folds of recordings of language -----------------------------------------------


def passages(n_per_category, sentences):
    """Passage, category and sentence of every row: 24 categories, whose passages are scattered over the experiment."""
    rng = np.random.default_rng(4)
    order = rng.permutation(np.repeat(np.arange(24), n_per_category))
    length = rng.permutation(sentences)
    passage = np.repeat(np.arange(len(order)), length)
    return passage, np.array([f"category {c}" for c in order])[passage]


@pytest.mark.parametrize(
    ("n_per_category", "sentences", "sizes"),
    [
        (4, [4] * 96, [48] * 8),  # 384 rows
        (3, [3] * 45 + [4] * 27, None),  # 243 rows
    ],
)
def test_balanced_folds_of_passages(n_per_category, sentences, sizes):
    passage, category = passages(n_per_category, sentences)
    split = splits.balanced(passage, category)
    assert split.n_rows == sum(sentences)
    assert len(split) == 2 * n_per_category
    assert_disjoint(split)
    if sizes is not None:
        assert np.bincount(split.fold).tolist() == sizes
    halves = [sorted({*category})[:12], sorted({*category})[12:]]
    seen = {name: [] for name in sorted({*category})}
    for fold, (train, test) in enumerate(split):
        assert not {*passage[train]} & {*passage[test]}
        own = [category[passage == p][0] for p in dict.fromkeys(passage[test])]
        assert sorted(own) == halves[fold % 2]  # every category of a half once
        for name in own:
            seen[name].append(passage[test][category[test] == name][0])
        inner = list(split.inner(fold))
        assert len(inner) == 2 * n_per_category - 1
        validated = np.concatenate([rows for _, rows in inner])
        np.testing.assert_array_equal(np.sort(validated), train)
        for inner_train, rows in inner:
            assert not {*passage[inner_train]} & {*passage[rows], *passage[test]}
    # Passages of a category are tested in the order in which they appear.
    assert all(own == sorted(own) and len({*own}) == n_per_category for own in seen.values())


def test_balanced_folds_for_the_engine_are_the_same_rows():
    passage, category = passages(4, [4] * 96)
    split = splits.balanced(passage, category)
    order, folds = split.blocks()
    assert list(folds.test_sizes()) == [48] * 8
    for fold, (train, test) in enumerate(split):
        np.testing.assert_array_equal(order[folds.rows(fold)], test)
        np.testing.assert_array_equal(np.sort(order[folds.train_rows(fold)]), train)


def test_categories_with_fewer_groups_are_missing_from_the_last_folds():
    """Category y has one passage fewer; x and y are one part."""
    split = splits.balanced(list("abcde"), ["x", "x", "y", "z", "z"], parts=2)
    assert split.fold.tolist() == [0, 2, 0, 1, 3]
    assert splits.balanced(list("abcd"), ["x", "y", "x", "y"], parts=1).fold.tolist() == [
        0,
        0,
        1,
        1,
    ]


@pytest.mark.parametrize(
    ("lengths", "n_folds", "sizes"),
    [
        ([8] * 52, 13, [32] * 13),  # 416 words: sentences
        ([190, 120, 201, 160, 155, 170, 181, 140], 8, None),  # 1,317 TRs: stories
    ],
)
def test_grouped_folds_of_sentences_and_stories(lengths, n_folds, sizes):
    group = np.repeat([f"group {i}" for i in range(len(lengths))], lengths)
    split = splits.grouped(group, n_folds)
    assert split.n_rows == sum(lengths)
    assert len(split) == n_folds
    assert np.bincount(split.fold).tolist() == (sizes or lengths)
    assert_disjoint(split)
    for fold, (train, test) in enumerate(split):
        assert not {*group[train]} & {*group[test]}
        assert len({*group[test]}) == len(lengths) // n_folds
        inner = list(split.inner(fold))
        assert len(inner) == n_folds - 1
        np.testing.assert_array_equal(np.sort(np.concatenate([v for _, v in inner])), train)
        for inner_train, rows in inner:
            assert not {*group[inner_train]} & {*group[rows], *group[test]}
            assert len({*group[rows]}) == len(lengths) // n_folds
    np.testing.assert_array_equal(split.folds.test_sizes(), sizes or lengths)


def test_folds_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        splits.contiguous(8, 2).fold[0] = 1


def test_the_display_is_short():
    assert repr(splits.contiguous(3000, 5, gap=2)) == ("Split(contiguous: 5 folds of 3000 rows, gap 2)")
    assert repr(splits.shuffled(9, 3)).endswith("gap 0, diagnostic)")


def test_equal_splits_are_equal():
    for one, same_one in zip(EVERY, [replace(split) for split in EVERY], strict=True):
        assert one == same_one
        assert hash(one) == hash(same_one)
    assert len(set(EVERY)) == len(EVERY)
    assert splits.contiguous(30, 4) != splits.contiguous(30, 4, gap=1)
    assert splits.contiguous(30, 4) != "contiguous"
