"""Official downloads: plans, files from a server on this machine, and everything that goes wrong on the way."""

from __future__ import annotations

import hashlib
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from file_server import FileServer, Served, file_server

from lpact.cli._datasets import command_text
from lpact.datasets import fetch as fetch_module
from lpact.datasets.base import DATASETS
from lpact.datasets.catalogue import Download, RemoteFile
from lpact.datasets.fetch import MARKS, FetchPlan, plan_fetch
from lpact.datasets.fetch.https import fetch_file
from lpact.datasets.fetch.places import RESERVE_BYTES, check_space, check_url
from lpact.datasets.fetch.unzip import unpack
from lpact.errors import FetchError

CONTENT = np.random.default_rng(3).bytes(3_000_000)
SHA = hashlib.sha256(CONTENT).hexdigest()
TAG = '"v1"'


@pytest.fixture(scope="module")
def running() -> Iterator[FileServer]:
    with file_server() as server:
        yield server


@pytest.fixture
def server(running: FileServer) -> FileServer:
    running.files.clear()
    running.asked.clear()
    return running


def offer(server: FileServer, name: str = "a.bin", **how: object) -> RemoteFile:
    """Put a file on the server; the published size and checksum are true unless told otherwise."""
    server.files[name] = Served(CONTENT, **how)  # type: ignore[arg-type]
    return RemoteFile(server.url(name), f"data/{name}", len(CONTENT), SHA)


def official(*files: RemoteFile, **more: object) -> Download:
    facts = {
        "identifier": "ds1",
        "version": "1.0.2",
        "size": "3 MB",
        "licence": "CC0",
        "homepage": "https://example.org",
    }
    return Download("https", files=files, **(facts | more))  # type: ignore[arg-type]


def archive_of(method: str, **more: object) -> Download:
    return Download(**(vars(official()) | {"method": method} | more))  # type: ignore[arg-type]


