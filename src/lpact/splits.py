"""Training and test rows: which stimuli a model is fitted on, and which it is scored on.

Neighbouring rows of a recording are similar, so a test row between training rows is partly known already. Splits
therefore hold out contiguous rows (`contiguous`), whole passages, stories or runs (`grouped`), sessions or subjects,
with a gap around them where rows have an order. `shuffled` shows how much that matters.

A split iterates over (train rows, test rows), as scikit-learn's do, and can be given to scikit-learn as ``cv``.

>>> from lpact import splits
>>> split = splits.contiguous(10, 5, gap=1)
>>> for train, test in split:
...     print(train, test)
[3 4 5 6 7 8 9] [0 1]
[0 5 6 7 8 9] [2 3]
[0 1 2 7 8 9] [4 5]
[0 1 2 3 4 9] [6 7]
[0 1 2 3 4 5 6] [8 9]
>>> split.check().nearest
2
>>> splits.shuffled(10, 5, seed=0).diagnostic
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
import numpy.typing as npt

from lpact.errors import SplitError
from lpact.math.splits import BlockedFolds, contiguous_folds
from lpact.math.types import BoolArray, IntArray

__all__ = [
    "Proof",
    "Split",
    "alternating_halves",
    "balanced",
    "contiguous",
    "cross_session",
    "cross_subject",
    "grouped",
    "leave_one_out",
    "shuffled",
]


@dataclass(frozen=True)
class Proof:
    """What `Split.check` found, row by row.

    Attributes
    ----------
    n_folds, n_rows
        Size of the split; every row is tested exactly once.
    smallest_train, smallest_test
        Rows of the smallest training and test sets.
    nearest
        Smallest distance in rows between a training row and a test row of the same fold: 1 for neighbours.
    """

    n_folds: int
    n_rows: int
    smallest_train: int
    smallest_test: int
    nearest: int


@dataclass(frozen=True, eq=False)
class Split:
    """A partition of rows into test sets, each with its training rows.

    The training rows of a fold are those of all other folds, further than ``gap`` rows from every test row and, where
    ``within`` is given, with the same label as the test rows.

    Attributes
    ----------
    kind
        Name of the function that made it.
    fold
        [n] fold that tests each row, 0 … n_folds − 1.
    names
        One name per fold.
    gap
        Rows left out of training on either side of a test row.
    within
        [n] label that training rows must share with the test rows, such as the subject in `cross_session`.
    diagnostic
        Whether scores are optimistic on purpose: training rows lie between test rows.
    """

    kind: str
    fold: IntArray
    names: tuple[str, ...]
    gap: int = 0
    within: IntArray | None = None
    diagnostic: bool = False

    def __post_init__(self) -> None:
        _check_whole(self.kind, "the gap", self.gap)
        if self.gap < 0:
            raise _error(self.kind, "negative gap", self.gap, "0 or more rows")
        for value in (self.fold, self.within):
            if value is not None:
                value.flags.writeable = False

    @classmethod
    def of_blocks(cls, folds: BlockedFolds) -> Split:
        """The contiguous split whose `blocks` are these."""
        fold = np.repeat(np.arange(folds.n_blocks), folds.test_sizes())
        return cls("contiguous", fold, _numbers(folds.n_blocks), folds.gap)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.fold)

    def __repr__(self) -> str:
        diagnostic = ", diagnostic" if self.diagnostic else ""
        return f"Split({self.kind}: {len(self)} folds of {self.n_rows} rows, gap {self.gap}{diagnostic})"

    def _key(self) -> tuple[object, ...]:
        within = None if self.within is None else self.within.tobytes()
        return self.kind, self.names, self.gap, self.diagnostic, self.fold.tobytes(), within

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Split) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[IntArray, IntArray]]:
        return (self.rows(fold) for fold in range(len(self)))

    def rows(self, fold: int) -> tuple[IntArray, IntArray]:
        """Train rows and test rows of one fold, ascending."""
        test = np.flatnonzero(self.fold == fold)
        kept = self._far_from(test)
        if self.within is not None:
            kept &= self.within == self.within[test[0]]
        return np.flatnonzero(kept), test

    def inner(self, fold: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Train and validation rows within the training rows of ``fold``, with every other fold as validation in turn.

        Validation rows keep the gap to the test rows, inner training rows to both. A fold that has fewer than half of
        its rows left is not used, as in the ridge engine.
        """
        train, _ = self.rows(fold)
        outer = np.zeros(self.n_rows, dtype=bool)
        outer[train] = True
        for other in range(len(self)):
            rows = np.flatnonzero(self.fold == other)
            validation = rows[outer[rows]]
            if other != fold and 2 * validation.size >= rows.size:
                yield np.flatnonzero(outer & self._far_from(rows)), validation

    def _far_from(self, rows: IntArray) -> BoolArray:
        """Rows further than the gap from all of these, [n]."""
        far = np.ones(self.n_rows, dtype=bool)
        far[rows] = False
        # Only the ends of a stretch of test rows have neighbours outside of it.
        ends = np.flatnonzero(np.diff(far, prepend=True, append=True))
        for place in ends.tolist() if self.gap else ():
            far[max(0, place - self.gap) : place + self.gap] = False
        return far

    def check(self) -> Proof:
        """Prove the split: every row is tested once, and no training row is tested or within the gap of a test row.

        Reads the rows themselves. Raises `lpact.errors.SplitError` where the proof fails or a fold has no training row.
        """
        tested = np.zeros(self.n_rows, dtype=np.int64)
        n_train, n_test, distances = [], [], []
        for name, (train, test) in zip(self.names, self, strict=True):
            where = f"{self.kind} split, fold '{name}'"
            if not train.size or not test.size:
                side = "training" if not train.size else "test"
                got = f"{train.size} training and {test.size} test rows, gap {self.gap}"
                remedy = "use fewer folds or a smaller gap"
                raise _error(where, f"no {side} row is left", got, "at least one of each", remedy)
            if np.intersect1d(train, test).size:
                raise _error(where, "a row is in training and test", np.intersect1d(train, test))
            place = np.searchsorted(test, train)
            before = np.abs(train - test[np.maximum(place - 1, 0)])
            after = np.abs(train - test[np.minimum(place, test.size - 1)])
            distance = int(np.minimum(before, after).min())
            if distance <= self.gap:
                expected = f"more than {self.gap} rows apart"
                raise _error(where, "training rows within the gap", distance, expected)
            if self.within is not None and len({*self.within[train], *self.within[test]}) > 1:
                raise _error(where, "training rows with another label than the test rows", name)
            np.add.at(tested, test, 1)
            n_train.append(train.size)
            n_test.append(test.size)
            distances.append(distance)
        if (tested != 1).any():
            rows = np.flatnonzero(tested != 1)
            raise _error(self.kind, "rows are not tested exactly once", rows, "one test per row")
        return Proof(len(self), self.n_rows, min(n_train), min(n_test), min(distances))

    @property
    def contiguous(self) -> bool:
        """Whether folds are contiguous stretches of rows, in their order."""
        return bool((np.diff(self.fold) >= 0).all())

    @property
    def folds(self) -> BlockedFolds:
        """Contiguous folds as `lpact.math.ridge` takes them; scattered rows are an error."""
        if not self.contiguous:
            what = f"the folds of this {self.kind} split are not contiguous"
            raise _error("Split.folds", what, expected="all rows of a fold next to each other")
        return self.blocks()[1]

    def blocks(self) -> tuple[IntArray, BlockedFolds]:
        """Return a row order [n] and the folds of rows in that order, as `lpact.math.ridge` takes them.

        Rows are sorted by fold, which changes nothing for a readout that takes rows in any order. A gap is about
        neighbours, so it needs folds that are already contiguous.
        """
        if self.within is not None or (self.gap and not self.contiguous):
            cause = "training rows that differ by label" if self.within is not None else "a gap"
            what = f"the ridge engine cannot take a {self.kind} split with {cause}"
            expected = "contiguous folds, or any partition without gap or labels"
            remedy = "fit and score fold by fold instead"
            raise _error("Split.blocks", what, expected=expected, remedy=remedy)
        order = np.argsort(self.fold, kind="stable")
        starts = np.searchsorted(self.fold[order], np.arange(len(self)))
        return order, BlockedFolds(tuple(int(s) for s in starts), self.n_rows, self.gap)


