"""Overall progress and the estimated end, against runs whose real course is known."""

from __future__ import annotations

import pytest

from lpact.analyses.lpact.plan.stages import BRAINS, CEILINGS, LEVELS
from lpact.run.progress import AUDIT, DECISION, FEATURES, Estimate, RunProgress


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def do(model: RunProgress, clock: Clock, steps: int, seconds: float) -> list[Estimate]:
    """So many steps, one after the other; the estimate after each."""
    estimates = []
    for _ in range(steps):
        clock.now += seconds
        assert model.current is not None
        model.current.advance(1, clock.now)
        estimates.append(model.estimate())
    return estimates


def test_a_run_that_goes_as_planned_is_told_exactly(clock: Clock) -> None:
    model = RunProgress({BRAINS: 20.0, LEVELS: 60.0, CEILINGS: 20.0}, clock=clock)
    assert model.estimate() == Estimate(0.0, 100.0)
    model.stage(BRAINS, 10)
    for i, told in enumerate(do(model, clock, 10, 2.0), start=1):
        assert told.seconds_left == pytest.approx(100.0 - 2.0 * i)
        assert told.fraction == pytest.approx(0.02 * i)
    model.stage(LEVELS, 6)
    for i, told in enumerate(do(model, clock, 6, 10.0), start=1):
        assert told.seconds_left == pytest.approx(80.0 - 10.0 * i)
        assert told.fraction == pytest.approx(0.2 + 0.1 * i)


def test_what_was_seen_corrects_the_plan(clock: Clock) -> None:
    """Everything takes three times as long: the rest is expected to, too, once a tenth is done."""
    model = RunProgress({BRAINS: 100.0, LEVELS: 900.0}, clock=clock)
    model.stage(BRAINS, 50)
    told = do(model, clock, 50, 6.0)[-1]
    truth = 3 * 900.0
    assert told.seconds_left == pytest.approx(truth, rel=0.15)
    model.stage(LEVELS, 90)
    told = do(model, clock, 45, 30.0)[-1]
    assert told.seconds_left == pytest.approx(truth / 2, rel=0.02)
    assert told.fraction == pytest.approx((300.0 + 1350.0) / 3000.0, rel=0.02)


@pytest.mark.parametrize("resumed", [0, 90, 900])
def test_what_an_earlier_run_did_says_nothing_about_speed(clock: Clock, resumed: int) -> None:
    alone = RunProgress({LEVELS: 10.0 * (resumed + 10)}, clock=clock)
    alone.stage(LEVELS, resumed + 10)
    assert alone.current is not None
    alone.current.resume(resumed)
    told = do(alone, clock, 5, 10.0)[-1]
    assert told.seconds_left == pytest.approx(50.0)
    assert told.fraction == pytest.approx((resumed + 5) / (resumed + 10), abs=1e-3)


def test_a_stage_that_was_resumed_as_a_whole_leaves_the_pace_alone(clock: Clock) -> None:
    model = RunProgress({BRAINS: 500.0, LEVELS: 500.0}, clock=clock)
    model.stage(BRAINS, 100)
    assert model.current is not None
    model.current.resume(100)
    clock.now += 0.5
    model.stage(LEVELS, 100)
    told = model.estimate()
    assert told.seconds_left == pytest.approx(500.0)
    assert told.fraction == pytest.approx(0.5)


def test_one_long_task_comes_nearer_to_its_end(clock: Clock) -> None:
    model = RunProgress({CEILINGS: 100.0}, clock=clock)
    model.stage(CEILINGS, 1)
    clock.now += 60.0
    assert model.estimate().seconds_left == pytest.approx(40.0)
    clock.now += 140.0
    late = model.estimate()
    assert late.seconds_left is not None
    assert late.seconds_left > 0.0


def test_the_share_that_is_done_never_shrinks_nor_reaches_the_end_early(clock: Clock) -> None:
    model = RunProgress({BRAINS: 1.0, LEVELS: 1.0}, clock=clock)
    shares = []
    for stage, seconds in ((BRAINS, 0.1), (LEVELS, 50.0)):
        model.stage(stage, 4)
        shares += [told.fraction for told in do(model, clock, 4, seconds)]
    known = [share for share in shares if share is not None]
    assert known == sorted(known)
    assert len(known) == 8
    assert known[-1] < 1.0


def test_without_a_plan_nothing_is_said_of_the_whole(clock: Clock) -> None:
    model = RunProgress({}, clock=clock)
    assert model.estimate() == Estimate(None, None)
    stage = model.stage(BRAINS, 10)
    do(model, clock, 4, 2.0)
    assert model.estimate() == Estimate(None, None, 12.0)
    assert stage.seconds_left(clock.now) == 12.0


def test_a_stage_that_was_left_out_is_not_waited_for(clock: Clock) -> None:
    model = RunProgress({AUDIT: 30.0, FEATURES: 1000.0, BRAINS: 100.0}, clock=clock)
    assert model.estimate().seconds_left == pytest.approx(1130.0)
    model.stage(BRAINS, 10)
    assert model.estimate().seconds_left == pytest.approx(100.0)


def test_feature_sets_are_stages_of_their_own_inside_the_planned_time(clock: Clock) -> None:
    model = RunProgress({FEATURES: 100.0, BRAINS: 100.0}, clock=clock)
    model.stage("gpt2, full", 1000)
    clock.now += 30.0
    assert model.current is not None
    model.current.advance(500, clock.now)
    told = model.estimate()
    assert told == Estimate(pytest.approx(0.15), pytest.approx(170.0), pytest.approx(30.0))
    clock.now += 60.0
    model.current.advance(100, clock.now)
    assert model.estimate().seconds_left == pytest.approx(110.0)
    model.stage(BRAINS, 10)
    assert model.estimate().seconds_left == pytest.approx(100.0)


def test_a_stage_can_come_twice(clock: Clock) -> None:
    model = RunProgress({AUDIT: 10.0, BRAINS: 90.0}, clock=clock)
    model.stage(AUDIT, 5)
    do(model, clock, 5, 1.0)
    model.stage("gpt2, full", 1)
    stage = model.stage(AUDIT, 5)
    assert (stage.done, stage.total) == (0, 5)
    do(model, clock, 5, 1.0)
    model.stage(BRAINS, 1)
    assert stage.seconds(clock.now) == pytest.approx(10.0)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0])
def test_an_expectation_that_is_no_time_is_left_out(clock: Clock, wrong: float) -> None:
    model = RunProgress({BRAINS: wrong, LEVELS: 10.0}, clock=clock)
    model.stage(DECISION, 0)
    model.stage(LEVELS, 10)
    assert model.estimate().seconds_left == pytest.approx(10.0)
