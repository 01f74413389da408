"""Gate R, and S at level 2, as tests.

The statistic is the mean over subject-runs of the median over alignment × profile summaries of the mean similarity over
units times the spread of the pattern (for a rival, of real − rival; `levels.relational_nulls`). It is compared with
the same statistic

    of every draw of each surrogate control               exchangeable if the features know nothing of the stimulus
    of the real pattern in shuffled unit orders           exchangeable if the pattern knows nothing of the units
    of real and rival exchanged at random units           exchangeable if both know the units equally well

    R = every surrogate ∧ unit order ∧ every rival ∧ nuisance;   S at level 2 = every surrogate ∧ every rival

A rival that resembles the brain's pattern at least as much as the model, whatever the size, has p = 1.

Units that share noise are not exchangeable, so unit orders alone would be too optimistic; the surrogates share that
noise with the real features, and an intersection–union test keeps its level if one of its tests does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import LAYER_KEY, SUBJECT_RUN_KEY, Layer
from lpact.analyses.lpact.gates.calibrated.comparison import Comparison, criterion, unrivalled
from lpact.analyses.lpact.gates.calibrated.frames import (
    LayerDraws,
    RunDraws,
    draw_p,
    layer_of,
    summarise_runs,
)
from lpact.analyses.lpact.gates.criteria import Criterion, CriterionName, GateEvidence
from lpact.analyses.lpact.gates.rows import is_label
from lpact.codes import Gate, RowLabel
from lpact.math.types import FloatArray
from lpact.wording import percent

NUISANCE = "nuisance"
SURROGATE, UNIT_ORDER, SWAP = "surrogate", "unit_order", "swap"
_BY_BOTH = "draws and exchanges of units"


class RelationalTests:
    """All level-2 tests of one layer, from its null draws and the reliability of its unit rows."""

    def __init__(
        self,
        draws: LayerDraws | None,
        reliable: ReliableUnits | None,
        controls: Collection[str],
        gates: GatesConfig,
        why_nothing: str,
    ) -> None:
        self._gates, self._units, self._why = gates, reliable, why_nothing
        found: dict[str, list[Comparison]] = {SURROGATE: [], UNIT_ORDER: [], SWAP: []}
        allowed = {*controls, NUISANCE, UNIT_ORDER}
        for (test, against), runs in sorted((draws or {}).items(), key=lambda item: item[0]):
            if against in allowed:
                found[test].append(_test(against, runs))
        self.surrogates, self.unit_order = found[SURROGATE], found[UNIT_ORDER]
        self.nuisance = [t for t in found[SWAP] if t.against == NUISANCE]
        self.rivals = [t for t in found[SWAP] if t.against != NUISANCE]

    def _criterion(
        self, name: CriterionName, tests: list[Comparison], what: str, by: str, nothing: str
    ) -> Criterion:
        return criterion(name, tests, self._gates.alpha, what, by, f"{nothing} ({self._why}).")

    def gate(self) -> GateEvidence:
        """Gate R."""
        nothing, similar = "No relational statistic", "the pattern is more like the brain's than"
        of, itself = f"{similar} that of", f"{similar} itself in another"
        name, orders = CriterionName.P_RELATIONAL_SURROGATES, "shuffled unit orders"
        surrogates = self._criterion(name, self.surrogates, of, "draws", nothing)
        name = CriterionName.P_UNIT_ORDER
        unit_order = self._criterion(name, self.unit_order, itself, orders, nothing)
        name, tests = CriterionName.P_RELATIONAL_RIVALS, [*self.rivals, *self.nuisance]
        rivals = unrivalled(name, self._gates.alpha)
        if tests:
            rivals = self._criterion(name, tests, of, "exchanging units", "")
        return GateEvidence(Gate.RELATIONAL, (self._reliable(), surrogates, unit_order, rivals))

    def _reliable(self) -> Criterion:
        """Share of unit rows whose brain pattern can be trusted, as the point rule requires of every row."""
        bound = self._gates.direction_fraction
        if self._units is None:
            sentence = f"No unit row has a finite relational contrast ({self._why})."
            return Criterion(
                CriterionName.RELIABLE_UNITS, ">=", bound, None, 0, "", sentence, self._why
            )
        share, n = self._units.share, self._units.n
        sentence = (
            f"{percent(share)} of unit rows have a reliable brain pattern in the same unit order; "
            f"{percent(bound)} are needed."
        )
        blame = "split_half_reliability"
        return Criterion(CriterionName.RELIABLE_UNITS, ">=", bound, share, n, "", sentence, blame)

    def severe(self) -> Criterion:
        """Gate S at level 2: every surrogate and every rival."""
        tests = [*self.surrogates, *self.rivals]
        what = "at level 2 the pattern is more like the brain's than that of"
        by, nothing = _BY_BOTH, "No severe control can be compared at level 2"
        return self._criterion(CriterionName.P_CONTROLS_LEVEL2, tests, what, by, nothing)

    def contrast(self) -> Criterion:
        """The contrast of level 4: every surrogate, rival and nuisance."""
        tests = [*self.surrogates, *self.rivals, *self.nuisance]
        what = "the fraction of the ceiling is above that of"
        by, nothing = _BY_BOTH, "No control can be compared at level 2"
        return self._criterion(CriterionName.P_CONTRAST, tests, what, by, nothing)


@dataclass(frozen=True)
class Pooled:
    """The relational statistic over all subject-runs and summaries: observed, in every draw, and the advantage."""

    observed: float
    draws: FloatArray
    advantage: float

    @property
    def p_value(self) -> float:
        """P-value of the observed statistic; 1 where the model is not ahead."""
        return draw_p(self.observed, self.draws) if self.advantage > 0.0 else 1.0


def pool(part: pl.DataFrame) -> Pooled:
    """Median over summaries, then mean over subject-runs, of the rows of one test and rival."""
    return _pooled([draws for _, draws in summarise_runs(part, SUBJECT_RUN_KEY)])


def _pooled(runs: Sequence[RunDraws]) -> Pooled:
    n_draws = min(len(run.draws) for run in runs)
    return Pooled(
        float(np.mean([run.observed for run in runs])),
        np.mean([run.draws[:n_draws] for run in runs], axis=0),
        float(np.mean([run.advantage for run in runs])),
    )


def _test(against: str, runs: Sequence[RunDraws]) -> Comparison:
    """One test from all subject-runs."""
    pooled = _pooled(runs)
    n = int(np.isfinite(pooled.draws).sum())
    return Comparison(against, pooled.advantage, pooled.p_value, n, n)


@dataclass(frozen=True)
class ReliableUnits:
    """Share of the ``n`` unit rows of a layer whose brain pattern is reliable and in the same unit order."""

    share: float
    n: int


def reliable_units(labelled: pl.DataFrame) -> dict[Layer, ReliableUnits]:
    """One entry per layer with a unit row that has a contrast."""
    trusted = ~is_label("evidence", RowLabel.UNRELIABLE_BRAIN_PATTERN) & pl.col("same_order")
    shares = (
        labelled.filter("has_contrast")
        .group_by(LAYER_KEY, maintain_order=True)
        .agg(trusted.mean().alias("share"), pl.len().alias("n"))
    )
    return {layer_of(key): ReliableUnits(share, n) for *key, share, n in shares.iter_rows()}


def controls_by_layer(nulls: pl.DataFrame) -> dict[Layer, list[str]]:
    """Controls of every layer."""
    found: dict[Layer, list[str]] = {}
    for *key, control in nulls.select(*LAYER_KEY, "control").unique().iter_rows():
        found.setdefault(layer_of(key), []).append(control)
    return found
