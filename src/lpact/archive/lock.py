"""Locking a finished run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lpact.archive.files import WRITTEN_BY_RUNS
from lpact.archive.lockfile import (
    NOT_LOCKED,
    Content,
    FileFacts,
    Listing,
    Lock,
    list_files,
    make_lock,
    read_lock,
    software_of,
    table_facts,
    write_lock,
)
from lpact.archive.problems import Verification, listed
from lpact.archive.verify import verify_run
from lpact.errors import RunError
from lpact.report.folder import clear_leftovers, refuse_being_written, report_contents
from lpact.store import (
    Manifest,
    StoredRun,
    read_manifest,
    read_table,
    sha256_file,
    storage_errors,
)
from lpact.store.manifest import REPORT_FOLDER, is_locked

_WRITE = 0o222


@dataclass(frozen=True)
class LockedRun:
    """A locked run.

    Attributes
    ----------
    foreign
        Files that lpact did not write; they are locked too.
    verification
        The result of `verify_run` if the run was locked before.
    """

    root: Path
    digest: str
    n_files: int
    n_tables: int
    foreign: tuple[str, ...] = ()
    verification: Verification | None = None


def lock_run(path: str | Path) -> LockedRun:
    """Lock the finished run at ``path``; verify it if it is locked already.

    A run that does not pass `verify_run` is refused. ``lock.json`` is written last and atomically; then all files and
    folders of the run become read-only.
    """
    root = Path(path)
    if is_locked(root):
        verification = verify_run(root, report=False)
        if verification.ok:
            # An earlier attempt may have been interrupted before this.
            _make_read_only(list_files(root))
        return _locked(root, read_lock(root), verification=verification)
    manifest = read_manifest(root)
    clear_leftovers(root / REPORT_FOLDER)
    refuse_being_written(root / REPORT_FOLDER)
    listing = list_files(root)
    _refuse_changed(root, listing)
    content = _content(root, manifest, listing)
    lock = make_lock(content, locked_on=datetime.now(UTC).date().isoformat())
    write_lock(root, lock)
    _make_read_only(list_files(root))
    own = {*WRITTEN_BY_RUNS, *NOT_LOCKED, *(file.path for file in manifest.outputs)}
    foreign = (
        name
        for name in listing.files
        if name not in own and not name.startswith(f"{REPORT_FOLDER}/")
    )
    return _locked(root, lock, foreign=tuple(foreign))


def _locked(
    root: Path,
    lock: Lock,
    *,
    foreign: tuple[str, ...] = (),
    verification: Verification | None = None,
) -> LockedRun:
    files, tables = lock.content.files, lock.content.tables
    return LockedRun(root, lock.root_digest, len(files), len(tables), foreign, verification)


def _refuse_changed(root: Path, listing: Listing) -> None:
    """Refuse a run that does not pass verification, and one with a report that was edited."""
    found = [problem.text for problem in verify_run(root, report=False).problems]
    report = root / REPORT_FOLDER
    own = {f"{REPORT_FOLDER}/{name}" for name in report_contents(report)}
    found += [
        f"{name}: was changed or added after the report was written"
        for name in listing.files
        if name.startswith(f"{REPORT_FOLDER}/") and name not in own
    ]
    if found:
        raise RunError(
            "the run does not pass verification and was not locked",
            where=str(root),
            got=listed(found, 8, "; "),
            expected="tables, decisions and report as lpact wrote them",
            remedy="restore the files from a copy, write the report again (lpact report), or run the study again",
        )


def _content(root: Path, manifest: Manifest, listing: Listing) -> Content:
    tables = StoredRun(root).tables()
    return Content(
        study=manifest.study,
        seed=manifest.seed,
        config=manifest.config,
        config_digest=manifest.config_digest,
        inputs=manifest.inputs,
        software=software_of(manifest),
        files={
            name: FileFacts(n_bytes=path.stat().st_size, sha256=sha256_file(path))
            for name, path in listing.files.items()
            if name not in NOT_LOCKED
        },
        # One table in memory at a time.
        tables={table.name: table_facts(table, read_table(root, table)) for table in tables},
    )


def _make_read_only(listing: Listing) -> None:
    """Remove the write permission from all files and folders."""
    for path in (*listing.files.values(), *reversed(listing.folders)):
        with storage_errors(path, "the run is locked, but a file could not be made read-only"):
            mode = path.stat().st_mode
            if mode & _WRITE:
                path.chmod(mode & ~_WRITE & 0o7777)
