"""Gates as tests, for the calibrated profile. Every gate is the intersection–union of its tests.

Level 1, gates P, S and Rep:

    surrogate c: T = mean over subject-runs of the real score, against the same mean in every draw of c
    rival c:     mean over outer blocks of all subject-runs of (real − c) > 0, by flipping the signs of blocks, and by
                 Student's t over the blocks of a stimulus, averaged over those who share it
    P   = nuisance ∧ every surrogate ∧ every rival
    Rep = partial conjunction over subject-runs of the same, each by its own draws and Student's t over its own blocks

Draws are the same for recordings of the same stimulus, so that what chance features share with a stimulus is in T and
in its draws alike. Nuisance is a rival.

Level 2, gates R and S. The statistic is the mean over subject-runs of the median over alignment × profile summaries of
the mean similarity over units times the spread of the pattern (for a rival, of real − rival;
`levels.relational`). It is compared with the same statistic

    of every draw of each surrogate control               exchangeable if the features know nothing of the stimulus
    of the real pattern in shuffled unit orders           exchangeable if the pattern knows nothing of the units
    of real and rival exchanged at random units           exchangeable if both know the units equally well

    R = every surrogate ∧ unit order ∧ every rival ∧ nuisance;   S at level 2 = every surrogate ∧ every rival

A rival that resembles the brain's pattern at least as much as the model, whatever the size, has p = 1. Units that share
noise are not exchangeable, so unit orders alone would be too optimistic; the surrogates share that noise with the real
features, and an intersection–union test keeps its level if one of its tests does.

Level 3, gate M, for each mechanism k:

    other targets t:    mean over outer blocks of all subject-runs of the median over stripping methods of
                        drop(k → k) − drop(k → t) > 0, by blocks as above; also against no drop at all
    random directions:  the same against random directions of equal variance that are stripped instead
    M = every other target ∧ random directions, and the first together with nuisance features

Level 4, gate T:

    mean reliability ≥ min_reliability                                           (as the point rule)
    lower bound of the mean fraction of the ceiling ≥ min_ceiling_fraction       (bootstrap over subject-runs and units)
    contrast with every control at level 2                                       (as in S)

A unit's fraction is the median over alignment × profile summaries of similarity / reliability.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.calibrated.frames import (
    LayerDraws,
    Level1,
    RunDraws,
    SubjectRun,
    block_p_value,
    cells,
    draw_p,
    layer_of,
    mean_over_runs,
    of_layers,
    read_level1,
    read_null_draws,
    summarise_runs,
    typical,
)
from lpact.analyses.lpact.gates.criteria import (
    CALIBRATED,
    Bound,
    Comparison,
    Criterion,
    GateEvidence,
    GateProfile,
    Tests,
)
from lpact.analyses.lpact.gates.criteria import CriterionName as Name
from lpact.analyses.lpact.gates.keys import LAYER_KEY, SUBJECT_RUN_KEY, Claim, Layer, is_label
from lpact.analyses.lpact.gates.labels import BOUNDED
from lpact.analyses.lpact.gates.point_rules import Summaries
from lpact.analyses.lpact.gates.summaries import why_nothing
from lpact.analyses.lpact.gates.verdict import NO_MECHANISM
from lpact.analyses.lpact.tables import levels
from lpact.codes import Gate, RowLabel
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.stats import bootstrap_p_value, intersection_union, one_sample_p_value, partial_conjunction
from lpact.wording import counted, number, percent

REAL, NUISANCE, NOTHING = "real", "nuisance", "nothing"
SURROGATE, UNIT_ORDER, SWAP = "surrogate", "unit_order", "swap"
RANDOM_DIRECTION, NO_DROP = "random_direction", "no drop"


# --- Level 1 ---------------------------------------------------------------------------------------


class PredictiveTests:
    """All level-1 tests of one layer."""

    _what = "the score is above that of"

    def __init__(self, layer: Layer, level: Level1, gates: GatesConfig, stop_above: float = 1.0) -> None:
        self._gates, self._level = gates, level
        real, rivals = level.blocks.get(REAL, {}), {*level.blocks} - {*level.draws, REAL}
        self.differences: dict[str, dict[SubjectRun, FloatArray]] = {}
        """Real − rival in every outer block, by rival and subject-run; those without any are left out."""
        for name in sorted(rivals):
            rival = level.blocks[name]
            found = {run: real[run] - rival[run] for run in sorted(rival) if run in real}
            self.differences[name] = {r: v for r, v in found.items() if np.isfinite(v).any()}
        self.surrogates = [self._surrogate(name) for name in sorted(level.draws)]
        tested = {
            name: _by_blocks(name, own, level.stimulus, (*layer, name), stop_above)
            for name, own in self.differences.items()
            if own
        }
        self.nuisance = [test for name, test in tested.items() if name == NUISANCE]
        self.rivals = [test for name, test in tested.items() if name != NUISANCE]

    def _surrogate(self, name: str) -> Comparison:
        by_run = {r: d for r, d in self._level.draws[name].items() if r in self._level.real}
        if not by_run:
            return Comparison(name, math.nan, 1.0, 0)
        draws = mean_over_runs(by_run)
        observed = float(np.mean([self._level.real[run] for run in sorted(by_run)]))
        finite = draws[np.isfinite(draws)]
        mean = float(finite.mean()) if finite.size else math.nan
        return Comparison(name, observed - mean, draw_p(observed, draws), finite.size, finite.size)

    def gate(self) -> GateEvidence:
        """Gate P."""
        no_nuisance = "No outer block has both a real and a nuisance score."
        no_surrogate = "No surrogate control has a score."
        tests: tuple[Tests, ...] = (
            (Name.P_NUISANCE, self.nuisance, self._what, "blocks", no_nuisance),
            (Name.P_SURROGATES, self.surrogates, self._what, "draws", no_surrogate),
            (Name.P_RIVALS, self.rivals, self._what, "blocks", None),
        )
        return GateEvidence.of_tests(Gate.PREDICTIVE, tests, self._gates.alpha)

    def severe(self) -> Criterion:
        """Gate S at level 1: every surrogate and every rival."""
        tests, what = [*self.surrogates, *self.rivals], f"at level 1 {self._what}"
        by, nothing = "draws and blocks", "No severe control has a level-1 score."
        return Criterion.of_tests((Name.P_CONTROLS_LEVEL1, tests, what, by, nothing), self._gates.alpha)

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
                (Name.N_SUBJECT_RUNS, ">=", float(gates.min_subject_runs)),
                (Name.P_REPLICATION, "<=", gates.alpha),
            ),
            (
                (float(n), n, "", enough, subject_runs),
                (p, n, "", predicts, f"{n_below} of {subject_runs}"),
            ),
        )

    def p_value_in(self, run: SubjectRun) -> float:
        """P-value that the model predicts in one subject-run, beyond surrogates, nuisance and rivals."""
        real = self._level.real[run]
        surrogates = [draw_p(real, d[run]) for d in self._level.draws.values() if run in d]
        if not surrogates or NUISANCE not in self._level.blocks:
            return 1.0
        rivals = [one_sample_p_value(own[run]) for own in self.differences.values() if run in own]
        return intersection_union([*surrogates, *rivals])


def _by_blocks(
    name: str,
    contrasts: Mapping[SubjectRun, FloatArray],
    stimulus: Mapping[SubjectRun, str],
    place: tuple[str | int, ...],
    stop_above: float,
) -> Comparison:
    """The test of a contrast by outer blocks; ``place`` seeds its sign flips."""
    p = block_p_value(contrasts, stimulus, partial(keyed_rng, 0, "sign flips", *place), stop_above)
    pooled = np.concatenate([np.empty(0), *contrasts.values()])
    finite = pooled[np.isfinite(pooled)]
    return Comparison(name, float(finite.mean()) if finite.size else math.nan, p, finite.size)


# --- Level 2 ---------------------------------------------------------------------------------------


class RelationalTests:
    """All level-2 tests of one layer, from its null draws, and the share and number of its reliable unit rows."""

    _what = "the pattern is more like the brain's than"

    def __init__(
        self,
        draws: LayerDraws | None,
        reliable: tuple[float, int] | None,
        controls: Collection[str],
        gates: GatesConfig,
        why_nothing: str,
    ) -> None:
        self._gates, self._reliable_units, self._why = gates, reliable, why_nothing
        found: dict[str, list[Comparison]] = {SURROGATE: [], UNIT_ORDER: [], SWAP: []}
        for (test, against), runs in sorted((draws or {}).items(), key=lambda item: item[0]):
            if against in {*controls, NUISANCE, UNIT_ORDER}:
                pooled = _pooled(runs)
                n = int(np.isfinite(pooled.draws).sum())
                found[test].append(Comparison(against, pooled.advantage, pooled.p_value, n, n))
        self.surrogates, self.unit_order = found[SURROGATE], found[UNIT_ORDER]
        self.nuisance = [t for t in found[SWAP] if t.against == NUISANCE]
        self.rivals = [t for t in found[SWAP] if t.against != NUISANCE]

    def gate(self) -> GateEvidence:
        """Gate R."""
        similar, nothing = f"{self._what} that of", f"No relational statistic ({self._why})."
        itself, rivals = f"{self._what} itself in another", [*self.rivals, *self.nuisance]
        tests: tuple[Tests, ...] = (
            (Name.P_RELATIONAL_SURROGATES, self.surrogates, similar, "draws", nothing),
            (Name.P_UNIT_ORDER, self.unit_order, itself, "shuffled unit orders", nothing),
            (Name.P_RELATIONAL_RIVALS, rivals, similar, "exchanging units", None),
        )
        return GateEvidence.of_tests(Gate.RELATIONAL, tests, self._gates.alpha, self._reliable())

    def _reliable(self) -> Criterion:
        """Share of unit rows whose brain pattern can be trusted, as the point rule requires of every row."""
        needed = self._gates.direction_fraction
        bound: Bound = (Name.RELIABLE_UNITS, ">=", needed)
        if self._reliable_units is None:
            sentence = f"No unit row has a finite relational contrast ({self._why})."
            return Criterion(*bound, None, 0, "", sentence, self._why)
        share, n = self._reliable_units
        sentence = (
            f"{percent(share)} of unit rows have a reliable brain pattern in the same unit order; "
            f"{percent(needed)} are needed."
        )
        return Criterion(*bound, share, n, "", sentence, "split_half_reliability")

    def severe(self) -> Criterion:
        """Gate S at level 2: every surrogate and every rival."""
        what = f"at level 2 {self._what} that of"
        return self._against_controls(Name.P_CONTROLS_LEVEL2, [], what, "severe control")

    def contrast(self) -> Criterion:
        """The contrast of level 4: every surrogate, rival and nuisance."""
        what = "the fraction of the ceiling is above that of"
        return self._against_controls(Name.P_CONTRAST, self.nuisance, what, "control")

    def _against_controls(self, name: Name, more: list[Comparison], what: str, compared: str) -> Criterion:
        tests = [*self.surrogates, *self.rivals, *more]
        nothing = f"No {compared} can be compared at level 2 ({self._why})."
        by = "draws and exchanges of units"
        return Criterion.of_tests((name, tests, what, by, nothing), self._gates.alpha)


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


# --- Level 3 ---------------------------------------------------------------------------------------

Blocks = dict[str, dict[str, FloatArray]]
ByRun = dict[SubjectRun, tuple[str, Blocks]]
"""Stimulus and drops by block (by target, or ``random_direction``, then method) of every subject-run."""
LayerDrops = dict[tuple[str, str], ByRun]
"""Drops of a layer, by the features fitted with the model (none or nuisance) and by mechanism."""


def mechanism_gate(
    claim: Claim,
    drops: LayerDrops | None,
    targets: Criterion,
    gates: GatesConfig,
    *,
    has_nuisance: bool,
    stop_above: float = 1.0,
) -> GateEvidence:
    """Evaluate M for one claim from the drops by block of its layer; ``targets`` is the rule on the number of targets.

    With nuisance features (``has_nuisance``), drops that could not be fitted with them count against the claim. A
    claim with a p-value above ``stop_above`` is not tested further.
    """
    mechanism = claim[-1]
    alone, beside = ((drops or {}).get((name, mechanism), {}) for name in (NOTHING, NUISANCE))
    nothing = f"No drop of {mechanism} could be compared."
    if mechanism == NO_MECHANISM:
        nothing = "No mechanism was stripped here."
    costs = f"stripping {mechanism} costs its own target more than"
    others = _against_targets(claim, alone, stop_above)
    going = all(test.p_value <= stop_above for test in others)
    has_random = any(RANDOM_DIRECTION in blocks for _, blocks in alone.values())
    random = [compare_with(claim, RANDOM_DIRECTION, alone)] if going and has_random else []
    with_nuisance = _against_targets(claim, beside, stop_above) if going else []
    has_rival = bool(has_nuisance or beside or not alone)
    no_random, beyond = (
        f"{nothing[:-1]} with a random direction.",
        f"with nuisance features, {costs}",
    )
    unfitted = nothing if has_rival else None
    tests: tuple[Tests, ...] = (
        (Name.P_OTHER_TARGETS, others, costs, "blocks", nothing),
        (Name.P_RANDOM_DIRECTIONS, random, f"{costs} stripping a", "blocks", no_random),
        (Name.P_BEYOND_NUISANCE, with_nuisance, beyond, "blocks", unfitted),
    )
    return GateEvidence.of_tests(Gate.MECHANISM, tests, gates.alpha, targets)


def read_drops(drops: pl.DataFrame) -> dict[Layer, LayerDrops]:
    """Drops by target (or ``random_direction``) and method, for every subject-run with a matching one."""
    found: dict[Layer, LayerDrops] = {}
    columns = (*LAYER_KEY, *SUBJECT_RUN_KEY, "stimulus", "method", "stripped", "target", "beside")
    rows = zip(*(drops[name].to_list() for name in columns), cells(drops["drops"]), strict=True)
    for dataset, model, layer, subject, session, run, stimulus, *place, values in rows:
        method, stripped, target, beside = place
        of_layer = found.setdefault((dataset, model, layer), {})
        random = stripped == RANDOM_DIRECTION
        by_run = of_layer.setdefault((beside, target if random else stripped), {})
        _, blocks = by_run.setdefault((subject, session, run), (stimulus, {}))
        blocks.setdefault(RANDOM_DIRECTION if random else target, {})[method] = values
    return {
        layer: {
            (beside, mechanism): {run: held for run, held in by_run.items() if mechanism in held[1]}
            for (beside, mechanism), by_run in of_layer.items()
        }
        for layer, of_layer in found.items()
    }


def blocks_by_run(claim: Claim, drops: pl.DataFrame, beside: str) -> ByRun:
    """The drops of one claim, from the rows of its layer."""
    return read_drops(drops).get(claim[:3], {}).get((beside, claim[-1]), {})


def _against_targets(claim: Claim, by_run: ByRun, stop_above: float) -> list[Comparison]:
    """Comparisons with every other target, and with no drop at all; none where there is no other target."""
    made: list[Comparison] = []
    for rival in rival_targets(claim, by_run):
        made.append(compare_with(claim, rival, by_run, stop_above))
        if made[-1].p_value > stop_above:
            break
    return made


def rival_targets(claim: Claim, by_run: ByRun) -> tuple[str, ...]:
    """No drop and every other target; nothing where there is no other target."""
    names = {n for _, blocks in by_run.values() for n in blocks} - {claim[-1], RANDOM_DIRECTION}
    return (NO_DROP, *sorted(names)) if names else ()


def contrasts_with(claim: Claim, rival: str, by_run: ByRun) -> dict[SubjectRun, FloatArray]:
    """Matching drop less a rival's, or less none, in every block: median over the methods that have both."""
    contrasts: dict[SubjectRun, FloatArray] = {}
    for run, (_, blocks) in by_run.items():
        matching, other = blocks[claim[-1]], blocks.get(rival, {})
        methods = [m for m in matching if rival == NO_DROP or m in other]
        if methods:
            contrasts[run] = typical([matching[m] - (other[m] if other else 0.0) for m in methods])
    return contrasts


