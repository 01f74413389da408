"""Plain text files of numbers between white space."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lpact.datasets._files.strict import ErrorType, is_finite, read_text
from lpact.math.types import FloatArray


def read_numbers(path: Path, error: ErrorType, *, shape: tuple[int, int]) -> FloatArray:
    """Return the numbers of a file, one row per line, which must have this shape."""
    lines = [line.split() for line in read_text(path, error).splitlines() if line.strip()]
    for number, cells in enumerate(lines, start=1):
        if len(cells) != shape[1]:
            raise _wrong(path, number, f"{len(cells)} number(s)", f"{shape[1]} numbers", error)
        for cell in cells:
            if not is_finite(cell):
                raise _wrong(path, number, repr(cell), "a finite number", error)
    if len(lines) != shape[0]:
        raise error(
            "a table of numbers has the wrong length",
            where=str(path),
            got=f"{len(lines)} lines",
            expected=f"{shape[0]} lines",
            remedy="copy or download the file again",
        )
    return np.array(lines, dtype=np.float64)


def _wrong(path: Path, line: int, got: str, expected: str, error: ErrorType) -> Exception:
    return error(
        "a line of a table of numbers is not valid",
        where=f"{path}, line {line}",
        got=got,
        expected=expected,
        remedy="fix the line, or download the file again",
    )