def contiguous(n_rows: int, n_folds: int, *, gap: int = 0) -> Split:
    """Hold out blocks of neighbouring rows whose sizes differ by at most one.

    Rows are in the order of the recording; ``gap`` rows are left out of training on either side of the test rows.
    """
    _check_folds("contiguous", n_folds, n_rows)
    sizes = contiguous_folds(n_rows, n_folds).test_sizes()
    return Split("contiguous", np.repeat(np.arange(n_folds), sizes), _numbers(n_folds), gap)


def grouped(groups: npt.ArrayLike, n_folds: int | None = None, *, gap: int = 0) -> Split:
    """Hold out whole groups: passages, sentences, stories or runs.

    Parameters
    ----------
    groups
        [n] label of every row.
    n_folds
        Folds to which groups are assigned, in the order in which they appear, as evenly as their number allows. By
        default every group is a fold.
    gap
        Rows left out of training on either side of the test rows, where rows are in the order of the recording.
    """
    number, names = _labels(groups, "groups")
    if n_folds is None or n_folds == len(names):
        return Split("grouped", number, names, gap)
    _check_folds("grouped", n_folds, len(names), "groups")
    sizes = contiguous_folds(len(names), n_folds).test_sizes()
    return Split("grouped", np.repeat(np.arange(n_folds), sizes)[number], _numbers(n_folds), gap)


