"""Profile heat maps: the brain's own relational pattern beside those of the model, nuisance and the best control.

One panel per dataset: units × units alignments b_i(j) of the brain, and under it strips q(j) with the alignment of the
mean brain unit, the real features, nuisance and the nearest control with every unit j. Patterns are averaged over the
subject-runs of one unit order; those of another order hold other units and are left out. Profile similarity compares
shapes, so every block has its own scale, whose ends are written above it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.common import (
    LAYER,
    NUISANCE,
    REAL,
    SUBJECT_RUN,
    ShortLayerNames,
    layer_name,
)
from lpact.analyses.lpact.figures.similarities import (
    layers_of,
    nearest_rivals,
    similarities,
    telling_layers,
)
from lpact.analyses.lpact.tables.levels import (
    BRAIN_PATTERNS,
    BRAIN_UNIT_INDEX,
    MODEL_PATTERNS,
    PROFILE_SCORES,
)
from lpact.math.types import FloatArray
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import BOX, Classes, Look
from lpact.report.theme import RAMP
from lpact.report.wording import counted, number, short

MAX_PANELS = 6
MAX_UNITS = 60
"""More units than these are drawn as means over regions."""
_ONE_BY_ONE = 40
"""Up to so many units every cell has a tooltip; beyond, only the cells of strips, so that the picture stays light."""
_SIDE, _STRIP = 300, 16


@dataclass(frozen=True)
class Block:
    """A matrix [rows, places] of alignments with its name and, for strips, its profile similarity.

    The similarity is the mean over ``n_similar`` of the panel's subject-runs.
    """

    name: str
    numbers: FloatArray
    similarity: float | None = None
    n_similar: int = 0
    strip: bool = True

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
    """One layer: the brain's square and the strips beneath it, over the same places.

    Attributes
    ----------
    places
        Names of units in the order drawn, or of regions where there are too many units.
    regions
        Region of each place.
    blocks
        The square first, then strips.
    notes
        What a reader must know: subject-runs left out, units averaged.
    of_regions
        Whether places are regions.
    """

    layer: dict[str, Any]
    alignment: str
    profile: str
    places: list[str]
    regions: list[str]
    blocks: list[Block]
    n_subject_runs: int
    notes: list[str]
    of_regions: bool = False

    @property
    def kind(self) -> str:
        """What one place is."""
        return "region" if self.of_regions else "unit"


# -- numbers -----------------------------------------------------------------------------------------------------------


def panels_of(material: Material) -> list[Panel | str]:
    """One panel for the most telling layer of every dataset, or why it cannot be drawn."""
    found = similarities(material)
    layers = telling_layers(layers_of(material, nearest_rivals(found.rows))).head(MAX_PANELS)
    return [
        _panel_of(material, layer, found.runs.filter(pl.col(key) == layer[key] for key in LAYER))
        for layer in layers.iter_rows(named=True)
    ]


def _panel_of(material: Material, layer: dict[str, Any], runs: pl.DataFrame) -> Panel | str:
    """The panel of a layer, or a sentence why there is none; ``runs`` are its similarities by subject-run.

    It shows the first alignment measure and profile similarity of the study file. Similarities are averaged over the
    subject-runs whose patterns are drawn.
    """
    asked = LPactConfig.of(material.config).relational
    alignment = _first(asked.alignments, runs["alignment"])
    runs = runs.filter(alignment=alignment)
    profile = _first(asked.profiles, runs["profile"])
    runs = runs.filter(profile=profile)
    brain = material.table(BRAIN_PATTERNS.name).filter(
        dataset=layer["dataset"], alignment=alignment
    )
    model = material.table(MODEL_PATTERNS.name).filter(
        *(pl.col(key) == layer[key] for key in LAYER), alignment=alignment
    )
    both = [*SUBJECT_RUN, "unit_order_hash"]
    shared = brain.select(both).unique().join(model.select(both).unique(), on=both)
    if shared.is_empty():
        return f"{layer_name(layer)} is not drawn: brain and model patterns have no unit order in common."
    # The unit order of most subject-runs; ties by name.
    counts = shared.group_by("unit_order_hash").len()
    ranked = counts.sort(["len", "unit_order_hash"], descending=[True, False])
    order = ranked["unit_order_hash"][0]
    shared = shared.filter(unit_order_hash=order)
    total = brain.select(SUBJECT_RUN).n_unique()
    brain, model = (
        own.join(shared, on=both, how="semi", maintain_order="left") for own in (brain, model)
    )
    drawn = runs.join(shared, on=SUBJECT_RUN, how="semi", maintain_order="left")
    rows = drawn.group_by("condition", maintain_order=True).agg(
        pl.col("similarity").mean(), n=pl.len().cast(pl.Int64)
    )
    units = (
        material.table(BRAIN_UNIT_INDEX.name)
        .filter(dataset=layer["dataset"], unit_order_hash=order)
        .sort(["unit_index", *SUBJECT_RUN])
        .unique("unit_index", keep="first", maintain_order=True)
    )
    notes = []
    if shared.height < total:
        notes.append(
            f"{layer_name(layer)}: mean over {shared.height} of {counted(total, 'subject-run')}; "
            "the others have another unit order."
        )
    panel = Panel(
        layer,
        alignment,
        profile,
        units["unit"].to_list(),
        units["region"].to_list(),
        _blocks(brain, model, rows, units.height),
        shared.height,
        notes,
    )
    first = {region: i for i, region in reversed(list(enumerate(panel.regions)))}
    by_region = sorted(range(units.height), key=lambda i: (first[panel.regions[i]], i))
    return _reduced(_picked(panel, by_region))


def _first(asked: tuple[str, ...], found: pl.Series) -> str:
    """The first that the study asks for and the tables hold; else the first by name."""
    have = set(found.to_list())
    return next((name for name in asked if name in have), min(have))


def _mean(stacked: Any) -> FloatArray:
    """Mean over the first axis of the numbers that are defined; NaN where none is."""
    known = np.ma.masked_invalid(np.asarray(stacked, dtype=np.float64))
    return np.asarray(np.ma.filled(known.mean(axis=0), np.nan), dtype=np.float64)


def _blocks(
    brain: pl.DataFrame, model: pl.DataFrame, rows: pl.DataFrame, n_units: int
) -> list[Block]:
    """The square, and the strips that have patterns: means over draws, then over subject-runs."""
    squares = np.full((brain.select(SUBJECT_RUN).n_unique(), n_units, n_units), np.nan)
    for n, (_, part) in enumerate(
        brain.sort(SUBJECT_RUN).group_by(SUBJECT_RUN, maintain_order=True)
    ):
        for place, pattern in part.select("unit_index", "pattern").iter_rows():
            squares[n, place] = pattern
    square = _mean(squares)
    controls = rows.filter(~pl.col("condition").is_in([REAL, NUISANCE]))
    ranked = controls.sort(["similarity", "condition"], descending=[True, False])["condition"]
    names = {REAL: "real features", NUISANCE: "nuisance"}
    names |= {best: f"best control, {best}" for best in ranked.head(1)}
    blocks = [Block("brain", square, strip=False), Block("mean brain unit", _mean(square)[None])]
    for condition, name in names.items():
        own = model.filter(condition=condition).sort([*SUBJECT_RUN, "draw"])
        runs = [
            _mean(part["pattern"].to_list())
            for _, part in own.group_by(SUBJECT_RUN, maintain_order=True)
        ]
        if runs:
            similar = rows.filter(condition=condition).select("similarity", "n").rows()
            blocks.append(Block(name, _mean(runs)[None], *(similar[0] if similar else ())))
    return blocks


def _picked(panel: Panel, sequence: list[int]) -> Panel:
    """The panel with these places, in this order."""
    blocks = []
    for block in panel.blocks:
        across = block.numbers[:, sequence]
        blocks.append(replace(block, numbers=across if block.strip else across[sequence]))
    return replace(
        panel,
        places=[panel.places[i] for i in sequence],
        regions=[panel.regions[i] for i in sequence],
        blocks=blocks,
    )


def _reduced(panel: Panel) -> Panel:
    """Means over regions where there are too many units; where regions do not help, evenly spaced units."""
    n_units, names = len(panel.places), list(dict.fromkeys(panel.regions))
    if n_units <= MAX_UNITS:
        return panel
    head = f"{layer_name(panel.layer)}: "
    if not 2 < len(names) <= MAX_UNITS:
        kept = np.linspace(0, n_units - 1, MAX_UNITS).round().astype(int).tolist()
        note = f"{head}{MAX_UNITS} of {counted(n_units, 'unit')} are drawn, evenly spaced in their order."
        return replace(_picked(panel, kept), notes=[*panel.notes, note])
    groups = [[i for i, own in enumerate(panel.regions) if own == name] for name in names]
    blocks = []
    for block in panel.blocks:
        down = [[0]] if block.strip else groups
        means = [[_mean(block.numbers[np.ix_(r, c)].ravel()) for c in groups] for r in down]
        blocks.append(replace(block, numbers=np.array(means, dtype=np.float64)))
    note = f"{head}{counted(n_units, 'unit')} are drawn as means over {len(names)} regions."
    return replace(
        panel,
        places=names,
        regions=names,
        blocks=blocks,
        notes=[*panel.notes, note],
        of_regions=True,
    )


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
    names = ShortLayerNames(pl.DataFrame([panel.layer for panel in drawn]))
    ends = ["lowest", *[""] * 5, "highest"]
    entries: list[Any] = [("alignment within its block", drawn[0].blocks[0].classes, ends)]
    if any(not np.isfinite(block.numbers).all() for panel in drawn for block in panel.blocks):
        look = Look(BOX, "missing", "missing", 160)
        entries.append(("undefined: a unit with itself, or missing", look))
    entries.append(
        "above each block: profile similarity with the brain, and (lowest to highest alignment)"
    )
    chart = panels.stacked(
        panels.key(*entries, width=760),
        panels.grid(
            [_panel(panel, names.of(panel.layer, 50)) for panel in drawn],
            2,
            spacing={"row": 30, "column": 60},
        ),
    )
    return chart, _caption(material, drawn, failed), _summary(drawn)


def _panel(panel: Panel, name: str) -> alt.VConcatChart:
    n = f"{counted(panel.n_subject_runs, 'subject-run')}, {counted(len(panel.places), panel.kind)}"
    about = f"{panel.alignment} alignment; mean over {n}"
    blocks = [
        _block(panel, block, last=i == len(panel.blocks) - 1)
        for i, block in enumerate(panel.blocks)
    ]
    title = panels.title(name, about, fontSize=12, limit=370, offset=6)
    return panels.stacked(*blocks, title=title, spacing=4)


def _block(panel: Panel, block: Block, *, last: bool) -> alt.LayerChart:
    """Cells of a block, with lines between regions and their names on the left and below the last block."""
    (rows, n), step = block.numbers.shape, _SIDE / len(panel.places)
    down, across = (own.ravel() for own in np.indices((rows, n)))
    values = pl.Series("value", block.numbers.ravel()).fill_nan(None)
    cells = block.classes.paint(
        pl.DataFrame({"down": down, "across": across, "value": values}), "value"
    )
    if block.strip or n <= _ONE_BY_ONE:
        where = (pl.lit(panel.layer[key]).alias(key) for key in LAYER)
        cells = with_marks(
            cells.with_columns(where), lambda row: _tooltip(panel, block, row), "value"
        )
    x = panels.lanes("across", range(n), labels=False)
    y = panels.lanes("down", range(rows), labels=False)
    groups = groupby(range(n), key=lambda place: panel.regions[place])
    runs = [(name, list(places)) for name, places in groups]
    regions = pl.DataFrame(
        {
            "name": [name for name, _ in runs],
            "start": [places[0] * step for _, places in runs],
            "middle": [(places[0] + places[-1] + 1) / 2 * step for _, places in runs],
            "room": [len(places) * step for _, places in runs],
        }
    )
    regions = regions if len(runs) > 1 else regions.clear()
    lines = regions.clear() if panel.of_regions else regions.slice(1)
    start, middle = panels.pixels("start"), panels.pixels("middle")
    paper = {"color": "paper", "strokeWidth": 2}
    layers = [*panels.cells(cells, x, y, gap=0), panels.layer(lines, "rule", paper, x=start)]
    if not block.strip:
        side = regions.filter(pl.col("room") >= 11)
        layers += [
            panels.layer(lines, "rule", paper, y=start),
            panels.text(side, "name", {"value": -5}, middle, size=10, align="right", limit=80),
        ]
    if last:
        below = regions.filter(pl.col("room") >= 5.4 * pl.col("name").str.len_chars())
        bottom = {"value": _STRIP + 10}
        layers.append(panels.text(below, "name", middle, bottom, size=10, align="center"))
    layers.append(panels.heading(_heading(panel, block), 0, ink="ink"))
    return panels.overlay(*layers, width=_SIDE, height=_STRIP if block.strip else _SIDE)


def _heading(panel: Panel, block: Block) -> str:
    """Name, similarity and ends of a block."""
    text = short(block.name, 38) if block.strip else f"brain, {panel.kind} with {panel.kind}"
    if block.similarity is not None:
        text += f": {number(block.similarity, 2)}"
        if block.n_similar != panel.n_subject_runs:
            text += f" in {block.n_similar} of {counted(panel.n_subject_runs, 'subject-run')}"
    if block.ends is not None:
        low, high = (number(end, 2) for end in block.ends)
        text += f" ({low} to {high})"
    return text


def _tooltip(panel: Panel, block: Block, row: dict[str, Any]) -> str:
    def named(place: int) -> str:
        name, region = panel.places[place], panel.regions[place]
        return name if not region or region == name else f"{name} ({region})"

    who = block.name if block.strip else f"brain, {named(row['down'])}"
    shown = "undefined" if row["value"] is None else number(row["value"])
    return f"{layer_name(panel.layer)}: {who} with {named(row['across'])}: {panel.alignment} alignment {shown}"


def _caption(material: Material, drawn: list[Panel], failed: list[str]) -> str:
    first = drawn[0]
    parts = [
        f"Square: {first.alignment} alignment of every brain unit (row) with every other (column), grouped by region.",
        "Strips: alignment of the mean brain unit, the real features, nuisance and the most similar control with the "
        f"same units, and their {first.profile} profile similarity with the brain's (mean over units, draws of random "
        "controls and the panel's subject-runs; where fewer have one, their number is given).",
        "Similarity compares shapes, not sizes: every block is shaded from its own lowest to its own highest value.",
        "Drawn is the most telling layer of each dataset: gate R under most profiles, then the largest median "
        f"advantage over the nearest rival, by {first.alignment} and {first.profile}, the first of the study file.",
        *(note for panel in drawn for note in panel.notes),
        *failed,
    ]
    n = material.table(PROFILE_SCORES.name)["dataset"].n_unique() - len(drawn) - len(failed)
    if n > 0:
        parts.append(
            f"{counted(n, 'dataset')} not drawn; the tables {BRAIN_PATTERNS.name} and {MODEL_PATTERNS.name} have all "
            "patterns."
        )
    return " ".join(parts)


def _summary(drawn: list[Panel]) -> str:
    parts = []
    for panel in drawn:
        likes = ", ".join(
            f"{strip.name} {number(strip.similarity, 2)}"
            for strip in panel.blocks
            if strip.similarity is not None
        )
        parts.append(f"{layer_name(panel.layer)}: similarity to the brain's patterns {likes}.")
    return " ".join(parts)
