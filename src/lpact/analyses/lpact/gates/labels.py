"""Row labels of all levels.

Each label is made twice: ``evidence`` reads the numbers alone and feeds the gates; ``label`` is ``diagnostic_only``
wherever the dataset is not confirmatory, so that no such row ever passes.
"""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.keys import LAYER_KEY, OK, attach, is_label, missing
from lpact.codes import Reason, RowLabel
from lpact.tables import CONTEXT_KEY

CEILING_REASONS = (
    Reason.NO_VALID_CEILING,
    Reason.NONPOSITIVE_RELIABILITY,
    Reason.NO_REPEATED_MEASURE,
    Reason.SINGLE_RUN,
    Reason.SINGLE_SESSION,
    Reason.SINGLE_SUBJECT,
    Reason.DIFFERENT_STIMULUS,
    Reason.DIFFERENT_EVENTS,
    Reason.TOO_FEW_SHARED_UNITS,
)
"""Reasons that mean 'the brain cannot be compared with itself here'."""

MIN_TARGETS = 2
"""A drop is selective only in comparison with another mechanism's target."""

BOUNDED = (RowLabel.PASS, RowLabel.CONTROL_EXPLAINED, RowLabel.BELOW_CEILING_FRACTION)
"""Evidence labels of rows whose fractions are based on a sufficient reliability."""


def lit(code: RowLabel) -> pl.Expr:
    """Return a label as a plain string."""
    return pl.lit(code.value)


def with_verdict(frame: pl.DataFrame, evidence: pl.Expr) -> pl.DataFrame:
    """Add ``evidence``, ``label`` and ``gate_pass``."""
    diagnostic = pl.when(~pl.col("confirmatory")).then(lit(RowLabel.DIAGNOSTIC_ONLY))
    return (
        frame.with_columns(evidence=evidence)
        .with_columns(label=diagnostic.otherwise(pl.col("evidence")))
        .with_columns(gate_pass=is_label("label", RowLabel.PASS))
    )


def first_label(*cases: tuple[pl.Expr, RowLabel]) -> pl.Expr:
    """The label of the first condition that holds; `PASS` if none does."""
    found = lit(RowLabel.PASS)
    for condition, label in reversed(cases):
        found = pl.when(condition).then(lit(label)).otherwise(found)
    return found


def label_predictive(deltas: pl.DataFrame) -> pl.DataFrame:
    """Level 1: ``delta_nuisance > 0`` and ``delta_control > 0``."""
    evidence = first_label(
        (~OK | missing("delta_nuisance", "delta_control"), RowLabel.NOT_COMPUTED),
        (pl.col("delta_nuisance") <= 0, RowLabel.NUISANCE_EXPLAINED),
        (pl.col("delta_control") <= 0, RowLabel.SEVERE_CONTROL_EXPLAINED),
    )
    return with_verdict(deltas, evidence)


def label_relational(deltas: pl.DataFrame, gates: GatesConfig) -> pl.DataFrame:
    """Level 2: ``delta_rel > 0`` on a reliable brain pattern in the same unit order.

    Adds ``has_contrast`` (the row has a number, so it is in the denominator of every share) and ``same_order``.
    """
    reliability = pl.col("split_half_reliability")
    same_order = pl.col("model_unit_order_hash") == pl.col("brain_unit_order_hash")
    has_contrast = OK & ~missing("delta_rel")
    unreliable = reliability.is_null() | (reliability < gates.min_reliability)
    evidence = first_label(
        (pl.col("reason") == Reason.TOO_FEW_UNITS.value, RowLabel.INSUFFICIENT_COVERAGE),
        (~has_contrast, RowLabel.NOT_COMPUTED),
        (unreliable, RowLabel.UNRELIABLE_BRAIN_PATTERN),
        (~same_order, RowLabel.NOT_COMPUTED),
        (pl.col("delta_rel") <= 0, RowLabel.SEVERE_CONTROL_EXPLAINED),
    )
    return with_verdict(deltas, evidence).with_columns(has_contrast=has_contrast, same_order=same_order)


def label_ceiling(scores: pl.DataFrame, gates: GatesConfig) -> pl.DataFrame:
    """Level 4: valid reliability, ``delta_fraction > 0`` and the minimum fraction of the ceiling."""
    reliability = pl.col("reliability")
    of_ceiling = pl.col("reason").is_in([r.value for r in CEILING_REASONS])
    no_ceiling = of_ceiling | reliability.is_null() | (reliability < gates.min_reliability)
    below = pl.col("fraction_of_ceiling") < gates.min_ceiling_fraction
    evidence = first_label(
        (~OK & ~of_ceiling, RowLabel.NOT_COMPUTED),
        (no_ceiling, RowLabel.INSUFFICIENT_BRAIN_CEILING),
        (missing("fraction_of_ceiling", "delta_fraction"), RowLabel.NOT_COMPUTED),
        (pl.col("delta_fraction") <= 0, RowLabel.CONTROL_EXPLAINED),
        (below, RowLabel.BELOW_CEILING_FRACTION),
    )
    return with_verdict(scores, evidence)


