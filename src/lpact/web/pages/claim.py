"""One claim: why it got its label, and the rows behind it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from lpact.analyses.base import Analysis
from lpact.analyses.explanation import Value
from lpact.report.explanation import explanation_html
from lpact.tables import Table
from lpact.web.address import (
    FACET,
    Address,
    AddressError,
    NotFoundError,
    find_column,
    parse_value,
    read_choice,
)
from lpact.web.query import RUN, Query, count
from lpact.web.runs import OpenRun
from lpact.web.site import (
    PROFILE,
    Site,
    equal,
    find_table,
    profiles_of,
    read_address,
    rows_of,
    table_address,
)


def show(site: Site, request: Request) -> Response:
    """The claim that an address names, under one profile."""
    keys = {name for own in site.analyses().values() for name in own.claims.key}
    address = read_address(request, (RUN, "analysis", "profile", *keys))
    run = site.run(address.get(RUN))
    analysis = site.analysis(address, run)
    profiles = profiles_of(analysis.claims)
    profile = read_choice(address, "profile", list(profiles), next(iter(profiles)))
    claim = _claim(address, analysis)
    table = analysis.claims.table
    key = {**claim, **({PROFILE: profile} if profile else {})}
    if count(site.database, Query(site.source(run, table), equal(table, key))) != 1:
        raise NotFoundError(
            f"the run '{run.slug}' has no such claim",
            got=" / ".join(map(str, claim.values()))[:200],
            expected=f"a claim of the analysis {analysis.name}",
            remedy="choose one in the decision matrix",
        )
    explanation = analysis.explain(run.config, partial(rows_of, site, run), claim, profile)
    return site.page(
        request,
        "claim.html",
        run=run,
        analysis=analysis,
        profiles=profiles,
        explanation=explanation,
        # The fragment escapes everything that it shows.
        fragment=Markup(explanation_html(explanation)),  # noqa: S704
        address=address,
        behind=[
            (table, _rows_address(run, table, equals))
            for name, equals in explanation.rows
            for table in [find_table(run, name)]
        ],
    )


def _claim(address: Address, analysis: Analysis) -> dict[str, Value]:
    claim: dict[str, Value] = {}
    for name in analysis.claims.key:
        text, column = address.get(name), find_column(analysis.claims.table, name)
        if not text and column.dtype != "str":  # an empty name is left out of an address
            raise AddressError(
                "the address does not name a claim",
                where=f"parameter '{name}'",
                got="nothing",
                expected=", ".join(analysis.claims.key),
                remedy="choose a claim in the decision matrix",
            )
        claim[name] = parse_value(column, text)
    return claim


def _rows_address(run: OpenRun, table: Table, equals: Mapping[str, Value]) -> str:
    """A table under the filters that select the rows behind a claim."""
    pairs: list[tuple[str, str]] = []
    for name, value in equals.items():
        if value in ("", None):  # an empty facet means all values
            pairs += [("col", name), ("op", "null" if value is None else "is"), ("val", "")]
        else:
            pairs.append((f"{FACET}{name}", str(value)))
    return str(Address(table_address(run.slug, table), tuple(pairs)))
