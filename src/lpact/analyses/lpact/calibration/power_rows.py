"""Rows of the tables of detectable effects, each with its sentence, before and after a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.calibration.power_curve import closed_form, from_spread
from lpact.analyses.lpact.calibration.power_design import (
    LARGER,
    MIXED,
    SAME,
    SMALLER,
    Ceiling,
    DatasetDesign,
    ModelDesign,
    best_ceiling,
)
from lpact.analyses.lpact.calibration.power_simulate import Simulated
from lpact.analyses.lpact.calibration.truths import GATES
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.dataset_support import lowered
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.calibration import LAYER_DETECTABILITY, STUDY_DESIGN
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, CONTROL_DELTAS, CONTROL_NULLS
from lpact.codes import Reason
from lpact.errors import RunError
from lpact.store import StoredRun, frame

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
    *("score", "score_low", "delta", "fraction_of_ceiling"),
    *("snr", "snr_low", "snr_high", "snr_half"),
)
CLOSED_FORM, OBSERVED_SPREAD, SIMULATED = "closed_form", "observed_spread", "simulated"


def reason_of(code: str) -> Reason:
    """The reason of a code in a table."""
    return Reason(code)


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


_OF_DESIGN = (
    *("role", "confirmatory", "n_subjects", "n_subject_runs", "n_measured", "n_events", "n_units"),
    *("n_folds", "n_lags", "response_autocorrelation", "n_effective_units"),
)
_OF_MODEL = (
    *("model", "layer", "n_rivals", "feature_autocorrelation", "variance_inflation"),
    "n_effective_events",
)


def _design_row(design: DatasetDesign, model: ModelDesign, ceiling: Ceiling | None) -> Row:
    return {
        "dataset": design.name,
        **{name: getattr(design, name) for name in _OF_DESIGN},
        **{name: getattr(model, name) for name in _OF_MODEL},
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


FOUND = "found"
COULD_HAVE = "could_have_found"
COULD_NOT = "could_not_have_found"
NOT_KNOWN = "not_known"
_LAYER = ("dataset", "model", "layer")


def check_same_study(run: StoredRun, config: Mapping[str, Any]) -> None:
    """Raise `RunError` unless the run is one of this study: the same name, datasets and models."""
    made = run.manifest.config

    def names(of: Mapping[str, Any], what: str) -> str:
        return ", ".join(sorted(entry["name"] for entry in of[what]))

    for what, own, other in (
        ("name", config["name"], made["name"]),
        ("datasets", names(config, "datasets"), names(made, "datasets")),
        ("models", names(config, "models"), names(made, "models")),
    ):
        if own != other:
            raise RunError(
                "the run is one of another study",
                where=str(run.root),
                got=f"{what}: {other}",
                expected=f"{what}: {own}",
                remedy="name a run of this study with --run, or assess the run alone: `lpact power RUN`",
            )


def run_ceilings(run: StoredRun) -> dict[str, Ceiling | None]:
    """Ceiling of every dataset of a run, from the reliability of its responses."""
    reliability = run.table(BRAIN_CEILING.name)
    names = run.table(EVIDENCE_FEASIBILITY.name)["dataset"].to_list()
    return {name: best_ceiling(reliability.filter(dataset=name)) for name in names}


def run_claims(run: StoredRun) -> int:
    """Confirmatory claims of a run, over which its tests are corrected."""
    claims = run.table(DECISIONS.name).filter(gate_profile=CALIBRATED)
    return claims["p_value"].count()


class _Observed:
    """Level 1 of one layer: its contrast with the better of nuisance and the best control, in every subject-run."""

    def __init__(self, rows: pl.DataFrame) -> None:
        rows = rows.drop_nulls(["delta_nuisance", "delta_control"])
        self.n = rows.height
        deltas = {n: rows[n].to_numpy() for n in ("delta_nuisance", "delta_control")}
        means = {n: float(v.mean()) for n, v in deltas.items()} if self.n else {}
        worse = min(means, key=lambda n: means[n], default="delta_control")
        self.delta = means.get(worse)
        self.deltas = [float(v) for v in deltas[worse]]
        self.score = float(rows["real_score"].to_numpy().mean()) if self.n else None
        self.rival = "nuisance"
        if worse == "delta_control":
            best = rows["best_control"].drop_nulls().mode().sort().to_list()
            self.rival = best[0] if best else "none"
        self.rival_score = (
            None if self.score is None or self.delta is None else self.score - self.delta
        )


def observe(run: StoredRun, metric: str) -> dict[tuple[str, str, int], _Observed]:
    """Level 1 of every layer of a run."""
    rows = run.table(CONTROL_DELTAS.name).filter(metric=metric)
    layers = rows.group_by(_LAYER, maintain_order=True)
    return {(str(d), str(m), int(str(k))): _Observed(own) for (d, m, k), own in layers}


def spread_rows(
    run: StoredRun,
    metric: str,
    gates: GatesConfig,
    target: float,
    ceilings: Mapping[str, Ceiling | None],
) -> list[Row]:
    """Level 1 of every dataset from its spread over subject-runs: the median over layers."""
    observed = observe(run, metric)
    standing = run.table(EVIDENCE_FEASIBILITY.name)
    nulls = run.table(CONTROL_NULLS.name).filter("surrogate", metric=metric)
    draws = dict(nulls.group_by("dataset").agg(pl.col("n_draws").min()).iter_rows())
    rows = []
    for name, confirmatory, why in standing.select(
        "dataset", "confirmatory", "role_reason"
    ).iter_rows():
        own = [layer for key, layer in observed.items() if key[0] == name]
        for profile, alpha in profile_alphas(gates).items():
            found = [
                detectable
                for layer in own
                if (
                    detectable := from_spread(
                        layer.deltas, rival_score=layer.rival_score, alpha=alpha, target=target
                    )
                )
            ]
            reason = Reason.OK if found else Reason.SINGLE_SUBJECT_RUN
            if alpha is not None and draws.get(name, 0) < 2:
                found, reason = [], Reason.TOO_FEW_DRAWS
            if not confirmatory:
                found, reason = [], reason_of(why)
            scores = [f.score for f in found if f.score is not None]
            rows.append(
                effect_row(
                    name,
                    profile,
                    PREDICTIVE,
                    OBSERVED_SPREAD,
                    target=target,
                    alpha=alpha,
                    ceiling=ceilings.get(name),
                    reason=reason,
                    delta=float(np.median([f.delta for f in found])) if found else None,
                    score=float(np.median(scores)) if scores else None,
                )
            )
    return rows


def layer_frame(run: StoredRun, metric: str, effects: Sequence[Row], target: float) -> pl.DataFrame:
    """The table of layers: level 1 always, other gates where studies of the design were simulated."""
    by_place = {(e["dataset"], e["gate_profile"], e["gate"], e["method"]): e for e in effects}
    observed = observe(run, metric)
    standing = {
        row["dataset"]: row for row in run.table(EVIDENCE_FEASIBILITY.name).iter_rows(named=True)
    }
    rows = []
    for layer, profile, passed in _passed(run.table(DECISIONS.name)):
        dataset = layer[0]
        for gate in GATES:

            def find(
                method: str, place: tuple[str, str, str] = (dataset, profile, gate)
            ) -> Row | None:
                return by_place.get((*place, method))

            needed = _needed(gate, find)
            if needed is None:
                continue
            row = _layer_row(observed.get(layer), passed[gate], gate, needed, standing[dataset])
            key = dict(zip(_LAYER, layer, strict=True))
            rows.append({**key, "gate_profile": profile, "target_power": target, **row})
    return frame(LAYER_DETECTABILITY, rows)


def _passed(
    decisions: pl.DataFrame,
) -> Iterator[tuple[tuple[str, str, int], str, dict[str, bool]]]:
    """Which gates any claim of a layer passes, by profile."""
    layers = decisions.group_by([*_LAYER, "gate_profile"], maintain_order=True)
    for (dataset, model, layer, profile), rows in layers:
        passed = {gate: bool(rows[gate].any()) for gate in GATES}
        yield (str(dataset), str(model), int(str(layer))), str(profile), passed


def _needed(gate: str, find: Callable[[str], Row | None]) -> Row | None:
    """The row that says most about a gate: simulated studies, then the run's own spread, then the closed form.

    At level 1 the run's own spread is that of the whole design, and goes before simulated studies of another size.
    """
    simulated = find(SIMULATED)
    if simulated is not None and simulated["reason"] in (
        Reason.OK,
        Reason.NEVER_DETECTED,
        Reason.ALWAYS_DETECTED,
    ):
        spread = find(OBSERVED_SPREAD) if gate == PREDICTIVE else None
        other_size = simulated["simulated_size"] != SAME
        return (
            spread
            if other_size and spread is not None and spread["reason"] is Reason.OK
            else simulated
        )
    if gate != PREDICTIVE:
        return None
    spread = find(OBSERVED_SPREAD)
    if spread is not None and spread["reason"] is Reason.SINGLE_SUBJECT_RUN:
        return find(CLOSED_FORM) or spread
    return spread or find(CLOSED_FORM)


def _layer_row(seen: _Observed | None, passed: bool, gate: str, needed: Row, standing: Row) -> Row:
    score = None if seen is None else seen.score
    delta = None if seen is None else seen.delta
    detectable_score, detectable_delta = needed["score"], needed["delta"]
    if gate == PREDICTIVE and seen is not None and seen.rival_score is not None:
        # What this layer's own rivals leave to be beaten, not rivals that know nothing.
        detectable_score = None if detectable_delta is None else seen.rival_score + detectable_delta
    row: Row = {
        "gate": gate,
        "n_subject_runs": 0 if seen is None else seen.n,
        "score": score,
        "delta": delta,
        "rival": "none" if seen is None else seen.rival,
        "detectable_score": detectable_score,
        "detectable_delta": detectable_delta,
        "method": needed["method"],
        "ceiling": needed["ceiling"],
        "reason": needed["reason"],
    }
    verdict, sentence = _verdict(row, passed, needed, standing)
    return row | {"verdict": verdict, "sentence": sentence}


def _verdict(row: Row, passed: bool, needed: Row, standing: Row) -> tuple[str, str]:
    """What the design could have found; the observed score does not enter.

    A layer that scores little has, by that alone, less than any effect that would have been found: power at the
    observed effect restates the result (Hoenig & Heisey 2001).
    """
    gate, power = row["gate"], f"{needed['target_power']:.0%}"
    reason, limit, score = needed["reason"], row["ceiling"], row["detectable_score"]
    if passed:
        return FOUND, f"Found: the gate {gate} passes."
    if not standing["confirmatory"]:
        why = standing["role_detail"] or "the dataset is not confirmatory"
        return COULD_NOT, f"Could not have found it: {why}."
    if row["score"] is None:
        return NOT_KNOWN, "Not known: no subject-run has a score."
    if reason in HOPELESS:
        return COULD_NOT, f"Could not have found it: {lowered(reason_of(reason))}."
    if reason is Reason.NEVER_DETECTED:
        why = f"no simulated effect passes the gate {gate} in {power} of studies."
        return _unless_open(why, open_questions(needed))
    if reason not in (Reason.OK, Reason.ALWAYS_DETECTED):
        return NOT_KNOWN, f"Not known: {lowered(reason_of(reason))}."
    if score is not None and limit is not None and score > limit:
        why = (
            f"the gate {gate} needs a score of {score:.3f} for {power} power, and no score above {limit:.3f} "
            "can be expected of responses that repeat so poorly."
        )
        low = needed["score_low"]
        lowest = score if low is None or needed["score"] is None else score + low - needed["score"]
        return _unless_open(why, open_questions({**needed, "enough_trials": lowest > limit}))
    if needed["simulated_size"] in (LARGER, MIXED):
        return NOT_KNOWN, (
            "Not known: simulated studies that find such effects were larger than this design in at least one respect."
        )
    return COULD_HAVE, _could_have(row, power)


def _unless_open(why: str, questions: Sequence[str]) -> tuple[str, str]:
    if questions:
        return NOT_KNOWN, " ".join([f"Not known: {why}", *questions])
    return COULD_NOT, f"Could not have found it: {why}"


def _could_have(row: Row, power: str) -> str:
    start = "Could have found it and did not: "
    gate, score = row["gate"], row["detectable_score"]
    if row["detectable_delta"] is None or score is None:
        text = (
            f"{start}even the weakest simulated effect passes the gate {gate} in {power} of studies"
        )
    elif gate != PREDICTIVE:
        text = f"{start}{power} of studies of this design with a score of {score:.3f} pass the gate {gate}"
    else:
        contrast = f"{row['detectable_delta']:.3f} over {row['rival']}"
        text = f"{start}a contrast of {contrast} is found in {power} of such studies"
    seen = row["delta"] if gate == PREDICTIVE else row["score"]
    text += "." if seen is None else f"; observed {seen:.3f}."
    if row["ceiling"] is None:
        text += " No ceiling is known, so that such an effect may be larger than responses allow."
    return text
