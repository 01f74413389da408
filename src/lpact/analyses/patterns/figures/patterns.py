"""Alignment patterns of every region: lines of brains and models, and how similar they are."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.patterns import tables
from lpact.analyses.patterns.config import EXCLUDED, options_of
from lpact.analyses.patterns.figures import common
from lpact.analyses.patterns.figures.common import VERDICTS
from lpact.analyses.patterns.summaries import BRAIN, BRAINS, MODEL
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.panels import BOX, BROKEN, LINE, TICK, Look
from lpact.report.theme import SERIES
from lpact.wording import fixed, listed, percent, short, spoken

MOST_MODELS, MOST_PANELS, MOST_MARKS = 4, 40, 1500
FEWEST_LANES, MOST_LANES = 7, 240
"""Lanes of a panel of similarities, and of all panels."""
WIDTH, HEIGHT = 196, 100
"""Of lines."""
BOX_WIDTH, STEP = 170, 16


@figure(
    "pattern_lines",
    "How do regions, and models of them, relate to all regions?",
    tables.PATTERNS,
    tables.RANKING,
)
def pattern_lines(material: Material) -> Drawing | str:
    """A panel per measure and source region: brains with their interval, the best models and their untrained twins."""
    rows = common.in_order(material, tables.PATTERNS).drop_nulls("mean")
    if rows.is_empty():
        return common.nothing(material)
    twins, best = options_of(material.config).untrained, common.models_by_rank(material)
    models = best[:MOST_MODELS]
    looks = {name: Look(LINE, None, role, 120) for name, role in zip(models, SERIES, strict=False)}
    looks |= {twins[name]: looks[name].changed(shape=BROKEN) for name in models if name in twins}
    brain = pl.col("kind") == BRAIN
    rows = rows.filter(brain | pl.col("source").is_in(list(looks)))
    found, rich = common.by_region(rows, "source_region"), rows.height <= MOST_MARKS
    made, said = [], []
    for name, region, own in found[:MOST_PANELS]:
        alike = common.alike(rows, own)
        ends = panels.domain(alike["mean"], *(alike.filter(brain)[end] for end in ("low", "high")))
        made.append((name, _lines(region, own, looks, ends, rich=rich)))
        said.append(_likest(f"{name}, {region}", own.filter(brain)))
    key = panels.key(
        ("brains", Look(LINE, None, "brain", 120)),
        *((short(name, 24), looks[name]) for name in models),
        *([("untrained twin", Look(BROKEN, None, "muted", 120))] if len(looks) > len(models) else []),
        ("own region", Look(BOX, "grid", "grid", 110)),
    )
    level = percent(1 - options_of(material.config).alpha)
    caption = [
        f"Alignment patterns: mean scores of a region of other subjects (with their {level} interval), and of models, "
        "for every region of a subject. Models are drawn at the layer chosen for the source region, with noise like "
        "that of brains where it is known.",
        common.drawn_of(len(models), len(best), "model", "The best "),
        common.drawn_of(len(made), len(found), "panel"),
    ]
    return panels.stacked(key, *common.sections(made, 4, spacing=16)), caption, listed(said, 6, " ")


def _likest(name: str, brains: pl.DataFrame) -> str:
    """The regions that brains' scores are highest for."""
    rows = brains.sort("mean", descending=True, maintain_order=True).select("region", "mean")
    return f"{name}: brains predict best {', '.join(f'{who} ({fixed(value)})' for who, value in rows.head(3).rows())}."


