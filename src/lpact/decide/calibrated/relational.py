"""Gate R, and S at level 2, as tests.

The statistic is the mean over subject-runs of the median over alignment × profile summaries of the mean similarity over
units times the spread of the pattern (for a rival, of real − rival; `lpact.levels.relational_nulls`). It is held
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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.config import GatesConfig
from lpact.decide._frames import SUBJECT_RUN_KEY
from lpact.decide.calibrated.comparison import Comparison, criterion, unrivalled
from lpact.decide.calibrated.frames import numbers, typical
from lpact.decide.criteria import Criterion, CriterionName, GateEvidence
from lpact.decide.rows import OK, is_label
from lpact.decide.wording import percent
from lpact.math.randomization import draw_p_value
from lpact.math.types import FloatArray
from lpact.reasons import Gate, RowLabel

NUISANCE = "nuisance"
SURROGATE, UNIT_ORDER, SWAP = "surrogate", "unit_order", "swap"


class RelationalTests:
    """All level-2 tests of one layer, from its null draws and its labelled unit rows."""

    def __init__(
        self,
        nulls: pl.DataFrame | None,
        rows: pl.DataFrame | None,
        controls: Sequence[str],
        gates: GatesConfig,
        why_nothing: str,
    ) -> None:
        self._gates = gates
        self._rows = rows
        self._why = why_nothing
        found: dict[str, list[Comparison]] = {SURROGATE: [], UNIT_ORDER: [], SWAP: []}
        allowed = {*controls, NUISANCE, UNIT_ORDER}
        if nulls is not None:
            for (test, against), part in nulls.filter(OK).group_by(
                "test", "against", maintain_order=True
            ):
                if str(against) in allowed:
                    found[str(test)].append(_test(str(against), part))
        self.surrogates = sorted(found[SURROGATE], key=lambda t: t.against)
        self.unit_order = found[UNIT_ORDER]
        swaps = sorted(found[SWAP], key=lambda t: t.against)
        self.nuisance = [t for t in swaps if t.against == NUISANCE]
        self.rivals = [t for t in swaps if t.against != NUISANCE]

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
        rows = None if self._rows is None else self._rows.filter("has_contrast")
        if rows is None or not rows.height:
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
        unreliable = is_label("evidence", RowLabel.UNRELIABLE_BRAIN_PATTERN)
        share = float(rows.select((~unreliable & pl.col("same_order")).mean()).item())
        return Criterion(
            CriterionName.RELIABLE_UNITS,
            share,
            ">=",
            gates.direction_fraction,
            rows.height,
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
        return draw_p_value(self.observed, self.draws) if self.advantage > 0.0 else 1.0


def pool(part: pl.DataFrame) -> Pooled:
    """Median over summaries, then mean over subject-runs, of the rows of one test and rival."""
    observed: list[float] = []
    advantages: list[float] = []
    draws: list[FloatArray] = []
    for _, rows in part.group_by(SUBJECT_RUN_KEY, maintain_order=True):
        observed.append(float(np.median(rows["observed"].to_numpy())))
        advantages.append(float(np.median(rows["advantage"].to_numpy())))
        draws.append(typical([numbers(cell) for cell in rows["draws"].to_list()]))
    n_draws = min(len(d) for d in draws)
    mean_draws = np.mean([d[:n_draws] for d in draws], axis=0)
    return Pooled(float(np.mean(observed)), mean_draws, float(np.mean(advantages)))


def _test(against: str, part: pl.DataFrame) -> Comparison:
    """One test from the rows of all subject-runs and summaries."""
    pooled = pool(part)
    n = int(np.isfinite(pooled.draws).sum())
    return Comparison(against, pooled.advantage, pooled.p_value, n, n)


def controls_of(nulls: pl.DataFrame | None) -> list[str]:
    """Controls that the study holds a layer against."""
    return [] if nulls is None else nulls["control"].unique().sort().to_list()
