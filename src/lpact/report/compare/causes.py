"""Why the verdict on a claim differs between two runs: a criterion, the correction over claims, or an option.

A label is the first of a ladder whose gates pass (`lpact.decide.verdict`); under tests it must also survive a
correction. What is named as the reason is what the two labels differ by, and never a number that merely moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lpact.decide.criteria import ILLUSTRATIVE, CriterionName
from lpact.decide.discoveries import RUNGS
from lpact.math.multiple_testing import benjamini_hochberg
from lpact.reasons import FinalLabel, Gate
from lpact.report.claim_story.model import Claim
from lpact.report.compare.model import CriterionChange, OptionChange
from lpact.report.compare.wording import pair
from lpact.tables import CLAIM_KEY

ALL_LEVELS = "all_levels"
Row = dict[str, Any]
Criteria = Mapping[tuple[str, str], Row]

_LEVEL1 = frozenset({CriterionName.SMALLEST_CONTROL_DELTA, CriterionName.P_CONTROLS_LEVEL1})
_FIRST = (FinalLabel.DIAGNOSTIC_ONLY, FinalLabel.INSUFFICIENT_COVERAGE)
"""Labels that are given before any gate is looked at."""
_ASKS: Mapping[FinalLabel, tuple[Gate, ...]] = {
    FinalLabel.PREDICTIVE_ONLY: (Gate.PREDICTIVE, Gate.SEVERE_CONTROL, Gate.REPLICATION),
    FinalLabel.RELATIONAL_CANDIDATE: (
        Gate.PREDICTIVE,
        Gate.SEVERE_CONTROL,
        Gate.RELATIONAL,
        Gate.REPLICATION,
    ),
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE: tuple(g for g in Gate if g != Gate.CEILING),
    FinalLabel.INTEGRATED_CANDIDATE: tuple(Gate),
}
"""Gates of every rung; `predictive_only` asks the severe-control gate at level 1, or at both."""


@dataclass(frozen=True)
class Side:
    """One of the two runs: its options of the gates, and the q-value of every label that is corrected."""

    severe_scope: str
    fdr: float | None
    q_values: Mapping[Claim, Mapping[FinalLabel, float]]


def side_of(config: Mapping[str, Any], decisions: pl.DataFrame, evidence: pl.DataFrame) -> Side:
    """What a run's verdicts under one gate profile depend on beside its criteria; tables of that profile alone."""
    gates = config.get("gates", {})
    scope, fdr = str(gates.get("severe_scope", "claimed_levels")), gates.get("fdr")
    return Side(scope, fdr, label_q_values(decisions, evidence, scope))


def label_q_values(
    decisions: pl.DataFrame, evidence: pl.DataFrame, severe_scope: str
) -> dict[Claim, dict[FinalLabel, float]]:
    """q-values by claim and label, as the decision corrects them; the decision table has those of the last label alone.

    A label's p-value is the largest of its gates' (1 where a criterion that is no test fails). Labels without a
    mechanism are corrected over layers, the others over claims (Benjamini & Hochberg 1995).
    """
    tested = decisions.filter(pl.col("q_value").is_not_null()).select(CLAIM_KEY).sort(CLAIM_KEY)
    claims: list[Claim] = [(str(d), str(m), int(n), str(k)) for d, m, n, k in tested.iter_rows()]
    if not claims:
        return {}
    found: dict[Claim, dict[FinalLabel, float]] = {claim: {} for claim in claims}
    p_values = _gate_p_values(evidence)
    for rung in RUNGS:
        level1 = rung == FinalLabel.PREDICTIVE_ONLY and severe_scope != ALL_LEVELS
        places = {claim: claim[:3] if rung in RUNGS[:2] else claim for claim in claims}
        family: dict[tuple[Any, ...], float] = {}
        for claim in claims:
            asked = [(gate.value, level1 and gate == Gate.SEVERE_CONTROL) for gate in _ASKS[rung]]
            family[places[claim]] = max(p_values.get((*claim, *key), 1.0) for key in asked)
        q = benjamini_hochberg(np.array(list(family.values()), dtype=np.float64))
        by_place = dict(zip(family, q.tolist(), strict=True))
        for claim in claims:
            found[claim][rung] = by_place[places[claim]]
    return found


def _gate_p_values(evidence: pl.DataFrame) -> dict[tuple[Any, ...], float]:
    """p-values by claim, gate and whether only criteria of level 1 are looked at."""
    decisive = evidence.filter(~pl.col("criterion").is_in([name.value for name in ILLUSTRATIVE]))
    p = (
        pl.when(pl.col("value").is_null())
        .then(1.0)
        .when(pl.col("relation") == "<=")
        .then(pl.col("value"))
        .otherwise(pl.when("passed").then(0.0).otherwise(1.0))
    )
    level2 = [CriterionName.SUMMARIES_NOT_REACHED.value, CriterionName.P_CONTROLS_LEVEL2.value]
    found: dict[tuple[Any, ...], float] = {}
    for only_level1 in (False, True):
        part = decisive.filter(~pl.col("criterion").is_in(level2)) if only_level1 else decisive
        rows = part.group_by(*CLAIM_KEY, "gate").agg(p=p.max())
        for *key, value in rows.iter_rows():
            found[(*key, only_level1)] = value
    return found


