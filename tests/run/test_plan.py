"""Costs of stages: counted work at the speed of this machine, and what is said where nothing is known."""

from __future__ import annotations

import math
import time

import pytest

import lpact
from lpact.analyses.base import StageWork
from lpact.analyses.lpact.analysis import LPact
from lpact.run.plan import (
    TASK_S,
    WORKER_START_S,
    StageCost,
    closing_costs,
    operations_per_second,
    task_cost,
)
from lpact.run.progress import DECISION, REPORT, TABLES
from lpact.tables import run_tables
from small_study import SMALL


def test_the_speed_of_this_machine_is_measured_in_a_moment() -> None:
    operations_per_second.cache_clear()
    start = time.perf_counter()
    speed = operations_per_second()
    assert time.perf_counter() - start < 1.0
    assert 1e8 < speed < 1e14
    assert operations_per_second() == speed


def test_time_is_work_over_speed() -> None:
    speed = operations_per_second()
    cost = task_cost("halves", 4, StageWork(8 * speed, 5 * speed, 1000, 30), held=500)
    assert cost.seconds == pytest.approx(8 + 4 * TASK_S)
    assert cost.longest == pytest.approx(5 + TASK_S)
    assert (cost.peak_bytes, cost.disk_bytes, cost.shared) == (1500, 30, True)
    assert cost.seconds_with(4) == cost.longest


def test_a_stage_without_work_has_no_time() -> None:
    cost = task_cost("halves", 4, None, held=500)
    assert math.isnan(cost.seconds)
    assert math.isnan(cost.seconds_with(2))
    assert cost.peak_bytes == 500


def test_tables_and_report_grow_with_rows_and_claims() -> None:
    names = list(run_tables(["lpact"]))
    few, many = (closing_costs(dict.fromkeys(names, n), n, 0, 1000) for n in (10, 100_000))
    assert [cost.stage for cost in few] == [DECISION, TABLES, REPORT]
    for small, large in zip(few, many, strict=True):
        assert large.seconds > small.seconds > 0
        assert large.peak_bytes > small.peak_bytes > 1000
    assert many[1].disk_bytes > 100 * few[1].disk_bytes


def test_the_largest_table_is_written_in_memory() -> None:
    rows = dict.fromkeys(run_tables(["lpact"]), 0) | {"predictive/predictive_scores": 10_000_000}
    decision, tables, _ = closing_costs(rows, 1, 0, 1000)
    assert tables.peak_bytes > 10_000_000 * 17 * 66  # measured: 66 bytes per value
    assert tables.peak_bytes > decision.peak_bytes


def test_an_analysis_without_work_is_counted_and_gets_no_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = lpact.load_study(SMALL)
    known = study.plan()
    assert known.expected(1)
    start = known.expected(2)["brain patterns"]
    assert start >= WORKER_START_S
    monkeypatch.setattr(LPact, "work", lambda *_: {})
    plan = study.plan()
    assert (plan.tasks, plan.rows, plan.claims) == (known.tasks, known.rows, known.claims)
    assert math.isnan(plan.seconds_with(2))
    assert plan.expected(2) == {}
    assert plan.memory_with(2) > 0
    assert all(isinstance(stage, StageCost) for stage in plan.stages)
