"""Holding a run, or an archive of one, against its lock, and deciding it again from its tables alone."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from lpact.analyses.lpact.gates import NEEDED, decide
from lpact.analyses.lpact.tables.relational import BRAIN_UNIT_INDEX
from lpact.analyses.lpact.unit_order import consistency_problems, order_problems
from lpact.archive.apart import Apart, apart
from lpact.archive.archive import unpacked_run
from lpact.archive.check_files import (
    bounded_manifest,
    check_files,
    check_manifest,
    check_twins,
    expected_files,
    is_table,
)
from lpact.archive.check_registration import check_registration
from lpact.archive.check_report import check_report, check_verdicts
from lpact.archive.check_tables import SealedTables
from lpact.archive.crate import check_crate
from lpact.archive.environment import distributions
from lpact.archive.files import CRATE_FILE, list_files
from lpact.archive.frames import frame_problems
from lpact.archive.lockfile import Lock, lock_bytes, read_lock
from lpact.archive.model import Problem, Verification
from lpact.config import StudyConfig
from lpact.errors import ConfigError, LPactError
from lpact.store import Manifest, code_digest
from lpact.store.locked import LOCK_FILE, is_locked
from lpact.store.manifest import MANIFEST_NAME, REPORT_FOLDER
from lpact.tables import declared_tables
from lpact.validation import validate_model

Tell = Callable[[str], None]


def verify_run(
    path: str | Path,
    *,
    digest: str | None = None,
    report: bool = True,
    workers: int = 0,
    tell: Tell = lambda _: None,
) -> Verification:
    """Check a run directory or an exported archive; every problem is named, not only the first.

    Parameters
    ----------
    path
        Folder of a run, locked or not, or an archive of `lpact.archive.export_run`.
    digest
        Root digest that somebody quotes. Whoever can write to the run can write another lock; this they cannot change.
    report
        Whether the report is made again, which takes longest.
    workers
        Processes that draw it; with more than none, a script must guard its entry point.
    tell
        Called with what is being done, for those who wait.
    """
    quoted = None if digest is None else _digest(digest)
    with (
        unpacked_run(path) as root,
        apart() as reader,
        tempfile.TemporaryDirectory(prefix="lpact-tables-") as scratch,
    ):
        found = _Verifier(root, tell, reader, Path(scratch))
        found.lock_and_files(quoted)
        found.makes_report = report
        found.tables_and_decisions()
        found.report(workers=workers)
        return Verification(
            path=Path(path),
            locked=found.locked,
            digest=None if found.lock is None else found.lock.root_digest,
            problems=tuple(found.problems),
            checked=tuple(found.checked),
            notes=tuple(found.notes),
        )


def _digest(given: str) -> str:
    """A quoted root digest; text that can be none is a `ConfigError`."""
    text = given.strip().lower().removeprefix("sha256:")
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ConfigError(
            "this is no root digest",
            where="--digest",
            got=given,
            expected="64 hexadecimal digits",
            remedy="copy the digest that `lpact lock` printed, whole",
        )
    return text


def _not_checked(where: str) -> list[Problem]:
    what = "was not made again and compared: tables were not read, for want of memory or time"
    return [Problem("limit", where, what)]


class _Verifier:
    """One verification under way."""

    def __init__(self, root: Path, tell: Tell, reader: Apart, scratch: Path) -> None:
        self.root, self.tell = root, tell
        self.reader, self.scratch = reader, scratch
        self.problems: list[Problem] = []
        self.checked: list[str] = []
        self.notes: list[str] = []
        self.locked = is_locked(root) or (root / LOCK_FILE).exists()
        self.lock: Lock | None = None
        self.manifest: Manifest | None = None
        self.intact: frozenset[str] = frozenset()
        self.described = False
        self.readable = False
        self.makes_report = True

    def lock_and_files(self, digest: str | None) -> None:
        """The lock itself, the quoted digest, then every file."""
        self.tell("comparing checksums")
        if self.locked:
            self._read_lock()
        try:
            self.manifest = bounded_manifest(self.root)
        except LPactError as error:
            if not self.locked:
                raise
            text = f"{error.what}: {error.got}"
            self.problems.append(Problem("manifest", MANIFEST_NAME, text))
        if digest is not None:
            self._quoted(digest)
        listing = list_files(self.root)
        expected = expected_files(self.lock, self.manifest)
        self.problems += check_twins(expected)
        files = check_files(listing, expected, locked=self.lock is not None)
        self.problems += files.problems
        self.intact = files.intact
        if self.lock is not None and MANIFEST_NAME not in files.intact:
            self.problems += check_manifest(self.root, self.lock)
        self.described = CRATE_FILE in listing.files
        against = "the lock" if self.lock is not None else "the manifest"
        self.checked.append(f"{len(expected)} files were compared with {against}.")
        if not self.locked:
            self.notes.append(
                "The run is not locked: tables were compared with its own manifest, the report with the tables, and "
                "other files with nothing. `lpact lock` freezes it."
            )

    def _read_lock(self) -> None:
        try:
            self.lock = lock = read_lock(self.root)
        except LPactError as error:
            self.problems.append(Problem("lock", LOCK_FILE, f"{error.what}: {error.got}"))
            return
        if lock.computed_digest() != lock.root_digest:
            what = f"was edited: its contents have the root digest {lock.computed_digest()}"
            self.problems.append(
                Problem("lock", LOCK_FILE, what, old=lock.root_digest, new=lock.computed_digest())
            )
        elif lock.computed_checksum() != lock.checksum:
            what = f"was edited: its checksum does not fit with the day {lock.locked_on!r}"
            self.problems.append(Problem("lock", LOCK_FILE, what))
        elif lock_bytes(lock) != (self.root / LOCK_FILE).read_bytes():
            what = "was edited: it is not written as lpact writes it"
            self.problems.append(Problem("lock", LOCK_FILE, what))
        self._name_versions(lock)

    def _name_versions(self, lock: Lock) -> None:
        software = lock.sealed.software
        codes = sorted({software.made_by_code, software.locked_by_code} - {code_digest()})
        if codes:
            self.notes.append(
                f"The run was made or locked by other code of lpact ({', '.join(codes)}; here {code_digest()}): "
                "what comes out otherwise when it is made again may be due to that."
            )
        now = distributions()
        other = [
            f"{name} {then} (here {now.get(name, 'not installed')})"
            for name, then in software.distributions.items()
            if name != "lpact" and now.get(name) != then
        ]
        if other:
            more = f" and {len(other) - 6} more" if len(other) > 6 else ""
            self.notes.append(f"It was locked with other packages: {', '.join(other[:6])}{more}.")

    def _quoted(self, wanted: str) -> None:
        if self.lock is None:
            what = "a digest was given, but there is no lock that could have it"
            self.problems.append(Problem("lock", LOCK_FILE, what, old=wanted))
        elif self.lock.computed_digest() != wanted:
            found = self.lock.computed_digest()
            what = f"the root digest is {found}, not the one that was given, {wanted}"
            self.problems.append(Problem("lock", LOCK_FILE, what, old=wanted, new=found))
        else:
            self.checked.append("The root digest is the one that was given.")

    def tables_and_decisions(self) -> None:
        """Rows and columns that differ, the order of units, and the decision made again."""
        names = [n for n in declared_tables() if n in self._table_names()]
        expected = expected_files(self.lock, self.manifest)
        intact = {name: expected[name].sha256 for name in self.intact}
        tables = SealedTables(self.root, names, intact, self.scratch)
        self.tell("comparing tables")
        tables.examine(self.reader, self.lock, self.manifest)
        self.readable = all(tables.is_safe(name) for name in names)
        self.problems += tables.problems
        self._name_packing(tables.packed_otherwise)
        if self.lock is not None and (index := tables(BRAIN_UNIT_INDEX.name)) is not None:
            self.problems += order_problems(index, self.lock.sealed.unit_orders)
        self.problems += consistency_problems(names, tables)
        self.tell("deciding again")
        self._decide(tables)
        if self.lock is not None and self.described:
            found = check_crate(self.root, self.lock, tables)
            self.problems += _not_checked(CRATE_FILE) if found and tables.short else found
        if not self.makes_report:
            self.problems += check_verdicts(self.root, tables)
        tables.forget()
        if self.manifest is not None:
            problems, done = check_registration(self.root, tables)
            self.problems += problems
            self.checked += done
        self.problems += tables.short.values()

    def _name_packing(self, files: list[str]) -> None:
        if files:
            more = f" and {len(files) - 3} more" if len(files) > 3 else ""
            self.notes.append(
                f"Written by another version of lpact or its packages, with the same values as here: "
                f"{', '.join(files[:3])}{more}."
            )

    def _table_names(self) -> set[str]:
        if self.lock is not None:
            return set(self.lock.sealed.tables)
        outputs = self.manifest.outputs if self.manifest is not None else ()
        return {file.path.removesuffix(".parquet") for file in outputs}

    def _decide(self, tables: SealedTables) -> None:
        frames = {table.name: tables(table.name) for table in NEEDED}
        measured = {name: frame for name, frame in frames.items() if frame is not None}
        missing = sorted(frames.keys() - measured.keys())
        if missing:
            if tables.short.keys() >= set(missing):
                self.problems += _not_checked("decisions")
                return
            what = f"cannot be made again: no readable table {', '.join(missing)}"
            self.problems.append(Problem("decision", "decisions", what))
            return
        try:
            config = self._config()
            decided = decide(
                measured, gates=config.gates, primary_metric=config.readout.primary_metric
            )
        except LPactError as error:
            what = f"cannot be made again: {error.what}: {error.got}"
            self.problems.append(Problem("decision", "decisions", what))
            return
        n_rows = 0
        for name, again in decided.items():
            stored = tables(name)
            n_rows += again.height
            if stored is None and name in tables.short:
                self.problems += _not_checked(name)
            elif stored is None:
                what = "cannot be compared: there is no readable table"
                self.problems.append(Problem("decision", name, what))
            else:
                self.problems += frame_problems(
                    declared_tables()[name], again, stored, kind="decision"
                )
        self.checked.append(
            f"Decisions and labels were made again from the tables: {len(decided)} tables, {n_rows:,} rows."
        )

    def _config(self) -> StudyConfig:
        if self.lock is not None:
            return validate_model(StudyConfig, self.lock.sealed.config, where=LOCK_FILE)
        config = self.manifest.config if self.manifest is not None else {}
        return validate_model(StudyConfig, config, where=MANIFEST_NAME)

    def report(self, *, workers: int) -> None:
        """The report made again, where tables and manifest are as they were."""
        if not self.makes_report:
            self.notes.append("The report was not made again.")
            return
        changed = expected_files(self.lock, self.manifest).keys() - self.intact
        if self.manifest is None or any(n == MANIFEST_NAME or is_table(n) for n in changed):
            self.notes.append(
                "The report was not made again, because tables or the manifest have changed."
            )
            return
        if not self.readable:
            self.notes.append("The report was not made again, because a table is not read.")
            return
        self.tell("making the report again")
        names = None
        if self.lock is not None:
            start = f"{REPORT_FOLDER}/"
            listed = (name for name in self.lock.sealed.files if name.startswith(start))
            names = [name.removeprefix(start) for name in listed]
        problems, done = check_report(self.root, names=names, workers=workers, tell=self.tell)
        self.problems += problems
        self.checked.append(done)
