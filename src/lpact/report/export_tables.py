r"""Every table of a run as CSV and as LaTeX, for a supplement.

CSV is the run's own copy, byte for byte. LaTeX is a ``longtable`` with the rules of ``booktabs``, one file per table:

- the caption is the table's meaning and name; heads are column names with their units;
- numbers of a column have the same number of decimals and are aligned at their points; what would round to zero, or
  has more than seven digits before the point, is written as a power of ten;
- lists are written whole, in brackets, numbers in them with four digits; CSV has all digits of everything;
- missing is a dash (``--``), which an empty text is not; truth values are ``yes`` and ``no``.

Files are read and written a slice at a time.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lpact.errors import RunError, TableError
from lpact.report.latex import CELL, latex_cell, latex_prose
from lpact.store import polars_schema, read_manifest, sha256_file, storage_errors, table_path
from lpact.tables import Column, Table

SUFFIXES = {"csv": ".csv", "latex": ".tex"}
"""Formats, and how their files end."""

MISSING = "--"
PACKAGES = r"% \usepackage{array,booktabs,longtable}"
ROWS_PER_SLICE = 10_000
DIGITS, MOST_DECIMALS, LARGEST = 4, 6, 1e7
WIDE_TEXT = 32
"""From this many characters on, text is set in a column of fixed width."""

_WIDE = r">{\raggedright\arraybackslash}p{0.25\linewidth}"


@dataclass(frozen=True)
class ColumnLayout:
    """How a column is set: its place in the line, and the decimals of its numbers."""

    column: Column
    place: str
    decimals: int = 0


def export_tables(
    root: Path, tables: Iterable[Table], out: Path, formats: Iterable[str] = tuple(SUFFIXES)
) -> list[Path]:
    """Write ``tables`` of the folder ``root`` into ``out``; return the files, in the order of the tables.

    Where ``root`` has a manifest, files are compared with its checksums first.
    """
    checksums = {}
    if (root / "manifest.json").is_file():
        checksums = {file.path: file.sha256 for file in read_manifest(root).outputs}
    made = []
    for table in tables:
        for name in formats:
            source = table_path(root, table, ".csv" if name == "csv" else ".parquet")
            _check_source(source, table, checksums.get(f"{table.name}{source.suffix}"))
            target = out / f"{table.name}{SUFFIXES[name]}"
            with storage_errors(target, "a table cannot be exported"):
                target.parent.mkdir(parents=True, exist_ok=True)
                if name == "csv":
                    shutil.copyfile(source, target)
                else:
                    _write_latex(source, target, table)
            made.append(target)
    return made


def latex_table(frame: pl.DataFrame, table: Table) -> str:
    """One table as LaTeX; for large ones `export_tables` writes files."""
    _check_columns(frame.schema, table, where=f"table '{table.name}'")
    layout = _layout(frame.lazy(), table)
    return "".join([_head(table, layout), *_rows([frame], layout), _FOOT])


def _check_source(path: Path, table: Table, checksum: str | None) -> None:
    if not path.is_file():
        raise RunError(
            f"the table '{table.name}' is missing",
            where=str(path),
            got="no such file",
            expected="a file that lpact wrote",
            remedy="check that the folder is a run directory, or run the study again",
        )
    if checksum is not None and sha256_file(path) != checksum:
        raise RunError(
            f"the table '{table.name}' has changed since the run was published",
            where=str(path),
            got="another SHA-256 than the manifest lists",
            expected=checksum,
            remedy="restore the file from a copy, or run the study again",
        )


def _write_latex(source: Path, target: Path, table: Table) -> None:
    try:
        stored = pq.ParquetFile(source, page_checksum_verification=True)
        empty = cast(pl.DataFrame, pl.from_arrow(stored.schema_arrow.empty_table()))
        _check_columns(empty.schema, table, where=str(source))
        layout = _layout(pl.scan_parquet(source), table)
        batches = stored.iter_batches(batch_size=ROWS_PER_SLICE)
        frames = (cast(pl.DataFrame, pl.from_arrow(batch)) for batch in batches)
        with target.open("w", encoding="utf-8", newline="\n") as handle:
            handle.write(_head(table, layout))
            handle.writelines(_rows(frames, layout))
            handle.write(_FOOT)
    except (pa.ArrowException, pl.exceptions.ComputeError) as error:
        raise RunError(
            f"the table '{table.name}' is damaged",
            where=str(source),
            got=str(error).splitlines()[0],
            expected="a Parquet file that lpact wrote",
            remedy="restore the file from a copy, or run the study again",
        ) from error


def _check_columns(schema: pl.Schema, table: Table, *, where: str) -> None:
    expected = polars_schema(table)
    differ = [n for n in {**expected, **schema} if schema.get(n) != expected.get(n)]
    if differ:
        name = differ[0]
        raise TableError(
            "the columns are not those of the declared table",
            where=f"{where}, column '{name}'",
            got=str(schema.get(name, "no such column")),
            expected=str(expected.get(name, "no such column")),
            remedy="use the table as lpact wrote it",
        )


def _layout(frame: pl.LazyFrame, table: Table) -> list[ColumnLayout]:
    """Widths and decimals, from one pass over all rows."""
    wanted: list[pl.Expr] = []
    for column in table.columns:
        cells = pl.col(column.name)
        if column.dtype == "float":
            size = cells.abs()
            wanted.append(size.filter(size < LARGEST).max().alias(f"{column.name}:size"))
            wanted.append((cells == cells.floor()).all().alias(f"{column.name}:whole"))
        elif column.dtype == "str":
            wanted.append(cells.str.len_chars().max().alias(f"{column.name}:length"))
    found = frame.select(wanted).collect().row(0, named=True) if wanted else {}
    return [_column_layout(column, found) for column in table.columns]


def _column_layout(column: Column, found: dict[str, Any]) -> ColumnLayout:
    if column.dtype == "int":
        return ColumnLayout(column, "r")
    if column.dtype == "float":
        size = found[f"{column.name}:size"] or 0.0
        if found[f"{column.name}:whole"] or size == 0.0:
            return ColumnLayout(column, "r")
        decimals = min(max(DIGITS - 1 - floor(log10(size)), 0), MOST_DECIMALS)
        return ColumnLayout(column, "r", decimals)
    long = column.dtype.startswith("list") or (
        column.dtype == "str" and (found[f"{column.name}:length"] or 0) >= WIDE_TEXT
    )
    return ColumnLayout(column, _WIDE if long else "l")


def _head(table: Table, layout: list[ColumnLayout]) -> str:
    heads = " & ".join(_heading(part.column) for part in layout)
    caption = f"{latex_prose(table.meaning.rstrip('.'))} (\\texttt{{{latex_cell(table.name)}}})."
    places = "".join(part.place for part in layout)
    top = f"\\toprule\n{heads} \\\\\n\\midrule"
    return "\n".join(
        (
            PACKAGES,
            r"\begingroup",
            r"\scriptsize",
            rf"\begin{{longtable}}{{@{{}}{places}@{{}}}}",
            rf"\caption{{{caption}}}\label{{tab:{table.name}}}\\",
            top,
            r"\endfirsthead",
            top,
            r"\endhead",
            r"\bottomrule",
            r"\endfoot",
            "",
        )
    )


def _heading(column: Column) -> str:
    name = latex_cell(column.name.replace("_", " "))
    return f"{name} ({latex_cell(column.unit)})" if column.unit else name


_FOOT = "\\end{longtable}\n\\endgroup\n"


def _rows(frames: Iterable[pl.DataFrame], layout: list[ColumnLayout]) -> Iterator[str]:
    """Lines of the table's body, a slice at a time."""
    any_row = False
    line = pl.concat_str([_cells(part) for part in layout], separator=" & ")
    for frame in frames:
        for part in frame.iter_slices(ROWS_PER_SLICE):
            if part.height:
                any_row = True
                lines = part.select(_joined(line, r" \\")).to_series()
                yield "\n".join(lines.to_list()) + "\n"
    if not any_row:
        yield rf"\multicolumn{{{len(layout)}}}{{@{{}}l@{{}}}}{{no rows}} \\" + "\n"


