"""A run compared with a registration, item by item, from the run's tables and manifest alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from lpact.config import flat_options
from lpact.features.models import FEATURE_SETS
from lpact.run.preregistration.earlier import KEPT, MODEL, NOTED, Reused
from lpact.run.preregistration.record import Content, Registration, TableRows, deposited_digest, found_content
from lpact.store import Provenance, RunTables, StoredRun, frame, validate
from lpact.tables import AFTER_THE_FACT, BEFORE_RESULTS, BEFORE_RUN, DIGEST, PREREGISTRATION_ITEMS, find_table
from lpact.wording import counted, plain

ABSENT, SAME = "nothing", "the same"
DEPOSITED = "digest that was deposited"
NOT_SEARCHED = "no earlier run was named to be searched"
NOT_UNDER_IT = " result(s) of tasks were not made under it"

Parts = Mapping[str, Mapping[str, str]]
"""Texts by item, of every part of a group."""


class Line(NamedTuple):
    """What was registered and what was found; by default it was followed if both are equal."""

    group: str
    item: str
    registered: str
    found: str
    detail: str = ""
    followed: bool | None = None

    def row(self) -> dict[str, object]:
        """The line as a row of the table."""
        group, *texts, followed = self
        names = ("item", "registered", "found", "detail")
        row = dict(zip(names, map(plain, texts), strict=True))
        same = self.registered == self.found if followed is None else followed
        return {"followed": same, "item_group": group, **row}


def check_run(registration: Registration, run: StoredRun, *, deposited: str | None = None) -> pl.DataFrame:
    """Compare a finished run with a registration, and the registration with its ``deposited`` digest.

    Returns the table `PREREGISTRATION_ITEMS`.
    """
    n_rows = {table.name: run.n_rows(table.name) for table in run.tables()}
    found = found_content(run.manifest, RunTables(run), n_rows)
    if deposited is not None:
        deposited = deposited_digest(deposited, where="the digest that was deposited")
    return _items(_about_registration(registration, *_made_with(run), deposited), registration, found)


def run_items(
    registration: Registration,
    made_from: Provenance,
    tables: Mapping[str, pl.DataFrame],
    n_rows: Mapping[str, int],
    *,
    reused: Reused | None = None,
) -> pl.DataFrame:
    """Compare a run that is about to be published with the registration it was given."""
    about = _about_registration(registration, registration.found_digest, reused)
    return _items(about, registration, found_content(made_from, tables, n_rows))


def _items(about: Iterable[Line], registration: Registration, found: Content) -> pl.DataFrame:
    rows = [line.row() for line in (*about, *compare(registration.registered, found))]
    return validate(frame(PREREGISTRATION_ITEMS, rows), PREREGISTRATION_ITEMS)


def _made_with(run: StoredRun) -> tuple[str | None, Reused | None]:
    """Digest of the registration that a run was given, and results not made under it, from its own table."""
    if PREREGISTRATION_ITEMS.name not in {table.name for table in run.tables()}:
        return None, None
    own = run.table(PREREGISTRATION_ITEMS.name).filter(item_group="registration")
    rows = {row["item"]: row for row in own.iter_rows(named=True)}
    digest = rows[DIGEST]["found"] if DIGEST in rows else None
    order = rows.get(BEFORE_RUN, {"found": "", "detail": ""})
    n_results, under, _ = order["found"].partition(NOT_UNDER_IT)
    return digest, Reused(int(n_results), order["detail"]) if under else None


def _about_registration(
    registration: Registration,
    made_with: str | None,
    reused: Reused | None,
    deposited: str | None = None,
) -> Iterator[Line]:
    """Whether the registration is unchanged, as deposited, before results, and before this run.

    ``made_with`` is the digest of the registration that the run was given, if any; ``reused`` are results of the run
    that were not made under it.
    """
    written, found = registration.digest, registration.found_digest
    edits = []
    if written != found:
        edits.append("the file was edited after it was made, so this is not what was registered")
    if not registration.time_intact:
        edits.append("the time in the file, or a digest, was edited after it was made")
    yield Line("registration", DIGEST, written, found, "; ".join(edits), registration.intact)
    if deposited is not None:
        why = "" if deposited == found else "the file is not the registration that was deposited"
        yield Line("registration", DEPOSITED, deposited, found, why)
    yield _before_results(registration.registered)
    edited = "" if registration.time_intact else ", a time that was edited"
    moment = f"registered at {registration.registered_at}{edited}"
    now, why, followed = "the run was made with it", "", True
    if made_with is None:
        now, why = "the run was made without a registration", "the run does not show the order"
        followed = False
    elif made_with != found:
        now, followed = f"the run was made with another registration, {plain(made_with)}", False
    elif reused is not None:
        now, why, followed = f"{reused.n_results}{NOT_UNDER_IT}", reused.why, False
    yield Line("registration", BEFORE_RUN, moment, now, why, followed)


def _before_results(content: Content) -> Line:
    searched = ", ".join(
        "the study's own store of results, for its tasks and for other runs on the same data"
        if run.state == KEPT
        else f"a run of '{run.study}' with results there"
        if run.state == NOTED
        else f"a {run.state} run" + (f" of '{run.study}'" if run.study else "")
        for run in content.earlier_runs
    )
    detail = f"searched: {searched}" if searched else NOT_SEARCHED
    if content.after_the_fact:
        had = "; ".join(
            ", ".join(run.same) or counted(run.n_finished_tasks, "finished task")
            for run in content.earlier_runs
            if run.has_results
        )
        why = f"{f'results that existed: {had}' if had else 'declared by the author'}; {detail}"
        return Line("registration", BEFORE_RESULTS, "declared so", AFTER_THE_FACT, why, False)
    found = "no results in what was searched" if searched else NOT_SEARCHED
    why = detail if searched else "declared by the author; nothing here can prove it"
    return Line("registration", BEFORE_RESULTS, "declared before results", found, why, True)


def compare(registered: Content, found: Content) -> Iterator[Line]:
    """Every item of a registration compared with what the run has; a part that is the same is one line."""
    both = (registered, found)
    yield Line("seed", "seed", str(registered.seed), str(found.seed))
    own, other = (_sections(side.config) for side in both)
    yield from _parts("configuration", "option", own, other, joint="", whole=True)
    yield from _inputs(registered, found)
    for name in dict.fromkeys((*registered.audit, *found.audit)):
        own, other = (_audit_rows(name, side.audit.get(name, ())) for side in both)
        yield from _parts("audit", "row", own, other)
    own, other = ({name: dict.fromkeys(ids, "a claim") for name, ids in side.claims.items()} for side in both)
    yield from _parts("claims", "claim", own, other)
    for name in dict.fromkeys((*registered.rows, *found.rows)):
        then, now = (side.rows.get(name) for side in both)
        followed = None
        if then is not None and now is not None:
            followed = now.n_rows <= then.n_rows if then.at_most else now.n_rows == then.n_rows
        yield Line("rows", name, _n_rows(then), _n_rows(now), followed=followed)
    old, new = map(_software, both)
    for name in dict.fromkeys((*old, *new)):
        yield Line("software", name, old.get(name, ABSENT), new.get(name, ABSENT))


def _parts(
    group: str,
    noun: str,
    registered: Parts,
    found: Parts,
    *,
    joint: str | None = None,
    whole: bool = False,
) -> Iterator[Line]:
    """One line for every part that is the same, else one for every difference.

    ``joint`` joins the names of part and item; without one, the item's name is enough. ``whole``: a part that only one
    side has is one line.
    """
    for part in dict.fromkeys((*registered, *found)):
        own, other = registered.get(part, {}), found.get(part, {})
        if own == other:
            yield Line(group, part, counted(len(own), noun), SAME, followed=True)
        elif whole and not (own and other):
            then, now = (counted(len(side), noun) if side else ABSENT for side in (own, other))
            yield Line(group, part, then, now)
        else:
            for item in dict.fromkeys((*own, *other)):
                then, now = own.get(item, ABSENT), other.get(item, ABSENT)
                if then != now:
                    yield Line(group, item if joint is None else f"{part}{joint}{item}", then, now)


def _sections(config: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Options of every section by dotted path; every dataset and model is a section."""
    sections: dict[str, dict[str, str]] = {}
    for path, value in flat_options(config):
        # ``datasets[meg].grid.lags_ms`` is part of the section ``datasets[meg]``.
        section = re.match(r"[^.\[]*(\[.*?\])?", path)[0]  # type: ignore[index]
        if section != "seed":
            text = json.dumps(value, ensure_ascii=False, sort_keys=True)
            sections.setdefault(section, {})[path.removeprefix(section)] = text
    return sections


