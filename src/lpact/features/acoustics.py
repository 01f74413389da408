"""The acoustic envelope of a stimulus: the dataset's own, or computed from its WAV file."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np

from lpact.datasets.base import Envelope, Stimulus
from lpact.errors import StimulusError
from lpact.math.envelope import PIECE_SAMPLES, amplitude_envelope
from lpact.math.types import FloatArray

WAV_SUFFIXES = (".wav", ".wave")
KEPT_ENVELOPES = 64
"""Envelopes that stay in memory: at 100 Hz, one of an hour takes 3 MB."""

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_SUBFORMAT_TAIL = bytes.fromhex("000000001000800000aa00389b71")
_UNKNOWN_LENGTH = 0xFFFFFFFF
_SCALES = {(_PCM, 8): 2.0**7, (_PCM, 16): 2.0**15, (_PCM, 24): 2.0**31, (_PCM, 32): 2.0**31}
_SCALES |= {(_FLOAT, 32): 1.0, (_FLOAT, 64): 1.0}
_DTYPES = {(_PCM, 8): "u1", (_PCM, 16): "<i2", (_PCM, 32): "<i4"}
_DTYPES |= {(_FLOAT, 32): "<f4", (_FLOAT, 64): "<f8"}
_SUPPORTED = "a WAV file of 8, 16, 24 or 32-bit integers, or of 32 or 64-bit floating-point numbers"
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
    """Return where the envelope comes from, in words; empty where there is none."""
    if stimulus.envelope is not None:
        return "in the dataset"
    return f"computed from {stimulus.media['audio']}" if _has_wav(stimulus) else ""


def why_no_envelope(stimulus: Stimulus) -> str | None:
    """Return why the stimulus has no envelope, in words; None where it has one."""
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
    """Return the envelope of a file; size and time of change are there for the cache."""
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
    """Where the samples of a WAV file lie, and how they are written: (format, bits)."""

    path: Path
    sampling_rate_hz: int
    n_channels: int
    n_samples: int
    encoding: tuple[int, int]
    first_byte: int

    def read(self, start: int, stop: int) -> FloatArray:
        """Return the samples ``start`` to ``stop``, [stop − start, n_channels]; full scale is 1."""
        kind, bits = self.encoding
        shape = (stop - start, self.n_channels)
        n_values, n_bytes = shape[0] * shape[1], bits // 8
        offset = self.first_byte + start * self.n_channels * n_bytes
        try:
            raw = np.fromfile(self.path, np.uint8, n_values * n_bytes, offset=offset)
        except OSError as problem:
            raise _unreadable(self.path, problem) from None
        if raw.size < n_values * n_bytes:
            raise _damaged(self.path, f"{raw.size} of {n_values * n_bytes} bytes", "the whole file")
        if bits == 24:
            # The three bytes become the upper ones of four.
            wide = np.zeros((n_values, 4), np.uint8)
            wide[:, 1:] = raw.reshape(-1, 3)
            values = wide.reshape(-1).view("<i4").astype(np.float64)
        else:
            values = raw.view(_DTYPES[self.encoding]).astype(np.float64)
        if self.encoding == (_PCM, 8):
            values -= 128.0
        if kind == _FLOAT and not np.isfinite(values).all():
            raise _damaged(self.path, f"a value that is not finite after sample {start}", "numbers")
        values /= _SCALES[self.encoding]
        return values.reshape(shape)


def open_wav(path: Path) -> WavFile:
    """Read the header of a WAV file; raises `StimulusError` for one that cannot be used."""
    try:
        with path.open("rb") as stream:
            form, first_byte, n_bytes = _find_samples(stream, path)
    except OSError as problem:
        raise _unreadable(path, problem) from None
    if len(form) < 16:
        raise _damaged(path, "no description of the samples before them", "a chunk 'fmt '")
    kind, n_channels, rate_hz, _, block, bits = struct.unpack("<HHIIHH", form[:16])
    if kind == _EXTENSIBLE and form[26:40] == _SUBFORMAT_TAIL:
        (kind,) = struct.unpack("<H", form[24:26])
    if (kind, bits) not in _SCALES:
        raise StimulusError(
            "an audio file is written in a way that is not supported",
            where=str(path),
            got=f"format {kind} with {bits} bits",
            expected=_SUPPORTED,
            remedy=_CONVERT,
        )
    if not rate_hz or not n_channels or block != n_channels * bits // 8:
        raise _damaged(
            path,
            f"{rate_hz} Hz, {n_channels} channels, {block} bytes a sample of {bits} bits",
            "a rate and channels above 0, and bytes that fit them",
        )
    if not n_bytes or n_bytes % block:
        raise _damaged(path, f"{n_bytes} bytes of sound", f"one or more samples of {block} bytes")
    return WavFile(path, rate_hz, n_channels, n_bytes // block, (kind, bits), first_byte)


def _find_samples(stream: BinaryIO, path: Path) -> tuple[bytes, int, int]:
    """Return the content of 'fmt ', and first byte and number of bytes of the samples."""
    head = stream.read(12)
    if head[:4] not in (b"RIFF", b"RF64") or head[8:] != b"WAVE":
        raise _damaged(path, f"a file that starts with {head!r}", "b'RIFF....WAVE'")
    form, long_length = b"", None
    while len(header := stream.read(8)) == 8:
        tag, length = struct.unpack("<4sI", header)
        at = stream.tell()
        if tag == b"data":
            if length == _UNKNOWN_LENGTH and long_length is not None:
                length = long_length
            here = os.fstat(stream.fileno()).st_size - at
            if length > here:
                raise _damaged(path, f"{here} of {length} bytes of sound", "all of them")
            return form, at, length
        if tag == b"fmt ":
            form = stream.read(min(length, 40))
        elif tag == b"ds64":
            long_length = int.from_bytes(stream.read(16)[8:], "little")
        stream.seek(at + length + length % 2)
    raise _damaged(path, "no samples", "a chunk 'data'")


def _damaged(path: Path, got: str, expected: str) -> StimulusError:
    return StimulusError(
        "an audio file is damaged, empty or not a WAV file",
        where=str(path),
        got=got,
        expected=expected,
        remedy=_CONVERT,
    )


def _unreadable(path: Path, problem: OSError) -> StimulusError:
    return StimulusError(
        "an audio file cannot be read",
        where=str(path),
        got=f"{type(problem).__name__}: {problem.strerror}",
        expected="a readable WAV file",
        remedy="check that the file is there, and its permissions; or leave the audio out",
    )
