"""Text as LaTeX: specials become letters, signs become commands, and nothing else changes.

Letters of other scripts stay as they are; a text that has any needs XeLaTeX or LuaLaTeX.
"""

from __future__ import annotations

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


def latex_prose(text: str) -> str:
    """``text`` in a paragraph."""
    return text.translate(_PROSE_TABLE)


def latex_cell(text: str) -> str:
    """``text`` in a cell of a table."""
    return text.translate(_CELL_TABLE)
