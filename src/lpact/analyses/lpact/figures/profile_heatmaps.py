"""Profile heat maps: the brain's own relational pattern beside the model's, that of nuisance and the best control's.

One panel a dataset: units × units alignments b_i(j) of the brain, and under it strips q(j) with the alignment of the
mean brain unit, the real features, nuisance and the nearest control with every unit j. Profile similarity compares
shapes, so every block has its own scale, whose ends are written above it.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.common import LAYER, ShortLayerNames, layer_name
from lpact.analyses.lpact.figures.key import Key
from lpact.analyses.lpact.figures.profile_blocks import Panel, panel_of
from lpact.analyses.lpact.figures.profile_panels import drawn_panel
from lpact.analyses.lpact.figures.similarities import (
    SCORES,
    layers_of,
    nearest_rivals,
    similarities,
    telling_layers,
)
from lpact.report.figure import Figure, Missing, Spec
from lpact.report.theme import RAMP
from lpact.report.wording import counted, number

NAME = "profile_heatmaps"
TITLE = "The brain's own relational pattern, and the model's beside it"
BRAIN = "relational/brain_alignment_patterns"
MODEL = "relational/model_alignment_patterns"
INDEX = "relational/brain_unit_index"
MAX_PANELS = 6
_COLUMNS = 2


def panels_of(material: Material) -> list[Panel | str]:
    """One panel for the most telling layer of every dataset, or why it cannot be drawn."""
    found = similarities(material)
    nearest = nearest_rivals(found.rows)
    layers = telling_layers(layers_of(material, nearest)).head(MAX_PANELS)
    return [
        panel_of(
            layer,
            brain=_of_dataset(material, BRAIN, layer),
            model=_of_layer(material, MODEL, layer),
            index=_of_dataset(material, INDEX, layer),
            runs=found.runs.filter(pl.col(name) == layer[name] for name in LAYER),
            asked=(
                LPactConfig.of(material.config).relational.alignments,
                LPactConfig.of(material.config).relational.profiles,
            ),
        )
        for layer in layers.iter_rows(named=True)
    ]


def _of_dataset(material: Material, name: str, layer: dict[str, Any]) -> pl.DataFrame:
    return material.table(name).filter(pl.col("dataset") == layer["dataset"])


def _of_layer(material: Material, name: str, layer: dict[str, Any]) -> pl.DataFrame:
    return material.table(name).filter(pl.col(key) == layer[key] for key in LAYER)


def make(material: Material) -> Figure | Missing:
    """Draw the patterns of the most telling layer of every dataset."""
    lacking = material.lacks(SCORES, BRAIN, MODEL, INDEX)
    if lacking:
        return Missing(NAME, TITLE, f"The run has no table {', '.join(lacking)}.")
    made = panels_of(material)
    panels = [panel for panel in made if isinstance(panel, Panel)]
    failed = [panel for panel in made if isinstance(panel, str)]
    if not panels:
        why = " ".join(failed) or "No layer has a profile similarity that can be compared."
        return Missing(NAME, TITLE, why)
    names = ShortLayerNames(pl.DataFrame([panel.layer for panel in panels]))
    key = Key(900).classes(
        "alignment within its block",
        RAMP,
        ["lowest", *[""] * 5, "highest"],
    )
    if any(value is None for panel in panels for block in panel.blocks for value in block.values()):
        key.box("undefined: a unit with itself, or missing", "missing")
    key.words(
        "in words: profile similarity with the brain, and in brackets the lowest to highest alignment"
    )
    spec: Spec = {
        "vconcat": [
            key.spec(),
            {
                "concat": [drawn_panel(panel, names.of(panel.layer, 50)) for panel in panels],
                "columns": _COLUMNS,
                "align": "each",
                "spacing": {"row": 30, "column": 40},
            },
        ],
        "spacing": 16,
    }
    return Figure(NAME, TITLE, _caption(material, panels, failed), _summary(panels), spec)


def _caption(material: Material, panels: list[Panel], failed: list[str]) -> str:
    first = panels[0]
    parts = [
        f"Square: {first.alignment} alignment of every brain unit (row) with every other (column), grouped by region.",
        "Strips: alignment of the mean brain unit, the real features, nuisance and the most similar control with the "
        f"same units, and their {first.profile} profile similarity with the brain's (mean over units, "
        "draws of random controls and the panel's subject-runs; where fewer have one, their number stands with it).",
        "Similarity compares shapes, not sizes: every block is shaded from its own lowest to its own highest value.",
        "Drawn is the most telling layer of each dataset: gate R under most profiles, then the largest "
        "median advantage "
        f"over the nearest rival, by {first.alignment} and {first.profile}, the first that the study asks for.",
    ]
    parts.extend(note for panel in panels for note in panel.notes)
    parts.extend(failed)
    n = material.table(SCORES)["dataset"].n_unique() - len(panels) - len(failed)
    if n > 0:
        parts.append(f"{counted(n, 'dataset')} not drawn; the patterns are in {BRAIN} and {MODEL}.")
    return " ".join(parts)


def _summary(panels: list[Panel]) -> str:
    words = []
    for panel in panels:
        likes = ", ".join(
            f"{strip.name} {number(strip.similarity, 2)}"
            for strip in panel.blocks
            if strip.similarity is not None
        )
        words.append(f"{layer_name(panel.layer)}: similarity to the brain's patterns {likes}.")
    return " ".join(words)
