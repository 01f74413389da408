"""The relational statistic of every subject-run, and its draws, read for all layers and tests at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.gates._frames import LAYER_KEY, SUBJECT_RUN_KEY, Layer
from lpact.analyses.lpact.gates.calibrated.frames import cells, layer_of, median_of_finite, typical
from lpact.analyses.lpact.gates.rows import OK
from lpact.math.types import FloatArray

_AT_ONCE = 2**20
"""Numbers that medians are taken of at once."""


@dataclass(frozen=True)
class RunDraws:
    """One test in one subject-run: medians over alignment × profile summaries.

    ``draws`` is [n_draws], NaN where a draw is undefined.
    """

    observed: float
    advantage: float
    draws: FloatArray


LayerDraws = dict[tuple[str, str], list[RunDraws]]
"""By test and rival: one entry per subject-run, in their order."""


def read_null_draws(nulls: pl.DataFrame) -> dict[Layer, LayerDraws]:
    """All tests of all layers, from the rows with a number."""
    found: dict[Layer, LayerDraws] = {}
    keys = [*LAYER_KEY, "test", "against", *SUBJECT_RUN_KEY]
    for (*layer, test, against, _, _, _), draws in summarise_runs(nulls.filter(OK), keys):
        tests = found.setdefault(layer_of(layer), {})
        tests.setdefault((str(test), str(against)), []).append(draws)
    return found


def summarise_runs(
    rows: pl.DataFrame, keys: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], RunDraws]]:
    """Medians over the rows of every group of ``keys``, in the order in which the groups appear."""
    groups = rows.group_by(keys, maintain_order=True).agg("observed", "advantage", "draws")
    drawn = cells(groups["draws"].explode()) if groups.height else []
    sizes = groups["observed"].list.len().to_list()
    starts = np.cumsum([0, *sizes]).tolist()
    parts = [drawn[start : start + size] for start, size in zip(starts, sizes, strict=False)]
    return zip(
        groups.select(keys).iter_rows(),
        map(
            RunDraws,
            _medians(cells(groups["observed"])),
            _medians(cells(groups["advantage"])),
            _typical_draws(parts),
        ),
        strict=True,
    )


def _medians(values: Sequence[FloatArray]) -> list[float]:
    """Median of every array; arrays of one length together."""
    out = np.empty(len(values))
    for length, places in _alike([len(v) for v in values]).items():
        table = np.concatenate([values[i] for i in places]).reshape(-1, length)
        out[places] = np.median(table, axis=1)
    return out.tolist()


def _typical_draws(parts: Sequence[Sequence[FloatArray]]) -> list[FloatArray]:
    """Draw by draw, the median over the rows of every part; parts of one shape together."""
    out: list[FloatArray] = [np.empty(0)] * len(parts)
    shapes = [(len(p), len(p[0]) if len({len(v) for v in p}) == 1 else -1) for p in parts]
    for (n_rows, n_draws), places in _alike(shapes).items():
        step = max(1, _AT_ONCE // max(1, n_rows * n_draws))
        for start in range(0, len(places), step):
            chosen = places[start : start + step]
            if n_draws < 0:
                for i in chosen:
                    out[i] = typical(parts[i])
                continue
            table = np.concatenate([v for i in chosen for v in parts[i]])
            medians = median_of_finite(table.reshape(len(chosen), n_rows, n_draws), 1)
            for i, values in zip(chosen, medians, strict=True):
                out[i] = values
    return out


def _alike(kinds: Sequence[Any]) -> dict[Any, list[int]]:
    """Places of equal entries."""
    found: dict[Any, list[int]] = {}
    for place, kind in enumerate(kinds):
        found.setdefault(kind, []).append(place)
    return found
