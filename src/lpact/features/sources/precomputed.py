"""Features that are part of the dataset."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpact.datasets.base import FeatureKey, Stimulus
from lpact.features.models import ModelSource, check_features
from lpact.math.types import FloatArray


class Precomputed(ModelSource):
    """Feature sets of the dataset, under the model's name."""

    name = "precomputed"
    summary = "feature sets that the dataset offers under the model's name"

    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:
        """Return the dataset's feature sets of this model."""
        return sorted(
            (key for key in stimulus.features if key.model == model),
            key=lambda key: (key.layer, key.context, key.draw),
        )

    def load(self, key: FeatureKey, stimulus: Stimulus) -> FloatArray:
        """Return one of the dataset's feature sets, checked against the words."""
        offered = stimulus.features[key]
        values = np.asarray(offered.load(), dtype=np.float64)
        check_features(values, key, stimulus, where=offered.where)
        return values

    def check(self, key: FeatureKey, stimulus: Stimulus) -> None:
        """Read the feature set."""
        self.load(key, stimulus)
