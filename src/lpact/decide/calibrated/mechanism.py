"""Gate M as tests, for each mechanism k.

other targets t: mean over outer blocks of all subject-runs of the median over stripping methods of
drop(k → k) − drop(k → t) > 0, by flipping the signs of blocks; also against no drop at all
random directions: mean over subject-runs of the median over methods of the matching drop, against the same for
random directions of equal variance that are stripped instead
M = every other target ∧ random directions                                    (intersection–union)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from lpact.config import GatesConfig
from lpact.decide._frames import SUBJECT_RUN_KEY
from lpact.decide.calibrated.comparison import Comparison, criterion, unrivalled
from lpact.decide.calibrated.frames import numbers
from lpact.decide.claims import NO_MECHANISM, Claim
from lpact.decide.criteria import Criterion, CriterionName, GateEvidence
from lpact.math.randomization import sign_flip_p_value
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.reasons import Gate

NO_DROP = "no drop"
RANDOM_DIRECTION = "random_direction"
NOTHING, NUISANCE = "nothing", "nuisance"

_Blocks = dict[str, dict[str, FloatArray]]


def mechanism_gate(
    claim: Claim, drops: pl.DataFrame | None, targets: Criterion, gates: GatesConfig
) -> GateEvidence:
    """Evaluate M for one claim from its layer's drops by block; ``targets`` is the rule on the number of targets."""
    mechanism = claim[-1]
    alone, beside = (_blocks_by_run(claim, drops, name) for name in (NOTHING, NUISANCE))
    nothing = (
        "No mechanism was stripped here."
        if mechanism == NO_MECHANISM
        else f"No drop of {mechanism} could be compared."
    )
    by, costs = "flipping signs of blocks", f"Stripping {mechanism} costs its own target more than"
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
            [_against(claim, RANDOM_DIRECTION, alone)] if _has_random(alone) else [],
            gates.alpha,
            f"{costs} stripping a",
            by,
            f"{nothing[:-1]} with a random direction.",
        ),
    ]
    if beside or not alone:
        criteria.append(
            criterion(
                CriterionName.P_BEYOND_NUISANCE,
                _against_targets(claim, beside),
                gates.alpha,
                f"Beside nuisance, {costs[:1].lower()}{costs[1:]}",
                by,
                nothing,
            )
        )
    else:
        criteria.append(unrivalled(CriterionName.P_BEYOND_NUISANCE, gates.alpha))
    return GateEvidence(Gate.MECHANISM, tuple(criteria))


def _blocks_by_run(claim: Claim, drops: pl.DataFrame | None, beside: str) -> list[_Blocks]:
    """Drops by target (or ``random_direction``) and method, for every subject-run with a matching one."""
    mechanism = claim[-1]
    if drops is None:
        return []
    own = drops.filter(
        (pl.col("beside") == beside)
        & (
            (pl.col("stripped") == mechanism)
            | ((pl.col("stripped") == RANDOM_DIRECTION) & (pl.col("target") == mechanism))
        )
    )
    by_run: list[_Blocks] = []
    for _, rows in own.group_by(SUBJECT_RUN_KEY, maintain_order=True):
        blocks: _Blocks = {}
        for row in rows.iter_rows(named=True):
            random = row["stripped"] == RANDOM_DIRECTION
            place = RANDOM_DIRECTION if random else row["target"]
            blocks.setdefault(place, {})[row["method"]] = numbers(row["drops"])
        if mechanism in blocks:
            by_run.append(blocks)
    return by_run


def _has_random(by_run: Sequence[_Blocks]) -> bool:
    return any(RANDOM_DIRECTION in blocks for blocks in by_run)


def _against_targets(claim: Claim, by_run: Sequence[_Blocks]) -> list[Comparison]:
    """Comparisons with every other target, and with no drop at all; none where there is no other target."""
    names = {name for blocks in by_run for name in blocks} - {claim[-1], RANDOM_DIRECTION}
    if not names:
        return []
    return [_against(claim, name, by_run) for name in (NO_DROP, *sorted(names))]


def _against(claim: Claim, rival: str, by_run: Sequence[_Blocks]) -> Comparison:
    """Matching drop against a rival's, or against none, over the methods that have both."""
    contrasts = []
    for blocks in by_run:
        matching, other = blocks[claim[-1]], blocks.get(rival, {})
        methods = [m for m in matching if rival == NO_DROP or m in other]
        if methods:
            contrasts.append(
                np.median([matching[m] - (other[m] if other else 0.0) for m in methods], axis=0)
            )
    values: FloatArray = np.concatenate(contrasts) if contrasts else np.empty(0)
    values = values[np.isfinite(values)]
    p = sign_flip_p_value(values, keyed_rng(0, "sign flips", *claim, rival))
    mean = float(values.mean()) if values.size else float("nan")
    return Comparison(rival.replace("_direction", " direction"), mean, p, values.size)
