"""Sound files of a MEG-MASC story, and the acoustic envelope that they make on the story's clock."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets.base import Envelope
from lpact.datasets.meg_masc.events import sound_name
from lpact.errors import StimulusError
from lpact.math.types import FloatArray

AUDIO = "stimuli/audio"


def sound_files(folder: SourceFolder) -> dict[str, Path]:
    """Return the sound files by the names that events give them, whatever their case."""
    found: dict[str, Path] = {}
    for path in folder.glob(f"{AUDIO}/*"):
        if path.suffix.lower() != ".wav":
            continue
        name = sound_name(path.name)
        if name in found:
            raise StimulusError(
                f"two files can be the sound '{name}'",
                where=str(path),
                got=f"{found[name].name} and {path.name}",
                expected="one file for every sound",
                remedy="remove one of them",
            )
        found[name] = path
    return found


def story_envelope(
    files: Mapping[str, Path],
    origins: Mapping[str, float],
    *,
    rate_hz: float,
    lowpass_hz: float,
) -> Envelope:
    """Return the broadband envelope of all sounds of a story at the times ``k / rate_hz`` of its clock.

    Each sound's envelope is that of `lpact.math.envelope.amplitude_envelope`, with sample 0 at the sound's origin,
    linearly interpolated to the common times. Between sounds it is 0.
    """
    parts = {
        sound: _envelope(files[sound], rate_hz=rate_hz, lowpass_hz=lowpass_hz) for sound in origins
    }
    end_s = max(origins[sound] + values.size / rate_hz for sound, values in parts.items())
    times_s = np.arange(int(np.ceil(end_s * rate_hz)) + 1) / rate_hz
    total = np.zeros(times_s.size)
    for sound, values in parts.items():
        own_s = origins[sound] + np.arange(values.size) / rate_hz
        total += np.interp(times_s, own_s, values, left=0.0, right=0.0)
    return Envelope(total, rate_hz)


def _envelope(path: Path, *, rate_hz: float, lowpass_hz: float) -> FloatArray:
    from scipy.io import wavfile

    from lpact.math.envelope import amplitude_envelope

    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", wavfile.WavFileWarning)
            sampling_rate_hz, values = wavfile.read(path)
    except (OSError, ValueError, EOFError, struct.error) as problem:
        raise _damaged(path, f"{type(problem).__name__}: {problem}") from None
    for warning in heard:  # chunks that are not known do not matter
        if "EOF" in str(warning.message):
            raise _damaged(path, str(warning.message))
    samples: npt.NDArray[Any] = values.reshape(len(values), -1)
    if len(samples) == 0 or sampling_rate_hz <= 2 * lowpass_hz:
        raise _damaged(path, f"{len(samples)} samples at {sampling_rate_hz} Hz")
    zero, scale = _full_scale(samples.dtype)
    return amplitude_envelope(
        lambda start, stop: (samples[start:stop].astype(np.float64) - zero) / scale,
        len(samples),
        sampling_rate_hz=float(sampling_rate_hz),
        lowpass_hz=lowpass_hz,
        rate_hz=rate_hz,
    )


def _full_scale(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the number that is silence, and the largest amplitude."""
    if dtype.kind == "f":
        return 0.0, 1.0
    half = 2.0 ** (8 * dtype.itemsize - 1)
    return (half if dtype.kind == "u" else 0.0), half


def _damaged(path: Path, got: str) -> StimulusError:
    return StimulusError(
        "a sound file is damaged, empty or not a WAV file",
        where=str(path),
        got=got,
        expected="a WAV file with samples, at more than twice the cut-off of the envelope",
        remedy="copy or download the file again, or remove it: the story then has no envelope",
    )
