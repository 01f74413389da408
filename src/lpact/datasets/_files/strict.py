"""Strict readers of TOML, TSV and CSV files: every problem names file, place, found and remedy."""

from __future__ import annotations

import csv
import io
import math
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lpact.errors import InputError, did_you_mean

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
NUMBER_PATTERN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

MISSING = ("", "n/a", "nan", "NaN", "NA")
"""Cells that say that there is no number."""

ErrorType = type[InputError]


def read_text(path: Path, error: ErrorType) -> str:
    """Return the text of a UTF-8 file (a byte-order mark is not part of it); NUL is in no text."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise error(
            "a file cannot be read",
            where=str(path),
            got=f"{type(problem).__name__}: {problem}",
            expected="a readable UTF-8 file",
            remedy="check that the file is there, its permissions and its encoding",
        ) from None
    if "\0" in text:
        raise error(
            "a text file holds a NUL character",
            where=f"{path}, line {text.count(chr(10), 0, text.index(chr(0))) + 1}",
            got=f"{text.count(chr(0))} NUL character(s)",
            expected="UTF-8 text",
            remedy="fix the line; if there are many, the file is torn, or in another encoding such as UTF-16",
        )
    return text


class TomlFile:
    """A flat TOML file whose keys are all known."""

    def __init__(self, path: Path, known: Sequence[str], error: ErrorType) -> None:
        self.path = path
        self.error = error
        try:
            self.values: dict[str, Any] = tomllib.loads(read_text(path, error))
        except (ValueError, RecursionError) as problem:
            raise error(
                "a file is not valid TOML",
                where=str(path),
                got=str(problem),
                expected="TOML 1.0",
                remedy="fix the named line",
            ) from None
        for key in self.values:
            if key not in known:
                raise error(
                    f"unknown key '{key}'",
                    where=f"{path}, key '{key}'",
                    got=key,
                    expected="keys " + ", ".join(known),
                    remedy=did_you_mean(key, known),
                )

    def text(self, key: str) -> str:
        """Return a text that is not empty."""
        value = self._get(key, "a text in quotes")
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(key, "a text in quotes, not empty")
        return value

    def name(self, key: str) -> str:
        """Return a name that can stand in tables and file names."""
        value = self.text(key)
        if not NAME_PATTERN.fullmatch(value):
            raise self._wrong(key, "letters, digits, '.', '_' and '-'; at most 80")
        return value

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self._get(key, "true or false")
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def number(self, key: str) -> float:
        """Return a finite number."""
        value = self._get(key, "a finite number")
        if not _is_number(value):
            raise self._wrong(key, "a finite number")
        return float(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        """Return a list of finite numbers."""
        value = self._get(key, "a list of finite numbers")
        if not isinstance(value, list) or not all(_is_number(item) for item in value):
            raise self._wrong(key, "a list of finite numbers")
        return tuple(float(item) for item in value)

    def _get(self, key: str, expected: str) -> Any:
        if key not in self.values:
            raise self.error(
                f"the key '{key}' is missing",
                where=f"{self.path}, key '{key}'",
                got="keys " + (", ".join(self.values) or "none"),
                expected=f"{key} = {expected}",
                remedy="add the key",
            )
        return self.values[key]

    def _wrong(self, key: str, expected: str) -> InputError:
        return self.error(
            f"the value of '{key}' is not valid",
            where=f"{self.path}, key '{key}'",
            got=repr(self.values[key]),
            expected=expected,
            remedy="fix the value",
        )


def is_finite(cell: str) -> bool:
    """Whether a cell is a number that is finite: ``1e999`` is written like one, and is not."""
    return NUMBER_PATTERN.fullmatch(cell) is not None and math.isfinite(float(cell))


def _is_number(value: object) -> bool:
    try:
        real = isinstance(value, int | float) and not isinstance(value, bool)
        return real and math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:
        return False


class TsvFile:
    """A table of tab-separated cells under a header line; cells are not quoted."""

    def __init__(self, path: Path, error: ErrorType) -> None:
        self.path = path
        self.error = error
        rows = self._split(read_text(path, error))
        self.columns = rows[0]
        for column in self.columns:
            if not column.strip() or self.columns.count(column) > 1:
                raise error(
                    "a column name is empty or used twice",
                    where=f"{path}, line 1",
                    got=f"columns {self.columns}",
                    expected="a header line with a distinct name for every column",
                    remedy="fix the header",
                )
        for row, cells in enumerate(rows[1:]):
            if len(cells) != len(self.columns):
                raise error(
                    "a line does not have one cell per column",
                    where=f"{path}, line {self.line(row)}",
                    got=f"{len(cells)} cell(s)",
                    expected=f"{len(self.columns)} cells, separated by {self.separator}",
                    remedy=self._another_separator() or "fix the line; there are no empty lines",
                )
        self._rows = rows[1:]
        self.n_rows = len(self._rows)

    separator = "tabs"
    first_line = 2
    """Line of the first row of cells."""

    def _split(self, text: str) -> list[list[str]]:
        """Return the cells of every line, the header's first."""
        lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
        return [line.split("\t") for line in lines]

    def require(self, columns: Sequence[str]) -> None:
        """Raise unless every one of ``columns`` is there."""
        for column in columns:
            if column not in self.columns:
                raise self.error(
                    f"the column '{column}' is missing",
                    where=f"{self.path}, line 1, column '{column}'",
                    got="columns " + ", ".join(self.columns),
                    expected="columns " + ", ".join(columns),
                    remedy=self._another_separator()
                    or f"add the column; in this file, {did_you_mean(column, self.columns)}",
                )

    def _another_separator(self) -> str:
        """What to do where all cells of the header seem to be one, or nothing."""
        for name, separator in (("semicolons", ";"), ("commas", ","), ("tabs", "\t")):
            if len(self.columns) == 1 and separator in self.columns[0] and name != self.separator:
                return (
                    f"write it with {self.separator} between cells: it seems to have {name}; "
                    "numbers have a decimal point"
                )
        return ""

    def text(self, column: str) -> list[str]:
        """Return a column of texts that are not empty."""
        cells = self._cells(column)
        for row, cell in enumerate(cells):
            if not cell:
                raise self._wrong(column, row, "a text")
        return cells

    def integers(self, column: str) -> list[int]:
        """Return a column of whole numbers."""
        cells = self._cells(column)
        for row, cell in enumerate(cells):
            if not _INTEGER.fullmatch(cell):
                raise self._wrong(column, row, "a whole number of at most 18 digits")
        return [int(cell) for cell in cells]

    def numbers(self, column: str) -> list[float]:
        """Return a column of finite numbers."""
        cells = self._cells(column)
        for row, cell in enumerate(cells):
            if not is_finite(cell):
                raise self._wrong(column, row, "a finite number")
        return [float(cell) for cell in cells]

    def numbers_or_nan(self, column: str, missing: Sequence[str] = MISSING) -> list[float]:
        """Return a column of finite numbers, with NaN for cells that say that there is none."""
        cells = self._cells(column)
        for row, cell in enumerate(cells):
            if cell not in missing and not is_finite(cell):
                raise self._wrong(column, row, f"a finite number, or one of {list(missing)}")
        return [math.nan if cell in missing else float(cell) for cell in cells]

    def cells(self, column: str) -> list[str]:
        """Return a column as it is written."""
        return self._cells(column)

    def line(self, row: int) -> int:
        """Line of the file in which a row stands; rows are counted from 0."""
        return row + self.first_line

    def wrong(self, column: str, row: int, expected: str) -> InputError:
        """Return the error of a cell that is not as expected; rows are counted from 0."""
        return self._wrong(column, row, expected)

    def values(self, column: str) -> list[int] | list[float] | list[str]:
        """Return whole numbers, numbers, or texts where no cell is a number; never a mixture."""
        cells = self._cells(column)
        if all(_INTEGER.fullmatch(cell) for cell in cells):
            return self.integers(column)
        if any(NUMBER_PATTERN.fullmatch(cell) for cell in cells):
            return self.numbers(column)
        return self.text(column)

    def _cells(self, column: str) -> list[str]:
        index = self.columns.index(column)
        return [cells[index] for cells in self._rows]

    def _wrong(self, column: str, row: int, expected: str) -> InputError:
        return self.error(
            f"a cell of column '{column}' is not valid",
            where=f"{self.path}, line {self.line(row)}, column '{column}'",
            got=repr(self._cells(column)[row]),
            expected=expected,
            remedy="fix the cell",
        )


