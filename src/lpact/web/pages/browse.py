"""Any table of any run: filtered, searched, sorted and paged by the database."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lpact.report.values import cell
from lpact.tables import Table
from lpact.web.address import (
    DEFAULT_SIZE,
    FACET,
    PAGE_SIZES,
    Address,
    Facet,
    Paging,
    facet,
    free_conditions,
    read_choice,
    read_conditions,
    read_number,
    read_sort,
    read_text,
)
from lpact.web.downloads import attachment
from lpact.web.query import OPERATORS, Query, count, page, values
from lpact.web.runs import OpenRun
from lpact.web.site import Site, find_table, read_address

KNOWN = (FACET, "q", "col", "op", "val", "sort", "dir", "page", "size")
MOST_OPTIONS = 200
MOST_FACETS = 8


def show(site: Site, request: Request) -> Response:
    """One page of a table."""
    address = read_address(request, KNOWN)
    run, table = _find(site, request)
    query = ask(site, address, run, table)
    size = int(read_choice(address, "size", [str(n) for n in PAGE_SIZES], str(DEFAULT_SIZE)))
    total = count(site.database, query)
    paging = Paging(address, total, size, read_number(address, "page", 1))
    return site.page(
        request,
        "table.html",
        run=run,
        table=table,
        address=address,
        rows=page(site.database, query, paging.offset, size),
        paging=paging,
        n_all=count(site.database, Query(query.source)),
        facets=facets(site, query, address),
        free=free_conditions(address),
        operators=OPERATORS,
        sort=query.sort.name if query.sort else "",
        descending=query.descending,
        sizes=PAGE_SIZES,
        download=address.but("page", "size").to(f"/runs/{run.slug}/download/{table.name}.csv"),
        download_json=address.but("page", "size").to(
            f"/runs/{run.slug}/download/{table.name}.json"
        ),
    )


def download(site: Site, request: Request, form: str) -> Response:
    """Every row of the filters."""
    address = read_address(request, KNOWN)
    run, table = _find(site, request)
    name = table.name.split("/")[1]
    return attachment(site.database, ask(site, address, run, table), name, form)


def ask(site: Site, address: Address, run: OpenRun, table: Table) -> Query:
    """The query of an address."""
    sort, descending = read_sort(address, table)
    conditions = read_conditions(address, table)
    return Query(site.source(run, table), conditions, read_text(address, "q"), sort, descending)


def facets(site: Site, query: Query, address: Address) -> list[Facet]:
    """The key columns of more than one and not too many values, for lists to choose from."""
    made: list[Facet] = []
    table = query.source.table
    for column in table.columns:
        if column.dtype not in ("str", "int", "bool") or column.name not in _offered(table):
            continue
        known = values(site.database, query.source, column)
        chosen = address.get(f"{FACET}{column.name}")
        few = known is not None and 1 < len(known) <= MOST_OPTIONS and len(made) < MOST_FACETS
        if not chosen and not few:
            continue
        options = [cell(v) if isinstance(v, bool) else str(v) for v in (known or [])[:MOST_OPTIONS]]
        made.append(facet(address, f"{FACET}{column.name}", column.name, options))
    return made


def _offered(table: Table) -> set[str]:
    return {*table.key, "reason", "label", "gate_profile"}


def _find(site: Site, request: Request) -> tuple[OpenRun, Table]:
    run = site.run(str(request.path_params["slug"]))
    folder, name = (str(request.path_params[part]) for part in ("folder", "name"))
    return run, find_table(run, f"{folder}/{name}")
