"""Writer of small MEG-MASC folders: the official names, columns and quirks, with planted word times."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dataset_writers.kit import write_con, write_mrk
from lpact.math.types import FloatArray

STORIES = ("lw1", "cable_spool_fort", "easy_money", "The_Black_Willow")
VOCABULARY = ("Tara", "stood", "it's", "café", "still", "rock", "the", "boy", "“no”", "lay")
PSEUDO = ("ro", "glim", "trast")
AUDIO_HZ = 4000
_PHONEMES = ("t_B", "ah_I", "r_E")
_CONDITIONS = ("sentence", "sentence", "word_list", "sentence", "pseudo_words")


@dataclass(frozen=True)
class SpokenWord:
    """One word of a story as it is spoken: its place in its sound file, and its sequence."""

    word: str
    sound: str
    start_s: float
    duration_s: float
    sequence_id: int
    word_index: int
    condition: str


@dataclass(frozen=True)
class MegMascTruth:
    """What was written.

    ``words`` are all words of a story (lower-case name) in order. ``samples`` holds for each recording
    (``sub-01_ses-0_run-0``) the exact sample of every word, or -1 where its event was dropped; sensor 0 has the value
    i + 1 femtotesla at the sample of word i, event or not (``heard``), and 0 elsewhere. ``pauses_s`` are the silences
    between sounds. ``drift_ppm`` is how much faster the recording's clock runs than the sounds'.
    """

    words: dict[str, tuple[SpokenWord, ...]]
    samples: dict[str, npt.NDArray[np.int64]]
    heard: dict[str, npt.NDArray[np.int64]]
    stories: dict[str, str]
    drift_ppm: dict[str, float]
    places_m: FloatArray
    quirks: tuple[str, ...] = field(
        default=(
            "events begin with a byte-order mark",
            "trial_type is a Python literal, with either kind of quotes",
            "the case of The_Black_Willow varies between recordings",
            "sounds are called <story>_<n>.0.wav in events, <story>_<n>.wav in the folder",
            "ids are written as floating-point numbers",
            "clocks drift, pauses between sounds differ, and events are missing",
            "participants.json is not valid JSON, and the dataset has no name",
        )
    )

    def rows(self, story: str, conditions: Sequence[str] = ("sentence",)) -> list[int]:
        """Indices of the words in these conditions."""
        return [i for i, word in enumerate(self.words[story]) if word.condition in conditions]


def write_meg_masc(
    folder: Path,
    *,
    seed: int = 0,
    n_subjects: int = 2,
    sessions: Sequence[str] = ("0", "1"),
    tasks: Sequence[int] = (0, 3),
    n_sounds: int = 2,
    n_words: int = 3,
    n_sensors: int = 4,
    sampling_rate_hz: float = 1000.0,
    drift_ppm: float = 2000.0,
    n_dropped: int = 2,
    audio: bool = True,
) -> MegMascTruth:
    """Write a folder of ``n_subjects × sessions × tasks`` recordings.

    Every sound has five sequences of ``n_words`` words: three sentences, a word list and pseudo-words. Of each
    recording but the first, ``n_dropped`` events of words are missing, and the event of one sound. Clocks run up to
    ``drift_ppm`` faster or slower.
    """
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    stories = [STORIES[task] for task in tasks]
    words = {story.lower(): _spoken(story.lower(), n_sounds, n_words, random) for story in stories}
    if audio:
        _write_audio(folder / "stimuli" / "audio", words)
    subjects = [f"{number + 1:02d}" for number in range(n_subjects)]
    _write_root(folder, subjects, tasks)
    truth = MegMascTruth(words, {}, {}, {}, {}, np.zeros((n_sensors, 5)))
    for subject in subjects:
        for session in sessions:
            for task, story in zip(tasks, stories, strict=True):
                name = f"sub-{subject}_ses-{session}_run-{task}"
                truth.stories[name] = story.lower()
                truth.drift_ppm[name] = float(random.uniform(-1, 1) * drift_ppm)
                spelling = story if session == "0" else story.lower()
                first = subject == subjects[0] and session == sessions[0]
                meg = folder / f"sub-{subject}" / f"ses-{session}" / "meg"
                meg.mkdir(parents=True, exist_ok=True)
                stem = meg / f"sub-{subject}_ses-{session}_task-{task}"
                timed = _timed(words[story.lower()], truth.drift_ppm[name], random)
                dropped = _choose(words[story.lower()], 0 if first else n_dropped, random)
                samples = np.rint(timed.words_s * sampling_rate_hz).astype(np.int64)
                truth.heard[name] = samples
                truth.samples[name] = np.where(dropped, -1, samples)
                _write_events(
                    Path(f"{stem}_events.tsv"),
                    words[story.lower()],
                    timed,
                    dropped,
                    spelling,
                    sampling_rate_hz,
                    drop_sound=not first,
                )
                codes = _signal(samples, n_sensors, sampling_rate_hz, random)
                truth.places_m[:] = write_con(Path(f"{stem}_meg.con"), codes, sampling_rate_hz=sampling_rate_hz)
                _write_sidecars(str(stem), n_sensors, sampling_rate_hz)
    return truth


@dataclass(frozen=True)
class _Timed:
    """Times on a recording's clock: of every word, and of every sound."""

    words_s: FloatArray
    sounds_s: Mapping[str, float]
    speed: float


