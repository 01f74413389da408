"""Flags and counts of the source audit, one row a dataset."""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    FINDINGS,
    RELIABILITY_MODES,
    UNIT_INVENTORY,
)


def rows_of(material: Material) -> pl.DataFrame:
    """One row a dataset: flags and counts of the audit.

    ``n_words`` counts words of distinct stimuli; ``n_controls`` controls available in at least one layer, out of
    ``n_controls_asked``; ``n_modes`` reliability modes that are possible, out of ``n_modes_asked``; ``predictive`` and
    ``ceiling`` are usable subject-runs with features, and the most recordings that any mode can pair.
    """
    audit = material.table(EVIDENCE_FEASIBILITY.name).sort("dataset")
    return (
        audit.join(_recordings(material), on="dataset", how="left")
        .join(_controls(material), on="dataset", how="left")
        .join(_modes(material), on="dataset", how="left")
        .join(_findings(material), on="dataset", how="left")
        .with_columns(
            predictive=pl.when("has_features").then("n_subject_runs").otherwise(0),
            relational="n_relational_runs",
            stripping="n_stripping_runs",
        )
        .with_columns(
            pl.col(
                "n_words",
                "n_events",
                "n_events_excluded",
                "n_units_excluded",
                "n_controls",
                "n_controls_asked",
                "n_modes",
                "n_modes_asked",
                "ceiling",
                "n_excluded",
                "n_notes",
            ).fill_null(0)
        )
        .sort("dataset")
    )


def _recordings(material: Material) -> pl.DataFrame:
    used = material.table(UNIT_INVENTORY.name).filter("used")
    stimuli = used.unique(("dataset", "stimulus"), keep="first", maintain_order=True)
    n_words = stimuli.group_by("dataset").agg(pl.col("n_words").sum())
    sizes = used.group_by("dataset").agg(
        pl.col("n_events", "n_events_excluded").sum(),
        n_units_excluded=(pl.col("n_units") - pl.col("n_units_used")).sum(),
    )
    return n_words.join(sizes, on="dataset")


def _controls(material: Material) -> pl.DataFrame:
    return (
        material.table(CONTROL_AVAILABILITY.name)
        .group_by("dataset", "control")
        .agg(pl.col("available").any())
        .group_by("dataset")
        .agg(
            n_controls=pl.col("available").sum().cast(pl.Int64),
            n_controls_asked=pl.len().cast(pl.Int64),
        )
    )


def _modes(material: Material) -> pl.DataFrame:
    possible = pl.col("possible")
    return (
        material.table(RELIABILITY_MODES.name)
        .sort("dataset", "mode")
        .group_by("dataset", maintain_order=True)
        .agg(
            n_modes=possible.sum().cast(pl.Int64),
            n_modes_asked=pl.len().cast(pl.Int64),
            ceiling=pl.col("n_recordings").filter(possible).max(),
            modes=pl.col("mode").filter(possible).str.join(", "),
        )
    )


def _findings(material: Material) -> pl.DataFrame:
    severity = pl.col("severity")
    return (
        material.table(FINDINGS.name)
        .group_by("dataset")
        .agg(
            n_excluded=(severity == "excluded").sum().cast(pl.Int64),
            n_notes=(severity == "note").sum().cast(pl.Int64),
        )
    )
