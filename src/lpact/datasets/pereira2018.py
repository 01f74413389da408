"""Pereira et al. (2018): people read passages, sentence by sentence; one fMRI response a sentence and voxel.

::

    assy_Pereira2018_language.nc    presentation × neuroid (627 × voxels of 10 subjects)
    stimulus*.csv                   optional: stimulus_id, and what the assembly does not say of a sentence

Presentations have ``stimulus_id``, ``stimulus`` (the sentence), ``experiment`` (384 and 243 sentences), and
``passage_index``, ``passage_label``, ``passage_category``; neuroids have ``neuroid_id``, ``subject``, ``atlas`` and
``roi``, and may have ``x``, ``y`` and ``z`` (mm). Not every subject took part in both experiments: its values are NaN
there.

A run is an experiment, an epoch a sentence (``events = "sentences"``), a story a passage. Rows of a passage are put
side by side, in the order of the number that ends their ``stimulus_id``. Times are nominal, from the paper: a sentence
is shown for 4 s, the next one 4 s later, and 4 s more pass between passages.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies.dataset import (
    LAYOUT,
    LICENCE,
    SESSION,
    TEXT,
    UNKNOWN,
    AssemblyDataset,
    AssemblyOptions,
    all_missing,
    download,
)
from lpact.datasets._assemblies.files import STIMULUS_ID, trailing_numbers
from lpact.datasets._assemblies.presented import grouped, reordered, sentence_words
from lpact.datasets._finding import Finding
from lpact.datasets.base import (
    AbsentMedium,
    DatasetInfo,
    DatasetReader,
    Epochs,
    Recording,
    RecordingId,
    Stimulus,
)
from lpact.datasets.validate import check_recording, check_stimulus
from lpact.errors import InputError, StimulusError, did_you_mean

SHOWN_S, PAUSE_S, PASSAGE_PAUSE_S = 4.0, 4.0, 4.0
PASSAGE = ("passage_category", "passage_label", "passage_index")
CITATION = (
    "Pereira, F. et al. (2018). Toward a universal decoder of linguistic meaning from brain activation. "
    "Nature Communications 9, 963."
)


class Pereira2018Options(AssemblyOptions):
    """Which voxels are read, and what a region and a passage are."""

    atlases: tuple[str, ...] = Field(
        (),
        description="Networks whose neuroids are read, by the coordinate `atlas` (language, MD, DMN, …). Empty: all.",
    )
    rois: tuple[str, ...] = Field(
        (), description="Regions whose neuroids are read, by the coordinate `roi`. Empty: all."
    )
    region: str = Field(
        "roi",
        pattern="^(roi|atlas)$",
        description="Coordinate that names a unit's region: `roi` or `atlas`. Where it is empty or absent, the other.",
    )
    without_passages: bool = Field(
        False,
        description="Accept an assembly that does not say which passage a sentence is from: every sentence is then a "
        "story of its own, and folds cannot keep passages together.",
    )


class Pereira2018Dataset(AssemblyDataset):
    """An opened assembly: one recording per subject and experiment."""

    def __init__(self, name: str, path: Path | None, options: Pereira2018Options) -> None:
        super().__init__(
            name, path, options, info=DatasetInfo("Pereira et al. 2018", "assembly", LICENCE)
        )
        self._options = options
        self._text = self.file.presentation(TEXT, what="the sentences")
        experiment = self.file.presentations.get("experiment", ["all"] * len(self._text))
        self._passages = self._read_passages()
        self._rows = self._sort_rows(experiment)
        self._subjects = self.file.neuroid(("subject", "subject_UID"), what="the subjects")
        self._regions, columns = self._select()
        self._unit_ids = self._name_units()
        # A voxel's number means another place in every subject, a region's name the same.
        self._by_region = not {"neuroid_id", "neuroid"} & self.file.neuroids.keys()
        self._absent: dict[str, list[str]] = {run: [] for run in self._rows}
        ids = {}
        everywhere = range(self.file.n_neuroids)
        for run, rows in self._rows.items():
            first_row = self.file.read(rows[:1], everywhere)
            for subject, of_subject in self.columns_by_subject(self._subjects, columns).items():
                if not all_missing(first_row[:, of_subject]) or self._took_part(rows, of_subject):
                    ids[RecordingId(subject, SESSION, run, run)] = of_subject
                else:
                    self._absent[run].append(subject)
        self._set_recordings(ids)

    def stimulus_ids(self) -> list[str]:
        """Return every experiment."""
        return list(self._rows)

    def _read(self, recording_id: RecordingId, columns: list[int]) -> Recording:
        values = self.file.read(self._rows[recording_id.run], columns)
        units = self.units(self._unit_ids, self._regions, columns, comparable=self._by_region)
        recording = Recording(
            recording_id,
            Epochs(values[None], lags_ms=(0.0,), physical_unit="a.u."),
            units,
            f"{self.where}, subject {recording_id.subject}, experiment {recording_id.run}",
            findings=tuple(self.placeless(units)),
        )
        check_recording(recording)
        return recording

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        rows = self._rows[stimulus_id]
        passages = [self._passages[row] for row in rows]
        number = np.cumsum([0, *(a != b for a, b in pairwise(passages))])
        onset_s = (SHOWN_S + PAUSE_S) * np.arange(len(rows)) + PASSAGE_PAUSE_S * number
        columns = {
            column: [values[row] for row in rows]
            for column, values in self.file.presentations.items()
            if column not in (*TEXT, "presentation", "experiment", "sentence_id", "story")
        }
        where = f"{self.where}, experiment {stimulus_id}"
        stimulus = Stimulus(
            id=stimulus_id,
            words=sentence_words(
                [self._text[row] for row in rows],
                passages,
                onset_s.tolist(),
                shown_s=SHOWN_S,
                where=where,
                columns={"experiment": [stimulus_id] * len(rows), **columns},
            ),
            where=where,
            media_absent={
                "audio": AbsentMedium(Reason.MEDIA_NOT_OFFERED, "sentences were read, not heard")
            },
            findings=(
                *reordered(rows, where=where),
                *self._absences(stimulus_id, where),
                *self._no_passages(where),
            ),
        )
        check_stimulus(stimulus)
        return stimulus

    def _read_passages(self) -> list[str]:
        """Return the passage of every sentence: category, label and index, as many as there are."""
        known = [
            self.file.presentations[name] for name in PASSAGE if name in self.file.presentations
        ]
        if known:
            return [
                " / ".join(part for part in parts if part) for parts in zip(*known, strict=True)
            ]
        if not self._options.without_passages:
            raise StimulusError(
                "the assembly does not say which passage a sentence is from",
                where=f"{self.path}, coordinates of 'presentation'",
                got="coordinates " + ", ".join(self.file.presentations),
                expected="one of " + ", ".join(PASSAGE),
                remedy="put a table of stimuli with passages beside it, or accept that folds split "
                "passages: without_passages = true",
            )
        return [f"sentence_{row:03d}" for row in range(self.file.n_presentations)]

    def _sort_rows(self, experiment: list[str]) -> dict[str, list[int]]:
        """Return the presentations of every experiment, passages together, in the order of reading."""
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(experiment):
            rows.setdefault(name, []).append(row)
        ids = self.file.presentations.get(STIMULUS_ID)
        for name, own in rows.items():
            if ids is not None:
                self.check_stimulus_ids([ids[row] for row in own])
                numbers = trailing_numbers([ids[row] for row in own])
                if numbers is not None:
                    own = [own[i] for i in np.argsort(numbers, kind="stable")]
            rows[name] = grouped(self._passages, own)
        return dict(sorted(rows.items()))

    def _select(self) -> tuple[list[str], list[int]]:
        """Return the region of every neuroid, and the neuroids that the options choose."""
        empty = [""] * self.file.n_neuroids
        atlas = self.file.neuroids.get("atlas", empty)
        roi = self.file.neuroids.get("roi", empty)
        roi = [_without_subject(r, s) for r, s in zip(roi, self._subjects, strict=True)]
        first, second = (roi, atlas) if self._options.region == "roi" else (atlas, roi)
        regions = [a or b or UNKNOWN for a, b in zip(first, second, strict=True)]
        kept = list(range(self.file.n_neuroids))
        for option, values, wanted in (
            ("atlases", atlas, self._options.atlases),
            ("rois", roi, self._options.rois),
        ):
            for name in wanted:
                if name not in values:
                    raise InputError(
                        "the assembly has no such neuroids",
                        where=f"{self.path}, option '{option}'",
                        got=name,
                        expected="one of " + (", ".join(sorted({*values} - {""})) or "none"),
                        remedy=did_you_mean(name, {*values} - {""}),
                    )
            kept = [i for i in kept if not wanted or values[i] in wanted]
        return regions, kept

    def _name_units(self) -> list[str]:
        names = ("neuroid_id", "neuroid", "roi")
        ids = self.file.neuroid(names, what="the names of the neuroids")
        return [_without_subject(i, s) for i, s in zip(ids, self._subjects, strict=True)]

    def _took_part(self, rows: list[int], columns: list[int]) -> bool:
        """Whether any value of a subject is there; asked only where the first row has none."""
        return not all_missing(self.file.read(rows, columns))

    def _absences(self, run: str, where: str) -> list[Finding]:
        return [
            Finding(
                field=f"subject {subject}",
                reason=Reason.RECORDING_NOT_READ,
                severity="excluded",
                where=where,
                found="no value but NaN in this experiment",
                expected="responses of a subject that took part",
                remedy="none needed: not every subject took part in both experiments",
            )
            for subject in sorted(self._absent[run])
        ]

    def _no_passages(self, where: str) -> list[Finding]:
        if any(name in self.file.presentations for name in PASSAGE):
            return []
        return [
            Finding(
                field="story_id",
                reason=Reason.SENTENCES_BY_RULE,
                severity="note",
                where=where,
                found="no passages; every sentence is a story of its own",
                expected="the passage of every sentence",
                remedy="give passages, or do not read scores as those of held-out passages",
            )
        ]


def _without_subject(name: str, subject: str) -> str:
    """Return a neuroid's name without the subject that some assemblies put before it."""
    for separator in ("_", "."):
        name = name.removeprefix(f"{subject}{separator}")
    return name


class Pereira2018(DatasetReader):
    """Sentence-level fMRI of Pereira et al. (2018); the module's docstring describes the layout."""

    name = "pereira2018"
    summary = "Pereira et al. 2018: fMRI while reading passages, one response per sentence (netCDF assembly)"
    Options = Pereira2018Options
    role = "secondary"
    layout = LAYOUT
    download = download("Pereira2018.language", CITATION)
    extra = "assemblies"
    options: Pereira2018Options

    def open(self, *, name: str, path: Path | None, seed: int) -> Pereira2018Dataset:  # noqa: ARG002
        """Open the assembly in the folder ``path``."""
        return Pereira2018Dataset(name, path, self.options)
