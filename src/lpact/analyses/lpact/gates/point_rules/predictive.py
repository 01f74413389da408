"""Gate P, and what level 1 says beside it.

P ⇔ mean over subject-runs of delta_nuisance > 0  and  of delta_control > 0       (primary metric)
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lpact.analyses.lpact.gates._frames import (
    LAYER_KEY,
    Layer,
    Row,
    attach,
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
from lpact.analyses.lpact.gates.wording import mean_over, rivalry
from lpact.codes import Gate, RowLabel

NUISANCE = "nuisance"
_BOUNDS: tuple[tuple[CriterionName, Relation, float], ...] = (
    (CriterionName.MEAN_DELTA_NUISANCE, ">", 0.0),
    (CriterionName.MEAN_DELTA_CONTROL, ">", 0.0),
)


def summarise_predictive(labelled: pl.DataFrame, primary_metric: str) -> dict[Layer, Row]:
    """Level 1 at the primary metric, one row per layer.

    ``n`` subject-runs have both contrasts, ``n_missing`` have not; ``n_positive`` have both positive. Means run over
    the ``n``, ``raw_score`` over every subject-run with a real score. ``reason`` is the most frequent one of the
    missing.
    """
    rows = labelled.filter(pl.col("metric") == primary_metric).with_columns(
        computed=~is_label("evidence", RowLabel.NOT_COMPUTED)
    )
    computed = rows.filter("computed")
    means = [
        "real_score",
        "nuisance_score",
        "best_control_score",
        "delta_nuisance",
        "delta_control",
    ]
    summary = rows.group_by(LAYER_KEY, maintain_order=True).agg(
        n=pl.col("computed").sum().cast(pl.Int64),
        n_missing=(~pl.col("computed")).sum().cast(pl.Int64),
        n_positive=is_label("evidence", RowLabel.PASS).sum().cast(pl.Int64),
        raw_score=pl.col("real_score").mean(),
    )
    parts = (
        computed.group_by(LAYER_KEY, maintain_order=True).agg(pl.col(means).mean()),
        most_frequent(computed, LAYER_KEY, "best_control"),
        most_frequent(rows.filter(~OK), LAYER_KEY, "reason"),
    )
    for part in parts:
        summary = attach(summary, part, LAYER_KEY)
    return rows_by_key(summary, LAYER_KEY)


def predictive_gate(
    summaries: dict[Layer, Row], layers: Sequence[Layer]
) -> dict[Layer, GateEvidence]:
    """Evaluate P for every layer."""
    return {layer: _evidence(summaries.get(layer)) for layer in layers}


def _evidence(row: Row | None) -> GateEvidence:
    if row is None or row["n"] == 0:
        why = str((row or {}).get("reason") or RowLabel.NOT_COMPUTED)
        sentence = f"No subject-run has a finite level-1 contrast ({why})."
        return GateEvidence(Gate.PREDICTIVE, nothing_computed(_BOUNDS, sentence, why))
    over = mean_over(row["n"], row["n_missing"])
    control = row["best_control"] or "unnamed"
    best = f"the best severe control (most often {control})"
    nuisance_words = rivalry(
        row["real_score"], "nuisance", row["nuisance_score"], row["delta_nuisance"]
    )
    control_words = rivalry(
        row["real_score"], best, row["best_control_score"], row["delta_control"]
    )
    return GateEvidence(
        Gate.PREDICTIVE,
        (
            Criterion(
                CriterionName.MEAN_DELTA_NUISANCE,
                row["delta_nuisance"],
                ">",
                0.0,
                row["n"],
                NUISANCE,
                f"{nuisance_words} {over}.",
                NUISANCE,
            ),
            Criterion(
                CriterionName.MEAN_DELTA_CONTROL,
                row["delta_control"],
                ">",
                0.0,
                row["n"],
                control,
                f"{control_words} {over}.",
                control,
            ),
        ),
    )
