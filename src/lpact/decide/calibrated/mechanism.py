"""Gate M as tests, for each mechanism k.

other targets t: mean over outer blocks of all subject-runs of the median over stripping methods of
drop(k → k) − drop(k → t) > 0, by flipping the signs of blocks; also against no drop at all
random directions: mean over subject-runs of the median over methods of the matching drop, against the same for
random directions of equal variance that are stripped instead
M = every other target ∧ random directions                                    (intersection–union)
"""

from __future__ import annotations

import numpy as np
import polars as pl

from lpact.config import GatesConfig
from lpact.decide._frames import SUBJECT_RUN_KEY
from lpact.decide.calibrated.comparison import Comparison, criterion, unrivalled
from lpact.decide.calibrated.frames import (
    SubjectRun,
    block_p_value,
    numbers,
    subject_run,
    typical,
)
from lpact.decide.claims import NO_MECHANISM, Claim
from lpact.decide.criteria import Criterion, CriterionName, GateEvidence
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.reasons import Gate

NO_DROP = "no drop"
RANDOM_DIRECTION = "random_direction"
NOTHING, NUISANCE = "nothing", "nuisance"

Blocks = dict[str, dict[str, FloatArray]]
ByRun = dict[SubjectRun, tuple[str, Blocks]]
"""Stimulus and blocks of every subject-run."""


def mechanism_gate(
    claim: Claim,
    drops: pl.DataFrame | None,
    targets: Criterion,
    gates: GatesConfig,
    *,
    has_nuisance: bool,
) -> GateEvidence:
    """Evaluate M for one claim from its layer's drops by block; ``targets`` is the rule on the number of targets.

    ``has_nuisance``: there are nuisance features. What could not be fitted beside them then counts against the claim.
    """
    mechanism = claim[-1]
    alone, beside = (blocks_by_run(claim, drops, name) for name in (NOTHING, NUISANCE))
    nothing = (
        "No mechanism was stripped here."
        if mechanism == NO_MECHANISM
        else f"No drop of {mechanism} could be compared."
    )
    by, costs = "blocks", f"stripping {mechanism} costs its own target more than"
    criteria = [
        targets,
        criterion(
            CriterionName.P_OTHER_TARGETS,
            _against_targets(claim, alone),
            gates.alpha,
            costs,
            by,
            nothing,
        ),
        criterion(
            CriterionName.P_RANDOM_DIRECTIONS,
            [compare_with(claim, RANDOM_DIRECTION, alone)] if _has_random(alone) else [],
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
                _against_targets(claim, beside),
                gates.alpha,
                f"beside nuisance, {costs}",
                by,
                nothing,
            )
        )
    else:
        criteria.append(unrivalled(CriterionName.P_BEYOND_NUISANCE, gates.alpha))
    return GateEvidence(Gate.MECHANISM, tuple(criteria))


def blocks_by_run(claim: Claim, drops: pl.DataFrame | None, beside: str) -> ByRun:
    """Drops by target (or ``random_direction``) and method, for every subject-run with a matching one."""
    mechanism = claim[-1]
    if drops is None:
        return {}
    own = drops.filter(
        (pl.col("beside") == beside)
        & (
            (pl.col("stripped") == mechanism)
            | ((pl.col("stripped") == RANDOM_DIRECTION) & (pl.col("target") == mechanism))
        )
    )
    by_run: ByRun = {}
    for _, rows in own.group_by(SUBJECT_RUN_KEY, maintain_order=True):
        blocks: Blocks = {}
        for row in rows.iter_rows(named=True):
            random = row["stripped"] == RANDOM_DIRECTION
            place = RANDOM_DIRECTION if random else row["target"]
            blocks.setdefault(place, {})[row["method"]] = numbers(row["drops"])
        if mechanism in blocks:
            first = rows.row(0, named=True)
            by_run[subject_run(first)] = (str(first["stimulus"]), blocks)
    return by_run


def _has_random(by_run: ByRun) -> bool:
    return any(RANDOM_DIRECTION in blocks for _, blocks in by_run.values())


def _against_targets(claim: Claim, by_run: ByRun) -> list[Comparison]:
    """Comparisons with every other target, and with no drop at all; none where there is no other target."""
    return [compare_with(claim, name, by_run) for name in rival_targets(claim, by_run)]


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


def compare_with(claim: Claim, rival: str, by_run: ByRun) -> Comparison:
    """Matching drop against a rival's, or against none."""
    contrasts = contrasts_with(claim, rival, by_run)
    stimulus = {run: name for run, (name, _) in by_run.items()}
    p = block_p_value(contrasts, stimulus, keyed_rng(0, "sign flips", *claim, rival))
    pooled = np.concatenate(list(contrasts.values())) if contrasts else np.empty(0)
    finite = pooled[np.isfinite(pooled)]
    mean = float(finite.mean()) if finite.size else float("nan")
    return Comparison(rival.replace("_direction", " direction"), mean, p, finite.size)