def names(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


# --- Files by HTTPS ----------------------------------------------------------------------------


def test_a_plan_fetches_nothing(server: FileServer, tmp_path: Path) -> None:
    plan = plan_fetch("mine", tmp_path / "to", download=official(offer(server)))
    assert plan.n_bytes_left == len(CONTENT)
    assert not plan.by_hand
    assert server.asked == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_comes_whole_and_is_not_fetched_twice(server: FileServer, tmp_path: Path) -> None:
    plan = plan_fetch("mine", tmp_path, download=official(offer(server)))
    assert plan.run() == 1
    assert names(tmp_path) == ["data/a.bin"]
    assert (tmp_path / "data/a.bin").read_bytes() == CONTENT
    assert plan.n_bytes_left == 0
    assert plan.run() == 0
    assert len(server.asked) == 1


def test_a_broken_connection_is_taken_up_where_it_broke(server: FileServer, tmp_path: Path) -> None:
    file = offer(server, etag=TAG, cuts=[1_500_000, 1_000_000])
    seen: list[int] = []
    assert fetch_file(file, tmp_path, advance=seen.append, pause_s=0.0)
    assert (tmp_path / file.path).read_bytes() == CONTENT
    ranges = [headers.get("Range") for _, headers in server.asked]
    assert ranges == [None, "bytes=1500000-", "bytes=2500000-"]
    assert server.asked[1][1]["If-Range"] == TAG
    assert sum(seen) == len(CONTENT)


def test_an_interrupted_download_goes_on_in_the_next_call(
    server: FileServer, tmp_path: Path
) -> None:
    file = offer(server, etag=TAG, cuts=[1_000_000])
    with pytest.raises(FetchError, match="could not be fetched to its end") as caught:
        fetch_file(file, tmp_path, attempts=1)
    assert "1,000,000 of 3,000,000 bytes came" in str(caught.value)
    assert "run the same command again" in str(caught.value)
    assert not (tmp_path / file.path).exists()
    assert names(tmp_path) == ["data/a.bin.part", "data/a.bin.part.tag"]
    plan = FetchPlan("mine", tmp_path, official(file), files=(file,))
    assert plan.n_bytes_left == len(CONTENT) - 1_000_000
    assert plan.run() == 1
    assert server.asked[1][1]["Range"] == "bytes=1000000-"
    assert names(tmp_path) == ["data/a.bin"]


def test_ctrl_c_leaves_a_part_that_the_next_call_uses(server: FileServer, tmp_path: Path) -> None:
    file = offer(server, etag=TAG)

    def press(n_bytes: int) -> None:
        if n_bytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_file(file, tmp_path, advance=press)
    kept = (tmp_path / "data/a.bin.part").stat().st_size
    assert 0 < kept < len(CONTENT)
    assert fetch_file(file, tmp_path)
    assert server.asked[1][1]["Range"] == f"bytes={kept}-"
    assert (tmp_path / file.path).read_bytes() == CONTENT


def test_a_file_that_changed_in_between_is_fetched_anew(server: FileServer, tmp_path: Path) -> None:
    """The part belongs to another version: the server's tag tells, and so would the checksum."""
    server.files["a.bin"] = Served(b"x" * 2_000_000, etag='"v0"', cuts=[500_000])
    unchecked = RemoteFile(server.url("a.bin"), "a.bin")
    with pytest.raises(FetchError):
        fetch_file(unchecked, tmp_path, attempts=1)
    server.files["a.bin"] = Served(CONTENT, etag=TAG)
    assert fetch_file(unchecked, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_a_part_that_nothing_vouches_for_is_not_used(
    server: FileServer, tmp_path: Path, etag: str
) -> None:
    server.files["a.bin"] = Served(CONTENT, etag=etag, cuts=[500_000])
    unchecked = RemoteFile(server.url("a.bin"), "a.bin")
    with pytest.raises(FetchError):
        fetch_file(unchecked, tmp_path, attempts=1)
    assert fetch_file(unchecked, tmp_path)
    assert [headers.get("Range") for _, headers in server.asked] == [None, None]
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_server_without_ranges_sends_it_all_again(server: FileServer, tmp_path: Path) -> None:
    file = offer(server, ranges=False, cuts=[500_000])
    assert fetch_file(file, tmp_path, pause_s=0.0)
    assert (tmp_path / file.path).read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_thrown_away(server: FileServer, tmp_path: Path) -> None:
    file = offer(server)
    part = tmp_path / "data/a.bin.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT + b"more")
    assert fetch_file(file, tmp_path, pause_s=0.0)
    assert (tmp_path / file.path).read_bytes() == CONTENT


def test_a_busy_server_is_asked_again(server: FileServer, tmp_path: Path) -> None:
    file = offer(server, refusals=[503, 429])
    assert fetch_file(file, tmp_path, pause_s=0.0)
    assert len(server.asked) == 3


@pytest.mark.parametrize(("code", "told"), [(404, "does not have a file"), (403, "does not give")])
def test_a_refusal_is_final(server: FileServer, tmp_path: Path, code: int, told: str) -> None:
    file = offer(server, refusals=[code] * 9)
    with pytest.raises(FetchError, match=told) as caught:
        fetch_file(file, tmp_path, pause_s=0.0)
    assert file.url in str(caught.value)
    assert str(code) in str(caught.value)
    assert len(server.asked) == 1
    assert names(tmp_path) == []


def test_a_wrong_checksum_leaves_nothing(server: FileServer, tmp_path: Path) -> None:
    true = offer(server)
    file = RemoteFile(true.url, true.path, true.n_bytes, "0" * 64)
    with pytest.raises(FetchError, match="published checksum") as caught:
        fetch_file(file, tmp_path)
    assert f"sha256 {SHA}" in str(caught.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("told", [True, False], ids=["before", "after"])
def test_a_wrong_size_leaves_nothing(server: FileServer, tmp_path: Path, told: bool) -> None:
    """The server says so before a byte comes, or sends more than it says."""
    true = offer(server)
    n_bytes = len(CONTENT) - 1 if told else len(CONTENT) + 1
    file = RemoteFile(true.url, true.path, n_bytes, "")
    with pytest.raises(FetchError, match="published size") as caught:
        fetch_file(file, tmp_path)
    assert f"{n_bytes:,} bytes" in str(caught.value)
    assert "3,000,000 bytes" in str(caught.value)
    assert names(tmp_path) == []


def test_another_file_of_that_name_is_not_overwritten(server: FileServer, tmp_path: Path) -> None:
    file = offer(server)
    mine = tmp_path / file.path
    mine.parent.mkdir()
    mine.write_bytes(b"mine")
    with pytest.raises(FetchError, match="another file of that name") as caught:
        fetch_file(file, tmp_path)
    assert str(mine) in str(caught.value)
    assert mine.read_bytes() == b"mine"
    assert server.asked == []


def test_no_server_at_all(tmp_path: Path) -> None:
    with file_server() as gone:
        url = gone.url("a.bin")
    with pytest.raises(FetchError, match="could not be fetched") as caught:
        fetch_file(RemoteFile(url, "a.bin"), tmp_path, attempts=2, pause_s=0.0)
    assert "no connection" in str(caught.value)
    assert names(tmp_path) == []


# --- Where from, and where to ------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../out.bin",
        "/etc/out.bin",
        "a/../../out.bin",
        "",
        "C:\\out.bin",
        "..\\out.bin",
        "out/b.bin",
    ],
)
def test_no_file_is_written_outside(server: FileServer, tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    true = offer(server)
    file = RemoteFile(true.url, path, true.n_bytes, SHA)
    for act in (
        lambda: plan_fetch("mine", root, download=official(file)),
        lambda: fetch_file(file, root),
    ):
        with pytest.raises(FetchError, match="outside of the folder"):
            act()
    assert server.asked == []
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/a.bin",
        "ftp://example.org/a.bin",
        "file:///etc/passwd",
        "example.org/a.bin",
        "http://127.0.0.1.example.org/a.bin",
        "https://",
    ],
)
def test_addresses_are_https(url: str, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="is not HTTPS"):
        plan_fetch("mine", tmp_path, download=official(RemoteFile(url, "a.bin")))


