"""Readers of text, TOML, TSV and CSV files whose errors name file, line, column and fix."""

from __future__ import annotations

import csv
import io
import math
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import BaseModel, Field

from lpact.errors import ConfigError, InputError, did_you_mean
from lpact.math.types import FloatArray
from lpact.validation import Strict, validate_model

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
NUMBER_PATTERN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

MISSING = ("", "n/a", "nan", "NaN", "NA")
"""Cells without a number."""

ErrorType = type[InputError]
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

Name = Annotated[str, Field(pattern=f"^{NAME_PATTERN.pattern}$")]
"""A name for tables and files: letters, digits, ``.``, ``_`` and ``-``."""
Text = Annotated[str, Field(min_length=1)]


class About(Strict):
    """Provenance of a dataset, in its TOML file."""

    source: Text
    version: Text
    licence: Text


def read_text(path: Path, error: ErrorType) -> str:
    """Return the text of a UTF-8 file, without a byte-order mark; NUL characters are an error."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise error(
            "a file cannot be read",
            where=str(path),
            got=f"{type(problem).__name__}: {problem}",
            expected="a readable UTF-8 file",
            remedy="check that the file exists, its permissions and its encoding",
        ) from None
    if "\0" in text:
        raise error(
            "a text file contains a NUL character",
            where=f"{path}, line {text.count(chr(10), 0, text.index(chr(0))) + 1}",
            got=f"{text.count(chr(0))} NUL character(s)",
            expected="UTF-8 text",
            remedy="fix the line; many of them mean a damaged file, or another encoding such as UTF-16",
        )
    return text


def read_toml(path: Path, error: ErrorType) -> dict[str, Any]:
    """Return the content of a TOML file."""
    try:
        return tomllib.loads(read_text(path, error))
    except (ValueError, RecursionError) as problem:
        raise error(
            "a file is not valid TOML",
            where=str(path),
            got=str(problem),
            expected="TOML 1.0",
            remedy="fix the named line",
        ) from None


def validate_toml(model: type[M], values: dict[str, Any], path: Path, error: ErrorType) -> M:
    """Return the content of a TOML file as a record; every key that is not valid is listed."""
    try:
        return validate_model(model, values, where=str(path), what="a TOML file is")
    except ConfigError as problem:
        raise error(
            problem.what.replace(" option", " key"),
            where=str(problem.where).replace("option '", "key '"),
            got=f"keys {', '.join(values) or 'none'}",
            expected=f"keys {', '.join(model.model_fields)}",
            remedy="fix the listed keys",
        ) from None


def is_finite(cell: str) -> bool:
    """Whether a cell is a finite number; ``1e999`` is not."""
    return NUMBER_PATTERN.fullmatch(cell) is not None and math.isfinite(float(cell))


def read_numbers(path: Path, error: ErrorType, *, shape: tuple[int, int]) -> FloatArray:
    """Return a text file of numbers between white space, one row per line, of this shape."""
    lines = [line.split() for line in read_text(path, error).splitlines() if line.strip()]
    wrong = next(
        (
            (number, cells)
            for number, cells in enumerate(lines, start=1)
            if len(cells) != shape[1] or not all(map(is_finite, cells))
        ),
        None,
    )
    if wrong is not None or len(lines) != shape[0]:
        raise error(
            "a table of numbers is not valid",
            where=str(path) if wrong is None else f"{path}, line {wrong[0]}",
            got=f"{len(lines)} lines" if wrong is None else " ".join(wrong[1]),
            expected=f"{shape[0]} lines of {shape[1]} finite numbers",
            remedy="copy or download the file again",
        )
    return np.array(lines, dtype=np.float64)


class TsvFile:
    """A table of tab-separated cells below a header line; cells are not quoted."""

    separator = "tabs"

    def __init__(self, path: Path, error: ErrorType) -> None:
        self.path = path
        self.error = error
        self.columns, *self._rows = self._split(read_text(path, error))
        self.n_rows = len(self._rows)
        if len(set(self.columns)) < len(self.columns) or not all(map(str.strip, self.columns)):
            raise error(
                "a column name is empty or used twice",
                where=f"{path}, line 1",
                got=f"columns {self.columns}",
                expected="a header line with a distinct name for every column",
                remedy="fix the header",
            )
        for row, cells in enumerate(self._rows):
            if len(cells) != len(self.columns):
                raise error(
                    "a line does not have one cell per column",
                    where=f"{path}, line {self.line(row)}",
                    got=f"{len(cells)} cell(s)",
                    expected=f"{len(self.columns)} cells, separated by {self.separator}",
                    remedy=self._another_separator() or "fix or remove the line",
                )

    def _split(self, text: str) -> list[list[str]]:
        """Return the cells of every line, header first."""
        lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
        return [line.split("\t") for line in lines]

    def require(self, columns: Sequence[str]) -> None:
        """Raise unless the table has all of ``columns``."""
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
        """A remedy if the whole header is one cell."""
        for name, separator in (("semicolons", ";"), ("commas", ","), ("tabs", "\t")):
            if len(self.columns) == 1 and separator in self.columns[0] and name != self.separator:
                return f"separate cells by {self.separator}, not by {name}; use decimal points"
        return ""

    def cells(self, column: str) -> list[str]:
        """Return a column as it is written."""
        index = self.columns.index(column)
        return [cells[index] for cells in self._rows]

    def _checked(
        self, column: str, valid: Callable[[str], Any], expected: str, convert: Callable[[str], T]
    ) -> list[T]:
        cells = self.cells(column)
        for row, cell in enumerate(cells):
            if not valid(cell):
                raise self.wrong(column, row, expected)
        return [convert(cell) for cell in cells]

    def text(self, column: str) -> list[str]:
        """Return a column of texts that are not empty."""
        return self._checked(column, bool, "a text", str)

    def integers(self, column: str) -> list[int]:
        """Return a column of whole numbers."""
        expected = "a whole number of at most 18 digits"
        return self._checked(column, _INTEGER.fullmatch, expected, int)

    def numbers(self, column: str) -> list[float]:
        """Return a column of finite numbers."""
        return self._checked(column, is_finite, "a finite number", float)

    def numbers_or_nan(self, column: str, missing: Sequence[str] = MISSING) -> list[float]:
        """Return a column of finite numbers, with NaN for missing ones."""
        return self._checked(
            column,
            lambda cell: cell in missing or is_finite(cell),
            f"a finite number, or one of {list(missing)}",
            lambda cell: math.nan if cell in missing else float(cell),
        )

    def values(self, column: str) -> list[int] | list[float] | list[str]:
        """Return whole numbers, numbers, or texts if no cell is a number; never a mixture."""
        cells = self.cells(column)
        if all(map(_INTEGER.fullmatch, cells)):
            return self.integers(column)
        if any(map(NUMBER_PATTERN.fullmatch, cells)):
            return self.numbers(column)
        return self.text(column)

    def line(self, row: int) -> int:
        """Line of a row in the file; rows count from 0, lines from 1."""
        return row + 2

    def wrong(self, column: str, row: int, expected: str) -> InputError:
        """Return the error of a cell that is not as expected."""
        return self.error(
            f"a cell of column '{column}' is not valid",
            where=f"{self.path}, line {self.line(row)}, column '{column}'",
            got=repr(self.cells(column)[row]),
            expected=expected,
            remedy="fix the cell",
        )


class CsvFile(TsvFile):
    """A table of comma-separated cells (or with another delimiter), quoted where needed.

    ``header`` names the columns of a file without a header line. A first column without a name is an index, and is
    called ``index``, or ``row`` if another column has that name. Empty lines are skipped.
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
        super().__init__(path, error)

    def _split(self, text: str) -> list[list[str]]:
        tabs = self._delimiter == "\t"
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=self._delimiter,
            quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL,
            strict=not tabs,
        )
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
                "the quotes of a table do not match",
                where=f"{self.path}, lines {line} to {reader.line_num}",
                got=str(problem),
                expected=f"cells separated by {self.separator}, with every quote closed",
                remedy=f"fix the quotes, in line {line} first; write a quote in a cell twice",
            ) from None
        if self._header is not None:
            return [list(self._header), *rows]
        self._lines = self._lines[1:]
        if rows and not rows[0][0].strip():
            rows[0][0] = "row" if "index" in rows[0] else "index"
        return rows or [[""]]

    def line(self, row: int) -> int:
        """Line where a row begins; cells may contain line breaks."""
        return self._lines[row]
