"""Do brains agree with brains? Measured reliabilities, counted.

Stable responses and patterns are necessary, not sufficient: the halves of one recording can share slow drift, so that
split half is flagged if no other mode is valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import polars as pl

from lpact.analyses.lpact.assays.brain_as_model import most_frequent_reason, of_role
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.levels.pairing import MODES, SPLIT_HALF
from lpact.analyses.lpact.tables.assay import BRAIN_RELIABILITY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING
from lpact.codes import Reason
from lpact.store import frame, validate
from lpact.tables import RECORDING_KEY
from lpact.wording import number, spoken

KINDS = ("profile", "response", "response_to_mean")


def summarise_reliability(ceilings: pl.DataFrame, roles: Mapping[str, str], gates: GatesConfig) -> pl.DataFrame:
    """One row per dataset, mode and kind, from ``ceilings/brain_brain_ceiling``.

    A row passes if at least ``direction_fraction`` of the valid reliabilities reach ``min_reliability`` in every
    profile similarity separately: the cosine of positive patterns always reaches it, and must not carry the others.
    """
    table = validate(ceilings, BRAIN_CEILING)
    rows = []
    for (dataset, role), mode, kind in product(roles.items(), MODES, KINDS):
        own = table.filter(dataset=dataset, kind=kind)
        alone = mode == SPLIT_HALF and set(own.filter("valid")["mode"]) == {SPLIT_HALF}
        key = {"dataset": dataset, "role": role, "mode": mode, "kind": kind}
        rows.append({**key, **_summary(own.filter(mode=mode), key, gates, alone=alone)})
    return validate(frame(BRAIN_RELIABILITY, rows), BRAIN_RELIABILITY)


def _summary(part: pl.DataFrame, key: Mapping[str, str], gates: GatesConfig, *, alone: bool) -> dict[str, object]:
    valid = part.filter("valid").with_columns(reliable=pl.col("reliability") >= gates.min_reliability)
    shares = valid.group_by("profile", maintain_order=True).agg(pl.col("reliable").mean())
    weakest = shares["reliable"].min()
    passed = isinstance(weakest, float) and weakest >= gates.direction_fraction
    reason = Reason.OK if valid.height else most_frequent_reason(part["reason"])
    n_reliable = int(valid["reliable"].sum())
    of_what = "patterns" if key["kind"] == "profile" else "responses"
    sentence = f"{spoken(key['mode'])} reliability of {of_what} "
    if reason is not Reason.OK:
        sentence += f"is not available: {reason.explanation}"
    else:
        sentence += "passes" if passed else "does not pass"
        sentence += f": {n_reliable} of {valid.height} rows reach {number(gates.min_reliability)}"
        if passed and alone:
            sentence += "; no other mode is valid here, and slow drift can inflate this one"
        sentence += "."
    return {
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
        "interpretation": of_role(key["role"]) + sentence,
        "reason": reason.value,
    }