def test_https_addresses_are_accepted() -> None:
    check_url("https://example.org/a.bin", where="here")
    check_url("https://a.org/b", where="here", sent_from="https://example.org/a")


@pytest.mark.parametrize(
    "elsewhere", ["http://example.org/a.bin", "ftp://example.org/a.bin", "file:///etc/passwd"]
)
def test_redirects_away_from_https_are_refused(
    server: FileServer, tmp_path: Path, elsewhere: str
) -> None:
    file = offer(server, redirect=elsewhere)
    with pytest.raises(FetchError, match="redirect leads away from HTTPS") as caught:
        fetch_file(file, tmp_path, pause_s=0.0)
    assert elsewhere in str(caught.value)
    assert names(tmp_path) == []


def test_a_redirect_may_not_lower_https() -> None:
    with pytest.raises(FetchError, match="leads away"):
        check_url("http://127.0.0.1/a", where="here", sent_from="https://example.org/a")


def test_a_redirect_on_the_same_footing_is_followed(server: FileServer, tmp_path: Path) -> None:
    offer(server, "there.bin")
    file = offer(server, redirect=server.url("there.bin"))
    assert fetch_file(file, tmp_path)
    assert (tmp_path / file.path).read_bytes() == CONTENT


def test_too_little_space_is_told_first(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = len(CONTENT) + RESERVE_BYTES - 1
    usage = type(shutil.disk_usage(tmp_path))(10**9, 10**9, free)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    plan = plan_fetch("mine", tmp_path / "not/yet", download=official(offer(server)))
    with pytest.raises(FetchError, match="too little free space") as caught:
        plan.run()
    assert f"{free:,} bytes free" in str(caught.value)
    assert f"{free + 1:,} bytes or more" in str(caught.value)
    assert server.asked == []
    check_space(tmp_path, len(CONTENT) - 1)


# --- Archives ----------------------------------------------------------------------------------


def zipped(path: Path, members: dict[str, bytes]) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path.read_bytes()


def test_an_archive_is_unpacked_once_and_removed(server: FileServer, tmp_path: Path) -> None:
    content = zipped(tmp_path / "z.zip", {"words/a.csv": b"word\n", "words/b.csv": b"other\n"})
    server.files["words.zip"] = Served(content)
    url = server.url("words.zip")
    sha = hashlib.sha256(content).hexdigest()
    file = RemoteFile(url, "words.zip", len(content), sha, unpack=True)
    plan = plan_fetch("mine", tmp_path / "to", download=official(file))
    assert plan.run() == 1
    assert names(tmp_path / "to") == [f"{MARKS}/words.zip.json", "words/a.csv", "words/b.csv"]
    assert plan.n_bytes_left == 0
    assert plan.run() == 0
    assert len(server.asked) == 1


def test_an_archive_may_not_write_outside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    zipped(root / "z.zip", {"fine.txt": b"x", "../out.txt": b"x"})
    with pytest.raises(FetchError, match="outside of the folder") as caught:
        unpack(root / "z.zip", root)
    assert "../out.txt" in str(caught.value)
    assert names(tmp_path) == ["root/z.zip"]


def test_an_archive_with_a_link_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(FetchError, match="something else than plain files"):
        unpack(tmp_path / "z.zip", tmp_path)


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "z.zip").write_bytes(b"no archive")
    with pytest.raises(FetchError, match="cannot be unpacked") as caught:
        unpack(tmp_path / "z.zip", tmp_path)
    assert str(tmp_path / "z.zip") in str(caught.value)


