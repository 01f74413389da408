"""All runs at a glance; and one run: how it was made, and its tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lpact.analyses.lpact.tables.decisions import DECISIONS, STUDY_OUTCOME
from lpact.errors import LPactError
from lpact.tables import Table
from lpact.web.address import find_column
from lpact.web.query import Question, count, page, tally, with_condition
from lpact.web.shelf import ShelfRun
from lpact.web.site import GATES, PROFILES, VERDICTS, Site

_PROFILE = find_column(DECISIONS, "gate_profile")
_LABEL = find_column(DECISIONS, "label")


@dataclass(frozen=True)
class Summary:
    """A run on the overview; ``problem`` says why there are no numbers."""

    run: ShelfRun
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)
    verdicts: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    gates: dict[str, dict[str, int]] = field(default_factory=dict)
    claims: dict[str, int] = field(default_factory=dict)
    problem: LPactError | None = None

    @property
    def most(self) -> int:
        """The largest number of claims with one verdict."""
        return max((n for _, counts in self.verdicts for n in counts.values()), default=1)


def show(site: Site, request: Request) -> Response:
    """The overview."""
    return site.page(
        request, "overview.html", summaries=[summarise(site, run) for run in site.shelf.runs]
    )


def summarise(site: Site, run: ShelfRun) -> Summary:
    """Outcome, verdicts and gates of a run, under both gate profiles."""
    try:
        outcomes = page(site.database, Question(site.source(run, STUDY_OUTCOME)), 0, 10)
        all_claims = Question(site.source(run, DECISIONS))
        asked = {profile: with_condition(all_claims, _PROFILE, profile) for profile in PROFILES}
        labels = {p: tally(site.database, q, _LABEL) for p, q in asked.items()}
        gates = {
            letter: {
                profile: tally(site.database, question, find_column(DECISIONS, column)).get(True, 0)
                for profile, question in asked.items()
            }
            for letter, (column, _) in GATES.items()
        }
    except LPactError as error:
        return Summary(run, problem=error)
    verdicts = [
        (label.value, {profile: labels[profile].get(label.value, 0) for profile in PROFILES})
        for label in VERDICTS
    ]
    return Summary(
        run,
        {row["gate_profile"]: row for row in outcomes},
        [(label, counts) for label, counts in verdicts if any(counts.values())],
        gates,
        {profile: sum(labels[profile].values()) for profile in PROFILES},
    )


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


def _listed(site: Site, run: ShelfRun, table: Table) -> Listed:
    try:
        n_rows = count(site.database, Question(site.source(run, table)))
    except LPactError as error:
        return Listed(table, None, run.n_bytes(table), error.what)
    return Listed(table, n_rows, run.n_bytes(table))
