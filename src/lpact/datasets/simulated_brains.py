"""Simulated brains that share latent variables, and models that share more, as many or fewer of them.

docs/explanation/simulated-studies.md has the equations.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from lpact.datasets.base import (
    ITEM,
    Epochs,
    FeatureKey,
    OfferedFeatures,
    Recording,
    RecordingId,
    Stimulus,
    Units,
    items_table,
)
from lpact.datasets.simulated.base import SimulatedDataset
from lpact.datasets.simulated.options import MOST, MOST_LAYERS, Count, check_size
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.registry import PluginOptions

Share = Annotated[float, Field(ge=0.0, le=0.5)]

FULL = "full"
STIMULI = "stimuli"
TEMPORAL, FRONTAL = "temporal", "frontal"
MODELS = {"half_brain": 0.5, "mean_brain": None, "sixth_brain": 1.0}
"""Latents that a model sees, relative to a brain; None: all of them, and none of its own."""


class BrainsOptions(PluginOptions):
    """How many brains, stimuli, trials and units, and how much the brains share."""

    n_subjects: Annotated[int, Field(ge=2, le=MOST)] = 5
    """Number of brains."""
    n_stimuli: Annotated[int, Field(ge=20, le=MOST)] = 240
    """Number of stimuli."""
    n_repetitions: Count = 4
    """Trials of every stimulus."""
    n_units: Annotated[int, Field(ge=2, le=MOST)] = 80
    """Units per brain; the second half is in the region `frontal`."""
    n_latents: Annotated[int, Field(ge=4, le=MOST)] = 30
    """Latent variables of the stimuli."""
    n_seen: Annotated[int, Field(ge=2, le=MOST)] = 24
    """Latent variables that each brain sees."""
    own: Share = 0.15
    """Share of variance of latents that only one brain has; twice as much in the region `frontal`."""
    noise: Annotated[float, Field(ge=0.0)] = 1.0
    """Standard deviation of the noise of a trial, relative to that of the signal."""
    lags_ms: tuple[float, ...] = Field((0.0, 100.0, 200.0), min_length=1)
    """Lags at which responses are taken."""
    gains: tuple[float, ...] = Field((0.3, 1.0, 0.6), min_length=1)
    """Gain of the signal at every lag."""
    n_layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)] = 2
    """Layers of every model."""

    @model_validator(mode="after")
    def _check(self) -> BrainsOptions:
        if self.n_seen > self.n_latents:
            raise ValueError("n_seen is above n_latents; lower it")
        if len(self.gains) != len(self.lags_ms):
            raise ValueError(
                f"gains has {len(self.gains)} values and lags_ms {len(self.lags_ms)}; give one gain per lag"
            )
        n_recordings = self.n_subjects * self.n_repetitions
        check_size(
            n_recordings,
            (n_recordings, len(self.lags_ms), self.n_stimuli, self.n_units),
            (n_recordings, self.n_stimuli + self.n_units, self.n_latents),
        )
        return self


class SimulatedBrains(SimulatedDataset[BrainsOptions]):
    """Brains that share latent variables of the stimuli, and models that share more or fewer."""

    name = "simulated_brains"
    noun = "simulated brains"
    summary = "simulated brains that share latent variables, and models that share more or fewer"
    Options = BrainsOptions

    def _rng(self, *place: str | int) -> np.random.Generator:
        return keyed_rng(self.seed, self.noun, self.opened_as, *place)

    @property
    def regions(self) -> tuple[str, ...]:
        """Region of every unit."""
        half = -(-self.options.n_units // 2)
        return (TEMPORAL,) * half + (FRONTAL,) * (self.options.n_units - half)

    def latents(self) -> FloatArray:
        """Shared latent variables, [stimuli, latents]."""
        return self._rng("latents").standard_normal((self.options.n_stimuli, self.options.n_latents))

    def activity(self, who: str, n_seen: int | None) -> FloatArray:
        """Noise-free activity of a brain (or model), [stimuli, units].

        ``n_seen`` None: it sees all shared latents, and has none of its own.
        """
        o, rng = self.options, self._rng("brain", who)
        seen = rng.choice(o.n_latents, o.n_latents if n_seen is None else n_seen, replace=False)
        n_own = max(2, o.n_latents // 4)
        private = rng.standard_normal((o.n_stimuli, n_own)) @ rng.standard_normal((n_own, o.n_units))
        shared = self.latents()[:, seen] @ rng.standard_normal((len(seen), o.n_units))
        share = np.where(np.array(self.regions) == FRONTAL, 2.0 * o.own, o.own)
        share = share if n_seen is not None else np.zeros(o.n_units)
        made: FloatArray = np.sqrt((1.0 - share) / len(seen)) * shared + np.sqrt(share / n_own) * private
        return made

    def recording_ids(self) -> list[RecordingId]:
        """Return every brain's trials, one recording per repetition."""
        o = self.options
        return [
            RecordingId(f"{i:02d}", "01", f"{r:02d}", STIMULI)
            for i in range(1, o.n_subjects + 1)
            for r in range(1, o.n_repetitions + 1)
        ]

    def _recording(self, recording_id: RecordingId, where: str) -> Recording:
        o, subject = self.options, recording_id.subject
        signal = self.activity(subject, o.n_seen)
        noise = self._rng("noise", subject, recording_id.run)
        values = np.multiply.outer(np.array(o.gains), signal)
        values += o.noise * noise.standard_normal(values.shape)
        ids = tuple(f"s{subject}-u{i + 1:03d}" for i in range(o.n_units))
        units = Units(ids, self.regions, comparable=False)
        return Recording(recording_id, Epochs(values, o.lags_ms, "a.u."), units, where)

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        """Return the stimuli, with the layers of every model."""
        names = [f"item{i + 1:04d}" for i in range(self.options.n_stimuli)]
        table, unknown = items_table(pl.DataFrame({ITEM: names}), stimulus_id)
        offered = {
            (key := FeatureKey(model, layer, FULL)): OfferedFeatures(self.where, partial(self.features, key))
            for model in MODELS
            for layer in range(self.options.n_layers)
        }
        return Stimulus(stimulus_id, table, self.where, features=offered, unknown=unknown)

    def features(self, key: FeatureKey) -> FloatArray:
        """Features of every stimulus: the first units of the model's activity, more of them in every layer."""
        share, o = MODELS[key.model], self.options
        activity = self.activity(key.model, None if share is None else max(1, round(share * o.n_seen)))
        return activity[:, : max(1, round(o.n_units * (key.layer + 1) / o.n_layers))]
