"""Do brains agree with brains? Measured reliabilities, counted.

The control asks whether the measured responses and patterns hold anything stable at all. It is necessary and not
sufficient: split half of one recording can share slow drift, so that it is flagged where it stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from lpact.analyses.lpact.assays.base import of_role
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.wording import number, words
from lpact.analyses.lpact.levels.pairing import MODES, SPLIT_HALF
from lpact.analyses.lpact.tables.assay import BRAIN_RELIABILITY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING
from lpact.codes import Reason
from lpact.store import frame, validate
from lpact.tables import RECORDING_KEY

KINDS = ("profile", "response", "response_to_mean")
_KEY = ("mode", "kind")


def summarise(ceilings: pl.DataFrame, roles: Mapping[str, str], gates: GatesConfig) -> pl.DataFrame:
    """One row per dataset, mode and kind, from ``ceilings/brain_brain_ceiling``.

    A row passes if at least ``direction_fraction`` of the valid reliabilities reach ``min_reliability``, in every
    profile similarity by itself: the cosine of positive patterns reaches it whatever they are, and must not carry the
    others.
    """
    table = validate(ceilings, BRAIN_CEILING)
    rows = []
    for dataset, role in roles.items():
        own = table.filter(dataset=dataset)
        valid_modes = {
            kind: set(own.filter(pl.col("kind") == kind, pl.col("valid"))["mode"]) for kind in KINDS
        }
        for mode in MODES:
            for kind in KINDS:
                part = own.filter(pl.col("mode") == mode, pl.col("kind") == kind)
                alone = mode == SPLIT_HALF and valid_modes[kind] == {SPLIT_HALF}
                rows.append(_row(part, dataset, role, mode, kind, alone, gates))
    return validate(frame(BRAIN_RELIABILITY, rows), BRAIN_RELIABILITY)


def _row(
    part: pl.DataFrame,
    dataset: str,
    role: str,
    mode: str,
    kind: str,
    alone: bool,
    gates: GatesConfig,
) -> dict[str, object]:
    valid = part.filter("valid").with_columns(
        reliable=pl.col("reliability") >= gates.min_reliability
    )
    shares = valid.group_by("profile", maintain_order=True).agg(pl.col("reliable").mean())
    weakest = shares["reliable"].min()
    passed = isinstance(weakest, float) and weakest >= gates.direction_fraction
    reason = Reason.OK if valid.height else most_frequent_reason(part["reason"])
    n_reliable = int(valid["reliable"].sum())
    return {
        "dataset": dataset,
        "role": role,
        "mode": mode,
        "kind": kind,
        "n_recordings": part.select(RECORDING_KEY).unique().height,
        "n_rows": part.height,
        "n_valid": valid.height,
        "valid_fraction": valid.height / part.height if part.height else None,
        "median_reliability": valid["reliability"].median(),
        "n_reliable": n_reliable,
        "reliable_share": n_reliable / valid.height if valid.height else None,
        "weakest_profile_share": weakest,
        "min_reliability": gates.min_reliability,
        "split_half_alone": alone,
        "gate_pass": passed,
        "interpretation": of_role(role)
        + _sentence(mode, kind, passed, alone, reason, n_reliable, valid.height, gates),
        "reason": reason.value,
    }


def most_frequent_reason(reasons: Iterable[str]) -> Reason:
    """The reason that most rows give; of a dataset without rows, that it has no recording."""
    given = list(reasons)
    if not given:
        return Reason.DATASET_HAS_NO_RECORDING
    return min(Reason, key=lambda reason: (-given.count(reason.value), reason.value))


def _sentence(
    mode: str,
    kind: str,
    passed: bool,
    alone: bool,
    reason: Reason,
    n_reliable: int,
    n_valid: int,
    gates: GatesConfig,
) -> str:
    what = f"{words(mode)} reliability of {'patterns' if kind == 'profile' else 'responses'}"
    if reason is not Reason.OK:
        return f"{what} is not available: {reason.explanation}"
    counted = f"{n_reliable} of {n_valid} rows reach {number(gates.min_reliability)}"
    if not passed:
        return f"{what} does not pass: {counted}."
    caution = "; no other mode is valid here, and slow drift can inflate this one" if alone else ""
    return f"{what} passes: {counted}{caution}."
