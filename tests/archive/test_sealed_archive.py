"""Hostile archives, each really built, are refused, and nothing is written."""

from __future__ import annotations

import os
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lpact.archive.zip_layout as layout
from lpact.archive import export_run, opened_run, verify_run
from lpact.errors import LPactError, RunError

Entries = dict[str, bytes]


@pytest.fixture(scope="module")
def plain(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plain") / "plain.zip"
    export_run(locked, out)
    return out


@pytest.fixture(scope="module")
def entries(plain: Path) -> Entries:
    with zipfile.ZipFile(plain) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def few(entries: Entries) -> Entries:
    """The lock alone: enough for faults that are found before it is read."""
    return {"lock.json": entries["lock.json"], "manifest.json": entries["manifest.json"]}


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary folders are made: empty before and after."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def refused(path: Path, nowhere: Path) -> str:
    with pytest.raises(LPactError) as error, opened_run(path):
        raise AssertionError("it was opened")
    assert list(nowhere.iterdir()) == []
    return str(error.value)


def write(path: Path, entries: Entries, *more: tuple[Any, bytes], method: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        for entry, content in more:
            archive.writestr(entry, content)
    return path


def _kind(name: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system = 3
    entry.external_attr = mode << 16
    return entry


def test_an_archive_that_another_tool_packed_is_read(
    entries: Entries, tmp_path: Path, nowhere: Path
) -> None:
    """The positive twin of all refusals here: other order, times and packing, and entries for folders."""
    backwards = dict(reversed(entries.items()))
    folder = _kind("audits/", stat.S_IFDIR | 0o755)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = write(tmp_path / f"{method}.zip", backwards, (folder, b""), method=method)
        with opened_run(path) as root:
            found = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
            assert found == set(entries)
            assert nowhere in root.parents
    assert list(nowhere.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../evil.txt", "leads out of the folder"),
        ("audits/../../evil.txt", "leads out of the folder"),
        ("/tmp/evil.txt", "absolute path"),
        ("C:/evil.txt", "colon"),
        ("C:evil.txt", "colon"),
        ("audits\\..\\evil.txt", "backslash"),
        ("audits//evil.txt", "empty part"),
        ("./evil.txt", "leads out of the folder"),
        ("evil\x1b[31m.txt", "control characters"),
        ("evil\u202etxt.exe", "control characters"),
        ("evil\n.txt", "control characters"),
        ("evil.txt.", "ends with a dot"),
        ("evil ", "space"),
        ("x" * 1200, "too long"),
    ],
)
def test_names_that_lead_elsewhere(
    name: str, why: str, few: Entries, tmp_path: Path, nowhere: Path
) -> None:
    path = write(tmp_path / "x.zip", few, (name, b"evil"))
    said = refused(path, nowhere)
    assert why in said
    assert "\x1b" not in said


def test_a_name_that_is_cut_at_a_zero_byte(few: Entries, tmp_path: Path, nowhere: Path) -> None:
    path = write(tmp_path / "x.zip", few, ("evilQ.txt", b"evil"))
    path.write_bytes(path.read_bytes().replace(b"evilQ.txt", b"evil\x00.txt"))
    assert "control characters" in refused(path, nowhere)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_links_and_special_files(kind: int, few: Entries, tmp_path: Path, nowhere: Path) -> None:
    path = write(tmp_path / "x.zip", few, (_kind("link", kind | 0o777), b"/etc/passwd"))
    assert "is a link or a special file" in refused(path, nowhere)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("manifest.json", "is there twice"),
        ("MANIFEST.json", "only in case"),
        ("Audits/e\u0301", "only in case"),
        ("manifest.json/evil", "is a file and a folder"),
    ],
)
def test_names_that_collide(
    name: str, why: str, few: Entries, tmp_path: Path, nowhere: Path
) -> None:
    more = [("audits/\u00e9", b"")] if "e\u0301" in name else []
    path = write(tmp_path / "x.zip", few, *more, (name, b"evil"))
    assert why in refused(path, nowhere)


def _flags(content: bytes, name: bytes, change: Callable[[bytearray, int], None]) -> bytes:
    """Change the entry of the central directory with that name."""
    made = bytearray(content)
    at = made.rindex(b"PK\x01\x02", 0, made.rindex(name))
    change(made, at)
    return bytes(made)


