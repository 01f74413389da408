"""Held-out linear predictivity."""

from __future__ import annotations

from lpact.analyses.lpact.levels.measure import Brain, Measure
from lpact.math.ridge import nested_ridge, single_column_readouts
from lpact.math.types import FloatArray


class Linear(Measure):
    """Held-out Pearson correlation of the nested ridge readout, lag chosen on training rows."""

    name = "linear"
    summary = "held-out ridge correlation (nested, blocked)"
    from_readout = True

    def to_units(self, features: FloatArray, brain: Brain) -> FloatArray:
        """Fit the readout from ``features`` to all units at once."""
        readout = nested_ridge(
            features,
            brain.responses,
            brain.folds,
            brain.grid,
            metrics=("pearson",),
            compute=brain.compute,
        )
        return readout.scores("pearson")

    def between_units(self, brain: Brain) -> FloatArray:
        """The readout from every unit at the reference lag alone, all units at once."""
        return single_column_readouts(
            brain.reference, brain.responses, brain.folds, brain.grid, compute=brain.compute
        )
