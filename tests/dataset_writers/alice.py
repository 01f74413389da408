"""Writer of the layout of the Alice fMRI time courses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpact.datasets.alice import MOTION, N_DISCARDED, N_VOLUMES, REGIONS, START_S, TR_S
from lpact.math.types import FloatArray, IntArray

WORDS = ("Alice", "was", "beginning", "to", "get", "very", "tired", "what", "'s", "the", "use")


@dataclass(frozen=True)
class AliceTruth:
    """What was written: ``volumes`` is the volume in which each word begins; region 0 holds there the word's number.

    ``silent`` is the subject whose recording is constant, ``bare`` the one without motion and predictors.
    """

    subjects: tuple[str, ...]
    silent: str
    bare: str
    words: tuple[str, ...]
    onset_s: FloatArray
    volumes: IntArray


def write_alice(folder: Path, *, seed: int = 0, subjects: int = 4, n_words: int = 60) -> AliceTruth:
    """Write time courses, motion, predictors and a TextGrid with the quirks of the published ones.

    Words are a little over ten seconds apart, so that none shares its volume with another; every seventh label has a
    blank behind it. One subject is constant, one has neither motion nor predictors. Region 0 is 0 but for the number
    (from 1) of every word in the volume in which it begins.
    """
    rng = np.random.default_rng(seed)
    names = tuple(f"s{18 + i}" for i in range(subjects))
    truth_words = tuple(WORDS[i % len(WORDS)] for i in range(n_words))
    room_s = (N_VOLUMES - 1) * TR_S / n_words
    onset_s = START_S + 0.06 + room_s * np.arange(n_words) + rng.uniform(0, 0.2 * room_s, n_words)
    volumes = np.floor((onset_s - START_S) / TR_S).astype(np.int64)
    data, stimuli = folder / "alice_data_shared", folder / "alice_stim_shared"
    for place in (data / "10mm", data / "6mm", stimuli):
        place.mkdir(parents=True)
    for subject in names:
        noise = np.cumsum(rng.standard_normal((N_VOLUMES, len(REGIONS))), axis=0)
        if subject == names[1]:
            noise[:] = 0.0
        else:
            noise[:, 0] = 0.0
            noise[volumes, 0] = np.arange(1.0, n_words + 1)
        for radius in ("10mm", "6mm"):
            np.savetxt(data / radius / f"{subject}-timecourses.txt", noise, fmt="%.6f")
        if subject == names[2]:
            continue
        motion = 0.1 * rng.standard_normal((N_DISCARDED + N_VOLUMES, len(MOTION)))
        np.savetxt(data / f"{subject}-rp_epiRTwm2_scan_0004__003.txt", motion, fmt="%16.7e")
        for kind in ("rate", "sndpwr"):
            np.savetxt(data / f"{subject}-{kind}.txt", rng.random(N_VOLUMES), fmt="%.6f")
    _write_textgrid(stimuli / "DownTheRabbitHole.TextGrid", truth_words, onset_s)
    return AliceTruth(names, names[1], names[2], truth_words, onset_s, volumes)


def _write_textgrid(path: Path, words: tuple[str, ...], onset_s: FloatArray) -> None:
    """Words of 0.3 s with silences between them, in Praat's long text format."""
    intervals: list[tuple[float, float, str]] = []
    end = START_S - 8.0
    for number, (word, start) in enumerate(zip(words, onset_s.tolist(), strict=True)):
        intervals.append((end, start, "" if number % 5 == 4 else "sp"))
        intervals.append((start, start + 0.3, word + (" " if number % 7 == 6 else "")))
        end = start + 0.3
    head = (
        'File type = "ooTextFile"\nObject class = "TextGrid"\n\n'
        f"xmin = {intervals[0][0]!r}\nxmax = {end!r}\ntiers? <exists>\nsize = 1\nitem []:\n"
        f'    item [1]:\n        class = "IntervalTier"\n        name = "word"\n'
        f"        xmin = {intervals[0][0]!r}\n        xmax = {end!r}\n"
        f"        intervals: size = {len(intervals)}\n"
    )
    body = "".join(
        f'        intervals [{i}]:\n            xmin = {a!r}\n            xmax = {b!r}\n            text = "{text}"\n'
        for i, (a, b, text) in enumerate(intervals, start=1)
    )
    path.write_text(head + body, encoding="utf-8")
