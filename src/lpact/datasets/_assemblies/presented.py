"""Words tables of presentations without a clock of their own: times are nominal, and only their order counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from lpact.codes import Reason
from lpact.datasets._finding import Finding
from lpact.errors import StimulusError

PLAIN_COLUMNS = ("word", "onset_s", "offset_s", "sentence_id", "story_id")


def grouped(keys: Sequence[str], order: Sequence[int]) -> list[int]:
    """Return the indices in ``order`` with equal keys side by side, groups as they first appear."""
    groups: dict[str, list[int]] = {}
    for index in order:
        groups.setdefault(keys[index], []).append(index)
    return [index for group in groups.values() for index in group]


def reordered(rows: Sequence[int], *, where: str) -> list[Finding]:
    """Return a note if presentations do not stand in the order of the file."""
    moved = [row for row, expected in zip(rows, sorted(rows), strict=True) if row != expected]
    if not moved:
        return []
    return [
        Finding(
            field="presentation",
            reason=Reason.SOURCE_ROWS_SORTED,
            severity="note",
            where=where,
            found=f"{len(moved)} of {len(rows)} presentations at another place in the file",
            expected="passages in consecutive rows, in the order in which they are read",
            remedy="none needed: responses are in the same order",
        )
    ]


def sentence_words(
    sentences: Sequence[str],
    stories: Sequence[str],
    onsets_s: Sequence[float],
    *,
    shown_s: float,
    where: str,
    columns: Mapping[str, Sequence[str]] | None = None,
) -> pl.DataFrame:
    """Return a words table with one sentence per presentation, split at white space.

    Sentence k is shown at ``onsets_s[k]`` for ``shown_s``; its n words share that time equally. Its ``sentence_id`` is
    k. ``columns`` are repeated for every word of the sentence; numbers stay numbers.
    """
    data: dict[str, list[object]] = {name: [] for name in PLAIN_COLUMNS}
    of_word: list[int] = []
    for index, (sentence, story, onset_s) in enumerate(
        zip(sentences, stories, onsets_s, strict=True)
    ):
        words = sentence.split()
        if not words:
            raise StimulusError(
                "a presentation has no words",
                where=f"{where}, presentation {index} (from 0)",
                got=repr(sentence),
                expected="the text of a sentence",
                remedy="fill in the text, or leave the presentation out",
            )
        step_s = shown_s / len(words)
        data["word"] += words
        data["onset_s"] += [onset_s + step_s * i for i in range(len(words))]
        data["offset_s"] += [onset_s + step_s * (i + 1) for i in range(len(words))]
        data["sentence_id"] += [index] * len(words)
        data["story_id"] += [story] * len(words)
        of_word += [index] * len(words)
    table = plain_table(data)
    extra = {name: annotation(values) for name, values in (columns or {}).items()}
    return table.with_columns(values.gather(of_word).alias(name) for name, values in extra.items())


def plain_table(data: Mapping[str, Sequence[object]]) -> pl.DataFrame:
    """Return the columns that every words table has, with their types."""
    return pl.DataFrame(
        dict(data),
        schema={
            "word": pl.String,
            "onset_s": pl.Float64,
            "offset_s": pl.Float64,
            "sentence_id": pl.Int64,
            "story_id": pl.String,
        },
    )


def annotation(cells: Sequence[str]) -> pl.Series:
    """Return texts as whole numbers or numbers where all of them are; empty ones are null."""
    texts = pl.Series([cell or None for cell in cells], dtype=pl.String)
    for kind in (pl.Int64, pl.Float64):
        numbers = texts.cast(kind, strict=False)
        if numbers.null_count() == texts.null_count() < len(texts):
            return numbers
    return texts
