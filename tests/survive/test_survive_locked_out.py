"""One process an output folder: another one is refused at once, and the first is unharmed."""

from __future__ import annotations

import os
import re
import signal

import pytest
from survivors import assert_same_run, events, partial_of, results_in
from typer.testing import CliRunner
from victims import start, wait_for

from lpact.cli import app

BUSY = "another process is making this run"


def lpact_command(*args: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_a_second_run_is_refused_with_the_holders_process(undisturbed, breeder, tmp_path) -> None:
    out = tmp_path / "run"
    first = breeder.start(undisturbed.study, out)
    assert wait_for(lambda: bool(results_in(partial_of(out))), first)
    os.kill(first.pid, signal.SIGSTOP)  # stopped, so that it cannot end meanwhile
    before = {p: p.read_bytes() for p in partial_of(out).rglob("*.task")}
    try:
        code, said = lpact_command("run", undisturbed.study, "--out", out, "--no-progress")
        assert code == 2
        assert BUSY in said
        assert f"a lock held by process {first.pid}" in said
        # Commands on finished runs have nothing to take here, and leave it alone.
        for name in ("report", "lock", "verify", "claims"):
            code, said = lpact_command(name, partial_of(out))
            assert code == 2, (name, said)
            assert "not a finished run" in said, (name, said)
        assert len(events(partial_of(out), "run_started")) == 1
        assert {p: p.read_bytes() for p in partial_of(out).rglob("*.task")} == before
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert first.wait() == 0, first.said()
    assert_same_run(out, undisturbed.run)


@pytest.mark.stress
def test_two_that_start_together_leave_one_run(undisturbed, tmp_path) -> None:
    out = tmp_path / "run"
    both = [start(undisturbed.study, out) for _ in range(2)]
    for process in both:
        process.said = "".join(process.communicate())  # type: ignore[attr-defined]
    codes = {process.pid: process.returncode for process in both}
    said = {process.pid: process.said for process in both}  # type: ignore[attr-defined]
    assert 0 in codes.values(), said
    for pid, code in codes.items():
        (other,) = codes.keys() - {pid}
        if code:
            assert code == 2
            assert BUSY in said[pid]
            assert re.search(rf"a lock held by process ({other}|unknown)\b", said[pid])
        else:  # it made the run, or came when the other had made it
            assert codes[other] == 2 or "complete: nothing to compute" in said[pid] + said[other]
    assert_same_run(out, undisturbed.run)


def test_the_lock_of_a_dead_process_holds_nobody_up(undisturbed, breeder, tmp_path) -> None:
    out = tmp_path / "run"
    first = breeder.start(undisturbed.study, out)
    assert wait_for(lambda: bool(results_in(partial_of(out))), first)
    first.kill()
    assert (partial_of(out) / "lock").read_text() == f"{first.pid}\n"
    assert breeder.start(undisturbed.study, out).wait() == 0
    assert_same_run(out, undisturbed.run)
