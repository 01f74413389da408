"""Two runs side by side: what they were made from, and which claims differ.

Claims are compared through the declarations of an analysis (`lpact.analyses.explanation.ClaimTable`). Why a label
differs is what the analysis itself gives as the reason, with the criteria of the gates that differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lpact.analyses.base import Analysis, Material, analyses_of
from lpact.analyses.explanation import ClaimTable, Value
from lpact.config import flat_options
from lpact.store import Manifest, RunTables, StoredRun
from lpact.wording import counted, plain

Kind = Literal["changed", "added", "removed"]
"""``added``: only in the second run; ``removed``: only in the first."""
Claim = tuple[Value, ...]
Row = Mapping[str, Any]

MOST_NUMBERS = 3
"""Criteria without a change of pass that are listed, those with the largest relative change first."""
NOTHING = "Nothing differs: configuration, versions, inputs and every number are the same."
_SHORT_SUM = 12


@dataclass(frozen=True)
class Change:
    """A value that differs; None in a run that does not have it.

    Options have dotted paths, with named tables by name (``datasets[meg].grid.lags_ms``); input files are named
    ``dataset: path`` and have their checksums as values; the values of tables are numbers of rows.
    """

    name: str
    kind: Kind
    before: Any
    after: Any


@dataclass(frozen=True)
class CriterionChange:
    """A criterion of a claim: value, passed, threshold and compared_with in both runs; empty if a run lacks it."""

    gate: str
    criterion: str
    before: Row
    after: Row
    flipped: bool
    sentence: str


@dataclass(frozen=True)
class ClaimChange:
    """A claim of both runs that differs."""

    claim: Claim
    """Values of the claim's key columns."""
    label_before: str
    label_after: str
    verdict_changed: bool
    reason_before: str
    reason_after: str
    """The sentence with which the analysis explains the label."""
    gates: Mapping[str, bool]
    """Gates that only one run passes, by letter: whether the second does."""
    score_before: float | None
    score_after: float | None
    """The conventional score, if the analysis has one."""
    criteria: tuple[CriterionChange, ...]
    """Those whose pass changed, in the order of the gates, then those whose numbers changed most."""
    n_criteria_changed: int
    """All criteria that differ."""
    sentence: str
    """The change in words."""


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
class Comparison:
    """The differences between two runs, sorted by name.

    ``analyses`` are those of both runs; ``analyses_removed`` are only in the first run, ``analyses_added`` only in the
    second.
    """

    study_before: str
    study_after: str
    options: tuple[Change, ...]
    versions: tuple[Change, ...]
    inputs: tuple[Change, ...]
    tables: tuple[Change, ...]
    analyses_removed: tuple[str, ...]
    analyses_added: tuple[str, ...]
    analyses: tuple[AnalysisComparison, ...]

    @property
    def identical(self) -> bool:
        """Whether nothing differs."""
        return self.study_before == self.study_after and not any(
            (self.options, self.versions, self.inputs, self.tables)
        )

    def as_json(self) -> dict[str, Any]:
        """The comparison as plain JSON values."""
        return {"identical": self.identical, **asdict(self)}

    def __str__(self) -> str:
        return comparison_text(self)


def diff_runs(before: str | Path | StoredRun, after: str | Path | StoredRun) -> Comparison:
    """Differences between two finished runs, of the same study or not.

    Each is the folder of a run, an archive of `lpact.archive.export_run`, or an open run.
    """
    from lpact.archive.zipped import opened_run

    with ExitStack() as stack:
        first, second = runs = [
            run if isinstance(run, StoredRun) else StoredRun(stack.enter_context(opened_run(run)))
            for run in (before, after)
        ]
        options = option_changes(first.manifest.config, second.manifest.config)
        old, new = map(_sides, runs)
        return Comparison(
            study_before=first.manifest.study,
            study_after=second.manifest.study,
            options=options,
            versions=_changes(*(_versions(run.manifest) for run in runs)),
            inputs=_changes(*({f"{f.dataset}: {f.path}": f.sha256 for f in run.manifest.inputs} for run in runs)),
            tables=tuple(_table_changes(first, second)),
            analyses_removed=tuple(name for name in old if name not in new),
            analyses_added=tuple(name for name in new if name not in old),
            analyses=tuple(_compare_analysis(old[name], new[name], options) for name in old if name in new),
        )


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Values that differ, sorted by name; 1 and true differ, 1 and 1.0 do not."""
    changes = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if name not in before or name not in after:
            changes.append(Change(name, "removed" if name in before else "added", old, new))
        elif old != new or isinstance(old, bool) != isinstance(new, bool):
            changes.append(Change(name, "changed", old, new))
    return tuple(changes)


def option_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Options that differ, by dotted path. A missing option differs from one that is null."""
    return _changes(dict(flat_options(before)), dict(flat_options(after)))


