"""Rows of the tables of detectable effects, each with its sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from lpact.analyses.lpact.calibration.power_cells import MIXED, SAME, SMALLER
from lpact.analyses.lpact.calibration.power_closed import closed_form
from lpact.analyses.lpact.calibration.power_design import Ceiling, DatasetDesign, ModelDesign
from lpact.analyses.lpact.calibration.power_simulate import Simulated
from lpact.analyses.lpact.calibration.truths import GATES
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.dataset_check.looks import lowered
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.tables.calibration import STUDY_DESIGN
from lpact.codes import Reason
from lpact.store import frame

Row = dict[str, Any]

PREDICTIVE = "predictive"
HOPELESS = (
    Reason.ROLE_NOT_CONFIRMATORY,
    Reason.CHAIN_INCOMPLETE,
    Reason.DATASET_HAS_NO_RECORDING,
    Reason.TOO_FEW_DRAWS,
)
"""Reasons why no effect can pass, however large."""
_NUMBERS = (
    "score",
    "score_low",
    "delta",
    "fraction_of_ceiling",
    "snr",
    "snr_low",
    "snr_high",
    "snr_half",
)
CLOSED_FORM, OBSERVED_SPREAD, SIMULATED = "closed_form", "observed_spread", "simulated"


def reason_of(code: str) -> Reason:
    """The reason of a code in a table."""
    return next(reason for reason in Reason if reason.value == code)


def profile_alphas(gates: GatesConfig) -> dict[str, float | None]:
    """Level of each gate profile's tests; the paper's point rules have none."""
    return {CALIBRATED: gates.alpha, PAPER: None}


def design_frame(
    designs: Sequence[DatasetDesign], ceilings: Mapping[str, Ceiling | None]
) -> pl.DataFrame:
    """The table of designs: one row per dataset and model."""
    rows = [
        _design_row(design, model, ceilings.get(design.name))
        for design in designs
        for model in design.models
    ]
    return frame(STUDY_DESIGN, rows)


def _design_row(design: DatasetDesign, model: ModelDesign, ceiling: Ceiling | None) -> Row:
    return {
        "dataset": design.name,
        "model": model.model,
        "layer": model.layer,
        "role": design.role,
        "confirmatory": design.confirmatory,
        "n_subjects": design.n_subjects,
        "n_subject_runs": design.n_subject_runs,
        "n_measured": design.n_measured,
        "n_events": design.n_events,
        "n_units": design.n_units,
        "n_folds": design.n_folds,
        "n_lags": design.n_lags,
        "n_rivals": model.n_rivals,
        "response_autocorrelation": design.response_autocorrelation,
        "feature_autocorrelation": model.feature_autocorrelation,
        "variance_inflation": model.variance_inflation,
        "n_effective_events": model.n_effective_events,
        "n_effective_units": design.n_effective_units,
        "n_effective_subject_runs": design.n_effective_subject_runs or None,
        "ceiling_mode": None if ceiling is None else ceiling.mode,
        "ceiling": None if ceiling is None else ceiling.score,
        "reason": model.reason if design.n_subject_runs else design.reason,
    }


def effect_row(
    dataset: str,
    profile: str,
    gate: str,
    method: str,
    *,
    target: float,
    alpha: float | None,
    ceiling: Ceiling | None,
    reason: Reason,
    sentence: str = "",
    size: str = SAME,
    enough_trials: bool = True,
    **numbers: float | None,
) -> Row:
    """One row of `MINIMUM_DETECTABLE_EFFECT`; numbers that are not given are missing."""
    score = numbers.get("score")
    limit = None if ceiling is None else ceiling.score
    row: Row = {
        "dataset": dataset,
        "gate_profile": profile,
        "gate": gate,
        "method": method,
        "target_power": target,
        "alpha": alpha,
        **dict.fromkeys(_NUMBERS),
        "simulated_size": size,
        "enough_trials": enough_trials,
        "n_trials": 0,
        "n_passed": 0,
        **numbers,
        "ceiling": limit,
        "attainable": None if score is None or limit is None else score <= limit,
        "reason": reason,
    }
    return row | {"sentence": sentence or effect_sentence(row)}


def effect_sentence(row: Row) -> str:
    """A row of `MINIMUM_DETECTABLE_EFFECT` in plain words."""
    power = f"{row['target_power']:.0%} power"
    if row["reason"] is Reason.NEVER_DETECTED:
        text = f"No simulated effect, however strong, passes the gate {row['gate']} with {power}."
        return " ".join([text, *open_questions(row)])
    if row["reason"] is Reason.ALWAYS_DETECTED:
        return f"Even the weakest simulated effect passes the gate {row['gate']} with {power}."
    if row["reason"] in HOPELESS:
        why = lowered(reason_of(row["reason"]))
        return f"This design could not have found it, however large the effect: {why}."
    if row["reason"] is not Reason.OK:
        return reason_of(row["reason"]).explanation
    effect = (
        f"a contrast of {row['delta']:.3f} over the best rival"
        if row["delta"] is not None
        else "an effect"
    )
    if row["score"] is not None:
        effect += f" (a held-out score of about {row['score']:.3f})"
    text = f"The smallest effect that passes the gate {row['gate']} with {power} is {effect}"
    if row["attainable"] is False:
        text += f". Responses repeat too poorly for that: no score above {row['ceiling']:.3f} can be expected."
        return " ".join([text, *(open_questions(row) or ["This design could not have found it."])])
    return text + "."


def open_questions(row: Row) -> list[str]:
    """Why a row that found nothing, or nothing that can exist, does not settle what the design could find."""
    if row["simulated_size"] in (SMALLER, MIXED):
        return ["Simulated studies were smaller than this design, which finds smaller effects."]
    if not row["enough_trials"]:
        return ["Too few studies were simulated to be sure; raise --trials."]
    return []


def closed_rows(
    design: DatasetDesign, gates: GatesConfig, target: float, ceiling: Ceiling | None
) -> list[Row]:
    """Level 1 of one dataset in closed form, for every profile."""
    rows = []
    model = design.limiting
    for profile, alpha in profile_alphas(gates).items():
        fixed: Any = {"target": target, "alpha": alpha, "ceiling": ceiling}
        place = (design.name, profile, PREDICTIVE, CLOSED_FORM)
        if (
            model is None
            or model.n_effective_events is None
            or design.n_effective_units is None
            or not design.confirmatory
        ):
            reason = Reason.MODEL_OFFERS_NOTHING if design.reason is Reason.OK else design.reason
            rows.append(effect_row(*place, **fixed, reason=reason))
            continue
        found = closed_form(
            n_effective_events=model.n_effective_events,
            n_effective_units=design.n_effective_units,
            n_subject_runs=design.n_effective_subject_runs,
            draws=model.random_draws,
            alpha=alpha,
            target=target,
            surrogate_draws=model.surrogate_draws,
        )
        if found is None:
            rows.append(effect_row(*place, **fixed, reason=Reason.TOO_FEW_DRAWS))
            continue
        rows.append(
            effect_row(*place, **fixed, reason=Reason.OK, delta=found.delta, score=found.score)
        )
    return rows


def simulated_rows(
    design: DatasetDesign,
    simulated: Simulated | None,
    gates: GatesConfig,
    target: float,
    ceiling: Ceiling | None,
    size: str = SAME,
) -> list[Row]:
    """Every gate and profile of one dataset, from simulated studies of its design or, by ``size``, of another size."""
    alphas = profile_alphas(gates)
    fixed: Any = {"target": target, "ceiling": ceiling}
    if simulated is None:
        why = Reason.NOT_SIMULATED if design.reason is Reason.OK else design.reason
        return [
            effect_row(design.name, p, g, SIMULATED, alpha=a, reason=why, **fixed)
            for p, a in alphas.items()
            for g in GATES
        ]
    rows = []
    for (profile, gate), passed in sorted(simulated.passed.items()):
        curve, reason = simulated.curve(profile, gate, target)
        numbers: dict[str, Any] = {}
        enough = reason is not Reason.NEVER_DETECTED or simulated.excludes(profile, gate, target)
        alpha = alphas.get(profile)
        if simulated.largest_p is not None and (profile, gate) == (CALIBRATED, "integrated"):
            alpha = min(simulated.largest_p, gates.alpha)
        if curve is not None:
            half = curve.snr_at(0.5)
            numbers["snr_half"] = half if _inside(half, simulated) else None
        if curve is not None and reason is Reason.OK:
            snr = curve.snr_at(target)
            low, high = curve.interval(target)
            numbers |= {"snr": snr, "snr_low": low, "snr_high": high}
            numbers |= {name: simulated.effect_at(name, snr) for name in simulated.effects}
            numbers["score_low"] = simulated.effect_at("score", low)
            enough = not in_doubt(numbers["score"], numbers["score_low"], ceiling)
        rows.append(
            effect_row(
                design.name,
                profile,
                gate,
                SIMULATED,
                alpha=alpha,
                reason=reason,
                size=size,
                enough_trials=enough,
                n_trials=len(passed),
                n_passed=int(passed.sum()),
                **numbers,
                **fixed,
            )
        )
    return rows


def in_doubt(needed: float | None, low: float | None, ceiling: Ceiling | None) -> bool:
    """Whether a needed score is above the ceiling, but the lower end of its interval is not."""
    if needed is None or low is None or ceiling is None:
        return False
    return low <= ceiling.score < needed


def _inside(snr: float, simulated: Simulated) -> bool:
    return bool(simulated.ratios[0] <= snr <= simulated.ratios[-1])
