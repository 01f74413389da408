"""A run compared with a registration, item by item, from the run's tables and manifest alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.features.models import FEATURE_SETS
from lpact.run.preregistration.content import (
    Content,
    EarlierRun,
    TableRows,
    found_content,
    software_now,
)
from lpact.run.preregistration.earlier import KEPT, MODEL, NOTED, UNREADABLE, TakenOver
from lpact.run.preregistration.record import Registration, deposited_digest
from lpact.store import InputFile, Provenance, RunTables, StoredRun, frame, validate
from lpact.tables import (
    AFTER_THE_FACT,
    BEFORE_RESULTS,
    BEFORE_RUN,
    DIGEST,
    PREREGISTRATION_ITEMS,
    find_table,
)

ABSENT, SAME = "nothing", "the same"
DEPOSITED = "digest that was deposited"
NOT_SEARCHED = "no earlier run was named to be searched"
NOT_UNDER_IT = " result(s) of tasks were not made under it"


@dataclass(frozen=True)
class Line:
    """What was registered and what was found; followed, where not given, if both are equal."""

    group: str
    item: str
    registered: str
    found: str
    detail: str = ""
    followed: bool | None = None

    def row(self) -> dict[str, object]:
        """The line as a row of the table."""
        followed = self.registered == self.found if self.followed is None else self.followed
        return {
            "followed": followed,
            "item_group": self.group,
            "item": one_line(self.item),
            "registered": one_line(self.registered),
            "found": one_line(self.found),
            "detail": one_line(self.detail),
        }


def one_line(text: str) -> str:
    """Text in which control characters, such as line breaks, and lone surrogates are written out."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def counted(n: int, noun: str) -> str:
    """``1 option``, ``2 options``."""
    return f"{n:,} {noun if n == 1 else noun + 's'}"


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
        The registration's digest as it was deposited, if that is known.
    """
    lines = [
        *_about_registration(registration, made_with, taken, deposited),
        *compare(registration.content, found),
    ]
    rows = [line.row() for line in lines]
    return validate(frame(PREREGISTRATION_ITEMS, rows), PREREGISTRATION_ITEMS)


def check_run(
    registration: Registration, run: StoredRun, *, deposited: str | None = None
) -> pl.DataFrame:
    """Compare a finished run with a registration, and the registration with its ``deposited`` digest."""
    manifest = run.manifest
    software = {n: getattr(manifest, n) for n in ("lpact_version", "lpact_code", "versions")}
    n_rows = {table.name: run.n_rows(table.name) for table in run.tables()}
    found = found_content(manifest, software, RunTables(run), n_rows)
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
    """Compare a run that is about to be published with the registration it was given.

    ``tables`` has those of the audit and of the claims; ``n_rows`` counts the rows of every table.
    """
    found = found_content(made_from, software_now(made_from.config), tables, n_rows)
    return check(registration, found, made_with=registration.found_digest, taken=taken)


def _made_with(run: StoredRun) -> tuple[str | None, TakenOver | None]:
    """Digest of the registration that a run was given, and results not made under it, as its own table says."""
    if PREREGISTRATION_ITEMS.name not in {table.name for table in run.tables()}:
        return None, None
    own = run.table(PREREGISTRATION_ITEMS.name).filter(item_group="registration")
    rows = {row["item"]: row for row in own.iter_rows(named=True)}
    digest = rows[DIGEST]["found"] if DIGEST in rows else None
    order = rows.get(BEFORE_RUN, {"found": "", "detail": ""})
    n_results, under, _ = order["found"].partition(NOT_UNDER_IT)
    return digest, TakenOver(int(n_results), order["detail"]) if under else None


def _about_registration(
    registration: Registration,
    made_with: str | None,
    taken: TakenOver | None,
    deposited: str | None,
) -> Iterator[Line]:
    """What a registration is worth: unchanged, as deposited, before results, and before this run."""
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
    yield _before_results(registration.content)
    yield _before_run(registration, made_with, taken)


def _before_results(content: Content) -> Line:
    searched = ", ".join(map(_searched, content.earlier_runs))
    detail = f"searched: {searched}" if searched else NOT_SEARCHED
    if not content.after_the_fact:
        found = "no results in what was searched" if searched else NOT_SEARCHED
        if n_damaged := sum(run.state == UNREADABLE for run in content.earlier_runs):
            found += f"; {counted(n_damaged, 'note')} of earlier runs there could not be read"
        why = detail if searched else "declared by the author; nothing here can prove it"
        return Line("registration", BEFORE_RESULTS, "declared before results", found, why, True)
    had = "; ".join(
        ", ".join(run.same) or counted(run.n_finished_tasks, "finished task")
        for run in content.earlier_runs
        if run.has_results
    )
    why = f"{f'results that existed: {had}' if had else 'declared by the author'}; {detail}"
    return Line("registration", BEFORE_RESULTS, "declared so", AFTER_THE_FACT, why, False)


def _searched(run: EarlierRun) -> str:
    if run.state == KEPT:
        return "the study's own store of results, for its tasks and for other runs on the same data and models"
    if run.state == NOTED:
        return f"results of a run of '{run.study}' there"
    if run.state == UNREADABLE:
        return f"the note {run.study} there, which could not be read, so its data are unknown"
    return f"a {run.state} run" + (f" of '{run.study}'" if run.study else "")


def _before_run(registration: Registration, made_with: str | None, taken: TakenOver | None) -> Line:
    edited = "" if registration.time_intact else ", a time that was edited"
    moment = f"registered at {registration.registered_at}{edited}"
    if made_with is None:
        found, why = "the run was made without a registration", "the run does not show the order"
    elif made_with != registration.found_digest:
        found, why = f"the run was made with another registration, {one_line(made_with)}", ""
    elif taken is not None:
        found, why = f"{taken.n_results}{NOT_UNDER_IT}", taken.why
    else:
        return Line("registration", BEFORE_RUN, moment, "the run was made with it", "", True)
    return Line("registration", BEFORE_RUN, moment, found, why, False)


def compare(registered: Content, found: Content) -> Iterator[Line]:
    """Every item of a registration beside what the run has: one line where a whole part is the same."""
    yield Line("seed", "seed", str(registered.seed), str(found.seed))
    yield from _parts(
        "configuration", "option", _sections(registered.config), _sections(found.config), ""
    )
    yield from _inputs(registered, found)
    for name in dict.fromkeys((*registered.audit, *found.audit)):
        own, other = (_audit_rows(name, side.audit.get(name, ())) for side in (registered, found))
        yield from _parts("audit", "row", own, other)
    yield from _parts("claims", "claim", _claims(registered), _claims(found))
    yield from _rows(registered.rows, found.rows)
    yield from _software(registered, found)


Parts = Mapping[str, Mapping[str, str]]
"""Texts by item, of every part of a group."""


def _parts(
    group: str, noun: str, registered: Parts, found: Parts, joint: str | None = None
) -> Iterator[Line]:
    """One line for every part that is the same, else one for every difference.

    ``joint`` stands between the names of part and item; without one, the item's name is enough.
    """
    for part in dict.fromkeys((*registered, *found)):
        own, other = registered.get(part, {}), found.get(part, {})
        if own == other:
            yield Line(group, part, counted(len(own), noun), SAME, followed=True)
        elif joint is not None and not (own and other):
            then, now = (counted(len(side), noun) if side else ABSENT for side in (own, other))
            yield Line(group, part, then, now)
        else:
            for item, then, now in _differing(own, other):
                yield Line(group, item if joint is None else f"{part}{joint}{item}", then, now)


def _differing(own: Mapping[str, str], other: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Names whose texts are not the same, with both."""
    for name in dict.fromkeys((*own, *other)):
        then, now = own.get(name, ABSENT), other.get(name, ABSENT)
        if then != now:
            yield name, then, now


