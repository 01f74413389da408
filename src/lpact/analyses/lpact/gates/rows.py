"""Row labels of all levels, and what the point rules read: one row of numbers per layer or claim.

Each label is made twice: ``evidence`` reads the numbers alone and feeds the gates; ``label`` is ``diagnostic_only``
wherever the dataset is not confirmatory, so that no such row ever passes.

Sums of floats depend on the order of their terms. Every frame is therefore sorted by its key first, and aggregated
eagerly with ``maintain_order``: Polars' lazy ``group_by`` adds in an order that differs from run to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.codes import Reason, RowLabel
from lpact.errors import TableError, require_known
from lpact.store import validate
from lpact.tables import CONTEXT_KEY, Table

LAYER_KEY = ("dataset", "model", "layer")
"""A claim without its mechanism: all gates but one are evaluated by layer."""
SUBJECT_RUN_KEY = ("subject", "session", "run")

Layer: TypeAlias = tuple[str, str, int]
Claim: TypeAlias = tuple[str, str, int, str]
Row: TypeAlias = dict[str, Any]


def read_measured(tables: Mapping[str, pl.DataFrame], table: Table) -> pl.DataFrame:
    """Return the measured columns of a table, validated and sorted by key; decided columns are dropped."""
    where = "tables given to lpact.analyses.lpact.gates.decide"
    require_known(table.name, tables, "table", where=where, error=TableError)
    decided = [c.name for c in table.columns if c.decided]
    return validate(tables[table.name].drop(decided, strict=False), table.measured())


def most_frequent(frame: pl.DataFrame, by: Sequence[str], column: str) -> pl.DataFrame:
    """Return the most frequent value of ``column`` in each group; ties go to the first in the alphabet.

    Nulls are not counted; a group without any value is absent.
    """
    counts = frame.drop_nulls(column).group_by([*by, column], maintain_order=True).len("_count")
    ranked = counts.sort([*by, "_count", column], descending=[*[False] * len(by), True, False]).select(*by, column)
    return ranked.unique(by, keep="first", maintain_order=True)


def mean_over_subject_runs(frame: pl.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    """Mean over subject-runs of the mean within each, per group of ``by``; nulls are left out.

    ``n_subject_runs`` counts the subject-runs in which the first of ``columns`` has a value.
    """
    within = frame.group_by([*by, *SUBJECT_RUN_KEY], maintain_order=True).agg(pl.col(columns).mean())
    return within.group_by(by, maintain_order=True).agg(
        pl.col(columns).mean(), pl.col(columns[0]).count().cast(pl.Int64).alias("n_subject_runs")
    )


def attach(left: pl.DataFrame, right: pl.DataFrame, on: Sequence[str]) -> pl.DataFrame:
    """Add the columns of ``right`` to ``left``, whose rows and order stay as they are."""
    return left.join(right, on=on, how="left", maintain_order="left")


def attach_all(left: pl.DataFrame, parts: Sequence[pl.DataFrame], on: Sequence[str]) -> dict[tuple[Any, ...], Row]:
    """Attach several frames; return the rows by key."""
    for part in parts:
        left = attach(left, part, on)
    return rows_by_key(left, on)


def rows_by_key(frame: pl.DataFrame, key: Sequence[str]) -> dict[tuple[Any, ...], Row]:
    """Return the rows of a small frame by key."""
    return {tuple(row[name] for name in key): row for row in frame.iter_rows(named=True)}


# --- Row labels -----------------------------------------------------------------------------------

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

OK = pl.col("reason") == Reason.OK.value


def lit(code: RowLabel) -> pl.Expr:
    """Return a label as a plain string."""
    return pl.lit(code.value)


def is_label(column: str, code: RowLabel) -> pl.Expr:
    """Whether a column holds a label."""
    return pl.col(column) == code.value


def missing(*columns: str) -> pl.Expr:
    """Whether any of the numbers is missing."""
    return pl.any_horizontal(pl.col(columns).is_null())


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


REAL = "real"
BOUNDED = (RowLabel.PASS, RowLabel.CONTROL_EXPLAINED, RowLabel.BELOW_CEILING_FRACTION)
"""Evidence labels of rows whose fractions are based on a sufficient reliability."""

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
