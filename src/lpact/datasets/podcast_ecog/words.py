"""Words of the Podcast ECoG dataset: the transcript, and the tables that annotate it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.sentences import ends_sentence
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile
from lpact.datasets._finding import Finding
from lpact.errors import StimulusError
from lpact.math.types import BoolArray, FloatArray, IntArray

STORY = "podcast"
TRANSCRIPT = "stimuli/podcast_transcript.csv"
STAND_INS = ("spectral", "gpt2-xl", "syntactic", "en_core_web_lg")
"""Tables that hold every word, in the order in which they stand in for a missing transcript."""

SENTENCE_PAUSE_S = 0.5
"""A capitalised word begins a sentence after a silence of this length."""

_SAME_TIME_S = 1e-6


@dataclass(frozen=True)
class TokenTable:
    """One of ``stimuli/*/transcript.tsv``: rows are tokens (or words), each of a word of the transcript.

    ``word_index`` is [n_rows], the row of the token's word in the transcript, from 0.
    """

    path: Path
    table: CsvFile
    word_index: IntArray

    def first_rows(self, n_words: int) -> IntArray:
        """Return the first row of each word, [n_words]; −1 for a word that the table does not have."""
        rows = np.full(n_words, -1, dtype=np.int64)
        for row in range(len(self.word_index) - 1, -1, -1):
            rows[self.word_index[row]] = row
        return rows


@dataclass(frozen=True)
class Transcript:
    """The transcript as it is written: row i is word i of the token tables. Times are NaN where there is none."""

    path: Path
    words: tuple[str, ...]
    start_s: FloatArray
    end_s: FloatArray
    findings: tuple[Finding, ...]

    def order(self) -> IntArray:
        """Return the words that have times, by onset (equal ones as they are written)."""
        timed = np.flatnonzero(np.isfinite(self.start_s) & np.isfinite(self.end_s))
        return timed[np.argsort(self.start_s[timed], kind="stable")].astype(np.int64)


def table_path(folder: SourceFolder, name: str) -> Path | None:
    """Return ``stimuli/<name>/transcript.tsv`` if it is there."""
    return folder.optional(f"stimuli/{name}/transcript.tsv", StimulusError)


def read_tokens(path: Path) -> TokenTable:
    """Read a token table; its first column is an index without a name (or called ``index``)."""
    table = CsvFile(path, StimulusError, delimiter="\t")
    table.require(("word_idx", "word", "start", "end"))
    return TokenTable(path, table, np.array(table.integers("word_idx"), dtype=np.int64))


def read_transcript(folder: SourceFolder) -> Transcript:
    """Read the transcript; where it is missing, the table with the same words that stands in for it."""
    if folder.optional(TRANSCRIPT, StimulusError) is None:
        for name in STAND_INS:
            if (found := _stand_in(folder, name)) is not None:
                return found
    path = folder.file(TRANSCRIPT, StimulusError)
    table = CsvFile(path, StimulusError)
    table.require(("word", "start", "end"))
    return _transcript(folder, path, table, range(table.n_rows), ())


def _stand_in(folder: SourceFolder, name: str) -> Transcript | None:
    """Return the words of a token table; None if it is not there, or lacks some of them."""
    path = table_path(folder, name)
    if path is None:
        return None
    tokens = read_tokens(path)
    found = np.unique(tokens.word_index)
    if not np.array_equal(found, np.arange(found.size)):
        return None
    note = Finding(
        field=TRANSCRIPT,
        reason=Reason.SOURCE_STANDS_IN,
        severity="note",
        where=folder.where(path),
        found=f"no {TRANSCRIPT}; {found.size} words in this table",
        expected=f"the file {TRANSCRIPT}",
        remedy=f"none is needed: the words of this table are read; download {TRANSCRIPT} to use that",
    )
    rows = tokens.first_rows(found.size).tolist()
    return _transcript(folder, path, tokens.table, rows, (note,))


def _transcript(
    folder: SourceFolder,
    path: Path,
    table: CsvFile,
    rows: Sequence[int],
    findings: tuple[Finding, ...],
) -> Transcript:
    words = table.text("word")
    start, end = np.array(table.numbers_or_nan("start")), np.array(table.numbers_or_nan("end"))
    picked = list(rows)
    transcript = Transcript(
        path, tuple(words[row] for row in picked), start[picked], end[picked], findings
    )
    where = folder.where(path)
    more = (*_untimed(transcript, where), *_unsorted(transcript, where))
    return Transcript(
        path, transcript.words, transcript.start_s, transcript.end_s, (*findings, *more)
    )


def _untimed(transcript: Transcript, where: str) -> list[Finding]:
    gone = np.flatnonzero(~(np.isfinite(transcript.start_s) & np.isfinite(transcript.end_s)))
    if gone.size == 0:
        return []
    first = int(gone[0])
    return [
        Finding(
            field="start",
            reason=Reason.SOURCE_ROWS_LEFT_OUT,
            severity="excluded",
            where=where,
            found=f"{gone.size} word(s) without times; the first is word {first}, {transcript.words[first]!r}",
            expected="a start and an end for every word",
            remedy="the words are left out; add their times to keep them",
        )
    ]


def _unsorted(transcript: Transcript, where: str) -> list[Finding]:
    start = transcript.start_s[np.isfinite(transcript.start_s)]
    falls = np.flatnonzero(np.diff(start) < 0)
    if falls.size == 0:
        return []
    row = int(np.flatnonzero(np.isfinite(transcript.start_s))[falls[0] + 1])
    return [
        Finding(
            field="start",
            reason=Reason.SOURCE_ROWS_SORTED,
            severity="note",
            where=where,
            found=f"{falls.size} word(s) start before the word that is written before them; "
            f"the first is word {row}, {transcript.words[row]!r} at {transcript.start_s[row]:.3f} s",
            expected="words in the order of their onsets",
            remedy="none is needed: words, features and annotations were sorted together; speakers overlap there",
        )
    ]


def check_table(
    tokens: TokenTable, transcript: Transcript, folder: SourceFolder
) -> tuple[Finding, ...]:
    """Raise `StimulusError` if a table numbers other words; return notes on missing words and other times."""
    table, words = tokens.table, tokens.table.text("word")
    n_words = len(transcript.words)
    for row, index in enumerate(tokens.word_index):
        if not 0 <= index < n_words or words[row] != transcript.words[index]:
            here = repr(transcript.words[index]) if 0 <= index < n_words else "not there"
            raise StimulusError(
                "two tables number different words",
                where=f"{tokens.path}, line {row + 2}, column 'word'",
                got=f"word {index} is {words[row]!r} here, and {here} in {transcript.path.name}",
                expected=f"the words of {transcript.path}",
                remedy="download both files again, of one version of the dataset",
            )
    where, first = folder.where(tokens.path), tokens.first_rows(n_words)
    findings = []
    missing = np.flatnonzero(first < 0)
    if missing.size:
        shown = ", ".join(f"{i} {transcript.words[i]!r}" for i in missing[:4])
        findings.append(_note(where, "word_idx", f"{missing.size} word(s) not in it: {shown}"))
    start = np.array(table.numbers_or_nan("start"))
    apart = np.abs(start[first] - transcript.start_s) > _SAME_TIME_S
    other = np.flatnonzero(apart & (first >= 0))
    if other.size:
        i = int(other[0])
        findings.append(
            _note(
                where,
                "start",
                f"{other.size} word(s) at other times; the first is word {i}, {transcript.words[i]!r}: "
                f"{start[first[i]]:g} s here, {transcript.start_s[i]:g} s in {transcript.path.name}",
            )
        )
    return tuple(findings)


def _note(where: str, field: str, found: str) -> Finding:
    return Finding(
        field=field,
        reason=Reason.SIDECAR_DISAGREES,
        severity="note",
        where=where,
        found=found,
        expected="the words and times of the transcript",
        remedy="none is needed: the transcript's words and times count",
    )


def sentence_numbers(
    words: Sequence[str], onset_s: FloatArray, offset_s: FloatArray
) -> tuple[IntArray, str]:
    """Number sentences 0, 1, … in a transcript that has capitals but hardly any punctuation; and say the rule.

    A sentence begins after a word that ends one by punctuation, and at a word that is written with a capital, is no
    form of "I", and either is written with a small letter elsewhere or comes after a silence of `SENTENCE_PAUSE_S`.
    """
    written = set(words)
    starts: BoolArray = np.zeros(len(words), dtype=bool)
    for i, word in enumerate(words[1:], start=1):
        if ends_sentence(words[i - 1]):
            starts[i] = True
        elif word[0].isupper() and word.split("'")[0] != "I":
            common = word[0].lower() + word[1:] in written
            starts[i] = common or onset_s[i] - offset_s[i - 1] >= SENTENCE_PAUSE_S
    rule = (
        "sentences begin after final punctuation, and at capitalised words that are also written small, or that "
        f"follow {SENTENCE_PAUSE_S:g} s of silence"
    )
    return np.cumsum(starts).astype(np.int64), rule


def word_frame(
    transcript: Transcript, order: IntArray, folder: SourceFolder
) -> tuple[pl.DataFrame, Finding]:
    """Return the words table in order of time, with sentences by rule, and the note on that rule."""
    words = [transcript.words[i] for i in order]
    onset_s, offset_s = transcript.start_s[order], transcript.end_s[order]
    sentences, rule = sentence_numbers(words, onset_s, offset_s)
    frame = pl.DataFrame(
        {
            "word": pl.Series(words, dtype=pl.String),
            "onset_s": onset_s,
            "offset_s": offset_s,
            "sentence_id": sentences,
            "story_id": pl.Series([STORY] * len(words), dtype=pl.String),
            "word_idx": order,
        }
    )
    n_sentences = int(sentences[-1]) + 1 if words else 0
    note = Finding(
        field="sentence_id",
        reason=Reason.SENTENCES_BY_RULE,
        severity="note",
        where=folder.where(transcript.path),
        found=f"{n_sentences} sentences: {rule}",
        expected="numbered sentences",
        remedy="none is needed; sentences that begin with 'I' or a name without a pause join the one before",
    )
    return frame, note


def surprisal_bits(tokens: TokenTable, n_words: int) -> tuple[FloatArray, FloatArray]:
    """Return surprisal and entropy of every word in bits, [n_words] each.

    Surprisal is ``−Σ log2 true_prob`` over the word's tokens. Entropy is that of the model's prediction of the word's
    first token, before the word; the source gives it in nats.
    """
    table = tokens.table
    table.require(("true_prob", "entropy"))
    probability = np.array(table.numbers("true_prob"))
    for row in np.flatnonzero((probability <= 0) | (probability > 1)):
        raise table.wrong("true_prob", int(row), "a probability above 0")
    surprisal = np.zeros(n_words)
    np.add.at(surprisal, tokens.word_index, -np.log2(probability))
    first = tokens.first_rows(n_words)
    surprisal[first < 0] = np.nan
    entropy = np.array(table.numbers("entropy"))[first] / np.log(2.0)
    entropy[first < 0] = np.nan
    return surprisal, entropy
