"""What readers of dataset folders share: recordings by id, checks, words tables and notes for the audit."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.sentences import (
    ends_sentence,
    sentences_by_pauses,
    sentences_by_punctuation,
)
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import (
    MISSING,
    CsvFile,
    ErrorType,
    TsvFile,
    is_finite,
    read_text,
)
from lpact.datasets._finding import Finding
from lpact.datasets.base import (
    WORD_COLUMNS,
    AbsentMedium,
    Dataset,
    DatasetReader,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
)
from lpact.datasets.validate import check_recording, check_recording_ids, check_stimulus
from lpact.errors import InputError, RecordingError, StimulusError, did_you_mean
from lpact.math.types import FloatArray
from lpact.registry import PluginOptions

UNKNOWN = "unknown"
"""Region of a unit whose region the source does not state."""

_PLAIN = re.compile(r"[^A-Za-z0-9]+")
DOWNLOAD_AGAIN = "copy or download the file again, and compare its checksum"

OptionsT = TypeVar("OptionsT", bound=PluginOptions)
FilesT = TypeVar("FilesT")


class FolderDataset(Dataset, Generic[OptionsT, FilesT]):
    """A dataset in a folder; ``recordings`` maps each recording to what it is read from."""

    def __init__(self, folder: SourceFolder, options: OptionsT) -> None:
        self.folder = folder
        self.options = options
        self.recordings: dict[RecordingId, FilesT] = {}

    @abstractmethod
    def _recording(self, recording_id: RecordingId, files: FilesT) -> Recording:
        """Read one recording."""

    @abstractmethod
    def _stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one stimulus."""

    @abstractmethod
    def _paths(self) -> Iterable[Path | None]:
        """Return every file that is read; None for an optional file that is missing."""

    def _set_recordings(self, recordings: Iterable[tuple[RecordingId, FilesT]]) -> None:
        pairs = list(recordings)
        check_recording_ids(
            [recording_id for recording_id, _ in pairs], where=str(self.folder.root)
        )
        self.recordings = dict(pairs)

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self.recordings)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Read one recording; raises `RecordingError` when it is malformed."""
        if recording_id not in self.recordings:
            raise RecordingError(
                "the dataset has no such recording",
                where=f"dataset '{self.folder.name}', {self.folder.root}",
                got=f"{recording_id} with stimulus '{recording_id.stimulus}'",
                expected="one of recording_ids()",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self.recordings]),
            )
        recording = self._recording(recording_id, self.recordings[recording_id])
        check_recording(recording)
        return recording

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one stimulus; raises `StimulusError` when it is malformed."""
        known = self.stimulus_ids()
        if stimulus_id not in known:
            raise StimulusError(
                "the dataset has no such stimulus",
                where=f"dataset '{self.folder.name}', {self.folder.root}",
                got=stimulus_id,
                expected="one of stimulus_ids()",
                remedy=did_you_mean(stimulus_id, known),
            )
        stimulus = self._stimulus(stimulus_id)
        check_stimulus(stimulus)
        return stimulus

    def source_files(self) -> list[SourceFile]:
        """Return every file that is read, with its checksum."""
        found = [path for path in self._paths() if path is not None]
        return self.folder.source_files(found, self.info.licence)

    def _audio(self, path: Path | None, absent: str) -> dict[str, Any]:
        """Return the media of a stimulus; ``absent`` says why there is no audio if ``path`` is None."""
        if path is not None:
            return {"media": {"audio": self.folder.relative(path)}, "media_root": self.folder.root}
        return no_audio(Reason.MEDIA_NOT_OFFERED, absent)


class FolderReader(DatasetReader):
    """A reader whose ``dataset`` takes a folder and the options; ``contents`` says what the folder should hold."""

    dataset: ClassVar[type[FolderDataset[Any, Any]]]
    contents: ClassVar[str]

    def open(self, *, name: str, path: Path | None, seed: int) -> Dataset:  # noqa: ARG002
        """Open the folder ``path``."""
        return self.dataset(SourceFolder(path, name=name, expected=self.contents), self.options)


def no_audio(reason: Reason, detail: str) -> dict[str, Any]:
    """Return the media of a stimulus without audio."""
    return {"media_absent": {"audio": AbsentMedium(reason, detail)}}


def note(field: str, reason: Reason, where: str, found: str, expected: str, remedy: str) -> Finding:
    """Return a finding on something that is kept."""
    return Finding(field, reason, "note", where, found, expected, remedy)


def excluded(
    field: str, reason: Reason, where: str, found: str, expected: str, remedy: str
) -> Finding:
    """Return a finding on something that is left out."""
    return Finding(field, reason, "excluded", where, found, expected, remedy)


def first_file(folder: SourceFolder, *names: str, error: ErrorType = InputError) -> Path | None:
    """Return the first of these files that exists."""
    found = (folder.optional(name, error) for name in names)
    return next((path for path in found if path is not None), None)


def only_file(
    folder: SourceFolder,
    found: Sequence[Path],
    what: str,
    *,
    option: str = "",
    error: ErrorType = InputError,
) -> Path:
    """Return the only file of ``found``; ``what`` names it, and ``option`` lets the user choose one of several."""
    if len(found) == 1:
        return found[0]
    names = [folder.relative(path) for path in found]
    choose = f'choose one with the option {option} = "{names[0]}"' if option and names else ""
    raise error(
        f"there are several {what}s" if found else f"there is no {what}",
        where=str(folder.root),
        got=", ".join(names[:8]) or "no such file",
        expected=f"one {what}",
        remedy=choose or ("keep one of them" if found else "put the file into the folder"),
    )


