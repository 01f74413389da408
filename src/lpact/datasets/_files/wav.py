"""WAV files, a part at a time."""

from __future__ import annotations

import struct
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.strict import damaged
from lpact.errors import StimulusError
from lpact.math.envelope import PIECE_SAMPLES, amplitude_envelope
from lpact.math.types import FloatArray

_SCALES = {"u1": 2.0**7, "i2": 2.0**15, "i4": 2.0**31, "f4": 1.0, "f8": 1.0}
"""Full scale by dtype; SciPy reads 24 bits into the upper ones of 32."""
_CONVERT = (
    "write the file again, for example: ffmpeg -i INPUT -c:a pcm_s16le audio.wav; "
    "or give the envelope itself; or leave the audio out"
)


@dataclass(frozen=True)
class WavFile:
    """A WAV file; ``samples`` [n_samples, n_channels] are mapped, except for those of 24 bits."""

    path: Path
    sampling_rate_hz: int
    samples: npt.NDArray[Any]

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
        raise damaged(path, problem, StimulusError, "a readable WAV file") from None
    if not rate_hz or not samples.size or samples.dtype.str[1:] not in _SCALES:
        got = f"{rate_hz} Hz, {len(samples)} samples of type {samples.dtype}"
        raise _unusable(path, got)
    return WavFile(path, rate_hz, samples.reshape(len(samples), -1))


def wav_envelope(path: Path, rate_hz: float, lowpass_hz: float) -> FloatArray:
    """Return the envelope of a WAV file by `amplitude_envelope`, sampled at ``rate_hz``."""
    sound = open_wav(path)
    if sound.sampling_rate_hz <= 2 * lowpass_hz:
        raise StimulusError(
            "an audio file is sampled too slowly for its envelope",
            where=str(path),
            got=f"{sound.sampling_rate_hz} Hz",
            expected=f"more than {2 * lowpass_hz:g} Hz, twice the option envelope_lowpass_hz",
            remedy="give the original audio, or lower envelope_lowpass_hz",
        )
    return amplitude_envelope(
        sound.read,
        len(sound.samples),
        sampling_rate_hz=sound.sampling_rate_hz,
        lowpass_hz=lowpass_hz,
        rate_hz=rate_hz,
        piece_samples=max(1, PIECE_SAMPLES // sound.samples.shape[1]),
    )


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
