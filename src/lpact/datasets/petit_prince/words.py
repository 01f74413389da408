"""Words of Le Petit Prince: the annotation tables, their known faults, and the sentences that the parses give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.sentences import sentences_by_pauses
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile
from lpact.datasets._finding import Finding
from lpact.datasets.petit_prince.parse import Token, read_dependencies, read_tree_lengths, without
from lpact.errors import StimulusError

N_SECTIONS = 9
REQUIRED = ("word", "onset", "offset", "section")
NUMBERS = {
    "logfreq": "log_frequency",
    "top_down": "top_down",
    "bottom_up": "bottom_up",
    "left_corner": "left_corner",
}
TEXTS = {"lemma": "lemma", "pos": "upos"}
SPREADSHEET = {"TRUE": "true", "FALSE": "false"}
"""Words that a spreadsheet took for truth values."""


@dataclass(frozen=True)
class Broken:
    """A row that is known to be broken: the word at ``row`` and the annotation at ``annotation`` (from 0) go.

    They are two rows where words and annotations are one row apart between them. ``word`` and ``lemma`` must stand
    there, so that a corrected release of the table is left alone.
    """

    row: int
    word: str
    annotation: int
    lemma: str
    why: str


BROKEN = {
    "EN": (
        Broken(3919, "i.", 3919, "i", "a repeated line"),
        Broken(
            6775,
            "and",
            6765,
            "phew",
            "a word too many, with annotations one row behind from row 6765 on",
        ),
        Broken(6781, "and", 6781, "and", "a word that is not in the audio's alignment"),
    )
}


def annotation_paths(language: str) -> dict[str, str]:
    """Where words, trees and dependencies of a language lie."""
    root = f"annotation/{language}/lpp{language}_"
    return {
        "words": f"{root}word_information.csv",
        "trees": f"{root}tree.csv",
        "dependencies": f"{root}dependency.csv",
    }


@dataclass(frozen=True)
class Section:
    """Words of one section with what was found in its rows."""

    words: pl.DataFrame
    findings: tuple[Finding, ...]


class Annotation:
    """The annotation of one language, all sections."""

    def __init__(self, folder: SourceFolder, language: str, pause_s: float) -> None:
        self._folder = folder
        self._language = language
        self._pause_s = pause_s
        names = annotation_paths(language)
        self.path = folder.file(names["words"], StimulusError)
        self._trees = folder.optional(names["trees"], StimulusError)
        self._dependencies = folder.optional(names["dependencies"], StimulusError)
        self._table = CsvFile(self.path, StimulusError)
        self._table.require(REQUIRED)
        self._section = self._table.integers("section")
        for row, section in enumerate(self._section):
            if not 1 <= section <= N_SECTIONS:
                raise self._table.wrong("section", row, f"a section from 1 to {N_SECTIONS}")
        self._gone, self._blank = self._rows_to_leave()
        self._sentence, self._tokens, self._parse_note = self._sentences()
        self._onset_s, self._offset_s = self._table.numbers("onset"), self._table.numbers("offset")
        readers: tuple[tuple[dict[str, str], Callable[[str], Sequence[Any]]], ...] = (
            (TEXTS, self._table.cells),
            (NUMBERS, self._table.numbers_or_nan),
        )
        self._others = {
            name: read(source)
            for columns, read in readers
            for source, name in columns.items()
            if source in self._table.columns
        }

    def paths(self) -> list[Path]:
        """Return the files that are read."""
        return [p for p in (self.path, self._trees, self._dependencies) if p is not None]

    def _rows_to_leave(self) -> tuple[list[Broken], list[int]]:
        words = self._table.cells("word")
        has_lemma = "lemma" in self._table.columns
        lemmas = self._table.cells("lemma") if has_lemma else words
        gone = [
            broken
            for broken in BROKEN.get(self._language, ())
            if broken.row < len(words)
            and words[broken.row] == broken.word
            and lemmas[broken.annotation] == broken.lemma
        ]
        known = {broken.row for broken in gone}
        return gone, [i for i, word in enumerate(words) if not word.strip() and i not in known]

    def _sentences(self) -> tuple[list[int] | None, list[list[Token]] | None, str]:
        """Return the sentence of every annotation row and its parse, where their counts fit the table."""
        n_rows = self._table.n_rows
        lengths: list[int] | None = None
        tokens: list[list[Token]] | None = None
        note = ""
        if self._trees is not None:
            lengths = read_tree_lengths(self._trees)
            if sum(lengths) != n_rows:
                note = f"{self._trees.name} has {sum(lengths)} words, {self.path.name} {n_rows}"
                lengths = None
        if self._dependencies is not None:
            tokens = read_dependencies(self._dependencies)
            of_tokens = [len(sentence) for sentence in tokens]
            if sum(of_tokens) != n_rows or (lengths is not None and of_tokens != lengths):
                note = f"{self._dependencies.name} has {sum(of_tokens)} words in {len(of_tokens)} sentences, "
                note += f"which is not what {self.path.name} or the trees have"
                tokens = None
            elif lengths is None:
                lengths = of_tokens
        if lengths is None:
            return None, None, note or "neither trees nor dependencies are there"
        return np.repeat(np.arange(len(lengths)), lengths).tolist(), tokens, note

    def section(self, number: int) -> Section:
        """Return the words of one section; times are those of its audio."""
        rows = [i for i, section in enumerate(self._section) if section == number]
        if not rows:
            raise StimulusError(
                f"the words of section {number} are missing",
                where=f"{self.path}, column 'section'",
                got=f"sections {sorted(set(self._section))}",
                expected=f"sections 1 to {N_SECTIONS}",
                remedy="download the table again",
            )
        findings: list[Finding] = []
        gone = [broken for broken in self._gone if broken.row in rows]
        blank = [row for row in self._blank if row in rows]
        dropped, unnoted = {b.row for b in gone} | set(blank), {b.annotation for b in gone}
        kept = [row for row in rows if row not in dropped]
        noted = [row for row in rows if row not in unnoted and row not in blank]
        words = self._words(kept, rows, blank, findings)
        words["sentence_id"] = self._sentence_ids(noted, words, findings)
        words["story_id"] = [f"section{number}"] * len(kept)
        words.update({name: [cells[row] for row in noted] for name, cells in self._others.items()})
        if self._tokens is not None:
            words["head"], words["deprel"] = self._heads(rows, noted, findings)
        if gone:
            found = "; ".join(f"row {b.row} ({b.word!r}): {b.why}" for b in gone)
            findings.append(self._finding("word", Reason.SOURCE_ROWS_LEFT_OUT, "excluded", found))
        text = (pl.String, ["word", "story_id", "lemma", "upos", "deprel"])
        schema = {name: text[0] for name in text[1] if name in words}
        return Section(pl.DataFrame(words, schema_overrides=schema), tuple(findings))

    def _words(
        self, kept: list[int], rows: list[int], blank: list[int], findings: list[Finding]
    ) -> dict[str, Any]:
        cells = self._table.cells("word")
        offset_s = list(self._offset_s)
        for row in reversed(blank):
            if row - 1 in rows:
                offset_s[row - 1] = offset_s[row]
        if blank:
            found = f"{len(blank)} row(s) without a word, the second half of a contraction; first: row {blank[0]}"
            found += f", after {cells[blank[0] - 1]!r}" if blank[0] else ""
            findings.append(self._finding("word", Reason.SOURCE_ROWS_MENDED, "note", found))
        spelt = [row for row in kept if cells[row] in SPREADSHEET]
        if spelt:
            found = f"{len(spelt)} word(s) that a spreadsheet capitalised ({cells[spelt[0]]!r}, row {spelt[0]})"
            findings.append(self._finding("word", Reason.SOURCE_ROWS_MENDED, "note", found))
        return {
            "word": [SPREADSHEET.get(cells[row], cells[row]) for row in kept],
            "onset_s": [self._onset_s[row] for row in kept],
            "offset_s": [offset_s[row] for row in kept],
        }

    def _sentence_ids(
        self, noted: list[int], words: dict[str, Any], findings: list[Finding]
    ) -> list[int]:
        if self._sentence is not None:
            return [self._sentence[row] for row in noted]
        reason = Reason.SENTENCES_BY_RULE
        findings.append(self._finding("sentence_id", reason, "note", self._parse_note))
        onsets, offsets = words["onset_s"], words["offset_s"]
        by_pause = sentences_by_pauses(onsets, offsets, [""] * len(onsets), self._pause_s)
        return [int(number) for number in by_pause]

    def _heads(
        self, rows: list[int], noted: list[int], findings: list[Finding]
    ) -> tuple[list[int], list[str]]:
        assert self._sentence is not None
        assert self._tokens is not None
        heads: list[int] = []
        relations: list[str] = []
        n_several = n_parted = 0
        keep = set(noted)
        starts = np.cumsum([0, *map(len, self._tokens)])
        for sentence in sorted({self._sentence[row] for row in rows}):
            tokens = self._tokens[sentence]
            first = starts[sentence]
            kept = without(tokens, [i for i in range(len(tokens)) if first + i not in keep])
            heads += [token.head for token in kept]
            relations += [token.relation for token in kept]
            n_several += sum(token.n_heads > 1 for token in kept)
            n_parted += sum(token.parted for token in kept)
        if n_several or n_parted:
            found = f"{n_several} word(s) with several heads, of which one tree is kept; {n_parted} word(s) that the "
            found += "parser took for a part of the word before"
            findings.append(self._finding("head", Reason.SOURCE_ROWS_MENDED, "note", found))
        return heads, relations

    def _finding(self, field: str, reason: Reason, severity: Any, found: str) -> Finding:
        expected = {
            "word": "one word per row, as it is spoken",
            "sentence_id": "parses with as many words as the table has rows",
            "head": "one head per word",
        }
        remedy = {
            Reason.SOURCE_ROWS_LEFT_OUT: "the rows are left out; words below them in the parse go to their heads",
            Reason.SOURCE_ROWS_MENDED: "corrected: rows without a word end the word before, truth values are "
            "written small, a conjunct keeps its first conjunct as head, and parted words are 'dep' of the first part",
            Reason.SENTENCES_BY_RULE: "a sentence begins after a pause; add the parses of this table's release",
        }
        return Finding(
            field=field,
            reason=reason,
            severity=severity,
            where=self._folder.where(self.path),
            found=found,
            expected=expected[field],
            remedy=remedy[reason],
        )
