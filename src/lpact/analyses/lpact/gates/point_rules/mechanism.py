"""Gate M, for each mechanism k.

For each stripping method, over the subject-runs with all three numbers and at least two targets:

    method agrees ⇔ median matching drop > 0, median margin over the best non-matching target > 0
                    and median margin over the mismatch control > 0
    M ⇔ share of applicable methods that agree ≥ method_majority
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import LAYER_KEY, Row, attach, most_frequent, rows_by_key
from lpact.analyses.lpact.gates.claims import NO_MECHANISM, Claim
from lpact.analyses.lpact.gates.criteria import (
    Criterion,
    CriterionName,
    GateEvidence,
    Relation,
    nothing_computed,
)
from lpact.analyses.lpact.gates.rows import OK, missing
from lpact.analyses.lpact.gates.wording import number, percent
from lpact.codes import Gate, Reason, RowLabel

MIN_TARGETS = 2
"""A drop is selective only against another mechanism's target."""

_NO_TARGET = [
    Reason.MECHANISM_NOT_OFFERED.value,
    Reason.MECHANISM_CONSTANT.value,
    Reason.COLLINEAR_MECHANISMS.value,
    Reason.TOO_FEW_UNITS.value,
]
"""Reasons that are about a mechanism's target, not about a method."""

_STRIPPED = [*LAYER_KEY, "stripped"]
_NUMBERS = ("matching_drop", "margin", "mismatch_margin")
_CAUSE = (
    pl.when(pl.col("matching_drop") <= 0)
    .then(pl.lit(RowLabel.STRIPPING_NO_EFFECT.value))
    .when(pl.col("mismatch_margin") <= 0)
    .then(pl.col("mismatch_kind"))
    .otherwise(pl.col("best_nonmatching_target"))
)


def summarise_mechanisms(specificity: pl.DataFrame) -> dict[Claim, Row]:
    """Level 3, one row per claim: applicable methods, how many agree, and what the others fail by.

    ``median_drop``, ``median_margin`` and ``median_mismatch_margin`` are medians over methods of medians over
    subject-runs; ``raw_drop`` is the largest median drop of a method.
    """
    usable = usable_rows(specificity)
    methods = medians_by_method(usable)
    for column in ("mismatch_kind", "best_nonmatching_target"):
        by = [*_STRIPPED, "method"]
        methods = attach(methods, most_frequent(usable, by, column), by)
    agrees = pl.all_horizontal(pl.col(_NUMBERS) > 0)
    votes = methods.group_by(_STRIPPED, maintain_order=True).agg(
        n_methods=pl.len().cast(pl.Int64),
        n_agreeing=agrees.sum().cast(pl.Int64),
        median_drop=pl.col("matching_drop").median(),
        median_margin=pl.col("margin").median(),
        median_mismatch_margin=pl.col("mismatch_margin").median(),
        raw_drop=pl.col("matching_drop").max(),
    )
    out = specificity.group_by(_STRIPPED, maintain_order=True).agg(
        pl.col("n_targets").max(), n_rows=pl.len().cast(pl.Int64)
    )
    parts = (
        votes,
        most_frequent(methods.filter(~agrees).with_columns(cause=_CAUSE), _STRIPPED, "cause"),
        most_frequent(usable, _STRIPPED, "mismatch_kind"),
        most_frequent(usable, _STRIPPED, "best_nonmatching_target"),
        most_frequent(specificity.filter(~OK), _STRIPPED, "reason"),
        most_frequent(
            specificity.with_columns(target_reason=pl.col("reason")).filter(
                pl.col("reason").is_in(_NO_TARGET)
            ),
            _STRIPPED,
            "target_reason",
        ),
    )
    for part in parts:
        out = attach(out, part, _STRIPPED)
    return rows_by_key(out, _STRIPPED)


