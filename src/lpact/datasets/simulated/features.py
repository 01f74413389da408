"""Features of the simulated models: what each of them knows about the words, with noise around it.

docs/explanation/simulated-studies.md says what models, layers and contexts know. Features depend on stimulus and model
only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from lpact.datasets.base import FeatureKey, OfferedFeatures
from lpact.datasets.simulated.latents import ContextualLatents, Latents, make_contextual
from lpact.datasets.simulated.options import MECHANISMS, SimulatedOptions
from lpact.datasets.simulated.streams import Streams, ar1, standardise
from lpact.datasets.simulated.words import Vocabulary, Words
from lpact.math.types import FloatArray

MODELS = ("integrated", "predictive", "lexical", "drift", "null", "nuisance")
DRAWS = {"full": 1, "sentence_reset": 1, "reversed": 1, "shuffled": 1, "untrained": 3, "static": 1}
"""Contexts, with the number of draws of each."""

_WITH_EMBEDDING = ("integrated", "predictive", "lexical")
CONTEXT_FREE = ("lexical", "drift")
"""Models that do not look at the words before: cutting or reversing the context changes nothing."""

STRONG = 0.97
TRACE = 0.15
NOISE_AUTOCORRELATION = 0.5
NULL_AUTOCORRELATION = 0.8


def column_groups(options: SimulatedOptions) -> dict[str, slice]:
    """Columns of a feature matrix: ``context``, ``lexical``, one group a mechanism, ``noise``."""
    sizes: dict[str, int] = {
        "context": options.n_context_columns,
        "lexical": options.n_lexical_columns,
        **dict.fromkeys(MECHANISMS, options.columns_per_mechanism),
        "noise": options.n_noise_columns,
    }
    edges = np.cumsum([0, *sizes.values()])
    return {name: slice(int(start), int(stop)) for name, start, stop in zip(sizes, edges[:-1], edges[1:], strict=True)}


@dataclass(frozen=True)
class SimulatedFeatures:
    """Feature sets of all simulated models for one stimulus; made anew by every `load`."""

    stimulus_id: str
    options: SimulatedOptions
    streams: Streams
    vocabulary: Vocabulary
    words: Words
    latents: Latents

    def offered(self) -> dict[FeatureKey, OfferedFeatures]:
        """Return every feature set."""
        where = f"simulated dataset '{self.streams.dataset}', stimulus '{self.stimulus_id}', model"
        keys = (
            FeatureKey(model, layer, context, draw)
            for model in MODELS
            for layer in range(self.options.n_layers)
            for context, n_draws in DRAWS.items()
            for draw in range(n_draws)
        )
        return {
            key: OfferedFeatures(
                f"{where} '{key.model}', layer {key.layer}, context '{key.context}', draw {key.draw}",
                partial(self.load, key),
            )
            for key in keys
        }

    def load(self, key: FeatureKey) -> FloatArray:
        """Return the features [n_words, n_columns]."""
        if key.context == "untrained":
            return self._untrained(key)
        if key.model in CONTEXT_FREE and key.context != "static":
            key = FeatureKey(key.model, key.layer, "full")
        if key.context == "static" or (key.layer == 0 and key.model in _WITH_EMBEDDING):
            return self._embedding(key.model)
        coefficient = NULL_AUTOCORRELATION if key.model == "null" else NOISE_AUTOCORRELATION
        features = ar1(self._rng("noise", key), self.words.n_words, self._n_columns, coefficient)
        half = slice(0, (self._n_columns + 1) // 2)
        if key.model == "drift":
            rng = self.streams.rng("features", "drift", self.stimulus_id, key.layer)
            features[:, half] = rng.standard_normal((self.words.n_words, half.stop))
            drifts = self.latents.drifts.at(self.words.onset_s)
            self._blend(features, half, drifts @ self._weights("drift", key, drifts, half))
        elif key.model == "nuisance":
            known = self.latents.nuisances
            self._blend(features, half, known @ self._weights("nuisance", key, known, half))
        elif key.model != "null":
            self._blend_language(features, key)
        return features

    @staticmethod
    def _blend(features: FloatArray, columns: slice, signal: FloatArray) -> None:
        """Write a signal on top of the noise in these columns."""
        features[:, columns] = _blend(signal, features[:, columns], STRONG)

    def _blend_language(self, features: FloatArray, key: FeatureKey) -> None:
        """Write lexical columns, the same in all contexts, and what a model knows of the context."""
        lexical, groups = self.latents.lexical, self._groups
        columns = groups["lexical"]
        rng = self.streams.rng("features", "lexical", self.stimulus_id, key.model, key.layer)
        features[:, columns] = rng.standard_normal((self.words.n_words, columns.stop - columns.start))
        self._blend(features, columns, lexical @ self._weights("lexical", key, lexical, columns))
        if key.model == "lexical":
            return
        latents = self._contextual(key)
        known = latents.context if key.model == "integrated" else latents.private
        columns = groups["context"]
        self._blend(features, columns, known @ self._weights("context", key, known, columns))
        if key.model == "integrated":
            for index, mechanism in enumerate(MECHANISMS):
                self._blend(features, groups[mechanism], latents.mechanisms[:, index, None])

    @property
    def _n_columns(self) -> int:
        return int(self._groups["noise"].stop)

    @cached_property
    def _groups(self) -> dict[str, slice]:
        return column_groups(self.options)

    def _rng(self, what: str, key: FeatureKey) -> np.random.Generator:
        """Stream of one feature set of this stimulus."""
        place = (self.stimulus_id, key.model, key.layer, key.context, key.draw)
        return self.streams.rng("features", what, *place)

    def _contextual(self, key: FeatureKey) -> ContextualLatents:
        """Latents that a layer knows: real, a trace of the real ones, or an independent draw."""
        real = self.latents.contextual
        if key.context == "full" and key.layer == self.options.best_layer:
            return real
        fresh = make_contextual(self.words, self.options, self._rng("latents", key))
        if key.context != "full":
            return fresh
        return ContextualLatents(
            context=_blend(real.context, fresh.context, TRACE),
            private=_blend(real.private, fresh.private, TRACE),
            mechanisms=_blend(real.mechanisms, fresh.mechanisms, TRACE),
        )

    def _weights(self, what: str, key: FeatureKey, latents: FloatArray, columns: slice) -> FloatArray:
        """Mixing weights of a layer, [n_latents, n_columns].

        A random tight frame: all directions of the latents are equally well represented, and the
        mean variance of a column is 1.
        """
        rng = self.streams.rng("weights", what, key.model, key.layer)
        n_columns, n_latents = columns.stop - columns.start, latents.shape[1]
        n_more, n_fewer = max(n_latents, n_columns), min(n_latents, n_columns)
        frame: FloatArray = np.linalg.qr(rng.standard_normal((n_more, n_fewer))).Q
        return frame if n_columns < n_latents else frame.T * np.sqrt(n_columns / n_latents)

    def _embedding(self, model: str) -> FloatArray:
        """Static vectors: lexical columns from the types' vectors, the others arbitrary."""
        table = self.streams.rng("embedding", model).standard_normal((len(self.vocabulary.spelling), self._n_columns))
        columns = self._groups["lexical"]
        static = FeatureKey(model, 0, "static")
        vectors = self.vocabulary.vectors
        table[:, columns] = vectors @ self._weights("lexical", static, vectors, columns)
        return table[self.words.type_index]

    def _untrained(self, key: FeatureKey) -> FloatArray:
        """Random projections of word length, place in the sentence and hashed word identity."""
        known = np.column_stack(
            [
                standardise(self.words.length.astype(np.float64)),
                standardise(self.words.position.astype(np.float64)),
                self.vocabulary.hashes[self.words.type_index],
            ]
        )
        rng = self.streams.rng("weights", "untrained", key.model, key.layer, key.draw)
        weights = rng.standard_normal((known.shape[1], self._n_columns)) / np.sqrt(known.shape[1])
        projected: FloatArray = np.tanh(known @ weights)
        return projected


def _blend(signal: FloatArray, noise: FloatArray, strength: float) -> FloatArray:
    """``s · signal + √(1 − s²) · noise``: of variance 1 where both are."""
    blended: FloatArray = strength * signal + np.sqrt(1.0 - strength**2) * noise
    return blended
