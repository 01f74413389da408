"""Readers of Markdown, LaTeX and plain text: blocks of prose, markup blanked, and their sentences as words.

Readers never move a character: markup becomes spaces, so that an offset in a block is an offset in the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import Literal

from markdown_it import MarkdownIt

from lpact.errors import InputError

CITATION = "\ue000"
"""Replaces a citation in brackets: [12], (Smith, 2020), \\citep{smith}."""
CITED_AUTHOR = "\ue001"
"""Replaces a citation that is part of the sentence: \\citet{smith}, @smith."""
OPAQUE = "\ue002"
"""Replaces mathematics or code, which is not read."""
JOINER = "\ue003"
"""Replaces a character of markup inside a word, which sentences leave out: the backslash of sim\\_ecog."""

Format = Literal["markdown", "latex", "text"]


class BlockKind(StrEnum):
    """What a block is; quotations are not checked."""

    PROSE = "prose"
    HEADING = "heading"
    ITEM = "item"
    CELL = "cell"
    QUOTE = "quote"


@dataclass(frozen=True)
class Block:
    """Text that sentences do not cross: ``start`` is its offset in the file, ``text`` is as long as in the file."""

    kind: BlockKind
    start: int
    text: str


class Canvas:
    """The characters of a text, to be blanked in place; ``start`` is its offset in the file."""

    def __init__(self, source: str, start: int = 0) -> None:
        self.characters = list(source)
        self.start = start

    def blank(self, start: int, end: int, *, leaving: str = "") -> None:
        """Blank characters but line ends; ``leaving`` is put at the start."""
        for i in range(start, end):
            if self.characters[i] != "\n":
                self.characters[i] = " "
        for i, character in enumerate(leaving[: end - start]):
            self.characters[start + i] = character

    def blank_all(self, pattern: re.Pattern[str] | str, *, leaving: str = "", groups: tuple[int, ...] = (0,)) -> None:
        """Blank these groups of every match."""
        for match in re.finditer(pattern, self.text()):
            for group in groups:
                self.blank(*match.span(group), leaving=leaving)

    def text(self, start: int = 0, end: int | None = None) -> str:
        """The characters that are left."""
        return "".join(self.characters[start:end])

    def take(self, start: int, end: int, kind: BlockKind) -> Block:
        """Cut out a block and blank it here."""
        block = Block(kind, self.start + start, self.text(start, end))
        self.blank(start, end)
        return block


def line_starts(text: str) -> list[int]:
    """Offsets at which lines begin."""
    return [0, *(m.end() for m in re.finditer(r"\r\n?|\n", text))]


# --- Plain text ------------------------------------------------------------------------------------


_PARAGRAPH = re.compile(r"(?:^[^\S\n]*\S.*(?:\n|\Z))+", re.MULTILINE)
"""Lines up to an empty one."""


def read_plain(source: str) -> list[Block]:
    """Paragraphs of a plain text; one whose lines all begin with ``>`` is quoted."""
    blocks = []
    for paragraph in _PARAGRAPH.finditer(source):
        quoted = all(line.lstrip().startswith(">") for line in paragraph[0].splitlines())
        kind = BlockKind.QUOTE if quoted else BlockKind.PROSE
        blocks.append(Block(kind, paragraph.start(), paragraph[0]))
    return blocks


# --- Markdown --------------------------------------------------------------------------------------

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)
_FRONT_PROSE = re.compile(
    r"^(?:title|subtitle|description|abstract)[ \t]*:[ \t]*[\"']?(\S.*?)[\"']?[ \t]*$", re.MULTILINE
)
_MARKER = re.compile(
    r"^(?:[ \t]*(?:>|#{1,6}(?=[ \t])|[-*+][ \t]|\d{1,9}[.)][ \t])(?:[ \t]*\[[ xX]\][ \t])?)*",
    re.MULTILINE,
)
"""Marks of headings, quotations and items, and tick boxes."""
# A callout is the text's own words: it opens with a label in bold type, or with [!NOTE].
_CALLOUT = re.compile(r"\s*(?:\*\*|__)[^*_\n]{1,60}(?:[:.]\s*(?:\*\*|__)|(?:\*\*|__)\s*[:.])|\s*\[!\w+\]")
_LINK_DEFINITION = re.compile(r"^ {0,3}\[(?!\^)[^\]]+\]:[ \t]+\S+.*$", re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
# Names of models are often set as code.
_MODEL_NAME = re.compile(
    r"[\w./-]*(?:gpt|bert|llama|mistral|pythia|opt-|t5|qwen|gemma|bloom|xlnet)[\w./-]*",
    re.IGNORECASE,
)
_INLINE = (
    (re.compile(r"\$\$.+?\$\$|(?<![\\$\w])\$(?=\S)[^$\n]+?(?<=\S)\$(?!\d)", re.DOTALL), OPAQUE),
    (re.compile(r"\[[^\[\]]*@[\w:.#$%&+?<>~/-]+[^\[\]]*\]"), CITATION),
    (re.compile(r"\[\^[^\[\]]+\]:?"), ""),
    (re.compile(r"</?[a-zA-Z][^<>\n]*>|<https?://[^<>\s]*>"), ""),
)
_LINK = re.compile(r"(!?\[)([^\[\]]*)(\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)?(?:\s+\"[^\"]*\")?\)|\[[^\]]*\]))")
_AUTHOR = re.compile(r"(?<![\w@])@[A-Za-z][\w:.-]*\w")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_STRONG = re.compile(r"\*+|~~|(?<!\w)_+(?=\w)|(?<=[\w.!?])_+(?!\w)")
_MARKDOWN = MarkdownIt("commonmark").enable("table").disable(["reference", "inline"])


def read_markdown(source: str) -> list[Block]:
    """Blocks of a Markdown text: CommonMark with tables, footnotes, mathematics and citations ([@key])."""
    canvas = Canvas(source)
    blocks: list[Block] = []
    if front := _FRONT_MATTER.match(source):
        titles = _FRONT_PROSE.finditer(source, *front.span(1))
        blocks = [canvas.take(*m.span(1), BlockKind.HEADING) for m in titles]
        canvas.blank(*front.span())
    starts = [*line_starts(source), len(source)]
    containers: list[str] = []
    for token in _MARKDOWN.parse(canvas.text()):
        if token.nesting:
            containers.append(token.tag) if token.nesting > 0 else containers.pop()
        if token.map is None or token.type not in ("inline", "html_block", "tr_open"):
            continue
        start, end = (starts[min(line, len(starts) - 1)] for line in token.map)
        if token.type == "tr_open":
            row = _markdown_inline(canvas.text(start, end), start)
            blocks += _cells(row, start)
        elif "table" not in containers:
            blocks.append(_markdown_block(canvas.text(start, end), start, containers))
    return sorted(blocks, key=lambda block: block.start)


def _markdown_block(text: str, start: int, containers: list[str]) -> Block:
    marked = Canvas(text)
    marked.blank_all(_MARKER)
    kind = BlockKind.PROSE
    if "blockquote" in containers:
        kind = BlockKind.PROSE if _CALLOUT.match(marked.text()) else BlockKind.QUOTE
    elif containers and re.fullmatch(r"h[1-6]", containers[-1]):
        kind = BlockKind.HEADING
    elif "li" in containers:
        kind = BlockKind.ITEM
    return Block(kind, start, _plain(_markdown_inline(marked.text(), start)))


def _markdown_inline(text: str, start: int) -> str:
    """Text without inline markup; citations, mathematics and code leave a sign."""
    canvas = Canvas(text, start)
    canvas.blank_all(_LINK_DEFINITION)
    for match in _CODE.finditer(text):
        if not _MODEL_NAME.fullmatch(match[2]):
            canvas.blank(*match.span(), leaving=OPAQUE)
    for comment, _ in _enclosed(canvas.text(), re.compile("<!--()"), "-->"):
        canvas.blank(*comment)
    for pattern, sign in _INLINE:
        canvas.blank_all(pattern, leaving=sign)
    canvas.blank_all(_LINK, groups=(1, 3))
    canvas.blank_all(_AUTHOR, leaving=CITED_AUTHOR)
    canvas.blank_all(_ESCAPE)
    return canvas.text()


def _plain(text: str) -> str:
    """Text without marks of bold and italic type."""
    return _STRONG.sub(lambda m: " " * len(m[0]), text)


def _cells(line: str, start: int) -> Iterator[Block]:
    """Cells of a table's row that contain letters."""
    for cell in re.finditer(r"[^|\n]+", line):
        if re.search(r"[^\W\d_]", cell[0]):
            yield Block(BlockKind.CELL, start + cell.start(), _plain(cell[0]))


