"""Freezing a finished run."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lpact.analyses.lpact.tables.relational import BRAIN_UNIT_INDEX
from lpact.analyses.lpact.unit_order import consistency_problems, unit_orders
from lpact.archive.apart import apart
from lpact.archive.bounded_json import read_bounded
from lpact.archive.check_files import bounded_manifest
from lpact.archive.check_report import check_verdicts
from lpact.archive.check_tables import SealedTables
from lpact.archive.digests import column_digest, key_digest
from lpact.archive.environment import distributions, system
from lpact.archive.files import UNSEALED, Listing, list_files
from lpact.archive.lockfile import (
    Lock,
    Sealed,
    SealedFile,
    SealedTable,
    Software,
    UnitOrder,
    make_lock,
    write_lock,
)
from lpact.archive.model import Problem, Verification
from lpact.archive.verify import verify_run
from lpact.errors import RunError
from lpact.report import report_contents
from lpact.report.folder import CONTENTS, clear_leftovers, refuse_being_written
from lpact.store import (
    Manifest,
    StoredRun,
    code_digest,
    read_table,
    sha256_file,
    storage_errors,
    verify_outputs,
)
from lpact.store.locked import is_locked
from lpact.store.manifest import MANIFEST_NAME, REPORT_FOLDER

WRITTEN_BY_RUNS = frozenset({MANIFEST_NAME, "log.jsonl", "status.json", "preregistration.json"})
"""Files beside tables and report that lpact writes into runs."""
_MOST_NAMED = 8
_NO_WRITE = ~0o222


@dataclass(frozen=True)
class LockedRun:
    """A run that is locked now.

    ``verification`` is there where it was locked before; ``foreign`` names files that lpact did not write, which are
    locked too.
    """

    root: Path
    digest: str
    n_files: int
    n_tables: int
    n_recordings: int
    foreign: tuple[str, ...]
    verification: Verification | None = None


def lock_run(path: str | Path) -> LockedRun:
    """Freeze the finished run at ``path``, or verify it if it is locked already.

    A run that is not as its manifest says is refused. ``lock.json`` is written last and at once; then all files and
    folders of the run become read-only.
    """
    root = Path(path)
    if is_locked(root):
        return _locked_before(root)
    manifest = bounded_manifest(root)
    clear_leftovers(root / REPORT_FOLDER)
    refuse_being_written(root / REPORT_FOLDER)
    listing = list_files(root)
    _refuse_changed(root, listing)
    _refuse_disagreeing(root, manifest)
    lock = make_lock(
        _sealed(root, manifest, listing), locked_on=datetime.now(UTC).date().isoformat()
    )
    write_lock(root, lock)
    make_read_only(list_files(root))
    return _described(root, lock, foreign=_foreign(root, listing, manifest))


def _locked_before(root: Path) -> LockedRun:
    from lpact.archive.lockfile import read_lock

    verification = verify_run(root, report=False)
    if verification.ok:
        # An earlier attempt may have been interrupted before this.
        make_read_only(list_files(root))
    return _described(root, read_lock(root), verification=verification)


def _described(
    root: Path,
    lock: Lock,
    *,
    foreign: tuple[str, ...] = (),
    verification: Verification | None = None,
) -> LockedRun:
    sealed = lock.sealed
    return LockedRun(
        root=root,
        digest=lock.root_digest,
        n_files=len(sealed.files),
        n_tables=len(sealed.tables),
        n_recordings=len(sealed.unit_orders),
        foreign=foreign,
        verification=verification,
    )


def _refuse_changed(root: Path, listing: Listing) -> None:
    """Refuse a run that is not as it was published, with the names of what is not."""
    changed = verify_outputs(root)
    changed += [f"{name} is {what}" for name, what in listing.others.items()]
    if (contents := root / REPORT_FOLDER / CONTENTS).is_file():
        read_bounded(contents, what="the list of the report's files cannot be read")
    own = report_contents(root / REPORT_FOLDER)
    for name in listing.files:
        folder, _, rest = name.partition("/")
        if folder == REPORT_FOLDER and rest not in own:
            changed.append(f"{name} was changed or added since the report was written")
    if (root / REPORT_FOLDER).is_symlink():
        changed.append(f"{REPORT_FOLDER} is a link")
    if changed:
        more = len(changed) - _MOST_NAMED
        raise RunError(
            "the run has changed since it was published, and is not locked",
            where=str(root),
            got="; ".join(changed[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else ""),
            expected="tables as the manifest lists them, and a report as lpact wrote it",
            remedy="restore the files from a copy, write the report again (lpact report), or run the study again",
        )


def _sealed(root: Path, manifest: Manifest, listing: Listing) -> Sealed:
    files = {
        name: SealedFile(n_bytes=path.stat().st_size, sha256=sha256_file(path))
        for name, path in listing.files.items()
        if name not in UNSEALED
    }
    tables, orders = _tables(root)
    return Sealed(
        study=manifest.study,
        seed=manifest.seed,
        config=manifest.config,
        config_digest=manifest.config_digest,
        inputs=manifest.inputs,
        software=Software(
            made_by_version=manifest.lpact_version,
            made_by_code=manifest.lpact_code,
            made_with=manifest.versions,
            plugins=manifest.plugins,
            locked_by_code=code_digest(),
            system=system(),
            distributions=distributions(),
        ),
        files=files,
        tables=tables,
        unit_orders=orders,
    )


def _tables(root: Path) -> tuple[dict[str, SealedTable], tuple[UnitOrder, ...]]:
    """Facts of every table, one in memory at a time, and the order of units."""
    tables: dict[str, SealedTable] = {}
    orders: tuple[UnitOrder, ...] = ()
    for table in StoredRun(root).tables():
        frame = read_table(root, table)
        if table == BRAIN_UNIT_INDEX:
            orders = unit_orders(frame)
        columns = {column.name: column_digest(column) for column in frame.get_columns()}
        tables[table.name] = SealedTable(
            n_rows=frame.height,
            key=table.key,
            key_sha256=key_digest(columns, table.key),
            columns=columns,
        )
    return tables, orders


def _refuse_disagreeing(root: Path, manifest: Manifest) -> None:
    """Refuse files of one table, tables of one run, or a page of verdicts, that say otherwise than each other.

    Checksums that fit do not tell: whoever edits a file can write its checksum into the manifest.
    """
    names = [table.name for table in StoredRun(root).tables()]
    intact = {file.path: file.sha256 for file in manifest.outputs}
    with (
        apart() as reader,
        tempfile.TemporaryDirectory(prefix="lpact-tables-") as scratch,
    ):
        tables = SealedTables(root, names, intact, Path(scratch))
        tables.examine(reader, None, manifest)
        problems = tables.problems
        if not problems and not tables.short:
            problems = [*consistency_problems(names, tables), *check_verdicts(root, tables)]
    if tables.short and not problems:
        raise not_enough(root, list(tables.short.values()), done="locked")
    if problems:
        more = len(problems) - _MOST_NAMED
        raise RunError(
            "files of the run disagree with each other, and it is not locked",
            where=str(root),
            got="; ".join(problem.text for problem in problems[:_MOST_NAMED])
            + (f"; and {more} more" if more > 0 else ""),
            expected="both files of every table with the same values, one order of units a recording in all tables, "
            "and a page of verdicts as the tables give it",
            remedy="restore the files from a copy, write the report again (lpact report), or run the study again",
        )


def not_enough(root: Path, problems: Sequence[Problem], *, done: str) -> RunError:
    """The error about a run that cannot be checked on this machine."""
    more = len(problems) - _MOST_NAMED
    return RunError(
        f"there is not enough memory or time here to check the run, and it is not {done}",
        where=str(root),
        got="; ".join(problem.text for problem in problems[:_MOST_NAMED])
        + (f"; and {more} more" if more > 0 else ""),
        expected="memory and time to read every table",
        remedy="free memory, or try on a machine that has more",
    )


def _foreign(root: Path, listing: Listing, manifest: Manifest) -> tuple[str, ...]:
    own = {file.path for file in manifest.outputs} | WRITTEN_BY_RUNS | UNSEALED
    own |= {f"{REPORT_FOLDER}/{name}" for name in report_contents(root / REPORT_FOLDER)}
    return tuple(name for name in listing.files if name not in own)


def make_read_only(listing: Listing) -> None:
    """Take away the permission to write files and folders, from everybody."""
    for path in (*listing.files.values(), *reversed(listing.folders)):
        with storage_errors(path, "the run is locked, but a file could not be made read-only"):
            mode = path.stat().st_mode
            if mode & ~_NO_WRITE:
                path.chmod(mode & _NO_WRITE & 0o7777)
