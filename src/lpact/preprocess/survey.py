"""One pass over a recording that finds the channels which can serve as a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpact.datasets.series import StreamedSeries, UnitBlocks
from lpact.math.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Survey:
    """What is known of every channel once all were read.

    ``varies`` and ``constant`` [n_units]: its finite values are not all the same, or are; neither, if there are none.
    ``complete`` [n_units]: it is finite at every sample; where gaps are allowed, at every sample at which any channel
    is. ``total`` [n_samples] is the sum over the sound channels, NaN in gaps that all channels share; None unless it
    was asked for.
    """

    varies: BoolArray
    constant: BoolArray
    complete: BoolArray
    total: FloatArray | None

    @property
    def sound(self) -> BoolArray:
        """Channels that vary and are complete, [n_units]: they can be a reference."""
        return self.varies & self.complete


def survey(values: FloatArray | StreamedSeries, *, gaps_allowed: bool, add_up: bool) -> Survey:
    """Read all channels, a few at a time; a second time only where all of them share a gap and a sum is wanted."""
    n_samples, n_units = values.shape
    varies, n_finite = np.zeros(n_units, np.bool_), np.zeros(n_units, np.int64)
    covered = np.zeros(n_samples, np.bool_)
    total = np.zeros(n_samples) if add_up else None
    for indices, block in UnitBlocks(values):
        for index, column in zip(indices, block.T, strict=True):
            finite = np.isfinite(column)
            covered |= finite
            n_finite[index] = finite.sum()
            known = column if n_finite[index] == n_samples else column[finite]
            varies[index] = known.size > 0 and known.min() < known.max()
            if total is not None and varies[index] and n_finite[index] == n_samples:
                total += column
    n_covered = int(covered.sum()) if gaps_allowed else n_samples
    found = Survey(varies, ~varies & (n_finite > 0), n_finite == n_covered, total)
    if total is not None and n_covered < n_samples:
        total[:] = np.where(covered, 0.0, np.nan)
        for indices, block in UnitBlocks(values):
            for index, column in zip(indices, block.T, strict=True):
                if found.sound[index]:
                    total[covered] += column[covered]
    return found
