"""What the claims of two runs differ in: verdicts, gates, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from lpact.analyses.lpact.claim_story.model import Claim
from lpact.analyses.lpact.claim_story.story import LETTERS
from lpact.analyses.lpact.gates.criteria import ILLUSTRATIVE
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE, STUDY_OUTCOME
from lpact.archive.diff.causes import COLUMNS, Side, side_of, why_other_verdict
from lpact.archive.diff.model import (
    ClaimChange,
    CriterionChange,
    GateFlip,
    OptionChange,
    ProfileComparison,
)
from lpact.archive.diff.wording import criterion_sentence
from lpact.codes import Gate
from lpact.store import StoredRun
from lpact.tables import CLAIM_KEY

MOST_NUMBERS = 3
"""Criteria that are shown because their numbers changed most."""

Row = dict[str, Any]
_Criteria = dict[tuple[str, str], Row]


def claims_of(run: StoredRun) -> set[Claim]:
    """All claims of a run."""
    return set(run.table(DECISIONS.name).select(CLAIM_KEY).unique().iter_rows())


def compare_profiles(
    before: StoredRun, after: StoredRun, options: tuple[OptionChange, ...] = ()
) -> tuple[ProfileComparison, ...]:
    """Common claims under every gate profile that both runs have, and outcomes under those that either has."""
    first, second = _outcomes(before), _outcomes(after)
    found = []
    for profile in sorted({*first, *second}):
        old, new = _by_claim(before, profile), _by_claim(after, profile)
        common = sorted({*old} & {*new})
        old_criteria, new_criteria = _evidence(before, profile), _evidence(after, profile)
        sides = (_side(before, profile), _side(after, profile))
        changes = [
            change
            for claim in common
            if (
                change := _compare(
                    claim,
                    (old[claim], new[claim]),
                    (old_criteria.get(claim, {}), new_criteria.get(claim, {})),
                    sides,
                    options,
                )
            )
            is not None
        ]
        n_other = sum(c.verdict_changed or bool(c.gates) for c in changes)
        found.append(
            ProfileComparison(
                gate_profile=profile,
                outcome_before=first.get(profile),
                outcome_after=second.get(profile),
                n_common=len(common),
                n_unchanged=len(common) - len(changes),
                n_same_verdict=len(common) - n_other,
                claims=tuple(changes),
            )
        )
    return tuple(found)


def _side(run: StoredRun, profile: str) -> Side:
    decisions, evidence = (
        run.table(table.name).filter(gate_profile=profile) for table in (DECISIONS, GATE_EVIDENCE)
    )
    return side_of(run.manifest.config, decisions, evidence)


def _outcomes(run: StoredRun) -> dict[str, str]:
    return dict(run.table(STUDY_OUTCOME.name).select("gate_profile", "outcome").iter_rows())


def _by_claim(run: StoredRun, profile: str) -> dict[Claim, Row]:
    rows = run.table(DECISIONS.name).filter(gate_profile=profile).iter_rows(named=True)
    return {_claim(row): row for row in rows}


def _claim(row: Mapping[str, Any]) -> Claim:
    dataset, model, layer, mechanism = (row[name] for name in CLAIM_KEY)
    return str(dataset), str(model), int(layer), str(mechanism)


def _evidence(run: StoredRun, profile: str) -> dict[Claim, _Criteria]:
    """Criteria by gate and name, in the order of the gates, for every claim."""
    rows = run.table(GATE_EVIDENCE.name).filter(pl.col("gate_profile") == profile)
    found: dict[Claim, _Criteria] = {}
    for row in rows.sort(*CLAIM_KEY, "gate_order", "criterion_order").iter_rows(named=True):
        found.setdefault(_claim(row), {})[row["gate"], row["criterion"]] = row
    return found


def _compare(
    claim: Claim,
    rows: tuple[Row, Row],
    criteria: tuple[_Criteria, _Criteria],
    sides: tuple[Side, Side],
    options: tuple[OptionChange, ...],
) -> ClaimChange | None:
    """The change of one claim; None where every number is the same."""
    (before, after), (old, new) = rows, criteria
    keys = [*new, *(key for key in old if key not in new)]
    order = {gate.value: place for place, gate in enumerate(Gate)}
    keys.sort(key=lambda key: order.get(key[0], len(order)))
    changed = [
        change
        for key in keys
        if (change := _compare_criterion(key, old.get(key), new.get(key))) is not None
    ]
    flips = tuple(
        GateFlip(gate.value, LETTERS[gate], before[column], after[column])
        for gate, column in COLUMNS.items()
        if before[column] != after[column]
    )
    same = all(
        before[name] == after[name]
        for name in ("label", "raw_score", "beaten_by", "p_value", "q_value", "reason", "role")
    )
    if same and not changed and not flips:
        return None
    shown = _shown(changed)
    if before["label"] == after["label"]:
        why = shown[0].sentence if shown else ""
    else:
        why = why_other_verdict(claim, rows, sides, _flipped(changed), options)
    return ClaimChange(
        claim=claim,
        label_before=before["label"],
        label_after=after["label"],
        gates=flips,
        raw_score_before=before["raw_score"],
        raw_score_after=after["raw_score"],
        beaten_by_before=before["beaten_by"],
        beaten_by_after=after["beaten_by"],
        criteria=shown,
        n_criteria_changed=len(changed),
        sentence=_sentence(before, after, flips, why),
    )


def _compare_criterion(
    key: tuple[str, str], old: Row | None, new: Row | None
) -> CriterionChange | None:
    names = ("value", "passed", "threshold", "compared_with")
    before = {name: None if old is None else old[name] for name in names}
    after = {name: None if new is None else new[name] for name in names}
    if (old is None) == (new is None) and before == after:
        return None
    change = CriterionChange(
        gate=key[0],
        criterion=key[1],
        before=before["value"],
        after=after["value"],
        passed_before=before["passed"],
        passed_after=after["passed"],
        threshold_before=before["threshold"],
        threshold_after=after["threshold"],
        compared_before=before["compared_with"] or "",
        compared_after=after["compared_with"] or "",
        sentence="",
    )
    relation = str((new or old or {})["relation"])
    return replace(change, sentence=criterion_sentence(change, relation))


def _shown(changed: list[CriterionChange]) -> tuple[CriterionChange, ...]:
    """Those whose pass changed, then those whose numbers changed most; typical values last."""
    flipped = _flipped(changed)
    rest = [c for c in changed if c not in flipped]
    rest.sort(key=lambda c: (c.criterion in ILLUSTRATIVE, -_size(c)))
    return (*flipped, *rest[:MOST_NUMBERS])


def _flipped(changed: list[CriterionChange]) -> tuple[CriterionChange, ...]:
    """Those whose pass changed and that a gate depends on, in the order of the gates."""
    return tuple(c for c in changed if c.flipped and c.criterion not in ILLUSTRATIVE)


def _size(change: CriterionChange) -> float:
    """Relative change of a number, from 0 to 2; 2 where it appeared or vanished."""
    if change.before is None or change.after is None:
        return 0.0 if change.before == change.after else 2.0
    larger = max(abs(change.before), abs(change.after))
    return abs(change.after - change.before) / larger if larger else 0.0


def _sentence(before: Row, after: Row, flips: tuple[GateFlip, ...], why: str) -> str:
    verdict = (
        f"The verdict stays {after['label']}"
        if before["label"] == after["label"]
        else f"The verdict changes from {before['label']} to {after['label']}"
    )
    gates = "".join(
        f"; the {flip.gate.replace('_', '-')} gate {'now passes' if flip.after else 'no longer passes'}"
        for flip in flips
    )
    return f"{verdict}{gates}. {why}".rstrip()