def usable_rows(specificity: pl.DataFrame) -> pl.DataFrame:
    """Rows with all three numbers and enough targets."""
    return specificity.filter(OK & ~missing(*_NUMBERS) & (pl.col("n_targets") >= MIN_TARGETS))


def medians_by_method(usable: pl.DataFrame) -> pl.DataFrame:
    """Medians over subject-runs of the three numbers, one row per claim and method."""
    return usable.group_by([*_STRIPPED, "method"], maintain_order=True).agg(
        pl.col(_NUMBERS).median()
    )


def mechanism_gate(
    summaries: dict[Claim, Row], claims: Sequence[Claim], gates: GatesConfig
) -> dict[Claim, GateEvidence]:
    """Evaluate M for every claim."""
    return {
        claim: GateEvidence(Gate.MECHANISM, _criteria(summaries.get(claim), claim[-1], gates))
        for claim in claims
    }


def _criteria(row: Row | None, mechanism: str, gates: GatesConfig) -> tuple[Criterion, ...]:
    targets = _targets(row, mechanism)
    if row is None or not row["n_methods"]:
        why = targets.beaten_by
        if row is not None and targets.passed:
            why = str(row["reason"] or RowLabel.NOT_COMPUTED)
        sentence = f"No stripping method has finite drops and margins for {mechanism} ({why})."
        return (targets, *nothing_computed(_bounds(gates), sentence, why))
    kind, rival = row["mismatch_kind"] or "", row["best_nonmatching_target"] or ""
    n, blame = row["n_methods"], row["cause"] or ""
    agreeing = Criterion(
        CriterionName.METHODS_AGREEING,
        row["n_agreeing"] / n,
        ">=",
        gates.method_majority,
        n,
        rival,
        f"{row['n_agreeing']} of {n} stripping methods show a selective drop for {mechanism}; "
        f"{percent(gates.method_majority)} must.",
        blame,
    )
    typical = (
        (CriterionName.TYPICAL_DROP, "median_drop", "", "matching drop"),
        (CriterionName.TYPICAL_MARGIN, "median_margin", rival, f"margin over {rival}"),
        (
            CriterionName.TYPICAL_MISMATCH_MARGIN,
            "median_mismatch_margin",
            kind,
            f"margin over a {kind} strip",
        ),
    )
    shown = tuple(
        Criterion(
            name,
            row[column],
            ">",
            0.0,
            n,
            against,
            f"Median over methods of the {words}: {number(row[column])}.",
            blame,
        )
        for name, column, against, words in typical
    )
    return (targets, agreeing, *shown)


def _targets(row: Row | None, mechanism: str) -> Criterion:
    n_targets = None if row is None else float(row["n_targets"])
    blame = str(RowLabel.NOT_COMPUTED if row is None else RowLabel.INSUFFICIENT_TARGETS)
    if row is None:
        missing_name = "no mechanism was" if mechanism == NO_MECHANISM else f"{mechanism} was not"
        sentence = f"{missing_name} stripped here."
    else:
        sentence = f"{row['n_targets']} mechanisms have target units; {MIN_TARGETS} are needed"
        if row["n_targets"] < MIN_TARGETS and row["target_reason"]:
            blame = str(row["target_reason"])
            sentence += f" ({mechanism}: {blame})"
        sentence += "."
    return Criterion(
        CriterionName.N_TARGETS,
        n_targets,
        ">=",
        float(MIN_TARGETS),
        0 if row is None else row["n_rows"],
        "",
        sentence[:1].upper() + sentence[1:],
        blame,
    )


def _bounds(gates: GatesConfig) -> tuple[tuple[CriterionName, Relation, float], ...]:
    return (
        (CriterionName.METHODS_AGREEING, ">=", gates.method_majority),
        (CriterionName.TYPICAL_DROP, ">", 0.0),
        (CriterionName.TYPICAL_MARGIN, ">", 0.0),
        (CriterionName.TYPICAL_MISMATCH_MARGIN, ">", 0.0),
    )
