"""Finite impulse responses: the same features at several delays, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from lpact.math.surrogates import segment_slices
from lpact.math.types import BoolArray, FloatArray, IntArray


def stack_delays(
    x: FloatArray, delays: Sequence[int], segments: IntArray | None = None, *, fill: float = 0.0
) -> tuple[FloatArray, BoolArray]:
    """Return features at every delay, and which rows have all of them.

    Block j of the result holds x at delay d = ``delays[j]``: row i is x[i − d], so that a response is explained by what
    came d rows before it (after it, where d is negative). A readout of these columns has one weight for every feature
    and delay, the impulse response; choosing a lag on the responses lets only one of them differ from zero.

    Parameters
    ----------
    x
        [n, p].
    delays
        Delays in rows, all different.
    segments
        [n]: stories or runs, contiguous. Nothing is carried from one into another.
    fill
        Value where the row that a delay asks for is not in the same segment.

    Returns
    -------
    stacked
        [n, p · len(delays)].
    complete
        [n]: rows in which nothing was filled in. Whoever does not want the others takes these.
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"x must be [n, p], got shape {x.shape}")
    if len(delays) == 0 or len(set(delays)) != len(delays):
        raise ValueError(f"delays must be given, each once, got {tuple(delays)}")
    if not all(isinstance(delay, Integral) for delay in delays):
        raise ValueError(f"delays must be whole numbers of rows, got {tuple(delays)}")
    n, p = x.shape
    ids = np.zeros(n, dtype=np.int64) if segments is None else np.asarray(segments)
    if len(ids) != n:
        raise ValueError(f"needs one segment id a row, got {len(ids)} for {n} rows")
    stacked = np.full((n, p * len(delays)), float(fill))
    complete = np.ones(n, dtype=np.bool_)
    place = np.arange(n)
    for rows in segment_slices(ids) if n else []:
        for j, delay in enumerate(delays):
            source = place[rows] - delay
            inside = (source >= rows.start) & (source < rows.stop)
            stacked[place[rows][inside], j * p : (j + 1) * p] = x[source[inside]]
            complete[place[rows][~inside]] = False
    return stacked, complete
