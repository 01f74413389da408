"""The simulated dataset and its reader."""

from __future__ import annotations

import json
from copy import copy
from functools import cached_property
from pathlib import Path

import numpy as np

from lpact.datasets.base import (
    Dataset,
    DatasetInfo,
    DatasetReader,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
    Units,
)
from lpact.datasets.simulated.brain import Gains, make_signal, recording_gains, recording_length_s
from lpact.datasets.simulated.features import SimulatedFeatures
from lpact.datasets.simulated.latents import Latents, make_latents
from lpact.datasets.simulated.options import MECHANISMS, SimulatedOptions
from lpact.datasets.simulated.prose import stories_digest
from lpact.datasets.simulated.streams import Streams
from lpact.datasets.simulated.words import Vocabulary, make_envelope, make_vocabulary, make_words
from lpact.errors import RecordingError, StimulusError, require_known
from lpact.math.types import FloatArray
from lpact.validation import config_digest

GENERATOR_VERSION = "1"
"""Goes up whenever the same options give other numbers."""

LICENCE = "CC0-1.0"
HEAD_RADIUS_MM = 70.0


class Simulated(Dataset, DatasetReader):
    """Studies with known truth: nothing, drift, nuisance, lexical, predictive, relational, mechanism.

    They are a function of options, name and seed. Stimuli are made once; every recording is made on its own.
    """

    name = "simulated"
    summary = "simulated studies with known truth"
    Options = SimulatedOptions
    needs_path = False
    info = DatasetInfo(source="lpact simulation", version=GENERATOR_VERSION, licence=LICENCE)
    options: SimulatedOptions
    _streams: Streams
    _stimuli: dict[str, Stimulus]
    _known: dict[str, SimulatedFeatures]

    def open(self, *, name: str, path: Path | None, seed: int) -> Simulated:  # noqa: ARG002
        """Open the simulated dataset ``name``."""
        opened = copy(self)
        opened._streams, opened._stimuli, opened._known = Streams(seed, name), {}, {}
        return opened

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return make_vocabulary(self.options, self._streams)

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        options = self.options
        return sorted(
            RecordingId(
                subject=f"{subject:02d}",
                session=f"{session:02d}",
                run=f"{run:02d}",
                stimulus=f"stimulus{1 if options.repeat_stimulus else run:02d}",
            )
            for subject in range(1, options.n_subjects + 1)
            for session in range(1, options.n_sessions + 1)
            for run in range(1, options.n_runs + 1)
        )

    def recording(self, recording_id: RecordingId) -> Recording:
        """Generate one recording."""
        where = f"simulated dataset '{self._streams.dataset}', recording {recording_id}"
        known_ids = map(str, self.recording_ids())
        require_known(str(recording_id), known_ids, "recording", where=where, error=RecordingError)
        stimulus = self.stimulus(recording_id.stimulus)
        known = self._known[recording_id.stimulus]
        place = (recording_id.subject, recording_id.session, recording_id.run)
        signal = make_signal(
            self.options,
            known.words,
            known.latents,
            self.gains(recording_id),
            self._streams.rng("noise", *place),
            stimulus.envelope,
        )
        return Recording(recording_id, signal, self._units(recording_id.subject), where)

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Return one stimulus; the same object every time."""
        if stimulus_id not in self._stimuli:
            where, known = f"simulated dataset '{self._streams.dataset}'", self.stimulus_ids()
            require_known(stimulus_id, known, "stimulus", where=where, error=StimulusError)
            self._stimuli[stimulus_id] = self._make_stimulus(stimulus_id)
        return self._stimuli[stimulus_id]

    def latents(self, stimulus_id: str) -> Latents:
        """Return the known truth about a stimulus' words."""
        self.stimulus(stimulus_id)
        return self._known[stimulus_id].latents

    def gains(self, recording_id: RecordingId) -> Gains:
        """Return the known truth about a recording's units."""
        return recording_gains(self.options, self._streams, recording_id)

    def source_files(self) -> list[SourceFile]:
        """Return one generated source: the hash of everything that the numbers depend on."""
        options = self.options.model_dump(mode="json")
        if self.options.text == "syllables":
            del options["text"]  # keeps the checksum of studies from before this option
        else:
            options["text"] = stories_digest()
        recipe = {
            "generator": GENERATOR_VERSION,
            "name": self._streams.dataset,
            "options": options,
            "seed": self._streams.seed,
        }
        text = json.dumps(recipe, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = config_digest(recipe)
        return [SourceFile("generated:simulated", len(text.encode()), digest, LICENCE)]

    def _make_stimulus(self, stimulus_id: str) -> Stimulus:
        options, streams, vocabulary = self.options, self._streams, self._vocabulary
        words = make_words(options, vocabulary, streams, stimulus_id)
        latents = make_latents(words, vocabulary, options, streams.rng("latents", stimulus_id))
        known = SimulatedFeatures(stimulus_id, options, streams, vocabulary, words, latents)
        self._known[stimulus_id] = known
        return Stimulus(
            id=stimulus_id,
            words=words.frame(vocabulary),
            where=f"simulated dataset '{streams.dataset}', stimulus '{stimulus_id}'",
            features=known.offered(),
            mechanisms={}
            if options.text == "prose"
            else {
                name: _read_only(latents.contextual.mechanisms[:, index])
                for index, name in enumerate(MECHANISMS)
            },
            envelope=make_envelope(
                words, recording_length_s(options, words), streams.rng("envelope", stimulus_id)
            ),
        )

    def _units(self, subject: str) -> Units:
        """Units on a spiral around the head, dealt into regions from top to bottom."""
        n_units, n_regions = self.options.n_units, self.options.n_regions
        prefix = "" if self.options.shared_units else f"s{subject}-"
        height = 1.0 - (2.0 * np.arange(n_units) + 1.0) / n_units
        angle = np.arange(n_units) * np.pi * (3.0 - np.sqrt(5.0))
        radius = np.sqrt(1.0 - height**2)
        place = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), height])
        return Units(
            ids=tuple(f"{prefix}u{unit + 1:03d}" for unit in range(n_units)),
            regions=tuple(f"region{unit * n_regions // n_units + 1}" for unit in range(n_units)),
            coordinates_mm=HEAD_RADIUS_MM * place,
            coordinate_frame="head",
        )


def _read_only(values: FloatArray) -> FloatArray:
    copy = values.copy()
    copy.flags.writeable = False
    return copy
