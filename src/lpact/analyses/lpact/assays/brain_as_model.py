"""A brain in a model's place: would another recording of the same units pass the relational gate?

For a unit i that two recordings share, its pattern in one of them takes the place of the model's pattern:

    similarity(i) = ρ(b_i in the target, b_i in the source)
    delta(i)      = similarity(i) − mean over shuffled unit orders π of ρ(b_i in the target, π(b_i in the source))

Patterns of units are far from independent: if one factor moves all units, they are nearly one vector. So a summary
passes only if one test over all of its pairs and units rejects, too:

    T = mean over pairs of recordings of the mean over units of similarity(i)

Its null is T with whole units in shuffled order, rows and columns of the patterns together (Mantel 1967). There is one
order for each value of what a comparison varies (run, session or subject) and each set of shared units: all pairs that
include it, all measures and similarities are shuffled alike, so that what pairs have in common stays in the null. The
test is exact if the unit orders of different runs (sessions, subjects) are unrelated.

`profile_order` tests whether a profile similarity depends on the order of units at all: a pattern is compared with
itself in the right and in shuffled order. Correlations fall to about zero; the cosine of positive patterns hardly does,
and then a model can come near the ceiling without any resemblance. So a shuffled pattern must stay below
``min_ceiling_fraction`` of the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import polars as pl

from lpact.analyses.lpact.config import GatesConfig, LPactConfig
from lpact.analyses.lpact.levels.pairing import MISSING_PARTNER, MODES, SPLIT_HALF, HasUnits, comparable, paired
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES, ProfileSimilarity
from lpact.analyses.lpact.levels.relational import BrainPatterns
from lpact.analyses.lpact.tables import assay
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.math.columns import mean_of_finite
from lpact.math.scores import average_ranks
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray, IntArray
from lpact.stats import draw_p_value, rank_p_values
from lpact.store import concat, frame, frame_from_columns, validate
from lpact.wording import number, spoken

ROUNDING = 1e-12
"""A shuffled similarity within this distance of the real one counts as equal."""


@dataclass(frozen=True)
class RecordingPatterns(BrainPatterns):
    """Measured patterns of one recording."""

    id: RecordingId
    comparable: bool


def read_patterns(patterns: pl.DataFrame, recordings: Sequence[HasUnits]) -> list[RecordingPatterns]:
    """Patterns of a dataset's recordings, from its rows of ``relational/brain_alignment_patterns``."""
    made = []
    for recording in recordings:
        own = recording.id
        read = BrainPatterns.read(patterns.filter(subject=own.subject, session=own.session, run=own.run))
        made.append(RecordingPatterns(**vars(read), id=own, comparable=recording.comparable))
    return made


def random_orders(n: int, n_orders: int, rng: np.random.Generator) -> IntArray:
    """Random orders of ``n`` units, [n_orders, n]."""
    return np.stack([rng.permutation(n) for _ in range(n_orders)])


def shuffled_similarities(
    profile: ProfileSimilarity, target: FloatArray, source: FloatArray, orders: IntArray
) -> FloatArray:
    """Similarity of the target's patterns with the source's in shuffled unit order, [P, N]; NaN if undefined.

    ``target`` and ``source`` are patterns of the same units, [N, N]; a unit's own entry is ignored. ``orders`` is
    [P, N − 1]: the new order of every pattern's other entries.
    """
    a, b = _others(target), _others(source)
    if profile.name in _STANDARDISED:
        a, b = (_STANDARDISED[profile.name](x) for x in (a, b))
        if np.isfinite(a).all() and np.isfinite(b).all():
            # A reordered pattern has the same mean and length: one product per order is enough.
            return np.stack([np.einsum("ij,ij->i", a, b[:, order]) for order in orders])
        b = _others(source)
    return np.stack([profile.compare_pairs(target, _whole(b[:, order])) for order in orders])


def reordered_means(profile: ProfileSimilarity, target: FloatArray, source: FloatArray, orders: IntArray) -> FloatArray:
    """Mean similarity over units with the source's whole units, rows and columns, in other orders.

    ``target`` and ``source`` are [N, N], a unit's own entry is ignored; ``orders`` is [P, N]: the target's unit i is
    compared with the source's unit ``orders[p, i]``. Returns [P]; units without a similarity are left out.
    """
    if profile.name in _STANDARDISED:
        a, b = (_STANDARDISED[profile.name](_others(x)) for x in (target, source))
        if np.isfinite(a).all() and np.isfinite(b).all():
            a, b = (np.nan_to_num(_whole(x)) for x in (a, b))
            return np.array([np.vdot(a, b[np.ix_(o, o)]) / len(a) for o in orders])
    reordered = (profile.compare_pairs(target, source[np.ix_(o, o)]) for o in orders)
    return np.array([mean_of_finite(similarity) for similarity in reordered], dtype=np.float64)


