"""Stories as columns."""

from __future__ import annotations

from dataclasses import dataclass

from lpact.math.types import FloatArray, IntArray


@dataclass(frozen=True)
class Prose:
    """Stories in order; all are [n_words].

    ``sentence`` and ``paragraph`` count from 0 and run on over stories. ``head`` is the place of a
    word's head in its sentence, from 1; 0 for the root. ``depth`` counts the embedded clauses around a
    word. ``person`` and ``place`` name who was mentioned last and where the scene is, once the word
    is known; empty before the first.
    """

    word: tuple[str, ...]
    story: IntArray
    sentence: IntArray
    paragraph: IntArray
    head: IntArray
    deprel: tuple[str, ...]
    upos: tuple[str, ...]
    bits: FloatArray
    depth: IntArray
    person: tuple[str, ...]
    place: tuple[str, ...]
