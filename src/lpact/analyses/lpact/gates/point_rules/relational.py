"""Gate R.

For each alignment × profile summary, over the unit rows of all subject-runs that have a contrast:

    summary passes ⇔ share of rows with (delta_rel > 0, reliable, same unit order) ≥ direction_fraction
                     and mean over subject-runs of the mean over units of delta_rel > 0
    R ⇔ share of summaries that pass > summary_majority
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import (
    LAYER_KEY,
    Layer,
    Row,
    attach,
    mean_over_subject_runs,
    most_frequent,
    rows_by_key,
)
from lpact.analyses.lpact.gates.criteria import (
    Criterion,
    CriterionName,
    GateEvidence,
    Relation,
    nothing_computed,
)
from lpact.analyses.lpact.gates.rows import OK, is_label
from lpact.analyses.lpact.gates.wording import count, number, percent
from lpact.codes import Gate, Reason, RowLabel

UNRELIABLE = "split_half_reliability"
WRONG_ORDER = "unit_order"
_SUMMARY = [*LAYER_KEY, "alignment", "profile"]
_TOO_FEW = pl.col("reason") == Reason.TOO_FEW_UNITS.value
_CAUSE = (
    pl.when(is_label("evidence", RowLabel.UNRELIABLE_BRAIN_PATTERN))
    .then(pl.lit(UNRELIABLE))
    .when(~pl.col("same_order"))
    .then(pl.lit(WRONG_ORDER))
    .otherwise(pl.col("best_control"))
)


def summarise_relational(
    labelled: pl.DataFrame, summary: pl.DataFrame, gates: GatesConfig
) -> dict[Layer, Row]:
    """Level 2, one row per layer: its summaries, how many pass, and what its failing rows are put down to.

    ``lacks_units`` says that nothing could be computed and that a subject-run had too few units. ``best_control``
    is the control that most often beats a unit row (or comes nearest, where none is beaten); ``raw_similarity`` the
    median over summaries of the mean real similarity (the largest would be a cosine, which is positive of itself).
    """
    layers = labelled.group_by(LAYER_KEY, maintain_order=True).agg(
        n_rows=pl.col("has_contrast").sum().cast(pl.Int64)
    )
    few = pl.concat([t.filter(_TOO_FEW).select(LAYER_KEY) for t in (labelled, summary)])
    rows = labelled.filter("has_contrast")
    passing = _passing_summaries(rows, gates)
    failing = rows.filter(~is_label("evidence", RowLabel.PASS)).with_columns(cause=_CAUSE)
    comparable = rows.filter("same_order")
    beaten = comparable.filter(pl.col("delta_rel") <= 0)
    nearest = most_frequent(comparable, LAYER_KEY, "best_control").rename(
        {"best_control": "nearest"}
    )
    out = pl.concat([layers.select(LAYER_KEY), few]).unique(maintain_order=True)
    parts = (
        layers,
        few.unique(maintain_order=True).with_columns(any_few=pl.lit(True)),
        passing,
        most_frequent(failing, LAYER_KEY, "cause"),
        most_frequent(beaten, LAYER_KEY, "best_control"),
        nearest,
        most_frequent(labelled.filter(~OK), LAYER_KEY, "reason"),
    )
    for part in parts:
        out = attach(out, part, LAYER_KEY)
    lacks = (pl.col("n_rows").fill_null(0) == 0) & pl.col("any_few").fill_null(value=False)
    control = pl.coalesce("best_control", "nearest")
    return rows_by_key(out.with_columns(best_control=control, lacks_units=lacks), LAYER_KEY)


def by_summary(rows: pl.DataFrame) -> pl.DataFrame:
    """Share of unit rows that pass, and mean contrast and similarity, one row per layer, alignment and profile."""
    shares = rows.group_by(_SUMMARY, maintain_order=True).agg(
        pass_share=is_label("evidence", RowLabel.PASS).sum() / pl.len()
    )
    comparable = rows.filter("same_order")
    means = mean_over_subject_runs(comparable, _SUMMARY, ["delta_rel", "real_similarity"])
    return attach(shares, means, _SUMMARY)


def _passing_summaries(rows: pl.DataFrame, gates: GatesConfig) -> pl.DataFrame:
    enough = pl.col("pass_share") >= gates.direction_fraction
    passes = (enough & (pl.col("delta_rel") > 0)).fill_null(value=False)
    return (
        by_summary(rows)
        .group_by(LAYER_KEY, maintain_order=True)
        .agg(
            n_summaries=pl.len().cast(pl.Int64),
            n_passing=passes.sum().cast(pl.Int64),
            typical_share=pl.col("pass_share").median(),
            typical_delta=pl.col("delta_rel").median(),
            raw_similarity=pl.col("real_similarity").median(),
        )
    )


def relational_gate(
    summaries: dict[Layer, Row], layers: Sequence[Layer], gates: GatesConfig
) -> dict[Layer, GateEvidence]:
    """Evaluate R for every layer."""
    return {layer: _evidence(summaries.get(layer), gates) for layer in layers}


def _evidence(row: Row | None, gates: GatesConfig) -> GateEvidence:
    if row is None or not row["n_rows"]:
        return _no_evidence(row, gates)
    n, n_rows, blame = row["n_summaries"], row["n_rows"], row["cause"] or ""
    control, typical_delta = row["best_control"] or "", row["typical_delta"]
    delta = "no comparable contrast" if typical_delta is None else f"{number(typical_delta)}"
    passing = Criterion(
        CriterionName.SUMMARIES_PASSING,
        row["n_passing"] / n,
        ">",
        gates.summary_majority,
        n,
        control,
        f"{row['n_passing']} of {n} relational summaries pass ({count(n_rows, 'unit row')}); "
        f"more than {percent(gates.summary_majority)} must.",
        blame,
    )
    typical_share = Criterion(
        CriterionName.TYPICAL_PASS_SHARE,
        row["typical_share"],
        ">=",
        gates.direction_fraction,
        n_rows,
        "",
        f"In the median summary {percent(row['typical_share'])} of unit rows pass; "
        f"a summary needs {percent(gates.direction_fraction)}.",
        blame,
    )
    typical_contrast = Criterion(
        CriterionName.TYPICAL_DELTA_REL,
        typical_delta,
        ">",
        0.0,
        n_rows,
        control,
        f"Mean contrast of the median summary: {delta}.",
        blame,
    )
    return GateEvidence(Gate.RELATIONAL, (passing, typical_share, typical_contrast))


def _no_evidence(row: Row | None, gates: GatesConfig) -> GateEvidence:
    why = why_nothing(row)
    sentence = f"No unit row has a finite relational contrast ({why})."
    bounds: tuple[tuple[CriterionName, Relation, float], ...] = (
        (CriterionName.SUMMARIES_PASSING, ">", gates.summary_majority),
        (CriterionName.TYPICAL_PASS_SHARE, ">=", gates.direction_fraction),
        (CriterionName.TYPICAL_DELTA_REL, ">", 0.0),
    )
    return GateEvidence(Gate.RELATIONAL, nothing_computed(bounds, sentence, why))


def why_nothing(row: Row | None) -> str:
    """Code of the cause why a layer has no comparable relational contrast."""
    if row is None:
        return str(RowLabel.NOT_COMPUTED)
    if row["lacks_units"]:
        return str(Reason.TOO_FEW_UNITS)
    return str(row["reason"] or row["cause"] or RowLabel.NOT_COMPUTED)
