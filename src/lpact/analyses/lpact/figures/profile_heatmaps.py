"""Profile heat maps: the brain's own relational pattern beside those of the model, nuisance and the best control.

One panel per dataset: units × units alignments b_i(j) of the brain, and under it strips q(j) with the alignment of the
mean brain unit, the real features, nuisance and the nearest control with every unit j. Patterns are averaged over the
subject-runs of one unit order; those of another order hold other units and are left out. Profile similarity compares
shapes, so every block has its own scale, whose ends are written above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import LAYER, NUISANCE, REAL, SUBJECT_RUN, layer_name
from lpact.analyses.lpact.figures.similarities import (
    layers_of,
    most_telling,
    nearest_rivals,
    similarities,
)
from lpact.analyses.lpact.tables.levels import (
    BRAIN_PATTERNS,
    BRAIN_UNIT_INDEX,
    MODEL_PATTERNS,
    PROFILE_SCORES,
)
from lpact.math.types import FloatArray
from lpact.report import panels
from lpact.report.figure import Drawing, figure
from lpact.report.panels import Classes
from lpact.report.theme import RAMP
from lpact.report.values import short
from lpact.wording import counted, fixed

MAX_PANELS = 6
MAX_UNITS = 60
"""Of more units, evenly spaced ones are drawn."""
_ONE_BY_ONE = 40
"""Up to so many units every cell has a tooltip; beyond, only those of strips, so that the picture stays light."""
_SIDE, _STRIP = 300, 16


@dataclass(frozen=True)
class Block:
    """A matrix [rows, units] of alignments; a strip has its similarity, mean over ``n`` subject-runs."""

    name: str
    numbers: FloatArray
    similarity: float | None = None
    n: int = 0

    @property
    def ends(self) -> tuple[float, float] | None:
        """Lowest and highest number; None where all are undefined."""
        finite = self.numbers[np.isfinite(self.numbers)]
        return (float(finite.min()), float(finite.max())) if finite.size else None

    @property
    def classes(self) -> Classes:
        """Sevenths of the block's own range."""
        low, high = self.ends or (0.0, 0.0)
        steps = [low + (high - low) * k / len(RAMP) for k in range(1, len(RAMP))]
        return Classes(RAMP, tuple(steps) if high > low else (float("inf"),) * 6)


@dataclass(frozen=True)
class Panel:
    """One layer: the brain's square first, then strips over the same units, which are grouped by region."""

    layer: dict[str, Any]
    alignment: str
    profile: str
    units: list[str]
    regions: list[str]
    blocks: list[Block]
    n_subject_runs: int
    note: str


# -- numbers -----------------------------------------------------------------------------------------------------------


def panels_of(material: Material) -> list[Panel | str]:
    """One panel for the most telling layer of every dataset, or why it cannot be drawn."""
    found = similarities(material)
    layers = most_telling(layers_of(material, nearest_rivals(found.rows))).head(MAX_PANELS)
    return [
        _panel_of(material, layer, found.runs.filter(common.of_layer(layer)))
        for layer in layers.iter_rows(named=True)
    ]


def _panel_of(material: Material, layer: dict[str, Any], runs: pl.DataFrame) -> Panel | str:
    """The panel of a layer, or a sentence why there is none; ``runs`` are its similarities by subject-run.

    It shows the first alignment measure and profile similarity of the study file. Similarities are averaged over the
    subject-runs whose patterns are drawn.
    """
    options = LPactConfig.of(material.config).relational
    alignment = _first(options.alignments, runs["alignment"])
    profile = _first(options.profiles, runs.filter(alignment=alignment)["profile"])
    brain = material.table(BRAIN_PATTERNS.name).filter(
        dataset=layer["dataset"], alignment=alignment
    )
    model = material.table(MODEL_PATTERNS.name).filter(
        common.of_layer(layer), pl.col("alignment") == alignment
    )
    both = [*SUBJECT_RUN, "unit_order_hash"]
    shared = brain.select(both).unique().join(model.select(both).unique(), on=both)
    if shared.is_empty():
        return f"{layer_name(layer)} is not drawn: brain and model patterns have no unit order in common."
    # The unit order of most subject-runs; ties by name.
    counts = shared.group_by("unit_order_hash").len()
    order = counts.sort(["len", "unit_order_hash"], descending=[True, False])["unit_order_hash"][0]
    shared, total = shared.filter(unit_order_hash=order), brain.select(SUBJECT_RUN).n_unique()
    brain, model, drawn = (
        own.join(
            shared, on=[c for c in both if c in own.columns], how="semi", maintain_order="left"
        )
        for own in (brain, model, runs.filter(alignment=alignment, profile=profile))
    )
    units = (
        material.table(BRAIN_UNIT_INDEX.name)
        .filter(dataset=layer["dataset"], unit_order_hash=order)
        .sort(["unit_index", *SUBJECT_RUN])
        .unique("unit_index", keep="first", maintain_order=True)
    )
    n_units = units.height
    first = pl.col("unit_index").min().over("region")
    places = units.sort(first, "unit_index")["unit_index"].to_numpy()
    if n_units > MAX_UNITS:
        places = places[np.linspace(0, n_units - 1, MAX_UNITS).round().astype(int)]
    notes = [
        f"mean over {shared.height} of {counted(total, 'subject-run')}; the others have another unit order"
        if shared.height < total
        else "",
        f"{MAX_UNITS} of {n_units} units, evenly spaced in their order"
        if n_units > MAX_UNITS
        else "",
    ]
    note = "; ".join(filter(None, notes))
    return Panel(
        layer,
        alignment,
        profile,
        units["unit"][places].to_list(),
        units["region"][places].to_list(),
        _blocks(brain, model, drawn, n_units, places),
        shared.height,
        f"{layer_name(layer)}: {note}." if note else "",
    )