def _versions(manifest: Manifest) -> dict[str, str]:
    return {
        **manifest.versions,
        **{f"plugin {name}": "in use" for name in manifest.plugins},
        **{f"{name} (code)": code[:16] for name, code in manifest.plugin_code.items()},
        "lpact": manifest.lpact_version,
        "lpact (code)": manifest.lpact_code,
    }


def _table_changes(before: StoredRun, after: StoredRun) -> Iterator[Change]:
    """Tables of one run only, or with other content, with their numbers of rows."""
    checksums = (
        {f.path.removesuffix(".parquet"): f.sha256 for f in run.manifest.outputs if f.path.endswith(".parquet")}
        for run in (before, after)
    )
    for change in _changes(*checksums):
        name, sides = change.name, ((before, change.before), (after, change.after))
        n_rows = (None if checksum is None else run.n_rows(name) for run, checksum in sides)
        yield Change(name, change.kind, *n_rows)


_Side = tuple[Analysis, StoredRun, dict[str, str]]
"""One analysis of one of two runs, and its outcomes by gate profile."""


def _sides(run: StoredRun) -> dict[str, _Side]:
    sides = {}
    for name, analysis in analyses_of(run.config).items():
        outcomes = analysis.conclude(Material(RunTables(run), run.config)).outcomes
        sides[name] = (analysis, run, {own.profile: own.code for own in outcomes})
    return sides


def _compare_analysis(before: _Side, after: _Side, options: Sequence[Change]) -> AnalysisComparison:
    """What the claims of one analysis differ in, under each of its profiles."""
    claims = before[0].claims
    old, new = (_claim_rows(side, "").keys() for side in (before, after))
    return AnalysisComparison(
        analysis=before[0].name,
        key=claims.key,
        removed=tuple(sorted(old - new, key=str)),
        added=tuple(sorted(new - old, key=str)),
        profiles=tuple(_compare_profile(before, after, own, options) for own in claims.profiles or ("",)),
    )


def _claim_rows(side: _Side, profile: str) -> dict[Claim, Row]:
    """Rows of the claim table under one profile, by claim; an empty profile means all."""
    analysis, run, _ = side
    rows = run.table(analysis.claims.table.name)
    rows = rows.filter(gate_profile=profile) if profile else rows
    return {tuple(row[k] for k in analysis.claims.key): row for row in rows.iter_rows(named=True)}


def _criteria(side: _Side, profile: str) -> dict[Claim, dict[tuple[str, str], Row]]:
    """Criteria by gate and name, in the order of the gates, for every claim."""
    analysis, run, _ = side
    claims = analysis.claims
    if claims.evidence is None:
        return {}
    rows = run.table(claims.evidence.name)
    rows = rows.filter(gate_profile=profile) if profile else rows
    order = [c for c in ("gate_order", "criterion_order") if c in rows.columns]
    found: dict[Claim, dict[tuple[str, str], Row]] = {}
    for row in rows.sort(*claims.key, *order).iter_rows(named=True):
        values = {name: row.get(name) for name in ("value", "passed", "threshold", "compared_with")}
        claim = tuple(row[name] for name in claims.key)
        found.setdefault(claim, {})[row["gate"], row["criterion"]] = values
    return found


