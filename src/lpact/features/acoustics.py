"""The acoustic envelope of a stimulus: the dataset's own, or computed from its WAV file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lpact.datasets._files.strict import damaged
from lpact.datasets._files.wav import wav_envelope
from lpact.datasets.base import Envelope, Stimulus
from lpact.errors import StimulusError
from lpact.math.types import FloatArray
from lpact.store import file_state

WAV_SUFFIXES = (".wav", ".wave")
KEPT_ENVELOPES = 64
"""Envelopes that stay in memory: at 100 Hz, one of an hour takes 3 MB."""


@dataclass(frozen=True)
class EnvelopeSettings:
    """How an envelope is computed: sampling rate of the result, and cut-off of its low-pass."""

    rate_hz: float
    lowpass_hz: float


def envelope_source(stimulus: Stimulus) -> str:
    """Describe where the envelope comes from; empty if there is none."""
    if stimulus.envelope is not None:
        return "in the dataset"
    return f"computed from {stimulus.media['audio']}" if _has_wav(stimulus) else ""


def why_no_envelope(stimulus: Stimulus) -> str | None:
    """Say why the stimulus has no envelope; None if it has one."""
    if stimulus.envelope is not None or _has_wav(stimulus):
        return None
    if "audio" not in stimulus.media:
        return "it has no acoustic envelope and no audio"
    return (
        f"it has no acoustic envelope, and its audio '{stimulus.media['audio']}' is not a WAV file; "
        "convert it, for example: ffmpeg -i INPUT -c:a pcm_s16le audio.wav"
    )


def stimulus_envelope(stimulus: Stimulus, settings: EnvelopeSettings) -> Envelope:
    """Return the dataset's envelope, or that of the WAV file; see `why_no_envelope`.

    Sample 0 of the sound is at ``stimulus.audio_start_s``. A file that was read before, and has the same size and time
    of change, is not read again.
    """
    if stimulus.envelope is not None:
        return stimulus.envelope
    path = stimulus.media_path("audio")
    try:
        state = file_state(path)
    except OSError as problem:
        raise damaged(path, problem, StimulusError, "a readable WAV file") from None
    values = _envelope(path, state, settings)
    return Envelope(values, settings.rate_hz, stimulus.audio_start_s)


def _has_wav(stimulus: Stimulus) -> bool:
    return Path(stimulus.media.get("audio", "")).suffix.lower() in WAV_SUFFIXES


@lru_cache(maxsize=KEPT_ENVELOPES)
def _envelope(path: Path, _: tuple[int, ...], settings: EnvelopeSettings) -> FloatArray:
    """Return the envelope of a file; its state is a key of the cache."""
    values = wav_envelope(path, settings.rate_hz, settings.lowpass_hz)
    values.setflags(write=False)
    return values