def _first(wanted: tuple[str, ...], found: pl.Series) -> str:
    """The first name of the study file that the tables hold; else the first by name."""
    return next((name for name in wanted if name in found), min(found.to_list()))


def _mean(stacked: Any) -> FloatArray:
    """Mean over the first axis of the numbers that are defined; NaN where none is."""
    known = np.ma.masked_invalid(np.asarray(stacked, dtype=np.float64))
    return np.asarray(np.ma.filled(known.mean(axis=0), np.nan), dtype=np.float64)


def _blocks(
    brain: pl.DataFrame, model: pl.DataFrame, runs: pl.DataFrame, n_units: int, places: Any
) -> list[Block]:
    """The square, and the strips that have patterns: means over draws, then over subject-runs."""
    squares = np.full((brain.select(SUBJECT_RUN).n_unique(), n_units, n_units), np.nan)
    for n, part in enumerate(brain.sort(SUBJECT_RUN).partition_by(SUBJECT_RUN)):
        for place, pattern in part.select("unit_index", "pattern").iter_rows():
            squares[n, place] = pattern
    square = _mean(squares)
    rows = runs.group_by("condition", maintain_order=True).agg(
        pl.col("similarity").mean(), n=pl.len().cast(pl.Int64)
    )
    controls = rows.filter(~pl.col("condition").is_in([REAL, NUISANCE]))
    ranked = controls.sort(["similarity", "condition"], descending=[True, False])["condition"]
    names = {REAL: "real features", NUISANCE: "nuisance"}
    names |= {best: f"best control, {best}" for best in ranked.head(1)}
    blocks = [
        Block("brain", square[np.ix_(places, places)]),
        Block("mean brain unit", _mean(square)[None, places]),
    ]
    for condition, name in names.items():
        own = model.filter(condition=condition).sort([*SUBJECT_RUN, "draw"])
        parts = own.partition_by(SUBJECT_RUN, maintain_order=True)
        if parts:
            pattern = _mean([_mean(part["pattern"].to_list()) for part in parts])
            similar = rows.filter(condition=condition).select("similarity", "n").rows()
            blocks.append(Block(name, pattern[None, places], *(similar[0] if similar else ())))
    return blocks


# -- drawing -----------------------------------------------------------------------------------------------------------


@figure(
    "profile_heatmaps",
    "The brain's own relational pattern, and the model's beside it",
    PROFILE_SCORES,
    BRAIN_PATTERNS,
    MODEL_PATTERNS,
    BRAIN_UNIT_INDEX,
)
def make(material: Material) -> Drawing | str:
    """Draw the patterns of the most telling layer of every dataset."""
    made = panels_of(material)
    drawn = [panel for panel in made if isinstance(panel, Panel)]
    failed = [panel for panel in made if isinstance(panel, str)]
    if not drawn:
        return " ".join(failed) or "no layer has a profile similarity that can be compared"
    ends = ["lowest", *[""] * 5, "highest"]
    key = panels.key(
        ("alignment within its block", drawn[0].blocks[0].classes, ends),
        ("undefined: a unit with itself, or missing", common.MISSING_BOX[1]),
        "above each block: profile similarity with the brain, and (lowest to highest alignment)",
        width=760,
    )
    spacing = {"row": 30, "column": 60}
    chart = panels.stacked(key, panels.grid([_panel(own) for own in drawn], 2, spacing=spacing))
    first = drawn[0]
    n = material.table(PROFILE_SCORES.name)["dataset"].n_unique() - len(made)
    caption = [
        f"Square: {first.alignment} alignment of every brain unit (row) with every other (column), grouped by region.",
        "Strips: alignment of the mean brain unit, the real features, nuisance and the most similar control with the "
        f"same units, and their {first.profile} profile similarity with the brain's (mean over units, draws of random "
        "controls and the panel's subject-runs; where fewer have one, their number is given).",
        "Similarity compares shapes, not sizes: every block is shaded from its own lowest to its own highest value.",
        "Drawn is the most telling layer of each dataset: gate R under most profiles, then the largest median "
        f"advantage over the nearest rival, by {first.alignment} and {first.profile}, the first of the study file.",
        *(panel.note for panel in drawn),
        *failed,
        f"{counted(n, 'dataset')} not drawn; the tables {BRAIN_PATTERNS.name} and {MODEL_PATTERNS.name} have all "
        "patterns."
        if n > 0
        else "",
    ]
    summary = " ".join(
        f"{layer_name(panel.layer)}: similarity to the brain's patterns "
        + ", ".join(
            f"{strip.name} {fixed(strip.similarity, 2)}"
            for strip in panel.blocks
            if strip.similarity is not None
        )
        + "."
        for panel in drawn
    )
    return chart, caption, summary


