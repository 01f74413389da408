"""Unsafe archives, each one built here, are refused, and nothing is left behind."""

from __future__ import annotations

import os
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import lpact.archive.zipped as layout
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


def test_an_archive_that_another_tool_packed_is_read(entries: Entries, tmp_path: Path, nowhere: Path) -> None:
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
        ("x" * 1200, "too long"),
    ],
)
def test_names_that_lead_elsewhere(name: str, why: str, few: Entries, tmp_path: Path, nowhere: Path) -> None:
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
        ("manifest.json", "has the same name as"),
        ("MANIFEST.json", "has the same name as"),
        ("Audits/e\u0301", "has the same name as"),
    ],
)
def test_names_that_collide(name: str, why: str, few: Entries, tmp_path: Path, nowhere: Path) -> None:
    more = [("audits/\u00e9", b"")] if "e\u0301" in name else []
    path = write(tmp_path / "x.zip", few, *more, (name, b"evil"))
    assert why in refused(path, nowhere)


def test_encrypted_entries(plain: Path, tmp_path: Path, nowhere: Path) -> None:
    made = bytearray(plain.read_bytes())
    made[made.rindex(b"PK\x01\x02", 0, made.rindex(b"log.jsonl")) + 8] |= 1
    path = tmp_path / "x.zip"
    path.write_bytes(made)
    assert "'log.jsonl' is encrypted" in refused(path, nowhere)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_methods(method: int, few: Entries, tmp_path: Path, nowhere: Path) -> None:
    path = write(tmp_path / "x.zip", few, method=method)
    assert "which is not supported" in refused(path, nowhere)


def test_too_many_entries(plain: Path, tmp_path: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST_ENTRIES", 100)
    assert "entries; the limit is 100" in refused(plain, nowhere)


def test_more_bytes_than_are_unpacked(plain: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST_BYTES", 1000)
    assert "bytes; the limit is 1000" in refused(plain, nowhere)


def test_sizes_and_names_that_the_lock_does_not_have(entries: Entries, tmp_path: Path, nowhere: Path) -> None:
    path = write(tmp_path / "size.zip", {**entries, "log.jsonl": b"longer than it was" * 9})
    assert "log.jsonl has 162 bytes instead of" in refused(path, nowhere)
    path = write(tmp_path / "more.zip", entries, ("notes.txt", b"mine"))
    assert "notes.txt is not part of the run" in refused(path, nowhere)


@pytest.mark.parametrize("name", ["lock.json", "manifest.json"])
def test_large_json_files_are_not_parsed(
    name: str, plain: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(plain) as archive:
        sizes = {own: archive.getinfo(own).file_size for own in ("lock.json", "manifest.json")}
    monkeypatch.setattr(layout, "MOST_JSON_BYTES", sizes[name] - 1)
    assert f"{name} has more than {sizes[name] - 1} bytes" in refused(plain, nowhere)


def test_a_bomb(entries: Entries, tmp_path: Path, nowhere: Path) -> None:
    """32 MB of zeros in 32 kB."""
    lock = {"lock.json": entries["lock.json"]}
    path = write(tmp_path / "x.zip", lock, ("zeros.csv", bytes(32 * 2**20)), method=8)
    assert path.stat().st_size < 2**20
    assert "times its size; the limit is 200" in refused(path, nowhere)


def test_a_bomb_of_many_small_files(
    entries: Entries, tmp_path: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "SMALL", 2**20)
    names = {f"{i}.csv": bytes(2**20) for i in range(40)}
    path = write(tmp_path / "x.zip", {"lock.json": entries["lock.json"], **names}, method=8)
    assert "times its size" in refused(path, nowhere)


def test_an_entry_with_two_names(plain: Path, tmp_path: Path, nowhere: Path) -> None:
    """The directory says one name, the entry itself another."""
    content = plain.read_bytes()
    path = tmp_path / "x.zip"
    path.write_bytes(content.replace(b"log.jsonl", b"log.jsonx", 1))
    assert "in directory 'log.jsonl' and header b'log.jsonx' differ" in refused(path, nowhere)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda content: content[:-400], "it is damaged"),
        (lambda content: b"", "it is damaged"),
        (lambda content: b"not a zip file at all, but text" * 9, "it is damaged"),
    ],
)
def test_files_that_are_not_whole_zip_files(change: Any, why: str, plain: Path, tmp_path: Path, nowhere: Path) -> None:
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


def test_a_changed_file_of_the_same_size_is_named(entries: Entries, tmp_path: Path, nowhere: Path) -> None:
    path = write(tmp_path / "x.zip", {**entries, "log.jsonl": entries["log.jsonl"].swapcase()})
    found = verify_run(path, report=False)
    assert {(p.kind, p.where) for p in found.problems} == {("file", "log.jsonl")}
    assert "log.jsonl: has changed" in refused(path, nowhere)


def test_an_archive_that_lacks_a_file_is_refused(entries: Entries, tmp_path: Path, nowhere: Path) -> None:
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
    with pytest.raises(RunError, match="not enough disk space"), opened_run(plain):
        pass
    assert list(nowhere.iterdir()) == []
