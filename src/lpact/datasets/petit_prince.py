"""Reader of Le Petit Prince (OpenNeuro ds003643): an audiobook in nine sections, functional MRI, three languages.

docs/how-to/datasets/petit_prince.md shows the folder, and what is corrected in words and parses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._bids import entities
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import TextTable, invalid, read_text
from lpact.datasets._fmri import FmriDataset, FmriOptions, Scan, find_scan
from lpact.datasets._folder_dataset import sentences_by_pauses, words_table
from lpact.datasets.base import DatasetInfo, Findings, RecordingId, Stimulus
from lpact.datasets.catalogue import published
from lpact.errors import RecordingError, StimulusError

N_SECTIONS = 9
COLUMNS = {
    "lemma": "lemma",
    "pos": "upos",
    "logfreq": "log_frequency",
    "top_down": "top_down",
    "bottom_up": "bottom_up",
    "left_corner": "left_corner",
}
"""Columns of the annotation that are kept, and their names in the words table; the first two are texts."""

SPREADSHEET = {"TRUE": "true", "FALSE": "false"}
"""Words that a spreadsheet took for truth values."""


@dataclass(frozen=True)
class Broken:
    """A row that is known to be broken: the word at ``row`` and the annotation at ``annotation`` (from 0) go.

    They differ where words and annotations are one row apart between them. A table that has another ``word`` or
    ``lemma`` there is a corrected release, and is left alone.
    """

    row: int
    word: str
    annotation: int
    lemma: str
    why: str


BROKEN = {
    "EN": (
        Broken(3919, "i.", 3919, "i", "a repeated line"),
        Broken(6775, "and", 6765, "phew", "a word too many, with annotations one row behind from row 6765 on"),
        Broken(6781, "and", 6781, "and", "a word that is not in the audio's alignment"),
    )
}

_LEAF = re.compile(r"([^\s()]+)\s*\)")
_RELATION = re.compile(r"(\S+?)\((.+)-([0-9]+), (.+)-([0-9]+)\)")
_JOINED = "\u00a0"
"""Stands between words that the parser took for one."""


class PetitPrinceOptions(FmriOptions):
    """Options of the reader."""

    language: Literal["EN", "CN", "FR"] = "EN"
    """Language of the audiobook."""
    space: str = "MNIColin27"
    """Value of `space-` in file names."""
    audio_onset_s: float = 0.0
    """Seconds from the start of the first volume to the start of the audio."""


def _nine_runs(subject: str, paths: list[Path]) -> list[Path]:
    """Return a subject's runs in the order of their labels; raises unless there are nine."""
    labels = [entities(path)["run"] for path in paths]
    if len(set(labels)) == N_SECTIONS == len(labels) and all(x.isdecimal() for x in labels):
        return [path for _, path in sorted(zip(map(int, labels), paths, strict=True))]
    raise RecordingError(
        f"the subject '{subject}' does not have nine runs, so their sections are not known",
        where=str(paths[0].parent),
        got=f"{len(labels)} file(s) with run labels " + ", ".join(sorted(labels)),
        expected="nine runs with different numbers; sorted, they are sections 1 to 9",
        remedy="download all runs of the subject, or list others in the option subjects",
    )