def test_unpacking_goes_on_and_overwrites_nothing(tmp_path: Path) -> None:
    zipped(tmp_path / "z.zip", {"a.txt": b"first", "b.txt": b"second"})
    (tmp_path / "a.txt").write_bytes(b"first")
    assert unpack(tmp_path / "z.zip", tmp_path) == 2
    (tmp_path / "b.txt").write_bytes(b"mine!!")
    with pytest.raises(FetchError, match="another file of that name"):
        unpack(tmp_path / "z.zip", tmp_path)
    assert (tmp_path / "b.txt").read_bytes() == b"mine!!"


# --- Tools of archives -------------------------------------------------------------------------


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty search path for programs; a program put there writes down how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    return folder


def install(tools: Path, name: str, status: int = 0) -> Path:
    """A stand-in for a program; returns the file in which it writes its arguments."""
    calls = tools / f"{name}.calls"
    program = tools / name
    program.write_text(f'#!/bin/sh\necho "$@" >> "{calls}"\nexit {status}\n')
    program.chmod(0o755)
    return calls


PARTS = ("stimuli/**", "derivatives/sub-*/ieeg/*.fif")


def test_openneuro_py_is_called_with_version_and_parts(tools: Path, tmp_path: Path) -> None:
    calls = install(tools, "openneuro-py")
    install(tools, "datalad")
    plan = plan_fetch("mine", tmp_path / "to", download=archive_of("openneuro", include=PARTS))
    (command,) = plan.commands
    assert command.arguments == (
        "openneuro-py",
        "download",
        "--dataset=ds1",
        "--tag=1.0.2",
        f"--target-dir={tmp_path / 'to'}",
        "--include=stimuli/**",
        "--include=derivatives/sub-*/ieeg/*.fif",
    )
    assert not calls.exists()
    assert plan.run() == 0
    assert calls.read_text() == " ".join(command.arguments[1:]) + "\n"