def earned(row: Row, severe_scope: str) -> FinalLabel | None:
    """The label that the gates of a decision allow before any correction; None below the ladder."""
    label = FinalLabel(row["label"])
    if label in _FIRST:
        return label
    passes = {
        Gate.PREDICTIVE: row["predictive"],
        Gate.SEVERE_CONTROL: row["severe_control"],
        Gate.RELATIONAL: row["relational"],
        Gate.MECHANISM: row["mechanism_specific"],
        Gate.CEILING: row["ceiling"],
        Gate.REPLICATION: row["replication"],
    }
    for rung in reversed(RUNGS):
        held = dict(passes)
        if rung == FinalLabel.PREDICTIVE_ONLY and severe_scope != ALL_LEVELS:
            held[Gate.SEVERE_CONTROL] = row["severe_control_level1"]
        if all(held[gate] for gate in _ASKS[rung]):
            return rung
    return None


def why_other_verdict(
    claim: Claim,
    rows: tuple[Row, Row],
    sides: tuple[Side, Side],
    flipped: tuple[CriterionChange, ...],
    options: tuple[OptionChange, ...],
) -> str:
    """Why the label differs; ``flipped`` are the decisive criteria whose pass changed, in the order of the gates."""
    before, after = rows
    first, second = sides
    old, new = earned(before, first.severe_scope), earned(after, second.severe_scope)
    if old != new:
        scoped = first.severe_scope != second.severe_scope
        if scoped and earned(before, second.severe_scope) == new:
            return f"gates.severe_scope went from {first.severe_scope} to {second.severe_scope}."
        cause = _first_that_matters(flipped, old, new, (first.severe_scope, second.severe_scope))
        if cause:
            return cause.sentence
    elif new is not None and new in RUNGS:
        corrected = _correction(claim, new, rows, sides)
        if corrected:
            return corrected
    return _below_the_ladder(rows, flipped) or _options(options)


def _first_that_matters(
    flipped: tuple[CriterionChange, ...],
    old: FinalLabel | None,
    new: FinalLabel | None,
    scopes: tuple[str, str],
) -> CriterionChange | None:
    """The first criterion whose flip takes the higher of the two labels away, or gives it."""
    if old in _FIRST or new in _FIRST:
        wanted = {CriterionName.CONFIRMATORY, CriterionName.N_SUBJECT_RUNS}
        return next((c for c in flipped if c.criterion in wanted), None)
    rungs = [rung for rung in (old, new) if rung is not None]
    higher = max(rungs, key=RUNGS.index)
    lower = min(rungs, key=RUNGS.index) if len(rungs) > 1 else None
    level1 = higher == FinalLabel.PREDICTIVE_ONLY and ALL_LEVELS not in scopes
    for change in flipped:
        gate = Gate(change.gate)
        if gate not in _ASKS[higher]:
            continue
        if lower is not None and gate in _ASKS[lower] and gate != Gate.SEVERE_CONTROL:
            continue
        aside = level1 and gate == Gate.SEVERE_CONTROL
        if aside and change.criterion not in {*_LEVEL1, CriterionName.CONFIRMATORY}:
            continue
        return change
    return None


def _correction(
    claim: Claim, label: FinalLabel, rows: tuple[Row, Row], sides: tuple[Side, Side]
) -> str:
    """The correction, where the gates allow the same label in both runs and only one of them gives it."""
    given = [row["label"] == label.value for row in rows]
    q = [side.q_values.get(claim, {}).get(label) for side in sides]
    if given[0] == given[1] or q[0] is None or q[1] is None:
        return ""
    rates = [side.fdr for side in sides]
    if all(rate is not None and value <= rate for value, rate in zip(q, rates, strict=True)):
        # It would survive in both: something else took it away.
        return ""
    now = "survives now" if given[1] else "no longer survives"
    value = f"stays {q[0]:.3g}" if q[0] == q[1] else "went from {} to {}".format(*pair(q[0], q[1]))
    rate = ""
    if rates[0] is not None and rates[1] is not None:
        same = rates[0] == rates[1]
        rate = f" (at most {rates[1]:.3g} is allowed{'' if same else f', before {rates[0]:.3g}'})"
    family = "layers" if label in RUNGS[:2] else "claims"
    return (
        f"The gates of {label.value} pass in both runs; it {now} the correction over {family}: its q-value "
        f"{value}{rate}."
    )


def _below_the_ladder(rows: tuple[Row, Row], flipped: tuple[CriterionChange, ...]) -> str:
    """What tells the labels apart for which no gate needs to pass."""
    labels = {row["label"] for row in rows}
    if FinalLabel.INSUFFICIENT_BRAIN_CEILING.value in labels:
        reliability = (c for c in flipped if c.criterion == CriterionName.MEAN_RELIABILITY)
        return next((c.sentence for c in reliability), "")
    raw = [row["raw_positive"] for row in rows]
    if FinalLabel.NULL.value in labels and raw[0] != raw[1]:
        if raw[1]:
            return "Some level now shows a raw positive."
        return "No level shows a raw positive any longer."
    return ""


def _options(options: tuple[OptionChange, ...]) -> str:
    own = [option.path for option in options if option.path.startswith("gates.")]
    named = own or [option.path for option in options]
    head = "No criterion or correction that it rests on tells the two apart"
    if not named:
        return f"{head}, and the runs record the same options."
    return f"{head}; other options: {', '.join(named)}."
