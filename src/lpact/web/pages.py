"""Pages of the explorer: the overview, a run, a claim, two runs compared, and lists of rows.

Lists are the decision matrix over all runs, and any table of any run; both can also be saved as files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from lpact.analyses.base import Analysis, Material
from lpact.analyses.explanation import ClaimTable, Value
from lpact.errors import LPactError, RunError
from lpact.report.explanation import explanation_html
from lpact.store import csv_rows
from lpact.tables import Table
from lpact.web.address import (
    FACET,
    LONGEST_NAME,
    PAGE_SIZES,
    Address,
    AddressError,
    Facet,
    NotFoundError,
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
from lpact.web.query import OPERATORS, RUN, Condition, Query, Source, count, page, select, value_counts, values
from lpact.web.runs import OpenRun
from lpact.web.site import (
    PROFILE,
    Site,
    Unread,
    equal,
    find_table,
    matrix_table,
    profiles_of,
    rows_of,
    table_address,
    tables_of,
)
from lpact.wording import cell

if TYPE_CHECKING:
    from lpact.archive.diff import Comparison

SHOWN = {"verdicts": "another label or gate", "all": "any difference"}
"""Differences between two runs that can be chosen."""
MOST_LISTED = 200
"""Options, files and claims of one run only that are listed; the page says how many more there are."""


# -- overview and run --------------------------------------------------------------------------------------------------


def overview(site: Site, request: Request) -> Response:
    """All runs."""
    summaries = [_summarise(site, run) for run in site.runs]
    return site.page(request, "overview.html", summaries=summaries)


def one_run(site: Site, request: Request) -> Response:
    """One run: how it was made, and its tables by folder, with their rows or why they cannot be read."""
    run = site.run(str(request.path_params["slug"]))
    folders: dict[str, list[tuple[Table, int | None, str]]] = {}
    for table in run.tables():
        listed = folders.setdefault(table.name.split("/")[0], [])
        try:
            listed.append((table, count(site.database, Query(site.source(run, table))), ""))
        except LPactError as error:
            listed.append((table, None, error.what))
    config = json.dumps(run.manifest.config, indent=2, sort_keys=True, ensure_ascii=False)
    summary = _summarise(site, run)
    return site.page(request, "run.html", run=run, summary=summary, folders=folders, config=config)


def _summarise(site: Site, run: OpenRun) -> dict[str, Any]:
    """A run as ``outcome.html`` takes it; ``problem`` says why something is missing."""
    made: dict[str, Any] = {"run": run, "analyses": [], "problem": None}
    try:
        made["analyses"] += (_summary(site, run, analysis) for analysis in run.analyses.values())
    except LPactError as error:
        made["problem"] = error
    return made


def _summary(site: Site, run: OpenRun, analysis: Analysis) -> dict[str, Any]:
    """What one analysis of a run found: its conclusion, and claims by label and by gate under each profile."""
    own = analysis.claims
    profiles, source = profiles_of(own), site.source(run, own.table)

    def counts(column: str) -> dict[str, dict[object, int]]:
        """How many claims have each value, by profile."""
        conditions = {
            name: (Condition(find_column(own.table, PROFILE), "is", name),) if name else () for name in profiles
        }
        return {
            name: value_counts(site.database, Query(source, only), find_column(own.table, column))
            for name, only in conditions.items()
        }

    found = counts("label")
    # Labels that the analysis does not declare come last, so that no claim is left out.
    others = sorted({str(key) for by_label in found.values() for key in by_label} - set(own.labels))
    labels = [(key, {name: found[name].get(key, 0) for name in profiles}) for key in (*own.labels, *others)]
    gates = {
        letter: {name: by_value.get(True, 0) for name, by_value in counts(column).items()}
        for letter, column in own.gates.items()
    }
    conclusion = site.database.answers.get(
        ("conclusion", analysis.name, source.key),
        lambda: analysis.conclude(Material(tables_of(site, run), run.config)),
    )
    labels = [(key, by_profile) for key, by_profile in labels if any(by_profile.values())]
    most = max((n for _, by_profile in labels for n in by_profile.values()), default=1)
    return {
        "analysis": analysis,
        "conclusion": conclusion,
        "profiles": profiles,
        "labels": labels,
        "gates": gates,
        "most": most,
    }


# -- a claim -----------------------------------------------------------------------------------------------------------


def claim(site: Site, request: Request) -> Response:
    """The claim that an address names, under one profile: why it got its label, and the rows behind it."""
    keys = {name for own in site.analyses().values() for name in own.claims.key}
    address = read_address(request, (RUN, "analysis", "profile", *keys))
    run = site.run(address.get(RUN))
    analysis = site.analysis(address, run)
    profiles, table = profiles_of(analysis.claims), analysis.claims.table
    profile = read_choice(address, "profile", list(profiles), next(iter(profiles)))
    named = _claim_of(address, analysis)
    key = {**named, **({PROFILE: profile} if profile else {})}
    if count(site.database, Query(site.source(run, table), equal(table, key))) != 1:
        raise NotFoundError(
            f"the run '{run.slug}' has no such claim",
            got=" / ".join(map(str, named.values()))[:200],
            expected=f"a claim of the analysis {analysis.name}",
            remedy="choose one in the decision matrix",
        )
    explanation = analysis.explain(run.config, partial(rows_of, site, run), named, profile)
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
            (behind, _rows_address(run, behind, equals))
            for name, equals in explanation.rows
            for behind in [find_table(run, name)]
        ],
    )


def _claim_of(address: Address, analysis: Analysis) -> dict[str, Value]:
    found: dict[str, Value] = {}
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
        found[name] = parse_value(column, text)
    return found


def _rows_address(run: OpenRun, table: Table, equals: Mapping[str, Value]) -> str:
    """A table under the filters that select the rows behind a claim."""
    pairs: list[tuple[str, str]] = []
    for name, value in equals.items():
        if value in ("", None):  # an empty facet means all values
            pairs += [("col", name), ("op", "null" if value is None else "is"), ("val", "")]
        else:
            pairs.append((f"{FACET}{name}", str(value)))
    return str(Address(table_address(run.slug, table), tuple(pairs)))


# -- two runs ----------------------------------------------------------------------------------------------------------


def compare(site: Site, request: Request) -> Response:
    """What differs between two runs; without a choice, the first two."""
    known = ("a", "b", "analysis", "profile", "show", "page", "size")
    address, slugs = read_address(request, known), [run.slug for run in site.runs]
    a = site.run(address.get("a", slugs[0]))
    b = site.run(address.get("b", slugs[1 if len(slugs) > 1 else 0]))
    both: dict[str, Any] = {"a": a, "b": b, "comparison": None, "problem": None}
    if a is b:
        return site.page(request, "compare.html", **both)
    try:
        compared = _comparison(site, a, b)
    except LPactError as error:  # the form stays, for another choice
        return site.page(request, "compare.html", status=500, **both | {"problem": error})
    analysis = site.analysis(address, a)
    profiles = profiles_of(analysis.claims)
    profile = read_choice(address, "profile", list(profiles), next(iter(profiles)))
    wanted = read_choice(address, "show", list(SHOWN), "verdicts")
    changes = [
        change
        for own in compared.analyses
        for one in own.profiles
        if (own.analysis, one.profile) == (analysis.name, profile)
        for change in one.claims
        if wanted == "all" or change.verdict_changed or change.gates
    ]
    paging = read_paging(address, len(changes))
    return site.page(
        request,
        "compare.html",
        a=a,
        b=b,
        address=address,
        analyses=list(site.analyses()),
        analysis=analysis,
        profiles=profiles,
        comparison=compared,
        profile=profile,
        wanted=wanted,
        shown=SHOWN,
        changes=changes[paging.offset : paging.offset + paging.size],
        paging=paging,
        sizes=PAGE_SIZES,
        most=MOST_LISTED,
        as_json=lambda value: json.dumps(value, ensure_ascii=False),
        named=lambda own: dict(zip(analysis.claims.key, own, strict=True)),
    )


def _comparison(site: Site, a: OpenRun, b: OpenRun) -> Comparison:
    """The comparison, cached until a file changes."""
    from lpact.archive.diff import diff_runs

    files = tuple(
        run.file(table).fingerprint
        for run in (a, b)
        for own in run.analyses.values()
        for table in (own.claims.table, own.claims.evidence)
        if table is not None
    )
    key = ("compare", a.slug, b.slug, files)
    return site.database.answers.get(key, lambda: diff_runs(a, b))


ALL = "both"
"""In place of a profile: claims under all of them."""
MATRIX = ("q", "analysis", RUN, "verdict", "profile", "sort", "dir", "page", "size")
"""Parameters of the matrix other than filters by columns of the claims."""
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
            "the file would be incomplete: not all runs can be read",
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


def _matrix_facets(site: Site, address: Address, everything: Source, claims: ClaimTable) -> list[Facet]:
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
