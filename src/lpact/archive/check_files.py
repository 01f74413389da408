"""Files and manifest of a run against its lock, or against the manifest alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpact.archive.bounded_json import read_bounded
from lpact.archive.diff.manifests import option_changes
from lpact.archive.files import UNSEALED, Listing
from lpact.archive.lockfile import Lock
from lpact.archive.model import Problem, change, shown
from lpact.errors import RunError
from lpact.store import InputFile, Manifest, read_manifest, sha256_file
from lpact.store.manifest import MANIFEST_NAME, REPORT_FOLDER
from lpact.tables import declared_tables


@dataclass(frozen=True)
class FileFacts:
    """What a file should be."""

    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class FileCheck:
    """Problems of files, and the names of those that are as they should be."""

    problems: tuple[Problem, ...]
    intact: frozenset[str]


def expected_files(lock: Lock | None, manifest: Manifest | None) -> dict[str, FileFacts]:
    """Files that a run should have: those of the lock, or the tables of the manifest."""
    if lock is not None:
        return {n: FileFacts(f.n_bytes, f.sha256) for n, f in lock.sealed.files.items()}
    outputs = manifest.outputs if manifest is not None else ()
    return {file.path: FileFacts(file.n_bytes, file.sha256) for file in outputs}


def bounded_manifest(root: Path) -> Manifest:
    """The manifest of a run, which is looked at before it is parsed."""
    path = root / MANIFEST_NAME
    if path.is_file():
        read_bounded(path, what="the manifest is damaged")
    return read_manifest(root)


def check_twins(expected: Mapping[str, FileFacts]) -> list[Problem]:
    """Tables that should have one file only: every table is written as Parquet and as CSV."""
    problems = []
    for name in filter(is_table, expected):
        stem, _, suffix = name.rpartition(".")
        twin = f"{stem}.{'csv' if suffix == 'parquet' else 'parquet'}"
        if stem in declared_tables() and twin not in expected:
            what = "is not listed, although its twin is: a table has two files"
            problems.append(Problem("file", twin, what))
    return problems


def check_files(listing: Listing, expected: Mapping[str, FileFacts], *, locked: bool) -> FileCheck:
    """Compare every file. Without a lock, only table files are known, and others may lie beside them."""
    problems, intact = [], set()
    for name, facts in expected.items():
        what = _file_problem(listing, name, facts)
        if what is None:
            intact.add(name)
        else:
            problems.append(Problem("file", name, what))
    problems += [
        Problem("file", name, "was added: it is not part of the run")
        for name in listing.files
        if name not in expected and name not in UNSEALED and (locked or is_table(name))
    ]
    problems += [
        Problem("file", name, f"was added: {what}")
        for name, what in listing.others.items()
        if name not in expected
    ]
    return FileCheck(tuple(problems), frozenset(intact))


def _file_problem(listing: Listing, name: str, facts: FileFacts) -> str | None:
    if name in listing.others:
        return f"is {listing.others[name]}, and not the file that it was"
    path = listing.files.get(name)
    if path is None:
        return "is missing"
    n_bytes = path.stat().st_size
    if n_bytes != facts.n_bytes:
        return f"has changed: {n_bytes} bytes, not {facts.n_bytes}"
    if sha256_file(path) != facts.sha256:
        return f"has changed: {n_bytes} bytes as before, but another SHA-256"
    return None


def is_table(name: str) -> bool:
    """Whether a path is that of a table file of the run, and not one of its report."""
    return name.endswith((".parquet", ".csv")) and not name.startswith(f"{REPORT_FOLDER}/")


def check_manifest(root: Path, lock: Lock) -> list[Problem]:
    """What a changed manifest says otherwise: options, inputs, versions; read as it is, because it was edited."""
    path = root / MANIFEST_NAME
    try:
        values = json.loads(read_bounded(path, what="cannot be read"))
    except RunError as error:
        return [Problem("manifest", MANIFEST_NAME, f"{error.what}: {error.got}")]
    if not isinstance(values, dict):
        return [Problem("manifest", MANIFEST_NAME, "is not a manifest")]
    return [*_options(lock, values), *_inputs(lock, values), *_others(lock, values)]


def _options(lock: Lock, values: Mapping[str, Any]) -> Iterator[Problem]:
    config = values.get("config")
    if not isinstance(config, dict):
        yield Problem("manifest", MANIFEST_NAME, "has no configuration")
        return
    said = {"added": "the option was added", "removed": "the option is missing"}
    for option in option_changes(lock.sealed.config, config):
        what = change(option.before, option.after)
        if option.kind in said:
            what = f"{said[option.kind]} ({what})"
        yield Problem("option", option.path, what, old=option.before, new=option.after)


def _inputs(lock: Lock, values: Mapping[str, Any]) -> Iterator[Problem]:
    then = {(file.dataset, file.path): file for file in lock.sealed.inputs}
    now = {}
    inputs = values.get("inputs")
    for entry in inputs if isinstance(inputs, list) else ():
        try:
            file = InputFile.model_validate(entry)
        except ValueError:
            yield Problem("input", MANIFEST_NAME, f"an input is not one: {shown(entry)}")
            continue
        now[file.dataset, file.path] = file
    for dataset, path in sorted(then.keys() | now.keys()):
        old, new = then.get((dataset, path)), now.get((dataset, path))
        if old != new:
            was, is_now = (f.model_dump() if f else None for f in (old, new))
            what = "the manifest names another source file" if old and new else "was added"
            what = "is no longer named" if new is None else what
            yield Problem("input", f"{dataset}: {path}", what, old=was, new=is_now)


def _others(lock: Lock, values: Mapping[str, Any]) -> Iterator[Problem]:
    sealed = lock.sealed
    then: dict[str, Any] = {
        "study": sealed.study,
        "seed": sealed.seed,
        "config_digest": sealed.config_digest,
        "lpact_version": sealed.software.made_by_version,
        "lpact_code": sealed.software.made_by_code,
        "versions": sealed.software.made_with,
        "plugins": list(sealed.software.plugins),
    }
    for name, old in then.items():
        if values.get(name) != old:
            new = values.get(name)
            yield Problem(
                "manifest", f"{MANIFEST_NAME}, {name}", change(old, new), old=old, new=new
            )
    listed = {n: f.sha256 for n, f in sealed.files.items() if is_table(n)}
    outputs = values.get("outputs")
    for entry in outputs if isinstance(outputs, list) else ():
        path = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(path, str) or listed.get(path) != entry.get("sha256"):
            what = f"the manifest lists another checksum for {shown(path)} than the lock"
            yield Problem("manifest", f"{MANIFEST_NAME}, outputs", what)
