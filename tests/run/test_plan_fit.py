"""Whether a run fits: memory and disk of made-up stages against planted limits."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from lpact.errors import RunError
from lpact.run.machine import Limits, machine_limits, memory_limit
from lpact.run.plan import Plan, StageCost, memory_with
from lpact.run.progress import DECISION, FEATURES, REPORT, TABLES

BRAINS, LEVELS = "brains", "levels"
MIB, GIB = 2**20, 2**30
STAGES = (
    StageCost(FEATURES, 2, 5.0, 300 * MIB, 2 * GIB),
    StageCost(BRAINS, 4, 1.0, GIB, 10 * MIB, shared=True),
    StageCost(LEVELS, 40, 100.0, 2 * GIB, 500 * MIB, longest=4.0, shared=True),
    StageCost(DECISION, 1, 2.0, GIB // 2, 0),
    StageCost(TABLES, 60, 3.0, GIB // 4, 700 * MIB),
    StageCost(REPORT, 1, 8.0, GIB // 2, 800 * MIB),
)
PLENTY = Limits(memory=100 * GIB, out=100 * GIB, features=100 * GIB)


def judged(
    limits: Limits,
    workers: int,
    stages: tuple[StageCost, ...] = STAGES,
    size_options: tuple[str, ...] = (),
) -> RunError | None:
    config: Any = SimpleNamespace(readout=SimpleNamespace(memory_gib=2.0))
    audit: Any = None
    plan = Plan(config, audit, rows={}, at_most=frozenset(), claims={}, tasks={}, stages=stages)
    analyses = {"one": SimpleNamespace(size_options=size_options)}
    with patch("lpact.run.plan.analyses_of", return_value=analyses):
        return plan.refusal(workers=workers, out=Path("run"), features=Path("sets"), limits=limits)


def test_a_run_that_fits_is_not_refused() -> None:
    assert judged(PLENTY, 8) is None


def test_memory_of_processes_adds_up() -> None:
    # One process does everything in turn; several stand beside the one that started them.
    assert memory_with(STAGES, 1) == 2 * GIB
    assert memory_with(STAGES, 3) == GIB // 2 + 3 * 2 * GIB


def test_only_processes_with_a_task_need_memory() -> None:
    least = 250 * MIB
    stages = (
        StageCost(DECISION, 1, 1.0, least, 0),
        StageCost(LEVELS, 6, 1.0, GIB, 0, shared=True),
        StageCost(BRAINS, 1, 1.0, 4 * GIB, 0, shared=True),
    )
    assert memory_with(stages, 4) == least + 4 * GIB + 3 * least
    assert memory_with(stages, 6) == memory_with(stages, 100) == least + 6 * GIB
    problem = judged(Limits(memory=GIB, out=None, features=None), 100, stages)
    assert problem is not None
    assert "with 6 workers" in str(problem.got)


def test_too_many_workers_are_told_how_many_fit() -> None:
    problem = judged(Limits(memory=8 * GIB, out=None, features=None), 4)
    assert problem is not None
    # Of 8 GiB, 7.2 may be used: 0.5 + 3 · 2.0 fit, 0.5 + 4 · 2.0 do not.
    assert "use --workers 3" in str(problem.remedy)
    assert "6.5 GiB" in str(problem.remedy)
    assert "8.5 GiB" in str(problem.got)
    assert LEVELS in str(problem.got)
    assert judged(Limits(memory=8 * GIB, out=None, features=None), 3) is None
    # More workers than cores are no advice.
    on_two = judged(Limits(memory=8 * GIB, out=None, features=None, cores=2), 4)
    assert on_two is not None
    assert "use --workers 2, " in str(on_two.remedy)


def test_the_stage_that_many_processes_share_is_named_not_the_largest_process() -> None:
    stages = (StageCost(LEVELS, 9, 1.0, GIB, 0, shared=True), StageCost(REPORT, 1, 1.0, 2 * GIB, 0))
    problem = judged(Limits(memory=8 * GIB, out=None, features=None), 20, stages)
    assert problem is not None
    assert f"most of it in the stage '{LEVELS}'" in str(problem.got)


def test_one_process_that_is_too_large_is_told_which_options_help() -> None:
    problem = judged(Limits(memory=GIB, out=None, features=None), 2)
    assert problem is not None
    assert "readout.memory_gib (now 2)" in str(problem.remedy)
    assert "--workers" not in str(problem.remedy)


def test_tables_that_are_too_large_are_told_which_options_help() -> None:
    wide = (*STAGES[:3], StageCost(DECISION, 1, 2.0, 20 * GIB, 0))
    limits = Limits(memory=10 * GIB, out=None, features=None)
    problem = judged(limits, 1, wide, ("controls.draws", "mine.rows"))
    assert problem is not None
    assert str(problem.remedy).startswith("lower controls.draws or mine.rows, divide the study")
    # An analysis that names no option gets no advice about those of another one.
    other = judged(limits, 1, wide)
    assert other is not None
    assert str(other.remedy).startswith("divide the study, or use a machine with more memory")


def test_a_full_disk_is_told_what_is_missing() -> None:
    # 10 + 500 + 700 + 800 MiB and the features' 2 GiB on one disk.
    problem = judged(Limits(memory=None, out=4 * GIB, features=4 * GIB), 1)
    assert problem is None
    problem = judged(Limits(memory=None, out=3 * GIB, features=3 * GIB), 1)
    assert problem is not None
    assert "--out" in str(problem.remedy)
    assert f"{(2048 + 2010 - 3072)} MiB" in str(problem.remedy)


def test_a_report_that_does_not_fit_can_be_left_out() -> None:
    limits = Limits(memory=None, out=1500 * MIB, features=10 * GIB, one_disk=False)
    problem = judged(limits, 1)
    assert problem is not None
    assert "--no-report" in str(problem.remedy)
    tighter = judged(Limits(None, 1000 * MIB, 10 * GIB, one_disk=False), 1)
    assert tighter is not None
    assert "--no-report" not in str(tighter.remedy)


def test_features_have_a_disk_of_their_own() -> None:
    problem = judged(Limits(None, 10 * GIB, GIB, one_disk=False), 1)
    assert problem is not None
    assert "run.features" in str(problem.remedy)
    assert "sets" in str(problem.got)


def test_all_problems_are_told_at_once() -> None:
    problem = judged(Limits(GIB, MIB, MIB), 1)
    assert problem is not None
    assert "memory is short and the disk is too full" in str(problem)


@pytest.mark.parametrize(
    ("workers", "seconds"),
    [(1, 30.0), (2, 20.0), (3, 10.0), (100, 10.0)],
)
def test_tasks_go_to_workers_whole(workers: int, seconds: float) -> None:
    three = StageCost(LEVELS, 3, 30.0, 0, 0, longest=10.0, shared=True)
    assert three.seconds_with(workers) == pytest.approx(seconds)


def test_one_long_task_bounds_a_stage() -> None:
    uneven = StageCost(LEVELS, 11, 20.0, 0, 0, longest=10.0, shared=True)
    assert uneven.seconds_with(4) == pytest.approx(10.0)
    assert StageCost(DECISION, 1, 20.0, 0, 0).seconds_with(4) == pytest.approx(20.0)


def test_limits_of_this_machine_are_found(tmp_path: Path) -> None:
    found = machine_limits(tmp_path / "not" / "there", tmp_path)
    assert found.memory is not None
    assert found.memory > 50 * MIB
    assert found.out == found.features
    assert found.one_disk


def test_the_strictest_memory_limit_counts(tmp_path: Path) -> None:
    groups, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("0::/user/job\n")
    whole = memory_limit(groups, own)
    assert whole is not None
    assert whole > 1_000_000
    (groups / "user" / "job").mkdir(parents=True)
    (groups / "user" / "job" / "memory.max").write_text("max\n")
    assert memory_limit(groups, own) == whole
    (groups / "user" / "memory.max").write_text("1000000\n")
    assert memory_limit(groups, own) == 1_000_000


def test_older_control_groups_count_too(tmp_path: Path) -> None:
    groups, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("5:cpu:/a\n4:memory:/docker/one\n")
    inside = groups / "memory" / "docker" / "one"
    inside.mkdir(parents=True)
    (inside / "memory.limit_in_bytes").write_text("2097152\n")
    assert memory_limit(groups, own) == 2_097_152
