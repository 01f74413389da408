"""Numbers of the profile heat maps: patterns of brain and model over the same units, in one order.

Patterns are averaged over the subject-runs of one unit order; those of another order hold other units and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.figures.common import NUISANCE, REAL, SUBJECT_RUN, layer_name
from lpact.math.types import FloatArray
from lpact.report.wording import counted

MAX_UNITS = 120
"""More units than these are drawn as means over regions."""


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

    def values(self) -> list[float | None]:
        """All numbers, None where undefined."""
        flat = self.numbers.ravel().tolist()
        return [value if np.isfinite(value) else None for value in flat]

    @property
    def ends(self) -> tuple[float, float] | None:
        """Lowest and highest number; none where all are undefined."""
        finite = self.numbers[np.isfinite(self.numbers)]
        return (float(finite.min()), float(finite.max())) if finite.size else None


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


def panel_of(
    layer: dict[str, Any],
    *,
    brain: pl.DataFrame,
    model: pl.DataFrame,
    index: pl.DataFrame,
    runs: pl.DataFrame,
    asked: tuple[tuple[str, ...], tuple[str, ...]],
) -> Panel | str:
    """The panel of a layer from its tables, or a sentence why there is none.

    ``runs`` are the layer's similarities by summary, condition and subject-run; ``asked`` the alignment measures and
    profile similarities of the study file. Similarities are averaged over the subject-runs whose patterns are drawn.
    """
    alignment = _first(asked[0], runs["alignment"])
    runs = runs.filter(pl.col("alignment") == alignment)
    profile = _first(asked[1], runs["profile"])
    runs = runs.filter(pl.col("profile") == profile)
    brain, model = (frame.filter(pl.col("alignment") == alignment) for frame in (brain, model))
    order = _common_order(brain, model)
    if order is None:
        return f"{layer_name(layer)} is not drawn: brain and model patterns have no unit order in common."
    total = brain.select(SUBJECT_RUN).n_unique()
    in_order = pl.col("unit_order_hash") == order
    both = [*SUBJECT_RUN, "unit_order_hash"]
    model = model.filter(in_order).join(brain, on=both, how="semi", maintain_order="left")
    brain = brain.filter(in_order).join(model, on=both, how="semi", maintain_order="left")
    n_runs = brain.select(SUBJECT_RUN).n_unique()
    drawn = runs.join(brain, on=SUBJECT_RUN, how="semi", maintain_order="left")
    rows = drawn.group_by("condition", maintain_order=True).agg(
        pl.col("similarity").mean(), n=pl.len().cast(pl.Int64)
    )
    units = index.filter(in_order).sort(["unit_index", *SUBJECT_RUN])
    units = units.unique("unit_index", keep="first", maintain_order=True)
    notes = []
    if n_runs < total:
        notes.append(
            f"{layer_name(layer)}: mean over {n_runs} of {counted(total, 'subject-run')}; "
            "the others have another unit order."
        )
    panel = Panel(
        layer,
        alignment,
        profile,
        units["unit"].to_list(),
        units["region"].to_list(),
        _blocks(brain, model, rows, units.height),
        n_runs,
        notes,
    )
    return _reduced(_grouped(panel))


def _blocks(
    brain: pl.DataFrame, model: pl.DataFrame, rows: pl.DataFrame, n_units: int
) -> list[Block]:
    """The square, and the strips that there are patterns for."""
    square = _square(brain, n_units)
    best = _best_control(rows)
    blocks = [
        Block("brain", square, strip=False),
        Block("mean brain unit", _finite_mean(square)[None]),
    ]
    names = {REAL: "real features", NUISANCE: "nuisance", best: f"best control, {best}"}
    for condition, name in names.items():
        strip = _strip(model, condition, n_units)
        if strip is not None:
            blocks.append(Block(name, strip, *_similarity(rows, condition)))
    return blocks


def _first(asked: tuple[str, ...], found: pl.Series) -> str:
    """The first that the study asks for and the tables hold; else the first by name."""
    have = set(found.to_list())
    return next((name for name in asked if name in have), min(have))


def _common_order(brain: pl.DataFrame, model: pl.DataFrame) -> str | None:
    """The unit order of most subject-runs, among those that brain and model both have; ties by name."""
    keys = [*SUBJECT_RUN, "unit_order_hash"]
    both = brain.select(keys).unique().join(model.select(keys).unique(), on=keys)
    counts = (
        both.group_by("unit_order_hash")
        .len()
        .sort(["len", "unit_order_hash"], descending=[True, False])
    )
    return str(counts["unit_order_hash"][0]) if counts.height else None


def _square(brain: pl.DataFrame, n_units: int) -> FloatArray:
    """Mean over subject-runs of the units × units alignments; NaN where none is defined."""
    total, known = np.zeros((n_units, n_units)), np.zeros((n_units, n_units))
    ordered = brain.sort(["unit_index", *SUBJECT_RUN])
    for place, pattern in ordered.select("unit_index", "pattern").iter_rows():
        row = np.array(pattern, dtype=float)
        total[place] += np.nan_to_num(row)
        known[place] += np.isfinite(row)
    return _mean(total, known)


def _mean(total: FloatArray, known: FloatArray) -> FloatArray:
    mean: FloatArray = np.where(known > 0, total / np.maximum(known, 1), np.nan)
    return mean


def _strip(model: pl.DataFrame, condition: str, n_units: int) -> FloatArray | None:
    """Mean over draws, then over subject-runs, of a condition's alignment with every unit, [1, N]."""
    own = model.filter(pl.col("condition") == condition).sort([*SUBJECT_RUN, "draw"])
    if not own.height:
        return None
    means = []
    for _, part in own.group_by(SUBJECT_RUN, maintain_order=True):
        stacked = np.array(part["pattern"].to_list(), dtype=float).reshape(-1, n_units)
        means.append(_finite_mean(stacked))
    return _finite_mean(np.stack(means))[None]


