"""Pages of the explorer other than lists of rows: the overview, a run, a claim, and two runs compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from lpact.analyses.base import Analysis, Material
from lpact.analyses.explanation import Value
from lpact.errors import LPactError
from lpact.report.explanation import explanation_html
from lpact.tables import Table
from lpact.web.address import (
    FACET,
    PAGE_SIZES,
    Address,
    AddressError,
    NotFoundError,
    find_column,
    parse_value,
    read_address,
    read_choice,
    read_paging,
)
from lpact.web.query import RUN, Condition, Query, count, value_counts
from lpact.web.runs import OpenRun
from lpact.web.site import (
    PROFILE,
    Site,
    equal,
    find_table,
    profiles_of,
    rows_of,
    table_address,
    tables_of,
)

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
            name: (Condition(find_column(own.table, PROFILE), "is", name),) if name else ()
            for name in profiles
        }
        return {
            name: value_counts(site.database, Query(source, only), find_column(own.table, column))
            for name, only in conditions.items()
        }

    found = counts("label")
    # Labels that the analysis does not declare come last, so that no claim is left out.
    others = sorted({str(key) for by_label in found.values() for key in by_label} - set(own.labels))
    labels = [
        (key, {name: found[name].get(key, 0) for name in profiles})
        for key in (*own.labels, *others)
    ]
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
    """The comparison, made once for the files as they are now, with the manifests that were checked at the start."""
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
