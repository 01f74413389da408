"""What a parse of a words table is."""

from __future__ import annotations

from dataclasses import dataclass

from lpact.math.types import IntArray


@dataclass(frozen=True)
class WordParse:
    """Universal Dependencies of the words of a stimulus, [n_words] each.

    ``head`` is the row of each word's head in the words table, −1 for the root of a sentence. ``where`` names the
    columns or the pipeline that it comes from.
    """

    head: IntArray
    relation: tuple[str, ...]
    upos: tuple[str, ...] | None
    where: str
