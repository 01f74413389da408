"""Reader of Narratives (OpenNeuro ds002345): many people listening to stories, functional MRI.

::

    code/scan_exclude.json                          optional: scans that the authors advise to leave out
    sub-<s>/func/sub-<s>_task-<t>[_run-<r>]_events.tsv
    stimuli/<story>_audio.wav                       optional
    stimuli/gentle/<story>/align.csv                no header: word_orig, word, onset, offset
    stimuli/gentle/<story>/transcript.txt           optional; or stimuli/transcripts/<story>_transcript.txt
    derivatives/<pipeline>/sub-<s>/func/
        sub-<s>_task-<t>[_run-<r>]_space-<space>[_res-<res>]_desc-<desc>_bold.nii.gz

The alignment runs on the clock of the audio file. Many of these begin with music, so a run's clock is tied to it by
the first event that names the audio in ``stim_file``, be it music or story: that is when the audio starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._finding import Finding
from lpact.datasets._fmri.bids import (
    CONFOUNDS,
    entities,
    stem,
)
from lpact.datasets._fmri.dataset import (
    ABOUT,
    FmriDataset,
    FmriOptions,
    Scan,
    no_such_stimulus,
    selected,
)
from lpact.datasets.base import DatasetInfo, DatasetReader, RecordingId, Stimulus
from lpact.datasets.catalogue import Download, Expected
from lpact.datasets.narratives.words import (
    EXCLUDE_LIST,
    VERSIONS,
    align_path,
    audio_onset_s,
    audio_path,
    heard_version,
    read_exclude_list,
    read_story,
    transcript_paths,
)
from lpact.errors import InputError, RecordingError

TR_S = 1.5


class NarrativesOptions(FmriOptions):
    """Options of the reader."""

    pipeline: Literal["afni-nosmooth", "afni-smooth", "fmriprep"] = Field(
        "afni-nosmooth", description="Derivatives to read, a folder in `derivatives/`."
    )
    space: str = Field("MNI152NLin2009cAsym", description="Standard space of the volumes.")
    res: str = Field("", description="Value of `res-` in file names, where there are several.")
    stories: tuple[str, ...] = Field(
        (), description="Tasks to read, as in `task-`. Empty: all with an alignment."
    )
    use_exclude_list: bool = Field(
        True, description=f"Leave out the scans that `{EXCLUDE_LIST}` lists."
    )
    audio_onset_s: dict[str, float] = Field(
        default_factory=dict,
        description="For a task, seconds from the first volume to the start of its audio; replaces its events files.",
    )


class NarrativesDataset(FmriDataset[NarrativesOptions]):
    """The opened collection."""

    published = DatasetInfo("OpenNeuro ds002345 (Narratives)", "not stated", "CC0")
    published_tr_s = TR_S

    def __init__(
        self,
        folder: SourceFolder,
        options: NarrativesOptions,
        scans: Sequence[tuple[RecordingId, Scan]],
        left_out: Mapping[str, Sequence[Finding]],
    ) -> None:
        findings = [finding for per_story in left_out.values() for finding in per_story]
        super().__init__(folder, options, scans, findings)
        self._left_out = left_out
        self._stories = sorted({key.stimulus for key, _ in scans})

    def stimulus_onset_s(self, recording_id: RecordingId, scan: Scan) -> float:
        """Return when the audio starts: the onset of the run's first event that plays it."""
        task = entities(scan.bold)["task"]
        if task in self._options.audio_onset_s:
            return self._options.audio_onset_s[task]
        if scan.events is None:
            raise RecordingError(
                "the events of a run are not in the folder",
                where=str(scan.bold),
                got="no events file",
                expected=f"sub-*/func/{stem(scan.bold, 'sub', 'task', 'run')}_events.tsv",
                remedy=f"download it, or set the option audio_onset_s = {{ {task} = <seconds> }}",
            )
        return audio_onset_s(scan.events, recording_id.stimulus, task)

    def stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one story."""
        if stimulus_id not in self._stories:
            raise no_such_stimulus(self._folder, stimulus_id, self._stories)
        left_out = tuple(self._left_out.get(stimulus_id, ()))
        return read_story(self._folder, stimulus_id, self._options.sentence_pause_s, left_out)

    def stimulus_paths(self) -> Iterable[Path]:
        """Return alignments, transcripts, audio and the list of excluded scans."""
        names = [EXCLUDE_LIST]
        for story in self._stories:
            names += [align_path(story), *transcript_paths(story), audio_path(story)]
        found = (self._folder.optional(name) for name in names)
        return [path for path in found if path is not None]


class Narratives(DatasetReader):
    """Narratives; the module's docstring describes the layout."""

    name = "narratives"
    summary = "Narratives (ds002345): fMRI of story listening, by an atlas or mask"
    Options = NarrativesOptions
    options: NarrativesOptions
    role = "secondary"
    extra = "fmri"
    layout: ClassVar[tuple[Expected, ...]] = (
        Expected("word alignments", ("stimuli/gentle/*/align.csv",)),
        Expected(
            "volumes in a standard space",
            (
                "derivatives/afni-nosmooth/sub-*/func/*_desc-clean_bold.nii.gz",
                "derivatives/afni-smooth/sub-*/func/*_desc-clean_bold.nii.gz",
                "derivatives/fmriprep/sub-*/func/*_desc-preproc_bold.nii.gz",
            ),
        ),
        Expected("events of the runs", ("sub-*/func/*_events.tsv",)),
        Expected("list of scans to leave out", (EXCLUDE_LIST,), needed=False),
        Expected(
            "transcripts",
            ("stimuli/gentle/*/transcript.txt", "stimuli/transcripts/*.txt"),
            needed=False,
        ),
        Expected("audio of the stories", ("stimuli/*_audio.wav",), needed=False),
        *ABOUT,
    )
    download = Download(
        method="datalad",
        identifier="///labs/hasson/narratives",
        version="1.1.4",
        size="see the page: derivatives of one pipeline and space take hundreds of GB, one story far less",
        licence="CC0",
        homepage="https://openneuro.org/datasets/ds002345",
        include=(
            "code/*.json",
            "stimuli",
            "sub-*/func/*_events.tsv",
            "derivatives/afni-nosmooth/sub-*/func/*_space-MNI152NLin2009cAsym_*_bold.nii.gz",
        ),
        citation="Nastase et al. (2021), Scientific Data 8, 250",
    )

    def open(self, *, name: str, path: Path | None, seed: int) -> NarrativesDataset:  # noqa: ARG002
        """Find the runs and their stories; no volume is read."""
        expected = "stimuli/gentle/, derivatives/ and the subjects' folders of ds002345"
        folder = SourceFolder(path, name=name, expected=expected)
        scans: list[tuple[RecordingId, Scan]] = []
        findings: dict[str, list[Finding]] = {}
        listed = read_exclude_list(folder) if self.options.use_exclude_list else []
        for bold in selected(self._bold_files(folder), self.options.subjects, folder):
            key, scan = self._scan(folder, bold)
            reason = self._why_not(folder, bold, key.stimulus, listed)
            if reason is None:
                scans.append((key, scan))
            else:
                findings.setdefault(key.stimulus, []).append(reason)
        if not scans:
            raise InputError(
                "no run of the folder can be read",
                where=f"dataset '{name}', {folder.root}",
                got="; ".join(f.found for per in findings.values() for f in per)[:400],
                expected="runs with an alignment that are not on the list of excluded scans",
                remedy="download stimuli/gentle, or change the options stories and use_exclude_list",
            )
        return NarrativesDataset(folder, self.options, scans, findings)

    def _bold_files(self, folder: SourceFolder) -> list[Path]:
        options = self.options
        desc = "preproc" if options.pipeline == "fmriprep" else "clean"
        root = f"derivatives/{options.pipeline}"
        res = f"_res-{options.res}" if options.res else "*"
        pattern = f"{root}/sub-*/func/*_space-{options.space}{res}_desc-{desc}_bold.nii.gz"
        found = folder.glob(pattern, RecordingError)
        wanted = [p for p in found if not options.stories or entities(p)["task"] in options.stories]
        if wanted:
            return wanted
        surfaces = folder.glob(f"{root}/sub-*/func/*.func.gii")
        here = folder.root / "derivatives"
        pipelines = sorted(p.name for p in here.iterdir()) if here.is_dir() else []
        got = (
            f"{len(surfaces)} surface files (.func.gii), which are not read"
            if surfaces
            else f"{len(found)} of other tasks; in derivatives/: {', '.join(pipelines) or 'nothing'}"
        )
        raise InputError(
            "there are no volumes to read",
            where=str(folder.root / pattern),
            got=got,
            expected="NIfTI volumes in the space, of the pipeline and of the stories that the options name",
            remedy="download them, or change the options pipeline, space, res and stories",
        )

    def _scan(self, folder: SourceFolder, bold: Path) -> tuple[RecordingId, Scan]:
        found = entities(bold)
        subject, task, run = found["sub"], found["task"], found.get("run")
        root = stem(bold, "sub", "task", "run")
        raw = f"sub-{subject}/func/{root}"
        beside = folder.relative(bold.parent)
        sidecars = (folder.relative(bold).replace(".nii.gz", ".json"), f"{raw}_bold.json")
        confounds = [
            folder.optional(f"{beside}/{root}_{name}", RecordingError) for name in CONFOUNDS
        ]
        scan = Scan(
            bold=bold,
            sidecars=tuple(p for p in map(folder.optional, sidecars) if p is not None),
            events=folder.optional(f"{raw}_events.tsv", RecordingError),
            confounds=next((p for p in confounds if p is not None), None),
        )
        story = heard_version(scan.events) if task == VERSIONS else task
        return RecordingId(subject, "1", task if run is None else f"{task}-{run}", story), scan

    def _why_not(
        self, folder: SourceFolder, bold: Path, story: str, listed: Sequence[str]
    ) -> Finding | None:
        """Return why a run is not read, if it is not."""
        if any(bold.name.startswith(f"{scan}_") for scan in listed):
            found = f"the run is on the list {EXCLUDE_LIST}"
            expected, remedy = (
                "a run that the authors keep",
                "set use_exclude_list = false to keep it",
            )
        elif folder.optional(align_path(story)) is None:
            found = f"there is no {align_path(story)}"
            expected = "a story with one alignment of its words"
            remedy = (
                "download stimuli/gentle; scrambled stories and the clips of 'schema' have none"
            )
        else:
            return None
        return Finding(
            field=stem(bold, "sub", "task", "run"),
            reason=Reason.RECORDING_NOT_READ,
            severity="excluded",
            where=folder.where(bold),
            found=found,
            expected=expected,
            remedy=remedy,
        )
