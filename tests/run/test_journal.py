"""Log and status of a run, with real files, a real second process, and a real kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lpact.analyses.lpact.plan.stages import BRAINS, LEVELS
from lpact.run.executors.local import TaskFailure, TaskRecord
from lpact.run.journal import MOST_FAILURES, Journal
from lpact.run.progress import Estimate, Reporter
from lpact.run.status import LOG_NAME, STATUS_NAME, StatusFile, read_log, read_status, summarise_log

AWKWARD = 'sub[red]-01 "\\ \n\x1b[31m\x00\u2028 é \ud800'
EXPECTED = {BRAINS: 10.0, LEVELS: 30.0}


class Recorder(Reporter):
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.said: list[str] = []
        self.estimates: list[Estimate] = []

    def stage(self, name: str, total: int) -> None:
        self.heard.append(("stage", name, total))

    def advance(self, steps: int = 1) -> None:
        self.heard.append(("advance", steps))

    def resumed(self, n: int) -> None:
        self.heard.append(("resumed", n))

    def overall(self, estimate: Estimate) -> None:
        self.estimates.append(estimate)

    def say(self, text: str) -> None:
        self.said.append(text)


def record(task: str = "brain/1", peak: int = 5_000, seconds: float = 0.25) -> TaskRecord:
    return TaskRecord(task, f"key-{task}", seconds, peak, 77, "worker-1")


def failure(task: str = "brain/2", what: str = "no data") -> TaskFailure:
    return TaskFailure(task, f"key-{task}", what, "Traceback\n  line", "worker-2")


@contextmanager
def journal(folder: Path, told: Reporter | None = None) -> Iterator[Journal]:
    made = Journal(
        folder,
        told or Reporter(),
        study="study",
        config_digest="c" * 64,
        workers=2,
        expected=EXPECTED,
    )
    try:
        yield made
    finally:
        made.close("finished")


def status_of(folder: Path) -> StatusFile:
    status = read_status(folder)
    assert status is not None
    return status


def test_a_run_that_could_not_be_published_corrects_its_last_word(tmp_path: Path) -> None:
    with journal(tmp_path) as told:
        told.stage(BRAINS, 1)
        told.finished(record())
        told.close("finished")
        told.close("failed", "the finished run cannot be moved to its place")
        told.close("finished")
    ends = [line for line in read_log(tmp_path / LOG_NAME) if line["event"] == "run_ended"]
    assert [(line["outcome"], bool(line["problem"])) for line in ends] == [
        ("finished", False),
        ("failed", True),
    ]
    status = status_of(tmp_path)
    assert (status.state, status.problem) == (
        "failed",
        "the finished run cannot be moved to its place",
    )


def test_the_log_of_a_run_has_every_event_in_order(tmp_path: Path) -> None:
    with journal(tmp_path) as told:
        told.stage(BRAINS, 3)
        told.resumed(1)
        told.finished(record())
        told.note("worker_lost", worker="worker-1", tasks=2)
        told.failed(failure())
        told.stage(LEVELS, 0)
        told.close("failed", "1 task failed")
    lines = list(read_log(tmp_path / LOG_NAME))
    assert [(line["event"], line["stage"]) for line in lines] == [
        ("run_started", ""),
        ("stage_started", BRAINS),
        ("resumed", BRAINS),
        ("task_finished", BRAINS),
        ("worker_lost", BRAINS),
        ("task_failed", BRAINS),
        ("stage_finished", BRAINS),
        ("stage_started", LEVELS),
        ("stage_finished", LEVELS),
        ("run_ended", ""),
    ]
    times = [datetime.fromisoformat(line["time"]) for line in lines]
    assert times == sorted(times)
    assert {t.utcoffset() for t in times} == {timedelta(0)}
    started, finished, failed = lines[0], lines[3], lines[5]
    assert started["pid"] == os.getpid()
    assert started["workers"] == 2
    assert started["config_digest"] == "c" * 64
    assert started["versions"]["python"] == sys.version.split()[0]
    assert started["host"]
    assert {k: finished[k] for k in ("task", "key", "seconds", "peak_bytes", "n_bytes")} == {
        "task": "brain/1",
        "key": "key-brain/1",
        "seconds": 0.25,
        "peak_bytes": 5_000,
        "n_bytes": 77,
    }
    assert finished["worker"] == "worker-1"
    assert (failed["what"], failed["trace"]) == ("no data", "Traceback\n  line")
    assert lines[6]["peak_bytes"] == 5_000
    assert {k: lines[6][k] for k in ("done", "resumed", "failed", "total")} == {
        "done": 3,
        "resumed": 1,
        "failed": 1,
        "total": 3,
    }
    assert (lines[-1]["outcome"], lines[-1]["problem"]) == ("failed", "1 task failed")


def test_the_status_follows_the_run(tmp_path: Path) -> None:
    with journal(tmp_path) as told:
        first = status_of(tmp_path)
        assert (first.state, first.stage, first.fraction) == ("running", "", 0.0)
        assert first.seconds_left == pytest.approx(40.0)
        told.stage(BRAINS, 4)
        told.resumed(2)
        told.finished(record())
        told.failed(failure())
        now = status_of(tmp_path)
        assert (now.state, now.stage, now.pid, now.workers) == ("running", BRAINS, os.getpid(), 2)
        (stage,) = now.stages
        assert (stage.total, stage.done, stage.resumed, stage.failed) == (4, 4, 2, 1)
        assert stage.peak_bytes == 5_000
        assert stage.own_peak_bytes > 1_000_000
        assert now.fraction is not None
        assert 0.0 < now.fraction < 0.9
        assert now.estimated_end is not None
        assert now.estimated_end > now.started_at
        assert [(f.task, f.key, f.what) for f in now.failures] == [("brain/2", "key-brain/2", "no data")]
        told.close("finished")
    last = status_of(tmp_path)
    assert (last.state, last.stage, last.fraction, last.seconds_left) == ("finished", "", 1.0, 0.0)


def test_a_reporter_hears_of_the_run(tmp_path: Path) -> None:
    heard = Recorder()
    with journal(tmp_path, heard) as told:
        told.stage(BRAINS, 9)
        told.resumed(5)
        told.finished(record())
        told.failed(failure())
        told.advance(2)
        told.close("finished")
    assert heard.heard == [
        ("stage", BRAINS, 9),
        ("resumed", 5),
        ("advance", 1),
        ("advance", 1),
        ("advance", 2),
    ]
    assert heard.estimates[0] == Estimate(0.0, pytest.approx(40.0))
    assert heard.estimates[-1] == Estimate(1.0, 0.0)
    assert heard.said == []


def test_a_plain_reporter_counts_what_was_resumed(tmp_path: Path) -> None:
    class Counter(Reporter):
        done = 0

        def advance(self, steps: int = 1) -> None:
            self.done += steps

    counter = Counter()
    with journal(tmp_path, counter) as told:
        told.stage(BRAINS, 9)
        told.resumed(5)
        told.finished(record())
    assert counter.done == 6


def test_peaks_are_of_workers_and_of_this_process(tmp_path: Path) -> None:
    with journal(tmp_path) as told:
        told.stage(BRAINS, 2)
        told.finished(record(peak=3 * 2**40))
        told.finished(record(peak=2**40))
        told.stage(LEVELS, 1)
        held = bytearray(b"x") * (200 << 20)
        told.finished(record(peak=1))
        told.close("finished")
        del held
    first, second = status_of(tmp_path).stages
    assert (first.peak_bytes, second.peak_bytes) == (3 * 2**40, 1)
    assert second.own_peak_bytes > 200 << 20
    assert second.own_peak_bytes >= first.own_peak_bytes


def test_text_stays_what_it_is(tmp_path: Path) -> None:
    with journal(tmp_path) as told:
        told.stage(AWKWARD, 2)
        told.finished(record(AWKWARD, seconds=float("nan")))
        told.failed(failure(AWKWARD, AWKWARD))
        told.note(AWKWARD, time=AWKWARD, stage="elsewhere")
        told.close("failed", AWKWARD)
    text = (tmp_path / LOG_NAME).read_bytes()
    assert text.count(b"\n") == len(text.splitlines()) == 7
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[2]["task"] == lines[3]["what"] == lines[4]["event"] == AWKWARD
    assert lines[2]["seconds"] == "nan"
    assert (lines[4]["given_time"], lines[4]["given_stage"]) == (AWKWARD, "elsewhere")
    assert lines[4]["stage"] == lines[1]["stage"] == AWKWARD
    status = status_of(tmp_path)
    assert status.failures[0].what == AWKWARD.replace("\ud800", "?")


def test_many_failures_are_counted_and_the_first_shown(tmp_path: Path) -> None:
    with journal(tmp_path) as told:
        told.stage(BRAINS, 100)
        for i in range(MOST_FAILURES + 7):
            told.failed(failure(f"brain/{i}", "x" * 100_000))
        assert told.n_failed == MOST_FAILURES + 7
    status = status_of(tmp_path)
    assert status.n_failed == MOST_FAILURES + 7
    assert [f.task for f in status.failures] == [f"brain/{i}" for i in range(MOST_FAILURES)]
    assert "98000 characters left out" in status.failures[0].what
    logged = summarise_log(tmp_path / LOG_NAME).failures
    assert len(logged) == MOST_FAILURES + 7
    assert logged[0]["what"] == "x" * 100_000


def test_closing_twice_keeps_the_first_word(tmp_path: Path) -> None:
    with journal(tmp_path) as told:
        told.close("failed", "one")
        told.close("finished")
    assert status_of(tmp_path).problem == "one"
    assert [line["event"] for line in read_log(tmp_path / LOG_NAME)] == ["run_started", "run_ended"]


def test_the_second_thread_ends_with_the_run(tmp_path: Path) -> None:
    def journals() -> list[threading.Thread]:
        return [t for t in threading.enumerate() if t.name == "lpact journal"]

    with journal(tmp_path):
        assert len(journals()) == 1
    assert journals() == []


def test_a_log_that_was_moved_is_written_to_the_end(tmp_path: Path) -> None:
    """Publishing moves the log and removes the working folder; neither comes back."""
    partial = tmp_path / "run.partial"
    partial.mkdir()
    heard = Recorder()
    with journal(partial, heard) as told:
        (partial / LOG_NAME).rename(tmp_path / LOG_NAME)
        (partial / STATUS_NAME).unlink()
        partial.rmdir()
        told.close("finished")
    assert list(read_log(tmp_path / LOG_NAME))[-1]["outcome"] == "finished"
    assert not partial.exists()
    assert heard.said == []


CHILD = """
import resource, sys
from pathlib import Path
from lpact.run.journal import Journal
from lpact.run.progress import reporter
from lpact.run.executors.local import TaskFailure, TaskRecord
from lpact.analyses.lpact.plan.stages import (BRAINS, LEVELS)
from lpact.store import FolderLock

