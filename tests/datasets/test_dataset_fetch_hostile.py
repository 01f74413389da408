"""Servers, archives and disks that do not do what they should: a named error, and never a wrong file."""

from __future__ import annotations

import io
import resource
import shutil
import signal
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_server import FileServer, Served, file_server

from lpact.datasets.catalogue import Download, RemoteFile
from lpact.datasets.fetch import MARKS, plan_fetch
from lpact.datasets.fetch.https import fetch_file
from lpact.datasets.fetch.places import RESERVE_BYTES
from lpact.datasets.fetch.unzip import unpack
from lpact.errors import FetchError

OLD, NEW = b"A" * 1000, b"B" * 1000


@pytest.fixture(scope="module")
def running() -> Iterator[FileServer]:
    with file_server() as server:
        yield server


@pytest.fixture
def served(running: FileServer) -> Served:
    """The file ``x.bin``: 1,000 bytes B."""
    running.asked.clear()
    running.files["x.bin"] = Served(NEW)
    return running.files["x.bin"]


@pytest.fixture
def file(running: FileServer) -> RemoteFile:
    return RemoteFile(running.url("x.bin"), "x.bin")


def begun(root: Path, n_bytes: int = 400, tag: str = '"v1"') -> None:
    """A part of the old version, as an interrupted download leaves it."""
    (root / "x.bin.part").write_bytes(OLD[:n_bytes])
    (root / "x.bin.part.tag").write_text(tag + "\n")


def range_of(first: int, last: int, total: object = 1000, **more: str) -> dict[str, str]:
    headers = {"Content-Range": f"bytes {first}-{last}/{total}", "ETag": '"v1"'}
    return headers | {"Content-Length": str(last - first + 1)} | more


def names(root: Path) -> set[str]:
    return {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}


# --- Answers that do not go on where the part ends -------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        range_of(400, 999, ETag='"v2"'),
        {k: v for k, v in range_of(400, 999).items() if k != "ETag"},
        range_of(400, 999, ETag='W/"v1"'),
        range_of(0, 599),
        range_of(401, 1000, 1001),
        range_of(400, 999, "*"),
        {"ETag": '"v1"', "Content-Length": "600"},
        range_of(400, 999) | {"Content-Range": "400-999"},
    ],
    ids=[
        "another tag",
        "no tag",
        "a weak tag",
        "from the start",
        "a gap",
        "no total",
        "no range",
        "no unit",
    ],
)
def test_what_is_no_continuation_is_not_appended(
    served: Served, file: RemoteFile, running: FileServer, tmp_path: Path, headers: dict[str, str]
) -> None:
    """Without a checksum only the tag and the range can tell: the file is fetched anew, whole."""
    begun(tmp_path)
    served.answers = [(206, headers, [NEW[:600]])]
    assert fetch_file(file, tmp_path, pause_s=0.0)
    assert (tmp_path / "x.bin").read_bytes() == NEW
    assert [asked.get("Range") for _, asked in running.asked] == ["bytes=400-", None]
    assert names(tmp_path) == {"x.bin"}


def test_another_date_is_another_version(served: Served, file: RemoteFile, tmp_path: Path) -> None:
    begun(tmp_path, tag='"v1"\nMon, 01 Jan 2024 00:00:00 GMT')
    later = range_of(400, 999) | {"Last-Modified": "Tue, 02 Jan 2024 00:00:00 GMT"}
    served.answers = [(206, later, [NEW[400:]])]
    assert fetch_file(file, tmp_path, pause_s=0.0)
    assert (tmp_path / "x.bin").read_bytes() == NEW


def test_the_same_tag_is_a_continuation(served: Served, file: RemoteFile, tmp_path: Path) -> None:
    begun(tmp_path)
    served.answers = [(206, range_of(400, 999), [NEW[400:]])]
    assert fetch_file(file, tmp_path, attempts=1)
    assert (tmp_path / "x.bin").read_bytes() == OLD[:400] + NEW[400:]


def test_a_range_that_ends_early_is_not_the_end(
    served: Served, file: RemoteFile, tmp_path: Path
) -> None:
    begun(tmp_path)
    served.answers = [(206, range_of(400, 499), [OLD[400:500]])]
    with pytest.raises(FetchError, match="could not be fetched to its end") as caught:
        fetch_file(file, tmp_path, attempts=1)
    assert "500 of 1,000 bytes came" in str(caught.value)
    assert not (tmp_path / "x.bin").exists()
    served.answers = [
        (206, range_of(500, 799), [OLD[500:800]]),
        (206, range_of(800, 999), [OLD[800:]]),
    ]
    assert fetch_file(file, tmp_path, pause_s=0.0)
    assert (tmp_path / "x.bin").read_bytes() == OLD


def test_a_body_longer_than_its_range_is_cut(
    served: Served, file: RemoteFile, tmp_path: Path
) -> None:
    begun(tmp_path)
    headers = {k: v for k, v in range_of(400, 999).items() if k != "Content-Length"}
    served.answers = [(206, headers, [OLD[400:], b"more"])]
    assert fetch_file(file, tmp_path, attempts=1)
    assert (tmp_path / "x.bin").read_bytes() == OLD


