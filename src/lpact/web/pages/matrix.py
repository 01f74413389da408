"""The decision matrix: claims of one analysis by gates, over all runs."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lpact.analyses.base import Analysis
from lpact.analyses.explanation import ClaimTable
from lpact.errors import RunError
from lpact.web.address import (
    DEFAULT_SIZE,
    LONGEST_NAME,
    PAGE_SIZES,
    Address,
    Facet,
    Paging,
    facet,
    find_column,
    parse_value,
    read_choice,
    read_number,
    read_sort,
    read_text,
)
from lpact.web.downloads import attachment
from lpact.web.query import RUN, Condition, Query, Source, count, page, value_counts, values
from lpact.web.site import PROFILE, Site, Unread, matrix_table, profiles_of, read_address

ALL = "both"
"""In place of a profile: claims under all of them."""
OTHERS = ("q", "analysis", RUN, "verdict", "profile", "sort", "dir", "page", "size")
"""Parameters beside the filters by columns of the claims."""


def columns_of(claims: ClaimTable) -> dict[str, str]:
    """Parameter of every filter by a column, and its column; a column with the name of another parameter has none."""
    own = {name: name for name in (*claims.key, *claims.details) if name not in OTHERS}
    return {**own, "verdict": "label"}


def show(site: Site, request: Request) -> Response:
    """One page of the matrix."""
    address = _address(site, request)
    analysis = _analysis(site, address)
    claims, profiles = analysis.claims, profiles_of(analysis.claims)
    query, left_out = ask(site, address, analysis)
    everything, unread = site.matrix(site.runs, analysis)
    total = count(site.database, query)
    size = int(read_choice(address, "size", [str(n) for n in PAGE_SIZES], str(DEFAULT_SIZE)))
    paging = Paging(address, total, size, read_number(address, "page", 1))
    rows = page(site.database, query, paging.offset, size)
    counts = value_counts(site.database, query, find_column(claims.table, "label"))
    order = [*claims.labels, *sorted(set(counts) - set(claims.labels))]
    return site.page(
        request,
        "matrix.html",
        address=address,
        analysis=analysis,
        analyses=list(site.analyses()),
        claims=claims,
        numeric={c.name for c in claims.table.columns if c.dtype in ("int", "float")},
        profiles=profiles,
        rows=rows,
        paging=paging,
        facets=facets(site, address, everything, claims),
        unread=unread,
        complete=not left_out,
        profile=address.get("profile", next(iter(profiles))),
        counts={label: counts[label] for label in order if label in counts},
        sort=query.sort.name if query.sort else "",
        descending=query.descending,
        sizes=PAGE_SIZES,
    )


def download(site: Site, request: Request, form: str) -> Response:
    """Every claim of the filters, in the order of the page; refused where a chosen run cannot be read."""
    address = _address(site, request)
    query, left_out = ask(site, address, _analysis(site, address))
    if left_out:
        raise RunError(
            "the file would not hold every claim: not all runs can be read",
            where=", ".join(one.run.slug for one in left_out),
            got=left_out[0].problem.what,
            expected="runs whose decisions can be read",
            remedy="choose one run in the decision matrix, or start the explorer without the broken one",
        ) from left_out[0].problem
    return attachment(site.database, query, "decisions", form)


def _address(site: Site, request: Request) -> Address:
    columns = {name for own in site.analyses().values() for name in columns_of(own.claims)}
    return read_address(request, (*OTHERS, *columns))


def _analysis(site: Site, address: Address) -> Analysis:
    slug = address.get(RUN)
    return site.analysis(address, site.run(slug) if slug else None)


def ask(site: Site, address: Address, analysis: Analysis) -> tuple[Query, list[Unread]]:
    """The query of an address, and the runs that it leaves out because they cannot be read."""
    table = matrix_table(analysis.claims)
    profiles = analysis.claims.profiles
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
    sort, descending = read_sort(address, table)
    search = read_text(address, "q")
    return Query(source, tuple(conditions), search, sort, descending), left_out


def facets(site: Site, address: Address, everything: Source, claims: ClaimTable) -> list[Facet]:
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
