"""Stories of Narratives: Gentle's alignment, the transcript, and what they do not agree on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets._files.sentences import ends_sentence, sentences_by_pauses
from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._files.strict import CsvFile, read_text
from lpact.datasets._finding import Finding
from lpact.datasets._fmri.bids import Event, read_events
from lpact.datasets._fmri.sentences import sentences_by_rule
from lpact.datasets.base import AbsentMedium, Stimulus
from lpact.datasets.bids.sidecars import read_json
from lpact.datasets.validate import check_stimulus
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.math.types import IntArray

EXCLUDE_LIST = "code/scan_exclude.json"
VERSIONS = "milkyway"
"""The task of which each listener heard one of several versions; its events say which."""

DEFAULT_VERSION = "milkywayoriginal"

ALSO_CALLED = {"notthefallintact": "notthefall"}
"""Stories whose audio goes by another name in events."""

COLUMNS = ("word_orig", "word", "onset", "offset")


def align_path(story: str) -> str:
    """Where the alignment of a story lies."""
    return f"stimuli/gentle/{story}/align.csv"


def transcript_paths(story: str) -> tuple[str, str]:
    """Where the transcript of a story may lie; the first that is there counts."""
    return f"stimuli/gentle/{story}/transcript.txt", f"stimuli/transcripts/{story}_transcript.txt"


def audio_path(story: str) -> str:
    """Where the audio of a story lies."""
    return f"stimuli/{story}_audio.wav"


def read_story(
    folder: SourceFolder, story: str, pause_s: float, findings: tuple[Finding, ...]
) -> Stimulus:
    """Read one story; times are those of its audio file, which may begin with music."""
    path = folder.file(align_path(story), StimulusError)
    table = CsvFile(path, StimulusError, header=COLUMNS)
    onset_s = np.array(table.numbers_or_nan("onset"), dtype=np.float64)
    offset_s = np.array(table.numbers_or_nan("offset"), dtype=np.float64)
    aligned = np.isfinite(onset_s) & np.isfinite(offset_s)
    written = table.text("word_orig")
    notes = list(findings)
    if not aligned.all():
        missing = np.flatnonzero(~aligned)
        notes.append(
            Finding(
                field="onset",
                reason=Reason.SOURCE_ROWS_LEFT_OUT,
                severity="excluded",
                where=folder.where(path),
                found=f"{missing.size} of {aligned.size} words without times; first: "
                f"line {table.line(int(missing[0]))}, {written[missing[0]]!r}",
                expected="times of every word",
                remedy="the words are left out; the aligner did not find them in the audio",
            )
        )
    text, sentence = _sentences(folder, story, written, notes)
    kept = np.flatnonzero(aligned)
    if sentence is None:
        sentence = np.zeros(aligned.size, dtype=np.int64)
        by_pause = sentences_by_pauses(
            onset_s[kept].tolist(), offset_s[kept].tolist(), [story] * kept.size, pause_s
        )
        sentence[kept] = by_pause
    spoken = table.cells("word")
    words = pl.DataFrame(
        {
            "word": [written[row] for row in kept],
            "onset_s": onset_s[kept],
            "offset_s": offset_s[kept],
            "sentence_id": sentence[kept],
            "story_id": [story] * kept.size,
            "aligned_word": [spoken[row] for row in kept],
        },
        schema_overrides={"word": pl.String, "story_id": pl.String, "aligned_word": pl.String},
    )
    audio = folder.optional(audio_path(story), StimulusError)
    stimulus = Stimulus(
        id=story,
        words=words,
        where=folder.where(path),
        media={} if audio is None else {"audio": folder.relative(audio)},
        media_root=folder.root,
        media_absent={}
        if audio is not None
        else {
            "audio": AbsentMedium(
                Reason.MEDIA_NOT_OFFERED, f"'{audio_path(story)}' is not in the folder"
            )
        },
        transcripts={} if text is None else {story: text},
        findings=tuple(notes),
    )
    check_stimulus(stimulus)
    return stimulus


def _sentences(
    folder: SourceFolder, story: str, written: list[str], notes: list[Finding]
) -> tuple[str | None, IntArray | None]:
    """Return the transcript and the sentence of every aligned word in it; None where there is none that fits."""
    paths = [folder.optional(name, StimulusError) for name in transcript_paths(story)]
    path = next((path for path in paths if path is not None), None)
    if path is None:
        notes.append(_by_rule(folder.where(folder.root / align_path(story)), "no transcript"))
        return None, None
    text = read_text(path, StimulusError)
    starts: list[int] = []
    position = 0
    for row, word in enumerate(written):
        start = text.find(word, position)
        if start < 0:
            found = f"line {row + 1} of the alignment, {word!r}, is not in the transcript"
            notes.append(_by_rule(folder.where(path), found))
            return None, None
        starts.append(start)
        position = start + len(word)
    sentence = np.zeros(len(written), dtype=np.int64)
    for row in range(1, len(written)):
        before = text[starts[row - 1] : starts[row]]
        new = any(ends_sentence(piece) for piece in before.split())
        sentence[row] = sentence[row - 1] + new
    return text, sentence


def _by_rule(where: str, found: str) -> Finding:
    return sentences_by_rule(
        where,
        found,
        expected="a transcript with punctuation that holds every aligned word in order",
        remedy="add the transcript; until then a sentence begins after a pause",
    )


def audio_onset_s(path: Path, story: str, task: str) -> float:
    """Return when the audio of a story starts: the onset of the first event that names it in ``stim_file``.

    Where no event names a file, that is the first with ``trial_type`` music or story. A story that plays another file
    is an error: the alignment would not be on its clock.
    """
    events = read_events(path)
    told = [event for event in events if event.kind == "story"]
    if not told:
        raise RecordingError(
            "the events of a run have no story",
            where=str(path),
            got="trial_type " + ", ".join(sorted({event.kind for event in events})),
            expected="an event with trial_type 'story'",
            remedy=f"download the file again, or set audio_onset_s = {{ {task} = <seconds> }}",
        )
    names = (story, ALSO_CALLED.get(story, story))
    for event in told:
        if _played(event) not in ("", *names):
            raise RecordingError(
                "the story of a run is not the one that its words are of",
                where=f"{path}, column 'stim_file'",
                got=f"{event.stimulus!r} at {event.onset_s:g} s",
                expected=f"'{story}_audio.wav', whose alignment is {align_path(story)}",
                remedy=f"find out what was heard; audio_onset_s = {{ {task} = <seconds> }} settles it",
            )
    audio = [event.onset_s for event in events if _played(event) in names]
    return (audio or [event.onset_s for event in events if event.kind in ("music", "story")])[0]


def _played(event: Event) -> str:
    """Return the story whose audio an event plays; empty where it names no file."""
    name = event.stimulus.strip()
    if name == "n/a":
        return ""
    return Path(name.replace("\\", "/")).name.removesuffix(".wav").removesuffix("_audio")


def heard_version(events_path: Path | None) -> str:
    """Return the version of the story that was heard, from the audio that the events name."""
    events = [] if events_path is None else read_events(events_path)
    stems = {_played(event) for event in events if event.kind == "story"}
    named = sorted(name for name in stems if name.startswith(VERSIONS))
    return named[0] if named else DEFAULT_VERSION


def read_exclude_list(folder: SourceFolder) -> list[str]:
    """Return the scans that the authors exclude, where the list is there."""
    path = folder.optional(EXCLUDE_LIST)
    if path is None:
        return []
    scans: list[str] = []
    for task, subjects in read_json(path, InputError).items():
        if not isinstance(subjects, dict) or not all(
            isinstance(v, list) for v in subjects.values()
        ):
            raise InputError(
                "the list of excluded scans is not as expected",
                where=f"{path}, key '{task}'",
                got=repr(subjects)[:200],
                expected="for every task an object of subjects, each with a list of scans",
                remedy="download the file again, or set use_exclude_list = false",
            )
        scans += [str(scan) for listed in subjects.values() for scan in listed]
    return scans
