"""Why a claim got its label: gates, criteria, the numbers behind each, and what would change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from lpact.analyses.base import Rows
from lpact.analyses.explanation import Criterion, Explanation, Value
from lpact.analyses.explanation import Gate as GateRecord
from lpact.analyses.lpact.analysis import GATES, LPact
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.explain import patterns, scores
from lpact.analyses.lpact.explain.changes import what_would_change
from lpact.analyses.lpact.explain.claim_rows import ClaimRows, Made
from lpact.analyses.lpact.gates.calibrated.tests import NUISANCE, SURROGATE, SWAP, UNIT_ORDER, PredictiveTests
from lpact.analyses.lpact.gates.criteria import ILLUSTRATIVE, Comparison
from lpact.analyses.lpact.gates.criteria import CriterionName as Name
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE
from lpact.analyses.lpact.tables.levels import (
    CONTROL_NULLS,
    NORMALIZED_SCORES,
    PREDICTIVE_SCORES,
    PROFILE_DELTAS,
    RELATIONAL_NULLS,
    SPECIFICITY,
)
from lpact.errors import RunError
from lpact.tables import CLAIM_KEY

TABLES_BEHIND = (
    DECISIONS,
    GATE_EVIDENCE,
    PREDICTIVE_SCORES,
    CONTROL_NULLS,
    PROFILE_DELTAS,
    RELATIONAL_NULLS,
    SPECIFICITY,
    NORMALIZED_SCORES,
)


def explain_claim(config: LPactConfig, rows: Rows, claim: Mapping[str, Any], profile: str) -> Explanation:
    """Why a claim got its label, with the numbers behind every criterion.

    Only rows of the claim's dataset, model and layer are read, and the p-values of all claims where multiple-testing
    correction decided.
    """
    key: dict[str, Value] = {name: claim[name] for name in CLAIM_KEY}
    decided = rows(DECISIONS.name, **key, gate_profile=profile)
    if decided.is_empty():
        raise RunError(
            f"there is no claim '{'/'.join(map(str, key.values()))}' under the gate profile '{profile}'",
            where=DECISIONS.name,
            remedy="choose a claim of the decision table",
        )
    decision = decided.row(0, named=True)
    evidence = rows(GATE_EVIDENCE.name, **key, gate_profile=profile)
    claim_rows = ClaimRows(config, rows, key)
    gates = _gates(claim_rows, decision, evidence.sort("gate_order", "criterion_order"))
    by = {**key, "stripped": key["mechanism"], "gate_profile": profile}
    return Explanation(
        analysis=LPact.name,
        claim=key,
        profile=profile,
        label=decision["label"],
        meaning=LPact.claims.labels.get(decision["label"], ""),
        reason=decision["reason"],
        facts=_facts(claim_rows, decision),
        gates=gates,
        what_would_change=what_would_change(claim_rows, rows, decision, gates),
        rows=tuple((table.name, {n: v for n, v in by.items() if n in table.column_names}) for table in TABLES_BEHIND),
    )


def _gates(claim_rows: ClaimRows, decision: Mapping[str, Any], evidence: pl.DataFrame) -> tuple[GateRecord, ...]:
    def criterion(row: dict[str, Any]) -> Criterion:
        name, value = Name(row["criterion"]), row["value"]
        make = _MAKERS.get(name) if value is not None else None
        same = ("sentence", "value", "relation", "threshold", "passed", "n", "compared_with")
        return Criterion(
            name=name.value,
            **{column: row[column] for column in same},
            decisive=name not in ILLUSTRATIVE,
            distributions=make(claim_rows, row["compared_with"], value) if make else (),
        )

    return tuple(
        GateRecord(
            name=gate.value,
            letter=letter,
            meaning=gate.explanation,
            passed=decision[column],
            criteria=tuple(map(criterion, evidence.filter(gate=gate.value).iter_rows(named=True))),
        )
        for letter, (column, gate) in GATES.items()
    )


def _facts(claim_rows: ClaimRows, decision: Mapping[str, Any]) -> tuple[tuple[str, Value], ...]:
    facts: dict[str, Value] = {
        f"score ({claim_rows.metric})": decision["raw_score"],
        "subject-runs": decision["n_subject_runs"],
        "first failed gate": decision["first_failed_gate"].replace("_", " "),
        "beaten by": decision["beaten_by"],
        "p": decision["p_value"],
        "q, over claims": decision["q_value"],
        "role of the dataset": decision["role"],
    }
    always = ("subject-runs", f"score ({claim_rows.metric})")
    return tuple((name, own) for name, own in facts.items() if own not in (None, "") or name in always)


_Maker = Callable[[ClaimRows, str, float | None], Made]
"""From the claim's rows, what the criterion was compared with, and its value."""


