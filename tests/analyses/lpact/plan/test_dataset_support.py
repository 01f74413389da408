"""A deep check of a dataset and the source audit of a study find the same evidence chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset_writers.alice import write_alice
from dataset_writers.arrays import write_arrays
from dataset_writers.meg_masc import write_meg_masc
from dataset_writers.natural_stories import write_natural_stories
from dataset_writers.podcast_ecog import write_podcast_ecog
from dataset_writers.sentence_table import write_sentence_table
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels import ceiling
from lpact.analyses.lpact.plan import audit
from lpact.analyses.lpact.plan.dataset_support import DatasetSupport
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY, RELIABILITY_MODES
from lpact.config import DatasetConfig, LanguageModelConfig
from lpact.datasets.base import DATASETS, FeatureKey, Stimulus
from lpact.datasets.folder import write_folder
from lpact.features.models import ModelSource
from lpact.inputs.check import check_dataset, default_grid
from lpact.inputs.prepare import Inspection, inspect
from lpact.math.types import FloatArray

FLAGS = {
    "B": "has_brain",
    "W": "has_words",
    "F": "has_features",
    "S": "has_controls",
    "R": "has_reliability",
    "K": "has_coverage",
}
SMALL = {"n_subjects": 2, "n_runs": 1, "n_stories": 2, "sentences_per_story": 8, "n_units": 8}
FEW_UNITS = {"n_mechanism_units": 1}


class Noise(ModelSource):
    """A model with something to say about every text."""

    name = "noise_of_a_test"
    summary = "noise"

    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:
        return [FeatureKey(model, 0, "full")]

    def load(self, key: FeatureKey, stimulus: Stimulus) -> FloatArray:
        return np.random.default_rng(0).standard_normal((stimulus.words.height, 3))


@dataclass(frozen=True)
class Case:
    """A dataset: how it is written (or not), and options of its reader."""

    reader: str
    write: Callable[[Path], object] | None = None
    options: tuple[tuple[str, object], ...] = ()


def simulated(**options: object) -> Case:
    return Case("simulated", None, tuple((SMALL | options).items()))


def damaged(folder: Path) -> None:
    """A folder in which one of two recordings has no unit that changes."""
    reader = DATASETS.build("simulated", SMALL)
    write_folder(reader.open(name="mine", path=None, seed=1), folder)
    first = sorted((folder / "recordings").iterdir())[0] / "neural.npy"
    np.save(first, np.ones_like(np.load(first)))


CASES = {
    "all there": simulated(),
    "six units": simulated(n_units=6, **FEW_UNITS),
    "three units": simulated(n_units=3, n_regions=1, **FEW_UNITS),
    "one recording": simulated(n_subjects=1),
    "few events": simulated(n_stories=1, sentences_per_story=4),
    "volumes": simulated(modality="fmri", n_stories=4, sentences_per_story=20),
    "constant units": Case("folder", damaged),
    "alice": Case("alice", lambda to: write_alice(to, subjects=3, n_words=150)),
    "arrays": Case(
        "arrays",
        lambda to: write_arrays(to, formats=("npy", "hdf5"), n_words=120, n_units=9),
    ),
    "meg_masc": Case(
        "meg_masc",
        lambda to: write_meg_masc(to, n_subjects=1, n_words=40, n_sensors=9, tasks=(0, 1), sessions=("0",)),
    ),
    "podcast_ecog": Case("podcast_ecog", lambda to: write_podcast_ecog(to, n_words=150)),
    "sentence_table": Case("sentence_table", lambda to: write_sentence_table(to, n_sentences=120)),
}


@dataclass(frozen=True)
class Both:
    """Support after a deep check, and the audit with its inspections."""

    support: DatasetSupport
    chain: dict[str, Any]
    modes: dict[str, Any]
    inspections: list[Inspection]
    config: LPactConfig


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Both]:
    known: dict[str, Both] = {}

    def of(name: str) -> Both:
        if name not in known:
            known[name] = _both(CASES[name], tmp_path_factory.mktemp("data") / "to")
        return known[name]

    return of


def _both(case: Case, folder: Path) -> Both:
    if case.write is not None:
        case.write(folder)
    place = None if case.write is None else folder
    support = DatasetSupport(check_dataset(case.reader, place, dict(case.options), deep=True))
    dataset = DATASETS.build(case.reader, dict(case.options)).open(name="d", path=place, seed=0)
    ids = dataset.recording_ids()
    grid = default_grid(dataset.recording(ids[0]), dataset.stimulus(ids[0].stimulus))
    entry = DatasetConfig(name="d", reader=case.reader, options=dict(case.options), grid=grid)
    model = LanguageModelConfig(name="noise", layers=(0,))
    config = LPactConfig(name="s", datasets=(entry,), models=(model,))
    inspections = [inspect(dataset, i, name="d", config=config) for i in ids]
    made = audit.audit_dataset(
        config=config,
        entry=entry,
        dataset=dataset,
        inspections=inspections,
        sources={"noise": Noise()},
        problems=[],
    )
    (chain,) = made.rows(EVIDENCE_FEASIBILITY)
    modes = {row["mode"]: row for row in made.rows(RELIABILITY_MODES)}
    return Both(support, chain, modes, inspections, config)


@pytest.mark.parametrize("name", CASES)
def test_every_link_is_as_the_audit_finds_it(both: Callable[[str], Both], name: str) -> None:
    """What depends on a model is open in the check, and present in this audit, whose model reads any text."""
    found = both(name)
    for link in found.support.chain:
        if link.there is None:
            assert link.letter == "F"
            assert found.chain["has_brain"] == found.chain["has_features"]
        elif link.letter != "F" or found.chain["has_brain"]:
            assert link.there == found.chain[FLAGS[link.letter]], link
    (confirmatory,) = [x for x in found.support.levels if x.what == "confirmatory"]
    assert confirmatory.possible == found.chain["confirmatory"]
    for link in found.support.chain:
        assert (f"missing: {link.letter}, {link.what}" in confirmatory.detail) == (link.there is False)


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("all there", ""),
        ("six units", "R"),
        ("three units", "RK"),
        ("one recording", "K"),
        ("few events", "BSRK"),
        ("constant units", "K"),
        ("alice", "R"),
        ("meg_masc", ""),
    ],
)
def test_the_cases_miss_what_they_were_made_to_miss(both: Callable[[str], Both], name: str, missing: str) -> None:
    assert "".join(x.letter for x in both(name).support.chain if x.there is False) == missing


@pytest.mark.parametrize("name", CASES)
def test_modes_are_those_of_the_audit_and_of_the_ceilings(both: Callable[[str], Both], name: str) -> None:
    """Ceilings of noise in the recordings' places: a mode is valid if the check finds it possible."""
    found = both(name)
    brains = [_noise_brain(i, found.config) for i in found.inspections if i.prepared is not None]
    if not brains:
        assert not any(x.possible for x in found.support.levels if x.what.startswith("level 4"))
        return
    rows = ceiling.measure_ceilings(config=found.config, dataset="d", brains=brains)
    (level,) = [x for x in found.support.levels if x.what.startswith("level 4")]
    for mode, row in found.modes.items():
        own = rows.filter(mode=mode, kind=ceiling.PROFILE)
        n_valid = own.filter("valid").unique(["subject", "session", "run"]).height
        assert (f"{mode}: {n_valid} recording" in level.detail) == (n_valid > 0), mode
        assert (f"{mode}: no (" not in level.detail) == row["possible"]