def _lines(
    name: str,
    rows: pl.DataFrame,
    looks: Mapping[str, Look],
    ends: tuple[float, float],
    *,
    rich: bool,
) -> alt.LayerChart:
    """One source region; without ``rich`` only brains have dots."""
    text = "{measure}, {source} of {source_region} → {region}: {mean}[ ({low} to {high})]"
    rows = with_marks(rows, text, "mean")
    brains, regions = rows.filter(kind=BRAIN), common.names(rows, "region")
    x = common.region_lanes("region", regions, labelFontSize=min(10, WIDTH // len(regions) - 1))
    y = panels.axis("mean", None, ends, ticks=3, grid=True)
    drawn = []
    for source, look in looks.items():
        own, broken = rows.filter(kind=MODEL, source=source), look.shape == BROKEN
        path: Spec = {
            "color": look.edge,
            "strokeWidth": 1.4,
            "strokeDash": [4, 3] if broken else [],
        }
        drawn.append(panels.layer(own.drop("mark"), "line", path, x=x, y=y))
        dot = Look("circle", "paper" if broken else look.edge, look.edge, 14)
        drawn += [panels.points(own, x, y, dot)] if rich else []
    own_region = pl.DataFrame({"region": rows["source_region"].head(1)})
    interval = {"fill": "brain", "opacity": 0.18}
    return panels.overlay(
        panels.layer(own_region, "rect", {"fill": "grid", "opacity": 0.6}, x=x),
        panels.reference(0, "y"),
        panels.layer(brains.drop("mark").drop_nulls(["low", "high"]), "area", interval, x=x, y={**y, "field": "low"},
                     y2="high"),
        *drawn,
        panels.layer(brains.drop("mark"), "line", {"color": "brain", "strokeWidth": 2}, x=x, y=y),
        panels.points(brains, x, y, Look("circle", "brain", "brain", 16)),
        width=WIDTH,
        height=HEIGHT,
        title=panels.panel_title(name, WIDTH),
    )  # fmt: skip


@figure(
    "pattern_similarity",
    "Are models' patterns as similar to those of brains as brains' patterns are?",
    tables.SIMILARITIES,
    tables.CLAIMS,
)
def pattern_similarity(material: Material) -> Drawing | str:
    """Boxes of brains, models and their untrained twins, with their verdicts, per measure and region."""
    rows = common.in_order(material, tables.SIMILARITIES).rename({"similarity_without_source": "value"})
    if rows["value"].is_null().all():
        return common.nothing(material)
    claims, twins = common.in_order(material, tables.CLAIMS), options_of(material.config).untrained
    found = common.by_region(rows)
    drawn = found[:MOST_PANELS]
    lanes = max(FEWEST_LANES, MOST_LANES // len(drawn)) - 1
    models = _with_twins(common.models_by_rank(material), twins, lanes)
    reach = panels.domain(rows.filter((pl.col("kind") == BRAIN) | pl.col("source").is_in(models))["value"])
    made, said = [], []
    for name, region, own in drawn:
        verdicts = common.alike(claims, own, "region").select("model", "label", "similarity", "similarity_of_brains")
        made.append((name, _boxes(region, own, verdicts, models, set(twins.values()), reach)))
        said.append(_how_similar(f"{name}, {region}", verdicts))
    labels = claims.filter(pl.col("model").is_in(models))["label"]
    key = panels.key(
        ("half of the values, median", Look(BOX, "ramp1", "muted", 110)),
        *([("untrained twin", Look(BOX, "paper", "muted", 110))] if {*twins.values()} & {*models} else []),
        ("one subject", Look("circle", "ink", "ink", 12, 0.7)),
        *panels.entries(VERDICTS, labels),
    )
    caption = {
        "Correlation of the alignment pattern of another brain, or of a model, with the mean pattern of pairs of "
        "brains without it and without the target. Boxes: quartiles; lines: range; dots: subjects as targets.": True,
        "Symbols to the right are verdicts on models. Excluded models have no box.": True,
        common.drawn_of(len(models), claims["model"].n_unique(), "model"): True,
        common.drawn_of(len(drawn), len(found), "panel"): True,
    }
    return (
        panels.stacked(key, *common.sections(made, 3, spacing={"row": 12, "column": 24})),
        caption,
        listed(said, 6, " "),
    )


def _with_twins(models: list[str], twins: Mapping[str, str], most: int) -> list[str]:
    """The best models, each before its untrained twin, and the best one that has a twin; other twins are left out."""
    kept: list[str] = []
    pair = next(([name, twins[name]] for name in models if name in twins), [])
    for name in models:
        both = [name, twins[name]] if name in twins else [name]
        if len({*kept, *both, *pair}) > most:
            break
        kept += [own for own in both if own not in kept]
    return [*kept, *(own for own in pair if own not in kept)]


def _how_similar(name: str, verdicts: pl.DataFrame) -> str:
    known = verdicts.drop_nulls("similarity").sort("similarity", descending=True, maintain_order=True)
    if known.is_empty():
        return f"{name}: no model has a similarity."
    model, label, value, brains = known.row(0)
    return f"{name}: brains {fixed(brains)}; most similar model {model} ({fixed(value)}, {spoken(label)})."


def _boxes(
    name: str,
    rows: pl.DataFrame,
    verdicts: pl.DataFrame,
    models: list[str],
    untrained: set[str],
    reach: tuple[float, float],
) -> alt.LayerChart:
    """One region: a lane for brains, then one per model with its verdict."""
    brain = pl.col("kind") == BRAIN
    rows = rows.drop_nulls("value").filter(brain | pl.col("source").is_in(models))
    excluded = verdicts.filter(pl.col("model").is_in(models), label=EXCLUDED).rename({"model": "lane"})
    rows = rows.filter(brain | ~pl.col("source").is_in(excluded["lane"].implode()))
    rows = rows.with_columns(lane=pl.when(brain).then(pl.lit(" " + BRAINS)).otherwise("source"))
    value, by = pl.col("value"), ["dataset", "measure", "region", "lane"]
    found = rows.group_by(by, maintain_order=True).agg(
        low=value.min(), q1=value.quantile(0.25, "linear"), value=value.median(), q3=value.quantile(0.75, "linear"),
        high=value.max(), n=value.len().cast(pl.Int64), mean=value.mean(),
    )  # fmt: skip
    text = "{measure}, {region}, {lane}: median {value}, quartiles {q1} to {q3}, mean {mean} of {n:value}"
    boxes = with_marks(found, text, "value")
    looks = [
        Look(edge="brain", fill="ramp1") if lane.startswith(" ")
        else Look(edge="muted", fill="paper" if lane in untrained else "ramp1")
        for lane in boxes["lane"]
    ]  # fmt: skip
    paint = pl.DataFrame([own.columns() for own in looks]).select("fill", "stroke")
    dots = rows.group_by([*by, "target"], maintain_order=True).agg(value.mean())
    lanes = [" " + BRAINS, *models]
    x = panels.axis("value", None, reach, ticks=4)
    y = panels.lanes("lane", lanes, limit=100, labelFontSize=10)
    labelled = verdicts.filter(pl.col("model").is_in(models)).rename({"model": "lane"})
    excluded = excluded.with_columns(words=pl.lit("excluded: median score not above 0"))
    plain = boxes.drop("mark")
    return panels.overlay(
        panels.reference(0, "x"),
        panels.intervals(plain, "x", y, x, "muted", strokeWidth=1),
        panels.layer(boxes.hstack(paint), "bar", {"height": 9, "strokeWidth": 1}, x={**x, "field": "q1"}, x2="q3", y=y,
                     fill=panels.own("fill"), stroke=panels.own("stroke")),
        panels.dots(dots, x, y, "ink", size=7, opacity=0.55),
        panels.points(plain, x, y, Look(TICK, None, "ink", 40), thick=2),
        *panels.notes(excluded, "words", {"value": 6}, y),
        panels.points(labelled, {"value": BOX_WIDTH + 10}, y, VERDICTS, "label"),
        width=BOX_WIDTH,
        step=STEP,
        title=panels.panel_title(name, BOX_WIDTH),
    )  # fmt: skip
