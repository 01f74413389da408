"""Markdown: headings, paragraphs, items and cells are read; code, markup, addresses and block quotes are not.

Follows CommonMark (spec.commonmark.org) as far as prose is concerned, with tables, footnotes, mathematics and
citations ([@key]) of common extensions.
"""

from __future__ import annotations

import re

from lpact.analyses.lpact.claim_audit.blocks import (
    CITATION,
    CITED_AUTHOR,
    OPAQUE,
    Block,
    BlockKind,
    Canvas,
)

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)
_FRONT_PROSE = re.compile(
    r"^(?:title|subtitle|description|abstract)[ \t]*:[ \t]*[\"']?(\S.*?)[\"']?[ \t]*$", re.MULTILINE
)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]|$)")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*$")
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_QUOTE = re.compile(r"^ {0,3}>")
# A box of the text's own, set as a quotation: it opens with a label in bold type, or with [!NOTE].
_CALLOUT = re.compile(
    r"\s*(?:\*\*|__)[^*_\n]{1,60}(?:[:.]\s*(?:\*\*|__)|(?:\*\*|__)\s*[:.])|\s*\[!\w+\]"
)
_RULE = re.compile(r"^ {0,3}(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,})$")
_CELLS = re.compile(r"^[ \t]*\|.*\|?[ \t]*$")
_REFERENCE = re.compile(r"^ {0,3}\[(?!\^)[^\]]+\]:[ \t]+\S+.*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]*>|<https?://[^>\s]*>")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
# Names of models are often set as code.
_MODEL_NAME = re.compile(
    r"[\w./-]*(?:gpt|bert|llama|mistral|pythia|opt-|t5|qwen|gemma|bloom|xlnet)[\w./-]*",
    re.IGNORECASE,
)
_MATHS = re.compile(r"\$\$.+?\$\$|(?<![\\$\w])\$(?=\S)[^$\n]+?(?<=\S)\$(?!\d)", re.DOTALL)
_CITED = re.compile(r"\[[^\[\]]*@[\w:.#$%&+?<>~/-]+[^\[\]]*\]")
_AUTHOR = re.compile(r"(?<![\w@])@[A-Za-z][\w:.-]*\w")
_FOOTNOTE = re.compile(r"\[\^[^\]]+\]:?")
_LINK = re.compile(
    r"(!?\[)([^\[\]]*)(\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)?(?:\s+\"[^\"]*\")?\)|\[[^\]]*\]))"
)
_STRONG = re.compile(r"\*+|~~|(?<!\w)_+(?=\w)|(?<=[\w.!?])_+(?!\w)")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")


def read_markdown(source: str) -> list[Block]:
    """Return the blocks of a Markdown text."""
    canvas = Canvas(source)
    blocks = _front_matter(canvas)
    _blank_fences(canvas)
    for pattern in (_COMMENT, _REFERENCE):
        for match in pattern.finditer(canvas.text()):
            canvas.blank(*match.span())
    _blank_inline(canvas)
    return sorted([*blocks, *_split(canvas)], key=lambda block: block.start)


def _front_matter(canvas: Canvas) -> list[Block]:
    """Titles of the front matter; the rest of it is blanked."""
    front = _FRONT.match(canvas.source)
    if front is None:
        return []
    found = [
        canvas.take(front.start(1) + m.start(1), front.start(1) + m.end(1), BlockKind.HEADING)
        for m in _FRONT_PROSE.finditer(front[1])
    ]
    canvas.blank(*front.span())
    return found


def _blank_fences(canvas: Canvas) -> None:
    """Blank fenced and indented code."""
    place = 0
    fence = ""
    after_blank, in_list = True, False
    for line in canvas.text().splitlines(keepends=True):
        end = place + len(line)
        opened = _FENCE.match(line)
        if fence:
            canvas.blank(place, end)
            if opened and opened[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif opened:
            fence = opened[1]
            canvas.blank(place, end)
        elif line.strip() and line.startswith(("    ", "\t")) and after_blank and not in_list:
            canvas.blank(place, end)
        else:
            if line.strip():
                in_list = bool(_ITEM.match(line)) or (in_list and line.startswith((" ", "\t")))
            after_blank = not line.strip()
        place = end


def _blank_inline(canvas: Canvas) -> None:
    """Blank markup within lines; citations, mathematics and code leave a sign."""
    for pattern, sign in (
        (_CODE, OPAQUE),
        (_MATHS, OPAQUE),
        (_CITED, CITATION),
        (_FOOTNOTE, ""),
        (_TAG, ""),
    ):
        for match in pattern.finditer(canvas.text()):
            if not (pattern is _CODE and _MODEL_NAME.fullmatch(match[2])):
                canvas.blank(*match.span(), leaving=sign)
    for match in _LINK.finditer(canvas.text()):
        canvas.blank(*match.span(1))
        canvas.blank(*match.span(3))
    for match in _AUTHOR.finditer(canvas.text()):
        canvas.blank(*match.span(), leaving=CITED_AUTHOR)
    for match in _ESCAPE.finditer(canvas.text()):
        canvas.blank(*match.span())


def _split(canvas: Canvas) -> list[Block]:
    """Cut what is left into headings, quotations, items, cells and paragraphs."""
    blocks: list[Block] = []
    kind, begin, place = BlockKind.PROSE, -1, 0

    def close(end: int) -> None:
        nonlocal begin
        if begin >= 0 and canvas.text(begin, end).strip():
            text = canvas.text(begin, end)
            own = kind is BlockKind.QUOTE and _CALLOUT.match(text)
            text = _STRONG.sub(_spaces, text)
            blocks.append(Block(BlockKind.PROSE if own else kind, begin, text))
        begin = -1

    lines = canvas.text().splitlines(keepends=True)
    for i, line in enumerate(lines):
        after = lines[i + 1] if i + 1 < len(lines) else ""
        end = place + len(line)
        if not line.strip() or (_RULE.match(line) and begin < 0):
            close(place)
        elif _UNDERLINE.match(line) and begin >= 0 and kind is BlockKind.PROSE:
            kind = BlockKind.HEADING
            close(place)
        elif mark := _HEADING.match(line):
            close(place)
            kind, begin = BlockKind.HEADING, place + mark.end(1)
            close(end)
        elif quote := _QUOTE.match(line):
            if begin >= 0 and kind is not BlockKind.QUOTE:
                close(place)
            kind, begin = BlockKind.QUOTE, begin if begin >= 0 else place + quote.end()
        elif _CELLS.match(line) and ("|" in after or "|" in line[1:].strip(" |\n") or begin < 0):
            close(place)
            blocks += _cells(line, place)
        elif item := _ITEM.match(line):
            close(place)
            kind, begin = BlockKind.ITEM, place + item.end()
        elif begin < 0:
            kind, begin = BlockKind.PROSE, place
        place = end
    close(place)
    return blocks


def _cells(line: str, place: int) -> list[Block]:
    """Cells of a table's line; a line of dashes has none."""
    found = []
    start = 0
    for cell in line.rstrip("\n").split("|"):
        if re.search(r"[^\W\d_]", cell):
            text = _STRONG.sub(_spaces, cell)
            found.append(Block(BlockKind.CELL, place + start, text))
        start += len(cell) + 1
    return found


def _spaces(match: re.Match[str]) -> str:
    return " " * len(match[0])