# --- LaTeX -----------------------------------------------------------------------------------------

_SILENT_ENVIRONMENTS = (
    "verbatim Verbatim lstlisting minted comment thebibliography tikzpicture filecontents algorithm algorithmic"
)
_MATHS_ENVIRONMENTS = "equation align gather multline eqnarray displaymath math flalign alignat"
_QUOTE_ENVIRONMENTS = "quote quotation displayquote verse"
_TABLE_ENVIRONMENTS = "tabular tabularx longtable tabulary"
_TITLES = (
    "title subtitle part chapter section subsection subsubsection paragraph subparagraph caption captionof footnote "
    "footnotetext thanks frametitle subcaption marginpar"
)
"""Commands whose argument is a separate block."""
_UNREAD = (
    "label ref eqref autoref cref Cref pageref nameref includegraphics bibliography bibliographystyle addbibresource "
    "usepackage documentclass url href input include subfile import newcommand renewcommand providecommand def "
    "setlength vspace hspace begin end bibitem hypersetup pagestyle thispagestyle author date affil affiliation email "
    "newtheorem DeclareMathOperator graphicspath setcounter addtocounter color definecolor cline cmidrule multicolumn "
    "orcid tag nocite lstinputlisting verbatiminput ac gls index todo SI num qty"
)
"""Commands whose first argument is not prose; of \\href and \\multicolumn a later argument is."""


