"""Files and manifest of a run, against its lock or against the manifest alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lpact.archive.diff.manifests import option_changes
from lpact.archive.lockfile import NOT_LOCKED, FileFacts, Listing, Lock, read_limited
from lpact.archive.problems import Problem, change, shown
from lpact.errors import RunError
from lpact.store import InputFile, Manifest, sha256_file
from lpact.store.manifest import MANIFEST_NAME, REPORT_FOLDER

REGISTRATION = "preregistration.json"
WRITTEN_BY_RUNS = frozenset({MANIFEST_NAME, "log.jsonl", "status.json", REGISTRATION})
"""Files beside tables and report that lpact writes into runs."""


def expected_files(lock: Lock | None, manifest: Manifest | None) -> dict[str, FileFacts]:
    """Files that a run should have: those of the lock, or the tables of the manifest."""
    if lock is not None:
        return lock.content.files
    outputs = manifest.outputs if manifest is not None else ()
    return {own.path: FileFacts(n_bytes=own.n_bytes, sha256=own.sha256) for own in outputs}


def is_table(name: str) -> bool:
    """Whether a path is that of a table file, outside of the report."""
    return name.endswith((".parquet", ".csv")) and not name.startswith(f"{REPORT_FOLDER}/")


def check_files(
    listing: Listing, expected: Mapping[str, FileFacts], *, locked: bool
) -> tuple[list[Problem], set[str]]:
    """Compare every file; return the problems, and the names of the intact files.

    Without a lock only table files are known, and others may lie beside them.
    """
    problems, intact = [], set()
    for name, facts in expected.items():
        if what := _file_problem(listing, name, facts):
            problems.append(Problem("file", name, what))
        else:
            intact.add(name)
    problems += [
        Problem("file", name, "was added: it is not part of the run")
        for name in listing.files
        if name not in expected and name not in NOT_LOCKED and (locked or is_table(name))
    ]
    for name, what in listing.others.items():
        if name not in expected:
            problems.append(Problem("file", name, f"was added: {what}"))
    for name in filter(is_table, expected):
        stem, _, suffix = name.rpartition(".")
        twin = f"{stem}.{'csv' if suffix == 'parquet' else 'parquet'}"
        if twin not in expected:
            problems.append(Problem("file", twin, "is not listed: a table has two files"))
    return problems, intact


def _file_problem(listing: Listing, name: str, facts: FileFacts) -> str:
    if name in listing.others:
        return f"was replaced by {listing.others[name]}"
    path = listing.files.get(name)
    if path is None:
        return "is missing"
    n_bytes = path.stat().st_size
    if n_bytes != facts.n_bytes:
        return f"has changed: {n_bytes} bytes instead of {facts.n_bytes}"
    if sha256_file(path) != facts.sha256:
        return "has changed: same size, different SHA-256"
    return ""


def check_manifest(root: Path, lock: Lock) -> list[Problem]:
    """What a changed manifest says differently: options, inputs, versions."""
    try:
        values = json.loads(read_limited(root / MANIFEST_NAME))
        if not isinstance(values, dict):
            raise ValueError("not a JSON object")
        return [*_options(lock, values), *_inputs(lock, values), *_others(lock, values)]
    except (ValueError, RecursionError) as error:
        return [Problem("manifest", MANIFEST_NAME, f"cannot be read: {str(error)[:200]}")]
    except RunError as error:
        return [Problem("manifest", MANIFEST_NAME, f"{error.what}: {error.got}")]


def _options(lock: Lock, values: Mapping[str, Any]) -> Iterator[Problem]:
    config = values.get("config")
    if not isinstance(config, dict):
        yield Problem("manifest", MANIFEST_NAME, "has no configuration")
        return
    verbs = {"added": "was added", "removed": "was removed"}
    for option in option_changes(lock.content.config, config):
        what = change(option.before, option.after)
        if option.kind in verbs:
            what = f"{verbs[option.kind]} ({what})"
        yield Problem("option", option.path, what, old=option.before, new=option.after)


def _inputs(lock: Lock, values: Mapping[str, Any]) -> Iterator[Problem]:
    then = {(own.dataset, own.path): own.model_dump() for own in lock.content.inputs}
    now: dict[tuple[str, str], dict[str, Any]] = {}
    inputs = values.get("inputs")
    for entry in inputs if isinstance(inputs, list) else ():
        try:
            own = InputFile.model_validate(entry)
        except ValueError:
            yield Problem("input", MANIFEST_NAME, f"not a source file: {shown(entry)}")
            continue
        now[own.dataset, own.path] = own.model_dump()
    for key in sorted(then.keys() | now.keys()):
        old, new = then.get(key), now.get(key)
        if old != new:
            what = "was added" if old is None else "size or SHA-256 has changed"
            what = "was removed" if new is None else what
            yield Problem("input", f"{key[0]}: {key[1]}", what, old=old, new=new)


def _others(lock: Lock, values: Mapping[str, Any]) -> Iterator[Problem]:
    content, software = lock.content, lock.content.software
    then: dict[str, Any] = {
        "study": content.study,
        "seed": content.seed,
        "config_digest": content.config_digest,
        "lpact_version": software.made_by_version,
        "lpact_code": software.made_by_code,
        "versions": software.made_with,
        "plugins": list(software.plugins),
    }
    for name, old in then.items():
        if (new := values.get(name)) != old:
            where = f"{MANIFEST_NAME}, {name}"
            yield Problem("manifest", where, change(old, new), old=old, new=new)
    listed = {name: own.sha256 for name, own in content.files.items() if is_table(name)}
    outputs = values.get("outputs")
    for entry in outputs if isinstance(outputs, list) else ():
        path = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(path, str) or listed.get(path) != entry.get("sha256"):
            what = f"the checksum of {shown(path)} differs from the lock"
            yield Problem("manifest", f"{MANIFEST_NAME}, outputs", what)
