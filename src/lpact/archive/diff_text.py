"""A comparison of two runs as plain text."""

from __future__ import annotations

import json
from collections.abc import Iterable

from lpact.archive.diff import (
    AnalysisComparison,
    Claim,
    ClaimChange,
    Comparison,
    InputChange,
    OptionChange,
    ProfileComparison,
    TableChange,
)
from lpact.archive.problems import number_pair
from lpact.wording import counted, plain

NOTHING = "Nothing differs: configuration, versions, inputs and every number are the same."
_SHORT_SUM = 12


def comparison_text(comparison: Comparison, *, most: int | None = None) -> str:
    """The comparison in plain lines; of every list at most ``most`` entries, and the number of the others."""
    if comparison.identical:
        return f"{NOTHING}\n"
    first, second = plain(comparison.study_before), plain(comparison.study_after)
    lines = [f"Study {first}" if first == second else f"Study {first} → {second}"]
    for analysis in comparison.analyses:
        lines += ["", *(_outcome(analysis, profile) for profile in analysis.profiles)]
    lines += _section("Configuration", map(_option, comparison.options), most)
    versions = (
        f"{plain(v.name)}: {_or_none(v.before)} → {_or_none(v.after)}" for v in comparison.versions
    )
    lines += _section("Code and libraries", versions, most)
    lines += _section("Inputs", map(_input, comparison.inputs), most)
    lines += _section("Analyses only in the first run", comparison.analyses_removed, most)
    lines += _section("Analyses only in the second run", comparison.analyses_added, most)
    for analysis in comparison.analyses:
        lines += _section(
            f"{analysis.analysis}: claims only in the first run",
            map(_claim, analysis.removed),
            most,
        )
        lines += _section(
            f"{analysis.analysis}: claims only in the second run", map(_claim, analysis.added), most
        )
        for profile in analysis.profiles:
            name = _name(analysis, profile)
            other = [c for c in profile.claims if c.verdict_changed or c.gates]
            numbers = [c for c in profile.claims if not (c.verdict_changed or c.gates)]
            lines += _section(f"{name}: other verdicts or gates", map(_change, other), most)
            title = f"{name}: same verdict and gates, other numbers"
            lines += _section(title, map(_change, numbers), most)
    lines += _section("Tables with other content", map(_table, comparison.tables), most)
    return "\n".join(lines) + "\n"


def _section(title: str, entries: Iterable[str], most: int | None) -> list[str]:
    found = list(entries)
    if not found:
        return []
    shown = found if most is None else found[:most]
    left = len(found) - len(shown)
    more = [f"  … and {left} more"] if left else []
    return ["", f"{title} ({len(found)})", *(f"  {entry}" for entry in shown), *more]


def _name(analysis: AnalysisComparison, profile: ProfileComparison) -> str:
    return (
        f"{analysis.analysis}, {plain(profile.profile)}" if profile.profile else analysis.analysis
    )


def _outcome(analysis: AnalysisComparison, profile: ProfileComparison) -> str:
    before, after = _or_none(profile.outcome_before), _or_none(profile.outcome_after)
    outcome = f"outcome {after}" if before == after else f"outcome {before} → {after}"
    return (
        f"{_name(analysis, profile)}: {outcome}; {counted(profile.n_common, 'common claim')}, "
        f"{profile.n_same_verdict} with the same verdict and gates, {profile.n_unchanged} without any difference"
    )


def _change(change: ClaimChange) -> str:
    score = ""
    if change.score_before != change.score_after:
        score = " Score {} → {}.".format(*number_pair(change.score_before, change.score_after))
    return f"{_claim(change.claim)}: {plain(change.sentence)}{score}"


def _claim(claim: Claim) -> str:
    return "/".join(plain(part) for part in claim)


def _or_none(value: object) -> str:
    return "none" if value is None else plain(value)


def _option(change: OptionChange) -> str:
    before, after = (
        plain(json.dumps(v, ensure_ascii=False)) for v in (change.before, change.after)
    )
    verbs = {
        "changed": f"{before} → {after}",
        "added": f"added, {after}",
        "removed": f"removed, was {before}",
    }
    return f"{plain(change.path)}: {verbs[change.kind]}"


def _input(change: InputChange) -> str:
    where = f"{plain(change.dataset)}: {plain(change.path)}"
    if change.kind != "changed":
        return f"{where} ({change.kind})"
    before, after = ((own or "")[:_SHORT_SUM] for own in (change.before, change.after))
    return f"{where} ({before} → {after})"


def _table(change: TableChange) -> str:
    if not change.only_before and not change.only_after:
        return f"{change.table} ({change.kind})"
    return (
        f"{change.table}: {change.rows_before:,} → {change.rows_after:,} rows; "
        f"{change.only_before:,} only in the first run, {change.only_after:,} only in the second"
    )
