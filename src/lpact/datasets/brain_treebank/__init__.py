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

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.hdf5 import never_written_finding
from lpact.datasets._files.source_folder import SourceFolder
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
)
from lpact.datasets.brain_treebank.clock import RATE_HZ, Clock, word_times
from lpact.datasets.brain_treebank.electrodes import read_electrodes
from lpact.datasets.brain_treebank.layout import Trial, find_trials, without_neural_file
from lpact.datasets.brain_treebank.signal import ElectrodeSeries, electrode_positions
from lpact.datasets.brain_treebank.words import read_words
from lpact.datasets.catalogue import Download, Expected
from lpact.datasets.validate import check_recording, check_stimulus
from lpact.errors import RecordingError, StimulusError, did_you_mean
from lpact.registry import PluginOptions

HOMEPAGE = "https://braintreebank.dev"
LICENCE = "CC-BY-4.0"
SESSION = "1"
MEDIA = {"audio": "wav", "video": "mp4"}
PROXIES = (
    "transcript-derived features (rms, pitch, delta_rms, delta_pitch of features.csv) and a speech-activity boxcar "
    "from word times may stand in as diagnostics, never as the acoustic envelope"
)


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


class BrainTreebankDataset(Dataset):
    """An opened folder."""

    def __init__(self, folder: SourceFolder, options: BrainTreebankOptions) -> None:
        self._folder = folder
        self._options = options
        self.info = DatasetInfo(source=HOMEPAGE, version="1.0 (2024)", licence=LICENCE)
        trials = find_trials(folder, options.subjects, options.trials)
        self._trials: Mapping[RecordingId, Trial] = {self._id(trial): trial for trial in trials}
        self._films: dict[str, tuple[pl.DataFrame, tuple[Finding, ...]]] = {}
        self.findings = tuple(without_neural_file(folder))

    def _id(self, trial: Trial) -> RecordingId:
        runs = self._options.trials_are == "runs"
        session, run = (SESSION, trial.trial) if runs else (trial.trial, "1")
        return RecordingId(trial.subject, session, run, trial.movie)

    def recording_ids(self) -> list[RecordingId]:
        """Return every recording, sorted."""
        return sorted(self._trials)

    def recording(self, recording_id: RecordingId) -> Recording:
        """Open one trial; its values are read when they are asked for."""
        if recording_id not in self._trials:
            raise RecordingError(
                "the dataset has no such recording",
                where=f"dataset '{self._folder.name}'",
                got=f"{recording_id} with stimulus '{recording_id.stimulus}'",
                expected="one of recording_ids()",
                remedy=did_you_mean(str(recording_id), [str(known) for known in self._trials]),
            )
        trial, options = self._trials[recording_id], self._options
        electrodes = read_electrodes(
            self._folder, trial.subject, atlas=options.atlas, coordinates=options.coordinates
        )
        unlabelled = self._unlabelled(trial, electrodes.n_labels)
        series = ElectrodeSeries(trial.h5, electrodes.positions)
        where = self._folder.where(trial.h5)
        unwritten = [
            never_written_finding(
                series.unwritten[position], field=label, where=f"{where}, electrode_{position}"
            )
            for position, label in zip(electrodes.positions, electrodes.units.ids, strict=True)
            if position in series.unwritten
        ]
        timings = self._timings(trial)
        rate_hz = options.sampling_rates_hz.get(trial.subject, RATE_HZ)
        words, _ = self._words(trial.movie)
        onsets_s, findings = word_times(
            timings,
            self._folder.where(timings),
            words["onset_s"].to_numpy(),
            rule=options.clock,
            max_gap_s=options.max_gap_s,
            n_samples=series.shape[0] if electrodes.positions else None,
            rate_hz=rate_hz,
        )
        recording = Recording(
            id=recording_id,
            signal=TimeSeries(series, rate_hz, physical_unit="µV"),
            units=electrodes.units,
            where=where,
            word_onsets_s=onsets_s,
            findings=(*electrodes.findings, *unlabelled, *unwritten, *findings),
        )
        check_recording(recording)
        return recording

    def _unlabelled(self, trial: Trial, n_labels: int) -> list[Finding]:
        beyond = [position for position in electrode_positions(trial.h5) if position >= n_labels]
        if beyond and self._options.unlabelled == "refuse":
            raise RecordingError(
                "an electrode has no label",
                where=f"{trial.h5}, data/electrode_{beyond[0]}",
                got=f"{n_labels} labels, and {len(beyond)} electrode(s) beyond them",
                expected="a label for every electrode, at its place in electrode_labels.json",
                remedy="check that file and labels are of the same subject and release; "
                "unlabelled = 'leave_out' reads the others",
            )
        return [
            Finding(
                field=f"electrode_{position}",
                reason=Reason.CHANNEL_NOT_SELECTED,
                severity="excluded",
                where=self._folder.where(trial.h5),
                found=f"no label: the list has {n_labels}",
                expected="a label for every electrode",
                remedy="it is left out, as unlabelled = 'leave_out' asks",
            )
            for position in beyond
        ]

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read the words of one film."""
        movies = sorted({trial.movie for trial in self._trials.values()})
        if stimulus_id not in movies:
            raise StimulusError(
                "no trial of the dataset is of this film",
                where=f"dataset '{self._folder.name}'",
                got=stimulus_id,
                expected="a film of recording_ids()",
                remedy=did_you_mean(stimulus_id, movies),
            )
        words, findings = self._words(stimulus_id)
        media = self._media(stimulus_id)
        stimulus = Stimulus(
            id=stimulus_id,
            words=words,
            where=self._folder.where(self._features(stimulus_id)),
            media={kind: self._folder.relative(path) for kind, path in media.items()},
            media_root=self._folder.root,
            media_absent={
                kind: AbsentMedium(
                    Reason.MEDIA_NOT_RELEASED,
                    f"the release holds no {kind} of its films; {PROXIES}; a copy of your own goes to "
                    f"media/{stimulus_id}.{suffix}",
                )
                for kind, suffix in MEDIA.items()
                if kind not in media
            },
            findings=findings,
        )
        check_stimulus(stimulus)
        return stimulus

    def source_files(self) -> list[SourceFile]:
        """Return every file that was or would be read, with its checksum."""
        files: set[Path] = set()
        for trial in self._trials.values():
            electrodes = read_electrodes(
                self._folder,
                trial.subject,
                atlas=self._options.atlas,
                coordinates=self._options.coordinates,
            )
            files |= {trial.h5, trial.metadata, self._timings(trial), *electrodes.files}
            files |= {self._features(trial.movie), *self._media(trial.movie).values()}
        return self._folder.source_files(files, self.info.licence)

    def _words(self, movie: str) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
        if movie not in self._films:
            path = self._features(movie)
            self._films[movie] = read_words(path, self._folder.where(path), movie)
        return self._films[movie]

    def _features(self, movie: str) -> Path:
        return self._folder.file(f"transcripts/{movie}/features.csv", StimulusError)

    def _timings(self, trial: Trial) -> Path:
        return self._folder.file(f"subject_timings/{trial.name}_timings.csv", RecordingError)

    def _media(self, movie: str) -> dict[str, Path]:
        found = {
            kind: self._folder.optional(f"media/{movie}.{suffix}", StimulusError)
            for kind, suffix in MEDIA.items()
        }
        return {kind: path for kind, path in found.items() if path is not None}


class BrainTreebank(DatasetReader):
    """The Brain Treebank as it is released; the module's docstring describes the layout."""

    name = "brain_treebank"
    summary = "Brain Treebank: depth electrodes of 10 people who watched films, 2048 Hz (HDF5, CSV)"
    Options = BrainTreebankOptions
    options: BrainTreebankOptions
    role = "primary"
    extra = "hdf5"
    layout = (
        Expected("neural data", ("sub_*_trial*.h5", "all_subject_data/sub_*_trial*.h5")),
        Expected("electrode labels", ("electrode_labels/sub_*/electrode_labels.json",)),
        Expected("corrupted electrodes", ("corrupted_elec.json",)),
        Expected("triggers", ("subject_timings/sub_*_trial*_timings.csv",)),
        Expected("films of the trials", ("subject_metadata/sub_*_trial*_metadata.json",)),
        Expected("words", ("transcripts/*/features.csv",)),
        Expected("regions and coordinates", ("localization/sub_*/depth-wm.csv",), needed=False),
        Expected("standard coordinates", ("localization/elec_coords_full.csv",), needed=False),
        Expected("audio and film", ("media/*.wav", "media/*.mp4"), needed=False, boundary=PROXIES),
    )
    download = Download(
        method="manual",
        identifier="brain-treebank",
        version="1.0 (2024)",
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

    def open(self, *, name: str, path: Path | None, seed: int) -> BrainTreebankDataset:  # noqa: ARG002
        """Open the folder ``path``: finds trials and reads their metadata."""
        folder = SourceFolder(
            path, name=name, expected="a folder with sub_1_trial000.h5 and others, and transcripts/"
        )
        return BrainTreebankDataset(folder, self.options)
