"""Matrices: models that are equivalent to the best of each region, and how alike the regions' patterns are."""

from __future__ import annotations

from itertools import pairwise

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.patterns import tables
from lpact.analyses.patterns.config import MEAN
from lpact.analyses.patterns.figures import common
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import BOX, Look
from lpact.report.theme import SERIES, colour
from lpact.wording import enumerated, fixed, listed, short

MOST_MODELS, MOST_MEASURES = 30, len(SERIES)
CELL, STEP = 30, 17
SQUARES, MOST_WORDS = 250, 8
"""Pixels of a matrix of regions; regions up to which cells have numbers."""


@figure(
    "equivalence",
    "Which models are equivalent to the best, and by which measure?",
    tables.RANKING,
    tables.CLASSES,
)
def equivalence(material: Material) -> Drawing | str:
    """A matrix of models and regions with a bar per measure, and counts below."""
    every = common.in_order(material, tables.RANKING)
    every = every.filter(pl.col("measure").is_in(common.names(every, "measure")[:MOST_MEASURES]))
    if not (every["equivalent"] | every["equivalent_in_paper"]).any():
        return common.nothing(material)
    roles = dict(zip(common.names(every, "measure"), SERIES, strict=False))
    classes = common.in_order(material, tables.CLASSES)
    made, said, drawn = [], [], set[str]()
    for name, rows in common.views(every, "dataset"):
        models = _most_often_best(rows)[:MOST_MODELS]
        drawn |= set(models)
        chart = panels.stacked(
            _who(rows, models, roles),
            _how_many(classes.filter(dataset=rows["dataset"][0]), roles),
            spacing=10,
        )
        made.append(panels.grid([chart], 1, title=panels.title(name)) if name else chart)
        said += [
            f"{name or 'By'} {measure}: on average {fixed(own, 1)} models per region are equivalent to the best."
            for measure, own in classes.filter(pl.col("region") != MEAN, dataset=rows["dataset"][0])
            .group_by("measure", maintain_order=True).agg(pl.col("n_equivalent").mean()).rows()
        ]  # fmt: skip
    key = panels.key(
        *((f"equivalent by {short(measure, 24)}", Look(BOX, role, role, 110)) for measure, role in roles.items()),
        ("only as in the paper", Look(BOX, "paper", "ink", 110)),
        ("neither", Look(BOX, "band", "band", 110)),
    )
    caption = [
        "Filled: the measure cannot tell the model from the best one of the region (paired t-tests, corrected for "
        "the search). Outlined: equivalent only by the rule of Hoefling et al. (2026), the interval of the best model.",
        "On the right: in how many regions. Below: how many models are equivalent, and the share of pairs of models "
        "with different scores.",
        common.drawn_of(len(drawn), every["model"].n_unique(), "model", "Equivalent somewhere: "),
    ]
    return panels.stacked(key, *made), caption, listed(said, 6, " ")


def _most_often_best(rows: pl.DataFrame) -> list[str]:
    """Models that are equivalent to the best somewhere, by how often, then by their mean rank."""
    counts = rows.group_by("model", maintain_order=True).agg(
        pl.col("equivalent", "equivalent_in_paper").sum(), pl.col("rank").mean()
    )
    counts = counts.filter(pl.col("equivalent") + pl.col("equivalent_in_paper") > 0)
    keys = ["equivalent", "equivalent_in_paper", "rank"]
    return common.names(counts.sort(keys, descending=[True, True, False], maintain_order=True), "model")


def _who(rows: pl.DataFrame, models: list[str], roles: dict[str, str]) -> alt.LayerChart:
    """Cells with a bar per measure: filled, outlined or empty."""
    rows = rows.filter(pl.col("model").is_in(models))
    text = (
        "{region}, {model}, {measure}: [rank {rank}][, equivalent to the best{equivalent}]"
        "[, equivalent as in the paper{equivalent_in_paper}]"
    )
    rows = with_marks(rows.with_columns(n=pl.col("equivalent").cast(pl.Int64)), text, "n")
    paint = pl.col("measure").replace_strict({name: colour(role) for name, role in roles.items()})
    band, regions = pl.lit(colour("band")), common.names(rows, "region")
    either = pl.col("equivalent") | pl.col("equivalent_in_paper")
    rows = rows.with_columns(
        fill=pl.when("equivalent")
        .then(paint)
        .when("equivalent_in_paper")
        .then(pl.lit(colour("paper")))
        .otherwise(band),
        stroke=pl.when(either).then(paint).otherwise(band),
    )
    x, y = (
        common.region_lanes("region", regions, orient="top", labelAlign="left"),
        panels.lanes("model", models, limit=150),
    )
    y["scale"] |= {"paddingInner": 0.2}
    of_regions = rows.filter(pl.col("region") != MEAN).group_by("model", "measure", maintain_order=True)
    numbers = of_regions.agg(pl.col("equivalent").sum().cast(pl.String))
    counts = numbers.group_by("model", maintain_order=True).agg(said=pl.col("equivalent").str.join(" · "))
    width = CELL * len(regions)
    offset = {"field": "measure", "type": "nominal", "sort": None,
              "scale": {"domain": list(roles), "paddingInner": 0.12, "paddingOuter": 0.12}}  # fmt: skip
    return panels.overlay(
        panels.layer(rows, "rect", {"strokeWidth": 1.2}, x=x, y=y, xOffset=offset, fill=panels.own("fill"),
                     stroke=panels.own("stroke")),
        panels.text(counts, "said", {"value": width + 10}, y, size=9, ink="muted"),
        width=width,
        step=STEP,
    )  # fmt: skip


