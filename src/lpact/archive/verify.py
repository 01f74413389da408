"""Comparing a run, or an archive of one, with its lock, and deciding it again from its tables alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from lpact.analyses.base import Analysis, analyses_of
from lpact.archive.crate import check_crate
from lpact.archive.files import (
    REGISTRATION,
    check_files,
    check_manifest,
    expected_files,
    is_table,
)
from lpact.archive.lockfile import (
    CRATE_FILE,
    FileFacts,
    Lock,
    digest_of,
    distributions,
    list_files,
    read_limited,
    read_lock,
)
from lpact.archive.problems import Kind, Problem, Verification, frame_problems, listed
from lpact.archive.report import check_report
from lpact.archive.tables import CheckedTables
from lpact.archive.unpack import unpacked_run
from lpact.config import StudyConfig, study_config
from lpact.errors import ConfigError, LPactError
from lpact.store import Manifest, StoredRun, code_digest, read_manifest
from lpact.store.manifest import LOCK_FILE, MANIFEST_NAME, REPORT_FOLDER, is_locked
from lpact.tables import PREREGISTRATION_ITEMS, declared_tables

Tell = Callable[[str], None]

_BY_ITEM = replace(PREREGISTRATION_ITEMS, key=("item_group", "item"))
"""The table by what was registered: whether that was followed is one of the cells that may differ."""
_FAILURES = (LPactError, LookupError, ValueError, TypeError, pl.exceptions.PolarsError)
"""What an analysis may raise on tables that were changed."""


def verify_run(
    path: str | Path,
    *,
    digest: str | None = None,
    report: bool = True,
    workers: int = 0,
    tell: Tell = lambda _: None,
) -> Verification:
    """Check the folder of a run, or an exported archive; all problems are named, not only the first.

    Parameters
    ----------
    path
        Folder of a run, locked or not, or an archive of `lpact.archive.export_run`.
    digest
        Root digest quoted elsewhere. Anyone who can write to the run can write another lock, but not change this.
    report
        Whether to make the report again, which takes longest.
    workers
        Processes that draw the report; with more than none, a script must guard its entry point.
    tell
        Called with the name of each step.
    """
    quoted = None if digest is None else _parse_digest(digest)
    with unpacked_run(path) as root:
        found = _Verifier(root, tell)
        found.lock_and_files(quoted)
        found.tables()
        if report:
            found.report(workers)
        else:
            found.notes.append("The report was not made again.")
        return Verification(
            path=Path(path),
            locked=found.locked,
            digest=None if found.lock is None else found.lock.root_digest,
            problems=tuple(found.problems),
            checked=tuple(found.checked),
            notes=tuple(found.notes),
        )


def _parse_digest(given: str) -> str:
    text = given.strip().lower().removeprefix("sha256:")
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ConfigError(
            "the root digest is not valid",
            where="--digest",
            got=given,
            expected="64 hexadecimal digits",
            remedy="copy the whole digest that `lpact lock` printed",
        )
    return text


class _Verifier:
    """One verification: each method does one step and adds to problems, sentences and notes."""

    def __init__(self, root: Path, tell: Tell) -> None:
        self.root, self.tell = root, tell
        self.problems: list[Problem] = []
        self.checked: list[str] = []
        self.notes: list[str] = []
        self.locked = is_locked(root) or (root / LOCK_FILE).exists()
        self.lock: Lock | None = None
        self.manifest: Manifest | None = None
        self.expected: Mapping[str, FileFacts] = {}
        self.intact: set[str] = set()
        self.described = False

    def add(self, kind: Kind, where: str, what: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(kind, where, what))

    def lock_and_files(self, quoted: str | None) -> None:
        """The lock itself, the quoted digest, then every file."""
        self.tell("comparing checksums")
        if self.locked:
            self._read_lock()
        try:
            self.manifest = read_manifest(self.root)
        except LPactError as error:
            if not self.locked:
                raise
            self.add("manifest", MANIFEST_NAME, f"{error.what}: {error.got}")
        if quoted is not None:
            self._check_quoted(quoted)
        listing = list_files(self.root)
        self.described = CRATE_FILE in listing.files
        self.expected = expected_files(self.lock, self.manifest)
        problems, self.intact = check_files(listing, self.expected, locked=self.lock is not None)
        self.problems += problems
        if self.lock is not None and MANIFEST_NAME not in self.intact:
            self.problems += check_manifest(self.root, self.lock)
        against = "the lock" if self.lock is not None else "the manifest"
        self.checked.append(f"{len(self.expected)} files were compared with {against}.")
        if not self.locked:
            self.notes.append(
                "The run is not locked: tables were compared with its manifest, other files with nothing. Lock it with "
                "`lpact lock`."
            )

    def _read_lock(self) -> None:
        try:
            self.lock = lock = read_lock(self.root)
        except LPactError as error:
            self.add("lock", LOCK_FILE, f"{error.what}: {error.got}")
            return
        if what := lock.problem(read_limited(self.root / LOCK_FILE)):
            self.add("lock", LOCK_FILE, what)
        software, now = lock.content.software, distributions()
        codes = sorted({software.made_by_code, software.locked_by_code} - {code_digest()})
        if codes:
            self.notes.append(
                f"The run was made or locked by another version of lpact's code ({', '.join(codes)}; here "
                f"{code_digest()}). Results that differ when they are made again may be due to that."
            )
        other = [
            f"{name} {then} (here {now.get(name, 'not installed')})"
            for name, then in software.distributions.items()
            if name != "lpact" and now.get(name) != then
        ]
        if other:
            self.notes.append(f"It was locked with other package versions: {listed(other)}.")

    def _check_quoted(self, quoted: str) -> None:
        if self.lock is None:
            self.add("lock", LOCK_FILE, "a digest was given, but the run has no readable lock")
            return
        found = digest_of(self.lock.content.model_dump(mode="json"))
        if found == quoted:
            self.checked.append("The root digest is the given one.")
        else:
            what = f"the root digest is {found}, not {quoted} as given"
            self.problems.append(Problem("lock", LOCK_FILE, what, old=quoted, new=found))

    def tables(self) -> None:
        """Tables, what the analyses say of them, the RO-Crate description and the preregistration."""
        self.tell("comparing tables")
        known = declared_tables()
        names = dict.fromkeys(n.rpartition(".")[0] for n in self.expected if is_table(n))
        tables = CheckedTables(
            self.root,
            [known[name] for name in names if name in known],
            self.intact,
            {} if self.lock is None else self.lock.content.tables,
        )
        self.problems += tables.problems
        if unknown := sorted(names.keys() - known.keys()):
            self.notes.append(
                f"Compared by checksum only, because no installed analysis declares them: {listed(unknown)}."
            )
        if tables.rewritten:
            self.notes.append(
                f"Same values as in Parquet, but not the bytes that lpact writes here: {listed(tables.rewritten)}."
            )
        self._analyses(tables)
        if self.manifest is not None:
            self._registration(tables)

    def _analyses(self, tables: CheckedTables) -> None:
        try:
            study = self._study()
        except LPactError as error:
            self.add("decision", "configuration", f"cannot be read: {error.what}: {error.got}")
            return
        for analysis in analyses_of(study).values():
            self.tell(f"deciding again: {analysis.name}")
            try:
                self.problems += [
                    Problem("consistency", f"analysis '{analysis.name}'", sentence)
                    for sentence in analysis.check(tables.rows)
                ]
            except _FAILURES as error:
                self.add("consistency", f"analysis '{analysis.name}'", _failed(error))
            self._decide(analysis, study, tables)
        if self.lock is not None and self.described:
            self.problems += check_crate(self.root, self.lock, study, tables)

    def _study(self) -> StudyConfig:
        if self.lock is not None:
            return study_config(self.lock.content.config, where=LOCK_FILE)
        config = self.manifest.config if self.manifest is not None else {}
        return study_config(config, where=MANIFEST_NAME)

    def _decide(self, analysis: Analysis, study: StudyConfig, tables: CheckedTables) -> None:
        try:
            decided = analysis.decide(study, tables)
        except _FAILURES as error:
            self.add("decision", f"analysis '{analysis.name}'", _failed(error))
            return
        for name, again in decided.items():
            if name in tables:
                table = declared_tables()[name]
                self.problems += frame_problems(table, again, tables[name], kind="decision")
            else:
                self.add("decision", name, "cannot be compared: no readable table")
        n_rows = sum(frame.height for frame in decided.values())
        self.checked.append(
            f"{analysis.name} was decided again from the stored tables ({n_rows:,} rows in {len(decided)} tables)."
        )

    def _registration(self, tables: CheckedTables) -> None:
        """Compare the run again with the copy of the registration that it keeps.

        What only the run itself knew, such as the registration that it was given, comes from the stored table.
        """
        name, path = PREREGISTRATION_ITEMS.name, self.root / REGISTRATION
        kept = path.is_file() and not path.is_symlink()
        if not kept and f"{name}.parquet" not in self.expected:
            return
        if not kept:
            self.add("registration", name, "cannot be compared: the run has no registration")
        elif f"{name}.parquet" not in self.expected:
            what = "exists, but no table says whether the run followed it"
            self.add("registration", REGISTRATION, what)
        elif name not in tables:
            self.add("registration", name, "cannot be compared: no readable table")
        else:
            from lpact.run.preregistration import check_run, read_registration

            try:
                read_limited(path)
                again = check_run(read_registration(path), StoredRun(self.root))
            except _FAILURES as error:
                self.add("registration", name, _failed(error))
                return
            self.problems += frame_problems(_BY_ITEM, again, tables[name], kind="registration")
            self.checked.append(f"The preregistration was compared again ({again.height} items).")

    def report(self, workers: int) -> None:
        """Make the report again, if the tables and the manifest are intact."""
        changed = self.expected.keys() - self.intact
        if self.manifest is None or any(n == MANIFEST_NAME or is_table(n) for n in changed):
            self.notes.append(
                "The report was not made again, because tables or the manifest have changed."
            )
            return
        self.tell("making the report again")
        names = None
        if self.lock is not None:
            start = f"{REPORT_FOLDER}/"
            files = self.lock.content.files
            names = [name.removeprefix(start) for name in files if name.startswith(start)]
        problems, done = check_report(self.root, names=names, workers=workers, tell=self.tell)
        self.problems += problems
        self.checked.append(done)


def _failed(error: BaseException) -> str:
    if isinstance(error, LPactError):
        return f"cannot be made again: {error.what}: {error.got}"
    if isinstance(error, KeyError):
        return f"cannot be made again: no readable table {error}"
    text = next(iter(str(error).splitlines()), "")
    return f"cannot be made again: {type(error).__name__}: {text}"
