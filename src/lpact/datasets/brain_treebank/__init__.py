"""Reader of the Brain Treebank: ten people with depth electrodes who watched films.

::

    sub_1_trial000.h5 …                                at the root or in all_subject_data/: data/electrode_<i>
    electrode_labels/sub_1/electrode_labels.json       label of electrode_<i> at place i
    corrupted_elec.json                                {"sub_1": [labels that are not to be used], …}
    subject_timings/sub_1_trial000_timings.csv         type, index (sample), movie_time (s) …
    subject_metadata/sub_1_trial000_metadata.json      title, filename (the film's id)
    transcripts/<film>/features.csv                    text, start, end, sentence, is_onset, more
    localization/sub_1/depth-wm.csv                    Electrode, L, I, P, DesikanKilliany, Destrieux
    localization/elec_coords_full.csv                  optional: Subject, Electrode, X, Y, Z
    media/<film>.wav, media/<film>.mp4                 not part of the release: your own, film time 0 at its beginning

An electrode is [n_samples] in µV, 2048 a second. A film is one stimulus and one story; its words are in film time, and
every recording has their times by its own triggers. Electrodes stay implanted from one film to the next: trials are
runs of one session.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.hdf5 import never_written_finding
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import NAME_PATTERN
from lpact.datasets._finding import Finding
from lpact.datasets._folder_dataset import (
    FolderDataset,
    FolderReader,
    check_known,
    excluded,
    note,
    read_json_value,
)
from lpact.datasets.base import (
    AbsentMedium,
    DatasetInfo,
    Recording,
    RecordingId,
    Stimulus,
    TimeSeries,
)
from lpact.datasets.brain_treebank.electrodes import Electrodes, ElectrodeSeries, read_electrodes
from lpact.datasets.brain_treebank.words import Clock, read_words, word_times
from lpact.datasets.catalogue import Download, Expected, optional
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.registry import PluginOptions

HOMEPAGE = "https://braintreebank.dev"
LICENCE = "CC-BY-4.0"
VERSION = "1.0 (2024)"
RATE_HZ = 2048.0
"""Sampling rate of the release, unless a study states another one for a subject; no file states it."""

H5_FOLDERS = ("", "all_subject_data/")
"""Folders of neural files: the root, where they are unpacked, or their own."""

MEDIA = {"audio": "wav", "video": "mp4"}
PROXIES = (
    "transcript-derived features (rms, pitch, delta_rms, delta_pitch of features.csv) and a speech-activity boxcar "
    "from word times may stand in as diagnostics, never as the acoustic envelope"
)
_TRIAL = re.compile(r"sub_([1-9][0-9]*)_trial([0-9]{3})")


class BrainTreebankOptions(PluginOptions):
    """How the Brain Treebank is read."""

    subjects: tuple[str, ...] = Field(
        (), description='Subjects to read, such as ["1", "7"]; empty: all in the folder.'
    )
    trials: tuple[str, ...] = Field(
        (), description='Trials to read, such as ["sub_1_trial000"]; empty: all of the subjects.'
    )
    clock: Clock = Field(
        "nearest",
        description="Which triggers give a word its sample. `nearest`: the trigger nearest in film time, and from "
        "there the nominal rate. `next`: the first trigger that is not before the word, backwards. `linear`: between "
        "the two neighbours, which also follows drift.",
    )
    max_gap_s: float = Field(
        2.0,
        gt=0,
        description="A word further than this from every trigger, in film time, has no time in the recording.",
    )
    atlas: Literal["DesikanKilliany", "Destrieux", "DKT"] = Field(
        "DesikanKilliany", description="Column of `depth-wm.csv` that names an electrode's region."
    )
    coordinates: Literal["subject", "standard"] = Field(
        "subject",
        description="`subject`: L, I, P of `depth-wm.csv`, in the subject's own scan. `standard`: X, Y, Z of "
        "`elec_coords_full.csv`.",
    )
    trials_are: Literal["runs", "sessions"] = Field(
        "runs",
        description="What trials of one subject are to ceilings: runs of one session (electrodes stay where they "
        "are), or sessions of their own.",
    )
    sampling_rates_hz: dict[str, float] = Field(
        default_factory=dict,
        description="Sampling rate by subject, for those that were not recorded at 2048 Hz; no file of the release "
        "says it. A rate that the triggers contradict is an error.",
    )
    unlabelled: Literal["refuse", "leave_out"] = Field(
        "refuse",
        description="What to do with electrodes of a neural file beyond the end of the list of labels.",
    )


@dataclass(frozen=True)
class Trial:
    """One film that one subject watched; ``name`` is that of the release, ``sub_1_trial000``."""

    name: str
    subject: str
    movie: str
    h5: Path
    metadata: Path


class BrainTreebankDataset(FolderDataset[BrainTreebankOptions, Trial]):
    """An opened folder."""

    info = DatasetInfo(source=HOMEPAGE, version=VERSION, licence=LICENCE)

    def __init__(self, folder: SourceFolder, options: BrainTreebankOptions) -> None:
        super().__init__(folder, options)
        self._films: dict[str, tuple[pl.DataFrame, tuple[Finding, ...]]] = {}
        neural = self._neural_files()
        self._set_recordings(self._find_trials(neural))
        self.findings = tuple(self._without_neural_file(neural))

    def _neural_files(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for prefix in H5_FOLDERS:
            for path in self.folder.glob(f"{prefix}sub_*.h5"):
                if not _TRIAL.fullmatch(path.stem):
                    raise InputError(
                        "the name of a neural file is not valid",
                        where=str(path),
                        got=path.name,
                        expected="sub_<subject>_trial<three digits>.h5, such as sub_1_trial000.h5",
                        remedy="give the file its name in the release, or move it out of the folder",
                    )
                if found.setdefault(path.stem, path) != path:
                    raise InputError(
                        f"there are two files of the trial '{path.stem}'",
                        where=str(path),
                        got=f"also {found[path.stem]}",
                        expected="every trial once",
                        remedy="keep one of the two files",
                    )
        if not found:
            raise InputError(
                "the folder holds no neural files",
                where=str(self.folder.root),
                got="no sub_*_trial*.h5 at the root or in all_subject_data/",
                expected="sub_1_trial000.h5 and others",
                remedy="download and unpack the trials, and give the folder that holds them",
            )
        return found

    def _find_trials(self, neural: dict[str, Path]) -> Iterator[tuple[RecordingId, Trial]]:
        """Find the trials that the options choose."""
        options = self.options
        parts = {name: match.groups() for name in neural if (match := _TRIAL.fullmatch(name))}
        subjects = {subject for subject, _ in parts.values()}
        check_known(options.subjects, subjects, option="subjects", folder=self.folder)
        check_known(options.trials, parts, option="trials", folder=self.folder)
        wanted = [
            name
            for name, (subject, _) in sorted(parts.items())
            if (not options.subjects or subject in options.subjects)
            and (not options.trials or name in options.trials)
        ]
        if not wanted:
            raise InputError(
                "the options 'subjects' and 'trials' leave no trial",
                where=f"dataset '{self.folder.name}'",
                got=f"subjects {list(options.subjects)}, trials {list(options.trials)}",
                expected="trials of the chosen subjects",
                remedy="leave out one of the two options",
            )
        for name in wanted:
            subject, number = parts[name]
            path = self.folder.file(f"subject_metadata/{name}_metadata.json", RecordingError)
            trial = Trial(name, subject, _read_movie(path), neural[name], path)
            session, run = ("1", number) if options.trials_are == "runs" else (number, "1")
            yield RecordingId(subject, session, run, trial.movie), trial

    def _without_neural_file(self, neural: dict[str, Path]) -> Iterator[Finding]:
        """Return notes on trials with timings whose neural file is missing, or was never unpacked."""
        for timings in self.folder.glob("subject_timings/sub_*_timings.csv"):
            name = timings.stem.removesuffix("_timings")
            if name in neural:
                continue
            zipped = [
                p for prefix in H5_FOLDERS for p in self.folder.glob(f"{prefix}{name}.h5.zip")
            ]
            found, remedy = f"no {name}.h5", "download the trial, if the study needs it"
            if zipped:
                found = f"{zipped[0].name}, which is not unpacked"
                remedy = f"unzip {self.folder.relative(zipped[0])}"
            yield note(
                name,
                Reason.RECORDING_NOT_READ,
                self.folder.where(timings),
                f"timings, and {found}",
                f"{name}.h5",
                remedy,
            )

    def _electrodes(self, subject: str) -> Electrodes:
        atlas, coordinates = self.options.atlas, self.options.coordinates
        return read_electrodes(self.folder, subject, atlas=atlas, coordinates=coordinates)

    def _recording(self, recording_id: RecordingId, files: Trial) -> Recording:
        options, where = self.options, self.folder.where(files.h5)
        electrodes = self._electrodes(files.subject)
        series = ElectrodeSeries(files.h5, electrodes.positions, electrodes.n_labels)
        label_of = dict(zip(electrodes.positions, electrodes.units.ids, strict=True))
        unwritten = [
            never_written_finding(
                found, field=label_of[position], where=f"{where}, electrode_{position}"
            )
            for position, found in series.unwritten.items()
        ]
        timings = self._timings(files)
        rate_hz = options.sampling_rates_hz.get(files.subject, RATE_HZ)
        onsets_s, findings = word_times(
            timings,
            self.folder.where(timings),
            self._words(files.movie)[0]["onset_s"].to_numpy(),
            rule=options.clock,
            max_gap_s=options.max_gap_s,
            n_samples=series.shape[0] if electrodes.positions else None,
            rate_hz=rate_hz,
        )
        unlabelled = self._unlabelled(files, series.beyond, electrodes.n_labels)
        return Recording(
            id=recording_id,
            signal=TimeSeries(series, rate_hz, physical_unit="µV"),
            units=electrodes.units,
            where=where,
            word_onsets_s=onsets_s,
            findings=(*electrodes.findings, *unlabelled, *unwritten, *findings),
        )

    def _unlabelled(self, trial: Trial, beyond: list[int], n_labels: int) -> list[Finding]:
        if beyond and self.options.unlabelled == "refuse":
            raise RecordingError(
                "an electrode has no label",
                where=f"{trial.h5}, data/electrode_{beyond[0]}",
                got=f"{n_labels} labels, and {len(beyond)} electrode(s) beyond them",
                expected="a label for every electrode, at its place in electrode_labels.json",
                remedy="check that file and labels are of the same subject and release; "
                "unlabelled = 'leave_out' reads the others",
            )
        return [
            excluded(
                f"electrode_{position}",
                Reason.CHANNEL_NOT_SELECTED,
                self.folder.where(trial.h5),
                f"no label: the list has {n_labels}",
                "a label for every electrode",
                "it is left out because of unlabelled = 'leave_out'",
            )
            for position in beyond
        ]

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        words, findings = self._words(stimulus_id)
        media = self._media(stimulus_id)
        return Stimulus(
            id=stimulus_id,
            words=words,
            where=self.folder.where(self._features(stimulus_id)),
            media={kind: self.folder.relative(path) for kind, path in media.items() if path},
            media_root=self.folder.root,
            media_absent={
                kind: AbsentMedium(
                    Reason.MEDIA_NOT_RELEASED,
                    f"the release holds no {kind} of its films; {PROXIES}; a copy of your own goes to "
                    f"media/{stimulus_id}.{MEDIA[kind]}",
                )
                for kind, path in media.items()
                if path is None
            },
            findings=findings,
        )

    def _paths(self) -> Iterator[Path | None]:
        for trial in self.recordings.values():
            yield from (trial.h5, trial.metadata, self._timings(trial))
            yield from self._electrodes(trial.subject).files
            yield self._features(trial.movie)
            yield from self._media(trial.movie).values()

    def _words(self, movie: str) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
        if movie not in self._films:
            path = self._features(movie)
            self._films[movie] = read_words(path, self.folder.where(path), movie)
        return self._films[movie]

    def _features(self, movie: str) -> Path:
        return self.folder.file(f"transcripts/{movie}/features.csv", StimulusError)

    def _timings(self, trial: Trial) -> Path:
        return self.folder.file(f"subject_timings/{trial.name}_timings.csv", RecordingError)

    def _media(self, movie: str) -> dict[str, Path | None]:
        return {
            kind: self.folder.optional(f"media/{movie}.{suffix}", StimulusError)
            for kind, suffix in MEDIA.items()
        }


def _read_movie(path: Path) -> str:
    values = read_json_value(path)
    movie = values.get("filename") if isinstance(values, dict) else None
    if isinstance(movie, str) and NAME_PATTERN.fullmatch(movie):
        return movie
    raise RecordingError(
        "a trial's metadata do not name its film",
        where=f"{path}, key 'filename'",
        got=reprlib.repr(movie),
        expected="the film's folder in transcripts/, such as 'the-martian'",
        remedy="download the metadata again",
    )


class BrainTreebank(FolderReader):
    """The Brain Treebank as it is released; the module's docstring describes the layout."""

    name = "brain_treebank"
    summary = "Brain Treebank: depth electrodes of 10 people who watched films, 2048 Hz (HDF5, CSV)"
    Options = BrainTreebankOptions
    dataset = BrainTreebankDataset
    contents = "a folder with sub_1_trial000.h5 and others, and transcripts/"
    role = "primary"
    extra = "hdf5"
    layout = (
        Expected("neural data", ("sub_*_trial*.h5", "all_subject_data/sub_*_trial*.h5")),
        Expected("electrode labels", ("electrode_labels/sub_*/electrode_labels.json",)),
        Expected("corrupted electrodes", ("corrupted_elec.json",)),
        Expected("triggers", ("subject_timings/sub_*_trial*_timings.csv",)),
        Expected("films of the trials", ("subject_metadata/sub_*_trial*_metadata.json",)),
        Expected("words", ("transcripts/*/features.csv",)),
        optional("regions and coordinates", "localization/sub_*/depth-wm.csv"),
        optional("standard coordinates", "localization/elec_coords_full.csv"),
        optional("audio and film", "media/*.wav", "media/*.mp4", boundary=PROXIES),
    )
    download = Download(
        method="manual",
        identifier="brain-treebank",
        version=VERSION,
        size="about 130 GB, zipped",
        licence=LICENCE,
        homepage=HOMEPAGE,
        steps=(
            f"open {HOMEPAGE} and download localization.zip, subject_timings.zip, subject_metadata.zip, "
            "electrode_labels.zip, transcripts.zip and corrupted_elec.json",
            "download the trials that you want, such as sub_1_trial000.h5.zip (4 to 12 GB each, unpacked)",
            "unpack all archives into one folder",
        ),
        citation="Wang, C., Yaari, A. U., Singh, A. K., et al. (2024). Brain Treebank: Large-scale intracranial "
        "recordings from naturalistic language stimuli. NeurIPS Datasets and Benchmarks. arXiv:2411.08343",
    )