def _any_of(names: str) -> str:
    return f"(?:{'|'.join(names.split())})"


_ARGUMENT = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_OPTIONS = r"(?:\s*\[[^\[\]]*\])*"
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*(%.*)")
_BODY = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.DOTALL)
_TITLED = re.compile(rf"\\{_any_of(_TITLES)}\*?{_OPTIONS}\s*({_ARGUMENT})", re.DOTALL)
_CITE = re.compile(rf"\\([A-Za-z]*cite[A-Za-z]*)\*?{_OPTIONS}\s*{_ARGUMENT}", re.DOTALL)
_CITE_IN_TEXT = ("citet", "textcite", "citeauthor", "citea")
_UNREAD_COMMAND = re.compile(rf"\\{_any_of(_UNREAD)}\*?{_OPTIONS}\s*{_ARGUMENT}{_OPTIONS}", re.DOTALL)
_INCLUDED = re.compile(r"\\(?:input|include|subfile|import|subfileinclude)\s*\{([^{}]*)\}")
# Mathematics ends with its paragraph, as in TeX: an unpaired sign hides no more than that. The spacing after a line
# break, \\\\[2pt], opens none.
# Nor does it hold its own opening sign, so that many unpaired signs are read in linear time.
_EMPTY_LINE = r"\n[ \t]*\n"
_MATHS = re.compile(
    rf"(?<!\\)\$\$(?:(?!{_EMPTY_LINE}).)+?\$\$"
    r"|(?<!\\)\$(?:[^$\\\n]|\\.|\n(?![ \t]*\n))+\$"
    rf"|(?<!\\)(?:\\\\)*\\\((?:(?!{_EMPTY_LINE}|(?<!\\)\\\().)+?\\\)"
    rf"|(?<!\\)(?:\\\\)*\\\[(?:(?!{_EMPTY_LINE}|(?<!\\)\\\[).)+?\\\]",
    re.DOTALL,
)
_VERBATIM = re.compile(
    r"\\(?:verb|lstinline)\*?(?:\[[^\]\n]*\])?([^A-Za-z\s*])[^\n]*?\1"
    r"|\\(?:url|nolinkurl|path)\s*\{[^{}\n]*\}"
)
_QUOTED = re.compile(rf"\\(?:enquote|textquote|blockquote|blockcquote)\*?\s*({_ARGUMENT})", re.DOTALL)
_ITEMS = re.compile(r"\\(item|begin|end)\b")


def read_latex(source: str) -> list[Block]:
    """Blocks of a LaTeX text: body, titles, captions, footnotes, items and cells."""
    canvas = _without_comments(source)
    for names, sign in ((_SILENT_ENVIRONMENTS, ""), (_MATHS_ENVIRONMENTS, OPAQUE)):
        for whole, _ in _environments(canvas.text(), names):
            canvas.blank(*whole, leaving=sign)
    canvas.blank_all(_MATHS, leaving=OPAQUE)
    for match in _CITE.finditer(canvas.text()):
        in_text = match[1].lower().startswith(_CITE_IN_TEXT)
        canvas.blank(*match.span(), leaving=CITED_AUTHOR if in_text else CITATION)
    _write_quotes(canvas)
    blocks = _titled(canvas)
    if body := _BODY.search(canvas.text()):
        canvas.blank(0, body.start(1))
        canvas.blank(body.end(1), len(source))
    for _, quote in _environments(canvas.text(), _QUOTE_ENVIRONMENTS):
        blocks.append(canvas.take(*quote, BlockKind.QUOTE))
    blocks += _body(canvas)
    blocks = [Block(b.kind, b.start, _without_commands(b.text)) for b in blocks]
    return sorted(blocks, key=lambda block: block.start)


