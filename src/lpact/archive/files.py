"""Files and manifest of a run, against its lock or against the manifest alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lpact.archive.diff.manifests import OptionChange, option_changes
from lpact.archive.lockfile import NOT_LOCKED, FileFacts, Listing, Lock, read_limited
from lpact.archive.problems import Kind, Problem, change
from lpact.errors import RunError
from lpact.store import Manifest, sha256_file
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
    """Name what a changed manifest says differently: options, inputs, checksums, versions."""
    content, software = lock.content, lock.content.software
    then = {
        "study": content.study,
        "seed": content.seed,
        "config": content.config,
        "config_digest": content.config_digest,
        "lpact_version": software.made_by_version,
        "lpact_code": software.made_by_code,
        "versions": software.made_with,
        "plugins": list(software.plugins),
        "inputs": _by_name([file.model_dump() for file in content.inputs]),
        "outputs": _by_name(
            [
                {"path": name, **file.model_dump()}
                for name, file in content.files.items()
                if is_table(name)
            ]
        ),
    }
    try:
        values = json.loads(read_limited(root / MANIFEST_NAME))
        now = {name: values.get(name) for name in then}
        now |= {name: _by_name(values[name]) for name in ("inputs", "outputs")}
        return [_manifest_problem(option) for option in option_changes(then, now)]
    except RunError as error:
        return [Problem("manifest", MANIFEST_NAME, f"{error.what}: {error.got}")]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return [Problem("manifest", MANIFEST_NAME, f"cannot be read: {repr(error)[:200]}")]


def _by_name(files: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        ": ".join(own[part] for part in ("dataset", "path") if part in own): {
            "n_bytes": own["n_bytes"],
            "sha256": own["sha256"],
        }
        for own in files
    }


def _manifest_problem(option: OptionChange) -> Problem:
    verbs = {"added": "was added: ", "removed": "was removed: ", "changed": ""}
    what = verbs[option.kind] + change(option.before, option.after)
    part, _, rest = option.path.partition(".")
    kinds: dict[str, Kind] = {"config": "option", "inputs": "input"}
    where = rest if part in kinds else f"{MANIFEST_NAME}, {option.path}"
    return Problem(kinds.get(part, "manifest"), where, what, old=option.before, new=option.after)
