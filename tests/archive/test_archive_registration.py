"""Whether a run followed its preregistration is compared again from the copy that it keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tampering import (
    edit_manifest,
    edit_table,
    rehash_lock,
    rehash_manifest,
    writable_copy,
)

import lpact
from lpact.archive import Verification, lock_run, verify_run
from lpact.run.preregistration.compare import check_run
from lpact.run.preregistration.record import REGISTRATION_NAME, read_registration
from lpact.store import StoredRun, write_table
from lpact.tables import PREREGISTRATION_ITEMS
from small_study import SMALL

if TYPE_CHECKING:
    from lpact.study import Run

NAME = PREREGISTRATION_ITEMS.name


@pytest.fixture(scope="module")
def registered(small_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A locked run that was given a registration with another gate; not to be changed."""
    root = writable_copy(small_run.root, tmp_path_factory.mktemp("registered") / "run")
    other = {**SMALL, "lpact": {**SMALL["lpact"], "gates": {"min_ceiling_fraction": 0.99}}}
    lpact.load_study(other).preregister(root / REGISTRATION_NAME)

    def listed(values: dict[str, Any]) -> None:
        paths = [f"{NAME}{suffix}" for suffix in (".csv", ".parquet")]
        values["outputs"] += [{"path": path, "n_bytes": 0, "sha256": ""} for path in paths]
        values["outputs"].sort(key=lambda own: own["path"])

    registration = read_registration(root / REGISTRATION_NAME)
    write_table(check_run(registration, StoredRun(root)), PREREGISTRATION_ITEMS, root)
    edit_manifest(root, listed)
    rehash_manifest(root)
    # Now the run's own table says which registration it was given.
    write_table(check_run(registration, StoredRun(root)), PREREGISTRATION_ITEMS, root)
    rehash_manifest(root)
    lock_run(root)
    return root


@pytest.fixture
def changed(registered: Path, tmp_path: Path) -> Callable[[], Path]:
    number = count()
    return lambda: writable_copy(registered, tmp_path / f"copy-{next(number)}")


Changed = Callable[[], Path]


def verify(root: Path) -> Verification:
    return verify_run(root, report=False)


def test_an_honest_run_that_did_not_follow_is_right(registered: Path) -> None:
    found = verify(registered)
    assert found.problems == ()
    assert any("The run was compared with its preregistration again" in text for text in found.checked)
    missed = StoredRun(registered).table(NAME).filter(~pl.col("followed"))
    assert missed["item"].str.ends_with("gates.min_ceiling_fraction").any()


def test_items_set_to_followed_are_found_though_all_checksums_match(changed: Changed) -> None:
    root = changed()
    missed = StoredRun(root).table(NAME).filter(~pl.col("followed"))
    edit_table(
        root,
        NAME,
        lambda frame: frame.with_columns(followed=pl.lit(value=True)).sort(PREREGISTRATION_ITEMS.key),
    )
    rehash_manifest(root)
    rehash_lock(root)
    found = verify(root)
    assert {problem.kind for problem in found.problems} == {"registration"}
    assert {problem.column for problem in found.problems} == {"followed"}
    named = {(p.row["item_group"], p.row["item"]) for p in found.problems}
    own = set(missed.select("item_group", "item").iter_rows())
    # What only the run knows of itself is taken from its table.
    assert {item for item in own if item[0] != "registration"} <= named <= own
    assert named
    assert all((p.old, p.new) == (False, True) for p in found.problems)


def test_an_edited_registration_is_found_though_all_checksums_match(changed: Changed) -> None:
    root = changed()
    path = root / REGISTRATION_NAME
    values = json.loads(path.read_text())
    values["registered"]["config"]["lpact"]["gates"]["min_ceiling_fraction"] = 0.5
    path.write_text(json.dumps(values))
    rehash_lock(root)
    found = [p for p in verify(root).problems if p.kind == "registration"]
    items = [str(p.row.get("item")) for p in found]
    assert any(item.endswith("gates.min_ceiling_fraction") for item in items)


def test_a_copy_that_is_gone_or_damaged_is_named(changed: Changed) -> None:
    root = changed()
    (root / REGISTRATION_NAME).write_text("{")
    said = [p.what for p in verify(root).problems if p.kind == "registration"]
    assert len(said) == 1
    assert said[0].startswith("cannot be recomputed: ")
    (root / REGISTRATION_NAME).unlink()
    for _ in range(2):
        said = [p.what for p in verify(root).problems if p.kind == "registration"]
        assert said == ["cannot be compared: the run has no registration"]
        # The same without a lock.
        (root / "lock.json").unlink(missing_ok=True)


def test_a_copy_without_the_table_is_named(small_run: Run, registered: Path, tmp_path: Path) -> None:
    root = writable_copy(small_run.root, tmp_path / "run")
    assert verify(root).ok
    (root / REGISTRATION_NAME).write_bytes((registered / REGISTRATION_NAME).read_bytes())
    (problem,) = verify(root).problems
    assert problem.text == ("preregistration.json: exists, but no table says whether the run followed it")


def test_a_copy_that_is_too_large_is_not_parsed(changed: Changed, monkeypatch: pytest.MonkeyPatch) -> None:
    root = changed()
    (root / REGISTRATION_NAME).write_bytes(b" " * 2**22 + b"{}")
    monkeypatch.setattr("lpact.archive.lock.MOST_JSON_BYTES", 2**22)
    said = [p.what for p in verify(root).problems if p.kind == "registration"]
    assert len(said) == 1
    assert "the file is too large" in said[0]
