"""Does a profile similarity notice the order of units at all?

A unit's own pattern is compared with itself, in the right and in shuffled unit order. Correlations fall to about zero.
The cosine of two positive patterns hardly falls, whatever their order: a model can then come near the ceiling without
resembling anything. So a similarity passes if a shuffled pattern stays below ``min_ceiling_fraction`` of the right one,
which is what the ceiling gate asks of a model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from lpact.analyses.lpact.assays.base import (
    BrainProfiles,
    mean_of_finite,
    of_role,
    shuffled_similarities,
    unit_orders,
)
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.gates.wording import number
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.tables.assay import PROFILE_ORDER
from lpact.codes import Reason
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.store import frame, validate


def run(
    config: LPactConfig, dataset: str, role: str, brains: Sequence[BrainProfiles]
) -> pl.DataFrame:
    """One row per measure and profile similarity, over the units of all recordings."""
    usable = [b for b in brains if len(b.unit_ids) >= config.relational.min_units]
    none = Reason.TOO_FEW_UNITS if brains else Reason.DATASET_HAS_NO_RECORDING
    rows = []
    for alignment in config.relational.alignments:
        for profile in config.relational.profiles:
            found = [_compare(config, dataset, brain, alignment, profile) for brain in usable]
            pooled = np.concatenate([np.empty((2, 0)), *found], axis=1)
            right, shuffled = pooled[:, np.isfinite(pooled).all(axis=0)]
            reason = Reason.UNDEFINED_SCORE if usable else none
            key = {"dataset": dataset, "role": role, "alignment": alignment, "profile": profile}
            rows.append(
                {
                    **key,
                    "n_recordings": len(usable),
                    **_summary(config, role, profile, right, shuffled, reason),
                }
            )
    return validate(frame(PROFILE_ORDER, rows), PROFILE_ORDER)


def _compare(
    config: LPactConfig, dataset: str, brain: BrainProfiles, alignment: str, name: str
) -> FloatArray:
    """Similarity of every unit's pattern with itself: right order, and mean over shuffled orders; [2, N]."""
    rng = keyed_rng(config.seed, "profile order", dataset, str(brain.id))
    orders = unit_orders(len(brain.unit_ids), config.assay.unit_permutations, rng)
    profile, matrix = PROFILES.build(name), brain.matrices[alignment]
    shuffled = shuffled_similarities(profile, matrix, matrix, orders)
    return np.stack([profile.compare_pairs(matrix, matrix), mean_of_finite(shuffled)])


def _summary(
    config: LPactConfig,
    role: str,
    profile: str,
    right: FloatArray,
    shuffled: FloatArray,
    reason: Reason,
) -> dict[str, object]:
    if not right.size:
        nothing: dict[str, object] = dict.fromkeys(
            ("median_similarity", "median_shuffled", "median_delta", "min_delta")
        )
        sentence = f"the order of units cannot be tested with {profile}: {reason.explanation}"
        return {
            "n_rows": 0,
            **nothing,
            "gate_pass": False,
            "interpretation": of_role(role) + sentence,
            "reason": reason.value,
        }
    delta = right - shuffled
    fraction = config.gates.min_ceiling_fraction
    typical, typical_shuffled = float(np.median(right)), float(np.median(shuffled))
    passed = typical_shuffled < fraction * typical
    told = f"a shuffled pattern has a similarity of {number(typical_shuffled)} with the right one"
    sentence = (
        f"{profile} is sensitive to the order of units: {told}."
        if passed
        else f"{profile} is hardly sensitive to the order of units: {told}, at least "
        f"{number(fraction)} of the ceiling that the ceiling gate asks for."
    )
    return {
        "n_rows": right.size,
        "median_similarity": typical,
        "median_shuffled": typical_shuffled,
        "median_delta": float(np.median(delta)),
        "min_delta": float(delta.min()),
        "gate_pass": bool(passed),
        "interpretation": of_role(role) + sentence,
        "reason": Reason.OK.value,
    }
