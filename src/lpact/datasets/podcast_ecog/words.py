"""Words of the Podcast ECoG dataset: the transcript, the tables that annotate it, and released model features."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lpact.codes import Reason
from lpact.datasets._files.hdf5 import hdf5_dataset, open_hdf5
from lpact.datasets._files.sentences import ends_sentence
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import note, untimed_note
from lpact.datasets.base import FeatureKey
from lpact.errors import FeatureError, StimulusError
from lpact.math.types import FloatArray, IntArray

STIMULUS = "podcast"
TRANSCRIPT = "stimuli/podcast_transcript.csv"
AUDIO = "stimuli/podcast.wav"
GPT2, WHISPER = "gpt2-xl", "whisper-medium"
STAND_INS = ("spectral", GPT2, "syntactic", "en_core_web_lg")
"""Tables that hold every word, in the order in which they replace a missing transcript."""

SENTENCE_PAUSE_S = 0.5
"""A capitalised word begins a sentence after a silence of this length."""

_LAYER = re.compile(r"layer-([0-9]+)")
_SAME_TIME_S = 1e-6


def token_table(name: str) -> str:
    """Path of a table of tokens."""
    return f"stimuli/{name}/transcript.tsv"


class TokenTable:
    """One of ``stimuli/*/transcript.tsv``: rows are tokens (or words), each of a word of the transcript.

    ``word_index`` is [n_rows], the row of the token's word in the transcript, from 0.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.table = CsvFile(path, StimulusError, delimiter="\t")
        self.table.require(("word_idx", "word", "start", "end"))
        self.word_index: IntArray = np.array(self.table.integers("word_idx"), dtype=np.int64)

    def first_rows(self, n_words: int) -> IntArray:
        """Return the first row of each word, [n_words]; −1 for a word that the table does not have."""
        rows = np.full(n_words, -1, dtype=np.int64)
        words, first = np.unique(self.word_index, return_index=True)
        rows[words] = first
        return rows


@dataclass(frozen=True)
class Transcript:
    """The transcript as it is written: row i is word i of the token tables. Times are NaN where missing."""

    path: Path
    words: tuple[str, ...]
    start_s: FloatArray
    end_s: FloatArray

    def order(self) -> IntArray:
        """Return the words that have times, by onset (equal ones as they are written)."""
        timed = np.flatnonzero(np.isfinite(self.start_s + self.end_s))
        return timed[np.argsort(self.start_s[timed], kind="stable")].astype(np.int64)


def read_transcript(folder: SourceFolder) -> tuple[Transcript, list[Finding]]:
    """Read the transcript; where it is missing, a table with the same words replaces it."""
    findings: list[Finding] = []
    path, table, rows = _find_transcript(folder, findings)
    words = table.text("word")
    start_s, end_s = (np.array(table.numbers_or_nan(name))[rows] for name in ("start", "end"))
    transcript = Transcript(path, tuple(words[row] for row in rows), start_s, end_s)
    where = folder.where(path)
    untimed = np.flatnonzero(~np.isfinite(start_s + end_s))
    if untimed.size:
        first = int(untimed[0])
        where_first = f"word {first}, {transcript.words[first]!r}"
        n_words = len(transcript.words)
        findings.append(untimed_note(where, "start", untimed.size, n_words, where_first))
    started = np.flatnonzero(np.isfinite(start_s))
    falls = np.flatnonzero(np.diff(start_s[started]) < 0)
    if falls.size:
        row = int(started[falls[0] + 1])
        findings.append(
            note(
                "start",
                Reason.SOURCE_ROWS_SORTED,
                where,
                f"{falls.size} word(s) start before the word that is written before them; "
                f"the first is word {row}, {transcript.words[row]!r} at {start_s[row]:.3f} s",
                "words in the order of their onsets",
                "none is needed: words, features and annotations were sorted together; speakers overlap there",
            )
        )
    return transcript, findings


def _find_transcript(
    folder: SourceFolder, findings: list[Finding]
) -> tuple[Path, CsvFile, list[int]]:
    """Return the transcript, or the first token table that has all its words, and the rows of its words."""
    if folder.optional(TRANSCRIPT, StimulusError) is None:
        for name in STAND_INS:
            path = folder.optional(token_table(name), StimulusError)
            tokens = None if path is None else TokenTable(path)
            found = np.arange(0) if tokens is None else np.unique(tokens.word_index)
            if path is None or tokens is None or found.tolist() != list(range(found.size)):
                continue
            findings.append(
                note(
                    TRANSCRIPT,
                    Reason.SOURCE_STANDS_IN,
                    folder.where(path),
                    f"no {TRANSCRIPT}; {found.size} words in this table",
                    f"the file {TRANSCRIPT}",
                    f"none is needed: the words of this table are read; download {TRANSCRIPT} to use that",
                )
            )
            return path, tokens.table, tokens.first_rows(found.size).tolist()
    path = folder.file(TRANSCRIPT, StimulusError)
    table = CsvFile(path, StimulusError)
    table.require(("word", "start", "end"))
    return path, table, list(range(table.n_rows))


def check_tokens(tokens: TokenTable, transcript: Transcript, folder: SourceFolder) -> list[Finding]:
    """Raise `StimulusError` if a table numbers other words; return notes on missing words and other times."""
    words, n_words = tokens.table.text("word"), len(transcript.words)
    for row, index in enumerate(tokens.word_index):
        known = transcript.words[index] if 0 <= index < n_words else None
        if words[row] != known:
            raise StimulusError(
                "two tables number different words",
                where=f"{tokens.path}, line {row + 2}, column 'word'",
                got=f"word {index} is {words[row]!r} here, and {known!r} in {transcript.path.name}",
                expected=f"the words of {transcript.path}",
                remedy="download both files again, of one version of the dataset",
            )
    first = tokens.first_rows(n_words)
    found = []
    missing = np.flatnonzero(first < 0)
    if missing.size:
        listed = ", ".join(f"{i} {transcript.words[i]!r}" for i in missing[:4])
        found.append(("word_idx", f"{missing.size} word(s) not in it: {listed}"))
    start_s = np.array(tokens.table.numbers_or_nan("start"))[first]
    apart = np.flatnonzero((np.abs(start_s - transcript.start_s) > _SAME_TIME_S) & (first >= 0))
    if apart.size:
        i = int(apart[0])
        text = (
            f"{apart.size} word(s) at other times; the first is word {i}, {transcript.words[i]!r}: "
        )
        text += f"{start_s[i]:g} s here, {transcript.start_s[i]:g} s in {transcript.path.name}"
        found.append(("start", text))
    expected = "the words and times of the transcript"
    remedy = "none is needed: the transcript's words and times count"
    where = folder.where(tokens.path)
    return [note(f, Reason.SIDECAR_DISAGREES, where, text, expected, remedy) for f, text in found]


def sentence_numbers(words: Sequence[str], onset_s: FloatArray, offset_s: FloatArray) -> IntArray:
    """Number sentences 0, 1, … in a transcript that has capitals but hardly any punctuation.

    A sentence begins after a word that ends one by punctuation, and at a word that is written with a capital, is no
    form of "I", and either is written with a small letter elsewhere or comes after a silence of `SENTENCE_PAUSE_S`.
    """
    written = set(words)
    starts = np.zeros(len(words), dtype=np.int64)
    for i, word in enumerate(words[1:], start=1):
        if ends_sentence(words[i - 1]):
            starts[i] = True
        elif word[0].isupper() and word.split("'")[0] != "I":
            common = word[0].lower() + word[1:] in written
            starts[i] = common or onset_s[i] - offset_s[i - 1] >= SENTENCE_PAUSE_S
    return np.cumsum(starts)


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
    entropy = np.array(table.numbers("entropy"))[first] / np.log(2.0)
    surprisal[first < 0] = entropy[first < 0] = np.nan
    return surprisal, entropy


FeatureSource = tuple[Path, str, TokenTable]
"""File, name of the HDF5 dataset, and table of its rows."""


@dataclass(frozen=True)
class PodcastFeatures:
    """Feature sets of the release: one row per token in the files, one row per word here.

    ``order`` is [n_words], the words of the stimulus as rows of the transcript.
    """

    sources: dict[FeatureKey, FeatureSource]
    order: IntArray
    n_transcript_words: int
    pooling: Literal["mean", "last"]
    stimulus_where: str

    def keys(self) -> Sequence[FeatureKey]:
        """Return what is on offer."""
        return list(self.sources)

    def load(self, key: FeatureKey) -> FloatArray:
        """Return the features [n_words, n_columns]: tokens of a word averaged, or the last of them."""
        if key not in self.sources:
            raise FeatureError(
                "the dataset does not bring these features",
                where=self.stimulus_where,
                got=str(key),
                expected=f"one of {len(self.sources)} feature sets on offer",
                remedy="choose a layer that the file holds, or let lpact extract the features",
            )
        path, name, tokens = self.sources[key]
        with open_hdf5(path, FeatureError) as file:
            values: npt.NDArray[Any] = hdf5_dataset(file, name, FeatureError)[...]
        if values.ndim < 2 or len(values) != len(tokens.word_index):
            raise FeatureError(
                "features do not have one row for every row of their table",
                where=f"{path}, '{name}'",
                got=f"shape {values.shape}",
                expected=f"{len(tokens.word_index)} rows, as in {tokens.path}",
                remedy="download both files again, of one version of the dataset",
            )
        values = values.reshape(len(values), -1).astype(np.float64)
        rows = np.argsort(tokens.word_index, kind="stable")
        sorted_words = tokens.word_index[rows]
        words, first, count = np.unique(sorted_words, return_index=True, return_counts=True)
        pooled = np.full((self.n_transcript_words, values.shape[1]), np.nan)
        if self.pooling == "last":
            pooled[words] = values[rows[first + count - 1]]
        else:
            pooled[words] = np.add.reduceat(values[rows], first, axis=0) / count[:, None]
        return pooled[self.order]

    def where(self, key: FeatureKey) -> str:
        """Return the file of a feature set."""
        return str(self.sources[key][0]) if key in self.sources else self.stimulus_where


def feature_sources(name: str, path: Path, tokens: TokenTable) -> dict[FeatureKey, FeatureSource]:
    """Return the feature sets of a file: datasets ``layer-<k>`` of GPT-2, ``vectors`` (as layer 0) of Whisper."""
    with open_hdf5(path, FeatureError) as file:
        names = [str(dataset) for dataset in file]
        if name == GPT2:
            layers = {int(match[1]): match[0] for match in map(_LAYER.fullmatch, names) if match}
        else:
            layers = {0: "vectors"} if "vectors" in names else {}
        for dataset in layers.values():
            hdf5_dataset(file, dataset, FeatureError)
    if not layers:
        raise FeatureError(
            "a file of features holds no features",
            where=str(path),
            got="datasets " + (", ".join(names) or "none"),
            expected="datasets layer-0, layer-1, …" if name == GPT2 else "the dataset 'vectors'",
            remedy="download the file again, or leave the model out with the option 'features'",
        )
    return {
        FeatureKey(name, layer, "full"): (path, dataset, tokens)
        for layer, dataset in sorted(layers.items())
    }
