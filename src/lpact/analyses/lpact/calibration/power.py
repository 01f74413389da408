"""Could this design have found it? The smallest detectable effect of a study, before and after running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.calibration import power_simulate
from lpact.analyses.lpact.calibration.power_design import (
    Ceiling,
    DatasetDesign,
    best_ceiling,
    closed_form,
    from_spread,
    read_design,
)
from lpact.analyses.lpact.calibration.power_simulate import SAME, Simulated
from lpact.analyses.lpact.calibration.run_trials import Forecast
from lpact.analyses.lpact.calibration.trial import GATES, Effort
from lpact.analyses.lpact.config import GatesConfig, LPactConfig
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.gates.keys import LAYER_KEY
from lpact.analyses.lpact.plan.dataset_support import reason_clause
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.calibration import LAYER_DETECTABILITY, MINIMUM_DETECTABLE_EFFECT, STUDY_DESIGN
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, CONTROL_DELTAS, CONTROL_NULLS
from lpact.codes import Reason
from lpact.config import RunConfig
from lpact.errors import ConfigError, RunError
from lpact.inputs.workspace import Workspace
from lpact.run.progress import Reporter
from lpact.store import StoredRun, frame, validate

Row = dict[str, Any]
Ceilings = Mapping[str, Ceiling | None]

FOLDER = "lpact-power"
"""Finished simulated studies are kept in this folder, next to the study file."""
PREDICTIVE = "predictive"
CLOSED_FORM, OBSERVED_SPREAD, SIMULATED = "closed_form", "observed_spread", "simulated"
FOUND, COULD_HAVE = "found", "could_have_found"
COULD_NOT, NOT_KNOWN = "could_not_have_found", "not_known"
HOPELESS = (
    Reason.ROLE_NOT_CONFIRMATORY,
    Reason.CHAIN_INCOMPLETE,
    Reason.DATASET_HAS_NO_RECORDING,
    Reason.TOO_FEW_DRAWS,
)
"""Reasons why no effect can pass, however large."""


@dataclass(frozen=True)
class Settings:
    """Settings of a power analysis; without ``effort``, that of the study, at most that of the calibration."""

    target: float = 0.8
    quick: bool = False
    trials: int = power_simulate.TRIALS
    ratios: Sequence[float] = power_simulate.RATIOS
    workers: int = 1
    kept: Path | None = None
    effort: Effort | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.target < 1.0:
            raise ConfigError(
                "the target power is not between 0 and 1",
                where="option '--target'",
                got=self.target,
                expected="a number between 0 and 1, both excluded",
                remedy="write for example --target 0.8",
            )


@dataclass(frozen=True)
class PowerReport:
    """The answer: tables by name, and in what simulated studies differ from the design, by dataset."""

    tables: Mapping[str, pl.DataFrame]
    caps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    n_claims: int | None = None
    """Confirmatory claims that integrated power is corrected over; None where nothing was simulated."""
    largest_p: float | None = None


def assess_power(
    config: LPactConfig,
    run_config: RunConfig | None,
    settings: Settings,
    *,
    run: StoredRun | None = None,
    reporter: Reporter | None = None,
    show_forecast: Callable[[Forecast], None] | None = None,
) -> PowerReport:
    """Smallest detectable effects of a study; with its ``run``, layer by layer.

    Without ``run_config`` the sources are not read: level 1 of the run, from the spread over its subject-runs.
    ``show_forecast`` is called with the cost of simulated studies, from one that is timed, before the others start.
    """
    reporter = reporter or Reporter()
    metric = config.readout.primary_metric
    asked = Question(config.gates, settings.target)
    designs: Sequence[DatasetDesign] = ()
    if run_config is not None:
        if run is not None:
            check_same_study(run, config.model_dump(mode="json"))
        designs = read_design(Workspace(config.study(), run_config), reporter)
    ceilings = {d.name: d.ceiling for d in designs} if run is None else run_ceilings(run)
    n_claims = planned_claims(designs, config) if run is None else run_claims(run)
    largest_p = config.gates.fdr / max(1, n_claims)
    effects: list[Row] = []
    caps: dict[str, tuple[str, ...]] = {}
    for design in designs:
        ceiling = ceilings.get(design.name)
        effects += closed_rows(design, asked, ceiling)
        if settings.quick:
            continue
        if run_config is None or not design.confirmatory or design.limiting is None:
            effects += simulated_rows(design, None, asked, ceiling)
            continue
        matched = power_simulate.matched_design(design, config, settings.effort)
        caps[design.name] = matched.caps
        simulated = power_simulate.simulate(
            power_simulate.trial_jobs(matched, trials=settings.trials, ratios=settings.ratios),
            config=config,
            run=run_config,
            workers=settings.workers,
            kept=settings.kept,
            reporter=reporter,
            name=design.name,
            show_forecast=show_forecast,
            largest_p=largest_p,
        )
        effects += simulated_rows(design, simulated, asked, ceiling, matched.size)
    layers: list[Row] = []
    if run is not None:
        effects += spread_rows(run, metric, asked, ceilings)
        layers = layer_rows(run, metric, effects, settings.target)
        if not layers:
            raise RunError(
                "the run has no layer whose power can be assessed",
                where=str(run.root),
                got="a decision table without rows",
                expected="at least one claim",
                remedy="see `lpact audit` for why no claim could be made",
            )
    rows = {
        STUDY_DESIGN: _design_rows(designs, ceilings),
        MINIMUM_DETECTABLE_EFFECT: effects,
        LAYER_DETECTABILITY: layers,
    }
    tables = {table.name: validate(frame(table, own), table) for table, own in rows.items()}
    return PowerReport(tables, caps, n_claims, largest_p) if caps else PowerReport(tables)


def planned_claims(designs: Sequence[DatasetDesign], config: LPactConfig) -> int:
    """Confirmatory claims that a study will make: every dataset, model, layer and mechanism."""
    layers = {model.name: len(model.layers) for model in config.models}
    confirmatory = (model for design in designs if design.confirmatory for model in design.models)
    n_layers = sum(layers[model.model] for model in confirmatory if model.layer is not None)
    return n_layers * len(config.mechanisms.include)


def _design_rows(designs: Sequence[DatasetDesign], ceilings: Ceilings) -> list[Row]:
    """Rows of `STUDY_DESIGN`, one per dataset and model."""
    rows = []
    for design in designs:
        ceiling = ceilings.get(design.name)
        for model in design.models:
            own = {**vars(design), **vars(model)}
            rows.append(
                {name: own[name] for name in STUDY_DESIGN.column_names if name in own}
                | {
                    "dataset": design.name,
                    "n_effective_subject_runs": design.n_effective_subject_runs or None,
                    "ceiling_mode": None if ceiling is None else ceiling.mode,
                    "ceiling": None if ceiling is None else ceiling.score,
                    "reason": model.reason if design.n_subject_runs else design.reason,
                }
            )
    return rows


@dataclass(frozen=True)
class Question:
    """Which effect passes these gates with a target power."""

    gates: GatesConfig
    target: float

    @property
    def alphas(self) -> dict[str, float | None]:
        """Level of each gate profile's tests; the paper's point rules have none."""
        return {CALIBRATED: self.gates.alpha, PAPER: None}

    def row(
        self,
        dataset: str,
        profile: str,
        gate: str,
        method: str,
        ceiling: Ceiling | None,
        **found: Any,
    ) -> Row:
        """One row of `MINIMUM_DETECTABLE_EFFECT`; numbers that are not given are missing."""
        score, limit = found.get("score"), None if ceiling is None else ceiling.score
        row: Row = {
            **dict.fromkeys(MINIMUM_DETECTABLE_EFFECT.column_names),
            "dataset": dataset,
            "gate_profile": profile,
            "gate": gate,
            "method": method,
            "target_power": self.target,
            "alpha": self.alphas[profile],
            "simulated_size": SAME,
            "enough_trials": True,
            "n_trials": 0,
            "n_passed": 0,
            "ceiling": limit,
            "attainable": None if score is None or limit is None else score <= limit,
            **found,
        }
        return row | {"sentence": effect_sentence(row)}


def effect_sentence(row: Row) -> str:
    """A row of `MINIMUM_DETECTABLE_EFFECT` in plain words."""
    reason, gate, power = Reason(row["reason"]), row["gate"], f"{row['target_power']:.0%} power"
    if reason is Reason.NEVER_DETECTED:
        text = f"No simulated effect, however strong, passes the gate {gate} with {power}."
        return " ".join([text, *open_questions(row)])
    if reason is Reason.ALWAYS_DETECTED:
        return f"Even the weakest simulated effect passes the gate {gate} with {power}."
    if reason in HOPELESS:
        why = reason_clause(reason)
        return f"This design could not have found it, however large the effect: {why}."
    if reason is not Reason.OK:
        return reason.explanation
    effect = "an effect"
    if row["delta"] is not None:
        effect = f"a contrast of {row['delta']:.3f} over the best rival"
    if row["score"] is not None:
        effect += f" (a held-out score of about {row['score']:.3f})"
    text = f"The smallest effect that passes the gate {gate} with {power} is {effect}."
    if row["attainable"] is False:
        text += f" Responses repeat too poorly for that: no score above {row['ceiling']:.3f} can be expected."
        return " ".join([text, *(open_questions(row) or ["This design could not have found it."])])
    return text


def open_questions(row: Row) -> list[str]:
    """Why a row that found nothing, or nothing that can exist, does not settle what the design could find."""
    if row["simulated_size"] in (power_simulate.SMALLER, power_simulate.MIXED):
        return ["Simulated studies were smaller than this design, which finds smaller effects."]
    if not row["enough_trials"]:
        return ["Too few studies were simulated to be sure; raise --trials."]
    return []


def closed_rows(design: DatasetDesign, asked: Question, ceiling: Ceiling | None) -> list[Row]:
    """Level 1 of one dataset in closed form, for every profile."""
    rows = []
    model, n_units = design.limiting, design.n_effective_units
    for profile, alpha in asked.alphas.items():
        why = Reason.MODEL_OFFERS_NOTHING if design.reason is Reason.OK else design.reason
        found: Row = {"reason": why}
        if design.confirmatory and n_units is not None and model and model.n_effective_events:
            smallest = closed_form(
                n_effective_events=model.n_effective_events,
                n_effective_units=n_units,
                n_subject_runs=design.n_effective_subject_runs,
                draws=model.random_draws,
                alpha=alpha,
                target=asked.target,
                surrogate_draws=model.surrogate_draws,
            )
            found = {"reason": Reason.TOO_FEW_DRAWS}
            if smallest is not None:
                found = {"delta": smallest.delta, "score": smallest.score, "reason": Reason.OK}
        rows.append(asked.row(design.name, profile, PREDICTIVE, CLOSED_FORM, ceiling, **found))
    return rows


def simulated_rows(
    design: DatasetDesign,
    simulated: Simulated | None,
    asked: Question,
    ceiling: Ceiling | None,
    size: str = SAME,
) -> list[Row]:
    """Every gate and profile of one dataset, from simulated studies of its design or, by ``size``, of another size."""
    name, target = design.name, asked.target
    if simulated is None:
        why = Reason.NOT_SIMULATED if design.reason is Reason.OK else design.reason
        places = product(asked.alphas, GATES)
        return [asked.row(name, *place, SIMULATED, ceiling, reason=why) for place in places]
    rows = []
    weakest, strongest = simulated.ratios[[0, -1]]
    for (profile, gate), passed in sorted(simulated.passed.items()):
        curve, reason = simulated.curve(profile, gate, target)
        found: Row = {"n_trials": len(passed), "n_passed": int(passed.sum()), "reason": reason}
        enough = reason is not Reason.NEVER_DETECTED or simulated.excludes(profile, gate, target)
        if simulated.largest_p is not None and (profile, gate) == (CALIBRATED, "integrated"):
            found["alpha"] = min(simulated.largest_p, asked.gates.alpha)
        if curve is not None and weakest <= curve.snr_at(0.5) <= strongest:
            found["snr_half"] = curve.snr_at(0.5)
        if curve is not None and reason is Reason.OK:
            snr = curve.snr_at(target)
            low, high = curve.interval(target)
            found |= {"snr": snr, "snr_low": low, "snr_high": high}
            found |= {number: simulated.effect_at(number, snr) for number in simulated.effects}
            found["score_low"] = lowest = simulated.effect_at("score", low)
            if found["score"] is not None and lowest is not None and ceiling is not None:
                # In doubt: the needed score is above the ceiling, and the lower end of its interval is not.
                enough = not lowest <= ceiling.score < found["score"]
        found |= {"simulated_size": size, "enough_trials": enough}
        rows.append(asked.row(name, profile, gate, SIMULATED, ceiling, **found))
    return rows


def check_same_study(run: StoredRun, config: Mapping[str, Any]) -> None:
    """Raise `RunError` unless the run is one of this study: the same name, datasets and models."""

    def named(of: Mapping[str, Any]) -> dict[str, str]:
        lists = {key: sorted(entry["name"] for entry in of[key]) for key in ("datasets", "models")}
        return {"name": of["name"], **{key: ", ".join(names) for key, names in lists.items()}}

    made = named(run.manifest.config)
    for what, own in named(config).items():
        if own != made[what]:
            raise RunError(
                "the run belongs to another study",
                where=str(run.root),
                got=f"{what}: {made[what]}",
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
    return run.table(DECISIONS.name).filter(gate_profile=CALIBRATED)["p_value"].count()


@dataclass(frozen=True)
class _Observed:
    """Level 1 of one layer: its contrast with the better of nuisance and the best control, in every subject-run."""

    deltas: Sequence[float] = ()
    score: float | None = None
    delta: float | None = None
    rival_score: float | None = None
    rival: str = "none"

    @classmethod
    def of(cls, rows: pl.DataFrame) -> _Observed:
        """From the layer's contrasts."""
        rows = rows.drop_nulls(["delta_nuisance", "delta_control"])
        if rows.is_empty():
            return cls()
        means = {name: rows[name].to_numpy().mean() for name in ("delta_nuisance", "delta_control")}
        worse = min(means, key=lambda name: means[name])
        score, delta = float(rows["real_score"].to_numpy().mean()), float(means[worse])
        best = rows["best_control"].drop_nulls().mode().sort().to_list()
        rival = "nuisance" if worse == "delta_nuisance" else (*best, "none")[0]
        return cls(rows[worse].to_list(), score, delta, score - delta, rival)


