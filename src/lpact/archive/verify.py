"""Comparing a run, or an archive of one, with its lock, and deciding it again from its tables alone."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import polars as pl

from lpact.analyses.base import Analysis, analyses_of, decided
from lpact.archive.crate import check_crate
from lpact.archive.diff import option_changes
from lpact.archive.lock import (
    CRATE_FILE,
    NOT_LOCKED,
    REGISTRATION,
    FileFacts,
    Listing,
    Lock,
    distributions,
    list_files,
    read_limited,
    read_lock,
)
from lpact.archive.problems import Kind, Problem, Verification, change, first_difference, frame_problems
from lpact.archive.zipped import unpacked_run
from lpact.config import StudyConfig, study_config
from lpact.errors import LPactError, RunError
from lpact.report.folder import REPORT_PAGE
from lpact.store import LazyTables, Manifest, StoredRun, code_digest, read_manifest, read_table, sha256_file
from lpact.store.frames import write_csv
from lpact.store.manifest import LOCK_FILE, MANIFEST_NAME, REPORT_FOLDER, is_locked
from lpact.tables import PREREGISTRATION_ITEMS, Table, declared_tables
from lpact.validation import json_digest, parse_digest
from lpact.wording import listed

Tell = Callable[[str], None]

_BY_ITEM = replace(PREREGISTRATION_ITEMS, key=("item_group", "item"))
"""The table by what was registered: whether that was followed is one of the cells that may differ."""
_FAILURES = (LPactError, LookupError, ValueError, TypeError, pl.exceptions.PolarsError)
"""What an analysis may raise on tables that were changed."""
_TEXT = (".html", ".md", ".tex", ".bib", ".csv", ".svg", ".json")


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
        Whether to recreate the report, which takes longest.
    workers
        Threads that draw the report.
    tell
        Called with the name of each step.
    """
    if digest is not None:
        remedy = "copy the whole digest that `lpact lock` printed"
        digest = parse_digest(digest, "the root digest is not valid", where="--digest", remedy=remedy)
    with unpacked_run(path) as root:
        found = _Verifier(root, tell)
        found.lock_and_files(digest)
        found.tables()
        if report:
            found.report(workers)
        else:
            found.notes.append("The report was not checked.")
        return Verification(
            path=Path(path),
            locked=found.locked,
            digest=None if found.lock is None else found.lock.root_digest,
            quoted=digest is not None,
            problems=tuple(found.problems),
            checked=tuple(found.checked),
            notes=tuple(found.notes),
        )


def is_table(name: str) -> bool:
    """Whether a path is that of a table file, outside of the report."""
    return name.endswith((".parquet", ".csv")) and not name.startswith(f"{REPORT_FOLDER}/")