class Annotation:
    """Words, sentences and parses of one language, all sections."""

    def __init__(self, folder: SourceFolder, language: str, pause_s: float) -> None:
        self._pause_s = pause_s
        root = f"annotation/{language}/lpp{language}_"
        self.path = folder.file(f"{root}word_information.csv", StimulusError)
        self._trees = folder.optional(f"{root}tree.csv", StimulusError)
        self._dependencies = folder.optional(f"{root}dependency.csv", StimulusError)
        self.paths = (self.path, self._trees, self._dependencies)
        table = TextTable(self.path, StimulusError)
        table.require(("word", "onset", "offset", "section"))
        self._words = table.cells("word")
        self._section = table.integers("section")
        for row, section in enumerate(self._section):
            if not 1 <= section <= N_SECTIONS:
                raise table.wrong("section", row, f"a section from 1 to {N_SECTIONS}")
        self._onset_s, self._offset_s = table.numbers("onset"), table.numbers("offset")
        self._columns: dict[str, Sequence[Any]] = {
            name: table.cells(column) if i < 2 else table.numbers_or_nan(column)
            for i, (column, name) in enumerate(COLUMNS.items())
            if column in table.columns
        }
        lemmas = self._columns.get("lemma", self._words)
        self._broken = [
            broken
            for broken in BROKEN.get(language, ())
            if broken.row < len(self._words)
            and (self._words[broken.row], lemmas[broken.annotation]) == (broken.word, broken.lemma)
        ]
        self._sentence, self._tokens, self._no_parse = self._sentences()

    def _sentences(self) -> tuple[list[int] | None, list[list[Token]] | None, str]:
        """Return the sentence of every annotation row and its parse, if they have as many words as the table."""
        n_rows, problem = len(self._words), "there are neither trees nor dependencies"
        for path in (self._dependencies, self._trees):
            if path is None:
                continue
            tokens = _read_dependencies(path) if path == self._dependencies else None
            lengths = _tree_lengths(path) if tokens is None else [len(one) for one in tokens]
            if sum(lengths) == n_rows:
                return np.repeat(np.arange(len(lengths)), lengths).tolist(), tokens, ""
            problem = f"{path.name} has {sum(lengths)} words, {self.path.name} {n_rows}"
        return None, None, problem

    def section(self, number: int, findings: Findings) -> pl.DataFrame:
        """Return the words of one section; times are those of its audio."""
        rows = [i for i, section in enumerate(self._section) if section == number]
        if not rows:
            found = f"sections {sorted(set(self._section))}, not {number}"
            expected = f"sections 1 to {N_SECTIONS}"
            raise invalid(f"{self.path}, column 'section'", found, expected, StimulusError)
        broken = [one for one in self._broken if one.row in rows]
        dropped = {one.row for one in broken}
        blank = [row for row in rows if not self._words[row].strip() and row not in dropped]
        kept = [row for row in rows if row not in dropped and row not in blank]
        unused = {*blank, *(one.annotation for one in broken)}
        annotated = [row for row in rows if row not in unused]
        self._note_rows(kept, blank, broken, findings)
        offset_s = list(self._offset_s)
        for row in reversed(blank):
            if row - 1 in rows:
                offset_s[row - 1] = offset_s[row]
        onsets, offsets = [self._onset_s[i] for i in kept], [offset_s[i] for i in kept]
        columns: dict[str, Any] = {name: [values[row] for row in annotated] for name, values in self._columns.items()}
        if self._sentence is not None:
            sentences: Any = [self._sentence[row] for row in annotated]
        else:
            sentences = sentences_by_pauses(onsets, offsets, [""] * len(kept), self._pause_s)
            expected = "parses with as many words as the table has rows"
            remedy = "a sentence begins after a pause; add the parses of this table's release"
            findings.sentences_by_rule(self._no_parse, expected, remedy)
        if self._tokens is not None:
            columns["head"], columns["deprel"] = self._heads(rows, set(annotated), findings)
        words = [SPREADSHEET.get(self._words[row], self._words[row]) for row in kept]
        return words_table(words, onsets, offsets, sentences, f"section{number}", columns)

    def _note_rows(self, kept: list[int], blank: list[int], broken: list[Broken], findings: Findings) -> None:
        repairs = {}
        if blank:
            found = f"{len(blank)} row(s) without a word, the second half of a contraction; first: row {blank[0]}"
            found += f", after {self._words[blank[0] - 1]!r}"
            repairs[found] = "they end the word before"
        capitalised = [row for row in kept if self._words[row] in SPREADSHEET]
        if capitalised:
            found = f"{len(capitalised)} word(s) that a spreadsheet capitalised; first: row {capitalised[0]}"
            repairs[found] = "they are in lower case"
        expected = "one word per row, as it is spoken"
        for found, repair in repairs.items():
            remedy = f"nothing to do: {repair}"
            findings.note("word", Reason.SOURCE_VALUES_CORRECTED, found, expected, remedy)
        if broken:
            found = "; ".join(f"row {one.row} ({one.word!r}): {one.why}" for one in broken)
            remedy = "the rows are left out; words below them in the parse go to their heads"
            findings.excluded("word", Reason.SOURCE_ROWS_LEFT_OUT, found, expected, remedy)

    def _heads(self, rows: list[int], annotated: set[int], findings: Findings) -> tuple[list[int], list[str]]:
        assert self._sentence is not None
        assert self._tokens is not None
        starts = np.cumsum([0, *map(len, self._tokens)])
        kept: list[Token] = []
        for sentence in sorted({self._sentence[row] for row in rows}):
            tokens, first = self._tokens[sentence], starts[sentence]
            gone = [i for i in range(len(tokens)) if first + i not in annotated]
            kept += _without(tokens, gone)
        n_several = sum(token.n_heads > 1 for token in kept)
        n_split = sum(token.split for token in kept)
        if n_several or n_split:
            found = f"{n_several} word(s) with several heads, {n_split} that the parser joined to the one before"
            remedy = "nothing to do: a conjunct keeps its 'conj' head, others their first; joined words are 'dep' of "
            remedy += "the first"
            reason = Reason.SOURCE_VALUES_CORRECTED
            findings.note("head", reason, found, "one head per word", remedy)
        return [token.head for token in kept], [token.relation for token in kept]


