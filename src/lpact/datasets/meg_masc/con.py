"""Header of a KIT recording (``.con``): what must be known of it before its data are read."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lpact.errors import RecordingError

_SYSTEM, _ACQUISITION, _RAW = 1, 8, 9
_N_CHANNELS_AT = 12 + 2 * 128
_ADC_AT = _N_CHANNELS_AT + 4 + 256 + 8 + 12 + 4 * 16 + 26 * 4
_CONTINUOUS = 1


@dataclass(frozen=True)
class ConHeader:
    """Sampling rate, channels and samples that the header promises, and the bytes of the file that they need."""

    sampling_rate_hz: float
    n_channels: int
    n_samples: int
    n_bytes: int


def read_con_header(path: Path) -> ConHeader:
    """Read a header; a file that is shorter than it says is a `RecordingError`."""
    try:
        with path.open("rb") as stream:
            header = _read(stream)
    except (OSError, struct.error, ValueError) as problem:
        raise _torn(path, f"{type(problem).__name__}: {problem}", "a complete header") from None
    here = path.stat().st_size
    if here < header.n_bytes:
        raise _torn(
            path,
            f"{here} bytes",
            f"at least {header.n_bytes} bytes: {header.n_samples} samples of {header.n_channels} channels",
        )
    return header


def _read(stream: BinaryIO) -> ConHeader:
    system_at = _offset(stream, _SYSTEM)
    version, revision = _unpack(stream, system_at, "<ii")
    (n_channels,) = _unpack(stream, system_at + _N_CHANNELS_AT, "<i")
    range_bytes = 4 if (version, revision) <= (2, 3) else 8
    _, bits, _ = _unpack(stream, system_at + _ADC_AT + range_bytes, "<iii")
    kind, rate_hz, _, n_samples = _unpack(stream, _offset(stream, _ACQUISITION), "<idii")
    if kind != _CONTINUOUS or not rate_hz > 0 or n_channels < 1 or n_samples < 0 or bits % 8:
        raise ValueError(
            f"acquisition {kind} (continuous is {_CONTINUOUS}) at {rate_hz} Hz, {n_channels} channels, "
            f"{n_samples} samples of {bits} bits"
        )
    n_values = int(n_samples) * int(n_channels)
    n_bytes = _offset(stream, _RAW) + n_values * (int(bits) // 8)
    return ConHeader(float(rate_hz), int(n_channels), int(n_samples), n_bytes)


def _offset(stream: BinaryIO, entry: int) -> int:
    (offset,) = _unpack(stream, 16 * entry, "<I")
    return int(offset)


def _unpack(stream: BinaryIO, at: int, form: str) -> tuple[float, ...]:
    stream.seek(at)
    return struct.unpack(form, stream.read(struct.calcsize(form)))


def _torn(path: Path, got: str, expected: str) -> RecordingError:
    return RecordingError(
        "a KIT recording is truncated or damaged",
        where=str(path),
        got=got,
        expected=expected,
        remedy="copy or download the file again, and compare its checksum",
    )