def check_known(
    wanted: Iterable[str], known: Iterable[str], *, option: str, folder: SourceFolder
) -> None:
    """Raise `InputError` if an option lists a name that the dataset does not have."""
    names = sorted(set(known) - {""})
    for name in wanted:
        if name not in names:
            raise InputError(
                f"the dataset has no '{name}'",
                where=f"dataset '{folder.name}', option '{option}'",
                got=name,
                expected=f"{option} of {folder.root}",
                remedy=did_you_mean(name, names),
            )


def check_unique(
    names: Iterable[str], *, where: str, remedy: str, error: ErrorType = RecordingError
) -> None:
    """Raise ``error`` if a name is listed more than once."""
    for name, count in Counter(names).items():
        if count > 1:
            raise error(
                f"'{name}' is listed more than once",
                where=where,
                got=f"'{name}' {count} times",
                expected="every name once",
                remedy=remedy,
            )


def damaged(
    path: Path, problem: object, error: ErrorType = RecordingError, expected: str = ""
) -> InputError:
    """Return the error of a file that cannot be opened or read to its end."""
    kind = f"{type(problem).__name__}: " if isinstance(problem, Exception) else ""
    size = f"{path.stat().st_size} bytes; " if path.is_file() else ""
    return error(
        "a file cannot be read; it may be truncated",
        where=str(path),
        got=f"{size}{kind}{' '.join(str(problem).split())[:300]}",
        expected=expected or "a complete file of the kind that its name says",
        remedy=DOWNLOAD_AGAIN,
    )


def read_json(path: Path, error: ErrorType = RecordingError) -> dict[str, Any]:
    """Return the object of a JSON file."""
    values = read_json_value(path, error)
    if not isinstance(values, dict):
        raise error(
            "a JSON file does not hold an object",
            where=str(path),
            got=type(values).__name__,
            expected="an object in braces",
            remedy="fix the file, or download it again",
        )
    return values


def read_json_value(path: Path, error: ErrorType = RecordingError) -> Any:
    """Return the value of a JSON file."""
    try:
        return json.loads(read_text(path, error))
    except (ValueError, RecursionError) as problem:
        # Numbers with thousands of digits are ValueErrors, thousands of brackets a RecursionError.
        line = f", line {problem.lineno}" if isinstance(problem, json.JSONDecodeError) else ""
        raise error(
            "a file is not valid JSON",
            where=f"{path}{line}",
            got=str(problem),
            expected="JSON",
            remedy="fix the line, or download the file again",
        ) from None


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


def read_table(path: Path, error: ErrorType) -> TsvFile:
    """Open a table: CSV by its ending, otherwise TSV."""
    return (CsvFile if path.suffix.lower() == ".csv" else TsvFile)(path, error)


def typed_column(cells: Sequence[str]) -> pl.Series:
    """Return numbers where every cell is a finite number or missing (null), otherwise texts."""
    known = [cell for cell in cells if cell not in MISSING]
    if not known or not all(is_finite(cell) for cell in known):
        return pl.Series([cell or None for cell in cells], dtype=pl.String)
    whole = all(cell.lstrip("+-").isdecimal() and len(cell) <= 18 for cell in known)
    number: Any = int if whole else float
    values = [None if cell in MISSING else number(cell) for cell in cells]
    return pl.Series(values, dtype=pl.Int64 if whole else pl.Float64)


def labelled_words(
    words: Sequence[str],
    onset_s: FloatArray,
    offset_s: FloatArray,
    *,
    stories: Sequence[str],
    sentences: Sequence[str] | None,
    columns: Mapping[str, Sequence[str]],
    pause_s: float,
    where: str,
    remedy: str,
) -> tuple[pl.DataFrame, list[Finding]]:
    """Return a words table from the cells of a source table, and notes.

    A sentence begins where the label in ``sentences`` changes. Without labels, sentences follow from punctuation, or
    from pauses where no word ends a sentence; ``remedy`` says how to do better. ``columns`` are kept under plain names.
    """
    findings = []
    if sentences is not None:
        labels = list(zip(stories, sentences, strict=True))
        numbers = np.cumsum([i > 0 and labels[i] != labels[i - 1] for i in range(len(labels))])
    else:
        if any(ends_sentence(word) for word in words):
            numbers, rule = sentences_by_punctuation(words, stories), "punctuation"
        else:
            numbers = sentences_by_pauses(onset_s.tolist(), offset_s.tolist(), stories, pause_s)
            rule = f"pauses of {pause_s:g} s"
        found = f"{len(set(numbers.tolist()))} sentences by {rule}"
        findings.append(sentence_note(where, found, "labelled sentences", remedy))
    extra: dict[str, pl.Series] = {}
    for name, cells in columns.items():
        plain = _PLAIN.sub("_", name).strip("_").lower()
        known = any(cell not in MISSING for cell in cells)
        if known and plain and plain not in WORD_COLUMNS and plain not in extra:
            extra[plain] = typed_column(cells)
    return words_table(words, onset_s, offset_s, numbers, stories, extra), findings


def untimed_note(where: str, field: str, n_missing: int, n_words: int, first: str) -> Finding:
    """Return the finding on words without times."""
    return excluded(
        field,
        Reason.SOURCE_ROWS_LEFT_OUT,
        where,
        f"{n_missing} of {n_words} words without times; first: {first}",
        "times of every word",
        "the words are left out; add their times to keep them",
    )


def sentence_note(where: str, found: str, expected: str, remedy: str) -> Finding:
    """Return the note that sentences follow from a rule, not from the source."""
    return note("sentence_id", Reason.SENTENCES_BY_RULE, where, found, expected, remedy)
