"""Stripped features as the design of a readout: of a mechanism, or of a random direction in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpact.analyses.lpact.levels.stripping_methods import DegenerateStrip, StripInputs, StrippingMethod
from lpact.math.ridge import LinearFeatures, MappedColumns
from lpact.math.types import FloatArray, IntArray


@dataclass(frozen=True)
class RandomDirection:
    """A scalar along a random direction of the features, with the mechanism's share of their variance.

    On training rows the direction is w = Zᵀ g for Gaussian weights g over events: it follows the features' covariance.
    Its scalar s = Zw is diluted with noise e until it accounts for as much feature variance as the mechanism m,

        ‖Zᵀ(s + τe)‖² / ‖s + τe‖² = ‖Zᵀm‖² / ‖m‖²     (Z, s, e, m centred on training rows)

    A direction that accounts for less is left undiluted; where even noise accounts for more, it is noise alone.
    """

    weights: FloatArray
    noise: FloatArray

    @classmethod
    def draw(cls, n_events: int, n_delays: int, rng: np.random.Generator) -> tuple[RandomDirection, ...]:
        """Draw one direction for all delays, with separate noise at each."""
        weights = rng.standard_normal(n_events)
        return tuple(cls(weights, rng.standard_normal(n_events)) for _ in range(n_delays))

    def scalar(
        self,
        features: FloatArray,
        mechanism: FloatArray,
        train: IntArray,
        found_in: FloatArray | None = None,
    ) -> FloatArray:
        """The scalar for all events, fitted on ``train``; w is a direction of ``found_in``, or of ``features``."""
        z = features - features[train].mean(axis=0)
        source = z[train]
        if found_in is not None and found_in is not features:
            source = found_in[train] - found_in[train].mean(axis=0)
        along = z @ (source.T @ self.weights[train])
        spread = along[train].std()
        if not spread > 0:
            raise DegenerateStrip("the features do not vary on the training rows")
        along = along / spread
        own = z[train]
        s, e, m = (v[train] - v[train].mean() for v in (along, self.noise, mechanism))
        products = (own.T @ s, own.T @ e, own.T @ m, s @ s, s @ e, e @ e, m @ m)
        dilution = float(dilution_from_products(*(np.asarray(x)[None] for x in products))[0])
        return self.noise if np.isinf(dilution) else along + dilution * self.noise


def dilution_from_products(
    zs: FloatArray,
    ze: FloatArray,
    zm: FloatArray,
    ss: FloatArray,
    se: FloatArray,
    ee: FloatArray,
    mm: FloatArray,
) -> FloatArray:
    """τ of several training sets, [S], from products of features [S, p] and of scalars [S]; ∞ for noise alone.

    The smallest τ ≥ 0 with a τ² + b τ + c = 0; 0 where c ≤ 0.
    """
    if not (mm > 0).all():
        raise DegenerateStrip("the mechanism does not vary on the training rows")
    wanted = np.einsum("sp,sp->s", zm, zm) / mm
    a = np.einsum("sp,sp->s", ze, ze) - wanted * ee
    b = 2.0 * (np.einsum("sp,sp->s", zs, ze) - wanted * se)
    c = np.einsum("sp,sp->s", zs, zs) - wanted * ss
    with np.errstate(invalid="ignore", divide="ignore"):
        half = -0.5 * (b + np.copysign(np.sqrt(b * b - 4.0 * a * c), b))
        roots = np.stack([half / a, c / half])
    smallest = np.where(np.isfinite(roots) & (roots >= 0.0), roots, np.inf).min(axis=0)
    return np.where(c <= 0.0, 0.0, smallest)


class StrippedDesign(LinearFeatures):
    """Features from which a mechanism is stripped, or random ``directions`` in its place, as a readout's design.

    ``delays`` are the inputs at each delay, ``scalars`` [n_events, n_delays] the mechanism at each. A method that is
    linear in the features Z and a scalar s is also a map of columns, fitted on products of the training rows alone: a
    random direction combines Z and noise, so that [Z, m, e, g] (mechanism, noise, event weights) has all products.
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
        """Stripped features of all events, [n_events, n_delays · p], fitted on ``train``."""
        blocks = []
        for delay, (inputs, m) in enumerate(zip(self.delays, self.scalars.T, strict=True)):
            if self.directions is None:
                blocks.append(self.method.strip(inputs, m, train))
                continue
            # As with a mechanism, it is one direction in feature space, that of the first delay.
            first, direction = self.delays[0].features, self.directions[delay]
            other = direction.scalar(inputs.features, m, train, found_in=first)
            blocks.append(self.method.strip_instead(inputs, other, m, train))
        return blocks[0] if len(blocks) == 1 else np.hstack(blocks)

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
