"""Simulated brains whose regions carry the same latent variables with different gains, and models of regions.

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
from lpact.datasets.connectivity import Connectivity
from lpact.datasets.simulated.base import SimulatedDataset
from lpact.datasets.simulated.options import MOST, MOST_LAYERS, Count, check_size
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.registry import PluginOptions

Positive = Annotated[float, Field(gt=0.0)]

FULL = "full"
TRAIN, TEST = "train", "test"
WIDTH = 0.18
"""Width of the gains, and decay of connectivity, on the line from 0 to 1 on which regions and latents lie."""
ONE_MORE_BRAIN, ALL_LATENTS, UNTRAINED_BRAIN, NOISE = (
    "one_more_brain",
    "all_latents",
    "untrained_brain",
    "noise",
)
UNTRAINED_SNR = 0.05
JITTER_MM = 4.0
OTHERS = 3
"""Regions of the connectivity matrix that are not recorded, per region that is."""


class RegionsOptions(PluginOptions):
    """How many brains, regions, units and stimuli, and what the regions share."""

    n_subjects: Annotated[int, Field(ge=2, le=MOST)] = 5
    """Number of brains."""
    n_regions: Annotated[int, Field(ge=2, le=MOST)] = 8
    """Regions of every brain."""
    n_units: Count = 80
    """Units per region."""
    n_train: Annotated[int, Field(ge=10, le=MOST)] = 400
    """Training stimuli, the story `train`."""
    n_test: Annotated[int, Field(ge=10, le=MOST)] = 98
    """Test stimuli, the story `test`."""
    n_repetitions: Count = 1
    """Trials of every test stimulus."""
    n_train_repetitions: Count = 1
    """Trials of every training stimulus."""
    n_latents: Annotated[int, Field(ge=2, le=MOST)] = 12
    """Latent variables of the stimuli."""
    floor: Annotated[float, Field(ge=0.0)] = 0.35
    """Gain with which every region carries every latent variable, besides those near it."""
    snr_first: Positive = 3.0
    """Variance of the signal, relative to that of the noise of the mean over trials, in the first region."""
    snr_last: Positive = 0.15
    """The same in the last region; those between are evenly spaced on a logarithmic scale."""
    comparable: bool = False
    """Whether units of the same name correspond between brains: their weights then correlate by 0.5.
    `one_more_brain` corresponds, too.
    """
    n_models: Annotated[int, Field(ge=0, le=MOST_LAYERS)] = 0
    """Further models, `model01` …; the first is nearly one more brain, the last has nearly no regions."""
    n_layers: Annotated[int, Field(ge=0, le=MOST_LAYERS)] = 0
    """Layers of every model. 0: one per region."""
    n_columns: Annotated[int, Field(ge=0, le=MOST)] = 0
    """Columns of every layer. 0: as many as units of a region."""

    @model_validator(mode="after")
    def _check(self) -> RegionsOptions:
        n_recordings = self.n_subjects * (self.n_train_repetitions + self.n_repetitions)
        n_stimuli = self.n_train * self.n_train_repetitions + self.n_test * self.n_repetitions
        n_units = self.n_regions * self.n_units
        n_columns = self.n_columns or self.n_units
        check_size(
            n_recordings,
            (self.n_subjects, n_stimuli, n_units),
            (n_recordings, self.n_regions, max(self.n_train, self.n_test) + self.n_units, self.n_latents),
            (max(self.n_train, self.n_test, self.n_latents), n_columns),
            ((OTHERS + 1) * self.n_regions, (OTHERS + 1) * self.n_regions),
        )
        return self


class SimulatedRegions(SimulatedDataset[RegionsOptions]):
    """Brains whose regions share latent variables with different gains, and models of regions."""

    name = "simulated_regions"
    noun = "simulated regions"
    summary = "simulated brains whose regions share latent variables, and models of these regions"
    Options = RegionsOptions

    def _rng(self, *place: str | int) -> np.random.Generator:
        return keyed_rng(self.seed, self.noun, self.opened_as, *place)

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of the regions, in their order on the line."""
        return tuple(f"region{r + 1:02d}" for r in range(self.options.n_regions))

    @property
    def models(self) -> tuple[str, ...]:
        """Names of all models."""
        more = (f"model{m + 1:02d}" for m in range(self.options.n_models))
        return (ONE_MORE_BRAIN, ALL_LATENTS, UNTRAINED_BRAIN, NOISE, *more)

    @property
    def n_layers(self) -> int:
        """Layers of every model."""
        return self.options.n_layers or self.options.n_regions

    def latents(self, stimulus_id: str) -> FloatArray:
        """Latent variables of the stimuli, [stimuli, latents]."""
        o = self.options
        n = o.n_test if stimulus_id == TEST else o.n_train
        return self._rng("latents", stimulus_id).standard_normal((n, o.n_latents))

    def gains(self, place: float) -> FloatArray:
        """Gain of every latent variable at a place between 0, the first region, and 1, the last."""
        apart = place - np.linspace(0.0, 1.0, self.options.n_latents)
        return np.asarray(np.exp(-(apart**2) / (2.0 * WIDTH**2)) + self.options.floor)

    def snr(self, place: float) -> float:
        """Signal-to-noise ratio at a place."""
        first, last = self.options.snr_first, self.options.snr_last
        return float(first * (last / first) ** place)

    def _signal(self, stimulus_id: str, gains: FloatArray, weights: FloatArray) -> FloatArray:
        """Weighted sums of latent variables, of variance 1 in every column."""
        mixing = gains[:, None] * weights
        return np.asarray(self.latents(stimulus_id) @ (mixing / np.linalg.norm(mixing, axis=0)))

    def activity(self, stimulus_id: str, who: str, region: int) -> FloatArray:
        """Noise-free activity of a region of a brain, [stimuli, units]; every unit has the variance 1."""
        gains = self.gains(_place(region, self.options.n_regions))
        return self._signal(stimulus_id, gains, self._weights(who, region, self.options.n_units))

    def _weights(self, who: str, region: int, n_units: int) -> FloatArray:
        """Weights of the latent variables, [latents, units], of a brain or model."""
        shape = (n_units, self.options.n_latents)
        weights = self._rng("weights", who, region).standard_normal(shape)
        if self.options.comparable and who not in self.models[1:]:
            weights += self._rng("weights", region).standard_normal(shape)
        return weights.T

    def recording_ids(self) -> list[RecordingId]:
        """Return every brain's trials: one recording per set of stimuli and repetition."""
        o = self.options
        return sorted(
            RecordingId(f"{i:02d}", "01", f"{stimulus}-{r:02d}", stimulus)
            for i in range(1, o.n_subjects + 1)
            for stimulus, n in ((TRAIN, o.n_train_repetitions), (TEST, o.n_repetitions))
            for r in range(1, n + 1)
        )

    def _recording(self, recording_id: RecordingId, where: str) -> Recording:
        o, who, stimulus = self.options, recording_id.subject, recording_id.stimulus
        noise = self._rng("noise", who, recording_id.run)
        n_trials = o.n_repetitions if stimulus == TEST else o.n_train_repetitions
        parts = []
        for region in range(o.n_regions):
            signal = self.activity(stimulus, who, region)
            spread = np.sqrt(n_trials / self.snr(_place(region, o.n_regions)))
            parts.append(signal + spread * noise.standard_normal(signal.shape))
        values = np.concatenate(parts, axis=1)
        return Recording(recording_id, Epochs(values[None], (0.0,), "a.u."), self._units(who), where)

    def _units(self, who: str) -> Units:
        """Units of all regions: half of each region in either hemisphere, from the back of the brain to the front."""
        o = self.options
        place = np.repeat(np.linspace(0.0, 1.0, o.n_regions), o.n_units)
        unit = np.tile(np.arange(o.n_units), o.n_regions)
        arch = np.sin(np.pi * place)
        side = np.where(unit % 2 == 0, -1.0, 1.0)
        centre = np.column_stack([side * (22 + 20 * arch), -85 + 125 * place, 5 + 35 * arch])
        jitter = self._rng("places", *(() if o.comparable else (who,)))
        places = (centre + JITTER_MM * jitter.standard_normal(centre.shape)).round(1)
        prefix = "" if o.comparable else f"s{who}-"
        ids = tuple(f"{prefix}{r}-u{i + 1:03d}" for r in self.regions for i in range(o.n_units))
        regions = tuple(np.repeat(self.regions, o.n_units).tolist())
        return Units(ids, regions, places, "MNI152NLin2009cAsym", o.comparable)

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        """Return the stimuli of a set, with the layers of every model."""
        n = self.options.n_test if stimulus_id == TEST else self.options.n_train
        names = [f"{stimulus_id}{i + 1:04d}" for i in range(n)]
        items = pl.DataFrame({ITEM: names}).with_columns(story_id=pl.lit(stimulus_id))
        table, unknown = items_table(items, stimulus_id)
        offered = {
            (key := FeatureKey(model, layer, FULL)): OfferedFeatures(
                self.where, partial(self.features, key, stimulus_id)
            )
            for model in self.models
            for layer in range(self.n_layers)
        }
        return Stimulus(stimulus_id, table, self.where, features=offered, unknown=unknown)

    def features(self, key: FeatureKey, stimulus_id: str) -> FloatArray:
        """Features of the stimuli of a set, [stimuli, columns]."""
        o, place = self.options, _place(key.layer, self.n_layers)
        weights = self._weights(key.model, key.layer, o.n_columns or o.n_units)
        everything, gains = np.ones(o.n_latents), self.gains(place)
        if key.model in (ALL_LATENTS, UNTRAINED_BRAIN):
            gains = everything
        elif key.model not in (ONE_MORE_BRAIN, NOISE):
            share = (self.models.index(key.model) - 3) / (o.n_models + 1)
            gains = (1.0 - share) * gains + share * everything
        signal = self._signal(stimulus_id, gains, weights)
        if key.model in (UNTRAINED_BRAIN, NOISE):  # what they carry besides the latent variables
            signal *= np.sqrt(UNTRAINED_SNR if key.model == UNTRAINED_BRAIN else 0.0)
            signal += self._rng("model noise", key.model, key.layer, stimulus_id).standard_normal(signal.shape)
        return signal

    def connectivity(self) -> Connectivity:
        """Weights that decay with the distance of regions, of these regions and of others that are not recorded."""
        o = self.options
        n_others = OTHERS * o.n_regions
        others = np.sort(self._rng("other regions").uniform(0.0, 1.0, n_others))
        places = np.concatenate([np.linspace(0.0, 1.0, o.n_regions), others])
        names = (*self.regions, *(f"other{i + 1:02d}" for i in range(n_others)))
        weights = np.exp(-np.abs(places[:, None] - places) / WIDTH)
        return Connectivity(names, weights, self.where)


def _place(index: int, n: int) -> float:
    """Place of one of n regions, or layers, on the line from 0 to 1."""
    return index / max(1, n - 1)
