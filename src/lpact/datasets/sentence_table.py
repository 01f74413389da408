"""Responses to sentences in one CSV table, long or wide, as Tuckute et al. (2024) publish theirs.

A recording is a subject (and session), a unit a region, an epoch a sentence. docs/how-to/datasets/sentence_table.md
shows the table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies import group, sentence_words
from lpact.datasets._files.strict import TextTable, invalid
from lpact.datasets._folder_dataset import FolderDataset, check_known, chosen_file, no_audio
from lpact.datasets.base import WORD_COLUMNS, DatasetInfo, Epochs, Findings, Recording, RecordingId, Stimulus, Units
from lpact.datasets.catalogue import published
from lpact.errors import InputError, RecordingError
from lpact.registry import PluginOptions

RUN = "sentences"
GROUP, SESSION = "group", "1"
LICENCE = "as its source says"


class SentenceTableOptions(PluginOptions):
    """What the columns of the table are called, and which rows are read."""

    file: str = ""
    """Table to read, relative to the folder. Empty: the only CSV or TSV file there."""
    item_column: str = "item_id"
    """Column that numbers sentences. Empty: a sentence is its own name."""
    sentence_column: str = "sentence"
    """Column with the sentences."""
    subject_column: str = "target_UID"
    """Column with the subjects. Empty: all rows are of one, called `group`."""
    session_column: str = ""
    """Column with the sessions, where a subject has several. Empty: one session."""
    roi_column: str = "roi"
    """Column with the regions of a long table."""
    response_column: str = "response_target"
    """Column with the responses of a long table."""
    response_columns: tuple[str, ...] = ()
    """Columns of a wide table, one per region. Empty: the table is long."""
    passage_column: str = ""
    """Column with the passage of each sentence. Empty: sentences are unrelated."""
    subjects: tuple[str, ...] = ()
    """Subjects to read. Empty: all."""
    rois: tuple[str, ...] = ()
    """Regions to read. Empty: all."""
    missing: Literal["error", "leave_out"] = "error"
    """What to do with a sentence for which a subject lacks the response of a region: stop, or `leave_out` the sentence
    for that subject.
    """
    shown_s: float = Field(2.0, gt=0)
    """Nominal time of a sentence, in seconds."""
    physical_unit: str = ""
    """Unit of the responses, where it is known."""
    source: str = ""
    """Where the table comes from. Empty: its name."""
    version: str = "not stated"
    """Version of the table."""
    licence: str = LICENCE
    """Licence of the table."""


class SentenceTable(FolderDataset[SentenceTableOptions, Recording]):
    """Sentence-level responses in a CSV table; see docs/how-to/datasets/sentence_table.md."""

    name = "sentence_table"
    summary = "responses to sentences in one CSV table, long or wide, as in Tuckute et al. 2024"
    Options = SentenceTableOptions
    contents = "a folder with one table (*.csv)"
    role = "secondary"
    layout, download = published("sentence_table")

    def _open(self) -> None:
        folder, options = self.folder, self.options
        self._path = chosen_file(folder, "**/*.csv", "**/*.tsv", named=options.file, option="file")
        self._where = folder.where(self._path)
        self._table = TextTable(self._path, InputError)
        source = options.source or f"table {folder.relative(self._path)}"
        self.info = DatasetInfo(source, options.version, options.licence)
        self._responses_in = options.response_columns or (options.roi_column, options.response_column)
        self._named = {
            options.sentence_column,
            options.subject_column,
            options.session_column,
            options.passage_column,
            *self._responses_in,
        }
        self._table.require(sorted(filter(None, {options.item_column, *self._named})))
        self._items = self._table.text(options.item_column or options.sentence_column)
        self._sentences = self._value_of_items(options.sentence_column)
        self._passages = {item: item for item in self._sentences}
        if options.passage_column:
            self._passages = self._value_of_items(options.passage_column)
        self._check_one_item_per_sentence()
        self._find_recordings()

    def _value_of_items(self, column: str) -> dict[str, str]:
        """Return the value of every sentence in a column; it must be the same in all its rows."""
        values: dict[str, str] = {}
        for row, (item, cell) in enumerate(zip(self._items, self._table.text(column), strict=True)):
            if values.setdefault(item, cell) != cell:
                expected = f"one {column} for '{item}', which has {values[item]!r} before"
                raise self._table.wrong(column, row, expected)
        return values

    def _check_one_item_per_sentence(self) -> None:
        item_of: dict[str, str] = {}
        for item, text in self._sentences.items():
            if item_of.setdefault(text, item) != item:
                column, row = self.options.sentence_column, self._items.index(item)
                expected = f"one number per sentence; this one is '{item_of[text]}' and '{item}'"
                raise self._table.wrong(column, row, expected)

    def _find_recordings(self) -> None:
        """Make every recording; subjects with the same sentences share a stimulus."""
        names = list(self._sentences)
        if all(name.isascii() and name.isdigit() for name in names):
            names.sort(key=int)
        passages = group([self._passages[name] for name in names])
        order = [names[index] for own in passages.values() for index in own]
        parts = self._read_responses().partition_by("subject", "session", as_dict=True)
        recordings = []
        stimuli: dict[tuple[str, ...], str] = {}
        for (subject, session), own in sorted(parts.items()):
            findings = Findings(f"{self._where}, subject {subject}")
            responses = self._complete(own, order, findings)
            items = tuple(responses["item"])
            stimuli.setdefault(items, f"{RUN}-{len(stimuli) + 1}")
            recordings.append((str(subject), str(session), items, responses.drop("item"), findings))
        if len(stimuli) == 1:
            stimuli = dict.fromkeys(stimuli, RUN)
        self._sets = {name: items for items, name in stimuli.items()}
        for subject, session, items, responses, findings in recordings:
            recording_id = RecordingId(subject, session, RUN, stimuli[items])
            rois = tuple(responses.columns)
            self.recordings[recording_id] = Recording(
                recording_id,
                Epochs(responses.to_numpy()[None], (0.0,), self.options.physical_unit),
                Units(rois, rois),
                f"{self._where}, subject {subject}, session {session}",
                findings=tuple(findings),
            )

    def _read_responses(self) -> pl.DataFrame:
        """Return one row per response: subject, session, item, roi, value, line."""
        options, table = self.options, self._table
        n_rows = table.n_rows

        def texts(column: str, default: str) -> list[str]:
            return table.text(column) if column else [default] * n_rows

        base = {
            "subject": texts(options.subject_column, GROUP),
            "session": texts(options.session_column, SESSION),
            "item": self._items,
            "line": [table.line(row) for row in range(n_rows)],
        }
        if options.response_columns:
            pairs = [([roi] * n_rows, table.numbers_or_nan(roi)) for roi in self._responses_in]
        else:
            values = table.numbers_or_nan(options.response_column)
            pairs = [(table.text(options.roi_column), values)]
        every = pl.concat([pl.DataFrame({**base, "roi": rois, "value": v}) for rois, v in pairs])
        check_known(options.subjects, every["subject"], option="subjects", folder=self.folder)
        check_known(options.rois, every["roi"], option="rois", folder=self.folder)
        if options.subjects:
            every = every.filter(pl.col("subject").is_in(options.subjects))
        if options.rois:
            every = every.filter(pl.col("roi").is_in(options.rois))
        keys = ["subject", "session", "item", "roi"]
        twice = every.filter(every.select(keys).is_duplicated())
        if twice.height:
            first = twice.filter(twice.select(keys).is_duplicated()).sort("line").row(0, named=True)
            lines = twice.filter(*(pl.col(key) == first[key] for key in keys))["line"].sort()
            raise RecordingError(
                "a response is listed twice",
                where=f"{self._path}, lines {lines[0]} and {lines[1]}",
                got=f"sentence '{first['item']}', subject '{first['subject']}', region '{first['roi']}'",
                expected="one response for every sentence, subject and region",
                remedy="average over repetitions, or name the column of sessions in the option session_column",
            )
        return every

    def _complete(self, own: pl.DataFrame, order: list[str], findings: Findings) -> pl.DataFrame:
        """Return one row per sentence of a subject (``item``, and a column per region).

        Sentences without a response of every region are left out, or an error.
        """
        found = set(own["roi"])
        rois = [roi for roi in self.options.response_columns or sorted(found) if roi in found]
        wide = own.pivot(on="roi", index="item", values="value").select("item", *rois)
        ordered = pl.DataFrame({"item": order}).join(wide, on="item", maintain_order="left")
        complete = ordered.filter(pl.all_horizontal(pl.col(rois).is_finite()))
        if complete.height == ordered.height:
            return ordered
        missing = ordered.join(complete, on="item", how="anti", maintain_order="left")
        first = missing.row(0, named=True)
        roi = next(roi for roi in rois if first[roi] is None or np.isnan(first[roi]))
        text = f"{missing.height} sentence(s) without all {len(rois)} regions; first: sentence '{first['item']}' has "
        text += f"no response in '{roi}'"
        expected = "a response of every region to every sentence of the subject"
        if self.options.missing == "error":
            remedy = 'fill the cells, choose regions with the option rois, or set missing = "leave_out"'
            raise invalid(f"{self._path}, subject '{own['subject'][0]}'", text, expected, remedy=remedy)
        remedy = "those sentences are left out for the subject; fill the cells to keep them"
        column = self.options.response_column
        findings.excluded(column, Reason.SOURCE_ROWS_LEFT_OUT, text, expected, remedy)
        return complete

    def stimulus_ids(self) -> list[str]:
        """Return every set of sentences."""
        return sorted(self._sets)

    def _recording(self, recording_id: RecordingId, files: Recording) -> Recording:  # noqa: ARG002
        return files

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        items, shown_s = self._sets[stimulus_id], self.options.shown_s
        columns = {}
        for column in self._table.columns:
            if column not in self._named and column not in WORD_COLUMNS:
                pairs = set(zip(self._items, self._table.cells(column), strict=True))
                if len(pairs) == len(self._sentences):
                    value_of = dict(pairs)
                    columns[column] = [value_of[item] for item in items]
        return Stimulus(
            id=stimulus_id,
            words=sentence_words(
                [self._sentences[item] for item in items],
                [self._passages[item] for item in items],
                [shown_s * k for k in range(len(items))],
                shown_s=shown_s,
                where=self._where,
                columns=columns,
            ),
            where=self._where,
            **no_audio(Reason.MEDIA_NOT_OFFERED, "the table has sentences only"),
        )

    def _paths(self) -> list[Path | None]:
        return [self._path]
