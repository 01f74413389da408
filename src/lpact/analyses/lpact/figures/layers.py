"""A layer is (dataset, model, layer): what a claim is about before its mechanism is named. Its names, and its gates."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.common import PROFILES
from lpact.analyses.lpact.figures.short_names import told_apart
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.report.figure import Material

LAYER = ["dataset", "model", "layer"]
SUBJECT_RUN = ["subject", "session", "run"]
REAL, NUISANCE = "real", "nuisance"


def layer_name(row: dict[str, Any]) -> str:
    """A layer in words."""
    return f"{row['dataset']} · {row['model']} · layer {row['layer']}"


def run_name(row: dict[str, Any]) -> str:
    """A subject-run in words."""
    return f"subject {row['subject']}, session {row['session']}, run {row['run']}"


class ShortLayerNames:
    """Names of the layers of a picture in little room: datasets and models are shortened, layers keep their number."""

    def __init__(self, layers: pl.DataFrame) -> None:
        self._datasets = layers["dataset"].unique(maintain_order=True).to_list()
        self._models = layers["model"].unique(maintain_order=True).to_list()

    def of_model(self, model: str, layer: int, letters: int) -> str:
        """Model and layer in at most so many letters."""
        end = f" · layer {layer}"
        return told_apart(self._models, max(4, letters - len(end)))[model] + end

    def in_two_lines(self, row: dict[str, Any], letters: int) -> tuple[str, str]:
        """Dataset, and model with layer, each in at most so many letters."""
        dataset = told_apart(self._datasets, letters)[row["dataset"]]
        return dataset, self.of_model(row["model"], row["layer"], letters)

    def of(self, row: dict[str, Any], letters: int) -> str:
        """Dataset, model and layer in at most so many letters."""
        room = letters - len(f" · layer {row['layer']}") - 3
        long = max(map(len, self._datasets)), max(map(len, self._models))
        kept = max(room // 2, room - long[1])
        dataset = told_apart(self._datasets, min(kept, long[0]))[row["dataset"]]
        return (
            f"{dataset} · {self.of_model(row['model'], row['layer'], letters - len(dataset) - 3)}"
        )


def passes(material: Material, gate: str) -> pl.DataFrame:
    """Which layers pass a gate (for any mechanism), one row a layer, one column a gate profile."""
    if not material.has(DECISIONS.name):
        flags = dict.fromkeys((PAPER, CALIBRATED), pl.Boolean)
        return pl.DataFrame(
            schema={"dataset": pl.String, "model": pl.String, "layer": pl.Int64, **flags}
        )
    held = [
        (pl.col(gate) & (pl.col("gate_profile") == profile)).any().alias(profile)
        for profile in (PAPER, CALIBRATED)
    ]
    return material.table(DECISIONS.name).sort(LAYER).group_by(LAYER, maintain_order=True).agg(held)


def held_under(layer: dict[str, Any]) -> str:
    """Under which gate profiles a gate is passed, in words; ``layer`` has a flag a profile."""
    held = [profile for profile in PROFILES if layer.get(profile)]
    if len(held) == len(PROFILES):
        return "both profiles"
    return f"{PROFILES[held[0]]} only" if held else "not passed"


def mechanism_order(material: Material, found: pl.Series) -> list[str]:
    """Mechanisms as the study file names them, then others that the tables hold, by name."""
    known = [name for name in material.config.mechanisms.include if (found == name).any()]
    return [*known, *sorted(set(found.to_list()) - set(known))]