@dataclass(frozen=True)
class Token:
    """One word of a parse: ``head`` is its head's position in the sentence, counted from 1; 0 for the root.

    ``n_heads`` counts the heads in the file; ``split`` marks a word that the parser joined to the one before.
    """

    form: str
    head: int
    relation: str
    n_heads: int = 1
    split: bool = False


def _tree_lengths(path: Path) -> list[int]:
    """Return the number of words of every sentence, from a file with one bracketed tree per line."""
    lines = [line for line in read_text(path, StimulusError).split("\n") if line.strip()]
    for number, line in enumerate(lines, start=1):
        if line.count("(") != line.count(")") or not _LEAF.search(line):
            expected = "one bracketed tree per line, such as (S (NP (PRP it)) (VP (VBD looked)))"
            raise invalid(f"{path}, line {number}", line[:80], expected, StimulusError)
    return [len(_LEAF.findall(line)) for line in lines]


def _read_dependencies(path: Path) -> list[list[Token]]:
    sentences: list[list[Token]] = []
    edges: list[tuple[int, str, int, str]] = []
    for number, line in enumerate([*read_text(path, StimulusError).split("\n"), ""], start=1):
        if not line.strip():
            if edges:
                sentences.append(_one_tree(edges, f"{path}, sentence that ends in line {number}"))
            edges = []
            continue
        found = _RELATION.fullmatch(line.strip())
        if found is None:
            where = f"{path}, line {number}"
            raise invalid(where, line[:80], "relation(head-i, word-j)", StimulusError)
        relation, _, head, form, position = found.groups()
        edges.append((int(position), form, int(head), relation))
    return sentences


Heads = dict[int, list[tuple[int, str]]]
"""Heads and relations of every word of a sentence, the preferred one first."""


def _one_tree(edges: Sequence[tuple[int, str, int, str]], where: str) -> list[Token]:
    """Return one head per word; raises if words are missing or the edges are no tree."""
    forms = {position: form for position, form, _, _ in edges}
    heads: Heads = {position: [] for position in forms}
    for position, _, head, relation in edges:
        if head != position:
            heads[position].append((head, relation))
    for options in heads.values():
        options.sort(key=lambda option: (option[0] != 0, not option[1].startswith("conj")))
    complete = sorted(forms) == list(range(1, len(forms) + 1))
    chosen = _attach(heads) if complete else {}
    if len(chosen) < len(forms) or sum(head == 0 for head, _ in chosen.values()) != 1:
        found = " ".join(forms[position] for position in sorted(forms))[:80]
        expected = "a tree: words 1, 2, …, one of them the root, and a way from every word to it"
        raise invalid(where, found, expected, StimulusError)
    tokens = [Token(forms[i], *chosen[i], max(1, len(heads[i]))) for i in sorted(forms)]
    return _split(tokens)


def _attach(heads: Heads) -> dict[int, tuple[int, str]]:
    """Attach every word to the root's tree by its best head; by another one only where the best lead into a cycle."""
    chosen: dict[int, tuple[int, str]] = {}
    waiting = sorted(heads)
    while waiting:
        best = [i for i in waiting if heads[i] and (heads[i][0][0] in chosen or not heads[i][0][0])]
        if best:
            chosen.update({i: heads[i][0] for i in best})
        else:
            other = [(i, h) for i in waiting for h in heads[i] if h[0] in chosen]
            other.sort(key=lambda option: not _on_cycle(option[0], heads))
            if not other:
                return {}
            chosen[other[0][0]] = other[0][1]
        waiting = [i for i in waiting if i not in chosen]
    return chosen


