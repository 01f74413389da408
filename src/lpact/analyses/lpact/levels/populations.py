"""Regions as populations of units: alignments of level 2 with all units of a region, in place of their mean.

Measures of populations compare all units of a region at once, standardised over the events that are compared, as
columns of features are. Measures of units are averaged over the units of a region. Fitted ones standardise on training
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpact.analyses.lpact.config import OF_POPULATIONS, LPactConfig, RelationalConfig
from lpact.errors import ConfigError
from lpact.inputs.prepare import Prepared, members_of_regions
from lpact.math.columns import mean_of_finite, standard_columns
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.measures import MEASURES, Measure
from lpact.splits import Split

_ROWS_TRIED = 8


@dataclass(frozen=True)
class Populations:
    """Units of every region of a recording, as columns of its responses; none where there are too few."""

    members: tuple[IntArray, ...]

    @classmethod
    def of(cls, relational: RelationalConfig, prepared: Prepared) -> Populations | None:
        """Populations of a recording; None where level 2 compares units or means."""
        if relational.region_as == "mean" or prepared.read_units is None:
            return None
        every = members_of_regions(prepared.of_units.grid.units).values()
        enough = n_populations(relational, prepared.region_sizes) >= relational.min_units
        least = relational.min_region_units
        return cls(tuple(own if enough and len(own) >= least else own[:0] for own in every))

    @property
    def lacking(self) -> BoolArray:
        """Regions [R] without a population."""
        return np.array([not len(own) for own in self.members])

    def means(self, values: FloatArray) -> FloatArray:
        """Means over the units of every region, [N] → [R]."""
        return np.array([mean_of_finite(values[own]) for own in self.members])

    def to_regions(self, measure: Measure, responses: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """A function that gives the alignment of features [n, p] with every region, [R]; nothing is fitted."""
        if measure.scope == "unit":
            return lambda features: self.means(measure.to_units(features, responses))
        targets = self._prepared(measure, responses)

        def compare(features: FloatArray) -> FloatArray:
            source = _prepared(measure, features)
            return np.array([_value(measure, source, target) for target in targets])

        return compare

    def pairwise(self, measure: Measure, responses: FloatArray, split: Split, lagged: FloatArray) -> FloatArray:
        """Alignment of every region (row) with every region (column), [R, R]; as `Measure.pairwise` of units."""
        matrix = np.full((len(self.members), len(self.members)), np.nan)
        if measure.scope == "population":
            prepared = self._prepared(measure, responses)
            kept = [i for i, own in enumerate(prepared) if own is not None]
            if kept:
                matrix[np.ix_(kept, kept)] = measure.compare_all([prepared[i] for i in kept])
            return matrix
        target = lagged if measure.from_readout else responses
        for i in np.flatnonzero(~self.lacking):
            source = responses[:, self.members[i]]
            values = (
                measure.cross_validate(source, target, split).value
                if measure.needs_fit
                else measure.to_units(source, target)
            )
            matrix[i] = self.means(values)
        return matrix

    def _prepared(self, measure: Measure, responses: FloatArray) -> list[Any]:
        tried = responses[:_ROWS_TRIED, :1]
        measure.values(tried, tried)  # Options that need repetitions are refused here.
        return [_prepared(measure, responses[:, own]) for own in self.members]


def n_populations(relational: RelationalConfig, region_sizes: tuple[int, ...]) -> int:
    """Number of regions with enough units."""
    return sum(n >= relational.min_region_units for n in region_sizes)


def check_populations(config: LPactConfig) -> None:
    """Raise `ConfigError` where a study has no regions, or a measure that grows with the number of units."""
    if not any(dataset.grid.units == "regions" for dataset in config.datasets):
        raise ConfigError(
            "no dataset has regions to compare as populations",
            where="option 'lpact.relational.region_as'",
            got='"population", and grid.units = "units" in every dataset',
            expected='grid.units = "regions" in at least one dataset',
            remedy='set it, or set region_as = "mean"',
        )
    for name in config.relational.alignments:
        where = "lpact.relational.alignments"
        measure = MEASURES.build(name, config.relational.options.get(name), where=where)
        # The chance level of neighbourhoods depends on the number of events alone.
        if measure.scope == "population" and not measure.zero_at_chance and not measure.local:
            raise ConfigError(
                f"the measure '{name}' is not 0 by chance: regions with more units seem more alike",
                where=where,
                got=name,
                expected=f"measures that are 0 by chance, such as {', '.join(OF_POPULATIONS)}",
                remedy=f"use '{name}_debiased'" if f"{name}_debiased" in MEASURES.names() else "choose another",
            )


def _prepared(measure: Measure, columns: FloatArray) -> Any:
    """A standardised representation as `Measure.compare` needs it; None where nothing varies."""
    if not columns.shape[1]:
        return None
    z, varies = standard_columns(columns)
    return measure.prepare(z[:, varies]) if varies.any() else None


def _value(measure: Measure, source: Any, target: Any) -> float:
    return np.nan if source is None or target is None else float(measure.compare(source, target))