def _how_many(classes: pl.DataFrame, roles: dict[str, str]) -> alt.LayerChart:
    """How many models are equivalent, and how many pairs differ, per measure and region."""
    classes = classes.filter(pl.col("measure").is_in(list(roles)))
    apart = [f"{fixed(100 * k / n, 0)} %" if n else "–" for k, n in classes.select("n_pairs_apart", "n_pairs").rows()]
    classes = classes.with_columns(
        equivalent=pl.col("n_equivalent").cast(pl.String), apart=pl.Series(apart, dtype=pl.String)
    )
    parts = [
        with_marks(classes.with_columns(lane=f"{words}, " + pl.col("measure"), said=column), text, value)
        for words, column, value, text in (
            ("equivalent", "equivalent", "n_equivalent",
             "{region}, {measure}: {n_equivalent} of {n_models} equivalent, {n_equivalent_in_paper} as in the paper"),
            ("pairs apart", "apart", "n_pairs_apart",
             "{region}, {measure}: {n_pairs_apart} of {n_pairs:pair} differ"),
        )
    ]  # fmt: skip
    rows = pl.concat(parts)
    regions = common.names(rows, "region")
    x = panels.lanes("region", regions, shown=False)
    y = panels.lanes("lane", common.names(rows, "lane"), limit=150)
    said = panels.text(rows, "said", x, y, size=9, align="center")
    return panels.overlay(said, width=CELL * len(regions), step=STEP)


@figure("confusion", "Does every region have its own pattern?", tables.CONFUSION)
def confusion(material: Material) -> Drawing | str:
    """Similarity of the patterns of all pairs of regions by every measure, and the difference of the first two."""
    rows = common.in_order(material, tables.CONFUSION)
    if rows["similarity"].is_null().all():
        return common.nothing(material)
    parts = list(common.views(rows))
    pairs = [
        (f"{name} − {other['measure'][0]}", _difference(own, other))
        for (name, own), (_, other) in pairwise(parts)
        if own["dataset"][0] == other["dataset"][0] and own["measure"][0] == rows["measure"][0]
    ]
    made = [_squares(name, own) for name, own in [*parts, *pairs]]
    said = [
        f"{name}: patterns of different regions correlate by {fixed(_between(own))} on average." for name, own in parts
    ]
    words = "correlation, or difference of correlations" if pairs else "correlation"
    key = panels.key(panels.class_entry(words, common.CORRELATION))
    caption = {
        "Correlation of the mean alignment patterns of brains, for all pairs of regions. Where it is high everywhere, "
        "reproducing the pattern of a region says little about the region.": True,
        f"To the right or below: {enumerated([name for name, _ in pairs])}.": pairs,
        "Grey: not defined.": rows["similarity"].null_count(),
    }
    return panels.stacked(key, panels.grid(made, 3)), caption, listed(said, 6, " ")


def _between(rows: pl.DataFrame) -> float | None:
    """Mean over pairs of different regions."""
    mean = rows.filter(pl.col("region") != pl.col("other"))["similarity"].mean()
    return mean if isinstance(mean, float) else None


def _difference(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Similarity by the first measure minus that by the second."""
    both = a.join(b, on=["dataset", "region", "other"], suffix="_b", maintain_order="left")
    return both.select(
        "dataset",
        "region",
        "other",
        measure=pl.format("{} − {}", "measure", "measure_b"),
        similarity=pl.col("similarity") - pl.col("similarity_b"),
    )


def _squares(name: str, rows: pl.DataFrame) -> alt.LayerChart:
    """A square per pair of regions, with its number where there are few."""
    regions = common.names(rows, "region")
    said = [fixed(value, 2) for value in rows["similarity"]] if len(regions) <= MOST_WORDS else [""] * rows.height
    rows = with_marks(
        common.CORRELATION.paint(rows, "similarity"),
        "{measure}, {region} and {other}: {similarity}",
        "similarity",
    )
    rows = rows.with_columns(said=pl.Series(said))
    x, y = (
        common.region_lanes("other", regions),
        panels.lanes("region", regions, limit=80, labelPadding=4),
    )
    side = max(SQUARES, 11 * len(regions))
    label = "said" if len(regions) <= MOST_WORDS else ""
    squares = panels.cells(rows, x, y, label=label, size=9)
    return panels.overlay(*squares, width=side, height=side, title=panels.panel_title(name, side))
