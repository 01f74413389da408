"""Numbers of the figure of ceilings: brain–brain reliability, and model scores relative to it."""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.common import LAYER, SUBJECT_RUN, strictest
from lpact.analyses.lpact.tables.ceilings import (
    BRAIN_CEILING,
    NORMALIZED_PREDICTIVE,
    NORMALIZED_SCORES,
)
from lpact.codes import Reason
from lpact.tables import RECORDING_KEY

RELATIONAL, PREDICTIVE = "relational patterns", "responses"
REAL, DELTA, TYPICAL = "real features", "real minus best control", "real, median summary"
NOISE_FREE = "noise-free model"
FRACTION, CONTRAST = "fraction_of_ceiling", "delta_fraction"
_OK = pl.col("reason") == Reason.OK.value
_DOTS = [*LAYER, *SUBJECT_RUN, "level", "quantity", "value"]


def reliability_rows(material: Material) -> pl.DataFrame:
    """One row a recording, mode and kind: the mean ``reliability`` over its ``n_summaries`` valid summaries.

    A row without any is not ``valid``, and ``reason`` is the most frequent one (ties: the first in the alphabet).
    """
    by = [*RECORDING_KEY, "mode", "kind"]
    table = material.table(BRAIN_CEILING.name).sort([*by, "alignment", "profile"])
    valid = pl.col("valid")
    return table.group_by(by, maintain_order=True).agg(
        reliability=pl.col("reliability").filter(valid).mean(),
        n_summaries=valid.sum().cast(pl.Int64),
        valid=valid.any(),
        alone=pl.col("alone").any(),
        reason=pl.when(valid.any())
        .then(pl.lit(Reason.OK.value))
        .otherwise(pl.col("reason").mode().sort().first()),
    )


def fraction_dots(material: Material) -> pl.DataFrame:
    """One row a subject-run, layer, level and quantity: its fraction of the ceiling.

    Relational fractions are means over the units and summaries of a subject-run, as gate T takes them. Only rows whose
    reliability reaches ``min_reliability`` enter: a division by a reliability near zero makes any fraction large.
    """
    parts = [
        _long(own.group_by([*LAYER, *SUBJECT_RUN], maintain_order=True).agg(_means()), level)
        for level, own in _bounded(material).items()
    ]
    empty = pl.DataFrame(
        schema={name: pl.Float64 if name == "value" else pl.String for name in _DOTS}
        | {"layer": pl.Int64}
    )
    return pl.concat([empty.select(_DOTS), *parts]).drop_nulls("value").sort(_DOTS[:-1])


def fraction_rows(material: Material) -> pl.DataFrame:
    """One row a layer, level and quantity: mean over subject-runs (``n``), or why there is none.

    `TYPICAL` is, as in gate T, the median over relational summaries of the mean over subject-runs. `NOISE_FREE` is the
    ratio to response reliability that a model of the shared response without noise could reach, mean over the
    subject-runs of the layer. Reliability r correlates two noisy recordings, such a model meets only one:

        score = √r, so score / r = 1 / √r
    """
    by = [*LAYER, "level", "quantity"]
    means = (
        fraction_dots(material)
        .group_by(by, maintain_order=True)
        .agg(value=pl.col("value").mean(), n=pl.len().cast(pl.Int64))
    )
    grids = [_grid(material, table, level) for table, level in _TABLES if material.has(table)]
    grid = pl.concat(grids).sort(by)
    rows = grid.join(
        pl.concat([means, *_typical(material), *_noise_free(material)]),
        on=by,
        how="left",
        maintain_order="left",
    )
    why = pl.when(pl.col("value").is_null()).then(pl.col("reason"))
    return rows.with_columns(n=pl.col("n").fill_null(0), reason=why.fill_null(Reason.OK.value))


_TABLES = ((NORMALIZED_SCORES.name, RELATIONAL), (NORMALIZED_PREDICTIVE.name, PREDICTIVE))


def _bounded(material: Material) -> dict[str, pl.DataFrame]:
    """Rows with both fractions, on a sufficient reliability, by the strictest valid mode."""
    out = {}
    enough = pl.col("reliability") >= LPactConfig.of(material.config).gates.min_reliability
    known = pl.col(FRACTION).is_not_null() & pl.col(CONTRAST).is_not_null()
    for name, level in _TABLES:
        if not material.has(name):
            continue
        rows = material.table(name).sort([*LAYER, *SUBJECT_RUN], maintain_order=True)
        if level == PREDICTIVE:
            rows = strictest(rows, [*LAYER, *SUBJECT_RUN])
        out[level] = rows.filter(_OK & enough & known)
    return out


def _means() -> list[pl.Expr]:
    return [pl.col(FRACTION).mean().alias(REAL), pl.col(CONTRAST).mean().alias(DELTA)]


def _long(wide: pl.DataFrame, level: str) -> pl.DataFrame:
    long = wide.unpivot([REAL, DELTA], index=[*LAYER, *SUBJECT_RUN], variable_name="quantity")
    return long.with_columns(level=pl.lit(level)).select(_DOTS)


def _typical(material: Material) -> list[pl.DataFrame]:
    rows = _bounded(material).get(RELATIONAL)
    if rows is None:
        return []
    summary = [*LAYER, "alignment", "profile"]
    within = rows.group_by([*summary, *SUBJECT_RUN], maintain_order=True).agg(
        pl.col(FRACTION).mean()
    )
    over = within.group_by(summary, maintain_order=True).agg(
        pl.col(FRACTION).mean(), n=pl.len().cast(pl.Int64)
    )
    return [
        over.group_by(LAYER, maintain_order=True).agg(
            level=pl.lit(RELATIONAL),
            quantity=pl.lit(TYPICAL),
            value=pl.col(FRACTION).median(),
            n=pl.col("n").max(),
        )
    ]


def _noise_free(material: Material) -> list[pl.DataFrame]:
    rows = _bounded(material).get(PREDICTIVE)
    if rows is None:
        return []
    ratio = 1 / pl.col("reliability").sqrt()
    return [
        rows.filter(pl.col("reliability") > 0)
        .group_by(LAYER, maintain_order=True)
        .agg(
            level=pl.lit(PREDICTIVE),
            quantity=pl.lit(NOISE_FREE),
            value=ratio.mean(),
            n=pl.len().cast(pl.Int64),
        )
    ]


def _grid(material: Material, table: str, level: str) -> pl.DataFrame:
    """Every layer with every quantity, and why there may be no number."""
    rows = material.table(table)
    not_ok = pl.col("reason").filter(~_OK)
    why = pl.coalesce(not_ok.mode().sort().first(), pl.lit("reliability_below_minimum"))
    reliable = (
        _OK & (pl.col("reliability") < LPactConfig.of(material.config).gates.min_reliability)
    ).any()
    layers = rows.group_by(LAYER).agg(
        reason=pl.when(reliable).then(pl.lit("reliability_below_minimum")).otherwise(why)
    )
    quantities = [REAL, DELTA, TYPICAL] if level == RELATIONAL else [REAL, DELTA, NOISE_FREE]
    kinds = pl.DataFrame({"level": [level] * len(quantities), "quantity": quantities})
    return layers.join(kinds, how="cross")
