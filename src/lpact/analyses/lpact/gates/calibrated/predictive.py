"""Gates P, Rep, and S at level 1, as tests.

    surrogate c: T = mean over subject-runs of the real score, against the same mean in every draw of c
    rival c:     mean over outer blocks of all subject-runs of (real − c) > 0, by flipping the signs of blocks, and by
                 Student's t over the blocks of a stimulus, averaged over those who share it
    P   = nuisance ∧ every surrogate ∧ every rival                                (intersection–union)
    Rep = partial conjunction over subject-runs of the same, each by its own draws and Student's t over its own blocks

Draws are the same for recordings of the same stimulus, so that what chance features share with a stimulus is in T and
in its draws alike. Nuisance is a rival.
"""

from __future__ import annotations

import math
from copy import copy
from functools import partial
from typing import Self

import numpy as np

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import Layer
from lpact.analyses.lpact.gates.calibrated.comparison import Comparison, criterion, unrivalled
from lpact.analyses.lpact.gates.calibrated.frames import (
    Level1,
    SubjectRun,
    block_p_value,
    draw_p,
    mean_over_runs,
)
from lpact.analyses.lpact.gates.criteria import Criterion, CriterionName, GateEvidence
from lpact.analyses.lpact.gates.known import Known
from lpact.analyses.lpact.gates.wording import count, number
from lpact.codes import Gate
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.stats import (
    intersection_union,
    one_sample_p_value,
    partial_conjunction,
)

NUISANCE = "nuisance"
REAL = "real"


class PredictiveTests:
    """All level-1 tests of one layer; ``known`` keeps p-values over blocks for those who test the same again."""

    def __init__(
        self,
        layer: Layer,
        level: Level1,
        gates: GatesConfig,
        known: Known | None = None,
    ) -> None:
        self._known = known or Known()
        self._gates = gates
        self._level = level
        self._p_values: dict[SubjectRun, float] = {}
        self._differences: dict[str, dict[SubjectRun, FloatArray]] = {}
        self.surrogates = [self._surrogate(name) for name in sorted(level.draws)]
        rivals = sorted({*level.blocks} - {*level.draws, REAL})
        tested = [(name, self._rival(layer, name)) for name in rivals if self.differences(name)]
        self.nuisance = [test for name, test in tested if name == NUISANCE]
        self.rivals = [test for name, test in tested if name != NUISANCE]

    def _surrogate(self, name: str) -> Comparison:
        by_run = {r: d for r, d in self._level.draws[name].items() if r in self._level.real}
        if not by_run:
            return Comparison(name, math.nan, 1.0, 0)
        draws = mean_over_runs(by_run)
        observed = float(np.mean([self._level.real[run] for run in sorted(by_run)]))
        n = int(np.isfinite(draws).sum())
        mean = float(draws[np.isfinite(draws)].mean()) if n else math.nan
        return Comparison(name, observed - mean, draw_p(observed, draws), n, n)

    def differences(self, name: str) -> dict[SubjectRun, FloatArray]:
        """Real − rival in every outer block, by subject-run; those without any are left out."""
        if name not in self._differences:
            real, rival = self._level.blocks.get(REAL, {}), self._level.blocks[name]
            found = {run: real[run] - rival[run] for run in sorted(rival) if run in real}
            self._differences[name] = {r: v for r, v in found.items() if np.isfinite(v).any()}
        return self._differences[name]

    def _rival(self, layer: Layer, name: str) -> Comparison:
        differences = self.differences(name)
        pooled = np.concatenate(list(differences.values()))
        finite = pooled[np.isfinite(pooled)]
        stimuli = tuple((self._level.stimulus[run], len(v)) for run, v in differences.items())
        test = (*layer, name, stimuli, pooled.tobytes())
        p = self._known.block_tests.get(test)
        if p is None:
            p = block_p_value(
                differences,
                self._level.stimulus,
                partial(keyed_rng, 0, "sign flips", *layer, name),
                self._known.enough,
            )
            if p <= self._known.enough:
                self._known.block_tests[test] = p
        return Comparison(name, float(finite.mean()), p, finite.size)

    def under(self, gates: GatesConfig) -> Self:
        """The same tests with other thresholds."""
        other = copy(self)
        other._gates = gates
        return other

    def gate(self) -> GateEvidence:
        """Gate P."""
        alpha = self._gates.alpha
        nuisance = criterion(
            CriterionName.P_NUISANCE,
            self.nuisance,
            alpha,
            "the score is above that of",
            "blocks",
            "No outer block has both a real and a nuisance score.",
        )
        return GateEvidence(
            Gate.PREDICTIVE, (nuisance, self._surrogate_criterion(), self._rival_criterion())
        )

    def _surrogate_criterion(self) -> Criterion:
        return criterion(
            CriterionName.P_SURROGATES,
            self.surrogates,
            self._gates.alpha,
            "the score is above that of",
            "draws",
            "No surrogate control has a score.",
        )

    def _rival_criterion(self) -> Criterion:
        if not self.rivals:
            return unrivalled(CriterionName.P_RIVALS, self._gates.alpha)
        return criterion(
            CriterionName.P_RIVALS,
            self.rivals,
            self._gates.alpha,
            "the score is above that of",
            "blocks",
            "",
        )

    def severe(self) -> Criterion:
        """Gate S at level 1: every surrogate and every rival."""
        return criterion(
            CriterionName.P_CONTROLS_LEVEL1,
            [*self.surrogates, *self.rivals],
            self._gates.alpha,
            "at level 1 the score is above that of",
            "draws and blocks",
            "No severe control has a level-1 score.",
        )

    def replication(self) -> GateEvidence:
        """Gate Rep."""
        gates, runs = self._gates, sorted(self._level.real)
        n = len(runs)
        needed = max(1, math.ceil(gates.direction_fraction * n - 1e-9))
        p_values = np.array([self.p_value_in(run) for run in runs])
        p = partial_conjunction(p_values, needed) if n else None
        n_below = int((p_values <= gates.alpha).sum())
        counted = count(n, "subject-run")
        return GateEvidence(
            Gate.REPLICATION,
            (
                Criterion(
                    CriterionName.N_SUBJECT_RUNS,
                    float(n),
                    ">=",
                    float(gates.min_subject_runs),
                    n,
                    "",
                    f"{counted} with a level-1 score; {gates.min_subject_runs} are needed.",
                    counted,
                ),
                Criterion(
                    CriterionName.P_REPLICATION,
                    p,
                    "<=",
                    gates.alpha,
                    n,
                    "",
                    f"That the model predicts in at least {needed} of {counted}: p = {number(p)} "
                    f"(partial conjunction; {n_below} alone reach {number(gates.alpha)}).",
                    f"{n_below} of {counted}",
                ),
            ),
        )

    def p_value_in(self, run: SubjectRun) -> float:
        """P-value that the model predicts in one subject-run, beyond surrogates, nuisance and rivals."""
        if run not in self._p_values:
            self._p_values[run] = self._find_p_value_in(run)
        return self._p_values[run]

    def _find_p_value_in(self, run: SubjectRun) -> float:
        real = self._level.real[run]
        surrogates = [draw_p(real, d[run]) for d in self._level.draws.values() if run in d]
        rivals = [
            one_sample_p_value(differences[run])
            for name in sorted({*self._level.blocks} - {*self._level.draws, REAL})
            if run in (differences := self.differences(name))
        ]
        if not surrogates or NUISANCE not in self._level.blocks:
            return 1.0
        return intersection_union(np.array([*surrogates, *rivals]))
