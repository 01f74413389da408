"""Base class of readers of dataset folders: recordings by id, checks, words tables and sentences."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import MISSING, ErrorType, TextTable, invalid, read_text, typed_column
from lpact.datasets.base import (
    ITEM,
    WORD_COLUMNS,
    AbsentMedium,
    Dataset,
    DatasetReader,
    Findings,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
)
from lpact.datasets.validate import check_recording, check_recording_ids, check_stimulus
from lpact.errors import InputError, RecordingError, StimulusError, require_known
from lpact.math.types import FloatArray, IntArray
from lpact.registry import PluginOptions

UNKNOWN = "unknown"
"""Region of a unit whose region the source does not state."""

_PLAIN = re.compile(r"[^A-Za-z0-9]+")
_CLOSING = "\"'\u201d\u2019)]}\u00bb"
_ENDS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f")
_ABBREVIATIONS = frozenset(("mr.", "mrs.", "ms.", "dr.", "st.", "jr.", "sr.", "prof.", "vs.", "etc.", "e.g.", "i.e."))

OptionsT = TypeVar("OptionsT", bound=PluginOptions)
FilesT = TypeVar("FilesT")


class FolderDataset(Dataset, DatasetReader, Generic[OptionsT, FilesT]):
    """A dataset in a folder, and its reader; ``contents`` describes the expected folder.

    ``recordings`` maps each recording to what it is read from; ``chosen_by`` are the options that choose them.
    """

    contents: ClassVar[str]
    chosen_by: ClassVar[str] = ""
    has_recordings: ClassVar[bool] = True
    options: OptionsT
    folder: SourceFolder
    recordings: dict[RecordingId, FilesT]
    _read: dict[str, Stimulus]

    def open(self, *, name: str, path: Path | None, seed: int) -> Dataset:  # noqa: ARG002
        """Open the folder ``path``."""
        opened = copy(self)
        opened.folder = SourceFolder(path, name=name, expected=self.contents)
        opened.recordings = {}
        opened._read = {}
        opened._open()
        if self.has_recordings and not opened.recordings:
            raise InputError(
                "the folder has no such recordings",
                where=f"dataset '{name}', {opened.folder.root}",
                got="no file of the layout that fits the options",
                expected=self.contents,
                remedy="give the folder itself, and check that its files are downloaded and unpacked"
                + (f"; or change the options {self.chosen_by}" if self.chosen_by else ""),
            )
        return opened

    @abstractmethod
    def _open(self) -> None:
        """Find the recordings."""

    @abstractmethod
    def _recording(self, recording_id: RecordingId, files: FilesT) -> Recording:
        """Read one recording."""

    @abstractmethod
    def _stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one stimulus."""

    @abstractmethod
    def _paths(self) -> Iterable[Path | None]:
        """Return every file that is read; None for an optional file that is missing."""

    def _set_recordings(self, recordings: Iterable[tuple[RecordingId, FilesT]], where: str = "") -> None:
        pairs = list(recordings)
        ids = [recording_id for recording_id, _ in pairs]
        check_recording_ids(ids, where=where or str(self.folder.root))
        self.recordings = dict(pairs)

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self.recordings)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Read one recording; raises `RecordingError` when it is malformed."""
        where = f"dataset '{self.folder.name}', {self.folder.root}"
        known = {f"{known} of '{known.stimulus}'": known for known in self.recordings}
        name = f"{recording_id} of '{recording_id.stimulus}'"
        require_known(name, known, "recording", where=where, error=RecordingError)
        recording = self._recording(recording_id, self.recordings[recording_id])
        check_recording(recording)
        return recording

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one stimulus, once; raises `StimulusError` when it is malformed."""
        if stimulus_id in self._read:
            return self._read[stimulus_id]
        where, known = f"dataset '{self.folder.name}', {self.folder.root}", self.stimulus_ids()
        require_known(stimulus_id, known, "stimulus", where=where, error=StimulusError)
        stimulus = self._stimulus(stimulus_id)
        check_stimulus(stimulus)
        self._read[stimulus_id] = stimulus
        return stimulus

    def source_files(self) -> list[SourceFile]:
        """Return every file that is read, with its checksum."""
        found = [path for path in self._paths() if path is not None]
        return self.folder.source_files(found, self.info.licence)

    def _audio(self, path: Path | None, absent: str) -> dict[str, Any]:
        """Return the media of a stimulus; ``absent`` is the reason if ``path`` is None."""
        if path is not None:
            return {"media": {"audio": self.folder.relative(path)}, "media_root": self.folder.root}
        return no_audio(Reason.MEDIA_NOT_OFFERED, absent)


