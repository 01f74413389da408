"""``lpact status`` on runs in every state, and from another terminal while one goes on."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lpact.analyses.lpact.plan.stages import BRAINS, LEVELS
from lpact.report.folder import new_folder
from lpact.run.executors.local import TaskFailure, TaskRecord
from lpact.run.journal import Journal
from lpact.run.progress import Reporter
from lpact.run.status import LOG_NAME
from lpact.store import FolderLock
from tiny_study import Lpact, TinyRun

HOSTILE = "sub[red]-01\x1b[31m\x07"
PATIENCE_S = 60.0
COMMAND = [sys.executable, "-c", "from lpact.cli import main; main()", "status"]

Begin = Callable[[], Journal]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "my run"


@pytest.fixture
def begin(out: Path) -> Iterator[Begin]:
    """A run of this process, which holds the lock."""
    partial = out.with_name(f"{out.name}.partial")
    lock = FolderLock(partial)
    journals = []

    def made() -> Journal:
        journal = Journal(
            partial,
            Reporter(),
            study=HOSTILE,
            config_digest="c" * 64,
            workers=2,
            expected={BRAINS: 60.0, LEVELS: 3600.0},
        )
        journals.append(journal)
        journal.stage(BRAINS, 4)
        journal.resumed(3)
        journal.finished(TaskRecord("brain/1", "key-1", 1.0, 300 << 20, 10, "w"))
        journal.stage(LEVELS, 1234)
        return journal

    yield made
    for journal in journals:
        journal.close("interrupted")
    lock.release()


def fail(journal: Journal) -> None:
    what = f"no data\n  where: {HOSTILE}"
    trace = f"Traceback\n  File {HOSTILE}"
    journal.failed(TaskFailure(f"level/{HOSTILE}", "key-of-the-failure", what, trace, "w"))


def test_a_run_that_goes_on(lpact: Lpact, out: Path, begin: Begin) -> None:
    fail(begin())
    result = lpact("status", out)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "my run: running"
    assert lines[1].strip() == f"process {os.getpid()} on {os.uname().nodename}"
    assert "sub[red]-01\\x1b[31m\\x07 (configuration cccccccccccc), 2 workers" in lines[2]
    assert re.fullmatch(r"  overall \d+ %, .* left, ends .*\d\d:\d\d", lines[3])
    assert re.search(r"brain patterns +4/4 +3 +0 .* 300 MiB +[\d.]+ [MG]iB", result.stdout)
    assert re.search(r"levels 1 to 3 +1/1,234 +0 +1 ", result.stdout)
    assert "Failed tasks (1)" in result.stdout
    assert "level/sub[red]-01\\x1b[31m\\x07\n    key key-of-the-failure\n" in result.stdout
    assert "    no data\n      where: sub[red]-01\\x1b[31m\\x07\n" in result.stdout
    assert f"status '{out}' --traceback" in result.stdout
    assert "\x1b" not in result.stdout
    assert "\x07" not in result.stdout


def test_tracebacks_of_failed_tasks(lpact: Lpact, out: Path, begin: Begin) -> None:
    journal = begin()
    assert "No task of the last attempt failed" in lpact("status", out, "--traceback").stdout
    fail(journal)
    shown = lpact("status", out, "--traceback").stdout
    assert "(key key-of-the-failure)\n  Traceback\n    File sub[red]-01\\x1b[31m\\x07" in shown
    assert "\x1b" not in shown


def test_a_failed_run_and_what_to_do(lpact: Lpact, out: Path, begin: Begin) -> None:
    journal = begin()
    fail(journal)
    journal.close("failed", "1 task failed\n  second line")
    result = lpact("status", out)
    assert result.exit_code == 1
    assert lpact("status", out, "--json").exit_code == 1
    assert lpact("status", out, "--watch").exit_code == 1
    shown = result.stdout
    # What the tasks said stands with them, below.
    assert shown.startswith("my run: failed\n  1 task failed\n  sub[red]")
    assert "key key-of-the-failure" in shown
    assert "Run the same `lpact run` again to resume" in shown


def test_values_for_programs(lpact: Lpact, out: Path, begin: Begin) -> None:
    fail(begin())
    values = json.loads(lpact("status", out, "--json").stdout)
    assert (values["state"], values["process"]) == ("running", os.getpid())
    assert values["run"] == str(out)
    assert values["said"]["study"] == HOSTILE
    assert values["said"]["failures"][0]["key"] == "key-of-the-failure"
    assert Path(values["log"]).is_file()


def test_nothing_there(lpact: Lpact, out: Path) -> None:
    result = lpact("status", out)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: there is no run\n")
    assert "my run.partial next to it" in result.stderr
    out.mkdir()
    assert "a folder without a manifest" in lpact("status", out).stderr


def test_a_finished_run(lpact: Lpact, tiny_run: TinyRun, out: Path) -> None:
    shutil.copytree(tiny_run.folder, out)
    (out / LOG_NAME).unlink(missing_ok=True)
    without = lpact("status", out).stdout
    assert without.startswith("my run: finished\n  tiny (configuration ")
    assert re.search(r", \d+ tables, [\d,]+ rows\n  not locked; lpact lock ", without)
    assert "Claims by label (lpact)" in without
    assert "Stages" not in without
    with new_folder(out / "report"):
        writing = lpact("status", out)
    assert f"  process {os.getpid()} is writing its report\n" in writing.stdout
    assert writing.exit_code == 0
    assert "is writing its report" not in without

    (out / "lock.json").write_text("{}")
    for peak in (100, 250):
        journal = Journal(out, Reporter(), study="tiny", config_digest="c", workers=1)
        journal.stage(BRAINS, 2)
        journal.finished(TaskRecord("brain/1", "key", 1.0, peak << 20, 10, "w"))
        journal.close("finished")
    shown = lpact("status", out).stdout
    assert "  locked; lpact verify " in shown
    assert "Stages (2 attempts; memory: peak of one process)" in shown
    assert re.search(r"brain patterns +2 +less than a second +250 MiB +[\d.]+ [MG]iB", shown)
    values = json.loads(lpact("status", out, "--json").stdout)
    assert values["finished"]["locked"] is True
    assert sum(v["n"] for v in values["finished"]["verdicts"]) == 8
    assert values["history"]["stages"][BRAINS]["peak_bytes"] == 250 << 20


def test_watching_in_a_plain_log_ends_with_the_run(out: Path, begin: Begin) -> None:
    journal = begin()
    with subprocess.Popen([*COMMAND, out, "--watch"], stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        first = watcher.stdout.readline()
        journal.close("failed", "enough")
        rest, _ = watcher.communicate(timeout=PATIENCE_S)
    assert re.match(r"running; levels 1 to 3 0/1234; overall \d+ %, about ", first)
    assert "my run: failed\n  enough\n" in rest
    assert watcher.returncode == 1


def test_watching_on_a_terminal_until_the_reader_has_seen_enough(out: Path, begin: Begin) -> None:
    begin()
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    watcher = subprocess.Popen([*COMMAND, out, "--watch"], stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + PATIENCE_S
    while b"1,234" not in seen:
        assert time.monotonic() < deadline
        seen += os.read(ours, 65536)
    watcher.send_signal(signal.SIGINT)
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    assert watcher.wait(timeout=PATIENCE_S) == 0
    shown = seen.decode()
    assert "my run: running" in shown
    assert "Traceback" not in shown
    assert "interrupted" not in shown