def _finite_mean(stacked: FloatArray) -> FloatArray:
    return _mean(np.nan_to_num(stacked).sum(axis=0), np.isfinite(stacked).sum(axis=0))


def _best_control(rows: pl.DataFrame) -> str:
    """The control with the highest mean similarity; ties by name; empty where there is none."""
    controls = rows.filter(~pl.col("condition").is_in([REAL, NUISANCE]))
    ranked = controls.sort(["similarity", "condition"], descending=[True, False])
    return str(ranked["condition"][0]) if ranked.height else ""


def _similarity(rows: pl.DataFrame, condition: str) -> tuple[float | None, int]:
    """Mean similarity of a condition, and over how many subject-runs."""
    own = rows.filter(pl.col("condition") == condition)
    return (float(own["similarity"][0]), int(own["n"][0])) if own.height else (None, 0)


def _grouped(panel: Panel) -> Panel:
    """Units by region, regions in the order of their first unit."""
    first = {region: i for i, region in reversed(list(enumerate(panel.regions)))}
    places = range(len(panel.regions))
    return _picked(panel, sorted(places, key=lambda i: (first[panel.regions[i]], i)))


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
    if 2 < len(names) <= MAX_UNITS:
        groups = [[i for i, r in enumerate(panel.regions) if r == name] for name in names]
        note = f"{head}{counted(n_units, 'unit')} are drawn as means over {len(names)} regions."
        return replace(
            panel,
            places=names,
            regions=names,
            blocks=[replace(b, numbers=_region_means(b, groups)) for b in panel.blocks],
            notes=[*panel.notes, note],
            of_regions=True,
        )
    kept = np.linspace(0, n_units - 1, MAX_UNITS).round().astype(int).tolist()
    note = f"{head}{MAX_UNITS} of {counted(n_units, 'unit')} are drawn, evenly spaced in the order."
    return replace(_picked(panel, kept), notes=[*panel.notes, note])


def _region_means(block: Block, groups: list[list[int]]) -> FloatArray:
    """Means over the defined numbers of every pair of regions; for a strip, of every region."""
    down = [[0]] if block.strip else groups
    cells = [[_defined_mean(block.numbers[np.ix_(r, c)]) for c in groups] for r in down]
    return np.array(cells, dtype=float)


def _defined_mean(part: FloatArray) -> float:
    finite = part[np.isfinite(part)]
    return float(finite.mean()) if finite.size else float("nan")
