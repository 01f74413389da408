"""Files that end whoever reads them, or fill the memory, are named, and the process that reports lives."""

from __future__ import annotations

import hashlib
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tampering import rehash_lock, rehash_manifest

import lpact.archive.bounded_json as bounded_json
from lpact.archive import export_run, lock_run, opened_run, read_lock, verify_run
from lpact.archive.apart import Apart, FailedError, apart
from lpact.archive.bounded_json import (
    MOST_JSON_BYTES,
    MOST_JSON_VALUES,
    parse_bounded,
    read_bounded,
)
from lpact.archive.crate import Stated, crate_bytes
from lpact.archive.lockfile import Sealed, lock_bytes, make_lock, parse_lock, write_lock
from lpact.errors import RunError
from lpact.store import InputFile, StoredRun
from lpact.tables import find_table

pytestmark = pytest.mark.ordeal

Copy = Callable[[], Path]
DECISIONS = "decisions/lpact_decision_table"
ENDING = ((19, 2), (39, 3))
"""Byte after the beginning of the footer, and bit: types of columns for which Arrow aborts."""
N_BYTES, N_VALUES = 2**16, 1000
PANICKING = ((-401, 0), (-1000, 4))
"""Byte before the end, and bit: a schema over which Polars panics."""


def flipped(content: bytes, place: int, bit: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


def footer(content: bytes) -> int:
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def whats(root: Path, where: str) -> list[str]:
    return [p.what for p in verify_run(root, report=False).problems if p.where == where]


def take(reader: Apart, root: Path, suffix: str = ".parquet") -> dict[str, Any]:
    order = {"task": "take", "root": str(root), "table": DECISIONS, "suffix": suffix}
    return reader.ask(order, n_bytes=2**20)


def test_a_bit_that_ends_the_reader_is_found_and_its_file_named(copy: Copy) -> None:
    root = copy()
    path = root / f"{DECISIONS}.parquet"
    whole = path.read_bytes()
    said: list[str] = []
    for place, bit in (*((footer(whole) + own, bit) for own, bit in ENDING), *PANICKING):
        path.write_bytes(flipped(whole, place, bit))
        found = whats(root, f"{DECISIONS}.parquet")
        assert found[0].startswith("has changed"), place
        said += [what for what in found if what.startswith("cannot be compared with its twin")]
    text = "\n".join(said)
    assert "the process that read it was ended by SIGABRT" in text
    assert "PanicException" in text
    path.write_bytes(whole)
    assert verify_run(root, report=False).ok


def test_random_bits_of_pages_and_footer_never_end_this_process(copy: Copy) -> None:
    """Whatever the other process meets, it is an answer or a `FailedError`, and honest files are read afterwards."""
    root, chance, failed = copy(), random.Random(9), 0
    with apart() as reader:
        for suffix in (".parquet", ".csv"):
            path = root / f"{DECISIONS}{suffix}"
            whole = path.read_bytes()
            start = footer(whole) if suffix == ".parquet" else 0
            for i in range(30):
                place = chance.randrange(start if i % 2 else 0, len(whole))
                path.write_bytes(flipped(whole, place, chance.randrange(8)))
                try:
                    take(reader, root, suffix)
                except FailedError:
                    failed += 1
            path.write_bytes(whole)
        assert take(reader, root)["n_rows"] == read_lock(root).sealed.tables[DECISIONS].n_rows
    assert failed > 10


def pack(root: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for own in sorted(p for p in root.rglob("*") if p.is_file()):
            archive.write(own, own.relative_to(root).as_posix())
    return path


def fit_lock(root: Path, name: str) -> None:
    """Make the lock fit with one file as it is, and with nothing else."""
    lock = read_lock(root)
    values = lock.sealed.model_dump(mode="json")
    content = (root / name).read_bytes()
    values["files"][name] = {
        "n_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    write_lock(
        root, make_lock(Sealed.model_validate_json(json.dumps(values)), locked_on=lock.locked_on)
    )


def test_an_archive_that_is_forged_as_a_whole_ends_only_the_reader(
    copy: Copy, tmp_path: Path
) -> None:
    """All checksums fit: no process that reads the table could know."""
    root = copy()
    path = root / f"{DECISIONS}.parquet"
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, footer(whole) + ENDING[0][0], ENDING[0][1]))
    rehash_manifest(root)
    fit_lock(root, "manifest.json")
    fit_lock(root, f"{DECISIONS}.parquet")
    archive = pack(root, tmp_path / "x.zip")
    (what,) = whats(archive, f"{DECISIONS}.parquet")
    assert what.startswith("cannot be read: the process that read it was ended by SIGABRT")
    with (
        pytest.raises(RunError, match=rf"{DECISIONS}\.parquet: the process"),
        opened_run(archive),
    ):
        pass


