"""A locked run: what the lock holds, that it is read-only, and what is refused."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tampering import edit_manifest, edit_table, rehash_manifest, sha256, writable_copy

from lpact.archive import lock_run, read_lock
from lpact.archive.lock import distributions, make_lock
from lpact.cli._options import refuse_existing
from lpact.errors import LPactError, RunError
from lpact.report.folder import new_folder
from lpact.store import read_manifest
from lpact.store.manifest import is_locked, refuse_locked
from lpact.study import open_run

if TYPE_CHECKING:
    from lpact.study import Run


def test_every_file_is_in_the_lock_with_size_and_checksum(locked: Path) -> None:
    found = {
        path.relative_to(locked).as_posix(): {
            "n_bytes": path.stat().st_size,
            "sha256": sha256(path),
        }
        for path in locked.rglob("*")
        if path.is_file() and path.name != "lock.json"
    }
    content = json.loads((locked / "lock.json").read_text())["content"]
    assert content["files"] == found
    assert {"manifest.json", "log.jsonl"} <= found.keys()


def test_the_root_digest_is_that_of_canonical_json(locked: Path) -> None:
    values = json.loads((locked / "lock.json").read_text())
    text = json.dumps(values["content"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert values["root_digest"] == hashlib.sha256(text.encode()).hexdigest()


def test_configuration_inputs_and_software_are_copied(locked: Path) -> None:
    content, manifest = read_lock(locked).content, read_manifest(locked)
    assert content.config == manifest.config
    assert content.inputs == manifest.inputs
    assert len(content.inputs) > 1
    assert content.software.made_by_code == manifest.lpact_code
    # Direct, indirect (pydantic-core comes with pydantic), and no tool for development.
    assert {"lpact", "numpy", "pydantic-core"} <= content.software.distributions.keys()
    assert "pytest" not in distributions()


def test_the_day_is_not_part_of_the_digest(locked: Path) -> None:
    lock = read_lock(locked)
    other = make_lock(lock.content, locked_on="1999-12-31")
    assert other.root_digest == lock.root_digest
    assert other.checksum != lock.checksum


def test_a_copy_has_the_same_digest(small_run: Run, tmp_path: Path, locked: Path) -> None:
    again = writable_copy(small_run.root, tmp_path / "again")
    (again / "log.jsonl").write_text('{"event": "started"}\n')
    assert lock_run(again).digest == read_lock(locked).root_digest


def _reference(values: list[Any], dtype: str, encode: Any, null: Any) -> str:
    """The digest of a plain column, byte by byte as the module says."""
    digest = hashlib.sha256(f"{dtype}\n{len(values)}\n".encode())
    digest.update(bytes(value is None for value in values))
    encode(digest, [null if value is None else value for value in values])
    return digest.hexdigest()


def test_files_and_folders_are_read_only(locked: Path) -> None:
    paths = [locked, *locked.rglob("*")]
    assert len(paths) > 100
    assert not [path for path in paths if path.stat().st_mode & 0o222]


def test_a_locked_run_can_be_read(locked: Path) -> None:
    run = open_run(locked)
    assert run.claims().height > 0


def test_locking_again_verifies(locked: Path, small_run: Run, tmp_path: Path) -> None:
    before = (locked / "lock.json").read_bytes()
    again = lock_run(locked)
    assert again.verification is not None
    assert again.verification.ok
    assert (locked / "lock.json").read_bytes() == before
    changed = writable_copy(locked, tmp_path / "changed")
    (changed / "log.jsonl").write_text("")
    verification = lock_run(changed).verification
    assert verification is not None
    assert [problem.where for problem in verification.problems] == ["log.jsonl"]


def test_an_interrupted_lock_is_finished(locked: Path, tmp_path: Path) -> None:
    """Killed between writing the lock and making files read-only."""
    half = writable_copy(locked, tmp_path / "half")
    assert lock_run(half).verification is not None
    assert not [path for path in half.rglob("*") if path.stat().st_mode & 0o222]


def test_what_lpact_did_not_write_is_named(small_run: Run, tmp_path: Path) -> None:
    root = writable_copy(small_run.root, tmp_path / "run")
    (root / "notes.txt").write_text("mine")
    assert lock_run(root).foreign == ("notes.txt",)


def _change_table(root: Path) -> None:
    edit_table(root, "lpact_decision_table", lambda frame: frame.head(3))


def _link(root: Path) -> None:
    (root / "elsewhere").symlink_to("/etc")


def _drop_table(root: Path) -> None:
    (root / "decisions" / "lpact_decision_table.csv").unlink()


def _edit_report(root: Path) -> None:
    (root / "report").mkdir()
    (root / "report" / "extra.md").write_text("All is well.")


def _disagree(root: Path) -> None:
    """Units in another order in one table, with checksums that fit."""
    edit_table(root, "predictive_unit_scores", lambda f: f.with_columns(unit_order_hash=pl.lit("x")))
    rehash_manifest(root)


def _threshold(root: Path) -> None:
    edit_manifest(root, lambda values: values["config"]["lpact"]["gates"].update(fdr=0.9))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_change_table, "decisions/lpact_decision_table.parquet: has changed"),
        (_drop_table, "decisions/lpact_decision_table.csv: is missing"),
        (_link, "elsewhere: was added: a link to '/etc'"),
        (_edit_report, "report/extra.md: was changed or added"),
        (_disagree, "unit_order_hash is x, but"),
        (_threshold, "a configuration that does not match its own digest"),
    ],
)
def test_a_changed_run_is_refused(change: Any, named: str, small_run: Run, tmp_path: Path) -> None:
    root = writable_copy(small_run.root, tmp_path / "run")
    change(root)
    with pytest.raises(RunError) as error:
        lock_run(root)
    assert named in str(error.value)
    assert not (root / "lock.json").exists()


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not a finished run"):
        lock_run(tmp_path)


def test_a_lock_that_fails_leaves_nothing(small_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = writable_copy(small_run.root, tmp_path / "run")
    before = sorted(path.name for path in root.iterdir())

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="cannot be written"):
        lock_run(root)
    assert sorted(path.name for path in root.iterdir()) == before
    assert (root / "manifest.json").stat().st_mode & 0o200
    assert not is_locked(root)


@pytest.mark.parametrize("where", [".", "report", "new/folder"])
def test_nothing_is_written_into_a_locked_run(where: str, locked: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the run is locked"):
        refuse_locked(locked / where)
    refuse_locked(tmp_path / where)


def test_a_link_into_a_locked_run_is_no_way_round(locked: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(locked)
    with pytest.raises(RunError, match="the run is locked"):
        refuse_locked(link / "report")


def test_writers_refuse_a_locked_run(locked: Path) -> None:
    with pytest.raises(LPactError, match="the run is locked"):
        open_run(locked).report()
    with pytest.raises(LPactError, match="the run is locked"), new_folder(locked / "report"):
        pass
    with pytest.raises(LPactError, match="the run is locked"):
        refuse_existing(locked / "new")
    assert (locked / "manifest.json").is_file()
