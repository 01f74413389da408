"""Gate M as tests, for each mechanism k.

other targets t: mean over outer blocks of all subject-runs of the median over stripping methods of
drop(k → k) − drop(k → t) > 0, by flipping the signs of blocks; also against no drop at all
random directions: mean over subject-runs of the median over methods of the matching drop, against the same for
random directions of equal variance that are stripped instead
M = every other target ∧ random directions                                    (intersection–union)
"""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import LAYER_KEY, SUBJECT_RUN_KEY, Claim, Layer
from lpact.analyses.lpact.gates.calibrated.comparison import Comparison, criterion, unrivalled
from lpact.analyses.lpact.gates.calibrated.frames import (
    SubjectRun,
    block_p_value,
    cells,
    typical,
)
from lpact.analyses.lpact.gates.claims import NO_MECHANISM
from lpact.analyses.lpact.gates.criteria import Criterion, CriterionName, GateEvidence
from lpact.codes import Gate
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray

NO_DROP = "no drop"
RANDOM_DIRECTION = "random_direction"
NOTHING, NUISANCE = "nothing", "nuisance"

Blocks = dict[str, dict[str, FloatArray]]
ByRun = dict[SubjectRun, tuple[str, Blocks]]
"""Stimulus and blocks of every subject-run."""
LayerDrops = dict[tuple[str, str], ByRun]
"""Drops of a layer, by the features beside the model (none or nuisance) and by mechanism."""


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

    With nuisance features (``has_nuisance``), drops that could not be fitted beside them count against the claim. A
    claim with a p-value above ``stop_above`` is not tested further.
    """
    mechanism = claim[-1]
    alone, beside = ((drops or {}).get((name, mechanism), {}) for name in (NOTHING, NUISANCE))
    nothing = f"No drop of {mechanism} could be compared."
    if mechanism == NO_MECHANISM:
        nothing = "No mechanism was stripped here."
    costs = f"stripping {mechanism} costs its own target more than"

    def test(name: CriterionName, tests: list[Comparison], what: str, nothing: str) -> Criterion:
        return criterion(name, tests, gates.alpha, what, "blocks", nothing)

    others = _against_targets(claim, alone, stop_above)
    going = all(test.p_value <= stop_above for test in others)
    has_random = any(RANDOM_DIRECTION in blocks for _, blocks in alone.values())
    random = [compare_with(claim, RANDOM_DIRECTION, alone)] if going and has_random else []
    name, no_random = CriterionName.P_RANDOM_DIRECTIONS, f"{nothing[:-1]} with a random direction."
    criteria = [
        targets,
        test(CriterionName.P_OTHER_TARGETS, others, costs, nothing),
        test(name, random, f"{costs} stripping a", no_random),
    ]
    name = CriterionName.P_BEYOND_NUISANCE
    if has_nuisance or beside or not alone:
        tests = _against_targets(claim, beside, stop_above) if going else []
        criteria.append(test(name, tests, f"beside nuisance, {costs}", nothing))
    else:
        criteria.append(unrivalled(name, gates.alpha))
    return GateEvidence(Gate.MECHANISM, tuple(criteria))


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
    contrasts = contrasts_with(claim, rival, by_run)
    stimulus = {run: name for run, (name, _) in by_run.items()}
    rng = partial(keyed_rng, 0, "sign flips", *claim, rival)
    p = block_p_value(contrasts, stimulus, rng, stop_above)
    pooled = np.concatenate(list(contrasts.values())) if contrasts else np.empty(0)
    finite = pooled[np.isfinite(pooled)]
    mean = float(finite.mean()) if finite.size else float("nan")
    return Comparison(rival.replace("_direction", " direction"), mean, p, finite.size)
