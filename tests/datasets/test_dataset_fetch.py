"""Official downloads: plans, files from a local server, and what goes wrong."""

from __future__ import annotations

import hashlib
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from lpact.cli.datasets import command_text
from lpact.datasets import fetch as fetch_module
from lpact.datasets.base import DATASETS
from lpact.datasets.catalogue import Download, RemoteFile
from lpact.datasets.fetch import fetch_file, plan_fetch
from lpact.errors import FetchError

# pooch leaves it to the garbage collector to close the connection of a failed download.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

CONTENT = np.random.default_rng(3).bytes(300_000)
SHA = hashlib.sha256(CONTENT).hexdigest()


class FileServer:
    """Serves ``CONTENT`` under any name. Each entry of ``faults`` is for one request: a status, or a cut in bytes."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.faults: list[int] = []
        self.address = ""

    def file(self, name: str = "a.bin", **facts: object) -> RemoteFile:
        known = {"n_bytes": len(CONTENT), "sha256": SHA} | facts
        return RemoteFile(f"{self.address}/{name}", f"data/{name}", **known)  # type: ignore[arg-type]


@pytest.fixture
def server() -> Iterator[FileServer]:
    running = FileServer()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            running.requests.append(self.path)
            fault = running.faults.pop(0) if running.faults else len(CONTENT)
            if fault < 600:
                self.send_error(fault)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(CONTENT[:fault])

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    running.address = f"http://127.0.0.1:{httpd.server_address[1]}"
    yield running
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)


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


# --- Files over HTTPS --------------------------------------------------------------------------


def test_a_plan_fetches_nothing(server: FileServer, tmp_path: Path) -> None:
    plan = plan_fetch("mine", tmp_path / "to", download=official(server.file()))
    assert plan.n_bytes_left == len(CONTENT)
    assert not plan.by_hand
    assert server.requests == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_fetched_once(server: FileServer, tmp_path: Path) -> None:
    plan = plan_fetch("mine", tmp_path, download=official(server.file()))
    assert plan.run() == 1
    assert names(tmp_path) == ["data/a.bin"]
    assert (tmp_path / "data/a.bin").read_bytes() == CONTENT
    assert plan.n_bytes_left == 0
    assert plan.run() == 0
    assert len(server.requests) == 1


def test_progress_counts_files(server: FileServer, tmp_path: Path) -> None:
    class Seen:
        total = done = 0

        def stage(self, name: str, total: int) -> None:
            self.total = total

        def advance(self, steps: int = 1) -> None:
            self.done += steps

    seen = Seen()
    files = (server.file("a.bin"), server.file("b.bin"))
    assert plan_fetch("mine", tmp_path, download=official(*files)).run(seen) == 2
    assert (seen.total, seen.done) == (2, 2)


@pytest.mark.parametrize("faults", [[100_000], [503, 429]], ids=["cut", "busy"])
def test_a_failed_download_is_repeated(server: FileServer, tmp_path: Path, faults: list[int]) -> None:
    server.faults = list(faults)
    assert fetch_file(server.file(), tmp_path)
    assert (tmp_path / "data/a.bin").read_bytes() == CONTENT
    assert len(server.requests) == len(faults) + 1


@pytest.mark.parametrize("fault", [404, 100_000])
def test_a_download_that_keeps_failing_leaves_nothing(server: FileServer, tmp_path: Path, fault: int) -> None:
    server.faults = [fault] * 9
    file = server.file(sha256="", n_bytes=None)
    with pytest.raises(FetchError, match="could not be downloaded") as caught:
        fetch_file(file, tmp_path, retries=1)
    assert file.url in str(caught.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("facts", "message"),
    [({"sha256": "0" * 64}, SHA), ({"sha256": "", "n_bytes": 3}, "300,000 bytes")],
)
def test_a_wrong_checksum_or_size_leaves_nothing(
    server: FileServer, tmp_path: Path, facts: dict[str, object], message: str
) -> None:
    with pytest.raises(FetchError) as caught:
        fetch_file(server.file(**facts), tmp_path, retries=0)
    assert message in str(caught.value)
    assert names(tmp_path) == []


def test_another_file_is_not_overwritten(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.bin").write_bytes(b"mine")
    with pytest.raises(FetchError, match="another file with this name exists"):
        fetch_file(server.file(), tmp_path)
    assert (tmp_path / "data/a.bin").read_bytes() == b"mine"
    assert server.requests == []


@pytest.mark.parametrize("path", ["../out.bin", "/etc/out.bin", "a/../../out.bin", "", "..\\out.bin", "out/b.bin"])
def test_no_file_is_written_outside(server: FileServer, tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    file = RemoteFile(server.file().url, path)
    with pytest.raises(FetchError, match="would be written outside the folder"):
        plan_fetch("mine", root, download=official(file))
    with pytest.raises(FetchError, match="would be written outside the folder"):
        fetch_file(file, root)
    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    ["http://example.org/a.bin", "ftp://example.org/a.bin", "file:///etc/passwd", "https://"],
)
def test_addresses_are_https(url: str, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="is not HTTPS"):
        plan_fetch("mine", tmp_path, download=official(RemoteFile(url, "a.bin")))


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
    with pytest.raises(FetchError, match="no file for some parts") as caught:
        plan_fetch("mine", tmp_path / "to", download=download).run()
    assert "nothing/*" in str(caught.value)


def test_a_part_that_no_file_matches_is_told_beside_others(tools: Path, tmp_path: Path) -> None:
    """What can be got is got; the call still fails, and names the part."""
    calls = install(tools, "datalad")
    to = tmp_path / "to"
    (to / ".datalad").mkdir(parents=True)
    (to / "words.csv").symlink_to("nowhere")
    download = archive_of("datalad", version="", include=("*.csv", "derivatives/x/*.fif"))
    with pytest.raises(FetchError, match="no file for some parts") as caught:
        plan_fetch("mine", to, download=download).run()
    assert "1 files; none matches derivatives/x/*.fif" in str(caught.value)
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


@pytest.mark.parametrize(
    ("method", "install_it"),
    [
        ("openneuro", "pip install openneuro-py"),
        ("datalad", "install DataLad"),
    ],
)
def test_a_tool_that_is_not_installed_is_named(tools: Path, tmp_path: Path, method: str, install_it: str) -> None:
    plan = plan_fetch("mine", tmp_path / "to", download=archive_of(method))
    assert plan.commands
    assert plan.lacking.startswith(install_it)
    with pytest.raises(FetchError, match="cannot run") as caught:
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
    with pytest.raises(FetchError, match="a program failed") as caught:
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
    with pytest.raises(FetchError, match="cannot run") as caught:
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
