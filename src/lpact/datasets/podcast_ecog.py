"""Reader of the Podcast ECoG dataset (OpenNeuro ds005574): nine people listen to a story of 30 minutes.

docs/how-to/datasets/podcast_ecog.md shows the folder. The release does not say what the numbers of the high-gamma
envelope are (amplitude or power, scaled or not): they are given as they are stored, in a.u.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from lpact.codes import Reason
from lpact.datasets._bids import DESCRIPTION, Places, entities, read_description, read_electrodes
from lpact.datasets._files.hdf5 import hdf5_dataset, open_hdf5
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import TextTable, invalid
from lpact.datasets._folder_dataset import FolderDataset, ends_sentence, words_table
from lpact.datasets._mne import open_recording, recording_files
from lpact.datasets.base import FeatureKey, Findings, OfferedFeatures, Recording, RecordingId, Stimulus
from lpact.datasets.catalogue import published
from lpact.errors import FeatureError, RecordingError, StimulusError
from lpact.math.types import FloatArray, IntArray
from lpact.registry import PluginOptions

STIMULUS = "podcast"
TRANSCRIPT = "stimuli/podcast_transcript.csv"
AUDIO = "stimuli/podcast.wav"
GPT2, SYNTAX = "gpt2-xl", "syntactic"
STAND_INS = ("spectral", GPT2, SYNTAX, "en_core_web_lg")
"""Tables with every word, in the order in which they replace a missing transcript."""

SENTENCE_PAUSE_S = 0.5
"""A capitalised word begins a sentence after a silence of this length."""

FRAME = "MNI152NLin2009aSym"
"""Frame of the positions in the released files: they are those of the electrode tables of that space."""

_SIGNALS = {
    "highgamma": "derivatives/ecogprep/sub-*/ieeg/sub-*_task-podcast_desc-highgamma_ieeg.fif",
    "raw": "sub-*/ieeg/sub-*_task-podcast_ieeg.edf",
}
_SAME_TIME_S = 1e-6
_LAYER = re.compile(r"layer-([0-9]+)")


class PodcastOptions(PluginOptions):
    """Options of the reader."""

    signal: Literal["highgamma", "raw"] = "highgamma"
    """`highgamma`: the released high-gamma envelope. `raw`: the released voltage, to be preprocessed."""
    audio_start_s: float = 0.0
    """Time of the audio's first sample in the recordings, in seconds. The released files are cut to the story, so that
    both start together.
    """
    features: tuple[Literal["gpt2-xl", "whisper-medium"], ...] = ("gpt2-xl",)
    """Feature sets of the release that are offered as models. Words that one of them lacks (two, for `whisper-medium`)
    are left out of the words.
    """
    token_pooling: Literal["mean", "last"] = "mean"  # noqa: S105
    """How a word's tokens become one row: their mean, or the last of them."""


def token_table(name: str) -> str:
    """Path of a table of tokens."""
    return f"stimuli/{name}/transcript.tsv"


@dataclass(frozen=True)
class Transcript:
    """The transcript as it is written: row i is word i of the token tables. Times are NaN where missing."""

    path: Path
    words: Sequence[str]
    start_s: FloatArray
    end_s: FloatArray

    def order(self) -> IntArray:
        """Return the words that have times, by onset (equal ones as they are written)."""
        timed = np.flatnonzero(np.isfinite(self.start_s + self.end_s))
        return timed[np.argsort(self.start_s[timed], kind="stable")].astype(np.int64)


