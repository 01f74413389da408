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
from victims import Breeder, Victim, finish, start, wait_for, workers_of

pytestmark = pytest.mark.stress

EARLY_KILLS = 4
WHOLE_KILLS = 34
COLD_KILLS = 4
WORKER_KILLS = 14


class Attempts:
    """All attempts at one run, seen from outside.

    Whatever lies in the working folder when a process has been killed must stay as it is: a result that is made again
    is another file.
    """

    def __init__(self, study: Path, out: Path) -> None:
        self.study, self.out, self.partial = study, out, partial_of(out)
        self.results: dict[str, int] = {}
        self.n_at_work = 0
        self.n_results_seen: set[int] = set()

    def look(self) -> None:
        """See that nothing was lost or made again."""
        now = results_in(self.partial)
        assert {name: now.get(name) for name in self.results} == self.results
        self.results = now

    def n_begun(self) -> int:
        """Attempts that have got as far as to write their log."""
        return len(events(self.partial, "run_started"))

    def killed(self, n: int = 1, *, at_work: bool = True) -> None:
        """Count kills that hit a run which had begun, and look at what any kill left."""
        self.n_at_work += n * at_work
        self.look()
        self.n_results_seen.add(len(self.results))
        assert not self.out.exists()


def kill_early(attempts: Attempts, breeder: Breeder, moments: random.Random, n: int) -> None:
    """Kill a run that is about to begin; some of these kills come before it has."""
    for _ in range(n):
        before = attempts.n_begun()
        victim = breeder.start(attempts.study, attempts.out)
        time.sleep(moments.uniform(0.0, 0.2))
        assert victim.poll() is None, victim.said()
        victim.kill()
        attempts.killed(at_work=attempts.n_begun() > before)


def kill_whole_runs(attempts: Attempts, breeder: Breeder, moments: random.Random, n: int) -> None:
    """Kill a run on one worker, again and again: once it has begun, or soon after a result was kept."""
    for i in range(n):
        before, had = attempts.n_begun(), len(attempts.results)
        victim = breeder.start(attempts.study, attempts.out)
        if i % 3:
            assert wait_for(lambda: len(results_in(attempts.partial)) > had, victim)  # noqa: B023
            time.sleep(moments.uniform(0.0, 0.15))
        else:
            assert wait_for(lambda: attempts.n_begun() > before, victim)  # noqa: B023
            time.sleep(moments.uniform(0.0, 0.25))
        assert victim.poll() is None, victim.said()
        victim.kill()
        assert attempts.n_begun() > before
        attempts.killed()


def kill_cold_runs(attempts: Attempts, moments: random.Random, n: int) -> None:
    """Kill runs with two workers that were started from nothing: the main process alone, or all of its group."""
    for i in range(n):
        before = attempts.n_begun()
        process = start(attempts.study, attempts.out, "--workers", 2)
        assert wait_for(lambda: attempts.n_begun() > before, process)  # noqa: B023
        time.sleep(moments.uniform(0.0, 2.0))
        if i % 2:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        attempts.killed()


def kill_workers(attempts: Attempts, victim: Victim, moments: random.Random, n: int) -> int:
    """Kill a worker or two, as they start or work; returns how many were killed before the run ended by itself."""
    n_killed, dead = 0, set[int]()
    while n_killed < n:
        # Two, or the one in which a task that was hit before is run alone.
        if not wait_for(lambda: bool({*workers_of(victim)} - dead), victim):
            break
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
        n_killed += len(doomed)
        dead.update(found)
        attempts.killed(len(doomed))
    return n_killed


def test_fifty_kills_cost_no_finished_task_and_no_byte(tmp_path: Path) -> None:
    study = write_study(tmp_path, subjects=26, layers=(1, 2))
    attempts = Attempts(study, tmp_path / "run")
    moments = random.Random(8)
    with Breeder(tmp_path) as breeder:
        kill_early(attempts, breeder, moments, EARLY_KILLS)
        kill_whole_runs(attempts, breeder, moments, WHOLE_KILLS)
        kill_cold_runs(attempts, moments, COLD_KILLS)
        left = WORKER_KILLS
        while left > 0:
            assert not attempts.out.exists(), "nothing is left to be killed"
            victim = breeder.start(study, attempts.out, workers=2)
            left -= kill_workers(attempts, victim, moments, left)
            assert victim.wait() in (0, 2), victim.said()
        undisturbed = tmp_path / "undisturbed"
        assert breeder.start(study, undisturbed).wait() == 0
    if not attempts.out.exists():
        # A task whose process was killed too often was given up: the same command finishes it.
        attempts.look()
        finish(start(study, attempts.out))

    assert attempts.n_at_work >= 50
    assert len(attempts.n_results_seen) >= 15, "the kills fell on the same few moments"
    assert_same_run(attempts.out, undisturbed)
    assert computed(undisturbed)
    finished = computed(attempts.out)
    assert len(finished) == len(set(finished)), "a task was finished twice"
    # A result that was kept just before its process died has no line in the log, and is not made again.
    assert set(finished) <= set(computed(undisturbed))
    assert {*attempts.results, *finished} == set(computed(undisturbed))
