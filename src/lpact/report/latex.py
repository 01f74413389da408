r"""Text and tables as LaTeX: specials become letters, signs become commands, and nothing else changes.

Letters of other scripts stay as they are; a text that has any needs XeLaTeX or LuaLaTeX.
"""

from __future__ import annotations

import polars as pl

from lpact.tables import Column, Table

SPECIALS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
}
"""What LaTeX would take for a command or for another letter."""

SIGNS = {
    "\u2212": "$-$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
    "√": r"$\surd$",
    "Σ": r"$\Sigma$",
    "ρ": r"$\rho$",
    "²": r"\textsuperscript{2}",
    "³": r"\textsuperscript{3}",
    "…": r"\ldots{}",
}
"""Signs of formulas, which LaTeX does not know as letters."""

IN_CELLS = {"-": "{-}", "[": "{[}", "]": "{]}", "*": "{*}"}
r"""Of a cell alone: two hyphens would become a dash, and ``\\`` would swallow a bracket or star on the next line."""

_CONTROL = {chr(code): " " for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)}
PROSE = SPECIALS | SIGNS | _CONTROL
CELL = PROSE | IN_CELLS

_PROSE_TABLE, _CELL_TABLE = str.maketrans(PROSE), str.maketrans(CELL)

DIGITS = 4
WIDE_TEXT = 32
"""From this many characters on, text is set in a column of fixed width."""


def latex_prose(text: str) -> str:
    """``text`` in a paragraph."""
    return text.translate(_PROSE_TABLE)


def latex_cell(text: str) -> str:
    """``text`` in a cell of a table."""
    return text.translate(_CELL_TABLE)


def latex_table(frame: pl.DataFrame, table: Table) -> str:
    """A table as a ``longtable`` with the rules of ``booktabs``.

    The caption is the table's meaning and name; heads are column names with their units. Numbers have four digits,
    missing is ``--``, truth values are ``yes`` and ``no``, lists are written whole, in brackets.
    """
    places = "".join(_place(frame[column.name], column) for column in table.columns)
    heads = [latex_cell(column.name.replace("_", " ")) for column in table.columns]
    units = [f" ({latex_cell(own.unit)})" if own.unit else "" for own in table.columns]
    top = f"\\toprule\n{' & '.join(map(str.__add__, heads, units))} \\\\\n\\midrule"
    caption = f"{latex_prose(table.meaning.rstrip('.'))} (\\texttt{{{latex_cell(table.name)}}})."
    rows = frame.select(pl.concat_str([_cells(own) for own in table.columns], separator=" & "))
    return "\n".join(
        (
            r"% \usepackage{array,booktabs,longtable}",
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
            *(rf"{row} \\" for row in rows.to_series()),
            *([] if frame.height else [rf"\multicolumn{{{frame.width}}}{{@{{}}l@{{}}}}{{no rows}} \\"]),
            r"\end{longtable}",
            r"\endgroup",
            "",
        )
    )


def _place(cells: pl.Series, column: Column) -> str:
    """How a column is aligned."""
    if column.dtype in ("int", "float"):
        return "r"
    longest = cells.str.len_chars().max() if column.dtype == "str" else 0
    wide = column.dtype.startswith("list") or (longest or 0) >= WIDE_TEXT  # type: ignore[operator]
    return r">{\raggedright\arraybackslash}p{0.25\linewidth}" if wide else "l"


def _cells(column: Column) -> pl.Expr:
    cells, kind = pl.col(column.name), column.dtype
    if kind == "str":
        text = _escaped(cells)
    elif kind == "bool":
        text = pl.when(cells).then(pl.lit("yes")).when(~cells).then(pl.lit("no"))
    elif kind in ("int", "float"):
        number = cells.round_sig_figs(DIGITS) if kind == "float" else cells
        text = number.cast(pl.String).str.replace(r"^-", "$$-$$")
        text = text.str.replace(r"e(-?\d+)$", r"$$\times10^{${1}}$$")
    else:
        inner = pl.element().round_sig_figs(DIGITS) if kind == "list[float]" else pl.element()
        joined = cells.list.eval(inner.cast(pl.String).fill_null("\u2013")).list.join(", ")
        text = pl.concat_str(pl.lit("{[}"), _escaped(joined), pl.lit("{]}"))
    return text.fill_null("--")


def _escaped(text: pl.Expr) -> pl.Expr:
    return text.str.replace_many(list(CELL), list(CELL.values()))
