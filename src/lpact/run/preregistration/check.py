"""A run held against a registration, item by item, from its tables and its manifest alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.run.preregistration.compare import compare
from lpact.run.preregistration.content import (
    Claim,
    Content,
    EarlierRun,
    MadeFrom,
    Software,
    TableRows,
    gather,
    software_now,
)
from lpact.run.preregistration.earlier import KEPT, NOTED, UNREADABLE
from lpact.run.preregistration.items import Line, counted, one_line
from lpact.run.preregistration.own_tasks import TakenOver
from lpact.run.preregistration.record import Registration, deposited_digest
from lpact.store import Provenance, RunTables, StoredRun, frame, validate
from lpact.tables import (
    AFTER_THE_FACT,
    BEFORE_RESULTS,
    BEFORE_RUN,
    DIGEST,
    PREREGISTRATION_ITEMS,
)

DEPOSITED = "digest that was deposited"
NOT_LOOKED = "no earlier run was named to be looked at"
OWN_PLACE = (
    "the study's own place for results, for those of its tasks and for runs noted there that have kept results of the "
    "same data and models"
)
NOT_UNDER_IT = " result(s) of tasks were not made under it"


def check(
    registration: Registration,
    found: Content,
    *,
    made_with: str | None,
    taken: TakenOver | None = None,
    deposited: str | None = None,
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
    taken
        Results of tasks that the run has and that were not made under the registration it was given.
    deposited
        The registration's digest as it was deposited where nobody can change it, if that is known.
    """
    lines = [
        *_registration_lines(registration, made_with, taken, deposited),
        *compare(registration.content, found),
    ]
    return validate(
        frame(PREREGISTRATION_ITEMS, [line.row() for line in lines]), PREREGISTRATION_ITEMS
    )


def check_run(
    registration: Registration, run: StoredRun, *, deposited: str | None = None
) -> pl.DataFrame:
    """Hold a finished run against a registration, and that against its ``deposited`` digest, at any time."""
    manifest = run.manifest
    software = Software(
        lpact_version=manifest.lpact_version,
        lpact_code=manifest.lpact_code,
        versions=manifest.versions,
    )
    n_rows = {table.name: run.n_rows(table.name) for table in run.tables()}
    found = _run_content(manifest, software, RunTables(run), n_rows)
    made_with, taken = _made_with(run)
    if deposited is not None:
        deposited = deposited_digest(deposited, where="the digest that was deposited")
    return check(registration, found, made_with=made_with, taken=taken, deposited=deposited)


def run_items(
    registration: Registration,
    made_from: Provenance,
    tables: Mapping[str, pl.DataFrame],
    n_rows: Mapping[str, int],
    *,
    taken: TakenOver | None = None,
) -> pl.DataFrame:
    """Hold a run that is being made against the registration it was given, before it is published.

    ``tables`` has those of the source audit and the decisions, ``n_rows`` counts the rows of every table.
    """
    found = _run_content(made_from, software_now(made_from.config), tables, n_rows)
    return check(registration, found, made_with=registration.found_digest, taken=taken)


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
    registration: Registration,
    made_with: str | None,
    taken: TakenOver | None,
    deposited: str | None,
) -> Iterator[Line]:
    """What a registration is worth: unchanged, as deposited, before results, and before this run."""
    written, found = registration.digest, registration.found_digest
    edits = []
    if written != found:
        edits.append(
            "the file was edited after it was made: what is compared here is not what was registered"
        )
    if not registration.time_intact:
        edits.append("the time in the file, or a digest, was edited after it was made")
    yield Line("registration", DIGEST, written, found, "; ".join(edits), registration.intact)
    if deposited is not None:
        why = "" if deposited == found else "the file is not the registration that was deposited"
        yield Line("registration", DEPOSITED, deposited, found, why)
    yield _before_results(registration)
    yield _before_run(registration, made_with, taken)


def _before_results(registration: Registration) -> Line:
    content = registration.content
    looked = [_looked_at(run) for run in content.earlier_runs]
    detail = f"looked at: {', '.join(looked)}" if looked else NOT_LOOKED
    if not content.after_the_fact:
        found = "no results in what was looked at" if looked else NOT_LOOKED
        if n_damaged := sum(run.state == UNREADABLE for run in content.earlier_runs):
            found += f"; {counted(n_damaged, 'note')} of earlier runs there could not be read"
        why = detail if looked else "so it was declared; nothing here can show it"
        return Line("registration", BEFORE_RESULTS, "declared before results", found, why, True)
    had = [
        ", ".join(run.same) or counted(run.n_finished_tasks, "finished task")
        for run in content.earlier_runs
        if run.has_results
    ]
    seen = f"results that were there: {'; '.join(had)}" if had else "so declared"
    why = f"{seen}; {detail}"
    return Line("registration", BEFORE_RESULTS, "declared so", AFTER_THE_FACT, why, False)


def _looked_at(run: EarlierRun) -> str:
    if run.state == KEPT:
        return OWN_PLACE
    if run.state == NOTED:
        return f"results that a run of '{run.study}' has kept there"
    if run.state == UNREADABLE:
        return f"the note {run.study} there, which could not be read: of which data it is cannot be said"
    return f"a {run.state} run" + (f" of '{run.study}'" if run.study else "")


def _before_run(registration: Registration, made_with: str | None, taken: TakenOver | None) -> Line:
    edited = "" if registration.time_intact else ", a time that was edited"
    moment = f"registered at {registration.registered_at}{edited}"
    if made_with is None:
        found, why = (
            "the run was made without a registration",
            "the order cannot be told from the run",
        )
    elif made_with != registration.found_digest:
        found, why = f"the run was made with another registration, {one_line(made_with)}", ""
    elif taken is not None:
        found, why = f"{taken.n_results}{NOT_UNDER_IT}", taken.why
    else:
        return Line("registration", BEFORE_RUN, moment, "the run was made with it", "", True)
    return Line("registration", BEFORE_RUN, moment, found, why, False)


def _made_with(run: StoredRun) -> tuple[str | None, TakenOver | None]:
    """Digest of the registration that a run was given, as its own table says; and results not made under it."""
    if PREREGISTRATION_ITEMS.name not in {table.name for table in run.tables()}:
        return None, None
    own = run.table(PREREGISTRATION_ITEMS.name).filter(item_group="registration")
    said = {row["item"]: row for row in own.iter_rows(named=True)}
    digest = said[DIGEST]["found"] if DIGEST in said else None
    order = said.get(BEFORE_RUN, {"found": "", "detail": ""})
    n_results, under, _ = order["found"].partition(NOT_UNDER_IT)
    return digest, TakenOver(int(n_results), order["detail"]) if under else None
