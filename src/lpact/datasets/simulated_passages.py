"""Simulated sentences in passages, with a known share of variance for every kind of feature.

docs/explanation/simulated-studies.md has the equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field, model_validator
from scipy.signal import lfilter

from lpact.datasets.base import Epochs, FeatureKey, OfferedFeatures, Recording, RecordingId, Stimulus, Units
from lpact.datasets.simulated.base import SimulatedDataset
from lpact.datasets.simulated.options import MOST, MOST_LAYERS, MOST_TYPES, Count, check_size
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray, IntArray
from lpact.registry import PluginOptions

Share = Annotated[float, Field(ge=0.0, le=1.0)]

FULL, UNTRAINED = "full", "untrained"
RUN = "passages"
LANGUAGE, VISUAL = "language", "visual"
VISUAL_SHARE = 0.25
SHOWN_S, PAUSE_S = 4.0, 4.0
SHORTEST, LONGEST = 5, 12
"""Words of the shortest and longest sentence."""


class PassagesOptions(PluginOptions):
    """Sizes, and the share of variance of every kind of feature."""

    n_subjects: Count = 4
    """Number of subjects."""
    n_units: Annotated[int, Field(ge=2, le=MOST)] = 30
    """Units per subject; the second half is in the region `visual`."""
    n_categories: Annotated[int, Field(ge=2, le=MOST)] = 24
    """Categories of passages."""
    passages_per_category: Count = 4
    """Passages in every category."""
    sentences_per_passage: Count = 4
    """Sentences in every passage."""
    position: Share = 0.05
    """Share of variance of the sentence's position."""
    length: Share = 0.05
    """Share of variance of the sentence's length."""
    vectors: Share = 0.15
    """Share of variance of static vectors."""
    contextual: Share = 0.05
    """Share of variance that only the model knows."""
    autocorrelation: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.6
    """Correlation of the noise of neighbouring sentences of a passage."""
    n_types: Annotated[int, Field(ge=10, le=MOST_TYPES)] = 400
    """Words of the vocabulary."""
    n_dims: Count = 8
    """Dimensions of static and of contextual vectors."""
    n_columns: Count = 64
    """Columns of the model's layers."""
    n_layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)] = 4
    """Layers of the model above its input."""
    untrained_draws: Annotated[int, Field(ge=0, le=MOST_LAYERS)] = 2
    """Random initialisations of the untrained model."""

    @model_validator(mode="after")
    def _check(self) -> PassagesOptions:
        if (total := self.position + self.length + self.vectors + self.contextual) > 1.0:
            raise ValueError(f"shares add up to {total:g}, which is above 1; lower one of them")
        n_sentences = self.n_categories * self.passages_per_category * self.sentences_per_passage
        n_words = n_sentences * LONGEST
        check_size(
            self.n_subjects,
            (self.n_subjects, n_sentences, self.n_units),
            (n_sentences, self.sentences_per_passage),
            (max(n_words, self.n_types, 2 * self.n_dims), self.n_columns + 2 * self.n_dims),
            (self.sentences_per_passage + 2 * self.n_dims, self.n_units),
        )
        return self


