"""Reader of the Alice fMRI time courses (Brennan et al. 2016): 6 regions, 12 minutes of Alice in Wonderland.

docs/how-to/datasets/alice.md shows the folder. A volume is 2 s; row k of the time courses is at 20 + 2k seconds on the
clock of the TextGrid.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.strict import damaged, invalid, read_numbers
from lpact.datasets._folder_dataset import FolderDataset, chosen_file, no_audio, sentences_by_pauses, words_table
from lpact.datasets.base import DatasetInfo, Finding, Findings, Recording, RecordingId, Stimulus, TimeSeries, Units
from lpact.datasets.catalogue import published
from lpact.errors import RecordingError, StimulusError
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

    radius_mm: Literal[6, 10] = 10
    """Radius of the spheres that the time courses are means over."""
    sentence_pause_s: float = Field(0.5, gt=0)
    """The words carry no punctuation: a pause of this length begins a new sentence."""


def _read_intervals(path: Path) -> list[tuple[float, float, str]]:
    """Return start, stop (seconds) and label of the intervals of the tier ``word`` in a TextGrid."""
    from praatio import textgrid

    try:
        grid = textgrid.openTextgrid(str(path), includeEmptyIntervals=True, reportingMode="silence")
        tier = grid.getTier("word")
    except Exception as problem:
        expected = "a TextGrid in UTF-8 or UTF-16 with the tier 'word'"
        raise damaged(path, problem, StimulusError, expected) from None
    last_s = tier.entries[-1].end if tier.entries else None
    if last_s != tier.maxTimestamp:
        expected = f"intervals to {tier.maxTimestamp} s, as the tier's header says"
        raise damaged(path, f"the last interval ends at {last_s} s", StimulusError, expected)
    return [tuple(interval) for interval in tier.entries]


class Alice(FolderDataset[AliceOptions, Path]):
    """Region time courses of people who listened to Alice in Wonderland; see docs/how-to/datasets/alice.md."""

    name = "alice"
    summary = "Alice fMRI: 6 region time courses of listeners to Alice in Wonderland (Brennan et al. 2016)"
    Options = AliceOptions
    contents = "a folder with alice_data_shared/ and alice_stim_shared/"
    chosen_by = "radius_mm"
    layout, download = published("alice")
    info = DatasetInfo("Alice fMRI time courses (Brennan et al. 2016)", download.version, download.licence)

    def _open(self) -> None:
        home = f"alice_data_shared/{self.options.radius_mm}mm"
        for path in self.folder.glob(f"{home}/*", RecordingError):
            match = _SUBJECT.fullmatch(path.name)
            if match is None:
                raise invalid(path, path.name, "sNN-timecourses.txt", remedy="move the file away")
            self.recordings[RecordingId(match[1], "1", "1", STIMULUS)] = path

    def _recording(self, recording_id: RecordingId, files: Path) -> Recording:
        where = self.folder.where(files)
        values = read_numbers(files, RecordingError, shape=(N_VOLUMES, len(REGIONS)))
        confounds, findings = self._confounds(recording_id.subject, where)
        return Recording(
            recording_id,
            TimeSeries(values, 1.0 / TR_S, START_S, "a.u."),
            Units(REGIONS, REGIONS),
            where,
            confounds=confounds,
            findings=findings,
        )

    def _confounds(self, subject: str, where: str) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
        """Return motion (without the discarded volumes) and the published predictors, as far as they exist."""
        columns: dict[str, pl.Series] = {}
        files = self._confound_files(subject)
        for kind, path in files.items():
            if path is None:
                continue
            names = MOTION if kind == "motion" else (kind,)
            n_discarded = N_DISCARDED if kind == "motion" else 0
            shape = (n_discarded + N_VOLUMES, len(names))
            table = read_numbers(path, RecordingError, shape=shape)[n_discarded:]
            columns |= {name: pl.Series(table[:, i]) for i, name in enumerate(names)}
        missing = ", ".join(kind for kind, path in files.items() if path is None)
        findings = Findings(where)
        if missing:
            findings.note(
                "confounds",
                Reason.CONFOUNDS_NOT_OFFERED,
                f"no {missing} for {subject}",
                "motion, rate and sndpwr of every subject",
                "nothing to do unless preprocess.confounds names them",
            )
        return pl.DataFrame(columns), tuple(findings)

    def _confound_files(self, subject: str) -> dict[str, Path | None]:
        home = f"alice_data_shared/{subject}"
        pattern = f"{home}-rp_*.txt"
        motion = None
        if self.folder.glob(pattern, RecordingError):
            motion = chosen_file(self.folder, pattern, error=RecordingError)
        return {"motion": motion} | {
            name: self.folder.optional(f"{home}-{kind}.txt", RecordingError) for name, kind in PREDICTORS.items()
        }

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        path, pause_s = self._textgrid(), self.options.sentence_pause_s
        where = self.folder.where(path)
        words = [i for i in _read_intervals(path) if i[2].strip() not in SILENCES]
        texts = [text.strip() for _, _, text in words]
        onset_s, offset_s = [start for start, _, _ in words], [stop for _, stop, _ in words]
        sentences = sentences_by_pauses(onset_s, offset_s, [STIMULUS] * len(words), pause_s)
        n_sentences = len(set(sentences.tolist()))
        findings = Findings(where)
        findings.sentences_by_rule(
            f"words without punctuation; {n_sentences} stretches between pauses of {pause_s:g} s",
            "numbered sentences",
            "change the option sentence_pause_s; controls and mechanisms of sentences use these",
        )
        # What begins with an apostrophe is part of the word before (``what's``).
        text = "".join(word if word.startswith("'") else f" {word}" for word in texts).lstrip()
        return Stimulus(
            id=stimulus_id,
            words=words_table(texts, onset_s, offset_s, sentences, STIMULUS),
            where=where,
            transcripts={STIMULUS: text},
            findings=tuple(findings),
            **no_audio(
                Reason.MEDIA_NOT_RELEASED,
                "the audiobook is not part of the release; its sound power is, as a predictor",
            ),
        )

    def _textgrid(self) -> Path:
        return chosen_file(self.folder, "alice_stim_shared/*.TextGrid", error=StimulusError)

    def _paths(self) -> list[Path | None]:
        confounds = [path for i in self.recordings for path in self._confound_files(i.subject).values()]
        return [*self.recordings.values(), self._textgrid(), *confounds]
