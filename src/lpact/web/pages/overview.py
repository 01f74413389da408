"""All runs at a glance; and one run: how it was made, and its tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from lpact.analyses.base import Analysis, Material
from lpact.analyses.explanation import Conclusion
from lpact.errors import LPactError
from lpact.tables import Table
from lpact.web.address import find_column
from lpact.web.query import Query, count, value_counts, with_condition
from lpact.web.runs import OpenRun
from lpact.web.site import PROFILE, Site, Tables, profiles_of


@dataclass(frozen=True)
class Summary:
    """What one analysis of a run found: its conclusion, and claims by label and by gate under each profile."""

    analysis: Analysis
    conclusion: Conclusion
    profiles: dict[str, str]
    labels: list[tuple[str, dict[str, int]]]
    gates: dict[str, dict[str, int]]

    @property
    def most(self) -> int:
        """The largest number of claims with one label."""
        return max((n for _, counts in self.labels for n in counts.values()), default=1)


@dataclass(frozen=True)
class RunSummary:
    """A run on the overview; ``problem`` says why something is missing."""

    run: OpenRun
    analyses: list[Summary] = field(default_factory=list)
    problem: LPactError | None = None


def show(site: Site, request: Request) -> Response:
    """The overview."""
    return site.page(
        request, "overview.html", summaries=[summarise(site, run) for run in site.runs]
    )


def summarise(site: Site, run: OpenRun) -> RunSummary:
    """Every analysis of a run."""
    made: list[Summary] = []
    try:
        made.extend(_summary(site, run, analysis) for analysis in run.analyses.values())
    except LPactError as error:
        return RunSummary(run, made, error)
    return RunSummary(run, made)


def _summary(site: Site, run: OpenRun, analysis: Analysis) -> Summary:
    own = analysis.claims
    profiles = profiles_of(own)
    everything = Query(site.source(run, own.table))
    queries = {
        name: with_condition(everything, find_column(own.table, PROFILE), name)
        if name
        else everything
        for name in profiles
    }
    label = find_column(own.table, "label")
    counts = {name: value_counts(site.database, query, label) for name, query in queries.items()}
    # Labels that the analysis does not declare come last, so that no claim is left out.
    others = sorted({key for found in counts.values() for key in found} - set(own.labels))
    labels = [
        (key, {name: counts[name].get(key, 0) for name in profiles})
        for key in (*own.labels, *others)
    ]
    gates = {
        letter: {
            name: value_counts(site.database, query, find_column(own.table, column)).get(True, 0)
            for name, query in queries.items()
        }
        for letter, column in own.gates.items()
    }
    conclusion = site.database.answers.get(
        ("conclusion", analysis.name, everything.source.key),
        lambda: analysis.conclude(Material(Tables(site, run), run.config)),
    )
    return Summary(analysis, conclusion, profiles, [o for o in labels if any(o[1].values())], gates)


@dataclass(frozen=True)
class Listed:
    """A table in the list of a run; ``problem`` where it cannot be shown."""

    table: Table
    n_rows: int | None
    n_bytes: int
    problem: str = ""


def show_run(site: Site, request: Request) -> Response:
    """One run: how it was made, and its tables by folder."""
    run = site.run(str(request.path_params["slug"]))
    folders: dict[str, list[Listed]] = {}
    for table in run.tables():
        folders.setdefault(table.name.split("/")[0], []).append(_listed(site, run, table))
    return site.page(
        request,
        "run.html",
        run=run,
        summary=summarise(site, run),
        folders=folders,
        config=json.dumps(run.manifest.config, indent=2, sort_keys=True, ensure_ascii=False),
    )


def _listed(site: Site, run: OpenRun, table: Table) -> Listed:
    try:
        n_rows = count(site.database, Query(site.source(run, table)))
    except LPactError as error:
        return Listed(table, None, run.n_bytes(table), error.what)
    return Listed(table, n_rows, run.n_bytes(table))