@dataclass(frozen=True, eq=False)
class Text:
    """The words, and what is planted in them; rows are words."""

    options: PassagesOptions
    seed: int
    name: str

    def rng(self, *place: str | int) -> np.random.Generator:
        """The stream of one part of the dataset."""
        return keyed_rng(self.seed, "simulated passages", self.name, *place)

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        o = self.options
        return o.n_categories * o.passages_per_category * o.sentences_per_passage

    @cached_property
    def length(self) -> IntArray:
        """Words of every sentence."""
        return self.rng("length").integers(SHORTEST, LONGEST + 1, self.n_sentences)

    @cached_property
    def sentence(self) -> IntArray:
        """Sentence of every word."""
        return np.repeat(np.arange(self.n_sentences), self.length)

    @cached_property
    def position(self) -> IntArray:
        """Position of every sentence in its passage."""
        return np.arange(self.n_sentences) % self.options.sentences_per_passage

    @cached_property
    def word_type(self) -> IntArray:
        """Type of every word, Zipfian."""
        weights = 1.0 / np.arange(1, self.options.n_types + 1)
        p = weights / weights.sum()
        return self.rng("words").choice(self.options.n_types, self.sentence.size, p=p)

    @cached_property
    def vectors(self) -> FloatArray:
        """Static vectors of the words."""
        of_type = self.rng("vectors").standard_normal((self.options.n_types, self.options.n_dims))
        return of_type[self.word_type]

    @cached_property
    def contextual(self) -> FloatArray:
        """Contextual vectors of the words."""
        return self.rng("contextual").standard_normal((self.sentence.size, self.options.n_dims))

    def summed(self, values: FloatArray) -> FloatArray:
        """Sums over the words of every sentence."""
        starts = np.concatenate([[0], np.cumsum(self.length)[:-1]])
        return np.add.reduceat(values, starts, axis=0)

    @property
    def words(self) -> pl.DataFrame:
        """The words table."""
        o, sentence = self.options, self.sentence
        passage = sentence // o.sentences_per_passage
        within = np.arange(sentence.size) - np.searchsorted(sentence, sentence)
        step_s = SHOWN_S / LONGEST
        onset_s = sentence * (SHOWN_S + PAUSE_S) + within * step_s
        return pl.DataFrame(
            {
                "word": [f"w{kind}" for kind in self.word_type.tolist()],
                "onset_s": onset_s,
                "offset_s": onset_s + step_s,
                "sentence_id": sentence,
                "story_id": [f"passage{p + 1:03d}" for p in passage.tolist()],
                "category": [f"category{p % o.n_categories + 1:02d}" for p in passage.tolist()],
            }
        )

    def responses(self, subject: str) -> FloatArray:
        """Responses of a subject, [sentences, units]."""
        o, rng = self.options, self.rng("subject", subject)
        n, units = self.n_sentences, o.n_units
        one_hot = self.position[:, None] == np.arange(o.sentences_per_passage)
        weights = rng.standard_normal((o.sentences_per_passage + 2 * o.n_dims, units))
        k = o.sentences_per_passage
        parts = {
            "position": one_hot @ weights[:k],
            "length": np.repeat(self.length[:, None], units, axis=1),
            "vectors": self.summed(self.vectors) @ weights[k : k + o.n_dims],
            "contextual": self.summed(self.contextual) @ weights[k + o.n_dims :],
        }
        scale = np.where(np.array(self.regions) == VISUAL, VISUAL_SHARE, 1.0)
        shares = {name: getattr(o, name) * scale for name in parts}
        signal = sum(np.sqrt(shares[name]) * _standard(own) for name, own in parts.items())
        left = 1.0 - sum(shares.values())
        rho, steps = o.autocorrelation, rng.standard_normal((n // k, k, units))
        steps[:, 1:] *= np.sqrt(1.0 - rho**2)
        noise = lfilter([1.0], [1.0, -rho], steps, axis=1).reshape(n, units)
        return np.asarray(signal + np.sqrt(left) * noise)

    def offered(self) -> dict[FeatureKey, OfferedFeatures]:
        """The static vectors, and the layers of the model, trained and untrained."""
        layers, draws = range(self.options.n_layers + 1), range(self.options.untrained_draws)
        trained = [FeatureKey("planted", layer, FULL) for layer in layers]
        untrained = [FeatureKey("planted", k, UNTRAINED, d) for k in layers for d in draws]
        keys = [FeatureKey("vectors", 0, FULL), *trained, *untrained]
        where = f"simulated passages '{self.name}'"
        return {key: OfferedFeatures(where, partial(self.features, key)) for key in keys}

    def features(self, key: FeatureKey) -> FloatArray:
        """Features of every word."""
        o = self.options
        if key.model == "vectors":
            return self.vectors
        if key.context == UNTRAINED:
            rng = self.rng("untrained", key.draw, key.layer)
            of_type = rng.standard_normal((o.n_types, o.n_columns))
            of_position = rng.standard_normal((o.sentences_per_passage, o.n_columns))
            constant = rng.standard_normal(o.n_columns)
            return of_type[self.word_type] + of_position[self.position[self.sentence]] + constant
        known = np.hstack([self.vectors, key.layer / o.n_layers * self.contextual])
        mixing = self.rng("mixing", key.layer).standard_normal((2 * o.n_dims, o.n_columns))
        mixed: FloatArray = known @ mixing / np.sqrt(2 * o.n_dims)
        return mixed

    @property
    def regions(self) -> tuple[str, ...]:
        """Region of every unit."""
        half = -(-self.options.n_units // 2)
        return (LANGUAGE,) * half + (VISUAL,) * (self.options.n_units - half)


def _standard(values: FloatArray) -> FloatArray:
    spread = values.std(axis=0)
    scaled: FloatArray = (values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return scaled


class SimulatedPassages(SimulatedDataset[PassagesOptions]):
    """Sentences in passages with a known share of variance for every kind of feature."""

    name = "simulated_passages"
    noun = "simulated passages"
    summary = "simulated sentences in passages with planted shares of simple and contextual features"
    Options = PassagesOptions

    @cached_property
    def text(self) -> Text:
        """The words, and what is planted in them."""
        return Text(self.options, self.seed, self.opened_as)

    def recording_ids(self) -> list[RecordingId]:
        """Return every subject's recording."""
        n = self.options.n_subjects
        return [RecordingId(f"{i:02d}", "01", RUN, RUN) for i in range(1, n + 1)]

    def _recording(self, recording_id: RecordingId, where: str) -> Recording:
        subject = recording_id.subject
        n = self.options.n_units
        rng = self.text.rng("places", subject)
        places = rng.uniform([-60.0, -70.0, -20.0], [-25.0, 40.0, 50.0], (n, 3)).round(1)
        ids = tuple(f"s{subject}-v{i + 1:03d}" for i in range(n))
        units = Units(ids, self.text.regions, places, "MNI152NLin2009cAsym", comparable=False)
        values = self.text.responses(subject)
        return Recording(recording_id, Epochs(values[None], (0.0,), "a.u."), units, where)

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        return Stimulus(stimulus_id, self.text.words, self.where, features=self.text.offered())
