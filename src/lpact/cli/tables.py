"""``lpact tables``: what a run holds, and a look into one table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._layout import Grid
from lpact.cli._render import console, counted, say, show, whole, width_of

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.study import Run
    from lpact.tables import Table

MANY_VALUES = 4
_CHUNK = 1 << 20


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    name: Annotated[
        str | None, typer.Argument(help="A table, with or without its folder. Without it: a list.")
    ] = None,
    head: Annotated[int, typer.Option("--head", min=1, help="Rows to show.")] = 10,
    csv: Annotated[bool, typer.Option("--csv", help="Write the whole table as CSV.")] = False,
) -> None:
    """List the tables of a run, or show one."""
    import lpact
    from lpact.tables import find_table

    opened = lpact.open_run(run)
    if name is None:
        _list(console(), opened)
    elif csv:
        _stream_csv(opened, find_table(name))
    else:
        _head(console(), opened, find_table(name), head)


def _list(out: Console, run: Run) -> None:
    listed = Grid(("table", "rows", "meaning"), right=frozenset({"rows"}))
    for table in run.tables():
        listed.add(table.name, whole(run.n_rows(table.name)), table.meaning)
    show(out, listed, indent=0)


def _head(out: Console, run: Run, table: Table, n_rows: int) -> None:
    """A table where it fits the terminal, otherwise one block of lines per row."""
    frame = run.table(table.name)
    say(out, f"{table.name}: {table.meaning}")
    say(out, f"{counted(frame.height, 'row')}, {counted(frame.width, 'column')}")
    say(out)
    numbers = frozenset(c.name for c in table.columns if c.dtype in ("int", "float"))
    grid = Grid(table.column_names, right=numbers)
    for row in frame.head(n_rows).iter_rows():
        grid.add(*(cell(value) for value in row))
    width = width_of(out)
    if width is None or grid.natural_width() <= width:
        show(out, grid, indent=0)
        return
    for i, row in enumerate(grid.rows, start=1):
        record = Grid((f"row {i}", ""))
        for column, value in zip(grid.columns, row, strict=True):
            record.add(column, value)
        show(out, record, indent=0)
        say(out)


def cell(value: Any) -> str:
    """A value for reading: floats to four digits, the first values of a list."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        shown = ", ".join(cell(item) for item in value[:MANY_VALUES])
        more = f", … {len(value)} values" if len(value) > MANY_VALUES else ""
        return f"[{shown}{more}]"
    return str(value)


def _stream_csv(run: Run, table: Table) -> None:
    """Copy the table's CSV twin to standard output, if it is the file that the run published."""
    from lpact.errors import RunError
    from lpact.store import sha256_file, table_path

    path = table_path(run.root, table, ".csv")
    listed = {file.path: file.sha256 for file in run.manifest.outputs}
    checksum = listed.get(f"{table.name}.csv")
    if checksum is None or not path.is_file() or sha256_file(path) != checksum:
        raise RunError(
            f"the CSV file of table '{table.name}' is missing or has changed",
            where=str(path),
            got="another SHA-256 than the manifest lists, or no file",
            expected=checksum or "a table that the run wrote",
            remedy="restore the file from a copy, or run the study again",
        )
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK):
            sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
