"""Events that are timed twice: by ``onset`` in seconds, and by ``sample``, the number of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lpact.math.types import FloatArray

NUMBERING_SAMPLES = 2.0
"""Samples are counted from 0 or from 1, and a time between two of them has been rounded to one."""

ROUNDING_S = 0.0005
"""Onsets are written in milliseconds, or finer."""


@dataclass(frozen=True)
class SampleMismatch:
    """Rows whose two times differ; ``apart`` is ``onset · rate − sample`` of every row, NaN where one is missing."""

    rows: tuple[int, ...]
    within: float
    apart: FloatArray
    found: str
    expected: str


def sample_mismatch(
    onset_s: npt.ArrayLike, samples: Sequence[float], rate_hz: float, tolerance: float | None = None
) -> SampleMismatch | None:
    """Compare the two times of events, one row per line; None where they agree.

    They agree where ``|onset · rate_hz − sample| ≤ tolerance``; unless it is given, that is `NUMBERING_SAMPLES` and
    the samples in `ROUNDING_S`.
    """
    within = NUMBERING_SAMPLES + ROUNDING_S * rate_hz if tolerance is None else tolerance
    onsets = np.asarray(onset_s, dtype=np.float64)
    apart = onsets * rate_hz - np.asarray(samples, dtype=np.float64)
    beyond = np.abs(apart) > within + 1e-6
    rows = tuple(int(row) for row in np.flatnonzero(beyond))
    if not rows:
        return None
    first = rows[0]
    return SampleMismatch(
        rows,
        within,
        apart,
        f"{len(rows)} of {onsets.size} lines, by up to {np.nanmax(np.abs(apart)):.0f} samples; first: line "
        f"{first + 2}, onset {onsets[first]} s and sample {samples[first]:.15g}",
        f"onset · {rate_hz:g} Hz = sample, within {within:.3g}",
    )
