"""What a failure is put down to, beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from lpact.decide.criteria import CriterionName
from lpact.decide.gates.severe import REAL
from lpact.decide.wording import number
from lpact.report.claim_story import level1, level3
from lpact.report.claim_story.material import Material
from lpact.report.claim_story.model import CriterionStory, GateStory, Rival

_LEVEL1 = {
    CriterionName.MEAN_DELTA_NUISANCE,
    CriterionName.SMALLEST_CONTROL_DELTA,
    CriterionName.P_NUISANCE,
    CriterionName.P_SURROGATES,
    CriterionName.P_RIVALS,
    CriterionName.P_CONTROLS_LEVEL1,
}
_LEVEL3 = {
    CriterionName.METHODS_AGREEING,
    CriterionName.P_OTHER_TARGETS,
    CriterionName.P_RANDOM_DIRECTIONS,
    CriterionName.P_BEYOND_NUISANCE,
}


def rival_of(
    material: Material, decision: dict[str, Any], gates: Sequence[GateStory]
) -> Rival | None:
    """The rival that the decision table names, with its score; None where it is no rival with a score."""
    failure = _failure(decision["first_failed_gate"], gates)
    name = str(decision["beaten_by"])
    if failure is None or failure.value is None:
        return None
    if failure.criterion == CriterionName.MEAN_DELTA_CONTROL:
        return _best_controls(material, name)
    if failure.criterion in _LEVEL1:
        return _level1(material, name)
    return _level3(material, name) if failure.criterion in _LEVEL3 else _level2(material, name)


def _failure(gate: str, gates: Sequence[GateStory]) -> CriterionStory | None:
    own = next((g for g in gates if g.gate == gate), None)
    criteria = own.criteria if own is not None else ()
    return next(
        (
            c
            for c in criteria
            if c.decisive and not c.passed and c.criterion != CriterionName.CONFIRMATORY
        ),
        None,
    )


def _rival(name: str, score: float, model: float, unit: str, what: str) -> Rival:
    sentence = f"{name} has {number(score)}, the model {number(model)} ({what})."
    return Rival(name, score, model, unit, sentence)


def _best_controls(material: Material, name: str) -> Rival | None:
    means = level1.mean_scores(material)
    if means is None:
        return None
    sentence = (
        f"The best severe control of each subject-run, most often {name}, scores "
        f"{number(means.best_control)} on average, the model {number(means.real)}."
    )
    return Rival(name, means.best_control, means.real, material.score_unit, sentence)


def _level1(material: Material, name: str) -> Rival | None:
    pair = level1.paired_scores(material, name)
    if pair is None:
        return None
    model, score = pair
    return _rival(name, score, model, material.score_unit, "mean held-out score")


def _level2(material: Material, name: str) -> Rival | None:
    """Mean similarity of a control and of the model on the same unit rows."""
    usable = material.unit_rows.filter(pl.col("has_contrast") & pl.col("same_order"))
    on = ["subject", "session", "run", "unit", "alignment", "profile"]
    pairs = (
        material.similarities.filter(condition=name)
        .drop_nulls("similarity")
        .join(usable.select(*on, "real_similarity"), on=on, maintain_order="left")
    )
    if not pairs.height or name == REAL:
        return None
    score, model = pairs["similarity"].mean(), pairs["real_similarity"].mean()
    return _rival(name, float(score), float(model), "profile similarity", "mean profile similarity")  # type: ignore[arg-type]


def _level3(material: Material, name: str) -> Rival | None:
    drops = level3.median_drops(material)
    own = drops.pop(material.mechanism, None)
    if own is None:
        return None
    what = "median drop in held-out score"
    if name in drops:
        return _rival(name, drops[name], own, level3.DROP, what)
    kind = name.replace(" direction", "_direction")
    instead = material.mismatches.filter(kind=kind)["drop"].drop_nulls()
    if not instead.len():
        return None
    return _rival(name, float(instead.median()), own, level3.DROP, what)  # type: ignore[arg-type]
