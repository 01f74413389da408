"""Repetitions of one population, and the halves of every draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lpact.ceilings.reliability import chosen_halves, halves_factor, random_halves
from lpact.errors import InputError
from lpact.math.columns import mean_of_finite
from lpact.math.seeding import keyed_rng
from lpact.math.types import BoolArray, FloatArray, IntArray

Rows = IntArray | BoolArray | slice
Halves = Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]


@dataclass(frozen=True)
class Draws:
    """Which repetitions make the two halves of every draw: random ones, or those given.

    A draw orders the repetitions by the seed and its own number, so that two populations with as many repetitions have
    the same order, and noise that they share stays in the same half of both.
    """

    n: int
    seed: int
    halves: Halves | None = None

    def of(self, present: BoolArray, draw: int) -> tuple[BoolArray, BoolArray]:
        """Trials of both halves, as `random_halves` gives them."""
        if self.halves is None:
            return random_halves(present, keyed_rng(self.seed, "halves", draw))
        return chosen_halves(present, self.halves[draw])


class Trials:
    """Responses [n, r, units] of one population, or a model's features [n, p], which are without noise.

    Attributes
    ----------
    values
        [n, r, units]; features have one repetition.
    mean
        [n, units]: mean of the trials that are not missing; NaN where there is none.
    noise_free
        Whether they are features.
    """

    def __init__(self, responses: npt.ArrayLike, name: str, draws: Draws) -> None:
        values = np.asarray(responses, dtype=np.float64)
        if values.ndim not in (2, 3) or 0 in values.shape:
            what, got = f"the {name} is not an array of responses", f"shape {values.shape}"
            expected = "stimuli × repetitions × units, or stimuli × units"
            raise InputError(what, where="consistency", got=got, expected=expected)
        self.name, self.draws, self.noise_free = name, draws, values.ndim == 2
        if draws.halves is not None and not self.noise_free:
            highest = max(int(np.max(half)) for pair in draws.halves for half in pair)
            if highest >= values.shape[1]:
                what, got = (
                    f"the {name} has no repetition {highest}",
                    f"{values.shape[1]} repetitions",
                )
                raise InputError(what, where="consistency: halves", got=got)
        self.values = values[:, None, :] if self.noise_free else values
        present = np.isfinite(self.values)
        # Where no trial is missing, one mask is that of all stimuli and units.
        self._present = present[:1, :, :1] if present.all() else present
        self.mean = mean_of_finite(self.values, 1)

    def only(self, units: IntArray | BoolArray) -> Trials:
        """The same stimuli with some of the units."""
        values = self.values[:, :, units]
        return Trials(values[:, 0] if self.noise_free else values, self.name, self.draws)

    @cached_property
    def has_halves(self) -> BoolArray:
        """Which stimuli have a trial of every unit in both halves of every draw, [n, units]."""
        if self.noise_free:
            has = np.zeros(1, dtype=bool)
        elif self.draws.halves is None:
            has = self._present.sum(axis=1) >= 2
        else:
            pairs = [self.draws.of(self._present, draw) for draw in range(self.draws.n)]
            has = np.all([half.any(axis=1) for pair in pairs for half in pair], axis=0)
        return np.broadcast_to(has, self.mean.shape)

    def complete(self, rows: BoolArray, half_rows: BoolArray | None) -> BoolArray:
        """Units with a response to each of these stimuli, and with halves of each of those, [units]."""
        complete = np.isfinite(self.mean[rows]).all(axis=0)
        if half_rows is not None and not self.noise_free:
            complete &= self.has_halves[half_rows].all(axis=0)
        return np.asarray(complete)

    def halves(self, draw: int, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Trials of both halves of some stimuli [m, r', units], NaN where missing or in the other half."""
        halves = []
        for mask in self.draws.of(self._present, draw):
            used = mask.any(axis=(0, 2))
            halves.append(np.where(_at(mask, rows)[:, used], self.values[rows][:, used], np.nan))
        return halves[0], halves[1]

    def half_means(self, draw: int, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Means of both halves, [m, units] each; those of features are the features."""
        if self.noise_free:
            return self.mean[rows], self.mean[rows]
        first, second = self.halves(draw, rows)
        return mean_of_finite(first, 1), mean_of_finite(second, 1)

    def factor(self, draw: int, rows: BoolArray) -> FloatArray:
        """Number of all trials divided by that of a half, [units]."""
        pair = [_at(half, rows) for half in self.draws.of(self._present, draw)]
        factor, _ = halves_factor(pair, _at(self._present, rows))
        return np.broadcast_to(factor, self.mean.shape[1:])


def _at(mask: BoolArray, rows: Rows) -> BoolArray:
    """Rows of a mask that may be the same for all stimuli."""
    return mask if len(mask) == 1 else mask[rows]
