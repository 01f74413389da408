"""What figures share: means over subjects, names of claims, and panels of bars and of curves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.deconstruct import tables
from lpact.analyses.deconstruct.config import options_of
from lpact.analyses.deconstruct.jobs import UNTRAINED
from lpact.analyses.deconstruct.summaries import deciding_network
from lpact.report import panels
from lpact.report.figure import Caption, Drawing, Spec, with_marks
from lpact.report.panels import BOX, BROKEN, LINE, Look
from lpact.tables import Table
from lpact.wording import fixed, listed, short

PLACE = ["dataset", "stimulus", "model"]
"""What a claim is about."""
WITHOUT, MORE, ALONE, WITH = (
    "without the model",
    "more complex features, without the model",
    "the model alone",
    "with the model",
)
KINDS = {
    WITHOUT: Look(BOX, "nuisance", "nuisance", 180),
    MORE: Look(BOX, "control", "control", 180),
    ALONE: Look(BOX, "paper", "real", 180),
    WITH: Look(BOX, "real", "real", 180),
}
"""Kinds of bars."""
SUBJECT = ("one subject", Look("circle", "ink", "ink", 14, 0.6))
SPACES, MODELS = "spaces", "models"
"""What sources may not offer, besides untrained copies."""


# -- rows and words ----------------------------------------------------------------------------------


def decided(material: Material, table: Table) -> pl.DataFrame:
    """Rows of the choice of sub-models that verdicts rest on, and of their network where the table has several."""
    options = options_of(material.config)
    rows = material.table(table.name).filter(sub_model=options.sub_model)
    return rows.filter(network=deciding_network(options)) if "network" in rows.columns else rows


def of_subjects(rows: pl.DataFrame, *by: str, value: str = "r2") -> pl.DataFrame:
    """Mean over recordings and draws, as ``value``, of every subject who has one."""
    found = rows.group_by([*by, "subject"], maintain_order=True)
    return found.agg(pl.col(value).mean().alias("value")).drop_nulls("value")


def marked(subjects: pl.DataFrame, text: str, *by: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Means over subjects, and the subjects, as marks."""
    means = subjects.group_by(by, maintain_order=True).agg(pl.col("value").mean(), n=pl.len().cast(pl.Int64))
    return (
        with_marks(means, f"{text}: mean R² {{value}} of {{n:subject}}", "value"),
        with_marks(subjects, f"{text}, subject {{subject}}: R² {{value}}", "value"),
    )


