"""Summaries that the point rules read: one row of numbers per layer or claim."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.keys import (
    LAYER_KEY,
    OK,
    Claim,
    Layer,
    Row,
    attach,
    attach_all,
    is_label,
    mean_over_subject_runs,
    missing,
    most_frequent,
    rows_by_key,
)
from lpact.analyses.lpact.gates.labels import BOUNDED, MIN_TARGETS
from lpact.codes import Reason, RowLabel
from lpact.tables import CONTEXT_KEY

REAL = "real"

_SUMMARY = [*LAYER_KEY, "alignment", "profile"]
_UNIT_ROW = [*CONTEXT_KEY, "unit", "alignment", "profile"]
_STRIPPED = [*LAYER_KEY, "stripped"]
_DROPS = ("matching_drop", "margin", "mismatch_margin")
_NO_TARGET = (
    Reason.MECHANISM_NOT_OFFERED,
    Reason.MECHANISM_CONSTANT,
    Reason.COLLINEAR_MECHANISMS,
    Reason.TOO_FEW_UNITS,
)
"""Reasons that are about the target of a mechanism, not about a method."""


def summarise_predictive(labelled: pl.DataFrame, primary_metric: str) -> dict[Layer, Row]:
    """Level 1 at the primary metric, one row per layer.

    ``n`` subject-runs have both contrasts, ``n_missing`` do not; ``n_positive`` have both positive. Means run over the
    ``n``, ``raw_score`` over every subject-run with a real score. ``reason`` is the most frequent one of the missing.
    """
    rows = labelled.filter(pl.col("metric") == primary_metric).with_columns(
        computed=~is_label("evidence", RowLabel.NOT_COMPUTED)
    )
    computed = rows.filter("computed")
    scores = ["real_score", "nuisance_score", "best_control_score"]
    means = pl.col(*scores, "delta_nuisance", "delta_control").mean()
    summary = rows.group_by(LAYER_KEY, maintain_order=True).agg(
        n=pl.col("computed").sum().cast(pl.Int64),
        n_missing=(~pl.col("computed")).sum().cast(pl.Int64),
        n_positive=is_label("evidence", RowLabel.PASS).sum().cast(pl.Int64),
        raw_score=pl.col("real_score").mean(),
    )
    parts = (
        computed.group_by(LAYER_KEY, maintain_order=True).agg(means),
        most_frequent(computed, LAYER_KEY, "best_control"),
        most_frequent(rows.filter(~OK), LAYER_KEY, "reason"),
    )
    return attach_all(summary, parts, LAYER_KEY)


def means_by_control(nulls: pl.DataFrame, primary_metric: str) -> pl.DataFrame:
    """Means over subject-runs of real − control, one row per layer and counted control, the smallest first."""
    return (
        nulls.filter((pl.col("metric") == primary_metric) & pl.col("counted") & OK)
        .drop_nulls(["delta", "control_score"])
        .group_by([*LAYER_KEY, "control"], maintain_order=True)
        .agg(pl.col("delta", "control_score").mean(), n=pl.len().cast(pl.Int64))
        .sort([*LAYER_KEY, "delta", "control"])
    )


def strongest_controls(nulls: pl.DataFrame, primary_metric: str) -> dict[Layer, Row]:
    """The counted control with the smallest mean of real − control, one row per layer."""
    means = means_by_control(nulls, primary_metric)
    counts = means.group_by(LAYER_KEY, maintain_order=True).len("n_controls")
    strongest = means.unique(LAYER_KEY, keep="first", maintain_order=True)
    return attach_all(strongest, [counts], LAYER_KEY)


def advantages_by_summary(scores: pl.DataFrame, labelled_deltas: pl.DataFrame) -> pl.DataFrame:
    """Mean advantage of the real pattern, one row per layer, counted control, alignment and profile.

    Real and control are compared on the same unit rows: a control that could not be computed somewhere is not compared
    with real similarities from elsewhere.
    """
    usable = labelled_deltas.filter(pl.col("has_contrast") & pl.col("same_order"))
    pairs = (
        scores.filter(pl.col("counted") & (pl.col("condition") != REAL))
        .drop_nulls("similarity")
        .join(usable.select(*_UNIT_ROW, "real_similarity"), on=_UNIT_ROW, maintain_order="left")
        .with_columns(advantage=pl.col("real_similarity") - pl.col("similarity"))
        .drop_nulls("advantage")
    )
    by = [*LAYER_KEY, "condition", "alignment", "profile"]
    return mean_over_subject_runs(pairs, by, ["advantage"])


def most_reaching_controls(scores: pl.DataFrame, labelled_deltas: pl.DataFrame) -> dict[Layer, Row]:
    """The counted control that reaches the real similarity in the largest share of summaries, one row per layer."""
    families = (
        advantages_by_summary(scores, labelled_deltas)
        .group_by([*LAYER_KEY, "condition"], maintain_order=True)
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


def summarise_relational(labelled: pl.DataFrame, summary: pl.DataFrame, gates: GatesConfig) -> dict[Layer, Row]:
    """Level 2, one row per layer: its summaries, how many pass, and why rows fail.

    ``lacks_units`` says that nothing could be computed and that a subject-run had too few units. ``best_control`` is
    the control that most often beats a unit row (or comes nearest, where none is beaten); ``raw_similarity`` the median
    over summaries of the mean real similarity (the largest would be a cosine, which is usually positive).
    """
    counts = labelled.group_by(LAYER_KEY, maintain_order=True).agg(n_rows=pl.col("has_contrast").sum().cast(pl.Int64))
    too_few = pl.col("reason") == Reason.TOO_FEW_UNITS.value
    few = pl.concat([t.filter(too_few).select(LAYER_KEY) for t in (labelled, summary)])
    rows = labelled.filter("has_contrast")
    cause = (
        pl.when(is_label("evidence", RowLabel.UNRELIABLE_BRAIN_PATTERN))
        .then(pl.lit("split_half_reliability"))
        .when(~pl.col("same_order"))
        .then(pl.lit("unit_order"))
        .otherwise(pl.col("best_control"))
    )
    failing = rows.filter(~is_label("evidence", RowLabel.PASS)).with_columns(cause=cause)
    comparable = rows.filter("same_order")
    beaten = comparable.filter(pl.col("delta_rel") <= 0)
    nearest = most_frequent(comparable, LAYER_KEY, "best_control")
    out = pl.concat([counts.select(LAYER_KEY), few]).unique(maintain_order=True)
    parts = (
        counts,
        few.unique(maintain_order=True).with_columns(any_few=pl.lit(True)),
        _passing_summaries(rows, gates),
        most_frequent(failing, LAYER_KEY, "cause"),
        most_frequent(beaten, LAYER_KEY, "best_control"),
        nearest.rename({"best_control": "nearest"}),
        most_frequent(labelled.filter(~OK), LAYER_KEY, "reason"),
    )
    found = attach_all(out, parts, LAYER_KEY)
    for row in found.values():
        row["best_control"] = row["best_control"] or row["nearest"]
        row["lacks_units"] = not row["n_rows"] and bool(row["any_few"])
    return found


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


def why_nothing(row: Row | None) -> str:
    """Code of the cause why a layer has no comparable relational contrast."""
    if row is None:
        return str(RowLabel.NOT_COMPUTED)
    if row["lacks_units"]:
        return str(Reason.TOO_FEW_UNITS)
    return str(row["reason"] or row["cause"] or RowLabel.NOT_COMPUTED)


def summarise_mechanisms(specificity: pl.DataFrame) -> dict[Claim, Row]:
    """Level 3, one row per claim: applicable methods, how many agree, and why the others do not.

    ``median_drop``, ``median_margin`` and ``median_mismatch_margin`` are medians over methods of medians over
    subject-runs; ``raw_drop`` is the largest median drop of a method.
    """
    usable = usable_rows(specificity)
    methods = medians_by_method(usable)
    for column in ("mismatch_kind", "best_nonmatching_target"):
        by = [*_STRIPPED, "method"]
        methods = attach(methods, most_frequent(usable, by, column), by)
    agrees = pl.all_horizontal(pl.col(_DROPS) > 0)
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
    cause = (
        pl.when(pl.col("matching_drop") <= 0)
        .then(pl.lit(RowLabel.STRIPPING_NO_EFFECT.value))
        .when(pl.col("mismatch_margin") <= 0)
        .then(pl.col("mismatch_kind"))
        .otherwise(pl.col("best_nonmatching_target"))
    )
    no_target = specificity.filter(pl.col("reason").is_in([r.value for r in _NO_TARGET]))
    parts = (
        votes,
        most_frequent(methods.filter(~agrees).with_columns(cause=cause), _STRIPPED, "cause"),
        most_frequent(usable, _STRIPPED, "mismatch_kind"),
        most_frequent(usable, _STRIPPED, "best_nonmatching_target"),
        most_frequent(specificity.filter(~OK), _STRIPPED, "reason"),
        most_frequent(no_target, _STRIPPED, "reason").rename({"reason": "target_reason"}),
    )
    return attach_all(out, parts, _STRIPPED)


def usable_rows(specificity: pl.DataFrame) -> pl.DataFrame:
    """Rows with all three numbers and enough targets."""
    return specificity.filter(OK & ~missing(*_DROPS) & (pl.col("n_targets") >= MIN_TARGETS))


def medians_by_method(usable: pl.DataFrame) -> pl.DataFrame:
    """Medians over subject-runs of the three numbers, one row per claim and method."""
    by = [*_STRIPPED, "method"]
    return usable.group_by(by, maintain_order=True).agg(pl.col(_DROPS).median())


def summarise_ceiling(labelled: pl.DataFrame) -> dict[Layer, Row]:
    """Level 4, one row per layer: mean reliability and fractions, their mode, and why rows are missing."""
    out = labelled.group_by(LAYER_KEY, maintain_order=True).agg(pl.col("split_half_alone").any())
    reliable = labelled.drop_nulls("reliability")
    bounded = labelled.filter(pl.col("evidence").is_in([label.value for label in BOUNDED]))
    medians = (
        mean_over_subject_runs(bounded, _SUMMARY, ["fraction_of_ceiling"])
        .group_by(LAYER_KEY, maintain_order=True)
        .agg(median_fraction=pl.col("fraction_of_ceiling").median())
    )
    reliability = mean_over_subject_runs(reliable, LAYER_KEY, ["reliability"])
    fractions = mean_over_subject_runs(bounded, LAYER_KEY, ["fraction_of_ceiling", "delta_fraction"])
    parts = (
        medians,
        reliability.rename({"n_subject_runs": "n_reliability"}),
        fractions.rename({"n_subject_runs": "n_fraction"}),
        most_frequent(reliable, LAYER_KEY, "mode"),
        most_frequent(labelled.filter(~OK), LAYER_KEY, "reason"),
    )
    return attach_all(out, parts, LAYER_KEY)
