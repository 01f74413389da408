"""Two runs side by side: what they were made from, and which claims differ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from lpact.errors import LPactError
from lpact.web.address import DEFAULT_SIZE, PAGE_SIZES, Paging, read_choice, read_number
from lpact.web.runs import OpenRun
from lpact.web.site import Site, profiles_of, read_address

if TYPE_CHECKING:
    from lpact.archive.diff import Comparison

KNOWN = ("a", "b", "analysis", "profile", "show", "page", "size")
SHOWN = {"verdicts": "another label or gate", "all": "any difference"}
MOST_LISTED = 200
"""Options, files and claims of one run only that are listed; the page says how many more there are."""


def show(site: Site, request: Request) -> Response:
    """What differs between two runs; without a choice, the first two."""
    address = read_address(request, KNOWN)
    slugs = [run.slug for run in site.runs]
    a = site.run(address.get("a", slugs[0]))
    b = site.run(address.get("b", slugs[1 if len(slugs) > 1 else 0]))
    if a is b:
        return site.page(request, "compare.html", a=a, b=b, comparison=None, problem=None)
    try:
        compared = compare(site, a, b)
    except LPactError as error:  # the form stays, for another choice
        return site.page(
            request, "compare.html", status=500, a=a, b=b, comparison=None, problem=error
        )
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
    size = int(read_choice(address, "size", [str(n) for n in PAGE_SIZES], str(DEFAULT_SIZE)))
    paging = Paging(address, len(changes), size, read_number(address, "page", 1))
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
        changes=changes[paging.offset : paging.last_row],
        paging=paging,
        sizes=PAGE_SIZES,
        most=MOST_LISTED,
        as_json=lambda value: json.dumps(value, ensure_ascii=False),
        named=lambda claim: dict(zip(analysis.claims.key, claim, strict=True)),
    )


def compare(site: Site, a: OpenRun, b: OpenRun) -> Comparison:
    """The comparison, made once for the files as they are now, with the manifests that were checked at the start."""
    from lpact.archive.diff import diff_runs

    tables = [
        (run, table)
        for run in (a, b)
        for own in run.analyses.values()
        for table in (own.claims.table, own.claims.evidence)
        if table is not None
    ]
    files = tuple(run.file(table).fingerprint for run, table in tables)
    key = ("compare", a.slug, b.slug, files)
    return site.database.answers.get(key, lambda: diff_runs(a.stored, b.stored, rows=False))
