"""How a run is doing, asked from outside: a process that really runs, stops, and is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lpact.errors import RunError
from lpact.run.status import (
    LOG_NAME,
    STATUS_FORMAT,
    STATUS_NAME,
    process_namespace,
    read_status,
    run_status,
)
from lpact.store import FolderLock
from lpact.store.disk import LOCK_NAME, holder
from lpact.study import Run

PATIENCE_S = 60.0
HOST = os.uname().nodename

WAITS = """
import sys
from pathlib import Path
from lpact.run.journal import Journal
from lpact.run.progress import Reporter
from lpact.store import FolderLock

folder = Path(sys.argv[1])
lock = FolderLock(folder)
print("locked", flush=True)
sys.stdin.readline()
journal = Journal(folder, Reporter(), study="study", config_digest="c" * 64, workers=2)
journal.stage("brain patterns", 4)
journal.advance()
print("began", flush=True)
sys.stdin.readline()
journal.close("interrupted", "stopped by the user")
print("closed", flush=True)
sys.stdin.readline()
"""


class Child:
    """A run that goes on by one step when told to."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WAITS, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hears(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def goes_on(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.hears()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def partial(out: Path) -> Path:
    return out.with_name("run.partial")


@pytest.fixture
def child(partial: Path) -> Iterator[Child]:
    made = Child(partial)
    assert made.hears() == "locked"
    yield made
    made.end()


def said(partial: Path, **changes: Any) -> None:
    """A status file as some run may have left it."""
    partial.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "format": STATUS_FORMAT,
        "state": "running",
        "problem": "",
        "study": "study",
        "config_digest": "c" * 64,
        "workers": 2,
        "pid": 2**22 + 1,
        "host": HOST,
        "namespace": process_namespace(),
        "stage": "",
        "stages": [],
        "fraction": None,
        "seconds_left": None,
        "estimated_end": None,
        "n_failed": 0,
        "failures": [],
        "started_at": now.isoformat(),
        "updated_at": now.isoformat(),
    }
    (partial / STATUS_NAME).write_text(json.dumps(values | changes))


def test_from_its_first_breath_to_its_violent_end(child: Child, out: Path, partial: Path) -> None:
    process = child.process.pid
    status = run_status(out)
    assert (status.state, status.process, status.said) == ("running", process, None)
    assert "has not written a status yet" in status.why

    assert child.goes_on() == "began"
    status = run_status(out)
    assert (status.state, status.process) == ("running", process)
    assert status.why == f"process {process} on {HOST}"
    deadline = time.monotonic() + PATIENCE_S
    while (said := run_status(out).said) is None or said.stages[0].done < 1:
        assert time.monotonic() < deadline, "the last step before a pause is told, too"
        time.sleep(0.05)
    assert (said.stage, said.stages[0].total) == ("brain patterns", 4)
    assert run_status(partial).out == out, "the working folder is a name of the run, too"

    child.process.send_signal(signal.SIGSTOP)
    later = datetime.now(UTC) + timedelta(minutes=10)
    stopped = run_status(out, now=later)
    assert stopped.state == "running"
    assert "last update 6" in stopped.why
    child.process.send_signal(signal.SIGCONT)

    child.end()
    status = run_status(out)
    assert (status.state, status.process) == ("interrupted", None)
    assert status.why.startswith(f"process {process} ended without a message")


def test_a_run_that_said_why_it_ended(child: Child, out: Path) -> None:
    assert child.goes_on() == "began"
    assert child.goes_on() == "closed"
    child.end()
    status = run_status(out)
    assert (status.state, status.why) == ("interrupted", "stopped by the user")


def test_asking_takes_nothing_and_makes_nothing(out: Path, partial: Path) -> None:
    """A thousand questions, and a lock that can be taken, given back and taken between any two of them."""
    with pytest.raises(RunError, match="there is no run"):
        run_status(out)
    assert not partial.exists()
    for _ in range(100):
        lock = FolderLock(partial)
        assert holder(partial) == os.getpid()
        before = sorted(p.name for p in partial.iterdir())
        assert run_status(out).process == os.getpid()
        lock.release()
        assert holder(partial) is None
        assert sorted(p.name for p in partial.iterdir()) == before == [LOCK_NAME]


def test_a_new_attempt_is_not_told_by_the_words_of_the_old_one(child: Child, out: Path, partial: Path) -> None:
    said(partial, state="failed", problem="old trouble")
    status = run_status(out)
    assert (status.state, status.process, status.said) == ("running", child.process.pid, None)
    child.end()
    assert (run_status(out).state, run_status(out).why) == ("failed", "old trouble")


@pytest.mark.parametrize("place", [{"host": "elsewhere"}, {"namespace": "pid:[1]"}])
def test_a_run_on_another_machine_is_judged_by_its_last_word(out: Path, partial: Path, place: dict[str, str]) -> None:
    said(partial, pid=77, **place)
    fresh = run_status(out)
    assert (fresh.state, fresh.process) == ("running", None)
    assert f"which cannot be seen from {HOST}; last update 0 s ago" in fresh.why
    late = run_status(out, now=datetime.now(UTC) + timedelta(hours=1))
    assert late.state == "silent"
    assert "last update 3600 s ago; a live run writes every few seconds" in late.why


def test_a_run_that_was_not_published_is_not_finished(out: Path, partial: Path) -> None:
    said(partial, state="finished")
    assert (run_status(out).state, run_status(out).why) == (
        "interrupted",
        "everything is computed, but it was not published",
    )


@pytest.mark.parametrize("damage", [b"", b"{", b'{"format": 1}', b"\xff", b"[" * 9999])
def test_a_damaged_status_is_none(out: Path, partial: Path, damage: bytes) -> None:
    said(partial)
    assert read_status(partial) is not None
    (partial / STATUS_NAME).write_bytes(damage)
    (partial / LOG_NAME).touch()
    assert read_status(partial) is None
    assert run_status(out).state == "interrupted"


@pytest.mark.parametrize("content", [b"", b"x", b"-1", b"0", b"9" * 30, b"1\n"])
def test_a_lock_file_that_says_anything_is_held_by_nobody(partial: Path, content: bytes) -> None:
    partial.mkdir()
    (partial / LOCK_NAME).write_bytes(content)
    assert holder(partial) is None


def test_without_a_list_of_locks_a_living_process_holds_its_lock(
    child: Child, partial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lpact.store.disk._LOCKS", tmp_path / "no such file")
    assert holder(partial) == child.process.pid
    child.end()
    assert holder(partial) is None


def test_a_finished_run_is_finished_whatever_lies_beside_it(small_run: Run, out: Path, partial: Path) -> None:
    said(partial)
    shutil.copytree(small_run.root, out)
    assert run_status(out).state == "finished"
    (out / "manifest.json").unlink()
    assert run_status(out).state == "interrupted"
