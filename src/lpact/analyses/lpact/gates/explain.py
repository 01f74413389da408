"""The chain of evidence of one claim, in plain text."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.lpact.gates.criteria import ILLUSTRATIVE, CriterionName
from lpact.analyses.lpact.gates.decision import PAPER
from lpact.analyses.lpact.gates.verdict import FALSE_DISCOVERY_RATE
from lpact.analyses.lpact.gates.wording import number
from lpact.codes import FinalLabel, Gate
from lpact.errors import LPactError, did_you_mean
from lpact.tables import CLAIM_KEY

_MAX_LISTED = 10
_SHORT_KEY = 3
_EXPLANATIONS = {label.value: label.explanation for label in FinalLabel}


def explain(
    claim: str | tuple[str | int, ...],
    decisions: pl.DataFrame,
    evidence: pl.DataFrame,
    *,
    gate_profile: str = PAPER,
) -> str:
    """Return why a claim got its verdict.

    Parameters
    ----------
    claim
        ``dataset/model/layer/mechanism``, or the same as a tuple. Without the mechanism, the verdicts on all
        mechanisms of the layer are listed.
    decisions, evidence
        ``decisions/lpact_decision_table`` and ``decisions/lpact_gate_evidence``.
    gate_profile
        Gate profile whose verdict is explained.
    """
    wanted = "/".join(str(part) for part in claim) if isinstance(claim, tuple) else claim.strip("/")
    decisions = decisions.filter(pl.col("gate_profile") == gate_profile)
    named = decisions.with_columns(
        claim=pl.concat_str(CLAIM_KEY, separator="/"),
        stem=pl.concat_str(CLAIM_KEY[:_SHORT_KEY], separator="/"),
    )
    whole = named.filter(pl.col("claim") == wanted)
    if whole.height:
        row = whole.row(0, named=True)
        criteria = evidence.filter(
            pl.col("gate_profile") == gate_profile, *(pl.col(k) == row[k] for k in CLAIM_KEY)
        ).sort("gate_order", "criterion_order")
        return "\n".join(_chain(row, list(criteria.iter_rows(named=True))))
    mechanisms = named.filter(pl.col("stem") == wanted).sort("mechanism")
    if mechanisms.height:
        return "\n".join(_overview(wanted, list(mechanisms.iter_rows(named=True))))
    raise _unknown(wanted, named)


def _overview(stem: str, rows: list[dict[str, Any]]) -> list[str]:
    lines = [stem, ""]
    for row in rows:
        lines += [f"{row['mechanism']}: {row['label']}", f"  {row['reason']}"]
    return [*lines, "", f"One claim in full: {rows[0]['claim']}"]


def _chain(row: dict[str, Any], criteria: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"{row['claim']} ({row['gate_profile']} gates)",
        f"Verdict: {row['label']}. {_EXPLANATIONS[row['label']]}",
        row["reason"],
    ]
    for gate in Gate:
        own = [c for c in criteria if c["gate"] == gate.value]
        passed = all(c["passed"] for c in own if c["criterion"] not in ILLUSTRATIVE)
        lines += ["", f"{_mark(passed)} {gate.value}: {gate.explanation}"]
        for criterion in own:
            lines += _criterion_lines(criterion)
    return [*lines, "", "What would have to change", *_changes(row, criteria)]


def _mark(passed: bool) -> str:
    return "[pass]" if passed else "[fail]"


def _criterion_lines(criterion: dict[str, Any]) -> list[str]:
    name = criterion["criterion"]
    if name == CriterionName.CONFIRMATORY:
        return [] if criterion["passed"] else [f"    [fail] {name}: {criterion['sentence']}"]
    mark = "[info]" if name in ILLUSTRATIVE else _mark(criterion["passed"])
    value = "not computed" if criterion["value"] is None else number(criterion["value"])
    bound = f"{criterion['relation']} {number(criterion['threshold'])}"
    against = f", compared with {criterion['compared_with']}" if criterion["compared_with"] else ""
    return [
        f"    {mark} {name}: {value} (needs {bound}{against}; n = {criterion['n']})",
        f"           {criterion['sentence']}",
    ]


def _changes(row: dict[str, Any], criteria: list[dict[str, Any]]) -> list[str]:
    """The missing amount of every criterion that shuts a gate, in the order of the gates; one standing is said once."""
    lines = list(
        dict.fromkeys(
            f"  {_missing_amount(c)}"
            for c in sorted(criteria, key=lambda c: (c["gate_order"], c["criterion_order"]))
            if not c["passed"] and c["criterion"] not in ILLUSTRATIVE
        )
    )
    if lines:
        return lines
    if row["beaten_by"] == FALSE_DISCOVERY_RATE:
        return [f"  {row['reason']}"]
    return ["  Nothing: every gate passes."]


def _missing_amount(criterion: dict[str, Any]) -> str:
    name, value, threshold = criterion["criterion"], criterion["value"], criterion["threshold"]
    where = f"{criterion['gate']}, {name}"
    if name == CriterionName.CONFIRMATORY:
        return str(criterion["sentence"])
    if value is None:
        return f"{where}: there must be a number first. {criterion['sentence']}"
    if criterion["relation"] == "<=":
        return (
            f"{where}: p = {number(value)} must fall to {number(threshold)} or less; "
            f"it is that of {criterion['compared_with'] or 'all subject-runs'}."
        )
    more = "more than" if criterion["relation"] == ">" else "at least"
    return (
        f"{where}: {number(value)} must rise by {more} {number(threshold - value)} "
        f"to be {criterion['relation']} {number(threshold)}."
    )


def _unknown(wanted: str, named: pl.DataFrame) -> LPactError:
    known = named["claim"].sort().to_list()
    listed = ", ".join(known[:_MAX_LISTED]) or "none"
    more = f", and {len(known) - _MAX_LISTED} more" if len(known) > _MAX_LISTED else ""
    stems = named["stem"].unique().to_list()
    hint = did_you_mean(wanted, [*known, *stems])
    near = hint if hint.startswith("did you mean") else "choose one of the listed claims"
    return LPactError(
        f"there is no claim '{wanted}'",
        where="decisions/lpact_decision_table",
        got=wanted,
        expected=f"dataset/model/layer/mechanism or dataset/model/layer; claims: {listed}{more}",
        remedy=near,
    )