# --- Answers that make no sense --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers", "told"),
    [
        (200, {"Content-Length": "abc"}, "Content-Length: abc"),
        (200, {"Content-Length": "10, 10"}, "Content-Length: 10, 10"),
        (200, {"Content-Length": "-5"}, "Content-Length: -5"),
        (200, {"Content-Length": "9" * 5000}, "Content-Length: 999"),
        (200, {"Content-Encoding": "gzip"}, "Content-Encoding: gzip"),
        (206, range_of(0, 999), "status 206"),
        (204, {}, "status 204"),
    ],
)
def test_an_answer_without_sense_is_named(
    served: Served,
    file: RemoteFile,
    tmp_path: Path,
    status: int,
    headers: dict[str, str],
    told: str,
) -> None:
    served.answers = [(status, headers, [b"x" * 10])]
    with pytest.raises(FetchError, match="the server's answer cannot be used") as caught:
        fetch_file(file, tmp_path, attempts=1)
    assert told in str(caught.value)
    assert file.url in str(caught.value)
    assert "get the file by hand" in str(caught.value)
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    "headers",
    [range_of(400, 1000), range_of(400, 399), range_of(400, 999, **{"Content-Length": "9"})],
)
def test_a_range_without_sense_is_named(
    served: Served, file: RemoteFile, tmp_path: Path, headers: dict[str, str]
) -> None:
    begun(tmp_path)
    served.answers = [(206, headers, [NEW[400:]])]
    with pytest.raises(FetchError, match="the server's answer cannot be used") as caught:
        fetch_file(file, tmp_path, attempts=1)
    assert headers["Content-Range"] in str(caught.value)


@pytest.mark.parametrize("header", ["Location", "URI"])
@pytest.mark.parametrize("target", ["http://[::1", "https://127.0.0.1:99999999/x"])
def test_a_redirect_to_no_address_is_named(
    served: Served, file: RemoteFile, tmp_path: Path, header: str, target: str
) -> None:
    served.answers = [(302, {header: target}, [])]
    with pytest.raises(FetchError, match="an address cannot be used") as caught:
        fetch_file(file, tmp_path, attempts=1)
    assert target in str(caught.value)


def test_the_older_header_of_redirects_is_checked_too(
    served: Served, file: RemoteFile, tmp_path: Path
) -> None:
    served.answers = [(302, {"URI": "http://example.org/x"}, [])]
    with pytest.raises(FetchError, match="redirect leads away from HTTPS"):
        fetch_file(file, tmp_path, attempts=1)


@pytest.mark.parametrize("url", ["http://[::1", "https://example.org:port/x"])
def test_an_address_that_is_none_is_named(tmp_path: Path, url: str) -> None:
    with pytest.raises(FetchError, match="an address cannot be used"):
        fetch_file(RemoteFile(url, "x.bin"), tmp_path)


# --- Too much, and no room for it ------------------------------------------------------------------


def test_a_body_without_end_is_left_at_the_published_size(
    served: Served, file: RemoteFile, tmp_path: Path
) -> None:
    piece = b"z" * 2**16
    served.answers = [(200, {}, (piece for _ in range(1600)))]
    most: list[int] = []
    known = RemoteFile(file.url, file.path, n_bytes=1000)
    with pytest.raises(FetchError, match="published size") as caught:
        fetch_file(known, tmp_path, attempts=1, advance=most.append)
    assert "more than 1,000 bytes" in str(caught.value)
    assert sum(most) == 1001
    assert served.n_sent < 1600 * len(piece)
    assert names(tmp_path) == set()


