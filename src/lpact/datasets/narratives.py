"""Reader of Narratives (OpenNeuro ds002345): many people listening to stories, functional MRI.

docs/how-to/datasets/narratives.md shows the folder. The alignment runs on the clock of the audio file, which starts
with the first event that names it in ``stim_file``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from lpact.codes import Reason
from lpact.datasets._bids import entities, stem
from lpact.datasets._files.strict import TextTable, invalid, read_text
from lpact.datasets._fmri import RAW_KEYS, Event, FmriDataset, FmriOptions, Scan, find_scan, no_events, read_events
from lpact.datasets._folder_dataset import ends_sentence, first_file, read_json, sentences_by_pauses, words_table
from lpact.datasets.base import DatasetInfo, Findings, RecordingId, Stimulus
from lpact.datasets.catalogue import published
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.math.types import IntArray

EXCLUDE_LIST = "code/scan_exclude.json"
VERSIONS, DEFAULT_VERSION = "milkyway", "milkywayoriginal"
"""The task of which each listener heard one of several versions, which its events name; and the usual one."""

ALSO_CALLED = {"notthefallintact": "notthefall"}
"""Stories whose audio has another name in events."""


class NarrativesOptions(FmriOptions):
    """Options of the reader."""

    pipeline: Literal["afni-nosmooth", "afni-smooth", "fmriprep"] = "afni-nosmooth"
    """Derivatives to read, a folder in `derivatives/`."""
    space: str = "MNI152NLin2009cAsym"
    """Standard space of the volumes."""
    res: str = ""
    """Value of `res-` in file names, where there are several."""
    stories: tuple[str, ...] = ()
    """Tasks to read, as in `task-`. Empty: all with an alignment."""
    use_exclude_list: bool = True
    """Leave out the scans that `code/scan_exclude.json` lists."""
    audio_onset_s: dict[str, float] = Field(default_factory=dict)
    """For a task, seconds from the first volume to the start of its audio; replaces its events files."""


def _alignment(story: str) -> str:
    return f"stimuli/gentle/{story}/align.csv"


def _transcripts(story: str) -> tuple[str, str]:
    return f"stimuli/gentle/{story}/transcript.txt", f"stimuli/transcripts/{story}_transcript.txt"


def _audio_onset_s(path: Path, story: str, option: str) -> float:
    """Return when the audio of a story starts: the onset of the first event that names it in ``stim_file``.

    Where no event names a file, that is the first with ``trial_type`` music or story. A story that plays another file
    is an error: the alignment would not be on its clock.
    """
    events = read_events(path)
    played = [event for event in events if event.kind == "story"]
    if not played:
        found = "trial_type " + ", ".join(sorted({event.kind for event in events}))
        raise invalid(path, found, "an event with trial_type 'story'", remedy=option)
    names = (story, ALSO_CALLED.get(story, story))
    for event in played:
        if _sound(event) not in ("", *names):
            found = f"{event.stimulus!r} at {event.onset_s:g} s"
            expected = f"'{story}_audio.wav', whose alignment is {_alignment(story)}"
            raise invalid(f"{path}, column 'stim_file'", found, expected, remedy=option)
    audio = [event.onset_s for event in events if _sound(event) in names]
    return (audio or [event.onset_s for event in events if event.kind in ("music", "story")])[0]


def _sound(event: Event) -> str:
    """Return the story that an event plays; empty if it names no file."""
    name = event.stimulus.strip()
    if name == "n/a":
        return ""
    return Path(name.replace("\\", "/")).name.removesuffix(".wav").removesuffix("_audio")


def _heard_version(events_path: Path | None) -> str:
    events = [] if events_path is None else read_events(events_path)
    names = sorted({_sound(event) for event in events if event.kind == "story"})
    return next((name for name in names if name.startswith(VERSIONS)), DEFAULT_VERSION)


class Narratives(FmriDataset[NarrativesOptions]):
    """Narratives; see docs/how-to/datasets/narratives.md."""

    name = "narratives"
    summary = "Narratives (ds002345): fMRI of story listening, by an atlas or mask"
    Options = NarrativesOptions
    contents = "stimuli/gentle/, derivatives/ and the subjects' folders of ds002345"
    role = "secondary"
    extra = "fmri"
    layout, download = published("narratives")
    published = DatasetInfo("OpenNeuro ds002345 (Narratives)", "not stated", "CC0")
    published_tr_s = 1.5

    def _find_scans(self) -> list[tuple[RecordingId, Scan]]:
        scans: list[tuple[RecordingId, Scan]] = []
        self._not_read: dict[str, Findings] = {}
        listed = self._read_exclude_list() if self.options.use_exclude_list else []
        for bold in self._bold_files(self._find_volumes()):
            scan, found = find_scan(self.folder, bold), entities(bold)
            task, run = found["task"], found.get("run")
            story = _heard_version(scan.events) if task == VERSIONS else task
            findings = self._not_read.setdefault(story, Findings(f"dataset '{self.folder.name}'"))
            if self._is_read(bold, story, listed, findings):
                run_name = task if run is None else f"{task}-{run}"
                scans.append((RecordingId(found["sub"], "1", run_name, story), scan))
        self.findings = tuple(f for findings in self._not_read.values() for f in findings)
        if not scans:
            raise InputError(
                "no run of the folder can be read",
                where=f"dataset '{self.folder.name}', {self.folder.root}",
                got="; ".join(finding.found for finding in self.findings)[:400],
                expected="runs with an alignment that are not on the list of excluded scans",
                remedy="download stimuli/gentle, or change the options stories and use_exclude_list",
            )
        return scans

    def _find_volumes(self) -> list[Path]:
        options, folder = self.options, self.folder
        desc = "preproc" if options.pipeline == "fmriprep" else "clean"
        root = f"derivatives/{options.pipeline}"
        res = f"_res-{options.res}" if options.res else "*"
        pattern = f"{root}/sub-*/func/*_space-{options.space}{res}_desc-{desc}_bold.nii.gz"
        found = folder.glob(pattern, RecordingError)
        wanted = [p for p in found if not options.stories or entities(p)["task"] in options.stories]
        if wanted:
            return wanted
        others = found or folder.glob(f"{root}/sub-*/func/*")
        raise self._no_volumes(pattern, others, "pipeline, space, res and stories")

    def _is_read(self, bold: Path, story: str, listed: Sequence[str], findings: Findings) -> bool:
        if any(bold.name.startswith(f"{scan}_") for scan in listed):
            found = f"the run is on the list {EXCLUDE_LIST}"
            expected = "a run that the authors keep"
            remedy = "set use_exclude_list = false to keep it"
        elif self.folder.optional(_alignment(story)) is None:
            found = f"there is no {_alignment(story)}"
            expected = "a story with one alignment of its words"
            remedy = "download stimuli/gentle; scrambled stories and the clips of 'schema' have none"
        else:
            return True
        field = stem(bold, *RAW_KEYS)
        findings.excluded(field, Reason.RECORDING_NOT_READ, found, expected, remedy)
        return False

    def _read_exclude_list(self) -> list[str]:
        path = self.folder.optional(EXCLUDE_LIST)
        if path is None:
            return []
        listed = read_json(path, InputError)
        try:
            lists = [scans for own in listed.values() for scans in own.values()]
            if not all(isinstance(scans, list) for scans in lists):
                raise TypeError
            return [scan for scans in lists for scan in scans]
        except (AttributeError, TypeError):
            expected = "for every task an object of subjects, each with a list of scans"
            raise invalid(path, repr(listed), expected, InputError) from None

    def _stimulus_onset(self, scan: Scan, stimulus_id: str, findings: Findings) -> float:  # noqa: ARG002
        task = entities(scan.bold)["task"]
        if task in self.options.audio_onset_s:
            return self.options.audio_onset_s[task]
        option = f"set the option audio_onset_s = {{ {task} = <seconds> }}"
        if scan.events is None:
            raise no_events(scan, f"download it, or {option}")
        return _audio_onset_s(scan.events, stimulus_id, option)

    def _stimulus(self, stimulus_id: str) -> Stimulus:
        """Read one story; times are those of its audio file, which may begin with music."""
        path = self.folder.file(_alignment(stimulus_id), StimulusError)
        findings = Findings(self.folder.where(path))
        findings += self._not_read.get(stimulus_id, ())
        table = TextTable(path, StimulusError, header=("word_orig", "word", "onset", "offset"))
        onset_s = np.array(table.numbers_or_nan("onset"), dtype=np.float64)
        offset_s = np.array(table.numbers_or_nan("offset"), dtype=np.float64)
        written, aligned = table.text("word_orig"), table.cells("word")
        timed = np.isfinite(onset_s + offset_s)
        kept = np.flatnonzero(timed)
        if kept.size < timed.size:
            row = int(np.argmin(timed))
            first = f"line {table.line(row)}, {written[row]!r}"
            findings.untimed("onset", timed.size - kept.size, timed.size, first)
        text, sentence, problem = self._transcript(stimulus_id, written)
        if sentence is not None:
            numbers = sentence[kept]
        else:
            onsets, offsets = onset_s[kept].tolist(), offset_s[kept].tolist()
            stories = [stimulus_id] * kept.size
            pause_s = self.options.sentence_pause_s
            numbers = sentences_by_pauses(onsets, offsets, stories, pause_s)
            expected = "a transcript with punctuation that contains every aligned word in order"
            remedy = "add the transcript; until then a sentence begins after a pause"
            findings.sentences_by_rule(problem, expected, remedy)
        sound = f"stimuli/{stimulus_id}_audio.wav"
        audio = self.folder.optional(sound, StimulusError)
        return Stimulus(
            id=stimulus_id,
            words=words_table(
                [written[row] for row in kept],
                onset_s[kept],
                offset_s[kept],
                numbers,
                stimulus_id,
                {"aligned_word": [aligned[row] for row in kept]},
            ),
            where=findings.where,
            transcripts={} if text is None else {stimulus_id: text},
            findings=tuple(findings),
            **self._audio(audio, f"'{sound}' is not in the folder"),
        )

    def _transcript(self, story: str, written: list[str]) -> tuple[str | None, IntArray | None, str]:
        """Return the transcript and the sentence of every aligned word in it, or why they cannot be used."""
        path = first_file(self.folder, *_transcripts(story), error=StimulusError)
        if path is None:
            return None, None, "no transcript"
        text = read_text(path, StimulusError)
        sentence = np.zeros(len(written), dtype=np.int64)
        end = last = 0
        for row, word in enumerate(written):
            start = text.find(word, end)
            if start < 0:
                problem = f"line {row + 1} of the alignment, {word!r}, is not in {path.name}"
                return None, None, problem
            if row:
                new = any(ends_sentence(piece) for piece in text[last:start].split())
                sentence[row] = sentence[row - 1] + new
            last, end = start, start + len(word)
        return text, sentence, ""

    def _stimulus_paths(self) -> Iterable[Path | None]:
        names = [EXCLUDE_LIST]
        for story in self.stimulus_ids():
            names += [_alignment(story), *_transcripts(story), f"stimuli/{story}_audio.wav"]
        return [self.folder.optional(name) for name in names]
