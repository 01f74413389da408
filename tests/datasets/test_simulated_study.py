"""Simulated studies: determinism, shapes, options, and words."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpact.datasets.base import DATASETS, Epochs, RecordingId, TimeSeries
from lpact.datasets.simulated.dataset import Simulated
from lpact.datasets.simulated.options import MECHANISMS, SimulatedOptions
from lpact.datasets.validate import (
    check_recording,
    check_recording_ids,
    check_stimulus,
    overlap_findings,
    unit_findings,
)
from lpact.errors import ConfigError, RecordingError, StimulusError

MODALITIES = ("intracranial", "meg", "fmri", "epoched")
ALL_TRUTHS = ("drift", "lexical", "predictive", "relational", "mechanism")
SMALL: dict[str, Any] = {"n_stories": 2, "sentences_per_story": 6, "n_units": 8}


def study(*, name: str = "sim", seed: int = 0, **options: Any) -> Simulated:
    dataset = DATASETS.build("simulated", options).open(name=name, path=None, seed=seed)
    assert isinstance(dataset, Simulated)
    return dataset


def digests(dataset: Simulated, *, backwards: bool = False) -> dict[str, str]:
    """SHA-256 of everything that a dataset offers, asked for forwards or backwards."""
    found = {}
    for recording_id in sorted(dataset.recording_ids(), reverse=backwards):
        values = dataset.recording(recording_id).signal.values
        found[str(recording_id)] = hashlib.sha256(values.tobytes()).hexdigest()
    for stimulus_id in {recording_id.stimulus for recording_id in dataset.recording_ids()}:
        stimulus = dataset.stimulus(stimulus_id)
        assert stimulus.envelope is not None
        text = stimulus.words.write_csv().encode() + stimulus.envelope.values.tobytes()
        found[stimulus_id] = hashlib.sha256(text).hexdigest()
        for key in sorted(stimulus.features, key=str, reverse=backwards):
            values = stimulus.features[key].load()
            found[f"{stimulus_id} {key}"] = hashlib.sha256(values.tobytes()).hexdigest()
    return found


def test_same_options_and_seed_give_the_same_arrays_in_any_order() -> None:
    options = SMALL | {"n_runs": 2, "repeat_stimulus": False, "truths": ALL_TRUTHS}
    assert digests(study(**options)) == digests(study(**options), backwards=True)


def test_same_arrays_in_another_process() -> None:
    code = "from test_simulated_study import *; print(sorted(digests(study(**SMALL), backwards=True).items()))"
    src = Path(__file__).parents[2] / "src"
    other = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
        env=os.environ | {"PYTHONPATH": str(src), "PYTHONHASHSEED": "7"},
    )
    assert other.stdout.strip() == str(sorted(digests(study(**SMALL)).items()))


@pytest.mark.parametrize("change", [{"seed": 1}, {"name": "other"}])
def test_another_seed_or_name_changes_everything(change: dict[str, Any]) -> None:
    one, two = digests(study(**SMALL)), digests(study(**SMALL, **change))
    assert one.keys() == two.keys()
    assert not [key for key in one if one[key] == two[key]]


def test_a_recording_does_not_depend_on_how_many_there_are() -> None:
    few, many = study(**SMALL, n_subjects=1), study(**SMALL, n_subjects=4, n_sessions=2)
    first = few.recording_ids()[0]
    np.testing.assert_array_equal(few.recording(first).signal.values, many.recording(first).signal.values)


@pytest.mark.parametrize("modality", MODALITIES)
def test_everything_on_offer_is_well_formed(modality: str) -> None:
    dataset = study(modality=modality, **SMALL, n_sessions=2, repeat_stimulus=False)
    ids = dataset.recording_ids()
    assert ids == sorted(ids)
    assert len(ids) == 3 * 2 * 2
    check_recording_ids(ids, where=modality)
    for stimulus_id in ("stimulus01", "stimulus02"):
        stimulus = dataset.stimulus(stimulus_id)
        check_stimulus(stimulus)
        assert overlap_findings(stimulus) == []
        assert set(stimulus.mechanisms) == set(MECHANISMS)
    recording = dataset.recording(ids[0])
    check_recording(recording)
    assert unit_findings(recording) == (list(range(8)), [])
    assert len(set(recording.units.regions)) == 4


@pytest.mark.parametrize(
    ("modality", "rate_hz", "tail_s"),
    [("intracranial", 100.0, 2.0), ("meg", 100.0, 2.0), ("fmri", 0.5, 16.0)],
)
def test_time_series_outlast_the_words(modality: str, rate_hz: float, tail_s: float) -> None:
    dataset = study(modality=modality, **SMALL)
    recording = dataset.recording(dataset.recording_ids()[0])
    words = dataset.stimulus("stimulus01").words
    assert isinstance(recording.signal, TimeSeries)
    assert recording.signal.sampling_rate_hz == rate_hz
    end_s = (len(recording.signal.values) - 1) / rate_hz
    assert end_s >= words["offset_s"].max() + tail_s  # type: ignore[operator]


def test_epochs_bring_their_own_lags() -> None:
    dataset = study(modality="epoched", **SMALL)
    signal = dataset.recording(dataset.recording_ids()[0]).signal
    assert isinstance(signal, Epochs)
    n_words = dataset.stimulus("stimulus01").words.height
    assert signal.values.shape == (len(signal.lags_ms), n_words, 8)


def test_words_look_like_language() -> None:
    words = study().stimulus("stimulus01").words
    assert words["onset_s"][0] == 1.0
    sizes = words.group_by("sentence_id").len()["len"]
    assert sizes.min() == 5
    assert sizes.max() == 12
    assert words["sentence_id"].n_unique() == 60
    assert words["story_id"].n_unique() == 3
    counts = words["word"].value_counts(sort=True)["count"]
    assert counts[0] > 10 * counts.median()  # type: ignore[operator]
    duration_s = (words["offset_s"] - words["onset_s"]).to_numpy()
    assert np.corrcoef(duration_s, words["word"].str.len_chars().to_numpy())[0, 1] > 0.8
    pause_s = words["onset_s"].to_numpy()[1:] - words["offset_s"].to_numpy()[:-1]
    within = np.diff(words["sentence_id"].to_numpy()) == 0
    assert pause_s[within].max() < pause_s[~within].min()


def test_envelope_follows_the_words() -> None:
    stimulus = study(**SMALL).stimulus("stimulus01")
    envelope = stimulus.envelope
    assert envelope is not None
    times_s = envelope.start_s + np.arange(len(envelope.values)) / envelope.sampling_rate_hz
    middle_s = stimulus.words.select((stimulus.words["onset_s"] + stimulus.words["offset_s"]) / 2)
    speech = np.interp(middle_s.to_series().to_numpy(), times_s, envelope.values)
    silence = envelope.values[times_s < 1.0]
    assert envelope.sampling_rate_hz == 50.0
    assert np.median(speech) > 10 * silence.max()


def test_runs_share_a_stimulus_or_have_one_each() -> None:
    repeated, fresh = study(n_runs=3), study(n_runs=3, repeat_stimulus=False)
    assert {i.stimulus for i in repeated.recording_ids()} == {"stimulus01"}
    for recording_id in fresh.recording_ids():
        assert recording_id.stimulus == f"stimulus{recording_id.run}"


def test_units_are_shared_or_private() -> None:
    for shared in (True, False):
        dataset = study(shared_units=shared, **SMALL)
        first, other = (dataset.recording(i) for i in dataset.recording_ids()[1:3])
        assert first.id.subject != other.id.subject
        assert (first.units.order_hash() == other.units.order_hash()) == shared


def test_source_is_the_hash_of_the_recipe() -> None:
    (source,) = study().source_files()
    assert source == study().source_files()[0]
    others = [study(seed=1), study(name="x"), study(snr=0.5)]
    assert len({source.sha256, *(other.source_files()[0].sha256 for other in others)}) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_subject": 2}, "did you mean 'n_subjects'"),
        ({"modality": "eeg"}, "modality"),
        ({"truths": ["drift", "drift"]}, "truths lists a name twice"),
        ({"mechanisms": ["surprise"]}, "mechanisms"),
        ({"mechanisms": []}, "needs at least one"),
        ({"mechanisms": list(MECHANISMS), "n_units": 16}, "need 18 units"),
        ({"n_regions": 5, "n_units": 4}, "n_regions"),
        ({"snr": -1.0}, "snr"),
        ({"noise_autocorrelation": 1.0}, "noise_autocorrelation"),
        ({"n_units": "16"}, "n_units"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DATASETS.build("simulated", options)


def test_every_option_is_described() -> None:
    assert [n for n, f in SimulatedOptions.model_fields.items() if not f.description] == []


def test_unknown_ids() -> None:
    dataset = study(**SMALL)
    with pytest.raises(RecordingError, match="there is no recording"):
        dataset.recording(RecordingId("99", "01", "01", "stimulus01"))
    with pytest.raises(StimulusError, match="did you mean 'stimulus01'"):
        dataset.stimulus("stimulus1")


def test_cached_mechanisms_cannot_be_changed_by_accident() -> None:
    surprisal = study(**SMALL).stimulus("stimulus01").mechanisms["surprisal"]
    with pytest.raises(ValueError, match="read-only"):
        surprisal[0] = 0.0


@pytest.mark.parametrize(
    ("reader", "options"),
    [
        ("simulated", {"n_units": 1_000_000}),
        ("simulated", {"n_subjects": 1_000_000, "n_sessions": 1_000_000, "n_stories": 1}),
        ("simulated", {"n_context_dims": 1_000_000}),
        ("simulated", {"n_layers": 1_000_000}),
        ("simulated", {"vocabulary_size": 1_000_000}),
        ("simulated_brains", {"n_repetitions": 1_000_000}),
        ("simulated_brains", {"n_stimuli": 1_000_000, "n_units": 1000}),
        ("simulated_brains", {"n_latents": 1_000_000}),
        ("simulated_passages", {"n_subjects": 20_000, "n_units": 2}),
        ("simulated_passages", {"n_categories": 1_000_000}),
        ("simulated_passages", {"n_columns": 1_000_000}),
        ("simulated_regions", {"n_subjects": 10**9}),
        ("simulated_regions", {"n_regions": 10_000, "n_units": 1}),
        ("simulated_regions", {"n_latents": 1_000_000}),
        ("simulated_regions", {"n_models": 1_000_000}),
    ],
)
def test_sizes_that_would_fill_the_memory_are_refused(reader: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"can be simulated, so lower|less than or equal to"):
        DATASETS.build(reader, options)


def test_sizes_of_published_comparisons_can_be_simulated() -> None:
    published = {
        "n_subjects": 10,
        "n_regions": 22,
        "n_units": 1000,
        "n_train": 1000,
        "n_test": 102,
        "n_repetitions": 10,
    }
    DATASETS.build("simulated_regions", published)