def test_a_body_without_end_leaves_room_on_the_disk(
    served: Served, file: RemoteFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that has room for three pieces, and a server that tells no size."""
    usage = type(shutil.disk_usage(tmp_path))
    written = 0

    def disk_usage(_: Path) -> object:
        return usage(10**12, 0, RESERVE_BYTES + 3 * 2**20 - written)

    def advance(n_bytes: int) -> None:
        nonlocal written
        written += n_bytes

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    served.answers = [(200, {}, (b"z" * 2**18 for _ in range(400)))]
    with pytest.raises(FetchError, match="too little free space"):
        fetch_file(file, tmp_path, attempts=1, advance=advance)
    assert 2 * 2**20 < written <= 3 * 2**20
    assert names(tmp_path) == set(), "nothing vouches for the part, so that it only takes room"


def test_a_told_size_without_room_is_refused_first(
    served: Served, file: RemoteFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type(shutil.disk_usage(tmp_path))(10**12, 0, RESERVE_BYTES + len(served.content) - 1)
    came: list[int] = []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(FetchError, match="too little free space"):
        fetch_file(file, tmp_path, attempts=1, advance=came.append)
    assert sum(came) == 0
    assert names(tmp_path) == set()


def test_a_disk_that_takes_no_more_is_named(
    served: Served, file: RemoteFile, tmp_path: Path
) -> None:
    """A limit on the size of files stands in for a full disk; what came is used by the next call."""
    served.content, served.etag = NEW * 20, '"v1"'
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(FetchError, match="a file cannot be written") as caught:
            fetch_file(file, tmp_path, attempts=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "x.bin" in str(caught.value)
    assert "ulimit" in str(caught.value)
    assert (tmp_path / "x.bin.part").stat().st_size <= 5000
    assert fetch_file(file, tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == served.content


@pytest.mark.parametrize(
    ("path", "told"),
    [("taken/x", "a file lies where a folder is needed"), ("n" * 300, "shorter path")],
)
def test_a_place_that_cannot_be_is_named(
    running: FileServer, served: Served, tmp_path: Path, path: str, told: str
) -> None:
    assert served.content
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(FetchError, match="a file cannot be written") as caught:
        fetch_file(RemoteFile(running.url("x.bin"), path), tmp_path)
    assert told in str(caught.value)
    assert names(tmp_path) == {"taken"}


# --- Archives --------------------------------------------------------------------------------------


def zipped(*members: tuple[str, str], method: int = zipfile.ZIP_STORED) -> bytes:
    held = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(held, "w", method) as archive:
        warnings.filterwarnings("ignore", message="Duplicate name")
        for name, text in members:
            archive.writestr(name, text)
    return held.getvalue()


def of_method(content: bytes, method: int) -> bytes:
    """The archive with another number for the way in which its only member is compressed."""
    changed = bytearray(content)
    for sign, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = content.index(sign) + offset
        changed[at : at + 2] = method.to_bytes(2, "little")
    return bytes(changed)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (zipped(("a.txt", "one"), ("a.txt", "two!")), "two members of an archive"),
        (zipped(("a.txt", "one"), ("./a.txt", "two!")), "two members of an archive"),
        (zipped(("a", "one"), ("a/b", "two")), "two members of an archive"),
        (zipped(("ok", "x"), (f"{MARKS}/z.zip.json", "{}")), "records of the download itself"),
        (zipped(("ok", "x"), (f"{MARKS.upper()}/y", "{}")), "records of the download itself"),
        (zipped(("ok", "x"), (f"{MARKS}.part", "{}")), "records of the download itself"),
        (of_method(zipped(("a", "one")), 99), "the unknown method 99"),
        (of_method(zipped(("a", "not compressed")), zipfile.ZIP_BZIP2), "cannot be unpacked"),
        (of_method(zipped(("a", "not compressed")), zipfile.ZIP_LZMA), "cannot be unpacked"),
        (of_method(zipped(("a", "not compressed")), zipfile.ZIP_DEFLATED), "cannot be unpacked"),
        (zipped(("ok", "x"), ("n" * 300, "x")), "File name too long"),
        (zipped(("a", "one"))[:-30], "cannot be unpacked"),
    ],
    ids=[
        "twice",
        "twice, spelt otherwise",
        "file and folder",
        "records",
        "records in capitals",
        "our part",
        "unknown method",
        "no bzip2",
        "no lzma",
        "no deflate",
        "long name",
        "cut",
    ],
)
def test_an_archive_that_cannot_be_trusted_writes_nothing(
    tmp_path: Path, content: bytes, told: str
) -> None:
    archive = tmp_path / "z.zip"
    archive.write_bytes(content)
    with pytest.raises(FetchError) as caught:
        unpack(archive, tmp_path)
    assert told in str(caught.value)
    assert "remedy" in str(caught.value)
    assert names(tmp_path) == {"z.zip"}


def test_members_that_look_like_parts_are_kept(tmp_path: Path) -> None:
    (tmp_path / "z.zip").write_bytes(zipped(("a.part", "one"), ("a", "two"), ("b/a.part", "three")))
    assert unpack(tmp_path / "z.zip", tmp_path) == 3
    assert (tmp_path / "a.part").read_text() == "one"
    assert (tmp_path / "a").read_text() == "two"
    assert names(tmp_path) == {"z.zip", "a", "a.part", "b/a.part"}


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_every_known_method_is_unpacked(tmp_path: Path, method: int) -> None:
    (tmp_path / "z.zip").write_bytes(zipped(("a", "text " * 100), method=method))
    assert unpack(tmp_path / "z.zip", tmp_path) == 1
    assert (tmp_path / "a").read_text() == "text " * 100


def test_records_that_cannot_be_written_are_named(
    running: FileServer, served: Served, tmp_path: Path
) -> None:
    served.content = zipped(("a", "one"))
    (tmp_path / MARKS).write_text("a file in the way")
    archive = RemoteFile(running.url("x.bin"), "x.zip", unpack=True)
    plan = plan_fetch(
        "mine",
        tmp_path,
        download=Download("https", "x", "1", "small", "CC0", "https://x.org", files=(archive,)),
    )
    with pytest.raises(FetchError, match="a file cannot be written") as caught:
        plan.run()
    assert MARKS in str(caught.value)
