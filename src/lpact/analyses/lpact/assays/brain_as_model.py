"""A brain in a model's place: would another recording of the same units pass the relational gate?

For a unit i that two recordings share, its pattern in one of them takes the place of the model's pattern:

    similarity(i) = ρ(b_i in the target, b_i in the source)
    delta(i)      = similarity(i) − mean over shuffled unit orders π of ρ(b_i in the target, π(b_i in the source))

The mean over orders is the control's score, as for every random control. Two recordings make one pair, not two:
the similarities are symmetric. Rows and their shares tell units apart; whether a summary passes also asks for one test
over all of its pairs and units, `lpact.analyses.lpact.assays.unit_order`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import polars as pl

from lpact.analyses.lpact.assays.base import (
    ROUNDING,
    BrainProfiles,
    mean_of_finite,
    of_role,
    shuffled_similarities,
    unit_orders,
)
from lpact.analyses.lpact.assays.reliability import most_frequent_reason
from lpact.analyses.lpact.assays.unit_order import OrderTest, Place, order_tests
from lpact.analyses.lpact.config import GatesConfig, LPactConfig
from lpact.analyses.lpact.gates.wording import number, words
from lpact.analyses.lpact.levels.pairing import (
    MISSING_PARTNER,
    MODES,
    SPLIT_HALF,
    HasUnits,
    comparable,
    paired,
)
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.tables.assay import BRAIN_AS_MODEL, BRAIN_AS_MODEL_SUMMARY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING
from lpact.codes import Reason
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.stats import rank_p_values
from lpact.store import concat, frame, frame_from_columns, validate

COMPARISONS = tuple(mode for mode in MODES if mode != SPLIT_HALF)
PAIRS_AT_MOST = 100
"""Pairs of recordings compared for each dataset and comparison; of more, as many are drawn."""


def pairs(
    config: LPactConfig, dataset: str, comparison: str, recordings: Sequence[HasUnits]
) -> tuple[list[tuple[int, int]], int]:
    """Places of the recordings that are compared, source first, and how many pairs there could be."""
    possible = [
        (i, j)
        for i, j in combinations(range(len(recordings)), 2)
        if paired(comparison, recordings[i].id, recordings[j].id)
        and comparable(recordings[i], recordings[j])
    ]
    if len(possible) <= PAIRS_AT_MOST:
        return possible, len(possible)
    rng = keyed_rng(config.seed, "brain as model, pairs", dataset, comparison)
    drawn = rng.choice(len(possible), PAIRS_AT_MOST, replace=False)
    return [possible[i] for i in sorted(drawn.tolist())], len(possible)


def run(config: LPactConfig, dataset: str, brains: Sequence[BrainProfiles]) -> pl.DataFrame:
    """Row-level comparisons of one dataset."""
    parts = [
        part
        for comparison in COMPARISONS
        for i, j in pairs(config, dataset, comparison, brains)[0]
        for part in _pair(config, dataset, comparison, brains[i], brains[j])
    ]
    return concat(BRAIN_AS_MODEL, parts)


def _pair(
    config: LPactConfig, dataset: str, comparison: str, source: BrainProfiles, target: BrainProfiles
) -> list[pl.DataFrame]:
    """All measures and similarities of one pair, over the units that both recordings have."""
    shared = [unit for unit in target.unit_ids if unit in source.unit_index]
    if not shared:
        return []
    reason = Reason.OK
    minimum = config.relational.min_units
    if len(shared) < minimum:
        few = min(len(source.unit_ids), len(target.unit_ids)) < minimum
        reason = Reason.TOO_FEW_UNITS if few else Reason.TOO_FEW_SHARED_UNITS
    names = (str(source.id), str(target.id))
    rng = keyed_rng(config.seed, "brain as model", dataset, comparison, *names)
    orders = unit_orders(len(shared), config.assay.unit_permutations, rng)
    rows, source_rows = (np.array([b.unit_index[u] for u in shared]) for b in (target, source))
    frames = []
    for alignment in config.relational.alignments:
        a = target.matrices[alignment][np.ix_(rows, rows)]
        b = source.matrices[alignment][np.ix_(source_rows, source_rows)]
        reliability = np.minimum(
            target.reliability[alignment][rows], source.reliability[alignment][source_rows]
        )
        for name in config.relational.profiles:
            if reason is Reason.OK:
                profile = PROFILES.build(name)
                real = profile.compare_pairs(a, b)
                shuffled = shuffled_similarities(profile, a, b, orders)
            else:
                real, shuffled = np.full(len(shared), np.nan), np.full((1, len(shared)), np.nan)
            columns = _contrast(real, shuffled, reliability, reason, config.gates)
            key = {
                "dataset": dataset,
                "comparison": comparison,
                "source": names[0],
                "target": names[1],
                "unit": shared,
                "alignment": alignment,
                "profile": name,
                "n_units_shared": len(shared),
            }
            frames.append(frame_from_columns(BRAIN_AS_MODEL, {**key, **columns}))
    return frames


def _contrast(
    real: FloatArray,
    shuffled: FloatArray,
    reliability: FloatArray,
    reason: Reason,
    gates: GatesConfig,
) -> dict[str, object]:
    control = mean_of_finite(shuffled)
    delta = real - control
    defined = np.isfinite(delta)
    with np.errstate(invalid="ignore"):
        passed = (delta > 0) & (reliability >= gates.min_reliability)
    undefined = Reason.UNDEFINED_SCORE if reason is Reason.OK else reason
    return {
        "split_half_reliability": reliability,
        "similarity": real,
        "shuffled_similarity": control,
        "delta": delta,
        "p_value": np.where(defined, rank_p_values(real, shuffled, slack=ROUNDING), np.nan),
        "n_permutations": np.isfinite(shuffled).sum(axis=0),
        "gate_pass": passed,
        "reason": [Reason.OK.value if d else undefined.value for d in defined],
    }


def tests_of_order(
    config: LPactConfig, dataset: str, brains: Sequence[BrainProfiles]
) -> dict[Place, OrderTest]:
    """One test per summary of one dataset, over the pairs that `run` compares."""
    chosen = {c: pairs(config, dataset, c, brains)[0] for c in COMPARISONS}
    return order_tests(config, dataset, brains, chosen)


def summarise(
    config: LPactConfig,
    dataset: str,
    role: str,
    recordings: Sequence[HasUnits],
    *,
    rows: pl.DataFrame,
    tests: Mapping[Place, OrderTest],
    ceilings: pl.DataFrame,
) -> pl.DataFrame:
    """One row per comparison, measure and similarity of one dataset.

    A summary passes if its test rejects (p at most ``assay.alpha``) and the rule of level 2 holds: at least
    ``direction_fraction`` of the unit rows with a contrast pass, and the mean contrast is positive. Recordings that
    cannot be paired give a row with the reason.
    """
    table = validate(rows, BRAIN_AS_MODEL)
    reliable = validate(ceilings, BRAIN_CEILING).filter(
        pl.col("mode") == SPLIT_HALF, pl.col("kind") == "profile", pl.col("valid")
    )
    made = []
    for comparison in COMPARISONS:
        chosen, n_possible = pairs(config, dataset, comparison, recordings)
        for alignment in config.relational.alignments:
            for profile in config.relational.profiles:
                key = {"dataset": dataset, "alignment": alignment, "profile": profile}
                part = table.filter(comparison=comparison, **key)
                test = tests.get((comparison, alignment, profile))
                made.append(
                    {
                        **key,
                        "role": role,
                        "comparison": comparison,
                        "n_pairs_possible": n_possible,
                        "n_pairs": len(chosen),
                        "ceiling": reliable.filter(**key)["reliability"].median(),
                        **_summary(part, test, role, comparison, profile, recordings, config),
                    }
                )
    return validate(frame(BRAIN_AS_MODEL_SUMMARY, made), BRAIN_AS_MODEL_SUMMARY)


def _summary(
    part: pl.DataFrame,
    test: OrderTest | None,
    role: str,
    comparison: str,
    profile: str,
    recordings: Sequence[HasUnits],
    config: LPactConfig,
) -> dict[str, object]:
    needed, alpha = config.gates.direction_fraction, config.assay.alpha
    done = part.filter(pl.col("reason") == Reason.OK.value)
    n_pass = int(done["gate_pass"].sum())
    means = done.group_by("source", "target", maintain_order=True).agg(
        pl.col("similarity").mean(), pl.col("delta").mean()
    )
    delta = means["delta"].mean()
    share = n_pass / done.height if done.height else None
    p_value = None if test is None or share is None else test.p_value
    enough = share is not None and share >= needed and isinstance(delta, float) and delta > 0
    passed = enough and p_value is not None and p_value <= alpha
    reason = Reason.OK if done.height else _why_none(part, comparison, recordings)
    what = f"a brain in a model's place, {words(comparison)}, {profile}"
    if reason is not Reason.OK:
        sentence = f"{what}: not available. {reason.explanation}"
    else:
        verb = "passes against" if passed else "does not pass against"
        sentence = (
            f"{what}, {verb} shuffled unit order: p = {number(p_value)}, at most {number(alpha)} is needed; "
            f"{n_pass} of {done.height} unit rows pass, {number(needed)} of them must."
        )
    return {
        "n_rows": done.height,
        "n_pass": n_pass,
        "pass_share": share,
        "mean_similarity": means["similarity"].mean(),
        "mean_delta": delta,
        "median_p_value": done["p_value"].median(),
        "p_value": p_value,
        "n_orders": 0 if test is None else test.n_orders,
        "gate_pass": passed,
        "interpretation": of_role(role) + sentence,
        "reason": reason.value,
    }


def _why_none(part: pl.DataFrame, comparison: str, recordings: Sequence[HasUnits]) -> Reason:
    if part.height:
        return most_frequent_reason(part["reason"])
    if not recordings:
        return Reason.DATASET_HAS_NO_RECORDING
    ids = [r.id for r in recordings]
    partners = [
        (i, j) for i, j in combinations(range(len(ids)), 2) if paired(comparison, ids[i], ids[j])
    ]
    if not partners:
        return MISSING_PARTNER[comparison]
    if not any(comparable(recordings[i], recordings[j]) for i, j in partners):
        return Reason.UNITS_NOT_COMPARABLE
    return Reason.TOO_FEW_SHARED_UNITS
