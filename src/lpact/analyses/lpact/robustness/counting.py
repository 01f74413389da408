"""Integrated claims of a study after a change, counted and compared with those before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.codes import FinalLabel
from lpact.math.types import BoolArray, FloatArray
from lpact.stats import benjamini_hochberg

Counts = dict[str, dict[str, int]]
"""By gate profile: claims, integrated ones, and those that a change gains and loses."""

Layer = tuple[str, str, int]


class StudyClaims:
    """The claims of a run as it was decided; ``gates`` are the columns of its gates."""

    def __init__(self, decisions: pl.DataFrame, gates: Sequence[str]) -> None:
        self._keys = decisions.select(DECISIONS.key).rows()
        self._place = {key: place for place, key in enumerate(self._keys)}
        self._passed = decisions.select(pl.all_horizontal(*gates)).to_series().to_numpy()
        self._p = decisions["p_value"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        self._before = decisions["integrated"].to_numpy()
        label = decisions["label"] == FinalLabel.INSUFFICIENT_COVERAGE.value
        self._uncovered = label.to_numpy()
        profile = decisions["gate_profile"]
        self.profiles: list[str] = profile.unique().sort().to_list()
        self._of = {name: (profile == name).to_numpy() for name in self.profiles}
        self.integrated_layers: set[Layer] = {
            key[:3] for key, before in zip(self._keys, self._before, strict=True) if before
        }
        self._rows_of: dict[Layer, list[int]] = {}
        for place, key in enumerate(self._keys):
            self._rows_of.setdefault(key[:3], []).append(place)

    def unchanged(self) -> Counts:
        """Counts of the run itself."""
        return {
            name: {
                "n_claims": int(mine.sum()),
                "n_integrated": int(self._before[mine].sum()),
                "n_gained": 0,
                "n_lost": 0,
                "n_lost_coverage": 0,
            }
            for name, mine in self._of.items()
        }

    def counts(
        self,
        layers: Iterable[Layer],
        present: Iterable[Layer],
        decided: pl.DataFrame | None,
        fdr: float,
    ) -> Counts:
        """Counts after a change.

        Parameters
        ----------
        layers
            Layers that the change may touch; claims of all others are as they were.
        present
            Those of them that still have rows; the others make no claim.
        decided
            Claims that were decided again, as `gates.decision.integrated_claims` gives them. Claims of
            ``present`` layers that are not among them fail.
        fdr
            False discovery rate of the correction over all claims with a p-value.
        """
        now, p, uncovered = self._passed.copy(), self._p.copy(), self._uncovered.copy()
        here = np.ones(len(now), dtype=bool)
        for layer in layers:
            here[self._rows_of[layer]] = False
        for layer in present:
            rows = self._rows_of[layer]
            here[rows] = True
            now[rows] = False
            p[rows] = np.where(np.isnan(p[rows]), np.nan, 1.0)
        for *key, passed, lacks, p_value in decided.iter_rows() if decided is not None else ():
            # Layers that strip nothing by themselves name no mechanism; the study does.
            place = self._place.get(tuple(key))
            if place is not None:
                now[place], uncovered[place] = passed, lacks
                p[place] = np.nan if p_value is None else p_value
        return {
            name: self._count(mine, here, now, p, uncovered, fdr) for name, mine in self._of.items()
        }

    def _count(
        self,
        mine: BoolArray,
        here: BoolArray,
        passed: BoolArray,
        p: FloatArray,
        uncovered: BoolArray,
        fdr: float,
    ) -> dict[str, int]:
        claimed = mine & here
        now = np.zeros_like(passed)
        now[claimed] = passed[claimed] & ~(benjamini_hochberg(p[claimed]) > fdr)
        lost = mine & self._before & ~now
        return {
            "n_claims": int(claimed.sum()),
            "n_integrated": int(now.sum()),
            "n_gained": int((mine & ~self._before & now).sum()),
            "n_lost": int(lost.sum()),
            "n_lost_coverage": int((lost & (uncovered | ~here)).sum()),
        }