def observe(run: StoredRun, metric: str) -> dict[tuple[Any, ...], _Observed]:
    """Level 1 of every layer of a run, by dataset, model and layer."""
    rows = run.table(CONTROL_DELTAS.name).filter(metric=metric)
    return {key: _Observed.of(own) for key, own in rows.group_by(LAYER_KEY, maintain_order=True)}


def spread_rows(run: StoredRun, metric: str, asked: Question, ceilings: Ceilings) -> list[Row]:
    """Level 1 of every dataset from its spread over subject-runs: the median over layers."""
    observed = observe(run, metric)
    audited = run.table(EVIDENCE_FEASIBILITY.name)
    nulls = run.table(CONTROL_NULLS.name).filter(pl.col("surrogate"), metric=metric)
    draws = dict(nulls.group_by("dataset").agg(pl.col("n_draws").min()).iter_rows())
    rows = []
    for row in audited.iter_rows(named=True):
        name = row["dataset"]
        layers = [layer for key, layer in observed.items() if key[0] == name]
        for profile, alpha in asked.alphas.items():
            made = [from_spread(own.deltas, own.rival_score, alpha=alpha, target=asked.target) for own in layers]
            known = [own for own in made if own is not None]
            reason = Reason.OK if known else Reason.SINGLE_SUBJECT_RUN
            if alpha is not None and draws.get(name, 0) < 2:
                reason = Reason.TOO_FEW_DRAWS
            if not row["confirmatory"]:
                reason = Reason(row["role_reason"])
            found: Row = {"reason": reason}
            if reason is Reason.OK:
                scores = [own.score for own in known if own.score is not None]
                found["delta"] = float(np.median([own.delta for own in known]))
                found["score"] = float(np.median(scores)) if scores else None
            place = (name, profile, PREDICTIVE, OBSERVED_SPREAD, ceilings.get(name))
            rows.append(asked.row(*place, **found))
    return rows


