"""`kill -9` between the last task and the end: a run is there complete, or not at all."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest
from survivors import assert_same_run, computed, contents, events, partial_of
from victims import wait_for

from lpact.run.progress import DECISION, TABLES
from lpact.store import read_manifest

pytestmark = pytest.mark.stress

KILLS = 12


def n_tables_in(partial: Path) -> int:
    """Tables that are written; the folder may be moved away meanwhile."""
    try:
        return len(list(partial.glob("run/*/*.parquet")))
    except FileNotFoundError:
        return 0


def test_kills_while_tables_are_written_and_moved(undisturbed, breeder, tmp_path) -> None:
    expected, out = contents(undisturbed.run), tmp_path / "run"
    partial = partial_of(out)
    moments = random.Random(3)
    n_tasks = len(computed(undisturbed.run))
    n_tables = sum(name.endswith(".parquet") for name in expected)
    n_written: set[int] = set()

    def has_begun(stage: str, n: int) -> bool:
        return sum(e["stage"] == stage for e in events(partial, "stage_started")) > n

    for i in range(KILLS):
        stage = TABLES if i % 3 else DECISION
        n_begun = sum(e["stage"] == stage for e in events(partial, "stage_started"))
        goal = moments.randrange(n_tables)
        victim = breeder.start(undisturbed.study, out)
        wait_for(lambda: has_begun(stage, n_begun), victim)  # noqa: B023
        if stage == TABLES:
            wait_for(lambda: n_tables_in(partial) >= goal, victim)  # noqa: B023
        time.sleep(moments.uniform(0.0, 0.05))
        victim.kill()
        if out.exists():
            assert contents(out) == expected
            shutil.rmtree(out)
        else:
            n_written.add(n_tables_in(partial))
            assert len(computed(partial)) == n_tasks
    assert len(n_written) >= KILLS // 3, "the kills fell on the same few moments"
    assert breeder.start(undisturbed.study, out).wait() == 0
    assert_same_run(out, undisturbed.run)
    assert len(computed(out)) == n_tasks


@pytest.mark.parametrize("left", ["all", "lock", "nothing but the folder"])
def test_what_a_kill_at_the_last_step_leaves_is_removed(undisturbed, breeder, tmp_path, left) -> None:
    """The run is published, and the process that removes its working folder is killed."""
    out = tmp_path / "run"
    shutil.copytree(undisturbed.run, out)
    partial_of(out).mkdir()
    if left != "nothing but the folder":
        (partial_of(out) / "lock").write_text("1\n")
    if left == "all":
        (partial_of(out) / "tasks" / "ab").mkdir(parents=True)
        (partial_of(out) / "tasks" / "ab" / "abc.task").write_text("a result")
        (partial_of(out) / "study").write_text(read_manifest(out).config_digest)
    process = breeder.start(undisturbed.study, out)
    assert process.wait() == 0, process.said()
    assert_same_run(out, undisturbed.run)


@pytest.mark.parametrize("whose", ["another study's", "somebody's own"])
def test_what_is_not_left_by_this_run_stays(undisturbed, breeder, tmp_path, whose) -> None:
    out = tmp_path / "run"
    shutil.copytree(undisturbed.run, out)
    if whose == "another study's":
        kept = partial_of(out) / "tasks" / "ab" / "abc.task"
        kept.parent.mkdir(parents=True)
        (partial_of(out) / "study").write_text("another configuration")
    else:
        kept = partial_of(out) / "thesis.txt"
        partial_of(out).mkdir()
    kept.write_text("years of work")
    process = breeder.start(undisturbed.study, out)
    assert process.wait() == 0, process.said()
    assert kept.read_text() == "years of work"
