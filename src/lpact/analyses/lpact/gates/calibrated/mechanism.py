"""Gate M as tests, for each mechanism k.

other targets t: mean over outer blocks of all subject-runs of the median over stripping methods of
drop(k → k) − drop(k → t) > 0, by flipping the signs of blocks; also against no drop at all
random directions: mean over subject-runs of the median over methods of the matching drop, against the same for
random directions of equal variance that are stripped instead
M = every other target ∧ random directions                                    (intersection–union)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import LAYER_KEY, SUBJECT_RUN_KEY, Layer
from lpact.analyses.lpact.gates.calibrated.comparison import Comparison, criterion, unrivalled
from lpact.analyses.lpact.gates.calibrated.frames import (
    SubjectRun,
    block_p_value,
    cells,
    median_of_finite,
    typical,
)
from lpact.analyses.lpact.gates.claims import NO_MECHANISM, Claim
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
"""Drops of a layer, by what stands beside the features and by mechanism."""


def mechanism_gate(
    claim: Claim,
    drops: LayerDrops | None,
    targets: Criterion,
    gates: GatesConfig,
    *,
    has_nuisance: bool,
    enough: float = 1.0,
) -> GateEvidence:
    """Evaluate M for one claim from the drops by block of its layer; ``targets`` is the rule on the number of targets.

    ``has_nuisance``: there are nuisance features. What could not be fitted beside them then counts against the claim.
    How far a p-value lies above ``enough`` is not found out.
    """
    mechanism = claim[-1]
    alone, beside = ((drops or {}).get((name, mechanism), {}) for name in (NOTHING, NUISANCE))
    nothing = (
        "No mechanism was stripped here."
        if mechanism == NO_MECHANISM
        else f"No drop of {mechanism} could be compared."
    )
    others = _against_targets(claim, alone, enough)
    # A claim that one test stops is not tested further by those who ask for no more.
    going = all(test.p_value <= enough for test in others)
    by, costs = "blocks", f"stripping {mechanism} costs its own target more than"
    criteria = [
        targets,
        criterion(
            CriterionName.P_OTHER_TARGETS,
            others,
            gates.alpha,
            costs,
            by,
            nothing,
        ),
        criterion(
            CriterionName.P_RANDOM_DIRECTIONS,
            [compare_with(claim, RANDOM_DIRECTION, alone)] if going and _has_random(alone) else [],
            gates.alpha,
            f"{costs} stripping a",
            by,
            f"{nothing[:-1]} with a random direction.",
        ),
    ]
    if has_nuisance or beside or not alone:
        criteria.append(
            criterion(
                CriterionName.P_BEYOND_NUISANCE,
                _against_targets(claim, beside, enough) if going else [],
                gates.alpha,
                f"beside nuisance, {costs}",
                by,
                nothing,
            )
        )
    else:
        criteria.append(unrivalled(CriterionName.P_BEYOND_NUISANCE, gates.alpha))
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


def blocks_by_run(claim: Claim, drops: pl.DataFrame | None, beside: str) -> ByRun:
    """The drops of one claim, from the rows of its layer."""
    if drops is None:
        return {}
    return read_drops(drops).get(claim[:3], {}).get((beside, claim[-1]), {})


def _has_random(by_run: ByRun) -> bool:
    return any(RANDOM_DIRECTION in blocks for _, blocks in by_run.values())


def _against_targets(claim: Claim, by_run: ByRun, enough: float) -> list[Comparison]:
    """Comparisons with every other target, and with no drop at all; none where there is no other target."""
    rivals, made = rival_targets(claim, by_run), []
    if not rivals:
        return []
    for rival, contrasts in zip(rivals, _contrasts_with_all(claim, rivals, by_run), strict=True):
        made.append(_comparison(claim, rival, contrasts, by_run, enough))
        if made[-1].p_value > enough:
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


def _contrasts_with_all(
    claim: Claim, rivals: Sequence[str], by_run: ByRun
) -> list[dict[SubjectRun, FloatArray]]:
    """`contrasts_with` of several rivals; those of a subject-run together where all have the same blocks."""
    found: list[dict[SubjectRun, FloatArray]] = [{} for _ in rivals]
    for run, (_, blocks) in by_run.items():
        own = blocks[claim[-1]]
        others = [blocks.get(rival, {}) for rival in rivals]
        n_blocks = {len(values) for part in (own, *others) for values in part.values()}
        if len(n_blocks) != 1 or NO_DROP in blocks:
            return [contrasts_with(claim, rival, by_run) for rival in rivals]
        missing = np.full(n_blocks.pop(), np.nan)
        none = dict.fromkeys(own, np.zeros_like(missing))
        rows = [
            (none if rival == NO_DROP else other).get(method, missing)
            for rival, other in zip(rivals, others, strict=True)
            for method in own
        ]
        matching = np.stack(list(own.values()))
        less = np.concatenate(rows).reshape(len(rivals), *matching.shape)
        values = median_of_finite(matching - less, 1)
        for place, (rival, other) in enumerate(zip(rivals, others, strict=True)):
            if rival == NO_DROP or not own.keys().isdisjoint(other):
                found[place][run] = values[place]
    return found


def compare_with(claim: Claim, rival: str, by_run: ByRun) -> Comparison:
    """Matching drop against a rival's, or against none."""
    return _comparison(claim, rival, contrasts_with(claim, rival, by_run), by_run)


def _comparison(
    claim: Claim,
    rival: str,
    contrasts: Mapping[SubjectRun, FloatArray],
    by_run: ByRun,
    enough: float = 1.0,
) -> Comparison:
    stimulus = {run: name for run, (name, _) in by_run.items()}
    p = block_p_value(
        contrasts, stimulus, partial(keyed_rng, 0, "sign flips", *claim, rival), enough
    )
    pooled = np.concatenate(list(contrasts.values())) if contrasts else np.empty(0)
    finite = pooled[np.isfinite(pooled)]
    mean = float(finite.mean()) if finite.size else float("nan")
    return Comparison(rival.replace("_direction", " direction"), mean, p, finite.size)
