"""A study whose data or models are not there, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lpact.cli._datasets import source_lines
from lpact.cli._layout import Grid
from lpact.cli._render import counted, heading, say, show, whole

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.config import StudyConfig
    from lpact.run.outline import DatasetOutline, Outline

CONFIRMS = "primary"


def show_outline(out: Console, outline: Outline, config: StudyConfig, program: str) -> None:
    """What the study asks for, what is missing and how to get it, and what follows from the file alone."""
    say(
        out,
        f"{counted(outline.n_missing, 'dataset or model', 'datasets and models')} not there yet: sizes, times and "
        "what the source audit finds come when they are.",
    )
    _show_datasets(out, outline, program)
    _show_models(out, outline)
    _show_controls(out, outline)
    _show_levels(out, config)
    _show_gates(out, config)
    _show_rows(out, outline, config)


def _show_datasets(out: Console, outline: Outline, program: str) -> None:
    heading(out, "Datasets")
    grid = Grid(("dataset", "role", "confirmatory", "reader", "folder"))
    for dataset in outline.datasets:
        confirms = "if its chain is complete" if dataset.role == CONFIRMS else "no"
        there = "there" if not dataset.missing else dataset.missing
        grid.add(dataset.name, dataset.role, confirms, dataset.reader, there)
    show(out, grid)
    for dataset in outline.datasets:
        if dataset.missing:
            _show_source(out, dataset, program)
    for dataset in outline.datasets:
        if not dataset.missing and dataset.folder is not None:
            command = f"{program} datasets check {dataset.reader} {dataset.folder}"
            say(out, f"{dataset.name} can be looked at: {command}", indent=2)


def _show_source(out: Console, dataset: DatasetOutline, program: str) -> None:
    say(out)
    say(out, f"{dataset.name}, to be got:", indent=2)
    if dataset.download is None:
        say(out, f"data of your own, for the reader '{dataset.reader}'", indent=4)
        return
    for label, text in source_lines(dataset.download):
        say(out, f"{label + ':':<9}{text}", indent=4)
    folder = dataset.folder or "FOLDER"
    say(out, f"{'get it:':<9}{program} datasets fetch {dataset.reader} --to {folder}", indent=4)
    if dataset.extra:
        say(out, f"{'needs:':<9}pip install 'lpact[{dataset.extra}]'", indent=4)


def _show_models(out: Console, outline: Outline) -> None:
    heading(out, "Models")
    grid = Grid(("model", "source", "layers", "what is needed"))
    for model in outline.models:
        layers = ", ".join(map(str, model.layers))
        grid.add(model.name, model.source, layers, model.missing or "nothing: it is there")
    show(out, grid)
    if outline.models:
        contexts = ", ".join(outline.models[0].contexts)
        say(
            out,
            f"contexts of features that controls, strips and mechanisms read: {contexts}",
            indent=2,
        )


def _show_controls(out: Console, outline: Outline) -> None:
    from lpact.controls.base import CONTROLS

    heading(out, "Severe controls, where dataset and model allow them (draws: at most)")
    grid = Grid(("control", "draws", "paper gates", "needs"), right=frozenset({"draws"}))
    for name, draws in outline.controls.items():
        control = CONTROLS.get(name)
        grid.add(name, draws, "counted" if control.counted else "shown beside", control.needs)
    show(out, grid)


def _show_levels(out: Console, config: StudyConfig) -> None:
    heading(out, "Levels")
    relational, stripping, readout = config.relational, config.stripping, config.readout
    n_summaries = len(relational.alignments) * len(relational.profiles)
    for line in (
        f"1 predictive: {readout.folds} outer folds ({readout.split}), gap of {readout.gap_events} events, metric "
        f"{readout.primary_metric}, {len(config.nuisance.include)} nuisance features",
        f"2 relational: {', '.join(relational.alignments)} × {', '.join(relational.profiles)} = "
        f"{counted(n_summaries, 'summary', 'summaries')}, with {relational.min_units} units or more",
        f"3 mechanisms: {', '.join(mechanisms.include)}; stripped by {', '.join(stripping.methods)}",
        f"4 reliability: brain–brain ceilings of at least {config.gates.min_reliability:g}",
    ):
        say(out, line, indent=2)


def _show_gates(out: Console, config: StudyConfig) -> None:
    heading(out, "Gates")
    for name, value in config.gates.model_dump().items():
        say(out, f"{name} = {value}", indent=2)


def _show_rows(out: Console, outline: Outline, config: StudyConfig) -> None:
    heading(out, "Rows of one context (subject-run, model and layer), at most")
    grid = Grid(("table", "rows", "a brain unit"), right=frozenset({"rows", "a brain unit"}))
    for name in sorted({*outline.rows, *outline.rows_a_unit}):
        more = outline.rows_a_unit.get(name, 0)
        grid.add(name, whole(outline.rows.get(name, 0)), f"+ {whole(more)}" if more else "")
    show(out, grid)
    heading(out, "Claims")
    n_layers = sum(len(m.layers) for m in config.models)
    say(
        out,
        f"at most {counted(outline.n_claims, 'claim')}: {counted(len(outline.datasets), 'dataset')} × "
        f"{counted(n_layers, 'layer')} of {counted(len(outline.models), 'model')} × "
        f"{counted(len(config.mechanisms.include), 'mechanism')}; {whole(outline.n_confirmatory_claims)} of them "
        "can confirm anything",
        indent=2,
    )
