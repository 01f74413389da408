"""Names that have to be shorter than they are: they stay text in one line, and stay different where they can."""

from __future__ import annotations

from collections.abc import Iterable

_LETTER = 5.9
"""Mean width of a letter of a name at the base size, in pixels."""


def letters_in(room: float) -> int:
    """How many letters of the base size fit into ``room`` pixels."""
    return max(4, int(room / _LETTER))


def short(name: str, letters: int) -> str:
    """A name of at most so many letters, in one line; the middle of a longer one is left out: ends tell names apart."""
    line = " ".join(str(name).split())
    if len(line) <= letters:
        return line
    tail = max(letters - 1, 1) // 2
    return f"{line[: letters - 1 - tail]}…{line[len(line) - tail :]}"


def told_apart(names: Iterable[str], letters: int) -> dict[str, str]:
    """Short forms of several names: their middle is left out or, where two would be the same, their common beginning.

    Forms that cannot be told apart in so few letters are numbered.
    """
    all_names = list(dict.fromkeys(str(name) for name in names))
    forms = {name: short(name, letters) for name in all_names}
    if len(set(forms.values())) < len(all_names):
        begin = _n_common(all_names)
        forms = {name: f"…{short(name[begin:], letters - 1)}" for name in all_names}
    if len(set(forms.values())) < len(all_names):
        forms = {name: f"{i} {short(name, letters - 3)}" for i, name in enumerate(all_names, 1)}
    return forms


def _n_common(names: list[str]) -> int:
    """How many letters all names begin with."""
    first, last = min(names), max(names)
    pairs = zip(first, last, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), len(first))


def folded(name: str, wide: int, lines: int) -> list[str]:
    """A name in at most ``lines`` pieces of ``wide`` characters; where that is too little, its middle is left out."""
    wide = max(wide, 4)
    name = short(name, wide * max(lines, 1)) if len(name) > wide * max(lines, 1) else name
    return [name[i : i + wide] for i in range(0, len(name), wide)] or [""]