def unread_files(text: str, format: Format) -> list[tuple[int, str]]:
    """Line and name of files that a LaTeX text includes; they are not read."""
    if format != "latex":
        return []
    starts = line_starts(text)
    found = _INCLUDED.finditer(_without_comments(text).text())
    return [(bisect_right(starts, m.start()), m[1].strip()) for m in found]


def _without_comments(source: str) -> Canvas:
    """The text without verbatim text, where a percent sign opens no comment, and without comments."""
    canvas = Canvas(source)
    canvas.blank_all(_VERBATIM, leaving=OPAQUE)
    canvas.blank_all(_COMMENT, groups=(1,))
    return canvas


def _environments(text: str, names: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where environments are, with and without their begin and end."""
    return _enclosed(text, re.compile(rf"\\begin(\{{{_any_of(names)}\*?\}})"), "\\end")


def _enclosed(text: str, opening: re.Pattern[str], closing: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where text begins with ``opening``, and ends with ``closing`` and the opening's first group: outside and inside.

    A regular expression for both would search to the end of the text for every beginning without an end.
    """
    at, endless = 0, set[str]()
    while begin := opening.search(text, at):
        at = begin.end()
        last = closing + begin[1]
        end = -1 if last in endless else text.find(last, at)
        if end < 0:
            endless.add(last)
            continue
        yield (begin.start(), end + len(last)), (at, end)
        at = end + len(last)


def _write_quotes(canvas: Canvas) -> None:
    """Turn quotes of LaTeX, and commands that quote, into quotation marks."""
    for quote, mark in ((r"``", "“"), (r"''", "”"), (r"(?<![\w`])`(?=\w)", "‘")):
        canvas.blank_all(quote, leaving=mark)
    for match in _QUOTED.finditer(canvas.text()):
        opening = match.start(1)
        canvas.blank(match.start(), opening)
        canvas.blank(opening, opening + 1, leaving="“")
        canvas.blank(match.end() - 1, match.end(), leaving="”")


def _titled(canvas: Canvas) -> list[Block]:
    """Titles, captions and footnotes; the innermost first."""
    blocks = []
    for match in sorted(_TITLED.finditer(canvas.text()), key=lambda m: -m.start()):
        blocks.append(canvas.take(match.start(1) + 1, match.end(1) - 1, BlockKind.HEADING))
        # An empty line keeps the sentences before and after a heading apart, a footnote does not.
        foot = match[0].startswith(("\\footnote", "\\thanks", "\\marginpar"))
        canvas.blank(*match.span(), leaving="" if foot else "\n\n")
    return blocks


def _body(canvas: Canvas) -> list[Block]:
    """Paragraphs, items and cells of tables."""
    blocks: list[Block] = []
    cells = re.compile(r"(?:(?!\\\\|(?<!\\)&).)+", re.DOTALL)
    for whole, rows in _environments(text := canvas.text(), _TABLE_ENVIRONMENTS):
        blocks += (canvas.take(*cell.span(), BlockKind.CELL) for cell in cells.finditer(text, *rows))
        canvas.blank(*whole)
    text = canvas.text()
    for paragraph in _PARAGRAPH.finditer(text):
        marks = list(_ITEMS.finditer(text, *paragraph.span()))
        cuts = [paragraph.start(), *(m.start() for m in marks), paragraph.end()]
        kinds = ["prose", *("item" if m[1] == "item" else "prose" for m in marks)]
        for kind, start, end in zip(kinds, cuts, cuts[1:], strict=False):
            blocks.append(Block(BlockKind(kind), start, text[start:end]))
    return blocks


def _without_commands(text: str) -> str:
    """Blank commands and braces; the text that they format stays."""
    canvas = Canvas(text)
    canvas.blank_all(_UNREAD_COMMAND)
    canvas.blank_all(r"(\\)[%&#$_{}]", leaving=JOINER, groups=(1,))
    canvas.blank_all(r"(\\item)\s*\[[^\[\]]*\]", groups=(1,))
    canvas.blank_all(r"\\(?:[A-Za-z@]+\*?|[^A-Za-z])")
    canvas.blank_all(r"[{}~]")
    return canvas.text()


READERS: dict[Format, Callable[[str], list[Block]]] = {
    "markdown": read_markdown,
    "latex": read_latex,
    "text": read_plain,
}


# --- Sentences -------------------------------------------------------------------------------------

_ABBREVIATION = re.compile(
    r"(?<![\w.])(?:(?i:al|e\.g|i\.e|cf|vs|figs?|eqs?|secs?|tab|nos?|vol|pp?|refs?|approx|ca|resp|dr|mrs?|ms|prof|st|inc|"
    r"eds?|suppl|appx?|ch|viz|incl|excl|max|min|avg|dept|univ|est)|[A-HJ-ZÀ-ÖØ-ÞΑ-ΩА-Я])\Z"
)
"""A word before a full stop that does not end a sentence: an abbreviation or an initial."""
LONGEST_SENTENCE = 100_000
"""In characters. More come from data and listings."""
_PIECE = re.compile(r"\S(?:.{0,1999}(?!\S)|.{1999})", re.DOTALL)
_END = rf"[.!?]+[\"'”’)\]»]*(?:\s*{CITATION})?"
_OPENING = rf"[A-Z0-9{CITED_AUTHOR}{OPAQUE}]"


def _abbreviates(text: str, stop: int) -> bool:
    """Whether the full stop at ``stop`` belongs to a word."""
    return _ABBREVIATION.search(text, max(0, stop - 8), stop) is not None


@dataclass(frozen=True)
class Sentence:
    """A sentence: its kind of block, its start and end in the file, and its text, markup blanked."""

    kind: BlockKind
    start: int
    end: int
    text: str


def split_sentences(block: Block, names: Iterable[str] = ()) -> Iterator[Sentence]:
    """Split a block; abbreviations, initials and decimals do not end a sentence.

    A sentence begins with a capital, a digit, or one of ``names``, which are regular expressions.

    Very long sentences come in pieces, so that time grows with their length and not with its square. One that no author
    wrote is an `InputError`.
    """
    text, begin = block.text, 0
    length = len(text.rstrip())
    openings = "|".join([_OPENING, *names])
    ends = [
        m.end()
        for m in re.finditer(rf"{_END}(?=\s+[\"'“‘(\[]?(?:{openings})|\s*\Z)", text)
        if m[0][0] != "." or m.end() >= length or not _abbreviates(text, m.start())
    ]
    for end in (*ends, len(text)):
        if end - begin > LONGEST_SENTENCE:
            raise InputError(
                "a sentence is too long to be checked",
                where=f"the sentence that begins '{' '.join(text[begin : begin + 60].split())}'",
                got=f"{end - begin:,} characters",
                expected=f"at most {LONGEST_SENTENCE:,} characters up to a full stop",
                remedy="leave out data and listings, or set the format of the text",
            )
        for piece in _PIECE.finditer(text, begin, end):
            if re.search(r"[^\W\d_]", piece[0]):
                said = piece[0].rstrip()
                start = block.start + piece.start()
                yield Sentence(block.kind, start, start + len(said), said.replace(JOINER, ""))
        begin = end


# --- Words -----------------------------------------------------------------------------------------

_YEAR = r"(?:1[89]|20)\d\d[a-z]?"
_NAME = r"[A-Z][\w’'-]+"
_NO_AUTHOR = (
    r"(?!(?:Llama|Mistral|Pythia|Bert|Falcon|Gemma|Qwen|Bloom|Claude|Gemini|Mamba|Transformers?|Brains?|Cortex|Models?|"
    r"Machines?|Humans?|People|Listeners|Networks?|Both|This|That|It|We|Here|Which|These|Those|Evidence|Nobody|"
    r"Everyone|Logic|Results|Data|Prediction|Stripping|Level|Layers?|Table|Figure|Podcast|Silicon)\b)"
)
_REPORTS = (
    r"(?= (?:have |had |has |also |recently |once |both |later )*(?:argu|claim|conclud|assert|contend|maintain|wr[io]t|"
    r"propos|report|find |found |show|suggest|hold |held |demonstrat|describ|believ|interpret|stat|postulat|insist|"
    r"observ|note|call|see |saw |take |took |read |warn|object|disput|den[iy]))"
)
_AUTHORS = re.compile(
    rf"{_NAME}(?:(?:,? (?:and|&) {_NAME})?\s*[(\[]{_YEAR}(?:[,;] ?{_YEAR})*[)\]]"
    rf"|,? et al\.?(?:,?\s*[(\[]{_YEAR}[)\]]|,? {_YEAR})?|,? and (?:colleagues|co-?workers|collaborators))(?!\w)"
    rf"|{_NO_AUTHOR}[A-Z][a-z][\w’'-]+,? (?:and|&) {_NO_AUTHOR}[A-Z][a-z]\w+{_REPORTS}"
    rf"|(?<=[Ii]t was ){_NO_AUTHOR}[A-Z][a-z]+(?= who )"
    rf"|{_NO_AUTHOR}[A-Z][a-z]+(?= (?:has |had |once |famously )*"
    r"(?:argue[sd]|contend(?:s|ed)|claimed|asserted|wrote|writes|maintain(?:s|ed)) )"
)
_PARENTHESIS = re.compile(rf"\([^()]*{_YEAR}[^()]*\)|\[\d+(?:\s*[,;–-]\s*\d+)*\]")
_HYPHENS = str.maketrans(dict.fromkeys("‐‑‒–", "-") | {"’": "'", "‘": "'", "—": ";"})
_WORD = re.compile(rf"[{CITED_AUTHOR}{OPAQUE}]|\d+(?:[.,]\d+)*|\w+(?:[-'./_]\w+)*|[;:,?!%()]|--+")
_SPLIT = {
    CITED_AUTHOR: ("citedauthor",),
    OPAQUE: ("opaque",),
    "cannot": ("can", "not"),
    "can't": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
}
_QUOTES = (
    re.compile(r"“[^”]*”"),
    re.compile(r"‘(?:[^’]|’(?=\w))*’"),
    re.compile(r'"[^"]*"'),
    re.compile(r"«[^»]*»|„[^“”]*[“”]"),
    re.compile(r"(?<![\w'])'(?=\w)(?:[^']|'(?=\w))*?(?<=[\w.,!?])'(?!\w)"),
)


@dataclass(frozen=True)
class Words:
    """The words of a sentence.

    ``line`` holds all words in lower case, each followed by one space; punctuation marks are words. ``starts`` are
    their offsets in ``line``, ``quoted`` says which are in quotation marks.
    """

    line: str
    quoted: tuple[bool, ...]
    starts: tuple[int, ...]

    def index(self, offset: int) -> int:
        """Number of the word at an offset of ``line``."""
        return bisect_right(self.starts, offset) - 1

    def without(self, spans: Iterable[tuple[int, int]]) -> Words:
        """The same with other words in place of those between some offsets."""
        line = self.line
        for start, end in spans:
            line = line[:start] + re.sub("[^ ]", "x", line[start:end]) + line[end:]
        return replace(self, line=line)


def quoted_characters(text: str) -> bytearray:
    """For every character, 1 if it is in quotation marks: “…”, "…", ‘…’, '…', «…», „…“."""
    quoted = bytearray(len(text))
    for start, end in (match.span() for pattern in _QUOTES for match in pattern.finditer(text)):
        quoted[start:end] = b"\1" * (end - start)
    return quoted


def read_words(text: str, quoted: bytearray) -> Words:
    """Normalise a sentence; ``quoted`` says which of its characters are in quotation marks.

    Citations in brackets are left out, cited authors become one word, hyphens and quotes are unified, possessives and
    contracted negations become words.
    """
    text = _AUTHORS.sub(lambda m: CITED_AUTHOR.ljust(len(m[0])), text)
    text = _PARENTHESIS.sub(lambda m: CITATION.ljust(len(m[0])), text)
    words: list[str] = []
    inside: list[bool] = []
    for match in _WORD.finditer(text.translate(_HYPHENS)):
        parts = _parts(match[0])
        words += parts
        inside += [bool(quoted[match.start()])] * len(parts)
    starts = [0, *accumulate(len(word) + 1 for word in words)][: len(words)]
    return Words("".join(f"{word} " for word in words), tuple(inside), tuple(starts))


def _parts(word: str) -> tuple[str, ...]:
    """The normalised words of one written word."""
    word = word.lower().strip("_")
    if word in _SPLIT:
        return _SPLIT[word]
    if word.endswith("n't"):
        return (word[:-3], "not")
    if word.endswith("'s"):
        return (word[:-2], "'s")
    return (";",) if word.startswith("--") else (word,)
