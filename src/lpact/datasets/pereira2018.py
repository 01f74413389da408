"""Pereira et al. (2018): people read passages, sentence by sentence; one fMRI response per sentence and voxel.

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

import re
from itertools import pairwise
from typing import Literal

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._assemblies import (
    LAYOUT,
    STIMULUS_ID,
    TEXT,
    AssemblyDataset,
    AssemblyOptions,
    download,
    group,
    sentence_words,
)
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import (
    UNKNOWN,
    FolderReader,
    check_known,
    excluded,
    no_audio,
    note,
)
from lpact.datasets.base import Epochs, RecordingId, Stimulus
from lpact.errors import StimulusError
from lpact.math.types import FloatArray

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
    region: Literal["roi", "atlas"] = Field(
        "roi",
        description="Coordinate that names a unit's region: `roi` or `atlas`. Where it is empty or absent, the other.",
    )
    without_passages: bool = Field(
        False,
        description="Accept an assembly that does not say which passage a sentence is from: every sentence is then a "
        "story of its own, and folds cannot keep passages together.",
    )


class Pereira2018Dataset(AssemblyDataset[Pereira2018Options]):
    """An opened assembly: one recording per subject and experiment."""

    title = "Pereira et al. 2018"

    def _arrange(self) -> None:
        self._text = self.presentation(*TEXT, what="the sentences")
        self._passages = self._read_passages()
        self.rows = self._sorted_rows()
        subjects = self.neuroid("subject", "subject_UID", what="the subjects")
        columns = self._select(subjects)
        ids = self.neuroid("neuroid_id", "neuroid", "roi", what="the names of the neuroids")
        self.unit_ids = [_without_subject(i, s) for i, s in zip(ids, subjects, strict=True)]
        # A voxel's number means another place in every subject, a region's name the same.
        self.comparable = not {"neuroid_id", "neuroid"} & self.neuroids.keys()
        recordings = []
        self._absent: dict[str, list[str]] = {run: [] for run in self.rows}
        for run, rows in self.rows.items():
            for subject, own in group(subjects, columns).items():
                if np.isnan(self.values[np.ix_(rows, own)]).all():
                    self._absent[run].append(subject)
                else:
                    recordings.append((RecordingId(subject, "1", run, run), own))
        self._set_recordings(recordings)

    def _signal(self, values: FloatArray) -> Epochs:
        return Epochs(values[None], lags_ms=(0.0,), physical_unit="a.u.")

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        rows = self.rows[stimulus_id]
        passages = [self._passages[row] for row in rows]
        number = np.cumsum([0, *(a != b for a, b in pairwise(passages))])
        onset_s = (SHOWN_S + PAUSE_S) * np.arange(len(rows)) + PASSAGE_PAUSE_S * number
        columns = {"experiment": [stimulus_id] * len(rows)} | {
            name: [values[row] for row in rows]
            for name, values in self.presentations.items()
            if name not in (*TEXT, "presentation", "experiment", "sentence_id", "story")
        }
        where = f"{self.where}, experiment {stimulus_id}"
        return Stimulus(
            id=stimulus_id,
            words=sentence_words(
                [self._text[row] for row in rows],
                passages,
                onset_s.tolist(),
                shown_s=SHOWN_S,
                where=where,
                columns=columns,
            ),
            where=where,
            findings=(*self.moved_note(rows), *self._findings(stimulus_id, where)),
            **no_audio(Reason.MEDIA_NOT_OFFERED, "sentences were read, not heard"),
        )

    def _findings(self, run: str, where: str) -> list[Finding]:
        findings = [
            excluded(
                f"subject {subject}",
                Reason.RECORDING_NOT_READ,
                where,
                "no value but NaN in this experiment",
                "responses of a subject that took part",
                "none is needed: not every subject took part in both experiments",
            )
            for subject in sorted(self._absent[run])
        ]
        if not any(name in self.presentations for name in PASSAGE):
            findings.append(
                note(
                    "story_id",
                    Reason.SENTENCES_BY_RULE,
                    where,
                    "no passages; every sentence is a story",
                    "the passage of every sentence",
                    "give passages, or do not read scores as those of held-out passages",
                )
            )
        return findings

    def _read_passages(self) -> list[str]:
        """Return the passage of every sentence: category, label and index, as far as they are known."""
        known = [self.presentations[name] for name in PASSAGE if name in self.presentations]
        if known:
            return [" / ".join(filter(None, parts)) for parts in zip(*known, strict=True)]
        if not self.options.without_passages:
            raise StimulusError(
                "the assembly does not state which passage a sentence is from",
                where=f"{self.path}, coordinates of 'presentation'",
                got="coordinates " + ", ".join(self.presentations),
                expected="one of " + ", ".join(PASSAGE),
                remedy="put a table of stimuli with passages beside it, or accept that folds split "
                "passages: without_passages = true",
            )
        return [f"sentence_{row:03d}" for row in range(len(self._text))]

    def _sorted_rows(self) -> dict[str, list[int]]:
        """Return the presentations of every experiment, passages together, in the order of reading."""
        runs = group(self.presentations.get("experiment", ["all"] * len(self._text)))
        ids = self.presentations.get(STIMULUS_ID)
        for run, rows in runs.items():
            if ids is not None:
                self.check_repetitions([ids[row] for row in rows])
                ends = {row: re.search(r"[0-9]{1,9}$", ids[row]) for row in rows}
                numbers = {row: int(match[0]) for row, match in ends.items() if match}
                if len(set(numbers.values())) == len(rows):
                    rows = sorted(rows, key=numbers.__getitem__)
            runs[run] = [row for own in group(self._passages, rows).values() for row in own]
        return dict(sorted(runs.items()))

    def _select(self, subjects: list[str]) -> list[int]:
        """Set the region of every neuroid, and return the neuroids that the options choose."""
        atlas = self.neuroids.get("atlas", [""] * len(subjects))
        roi = self.neuroids.get("roi", [""] * len(subjects))
        roi = [_without_subject(r, s) for r, s in zip(roi, subjects, strict=True)]
        first, second = (roi, atlas) if self.options.region == "roi" else (atlas, roi)
        self.regions = [a or b or UNKNOWN for a, b in zip(first, second, strict=True)]
        atlases, rois = self.options.atlases, self.options.rois
        check_known(atlases, atlas, option="atlases", folder=self.folder)
        check_known(rois, roi, option="rois", folder=self.folder)
        return [
            index
            for index in range(len(subjects))
            if (not atlases or atlas[index] in atlases) and (not rois or roi[index] in rois)
        ]


def _without_subject(name: str, subject: str) -> str:
    """Return a neuroid's name without the subject that some assemblies put before it."""
    return name.removeprefix(f"{subject}_").removeprefix(f"{subject}.")


class Pereira2018(FolderReader):
    """Sentence-level fMRI of Pereira et al. (2018); the module's docstring describes the layout."""

    name = "pereira2018"
    summary = "Pereira et al. 2018: fMRI while reading passages, one response per sentence (netCDF assembly)"
    Options = Pereira2018Options
    dataset = Pereira2018Dataset
    contents = "a folder with one assembly (*.nc)"
    role = "secondary"
    layout = LAYOUT
    download = download("Pereira2018.language", CITATION)
    extra = "assemblies"
