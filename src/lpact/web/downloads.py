"""What is shown, whole, as CSV or JSON: every row of the filters in the order of the page, streamed.

CSV is written as in run directories: a missing value is an empty field, an empty text is ``""``, lists are JSON,
numbers keep all digits. Cells that a spreadsheet would take for formulas are left as they are: a mark before them
would change the data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import polars as pl
from starlette.responses import Response, StreamingResponse

from lpact.store import csv_rows
from lpact.tables import Table
from lpact.web.database import Database
from lpact.web.query import Query, select

_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


def attachment(database: Database, query: Query, name: str, form: str) -> Response:
    """A file to be saved; the first rows are read before the response starts, so that an error is a page."""
    table = query.source.table
    pieces = database.batches(*select(query))
    write = as_csv if form == "csv" else as_json
    return StreamingResponse(
        write(pieces, table),
        media_type=_TYPES[form],
        headers={"Content-Disposition": f'attachment; filename="{name}.{form}"'},
    )


def as_csv(pieces: Iterator[pl.DataFrame], table: Table) -> Iterator[bytes]:
    """The header, then the rows."""
    yield (",".join(table.column_names) + "\n").encode()
    for piece in pieces:
        yield "".join(csv_rows(piece, table)).encode()


def as_json(pieces: Iterator[pl.DataFrame], table: Table) -> Iterator[bytes]:
    """A list of objects, one per row."""
    lead = "[\n"
    for piece in pieces:
        rows = (
            json.dumps(row, ensure_ascii=False, allow_nan=False)
            for row in piece.select(table.column_names).iter_rows(named=True)
        )
        if piece.height:
            yield (lead + ",\n".join(rows)).encode()
            lead = ",\n"
    yield b"[]\n" if lead == "[\n" else b"\n]\n"
