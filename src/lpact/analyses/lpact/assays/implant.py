"""Implanted signal: a small simulated study whose truth is known, through the study's own stages and gates.

The *implant* carries lexical, relational and mechanism signal that the simulated model ``integrated`` knows, in units
that all subjects share. The *sham* is the same study, noise for noise, with a signal-to-noise ratio of zero. The
implant must pass every gate and the sham must not.

Sizes, seed, lags and mechanisms are its own; folds, gap, draws and minima are the study's up to the bounds below, so
that it stays small. Everything else is the study's: gates, controls, readout, measures and stripping methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import polars as pl

from lpact.analyses.lpact.config import AuditConfig, LPactConfig
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.tables.assay import IMPLANT, IMPLANTED, SHAM
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, RELATIONAL_SUMMARY
from lpact.codes import Reason
from lpact.config import DatasetConfig, LanguageModelConfig, ReadoutConfig
from lpact.store import frame, validate
from lpact.validation import Section, validate_model
from lpact.wording import number, spoken

ARMS = (IMPLANTED, SHAM)
NAME = "implant"
SEED = 0
MODEL, LAYER = "integrated", 2
MECHANISM = "surprisal"
MECHANISMS_USED = (MECHANISM, "context_update")
"""The planted mechanism, and one that no unit carries."""

N_SUBJECTS, N_UNITS, N_STORIES, SENTENCES = 3, 16, 4, 10
FOLDS_AT_MOST, GAP_AT_MOST = 4, 3
DRAWS_AT_MOST, MISMATCH_DRAWS_AT_MOST = 20, 2
"""Draws of controls, as many as a study has by default, so that the same tests apply."""
TARGET_FRACTION = 0.15

S = TypeVar("S", bound=Section)


def implant_config(study: LPactConfig, arm: str, *, seed: int = SEED) -> LPactConfig:
    """The study of one arm."""
    defaults, audit = ReadoutConfig(), AuditConfig()
    # Controls that need features alone are always possible here; others must not lower the role.
    required = tuple(c for c in audit.required_controls if c in study.controls.include)
    n_runs = 2 if study.relational.brain_patterns_from == "other_run" else 1
    options = {
        "n_subjects": max(N_SUBJECTS, -(-study.gates.min_subject_runs // n_runs)),
        "n_runs": n_runs,
        "n_stories": N_STORIES,
        "sentences_per_story": SENTENCES,
        "n_units": N_UNITS,
        "truths": ("lexical", "relational", "mechanism"),
        "mechanisms": (MECHANISM,),
        "snr": study.assay.implant_snr if arm == IMPLANTED else 0.0,
    }
    dataset = validate_model(
        DatasetConfig,
        {
            "name": NAME,
            "reader": "simulated",
            "role": "primary",
            "grid": {"lags_ms": [0.0, 100.0]},
            "options": options,
        },
        where="implanted study",
    )
    return study.model_copy(
        update={
            "name": NAME,
            "seed": seed,
            "datasets": (dataset,),
            "models": (LanguageModelConfig(name=MODEL, layers=(LAYER,)),),
            "readout": _at_most(
                study.readout,
                folds=FOLDS_AT_MOST,
                gap_events=GAP_AT_MOST,
                min_train_events=defaults.min_train_events,
                min_test_events=defaults.min_test_events,
            ),
            "nuisance": study.nuisance.model_copy(update={"language": None}),
            "controls": _at_most(study.controls, draws=DRAWS_AT_MOST),
            "relational": _at_most(study.relational, min_units=N_UNITS),
            "stripping": _at_most(study.stripping, mismatch_draws=MISMATCH_DRAWS_AT_MOST).model_copy(
                update={"target_fraction": TARGET_FRACTION}
            ),
            "mechanisms": type(study.mechanisms)(include=MECHANISMS_USED),
            "audit": audit.model_copy(update={"required_controls": required}),
        }
    )


def _at_most(section: S, **limits: int) -> S:
    """A section of the study file with some options lowered to their limits."""
    lowered = {name: min(getattr(section, name), limit) for name, limit in limits.items()}
    return section.model_copy(update=lowered)


_OF_GATE = {
    "predictive": ("predictive_score", "predictive_delta_control"),
    "severe_control": ("smallest_control_delta",),
    "relational": ("relational_similarity", "relational_delta_control"),
    "mechanism_specific": ("mechanism_drop", "mechanism_margin"),
    "ceiling": ("brain_ceiling", "fraction_of_ceiling"),
    "replication": ("positive_direction",),
    "integrated": ("integrated",),
}
QUANTITIES = tuple((quantity, column) for column, own in _OF_GATE.items() for quantity in own)
"""Every quantity, and the column of its gate in the decision table."""

_FROM_EVIDENCE = {
    "smallest_control_delta": "smallest_control_delta",
    "relational_delta_control": "typical_delta_rel",
    "mechanism_drop": "typical_drop",
    "mechanism_margin": "typical_margin",
    "brain_ceiling": "mean_reliability",
    "fraction_of_ceiling": "mean_fraction_of_ceiling",
    "positive_direction": "positive_direction",
}
"""Quantities that are a criterion of the point rules."""

_MEANING = {
    "predictive_score": "mean held-out score of the features that know the planted signal",
    "predictive_delta_control": "mean difference to the best severe control",
    "smallest_control_delta": "mean difference to the strongest control family",
    "relational_similarity": "similarity of the model's pattern over units with the brain's, median over summaries",
    "relational_delta_control": "the same minus the best control's",
    "mechanism_drop": "cost of stripping the planted mechanism in its own units, median over methods",
    "mechanism_margin": "the same minus the largest cost in other units",
    "brain_ceiling": "brain–brain reliability in the strictest valid mode",
    "fraction_of_ceiling": "share of that reliability which the model reaches",
    "positive_direction": "share of subject-runs with positive differences",
    "integrated": "all gates together",
}


def summarise_arm(
    arm: str,
    measured: Mapping[str, pl.DataFrame],
    decided: Mapping[str, pl.DataFrame],
    primary_metric: str,
) -> pl.DataFrame:
    """Rows of one arm, from its measured and decided tables; every gate profile of the decision is reported."""
    claim = {"dataset": NAME, "model": MODEL, "layer": LAYER, "mechanism": MECHANISM}
    decisions = decided[DECISIONS.name].filter(**claim)
    values = _values(claim, measured, decided, primary_metric)
    rows = []
    for decision in decisions.iter_rows(named=True):
        for place, (quantity, column) in enumerate(QUANTITIES):
            passed = bool(decision[column])
            value = float(passed) if quantity == "integrated" else values[quantity]
            missing = Reason.OK if value is not None else Reason.UNDEFINED_SCORE
            rows.append(
                {
                    "arm": arm,
                    "gate_profile": decision["gate_profile"],
                    "quantity": quantity,
                    "quantity_order": place,
                    "gate": column.removesuffix("_specific"),
                    "value": value,
                    "gate_pass": passed,
                    "interpretation": _sentence(arm, quantity, value, decision),
                    "reason": missing.value,
                }
            )
    return validate(frame(IMPLANT, rows), IMPLANT)


def _values(
    claim: Mapping[str, Any],
    measured: Mapping[str, pl.DataFrame],
    decided: Mapping[str, pl.DataFrame],
    primary_metric: str,
) -> dict[str, float | None]:
    deltas = measured[CONTROL_DELTAS.name].filter(metric=primary_metric)
    similarity = (
        measured[RELATIONAL_SUMMARY.name]
        .sort(RELATIONAL_SUMMARY.key)
        .group_by("alignment", "profile", maintain_order=True)
        .agg(pl.col("mean_real_similarity").mean())
    )
    evidence = decided[GATE_EVIDENCE.name].filter(gate_profile=PAPER, **claim)
    criteria = dict(evidence.select("criterion", "value").iter_rows())
    return {
        "predictive_score": _number(deltas["real_score"].mean()),
        "predictive_delta_control": _number(deltas["delta_control"].mean()),
        "relational_similarity": _number(similarity["mean_real_similarity"].median()),
        **{name: criteria.get(criterion) for name, criterion in _FROM_EVIDENCE.items()},
    }


def _number(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _sentence(arm: str, quantity: str, value: float | None, decision: Mapping[str, Any]) -> str:
    if quantity != "integrated":
        return f"{_MEANING[quantity]}: {number(value)}."
    failed = spoken(str(decision["first_failed_gate"]))
    if decision["integrated"]:
        if arm == IMPLANTED:
            return "the planted signal passes all gates."
        return "all gates pass although nothing is planted: these gates cannot be trusted."
    if arm == SHAM:
        return f"without a signal, the {failed} gate fails, as it should."
    if decision["gate_profile"] == CALIBRATED:
        return (
            f"the {failed} test does not reject although signal is planted: this study is kept small, and tests need "
            "three draws of a control or more. `lpact calibrate --reference` shows what the tests find."
        )
    return (
        f"the {failed} gate does not pass although signal is planted: with these settings a negative verdict "
        "says little."
    )