def check_files(listing: Listing, expected: Mapping[str, FileFacts], *, locked: bool) -> tuple[list[Problem], set[str]]:
    """Compare every file; return the problems, and the names of the intact files.

    Without a lock only table files are known, and others may be in the folder.
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
    problems += [
        Problem("file", name, f"was added: {what}") for name, what in listing.others.items() if name not in expected
    ]
    for name in filter(is_table, expected):
        stem, _, suffix = name.rpartition(".")
        other = f"{stem}.{'csv' if suffix == 'parquet' else 'parquet'}"
        if other not in expected:
            problems.append(Problem("file", other, "is not listed: a table has two files"))
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
    return "" if sha256_file(path) == facts.sha256 else "has changed: same size, different SHA-256"


def check_manifest(root: Path, lock: Lock) -> list[Problem]:
    """Name the options and inputs that a changed manifest says differently."""
    content = lock.content
    then = {"config": content.config, "inputs": _by_name(content.model_dump()["inputs"])}
    try:
        values = json.loads(read_limited(root / MANIFEST_NAME))
        now = {"config": values["config"], "inputs": _by_name(values["inputs"])}
    except RunError as error:
        return [Problem("manifest", MANIFEST_NAME, f"{error.what}: {error.got}")]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return [Problem("manifest", MANIFEST_NAME, f"cannot be read: {repr(error)[:200]}")]
    kinds: dict[str, Kind] = {"config": "option", "inputs": "input"}
    found = []
    for option in option_changes(then, now):
        part, _, rest = option.name.partition(".")
        verb = "" if option.kind == "changed" else f"was {option.kind}: "
        what = verb + change(option.before, option.after)
        found.append(Problem(kinds[part], rest, what, old=option.before, new=option.after))
    return found


def _by_name(files: Collection[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {f"{own['dataset']}: {own['path']}": {"n_bytes": own["n_bytes"], "sha256": own["sha256"]} for own in files}


class CheckedTables(LazyTables):
    """The tables of a run that can be read, by name; each is compared with its CSV file.

    ``intact`` are files that are as the lock (or the manifest) lists them.
    """

    def __init__(self, root: Path, tables: Collection[Table], intact: Collection[str]) -> None:
        super().__init__({})
        self.problems: list[Problem] = []
        self._root = root
        for table in tables:
            try:
                frame = read_table(root, table)
            except LPactError as error:
                if f"{table.name}.parquet" in intact:
                    what = f"cannot be read: {error.what}: {error.got}"
                    self.problems.append(Problem("table", f"{table.name}.parquet", what))
                continue
            # Read again if it is used: not every table stays in memory.
            self.makers[table.name] = cache(partial(read_table, root, table))
            self._compare_csv(table, frame, intact)

    def rows(self, name: str, **equals: Any) -> pl.DataFrame:
        """Rows of a table by equality, in the order of the key."""
        return self[name].filter(**equals)

    def _compare_csv(self, table: Table, frame: pl.DataFrame, intact: Collection[str]) -> None:
        """Name the first line in which the CSV file is not what the Parquet file gives."""
        path, made = self._root / f"{table.name}.csv", io.BytesIO()
        if path.is_symlink() or not path.is_file():
            return
        write_csv(frame, table, made)
        made.seek(0)
        with path.open("rb") as stored:
            found = first_difference(stored, made)
        changed = f"{table.name}.parquet" not in intact and f"{table.name}.csv" in intact
        if found:
            where = f"{table.name}.{'parquet' if changed else 'csv'}"
            what = f"the CSV file is not what the Parquet file gives: {found}"
            self.problems.append(Problem("table", where, what))


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
        if self.lock is not None:
            self.expected = self.lock.content.files
        elif self.manifest is not None:
            outputs = self.manifest.outputs
            self.expected = {f.path: FileFacts(n_bytes=f.n_bytes, sha256=f.sha256) for f in outputs}
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
                f"{code_digest()}). Differences in recomputed results may be due to that."
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
        found = json_digest(self.lock.content.model_dump(mode="json"))
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
        declared = [known[name] for name in names if name in known]
        tables = CheckedTables(self.root, declared, self.intact)
        self.problems += tables.problems
        if unknown := sorted(names.keys() - known.keys()):
            self.notes.append(
                f"Compared by checksum only, because no installed analysis declares them: {listed(unknown)}."
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
        if self.manifest is not None and self.manifest.study != study.name:
            what = f"names the study {self.manifest.study}, and its configuration {study.name}"
            self.add("consistency", MANIFEST_NAME, what)
        for analysis in analyses_of(study).values():
            self.tell(f"deciding again: {analysis.name}")
            try:
                self.problems += [
                    Problem("consistency", f"analysis '{analysis.name}'", sentence)
                    for sentence in analysis.check(study, tables.rows)
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
            made = decided(analysis, study, tables)
        except _FAILURES as error:
            self.add("decision", f"analysis '{analysis.name}'", _failed(error))
            return
        for name, again in made.items():
            if name in tables:
                table = declared_tables()[name]
                self.problems += frame_problems(table, again, tables[name], kind="decision")
            else:
                self.add("decision", name, "cannot be compared: no readable table")
        n_rows = sum(frame.height for frame in made.values())
        self.checked.append(
            f"{analysis.name} was decided again from the stored tables ({n_rows:,} rows in {len(made)} tables)."
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
            from lpact.run.preregistration.compare import check_run
            from lpact.run.preregistration.record import read_registration

            try:
                read_limited(path)
                again = check_run(read_registration(path), StoredRun(self.root))
            except _FAILURES as error:
                self.add("registration", name, _failed(error))
                return
            self.problems += frame_problems(_BY_ITEM, again, tables[name], kind="registration")
            self.checked.append(f"The run was compared with its preregistration again ({again.height} items).")

    def report(self, workers: int) -> None:
        """Make the report again, if the tables and the manifest are intact."""
        changed = self.expected.keys() - self.intact
        if self.manifest is None or any(n == MANIFEST_NAME or is_table(n) for n in changed):
            self.notes.append("The report was not checked, because tables or the manifest have changed.")
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
        return f"cannot be recomputed: {error.what}: {error.got}"
    if isinstance(error, KeyError):
        return f"cannot be recomputed: no readable table {error}"
    return f"cannot be recomputed: {type(error).__name__}: {str(error).partition(chr(10))[0]}"


def check_report(
    root: Path,
    *,
    names: Collection[str] | None = None,
    workers: int = 0,
    tell: Tell = lambda _: None,
) -> tuple[list[Problem], str]:
    """Problems of the report, and a sentence that says what was checked.

    ``names`` are the files that the report should have; by default those that it has.
    """
    from lpact.report.write import write_report

    stored = list_files(root / REPORT_FOLDER).files if (root / REPORT_FOLDER).is_dir() else {}
    expected = stored if names is None else names
    if REPORT_PAGE not in expected:
        return [], "The run has no report."
    with tempfile.TemporaryDirectory(prefix="lpact-verify-") as folder:
        made = Path(folder) / REPORT_FOLDER
        tables = any(name.startswith("tables/") for name in expected)
        try:
            write_report(StoredRun(root), out=made, with_tables=tables, workers=workers, tell=tell)
        except LPactError as error:
            what = f"cannot be recreated: {error.what}: {error.got}"
            return [Problem("report", REPORT_FOLDER, what)], "The report could not be recreated."
        again = list_files(made).files
        problems = [
            Problem("report", f"{REPORT_FOLDER}/{name}", what)
            for name in sorted(stored.keys() | again.keys())
            if (what := _difference(stored.get(name), again.get(name)))
        ]
    return problems, f"The report was recreated from the tables: {len(again)} files."


def _difference(stored: Path | None, made: Path | None) -> str:
    if made is None:
        return "is in the report, but the tables do not give it"
    if stored is None:
        return "is missing: the tables give it"
    with stored.open("rb") as before, made.open("rb") as now:
        found = first_difference(before, now)
    if found and stored.suffix not in _TEXT:
        found = f"{stored.stat().st_size} bytes instead of {made.stat().st_size}"
    return f"differs from what the tables give: {found}" if found else ""