def compare_with(claim: Claim, rival: str, by_run: ByRun, stop_above: float = 1.0) -> Comparison:
    """Compare the matching drop with that of a rival, or with none."""
    stimulus = {run: name for run, (name, _) in by_run.items()}
    contrasts = contrasts_with(claim, rival, by_run)
    name = rival.replace("_direction", " direction")
    return _by_blocks(name, contrasts, stimulus, (*claim, rival), stop_above)


# --- Level 4, and all gates ----------------------------------------------------------------------


def calibrated_profile(
    rows: Mapping[str, pl.DataFrame],
    paper: GateProfile,
    found: Summaries,
    gates: GatesConfig,
    primary_metric: str,
    stop_above: float,
) -> GateProfile:
    """Every gate as a test; rules without a test are those of ``paper``.

    A layer with a p-value above ``stop_above`` at level 1 is not tested at level 2, nor one with such a p-value
    anywhere at level 3.
    """
    layers, nulls = list(paper.layers), rows[levels.CONTROL_NULLS.name]
    level1 = read_level1(
        rows[levels.PREDICTIVE_SCORES.name],
        rows[levels.BLOCK_SCORES.name],
        nulls,
        primary_metric,
    )
    predictive = {layer: PredictiveTests(layer, level1.get(layer, Level1()), gates, stop_above) for layer in layers}
    first = {layer: (tests.gate(), tests.replication()) for layer, tests in predictive.items()}
    going = {layer for layer in layers if not max(g.p_value for g in first[layer]) > stop_above}
    units = _reliable_units(of_layers(rows[levels.PROFILE_DELTAS.name], going))
    fractions = _read_fractions(of_layers(rows[levels.NORMALIZED_SCORES.name], going))
    draws = read_null_draws(of_layers(rows[levels.RELATIONAL_NULLS.name], going))
    controls: dict[Layer, list[str]] = {}
    for *key, control in nulls.select(*LAYER_KEY, "control").unique().iter_rows():
        controls.setdefault(layer_of(key), []).append(control)
    by_layer: dict[Layer, dict[Gate, GateEvidence]] = {}
    for layer in layers:
        why = why_nothing(found.relational.get(layer))
        own = (draws.get(layer), units.get(layer), controls.get(layer, []))
        relational = RelationalTests(*own, gates, why)
        reliability = paper.layers[layer][Gate.CEILING].criterion(Name.MEAN_RELIABILITY)
        fraction = _fraction(layer, fractions.get(layer), reliability, gates)
        severe = (predictive[layer].severe(), relational.severe())
        by_layer[layer] = {
            Gate.PREDICTIVE: first[layer][0],
            Gate.SEVERE_CONTROL: GateEvidence(Gate.SEVERE_CONTROL, severe),
            Gate.RELATIONAL: relational.gate(),
            Gate.CEILING: GateEvidence(Gate.CEILING, (reliability, fraction, relational.contrast())),
            Gate.REPLICATION: first[layer][1],
        }
    open_layers = {
        layer for layer, made in by_layer.items() if not max(gate.p_value for gate in made.values()) > stop_above
    }
    drops = read_drops(of_layers(rows[levels.BLOCK_DROPS.name], open_layers))
    mechanisms = {
        claim: mechanism_gate(
            claim,
            drops.get(claim[:3]),
            rule.criterion(Name.N_TARGETS),
            gates,
            has_nuisance=bool(predictive[claim[:3]].nuisance),
            stop_above=stop_above,
        )
        for claim, rule in paper.mechanisms.items()
    }
    return GateProfile(CALIBRATED, True, by_layer, mechanisms)