def _inputs(registered: Content, found: Content) -> Iterator[Line]:
    """Files of every dataset and model by checksum."""
    models = [f"{MODEL}{own['name']}" for own in registered.config.get("models", ())]
    sides: list[dict[str, dict[str, str]]] = []
    for content in (registered, found):
        files: dict[str, dict[str, str]] = {name: {} for name in models}
        for file in content.inputs:
            files.setdefault(file.dataset, {})[file.path] = f"SHA-256 {file.sha256}"
        sides.append(files)
    for source in dict.fromkeys((*sides[0], *sides[1])):
        name = source.removeprefix(MODEL)
        own, other = (side.get(source, {}) for side in sides)
        if source.startswith(MODEL):
            # Features that were extracted after the registration are made from files that it names.
            other = {p: s for p, s in other.items() if p in own or not p.startswith(FEATURE_SETS)}
        group = "models" if source.startswith(MODEL) else "datasets"
        yield from _parts(group, "file", {name: own}, {name: other}, joint=", file ")


def _audit_rows(name: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Rows of an audit table as text by key, for every value of the key's first column."""
    table = find_table(name)
    parts: dict[str, dict[str, str]] = {}
    for row in rows:
        key = [str(row[column]) for column in table.key]
        own = [c for c in table.column_names if c in row and c not in table.key]
        text = ", ".join(f"{column} {row[column]}" for column in own)
        short = name.rpartition("/")[2]
        parts.setdefault(f"{short}, {key[0]}", {})[f"{short}, {'/'.join(key)}"] = text
    return parts


def _n_rows(own: TableRows | None) -> str:
    if own is None:
        return "no such table"
    return ("at most " if own.at_most else "") + counted(own.n_rows, "row")


def _software(content: Content) -> dict[str, str]:
    return {
        "lpact": content.lpact_version,
        "lpact's code": content.lpact_code,
        **content.versions,
        "plugin packages": ", ".join(content.plugins) or "none",
        **{f"code of the plugin '{name}'": code for name, code in content.plugin_code.items()},
    }
