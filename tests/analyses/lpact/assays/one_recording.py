"""A dataset of one recording that a test makes itself, and the assay's tables of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.assays.signal import kind_of
from lpact.analyses.lpact.assays.stimulus import Place, run_recording
from lpact.analyses.lpact.config import LPactConfig
from lpact.datasets.base import (
    Dataset,
    DatasetInfo,
    Epochs,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
    TimeSeries,
    Units,
)
from lpact.datasets.simulated.streams import ar1
from lpact.inputs.prepare import Prepared, inspect
from lpact.math.types import FloatArray

ID = RecordingId("1", "1", "1", "tale")


class OneRecording(Dataset):
    """Holds one recording and its stimulus."""

    info = DatasetInfo("a test", "1", "none")

    def __init__(self, recording: Recording, stimulus: Stimulus) -> None:
        self._recording, self._stimulus = recording, stimulus

    def recording_ids(self) -> list[RecordingId]:
        return [self._recording.id]

    def recording(self, recording_id: RecordingId) -> Recording:
        return self._recording

    def stimulus(self, stimulus_id: str) -> Stimulus:
        return self._stimulus

    def source_files(self) -> list[SourceFile]:
        return []


def make_words(rng: np.random.Generator, n_words: int, n_stories: int = 1) -> pl.DataFrame:
    """Words of 150 to 400 ms with pauses; two seconds between stories."""
    length_s = rng.uniform(0.15, 0.4, n_words)
    pause_s = rng.uniform(0.02, 0.1, n_words)
    pause_s[rng.random(n_words) < 0.1] += 0.4
    story = np.arange(n_words) * n_stories // n_words
    pause_s[:-1][np.diff(story) > 0] += 2.0
    onset_s = 2.0 + np.concatenate([[0.0], np.cumsum(length_s + pause_s)[:-1]])
    return pl.DataFrame(
        {
            "word": [f"w{i}" for i in range(n_words)],
            "onset_s": onset_s,
            "offset_s": onset_s + length_s,
            "sentence_id": np.arange(n_words) // 8,
            "story_id": [f"s{number}" for number in story],
        }
    )


def noise(rng: np.random.Generator, duration_s: float, n_units: int = 4, rate_hz: float = 50.0) -> FloatArray:
    """Autocorrelated noise of variance 1, [n_samples, n_units]."""
    return ar1(rng, int(duration_s * rate_hz), n_units, 0.8)


def make_recording(values: FloatArray, rate_hz: float = 50.0, start_s: float = 0.0, **more: Any) -> Recording:
    units = tuple(f"u{number}" for number in range(values.shape[-1]))
    signal = TimeSeries(values, rate_hz, start_s)
    return Recording(ID, signal, Units(units, ("r",) * len(units)), "here", **more)


def make_epochs(values: FloatArray, lags_ms: tuple[float, ...]) -> Recording:
    recording = make_recording(values[0])
    return replace(recording, signal=Epochs(values, lags_ms))


def study(seed: int = 0, **sections: Any) -> LPactConfig:
    """A study of the one recording."""
    dataset = {"name": "set", "reader": "simulated"} | sections.pop("dataset", {})
    return LPactConfig.model_validate(
        {
            "name": "assay",
            "seed": seed,
            "datasets": (dataset,),
            "models": ({"name": "none", "layers": (0,)},),
            **sections,
        },
        strict=False,
    )


def assay(recording: Recording, stimulus: Stimulus, config: LPactConfig | None = None) -> dict[str, pl.DataFrame]:
    """The assay's tables of a recording, by short name."""
    config = config or study()
    dataset, entry = OneRecording(recording, stimulus), config.datasets[0]

    def prepared() -> Prepared:
        found = inspect(dataset, recording.id, name=entry.name, config=config).prepared
        assert found is not None
        return found

    rate_hz = getattr(recording.signal, "sampling_rate_hz", None)
    if entry.preprocess.resample_hz is not None:
        rate_hz = entry.preprocess.resample_hz
    place = Place(config, entry, recording.id, kind_of(rate_hz, entry))
    tables = run_recording(place, dataset, prepared)
    return {name.split("/")[1].split("_positive")[0]: table for name, table in tables.items()}


LOW, STANDALONE, FULL, PROXY = (
    "low_level_neural",
    "acoustic_envelope_standalone",
    "acoustic_envelope_full_length",
    "low_level_nuisance_sanity_proxy",
)