def read_transcript(folder: SourceFolder) -> tuple[Transcript, Findings]:
    """Read the transcript; where it is missing, the first table that has all its words replaces it."""
    path = folder.optional(TRANSCRIPT, StimulusError)
    rows: Sequence[int] | None = None
    for name in STAND_INS if path is None else ():
        table_path = folder.optional(token_table(name), StimulusError)
        if table_path is not None:
            table = TextTable(table_path, StimulusError)
            table.require(("word_idx", "word", "start", "end"))
            numbers, first = np.unique(table.integers("word_idx"), return_index=True)
            if numbers.tolist() == list(range(numbers.size)):
                path, rows = table_path, first.tolist()
                break
    findings = Findings(folder.where(path or folder.file(TRANSCRIPT, StimulusError)))
    assert path is not None
    if rows is None:
        table = TextTable(path, StimulusError)
        table.require(("word", "start", "end"))
        rows = range(table.n_rows)
    else:
        findings.note(
            TRANSCRIPT,
            Reason.SOURCE_STANDS_IN,
            f"no {TRANSCRIPT}; {len(rows)} words in this table",
            f"the file {TRANSCRIPT}",
            f"nothing to do: the words of this table are read; download {TRANSCRIPT} to use that",
        )
    cells = table.text("word")
    words = [cells[row] for row in rows]
    start_s, end_s = (np.array(table.numbers_or_nan(name))[rows] for name in ("start", "end"))
    untimed = np.flatnonzero(~np.isfinite(start_s + end_s))
    if untimed.size:
        first_word = f"word {untimed[0]}, {words[untimed[0]]!r}"
        findings.untimed("start", untimed.size, len(words), first_word)
    started = np.flatnonzero(np.isfinite(start_s))
    falls = np.flatnonzero(np.diff(start_s[started]) < 0)
    if falls.size:
        row = int(started[falls[0] + 1])
        findings.note(
            "start",
            Reason.SOURCE_ROWS_SORTED,
            f"{falls.size} word(s) start before the word that is written before them; "
            f"the first is word {row}, {words[row]!r} at {start_s[row]:.3f} s",
            "words in the order of their onsets",
            "nothing to do: words, features and annotations were sorted together; speakers overlap there",
        )
    return Transcript(path, words, start_s, end_s), findings


class TokenTable:
    """One of ``stimuli/*/transcript.tsv``: rows are tokens (or words), each of a word of the transcript.

    ``word`` [n_rows] is the word of each token, a row of the transcript; ``first_row`` [n_words] the first token of
    each word, −1 for a word that the table does not have.
    """

    def __init__(self, path: Path, transcript: Transcript, findings: Findings) -> None:
        self.table = table = TextTable(path, StimulusError)
        table.require(("word_idx", "word", "start", "end"))
        self.word: IntArray = np.array(table.integers("word_idx"), dtype=np.int64)
        words, n_words = table.text("word"), len(transcript.words)
        for row, index in enumerate(self.word):
            known = transcript.words[index] if 0 <= index < n_words else None
            if words[row] != known:
                found = f"word {index} is {words[row]!r} here, and {known!r} in {transcript.path.name}"
                expected = "the words of the transcript, of the same version of the dataset"
                where = f"{path}, line {row + 2}, column 'word'"
                remedy = "download both files again, of one version of the dataset"
                raise invalid(where, found, expected, StimulusError, remedy)
        self.first_row: IntArray = np.full(n_words, -1, dtype=np.int64)
        numbers, first = np.unique(self.word, return_index=True)
        self.first_row[numbers] = first
        missing = np.flatnonzero(self.first_row < 0)
        start_s = np.array(table.numbers_or_nan("start"))[self.first_row]
        apart = np.abs(start_s - transcript.start_s) > _SAME_TIME_S
        apart[missing] = False
        notes: dict[str, str] = {}
        if missing.size:
            listed = ", ".join(f"{i} {transcript.words[i]!r}" for i in missing[:4])
            notes["word_idx"] = f"{missing.size} word(s) not in it: {listed}"
        if apart.any():
            i = int(np.argmax(apart))
            notes["start"] = (
                f"{apart.sum()} word(s) at other times; the first is word {i}, {transcript.words[i]!r}: "
                f"{start_s[i]:g} s here, {transcript.start_s[i]:g} s in {transcript.path.name}"
            )
        for column, text in notes.items():
            findings.note(
                column,
                Reason.SIDECAR_DISAGREES,
                f"{path.parent.name}/{path.name}: {text}",
                "the words and times of the transcript",
                "nothing to do: the transcript's words and times are used",
            )


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


