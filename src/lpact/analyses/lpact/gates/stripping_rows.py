"""Row labels of level 3: a drop means something only for a claim that passed levels 1 and 2."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.gates._frames import LAYER_KEY, attach
from lpact.analyses.lpact.gates.point_rules.mechanism import MIN_TARGETS
from lpact.analyses.lpact.gates.rows import OK, lit, missing, with_verdict
from lpact.codes import RowLabel
from lpact.tables import CONTEXT_KEY

_STRIP = [*CONTEXT_KEY, "method", "stripped"]


def label_specificity(specificity: pl.DataFrame, upstream: pl.DataFrame) -> pl.DataFrame:
    """Matching drop against none, the mismatch control and other targets, in this order.

    ``upstream`` has one row per layer with the evidence gates ``predictive`` and ``relational``.
    """
    labelled = with_verdict(
        attach(specificity, upstream, LAYER_KEY),
        _upstream_labels()
        .when(~OK | missing("matching_drop", "margin", "mismatch_margin"))
        .then(lit(RowLabel.NOT_COMPUTED))
        .when(pl.col("matching_drop") <= 0)
        .then(lit(RowLabel.STRIPPING_NO_EFFECT))
        .when(pl.col("mismatch_margin") <= 0)
        .then(lit(RowLabel.NONSPECIFIC_FEATURE_DEGRADATION))
        .when(pl.col("margin") <= 0)
        .then(lit(RowLabel.DIAGONAL_NOT_DOMINANT))
        .otherwise(lit(RowLabel.PASS)),
    )
    return labelled.with_columns(selective=(pl.col("margin") > 0).fill_null(value=False))


def label_stripping_deltas(
    deltas: pl.DataFrame, labelled_specificity: pl.DataFrame, upstream: pl.DataFrame
) -> pl.DataFrame:
    """Matching rows take the label of their specificity row; other targets are comparisons and never pass."""
    specificity = labelled_specificity.select(
        *_STRIP, "n_targets", "matching_drop", specificity=pl.col("evidence")
    )
    rows = attach(attach(deltas, upstream, LAYER_KEY), specificity, _STRIP)
    matching = pl.col("specificity").fill_null(RowLabel.NOT_COMPUTED.value)
    comparison = (
        _upstream_labels()
        .when(~OK | missing("drop", "matching_drop"))
        .then(lit(RowLabel.NOT_COMPUTED))
        .when(pl.col("drop") <= 0)
        .then(lit(RowLabel.STRIPPING_NO_EFFECT))
        .when(pl.col("drop") >= pl.col("matching_drop"))
        .then(lit(RowLabel.DIAGONAL_NOT_DOMINANT))
        .otherwise(lit(RowLabel.NOT_A_MATCHING_TARGET))
    )
    return with_verdict(rows, pl.when("matching").then(matching).otherwise(comparison))


def _upstream_labels() -> pl.expr.whenthen.ChainedThen:
    """Labels that come before any drop is looked at."""
    return (
        pl.when(~pl.col("predictive").fill_null(value=False))
        .then(lit(RowLabel.NO_PREDICTIVE_CANDIDATE))
        .when(~pl.col("relational").fill_null(value=False))
        .then(lit(RowLabel.NO_RELATIONAL_CANDIDATE))
        .when(pl.col("n_targets") < MIN_TARGETS)
        .then(lit(RowLabel.INSUFFICIENT_TARGETS))
    )


def label_dissociations(dissociations: pl.DataFrame) -> pl.DataFrame:
    """Both matching drops are positive and larger than both crossed ones; a missing drop dissociates nothing."""
    matching = pl.min_horizontal("drop_aa", "drop_bb")
    crossed = pl.max_horizontal("drop_ab", "drop_ba")
    holds = (matching > 0) & (matching > crossed)
    known = ~missing("drop_aa", "drop_ab", "drop_ba", "drop_bb")
    return dissociations.with_columns(double_dissociation=(known & holds).fill_null(value=False))
