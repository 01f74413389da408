"""The simulated dataset and its reader."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from lpact.datasets.base import Recording, RecordingId, Stimulus, Units
from lpact.datasets.simulated.base import SimulatedDataset
from lpact.datasets.simulated.brain import Gains, make_signal, recording_gains, recording_length_s
from lpact.datasets.simulated.features import SimulatedFeatures
from lpact.datasets.simulated.latents import Latents, make_latents
from lpact.datasets.simulated.options import MECHANISMS, SimulatedOptions
from lpact.datasets.simulated.prose import stories_digest
from lpact.datasets.simulated.streams import Streams
from lpact.datasets.simulated.words import Vocabulary, make_envelope, make_vocabulary, make_words

HEAD_RADIUS_MM = 70.0


class Simulated(SimulatedDataset[SimulatedOptions]):
    """Studies with known truth: nothing, drift, nuisance, lexical, predictive, relational, mechanism."""

    name = "simulated"
    noun = "simulated dataset"
    summary = "simulated studies with known truth"
    Options = SimulatedOptions

    @property
    def _streams(self) -> Streams:
        return Streams(self.seed, self.opened_as)

    @cached_property
    def _known(self) -> dict[str, SimulatedFeatures]:
        return {}

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

    def _recording(self, recording_id: RecordingId, where: str) -> Recording:
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

    def latents(self, stimulus_id: str) -> Latents:
        """Return the known truth about a stimulus' words."""
        self.stimulus(stimulus_id)
        return self._known[stimulus_id].latents

    def gains(self, recording_id: RecordingId) -> Gains:
        """Return the known truth about a recording's units."""
        return recording_gains(self.options, self._streams, recording_id)

    def _recipe(self) -> dict[str, Any]:
        recipe = super()._recipe()
        if self.options.text == "syllables":
            del recipe["text"]  # keeps the checksum of studies from before this option
        else:
            recipe["text"] = stories_digest()
        return recipe

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        options, streams, vocabulary = self.options, self._streams, self._vocabulary
        words = make_words(options, vocabulary, streams, stimulus_id)
        latents = make_latents(words, vocabulary, options, streams.rng("latents", stimulus_id))
        known = SimulatedFeatures(stimulus_id, options, streams, vocabulary, words, latents)
        self._known[stimulus_id] = known
        mechanisms = {}
        if options.text != "prose":
            values = latents.contextual.mechanisms.T.copy()
            values.flags.writeable = False
            mechanisms = dict(zip(MECHANISMS, values, strict=True))
        return Stimulus(
            id=stimulus_id,
            words=words.frame(vocabulary),
            where=f"{self.where}, stimulus '{stimulus_id}'",
            features=known.offered(),
            mechanisms=mechanisms,
            envelope=make_envelope(words, recording_length_s(options, words), streams.rng("envelope", stimulus_id)),
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
