"""Reader of the Alice fMRI time courses (Brennan et al. 2016): 6 regions, 12 minutes of Alice in Wonderland.

::

    alice_data_shared/
        10mm/sNN-timecourses.txt, 6mm/…      362 TRs × 6 regions (LATL RATL LPTL LIPL LPreM LIFG)
        sNN-rp_*.txt                         372 × 6 motion estimates, ten discarded volumes included
        sNN-rate.txt, sNN-sndpwr.txt         362 values of the published predictors; some subjects have none
    alice_stim_shared/
        *.TextGrid                           tier ``word``: hand-adjusted word times

A volume is 2 s; row k of the time courses is at 20 + 2k seconds on the clock of the TextGrid.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.sentences import sentences_by_pauses
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import read_numbers
from lpact.datasets._files.textgrid import Interval, read_intervals
from lpact.datasets._finding import Finding
from lpact.datasets.base import (
    AbsentMedium,
    Dataset,
    DatasetInfo,
    DatasetReader,
    Recording,
    RecordingId,
    SourceFile,
    Stimulus,
    TimeSeries,
    Units,
)
from lpact.datasets.catalogue import Download, Expected
from lpact.errors import RecordingError, StimulusError, did_you_mean
from lpact.registry import PluginOptions

STIMULUS = "alice"
REGIONS = ("LATL", "RATL", "LPTL", "LIPL", "LPreM", "LIFG")
TR_S = 2.0
START_S = 20.0
N_VOLUMES = 362
N_DISCARDED = 10
MOTION = ("motion_x", "motion_y", "motion_z", "motion_pitch", "motion_roll", "motion_yaw")
PREDICTORS = {"word_rate": "rate", "sound_power": "sndpwr"}
SILENCES = ("", "sp")
_SUBJECT = re.compile(r"(s[0-9]+)-timecourses\.txt")


class AliceOptions(PluginOptions):
    """Options of the reader `alice`."""

    radius_mm: Literal[6, 10] = Field(
        10, description="Radius of the spheres that the time courses are means over."
    )
    sentence_pause_s: float = Field(
        0.5,
        gt=0,
        description="The words carry no punctuation: a pause of this length begins a new sentence.",
    )


class AliceDataset(Dataset):
    """An opened folder of the Alice time courses."""

    info = DatasetInfo(
        "Alice fMRI time courses (Brennan et al. 2016)",
        "2016-06-09",
        "CC BY 4.0",
    )

    def __init__(self, folder: SourceFolder, options: AliceOptions) -> None:
        self._folder = folder
        self._options = options
        pattern = f"alice_data_shared/{options.radius_mm}mm/*"
        self._courses: dict[str, Path] = {}
        for path in folder.glob(pattern, RecordingError):
            match = _SUBJECT.fullmatch(path.name)
            if match is None:
                raise RecordingError(
                    "a file among the time courses has another name",
                    where=str(path),
                    got=path.name,
                    expected="sNN-timecourses.txt",
                    remedy="move the file elsewhere",
                )
            self._courses[match[1]] = path
        if not self._courses:
            folder.file(f"alice_data_shared/{options.radius_mm}mm/s18-timecourses.txt")

    def recording_ids(self) -> list[RecordingId]:
        """Return one recording per subject."""
        return sorted(RecordingId(subject, "1", "1", STIMULUS) for subject in self._courses)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Read one subject's time courses."""
        subject = recording_id.subject
        if subject not in self._courses:
            raise RecordingError(
                "the folder has no such subject",
                where=str(self._folder.root / "alice_data_shared"),
                got=subject,
                expected="one of recording_ids()",
                remedy=did_you_mean(subject, self._courses),
            )
        path = self._courses[subject]
        values = read_numbers(path, RecordingError, shape=(N_VOLUMES, len(REGIONS)))
        confounds, findings = self._confounds(subject)
        return Recording(
            recording_id,
            TimeSeries(values, 1.0 / TR_S, START_S, "a.u."),
            Units(REGIONS, REGIONS),
            self._folder.where(path),
            confounds=confounds,
            findings=findings,
        )

    def _confounds(self, subject: str) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
        """Motion (without the discarded volumes) and the published predictors, as far as they are there."""
        columns: dict[str, pl.Series] = {}
        lacking = []
        motion = self._motion(subject)
        if motion is None:
            lacking.append("motion")
        else:
            shape = (N_DISCARDED + N_VOLUMES, len(MOTION))
            table = read_numbers(motion, RecordingError, shape=shape)[N_DISCARDED:]
            columns |= {name: pl.Series(table[:, i]) for i, name in enumerate(MOTION)}
        for name, kind in PREDICTORS.items():
            path = self._folder.optional(f"alice_data_shared/{subject}-{kind}.txt", RecordingError)
            if path is None:
                lacking.append(name)
                continue
            series = read_numbers(path, RecordingError, shape=(N_VOLUMES, 1))
            columns[name] = pl.Series(series[:, 0])
        if not lacking:
            return pl.DataFrame(columns), ()
        note = Finding(
            field="confounds",
            reason=Reason.CONFOUNDS_NOT_OFFERED,
            severity="note",
            where=self._folder.where(self._courses[subject]),
            found=f"no {', '.join(lacking)} for {subject}",
            expected="motion, rate and sndpwr of every subject",
            remedy="none needed unless preprocess.confounds names them",
        )
        return pl.DataFrame(columns), (note,)

    def _motion(self, subject: str) -> Path | None:
        found = self._folder.glob(f"alice_data_shared/{subject}-rp_*.txt", RecordingError)
        if len(found) > 1:
            raise RecordingError(
                "a subject has several motion files",
                where=str(found[0].parent),
                got=", ".join(path.name for path in found),
                expected=f"one file {subject}-rp_*.txt",
                remedy="keep the right one",
            )
        return found[0] if found else None

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read the words."""
        if stimulus_id != STIMULUS:
            raise StimulusError(
                "there is no such stimulus",
                where=f"dataset '{self._folder.name}'",
                got=stimulus_id,
                expected=STIMULUS,
                remedy=f"the one stimulus is '{STIMULUS}'",
            )
        path = self._textgrid()
        intervals = read_intervals(path, "word")
        words = [i for i in intervals if i.text.strip() not in SILENCES]
        onset_s = [w.start_s for w in words]
        offset_s = [w.stop_s for w in words]
        stories = [STIMULUS] * len(words)
        pause_s = self._options.sentence_pause_s
        table = pl.DataFrame(
            {
                "word": [w.text.strip() for w in words],
                "onset_s": onset_s,
                "offset_s": offset_s,
                "sentence_id": sentences_by_pauses(onset_s, offset_s, stories, pause_s),
                "story_id": stories,
            },
            schema_overrides={"word": pl.String, "story_id": pl.String},
        )
        where = self._folder.where(path)
        absent = AbsentMedium(
            Reason.MEDIA_NOT_RELEASED,
            "the audiobook is not part of the release; its sound power is, as a predictor",
        )
        return Stimulus(
            id=STIMULUS,
            words=table,
            where=where,
            transcripts={STIMULUS: _running_text(table["word"].to_list())},
            media_absent={"audio": absent},
            findings=_word_findings(words, table["sentence_id"], pause_s, where),
        )

    def _textgrid(self) -> Path:
        found = self._folder.glob("alice_stim_shared/*.TextGrid", StimulusError)
        if len(found) != 1:
            raise StimulusError(
                "the words' TextGrid is not there, or not the only one",
                where=str(self._folder.root / "alice_stim_shared"),
                got=", ".join(path.name for path in found) or "none",
                expected="one TextGrid",
                remedy="download alice_stim_shared, and keep its TextGrid alone",
            )
        return found[0]

    def source_files(self) -> list[SourceFile]:
        """Return every file that is read, with its checksum."""
        paths = [*self._courses.values(), self._textgrid()]
        for subject in self._courses:
            found = [self._motion(subject)]
            found += [
                self._folder.optional(f"alice_data_shared/{subject}-{kind}.txt", RecordingError)
                for kind in PREDICTORS.values()
            ]
            paths += [path for path in found if path is not None]
        return self._folder.source_files(paths, self.info.licence)


def _running_text(words: list[str]) -> str:
    """Words with spaces between them; what begins with an apostrophe is part of the word before (``what's``)."""
    text = ""
    for word in words:
        text += word if not text or word.startswith("'") else f" {word}"
    return text


def _word_findings(
    words: list[Interval], sentence_ids: pl.Series, pause_s: float, where: str
) -> tuple[Finding, ...]:
    findings = [
        Finding(
            field="sentence_id",
            reason=Reason.SENTENCES_BY_RULE,
            severity="note",
            where=where,
            found=f"words without punctuation; {sentence_ids.n_unique()} stretches between pauses of {pause_s:g} s",
            expected="numbered sentences",
            remedy="option sentence_pause_s; controls and mechanisms that look at sentences see these",
        )
    ]
    if padded := [w for w in words if w.text != w.text.strip()]:
        findings.append(
            Finding(
                field="word",
                reason=Reason.SOURCE_ROWS_MENDED,
                severity="note",
                where=where,
                found=f"{len(padded)} label(s) with blanks around the word; first: {padded[0].text!r} "
                f"(interval {padded[0].number})",
                expected="the word alone",
                remedy="none needed: the blanks are cut off",
            )
        )
    return tuple(findings)


class Alice(DatasetReader):
    """Region time courses of people who listened to Alice in Wonderland; the module's docstring has the layout."""

    name = "alice"
    summary = "Alice fMRI: 6 region time courses of listeners to Alice in Wonderland (Brennan et al. 2016)"
    Options = AliceOptions
    options: AliceOptions
    layout = (
        Expected(
            "time courses of the regions",
            (
                "alice_data_shared/10mm/s*-timecourses.txt",
                "alice_data_shared/6mm/s*-timecourses.txt",
            ),
        ),
        Expected("word times", ("alice_stim_shared/*.TextGrid",)),
        Expected("motion estimates", ("alice_data_shared/s*-rp_*.txt",), needed=False),
        Expected("sound power", ("alice_data_shared/s*-sndpwr.txt",), needed=False),
        Expected("word rate", ("alice_data_shared/s*-rate.txt",), needed=False),
        Expected(
            "audio",
            (),
            needed=False,
            boundary="the audiobook is not released; sound power may stand in, labelled as a published predictor",
        ),
    )
    download = Download(
        method="manual",
        identifier="Alice fMRI ROI timecourses and stimuli",
        version="2016-06-09",
        size="2 MB",
        licence="CC BY 4.0",
        homepage="https://sites.lsa.umich.edu/cnllab/",
        steps=(
            "get alice_data_shared and alice_stim_shared from the page of J. R. Brennan, University of Michigan",
            "put both folders side by side into the folder that the study names",
        ),
        citation="Brennan, Stabler, Van Wagenen, Luh & Hale (2016), Brain and Language 157-158:81-94",
    )

    def open(self, *, name: str, path: Path | None, seed: int) -> AliceDataset:  # noqa: ARG002
        """Open the folder ``path``."""
        folder = SourceFolder(
            path, name=name, expected="a folder with alice_data_shared/ and alice_stim_shared/"
        )
        return AliceDataset(folder, self.options)
