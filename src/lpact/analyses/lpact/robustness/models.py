"""Which models enter the decisions, with which controls, and why others do not."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.lpact.robustness.decided import DecidedRun
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY, MODEL_INVENTORY
from lpact.analyses.lpact.tables.robustness import MODEL_SUMMARY
from lpact.codes import Reason
from lpact.store import frame, validate
from lpact.tables import CLAIM_KEY

_EXPLANATIONS = {reason.value: reason.explanation for reason in Reason}


def model_summary(run: DecidedRun) -> pl.DataFrame:
    """One row per model of the study file, from the audit's inventory and the claims."""
    inventory = run.tables[MODEL_INVENTORY.name].sort(MODEL_INVENTORY.key)
    claims = run.decisions.select(CLAIM_KEY).unique()
    controls = run.tables[CONTROL_AVAILABILITY.name]
    rows = [
        _summary(
            str(model), own, claims.filter(model=model), controls.filter(pl.col("model") == model)
        )
        for (model,), own in inventory.group_by(["model"], maintain_order=True)
    ]
    return validate(frame(MODEL_SUMMARY, rows), MODEL_SUMMARY)


def _summary(
    model: str, offers: pl.DataFrame, claims: pl.DataFrame, controls: pl.DataFrame
) -> dict[str, Any]:
    datasets = claims["dataset"].unique().sort().to_list()
    available = set(controls.filter("available")["control"].to_list())
    included = claims.height > 0
    missing = offers.filter(~pl.col("included"))["reason"]
    why = Reason.OK.value
    if not included:
        known = missing.filter(missing != Reason.OK.value)
        why = known.sort()[0] if len(known) else Reason.NOTHING_MEASURED.value
    status = (
        f"included: {claims.height} claims" if included else f"not included: {_EXPLANATIONS[why]}"
    )
    return {
        "model": model,
        "source": offers["source"][0],
        "layers": claims["layer"].unique().sort().to_list(),
        "datasets": datasets,
        "datasets_without": [d for d in offers["dataset"].to_list() if d not in datasets],
        "controls_available": sorted(available),
        "controls_missing": sorted(set(controls["control"].to_list()) - available),
        "n_claims": claims.height,
        "included": included,
        "status": status,
        "reason": why,
    }
