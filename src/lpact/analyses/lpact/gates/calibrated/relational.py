"""Gate R, and S at level 2, as tests.

The statistic is the mean over subject-runs of the median over alignment × profile summaries of the mean similarity over
units times the spread of the pattern (for a rival, of real − rival; `levels.relational_nulls`). It is held
against the very same statistic

    of every draw of each surrogate control               exchangeable if the features do not know the stimulus
    of the real pattern in shuffled unit orders           exchangeable if the pattern does not know the units
    of real and rival exchanged at random units           exchangeable if both know the units equally well

    R = every surrogate ∧ unit order ∧ every rival ∧ nuisance;   S at level 2 = every surrogate ∧ every rival

Whoever resembles the brain's pattern at least as much as the model, whatever the size, has p = 1.

Units that share noise are not exchangeable, so that unit orders alone would prove too much; the surrogates share
that noise with the real features, and an intersection–union test holds its level if one of its tests does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import LAYER_KEY, SUBJECT_RUN_KEY, Layer
from lpact.analyses.lpact.gates.calibrated.comparison import Comparison, criterion, unrivalled
from lpact.analyses.lpact.gates.calibrated.frames import draw_p, layer_of
from lpact.analyses.lpact.gates.calibrated.null_draws import LayerDraws, RunDraws, summarise_runs
from lpact.analyses.lpact.gates.criteria import Criterion, CriterionName, GateEvidence
from lpact.analyses.lpact.gates.rows import is_label
from lpact.analyses.lpact.gates.wording import percent
from lpact.codes import Gate, RowLabel
from lpact.math.types import FloatArray

NUISANCE = "nuisance"
SURROGATE, UNIT_ORDER, SWAP = "surrogate", "unit_order", "swap"


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
        self._gates = gates
        self._units = reliable
        self._why = why_nothing
        found: dict[str, list[Comparison]] = {SURROGATE: [], UNIT_ORDER: [], SWAP: []}
        allowed = {*controls, NUISANCE, UNIT_ORDER}
        for (test, against), runs in (draws or {}).items():
            if against in allowed:
                found[test].append(_test(against, runs))
        self.surrogates = sorted(found[SURROGATE], key=lambda t: t.against)
        self.unit_order = found[UNIT_ORDER]
        swaps = sorted(found[SWAP], key=lambda t: t.against)
        self.nuisance = [t for t in swaps if t.against == NUISANCE]
        self.rivals = [t for t in swaps if t.against != NUISANCE]

    def under(self, reliable: ReliableUnits | None, gates: GatesConfig, why_nothing: str) -> Self:
        """The same tests with other thresholds, and what they make of the unit rows."""
        other = copy(self)
        other._units, other._gates, other._why = reliable, gates, why_nothing
        return other

    def gate(self) -> GateEvidence:
        """Gate R."""
        alpha, nothing = self._gates.alpha, f"No relational statistic ({self._why})."
        similar = "the pattern is more like the brain's than"
        criteria = [
            self._reliable(),
            criterion(
                CriterionName.P_RELATIONAL_SURROGATES,
                self.surrogates,
                alpha,
                f"{similar} that of",
                "draws",
                nothing,
            ),
            criterion(
                CriterionName.P_UNIT_ORDER,
                self.unit_order,
                alpha,
                f"{similar} itself in another",
                "shuffled unit orders",
                nothing,
            ),
        ]
        criteria.append(self._rival_criterion(f"{similar} that of"))
        return GateEvidence(Gate.RELATIONAL, tuple(criteria))

    def _rival_criterion(self, what: str) -> Criterion:
        rivals = [*self.rivals, *self.nuisance]
        if not rivals:
            return unrivalled(CriterionName.P_RELATIONAL_RIVALS, self._gates.alpha)
        return criterion(
            CriterionName.P_RELATIONAL_RIVALS,
            rivals,
            self._gates.alpha,
            what,
            "exchanging units",
            "",
        )

    def _reliable(self) -> Criterion:
        """Share of unit rows whose brain pattern can be trusted, as the point rule demands of every row."""
        gates = self._gates
        if self._units is None:
            sentence = f"No unit row has a finite relational contrast ({self._why})."
            return Criterion(
                CriterionName.RELIABLE_UNITS,
                None,
                ">=",
                gates.direction_fraction,
                0,
                "",
                sentence,
                self._why,
            )
        share = self._units.share
        return Criterion(
            CriterionName.RELIABLE_UNITS,
            share,
            ">=",
            gates.direction_fraction,
            self._units.n,
            "",
            f"{percent(share)} of unit rows have a reliable brain pattern in the same unit order; "
            f"{percent(gates.direction_fraction)} are needed.",
            "split_half_reliability",
        )

    def severe(self) -> Criterion:
        """Gate S at level 2: every surrogate and every rival."""
        return criterion(
            CriterionName.P_CONTROLS_LEVEL2,
            [*self.surrogates, *self.rivals],
            self._gates.alpha,
            "at level 2 the pattern is more like the brain's than that of",
            "draws and exchanges of units",
            f"No severe control can be compared at level 2 ({self._why}).",
        )

    def contrast(self) -> Criterion:
        """What level 4 asks of the contrast: every surrogate, rival and nuisance."""
        return criterion(
            CriterionName.P_CONTRAST,
            [*self.surrogates, *self.rivals, *self.nuisance],
            self._gates.alpha,
            "the fraction of the ceiling is above that of",
            "draws and exchanges of units",
            f"No control can be compared at level 2 ({self._why}).",
        )


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


def controls_of(nulls: pl.DataFrame | None) -> list[str]:
    """Controls that the study holds a layer against."""
    return [] if nulls is None else nulls["control"].unique().sort().to_list()


def controls_by_layer(nulls: pl.DataFrame) -> dict[Layer, list[str]]:
    """The same for all layers."""
    found: dict[Layer, list[str]] = {}
    for *key, control in nulls.select(*LAYER_KEY, "control").unique().iter_rows():
        found.setdefault(layer_of(key), []).append(control)
    return found