def _compare_profile(before: _Side, after: _Side, profile: str, options: Sequence[Change]) -> ProfileComparison:
    old, new = (_claim_rows(side, profile) for side in (before, after))
    old_criteria, new_criteria = (_criteria(side, profile) for side in (before, after))
    common = [claim for claim in old if claim in new]
    changes = []
    for claim in common:
        then, now = old_criteria.get(claim, {}), new_criteria.get(claim, {})
        criteria = [
            _criterion_change(*key, then.get(key, {}), now.get(key, {}))
            for key in dict.fromkeys((*then, *now))
            if then.get(key) != now.get(key)
        ]
        if criteria or old[claim] != new[claim]:
            rows = old[claim], new[claim]
            changes.append(_claim_change(after[0].claims, claim, rows, criteria, options))
    return ProfileComparison(
        profile=profile,
        outcome_before=before[2].get(profile),
        outcome_after=after[2].get(profile),
        n_common=len(common),
        n_unchanged=len(common) - len(changes),
        n_same_verdict=len(common) - sum(c.verdict_changed or bool(c.gates) for c in changes),
        claims=tuple(changes),
    )


def _criterion_change(gate: str, criterion: str, before: Row, after: Row) -> CriterionChange:
    """A criterion before and after: its number, what that is compared with, its threshold, and whether it passes."""

    def pair(name: str) -> tuple[Any, Any]:
        return before.get(name), after.get(name)

    words = {None: "none", True: "yes", False: "no"}
    parts = [
        (criterion, *number_pair(*pair("value"))),
        ("against", *(own or "" for own in pair("compared_with"))),
        ("threshold", *number_pair(*pair("threshold"))),
        ("passes", *(words[own] for own in pair("passed"))),
    ]
    texts = [
        f"{what} {old}" if old == new else f"{what} {old or 'nothing'} → {new or 'nothing'}"
        for what, old, new in parts
        if old or new
    ]
    flipped = before.get("passed") != after.get("passed")
    return CriterionChange(gate, criterion, before, after, flipped, f"{', '.join(texts)}.")


def number_pair(before: float | None, after: float | None) -> tuple[str, str]:
    """Two numbers with three significant digits, or as many as distinguish them."""
    if before is None or after is None or before == after:
        old, new = ("none" if value is None else f"{value:.3g}" for value in (before, after))
        return old, new
    shown = ((f"{before:.{digits}g}", f"{after:.{digits}g}") for digits in range(3, 18))
    return next((pair for pair in shown if pair[0] != pair[1]), (repr(before), repr(after)))


def _claim_change(
    table: ClaimTable,
    claim: Claim,
    rows: tuple[Row, Row],
    criteria: list[CriterionChange],
    options: Sequence[Change],
) -> ClaimChange:
    before, after = rows
    gates = {letter: after[column] for letter, column in table.gates.items() if before[column] != after[column]}
    flipped = [own for own in criteria if own.flipped]
    rest = sorted((own for own in criteria if not own.flipped), key=_relative_size, reverse=True)
    shown = (*flipped, *rest[:MOST_NUMBERS])
    return ClaimChange(
        claim=claim,
        label_before=before["label"],
        label_after=after["label"],
        verdict_changed=before["label"] != after["label"],
        reason_before=before["reason"],
        reason_after=after["reason"],
        gates=gates,
        score_before=before.get(table.score),
        score_after=after.get(table.score),
        criteria=shown,
        n_criteria_changed=len(criteria),
        sentence=_sentence(before, after, gates, shown, options),
    )


def _relative_size(change: CriterionChange) -> float:
    """Relative change of a number, from 0 to 2; 2 if only one run has it."""
    before, after = change.before.get("value"), change.after.get("value")
    if before is None or after is None:
        return 0.0 if before == after else 2.0
    larger = max(abs(before), abs(after))
    return abs(after - before) / larger if larger else 0.0


