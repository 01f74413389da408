"""Stripped features as a readout's design: for one training set, for all at once, or as a linear map of columns.

All three give the same readout. Strips that are linear in the features Z and a scalar s are fitted on products of the
training rows alone: with a random direction in the mechanism's place, s is itself a combination of Z and noise, so that
[Z, m, e, g] (mechanism, noise, weights over events) has all the products there are to know.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpact.analyses.lpact.levels.strip import (
    DegenerateStrip,
    RandomDirection,
    StripInputs,
    StrippingMethod,
    dilution_from_products,
    strip_delays,
    strip_instead_delays,
)
from lpact.math.ridge import BatchedFeatures, MappedColumns
from lpact.math.types import FloatArray, IntArray


class StrippedDesign(BatchedFeatures):
    """Features from which a mechanism is stripped, or random directions in its place.

    Parameters
    ----------
    method, delays, scalars
        As `strip_delays` takes them.
    directions
        One for every delay, as `strip_instead_delays` takes them; None to strip the mechanism itself.
    """

    def __init__(
        self,
        method: StrippingMethod,
        delays: Sequence[StripInputs],
        scalars: FloatArray,
        directions: Sequence[RandomDirection] | None = None,
    ) -> None:
        self.method, self.delays, self.scalars = method, delays, scalars
        self.directions = directions
        self.n_features = sum(inputs.features.shape[1] for inputs in delays)

    def __call__(self, train: IntArray) -> FloatArray:
        """Stripped features of all events, fitted on ``train``."""
        if self.directions is None:
            return strip_delays(self.method, self.delays, self.scalars, train)
        return strip_instead_delays(self.method, self.delays, self.directions, self.scalars, train)

    def every(self, trains: Sequence[IntArray]) -> FloatArray:
        """The same for every training set."""
        if len(self.delays) > 1:
            return super().every(trains)
        (inputs,), mechanism = self.delays, self.scalars[:, 0]
        if self.directions is None:
            return self.method.strip_every(inputs, mechanism, trains)
        instead = self.directions[0].every_scalar(inputs.features, mechanism, trains)
        return self.method.strip_every(inputs, mechanism, trains, instead)

    def mapped(self) -> MappedColumns | None:
        """The same as a linear map, where the method is one and there is one delay."""
        if len(self.delays) > 1 or not self.method.linear:
            return None
        parts = [self.delays[0].features, self.scalars[:, :1]]
        if self.directions is not None:
            first = self.directions[0]
            parts += [first.noise[:, None], first.weights[:, None]]
        return MappedColumns(np.hstack(parts), self._maps)

    def _maps(self, n_rows: FloatArray, gram: FloatArray) -> FloatArray:
        """[S, P, p] from the products of the columns on the training rows."""
        p = self.n_features
        along = self._along(n_rows, gram)  # [S, P]
        products = (gram @ along[:, :, None])[:, :, 0]
        power = np.einsum("sp,sp->s", products, along)
        made = self.method.map_from_products(gram[:, :p, :p], products[:, :p], power)
        maps = along[:, :, None] * made[:, p][:, None]
        maps[:, :p] += made[:, :p]
        return maps

    def _along(self, n_rows: FloatArray, gram: FloatArray) -> FloatArray:
        """The scalar that is stripped, as a combination of the columns."""
        p = self.n_features
        along = np.zeros(gram.shape[:2])
        if self.directions is None:
            along[:, p] = 1.0
            return along
        z = gram[:, :p, :p]
        direction = gram[:, :p, p + 2]
        zs = (z @ direction[:, :, None])[:, :, 0]
        spread = np.sqrt(np.einsum("sp,sp->s", zs, direction) / n_rows)
        if not (spread > 0).all():
            raise DegenerateStrip("the features do not vary on the training rows")
        direction = direction / spread[:, None]
        zs = zs / spread[:, None]
        ze, zm = gram[:, :p, p + 1], gram[:, :p, p]
        dilution = dilution_from_products(
            zs,
            ze,
            zm,
            n_rows,
            np.einsum("sp,sp->s", direction, ze),
            gram[:, p + 1, p + 1],
            gram[:, p, p],
        )
        noise = np.isinf(dilution)
        along[:, :p] = np.where(noise[:, None], 0.0, direction)
        along[:, p + 1] = np.where(noise, 1.0, dilution)
        return along
