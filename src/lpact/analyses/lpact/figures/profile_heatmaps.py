"""Profile heat maps: the brain's own relational pattern next to those of the model, nuisance and the best control.

One panel per dataset: units × units alignments b_i(j) of the brain, and below it rows q(j) with the alignment of the
mean brain unit, the real features, nuisance and the nearest control with every unit j. Patterns are averaged over the
subject-runs of one unit order. Every block has its own scale, since profile similarity compares shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import LAYER, NUISANCE, REAL, SUBJECT_RUN, layer_name
from lpact.analyses.lpact.figures.relational_profiles import summary_order, unit_similarities
from lpact.analyses.lpact.gates.keys import mean_over_subject_runs
from lpact.analyses.lpact.tables.levels import BRAIN_PATTERNS, BRAIN_UNIT_INDEX, MODEL_PATTERNS, PROFILE_SCORES
from lpact.math.types import FloatArray
from lpact.report import panels
from lpact.report.figure import Drawing, figure
from lpact.report.panels import Classes
from lpact.report.theme import RAMP
from lpact.wording import counted, fixed, short

MAX_PANELS = 6
MAX_UNITS = 40
"""Of more units, evenly spaced ones are drawn."""
_SIDE, _ROW = 300, 16


@dataclass(frozen=True)
class Block:
    """A matrix [rows, units] of alignments; a single row has its similarity, mean over ``n`` subject-runs."""

    name: str
    numbers: FloatArray
    similarity: float | None = None
    n: int = 0

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest number; NaN where all are undefined."""
        known = self.numbers[np.isfinite(self.numbers)]
        return (float(known.min()), float(known.max())) if known.size else (np.nan, np.nan)


@dataclass(frozen=True)
class Panel:
    """One layer: the brain's square first, then single rows of the same units, which are grouped by region."""

    layer: dict[str, Any]
    alignment: str
    profile: str
    units: list[str]
    regions: list[str]
    blocks: list[Block]
    n_subject_runs: int
    note: str


def panels_of(material: Material) -> list[Panel | str]:
    """One panel for the best layer of every dataset, or why it cannot be drawn."""
    rows, _ = unit_similarities(material)
    n = min(MAX_PANELS, rows["dataset"].n_unique())
    layers, _ = common.shown(material, rows, n, PROFILE_SCORES)
    return [_panel_of(material, layer, rows.filter(common.of_layer(layer))) for layer in layers.iter_rows(named=True)]


def _panel_of(material: Material, layer: dict[str, Any], rows: pl.DataFrame) -> Panel | str:
    """The panel of a layer, or a sentence why there is none; ``rows`` are its similarities by unit.

    It shows the first alignment measure and profile similarity of the study file, over the subject-runs that share
    the most frequent unit order.
    """
    alignment, profile = summary_order(material, rows)[0]
    same, name = pl.col("dataset") == layer["dataset"], layer_name(layer)
    brain = material.table(BRAIN_PATTERNS.name).filter(same, alignment=alignment)
    model = material.table(MODEL_PATTERNS.name).filter(common.of_layer(layer), alignment=alignment)
    both = [*SUBJECT_RUN, "unit_order_hash"]
    shared = brain.select(both).unique().join(model.select(both).unique(), on=both)
    if shared.is_empty():
        return f"{name} is not drawn: brain and model patterns have no unit order in common."
    order = shared["unit_order_hash"].mode().sort()[0]
    shared, total = shared.filter(unit_order_hash=order), brain.select(SUBJECT_RUN).n_unique()
    brain, model = (own.join(shared, on=both, how="semi") for own in (brain, model))
    rows = rows.filter(alignment=alignment, profile=profile)
    rows = rows.join(shared, on=SUBJECT_RUN, how="semi", maintain_order="left")
    units = material.table(BRAIN_UNIT_INDEX.name).filter(same, unit_order_hash=order)
    units = units.sort("unit_index", *SUBJECT_RUN).unique("unit_index", keep="first")
    units = units.sort(pl.col("unit_index").min().over("region"), "unit_index")
    n, notes = units.height, []
    if shared.height < total:
        of = f"{shared.height} of {counted(total, 'subject-run')}"
        notes.append(f"{name}: mean over {of}; the others have another unit order.")
    if n > MAX_UNITS:
        notes.append(f"{name}: {MAX_UNITS} of {n} units, evenly spaced in their order.")
        units = units[np.linspace(0, n - 1, MAX_UNITS).round().astype(int)]
    blocks = _blocks(brain, model, rows, units["unit_index"].to_list())
    named, regions = units["unit"].to_list(), units["region"].to_list()
    return Panel(layer, alignment, profile, named, regions, blocks, shared.height, " ".join(notes))


def _blocks(brain: pl.DataFrame, model: pl.DataFrame, rows: pl.DataFrame, places: list[int]) -> list[Block]:
    """The square, and the single rows that have patterns."""
    square = _means(brain, "unit_index", places).drop("unit_index")
    patterns = _means(model, "condition", places)
    means = mean_over_subject_runs(rows, ["condition"], ["similarity"])
    similar = {name: own for name, *own in means.iter_rows()}
    controls = sorted(similar.keys() - {REAL, NUISANCE}, key=lambda name: (-similar[name][0], name))
    names = {REAL: "real features", NUISANCE: "nuisance"}
    names |= {best: f"best control, {best}" for best in controls[:1]}
    single = [
        Block(name, own.to_numpy(), *similar.get(condition, ()))
        for condition, name in names.items()
        if (own := patterns.filter(condition=condition).drop("condition")).height
    ]
    mean_unit = Block("mean brain unit", square.mean().to_numpy())
    return [Block("brain", square[places].to_numpy()), mean_unit, *single]


