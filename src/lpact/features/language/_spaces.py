"""What stands after each word of a words table."""

from __future__ import annotations

import polars as pl

from lpact.errors import StimulusError

_YES = frozenset(("yes", "true", "1"))
_NO = frozenset(("no", "false", "0"))


def separators(words: pl.DataFrame, *, joiner: str, where: str) -> list[str]:
    """Return the text after every word, [n words].

    It is ``joiner``, but nothing after ``space_after = no`` or ``SpaceAfter=No`` in ``misc``; after
    ``space_after = yes`` it is the joiner, or a space where the joiner is empty.
    """
    after = [joiner] * words.height
    if "misc" in words.columns:
        for row, cell in enumerate(words["misc"].cast(pl.String).to_list()):
            if cell is not None and "SpaceAfter=No" in cell.split("|"):
                after[row] = ""
    if "space_after" in words.columns:
        for row, cell in enumerate(words["space_after"].cast(pl.String).to_list()):
            if cell is None or not cell.strip():
                continue
            value = cell.strip().lower()
            if value not in _YES | _NO:
                raise StimulusError(
                    "'space_after' of a word is neither yes nor no",
                    where=f"{where}, column 'space_after', row {row + 1}, word {words['word'][row]!r}",
                    got=repr(cell),
                    expected="yes, no, true, false, 1, 0, or nothing",
                    remedy="mend the cell, or leave the column out",
                )
            after[row] = "" if value in _NO else joiner or " "
    return after