def by_claim(rows: pl.DataFrame, *by: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Rows of every dataset, stimulus and model (or other columns), with their name."""
    several = rows.select("dataset", "stimulus").n_unique() > rows["dataset"].n_unique()
    for own in rows.partition_by(by or PLACE, maintain_order=True):
        parts = [short(own[key][0], 22) for key in by or PLACE if key != "stimulus" or several]
        yield " · ".join(filter(None, parts)), own


def why_not(words: str, material: Material, *kinds: str) -> str:
    """The words, and what the sources do not offer of some kinds, if anything."""
    models, item = [model.name for model in material.config.models], pl.col("item")
    kind = pl.when(item.str.ends_with(", untrained")).then(pl.lit(UNTRAINED)).otherwise(pl.lit(SPACES))
    kind = pl.when(item.is_in(models)).then(pl.lit(MODELS)).otherwise(kind)
    rows = material.table(tables.UNAVAILABLE.name).filter(kind.is_in(kinds))
    details = rows["detail"].unique(maintain_order=True).to_list()
    return f"{words}: {listed(details, 3, '; ')}" if details else words


def missing(material: Material, *kinds: str) -> str:
    """A sentence about what the sources do not offer; empty if they offer everything."""
    said = why_not("", material, *kinds or (SPACES, MODELS))
    return said and f"Missing{said}."


def no_ladder(material: Material) -> str:
    """Why there is no score of simple features and a model."""
    return why_not("no feature space was compared with a model", material, SPACES, MODELS)


def units_of(material: Material) -> str:
    """The units that decide, in words."""
    network = options_of(material.config).network
    return f"the units of the network {network}" if network else "all units"


def scores_are(material: Material) -> str:
    """What scores of most figures are, as a sentence of the caption."""
    where = units_of(material)
    return f"Scores are out-of-sample R², mean over {where}; values below 0 count as 0."


def drawing(key: alt.LayerChart, made: Sequence[Panel], caption: Caption, columns: int = 2) -> Drawing:
    """Panels below their key; their words together are the summary."""
    charts, said = zip(*made, strict=True)
    return panels.stacked(key, panels.grid(charts, columns)), caption, " ".join(filter(None, said))


def key_of(kinds: Iterable[str], *more: tuple[str, Look]) -> alt.LayerChart:
    """A key to the kinds of bars that occur."""
    found = set(kinds)
    return panels.key(*((kind, own) for kind, own in KINDS.items() if kind in found), *more)


# -- panels ------------------------------------------------------------------------------------------


Panel = tuple[alt.LayerChart | alt.ConcatChart | alt.HConcatChart, str]
"""A chart, and what it shows in words."""


def dotted_bars(subjects: pl.DataFrame, name: str, x_title: str = "R²", *layers: alt.Chart, reach: Any = ()) -> Panel:
    """A bar from zero to the mean per ``lane``, in the look of its ``kind``, with subjects' dots.

    The axis also reaches the numbers of ``reach``.
    """
    by = ("dataset", "model", "features", "lane", "kind")
    bars, dots = marked(subjects, "{dataset}, {model}, {features}", *by)
    x = panels.axis("value", x_title, panels.domain(subjects["value"], reach))
    y = panels.lanes("lane", bars["lane"], limit=150)
    looks = pl.DataFrame([KINDS[kind].columns() for kind in bars["kind"]]).select("fill", "stroke")
    paint = {side: panels.own(side) for side in looks.columns}
    thin = {"strokeWidth": 1, "height": 14}
    chart = panels.overlay(
        panels.layer(bars.hstack(looks), "bar", thin, x=x, x2={"datum": 0}, y=y, **paint),
        *layers,
        panels.dots(dots, x, y, "ink", size=14, opacity=0.6),
        width=300,
        step=22,
        title=panels.panel_title(name, 300),
    )
    means = (f"{fixed(value)} of {lane}" for lane, value in bars.select("lane", "value").rows())
    return chart, f"{name}: {x_title} {', '.join(means)}."


def curves(subjects: pl.DataFrame, x: Spec, looks: Mapping[str, Look], name: str, reach: pl.Series) -> Panel:
    """A line through means over subjects per name in ``line``, with subjects' dots, from 0 to ``reach``."""
    at, y = x["field"], panels.axis("value", "R²", panels.domain(reach))
    names = [own for own in ("dataset", "model", "context", "line") if own in subjects.columns]
    text = ", ".join(f"{{{own}}}" for own in names) + f", {x['axis']['title']} {{{at}}}"
    means, dots = marked(subjects.sort(at, maintain_order=True), text, *names, at)
    drawn, said = [], []
    for line, look in looks.items():
        own, role = means.filter(line=line), look.edge or "ink"
        path: Spec = {"color": role, "strokeWidth": 1.8}
        path |= {"strokeDash": [4, 2]} if look.shape == BROKEN else {}
        drawn += [
            panels.dots(dots.filter(line=line), x, y, role, size=9, opacity=0.4),
            panels.layer(own.drop("mark"), "line", path, x=x, y=y),
            panels.points(own, x, y, Look("circle", role, role, 22)),
        ]
        if own.height:
            said.append(f"{fixed(own['value'].max())} ({line})")  # type: ignore[arg-type]
    title = panels.panel_title(name, 360)
    chart = panels.overlay(panels.reference(0, "y"), *drawn, width=360, height=160, title=title)
    return chart, f"{name}: highest mean R² {', '.join(said)}."


def curve_look(role: str, *, broken: bool = False) -> Look:
    """A line in a key and in `curves`."""
    return Look(BROKEN if broken else LINE, None, role, 120)


def number_axis(field: str, title: str, numbers: pl.Series) -> Spec:
    """A channel with ticks at up to seven of the numbers that occur."""
    found = numbers.unique().sort().to_list()
    ticks = found[:: -(-len(found) // 7)]
    axis = panels.axis(field, title, (found[0], found[-1]), ticks=ticks, fmt=".3~g")
    axis["scale"]["padding"] = 8
    return axis