def test_datalad_stands_in_for_openneuro_py(tools: Path, tmp_path: Path) -> None:
    install(tools, "datalad")
    to = tmp_path / "to"
    plan = plan_fetch("mine", to, download=archive_of("openneuro", include=PARTS))
    clone, checkout, install_parts, get = plan.commands
    source = "https://github.com/OpenNeuroDatasets/ds1.git"
    assert clone.arguments == ("datalad", "clone", source, str(to))
    assert checkout.arguments == ("git", "-C", str(to), "checkout", "1.0.2")
    folders = ("stimuli", "derivatives")
    assert install_parts.arguments == ("datalad", "-C", str(to), "get", "-n", "--", *folders)
    assert install_parts.globs == ()
    assert get.arguments == ("datalad", "-C", str(to), "get", "--")
    assert get.globs == PARTS
    assert plan.lacking == ""


def test_datalad_gets_the_files_that_match(tools: Path, tmp_path: Path) -> None:
    """Names are there after a clone, as links without content."""
    calls = install(tools, "datalad")
    to = tmp_path / "to"
    annexed = (
        "stimuli/words.csv",
        "stimuli/deep/er.wav",
        "stimuli/.git",
        "derivatives/sub-01/ieeg/a.fif",
        "derivatives/sub-01/ieeg/a.json",
        "sub-01/raw.edf",
        ".datalad/config",
    )
    for name in annexed:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).symlink_to("nowhere")
    download = archive_of("datalad", identifier="///somewhere", version="", include=PARTS)
    plan = plan_fetch("mine", to, download=download)
    assert [c.arguments[3:5] for c in plan.commands] == [("get", "-n"), ("get", "--")]
    plan.run()
    wanted = "derivatives/sub-01/ieeg/a.fif stimuli/deep/er.wav stimuli/words.csv"
    assert calls.read_text().splitlines() == [
        f"-C {to} get -n -- stimuli derivatives",
        f"-C {to} get -- {wanted}",
    ]


def test_many_files_are_got_in_batches(tools: Path, tmp_path: Path) -> None:
    calls = install(tools, "datalad")
    to = tmp_path / "to"
    (to / ".datalad").mkdir(parents=True)
    for number in range(fetch_module.BATCH + 1):
        (to / f"{number:04}.txt").symlink_to("nowhere")
    plan_fetch("mine", to, download=archive_of("datalad", version="")).run()
    assert [len(line.split()) - 4 for line in calls.read_text().splitlines()] == [
        fetch_module.BATCH,
        1,
    ]


def test_parts_that_no_file_matches_are_told(tools: Path, tmp_path: Path) -> None:
    install(tools, "datalad")
    (tmp_path / "to/.datalad").mkdir(parents=True)
    download = archive_of("datalad", version="", include=("nothing/*",))
    with pytest.raises(FetchError, match="no file of those that a study reads") as caught:
        plan_fetch("mine", tmp_path / "to", download=download).run()
    assert "nothing/*" in str(caught.value)


def test_a_part_that_no_file_matches_is_told_beside_others(tools: Path, tmp_path: Path) -> None:
    """What can be got is got; the call still fails, and names the part."""
    calls = install(tools, "datalad")
    to = tmp_path / "to"
    (to / ".datalad").mkdir(parents=True)
    (to / "words.csv").symlink_to("nowhere")
    download = archive_of("datalad", version="", include=("*.csv", "derivatives/x/*.fif"))
    with pytest.raises(FetchError, match="no file of some parts") as caught:
        plan_fetch("mine", to, download=download).run()
    assert "nothing that fits derivatives/x/*.fif; 1 files of other parts" in str(caught.value)
    assert calls.read_text().splitlines() == [
        f"-C {to} get -n -- derivatives/x",
        f"-C {to} get -- words.csv",
    ]


@pytest.mark.parametrize(
    ("glob", "folder"),
    [
        ("stimuli", "stimuli"),
        ("stimuli/**", "stimuli"),
        ("participants.tsv", ""),
        ("a/b/c.json", "a/b"),
        ("sub-*/func/*.tsv", ""),
        ("derivatives/afni/sub-0[12]/x.nii.gz", "derivatives/afni"),
        ("**/*", ""),
    ],
)
def test_the_folder_of_a_part(glob: str, folder: str) -> None:
    assert fetch_module._folder_of(glob) == folder


