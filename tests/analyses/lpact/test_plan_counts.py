"""What a plan counts, and what its calibration computes with: sizes alone, and the rows that a run will have."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.plan_audit import made_up_study
from lpact.run.planning.calibrate import calibrate
from lpact.run.planning.probes import Pieces, from_pieces, tables_of_context, whole_context
from lpact.run.planning.rows import brain_rows, context_rows
from lpact.run.planning.shapes import Shape, context_shapes, context_work, representatives
from lpact.run.planning.stand_in import LAYER, make_stand_in

import lpact
from lpact.analyses.lpact.levels import readouts, stripping
from lpact.analyses.lpact.levels.audit_record import ContextOffer, RecordingSummary
from lpact.analyses.lpact.levels.stripped_design import StrippedDesign
from lpact.math.ridge import NestedRidge
from lpact.run.audit import StudyAudit
from lpact.run.plan import Plan, make_plan
from lpact.run.stages import BRAINS, CEILINGS, LEVELS, STAGES, TABLES
from lpact.study import Run, Study

MIB = 2**20


@pytest.fixture(scope="module")
def study(tiny_study: Callable[..., dict[str, Any]]) -> Study:
    return lpact.load_study(tiny_study())


@pytest.fixture(scope="module")
def audit(study: Study) -> StudyAudit:
    return study.audit()


def first(audit: StudyAudit) -> tuple[RecordingSummary, ContextOffer]:
    dataset = next(iter(audit.datasets.values()))
    offer = dataset.contexts[0]
    return next(r for r in dataset.recordings if r.id == offer.recording), offer


def test_tables_of_a_stand_in_have_the_rows_that_are_counted(
    study: Study, audit: StudyAudit
) -> None:
    shape = next(iter(context_shapes(study.config, audit)))
    counted = context_rows(study.config, *first(audit)) + brain_rows(study.config, first(audit)[0])
    for probe in (whole_context(study.config, shape), tables_of_context(study.config, shape)):
        made = {name: frame.height for name, frame in (probe.context | probe.brain).items()}
        assert made.keys() <= counted.keys()
        exact = {n for n in made if not n.startswith("causal/causal_") or n.endswith("_deltas")}
        assert len(exact) > 10
        assert {n: made[n] for n in exact} == {n: counted[n] for n in exact}
        assert all(0 < made[name] <= counted[name] for name in made)


def test_a_stand_in_has_the_sizes_of_the_recording_and_none_of_its_numbers(
    study: Study, audit: StudyAudit
) -> None:
    recording, offer = first(audit)
    shape = next(iter(context_shapes(study.config, audit)))
    own = make_stand_in(study.config, shape)
    real = study._workspace().prepared("sim", recording.id)
    assert own.prepared.grid.responses.shape == real.grid.responses.shape
    assert own.model.load(LAYER).shape == (recording.n_events, offer.n_features)
    assert own.prepared.folds.n_blocks == real.folds.n_blocks
    assert set(own.prepared.mechanisms) == set(real.mechanisms)
    assert not np.isin(own.prepared.grid.responses, real.grid.responses).any()


def test_features_at_delays_stand_side_by_side(study: Study, audit: StudyAudit) -> None:
    shape = next(iter(context_shapes(study.config, audit)))
    delayed = Shape(**{**vars(shape), "n_delays": 3, "n_features": 12})
    own = make_stand_in(study.config, delayed)
    features = own.model.load(LAYER)
    assert features.shape == (shape.n_events, 12)
    # Block j holds the rows of j events before.
    np.testing.assert_array_equal(features[5:, 4:8], features[4:-1, :4])
    assert own.prepared.scalars(shape.mechanisms[0]).shape == (shape.n_events, 3)


def test_pieces_are_counted_as_often_as_they_come(
    study: Study, audit: StudyAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = next(iter(context_shapes(study.config, audit)))
    calls: Counter[str] = Counter()
    fit, beside, orders = NestedRidge.fit, stripping.nested_ridge, readouts.nested_ridge_draws

    def fitted(self: NestedRidge, features: Any) -> Any:
        calls["strips" if isinstance(features, StrippedDesign) else "fits"] += 1
        return fit(self, features)

    def fitted_beside(*args: Any, **options: Any) -> Any:
        calls["strips"] += 1
        return beside(*args, **options)

    def reordered(*args: Any, **options: Any) -> Any:
        calls["orders"] += len(args[4])
        calls["fits"] += 1  # the decompositions that all orders share
        return orders(*args, **options)

    monkeypatch.setattr(NestedRidge, "fit", fitted)
    monkeypatch.setattr(stripping, "nested_ridge", fitted_beside)
    monkeypatch.setattr(readouts, "nested_ridge_draws", reordered)
    whole_context(study.config, shape)

    def counted(**piece: float) -> float:
        nothing = Pieces(0.0, 0.0, 0.0, 0.0)
        return from_pieces(study.config, shape, Pieces(**{**vars(nothing), **piece}))

    assert counted(strip=1.0) == calls["strips"] > 50
    assert counted(order=1.0) == calls["orders"] > 1
    # Nuisance features are fitted once a recording, not once a context.
    assert counted(fit=1.0) == calls["fits"] - 1 > 10


def test_few_shapes_stand_for_many(study: Study, audit: StudyAudit) -> None:
    shape = next(iter(context_shapes(study.config, audit)))
    sizes = [150, 151, 152, 300, 310, 600, 1200, 5000]
    shapes = {Shape(**{**vars(shape), "n_events": n}): 10 for n in sizes}
    chosen = representatives(study.config, shapes, 3)
    assert chosen.keys() == shapes.keys()
    assert len(set(chosen.values())) == 3
    # The largest are most of the work, and stand for themselves.
    largest = max(shapes, key=lambda s: s.n_events)
    assert chosen[largest] == largest
    assert context_work(study.config, largest) > 4 * context_work(study.config, shape)


def test_a_large_shape_is_timed_at_a_smaller_size(study: Study, audit: StudyAudit) -> None:
    shape = next(iter(context_shapes(study.config, audit)))
    large = Shape(**{**vars(shape), "n_events": 200_000, "n_features": 3000, "strippings": ()})
    found = calibrate(study.config, {large: 1, shape: 1}, budget_s=0.1)
    assert found.extrapolated
    assert found.seconds(large) > 100 * found.seconds(shape) > 0
    # Its tables are as large as those of the run all the same.
    scores = found.probes[large].context["relational/profile_similarity_deltas"]
    assert scores.height == 9 * large.n_units


def test_a_hundred_thousand_contexts_are_counted_in_little_memory() -> None:
    config, audit = made_up_study(100_000)
    tracemalloc.start()
    try:
        plan = make_plan(config, audit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plan.n_contexts == 100_000
    assert peak < 100 * MIB
    (dataset,) = audit.datasets.values()
    by_id = {r.id: r for r in dataset.recordings}
    some = dataset.contexts[::1000]
    expected: Counter[str] = Counter()
    for offer in some:
        expected += context_rows(config, by_id[offer.recording], offer)
    assert (
        plan.rows["predictive/predictive_scores"] == 1000 * expected["predictive/predictive_scores"]
    )
    assert plan.n_claims == 200 * 2


@pytest.fixture(scope="module")
def small_plan(small_run: Run) -> Plan:
    from small_study import SMALL

    assert small_run.config.name == SMALL["name"]
    return lpact.load_study(SMALL).plan()


def test_stages_are_those_of_a_run(small_plan: Plan) -> None:
    by_name = {stage.stage: stage for stage in small_plan.stages}
    assert tuple(by_name) == STAGES
    assert (by_name[BRAINS].n_tasks, by_name[LEVELS].n_tasks, by_name[CEILINGS].n_tasks) == (
        6,
        18,
        2,
    )
    assert all(stage.seconds > 0 for stage in small_plan.stages if stage.n_tasks)
    assert all(stage.peak_bytes > 50 * MIB for stage in small_plan.stages)
    assert small_plan.seconds == pytest.approx(sum(stage.seconds for stage in small_plan.stages))
    assert small_plan.memory_with(2) > small_plan.memory_with(1)


def test_disk_is_planned_within_a_factor_of_two(small_plan: Plan, small_run: Run) -> None:
    files = [f for suffix in (".parquet", ".csv") for f in small_run.root.rglob(f"*{suffix}")]
    tables = sum(f.stat().st_size for f in files if "report" not in f.parts)
    planned = next(stage.disk_bytes for stage in small_plan.stages if stage.stage == TABLES)
    assert 0.5 < planned / tables < 2.0