def balanced(groups: npt.ArrayLike, categories: npt.ArrayLike, *, parts: int = 2) -> Split:
    """Hold out one group of every category of a share of the categories.

    Categories, sorted by name, are cut into ``parts``. Fold ``k · parts + j`` tests the k-th group of every category of
    part j, in the order in which the groups appear. With passages as groups and their 24 topics as categories, these
    are the usual folds for Pereira et al. (2018): 8 for 4 passages per topic, 6 for 3.

    Parameters
    ----------
    groups, categories
        [n] label of every row. A group has one category; a category with fewer groups than others is missing from the
        last folds.
    parts
        Shares of the categories that are tested separately.
    """
    group, names = _labels(groups, "groups")
    category, topics = _labels(categories, "categories", fewest=1)
    _check_folds("balanced", parts, len(topics), "categories", fewest=1)
    if len(category) != len(group):
        raise _error("balanced", "labels of another length", len(category), len(group))
    owner = np.full(len(names), -1)
    owner[group] = category
    if (mixed := owner[group] != category).any():
        got = f"group '{names[group[np.argmax(mixed)]]}' has several"
        raise _error("balanced", "a group has more than one category", got, "one per group")
    part = np.empty(len(topics), dtype=np.int64)
    part[np.argsort(topics)] = np.arange(len(topics)) * parts // len(topics)
    seen = [int((owner[:g] == owner[g]).sum()) for g in range(len(names))]
    fold = np.array(seen) * parts + part[owner]
    n_folds = int(fold.max()) + 1
    if (empty := np.setdiff1d(np.arange(n_folds), fold)).size:
        got = f"no group for fold {empty[0]} of {n_folds}"
        raise _error("balanced", "a fold without rows", got, "as many groups in every category")
    _check_folds("balanced", n_folds, len(names), "groups")
    return Split("balanced", fold[group], _numbers(n_folds))


def leave_one_out(n_rows: int, *, gap: int = 0) -> Split:
    """Hold out one row at a time, with ``gap`` rows left out of training on either side."""
    _check_folds("leave_one_out", n_rows, n_rows)
    return Split("leave_one_out", np.arange(n_rows), _numbers(n_rows), gap)


def alternating_halves(n_rows: int, n_blocks: int) -> tuple[IntArray, IntArray]:
    """Rows of two halves: ``n_blocks`` contiguous blocks, assigned alternately.

    Neighbouring rows stay together, so that autocorrelation does not link the halves row by row; both still share slow
    drift over the whole recording.
    """
    blocks = [test for _, test in contiguous(n_rows, n_blocks)]
    return np.concatenate(blocks[0::2]), np.concatenate(blocks[1::2])


