"""`kill -9` at any moment: what was finished is not computed again, and the bytes are those of a quiet run."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from survivors import (
    assert_same_run,
    computed,
    events,
    partial_of,
    results_in,
    write_study,
)
from victims import Breeder, finish, start, wait_for, workers_of

pytestmark = pytest.mark.stress

MOST_RUNS = 12


class Attempts:
    """Runs of one study, one after the other, seen from outside.

    Whatever lies in the working folder when a process has been killed must stay as it is: a result that is made again
    is another file. A run that ended before its kill is compared with the undisturbed one, and the next one begins:
    how many runs it takes to receive all kills depends on the machine.
    """

    def __init__(self, study: Path, folder: Path, undisturbed: Path) -> None:
        self.study, self.folder, self.undisturbed = study, folder, undisturbed
        self.n_runs = self.n_at_work = 0
        self.n_results_seen: set[int] = set()
        self.begin()

    def begin(self) -> None:
        """The next run."""
        self.out = self.folder / f"run_{self.n_runs}"
        self.partial, self.results = partial_of(self.out), dict[str, int]()
        self.n_runs += 1

    def look(self) -> None:
        """See that nothing was lost or made again."""
        now = results_in(self.partial)
        assert {name: now.get(name) for name in self.results} == self.results
        self.results = now

    def n_begun(self) -> int:
        """Attempts that have got as far as to write their log."""
        return len(events(self.partial, "run_started"))

    def killed(self, n: int = 1, *, at_work: bool = True) -> bool:
        """Count kills that hit a run which had begun; look at what any kill left. False: the run had ended before."""
        if self.out.exists():
            self.check()
            self.begin()
            return False
        self.n_at_work += n * at_work
        self.look()
        self.n_results_seen.add(len(self.results))
        return True

    def check(self) -> None:
        """The run equals the undisturbed one, and no task of it was finished twice."""
        assert_same_run(self.out, self.undisturbed)
        expected, finished = set(computed(self.undisturbed)), computed(self.out)
        assert expected
        assert len(finished) == len(set(finished)), "a task was finished twice"
        # A result that was kept just before its process died has no line in the log, and is not made again.
        assert set(finished) <= expected
        assert {*self.results, *finished} == expected


def kill_early(attempts: Attempts, breeder: Breeder, moments: random.Random) -> int:
    """Kill a run that is about to begin; some of these kills come before it has."""
    before = attempts.n_begun()
    victim = breeder.start(attempts.study, attempts.out)
    time.sleep(moments.uniform(0.0, 0.2))
    victim.kill()
    return attempts.killed(at_work=attempts.n_begun() > before)


def kill_at_start(attempts: Attempts, breeder: Breeder, moments: random.Random) -> int:
    """Kill a run on one worker once it has begun."""
    before = attempts.n_begun()
    victim = breeder.start(attempts.study, attempts.out)
    wait_for(lambda: attempts.n_begun() > before, victim)
    time.sleep(moments.uniform(0.0, 0.25))
    victim.kill()
    return attempts.killed()


def kill_after_result(attempts: Attempts, breeder: Breeder, moments: random.Random) -> int:
    """Kill a run on one worker soon after a result was kept."""
    had = len(attempts.results)
    victim = breeder.start(attempts.study, attempts.out)
    wait_for(lambda: len(results_in(attempts.partial)) > had, victim)
    time.sleep(moments.uniform(0.0, 0.15))
    victim.kill()
    return attempts.killed()


def kill_cold(attempts: Attempts, breeder: Breeder, moments: random.Random) -> int:
    """Kill a run with two workers that was started from nothing: the main process alone, or all of its group."""
    before = attempts.n_begun()
    process = start(attempts.study, attempts.out, "--workers", 2)
    wait_for(lambda: attempts.n_begun() > before, process)
    time.sleep(moments.uniform(0.0, 2.0))
    with suppress(ProcessLookupError):
        moments.choice([os.kill, os.killpg])(process.pid, signal.SIGKILL)
    process.communicate()
    return attempts.killed()


def kill_workers(attempts: Attempts, breeder: Breeder, moments: random.Random) -> int:
    """Kill workers of a run, one or two at a time, as they start or work; returns how many until the run ended."""
    victim = breeder.start(attempts.study, attempts.out, workers=2)
    n_killed, dead = 0, set[int]()
    # Two, or the one in which a task that was hit before is run alone.
    while wait_for(lambda: bool({*workers_of(victim)} - dead), victim):
        if moments.random() < 0.5:
            had = len(results_in(attempts.partial))
            wait_for(lambda: len(results_in(attempts.partial)) > had, victim)  # noqa: B023
            time.sleep(moments.uniform(0.0, 0.1))
        else:
            time.sleep(moments.uniform(0.0, 1.0))
        found = [pid for pid in workers_of(victim) if pid not in dead]
        doomed = moments.sample(found, min(len(found), moments.choice([1, 2])))
        for pid in doomed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        dead.update(found)
        if doomed and not attempts.out.exists():
            n_killed += len(doomed) * attempts.killed(len(doomed))
    assert victim.wait() in (0, 2), victim.said()
    if attempts.out.exists():
        attempts.killed(0)
    return n_killed


KILLS = {kill_early: 4, kill_at_start: 12, kill_after_result: 22, kill_cold: 4, kill_workers: 14}
"""Kills of each kind; those that come when a run has ended do not count."""


@pytest.mark.slow
def test_fifty_kills_cost_no_finished_task_and_no_byte(tmp_path: Path) -> None:
    study = write_study(tmp_path, subjects=20, layers=(1, 2))
    moments = random.Random(8)
    with Breeder(tmp_path) as breeder:
        undisturbed = tmp_path / "undisturbed"
        assert breeder.start(study, undisturbed).wait() == 0
        attempts = Attempts(study, tmp_path, undisturbed)
        for kill, n in KILLS.items():
            left = n
            while left > 0:
                left -= kill(attempts, breeder, moments)
                assert attempts.n_runs <= MOST_RUNS, "runs end before they can be killed"
    # Tasks whose process was killed too often were given up: the same command finishes them.
    attempts.look()
    finish(start(study, attempts.out))
    attempts.check()
    assert attempts.n_at_work >= 50
    assert len(attempts.n_results_seen) >= 15, "the kills fell on the same few moments"
