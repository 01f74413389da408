"""Gate S: no severe control does as well as the real features.

S1 ⇔ for every counted control: mean over subject-runs of (real − control) > 0        (primary metric)
S2 ⇔ no counted control reaches the real profile similarity in more than summary_majority of the
     alignment × profile summaries (mean over subject-runs of the mean over units)
S  ⇔ S1 and S2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import (
    LAYER_KEY,
    Layer,
    Row,
    attach,
    mean_over_subject_runs,
    rows_by_key,
)
from lpact.analyses.lpact.gates.criteria import Criterion, CriterionName, GateEvidence
from lpact.analyses.lpact.gates.point_rules.relational import why_nothing
from lpact.analyses.lpact.gates.rows import OK
from lpact.analyses.lpact.gates.wording import mean_over, number, percent, rivalry
from lpact.codes import Gate, RowLabel
from lpact.tables import CONTEXT_KEY

REAL = "real"
_UNIT_ROW = [*CONTEXT_KEY, "unit", "alignment", "profile"]


def severe_gate(
    nulls: pl.DataFrame,
    scores: pl.DataFrame,
    labelled_deltas: pl.DataFrame,
    relational: Mapping[Layer, Row],
    layers: Sequence[Layer],
    gates: GatesConfig,
    primary_metric: str,
) -> dict[Layer, GateEvidence]:
    """Evaluate S for every layer; the ``relational`` summaries say why level 2 has nothing to compare."""
    level1 = _strongest_controls(nulls, primary_metric)
    level2 = _most_reaching_controls(scores, labelled_deltas)
    return {
        layer: GateEvidence(
            Gate.SEVERE_CONTROL,
            (
                _level1_criterion(level1.get(layer)),
                _level2_criterion(level2.get(layer), why_nothing(relational.get(layer)), gates),
            ),
        )
        for layer in layers
    }


def means_by_control(nulls: pl.DataFrame, primary_metric: str) -> pl.DataFrame:
    """Means over subject-runs of real − control, one row per layer and counted control, the smallest first."""
    return (
        nulls.filter((pl.col("metric") == primary_metric) & pl.col("counted") & OK)
        .drop_nulls(["delta", "control_score"])
        .group_by([*LAYER_KEY, "control"], maintain_order=True)
        .agg(pl.col("delta", "control_score").mean(), n=pl.len().cast(pl.Int64))
        .sort([*LAYER_KEY, "delta", "control"])
    )


def _strongest_controls(nulls: pl.DataFrame, primary_metric: str) -> dict[Layer, Row]:
    """The counted control with the smallest mean of real − control, one row per layer."""
    means = means_by_control(nulls, primary_metric)
    counts = means.group_by(LAYER_KEY, maintain_order=True).len("n_controls")
    strongest = means.unique(LAYER_KEY, keep="first", maintain_order=True)
    return rows_by_key(attach(strongest, counts, LAYER_KEY), LAYER_KEY)


def advantages_by_summary(scores: pl.DataFrame, labelled_deltas: pl.DataFrame) -> pl.DataFrame:
    """Mean advantage of the real pattern, one row per layer, counted control, alignment and profile.

    Real and control are compared on the very same unit rows, so that a control which could not be computed somewhere
    is not compared with real similarities from elsewhere.
    """
    usable = labelled_deltas.filter(pl.col("has_contrast") & pl.col("same_order"))
    pairs = (
        scores.filter(pl.col("counted") & (pl.col("condition") != REAL))
        .drop_nulls("similarity")
        .join(usable.select(*_UNIT_ROW, "real_similarity"), on=_UNIT_ROW, maintain_order="left")
        .with_columns(advantage=pl.col("real_similarity") - pl.col("similarity"))
        .drop_nulls("advantage")
    )
    return mean_over_subject_runs(
        pairs, [*LAYER_KEY, "condition", "alignment", "profile"], ["advantage"]
    )


def _most_reaching_controls(
    scores: pl.DataFrame, labelled_deltas: pl.DataFrame
) -> dict[Layer, Row]:
    """The counted control that reaches the real similarity in the largest share of summaries, one row per layer."""
    by_summary = advantages_by_summary(scores, labelled_deltas)
    families = (
        by_summary.group_by([*LAYER_KEY, "condition"], maintain_order=True)
        .agg(
            n_summaries=pl.len().cast(pl.Int64),
            n_reached=(pl.col("advantage") <= 0).sum().cast(pl.Int64),
            advantage=pl.col("advantage").mean(),
        )
        .with_columns(share=pl.col("n_reached") / pl.col("n_summaries"))
        .sort(
            [*LAYER_KEY, "share", "advantage", "condition"],
            descending=[False, False, False, True, False, False],
        )
    )
    return rows_by_key(families.unique(LAYER_KEY, keep="first", maintain_order=True), LAYER_KEY)


def _level1_criterion(row: Row | None) -> Criterion:
    if row is None:
        value, n, control = None, 0, ""
        sentence = "No counted severe control has a finite level-1 score."
    else:
        value, n, control = row["delta"], row["n"], row["control"]
        model = row["control_score"] + value
        words = rivalry(model, control, row["control_score"], value)
        sentence = f"{words}, the smallest of {row['n_controls']} counted controls {mean_over(n)}."
    blame = control or str(RowLabel.NOT_COMPUTED)
    return Criterion(
        CriterionName.SMALLEST_CONTROL_DELTA, value, ">", 0.0, n, control, sentence, blame
    )


def _level2_criterion(row: Row | None, why_missing: str, gates: GatesConfig) -> Criterion:
    if row is None:
        value, n, control = None, 0, ""
        sentence = f"No counted severe control can be compared at level 2 ({why_missing})."
    else:
        value, n, control = 1 - row["share"], row["n_summaries"], row["condition"]
        sentence = (
            f"The strongest control, {control}, reaches the model's profile similarity in "
            f"{row['n_reached']} of {n} relational summaries (mean advantage of the model "
            f"{number(row['advantage'])}); at most {percent(gates.summary_majority)} are allowed."
        )
    return Criterion(
        CriterionName.SUMMARIES_NOT_REACHED,
        value,
        ">=",
        1 - gates.summary_majority,
        n,
        control,
        sentence,
        control or why_missing,
    )
