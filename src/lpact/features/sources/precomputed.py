"""Features that the dataset brings along."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpact.datasets.base import FeatureKey, Stimulus
from lpact.errors import FeatureError
from lpact.features.models import MODELS, ModelSource
from lpact.math.types import FloatArray


@MODELS.register
class Precomputed(ModelSource):
    """Feature sets on offer in the dataset itself, under the model's name."""

    name = "precomputed"
    summary = "feature sets that the dataset offers under the model's name"

    def offers(self, model: str, stimulus: Stimulus) -> Sequence[FeatureKey]:
        """Return the dataset's feature sets of this model."""
        if stimulus.features is None:
            return []
        return sorted(
            (key for key in stimulus.features.keys() if key.model == model),  # noqa: SIM118
            key=lambda key: (key.layer, key.context, key.draw),
        )

    def load(self, key: FeatureKey, stimulus: Stimulus) -> FloatArray:
        """Return one of the dataset's feature sets, checked against the words."""
        if stimulus.features is None:
            raise FeatureError(
                "the stimulus offers no features",
                where=stimulus.where,
                got="none",
                expected=f"features of model '{key.model}'",
                remedy="add them to the dataset, or use another model source",
            )
        values = np.asarray(stimulus.features.load(key), dtype=np.float64)
        check_features(values, key, stimulus, where=stimulus.features.where(key))
        return values


def check_features(values: FloatArray, key: FeatureKey, stimulus: Stimulus, *, where: str) -> None:
    """Raise `FeatureError` unless ``values`` is a finite matrix with one row a word."""
    n_words = stimulus.words.height
    what = f"features of model '{key.model}', layer {key.layer}, context '{key.context}'"
    if values.ndim != 2 or values.shape[1] == 0:
        raise FeatureError(
            f"{what} are not a matrix",
            where=where,
            got=f"shape {values.shape}",
            expected=f"shape ({n_words}, columns)",
            remedy="store one row a word",
        )
    if values.shape[0] != n_words:
        raise FeatureError(
            f"{what} have {'fewer' if values.shape[0] < n_words else 'more'} rows than there are words",
            where=where,
            got=f"{values.shape[0]} rows",
            expected=f"{n_words} rows, one a word of stimulus '{stimulus.id}' ({stimulus.where})",
            remedy="extract the features again from this words table",
        )
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise FeatureError(
            f"{what} hold values that are not finite",
            where=f"{where}, row {row}, column {column}",
            got=f"{values[row, column]} ({int(bad.sum())} such values)",
            expected="finite numbers",
            remedy="extract the features again, in float32 or better",
        )
