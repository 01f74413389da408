"""Gate T.

Means over the units and summaries of a subject-run first, then over subject-runs:

    T ⇔ mean reliability ≥ min_reliability, mean delta_fraction > 0,
        mean fraction_of_ceiling ≥ min_ceiling_fraction
        and the median over summaries of the same mean ≥ min_ceiling_fraction

The median keeps a few summaries from carrying the rest: the cosine of two positive patterns is large whatever their
shape, and alone could lift the mean over the threshold.

Reliability is averaged over every row that has one; fractions only where the row's own reliability reaches the
minimum, because a division by a reliability near zero makes any fraction large.
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
from lpact.analyses.lpact.gates.rows import OK
from lpact.analyses.lpact.gates.wording import mean_over, number
from lpact.codes import Gate, Reason, RowLabel

BOUNDED = (RowLabel.PASS, RowLabel.CONTROL_EXPLAINED, RowLabel.BELOW_CEILING_FRACTION)
"""Evidence labels of rows whose fractions stand on a sufficient reliability."""


def summarise_ceiling(labelled: pl.DataFrame) -> dict[Layer, Row]:
    """Level 4, one row per layer: mean reliability and fractions, the mode that bounds them, why rows are missing."""
    out = labelled.group_by(LAYER_KEY, maintain_order=True).agg(
        split_half_alone=pl.col("split_half_alone").any()
    )
    reliable = labelled.drop_nulls("reliability")
    bounded = labelled.filter(pl.col("evidence").is_in([label.value for label in BOUNDED]))
    fractions = ["fraction_of_ceiling", "delta_fraction"]
    by_summary = mean_over_subject_runs(
        bounded, [*LAYER_KEY, "alignment", "profile"], ["fraction_of_ceiling"]
    )
    parts = (
        by_summary.group_by(LAYER_KEY, maintain_order=True).agg(
            median_fraction=pl.col("fraction_of_ceiling").median()
        ),
        mean_over_subject_runs(reliable, LAYER_KEY, ["reliability"]).rename(
            {"n_subject_runs": "n_reliability"}
        ),
        mean_over_subject_runs(bounded, LAYER_KEY, fractions).rename(
            {"n_subject_runs": "n_fraction"}
        ),
        most_frequent(reliable, LAYER_KEY, "mode"),
        most_frequent(labelled.filter(~OK), LAYER_KEY, "reason"),
    )
    for part in parts:
        out = attach(out, part, LAYER_KEY)
    return rows_by_key(out, LAYER_KEY)


def ceiling_gate(
    summaries: Mapping[Layer, Row],
    relational: Mapping[Layer, Row],
    layers: Sequence[Layer],
    gates: GatesConfig,
) -> dict[Layer, GateEvidence]:
    """Evaluate T for every layer; ``relational`` names the control behind a contrast that is not positive."""
    return {
        layer: GateEvidence(
            Gate.CEILING, _criteria(summaries.get(layer), relational.get(layer), gates)
        )
        for layer in layers
    }


def _criteria(row: Row | None, relational: Row | None, gates: GatesConfig) -> tuple[Criterion, ...]:
    if row is None or row["reliability"] is None:
        why = str(
            RowLabel.NOT_COMPUTED if row is None else row["reason"] or Reason.NO_VALID_CEILING
        )
        sentence = f"No subject-run has a brain–brain reliability ({why})."
        return nothing_computed(_bounds(gates), sentence, why)
    mode = row["mode"] or ""
    alone = "; only split half is valid, which slow drift can inflate"
    drift = alone if row["split_half_alone"] else ""
    reliability = Criterion(
        CriterionName.MEAN_RELIABILITY,
        row["reliability"],
        ">=",
        gates.min_reliability,
        row["n_reliability"],
        mode,
        f"Brain–brain reliability is {number(row['reliability'])}, {mode} "
        f"{mean_over(row['n_reliability'])}; {number(gates.min_reliability)} is needed{drift}.",
        mode,
    )
    if row["delta_fraction"] is None:
        why = str(row["reason"] or RowLabel.INSUFFICIENT_BRAIN_CEILING)
        sentence = f"No row has both a sufficient reliability and a contrast ({why})."
        return (reliability, *nothing_computed(_bounds(gates)[1:], sentence, why))
    control = (relational["best_control"] if relational else None) or ""
    over = mean_over(row["n_fraction"])
    contrast = Criterion(
        CriterionName.MEAN_DELTA_FRACTION,
        row["delta_fraction"],
        ">",
        0.0,
        row["n_fraction"],
        control,
        f"Contrast with the best control: {number(row['delta_fraction'])} of the ceiling {over}.",
        control or mode,
    )
    fraction = Criterion(
        CriterionName.MEAN_FRACTION_OF_CEILING,
        row["fraction_of_ceiling"],
        ">=",
        gates.min_ceiling_fraction,
        row["n_fraction"],
        mode,
        f"The model reaches {number(row['fraction_of_ceiling'])} of the {mode} ceiling {over}; "
        f"{number(gates.min_ceiling_fraction)} is needed.",
        mode,
    )
    typical = Criterion(
        CriterionName.MEDIAN_FRACTION_OF_CEILING,
        row["median_fraction"],
        ">=",
        gates.min_ceiling_fraction,
        row["n_fraction"],
        mode,
        f"In the median relational summary it reaches {number(row['median_fraction'])} of the ceiling; "
        f"{number(gates.min_ceiling_fraction)} is needed.",
        mode,
    )
    return (reliability, contrast, fraction, typical)


def _bounds(gates: GatesConfig) -> tuple[tuple[CriterionName, Relation, float], ...]:
    return (
        (CriterionName.MEAN_RELIABILITY, ">=", gates.min_reliability),
        (CriterionName.MEAN_DELTA_FRACTION, ">", 0.0),
        (CriterionName.MEAN_FRACTION_OF_CEILING, ">=", gates.min_ceiling_fraction),
        (CriterionName.MEDIAN_FRACTION_OF_CEILING, ">=", gates.min_ceiling_fraction),
    )