def _others(matrix: FloatArray) -> FloatArray:
    """Rows without their own entry, [N, N − 1]."""
    n = len(matrix)
    kept: FloatArray = matrix[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    return kept


def _whole(others: FloatArray) -> FloatArray:
    """The inverse of `_others`, NaN at a unit's own entry."""
    n = len(others)
    matrix = np.full((n, n), np.nan)
    matrix[~np.eye(n, dtype=bool)] = others.ravel()
    return matrix


def _unit_length(rows: FloatArray) -> FloatArray:
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    unit: FloatArray = np.divide(rows, length, out=np.full(rows.shape, np.nan), where=length > 0)
    return unit


def _centred(rows: FloatArray) -> FloatArray:
    constant = np.ptp(rows, axis=1, keepdims=True) == 0
    centred = rows - rows.mean(axis=1, keepdims=True)
    return _unit_length(np.where(constant, np.nan, centred))


_STANDARDISED: dict[str, Callable[[FloatArray], FloatArray]] = {
    "pearson": _centred,
    "spearman": lambda rows: _centred(average_ranks(rows)),
    "cosine": _unit_length,
}
"""Similarities that are products of standardised patterns."""


def roles(feasibility: pl.DataFrame) -> dict[str, str]:
    """Role of every dataset after the audit, from ``audits/lpact_evidence_feasibility``."""
    return dict(feasibility.select(EVIDENCE_FEASIBILITY.key[0], "role").iter_rows())


def of_role(role: str) -> str:
    """Prefix of a sentence about a dataset that is not primary."""
    return "" if role == "primary" else f"{role.replace('_', ' ')} dataset: "


def most_frequent_reason(reasons: Iterable[str]) -> Reason:
    """The most frequent reason; without rows, `DATASET_HAS_NO_RECORDING`."""
    given = list(reasons)
    if not given:
        return Reason.DATASET_HAS_NO_RECORDING
    return min(Reason, key=lambda reason: (-given.count(reason.value), reason.value))


def profile_order(config: LPactConfig, dataset: str, role: str, brains: Sequence[RecordingPatterns]) -> pl.DataFrame:
    """One row per measure and profile similarity, over the units of all recordings."""
    usable = [b for b in brains if len(b.unit_ids) >= config.relational.min_units]
    why_none = Reason.UNDEFINED_SCORE if usable else Reason.TOO_FEW_UNITS
    rows = []
    for alignment, profile in product(config.relational.alignments, config.relational.profiles):
        found = [_compare(config, dataset, brain, alignment, profile) for brain in usable]
        pooled = np.concatenate([np.empty((2, 0)), *found], axis=1)
        right, shuffled = pooled[:, np.isfinite(pooled).all(axis=0)]
        reason = Reason.OK if right.size else why_none
        if not brains:
            reason = Reason.DATASET_HAS_NO_RECORDING
        rows.append(
            {
                "dataset": dataset,
                "role": role,
                "alignment": alignment,
                "profile": profile,
                "n_recordings": len(usable),
                **_order_summary(config, role, profile, right, shuffled, reason),
            }
        )
    return validate(frame(assay.PROFILE_ORDER, rows), assay.PROFILE_ORDER)


def _compare(config: LPactConfig, dataset: str, brain: RecordingPatterns, alignment: str, name: str) -> FloatArray:
    """Similarity of every unit's pattern with itself: right order, and mean over shuffled orders; [2, N]."""
    rng = keyed_rng(config.seed, "profile order", dataset, str(brain.id))
    orders = random_orders(len(brain.unit_ids) - 1, config.assay.unit_permutations, rng)
    profile, matrix = PROFILES.build(name), brain.matrices[alignment]
    shuffled = shuffled_similarities(profile, matrix, matrix, orders)
    return np.stack([profile.compare_pairs(matrix, matrix), mean_of_finite(shuffled)])


def _order_summary(
    config: LPactConfig,
    role: str,
    profile: str,
    right: FloatArray,
    shuffled: FloatArray,
    reason: Reason,
) -> dict[str, object]:
    names = ("median_similarity", "median_shuffled", "median_delta", "min_delta")
    numbers: dict[str, float | None] = dict.fromkeys(names)
    passed = False
    sentence = f"the order of units cannot be tested with {profile}: {reason.explanation}"
    if right.size:
        delta, fraction = right - shuffled, config.gates.min_ceiling_fraction
        own, other, ahead = (float(np.median(values)) for values in (right, shuffled, delta))
        numbers = dict(zip(names, (own, other, ahead, float(delta.min())), strict=True))
        passed = other < fraction * own
        similar = f"a shuffled pattern has a similarity of {number(other)} with the right one"
        sentence = f"{profile} is sensitive to the order of units: {similar}."
        if not passed:
            sentence = (
                f"{profile} is hardly sensitive to the order of units: {similar}, at least "
                f"{number(fraction)} of the ceiling that the ceiling gate requires."
            )
    return {
        "n_rows": right.size,
        **numbers,
        "gate_pass": passed,
        "interpretation": of_role(role) + sentence,
        "reason": reason.value,
    }


COMPARISONS = tuple(mode for mode in MODES if mode != SPLIT_HALF)
MAX_PAIRS = 100
"""Pairs of recordings compared for each dataset and comparison; of more, as many are drawn."""
Place = tuple[str, str, str]
"""Comparison, alignment measure, profile similarity."""


def pairs(
    config: LPactConfig, dataset: str, comparison: str, recordings: Sequence[HasUnits]
) -> tuple[list[tuple[int, int]], int]:
    """Indices of the recordings that are compared, source first, and how many pairs are possible."""
    possible = [
        (i, j)
        for i, j in combinations(range(len(recordings)), 2)
        if paired(comparison, recordings[i].id, recordings[j].id) and comparable(recordings[i], recordings[j])
    ]
    if len(possible) <= MAX_PAIRS:
        return possible, len(possible)
    rng = keyed_rng(config.seed, "brain as model, pairs", dataset, comparison)
    drawn = rng.choice(len(possible), MAX_PAIRS, replace=False)
    return [possible[i] for i in sorted(drawn.tolist())], len(possible)


def _patterns(
    config: LPactConfig, source: RecordingPatterns, target: RecordingPatterns, units: Sequence[str]
) -> Iterator[tuple[str, IntArray, IntArray, FloatArray, FloatArray]]:
    """Alignment measure, rows of the units in target and source, and both patterns over these units."""
    rows, source_rows = (np.array([b.unit_index[u] for u in units]) for b in (target, source))
    for alignment in config.relational.alignments:
        a = target.matrices[alignment][np.ix_(rows, rows)]
        b = source.matrices[alignment][np.ix_(source_rows, source_rows)]
        yield alignment, rows, source_rows, a, b


def compare_brains(config: LPactConfig, dataset: str, brains: Sequence[RecordingPatterns]) -> pl.DataFrame:
    """Rows of brain as model for one dataset: every recording in another's place."""
    parts = [
        part
        for comparison in COMPARISONS
        for i, j in pairs(config, dataset, comparison, brains)[0]
        for part in _pair(config, dataset, comparison, brains[i], brains[j])
    ]
    return concat(assay.BRAIN_AS_MODEL, parts)


def _pair(
    config: LPactConfig, dataset: str, comparison: str, source: RecordingPatterns, target: RecordingPatterns
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
    orders = random_orders(len(shared) - 1, config.assay.unit_permutations, rng)
    frames = []
    for alignment, rows, source_rows, a, b in _patterns(config, source, target, shared):
        reliability = np.minimum(target.reliability[alignment][rows], source.reliability[alignment][source_rows])
        for name in config.relational.profiles:
            real, shuffled = np.full(len(shared), np.nan), np.full((1, len(shared)), np.nan)
            if reason is Reason.OK:
                profile = PROFILES.build(name)
                real = profile.compare_pairs(a, b)
                shuffled = shuffled_similarities(profile, a, b, orders)
            columns = {
                "dataset": dataset,
                "comparison": comparison,
                "source": names[0],
                "target": names[1],
                "unit": shared,
                "alignment": alignment,
                "profile": name,
                "n_units_shared": len(shared),
                **_contrast(real, shuffled, reliability, reason, config.gates),
            }
            frames.append(frame_from_columns(assay.BRAIN_AS_MODEL, columns))
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


def unit_order_tests(config: LPactConfig, dataset: str, brains: Sequence[RecordingPatterns]) -> dict[Place, FloatArray]:
    """T of every summary of one dataset, then T in every shuffled order; none where pairs share too few units."""
    found: dict[Place, list[FloatArray]] = {}
    for comparison in COMPARISONS:
        for i, j in pairs(config, dataset, comparison, brains)[0]:
            means = _pair_means(config, dataset, comparison, brains[i], brains[j])
            for (alignment, profile), own in means.items():
                found.setdefault((comparison, alignment, profile), []).append(own)
    over_pairs = {place: mean_of_finite(np.stack(means)) for place, means in found.items()}
    return {place: means for place, means in over_pairs.items() if np.isfinite(means[0])}


def order_p_value(means: FloatArray) -> float | None:
    """P-value of T; a shuffled order that differs by rounding alone counts as reaching it."""
    p = draw_p_value(float(means[0]) - ROUNDING, means[1:])
    return p if np.isfinite(p) else None


def _pair_means(
    config: LPactConfig, dataset: str, comparison: str, source: RecordingPatterns, target: RecordingPatterns
) -> dict[tuple[str, str], FloatArray]:
    """Mean similarity over the units of one pair, by measure and similarity: in the right order, then shuffled."""
    shared = sorted(set(source.unit_ids) & set(target.unit_ids))
    if not shared or len(shared) < config.relational.min_units:
        return {}
    settings = (config.seed, dataset, comparison)
    n_orders = config.assay.unit_permutations
    of_source, of_target = (whole_orders(*settings, brain.id, shared, n_orders) for brain in (source, target))
    # Only their relative order matters: the target's unit i is compared with the source's unit π_s(π_t⁻¹(i)).
    relative = np.take_along_axis(of_source, np.argsort(of_target, axis=1), axis=1)
    orders = np.concatenate([np.arange(len(shared))[None], relative])
    return {
        (alignment, name): reordered_means(PROFILES.build(name), a, b, orders)
        for alignment, _, _, a, b in _patterns(config, source, target, shared)
        for name in config.relational.profiles
    }


def whole_orders(
    seed: int,
    dataset: str,
    comparison: str,
    recording: RecordingId,
    units: Sequence[str],
    n_orders: int,
) -> IntArray:
    """Shuffled orders of units, [n_orders, N]: the same for all recordings that a comparison does not distinguish."""
    varied = {
        "run_to_run": recording.run,
        "session_to_session": recording.session,
        "subject_to_subject": recording.subject,
    }[comparison]
    rng = keyed_rng(seed, "brain as model, whole units", dataset, comparison, varied, *units)
    return random_orders(len(units), n_orders, rng)


def summarise_comparisons(
    config: LPactConfig,
    dataset: str,
    role: str,
    recordings: Sequence[HasUnits],
    *,
    rows: pl.DataFrame,
    tests: Mapping[Place, FloatArray],
    ceilings: pl.DataFrame,
) -> pl.DataFrame:
    """One row per comparison, measure and similarity of one dataset.

    A summary passes if its test rejects (p at most ``assay.alpha``) and the rule of level 2 holds: at least
    ``direction_fraction`` of the unit rows with a contrast pass, and the mean contrast is positive. Recordings that
    cannot be paired give a row with the reason.
    """
    table = validate(rows, assay.BRAIN_AS_MODEL)
    reliable = validate(ceilings, BRAIN_CEILING).filter(pl.col("valid"), mode=SPLIT_HALF, kind="profile")
    made = []
    for comparison in COMPARISONS:
        chosen, n_possible = pairs(config, dataset, comparison, recordings)
        for alignment, profile in product(config.relational.alignments, config.relational.profiles):
            key = {"dataset": dataset, "alignment": alignment, "profile": profile}
            part = table.filter(comparison=comparison, **key)
            reason = Reason.OK
            if not part.filter(reason=Reason.OK.value).height:
                reason = _why_none(part, comparison, recordings)
            what = f"a brain in a model's place, {spoken(comparison)}, {profile}"
            test = tests.get((comparison, alignment, profile))
            made.append(
                {
                    **key,
                    "role": role,
                    "comparison": comparison,
                    "n_pairs_possible": n_possible,
                    "n_pairs": len(chosen),
                    "ceiling": reliable.filter(**key)["reliability"].median(),
                    **_summary(part, test, of_role(role) + what, reason, config),
                }
            )
    return validate(frame(assay.BRAIN_AS_MODEL_SUMMARY, made), assay.BRAIN_AS_MODEL_SUMMARY)


def _summary(
    part: pl.DataFrame, test: FloatArray | None, what: str, reason: Reason, config: LPactConfig
) -> dict[str, object]:
    needed, alpha = config.gates.direction_fraction, config.assay.alpha
    done = part.filter(reason=Reason.OK.value)
    n_pass = int(done["gate_pass"].sum())
    means = done.group_by("source", "target", maintain_order=True).agg(
        pl.col("similarity").mean(), pl.col("delta").mean()
    )
    delta = means["delta"].mean()
    share = n_pass / done.height if done.height else None
    p_value = None if test is None or share is None else order_p_value(test)
    enough = share is not None and share >= needed and isinstance(delta, float) and delta > 0
    passed = enough and p_value is not None and p_value <= alpha
    sentence = f"{what}: not available. {reason.explanation}"
    if reason is Reason.OK:
        sentence = (
            f"{what}, {'passes' if passed else 'does not pass'} against shuffled unit order: p = {number(p_value)}, "
            f"at most {number(alpha)} is needed; {n_pass} of {done.height} unit rows pass, {number(needed)} of them "
            "must."
        )
    return {
        "n_rows": done.height,
        "n_pass": n_pass,
        "pass_share": share,
        "mean_similarity": means["similarity"].mean(),
        "mean_delta": delta,
        "median_p_value": done["p_value"].median(),
        "p_value": p_value,
        "n_orders": 0 if test is None else int(np.isfinite(test[1:]).sum()),
        "gate_pass": passed,
        "interpretation": sentence,
        "reason": reason.value,
    }


def _why_none(part: pl.DataFrame, comparison: str, recordings: Sequence[HasUnits]) -> Reason:
    if part.height:
        return most_frequent_reason(part["reason"])
    if not recordings:
        return Reason.DATASET_HAS_NO_RECORDING
    partners = [(a, b) for a, b in combinations(recordings, 2) if paired(comparison, a.id, b.id)]
    if not partners:
        return MISSING_PARTNER[comparison]
    if not any(comparable(a, b) for a, b in partners):
        return Reason.UNITS_NOT_COMPARABLE
    return Reason.TOO_FEW_SHARED_UNITS


def oracle(summaries: pl.DataFrame, gates: GatesConfig) -> pl.DataFrame:
    """A brain in a model's place through the relational gate and the ceiling together, by dataset and comparison.

    The ceiling is the split-half reliability within the recordings: the comparison itself is the next stricter mode,
    and cannot bound itself. No readout is fitted and nothing can be stripped, so that the other gates do not apply.
    """
    table = validate(summaries, assay.BRAIN_AS_MODEL_SUMMARY)
    bounded = pl.col("ceiling") >= gates.min_reliability
    near = pl.col("mean_similarity") >= gates.min_ceiling_fraction * pl.col("ceiling")
    table = table.with_columns(ceiling_valid=(bounded & near).fill_null(False))
    rows = []
    for (dataset, role, comparison), part in table.group_by("dataset", "role", "comparison", maintain_order=True):
        done = part.filter(reason=Reason.OK.value)
        n_joint = done.filter("gate_pass", "ceiling_valid").height
        passed = bool(done.height) and n_joint / done.height > gates.summary_majority
        reason = Reason.OK if done.height else most_frequent_reason(part["reason"])
        what = f"{of_role(str(role))}a brain in a model's place, {spoken(str(comparison))}"
        sentence = f"{what}: not available. {reason.explanation}"
        if reason is Reason.OK:
            sentence = (
                f"{what}, {'passes' if passed else 'does not pass'} the relational gate and the ceiling together: "
                f"{n_joint} of {done.height} summaries do."
            )
        rows.append(
            {
                "dataset": dataset,
                "role": role,
                "comparison": comparison,
                "n_summaries": done.height,
                "n_relational_pass": done.filter("gate_pass").height,
                "n_ceiling_valid": done.filter("ceiling_valid").height,
                "n_joint_pass": n_joint,
                "predictive_gate_applicable": False,
                "mechanism_gate_applicable": False,
                "gate_pass": passed,
                "interpretation": sentence,
                "reason": reason.value,
            }
        )
    return validate(frame(assay.BRAIN_ORACLE, rows), assay.BRAIN_ORACLE)