def surprisal_bits(tokens: TokenTable) -> tuple[FloatArray, FloatArray]:
    """Return surprisal and entropy of every word in bits, [n_words] each.

    Surprisal is ``−Σ log2 true_prob`` over the word's tokens. Entropy is that of the model's prediction of the word's
    first token, before the word; the source gives it in nats.
    """
    table = tokens.table
    table.require(("true_prob", "entropy"))
    probability = np.array(table.numbers("true_prob"))
    for row in np.flatnonzero((probability <= 0) | (probability > 1)):
        raise table.wrong("true_prob", int(row), "a probability above 0")
    surprisal = np.zeros(tokens.first_row.size)
    np.add.at(surprisal, tokens.word, -np.log2(probability))
    first = tokens.first_row
    entropy = np.array(table.numbers("entropy"))[first] / np.log(2.0)
    surprisal[first < 0] = entropy[first < 0] = np.nan
    return surprisal, entropy


FeatureSource = tuple[Path, str, TokenTable]
"""File, name of the HDF5 dataset, and table of its rows."""


def load_words(
    path: Path, name: str, tokens: TokenTable, order: IntArray, pooling: Literal["mean", "last"]
) -> FloatArray:
    """Return features of the words [n_words, n_columns]: the file's rows of a word's tokens averaged, or the last.

    ``order`` is [n_words], the words of the stimulus as rows of the transcript.
    """
    with open_hdf5(path, FeatureError) as file:
        values: npt.NDArray[Any] = hdf5_dataset(file, name, FeatureError)[...]
    if values.ndim < 2 or len(values) != len(tokens.word):
        expected = f"{len(tokens.word)} rows, as in {tokens.table.path}"
        found, remedy = f"shape {values.shape}", "download both files again"
        raise invalid(f"{path}, '{name}'", found, expected, FeatureError, remedy)
    values = values.reshape(len(values), -1).astype(np.float64)
    rows = np.argsort(tokens.word, kind="stable")
    words, first, count = np.unique(tokens.word[rows], return_index=True, return_counts=True)
    pooled = np.full((tokens.first_row.size, values.shape[1]), np.nan)
    if pooling == "last":
        pooled[words] = values[rows[first + count - 1]]
    else:
        pooled[words] = np.add.reduceat(values[rows], first, axis=0) / count[:, None]
    return pooled[order]


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
        expected = "datasets layer-0, layer-1, …" if name == GPT2 else "the dataset 'vectors'"
        raise invalid(path, "datasets " + (", ".join(names) or "none"), expected, FeatureError)
    return {FeatureKey(name, layer, "full"): (path, dataset, tokens) for layer, dataset in sorted(layers.items())}


