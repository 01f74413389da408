"""Representational similarity analysis."""

from __future__ import annotations

import numpy as np

from lpact.math.similarity import rdm_pattern, rsa_between_units, rsa_to_units
from lpact.math.types import FloatArray
from lpact.measures.base import Measure
from lpact.splits import Split


class RSA(Measure):
    """Pearson correlation, over pairs of stimuli, of the dissimilarities of X and of Y.

    The dissimilarity is the correlation distance between the rows of two stimuli; with fewer than three columns, where
    rows have no pattern to correlate, it is the squared Euclidean distance.

    Reference: Kriegeskorte, Mur & Bandettini (2008), Front. Syst. Neurosci. 2:4.
    """

    name = "rsa"
    summary = "correlation of representational dissimilarity matrices"
    scope = "population"
    symmetric = True
    invariances = frozenset({"scale", "permutation"})

    def prepare(self, X: FloatArray) -> FloatArray:
        """Dissimilarities of all pairs of stimuli, centred, at unit length: [n (n − 1) / 2]; NaN if all are equal."""
        return rdm_pattern(X)

    def compare(self, source: FloatArray, target: FloatArray) -> float:
        """Correlation of two prepared RDMs."""
        return float(np.clip(source @ target, -1.0, 1.0))

    def to_units(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Correlation of X's RDM with every unit's, without a unit's RDM."""
        return rsa_to_units(X, Y)

    def pairwise(
        self, Y: FloatArray, split: Split | None = None, lagged: FloatArray | None = None
    ) -> FloatArray:
        """Correlation of the RDMs of all pairs of units, in closed form."""
        del split, lagged
        return rsa_between_units(Y)
