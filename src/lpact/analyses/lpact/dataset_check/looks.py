"""What a look at a dataset knows of its recordings and stimuli."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from lpact.codes import Reason
from lpact.config import ControlsConfig
from lpact.controls.base import CONTROLS, ControlInputs
from lpact.datasets._finding import Finding
from lpact.datasets.base import Epochs, Recording, RecordingId, Stimulus
from lpact.math.types import FloatArray, IntArray

MOST_BEYOND = 0.1
"""Fraction of a stimulus' words that may begin after the recording's end without a note."""

NO_USABLE = "no recording is usable at level 1"


@dataclass(frozen=True, eq=False)
class Events:
    """Rows of a recording's grid, [n_events] each: ``first_word`` and ``onset_s`` are those of the stimulus."""

    first_word: IntArray
    onset_s: FloatArray
    sentence: IntArray
    story: IntArray

    @property
    def n_events(self) -> int:
        """Number of rows."""
        return len(self.first_word)

    @cached_property
    def keys(self) -> frozenset[tuple[int, float]]:
        """What tells an event from others of the same stimulus, in any recording."""
        return frozenset(zip(self.first_word.tolist(), self.onset_s.tolist(), strict=True))

    @cached_property
    def controls(self) -> Mapping[str, str]:
        """Severe control that needs no more of a model than its features → why it is not possible, or empty."""
        n_events = self.n_events
        # Features of any model are at least as slow as noise, so that what noise does not allow is not possible.
        noise = np.random.default_rng(0).standard_normal((n_events, 2))
        inputs = ControlInputs(noise, self.sentence, self.story, 1, {}, lambda *_: noise)
        found = {}
        for name in ControlsConfig().include:
            control = CONTROLS.build(name)
            missing = control.unavailable(inputs) if n_events else None
            of_the_model = control.contexts() or (
                missing is not None and missing.reason is Reason.NO_OTHER_LAYER
            )
            if not of_the_model:
                why = "" if n_events else "no events"
                found[name] = why if missing is None else missing.detail or lowered(missing.reason)
        return found


@dataclass(frozen=True)
class StimulusFacts:
    """What a stimulus brings: mechanisms that need no model, what the others need, and models with features."""

    mechanisms: tuple[str, ...]
    lacking: Mapping[str, str]
    models: tuple[str, ...] = ()


class Look(Protocol):
    """What is known of a recording."""

    @property
    def id(self) -> RecordingId:
        """Subject, session, run and stimulus."""
        ...

    @property
    def unit_ids(self) -> tuple[str, ...]:
        """Units."""
        ...

    @property
    def comparable(self) -> bool:
        """Whether a unit of the same name is the same place in another subject."""
        ...

    @property
    def n_words(self) -> int:
        """Words of the stimulus."""
        ...

    @property
    def n_events(self) -> int:
        """Rows of the grid."""
        ...

    @property
    def events(self) -> Events:
        """The rows themselves."""
        ...

    @property
    def reason(self) -> Reason:
        """Why it is of no use at level 1, or ok."""
        ...


def usable_of(looks: Sequence[Look]) -> list[Look]:
    """Recordings that level 1 can use."""
    return [look for look in looks if look.reason is Reason.OK]


def clocks(recording: Recording, stimulus: Stimulus) -> tuple[float | None, FloatArray]:
    """Duration of the signal, and onsets of the words that have one, both in seconds from its first sample.

    Epochs have no clock: their duration is None, and the words' own times are returned.
    """
    signal = recording.signal
    onset_s = recording.word_onsets_s
    if onset_s is None:
        onset_s = stimulus.words["onset_s"].to_numpy()
    onset_s = onset_s[np.isfinite(onset_s)]
    if isinstance(signal, Epochs):
        return None, onset_s
    return signal.n_samples / signal.sampling_rate_hz, onset_s - signal.start_s


def words_beyond_end(
    recording: Recording, duration_s: float | None, word_s: FloatArray
) -> tuple[Finding, ...]:
    """A note where many words begin after the recording's end, as `clocks` gives both."""
    signal = recording.signal
    if duration_s is None or isinstance(signal, Epochs):
        return ()
    n_beyond = int((word_s >= duration_s).sum())
    if n_beyond <= MOST_BEYOND * word_s.size:
        return ()
    note = Finding(
        field="words",
        reason=Reason.WORDS_OUTSIDE_RECORDING,
        severity="note",
        where=recording.where,
        found=f"{n_beyond} of {word_s.size} words begin after the end: the recording has {duration_s:.6g} s at "
        f"{signal.sampling_rate_hz:g} Hz and starts at {signal.start_s:g} s of the stimulus, and the last word "
        f"begins {word_s.max():.6g} s after its first sample",
        expected=f"at most {MOST_BEYOND:.0%} of the words beyond the end",
        remedy="check the sampling rate first, then where the stimulus starts; nothing is wrong if the recording "
        "holds a part of the stimulus only",
    )
    return (note,)


def lowered(reason: object) -> str:
    """A reason's explanation inside a sentence."""
    text = reason.explanation if isinstance(reason, Reason) else str(reason)
    return (text[:1].lower() + text[1:]).rstrip(".")
