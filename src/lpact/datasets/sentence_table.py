"""Responses to sentences in one CSV table, as Tuckute et al. (2024) publish theirs.

Long, one row for each sentence, subject and region::

    item_id, sentence, target_UID, roi, response_target, cond, …

or wide, one row for each sentence and subject, with a column for each region (option ``response_columns``). Options
name the columns. Columns that say the same in every row of a sentence are kept with its words; others are not read.

A recording is a subject (and session, where a column tells them), a unit a region, an epoch a sentence
(``events = "sentences"``). Sentences are unrelated unless a column names passages: each is then a story of its own.
Subjects who were shown the same sentences share one stimulus. Sentences are in the order of ``item_id``; times are
nominal, one sentence after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies.presented import PLAIN_COLUMNS, grouped, sentence_words
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile
from lpact.datasets._finding import Finding
from lpact.datasets.base import (
    AbsentMedium,
    Dataset,
    DatasetInfo,
    DatasetReader,
    Epochs,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
    Units,
)
from lpact.datasets.catalogue import Download, Expected
from lpact.datasets.validate import check_recording, check_stimulus
from lpact.errors import InputError, RecordingError, StimulusError, did_you_mean
from lpact.registry import PluginOptions

RUN = "sentences"
GROUP, SESSION = "group", "1"
LICENCE = "as its source says"


class SentenceTableOptions(PluginOptions):
    """What the columns of the table are called, and which rows are read."""

    file: str = Field(
        "",
        description="Table to read, relative to the folder. Empty: the only CSV or TSV file there.",
    )
    item_column: str = Field(
        "item_id", description="Column that numbers sentences. Empty: a sentence is its own name."
    )
    sentence_column: str = Field("sentence", description="Column with the sentences.")
    subject_column: str = Field(
        "target_UID",
        description="Column with the subjects. Empty: all rows are of one, called `group`.",
    )
    session_column: str = Field(
        "", description="Column with the sessions, where a subject has several. Empty: one session."
    )
    roi_column: str = Field("roi", description="Column with the regions of a long table.")
    response_column: str = Field(
        "response_target", description="Column with the responses of a long table."
    )
    response_columns: tuple[str, ...] = Field(
        (), description="Columns of a wide table, one per region. Empty: the table is long."
    )
    passage_column: str = Field(
        "", description="Column that tells which sentences belong together. Empty: none do."
    )
    subjects: tuple[str, ...] = Field((), description="Subjects to read. Empty: all.")
    rois: tuple[str, ...] = Field((), description="Regions to read. Empty: all.")
    missing: Literal["error", "leave_out"] = Field(
        "error",
        description="What to do with a sentence for which a subject lacks the response of a region: stop, or "
        "`leave_out` the sentence for that subject.",
    )
    shown_s: float = Field(2.0, gt=0, description="Nominal time of a sentence, in seconds.")
    physical_unit: str = Field("", description="Unit of the responses, where it is known.")
    source: str = Field("", description="Where the table comes from. Empty: its name.")
    version: str = Field("not stated", description="Version of the table.")
    licence: str = Field(LICENCE, description="Licence of the table.")


@dataclass
class _Rows:
    """Responses of one recording by sentence and region, and the lines that they stand in."""

    values: dict[str, dict[str, float]] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)


class SentenceTableDataset(Dataset):
    """An opened table."""

    def __init__(self, name: str, path: Path | None, options: SentenceTableOptions) -> None:
        self._options = options
        self._source = SourceFolder(path, name=name, expected="a folder with one table (*.csv)")
        self._path = self._find()
        delimiter = "\t" if self._path.suffix == ".tsv" else ","
        self._table = CsvFile(self._path, InputError, delimiter=delimiter)
        self._where = self._source.where(self._path)
        source = options.source or f"table {self._source.relative(self._path)}"
        self.info = DatasetInfo(source, options.version, options.licence)
        self._check_columns()
        self._items = self._table.text(options.item_column or options.sentence_column)
        self._sentences = self._read_sentences()
        self._order = self._item_order()
        rows = self._read_rows()
        self._findings: dict[RecordingId, tuple[Finding, ...]] = {}
        self._rows: dict[RecordingId, _Rows] = {}
        self._sets: dict[str, tuple[str, ...]] = {}
        self._share_stimuli(rows)

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self._rows)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Return the responses of one subject."""
        if recording_id not in self._rows:
            raise RecordingError(
                "the table has no such recording",
                where=str(self._path),
                got=f"{recording_id} with stimulus '{recording_id.stimulus}'",
                expected="one of recording_ids()",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self._rows]),
            )
        values = self._rows[recording_id].values
        rois = self._rois(self._rows[recording_id])
        responses = [
            [values[item][roi] for roi in rois] for item in self._sets[recording_id.stimulus]
        ]
        recording = Recording(
            recording_id,
            Epochs(np.array(responses)[None], (0.0,), self._options.physical_unit),
            Units(rois, rois),
            f"{self._where}, subject {recording_id.subject}, session {recording_id.session}",
            findings=self._findings[recording_id],
        )
        check_recording(recording)
        return recording

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Return the words of one set of sentences."""
        if stimulus_id not in self._sets:
            raise StimulusError(
                "the table has no such stimulus",
                where=str(self._path),
                got=stimulus_id,
                expected="one of " + ", ".join(self._sets),
                remedy=did_you_mean(stimulus_id, self._sets),
            )
        items = self._sets[stimulus_id]
        passages = self._passages()
        stimulus = Stimulus(
            id=stimulus_id,
            words=sentence_words(
                [self._sentences[item] for item in items],
                [passages[item] for item in items],
                [self._options.shown_s * k for k in range(len(items))],
                shown_s=self._options.shown_s,
                where=self._where,
                columns=self._annotations(items),
            ),
            where=self._where,
            media_absent={
                "audio": AbsentMedium(Reason.MEDIA_NOT_OFFERED, "the table has sentences only")
            },
        )
        check_stimulus(stimulus)
        return stimulus

    def source_files(self) -> list[SourceFile]:
        """Return the table with its checksum."""
        return self._source.source_files([self._path], self.info.licence)

    def _find(self) -> Path:
        if self._options.file:
            return self._source.file(self._options.file)
        found = self._source.glob("**/*.csv") + self._source.glob("**/*.tsv")
        if len(found) != 1:
            names = [self._source.relative(path) for path in found]
            raise InputError(
                "there is no table" if not found else "there are several tables",
                where=str(self._source.root),
                got=", ".join(names[:8]) or "no file '*.csv'",
                expected="one table of sentences and responses",
                remedy="put the table into the folder"
                if not found
                else f'name one in the dataset\'s options: file = "{names[0]}"',
            )
        return found[0]

    def _check_columns(self) -> None:
        options = self._options
        wide = options.response_columns
        named = (
            options.item_column,
            options.sentence_column,
            options.subject_column,
            options.session_column,
            options.passage_column,
            *(wide or (options.roi_column, options.response_column)),
        )
        self._table.require([column for column in named if column])

    def _read_sentences(self) -> dict[str, str]:
        """Return the text of every sentence; one number must mean one text, and one text one number."""
        column = self._options.sentence_column
        sentences: dict[str, str] = {}
        item_of: dict[str, str] = {}
        for row, (item, text) in enumerate(zip(self._items, self._table.text(column), strict=True)):
            if sentences.setdefault(item, text) != text:
                raise self._table.wrong(
                    column, row, f"the text that '{item}' has before: {sentences[item]!r}"
                )
            if item_of.setdefault(text, item) != item:
                raise self._table.wrong(
                    column,
                    row,
                    f"one number per sentence; this one is '{item_of[text]}' and '{item}'",
                )
        return sentences

    def _item_order(self) -> dict[str, int]:
        """Return the place of every sentence: by number where all are numbered, otherwise as they appear."""
        names = list(self._sentences)
        if all(name.isascii() and name.isdigit() for name in names):
            names.sort(key=int)
        passages = self._passages()
        order = grouped([passages[name] for name in names], range(len(names)))
        return {names[index]: place for place, index in enumerate(order)}

    def _passages(self) -> dict[str, str]:
        column = self._options.passage_column
        if not column:
            return {item: item for item in self._sentences}
        passages: dict[str, str] = {}
        for row, (item, passage) in enumerate(
            zip(self._items, self._table.text(column), strict=True)
        ):
            if passages.setdefault(item, passage) != passage:
                raise self._table.wrong(column, row, f"one passage for sentence '{item}'")
        return passages

    def _read_rows(self) -> dict[tuple[str, str], _Rows]:
        """Return every response by subject and session; a response that is there twice is an error."""
        options, table = self._options, self._table
        n_rows = table.n_rows
        subjects = (
            table.text(options.subject_column) if options.subject_column else [GROUP] * n_rows
        )
        sessions = (
            table.text(options.session_column) if options.session_column else [SESSION] * n_rows
        )
        if options.response_columns:
            series = [
                ([roi] * n_rows, table.numbers_or_nan(roi)) for roi in options.response_columns
            ]
        else:
            responses = table.numbers_or_nan(options.response_column)
            series = [(table.text(options.roi_column), responses)]
        self._check_wanted("subjects", options.subjects, set(subjects))
        self._check_wanted("rois", options.rois, {roi for rois, _ in series for roi in rois})
        found: dict[tuple[str, str], _Rows] = {}
        for rois, responses in series:
            for row, (roi, value) in enumerate(zip(rois, responses, strict=True)):
                if options.subjects and subjects[row] not in options.subjects:
                    continue
                if options.rois and roi not in options.rois:
                    continue
                rows = found.setdefault((subjects[row], sessions[row]), _Rows())
                cell = (self._items[row], roi)
                if cell in rows.lines:
                    raise RecordingError(
                        "a response is there twice",
                        where=f"{self._path}, lines {rows.lines[cell]} and {table.line(row)}",
                        got=f"sentence '{cell[0]}', subject '{subjects[row]}', region '{roi}'",
                        expected="one response for every sentence, subject and region",
                        remedy="average over repetitions, or name the column of sessions in the "
                        "options: session_column",
                    )
                rows.lines[cell] = table.line(row)
                rows.values.setdefault(cell[0], {})[roi] = value
        return found

    def _check_wanted(self, option: str, wanted: tuple[str, ...], known: set[str]) -> None:
        for name in wanted:
            if name not in known:
                raise InputError(
                    f"the table has no such {option.removesuffix('s')}",
                    where=f"{self._path}, option '{option}'",
                    got=name,
                    expected="names that are in the table",
                    remedy=did_you_mean(name, known),
                )

    def _share_stimuli(self, found: dict[tuple[str, str], _Rows]) -> None:
        """Give every recording its set of sentences; equal sets are one stimulus."""
        names: dict[tuple[str, ...], str] = {}
        kept = []
        for (subject, session), rows in sorted(found.items()):
            findings = self._leave_out(subject, rows)
            items = tuple(sorted(rows.values, key=self._order.__getitem__))
            names.setdefault(items, f"{RUN}-{len(names) + 1}")
            kept.append((subject, session, items, rows, findings))
        if len(names) == 1:
            names = dict.fromkeys(names, RUN)
        self._sets = {name: items for items, name in names.items()}
        for subject, session, items, rows, findings in kept:
            recording_id = RecordingId(subject, session, RUN, names[items])
            self._rows[recording_id] = rows
            self._findings[recording_id] = tuple(findings)

    def _leave_out(self, subject: str, rows: _Rows) -> list[Finding]:
        """Drop sentences that lack a response, or raise, as the options say."""
        rois = self._rois(rows)
        lacking = {
            item: [roi for roi in rois if math.isnan(values.get(roi, math.nan))]
            for item, values in rows.values.items()
        }
        lacking = {item: missing for item, missing in lacking.items() if missing}
        if not lacking:
            return []
        item, missing = next(iter(lacking.items()))
        line = rows.lines.get((item, missing[0]))
        place = f"line {line}" if line else "no line"
        found = (
            f"{len(lacking)} sentence(s) without all {len(rois)} regions; "
            f"first: sentence '{item}' has no response in '{missing[0]}' ({place})"
        )
        if self._options.missing == "error":
            raise RecordingError(
                "a response is missing",
                where=f"{self._path}, subject '{subject}'",
                got=found,
                expected="a response of every region to every sentence of the subject",
                remedy="fill the cells, choose regions with 'rois', or leave such sentences out: "
                'missing = "leave_out"',
            )
        for item in lacking:
            del rows.values[item]
        return [
            Finding(
                field=self._options.response_column,
                reason=Reason.SOURCE_ROWS_LEFT_OUT,
                severity="excluded",
                where=f"{self._where}, subject {subject}",
                found=found,
                expected="a response of every region to every sentence of the subject",
                remedy="those sentences are left out for the subject; fill the cells to keep them",
            )
        ]

    def _rois(self, rows: _Rows) -> tuple[str, ...]:
        """Return the regions of a recording: in the order of the options of a wide table, otherwise by name."""
        own = {roi for _, roi in rows.lines}
        return tuple(roi for roi in self._options.response_columns or sorted(own) if roi in own)

    def _annotations(self, items: tuple[str, ...]) -> dict[str, list[str]]:
        """Return the columns that say the same in every row of a sentence."""
        options = self._options
        read = {
            options.sentence_column,
            options.subject_column,
            options.session_column,
            options.passage_column,
            *(options.response_columns or (options.roi_column, options.response_column)),
        }
        columns = {}
        for column in self._table.columns:
            if column in read or column in PLAIN_COLUMNS:
                continue
            of_item: dict[str, set[str]] = {}
            for item, cell in zip(self._items, self._table.cells(column), strict=True):
                of_item.setdefault(item, set()).add(cell)
            if all(len(cells) == 1 for cells in of_item.values()):
                columns[column] = [next(iter(of_item[item])) for item in items]
        return columns


class SentenceTable(DatasetReader):
    """Sentence-level responses in a CSV table; the module's docstring describes the layout."""

    name = "sentence_table"
    summary = "responses to sentences in one CSV table, long or wide, as in Tuckute et al. 2024"
    Options = SentenceTableOptions
    role = "secondary"
    layout = (
        Expected(
            "the table of sentences and responses", ("*.csv", "**/*.csv", "*.tsv", "**/*.tsv")
        ),
    )
    download = Download(
        method="manual",
        identifier="brain-lang-data_participant_20230728.csv",
        version="20230728",
        size="not published",
        licence=LICENCE,
        homepage="https://github.com/gretatuckute/drive_suppress_brains",
        steps=("download the table of participants from the homepage into the dataset's folder",),
        citation="Tuckute, G. et al. (2024). Driving and suppressing the human language network using large "
        "language models. Nature Human Behaviour 8, 544-561.",
    )
    options: SentenceTableOptions

    def open(self, *, name: str, path: Path | None, seed: int) -> SentenceTableDataset:  # noqa: ARG002
        """Open the table in the folder ``path``."""
        return SentenceTableDataset(name, path, self.options)
