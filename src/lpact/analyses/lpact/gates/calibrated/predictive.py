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
from functools import partial

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
from lpact.codes import Gate
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.stats import (
    intersection_union,
    one_sample_p_value,
    partial_conjunction,
)
from lpact.wording import counted, number

NUISANCE = "nuisance"
REAL = "real"


class PredictiveTests:
    """All level-1 tests of one layer."""

    def __init__(
        self, layer: Layer, level: Level1, gates: GatesConfig, stop_above: float = 1.0
    ) -> None:
        self._gates, self._level = gates, level
        self._p_values: dict[SubjectRun, float] = {}
        self._differences: dict[str, dict[SubjectRun, FloatArray]] = {}
        self.surrogates = [self._surrogate(name) for name in sorted(level.draws)]
        rivals = [name for name in self._rival_names() if self.differences(name)]
        tested = {name: self._rival(layer, name, stop_above) for name in rivals}
        self.nuisance = [test for name, test in tested.items() if name == NUISANCE]
        self.rivals = [test for name, test in tested.items() if name != NUISANCE]

    def _rival_names(self) -> list[str]:
        return sorted({*self._level.blocks} - {*self._level.draws, REAL})

    def _surrogate(self, name: str) -> Comparison:
        by_run = {r: d for r, d in self._level.draws[name].items() if r in self._level.real}
        if not by_run:
            return Comparison(name, math.nan, 1.0, 0)
        draws = mean_over_runs(by_run)
        observed = float(np.mean([self._level.real[run] for run in sorted(by_run)]))
        finite = draws[np.isfinite(draws)]
        mean = float(finite.mean()) if finite.size else math.nan
        return Comparison(name, observed - mean, draw_p(observed, draws), finite.size, finite.size)

    def differences(self, name: str) -> dict[SubjectRun, FloatArray]:
        """Real − rival in every outer block, by subject-run; those without any are left out."""
        if name not in self._differences:
            real, rival = self._level.blocks.get(REAL, {}), self._level.blocks[name]
            found = {run: real[run] - rival[run] for run in sorted(rival) if run in real}
            self._differences[name] = {r: v for r, v in found.items() if np.isfinite(v).any()}
        return self._differences[name]

    def _rival(self, layer: Layer, name: str, stop_above: float) -> Comparison:
        differences = self.differences(name)
        pooled = np.concatenate(list(differences.values()))
        finite = pooled[np.isfinite(pooled)]
        rng = partial(keyed_rng, 0, "sign flips", *layer, name)
        p = block_p_value(differences, self._level.stimulus, rng, stop_above)
        return Comparison(name, float(finite.mean()), p, finite.size)

    def _criterion(
        self, name: CriterionName, tests: list[Comparison], by: str, nothing: str, at: str = ""
    ) -> Criterion:
        what = f"{at}the score is above that of"
        return criterion(name, tests, self._gates.alpha, what, by, nothing)

    def gate(self) -> GateEvidence:
        """Gate P."""
        nothing = "No outer block has both a real and a nuisance score."
        nuisance = self._criterion(CriterionName.P_NUISANCE, self.nuisance, "blocks", nothing)
        nothing = "No surrogate control has a score."
        surrogates = self._criterion(CriterionName.P_SURROGATES, self.surrogates, "draws", nothing)
        rivals = unrivalled(CriterionName.P_RIVALS, self._gates.alpha)
        if self.rivals:
            rivals = self._criterion(CriterionName.P_RIVALS, self.rivals, "blocks", "")
        return GateEvidence(Gate.PREDICTIVE, (nuisance, surrogates, rivals))

    def severe(self) -> Criterion:
        """Gate S at level 1: every surrogate and every rival."""
        tests, by = [*self.surrogates, *self.rivals], "draws and blocks"
        nothing = "No severe control has a level-1 score."
        return self._criterion(CriterionName.P_CONTROLS_LEVEL1, tests, by, nothing, "at level 1 ")

    def replication(self) -> GateEvidence:
        """Gate Rep."""
        gates, runs = self._gates, sorted(self._level.real)
        n = len(runs)
        needed = max(1, math.ceil(gates.direction_fraction * n - 1e-9))
        p_values = np.array([self.p_value_in(run) for run in runs])
        p = partial_conjunction(p_values, needed) if n else None
        n_below = int((p_values <= gates.alpha).sum())
        subject_runs = counted(n, "subject-run")
        enough = f"{subject_runs} with a level-1 score; {gates.min_subject_runs} are needed."
        predicts = (
            f"That the model predicts in at least {needed} of {subject_runs}: p = {number(p)} "
            f"(partial conjunction; {n_below} alone reach {number(gates.alpha)})."
        )
        return GateEvidence.of(
            Gate.REPLICATION,
            (
                (CriterionName.N_SUBJECT_RUNS, ">=", float(gates.min_subject_runs)),
                (CriterionName.P_REPLICATION, "<=", gates.alpha),
            ),
            (
                (float(n), n, "", enough, subject_runs),
                (p, n, "", predicts, f"{n_below} of {subject_runs}"),
            ),
        )

    def p_value_in(self, run: SubjectRun) -> float:
        """P-value that the model predicts in one subject-run, beyond surrogates, nuisance and rivals."""
        if run not in self._p_values:
            real = self._level.real[run]
            surrogates = [draw_p(real, d[run]) for d in self._level.draws.values() if run in d]
            rivals = [
                one_sample_p_value(differences[run])
                for name in self._rival_names()
                if run in (differences := self.differences(name))
            ]
            testable = surrogates and NUISANCE in self._level.blocks
            self._p_values[run] = intersection_union([*surrogates, *rivals]) if testable else 1.0
        return self._p_values[run]
