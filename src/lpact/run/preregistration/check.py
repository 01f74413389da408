"""A run held against a registration, item by item, from its tables and its manifest alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from lpact.run.preregistration.compare import compare
from lpact.run.preregistration.content import (
    Claim,
    Content,
    MadeFrom,
    Software,
    TableRows,
    gather,
    software_now,
)
from lpact.run.preregistration.items import Line, one_line
from lpact.run.preregistration.record import Registration
from lpact.store import Provenance, RunTables, StoredRun, frame, validate
from lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.tables.decisions import DECISIONS
from lpact.tables.preregistration import (
    AFTER_THE_FACT,
    BEFORE_RESULTS,
    BEFORE_RUN,
    DIGEST,
    PREREGISTRATION_ITEMS,
)


def check(
    registration: Registration,
    found: Content,
    *,
    made_with: str | None,
    n_older_results: int = 0,
) -> pl.DataFrame:
    """Return the table `PREREGISTRATION_ITEMS`.

    Parameters
    ----------
    registration
        What was registered.
    found
        The same of the run.
    made_with
        Digest of the registration that the run was given when it was made; None where it was given none.
    n_older_results
        Results of tasks that the run took over although they are older than the registration.
    """
    lines = [
        *_registration_lines(registration, made_with, n_older_results),
        *compare(registration.content, found),
    ]
    return validate(
        frame(PREREGISTRATION_ITEMS, [line.row() for line in lines]), PREREGISTRATION_ITEMS
    )


def check_run(registration: Registration, run: StoredRun) -> pl.DataFrame:
    """Hold a finished run against a registration, at any time."""
    manifest = run.manifest
    software = Software(
        lpact_version=manifest.lpact_version,
        lpact_code=manifest.lpact_code,
        versions=manifest.versions,
    )
    n_rows = {table.name: run.n_rows(table.name) for table in run.tables()}
    found = _run_content(manifest, software, RunTables(run), n_rows)
    made_with, n_older_results = _made_with(run)
    return check(registration, found, made_with=made_with, n_older_results=n_older_results)


def run_items(
    registration: Registration,
    made_from: Provenance,
    tables: Mapping[str, pl.DataFrame],
    n_rows: Mapping[str, int],
    *,
    n_older_results: int = 0,
) -> pl.DataFrame:
    """Hold a run that is being made against the registration it was given, before it is published.

    ``tables`` has those of the source audit and the decisions, ``n_rows`` counts the rows of every table.
    """
    found = _run_content(made_from, software_now(made_from.config), tables, n_rows)
    return check(
        registration,
        found,
        made_with=registration.found_digest,
        n_older_results=n_older_results,
    )


def _run_content(
    made_from: MadeFrom,
    software: Software,
    tables: Mapping[str, pl.DataFrame],
    n_rows: Mapping[str, int],
) -> Content:
    roles = tables[EVIDENCE_FEASIBILITY.name].select("dataset", "confirmatory")
    confirmatory = dict(roles.iter_rows())
    judged = tables[DECISIONS.name].select("dataset", "model", "layer", "mechanism").unique()
    return gather(
        made_from,
        software,
        tables,
        rows=[
            TableRows(table=name, n_rows=n, at_most=False)
            for name, n in n_rows.items()
            if name != PREREGISTRATION_ITEMS.name
        ],
        claims=[
            Claim(**row, confirmatory=confirmatory.get(row["dataset"], False))
            for row in judged.iter_rows(named=True)
        ],
    )


def _registration_lines(
    registration: Registration, made_with: str | None, n_older_results: int
) -> Iterator[Line]:
    """What a registration is worth: unchanged, before results, and before this run."""
    yield Line(
        "registration",
        DIGEST,
        registration.digest,
        registration.found_digest,
        ""
        if registration.intact
        else "the file was edited after it was made: what is compared here is not what was registered",
    )
    yield _before_results(registration)
    yield _before_run(registration, made_with, n_older_results)


def _before_results(registration: Registration) -> Line:
    content = registration.content
    looked = [
        f"a {run.state} run" + (f" of '{run.study}'" if run.study else "")
        for run in content.earlier_runs
    ]
    detail = f"looked at: {', '.join(looked)}" if looked else "no earlier run was looked at"
    if not content.after_the_fact:
        return Line("registration", BEFORE_RESULTS, "before", "before", detail)
    had = [
        ", ".join(run.same) or f"{run.n_finished_tasks} finished tasks"
        for run in content.earlier_runs
        if run.has_results
    ]
    seen = f"results that were there: {'; '.join(had)}" if had else "so declared"
    return Line("registration", BEFORE_RESULTS, "before", AFTER_THE_FACT, f"{seen}; {detail}")


def _before_run(registration: Registration, made_with: str | None, n_older_results: int) -> Line:
    moment = f"registered at {registration.registered_at}"
    if made_with is None:
        found, why = (
            "the run was made without a registration",
            "the order cannot be told from the run",
        )
    elif made_with != registration.found_digest:
        found, why = f"the run was made with another registration, {one_line(made_with)}", ""
    elif n_older_results:
        found = f"{n_older_results} results of tasks are older"
        why = "they were taken over from an earlier run"
    else:
        return Line("registration", BEFORE_RUN, moment, "the run was made with it", "", True)
    return Line("registration", BEFORE_RUN, moment, found, why, False)


def _made_with(run: StoredRun) -> tuple[str | None, int]:
    """Digest of the registration that a run was given, as its own table says; and results that are older."""
    if PREREGISTRATION_ITEMS.name not in {table.name for table in run.tables()}:
        return None, 0
    own = run.table(PREREGISTRATION_ITEMS.name).filter(item_group="registration")
    said = {row["item"]: row for row in own.iter_rows(named=True)}
    digest = said[DIGEST]["found"] if DIGEST in said else None
    older = said.get(BEFORE_RUN, {"found": ""})["found"].partition(" results of tasks are older")
    return digest, int(older[0]) if older[1] else 0