def _means(rows: pl.DataFrame, by: str, places: list[int]) -> pl.DataFrame:
    """Patterns over units at some places, mean over draws and then over subject-runs: one row per value of ``by``."""
    long = rows.sort(by, *SUBJECT_RUN, maintain_order=True).select(
        *SUBJECT_RUN,
        by,
        pl.col("pattern").list.gather(places),
        place=pl.lit(list(range(len(places)))),
    )
    long = long.explode("pattern", "place").with_columns(pl.col("pattern").fill_nan(None))
    means = mean_over_subject_runs(long, [by, "place"], ["pattern"])
    return means.pivot("place", index=by, values="pattern")


@figure(
    "profile_heatmaps",
    "The brain's own relational pattern, and the model's",
    PROFILE_SCORES,
    BRAIN_PATTERNS,
    MODEL_PATTERNS,
    BRAIN_UNIT_INDEX,
)
def make(material: Material) -> Drawing | str:
    """Draw the patterns of the best layer of every dataset."""
    made = panels_of(material)
    drawn = [panel for panel in made if isinstance(panel, Panel)]
    failed = [panel for panel in made if isinstance(panel, str)]
    if not drawn:
        return " ".join(failed) or "no profile similarity was computed"
    first = drawn[0]
    key = panels.key(
        ("alignment within its block", Classes(RAMP, ()), ["lowest", *[""] * 5, "highest"]),
        ("undefined: a unit with itself, or missing", common.MISSING_BOX[1]),
        "above each block: profile similarity with the brain, and (lowest to highest alignment)",
        width=760,
    )
    grid = panels.grid([_panel(own) for own in drawn], 2, spacing={"row": 30, "column": 60})
    n = material.table(PROFILE_SCORES.name)["dataset"].n_unique() - len(made)
    caption = [
        f"Square: {first.alignment} alignment of every brain unit (row) with every other (column), grouped by region, "
        "in the layer of each dataset that has the best verdict.",
        "Rows below: alignment of the mean brain unit, the real features, nuisance and the most similar control with "
        f"the same units, and their {first.profile} profile similarity with the brain's, mean over units and "
        "subject-runs. "
        "Every block is shaded from its own lowest to its own highest value, since similarity compares shapes.",
        *(panel.note for panel in drawn),
        *failed,
        f"{counted(n, 'dataset')} not drawn; {MODEL_PATTERNS.name} has all patterns." if n else "",
    ]
    summary = []
    for panel in drawn:
        known = [block for block in panel.blocks if block.similarity is not None]
        found = ", ".join(f"{block.name} {fixed(block.similarity, 2)}" for block in known)
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
    (n_rows, n), single = block.numbers.shape, block is not panel.blocks[0]
    down, across = (own.ravel() for own in np.indices((n_rows, n)))
    units = pl.Series(
        unit if region in ("", unit) else f"{unit} ({region})"
        for unit, region in zip(panel.units, panel.regions, strict=True)
    )
    cells = pl.DataFrame({"down": down, "across": across, "value": block.numbers.ravel()})
    classes = Classes(RAMP, tuple(np.linspace(*block.ends, len(RAMP) + 1)[1:-1].tolist()))
    cells = classes.paint(cells.fill_nan(None), "value").with_columns(
        *(pl.lit(panel.layer[key]).alias(key) for key in LAYER),
        who=pl.lit(block.name) if single else pl.lit("brain, ") + units[down],
        unit=units[across],
    )
    text = f"{{at}}: {{who}} with {{unit}}: {panel.alignment} alignment {{value}}"
    x = panels.lanes("across", range(n), labels=False)
    y = panels.lanes("down", range(n_rows), labels=False)
    heading = short(block.name, 38) if single else "brain, unit with unit"
    if block.similarity is not None:
        heading += f": {fixed(block.similarity, 2)}"
        if block.n != panel.n_subject_runs:
            heading += f" in {block.n} of {counted(panel.n_subject_runs, 'subject-run')}"
    heading += f" ({fixed(block.ends[0], 2)} to {fixed(block.ends[1], 2)})"
    layers = panels.cells(common.marked(cells, text, "value"), x, y, gap=0)
    layers.append(panels.heading(heading, 0, ink="ink"))
    step, place = _SIDE / n, pl.col("place")
    regions = pl.DataFrame({"name": panel.regions, "place": range(n)})
    regions = regions.group_by("name", maintain_order=True).agg(
        start=place.min() * step, middle=(place.mean() + 0.5) * step, room=place.len() * step
    )
    if regions.height > 1:
        start, middle = panels.pixels("start"), panels.pixels("middle")
        paper, lines = {"color": "paper", "strokeWidth": 2}, regions.slice(1)
        layers.append(panels.layer(lines, "rule", paper, x=start))
        if not single:
            side, left = regions.filter(pl.col("room") >= 11), {"value": -5}
            layers.append(panels.layer(lines, "rule", paper, y=start))
            layers.append(panels.text(side, "name", left, middle, size=10, align="right", limit=80))
        if block is panel.blocks[-1]:
            below = regions.filter(pl.col("room") >= 5.4 * pl.col("name").str.len_chars())
            bottom = {"value": _ROW + 10}
            layers.append(panels.text(below, "name", middle, bottom, size=10, align="center"))
    return panels.overlay(*layers, width=_SIDE, height=_ROW if single else _SIDE)
