"""Headers of EDF and BDF files: units as they are written, and whether the records follow one another without gaps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpact.errors import RecordingError
from lpact.math.types import FloatArray

ENDINGS = (".edf", ".bdf")
_FIXED_BYTES = 256
_BEFORE_DIMENSIONS = 16 + 80
_BEFORE_COUNTS = _BEFORE_DIMENSIONS + 8 + 4 * 8 + 80
_TIMES = ("EDF Annotations", "BDF Annotations")
_ONSET = re.compile(rb"([+-][0-9]+(?:\.[0-9]*)?)(?:\x15[0-9.]*)?\x14")
_CLOCK_TOLERANCE = 1e-6


@dataclass(frozen=True)
class EdfHeader:
    """What is read of a header. ``dimensions`` are those of the channels that hold values, in order.

    ``times_at`` and ``n_times_bytes`` say where in a record its first list of annotations is, which begins with the
    record's onset; ``n_times_bytes`` is 0 where the file has none.
    """

    discontinuous: bool
    dimensions: tuple[str, ...]
    n_header_bytes: int
    n_records: int
    record_s: float
    n_record_bytes: int
    fastest_hz: float
    times_at: int
    n_times_bytes: int


def read_edf_header(path: Path) -> EdfHeader:
    """Read the header of an EDF or BDF file."""
    try:
        with path.open("rb") as stream:
            fixed = stream.read(_FIXED_BYTES)
            n_channels = int(fixed[252:256])
            block = stream.read(_FIXED_BYTES * n_channels)
        return _header(
            fixed, block, n_channels, path.stat().st_size, bdf=path.suffix.lower() == ".bdf"
        )
    except (OSError, ValueError, OverflowError, ZeroDivisionError) as problem:
        raise _torn(path, f"{type(problem).__name__}: {problem}", "a complete header") from None


def _header(
    fixed: bytes, block: bytes, n_channels: int, n_file_bytes: int, *, bdf: bool
) -> EdfHeader:
    def column(start: int, width: int) -> list[bytes]:
        first = start * n_channels
        return [block[first + i * width : first + (i + 1) * width] for i in range(n_channels)]

    labels = [cell.decode("latin-1").strip() for cell in column(0, 16)]
    dimensions = [_text(cell) for cell in column(_BEFORE_DIMENSIONS, 8)]
    n_samples = [int(cell) for cell in column(_BEFORE_COUNTS, 8)]
    n_bytes = [count * (3 if bdf else 2) for count in n_samples]
    holds_times = [label in _TIMES for label in labels]
    first = holds_times.index(True) if any(holds_times) else 0
    record_s, n_header_bytes = float(fixed[244:252]), int(fixed[184:192])
    values = [
        count for count, times in zip(n_samples, holds_times, strict=True) if not times
    ] or n_samples
    return EdfHeader(
        discontinuous=fixed[192:197].decode("latin-1").upper() in ("EDF+D", "BDF+D"),
        dimensions=tuple(d for d, times in zip(dimensions, holds_times, strict=True) if not times),
        n_header_bytes=n_header_bytes,
        n_records=(n_file_bytes - n_header_bytes) // sum(n_bytes),
        record_s=record_s,
        n_record_bytes=sum(n_bytes),
        fastest_hz=max(values) / record_s if record_s else 1.0,
        times_at=sum(n_bytes[:first]),
        n_times_bytes=n_bytes[first] if any(holds_times) else 0,
    )


def _text(cell: bytes) -> str:
    try:
        return cell.decode("utf-8").strip(" \0")
    except UnicodeDecodeError:
        return cell.decode("latin-1").strip(" \0")


def check_continuous(path: Path) -> None:
    """Raise `RecordingError` if a file that calls itself discontinuous has a gap between its records.

    MNE gives the records one after another, so that every sample after a gap would be too early by its length. A file
    of that kind without gaps is as good as any.
    """
    header = read_edf_header(path)
    if not header.discontinuous or header.n_records < 1:
        return
    onset_s = _record_onsets(path, header)
    expected_s = header.record_s * np.arange(onset_s.size)
    apart_s = onset_s - onset_s[0] - expected_s
    beyond = np.abs(apart_s) > 1.0 / header.fastest_hz + _CLOCK_TOLERANCE * expected_s
    if not beyond.any():
        return
    first = int(np.flatnonzero(beyond)[0])
    n_gaps = int((np.abs(np.diff(apart_s)) > 1.0 / header.fastest_hz).sum())
    raise RecordingError(
        "a recording has gaps: its samples do not follow one another",
        where=f"{path}, record {first + 1} of {onset_s.size}",
        got=f"EDF+D with {n_gaps} gap(s); this record begins {apart_s[first]:+g} s from where the one before it ends, "
        f"{expected_s[first]:g} s into the samples",
        expected="records without gaps (EDF+C), so that a time is a sample",
        remedy="cut the file at its gaps into one recording each, with events of its own, or fill the gaps and mark "
        "them with events whose name begins with BAD",
    )


def _record_onsets(path: Path, header: EdfHeader) -> FloatArray:
    """Return the onset of each record, [n_records], in seconds."""
    onsets = []
    with path.open("rb") as stream:
        for record in range(header.n_records):
            stream.seek(header.n_header_bytes + record * header.n_record_bytes + header.times_at)
            cell = stream.read(header.n_times_bytes)
            match = _ONSET.match(cell)
            if match is None:
                where = f"record {record + 1}: {cell[:24]!r}"
                raise _torn(path, where, "the record's onset at the start of its annotations")
            onsets.append(float(match[1]))
    return np.array(onsets, dtype=np.float64)


def _torn(path: Path, got: str, expected: str) -> RecordingError:
    return RecordingError(
        "the header or the record times of a recording cannot be read",
        where=str(path),
        got=got,
        expected=expected,
        remedy="copy or download the file again, and compare its checksum",
    )
