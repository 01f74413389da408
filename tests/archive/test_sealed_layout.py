"""Zip files that say two things at once: what one reader sees, and another does not, is refused."""

from __future__ import annotations

import struct
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lpact.archive import export_run, opened_run
from lpact.errors import LPactError

END = 22
LOCAL = 30


@pytest.fixture(scope="module")
def whole(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    out = tmp_path_factory.mktemp("layout") / "plain.zip"
    export_run(locked, out)
    return out.read_bytes()


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], str]:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    def opened(content: bytes) -> str:
        path = tmp_path / "x.zip"
        path.write_bytes(content)
        with pytest.raises(LPactError) as error, opened_run(path):
            raise AssertionError("it was opened")
        assert list(folder.iterdir()) == []
        return str(error.value)

    return opened


Refused = Callable[[bytes], str]


def directory(content: bytes) -> tuple[int, int]:
    """Length and place of the directory."""
    length, place = struct.unpack("<2L", content[-END:][12:20])
    return length, place


def ended(content: bytes, *, length: int, place: int) -> bytes:
    """The same with another end."""
    end = bytearray(content[-END:])
    struct.pack_into("<2L", end, 12, length, place)
    return content[:-END] + bytes(end)


def hidden() -> bytes:
    """An entry as it stands before its content, which no directory names."""
    header = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 6, 6, 8, 0)
    return header + b"evil.txt" + b"hidden"


def test_an_entry_that_no_directory_names_before_the_directory(
    whole: bytes, refused: Refused
) -> None:
    length, place = directory(whole)
    made = whole[:place] + hidden() + whole[place:]
    made = ended(made, length=length, place=place + len(hidden()))
    assert "44 bytes between 'ro-crate-metadata.json' and 'the directory'" in refused(made)


def test_the_same_before_the_first_entry_and_between_two(whole: bytes, refused: Refused) -> None:
    length, place = directory(whole)
    second = whole.index(b"PK\x03\x04", 4)
    for at, said in ((0, "between 'the beginning' and"), (second, "44 bytes between")):
        made = bytearray(whole[:at] + hidden() + whole[at:])
        entry = place + 44
        for _ in range(struct.unpack("<H", whole[-12:-10])[0]):
            names = struct.unpack("<3H", made[entry + 28 : entry + 34])
            (own,) = struct.unpack("<L", made[entry + 42 : entry + 46])
            struct.pack_into("<L", made, entry + 42, own + 44 if own >= at else own)
            entry += 46 + sum(names)
        assert said in refused(ended(bytes(made), length=length, place=place + 44))


@pytest.mark.parametrize(
    ("at", "value"),
    [(6, b"\x02\x00"), (8, b"\x00\x00"), (14, b"\x11" * 4), (18, b"\x11" * 4), (22, b"\x11" * 4)],
    ids=["flags", "method", "checksum", "packed size", "size"],
)
def test_an_entry_that_contradicts_the_directory(
    at: int, value: bytes, whole: bytes, refused: Refused
) -> None:
    start = whole.index(b"log.jsonl") - LOCAL
    assert whole[start : start + 4] == b"PK\x03\x04"
    made = whole[: start + at] + value + whole[start + at + len(value) :]
    assert "'log.jsonl' has two checksums, sizes or kinds of packing" in refused(made)


def test_sizes_behind_the_content_are_refused(refused: Refused) -> None:
    """As archives have that were written to a pipe."""

    class Pipe:
        def __init__(self) -> None:
            self.content = b""

        def write(self, more: bytes) -> int:
            self.content += more
            return len(more)

        def flush(self) -> None:
            pass

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w") as archive:  # type: ignore[call-overload]
        archive.writestr("lock.json", b"{}")
    assert "has its sizes behind its content" in refused(pipe.content)


def large(whole: bytes, tmp_path: Path) -> bytes:
    """The archive as one of more than four gigabytes is written: longer headers, and a longer end."""
    source, path = tmp_path / "source.zip", tmp_path / "large.zip"
    source.write_bytes(whole)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            with new.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
                entry.write(old.read(name))
    content = path.read_bytes()
    length, place = directory(content)
    (n,) = struct.unpack("<H", content[-12:-10])
    at = len(content) - END
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, n, n, length, place)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 2**32 - 1, 2**32 - 1, 0)
    return content[:at] + end64 + locator + end


def test_a_large_archive_is_read(whole: bytes, tmp_path: Path) -> None:
    """The positive twin of the lies below."""
    path = tmp_path / "x.zip"
    path.write_bytes(large(whole, tmp_path))
    with opened_run(path) as root:
        assert (root / "lock.json").is_file()


@pytest.mark.parametrize(
    ("back", "value"),
    [
        (END + 20 + 56, b"PK\x06\x00"),
        (END + 20 + 52, struct.pack("<Q", 45)),
        (END + 20, b"PK\x06\x00"),
        (END + 12, struct.pack("<Q", 7)),
        (END + 4, struct.pack("<L", 2)),
        (END + 20 + 32, struct.pack("<2Q", 3, 3)),
        (END + 20 + 16, struct.pack("<Q", 46)),
        (END + 20 + 8, struct.pack("<Q", 0)),
    ],
    ids=["mark", "length", "locator", "place", "disks", "entries", "bytes", "start"],
)
def test_a_longer_end_that_lies(
    back: int, value: bytes, whole: bytes, refused: Refused, tmp_path: Path
) -> None:
    content = large(whole, tmp_path)
    at = len(content) - back
    made = content[:at] + value + content[at + len(value) :]
    assert made != content
    said = refused(made)
    assert "the archive is refused" in said


def test_a_longer_size_that_lies(whole: bytes, refused: Refused, tmp_path: Path) -> None:
    content = bytearray(large(whole, tmp_path))
    content[content.index(b"log.jsonl\x01\x00\x10\x00") + 13] ^= 1
    assert "'log.jsonl' has two checksums, sizes" in refused(bytes(content))


def test_a_second_directory_that_only_some_readers_see(whole: bytes, refused: Refused) -> None:
    """The comment of the last entry is a longer end: it names a directory of one entry."""
    length, place = directory(whole)
    last = whole.rindex(b"PK\x01\x02")
    own = whole[last:-END]
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, len(own), last)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(whole) - END, 1)
    made = bytearray(whole[:-END] + end64 + locator + whole[-END:])
    struct.pack_into("<H", made, last + 32, 76)
    said = refused(ended(bytes(made), length=length + 76, place=place))
    assert "two directories" in said


def test_an_archive_that_is_cut_anywhere_is_refused(whole: bytes, refused: Refused) -> None:
    _, place = directory(whole)
    for n_bytes in (1, END, 100, len(whole) // 2, place, place + 46, len(whole) - 1):
        assert "the archive is refused" in refused(whole[:n_bytes])
        # An end that fits with nothing.
        assert "the archive is refused" in refused(whole[:n_bytes] + whole[-END:])


def test_bytes_behind_the_end_are_refused(whole: bytes, refused: Refused) -> None:
    for more in (b"\x00", whole[-END:], whole):
        assert "the archive is refused" in refused(whole + more)