def test_an_archive_with_a_changed_table_is_not_opened_for_others(
    copy: Copy, tmp_path: Path
) -> None:
    root = copy()
    path = root / f"{DECISIONS}.parquet"
    path.write_bytes(flipped(path.read_bytes(), 3000, 1))
    archive = pack(root, tmp_path / "x.zip")
    assert whats(archive, f"{DECISIONS}.parquet")
    with pytest.raises(RunError, match="has changed"), opened_run(archive):
        pass


DEEP = b"[" * 5000 + b"]" * 5000
HOSTILE = {
    "nothing": b"",
    "bytes that are no text": b'{"a": "\xff"}',
    "other letters": '{"a": 1}'.encode("utf-16"),
    "deep nesting": DEEP,
    "nesting that a parser bears": b"[" * 300 + b"]" * 300,
    "a name that stands twice": b'{"a": 1, "b": 2, "a": 3}',
    "no number": b'{"a": NaN}',
    "a number beyond all": b'{"a": 1e999}',
    "a number of many digits": b'{"a": ' + b"9" * 10_000 + b"}",
    "half a letter": b'{"a": "\\ud800"}',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_json_that_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="it is none"):
        parse_bounded(content, what="it is none", where="x")
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(RunError, match="it is none"):
        read_bounded(tmp_path / "x.json", what="it is none")