def no_audio(reason: Reason, detail: str) -> dict[str, Any]:
    """Return the media of a stimulus without audio."""
    return {"media_absent": {"audio": AbsentMedium(reason, detail)}}


def first_file(folder: SourceFolder, *names: str, error: ErrorType = InputError) -> Path | None:
    """Return the first of these files that exists."""
    found = (folder.optional(name, error) for name in names)
    return next((path for path in found if path is not None), None)


def chosen_file(
    folder: SourceFolder,
    *patterns: str,
    named: str = "",
    option: str = "",
    error: ErrorType = InputError,
) -> Path:
    """Return the file ``named`` by an option, or else the only file that matches one of ``patterns``."""
    if named:
        return folder.file(named, error)
    found = [path for pattern in patterns for path in folder.glob(pattern, error)]
    if len(found) == 1:
        return found[0]
    names = [folder.relative(path) for path in found]
    remedy = "put the file into the folder"
    if found:
        remedy = f'set the option {option} = "{names[0]}"' if option else "keep one of them"
    raise error(
        f"there are several files {patterns[0]}" if found else f"there is no file {patterns[0]}",
        where=str(folder.root),
        got=", ".join(names[:8]) or "no such file",
        expected=f"one file {' or '.join(patterns)}",
        remedy=remedy,
    )


def check_known(wanted: Iterable[str], known: Iterable[str], *, option: str, folder: SourceFolder) -> None:
    """Raise `InputError` if an option lists a name that the dataset does not have."""
    where = f"dataset '{folder.name}', {folder.root}, option '{option}'"
    for name in wanted:
        require_known(name, set(known) - {""}, option.removesuffix("s"), where=where)


def read_json(path: Path, error: ErrorType = RecordingError) -> dict[str, Any]:
    """Return the object of a JSON file."""
    values = read_json_value(path, error)
    if not isinstance(values, dict):
        raise invalid(path, type(values).__name__, "a JSON object, in braces", error)
    return values


def read_json_value(path: Path, error: ErrorType = RecordingError) -> Any:
    """Return the value of a JSON file."""
    try:
        return json.loads(read_text(path, error))
    except (ValueError, RecursionError) as problem:
        # Numbers with thousands of digits are ValueErrors, thousands of brackets a RecursionError.
        line = f", line {problem.lineno}" if isinstance(problem, json.JSONDecodeError) else ""
        raise invalid(f"{path}{line}", str(problem), "JSON", error) from None