def _panel(panel: Panel) -> alt.VConcatChart:
    n = f"{counted(panel.n_subject_runs, 'subject-run')}, {counted(len(panel.units), 'unit')}"
    about = f"{panel.alignment} alignment; mean over {n}"
    blocks = [_block(panel, block) for block in panel.blocks]
    name = short(layer_name(panel.layer), 50)
    title = panels.title(name, about, fontSize=12, limit=370, offset=6)
    return panels.stacked(*blocks, title=title, spacing=4)


def _block(panel: Panel, block: Block) -> alt.LayerChart:
    """Cells of a block, with lines between regions and their names on the left and below the last block."""
    (n_rows, n), step = block.numbers.shape, _SIDE / len(panel.units)
    strip = block is not panel.blocks[0]
    down, across = (own.ravel() for own in np.indices((n_rows, n)))
    values = pl.Series(block.numbers.ravel()).fill_nan(None)
    cells = pl.DataFrame({"down": down, "across": across, "value": values})
    cells = block.classes.paint(cells, "value")
    if strip or n <= _ONE_BY_ONE:
        at = (pl.lit(panel.layer[key]).alias(key) for key in LAYER)
        named = [
            name if not region or region == name else f"{name} ({region})"
            for name, region in zip(panel.units, panel.regions, strict=True)
        ]
        units = pl.Series(named)
        whose = pl.lit(block.name) if strip else pl.lit("brain, ") + units[down]
        cells = cells.with_columns(*at, who=whose, unit=units[across])
        text = f"{{at}}: {{who}} with {{unit}}: {panel.alignment} alignment {{value}}"
        cells = common.marked(cells, text, "value")
    groups = groupby(range(n), key=lambda place: panel.regions[place])
    rows = [
        (name, places[0] * step, (places[0] + len(places) / 2) * step, len(places) * step)
        for name, found in groups
        for places in [list(found)]
    ]
    regions = pl.DataFrame(rows, schema=["name", "start", "middle", "room"], orient="row")
    regions = regions if len(rows) > 1 else regions.clear()
    lines = regions.slice(1)
    start, middle = panels.pixels("start"), panels.pixels("middle")
    paper = {"color": "paper", "strokeWidth": 2}
    x, y = (
        panels.lanes(own, range(m), labels=False) for own, m in (("across", n), ("down", n_rows))
    )
    layers = [*panels.cells(cells, x, y, gap=0), panels.layer(lines, "rule", paper, x=start)]
    if not strip:
        side = regions.filter(pl.col("room") >= 11)
        layers += [
            panels.layer(lines, "rule", paper, y=start),
            panels.text(side, "name", {"value": -5}, middle, size=10, align="right", limit=80),
        ]
    if block is panel.blocks[-1]:
        below = regions.filter(pl.col("room") >= 5.4 * pl.col("name").str.len_chars())
        bottom = {"value": _STRIP + 10}
        layers.append(panels.text(below, "name", middle, bottom, size=10, align="center"))
    layers.append(panels.heading(_heading(panel, block, strip=strip), 0, ink="ink"))
    return panels.overlay(*layers, width=_SIDE, height=_STRIP if strip else _SIDE)


def _heading(panel: Panel, block: Block, *, strip: bool) -> str:
    """Name, similarity and ends of a block."""
    text = short(block.name, 38) if strip else "brain, unit with unit"
    if block.similarity is not None:
        text += f": {fixed(block.similarity, 2)}"
        if block.n != panel.n_subject_runs:
            text += f" in {block.n} of {counted(panel.n_subject_runs, 'subject-run')}"
    if block.ends is not None:
        text += f" ({fixed(block.ends[0], 2)} to {fixed(block.ends[1], 2)})"
    return text
