"""Claims of two runs that differ: label, gates, and the criteria behind them.

Everything comes from the declarations of an analysis (`lpact.analyses.explanation.ClaimTable`). Why a label differs is
what the analysis itself gives as the reason, before and after, with the criteria of the gates that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.base import Analysis, Material
from lpact.analyses.explanation import ClaimTable, Value
from lpact.archive.diff.manifests import OptionChange
from lpact.config import StudyConfig
from lpact.store import RunTables, StoredRun

MOST_NUMBERS = 3
"""Criteria without a change of pass that are listed, those with the largest relative change first."""
PROFILE = "gate_profile"

Claim = tuple[Value, ...]
Row = Mapping[str, Any]
Criteria = Mapping[tuple[str, str], Row]


@dataclass(frozen=True)
class CriterionChange:
    """A criterion of a claim before and after; all None in a run that does not have it."""

    gate: str
    criterion: str
    before: float | None
    after: float | None
    passed_before: bool | None
    passed_after: bool | None
    threshold_before: float | None
    threshold_after: float | None
    compared_before: str
    compared_after: str
    relation: str

    @property
    def flipped(self) -> bool:
        """Whether it passes in one run only."""
        return self.passed_before != self.passed_after

    @property
    def sentence(self) -> str:
        """What happened to its number, its rival, its threshold, and its pass."""
        parts = [self._number(), self._threshold(), self._passes()]
        return f"{self.criterion} {', '.join(part for part in parts if part)}."

    def _number(self) -> str:
        first, second = pair(self.before, self.after)
        if self.passed_before is None:
            return f"exists only in the second run ({second}{_against(self.compared_after)})"
        if self.passed_after is None:
            return f"exists only in the first run ({first}{_against(self.compared_before)})"
        if self.before is None and self.after is None:
            return "could not be computed in either run"
        if self.after is None:
            return f"was {first}{_against(self.compared_before)} and could not be computed"
        rival = _against(self.compared_after)
        if self.before is None:
            return f"could not be computed before and is {second}{rival}"
        if self.compared_before != self.compared_after:
            rival += f" (before against {self.compared_before or 'nothing'})"
        if self.before == self.after:
            return f"stays {second}{rival}"
        return f"{'rose' if self.after > self.before else 'fell'} from {first} to {second}{rival}"

    def _threshold(self) -> str:
        before, after = self.threshold_before, self.threshold_after
        if before is None or after is None or before == after:
            return ""
        first, second = pair(before, after)
        return f"the threshold moved from {first} to {second}"

    def _passes(self) -> str:
        if not self.flipped or self.passed_before is None or self.passed_after is None:
            return ""
        limit = self.threshold_after
        needs = "" if limit is None else f" (needs {self.relation} {limit:.3g})"
        return f"and {'now passes' if self.passed_after else 'no longer passes'}{needs}"


@dataclass(frozen=True)
class GateFlip:
    """A gate that only one of the runs passes."""

    letter: str
    meaning: str
    before: bool
    after: bool


@dataclass(frozen=True)
class ClaimChange:
    """A claim of both runs that differs.

    Attributes
    ----------
    claim
        Values of the claim's key columns.
    reason_before, reason_after
        The sentence with which the analysis explains the label.
    score_before, score_after
        The conventional score, if the analysis has one.
    criteria
        Those whose pass changed, in the order of the gates, then those whose numbers changed most.
    n_criteria_changed
        All criteria that differ.
    sentence
        The change in words.
    """

    claim: Claim
    label_before: str
    label_after: str
    reason_before: str
    reason_after: str
    gates: tuple[GateFlip, ...]
    score_before: float | None
    score_after: float | None
    criteria: tuple[CriterionChange, ...]
    n_criteria_changed: int
    sentence: str

    @property
    def verdict_changed(self) -> bool:
        """Whether the label differs."""
        return self.label_before != self.label_after


@dataclass(frozen=True)
class ProfileComparison:
    """Claims of both runs under one gate profile; ``profile`` is empty for an analysis without profiles.

    ``n_unchanged`` claims are the same in every number; ``n_same_verdict`` have the same label and pass the same gates.
    """

    profile: str
    outcome_before: str | None
    outcome_after: str | None
    n_common: int
    n_unchanged: int
    n_same_verdict: int
    claims: tuple[ClaimChange, ...]


@dataclass(frozen=True)
class AnalysisComparison:
    """The claims of one analysis in two runs; ``removed`` are only in the first run, ``added`` only in the second."""

    analysis: str
    key: tuple[str, ...]
    removed: tuple[Claim, ...]
    added: tuple[Claim, ...]
    profiles: tuple[ProfileComparison, ...]


@dataclass(frozen=True)
class Side:
    """One of two runs: its analysis and its tables."""

    analysis: Analysis
    study: StudyConfig
    run: StoredRun

    @property
    def claims(self) -> ClaimTable:
        """Where the claims are."""
        return self.analysis.claims

    def outcomes(self) -> dict[str, str]:
        """Outcome of the study by profile."""
        found = self.analysis.conclude(Material(RunTables(self.run), self.study)).outcomes
        return {outcome.profile: outcome.code for outcome in found}

    def rows(self, profile: str) -> dict[Claim, Row]:
        """Rows of the claim table under one profile, by claim."""
        rows = _of_profile(self.run.table(self.claims.table.name), profile)
        return {self.claim(row): row for row in rows.iter_rows(named=True)}

    def criteria(self, profile: str) -> dict[Claim, Criteria]:
        """Criteria by gate and name, in the order of the gates, for every claim."""
        table = self.claims.evidence
        if table is None:
            return {}
        rows = _of_profile(self.run.table(table.name), profile)
        order = [c for c in ("gate_order", "criterion_order") if c in rows.columns]
        found: dict[Claim, dict[tuple[str, str], Row]] = {}
        for row in rows.sort(*self.claims.key, *order).iter_rows(named=True):
            found.setdefault(self.claim(row), {})[row["gate"], row["criterion"]] = row
        return dict(found)

    def claim(self, row: Row) -> Claim:
        """The claim that a row is about."""
        return tuple(row[name] for name in self.claims.key)


def _of_profile(frame: pl.DataFrame, profile: str) -> pl.DataFrame:
    return frame.filter(pl.col(PROFILE) == profile) if profile else frame


def compare_analysis(
    before: Side, after: Side, options: Sequence[OptionChange]
) -> AnalysisComparison:
    """What the claims of one analysis differ in, under each of its profiles."""
    own = before.claims
    old, new = (
        set(side.run.table(own.table.name).select(own.key).unique().iter_rows())
        for side in (before, after)
    )
    outcomes = before.outcomes(), after.outcomes()
    return AnalysisComparison(
        analysis=before.analysis.name,
        key=own.key,
        removed=tuple(sorted(old - new, key=str)),
        added=tuple(sorted(new - old, key=str)),
        profiles=tuple(
            _compare_profile(before, after, profile, outcomes, options)
            for profile in own.profiles or ("",)
        ),
    )


def _compare_profile(
    before: Side,
    after: Side,
    profile: str,
    outcomes: tuple[Mapping[str, str], Mapping[str, str]],
    options: Sequence[OptionChange],
) -> ProfileComparison:
    old, new = before.rows(profile), after.rows(profile)
    old_criteria, new_criteria = before.criteria(profile), after.criteria(profile)
    common = [claim for claim in old if claim in new]
    changes = []
    for claim in common:
        criteria = list(_criteria(old_criteria.get(claim, {}), new_criteria.get(claim, {})))
        if criteria or old[claim] != new[claim]:
            rows = old[claim], new[claim]
            changes.append(_claim_change(after.claims, claim, rows, criteria, options))
    return ProfileComparison(
        profile=profile,
        outcome_before=outcomes[0].get(profile),
        outcome_after=outcomes[1].get(profile),
        n_common=len(common),
        n_unchanged=len(common) - len(changes),
        n_same_verdict=len(common) - sum(c.verdict_changed or bool(c.gates) for c in changes),
        claims=tuple(changes),
    )


def _criteria(old: Criteria, new: Criteria) -> Iterator[CriterionChange]:
    """Criteria that differ, in the order of the gates."""
    names = ("value", "passed", "threshold", "compared_with")
    for key in [*old, *(key for key in new if key not in old)]:
        before, after = old.get(key, {}), new.get(key, {})
        if [before.get(name) for name in names] != [after.get(name) for name in names]:
            yield CriterionChange(
                gate=key[0],
                criterion=key[1],
                before=before.get("value"),
                after=after.get("value"),
                passed_before=before.get("passed"),
                passed_after=after.get("passed"),
                threshold_before=before.get("threshold"),
                threshold_after=after.get("threshold"),
                compared_before=before.get("compared_with") or "",
                compared_after=after.get("compared_with") or "",
                relation=str((after or before).get("relation", "")),
            )


def _claim_change(
    table: ClaimTable,
    claim: Claim,
    rows: tuple[Row, Row],
    criteria: list[CriterionChange],
    options: Sequence[OptionChange],
) -> ClaimChange:
    before, after = rows
    flips = tuple(
        GateFlip(letter, table.gate_meanings.get(letter, ""), before[column], after[column])
        for letter, column in table.gates.items()
        if before[column] != after[column]
    )
    flipped = [own for own in criteria if own.flipped]
    rest = sorted((own for own in criteria if not own.flipped), key=_size, reverse=True)
    shown = (*flipped, *rest[:MOST_NUMBERS])
    return ClaimChange(
        claim=claim,
        label_before=before["label"],
        label_after=after["label"],
        reason_before=before["reason"],
        reason_after=after["reason"],
        gates=flips,
        score_before=before.get(table.score),
        score_after=after.get(table.score),
        criteria=shown,
        n_criteria_changed=len(criteria),
        sentence=_sentence(before, after, flips, shown, options),
    )


def _size(change: CriterionChange) -> float:
    """Relative change of a number, from 0 to 2; 2 if only one run has it."""
    if change.before is None or change.after is None:
        return 0.0 if change.before == change.after else 2.0
    larger = max(abs(change.before), abs(change.after))
    return abs(change.after - change.before) / larger if larger else 0.0


def _sentence(
    before: Row,
    after: Row,
    flips: Sequence[GateFlip],
    criteria: Sequence[CriterionChange],
    options: Sequence[OptionChange],
) -> str:
    """Label, gates, the first criterion, and the reasons that the analysis gives."""
    changed = before["label"] != after["label"]
    parts = [
        f"The verdict changes from {before['label']} to {after['label']}"
        if changed
        else f"The verdict stays {after['label']}"
    ]
    parts += [f"gate {f.letter} {'now passes' if f.after else 'no longer passes'}" for f in flips]
    sentences = ["; ".join(parts) + "."]
    sentences += [own.sentence for own in criteria[:1]]
    if changed or (not criteria and before["reason"] != after["reason"]):
        sentences += [f"Reason before: {before['reason']}", f"Reason now: {after['reason']}"]
    if changed and options and not any(own.flipped for own in criteria):
        sentences.append(f"Changed options: {', '.join(own.path for own in options)}.")
    return " ".join(sentences)


def pair(before: float | None, after: float | None) -> tuple[str, str]:
    """Two numbers with three significant digits, or as many as distinguish them."""
    if before is None or after is None or before == after:
        return _number(before), _number(after)
    shown = ((f"{before:.{digits}g}", f"{after:.{digits}g}") for digits in range(3, 18))
    return next((pair for pair in shown if pair[0] != pair[1]), (repr(before), repr(after)))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def _against(name: str) -> str:
    return f" against {name}" if name else ""