def _on_cycle(word: int, heads: Heads) -> bool:
    """Whether best heads lead from a word back to itself."""
    above = word
    for _ in heads:
        above = heads[above][0][0] if above and heads[above] else 0
        if above == word:
            return True
    return False


def _split(tokens: list[Token]) -> list[Token]:
    """Split tokens of several words: later words are ``dep`` of the first, which keeps the token's head."""
    lengths = [token.form.count(_JOINED) + 1 for token in tokens]
    first = np.cumsum([1, *lengths]).tolist()
    words: list[Token] = []
    for start, token in zip(first, tokens, strict=False):
        form, *later = token.form.split(_JOINED)
        head = first[token.head - 1] if token.head else 0
        words.append(Token(form, head, token.relation, token.n_heads))
        words += [Token(word, start, "dep", split=True) for word in later]
    return words


def _without(sentence: Sequence[Token], gone: Sequence[int]) -> list[Token]:
    """Return a sentence without the words at these positions (from 0).

    Words below one that is left out go to its head. Where that is the root, the first of them becomes the root.
    """
    heads = [token.head - 1 for token in sentence]
    relations = [token.relation for token in sentence]
    for word in gone:
        below = [i for i, head in enumerate(heads) if head == word]
        above = heads[word]
        if above < 0 and below:
            relations[below[0]], heads[below[0]] = "root", -1
            above, below = below[0], below[1:]
        for i in below:
            heads[i] = above
        heads[word] = -2
    kept = [i for i in range(len(sentence)) if i not in gone]
    place = {old: new + 1 for new, old in enumerate(kept)}
    return [replace(sentence[i], head=place.get(heads[i], 0), relation=relations[i]) for i in kept]


class PetitPrince(FmriDataset[PetitPrinceOptions]):
    """Le Petit Prince; see docs/how-to/datasets/petit_prince.md."""

    name = "petit_prince"
    summary = "Le Petit Prince (ds003643): fMRI of an audiobook in English, Chinese or French"
    Options = PetitPrinceOptions
    contents = "annotation/ and derivatives/ of ds003643"
    role = "secondary"
    extra = "fmri"
    layout, download = published("petit_prince")
    published = DatasetInfo("OpenNeuro ds003643 (Le Petit Prince)", "not stated", "CC0")
    published_tr_s = 2.0

    def _find_scans(self) -> list[tuple[RecordingId, Scan]]:
        language = self.options.language
        pattern = (
            f"derivatives/sub-{language}*/func/*_task-lpp{language}_run-*_"
            f"space-{self.options.space}_desc-preproc_bold.nii.gz"
        )
        found = self.folder.glob(pattern, RecordingError)
        if not found:
            raise self._no_volumes(pattern, [], "language and space")
        runs: dict[str, list[Path]] = {}
        for bold in self._bold_files(found):
            runs.setdefault(entities(bold)["sub"], []).append(bold)
        return [
            (
                RecordingId(subject, "1", str(section), self._section_name(section)),
                replace(find_scan(self.folder, bold), events=None),
            )
            for subject, paths in sorted(runs.items())
            for section, bold in enumerate(_nine_runs(subject, paths), start=1)
        ]

    def _section_name(self, section: int) -> str:
        return f"lpp{self.options.language}-section{section}"

    def stimulus_ids(self) -> list[str]:
        """Return every section."""
        return [self._section_name(section) for section in range(1, N_SECTIONS + 1)]

    @cached_property
    def _annotation(self) -> Annotation:
        return Annotation(self.folder, self.options.language, self.options.sentence_pause_s)

    def _stimulus_onset(self, scan: Scan, stimulus_id: str, findings: Findings) -> float:  # noqa: ARG002
        return self.options.audio_onset_s

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        number = self.stimulus_ids().index(stimulus_id) + 1
        findings = Findings(f"{self.folder.where(self._annotation.path)}, section {number}")
        return Stimulus(
            id=stimulus_id,
            words=self._annotation.section(number, findings),
            where=findings.where,
            findings=tuple(findings),
            **self._audio(self._sound(number), f"no audio of section {number} in stimuli/"),
        )

    def _stimulus_paths(self) -> Iterable[Path | None]:
        sounds = [self._sound(number) for number in range(1, N_SECTIONS + 1)]
        return [*self._annotation.paths, *sounds]

    def _sound(self, number: int) -> Path | None:
        pattern = f"stimuli/task-lpp{self.options.language}_section[-_]{number}.wav"
        return next(iter(self.folder.glob(pattern)), None)