def _relational(*kinds: str, nuisance: bool) -> _Maker:
    return lambda m, rival, _: patterns.tests(patterns.draw_tests(m, kinds, nuisance=nuisance, rival=rival))


def _level1(tests: Callable[[PredictiveTests], Sequence[Comparison]]) -> _Maker:
    return lambda m, rival, _: scores.tests(m, tests(m.level1), rival)


def _with_rival(make: Callable[[ClaimRows, str], Made]) -> _Maker:
    return lambda m, rival, _: make(m, rival)


def _alone(make: Callable[[ClaimRows], Made]) -> _Maker:
    return lambda m, _, __: make(m)


_MAKERS: dict[Name, _Maker] = {
    Name.MEAN_DELTA_NUISANCE: _alone(partial(scores.mean_delta, rival=NUISANCE)),
    Name.MEAN_DELTA_CONTROL: _with_rival(scores.mean_delta),
    Name.SMALLEST_CONTROL_DELTA: _with_rival(scores.smallest_delta),
    Name.POSITIVE_DIRECTION: _alone(scores.direction),
    Name.P_NUISANCE: _level1(lambda own: own.nuisance),
    Name.P_SURROGATES: _level1(lambda own: own.surrogates),
    Name.P_RIVALS: _level1(lambda own: own.rivals),
    Name.P_CONTROLS_LEVEL1: _level1(lambda own: [*own.surrogates, *own.rivals]),
    Name.P_REPLICATION: _alone(scores.replication),
    Name.SUMMARIES_NOT_REACHED: _with_rival(patterns.not_reached),
    Name.SUMMARIES_PASSING: _with_rival(patterns.summaries_passing),
    Name.TYPICAL_PASS_SHARE: _alone(patterns.pass_shares),
    Name.TYPICAL_DELTA_REL: _with_rival(patterns.contrasts),
    Name.RELIABLE_UNITS: _alone(patterns.reliable_units),
    Name.P_CONTROLS_LEVEL2: _relational(SURROGATE, SWAP, nuisance=False),
    Name.P_RELATIONAL_SURROGATES: _relational(SURROGATE, nuisance=False),
    Name.P_UNIT_ORDER: _relational(UNIT_ORDER, nuisance=False),
    Name.P_RELATIONAL_RIVALS: _relational(SWAP, nuisance=True),
    Name.METHODS_AGREEING: _alone(scores.agreeing),
    Name.TYPICAL_DROP: _with_rival(partial(scores.typical, column="matching_drop")),
    Name.TYPICAL_MARGIN: _with_rival(partial(scores.typical, column="margin")),
    Name.TYPICAL_MISMATCH_MARGIN: _with_rival(partial(scores.typical, column="mismatch_margin")),
    Name.P_OTHER_TARGETS: _with_rival(scores.block_tests),
    Name.P_RANDOM_DIRECTIONS: _with_rival(partial(scores.block_tests, random=True)),
    Name.P_BEYOND_NUISANCE: _with_rival(partial(scores.block_tests, beside=NUISANCE)),
    Name.MEAN_RELIABILITY: _with_rival(partial(patterns.by_subject_run, column="reliability")),
    Name.MEAN_DELTA_FRACTION: _with_rival(partial(patterns.by_subject_run, column="delta_fraction")),
    Name.MEAN_FRACTION_OF_CEILING: _with_rival(partial(patterns.by_subject_run, column="fraction_of_ceiling")),
    Name.MEDIAN_FRACTION_OF_CEILING: _with_rival(patterns.median_fraction),
    Name.P_FRACTION: patterns.bootstrapped,
    Name.P_CONTRAST: _relational(SURROGATE, SWAP, nuisance=True),
}
