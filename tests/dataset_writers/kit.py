"""Writer of minimal KIT recordings (``.con``) and marker files (``.mrk``), as MNE reads them.

A file begins with a directory of 30 entries (offset, size of an item, most items, items), all little-endian. The
entries that a reader needs: 1 system, 4 channels, 5 sensitivity, 7 amplifier, 8 acquisition, 9 raw data (sample by
sample, one whole number per channel), 12 coregistration (markers). Others are empty.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lpact.math.types import FloatArray

N_ENTRIES = 30
NYU_ABU_DHABI = 442
TESLA_PER_CODE = 1e-15
"""Scale of the written numbers: one step is one femtotesla."""

_SYSTEM, _CHANNELS, _SENSITIVITY, _AMPLIFIER, _ACQUISITION, _RAW, _COREGISTRATION = (
    1,
    4,
    5,
    7,
    8,
    9,
    12,
)
_AXIAL_GRADIOMETER, _REFERENCE_MAGNETOMETER, _TRIGGER, _OTHER = 2, 0x101, -1, -4
_CHANNEL_BYTES = 80
_ADC_RANGE_V = 10.0
_ADC_BITS = 16
_FLL_KAPPER = 100
_LOWPASS_200_HZ = 4 << 16
_CONTINUOUS = 1
_MADE_AT = 1_500_000_000


def sensor_places(n_sensors: int) -> FloatArray:
    """Return places on a helmet, [n_sensors, 5]: x, y, z in metres, then two angles of the axis in degrees."""
    index = np.arange(n_sensors)
    height = 1.0 - (index + 0.5) / max(1, n_sensors)
    phi = (index * 137.50776405) % 360.0
    theta = np.degrees(np.arccos(height))
    across = np.sin(np.radians(theta))
    radius_m = 0.12
    return np.stack(
        [
            radius_m * across * np.cos(np.radians(phi)),
            radius_m * across * np.sin(np.radians(phi)),
            radius_m * height,
            theta,
            phi,
        ],
        axis=1,
    )


def write_con(
    path: Path,
    codes: npt.NDArray[np.int16],
    *,
    sampling_rate_hz: float = 1000.0,
    n_reference: int = 1,
    n_trigger: int = 1,
    n_other: int = 1,
) -> FloatArray:
    """Write a continuous recording; sensors are axial gradiometers.

    Parameters
    ----------
    path
        The file to write.
    codes
        [n_samples, n_sensors], the stored whole numbers; a sensor's value is ``codes * TESLA_PER_CODE``.
    sampling_rate_hz
        As the header says.
    n_reference, n_trigger, n_other
        Channels behind the sensors that are not neural; they hold zeros.

    Returns
    -------
    [n_sensors, 5], the sensors' places as the file has them.
    """
    n_samples, n_sensors = codes.shape
    n_channels = n_sensors + n_reference + n_trigger + n_other
    places = sensor_places(n_sensors)
    channels = b"".join(
        [_meg_channel(_AXIAL_GRADIOMETER, place) for place in places]
        + [_meg_channel(_REFERENCE_MAGNETOMETER, np.zeros(5))] * n_reference
        + [_other_channel(_TRIGGER, number) for number in range(n_trigger)]
        + [_other_channel(_OTHER, number) for number in range(n_other)]
    )
    step_v = _ADC_RANGE_V / 2**_ADC_BITS
    sensitivity = np.zeros((n_channels, 2))
    sensitivity[:, 1] = TESLA_PER_CODE / step_v
    raw = np.zeros((n_samples, n_channels), dtype="<i2")
    raw[:, :n_sensors] = codes
    _write(
        path,
        {
            _SYSTEM: (_system(n_channels), 1),
            _CHANNELS: (channels, n_channels),
            _SENSITIVITY: (sensitivity.astype("<f8").tobytes(), n_channels),
            _AMPLIFIER: (struct.pack("<i", _LOWPASS_200_HZ), 1),
            _ACQUISITION: (
                struct.pack("<idii", _CONTINUOUS, sampling_rate_hz, n_samples, n_samples),
                1,
            ),
            _RAW: (raw.tobytes(), n_samples),
        },
    )
    return places


def write_mrk(path: Path, markers_m: FloatArray) -> None:
    """Write a marker file: the places of the coils in the helmet's frame, [5, 3] in metres."""
    body = struct.pack("<i", 1) + bytes(2 * 16 * 8) + struct.pack("<i", len(markers_m))
    for marker in markers_m:
        body += struct.pack("<iiii", 0, 0, 0, 1) + struct.pack("<6d", 0.0, 0.0, 0.0, *marker)
    _write(path, {_COREGISTRATION: (body, 1)})


def _write(path: Path, parts: Mapping[int, tuple[bytes, int]]) -> None:
    offset = 16 * N_ENTRIES
    entries = [struct.pack("<Iiii", 0, 16, N_ENTRIES, N_ENTRIES)]
    bodies = []
    for index in range(1, N_ENTRIES):
        body, count = parts.get(index, (b"", 0))
        size = len(body) // count if count else 0
        entries.append(struct.pack("<Iiii", offset if count else 0, size, count, count))
        bodies.append(body)
        offset += len(body)
    path.write_bytes(b"".join(entries + bodies))


def _system(n_channels: int) -> bytes:
    version, revision = 2, 4
    return b"".join(
        [
            struct.pack("<iii", version, revision, NYU_ABU_DHABI),
            b"New York University Abu Dhabi".ljust(128, b"\x00"),
            b"synthetic".ljust(128, b"\x00"),
            struct.pack("<i", n_channels),
            bytes(256),
            struct.pack("<ii", _MADE_AT, _MADE_AT),
            bytes(12),
            struct.pack("<i", 0) + bytes(12),
            struct.pack("<i", _FLL_KAPPER) + bytes(12),
            struct.pack("<i", 0) + bytes(12),
            struct.pack("<i", 0) + bytes(29 * 4),
            struct.pack("<d", _ADC_RANGE_V),
            struct.pack("<iii", 0, 16, _ADC_BITS),
        ]
    )


def _meg_channel(kind: int, place: FloatArray) -> bytes:
    return (struct.pack("<i5d", kind, *place)).ljust(_CHANNEL_BYTES, b"\x00")


def _other_channel(kind: int, number: int) -> bytes:
    return struct.pack("<iii", kind, number, 0).ljust(_CHANNEL_BYTES, b"\x00")