def shuffled(rows: int | Split, n_folds: int | None = None, *, seed: int = 0) -> Split:
    """Hold out rows at random: a diagnostic of what neighbouring rows leak, never a score to report.

    Parameters
    ----------
    rows
        Number of rows, or a split whose fold sizes are kept.
    n_folds
        Number of folds, where ``rows`` is a number.
    seed
        The same seed gives the same folds on every machine.
    """
    if isinstance(rows, Split):
        model = replace(rows, gap=0, within=None)
    elif n_folds is None:
        raise _error("shuffled", "no number of folds", n_folds, "n_folds, or a split to shuffle")
    else:
        model = contiguous(rows, n_folds)
    fold = np.random.Generator(np.random.PCG64(seed)).permutation(model.fold)
    return replace(model, kind="shuffled", fold=fold, diagnostic=True)


def cross_session(sessions: npt.ArrayLike, subjects: npt.ArrayLike | None = None) -> Split:
    """Hold out every session; train on the other sessions, of the same subject where ``subjects`` is given.

    Parameters
    ----------
    sessions, subjects
        [n] labels of every row. A subject with one session cannot be in such a split.
    """
    session, names = _labels(sessions, "sessions")
    if subjects is None:
        return Split("cross_session", session, names)
    subject, people = _labels(subjects, "subjects", fewest=1)
    if len(subject) != len(session):
        raise _error("cross_session", "labels of another length", len(subject), len(session))
    pairs, fold = np.unique(np.column_stack([subject, session]), axis=0, return_inverse=True)
    alone = [people[s] for s in np.unique(subject) if (pairs[:, 0] == s).sum() < 2]
    if alone:
        what, expected = "a subject has one session only", "at least two sessions per subject"
        remedy = "leave these subjects out, or use cross_subject"
        raise _error("cross_session", what, ", ".join(alone), expected, remedy)
    folds = tuple(f"{people[s]}/{names[t]}" for s, t in pairs)
    return Split("cross_session", fold.ravel(), folds, within=subject)


def cross_subject(subjects: npt.ArrayLike) -> Split:
    """Hold out every subject; train on all others. ``subjects`` is [n], the label of every row."""
    return Split("cross_subject", *_labels(subjects, "subjects"))


def _labels(labels: npt.ArrayLike, name: str, fewest: int = 2) -> tuple[IntArray, tuple[str, ...]]:
    """Labels as numbers in the order in which they appear, and their names."""
    values = np.asarray(labels)
    if values.ndim != 1:
        raise _error(name, "labels in a wrong shape", values.shape, "one label per row")
    # NumPy makes the text "nan" of a NaN among texts.
    given = np.asarray(labels, dtype=object).tolist()
    missing = [row for row, value in enumerate(given) if value is None or value != value]
    if missing:
        what = f"{len(missing)} rows without a label"
        raise _error(name, what, f"rows {missing[:5]}", "one label per row")
    found, first, number = np.unique(values, return_index=True, return_inverse=True)
    _check_folds(name, len(found), len(values), fewest=fewest)
    order = np.argsort(first)
    return np.argsort(order)[number], tuple(str(found[i]) for i in order)


def _numbers(n: int) -> tuple[str, ...]:
    return tuple(str(i) for i in range(n))


def _error(where: str, what: str, got: object = None, expected: object = None, remedy: str | None = None) -> SplitError:
    shown = got.tolist()[:5] if isinstance(got, np.ndarray) else got
    return SplitError(what, where=where, got=shown, expected=expected, remedy=remedy)


def _check_folds(where: str, n_folds: int, n: int, noun: str = "rows", fewest: int = 2) -> None:
    _check_whole(where, f"the number of {noun}", n)
    _check_whole(where, "the number of folds", n_folds)
    if not fewest <= n_folds <= n:
        what, got = f"cannot split {n} {noun} into {n_folds} folds", f"{n} {noun}, {n_folds} folds"
        raise _error(where, what, got, f"at least 2 folds, and no more than {noun}")


def _check_whole(where: str, name: str, value: npt.ArrayLike) -> None:
    if not isinstance(value, Integral):
        got = f"an array of shape {np.shape(value)}" if np.ndim(value) else repr(value)
        raise _error(where, f"{name} is not a whole number", got, "a whole number such as 5")