def _reliable_units(labelled: pl.DataFrame) -> dict[Layer, tuple[float, int]]:
    """Share of unit rows with a contrast whose brain pattern is reliable and in the same order, and their number."""
    trusted = ~is_label("evidence", RowLabel.UNRELIABLE_BRAIN_PATTERN) & pl.col("same_order")
    shares = (
        labelled.filter("has_contrast")
        .group_by(LAYER_KEY, maintain_order=True)
        .agg(trusted.mean().alias("share"), pl.len().alias("n"))
    )
    return {layer_of(key): (share, n) for *key, share, n in shares.iter_rows()}


def _read_fractions(labelled: pl.DataFrame) -> dict[Layer, list[FloatArray]]:
    """Fractions of the units of every subject-run, by layer, where the reliability is sufficient."""
    bounded = labelled.filter(pl.col("evidence").is_in([label.value for label in BOUNDED]))
    groups = (
        bounded.drop_nulls("fraction_of_ceiling")
        .group_by([*LAYER_KEY, *SUBJECT_RUN_KEY, "unit"], maintain_order=True)
        .agg(pl.col("fraction_of_ceiling").median())
        .group_by([*LAYER_KEY, *SUBJECT_RUN_KEY], maintain_order=True)
        .agg("fraction_of_ceiling")
    )
    found: dict[Layer, list[FloatArray]] = {}
    keys = groups.select(LAYER_KEY).iter_rows()
    for key, values in zip(keys, cells(groups["fraction_of_ceiling"]), strict=True):
        found.setdefault(layer_of(key), []).append(values)
    return found


def _fraction(
    layer: Layer,
    groups: Sequence[FloatArray] | None,
    reliability: Criterion,
    gates: GatesConfig,
) -> Criterion:
    """The test of gate T on the fraction of the ceiling."""
    threshold, mode = gates.min_ceiling_fraction, reliability.compared_with
    if not groups:
        sentence = "No row has both a sufficient reliability and a contrast."
        nothing = (None, 0, mode, sentence, reliability.beaten_by)
        return Criterion(Name.P_FRACTION, "<=", gates.alpha, *nothing)
    p, lower = bootstrap_p_value(list(groups), threshold, keyed_rng(0, "bootstrap", *layer))
    mean = sum(float(g.mean()) for g in groups) / len(groups)
    bound = f"{number(lower)} at least with 95 % confidence" if math.isfinite(lower) else "no bound"
    sentence = (
        f"The model reaches {number(mean)} of the {mode} ceiling on average, {bound} (bootstrap over "
        f"{counted(len(groups), 'subject-run')} and their units); that it is above {number(threshold)}: "
        f"p = {number(p)}."
    )
    found = (p, len(groups), mode, sentence, mode)
    return Criterion(Name.P_FRACTION, "<=", gates.alpha, *found)