class PodcastEcog(FolderDataset[PodcastOptions, Path]):
    """The Podcast ECoG dataset; see docs/how-to/datasets/podcast_ecog.md."""

    name = "podcast_ecog"
    summary = "Podcast ECoG (ds005574): nine people hear a 30-minute story; high-gamma envelope, 512 Hz"
    Options = PodcastOptions
    contents = "the folder of ds005574, with derivatives/ecogprep/ and stimuli/"
    chosen_by = "signal"
    extra = "meeg"
    layout, download = published("podcast_ecog")

    def _open(self) -> None:
        self.info = read_description(self.folder)
        self.recordings = {
            RecordingId(entities(path)["sub"], "1", "1", STIMULUS): path
            for path in self.folder.glob(_SIGNALS[self.options.signal], RecordingError)
        }

    def _electrodes(self, subject: str) -> Path | None:
        name = f"sub-{subject}/ieeg/sub-{subject}_space-{FRAME}_electrodes.tsv"
        return self.folder.optional(name, RecordingError)

    def _recording(self, recording_id: RecordingId, files: Path) -> Recording:
        subject = recording_id.subject
        sidecar = channels = None
        if self.options.signal == "raw":
            stem = f"sub-{subject}/ieeg/sub-{subject}_task-podcast"
            sidecar = self.folder.optional(f"{stem}_ieeg.json", RecordingError)
            channels = self.folder.file(f"{stem}_channels.tsv", RecordingError)
        recording, _ = open_recording(
            self.folder,
            files,
            recording_id,
            wanted=("ecog", "seeg", "dbs"),
            comparable=False,
            sidecar=sidecar,
            channels=channels,
            places=lambda own, ids: self._places(subject, own, ids),
            envelope=self.options.signal == "highgamma",
            start_s=-self.options.audio_start_s,
        )
        return recording

    def _places(self, subject: str, own: Places, ids: Sequence[str]) -> Places:
        """Return the places of the units: from the file, and where that has none, from the electrode table."""
        path, inside = self._electrodes(subject), own.coordinates_mm
        if path is None:
            return Places(inside, FRAME, own.regions)
        listed = read_electrodes(path, ids, unit="mm", frame=FRAME, region_column="", where=self.folder.where(path))
        known = np.isfinite(inside).all(axis=1, keepdims=True)
        coordinates = np.where(known, inside, listed.coordinates_mm)
        return Places(coordinates, FRAME, listed.regions, listed.findings)

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        """Read the words and their annotations; features are read when they are loaded."""
        transcript, findings = read_transcript(self.folder)
        tokens: dict[str, TokenTable] = {}
        for name in dict.fromkeys((GPT2, SYNTAX, *self.options.features)):
            path = self.folder.optional(token_table(name), StimulusError)
            if path is not None:
                tokens[name] = TokenTable(path, transcript, findings)
        sources: dict[FeatureKey, FeatureSource] = {}
        order = transcript.order()
        for name in self.options.features:
            path = self.folder.optional(f"stimuli/{name}/features.hdf5", StimulusError)
            if path is not None:
                self.folder.file(token_table(name), StimulusError)
                sources |= feature_sources(name, path, tokens[name])
                gone = order[tokens[name].first_row[order] < 0]
                if gone.size:
                    words = [f"{i} {transcript.words[i]!r}" for i in gone[:4]]
                    findings.excluded(
                        "word_idx",
                        Reason.SOURCE_ROWS_LEFT_OUT,
                        f"{gone.size} word(s) without features of {name}: {', '.join(words)}",
                        "features for every word",
                        f"the words are left out; leave {name} out of the option 'features' to keep them",
                    )
                    order = order[~np.isin(order, gone)]
        words = [transcript.words[i] for i in order]
        onset_s, offset_s = transcript.start_s[order], transcript.end_s[order]
        sentences = sentence_numbers(words, onset_s, offset_s)
        findings.sentences_by_rule(
            f"{len(set(sentences.tolist()))} sentences: they begin after final punctuation, and at capitalised "
            f"words that are also written small, or that follow {SENTENCE_PAUSE_S:g} s of silence",
            "numbered sentences",
            "nothing to do; sentences that begin with 'I' or a name without a pause join the one before",
        )
        columns: dict[str, Any] = {"word_idx": order}
        mechanisms = {}
        if GPT2 in tokens:
            surprisal, entropy = (bits[order] for bits in surprisal_bits(tokens[GPT2]))
            columns |= {"gpt2_surprisal": surprisal, "gpt2_entropy": entropy}
            if np.isfinite(surprisal).all():
                mechanisms["surprisal"] = surprisal
        if SYNTAX in tokens:
            table, rows = tokens[SYNTAX].table, tokens[SYNTAX].first_row[order]
            table.require(("pos", "dep"))
            for column in ("pos", "dep"):
                cells = table.cells(column)
                found = [cells[row] if row >= 0 else None for row in rows]
                columns[column] = pl.Series(found, dtype=pl.String)
        audio = self.folder.optional(AUDIO, StimulusError)
        pooling = self.options.token_pooling
        return Stimulus(
            id=stimulus_id,
            words=words_table(words, onset_s, offset_s, sentences, STIMULUS, columns),
            where=findings.where,
            features={
                key: OfferedFeatures(str(source[0]), partial(load_words, *source, order, pooling))
                for key, source in sources.items()
            },
            mechanisms=mechanisms,
            transcripts={STIMULUS: " ".join(words)},
            findings=tuple(findings),
            **self._audio(audio, f"{AUDIO} is not in the folder"),
        )

    def _paths(self) -> Iterator[Path | None]:
        folder = self.folder
        yield folder.file(DESCRIPTION)
        for recording_id, path in self.recordings.items():
            yield from recording_files(folder, path)
            yield self._electrodes(recording_id.subject)
            if self.options.signal == "raw":
                stem = folder.relative(path).removesuffix("_ieeg.edf")
                yield from map(folder.optional, (f"{stem}_channels.tsv", f"{stem}_ieeg.json"))
        yield read_transcript(folder)[0].path
        names = [AUDIO, token_table(SYNTAX), token_table(GPT2)]
        for name in self.options.features:
            names += [f"stimuli/{name}/features.hdf5", token_table(name)]
        yield from map(folder.optional, names)
