"""Pages of rows: the decision matrix over all runs, and any table of any run; both also as files to save."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from lpact.analyses.base import Analysis
from lpact.analyses.explanation import ClaimTable
from lpact.errors import RunError
from lpact.report.values import cell
from lpact.store import csv_rows
from lpact.tables import Table
from lpact.web.address import (
    FACET,
    LONGEST_NAME,
    PAGE_SIZES,
    Address,
    Facet,
    facet,
    find_column,
    free_conditions,
    parse_value,
    read_address,
    read_choice,
    read_conditions,
    read_paging,
    read_sort,
    read_text,
)
from lpact.web.query import (
    OPERATORS,
    RUN,
    Condition,
    Query,
    Source,
    count,
    page,
    select,
    value_counts,
    values,
)
from lpact.web.runs import OpenRun
from lpact.web.site import PROFILE, Site, Unread, find_table, matrix_table, profiles_of

ALL = "both"
"""In place of a profile: claims under all of them."""
MATRIX = ("q", "analysis", RUN, "verdict", "profile", "sort", "dir", "page", "size")
"""Parameters of the matrix besides the filters by columns of the claims."""
TABLE = (FACET, "q", "col", "op", "val", "sort", "dir", "page", "size")
MOST_OPTIONS = 200
MOST_FACETS = 8


def _rows(site: Site, address: Address, query: Query) -> dict[str, Any]:
    """One page of a query, as templates take it."""
    paging = read_paging(address, count(site.database, query))
    return {
        "address": address,
        "paging": paging,
        "rows": page(site.database, query, paging.offset, paging.size),
        "sort": query.sort.name if query.sort else "",
        "descending": query.descending,
        "sizes": PAGE_SIZES,
    }


# -- the decision matrix -----------------------------------------------------------------------------------------------


def columns_of(claims: ClaimTable) -> dict[str, str]:
    """Parameter of every filter by a column, and its column; a column with the name of another parameter has none."""
    own = {name: name for name in (*claims.key, *claims.details) if name not in MATRIX}
    return {**own, "verdict": "label"}


def matrix(site: Site, request: Request) -> Response:
    """One page of the matrix."""
    address, analysis = _matrix_address(site, request)
    claims, profiles = analysis.claims, profiles_of(analysis.claims)
    query, left_out = _matrix_query(site, address, analysis)
    everything, unread = site.matrix(site.runs, analysis)
    counts = value_counts(site.database, query, find_column(claims.table, "label"))
    order = [*claims.labels, *sorted(set(counts) - set(claims.labels))]
    return site.page(
        request,
        "matrix.html",
        **_rows(site, address, query),
        analysis=analysis,
        analyses=list(site.analyses()),
        claims=claims,
        numeric={c.name for c in claims.table.columns if c.dtype in ("int", "float")},
        profiles=profiles,
        facets=_matrix_facets(site, address, everything, claims),
        unread=unread,
        complete=not left_out,
        profile=address.get("profile", next(iter(profiles))),
        counts={label: counts[label] for label in order if label in counts},
    )


def matrix_file(site: Site, request: Request, form: str) -> Response:
    """Every claim of the filters, in the order of the page; refused where a chosen run cannot be read."""
    address, analysis = _matrix_address(site, request)
    query, left_out = _matrix_query(site, address, analysis)
    if left_out:
        raise RunError(
            "the file would not hold every claim: not all runs can be read",
            where=", ".join(run.slug for run, _ in left_out),
            got=left_out[0][1].what,
            expected="runs whose decisions can be read",
            remedy="choose one run in the decision matrix, or start the explorer without the broken one",
        ) from left_out[0][1]
    return _attachment(site, query, "decisions", form)


def _matrix_address(site: Site, request: Request) -> tuple[Address, Analysis]:
    columns = {name for own in site.analyses().values() for name in columns_of(own.claims)}
    address = read_address(request, (*MATRIX, *columns))
    slug = address.get(RUN)
    return address, site.analysis(address, site.run(slug) if slug else None)


def _matrix_query(site: Site, address: Address, analysis: Analysis) -> tuple[Query, Unread]:
    """The query of an address, and the runs that it leaves out because they cannot be read."""
    table, profiles = matrix_table(analysis.claims), analysis.claims.profiles
    chosen = read_choice(address, "profile", (*profiles, ALL), next(iter(profiles), ALL))
    conditions = []
    for name, column_name in columns_of(analysis.claims).items():
        if text := read_text(address, name, LONGEST_NAME):
            column = find_column(table, column_name)
            conditions.append(Condition(column, "is", parse_value(column, text)))
    if chosen != ALL:
        conditions.append(Condition(find_column(table, PROFILE), "is", chosen))
    slug = address.get(RUN)
    source, left_out = site.matrix((site.run(slug),) if slug else site.runs, analysis)
    search = read_text(address, "q")
    return Query(source, tuple(conditions), search, *read_sort(address, table)), left_out


def _matrix_facets(
    site: Site, address: Address, everything: Source, claims: ClaimTable
) -> list[Facet]:
    """All filters with what may be chosen: labels from the strongest, everything else sorted."""
    made = []
    if len(site.runs) > 1:
        made.append(facet(address, RUN, "run", [run.slug for run in site.runs]))
    for name, column_name in columns_of(claims).items():
        column = find_column(everything.table, column_name)
        options: list[Any] = values(site.database, everything, column) or []
        if column_name == "label":
            options = [label for label in claims.labels if label in options]
        made.append(facet(address, name, column_name, options))
    return made


# -- any table ---------------------------------------------------------------------------------------------------------


def table(site: Site, request: Request) -> Response:
    """One page of a table."""
    address, run, own, query = _table_query(site, request)
    files = address.but("page", "size")
    return site.page(
        request,
        "table.html",
        **_rows(site, address, query),
        run=run,
        table=own,
        n_all=count(site.database, Query(query.source)),
        facets=_table_facets(site, query, address),
        free=free_conditions(address),
        operators=OPERATORS,
        download=files.to(f"/runs/{run.slug}/download/{own.name}.csv"),
        download_json=files.to(f"/runs/{run.slug}/download/{own.name}.json"),
    )


def table_file(site: Site, request: Request, form: str) -> Response:
    """Every row of the filters."""
    *_, own, query = _table_query(site, request)
    return _attachment(site, query, own.name.split("/")[1], form)


def _table_query(site: Site, request: Request) -> tuple[Address, OpenRun, Table, Query]:
    address = read_address(request, TABLE)
    run = site.run(str(request.path_params["slug"]))
    own = find_table(run, "/".join(str(request.path_params[part]) for part in ("folder", "name")))
    conditions, search = read_conditions(address, own), read_text(address, "q")
    sort = read_sort(address, own)
    return address, run, own, Query(site.source(run, own), conditions, search, *sort)


def _table_facets(site: Site, query: Query, address: Address) -> list[Facet]:
    """Columns of the key, reasons and labels with more than one and not too many values, to choose from."""
    made: list[Facet] = []
    own = query.source.table
    for column in own.columns:
        offered = column.name in (*own.key, "reason", "label", PROFILE)
        if column.dtype not in ("str", "int", "bool") or not offered:
            continue
        known = values(site.database, query.source, column)
        few = known is not None and 1 < len(known) <= MOST_OPTIONS and len(made) < MOST_FACETS
        if few or address.get(f"{FACET}{column.name}"):
            shown = (known or [])[:MOST_OPTIONS]
            options = [cell(v) if isinstance(v, bool) else str(v) for v in shown]
            made.append(facet(address, f"{FACET}{column.name}", column.name, options))
    return made


# -- files -------------------------------------------------------------------------------------------------------------


def _attachment(site: Site, query: Query, name: str, form: str) -> Response:
    """Every row of a query, streamed; the first ones are read before the response starts, so that an error is a page.

    CSV is written as in run directories. Cells that a spreadsheet would take for formulas are left as they are: a mark
    before them would change the data.
    """
    write, kind = {
        "csv": (_csv, "text/csv; charset=utf-8"),
        "json": (_json, "application/json"),
    }[form]
    pieces = site.database.batches(*select(query))
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return StreamingResponse(write(pieces, query.source.table), media_type=kind, headers=headers)


def _csv(pieces: Iterator[pl.DataFrame], own: Table) -> Iterator[bytes]:
    yield (",".join(own.column_names) + "\n").encode()
    for piece in pieces:
        yield "".join(csv_rows(piece, own)).encode()


def _json(pieces: Iterator[pl.DataFrame], own: Table) -> Iterator[bytes]:
    lead = "[\n"
    for piece in pieces:
        rows = (
            json.dumps(row, ensure_ascii=False, allow_nan=False)
            for row in piece.select(own.column_names).iter_rows(named=True)
        )
        if piece.height:
            yield (lead + ",\n".join(rows)).encode()
            lead = ",\n"
    yield b"[]\n" if lead == "[\n" else b"\n]\n"