def _cells(part: ColumnLayout) -> pl.Expr:
    cells = pl.col(part.column.name)
    match part.column.dtype:
        case "str":
            text = _escaped(cells)
        case "bool":
            text = pl.when(cells).then(pl.lit("yes")).when(~cells).then(pl.lit("no"))
        case "int":
            text = _minus(cells.cast(pl.String))
        case "float":
            text = _numbers(cells, part.decimals)
        case _:
            of_floats = part.column.dtype == "list[float]"
            inner = pl.element().round_sig_figs(DIGITS) if of_floats else pl.element()
            inner = inner.cast(pl.String).fill_null("\u2013")
            joined = cells.list.eval(inner).list.join(", ")
            text = _joined("{[}", _escaped(joined), "{]}")
    return text.fill_null(MISSING)


def _joined(*parts: pl.Expr | str) -> pl.Expr:
    """Parts of a text one after the other; missing where one is."""
    exprs = [pl.lit(part) if isinstance(part, str) else part.cast(pl.String) for part in parts]
    return pl.concat_str(exprs)


def _escaped(text: pl.Expr) -> pl.Expr:
    return text.str.replace_many(list(CELL), list(CELL.values()))


def _minus(text: pl.Expr) -> pl.Expr:
    return text.str.replace(r"^-", "$$-$$")


def _numbers(cells: pl.Expr, decimals: int) -> pl.Expr:
    """Fixed decimals; a power of ten where those would hide the number."""
    size = cells.abs()
    rounded = cells.round(decimals)
    fixed = rounded.cast(pl.Decimal(38, decimals), strict=False).cast(pl.String)
    vanishes = (cells != 0) & (rounded == 0)
    exponent = size.log10().floor().cast(pl.Int64, strict=False)
    leading = (cells / pl.lit(10.0).pow(exponent)).round(2).cast(pl.Decimal(38, 2), strict=False)
    power = _joined(leading, r"$\times10^{", exponent, "}$")
    # The smallest numbers there are have no power of ten of their own: they come as Polars writes them.
    extreme = pl.coalesce(power, cells.cast(pl.String))
    return _minus(pl.when(vanishes | (size >= LARGEST)).then(extreme).otherwise(fixed))