def _sections(config: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Options of every section by dotted path; every dataset and model is a section, whatever its place."""
    sections: dict[str, Any] = {}
    for name, value in config.items():
        if name == "seed":
            continue
        if isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            sections |= {f"{name}[{own.get('name', i)}]": own for i, own in enumerate(value)}
            sections[f"{name}, their order"] = [own.get("name", i) for i, own in enumerate(value)]
        else:
            sections[name] = value
    return {name: dict(_options(value, "")) for name, value in sections.items()}


def _options(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, own in value.items():
            yield from _options(own, f"{path}.{name}")
    else:
        yield path, json.dumps(value, ensure_ascii=False, sort_keys=True)


def _inputs(registered: Content, found: Content) -> Iterator[Line]:
    """Files of every dataset and model by checksum."""
    ours, theirs = _files(registered.inputs), _files(found.inputs)
    models = [f"{MODEL}{own['name']}" for own in registered.config.get("models", ())]
    for source in dict.fromkeys((*ours, *models, *theirs)):
        group = "models" if source.startswith(MODEL) else "datasets"
        name = source.removeprefix(MODEL)
        own, other = ours.get(source, {}), theirs.get(source, {})
        if group == "models":
            # Features that were extracted after the registration are made from files that it names.
            other = {p: s for p, s in other.items() if p in own or not p.startswith(FEATURE_SETS)}
        if own != other:
            for path, then, now in _differing(own, other):
                yield Line(group, f"{name}, file {path}", then, now)
        elif own:
            yield Line(group, name, counted(len(own), "file"), SAME, "by SHA-256", True)
        else:
            detail = "its features are part of the datasets"
            yield Line(group, name, "no files of its own", SAME, detail, True)


def _files(inputs: Iterable[InputFile]) -> dict[str, dict[str, str]]:
    sources: dict[str, dict[str, str]] = {}
    for file in inputs:
        sources.setdefault(file.dataset, {})[file.path] = f"SHA-256 {file.sha256}"
    return sources


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


def _claims(own: Content) -> dict[str, dict[str, str]]:
    return {name: dict.fromkeys(ids, "a claim") for name, ids in own.claims.items()}


def _rows(registered: Mapping[str, TableRows], found: Mapping[str, TableRows]) -> Iterator[Line]:
    for name in dict.fromkeys((*registered, *found)):
        then, now = registered.get(name), found.get(name)
        followed = None
        if then is not None and now is not None:
            followed = now.n_rows <= then.n_rows if then.at_most else now.n_rows == then.n_rows
        yield Line("rows", name, _n_rows(then), _n_rows(now), followed=followed)


def _n_rows(own: TableRows | None) -> str:
    if own is None:
        return "no such table"
    return ("at most " if own.at_most else "") + counted(own.n_rows, "row")


def _software(registered: Content, found: Content) -> Iterator[Line]:
    yield Line("software", "lpact", registered.lpact_version, found.lpact_version)
    yield Line("software", "lpact's code", registered.lpact_code, found.lpact_code)
    for name in dict.fromkeys((*registered.versions, *found.versions)):
        then, now = registered.versions.get(name, ABSENT), found.versions.get(name, ABSENT)
        yield Line("software", name, then, now)
    then, now = (", ".join(own.plugins) or "none" for own in (registered, found))
    yield Line("software", "plugin packages", then, now)
    for name in sorted({*registered.plugin_code, *found.plugin_code}):
        then, now = (own.plugin_code.get(name, ABSENT) for own in (registered, found))
        yield Line("software", f"code of the plugin '{name}'", then, now)