LARGE = {
    "many values": b"[" + b"{}," * (N_VALUES // 2) + b"{}]",
    "many bytes": b'"' + b"a" * N_BYTES + b'"',
}


@pytest.mark.parametrize("content", LARGE.values(), ids=LARGE.keys())
def test_json_beyond_a_limit_is_not_called_damaged(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_json, "MOST_JSON_VALUES", N_VALUES)
    monkeypatch.setattr(bounded_json, "MOST_JSON_BYTES", N_BYTES)
    (tmp_path / "x.json").write_bytes(content)
    for read in (
        lambda: parse_bounded(content, what="it is damaged", where="x"),
        lambda: read_bounded(tmp_path / "x.json", what="it is damaged"),
    ):
        with pytest.raises(RunError, match=f"{N_BYTES} bytes and {N_VALUES} values: a lim") as met:
            read()
        assert "larger than lpact reads" in met.value.what
        assert "damaged" not in str(met.value)
        assert "restore" not in str(met.value)


def test_json_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive twin: up to the limits."""
    monkeypatch.setattr(bounded_json, "MOST_JSON_VALUES", N_VALUES)
    many = b"[" + b"1," * (N_VALUES - 2) + b"1]"
    assert len(parse_bounded(many, what="", where="")) == N_VALUES - 1
    assert parse_bounded(b"[" * 99 + b"]" * 99, what="", where="")
    assert parse_bounded(b'{"a": {"a": -1e300}}', what="", where="") == {"a": {"a": -1e300}}


def test_a_study_of_many_source_files_can_be_locked_and_described(locked: Path) -> None:
    lock = read_lock(locked)
    own = "sub-{0:06d}/ses-01/meg/sub-{0:06d}_ses-01_task-listening_run-01_meg.fif"
    inputs = tuple(
        InputFile(dataset="sim", path=own.format(i), sha256=f"{i:064x}", n_bytes=10**9 + i)
        for i in range(300_000)
    )
    large = make_lock(lock.sealed.model_copy(update={"inputs": inputs}), locked_on=lock.locked_on)
    assert parse_lock(lock_bytes(large), where="x") == large
    sealed = lock.sealed.model_copy(update={"inputs": inputs[:200_000]})
    large = make_lock(sealed, locked_on=lock.locked_on)
    description = crate_bytes(locked, large, Stated("2026-01-31", None), StoredRun(locked).table)
    assert parse_bounded(description, what="", where="")["@graph"]


def test_the_json_of_a_run_needs_a_small_part_of_the_limits(locked: Path) -> None:
    for name in ("manifest.json", "lock.json"):
        content = (locked / name).read_bytes()
        assert len(content) < MOST_JSON_BYTES / 100
        assert content.count(b",") < MOST_JSON_VALUES / 50


@pytest.mark.parametrize("name", ["manifest.json", "lock.json"])
def test_hostile_json_in_the_place_of_a_file_is_named(name: str, copy: Copy) -> None:
    root = copy()
    whole = (root / name).read_bytes()
    at = whole.index(b'"config": {') + len(b'"config": {')
    for own in (b'"x": NaN,', b'"x": "\\ud800",', b'"x": ' + DEEP + b",", b'"x": 1, "x": 2,'):
        (root / name).write_bytes(whole[:at] + own + whole[at:])
        assert whats(root, name), own[:20]


def test_a_small_archive_with_a_manifest_of_many_values_is_refused_unparsed(
    copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy()
    chance = random.Random(1)
    parts = (b"{}," * 300 + b"%d," % chance.randrange(10**9) for _ in range(6000))
    body = b'{"format_version":3,"config":[' + b"".join(parts) + b"{}]}"
    (root / "manifest.json").write_bytes(body)
    fit_lock(root, "manifest.json")
    archive = pack(root, tmp_path / "x.zip")
    monkeypatch.setattr("lpact.archive.check_files.read_manifest", lambda _: 1 / 0)
    monkeypatch.setattr(bounded_json, "MOST_JSON_VALUES", 1_000_000)
    monkeypatch.setattr("lpact.archive.archive.MOST_JSON_BYTES", 2**25)
    (what,) = whats(archive, "manifest.json")
    n_values = sum(body.count(mark) for mark in (b",", b"[", b"{")) + 1
    assert what == f"the file is larger than lpact reads: up to {n_values} values"
    (root / "manifest.json").write_bytes(b" " * (2**25 + 1))
    fit_lock(root, "manifest.json")
    stored = tmp_path / "y.zip"
    with zipfile.ZipFile(stored, "w") as large:
        for own in sorted(p for p in root.rglob("*") if p.is_file()):
            large.write(own, own.relative_to(root).as_posix())
    with pytest.raises(RunError, match=r"manifest\.json is \d+ bytes large; at most"):
        verify_run(stored)


def test_a_flipped_bit_in_any_json_file_is_found(copy: Copy, tmp_path: Path) -> None:
    root, chance = copy(), random.Random(4)
    (root / "lock.json").unlink()
    (root / "status.json").write_text('{"state": "finished"}')
    lock_run(root)
    made = export_run(root, tmp_path / "x.zip")
    for path in (root, *root.rglob("*")):
        path.chmod(0o755)
    crate = "ro-crate-metadata.json"
    with zipfile.ZipFile(made.path) as archive:
        (root / crate).write_bytes(archive.read(crate))
    assert verify_run(root, report=False).ok
    for name in ("manifest.json", "lock.json", "status.json", crate):
        whole = (root / name).read_bytes()
        for _ in range(2):
            place, bit = chance.randrange(len(whole)), chance.randrange(8)
            (root / name).write_bytes(flipped(whole, place, bit))
            assert whats(root, name), (name, place, bit)
        (root / name).write_bytes(whole)


def test_the_lock_is_made_to_fit_with_tables_as_they_are(copy: Copy) -> None:
    """The positive twin of what is forged here."""
    root = copy()
    fit_lock(root, f"{DECISIONS}.parquet")
    rehash_lock(root)
    assert verify_run(root, report=False).ok
    assert find_table(DECISIONS).name in read_lock(root).sealed.tables