class CsvFile(TsvFile):
    """A table of cells between commas (or another delimiter), quoted where they must be.

    ``header`` names the columns of a file that has no header line. A first column without a name is an index, and is
    called ``index``, or ``row`` where another column has that name.
    """

    separator = "commas"

    def __init__(
        self,
        path: Path,
        error: ErrorType,
        *,
        delimiter: str = ",",
        header: Sequence[str] | None = None,
    ) -> None:
        self._delimiter = delimiter
        self._header = header
        if delimiter == "\t":
            self.separator = "tabs"
        if header is not None:
            self.first_line = 1
        super().__init__(path, error)

    def _split(self, text: str) -> list[list[str]]:
        lines = io.StringIO(text, newline="")
        if self._delimiter == "\t":
            reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        else:
            reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        rows: list[list[str]] = []
        self._lines: list[int] = []
        line = 1
        try:
            for cells in reader:
                if cells:
                    rows.append(cells)
                    self._lines.append(line)
                line = reader.line_num + 1
        except csv.Error as problem:
            raise self.error(
                "a row of a table cannot be taken apart",
                where=f"{self.path}, lines {line} to {reader.line_num}",
                got=str(problem),
                expected=f"cells between {self.separator}, and every quote closed",
                remedy=f"fix the quotes, in line {line} first: a quote within a cell is written twice",
            ) from None
        if self._header is not None:
            return [list(self._header), *rows]
        self._lines = self._lines[1:]
        if not rows:
            return [[""]]
        if not rows[0][0].strip():
            rows[0][0] = "row" if "index" in rows[0] else "index"
        return rows

    def line(self, row: int) -> int:
        """Line of the file in which a row begins; cells may hold line breaks, and empty lines do not count."""
        return self._lines[row]