def with_direction(summary: pl.DataFrame) -> pl.DataFrame:
    """Subject-run summary of level 1: whether both deltas are positive; a missing delta has no direction."""
    both = (pl.col("delta_nuisance") > 0) & (pl.col("delta_control") > 0)
    return summary.with_columns(positive_direction=both.fill_null(value=False))


def with_pass_fraction(summary: pl.DataFrame, labelled: pl.DataFrame) -> pl.DataFrame:
    """Subject-run summary of level 2: share of unit rows with a contrast whose evidence passes.

    The share is a number, not a verdict, and so disregards whether the dataset is confirmatory.
    """
    by = [*CONTEXT_KEY, "alignment", "profile"]
    shares = (
        labelled.filter("has_contrast")
        .group_by(by, maintain_order=True)
        .agg(pass_fraction=is_label("evidence", RowLabel.PASS).mean())
    )
    return attach(summary, shares, by)


def failure_modes(labelled: pl.DataFrame) -> pl.DataFrame:
    """Count the rows of level 1 that did not pass, by layer, metric, label and best control."""
    by = ["dataset", "model", "layer", "metric", "label", "best_control"]
    return (
        labelled.filter(~pl.col("gate_pass"))
        .with_columns(pl.col("best_control").fill_null("none"))
        .group_by(by, maintain_order=True)
        .agg(
            n_rows=pl.len().cast(pl.Int64),
            mean_delta_nuisance=pl.col("delta_nuisance").mean(),
            mean_delta_control=pl.col("delta_control").mean(),
        )
        .sort(by)
    )


_STRIP = [*CONTEXT_KEY, "method", "stripped"]
_UPSTREAM = (
    (~pl.col("predictive").fill_null(value=False), RowLabel.NO_PREDICTIVE_CANDIDATE),
    (~pl.col("relational").fill_null(value=False), RowLabel.NO_RELATIONAL_CANDIDATE),
    (pl.col("n_targets") < MIN_TARGETS, RowLabel.INSUFFICIENT_TARGETS),
)
"""Labels that come before any drop: a drop counts only for a claim that passed levels 1 and 2."""


def label_specificity(specificity: pl.DataFrame, upstream: pl.DataFrame) -> pl.DataFrame:
    """Matching drop against none, the mismatch control and other targets, in this order.

    ``upstream`` has one row per layer with the evidence gates ``predictive`` and ``relational``.
    """
    evidence = first_label(
        *_UPSTREAM,
        (~OK | missing("matching_drop", "margin", "mismatch_margin"), RowLabel.NOT_COMPUTED),
        (pl.col("matching_drop") <= 0, RowLabel.STRIPPING_NO_EFFECT),
        (pl.col("mismatch_margin") <= 0, RowLabel.NONSPECIFIC_FEATURE_DEGRADATION),
        (pl.col("margin") <= 0, RowLabel.DIAGONAL_NOT_DOMINANT),
    )
    labelled = with_verdict(attach(specificity, upstream, LAYER_KEY), evidence)
    return labelled.with_columns(selective=(pl.col("margin") > 0).fill_null(value=False))


def label_stripping_deltas(
    deltas: pl.DataFrame, labelled_specificity: pl.DataFrame, upstream: pl.DataFrame
) -> pl.DataFrame:
    """Matching rows take the label of their specificity row; other targets are comparisons and never pass."""
    specificity = labelled_specificity.select(*_STRIP, "n_targets", "matching_drop", specificity=pl.col("evidence"))
    rows = attach(attach(deltas, upstream, LAYER_KEY), specificity, _STRIP)
    matching = pl.col("specificity").fill_null(RowLabel.NOT_COMPUTED.value)
    comparison = first_label(
        *_UPSTREAM,
        (~OK | missing("drop", "matching_drop"), RowLabel.NOT_COMPUTED),
        (pl.col("drop") <= 0, RowLabel.STRIPPING_NO_EFFECT),
        (pl.col("drop") >= pl.col("matching_drop"), RowLabel.DIAGONAL_NOT_DOMINANT),
        (pl.lit(True), RowLabel.NOT_A_MATCHING_TARGET),
    )
    return with_verdict(rows, pl.when("matching").then(matching).otherwise(comparison))


def label_dissociations(dissociations: pl.DataFrame) -> pl.DataFrame:
    """Both matching drops are positive and larger than both crossed ones; a missing drop dissociates nothing."""
    matching = pl.min_horizontal("drop_aa", "drop_bb")
    crossed = pl.max_horizontal("drop_ab", "drop_ba")
    holds = (matching > 0) & (matching > crossed)
    known = ~missing("drop_aa", "drop_ab", "drop_ba", "drop_bb")
    return dissociations.with_columns(double_dissociation=(known & holds).fill_null(value=False))
