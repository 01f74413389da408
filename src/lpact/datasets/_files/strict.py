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
import polars as pl
from pydantic import BaseModel, Field

from lpact.errors import ConfigError, InputError, RecordingError, did_you_mean
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


def damaged(path: Path, problem: object, error: ErrorType = RecordingError, expected: str = "") -> InputError:
    """Return the error of a file that cannot be opened or read to its end; short memory is raised as it is."""
    if isinstance(problem, MemoryError):
        raise problem
    kind = f"{type(problem).__name__}: " if isinstance(problem, Exception) else ""
    size = f"{path.stat().st_size} bytes; " if path.is_file() else ""
    return error(
        "a file cannot be read; it may be truncated",
        where=str(path),
        got=f"{size}{kind}{' '.join(str(problem).split())[:300]}",
        expected=expected or "a complete file of the kind that its name says",
        remedy="copy or download the file again, and compare its checksum",
    )


def invalid(
    where: Path | str,
    got: str,
    expected: str,
    error: ErrorType = RecordingError,
    remedy: str = "fix the file, or download it again",
) -> InputError:
    """Return the error of a file whose content is not as expected."""
    return error("a file is not as expected", where=str(where), got=got[:300], expected=expected, remedy=remedy)


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
        where = str(path) if wrong is None else f"{path}, line {wrong[0]}"
        found = f"{len(lines)} lines" if wrong is None else " ".join(wrong[1])
        raise invalid(where, found, f"{shape[0]} lines of {shape[1]} finite numbers", error)
    return np.array(lines, dtype=np.float64)


class TextTable:
    """A table of cells below a header line, between commas in a file ``.csv`` and else between tabs.

    Cells between commas may be quoted, those between tabs are not. ``header`` names the columns of a file without a
    header line. A first column without a name is an index, and is called ``index``, or ``row`` if another column has
    that name. Empty lines are skipped.
    """

    def __init__(self, path: Path, error: ErrorType, *, header: Sequence[str] | None = None) -> None:
        self.path = path
        self.error = error
        self._separator = "commas" if path.suffix.lower() == ".csv" else "tabs"
        rows, self._lines = self._split(read_text(path, error))
        if header is None:
            self._lines = self._lines[1:]
            header, *rows = rows or [[""]]
            if not header[0].strip() and len(header) > 1:
                header[0] = "row" if "index" in header else "index"
        self.columns, self._rows = list(header), rows
        self.n_rows = len(rows)
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
                    expected=f"{len(self.columns)} cells, separated by {self._separator}",
                    remedy=self._another_separator() or "fix or remove the line",
                )

    def _split(self, text: str) -> tuple[list[list[str]], list[int]]:
        """Return the cells of every line that is not empty, and where it begins: cells may contain line breaks."""
        tabs = self._separator == "tabs"
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter="\t" if tabs else ",",
            quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL,
            strict=not tabs,
        )
        rows, lines, line = [], [], 1
        try:
            for cells in reader:
                if cells:
                    rows.append(cells)
                    lines.append(line)
                line = reader.line_num + 1
        except csv.Error as problem:
            raise self.error(
                "the quotes of a table do not match",
                where=f"{self.path}, lines {line} to {reader.line_num}",
                got=str(problem),
                expected=f"cells separated by {self._separator}, with every quote closed",
                remedy=f"fix the quotes, in line {line} first; write a quote in a cell twice",
            ) from None
        return rows, lines

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

    def require_rows(self, n_rows: int, noun: str, remedy: str) -> None:
        """Raise unless the table has one row per ``noun``."""
        if self.n_rows != n_rows:
            raise self.error(
                f"a table does not have one row per {noun}",
                where=str(self.path),
                got=f"{self.n_rows} rows",
                expected=f"{n_rows} rows",
                remedy=remedy,
            )

    def _another_separator(self) -> str:
        """A remedy if the whole header is one cell."""
        for name, separator in (("semicolons", ";"), ("commas", ","), ("tabs", "\t")):
            if len(self.columns) == 1 and separator in self.columns[0] and name != self._separator:
                return f"separate cells by {self._separator}, not by {name}; use decimal points"
        return ""

    def cells(self, column: str) -> list[str]:
        """Return a column as it is written."""
        index = self.columns.index(column)
        return [cells[index] for cells in self._rows]

    def _checked(self, column: str, valid: Callable[[str], Any], expected: str, convert: Callable[[str], T]) -> list[T]:
        cells = self.cells(column)
        for row, cell in enumerate(cells):
            if not valid(cell):
                raise self.wrong(column, row, expected)
        return [convert(cell) for cell in cells]

    def text(self, column: str) -> list[str]:
        """Return a column of texts that are not empty."""
        return self._checked(column, bool, "a text", str)

    def unique(self, column: str) -> list[str]:
        """Return a column of distinct texts that are not empty."""
        first: dict[str, int] = {}
        for row, cell in enumerate(self.text(column)):
            if first.setdefault(cell, row) != row:
                raise self.wrong(column, row, f"every {column} once")
        return list(first)

    def integers(self, column: str) -> list[int]:
        """Return a column of whole numbers."""
        expected = "a whole number of at most 18 digits"
        return self._checked(column, _INTEGER.fullmatch, expected, int)

    def numbers(self, column: str) -> list[float]:
        """Return a column of finite numbers."""
        return self._checked(column, is_finite, "a finite number", float)

    def numbers_or_nan(self, column: str) -> list[float]:
        """Return a column of finite numbers, with NaN for missing ones."""
        return self._checked(
            column,
            lambda cell: cell in MISSING or is_finite(cell),
            f"a finite number, or one of {list(MISSING)}",
            lambda cell: math.nan if cell in MISSING else float(cell),
        )

    def line(self, row: int) -> int:
        """Line where a row begins; rows count from 0, lines from 1."""
        return self._lines[row]

    def wrong(self, column: str, row: int, expected: str) -> InputError:
        """Return the error of a cell that is not as expected."""
        return self.error(
            f"a cell of column '{column}' is not valid",
            where=f"{self.path}, line {self.line(row)}, column '{column}'",
            got=repr(self.cells(column)[row]),
            expected=expected,
            remedy="fix the cell",
        )


def typed_column(cells: Sequence[str]) -> pl.Series:
    """Return numbers if every cell is a finite number or missing (null), otherwise texts."""
    known = [cell for cell in cells if cell not in MISSING]
    if not known or not all(is_finite(cell) for cell in known):
        return pl.Series([cell or None for cell in cells], dtype=pl.String)
    whole = all(map(_INTEGER.fullmatch, known))
    number: Any = int if whole else float
    values = [None if cell in MISSING else number(cell) for cell in cells]
    return pl.Series(values, dtype=pl.Int64 if whole else pl.Float64)
