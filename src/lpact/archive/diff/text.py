"""A comparison as plain text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, cast

from lpact.analyses.lpact.claim_story.model import Claim
from lpact.analyses.lpact.gates.wording import count
from lpact.archive.diff.model import (
    ClaimChange,
    Comparison,
    InputChange,
    Json,
    OptionChange,
    ProfileComparison,
)
from lpact.archive.diff.wording import pair

NOTHING = "Nothing differs: configuration, versions, inputs and every number are the same."
_SHORT_SUM = 12


def comparison_json(comparison: Comparison) -> dict[str, Json]:
    """The comparison as plain JSON values, together with what its properties say."""
    return {name: _json(value) for name, value in _members(comparison)}


def _members(part: Any) -> list[tuple[str, Any]]:
    """Fields of a part, then its properties."""
    names = [field.name for field in fields(part)]
    derived = [name for name, member in vars(type(part)).items() if isinstance(member, property)]
    return [(name, getattr(part, name)) for name in (*names, *derived)]


def _json(value: Any) -> Json:
    if is_dataclass(value):
        return {name: _json(inner) for name, inner in _members(value)}
    if isinstance(value, tuple | list):
        return [_json(inner) for inner in value]
    if isinstance(value, dict):
        return {str(key): _json(inner) for key, inner in value.items()}
    return cast("Json", value)


def comparison_text(comparison: Comparison, *, most: int | None = None) -> str:
    """The comparison in plain lines; of every list at most ``most`` entries, and how many more there are.

    Names from data stay on their line: what is not printable is shown as its escape.
    """
    if comparison.identical:
        return f"{NOTHING}\n"
    first, second = plain(comparison.study_before), plain(comparison.study_after)
    lines = [f"Study {first}" if first == second else f"Study {first} → {second}"]
    for profile in comparison.profiles:
        lines += ["", *_outcome(profile)]
    lines += _section("Configuration", map(_option, comparison.options), most)
    lines += _section(
        "Code and libraries",
        (
            f"{plain(v.name)}: {_or_none(v.before)} → {_or_none(v.after)}"
            for v in comparison.versions
        ),
        most,
    )
    lines += _section("Inputs", map(_input, comparison.inputs), most)
    lines += _section("Claims only in the first run", map(_claim, comparison.claims_removed), most)
    lines += _section("Claims only in the second run", map(_claim, comparison.claims_added), most)
    for profile in comparison.profiles:
        lines += _claims(profile, most)
    tables = (f"{t.table} ({t.kind})" for t in comparison.tables)
    lines += _section("Tables whose content differs", tables, most)
    return "\n".join(lines) + "\n"


def plain(text: object) -> str:
    """A string on one line: what is not printable is shown as its escape."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text)
    )


def _section(title: str, entries: Iterable[str], most: int | None) -> list[str]:
    found = list(entries)
    if not found:
        return []
    shown = found if most is None else found[:most]
    left = len(found) - len(shown)
    more = [f"  … and {left} more"] if left else []
    return ["", f"{title} ({len(found)})", *(f"  {entry}" for entry in shown), *more]


def _outcome(profile: ProfileComparison) -> list[str]:
    before, after = (_or_none(o) for o in (profile.outcome_before, profile.outcome_after))
    outcome = f"outcome {after}" if before == after else f"outcome {before} → {after}"
    return [
        f"{plain(profile.gate_profile)}: {outcome}; {count(profile.n_common, 'common claim')}, "
        f"{profile.n_same_verdict} with the same verdict and gates, {profile.n_unchanged} without any difference"
    ]


def _claims(profile: ProfileComparison, most: int | None) -> list[str]:
    """Claims with another verdict or gate first, then those in which only numbers differ."""
    name = plain(profile.gate_profile)
    other = [c for c in profile.claims if c.verdict_changed or c.gates]
    numbers = [c for c in profile.claims if not (c.verdict_changed or c.gates)]
    return [
        *_section(f"{name}: other verdicts or gates", map(_change, other), most),
        *_section(f"{name}: same verdict and gates, other numbers", map(_change, numbers), most),
    ]


def _change(change: ClaimChange) -> str:
    before, after = change.raw_score_before, change.raw_score_after
    score = ""
    if before != after:
        first, second = (
            pair(before, after)
            if before is not None and after is not None
            else (_or_none(before), _or_none(after))
        )
        score = f" Raw score {first} → {second}."
    return f"{_claim(change.claim)}: {plain(change.sentence)}{score}"


def _claim(claim: Claim) -> str:
    return "/".join(plain(part) for part in claim)


def _or_none(value: object) -> str:
    return "none" if value is None else plain(value)


def _option(change: OptionChange) -> str:
    before, after = (
        plain(json.dumps(v, ensure_ascii=False)) for v in (change.before, change.after)
    )
    said = {
        "changed": f"{before} → {after}",
        "added": f"added, {after}",
        "removed": f"removed, was {before}",
    }
    return f"{plain(change.path)}: {said[change.kind]}"


def _input(change: InputChange) -> str:
    where = f"{plain(change.dataset)}: {plain(change.path)}"
    sums: Sequence[str] = [(s or "")[:_SHORT_SUM] for s in (change.before, change.after)]
    return (
        f"{where} ({change.kind})"
        if change.kind != "changed"
        else f"{where} ({sums[0]} → {sums[1]})"
    )