def _noise_brain(inspection: Inspection, config: LPactConfig) -> ceiling.BrainOnGrid:
    prepared = inspection.prepared
    assert prepared is not None
    n_units = len(prepared.grid.units.ids)
    rng = np.random.default_rng(5)
    noise = {a: rng.standard_normal((n_units, n_units)) for a in config.relational.alignments}
    return ceiling.BrainOnGrid(
        id=prepared.id,
        unit_ids=prepared.grid.units.ids,
        onset_s=prepared.grid.onset_s,
        first_word=prepared.grid.first_word,
        comparable=prepared.grid.units.comparable,
        responses=rng.standard_normal((prepared.n_events, n_units)),
        patterns=noise,
        halves=(noise, noise),
    )


def test_runs_of_different_stories_compare_patterns(both: Callable[[str], Both]) -> None:
    (level,) = [x for x in both("meg_masc").support.levels if x.what.startswith("level 4")]
    assert level.detail.startswith("patterns: ")
    assert "run_to_run: 2 recordings" in level.detail


def test_a_quick_check_says_that_units_were_not_checked(tmp_path: Path) -> None:
    """A subject without signal counts until its signal is read."""
    write_alice(tmp_path, subjects=3, n_words=150)
    quick, deep = (DatasetSupport(check_dataset("alice", tmp_path, deep=deep)).levels for deep in (False, True))
    unchecked = {x.what for x in quick if "units were not checked" in x.detail}
    assert unchecked == {"level 1, predictive", "level 2, relational", "confirmatory"}
    assert quick[0].detail.startswith("3 of 3 recordings")
    assert deep[0].detail.startswith("2 of 3 recordings")
    assert not any("not checked" in x.detail for x in deep)


def test_text_alone_supports_no_level(tmp_path: Path) -> None:
    write_natural_stories(tmp_path)
    levels = DatasetSupport(check_dataset("natural_stories", tmp_path)).levels
    assert not any(level.possible for level in levels if level.what != "severe controls")
    (mechanisms,) = [level for level in levels if level.what == "level 3, mechanisms"]
    assert "dependency_integration" in mechanisms.detail.split(";")[1]
