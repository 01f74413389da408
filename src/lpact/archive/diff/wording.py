"""The comparison of two runs in words."""

from __future__ import annotations

from lpact.archive.diff.model import CriterionChange

_DIGITS = range(3, 18)


def pair(before: float, after: float) -> tuple[str, str]:
    """Two numbers with three significant digits, or as many as it takes to tell them apart."""
    for digits in _DIGITS:
        first, second = f"{before:.{digits}g}", f"{after:.{digits}g}"
        if first != second:
            return first, second
    return f"{before:.3g}", f"{after:.3g}"


def criterion_sentence(change: CriterionChange, relation: str) -> str:
    """What happened to a criterion: its number, its rival, its threshold, and whether it holds."""
    parts = [_number(change), _threshold(change), _passes(change, relation)]
    said = ", ".join(part for part in parts if part)
    return f"{change.criterion} {said}."


def _number(change: CriterionChange) -> str:
    if change.passed_before is None:
        return f"is asked only in the second run ({_value(change.after)}{_against(change.compared_after)})"
    if change.passed_after is None:
        return f"is asked only in the first run ({_value(change.before)}{_against(change.compared_before)})"
    if change.before is None and change.after is None:
        return "could not be computed in either run"
    if change.before is None:
        return f"could not be computed before and is {_value(change.after)}{_rivals(change)}"
    if change.after is None:
        return f"was {_value(change.before)}{_against(change.compared_before)} and could not be computed"
    if change.before == change.after:
        return f"stays {_value(change.after)}{_rivals(change)}"
    verb = "rose" if change.after > change.before else "fell"
    first, second = pair(change.before, change.after)
    return f"{verb} from {first} to {second}{_rivals(change)}"


def _value(value: float | None) -> str:
    return "missing" if value is None else f"{value:.3g}"


def _against(name: str) -> str:
    return f" against {name}" if name else ""


def _rivals(change: CriterionChange) -> str:
    if change.compared_before == change.compared_after or change.before is None:
        return _against(change.compared_after)
    if not change.compared_after:
        return f" (before against {change.compared_before})"
    before = change.compared_before or "nothing"
    return f" against {change.compared_after} (before against {before})"


def _threshold(change: CriterionChange) -> str:
    before, after = change.threshold_before, change.threshold_after
    if before is None or after is None or before == after:
        return ""
    first, second = pair(before, after)
    return f"the threshold moved from {first} to {second}"


def _passes(change: CriterionChange, relation: str) -> str:
    if not change.flipped or change.passed_before is None or change.passed_after is None:
        return ""
    threshold = change.threshold_after
    needs = "" if threshold is None else f" (needs {relation} {threshold:.3g})"
    return f"and {'now holds' if change.passed_after else 'no longer holds'}{needs}"
