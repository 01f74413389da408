"""Models by their scores, with ceilings, and those that are equivalent to the best."""

from __future__ import annotations

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.patterns import tables
from lpact.analyses.patterns.config import MEAN, options_of
from lpact.analyses.patterns.figures import common
from lpact.analyses.patterns.figures.common import VIEW
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import BROKEN, LINE, TICK, Classes, Entry, Look
from lpact.report.theme import RAMP
from lpact.wording import counted, enumerated, fixed, listed, percent

MOST_MODELS, MOST_REGIONS = 22, 4
"""Models of a panel, and regions that have panels of their own."""
WIDTH, STEP, CELL = 236, 17, 20
SUBJECT, SCORE = Look("circle", "muted", "muted", 10, 0.6), Look(TICK, None, "ink", 60)
OF_PAIRS = Classes(RAMP, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
"""Classes of scores as fractions of the ceiling of pairs; the last one reaches it."""
CEILINGS = {
    "pairwise": ("one other brain", LINE, ()),
    "leave_one_out_mean": ("mean of the other brains", BROKEN, (4, 3)),
}
"""Ceilings that are drawn: what predicts a brain, symbol in the key, and dashes."""


@figure(
    "ranking",
    "Which models have the highest scores, and how far are they from brains?",
    tables.RANKING,
    tables.SCORES,
    tables.CEILINGS,
    tables.CEILING_VALUES,
)
def ranking(material: Material) -> Drawing | str:
    """Scores with subjects and ceilings: the mean over regions next to all regions, then some regions."""
    every = common.in_order(material, tables.RANKING)
    if every["mean"].is_null().all():
        return common.nothing(material)
    ranked = every.sort("rank", nulls_last=True, maintain_order=True)
    subjects = _with_mean(material.table(tables.SCORES.name), "value", "model", "target").drop_nulls("value")
    ceilings = material.table(tables.CEILINGS.name).filter(pl.col("ceiling").is_in(list(CEILINGS)))
    values = material.table(tables.CEILING_VALUES.name).filter(pl.col("ceiling").is_in(list(CEILINGS)))
    lacking = sorted({detail for detail in values["detail"] if detail})
    ceilings = _with_mean(ceilings, "mean", "ceiling", "in_paper", "in_rsatoolbox").drop_nulls("mean")
    regions = [name for name in common.names(every, "region") if name != MEAN]
    alone = regions if len(regions) <= MOST_REGIONS else _most_different(every)
    made, said = [], []
    for name, view in common.views(every):
        own = common.alike(ranked, view)
        drawn = [own.filter(region=region).head(MOST_MODELS) for region in (MEAN, *alone)]
        shown = pl.concat(drawn)
        scored, limits = (
            common.alike(subjects, shown, "region", "model"),
            common.alike(ceilings, shown, "region"),
        )
        ends = [frame[end] for frame in (shown, limits) for end in ("low", "high", "mean")]
        reach = panels.domain(scored["value"], *ends)
        first, *others = (_scores(rows, scored, limits, reach) for rows in drawn)
        top = panels.side_by_side(first, _matrix(view, drawn[0]), spacing=24)
        made.append(panels.stacked(top, panels.grid(others, 2), title=panels.title(name), spacing=22))
        said.append(_said(name, drawn[0]))
    level, n = percent(1 - options_of(material.config).alpha), every["model"].n_unique()
    caption = {
        f"Dots are subjects, black marks their mean with its {level} interval. Green: ceilings, how well brains "
        "predict a brain (shaded: interval, of single regions). Stars: models that may be the best one.": True,
        "Squares are mean scores as fractions of the ceiling of one other brain: the darkest reach it; grey: no "
        "fraction.": True,
        f"Among {len(regions)} regions, those where most and where fewest models are equivalent to the best have "
        "their own panels.": len(alone) < len(regions),
        f"Ceilings are missing: {listed(lacking, 3, '; ')}.": lacking,
        common.drawn_of(MOST_MODELS, n, "model", "The best "): True,
    }
    return panels.stacked(_key(ceilings), *made, spacing=30), caption, listed(said, 6, " ")


def _with_mean(rows: pl.DataFrame, value: str, *by: str) -> pl.DataFrame:
    """Rows, and their means over the regions that have any value; null where one of these has none."""
    known = rows.filter(pl.col(value).is_not_null().any().over([*VIEW, "region"]))
    whole = pl.when(pl.col(value).is_not_null().all()).then(pl.col(value).mean())
    means = known.group_by([*VIEW, *by], maintain_order=True).agg(whole.alias(value))
    return pl.concat([rows, means.with_columns(region=pl.lit(MEAN))], how="diagonal")


def _most_different(rows: pl.DataFrame) -> list[str]:
    """The regions with most and with fewest models that are equivalent to the best."""
    found = rows.filter(pl.col("region") != MEAN).group_by("region", maintain_order=True)
    counts = found.agg(pl.col("equivalent").sum()).sort("equivalent", maintain_order=True)
    return [region for region in common.names(rows, "region") if region in (counts["region"][-1], counts["region"][0])]


def _scores(
    rows: pl.DataFrame, subjects: pl.DataFrame, ceilings: pl.DataFrame, reach: tuple[float, float]
) -> alt.LayerChart:
    """Models of one place, the best on top."""
    region = rows["region"][0]
    text = (
        "{measure}, {region}, {model}: mean {mean}[ ({low} to {high})][, rank {rank}]"
        "[, equivalent to the best{equivalent}][, equivalent as in the paper{equivalent_in_paper}]"
        "[; {fraction_of_pairwise:2} of pairs of brains]"
    )
    rows = with_marks(rows, text, "mean")
    dots = common.alike(subjects, rows, "region", "model")
    dots = with_marks(dots, "{measure}, {region}, {model}, subject {target}: {value}", "value")
    ceilings, words = (
        common.alike(ceilings, rows, "region"),
        "{measure}, {region}, ceiling {ceiling}",
    )
    ceilings = with_marks(ceilings, words + ": {mean}[ ({low} to {high})]", "mean")
    known = rows.drop_nulls("mean")
    x = panels.axis("mean", "score", reach, ticks=5)
    y = panels.lanes("model", rows["model"], limit=120)
    best, looks = common.stars(known.drop("mark"))
    name = "mean over regions" if region == MEAN else region
    band = {"fill": "brain", "opacity": 0.13}
    return panels.overlay(
        panels.layer(ceilings.drop("mark").drop_nulls("low"), "rect", band, x={**x, "field": "low"}, x2="high"),
        *(
            panels.layer(ceilings.filter(ceiling=name), "rule", {"color": "brain", "strokeWidth": 1.5,
                         "strokeDash": list(dash)}, x=x)
            for name, (_, _, dash) in CEILINGS.items()
        ),
        panels.points(dots, {**x, "field": "value"}, y, SUBJECT, thick=0),
        panels.intervals(known.drop("mark"), "x", y, x),
        panels.points(known, x, y, SCORE, thick=2.5),
        *panels.notes(rows.filter(pl.col("mean").is_null()).with_columns(words=pl.lit("no score")), "words",
                      {"value": 8}, y),
        panels.points(best, {"value": WIDTH + 10}, y, looks, thick=1),
        width=WIDTH,
        step=STEP,
        title=panels.panel_title(name, WIDTH),
    )  # fmt: skip


def _matrix(view: pl.DataFrame, first: pl.DataFrame) -> alt.LayerChart:
    """Every region next to the lanes of the mean over regions."""
    rows = common.alike(view, first, "model").filter(pl.col("region") != MEAN)
    text = "{measure}, {region}, {model}: {fraction_of_pairwise:2} of pairs of brains, mean {mean}[, rank {rank}]"
    cells = with_marks(OF_PAIRS.paint(rows, "fraction_of_pairwise"), text, "fraction_of_pairwise")
    regions = common.names(rows, "region")
    x, y = (
        common.region_lanes("region", regions),
        panels.lanes("model", first["model"], shown=False),
    )
    best, looks = common.stars(cells.drop("mark"))
    return panels.overlay(
        *panels.cells(cells, x, y),
        panels.points(best, x, y, looks, thick=1),
        width=CELL * len(regions),
        step=STEP,
        title=panels.panel_title("every region", max(CELL * len(regions), 80)),
    )


def _key(ceilings: pl.DataFrame) -> alt.LayerChart:
    """Symbols; the ceilings have the names of the paper and of rsatoolbox."""
    entries: list[Entry] = [
        ("mean", SCORE),
        ("one subject", SUBJECT.changed(size=30)),
        *common.STAR_KEY,
    ]
    for name, (words, symbol, _) in CEILINGS.items():
        own = ceilings.filter(ceiling=name).head(1)
        called = [
            f"{whose}: {own[column][0]}"
            for column, whose in (("in_paper", "paper"), ("in_rsatoolbox", "rsatoolbox"))
            if own.height and own[column][0]
        ]
        also = f" ({', '.join(called)})" if called else ""
        entries.append((f"ceiling: {words}{also}", Look(symbol, None, "brain", 120)))
    bounds = [f"{bound:g}" for bound in OF_PAIRS.bounds]
    return panels.key(*entries, ("fraction of one other brain", OF_PAIRS, bounds))


def _said(name: str, rows: pl.DataFrame) -> str:
    """The best model, and how many are equivalent to it."""
    known = rows.drop_nulls("mean")
    if known.is_empty():
        return f"{name}: no model has a score in every region."
    best, value = known.select("model", "mean").row(0)
    others = [model for model in known.filter("equivalent")["model"] if model != best]
    also = f", equivalent to it {enumerated(others[:5])}" if others else ""
    more = f" and {counted(len(others) - 5, 'other')}" if len(others) > 5 else ""
    return f"{name}, mean over regions: {best} has the highest score ({fixed(value)}){also}{more}."
