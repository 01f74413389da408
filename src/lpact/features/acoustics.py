"""The acoustic envelope of a stimulus: the dataset's own, or computed from its WAV file."""

from __future__ import annotations

import struct
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets.base import Envelope, Stimulus
from lpact.errors import StimulusError
from lpact.math.envelope import PIECE_SAMPLES, amplitude_envelope
from lpact.math.types import FloatArray

WAV_SUFFIXES = (".wav", ".wave")
KEPT_ENVELOPES = 64
"""Envelopes that stay in memory: at 100 Hz, one of an hour takes 3 MB."""

_SCALES = {"u1": 2.0**7, "i2": 2.0**15, "i4": 2.0**31, "f4": 1.0, "f8": 1.0}
"""Full scale by dtype; SciPy reads 24 bits into the upper ones of 32."""
_CONVERT = (
    "write the file again, for example: ffmpeg -i INPUT -c:a pcm_s16le audio.wav; "
    "or give the envelope itself; or leave the audio out"
)


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
        about = path.stat()
    except OSError as problem:
        raise _unreadable(path, problem) from None
    values = _envelope(path, about.st_size, about.st_mtime_ns, settings)
    return Envelope(values, settings.rate_hz, stimulus.audio_start_s)


def _has_wav(stimulus: Stimulus) -> bool:
    return Path(stimulus.media.get("audio", "")).suffix.lower() in WAV_SUFFIXES


@lru_cache(maxsize=KEPT_ENVELOPES)
def _envelope(
    path: Path, _n_bytes: int, _changed_ns: int, settings: EnvelopeSettings
) -> FloatArray:
    """Return the envelope of a file; size and time of change are keys of the cache."""
    sound = open_wav(path)
    if sound.sampling_rate_hz <= 2 * settings.lowpass_hz:
        raise StimulusError(
            "an audio file is sampled too slowly for its envelope",
            where=str(path),
            got=f"{sound.sampling_rate_hz} Hz",
            expected=f"more than {2 * settings.lowpass_hz:g} Hz, twice nuisance.envelope_lowpass_hz",
            remedy="give the original audio, or lower nuisance.envelope_lowpass_hz",
        )
    values = amplitude_envelope(
        sound.read,
        sound.n_samples,
        sampling_rate_hz=sound.sampling_rate_hz,
        lowpass_hz=settings.lowpass_hz,
        rate_hz=settings.rate_hz,
        piece_samples=max(1, PIECE_SAMPLES // sound.n_channels),
    )
    values.setflags(write=False)
    return values


@dataclass(frozen=True)
class WavFile:
    """A WAV file; ``samples`` [n_samples, n_channels] are mapped, except for those of 24 bits."""

    path: Path
    sampling_rate_hz: int
    samples: npt.NDArray[Any]

    @property
    def n_samples(self) -> int:
        """Samples of each channel."""
        return len(self.samples)

    @property
    def n_channels(self) -> int:
        """Channels."""
        return int(self.samples.shape[1])

    def read(self, start: int, stop: int) -> FloatArray:
        """Return the samples ``start`` to ``stop``, [stop − start, n_channels]; full scale is 1."""
        kind = self.samples.dtype.str[1:]
        values = self.samples[start:stop].astype(np.float64)
        if not np.isfinite(values).all():
            raise _unusable(self.path, f"a value that is not finite after sample {start}")
        values -= 128.0 if kind == "u1" else 0.0
        values /= _SCALES[kind]
        return values


def open_wav(path: Path) -> WavFile:
    """Open a WAV file; raises `StimulusError` if it cannot be used."""
    try:
        rate_hz, samples = _read_wav(path, mmap=True)
    except OSError as problem:
        raise _unreadable(path, problem) from None
    if not rate_hz or not samples.size or samples.dtype.str[1:] not in _SCALES:
        got = f"{rate_hz} Hz, {len(samples)} samples of type {samples.dtype}"
        raise _unusable(path, got)
    return WavFile(path, rate_hz, samples.reshape(len(samples), -1))


def _read_wav(path: Path, *, mmap: bool) -> tuple[int, npt.NDArray[Any]]:
    from scipy.io import wavfile

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wavfile.WavFileWarning)
            if not mmap:  # a map is as long as the header says
                warnings.filterwarnings("error", "Reached EOF", wavfile.WavFileWarning)
            return wavfile.read(path, mmap=mmap)
    except (ValueError, NameError, ArithmeticError, struct.error, Warning) as problem:
        if "mmap=True not compatible" in str(problem):
            return _read_wav(path, mmap=False)
        # SciPy uses a variable that it has not set if there is no chunk with samples.
        missing = isinstance(problem, NameError)
        raise _unusable(path, "no samples" if missing else str(problem)) from None


def _unusable(path: Path, got: str) -> StimulusError:
    return StimulusError(
        "an audio file is damaged, empty or not a supported WAV file",
        where=str(path),
        got=got,
        expected="a WAV file of 8, 16, 24 or 32-bit integers, or of 32 or 64-bit floating-point numbers",
        remedy=_CONVERT,
    )


def _unreadable(path: Path, problem: OSError) -> StimulusError:
    return StimulusError(
        "an audio file cannot be read",
        where=str(path),
        got=f"{type(problem).__name__}: {problem.strerror}",
        expected="a readable WAV file",
        remedy="check that the file exists, and its permissions; or leave the audio out",
    )
