"""Why the verdict on a claim differs between two runs: a criterion, the correction over claims, or an option.

A label is the first of a ladder whose gates pass (`lpact.analyses.lpact.gates.verdict`); under tests it must also survive a
correction. What is named as the reason is what the two labels differ by, and never a number that merely moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.claim_story.model import Claim
from lpact.analyses.lpact.gates.criteria import ILLUSTRATIVE, CriterionName
from lpact.analyses.lpact.gates.discoveries import RUNGS
from lpact.archive.diff.model import CriterionChange, OptionChange
from lpact.archive.diff.wording import pair
from lpact.codes import FinalLabel, Gate
from lpact.stats import benjamini_hochberg
from lpact.tables import CLAIM_KEY

ALL_LEVELS = "all_levels"
Row = dict[str, Any]

_LEVEL2 = frozenset({CriterionName.SUMMARIES_NOT_REACHED, CriterionName.P_CONTROLS_LEVEL2})
"""Criteria of the severe-control gate that a claim about prediction alone need not meet."""
COLUMNS = {
    Gate.PREDICTIVE: "predictive",
    Gate.SEVERE_CONTROL: "severe_control",
    Gate.RELATIONAL: "relational",
    Gate.MECHANISM: "mechanism_specific",
    Gate.CEILING: "ceiling",
    Gate.REPLICATION: "replication",
}
"""Column of the decision table of every gate."""
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
        level1 = _level1_alone(rung, severe_scope)
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
    level2 = [name.value for name in _LEVEL2]
    found: dict[tuple[Any, ...], float] = {}
    for only_level1 in (False, True):
        part = decisive.filter(~pl.col("criterion").is_in(level2)) if only_level1 else decisive
        rows = part.group_by(*CLAIM_KEY, "gate").agg(p=p.max())
        for *key, value in rows.iter_rows():
            found[(*key, only_level1)] = value
    return found


def why_other_verdict(
    claim: Claim,
    rows: tuple[Row, Row],
    sides: tuple[Side, Side],
    flipped: tuple[CriterionChange, ...],
    options: tuple[OptionChange, ...],
) -> str:
    """Why the label differs; ``flipped`` are the decisive criteria whose pass changed, in the order of the gates."""
    labels = {row["label"] for row in rows}
    if labels & {label.value for label in _FIRST}:
        wanted = {CriterionName.CONFIRMATORY, CriterionName.N_SUBJECT_RUNS}
        found = (c.sentence for c in flipped if c.criterion in wanted)
        return next(found, "") or _options(options)
    # What only one of the runs has: the higher label of the two.
    higher = next((rung for rung in reversed(RUNGS) if rung.value in labels), None)
    if higher is None:
        return _below_the_ladder(rows, flipped) or _options(options)
    scopes = (sides[0].severe_scope, sides[1].severe_scope)
    old, new = (passes(row, higher, scope) for row, scope in zip(rows, scopes, strict=True))
    moved = _scope(scopes, higher)
    if old and new:
        return _correction(claim, higher, rows, sides, moved) or _options(options)
    if old != new and moved and passes(rows[0], higher, scopes[1]) == new:
        return f"{moved}."
    cause = _first_that_matters(flipped, higher, rows, scopes) if old != new else None
    return cause.sentence if cause else _options(options)


def passes(row: Row, rung: FinalLabel, severe_scope: str) -> bool:
    """Whether a decision passes every gate that a label asks for."""
    return all(_gate_passes(row, gate, rung, severe_scope) for gate in _ASKS[rung])


def _gate_passes(row: Row, gate: Gate, rung: FinalLabel, severe_scope: str) -> bool:
    if gate == Gate.SEVERE_CONTROL and _level1_alone(rung, severe_scope):
        return bool(row["severe_control_level1"])
    return bool(row[COLUMNS[gate]])


def _level1_alone(rung: FinalLabel, severe_scope: str) -> bool:
    """Whether a label asks the severe-control gate at level 1 only."""
    return rung == FinalLabel.PREDICTIVE_ONLY and severe_scope != ALL_LEVELS


def _scope(scopes: tuple[str, str], rung: FinalLabel) -> str:
    """The option, where it differs and the label depends on it."""
    if scopes[0] == scopes[1] or rung != FinalLabel.PREDICTIVE_ONLY:
        return ""
    return f"gates.severe_scope went from {scopes[0]} to {scopes[1]}"


def _first_that_matters(
    flipped: tuple[CriterionChange, ...],
    rung: FinalLabel,
    rows: tuple[Row, Row],
    scopes: tuple[str, str],
) -> CriterionChange | None:
    """The first flipped criterion of a gate that the label asks for and that only one of the runs passes."""
    for change in flipped:
        gate = next(gate for gate in Gate if gate.value == change.gate)
        if gate not in _ASKS[rung]:
            continue
        held = [_gate_passes(r, gate, rung, s) for r, s in zip(rows, scopes, strict=True)]
        level2 = change.criterion in _LEVEL2 and all(_level1_alone(rung, s) for s in scopes)
        if held[0] != held[1] and not level2:
            return change
    return None


def _correction(
    claim: Claim,
    label: FinalLabel,
    rows: tuple[Row, Row],
    sides: tuple[Side, Side],
    moved: str,
) -> str:
    """The correction, where the gates of a label pass in both runs and only one of them gives it."""
    before, after = (side.q_values.get(claim, {}).get(label) for side in sides)
    if before is None or after is None:
        return ""
    rates = (sides[0].fdr, sides[1].fdr)
    if None not in rates and before <= (rates[0] or 0.0) and after <= (rates[1] or 0.0):
        # It survives in both: something else took it away.
        return ""
    now = "now survives" if rows[1]["label"] == label.value else "no longer survives"
    first, second = pair(before, after)
    value = f"stays {first}" if before == after else f"went from {first} to {second}"
    rate = ""
    if rates[0] is not None and rates[1] is not None:
        was = "" if rates[0] == rates[1] else f", before {rates[0]:.3g}"
        rate = f" (at most {rates[1]:.3g} is allowed{was})"
    family = "layers" if label in RUNGS[:2] else "claims"
    because = f"; {moved}" if moved else ""
    return (
        f"The gates of {label.value} pass in both runs; it {now} the correction over {family}: its q-value "
        f"{value}{rate}{because}."
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
