"""``lpact datasets``: check a dataset's folder, or fetch a dataset from its official source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli import _datasets as shown
from lpact.cli._machine import program
from lpact.cli._render import console, counted, say, show_blocks

if TYPE_CHECKING:
    from lpact.datasets.base import DatasetReader

NOT_USABLE = 1

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Check a dataset's folder, or fetch a dataset.",
)

_Name = Annotated[str, typer.Argument(help="Registered reader (`lpact list datasets`).")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
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
    json: _Json = False,
    progress: _Progress = True,
) -> None:
    """Check a dataset's folder, and show what it supports.

    Shows which parts of the layout are missing, every recording, everything that is wrong, and which evidence the
    dataset can support. Opens headers and tables only, unless --deep. Exit status 0: usable; 1: something must be
    fixed first.
    """
    import json as encoder

    from lpact.datasets.base import DATASETS
    from lpact.registry import ANALYSES

    options = reader_options(DATASETS.get(name, where="lpact datasets check"), option or [])
    show = progress and deep
    reports = [
        report
        for entry in ANALYSES.entries()
        if (report := entry.plugin.check_dataset(name, folder, options, deep=deep, progress=show))
    ]
    if json:
        values = reports[0].values if len(reports) == 1 else [dict(r.values) for r in reports]
        typer.echo(encoder.dumps(values, indent=2, ensure_ascii=False))
    else:
        for report in reports:
            show_blocks(console(), report.blocks)
    if not all(report.usable for report in reports):
        raise typer.Exit(NOT_USABLE)


@app.command("fetch")
def fetch(
    name: _Name,
    to: Annotated[Path, typer.Option("--to", help="Folder for the dataset.")],
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what would be done, and stop; the default.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Fetch it.")] = False,
    json: _Json = False,
    progress: _Progress = True,
) -> None:
    """Fetch a dataset from its official source.

    Shows source, version, size, licence and the commands first. Nothing is fetched without --yes.
    """
    from lpact.datasets.fetch import plan_fetch
    from lpact.run.progress import reporter

    planned = plan_fetch(name, to)
    out = console()
    if json:
        typer.echo(shown.plan_json(planned))
    else:
        shown.show_plan(out, planned)
    if plan or not yes:
        if not json and not planned.by_hand and not planned.lacking:
            say(out)
            say(
                out,
                f"Nothing was fetched. To fetch it: {program()} datasets fetch {name} --to {to} --yes",
            )
        return
    with reporter(show=progress) as shown_progress:
        n_files = planned.run(shown_progress)
    if not json:
        say(out)
        if planned.files:
            say(
                out,
                f"{counted(n_files, 'file')} fetched, {len(planned.files) - n_files} already present.",
            )
        say(out, f"Next: {program()} datasets check {name} {to}")


def reader_options(reader: type[DatasetReader], given: list[str]) -> dict[str, Any]:
    """Options of a reader from ``KEY=VALUE``: TOML values, or plain text where the option asks for text."""
    import json
    import tomllib

    from pydantic import ValidationError

    from lpact.errors import ConfigError

    texts: dict[str, str] = {}
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
    values: dict[str, Any] = {}
    for key, text in texts.items():
        try:
            values[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[key] = text
    try:
        reader.Options.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        wrong = {str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}
        values |= {key: text for key, text in texts.items() if key in wrong}
    return values
