"""A dataset: a few made-up recordings in memory."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from lpact.datasets.base import (
    Dataset,
    DatasetInfo,
    DatasetReader,
    Epochs,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
    Units,
)
from lpact.math.seeding import keyed_rng
from lpact.registry import PluginOptions

LICENCE = "CC0-1.0"
LAGS_MS = (0.0, 200.0)
N_UNITS = 9
SENTENCE_WORDS = 6
N_STORIES = 3


class TinyOptions(PluginOptions):
    """Options of `tiny`."""

    n_subjects: int = Field(2, ge=1, description="Subjects; each has two runs.")
    n_words: int = Field(180, ge=N_STORIES * SENTENCE_WORDS, description="Words of the stimulus.")


class TinyDataset(Dataset):
    """Units respond to the length of the word, each with a gain of its own, in noise."""

    info = DatasetInfo(source="lpact-example-plugins", version="1", licence=LICENCE)

    def __init__(self, options: TinyOptions, *, name: str, seed: int) -> None:
        self.options, self.name, self.seed = options, name, seed

    def recording_ids(self) -> list[RecordingId]:
        """Return two runs a subject."""
        subjects = [f"{s:02d}" for s in range(1, self.options.n_subjects + 1)]
        return [RecordingId(s, "01", run, "text") for s in subjects for run in ("01", "02")]

    def recording(self, recording_id: RecordingId) -> Recording:
        """Return word epochs, [2, n_words, 9]."""
        length = self.stimulus(recording_id.stimulus).words["word"].str.len_chars().to_numpy()
        gains = np.linspace(0.1, 1.0, N_UNITS)
        rng = keyed_rng(self.seed, self.name, recording_id.subject, recording_id.run)
        noise = rng.standard_normal((len(LAGS_MS), len(length), N_UNITS))
        units = Units(tuple(f"u{i}" for i in range(N_UNITS)), ("region",) * N_UNITS)
        values = np.outer(length - length.mean(), gains) + noise
        return Recording(recording_id, Epochs(values, LAGS_MS), units, f"tiny, {recording_id}")

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Return random pseudo-words in sentences of six and three stories, with a surprisal."""
        n_words = self.options.n_words
        rng = keyed_rng(self.seed, self.name, "words")
        lengths = rng.integers(1, 9, n_words)
        row = np.arange(n_words)
        sentence = row // SENTENCE_WORDS
        story = sentence * N_STORIES // (int(sentence[-1]) + 1)
        words = pl.DataFrame(
            {
                "word": ["".join(rng.choice(list("aeiounrstlkm"), n)) for n in lengths],
                "onset_s": 0.4 * row,
                "offset_s": 0.4 * row + 0.3,
                "sentence_id": sentence,
                "story_id": [f"story{s}" for s in story],
            }
        )
        surprisal = rng.standard_normal(n_words)
        return Stimulus(stimulus_id, words, "tiny", mechanisms={"surprisal": surprisal})

    def source_files(self) -> list[SourceFile]:
        """Return the recipe as one generated source."""
        recipe = f"{self.name} {self.seed} {self.options.model_dump_json()}".encode()
        digest = hashlib.sha256(recipe).hexdigest()
        return [SourceFile("generated:tiny", len(recipe), digest, LICENCE)]


class Tiny(DatasetReader):
    """The reader that opens `TinyDataset`."""

    name = "tiny"
    summary = "a few made-up recordings in memory"
    needs_path = False
    Options: ClassVar[type[PluginOptions]] = TinyOptions
    options: TinyOptions

    def open(self, *, name: str, path: Path | None, seed: int) -> TinyDataset:
        """Open the dataset; it is a function of options, name and seed."""
        return TinyDataset(self.options, name=name, seed=seed)
