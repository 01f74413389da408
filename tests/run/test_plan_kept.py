"""The estimate of a run is kept with it: a resumed run takes it, and no other one does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lpact.run.planning import kept
from lpact.run.planning.estimate import Estimate
from lpact.run.planning.kept import keep_estimate, recall_estimate

import lpact
from lpact.features.models import ExtractionCost
from lpact.run.costs import StageCost
from lpact.run.plan import Plan
from lpact.run.stages import BRAINS, LEVELS, REPORT
from lpact.store.rundir import PLAN_NAME
from small_study import SMALL

KNOWN = Estimate(
    (
        StageCost(BRAINS, 4, 1.5, 2**30, 10, longest=0.5),
        StageCost(LEVELS, 9, 1 / 3, 2**28, 1000, longest=0.1),
        StageCost(REPORT, 1, 8.0, 2**29, 10**7),
    ),
    extrapolated=True,
)


@pytest.fixture(scope="module")
def plan() -> Plan:
    made = lpact.load_study(SMALL).plan()
    made.take(KNOWN)
    return made


def fresh(plan: Plan, **changes: object) -> Plan:
    return replace(plan, **changes)  # type: ignore[arg-type]


def test_it_comes_back_to_the_last_digit(plan: Plan, tmp_path: Path) -> None:
    keep_estimate(tmp_path, plan)
    again = fresh(plan)
    assert recall_estimate(tmp_path, again)
    assert again.estimate == KNOWN
    assert again.expected(2).keys() == {BRAINS, LEVELS}


def test_another_study_does_not_take_it(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_estimate(tmp_path, plan)
    some_sets = ExtractionCost(n_sets=3, tokens=1, seconds=1.0, n_bytes=1)
    for changed in (
        fresh(plan, config_digest="0" * 64),
        fresh(plan, n_contexts=1),
        fresh(plan, extraction=some_sets),
    ):
        assert not recall_estimate(tmp_path, changed)
    assert recall_estimate(tmp_path, fresh(plan))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("platform.node", lambda: "another machine")
        assert not recall_estimate(tmp_path, fresh(plan))
    monkeypatch.setattr(kept, "code_digest", lambda: "other code")
    assert not recall_estimate(tmp_path, fresh(plan))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"stages": 1}', b"\xff"])
def test_what_is_damaged_is_not_taken(plan: Plan, tmp_path: Path, content: bytes) -> None:
    assert not recall_estimate(tmp_path, fresh(plan))
    (tmp_path / PLAN_NAME).write_bytes(content)
    assert not recall_estimate(tmp_path, fresh(plan))


def test_without_its_report_a_run_needs_less(plan: Plan, tmp_path: Path) -> None:
    assert plan.disk_with() - plan.disk_with(report=False) == 10**7
    assert plan.seconds_with(1) - plan.seconds_with(1, report=False) == pytest.approx(8.0)
    from lpact.run.machine import Limits

    tight = Limits(memory=None, out=10**6, features=None)
    where = {"workers": 1, "out": tmp_path, "features": tmp_path, "limits": tight}
    refused = plan.refusal(**where)  # type: ignore[arg-type]
    assert refused is not None
    assert "--no-report" in str(refused.remedy)
    assert plan.refusal(**where, report=False) is None  # type: ignore[arg-type]
