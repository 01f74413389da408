"""``lpact datasets``: check a dataset's folder, or fetch a dataset from its official source."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._options import Json, program
from lpact.cli._terminal import console, heading, print_json, safe, say, show_blocks, show_table
from lpact.wording import counted, size

if TYPE_CHECKING:
    from lpact.datasets.base import DatasetReader
    from lpact.datasets.catalogue import Download
    from lpact.datasets.fetch import Command, FetchPlan

NOT_USABLE = 1
MOST_FILES = 20

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Check a dataset's folder, or fetch a dataset.",
)

_Name = Annotated[str, typer.Argument(help="Registered reader (`lpact list datasets`).")]
_Progress = Annotated[bool, typer.Option("--progress/--no-progress", help="Show progress.")]


@app.command("check")
def check(
    name: _Name,
    folder: Annotated[Path | None, typer.Argument(help="Folder of the dataset.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="Option of the reader, as KEY=VALUE with a TOML value."),
    ] = None,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Also read every signal and put it on the event grid."),
    ] = False,
    as_json: Json = False,
    progress: _Progress = True,
) -> None:
    """Check a dataset's folder, and show what it supports.

    Shows which parts of the layout are missing, every recording, everything that is wrong, and which evidence the
    dataset can support. Opens headers and tables only, unless --deep. Exit status 0: usable; 1: something must be
    fixed first.
    """
    from lpact.cli._dataset_report import check_blocks, check_values
    from lpact.datasets.base import DATASETS, RecordingId
    from lpact.inputs.check import check_dataset
    from lpact.registry import ANALYSES
    from lpact.run.progress import reporter

    options = reader_options(DATASETS.get(name, where="lpact datasets check"), option or [])
    with reporter(show=progress and deep) as shown:

        def each(ids: Sequence[RecordingId]) -> Iterator[RecordingId]:
            shown.stage("recordings", len(ids))
            for recording_id in ids:
                yield recording_id
                shown.advance()

        found = check_dataset(name, folder, options, deep=deep, each=each)
    added = [entry.plugin.check_dataset(found) for entry in ANALYSES.entries()]
    reports = [report for report in added if report is not None]
    if as_json:
        values = check_values(found)
        for report in reports:
            values |= report.values
        print_json(values)
    else:
        show_blocks([*check_blocks(found), *(block for r in reports for block in r.blocks)])
    if not found.usable:
        raise typer.Exit(NOT_USABLE)


@app.command("fetch")
def fetch(
    name: _Name,
    to: Annotated[Path, typer.Option("--to", help="Folder for the dataset.")],
    plan: Annotated[bool, typer.Option("--plan", help="Show what would be done, and stop; the default.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Fetch it.")] = False,
    as_json: Json = False,
    progress: _Progress = True,
) -> None:
    """Fetch a dataset from its official source.

    Shows source, version, size, licence and the commands first. Nothing is fetched without --yes.
    """
    from lpact.datasets.fetch import plan_fetch
    from lpact.run.progress import reporter

    planned = plan_fetch(name, to)
    if as_json:
        print_json(_plan_values(planned))
    else:
        _show_plan(planned)
    if plan or not yes:
        if not as_json and not planned.by_hand and not planned.lacking:
            again = f"{program()} datasets fetch {name} --to {to} --yes"
            say(f"\nNothing was fetched. To fetch it: {again}")
        return
    with reporter(show=progress) as bar:
        n_files = planned.run(bar)
    if not as_json:
        say()
        if planned.files:
            present = len(planned.files) - n_files
            say(f"{counted(n_files, 'file')} fetched, {present} already present.")
        say(f"Next: {program()} datasets check {name} {to}")


def reader_options(reader: type[DatasetReader], given: list[str]) -> dict[str, Any]:
    """Options of a reader from ``KEY=VALUE``: TOML values, or plain text if the option is a text."""
    import json
    import tomllib

    from pydantic import ValidationError

    from lpact.errors import ConfigError

    texts: dict[str, str] = {}
    values: dict[str, Any] = {}
    for item in given:
        key, sign, text = item.partition("=")
        if not sign or not key or key in texts:
            raise ConfigError(
                "an option is given twice" if key in texts else "an option is not KEY=VALUE",
                where="--option",
                got=item,
                expected="KEY=VALUE, each key once, such as --option seed=3",
                remedy="write it as KEY=VALUE",
            )
        texts[key] = text
        try:
            values[key] = tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):
            values[key] = text
    try:
        reader.Options.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        wrong = {str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}
        values |= {key: text for key, text in texts.items() if key in wrong}
    return values


def source_lines(download: Download) -> list[tuple[str, str]]:
    """Where a dataset comes from, as (label, text)."""
    page = download.homepage
    lines = [
        ("source", f"{download.identifier} ({page})" if download.identifier else page),
        ("version", download.version),
        ("size", download.size),
        ("licence", download.licence),
        ("cite", download.citation),
    ]
    return [(label, text) for label, text in lines if text]


def _show_plan(plan: FetchPlan) -> None:
    """Print what a download is, and how it is made."""
    download = plan.download
    say(f"{plan.name} → {plan.folder}")
    lines = source_lines(download)
    if download.include and not plan.by_hand:
        lines.append(("parts", ", ".join(download.include)))
    for label, text in lines:
        say(f"{label + ':':<9}{text}", indent=2)
    steps = download.steps or ([f"by hand, from {download.homepage}"] if plan.by_hand else ())
    if steps:
        heading("How to get it" if plan.by_hand else "What you must do yourself")
    for i, step in enumerate(steps, start=1):
        say(f"{i}. {step}", indent=2)
    if plan.commands:
        heading("Commands that would run")
    for command in plan.commands:
        # Commands to copy are never broken.
        console().print(f"  {safe(command_text(command))}", soft_wrap=True)
    if plan.lacking:
        say(f"Not installed: {plan.lacking}. Install it first.", indent=2)
    if plan.files:
        left = plan.n_bytes_left
        known = "size not published" if left is None else f"{size(left)} to download"
        heading(f"{counted(len(plan.files), 'file')} by HTTPS, {known}")
        rows = [
            (
                file.path,
                "" if file.n_bytes is None else size(file.n_bytes),
                "published" if file.sha256 else "none",
                file.url,
            )
            for file in plan.files[:MOST_FILES]
        ]
        show_table(("file", "size", "checksum", "from"), rows, right=("size",))
    if len(plan.files) > MOST_FILES:
        say(f"… and {len(plan.files) - MOST_FILES} more", indent=2)


def command_text(command: Command) -> str:
    """A command to copy. Files that it finds are written as globs, which the shell expands inside ``cd``."""
    if not command.globs:
        return shlex.join(command.arguments)
    program, _, folder, *rest = command.arguments
    globs = [glob.removesuffix("**/*").removesuffix("/**") or "." for glob in command.globs]
    return f"(cd {shlex.quote(folder)} && {shlex.join([program, *rest])} {' '.join(globs)})"


def _plan_values(plan: FetchPlan) -> dict[str, Any]:
    return {
        "dataset": plan.name,
        "to": str(plan.folder),
        **{name: value for name, value in vars(plan.download).items() if name != "files"},
        "commands": [vars(command) for command in plan.commands],
        "files": [vars(file) for file in plan.files],
        "n_bytes_left": plan.n_bytes_left if plan.files else None,
        "lacking": plan.lacking,
    }