folder = Path(sys.argv[1])
lock = FolderLock(folder)
"""

ENDLESS = (
    CHILD
    + """
with reporter(show=False) as told:
    journal = Journal(folder, told, study="study", config_digest="c" * 64, workers=2)
    journal.stage(BRAINS, 2)
    journal.failed(TaskFailure("brain/bad", "key-bad", "no data", "Traceback", "w"))
    journal.finished(TaskRecord("brain/good", "key-good", 0.1, 1000, 10, "w"))
    journal.stage(LEVELS, 10**9)
    n = 0
    while True:
        journal.finished(TaskRecord(f"level/{n}", f"key-{n}", 0.1, 2000, 10, "w"))
        n += 1
        print(n, flush=True)
"""
)


def test_nothing_that_was_told_is_lost_by_a_kill(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ENDLESS, tmp_path], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for _ in range(200):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    acknowledged = 200 + len(child.stdout.read().splitlines())
    child.wait()
    child.stdout.close()
    before = summarise_log(tmp_path / LOG_NAME)
    assert before.stages[LEVELS].n_finished >= acknowledged - 1  # the last number may be cut short
    assert [f["key"] for f in before.failures] == ["key-bad"]
    assert before.stages[LEVELS].seconds > 0.0
    assert status_of(tmp_path).state == "running"

    with (tmp_path / LOG_NAME).open("ab") as log:
        log.write(b'{"time": "2026-01-01T00:00:00+00:00", "event": "task_fin')
    with journal(tmp_path) as told:
        told.stage(LEVELS, 3)
        told.resumed(2)
        told.finished(record("level/again", peak=9_000))
        told.close("finished")
    lines = list(read_log(tmp_path / LOG_NAME))
    assert [line["event"] for line in lines[-6:]] == [
        "run_started",
        "stage_started",
        "resumed",
        "task_finished",
        "stage_finished",
        "run_ended",
    ]
    after = summarise_log(tmp_path / LOG_NAME)
    assert after.n_attempts == 2
    assert after.failures == []
    assert after.stages[LEVELS].n_finished == before.stages[LEVELS].n_finished + 1
    assert after.stages[LEVELS].peak_bytes == 9_000
    assert after.stages[BRAINS].n_failed == 1


FULL = (
    CHILD
    + """
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
with reporter(show=True) as told:
    journal = Journal(folder, told, study="study", config_digest="c" * 64, workers=2)
    journal.stage(BRAINS, 2000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_001, hard))
    for n in range(1000):
        journal.finished(TaskRecord(f"brain/{n}", f"key-{n}", 0.1, 1000, 10, "w"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    journal.finished(TaskRecord("brain/last", "key-last", 0.1, 1000, 10, "w"))
    journal.close("finished")
"""
)


def test_a_disk_that_takes_no_more_costs_lines_and_is_told_once(tmp_path: Path) -> None:
    """The system refuses every byte beyond a limit, in the middle of a line; later it has room again."""
    done = subprocess.run([sys.executable, "-c", FULL, tmp_path], capture_output=True, text=True, check=True)
    assert done.stderr.count("the run continues, and lines of its log are lost") == 1
    lines = list(read_log(tmp_path / LOG_NAME))
    kept = [line["task"] for line in lines if line["event"] == "task_finished"]
    assert len(kept) < 500
    assert kept == [*(f"brain/{n}" for n in range(len(kept) - 1)), "brain/last"]
    status = status_of(tmp_path)
    assert status.state == "finished"
    assert status.stages[0].done == 1001


def test_a_folder_that_cannot_be_written_does_not_end_a_run(tmp_path: Path) -> None:
    heard = Recorder()
    gone = tmp_path / "file"
    gone.write_text("in the way")
    with journal(gone, heard) as told:
        told.stage(BRAINS, 1)
        told.finished(record())
        told.close("finished")
    assert len(heard.said) == 2
    assert "log.jsonl cannot be written (Not a directory)" in heard.said[0]
    assert "status.json cannot be written (Not a directory)" in heard.said[1]


def test_the_status_is_replaced_now_and_then_not_for_every_task(tmp_path: Path) -> None:
    written: set[tuple[int, int]] = set()
    with journal(tmp_path) as told:
        told.stage(BRAINS, 5001)
        for _ in range(5000):
            told.finished(record())
            entry = (tmp_path / STATUS_NAME).stat()
            written.add((entry.st_ino, entry.st_mtime_ns))
        before = len(written)
        assert before < 1000
        told.failed(failure())
        entry = (tmp_path / STATUS_NAME).stat()
        assert (entry.st_ino, entry.st_mtime_ns) not in written, "a failure is told at once"


def test_a_long_task_leaves_a_sign_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lpact.run.journal.SECONDS_BETWEEN_STATUS", 0.01)
    with journal(tmp_path) as told:
        told.stage(BRAINS, 1)
        first = status_of(tmp_path).updated_at
        deadline = time.monotonic() + 30.0
        while status_of(tmp_path).updated_at <= first:
            assert time.monotonic() < deadline, "nothing was written while a task ran"
            time.sleep(0.005)


def test_memory_does_not_grow_with_tasks(tmp_path: Path) -> None:
    import tracemalloc

    with journal(tmp_path) as told:
        told.stage(BRAINS, 30_000)
        told.finished(record())
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for i in range(3_000):
                told.finished(record(f"brain/{i}"))
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
    assert grown < 60_000, "20 bytes a task would be a growing list"


def test_nobody_needs_a_log_to_read_one(tmp_path: Path) -> None:
    assert list(read_log(tmp_path / LOG_NAME)) == []
    (tmp_path / LOG_NAME).write_bytes(b'[1]\n{"event": 3}\n\xff\xfe\n' + b"[" * 100_000 + b"\n")
    assert summarise_log(tmp_path / LOG_NAME).n_attempts == 0
