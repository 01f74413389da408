"""Natural Stories (Futrell et al. 2021): ten stories, self-paced reading times and parses; no brain data.

docs/how-to/datasets/natural_stories.md shows the folder. In its tables, ``item`` is the story and ``zone`` the word in
it, both from 1. Tokens of the parse name their word: ``<story>.<word>`` (the whole word), ``<story>.<word>.<part>``, or
``<story>.<word>.word`` (the word without the punctuation at its ends).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.strict import TextTable, invalid, read_text
from lpact.datasets._folder_dataset import FolderDataset, no_audio, sentences_by_punctuation, words_table
from lpact.datasets.base import DatasetInfo, Findings, Recording, RecordingId, Stimulus
from lpact.datasets.catalogue import published
from lpact.errors import StimulusError
from lpact.math.dependencies import ROOT, depths, unrooted
from lpact.math.types import IntArray
from lpact.registry import PluginOptions

STIMULUS = "natural_stories"
WORDS = "words.tsv"
AS_READ = "naturalstories_RTS/all_stories.tok"
TIMES = "naturalstories_RTS/processed_wordinfo.tsv"
UD = "parses/ud/stories-aligned.conllx"
OPTIONAL = (AS_READ, TIMES, UD)
TITLES = (
    "Boar", "Aqua", "MatchstickSeller", "KingOfBirds", "Elvis", "MrSticky", "HighSchool", "Roswell", "Tulips",
    "Tourette",
)  # fmt: skip
"""Names of stories 1 to 10, as Blank et al. (2014) use them."""

READING = {
    "nItem": "n_readers",
    "meanItemRT": "mean_rt_ms",
    "sdItemRT": "sd_rt_ms",
    "gmeanItemRT": "gmean_rt_ms",
    "gsdItemRT": "gsd_rt",
}
PUNCTUATION = "punct"
"""Relation of punctuation; commas that mean "and" have others, and are recognised by their signs."""

_WORD = re.compile(r"([0-9]+)\.([0-9]+)\.(whole|word|[0-9]+)")
_TOKEN = re.compile(r"TokenId=([0-9]+)\.([0-9]+)(?:\.(?:[0-9]+|word))?")
_UPOS = {
    "CC": "CCONJ", "CD": "NUM", "DT": "DET", "EX": "PRON", "FW": "X", "IN": "ADP", "JJ": "ADJ", "JJR": "ADJ",
    "JJS": "ADJ", "LS": "X", "MD": "AUX", "NN": "NOUN", "NNS": "NOUN", "NNP": "PROPN", "NNPS": "PROPN", "PDT": "DET",
    "POS": "PART", "PRP": "PRON", "PRP$": "PRON", "RB": "ADV", "RBR": "ADV", "RBS": "ADV", "RP": "ADP", "SYM": "SYM",
    "TO": "PART", "UH": "INTJ", "VB": "VERB", "VBD": "VERB", "VBG": "VERB", "VBN": "VERB", "VBP": "VERB",
    "VBZ": "VERB", "WDT": "PRON", "WP": "PRON", "WP$": "PRON", "WRB": "ADV",
}  # fmt: skip
"""Universal part of speech of every Penn tag that is not punctuation, by the tag alone."""

Code = tuple[int, int]
"""Story and word, both from 1."""


class NaturalStoriesOptions(PluginOptions):
    """The nominal clock."""

    word_s: float = Field(0.35, gt=0)
    """Nominal time of a word, in seconds; readers set their own pace."""


def _read_words(path: Path) -> tuple[list[Code], list[str], list[str]]:
    """Return the code of every word, the word with its punctuation, and without."""
    whole: dict[Code, str] = {}
    bare: dict[Code, str] = {}
    last: Code | None = None
    for line, text in enumerate(read_text(path, StimulusError).splitlines(), start=1):
        name, _, token = text.partition("\t")
        match = _WORD.fullmatch(name)
        if match is None or not token.strip():
            expected = "<story>.<word>.<part>, a tab, and a token"
            raise invalid(f"{path}, line {line}", repr(text[:80]), expected, StimulusError)
        code = (int(match[1]), int(match[2]))
        kept = {"whole": whole, "word": bare}.get(match[3])
        if kept is None:
            continue
        follows = last is None or code in ((last[0], last[1] + 1), (last[0] + 1, 1))
        if code in kept or (kept is whole and not follows):
            found = f"{name} once more" if code in kept else f"{name} after {last}"
            expected = "every token once, words in order"
            raise invalid(f"{path}, line {line}", found, expected, StimulusError)
        last = code if kept is whole else last
        kept[code] = token.replace(" ", "")
    return list(whole), list(whole.values()), [bare.get(code, whole[code]) for code in whole]


@dataclass(frozen=True)
class _Token:
    line: int
    place: int
    code: Code
    tag: str
    head: int
    relation: str
    weak: bool


def read_dependencies(path: Path, codes: Sequence[Code]) -> dict[str, Any] | str:
    """Return sentence, head, deprel, upos and xpos (Penn tag) of all words, or why they do not cover them.

    ``head`` counts from 1 in the sentence, 0 is its root. Of the tokens in a word, the one nearest to the root
    represents it (the first of equals), but punctuation only where there is nothing else; the head of the word is the
    word of that token's head, and punctuation that represents no word is skipped on the way up. Heads then lie nearer
    to the root, so words form no cycle. Where a sentence has several roots, the later ones depend on the first as
    ``parataxis``. A word that two sentences share is in the first.
    """
    row_of = {code: row for row, code in enumerate(codes)}
    sentence = np.full(len(codes), -1, dtype=np.int64)
    head = np.zeros(len(codes), dtype=np.int64)
    relation, tag = [""] * len(codes), [""] * len(codes)
    for number, tokens in enumerate(_read_sentences(path)):
        for token in tokens:
            if token.code not in row_of:
                found = f"TokenId of word {token.code[1]} of story {token.code[0]}"
                expected = "words that words.tsv has"
                raise invalid(f"{path}, line {token.line}", found, expected, StimulusError)
        top = _tops(path, tokens)
        own = sorted(row_of[code] for code in top if sentence[row_of[code]] == -1)
        place = {codes[row]: i for i, row in enumerate(own, start=1)}
        for row in own:
            token = top[codes[row]]
            above = _above(token, tokens, top)
            sentence[row], head[row] = number, place.get(above.code, 0) if above else 0
            relation[row], tag[row] = token.relation, token.tag
        first, *later = [row for row in own if head[row] == 0] or [0]
        for row in later:
            head[row], relation[row] = place[codes[first]], "parataxis"
    if (missing := np.flatnonzero(sentence == -1)).size:
        story, word = codes[int(missing[0])]
        return f"{missing.size} of {len(codes)} words; first: word {word} of story {story}"
    upos = [_UPOS.get(name, "X" if name[:1].isalpha() else "PUNCT") for name in tag]
    return {"sentence": sentence, "head": head, "deprel": relation, "upos": upos, "xpos": tag}


def _read_sentences(path: Path) -> list[list[_Token]]:
    sentences: list[list[_Token]] = [[]]
    for line, text in enumerate(read_text(path, StimulusError).splitlines(), start=1):
        if not text.strip():
            sentences.append([])
            continue
        cells, place = text.split("\t"), len(sentences[-1])
        match = _TOKEN.fullmatch(cells[9]) if len(cells) == 10 else None
        if match is None or cells[0] != str(place + 1) or not cells[6].isdigit():
            expected = f"ten cells with tabs between: token {place + 1} first, TokenId=<code> last"
            raise invalid(f"{path}, line {line}", repr(text[:80]), expected, StimulusError)
        code = (int(match[1]), int(match[2]))
        weak = cells[7] == PUNCTUATION or not any(sign.isalnum() for sign in cells[1])
        sentences[-1].append(_Token(line, place, code, cells[4], int(cells[6]) - 1, cells[7], weak))
    return [tokens for tokens in sentences if tokens]


def _tops(path: Path, tokens: list[_Token]) -> dict[Code, _Token]:
    """Return the token that represents each word."""
    head = np.array([token.head for token in tokens], dtype=np.int64)
    if (head >= len(tokens)).any() or unrooted(head).any():
        where, found = f"{path}, line {tokens[0].line}", "heads that lead to no root"
        raise invalid(where, found, "a tree over the sentence", StimulusError)
    depth = depths(head)
    top: dict[Code, _Token] = {}
    for token in tokens:
        best = top.setdefault(token.code, token)
        if (token.weak, depth[token.place]) < (best.weak, depth[best.place]):
            top[token.code] = token
    return top


def _above(token: _Token, tokens: list[_Token], top: dict[Code, _Token]) -> _Token | None:
    """Return the nearest token above that can represent its word, None above the root."""
    place = token.head
    while place != ROOT:
        above = tokens[place]
        if not above.weak or top[above.code].weak:
            return above
        place = above.head
    return None


class NaturalStories(FolderDataset[NaturalStoriesOptions, Path]):
    """The Natural Stories corpus; see docs/how-to/datasets/natural_stories.md."""

    name = "natural_stories"
    summary = "Natural Stories: words, self-paced reading times and parses, without brain data"
    Options = NaturalStoriesOptions
    contents = f"a folder with {WORDS}"
    has_recordings = False
    role = "diagnostic"
    layout, download = published("natural_stories")
    info = DatasetInfo("Natural Stories Corpus, Futrell et al. 2021", "as found", download.licence)

    def _open(self) -> None:
        self._path = self.folder.file(WORDS, StimulusError)
        found = {relative: self.folder.optional(relative, StimulusError) for relative in OPTIONAL}
        self._found = {relative: path for relative, path in found.items() if path is not None}

    def stimulus_ids(self) -> list[str]:
        """Return the one stimulus, of all stories."""
        return [STIMULUS]

    def _recording(self, recording_id: RecordingId, files: Path) -> Recording:
        raise NotImplementedError  # there are no recordings

    def _paths(self) -> list[Path | None]:
        return [self._path, *self._found.values()]

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        findings = Findings(self.folder.where(self._path))
        codes, words, bare = _read_words(self._path)
        if AS_READ in self._found:
            words = self._as_read(codes, words, findings)
        stories, titles = [str(story) for story, _ in codes], dict(enumerate(TITLES, start=1))
        step_s, n_words = self.options.word_s, len(words)
        sentence, parses = self._parses(codes, words, stories, findings)
        return Stimulus(
            id=stimulus_id,
            words=words_table(
                words,
                [step_s * i for i in range(n_words)],
                [step_s * (i + 1) for i in range(n_words)],
                sentence,
                stories,
                {
                    "title": [titles.get(story, "") for story, _ in codes],
                    "zone": [zone for _, zone in codes],
                    "bare_word": bare,
                    **self._reading_times(codes, words),
                    **parses,
                },
            ),
            where=findings.where,
            findings=tuple(findings),
            **no_audio(
                Reason.MEDIA_NOT_OFFERED,
                "stories were read; recordings of them are in audio/ of the repository, and are not read",
            ),
        )

    def _keyed(self, relative: str, codes: list[Code]) -> tuple[TextTable, list[int]]:
        """Return a table by story and word, and the row of every word in it."""
        table = TextTable(self._found[relative], StimulusError)
        table.require(["word", "zone", "item"])
        row_of: dict[Code, int] = {}
        known = set(codes)
        rows = zip(table.integers("item"), table.integers("zone"), strict=True)
        for row, code in enumerate(rows):
            if code in row_of or code not in known:
                raise table.wrong("zone", row, f"every word of {WORDS} once, and no other")
            row_of[code] = row
        if missing := [code for code in codes if code not in row_of]:
            found = f"{len(row_of)} lines; none for word {missing[0][1]} of story {missing[0][0]}"
            expected = f"the {len(codes)} words of {WORDS}, from the same version"
            raise invalid(table.path, found, expected, StimulusError)
        return table, [row_of[code] for code in codes]

    def _as_read(self, codes: list[Code], words: list[str], findings: Findings) -> list[str]:
        """Return the words as they were shown to readers, and note where they differ."""
        table, rows = self._keyed(AS_READ, codes)
        cells = table.text("word")
        shown = [cells[row] for row in rows]
        other = [i for i, (a, b) in enumerate(zip(shown, words, strict=True)) if a != b]
        if other:
            (story, zone), i = codes[other[0]], other[0]
            findings.note(
                "word",
                Reason.SIDECAR_DISAGREES,
                f"{len(other)} word(s) of {AS_READ} other than in {WORDS}; first: word {zone} of story {story}, "
                f"{shown[i]!r}, not {words[i]!r}",
                "the same words in both",
                "nothing to do: the words are those that were read, typing errors included",
            )
        return shown

    def _reading_times(self, codes: list[Code], words: list[str]) -> dict[str, pl.Series]:
        if TIMES not in self._found:
            return {}
        table, rows = self._keyed(TIMES, codes)
        table.require(list(READING))
        cells = table.text("word")
        for row, word in zip(rows, words, strict=True):
            if AS_READ in self._found and cells[row] != word:
                raise table.wrong("word", row, f"{word!r}, as in {AS_READ}")
        times = {name: pl.Series(table.numbers(column)).gather(rows) for column, name in READING.items()}
        return times | {"n_readers": times["n_readers"].cast(pl.Int64)}

    def _parses(
        self, codes: list[Code], words: list[str], stories: list[str], findings: Findings
    ) -> tuple[IntArray, dict[str, Any]]:
        """Return sentences and columns of the parse if it covers all words, otherwise sentences by punctuation."""
        tree = read_dependencies(self._found[UD], codes) if UD in self._found else "no such file"
        if isinstance(tree, str):
            findings.note(
                UD,
                Reason.SENTENCES_BY_RULE,
                f"{UD}: {tree}",
                "a parse of every word",
                "download the parse into the folder; without it sentences end with their punctuation",
            )
            return sentences_by_punctuation(words, stories), {}
        return tree.pop("sentence"), tree
