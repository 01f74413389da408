"""LaTeX: body, titles, captions, footnotes and items are read; commands, mathematics and listings are not."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise

from lpact.analyses.lpact.claim_audit.blocks import (
    CITATION,
    CITED_AUTHOR,
    JOINER,
    OPAQUE,
    Block,
    BlockKind,
    Canvas,
    paragraphs,
)

SILENT_ENVIRONMENTS = [
    "verbatim",
    "Verbatim",
    "lstlisting",
    "minted",
    "comment",
    "thebibliography",
    "tikzpicture",
    "filecontents",
    "algorithm",
    "algorithmic",
]
"""Environments without prose."""
MATHS_ENVIRONMENTS = [
    "equation",
    "align",
    "gather",
    "multline",
    "eqnarray",
    "displaymath",
    "math",
    "flalign",
    "alignat",
]
QUOTE_ENVIRONMENTS = ["quote", "quotation", "displayquote", "verse"]
"""Environments that quote somebody."""
TABLE_ENVIRONMENTS = ["tabular", "tabularx", "longtable", "tabulary"]
TITLES = [
    "title",
    "subtitle",
    "part",
    "chapter",
    "section",
    "subsection",
    "subsubsection",
    "paragraph",
    "subparagraph",
    "caption",
    "captionof",
    "footnote",
    "footnotetext",
    "thanks",
    "frametitle",
    "subcaption",
    "marginpar",
]
"""Commands whose argument is a block of its own."""
UNREAD = [
    "label",
    "ref",
    "eqref",
    "autoref",
    "cref",
    "Cref",
    "pageref",
    "nameref",
    "includegraphics",
    "bibliography",
    "bibliographystyle",
    "addbibresource",
    "usepackage",
    "documentclass",
    "url",
    "href",
    "input",
    "include",
    "subfile",
    "import",
    "newcommand",
    "renewcommand",
    "providecommand",
    "def",
    "setlength",
    "vspace",
    "hspace",
    "begin",
    "end",
    "bibitem",
    "hypersetup",
    "pagestyle",
    "thispagestyle",
    "author",
    "date",
    "affil",
    "affiliation",
    "email",
    "newtheorem",
    "DeclareMathOperator",
    "graphicspath",
    "setcounter",
    "addtocounter",
    "color",
    "definecolor",
    "cline",
    "cmidrule",
    "multicolumn",
    "orcid",
    "tag",
    "nocite",
    "lstinputlisting",
    "verbatiminput",
    "ac",
    "gls",
    "index",
    "todo",
    "SI",
    "num",
    "qty",
]
"""Commands whose first argument is no prose; of \\href and \\multicolumn a later argument is."""
INCLUDED = ("input", "include", "subfile", "import", "subfileinclude")
"""Commands that bring in other files, which are not followed."""

_ARGUMENT = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_OPTIONS = r"(?:\s*\[[^\[\]]*\])*"
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%.*")
_BODY = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.DOTALL)
_TITLED = re.compile(rf"\\(?:{'|'.join(TITLES)})\*?{_OPTIONS}\s*({_ARGUMENT})", re.DOTALL)
_CITE = re.compile(rf"\\([A-Za-z]*cite[A-Za-z]*)\*?{_OPTIONS}\s*{_ARGUMENT}", re.DOTALL)
_IN_TEXT = ("citet", "textcite", "citeauthor", "citea")
_UNREAD = re.compile(rf"\\(?:{'|'.join(UNREAD)})\*?{_OPTIONS}\s*{_ARGUMENT}{_OPTIONS}", re.DOTALL)
_INCLUDED = re.compile(rf"\\(?:{'|'.join(INCLUDED)})\s*\{{([^{{}}]*)\}}")
# Mathematics ends with its paragraph, as in TeX: an unpaired sign hides no more than that. The spacing after a line
# break, \\\\[2pt], opens none.
_SAME_PARAGRAPH = r"(?:(?!\n[ \t]*\n).)+?"
_MATHS = re.compile(
    rf"(?<!\\)\$\${_SAME_PARAGRAPH}\$\$"
    r"|(?<!\\)\$(?:[^$\\\n]|\\.|\n(?![ \t]*\n))+\$"
    rf"|(?<!\\)(?:\\\\)*\\\({_SAME_PARAGRAPH}\\\)"
    rf"|(?<!\\)(?:\\\\)*\\\[{_SAME_PARAGRAPH}\\\]",
    re.DOTALL,
)
_VERBATIM = re.compile(
    r"\\(?:verb|lstinline)\*?(?:\[[^\]\n]*\])?([^A-Za-z\s*])[^\n]*?\1"
    r"|\\(?:url|nolinkurl|path)\s*\{[^{}\n]*\}"
)
_QUOTED = re.compile(r"\\(?:enquote|textquote|blockquote|blockcquote)\*?\s*(\{)", re.DOTALL)
_COMMAND = re.compile(r"\\(?:[A-Za-z@]+\*?|[^A-Za-z])")


def read_latex(source: str) -> list[Block]:
    """Return the blocks of a LaTeX text."""
    canvas = _without_comments(source)
    _blank_environments(canvas, SILENT_ENVIRONMENTS, "")
    _blank_environments(canvas, MATHS_ENVIRONMENTS, OPAQUE)
    for match in _MATHS.finditer(canvas.text()):
        canvas.blank(*match.span(), leaving=OPAQUE)
    for match in _CITE.finditer(canvas.text()):
        in_text = match[1].lower().startswith(_IN_TEXT)
        canvas.blank(*match.span(), leaving=CITED_AUTHOR if in_text else CITATION)
    _write_quotes(canvas)
    blocks = _titled(canvas)
    body = _BODY.search(canvas.text())
    if body is not None:
        canvas.blank(0, body.start(1))
        canvas.blank(body.end(1), len(source))
    blocks += _quotations(canvas)
    blocks += _body(canvas)
    blocks = [Block(b.kind, b.start, _without_commands(b.text)) for b in blocks]
    return sorted(blocks, key=lambda block: block.start)


def not_followed(source: str) -> list[tuple[int, str]]:
    """Files that a LaTeX text brings in, with their lines: they are not read."""
    canvas = _without_comments(source)
    starts = [0, *(m.end() for m in re.finditer(r"\n", source))]
    return [
        (bisect_right(starts, m.start()), m[1].strip()) for m in _INCLUDED.finditer(canvas.text())
    ]


def _without_comments(source: str) -> Canvas:
    """The text without what is set verbatim, where a percent sign opens no comment, and without comments."""
    canvas = Canvas(source)
    for match in _VERBATIM.finditer(source):
        canvas.blank(*match.span(), leaving=OPAQUE)
    for match in _COMMENT.finditer(canvas.text()):
        canvas.blank(match.end(1), match.end())
    return canvas


def _environments(text: str, names: list[str]) -> list[re.Match[str]]:
    pattern = rf"\\begin\{{({'|'.join(names)})(\*?)\}}(.*?)\\end\{{\1\2\}}"
    return list(re.finditer(pattern, text, re.DOTALL))


def _blank_environments(canvas: Canvas, names: list[str], sign: str) -> None:
    for match in _environments(canvas.text(), names):
        canvas.blank(*match.span(), leaving=sign)


def _write_quotes(canvas: Canvas) -> None:
    """Quotes of LaTeX, and commands that quote, become quotation marks."""
    for match in re.finditer(r"``", canvas.text()):
        canvas.blank(*match.span(), leaving="“")
    for match in re.finditer(r"''", canvas.text()):
        canvas.blank(*match.span(), leaving="”")
    for match in re.finditer(r"(?<![\w`])`(?=\w)", canvas.text()):
        canvas.blank(*match.span(), leaving="‘")
    text = canvas.text()
    for match in _QUOTED.finditer(text):
        end = _closing(text, match.start(1))
        canvas.blank(
            match.start(), match.end(), leaving=" " * (match.end() - match.start() - 1) + "“"
        )
        if end is not None:
            canvas.blank(end, end + 1, leaving="”")


def _closing(text: str, opening: int) -> int | None:
    """Place of the brace that closes the one at ``opening``."""
    depth = 0
    for i in range(opening, len(text)):
        if text[i] in "{}" and text[i - 1] != "\\":
            depth += 1 if text[i] == "{" else -1
            if depth == 0:
                return i
    return None


def _titled(canvas: Canvas) -> list[Block]:
    """Titles, captions and footnotes as blocks of their own; the innermost first."""
    blocks = []
    found = sorted(_TITLED.finditer(canvas.text()), key=lambda m: -m.start())
    for match in found:
        blocks.append(canvas.take(match.start(1) + 1, match.end(1) - 1, BlockKind.HEADING))
        # An empty line keeps the sentences before and after a heading apart, a footnote does not.
        foot = match[0].startswith(("\\footnote", "\\thanks", "\\marginpar"))
        canvas.blank(match.start(), match.end(), leaving="" if foot else "\n\n")
    return blocks


def _quotations(canvas: Canvas) -> list[Block]:
    return [
        canvas.take(match.start(3), match.end(3), BlockKind.QUOTE)
        for match in _environments(canvas.text(), QUOTE_ENVIRONMENTS)
    ]


def _body(canvas: Canvas) -> list[Block]:
    """Paragraphs, items and cells of tables."""
    blocks = []
    for table in _environments(canvas.text(), TABLE_ENVIRONMENTS):
        for cell in re.finditer(r"(?:(?!\\\\|(?<!\\)&).)+", table[3], re.DOTALL):
            start, end = table.start(3) + cell.start(), table.start(3) + cell.end()
            blocks.append(canvas.take(start, end, BlockKind.CELL))
        canvas.blank(*table.span())
    text = canvas.text()
    for start, end in paragraphs(text):
        marks = list(
            re.finditer(r"\\(item|begin|end)\b[^\n]*?(?:\{[^{}]*\}|(?=\s))", text[start:end])
        )
        cuts = [start, *(start + m.start() for m in marks), end]
        for i, (a, b) in enumerate(pairwise(cuts)):
            item = i > 0 and marks[i - 1][1] == "item"
            blocks.append(Block(BlockKind.ITEM if item else BlockKind.PROSE, a, text[a:b]))
    return blocks


def _without_commands(text: str) -> str:
    """Blank commands and braces; what they set in another type stays."""
    canvas = Canvas(text)
    for match in _UNREAD.finditer(text):
        canvas.blank(*match.span())
    for match in re.finditer(r"\\([%&#$_{}])", canvas.text()):
        canvas.blank(match.start(), match.start() + 1, leaving=JOINER)
    for match in re.finditer(r"\\item\s*\[[^\[\]]*\]", canvas.text()):
        canvas.blank(match.start(), match.start() + 5)
    for match in _COMMAND.finditer(canvas.text()):
        canvas.blank(*match.span())
    for match in re.finditer(r"[{}~]", canvas.text()):
        canvas.blank(*match.span())
    return canvas.text()
