"""Model features that come with the Podcast ECoG dataset, put on its words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.hdf5 import hdf5_dataset, open_hdf5
from lpact.datasets.base import FeatureKey
from lpact.datasets.podcast_ecog.words import TokenTable
from lpact.errors import FeatureError
from lpact.math.types import FloatArray, IntArray

GPT2 = "gpt2-xl"
WHISPER = "whisper-medium"
WHISPER_LAYER = 0
"""The release holds one set of vectors of Whisper and does not number it as a layer."""

Pooling = Literal["mean", "last"]
_LAYER = re.compile(r"layer-([0-9]+)")


@dataclass(frozen=True)
class PodcastFeatures:
    """Feature sets of the release: one row per token in the files, one row per word here.

    ``sources`` maps a feature set to its file, the name of its HDF5 dataset, and the table of its rows.
    ``order`` is [n_words], the words of the stimulus as rows of the transcript.
    """

    sources: dict[FeatureKey, tuple[Path, str, TokenTable]]
    order: IntArray
    n_transcript_words: int
    pooling: Pooling
    stimulus_where: str

    def keys(self) -> Sequence[FeatureKey]:
        """Return what is on offer."""
        return list(self.sources)

    def load(self, key: FeatureKey) -> FloatArray:
        """Return the features [n_words, n_columns]: tokens of a word averaged, or the last of them."""
        if key not in self.sources:
            raise FeatureError(
                "the dataset does not bring these features",
                where=self.stimulus_where,
                got=str(key),
                expected=f"one of {len(self.sources)} feature sets on offer",
                remedy="choose a layer that the file holds, or let lpact extract the features",
            )
        path, name, tokens = self.sources[key]
        with open_hdf5(path, FeatureError) as file:
            values: npt.NDArray[Any] = hdf5_dataset(file, name, FeatureError)[...]
        if values.ndim < 2 or len(values) != len(tokens.word_index):
            raise FeatureError(
                "features do not have one row for every row of their table",
                where=f"{path}, '{name}'",
                got=f"shape {values.shape}",
                expected=f"{len(tokens.word_index)} rows, as in {tokens.path}",
                remedy="download both files again, of one version of the dataset",
            )
        flat = values.reshape(len(values), -1).astype(np.float64)
        return self._pool(flat, tokens.word_index)[self.order]

    def _pool(self, values: FloatArray, word_index: IntArray) -> FloatArray:
        pooled = np.full((self.n_transcript_words, values.shape[1]), np.nan)
        rows = np.argsort(word_index, kind="stable")
        words, first, count = np.unique(word_index[rows], return_index=True, return_counts=True)
        if self.pooling == "last":
            pooled[words] = values[rows[first + count - 1]]
        else:
            pooled[words] = np.add.reduceat(values[rows], first, axis=0) / count[:, None]
        return pooled

    def where(self, key: FeatureKey) -> str:
        """Return the file of a feature set."""
        return str(self.sources[key][0]) if key in self.sources else self.stimulus_where


def gpt2_sources(path: Path, tokens: TokenTable) -> dict[FeatureKey, tuple[Path, str, TokenTable]]:
    """Return the layers that the file holds (datasets ``layer-<k>``)."""
    with open_hdf5(path, FeatureError) as file:
        names = [str(name) for name in file]
        layers = sorted(int(match[1]) for name in names if (match := _LAYER.fullmatch(name)))
        for k in layers:
            hdf5_dataset(file, f"layer-{k}", FeatureError)
    if not layers:
        raise FeatureError(
            "a file of features holds no layer",
            where=str(path),
            got="datasets " + (", ".join(names) or "none"),
            expected="datasets layer-0, layer-1, …",
            remedy="download the file again, or leave the model out with the option 'features'",
        )
    return {FeatureKey(GPT2, k, "full"): (path, f"layer-{k}", tokens) for k in layers}


def whisper_sources(
    path: Path, tokens: TokenTable
) -> dict[FeatureKey, tuple[Path, str, TokenTable]]:
    """Return the one set of Whisper's vectors (dataset ``vectors``)."""
    with open_hdf5(path, FeatureError) as file:
        names = [str(name) for name in file]
        if "vectors" in names:
            hdf5_dataset(file, "vectors", FeatureError)
    if "vectors" not in names:
        raise FeatureError(
            "a file of features holds no vectors",
            where=str(path),
            got="datasets " + (", ".join(names) or "none"),
            expected="the dataset 'vectors'",
            remedy="download the file again, or leave the model out with the option 'features'",
        )
    return {FeatureKey(WHISPER, WHISPER_LAYER, "full"): (path, "vectors", tokens)}
