"""What a failure is put down to, beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from lpact.analyses.lpact.claim_story import level1, level3
from lpact.analyses.lpact.claim_story.material import Material
from lpact.analyses.lpact.claim_story.model import CriterionStory, GateStory, Rival
from lpact.analyses.lpact.gates.criteria import CriterionName
from lpact.analyses.lpact.gates.point_rules.severe import REAL
from lpact.analyses.lpact.gates.wording import count, number

_LEVEL1 = {
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
    if failure.criterion == CriterionName.MEAN_DELTA_NUISANCE:
        return _nuisance(material, name)
    if failure.criterion in _LEVEL1:
        return _level1(material, name)
    if failure.criterion in _LEVEL3:
        return _level3(material, name)
    if failure.criterion == CriterionName.SUMMARIES_PASSING:
        return _failing_rows(material, name)
    return _level2(material, name)


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


def _best_controls(material: Material, name: str) -> Rival | None:
    means = level1.mean_scores(material)
    if means is None:
        return None
    sentence = (
        f"The best severe control of each subject-run, most often {name}, scores "
        f"{number(means.best_control)} on average, the model {number(means.real)}."
    )
    return Rival(name, means.best_control, means.real, material.score_unit, sentence)


def _nuisance(material: Material, name: str) -> Rival | None:
    means = level1.mean_scores(material)
    if means is None:
        return None
    sentence = f"{name} scores {number(means.nuisance)} on average, the model {number(means.real)}."
    return Rival(name, means.nuisance, means.real, material.score_unit, sentence)


def _level1(material: Material, name: str) -> Rival | None:
    pair = level1.paired_scores(material, name)
    if pair is None:
        return None
    model, score = pair
    chance = "" if score >= model else "; that is not shown to be more than chance"
    sentence = f"{name} scores {number(score)} on average, the model {number(model)}{chance}."
    return Rival(name, score, model, material.score_unit, sentence)


def _failing_rows(material: Material, name: str) -> Rival | None:
    """Mean similarities in the unit rows that a control wins."""
    rows = material.unit_rows.filter(pl.col("has_contrast") & pl.col("same_order"))
    won = rows.filter((pl.col("best_control") == name) & (pl.col("delta_rel") <= 0))
    if not won.height:
        return None
    score, model = _means(won, "best_control_similarity", "real_similarity")
    sentence = (
        f"{name} is the best control and not behind in {won.height} of {count(rows.height, 'unit row')}: its profile "
        f"similarity is {number(score)} there on average, the model's {number(model)}."
    )
    return Rival(name, score, model, "profile similarity", sentence)


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
    score, model = _means(pairs, "similarity", "real_similarity")
    sentence = (
        f"The profile similarity of {name} is {number(score)} on average over {count(pairs.height, 'unit row')}, the "
        f"model's {number(model)}."
    )
    return Rival(name, score, model, "profile similarity", sentence)


def _means(frame: pl.DataFrame, *columns: str) -> tuple[float, ...]:
    return tuple(float(v) for v in frame.select(pl.col(columns).mean()).row(0))


def _level3(material: Material, name: str) -> Rival | None:
    drops = level3.median_drops(material)
    own = drops.pop(material.mechanism, None)
    if own is None:
        return None
    if name in drops:
        sentence = (
            f"Stripping {material.mechanism} costs the target of {name} {number(drops[name])} of held-out score, and "
            f"its own target {number(own)} (medians)."
        )
        return Rival(name, drops[name], own, level3.DROP, sentence)
    kind = name.replace(" direction", "_direction")
    instead = material.mismatches.filter(kind=kind)["drop"].drop_nulls()
    if not instead.len():
        return None
    score = float(instead.median())  # type: ignore[arg-type]
    sentence = (
        f"Stripping {level3.INSTEAD[kind]} costs the target of {material.mechanism} {number(score)} of held-out score, "
        f"and stripping {material.mechanism} {number(own)} (medians)."
    )
    return Rival(name, score, own, level3.DROP, sentence)
