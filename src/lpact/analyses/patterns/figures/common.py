"""What figures share: the order of measures, regions and models, names of panels, and how models and verdicts look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.patterns import tables
from lpact.analyses.patterns.config import (
    ALIGNED,
    CANNOT_REJECT,
    EXCLUDED,
    INCONCLUSIVE,
    MEAN,
    NEITHER,
    NO_PATTERN,
    PATTERN_ONLY,
    SCORE_ONLY,
    UNKNOWN,
    models_of,
    options_of,
)
from lpact.report import panels
from lpact.report.figure import Spec
from lpact.report.panels import CROSS, DASH, STAR, Classes, Look
from lpact.report.theme import DIVERGING, colour
from lpact.tables import Table
from lpact.wording import counted, listed, short

VERDICTS = {
    ALIGNED: Look("circle", "pass", "pass", 60),
    PATTERN_ONLY: Look("diamond", "pass", "pass", 60),
    INCONCLUSIVE: Look("circle", "paper", "pass", 60),
    SCORE_ONLY: Look("triangle-up", "fail", "fail", 60),
    NEITHER: Look("triangle-down", "fail", "fail", 60),
    NO_PATTERN: Look(CROSS, None, "muted", 45),
    EXCLUDED: Look(CROSS, None, "fail", 45),
    CANNOT_REJECT: Look("diamond", "paper", "control", 60),
    UNKNOWN: Look(DASH, None, "muted", 45),
}
"""Symbols of verdicts."""
VIEW = ["dataset", "measure"]


def in_order(material: Material, table: Table) -> pl.DataFrame:
    """A table by dataset, measure, region, other region and model, in the order of the study; the mean comes last."""
    options, rows = options_of(material.config), material.table(table.name)
    by: list[pl.Expr] = []
    for column, first in (
        ("dataset", [entry.name for entry in material.config.datasets]),
        ("measure", options.measures),
        ("source_region", options.regions),
        ("region", options.regions),
        ("other", options.regions),
        ("model", models_of(material.config)),
    ):
        if column in rows.columns:
            rank = {name: i for i, name in enumerate(first)}
            at = pl.col(column).replace_strict(rank, default=len(first), return_dtype=pl.Int64)
            by += [pl.col(column) == MEAN] if column == "region" else []
            by += [at, pl.col(column)]
    return rows.sort(by, maintain_order=True)


def views(rows: pl.DataFrame, *by: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Rows of every dataset and measure (or other columns), with their name."""
    several = rows["dataset"].n_unique() > 1
    for own in rows.partition_by(by or VIEW, maintain_order=True):
        parts = [short(own[key][0], 24) for key in by or VIEW if key != "dataset" or several]
        yield " · ".join(parts), own


def by_region(rows: pl.DataFrame, column: str = "region") -> list[tuple[str, str, pl.DataFrame]]:
    """Rows of every region, with the name of their dataset and measure, and with their own."""
    return [
        (name, own[column][0], own)
        for name, view in views(rows)
        for own in view.partition_by(column, maintain_order=True)
    ]


def sections(made: Sequence[tuple[str, alt.LayerChart]], columns: int, **spacing: Any) -> list[alt.ConcatChart]:
    """Panels below the name of their dataset and measure."""
    return [
        panels.grid(
            [chart for own, chart in made if own == name],
            columns,
            title=panels.title(name),
            **spacing,
        )
        for name in dict.fromkeys(name for name, _ in made)
    ]


def alike(rows: pl.DataFrame, of: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Rows that agree with some row of another table on dataset, measure and further columns."""
    return rows.join(of, on=[*VIEW, *by], how="semi", maintain_order="left")


def names(rows: pl.DataFrame, column: str) -> list[str]:
    """Values of a column, once each, in the order of the rows."""
    return rows[column].unique(maintain_order=True).to_list()


def models_by_rank(material: Material) -> list[str]:
    """Models without the untrained twins of others, by their mean rank over measures and datasets."""
    twins = set(options_of(material.config).untrained.values())
    ranked = in_order(material, tables.RANKING).filter(pl.col("region") == MEAN, ~pl.col("model").is_in(twins))
    ranked = ranked.group_by("model", maintain_order=True).agg(pl.col("rank").mean())
    return names(ranked.sort("rank", nulls_last=True, maintain_order=True), "model")


def nothing(material: Material) -> str:
    """Why there is nothing to draw."""
    details = names(material.table(tables.UNAVAILABLE.name), "detail")
    return f"nothing could be compared: {listed(details, 3, '; ') or 'no regions'}"


CORRELATION = Classes(DIVERGING, (-0.8, -0.5, -0.2, 0.2, 0.5, 0.8))
"""Classes of correlations and of their differences."""


def stars(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Look]]:
    """Models equivalent to the best, and their stars; over cells in the cells' ``ink``."""
    rows = rows.filter(pl.col("equivalent") | pl.col("equivalent_in_paper"))
    strong = rows["ink"] == colour("on_strong") if "ink" in rows.columns else [False] * rows.height
    return rows, [
        Look(STAR, edge if own else None, edge, 44)
        for own, edge in zip(rows["equivalent"], ["paper" if own else "ink" for own in strong], strict=True)
    ]


STAR_KEY = (
    ("equivalent to the best (paired test)", Look(STAR, "ink", "ink", 44)),
    ("only as in the paper", Look(STAR, None, "ink", 44)),
)


def region_lanes(field: str, regions: Iterable[str], **more: Any) -> Spec:
    """A channel with one narrow band per region, with upright names."""
    look: Spec = {
        "labelAngle": -90,
        "labelBaseline": "middle",
        "labelAlign": "right",
        "labelPadding": 4,
    }
    return panels.lanes(field, regions, limit=90, **(look | more))


def drawn_of(n: int, every: int, what: str, which: str = "") -> str:
    """A sentence about what is not drawn; empty if everything is."""
    return f"{which}{n} of {counted(every, what)} are drawn; the tables have all." if n < every else ""
