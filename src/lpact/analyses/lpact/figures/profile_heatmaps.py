"""Profile heat maps: the brain's own relational pattern beside those of the model, nuisance and the best control.

One panel per dataset: units × units alignments b_i(j) of the brain, and under it strips q(j) with the alignment of the
mean brain unit, the real features, nuisance and the nearest control with every unit j. Patterns are averaged over the
subject-runs of one unit order. Every block has its own scale, since profile similarity compares shapes.
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
from lpact.analyses.lpact.figures.relational_profiles import (
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
MAX_UNITS = 40
"""Of more units, evenly spaced ones are drawn."""
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
    runs, rows, _ = similarities(material)
    layers = most_telling(layers_of(material, nearest_rivals(rows))).head(MAX_PANELS)
    return [
        _panel_of(material, layer, runs.filter(common.of_layer(layer)))
        for layer in layers.iter_rows(named=True)
    ]


def _panel_of(material: Material, layer: dict[str, Any], runs: pl.DataFrame) -> Panel | str:
    """The panel of a layer, or a sentence why there is none; ``runs`` are its similarities by subject-run.

    It shows the first alignment measure and profile similarity of the study file, over the subject-runs that share
    the most frequent unit order.
    """
    options, dataset = LPactConfig.of(material.config).relational, layer["dataset"]
    alignment = _first(options.alignments, runs["alignment"])
    profile = _first(options.profiles, runs.filter(alignment=alignment)["profile"])
    brain = material.table(BRAIN_PATTERNS.name).filter(dataset=dataset, alignment=alignment)
    model = material.table(MODEL_PATTERNS.name).filter(alignment=alignment)
    model = model.filter(common.of_layer(layer))
    both = [*SUBJECT_RUN, "unit_order_hash"]
    shared = brain.select(both).unique().join(model.select(both).unique(), on=both)
    if shared.is_empty():
        return f"{layer_name(layer)} is not drawn: brain and model patterns have no unit order in common."
    counts = shared.group_by("unit_order_hash").len()
    order = common.top(counts, "len", then=["unit_order_hash"])["unit_order_hash"]
    shared, total = shared.filter(unit_order_hash=order), brain.select(SUBJECT_RUN).n_unique()
    brain, model = (
        own.join(shared, on=both, how="semi").sort(SUBJECT_RUN) for own in (brain, model)
    )
    drawn = runs.filter(alignment=alignment, profile=profile)
    drawn = drawn.join(shared, on=SUBJECT_RUN, how="semi", maintain_order="left")
    units = material.table(BRAIN_UNIT_INDEX.name).filter(dataset=dataset, unit_order_hash=order)
    units = units.sort("unit_index", *SUBJECT_RUN).unique("unit_index", keep="first")
    units = units.sort(pl.col("unit_index").min().over("region"), "unit_index")
    n_units, notes = units.height, []
    if shared.height < total:
        notes.append(
            f"mean over {shared.height} of {counted(total, 'subject-run')}; the others have another unit order"
        )
    if n_units > MAX_UNITS:
        notes.append(f"{MAX_UNITS} of {n_units} units, evenly spaced in their order")
        units = units[np.linspace(0, n_units - 1, MAX_UNITS).round().astype(int)]
    return Panel(
        layer,
        alignment,
        profile,
        units["unit"].to_list(),
        units["region"].to_list(),
        _blocks(brain, model, drawn, n_units, units["unit_index"].to_numpy()),
        shared.height,
        f"{layer_name(layer)}: {'; '.join(notes)}." if notes else "",
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
    for n, part in enumerate(brain.partition_by(SUBJECT_RUN, maintain_order=True)):
        squares[n, part["unit_index"].to_numpy()] = np.array(part["pattern"].to_list(), dtype=float)
    square = _mean(squares)
    found = runs.group_by("condition").agg(pl.col("similarity").mean(), pl.len())
    similar = {name: own for name, *own in found.sort("condition").iter_rows()}
    controls = sorted(similar.keys() - {REAL, NUISANCE}, key=lambda name: (-similar[name][0], name))
    names = {REAL: "real features", NUISANCE: "nuisance"}
    names |= {best: f"best control, {best}" for best in controls[:1]}
    blocks = [
        Block("brain", square[np.ix_(places, places)]),
        Block("mean brain unit", _mean(square)[None, places]),
    ]
    for condition, name in names.items():
        own = model.filter(condition=condition).sort(*SUBJECT_RUN, "draw")
        parts = own.partition_by(SUBJECT_RUN, maintain_order=True)
        if parts:
            pattern = _mean([_mean(part["pattern"].to_list()) for part in parts])
            blocks.append(Block(name, pattern[None, places], *similar.get(condition, ())))
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
    first = drawn[0]
    key = panels.key(
        ("alignment within its block", first.blocks[0].classes, ["lowest", *[""] * 5, "highest"]),
        ("undefined: a unit with itself, or missing", common.MISSING_BOX[1]),
        "above each block: profile similarity with the brain, and (lowest to highest alignment)",
        width=760,
    )
    grid = panels.grid([_panel(own) for own in drawn], 2, spacing={"row": 30, "column": 60})
    n = material.table(PROFILE_SCORES.name)["dataset"].n_unique() - len(made)
    caption = [
        f"Square: {first.alignment} alignment of every brain unit (row) with every other (column), grouped by region, "
        "in the most telling layer of each dataset.",
        "Strips: alignment of the mean brain unit, the real features, nuisance and the most similar control with the "
        f"same units, and their {first.profile} profile similarity with the brain's, mean over units and subject-runs. "
        "Every block is shaded from its own lowest to its own highest value, since similarity compares shapes.",
        *(panel.note for panel in drawn),
        *failed,
        f"{counted(n, 'dataset')} not drawn; {MODEL_PATTERNS.name} has all patterns."
        if n > 0
        else "",
    ]
    summary = []
    for panel in drawn:
        known = [strip for strip in panel.blocks if strip.similarity is not None]
        found = ", ".join(f"{strip.name} {fixed(strip.similarity, 2)}" for strip in known)
        summary.append(f"{layer_name(panel.layer)}: similarity to the brain's patterns {found}.")
    return panels.stacked(key, grid), caption, " ".join(summary)


def _panel(panel: Panel) -> alt.VConcatChart:
    n = f"{counted(panel.n_subject_runs, 'subject-run')}, {counted(len(panel.units), 'unit')}"
    about = f"{panel.alignment} alignment; mean over {n}"
    name = short(layer_name(panel.layer), 50)
    title = panels.title(name, about, fontSize=12, limit=370, offset=6)
    return panels.stacked(*(_block(panel, own) for own in panel.blocks), title=title, spacing=4)


def _block(panel: Panel, block: Block) -> alt.LayerChart:
    """Cells of a block, with lines between regions and their names on the left and below the last block."""
    (n_rows, n), step = block.numbers.shape, _SIDE / len(panel.units)
    strip = block is not panel.blocks[0]
    down, across = (own.ravel() for own in np.indices((n_rows, n)))
    named = [
        name if not region or region == name else f"{name} ({region})"
        for name, region in zip(panel.units, panel.regions, strict=True)
    ]
    units = pl.Series(named)
    cells = pl.DataFrame({"down": down, "across": across, "value": block.numbers.ravel()})
    cells = block.classes.paint(cells.fill_nan(None), "value").with_columns(
        *(pl.lit(panel.layer[key]).alias(key) for key in LAYER),
        who=pl.lit(block.name) if strip else pl.lit("brain, ") + units[down],
        unit=units[across],
    )
    text = f"{{at}}: {{who}} with {{unit}}: {panel.alignment} alignment {{value}}"
    cells = common.marked(cells, text, "value")
    rows = [
        (name, places[0] * step, (places[0] + len(places) / 2) * step, len(places) * step)
        for name, found in groupby(range(n), key=lambda place: panel.regions[place])
        for places in [list(found)]
    ]
    regions = pl.DataFrame(rows, schema=["name", "start", "middle", "room"], orient="row")
    regions = regions if len(rows) > 1 else regions.clear()
    start, middle = panels.pixels("start"), panels.pixels("middle")
    paper, lines = {"color": "paper", "strokeWidth": 2}, regions.slice(1)
    x = panels.lanes("across", range(n), labels=False)
    y = panels.lanes("down", range(n_rows), labels=False)
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
    heading = short(block.name, 38) if strip else "brain, unit with unit"
    if block.similarity is not None:
        heading += f": {fixed(block.similarity, 2)}"
        if block.n != panel.n_subject_runs:
            heading += f" in {block.n} of {counted(panel.n_subject_runs, 'subject-run')}"
    if block.ends is not None:
        heading += f" ({fixed(block.ends[0], 2)} to {fixed(block.ends[1], 2)})"
    layers.append(panels.heading(heading, 0, ink="ink"))
    return panels.overlay(*layers, width=_SIDE, height=_STRIP if strip else _SIDE)
