"""Rows of levels 1 and 4 that several figures start from, and what conditions and modes are called in them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lpact.report.figure import Material
from lpact.report.figures._layers import clipped
from lpact.tables import RECORDING_KEY
from lpact.tables.ceilings import NORMALIZED_PREDICTIVE
from lpact.tables.predictive import CONTROL_DELTAS

LAYER = ("dataset", "model", "layer")
SUBJECT_RUN = ("subject", "session", "run")

MODES: dict[str, str] = {
    "subject_to_subject": "subject to subject",
    "session_to_session": "session to session",
    "run_to_run": "run to run",
    "split_half": "split half",
}
"""Reliability modes in words, from the strictest."""

METRICS: dict[str, str] = {"pearson": "Pearson r", "spearman": "Spearman ρ", "r2": "R²"}
"""Metrics of level 1, as axes call them."""


def metric_name(metric: str) -> str:
    """A metric in words."""
    return METRICS.get(metric, metric)


def primary_deltas(material: Material) -> pl.DataFrame:
    """Level 1 at the primary metric, sorted by key: one row a subject-run, model and layer."""
    metric = material.config.readout.primary_metric
    table = material.table(CONTROL_DELTAS.name)
    return table.filter(pl.col("metric") == metric).sort([*LAYER, *SUBJECT_RUN])


def strictest(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Of the rows of a group that have a reliability, those of the strictest mode; ``mode`` must be a column."""
    order = {mode: place for place, mode in enumerate(MODES)}
    ranked = rows.drop_nulls("reliability").with_columns(
        _rank=pl.col("mode").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    )
    best = pl.col("_rank") == pl.col("_rank").min().over(list(by))
    return ranked.filter(best).drop("_rank")


def response_reliability(material: Material) -> pl.DataFrame:
    """Response reliability of each recording by its strictest valid mode."""
    key = list(RECORDING_KEY)
    if not material.has(NORMALIZED_PREDICTIVE.name):
        kinds = dict.fromkeys([*key, "mode"], pl.String) | {"reliability": pl.Float64}
        return pl.DataFrame(schema=kinds)
    table = material.table(NORMALIZED_PREDICTIVE.name)
    own = table.select([*key, "mode", "reliability"]).unique(maintain_order=True)
    return strictest(own, key).sort(key)


def mode_names(modes: Sequence[str]) -> str:
    """Modes in words, strictest first."""
    order = list(MODES)
    known = sorted(set(modes), key=lambda m: (order.index(m) if m in order else len(order), m))
    return ", ".join(MODES.get(mode, mode) for mode in known)


def number(value: float | None, digits: int = 3) -> str:
    """A number for reading, with a true minus sign; a missing one in words."""
    if value is None or value != value:
        return "not computed"
    text = f"{value:.{digits}f}"
    return ("0." + "0" * digits if float(text) == 0.0 else text).replace("-", "−")


def plural(n: int, noun: str, many: str = "") -> str:
    """A count with its noun; ``many`` where the plural is not the noun with an s."""
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"


def largest(numbers: pl.Series) -> float:
    """The largest of some numbers, 0 where there is none."""
    return max((float(own) for own in numbers.drop_nulls()), default=0.0)


def n_subject_runs(rows: pl.DataFrame) -> str:
    """How many subject-runs the panels of a dataset rest on (column ``n_all``), in words."""
    counts = sorted({int(n) for n in rows["n_all"]})
    if len(counts) == 1:
        return plural(counts[0], "subject-run")
    return f"{counts[0]} to {counts[-1]} subject-runs"


def layer_name(model: str, layer: int, room: float, *, pixels: float = 6.2) -> str:
    """Model and layer in ``room`` pixels: a long model name is clipped, so that the layer's number stays."""
    end = f" · layer {layer}"
    return clipped(model, max(4, int(room / pixels) - len(end))) + end
