"""A study whose data or models are missing: what it asks for, and where to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lpact.cli._datasets import source_lines
from lpact.cli._layout import Grid
from lpact.cli._render import counted, heading, say, show, show_blocks

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.run.outline import DatasetOutline, Outline


def show_outline(out: Console, outline: Outline, program: str) -> None:
    """Print what the study asks for, what is missing and how to get it, and what follows from the file alone."""
    missing = counted(outline.n_missing, "dataset or model", "datasets and models")
    say(out, f"{missing} missing: sizes, times and the source audit need them.")
    _show_datasets(out, outline, program)
    _show_models(out, outline)
    _show_controls(out, outline)
    for blocks in outline.blocks.values():
        show_blocks(out, blocks)


def _show_datasets(out: Console, outline: Outline, program: str) -> None:
    heading(out, "Datasets")
    grid = Grid(("dataset", "role", "reader", "folder"))
    for dataset in outline.datasets:
        grid.add(dataset.name, dataset.role, dataset.reader, dataset.missing or "found")
    show(out, grid)
    for dataset in outline.datasets:
        if dataset.missing:
            _show_source(out, dataset, program)
    for dataset in outline.datasets:
        if not dataset.missing and dataset.folder is not None:
            command = f"{program} datasets check {dataset.reader} {dataset.folder}"
            say(out, f"Check {dataset.name}: {command}", indent=2)


def _show_source(out: Console, dataset: DatasetOutline, program: str) -> None:
    say(out)
    say(out, f"How to get {dataset.name}:", indent=2)
    if dataset.download is None:
        say(out, f"your own data, for the reader '{dataset.reader}'", indent=4)
        return
    for label, text in source_lines(dataset.download):
        say(out, f"{label + ':':<9}{text}", indent=4)
    folder = dataset.folder or "FOLDER"
    fetch = f"{program} datasets fetch {dataset.reader} --to {folder}"
    say(out, f"{'command:':<9}{fetch}", indent=4)
    if dataset.extra:
        say(out, f"{'needs:':<9}pip install 'lpact[{dataset.extra}]'", indent=4)


def _show_models(out: Console, outline: Outline) -> None:
    heading(out, "Models")
    grid = Grid(("model", "source", "layers", "missing"))
    for model in outline.models:
        layers = ", ".join(map(str, model.layers))
        grid.add(model.name, model.source, layers, model.missing or "nothing")
    show(out, grid)
    if outline.models:
        contexts = ", ".join(outline.models[0].contexts)
        say(out, f"contexts of features that the analyses read: {contexts}", indent=2)


def _show_controls(out: Console, outline: Outline) -> None:
    from lpact.controls.base import CONTROLS

    heading(out, "Severe controls, where dataset and model allow them (draws: at most)")
    grid = Grid(("control", "draws", "needs"), right=frozenset({"draws"}))
    for name, draws in outline.controls.items():
        grid.add(name, draws, CONTROLS.get(name).needs)
    show(out, grid)
