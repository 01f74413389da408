"""What a plan of L-PACT counts: rows, claims and readouts of a run, and work that grows as it should."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.plan_audit import made_up_study

import lpact
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels import readouts, stripping
from lpact.analyses.lpact.plan.audit import ContextOffer, RecordingSummary
from lpact.analyses.lpact.plan.sizes import (
    context_bytes,
    context_rows,
    context_work,
    fit_work,
    n_stripped_fits,
    on_responses,
    work,
)
from lpact.analyses.lpact.plan.stages import BRAINS, CEILINGS, CONTROLS, LEVELS
from lpact.inputs.workspace import Workspace
from lpact.math.ridge import NestedRidge
from lpact.run.audit import StudyAudit
from lpact.run.conductor import measure_in_memory
from lpact.run.plan import Plan, make_plan
from lpact.run.progress import AUDIT, DECISION, FEATURES, REPORT, TABLES
from lpact.study import Run, Study
from small_study import SMALL

MIB = 2**20


def without_controls(**changes: Any) -> Study:
    """The small study without positive controls."""
    own = SMALL["lpact"] | {"assay": {"enabled": False}}
    return lpact.load_study(SMALL | {"lpact": own} | changes)


@pytest.fixture(scope="module")
def study() -> Study:
    return without_controls()


@pytest.fixture(scope="module")
def audit(study: Study) -> StudyAudit:
    return study.audit()


@pytest.fixture(scope="module")
def config(study: Study) -> LPactConfig:
    return LPactConfig.of(study.config)


@pytest.fixture(scope="module")
def context(audit: StudyAudit) -> tuple[RecordingSummary, ContextOffer]:
    dataset = next(iter(audit.of["lpact"].detail.values()))
    offer = dataset.contexts[0]
    return next(r for r in dataset.recordings if r.id == offer.recording), offer


def test_readouts_are_counted_as_often_as_they_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    fit, beside, orders = NestedRidge.fit, stripping.nested_ridge, readouts.nested_ridge_draws

    def fitted(self: NestedRidge, features: Any) -> Any:
        calls["fits"] += 1
        return fit(self, features)

    def fitted_beside(*args: Any, **options: Any) -> Any:
        calls["beside"] += 1
        return beside(*args, **options)

    def reordered(*args: Any, **options: Any) -> Any:
        calls["orders"] += len(args[4])
        return orders(*args, **options)

    monkeypatch.setattr(NestedRidge, "fit", fitted)
    monkeypatch.setattr(stripping, "nested_ridge", fitted_beside)
    monkeypatch.setattr(readouts, "nested_ridge_draws", reordered)
    options = {"n_subjects": 1, "n_runs": 1, "n_stories": 4, "n_units": 8}
    study = without_controls(
        datasets=[{"name": "sim", "reader": "simulated", "options": options}],
        models=[{"name": "integrated", "layers": [2]}],
        controls={"draws": 2},
    )
    (dataset,) = study.audit().of["lpact"].detail.values()
    (recording,), (offer,) = dataset.recordings, dataset.contexts
    measure_in_memory(study.config, "lpact")
    own = LPactConfig.of(study.config)
    n_orders = sum(n for name, n in offer.draws.items() if on_responses(name))
    assert calls["orders"] == n_orders > 0
    n_fits = 3 + sum(offer.draws.values()) - n_orders + n_stripped_fits(own, recording, offer)
    assert calls["fits"] == n_fits > 10
    assert calls["beside"] == 1 + len(offer.strippings) * len(recording.mechanisms)


def test_decompositions_dominate_wide_features(
    config: LPactConfig, context: tuple[RecordingSummary, ContextOffer]
) -> None:
    """Ten operations per p³: twice as many columns are nearly eight times the work."""
    recording = replace(context[0], n_events=20_000)
    narrow, wide = (fit_work(config, recording, p) for p in (8000, 16_000))
    assert 6 < wide / narrow < 8
    # Columns beyond the number of events add no decomposition.
    short = replace(recording, n_events=500)
    assert fit_work(config, short, 4000) == fit_work(config, short, 500)


def test_work_grows_with_draws_units_and_events(
    config: LPactConfig, context: tuple[RecordingSummary, ContextOffer]
) -> None:
    recording, offer = context
    base, base_bytes = context_work(config, *context), context_bytes(config, *context)
    more_draws = replace(offer, draws={name: 10 * n for name, n in offer.draws.items()})
    longer = replace(recording, n_events=100 * recording.n_events)
    wider = replace(recording, unit_ids=tuple(map(str, range(1000))))
    for other in ((recording, more_draws), (longer, offer), (wider, offer)):
        assert context_work(config, *other) > 1.4 * base
    assert context_bytes(config, longer, offer) > 50 * base_bytes
    # A readout never takes more than it may.
    huge = replace(recording, n_events=10**7)
    small = config.model_copy(update={"readout": config.readout.model_copy(update={"memory_gib": 0.5})})
    saved = context_bytes(config, huge, offer) - context_bytes(small, huge, offer)
    assert saved == pytest.approx(2.5 * 1.5 * 2**30, rel=1e-6)


def test_every_stage_with_tasks_has_its_work(audit: StudyAudit, config: LPactConfig) -> None:
    own = audit.of["lpact"]
    assert work(config, own).keys() == {BRAINS, LEVELS, CEILINGS}
    assay = config.assay.model_copy(update={"enabled": True})
    found = work(config.model_copy(update={"assay": assay}), own)
    assert found.keys() == {BRAINS, LEVELS, CEILINGS, CONTROLS}
    for name, stage in found.items():
        assert stage.longest <= stage.operations, name
        assert stage.operations > 0


@pytest.mark.stress
def test_a_hundred_thousand_contexts_are_counted_in_little_memory() -> None:
    config, audit = made_up_study(100_000)
    tracemalloc.start()
    try:
        plan = make_plan(config, audit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plan.tasks[LEVELS] == 100_000
    assert peak < 500 * MIB
    (dataset,) = audit.of["lpact"].detail.values()
    by_id = {r.id: r for r in dataset.recordings}
    expected: Counter[str] = Counter()
    for offer in dataset.contexts[::1000]:
        expected += context_rows(LPactConfig.of(config), by_id[offer.recording], offer)
    scores = "predictive/predictive_scores"
    assert plan.rows[scores] == 1000 * expected[scores]
    assert plan.n_claims == 200 * 2


@pytest.fixture(scope="module")
def small_plan() -> Plan:
    return lpact.load_study(SMALL).plan()


def test_stages_are_those_of_a_run(small_plan: Plan) -> None:
    by_name = {stage.stage: stage for stage in small_plan.stages}
    own = (BRAINS, LEVELS, CEILINGS, CONTROLS)
    assert tuple(by_name) == (AUDIT, FEATURES, *own, DECISION, TABLES, REPORT)
    assert [by_name[name].n_tasks for name in own] == [6, 18, 2, 10]
    assert dict(small_plan.tasks) == {name: by_name[name].n_tasks for name in own}
    assert all(stage.seconds > 0 for stage in small_plan.stages if stage.n_tasks)
    assert all(stage.peak_bytes > 50 * MIB for stage in small_plan.stages)
    seconds = sum(stage.seconds for stage in small_plan.stages)
    assert small_plan.seconds_with(1) == pytest.approx(seconds)
    assert small_plan.memory_with(2) > small_plan.memory_with(1)
    expected = small_plan.expected(1)
    assert expected.keys() == by_name.keys() - {AUDIT, REPORT}
    assert sum(small_plan.expected(2).values()) < sum(expected.values()) + 2.0


def test_disk_is_planned_within_a_factor_of_two(small_plan: Plan, small_run: Run) -> None:
    files = [f for suffix in (".parquet", ".csv") for f in small_run.root.rglob(f"*{suffix}")]
    tables = sum(f.stat().st_size for f in files if "report" not in f.parts)
    planned = next(stage.disk_bytes for stage in small_plan.stages if stage.stage == TABLES)
    assert 0.5 < planned / tables < 2.0


def test_rows_of_a_plan_are_those_of_the_run(small_plan: Plan, small_run: Run) -> None:
    for name, n_rows in small_plan.rows.items():
        found = small_run.n_rows(name)
        assert found <= n_rows if name in small_plan.at_most else found == n_rows, name


def test_planning_fits_nothing(monkeypatch: pytest.MonkeyPatch, study: Study) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        raise AssertionError("a readout was fitted")

    monkeypatch.setattr(NestedRidge, "fit", stop)
    monkeypatch.setattr(readouts, "nested_ridge_draws", stop)
    assert study.plan().n_tasks > 0
    workspace = Workspace(study.config)
    prepared = workspace.prepared("planted", workspace.dataset("planted").recording_ids()[0])
    with pytest.raises(AssertionError, match="was fitted"):
        readouts.fit_nuisance(LPactConfig.of(study.config), prepared)