def layer_rows(run: StoredRun, metric: str, effects: Sequence[Row], target: float) -> list[Row]:
    """Rows of layers: level 1 always, other gates where studies of the design were simulated."""
    by_place: dict[tuple[str, str, str], dict[str, Row]] = {}
    for effect in effects:
        place = (effect["dataset"], effect["gate_profile"], effect["gate"])
        by_place.setdefault(place, {})[effect["method"]] = effect
    observed = observe(run, metric)
    audited = run.table(EVIDENCE_FEASIBILITY.name).rows_by_key("dataset", named=True, unique=True)
    rows = []
    layers = run.table(DECISIONS.name).group_by([*LAYER_KEY, "gate_profile"], maintain_order=True)
    for (*layer, profile), claims in layers:
        seen = observed.get(tuple(layer), _Observed())
        for gate in GATES:
            needed = _needed(by_place.get((str(layer[0]), str(profile), gate), {}))
            if needed is None:
                continue
            row = dict(zip(LAYER_KEY, layer, strict=True)) | {
                "gate_profile": profile,
                "gate": gate,
                "target_power": target,
                "n_subject_runs": len(seen.deltas),
                "score": seen.score,
                "delta": seen.delta,
                "rival": seen.rival,
                "detectable_score": needed["score"],
                "detectable_delta": needed["delta"],
                **{name: needed[name] for name in ("method", "ceiling", "reason")},
            }
            if gate == PREDICTIVE and seen.rival_score is not None:
                # What this layer's own rivals leave to be beaten, not rivals that know nothing.
                delta = needed["delta"]
                row["detectable_score"] = None if delta is None else seen.rival_score + delta
            passed = bool(claims[gate].any())
            verdict, sentence = _verdict(row, passed, needed, audited[layer[0]])
            rows.append(row | {"verdict": verdict, "sentence": sentence})
    return rows