def test_a_shown_command_works_in_a_shell_anywhere(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell expands globs in the dataset's folder, wherever it is itself."""
    calls = install(tools, "datalad")
    to = tmp_path / "my data"
    for name in ("stimuli/words.csv", "stimuli/deep/er.wav", "derivatives/sub-01/ieeg/a.fif"):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    plan = plan_fetch("mine", to, download=archive_of("datalad", version="", include=PARTS))
    shown = command_text(plan.commands[-1])
    subprocess.run(["/bin/sh", "-c", shown], check=True)
    assert calls.read_text() == "get -- stimuli derivatives/sub-01/ieeg/a.fif\n"


def test_dandi_is_called_with_the_version(tools: Path, tmp_path: Path) -> None:
    install(tools, "dandi")
    download = archive_of("dandi", identifier="000123", version="0.240101.1200")
    (command,) = plan_fetch("mine", tmp_path / "to", download=download).commands
    assert command.arguments == (
        "dandi",
        "download",
        f"--output-dir={tmp_path / 'to'}",
        "--existing=refresh",
        "DANDI:000123/0.240101.1200",
    )


@pytest.mark.parametrize(
    ("method", "install_it"),
    [
        ("openneuro", "pip install openneuro-py"),
        ("datalad", "install DataLad"),
        ("dandi", "pip install dandi"),
    ],
)
def test_a_tool_that_is_not_installed_is_named(
    tools: Path, tmp_path: Path, method: str, install_it: str
) -> None:
    plan = plan_fetch("mine", tmp_path / "to", download=archive_of(method))
    assert plan.commands
    assert plan.lacking.startswith(install_it)
    with pytest.raises(FetchError, match="cannot be run") as caught:
        plan.run()
    assert install_it in str(caught.value)
    assert not (tmp_path / "to").exists()


def test_a_tool_beside_the_running_python_is_found(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tools, "openneuro-py")
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    (command,) = plan_fetch("mine", tmp_path, download=archive_of("openneuro")).commands
    assert command.arguments[0] == str(tools / "openneuro-py")


def test_a_tool_that_fails_is_an_error(tools: Path, tmp_path: Path) -> None:
    install(tools, "openneuro-py", status=3)
    plan = plan_fetch("mine", tmp_path / "to", download=archive_of("openneuro"))
    with pytest.raises(FetchError, match="did not come to its end") as caught:
        plan.run()
    assert "exit status 3" in str(caught.value)
    assert "openneuro-py download --dataset=ds1" in str(caught.value)


def test_words_for_a_version_are_no_tag(tools: Path, tmp_path: Path) -> None:
    install(tools, "openneuro-py")
    download = archive_of("openneuro", version="1.0 (2024)")
    (command,) = plan_fetch("mine", tmp_path, download=download).commands
    assert not any(a.startswith("--tag") for a in command.arguments)


# --- What cannot be fetched --------------------------------------------------------------------


def test_data_that_only_a_person_can_get(tmp_path: Path) -> None:
    plan = plan_fetch("mine", tmp_path, download=archive_of("manual", steps=("ask",)))
    assert plan.by_hand
    with pytest.raises(FetchError, match="cannot be run") as caught:
        plan.run()
    assert "https://example.org" in str(caught.value)


def test_a_reader_without_a_source(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="'simulated' has no official download"):
        plan_fetch("simulated", tmp_path)


@pytest.mark.parametrize("entry", DATASETS.entries(), ids=lambda entry: entry.name)
def test_every_reader_with_a_source_has_a_plan(entry: object, tmp_path: Path) -> None:
    download = entry.plugin.download  # type: ignore[attr-defined]
    if download is None:
        return
    for fact in (download.version + download.identifier, download.size, download.licence):
        assert fact
    assert download.homepage.startswith("https://")
    plan = plan_fetch(entry.name, tmp_path / "to")  # type: ignore[attr-defined]
    assert plan.commands or plan.files or download.steps
    assert not (tmp_path / "to").exists()
