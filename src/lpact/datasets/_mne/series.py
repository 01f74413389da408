"""Recordings behind MNE: opened without their data, read a few channels at a time."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpact.datasets._files.source_folder import SourceFolder
from lpact.datasets._mne.edf import ENDINGS, check_continuous
from lpact.datasets._mne.files import recording_files
from lpact.datasets.series import StreamedSeries
from lpact.errors import RecordingError
from lpact.extras import require
from lpact.math.types import FloatArray

EXTRA = "meeg"
_DAMAGED = re.compile("corrupt|truncated|invalid tag|does not match the file size", re.IGNORECASE)


class OpenedRaw(NamedTuple):
    """A recording as MNE opened it, and all files that are read for it."""

    raw: Any
    files: tuple[Path, ...]


def open_raw(
    folder: SourceFolder, path: Path, options: Mapping[str, Any] | None = None
) -> OpenedRaw:
    """Open a recording with MNE, by its extension, without reading its data.

    ``options`` go to MNE's reader of the format. A file that lies outside ``folder`` is an error, and so are gaps
    between the records of an EDF or BDF file. A warning of MNE that the file is damaged is an error; its others concern
    things that are checked here (times, channels, positions) or that do not matter (dates, file names), and are not
    repeated.
    """
    raw = _opened(path, options or {})
    files = recording_files(folder, path, raw)
    if path.suffix.lower() in ENDINGS:
        check_continuous(path)
    return OpenedRaw(raw, files)


def _opened(path: Path, options: Mapping[str, Any]) -> Any:
    mne = require("mne", extra=EXTRA)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            raw = mne.io.read_raw(path, preload=False, verbose="warning", **options)
    except Exception as problem:
        raise _torn(path, problem, "opened") from None
    for warning in heard:
        if _DAMAGED.search(str(warning.message).replace(str(path), path.suffix)):
            raise _torn(path, warning.message, "opened")
    return raw


class RawSeries(StreamedSeries):
    """Channels of a recording as [n_samples, n_units], time-major in the file.

    Nothing but the path is kept: every `read` opens the file anew, so that a series can be sent to other processes
    and read in several threads.

    Parameters
    ----------
    path
        The file (or folder) that MNE opens.
    picks
        Index of each unit's channel in the file.
    scale
        One factor, or one per unit, from MNE's SI units to the physical unit: 1e6 for V to µV.
    options
        Options of MNE's reader of the format.
    raw
        The recording as `open_raw` gave it, which has checked its files: its length is taken from there.
    """

    def __init__(
        self,
        path: Path,
        picks: Sequence[int],
        *,
        scale: float | Sequence[float] = 1.0,
        options: Mapping[str, Any] | None = None,
        raw: Any,
    ) -> None:
        self.path = path
        self._picks = tuple(int(pick) for pick in picks)
        self._scale: FloatArray = np.broadcast_to(
            np.asarray(scale, dtype=np.float64), (len(self._picks),)
        ).copy()
        self._options = dict(options or {})
        self.shape = (int(raw.n_times), len(self._picks))
        self.dtype = np.dtype(np.float64)

    def read(self, units: Sequence[int]) -> FloatArray:
        """Return the units at these indices in this order, [n_samples, len(units)]."""
        raw = _opened(self.path, self._options)
        wanted = [self._picks[unit] for unit in units]
        rising = sorted(set(wanted))
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", category=RuntimeWarning)
                values: npt.NDArray[Any] = raw.get_data(picks=rising, verbose="error")
        except Exception as problem:
            raise _torn(self.path, problem, "read to the end") from None
        if values.shape[1] != self.shape[0]:
            raise _torn(self.path, f"{values.shape[1]} samples", "read to the end", self.shape[0])
        if wanted != rising:
            values = values[[rising.index(pick) for pick in wanted]]
        scaled: FloatArray = values.T.astype(np.float64, copy=False)
        factor = self._scale[list(units)]
        return scaled if (factor == 1.0).all() else scaled * factor


def _torn(path: Path, problem: object, what: str, n_expected: int | None = None) -> RecordingError:
    size = f"{os.stat(path).st_size} bytes; " if path.is_file() else ""
    kind = f"{type(problem).__name__}: " if isinstance(problem, Exception) else ""
    text = " ".join(str(problem).split())
    return RecordingError(
        f"a recording cannot be {what}; its file may be truncated",
        where=str(path),
        got=f"{size}{kind}{text[:300]}",
        expected="a complete file that MNE can read"
        if n_expected is None
        else f"{n_expected} samples",
        remedy="copy or download the file again, and compare its checksum",
    )