def _spoken(story: str, n_sounds: int, n_words: int, random: np.random.Generator) -> tuple[SpokenWord, ...]:
    words = []
    for number in range(n_sounds):
        at_s = 0.1
        for sequence, condition in enumerate(_CONDITIONS):
            for index in range(n_words):
                pool = PSEUDO if condition == "pseudo_words" else VOCABULARY
                duration_s = round(float(random.uniform(0.12, 0.3)), 4)
                words.append(
                    SpokenWord(
                        word=str(random.choice(pool)),
                        sound=f"{story}_{number}",
                        start_s=round(at_s, 4),
                        duration_s=duration_s,
                        sequence_id=sequence,
                        word_index=index,
                        condition=condition,
                    )
                )
                at_s += duration_s + round(float(random.uniform(0.0, 0.05)), 4)
            at_s += 0.3
    return tuple(words)


def _timed(words: Sequence[SpokenWord], drift_ppm: float, random: np.random.Generator) -> _Timed:
    """Play the sounds one after the other, with pauses that differ, on a clock that drifts."""
    speed = 1.0 + drift_ppm * 1e-6
    sounds_s: dict[str, float] = {}
    now_s = float(random.uniform(1.0, 2.0))
    for sound in dict.fromkeys(word.sound for word in words):
        sounds_s[sound] = round(now_s, 6)
        length_s = max(w.start_s + w.duration_s for w in words if w.sound == sound)
        now_s += length_s * speed + float(random.uniform(0.5, 1.5))
    times_s = np.array([round(sounds_s[w.sound] + w.start_s * speed, 6) for w in words])
    return _Timed(times_s, sounds_s, speed)