def test_encrypted_entries(plain: Path, tmp_path: Path, nowhere: Path) -> None:
    def encrypt(made: bytearray, at: int) -> None:
        made[at + 8] |= 1

    path = tmp_path / "x.zip"
    path.write_bytes(_flags(plain.read_bytes(), b"log.jsonl", encrypt))
    assert "'log.jsonl' is encrypted" in refused(path, nowhere)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_odd_ways_of_packing(method: int, few: Entries, tmp_path: Path, nowhere: Path) -> None:
    path = write(tmp_path / "x.zip", few, method=method)
    assert "packed in a way that is not read here" in refused(path, nowhere)


def test_too_many_entries(
    plain: Path, tmp_path: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MOST_ENTRIES", 100)
    assert "too many entries" in refused(plain, nowhere)


def test_more_bytes_than_are_unpacked(
    plain: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MOST_BYTES", 1000)
    assert "it says to unpack to" in refused(plain, nowhere)


def test_sizes_and_names_that_the_lock_does_not_have(
    entries: Entries, tmp_path: Path, nowhere: Path
) -> None:
    path = write(tmp_path / "size.zip", {**entries, "log.jsonl": b"longer than it was" * 9})
    assert "log.jsonl is 162 bytes large, by the lock" in refused(path, nowhere)
    path = write(tmp_path / "more.zip", entries, ("notes.txt", b"mine"))
    assert "notes.txt is not part of the run" in refused(path, nowhere)


def test_a_bomb(entries: Entries, tmp_path: Path, nowhere: Path) -> None:
    """32 MB of zeros in 32 kB."""
    lock = {"lock.json": entries["lock.json"]}
    path = write(tmp_path / "x.zip", lock, ("zeros.csv", bytes(32 * 2**20)), method=8)
    assert path.stat().st_size < 2**20
    assert "'zeros.csv' says to unpack to more than 200 times its size" in refused(path, nowhere)


def test_a_bomb_of_many_small_files(
    entries: Entries, tmp_path: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "SMALL", 2**20)
    names = {f"{i}.csv": bytes(2**20) for i in range(40)}
    path = write(tmp_path / "x.zip", {"lock.json": entries["lock.json"], **names}, method=8)
    assert "times its size" in refused(path, nowhere)


def test_an_entry_that_holds_more_than_it_says(
    entries: Entries, tmp_path: Path, nowhere: Path
) -> None:
    """Sizes and checksum of the directory are those of the beginning of a longer stream."""
    own = entries["log.jsonl"]
    path = write(tmp_path / "x.zip", {**entries, "log.jsonl": own + bytes(9 * 2**20)}, method=8)

    def understate(made: bytearray, at: int) -> None:
        struct.pack_into("<L", made, at + 24, len(own))
        struct.pack_into("<L", made, at + 16, zlib.crc32(own))

    path.write_bytes(_flags(path.read_bytes(), b"log.jsonl", understate))
    assert "'log.jsonl' has two checksums, sizes or kinds of packing" in refused(path, nowhere)
    content = bytearray(path.read_bytes())
    at = content.index(b"log.jsonl") - 30
    struct.pack_into("<L", content, at + 22, len(own))
    struct.pack_into("<L", content, at + 14, zlib.crc32(own))
    path.write_bytes(content)
    # What is read ends where the directory says; the rest is never unpacked.
    with opened_run(path) as root:
        assert (root / "log.jsonl").read_bytes() == own
        assert sum(p.stat().st_size for p in root.rglob("*")) < 9 * 2**20


def test_entries_that_share_bytes(tmp_path: Path, nowhere: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(_quoting())
    assert "'a' and 'b' share bytes" in refused(path, nowhere)


def test_an_entry_with_two_names(plain: Path, tmp_path: Path, nowhere: Path) -> None:
    """The directory says one name, the entry itself another."""
    content = plain.read_bytes()
    path = tmp_path / "x.zip"
    path.write_bytes(content.replace(b"log.jsonl", b"log.jsonx", 1))
    assert "'log.jsonl' has two names" in refused(path, nowhere)


def _quoting() -> bytes:
    """An entry whose stored content is the whole of another entry, header and all."""
    inner = b"PK\x03\x04" + struct.pack("<5H3L2H", 20, 0, 0, 0, 0, zlib.crc32(b"x" * 9), 9, 9, 1, 0)
    inner += b"b" + b"x" * 9
    outer = b"PK\x03\x04" + struct.pack(
        "<5H3L2H", 20, 0, 0, 0, 0, zlib.crc32(inner), len(inner), len(inner), 1, 0
    )
    body = outer + b"a" + inner
    directory = b""
    for name, content, offset in ((b"a", inner, 0), (b"b", b"x" * 9, len(outer) + 1)):
        size = len(content)
        directory += b"PK\x01\x02" + struct.pack(
            "<6H3L5H2L",
            20,
            20,
            0,
            0,
            0,
            0,
            zlib.crc32(content),
            size,
            size,
            1,
            0,
            0,
            0,
            0,
            0,
            offset,
        )
        directory += name
    end = struct.pack("<4H2LH", 0, 0, 2, 2, len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda content: b"#!/bin/sh\n" + content, "before, between or behind"),
        (lambda content: content + b"more", "does not end as a zip file"),
        (lambda content: content[:-400], "does not end as a zip file"),
        (lambda content: b"", "shorter than an empty zip file"),
        (lambda content: b"not a zip file at all, but text" * 9, "does not end as a zip file"),
    ],
)
def test_files_that_are_more_or_less_than_a_zip_file(
    change: Any, why: str, plain: Path, tmp_path: Path, nowhere: Path
) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(change(plain.read_bytes()))
    assert why in refused(path, nowhere)


def test_a_damaged_entry(plain: Path, tmp_path: Path, nowhere: Path) -> None:
    content = bytearray(plain.read_bytes())
    at = content.index(b"relational/") + 400
    content[at] ^= 0xFF
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    assert "it is damaged" in refused(path, nowhere)


def test_a_zip_file_of_something_else(tmp_path: Path, nowhere: Path) -> None:
    path = write(tmp_path / "x.zip", {"run/lock.json": b"{}"})
    assert "not an archive of a locked run" in refused(path, nowhere)
    path = write(tmp_path / "y.zip", {"lock.json": b"[" * 200_000})
    assert "the lock is damaged" in refused(path, nowhere)


def test_a_changed_file_of_the_same_size_is_named(
    entries: Entries, tmp_path: Path, nowhere: Path
) -> None:
    text = entries["report/verdicts.md"]
    path = write(tmp_path / "x.zip", {**entries, "report/verdicts.md": text.swapcase()})
    found = verify_run(path, report=True)
    assert {(p.kind, p.where) for p in found.problems} == {
        ("file", "report/verdicts.md"),
        ("report", "report/verdicts.md"),
    }
    assert list(nowhere.iterdir()) == []


def test_an_archive_that_lacks_a_file_is_refused(
    entries: Entries, tmp_path: Path, nowhere: Path
) -> None:
    path = write(tmp_path / "x.zip", {k: v for k, v in entries.items() if k != "log.jsonl"})
    assert "log.jsonl is missing" in refused(path, nowhere)
    tables = {k: v for k, v in entries.items() if not k.endswith(".csv")}
    assert ".csv is missing" in refused(write(tmp_path / "y.zip", tables), nowhere)
    # The description is no part of what is locked.
    bare = {k: v for k, v in entries.items() if not k.startswith("ro-crate")}
    with opened_run(write(tmp_path / "z.zip", bare)) as root:
        assert (root / "lock.json").is_file()


def test_a_full_disk_is_said_before_anything_is_written(
    plain: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    usage = shutil.disk_usage(os.curdir)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(RunError, match="no room"), opened_run(plain):
        pass
    assert list(nowhere.iterdir()) == []


def test_a_table_that_swells_is_not_read(locked: Path, tmp_path: Path) -> None:
    """A few bytes of Parquet that say to hold millions of rows."""
    import polars as pl
    from tampering import rehash_manifest, writable_copy

    root = writable_copy(locked, tmp_path / "run")
    name = "decisions/lpact_study_outcome"
    path = root / f"{name}.parquet"
    one = pl.read_parquet(path).head(1)
    pl.concat([one] * 10).select(
        pl.all().repeat_by(20_000).explode(empty_as_null=False)
    ).write_parquet(path)
    assert path.stat().st_size < 100_000
    rehash_manifest(root)
    said = "\n".join(p.text for p in verify_run(root, report=False).problems)
    assert "says to hold more than it can" in said