def _sentence(
    before: Row,
    after: Row,
    gates: Mapping[str, bool],
    criteria: Sequence[CriterionChange],
    options: Sequence[Change],
) -> str:
    """A change in words: label, gates, the first criterion, and the reasons that the analysis gives."""
    changed = before["label"] != after["label"]
    parts = [
        f"The verdict changes from {before['label']} to {after['label']}"
        if changed
        else f"The verdict stays {after['label']}"
    ]
    parts += [f"gate {letter} {'now passes' if passes else 'no longer passes'}" for letter, passes in gates.items()]
    sentences = ["; ".join(parts) + ".", *(own.sentence for own in criteria[:1])]
    if changed or (not criteria and before["reason"] != after["reason"]):
        sentences += [f"Reason before: {before['reason']}", f"Reason now: {after['reason']}"]
    if changed and options and not any(own.flipped for own in criteria):
        sentences.append(f"Changed options: {', '.join(own.name for own in options)}.")
    return " ".join(sentences)


def comparison_text(comparison: Comparison, *, most: int | None = None) -> str:
    """The comparison in plain lines; of every list at most ``most`` entries, and the number of the others."""
    if comparison.identical:
        return f"{NOTHING}\n"
    first, second = plain(comparison.study_before), plain(comparison.study_after)
    lines = [f"Study {first}" if first == second else f"Study {first} → {second}"]

    def add(title: str, entries: Iterable[str]) -> None:
        if found := list(entries):
            left = [] if most is None or len(found) <= most else [f"… and {len(found) - most} more"]
            shown = (f"  {entry}" for entry in (*found[:most], *left))
            lines.extend(["", f"{title} ({len(found)})", *shown])

    for analysis in comparison.analyses:
        lines += ["", *(_outcome_text(analysis, profile) for profile in analysis.profiles)]
    add("Configuration", (_change_text(own, json.dumps) for own in comparison.options))
    add("Code and libraries", (_change_text(own) for own in comparison.versions))
    add("Inputs", (_change_text(own, lambda s: s[:_SHORT_SUM]) for own in comparison.inputs))
    add("Analyses only in the first run", comparison.analyses_removed)
    add("Analyses only in the second run", comparison.analyses_added)
    for analysis in comparison.analyses:
        for which, claims in (("first", analysis.removed), ("second", analysis.added)):
            add(f"{analysis.analysis}: claims only in the {which} run", map(_claim_text, claims))
        for profile in analysis.profiles:
            name = _name(analysis, profile)
            other = [c for c in profile.claims if c.verdict_changed or c.gates]
            numbers = [c for c in profile.claims if not (c.verdict_changed or c.gates)]
            add(f"{name}: other verdicts or gates", map(_claim_change_text, other))
            title = f"{name}: same verdict and gates, other numbers"
            add(title, map(_claim_change_text, numbers))
    rows = "{:,} rows".format
    add("Tables with other content", (_change_text(own, rows) for own in comparison.tables))
    return "\n".join(lines) + "\n"


def _name(analysis: AnalysisComparison, profile: ProfileComparison) -> str:
    return ", ".join(filter(None, (analysis.analysis, plain(profile.profile))))


def _outcome_text(analysis: AnalysisComparison, profile: ProfileComparison) -> str:
    before, after = (plain(own or "none") for own in (profile.outcome_before, profile.outcome_after))
    outcome = f"outcome {after}" if before == after else f"outcome {before} → {after}"
    return (
        f"{_name(analysis, profile)}: {outcome}; {counted(profile.n_common, 'common claim')}, "
        f"{profile.n_same_verdict} with the same verdict and gates, {profile.n_unchanged} without any difference"
    )


def _change_text(change: Change, shown: Any = str) -> str:
    if change.kind == "changed":
        text = f"{shown(change.before)} → {shown(change.after)}"
    else:
        value = change.after if change.kind == "added" else change.before
        text = f"{shown(value)}, only in the {'second' if change.kind == 'added' else 'first'} run"
    return plain(f"{change.name}: {text}")


def _claim_change_text(change: ClaimChange) -> str:
    score = ""
    if change.score_before != change.score_after:
        score = " Score {} → {}.".format(*number_pair(change.score_before, change.score_after))
    return f"{_claim_text(change.claim)}: {plain(change.sentence)}{score}"


def _claim_text(claim: Claim) -> str:
    return "/".join(plain(part) for part in claim)