def words_table(
    word: Sequence[str],
    onset_s: npt.ArrayLike,
    offset_s: npt.ArrayLike,
    sentence_id: npt.ArrayLike,
    story: str | Sequence[str],
    columns: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """Return a words table; ``story`` is one name for all words, or one per word."""
    stories = [story] * len(word) if isinstance(story, str) else list(story)
    values: tuple[Any, ...] = (list(word), onset_s, offset_s, sentence_id, stories)
    own = {
        name: pl.Series(name, value, dtype=kind)
        for (name, kind), value in zip(WORD_COLUMNS.items(), values, strict=True)
    }
    return pl.DataFrame({**own, **(columns or {})})


def labelled_words(
    words: Sequence[str],
    onset_s: FloatArray,
    offset_s: FloatArray,
    *,
    stories: Sequence[str],
    sentences: Sequence[str] | None,
    columns: Mapping[str, Sequence[str]],
    pause_s: float,
    findings: Findings,
    remedy: str,
) -> pl.DataFrame:
    """Return a words table from the cells of a source table.

    A sentence begins where the label in ``sentences`` changes. Without labels, sentences follow from punctuation, or
    from pauses where no word ends a sentence; ``remedy`` says how to do better. ``columns`` are kept under plain names.
    """
    if sentences is not None:
        labels = list(zip(stories, sentences, strict=True))
        numbers = np.cumsum([i > 0 and labels[i] != labels[i - 1] for i in range(len(labels))])
    else:
        pause = None if any(map(ends_sentence, words)) else pause_s
        numbers = sentences_by_rule(words, onset_s, offset_s, stories, pause, findings, remedy)
    extra: dict[str, pl.Series] = {}
    for name, cells in columns.items():
        plain = _PLAIN.sub("_", name).strip("_").lower()
        known = any(cell not in MISSING for cell in cells)
        if known and plain and plain not in WORD_COLUMNS and plain not in extra:
            extra[plain] = typed_column(cells)
    return words_table(words, onset_s, offset_s, numbers, stories, extra)


def sentences_by_rule(
    words: Sequence[str],
    onset_s: FloatArray,
    offset_s: FloatArray,
    stories: Sequence[str],
    pause_s: float | None,
    findings: Findings,
    remedy: str,
) -> IntArray:
    """Number sentences by pauses of ``pause_s``, or by punctuation where that is None, and note it."""
    if pause_s is None:
        numbers, rule = sentences_by_punctuation(words, stories), "punctuation"
    else:
        numbers = sentences_by_pauses(onset_s.tolist(), offset_s.tolist(), stories, pause_s)
        rule = f"pauses of {pause_s:g} s"
    found = f"{len(set(numbers.tolist()))} sentences by {rule}"
    findings.sentences_by_rule(found, "sentences that the source labels", remedy)
    return numbers


def sentences_by_punctuation(words: Sequence[str], stories: Sequence[str]) -> IntArray:
    """Number sentences 0, 1, …: a new one begins after a word that ends one, and with every story.

    A word ends a sentence if, without closing quotes and brackets, it ends in a full stop, an exclamation or question
    mark or an ellipsis, and is not a common abbreviation or a single initial.
    """
    return _number(stories, [ends_sentence(word) for word in words])


def _number(stories: Sequence[str], last: Sequence[bool]) -> IntArray:
    """Number sentences, given which words are the ``last`` of theirs; a story ends a sentence, too."""
    new = [i > 0 and (last[i - 1] or stories[i] != stories[i - 1]) for i in range(len(stories))]
    return np.cumsum(new, dtype=np.int64)


def ends_sentence(word: str) -> bool:
    """Whether a written word ends its sentence."""
    bare = word.rstrip(_CLOSING)
    if not bare.endswith(_ENDS):
        return False
    initial = len(bare) == 2 and bare[0].isupper() and bare[1] == "." and bare[0] != "I"
    return not initial and bare.lower() not in _ABBREVIATIONS


def sentences_by_pauses(
    onset_s: Sequence[float], offset_s: Sequence[float], stories: Sequence[str], pause_s: float
) -> IntArray:
    """Number sentences 0, 1, … where words carry no punctuation: a new one begins after a pause of ``pause_s``."""
    return _number(stories, [onset - offset >= pause_s for onset, offset in zip(onset_s[1:], offset_s, strict=False)])


def word_columns(
    table: TextTable, names: Mapping[str, str], *, seconds: float = 1.0, items: bool = False
) -> pl.DataFrame:
    """Read all columns of a table of words; ``names`` maps known columns to those of the file.

    Times are multiplied by ``seconds``. Sentence ids of ``items`` may be texts.
    """
    columns = {}
    for ours, theirs in names.items():
        kind = WORD_COLUMNS.get(ours, pl.String)
        if kind == pl.Float64:
            columns[ours] = pl.Series(table.numbers(theirs), dtype=kind) * seconds
        elif kind == pl.Int64 and not items:
            columns[ours] = pl.Series(table.integers(theirs), dtype=kind)
        else:
            columns[ours] = pl.Series(table.text(theirs), dtype=pl.String)
    used = set(names.values())
    columns |= {name: typed_column(table.cells(name)) for name in table.columns if name not in used}
    return pl.DataFrame(columns)


def read_words_file(path: Path, required: tuple[str, ...] = ("word",)) -> pl.DataFrame:
    """Read a TSV file of words or items whose known columns have lpact's names."""
    table = TextTable(path, StimulusError)
    table.require(required)
    known = [name for name in table.columns if name in (ITEM, *WORD_COLUMNS)]
    return word_columns(table, {name: name for name in known}).select(table.columns)


def read_transcripts(path: Path, stories: list[str]) -> dict[str, str]:
    """Read the stories as running text: a file for one story, or a folder with ``<story>.txt`` for each."""
    if path.is_dir():
        return {file.stem: read_text(file, StimulusError) for file in sorted(path.glob("*.txt"))}
    if len(stories) != 1:
        raise StimulusError(
            "several stories need one transcript each",
            where=str(path),
            got=f"one file for {len(stories)} stories ({', '.join(stories[:3])} …)",
            expected="a folder with <story>.txt for each story",
            remedy="put the transcripts into a folder, and give its path",
        )
    return {stories[0]: read_text(path, StimulusError)}