def _needed(found: Mapping[str, Row]) -> Row | None:
    """The row that says most about a gate: simulated studies, then the run's own spread, then the closed form.

    At level 1 the run's own spread is that of the whole design, and goes before simulated studies of another size.
    """
    simulated, spread, closed = map(found.get, (SIMULATED, OBSERVED_SPREAD, CLOSED_FORM))
    settled = (Reason.OK, Reason.NEVER_DETECTED, Reason.ALWAYS_DETECTED)
    if simulated is not None and simulated["reason"] in settled:
        known = spread is not None and spread["reason"] is Reason.OK
        return spread if known and simulated["simulated_size"] != SAME else simulated
    if spread is None or spread["reason"] is Reason.SINGLE_SUBJECT_RUN:
        return closed or spread
    return spread


def _verdict(row: Row, passed: bool, needed: Row, audited: Row) -> tuple[str, str]:
    """What the design could have found; power at the observed score would restate the result (Hoenig & Heisey 2001)."""
    gate, power = row["gate"], f"{needed['target_power']:.0%}"
    reason, limit, score = Reason(needed["reason"]), row["ceiling"], row["detectable_score"]
    if passed:
        return FOUND, f"Found: the gate {gate} passes."
    if not audited["confirmatory"]:
        why = audited["role_detail"] or "the dataset is not confirmatory"
        return COULD_NOT, f"Could not have found it: {why}."
    if row["score"] is None:
        return NOT_KNOWN, "Not known: no subject-run has a score."
    if reason in HOPELESS:
        return COULD_NOT, f"Could not have found it: {reason_clause(reason)}."
    if reason not in (Reason.OK, Reason.NEVER_DETECTED, Reason.ALWAYS_DETECTED):
        return NOT_KNOWN, f"Not known: {reason_clause(reason)}."
    never = reason is Reason.NEVER_DETECTED
    if never or (score is not None and limit is not None and score > limit):
        why = f"no simulated effect passes the gate {gate} in {power} of studies."
        if not never:
            why = (
                f"the gate {gate} needs a score of {score:.3f} for {power} power, and no score above {limit:.3f} "
                "can be expected of responses that repeat so poorly."
            )
            low, middle = needed["score_low"], needed["score"]
            lowest = score if low is None or middle is None else score + low - middle
            needed = needed | {"enough_trials": lowest > limit}
        if questions := open_questions(needed):
            return NOT_KNOWN, " ".join([f"Not known: {why}", *questions])
        return COULD_NOT, f"Could not have found it: {why}"
    if needed["simulated_size"] in (power_simulate.LARGER, power_simulate.MIXED):
        return NOT_KNOWN, (
            "Not known: simulated studies that find such effects were larger than this design in at least one respect."
        )
    delta = row["detectable_delta"]
    text = f"even the weakest simulated effect passes the gate {gate} in {power} of studies"
    if delta is not None and score is not None:
        text = f"{power} of studies of this design with a score of {score:.3f} pass the gate {gate}"
        if gate == PREDICTIVE:
            found = f"is found in {power} of such studies"
            text = f"a contrast of {delta:.3f} over {row['rival']} {found}"
    seen = row["delta"] if gate == PREDICTIVE else row["score"]
    text += "." if seen is None else f"; observed {seen:.3f}."
    if limit is None:
        text += " No ceiling is known, so that such an effect may be larger than responses allow."
    return COULD_HAVE, f"Could have found it and did not: {text}"