def _choose(words: Sequence[SpokenWord], n_dropped: int, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    dropped = np.zeros(len(words), dtype=np.bool_)
    candidates = [i for i, word in enumerate(words) if word.condition == "sentence"]
    dropped[random.choice(candidates, n_dropped, replace=False)] = True
    return dropped


def _write_events(
    path: Path,
    words: Sequence[SpokenWord],
    timed: _Timed,
    dropped: npt.NDArray[np.bool_],
    spelling: str,
    sampling_rate_hz: float,
    *,
    drop_sound: bool,
) -> None:
    lines = ["onset\tduration\ttrial_type\tvalue\tsample"]

    def add(onset_s: float, duration_s: float, about: Mapping[str, object]) -> None:
        sample = int(np.rint(onset_s * sampling_rate_hz))
        lines.append(f"{onset_s:.6f}\t{duration_s:.4f}\t{dict(about)!r}\t1\t{sample}")

    sounds = list(timed.sounds_s)
    begun: set[str] = set()
    for i, word in enumerate(words):
        number = sounds.index(word.sound)
        common: dict[str, object] = {
            "story": spelling,
            "story_uid": 0.0,
            "sound_id": float(number),
            "sound": f"stimuli/audio/{spelling}_{number}.0.wav",
        }
        if word.sound not in begun:
            begun.add(word.sound)
            if not (drop_sound and number == len(sounds) - 1):
                add(timed.sounds_s[word.sound], 0.0, {**common, "kind": "sound", "start": 0.0})
        place = {
            **common,
            "sequence_id": float(word.sequence_id),
            "word_index": float(word.word_index),
            "condition": word.condition,
            "speech_rate": 205.0,
            "voice": "Allison",
            "pronounced": 1.0,
        }
        onset_s = float(timed.words_s[i])
        if not dropped[i]:
            about = {**place, "kind": "word", "start": word.start_s, "word": word.word}
            add(onset_s, word.duration_s, about)
        step_s = word.duration_s / len(_PHONEMES)
        for k, phoneme in enumerate(_PHONEMES):
            about = {
                **place,
                "kind": "phoneme",
                "start": round(word.start_s + k * step_s, 6),
                "phoneme": phoneme,
            }
            add(round(onset_s + k * step_s * timed.speed, 6), step_s, about)
    path.write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _signal(
    samples: npt.NDArray[np.int64],
    n_sensors: int,
    sampling_rate_hz: float,
    random: np.random.Generator,
) -> npt.NDArray[np.int16]:
    n_samples = int(samples.max() + sampling_rate_hz)
    noise = random.standard_normal((n_samples, n_sensors))
    for k in range(1, 4):
        noise[k:] += 0.5 * noise[:-k]
    codes = np.rint(100.0 * noise).astype(np.int16)
    codes[:, 0] = 0
    codes[samples, 0] = np.arange(1, samples.size + 1)
    return codes


def _write_sidecars(stem: str, n_sensors: int, sampling_rate_hz: float) -> None:
    about = {
        "TaskName": stem.rpartition("task-")[2],
        "SamplingFrequency": sampling_rate_hz,
        "PowerLineFrequency": 50.0,
        "MEGChannelCount": n_sensors,
        "MEGREFChannelCount": 1,
    }
    Path(f"{stem}_meg.json").write_text(json.dumps(about, indent=4) + "\n", encoding="utf-8")
    rows = [f"MEG {i + 1:03d}\tMEGMAG\tT\tgood" for i in range(n_sensors)]
    rows += [f"MEG {n_sensors + 1:03d}\tMEGREFMAG\tT\tgood"]
    rows += ["TRIGGER 001\tMISC\tV\tgood", "MISC 001\tMISC\tV\tgood"]
    text = "\n".join(["name\ttype\tunits\tstatus", *rows]) + "\n"
    Path(f"{stem}_channels.tsv").write_text(text, encoding="utf-8-sig", newline="\n")
    markers = np.array([[0.09, 0, 0], [0, 0.07, 0], [0, -0.07, 0], [0.08, 0.03, 0.02], [0.08, -0.03, 0.02]])
    subject_session = stem.rpartition("_task-")[0]
    write_mrk(Path(f"{stem}_markers.mrk"), markers)
    points = "\n".join(f"{1000 * x:.2f} {1000 * y:.2f} {1000 * z:.2f}" for x, y, z in markers)
    Path(f"{subject_session}_acq-ELP_headshape.pos").write_text(points + "\n", encoding="utf-8")


def _write_root(folder: Path, subjects: Sequence[str], tasks: Sequence[int]) -> None:
    header = "participant_id\tage\tsex\thand\ttask_order\tn_sessions"
    lines = [f"sub-{subject}\t25\tfemale\tright\t{list(tasks)}\t2" for subject in subjects]
    (folder / "participants.tsv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8", newline="\n")
    (folder / "participants.json").write_text('{\n    "age": {"Units": "years"}\n    "sex": {}\n}\n', encoding="utf-8")
    about = {"Name": " ", "BIDSVersion": "1.6.0", "DatasetType": "raw"}
    (folder / "dataset_description.json").write_text(json.dumps(about) + "\n", encoding="utf-8")


def _write_audio(folder: Path, words: Mapping[str, Sequence[SpokenWord]]) -> None:
    """Write each sound: a tone while a word is spoken, silence elsewhere."""
    from scipy.io import wavfile

    folder.mkdir(parents=True, exist_ok=True)
    for spoken in words.values():
        for sound in dict.fromkeys(word.sound for word in spoken):
            here = [word for word in spoken if word.sound == sound]
            end_s = max(word.start_s + word.duration_s for word in here) + 0.2
            times_s = np.arange(round(end_s * AUDIO_HZ)) / AUDIO_HZ
            values = np.zeros(times_s.size)
            for word in here:
                on = (times_s >= word.start_s) & (times_s < word.start_s + word.duration_s)
                values[on] = 0.5 * np.sin(2 * np.pi * 440.0 * times_s[on])
            wavfile.write(folder / f"{sound}.wav", AUDIO_HZ, np.rint(32767 * values).astype("<i2"))
