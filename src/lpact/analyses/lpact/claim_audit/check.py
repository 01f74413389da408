"""Hold a text against the verdicts of a run."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from lpact.analyses.lpact.claim_audit.blocks import Block, BlockKind
from lpact.analyses.lpact.claim_audit.detect import Found, find_statements
from lpact.analyses.lpact.claim_audit.names import mechanism_expressions, named_claims
from lpact.analyses.lpact.claim_audit.read_latex import not_followed, read_latex
from lpact.analyses.lpact.claim_audit.read_markdown import read_markdown
from lpact.analyses.lpact.claim_audit.read_plain import read_plain
from lpact.analyses.lpact.claim_audit.rules import Rule, compile_rules
from lpact.analyses.lpact.claim_audit.scope import Force
from lpact.analyses.lpact.claim_audit.sentences import Sentence, split_sentences
from lpact.analyses.lpact.claim_audit.statement import SILENT, Statement
from lpact.analyses.lpact.claim_audit.tokens import quotations, read_words
from lpact.analyses.lpact.claim_audit.verdicts import Verdict, Verdicts
from lpact.analyses.lpact.claim_audit.wording import grounds, supported_sentence
from lpact.codes import FinalLabel

Format = Literal["markdown", "latex", "text"]

READERS: dict[Format, Callable[[str], list[Block]]] = {
    "markdown": read_markdown,
    "latex": read_latex,
    "text": read_plain,
}
_SUFFIXES: dict[str, Format] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".qmd": "markdown",
    ".rmd": "markdown",
    ".tex": "latex",
    ".latex": "latex",
    ".ltx": "latex",
}
_STRENGTH = tuple(Statement)
_REFERENCES = re.compile(
    r"[\s#*\d.]*(?:references|bibliography|literature cited|works cited)[\s:*.]*$", re.IGNORECASE
)
_APPENDIX = re.compile(r"[\s#*\d.]*(?:appendix|appendices|supplement)", re.IGNORECASE)
# An entry of a list of references: initials of an author, and a year, an arXiv number or a digital object identifier.
_REFERENCE = re.compile(
    r"^(?:-\s*)?(?:\[\d+\]\s*)?(?=.*\b[A-Z]\. ?(?:[A-Z]\. ?)*[A-Z][a-z]+).*"
    r"(?:\([12]\d{3}[a-z]?\)\.?$|\barXiv:|\bdoi\b|\d+, \d+[–-]\d+|^\[\d+\])|^(?:-\s*)?\[\d+\]\s+[A-Z]\.",
    re.DOTALL,
)


# "Hypothesis 2." before a sentence says that it is one.
_LABEL = re.compile(
    r"[\s*]*(?:hypothes[ie]s|question|aim|conjecture)\s*\w{0,3}\.[\s*]*", re.IGNORECASE
)


@dataclass(frozen=True)
class Overclaim:
    """A sentence that says more than the run supports.

    Attributes
    ----------
    line, column
        Where the sentence begins, both from 1.
    sentence
        The sentence as written, on one line.
    statement
        What it claims, as a code; ``words`` are those that say so.
    reason
        Why the run does not support it.
    wording
        A sentence that the run supports in its place.
    """

    line: int
    column: int
    sentence: str
    statement: Statement
    words: str
    reason: str
    wording: str


def format_of(name: str) -> Format:
    """The format that a file's name tells; plain text where it tells none."""
    suffix = "." + name.rpartition(".")[2].lower()
    return _SUFFIXES.get(suffix, "text")


def check_text(text: str, format: Format, evidence: Verdicts) -> list[Overclaim]:
    """Find the overclaims of a text, in the order of their places.

    Each sentence is held against the verdicts on the claims that it names; where it names none, against the best
    verdict of the run's confirmatory claims. A sentence is listed once, with the strongest statement that is not
    supported.

    Parameters
    ----------
    text
        The text.
    format
        How it is written.
    evidence
        Verdicts of one gate profile, see `Verdicts.of_tables`.
    """
    rules = compile_rules(mechanism_expressions(evidence))
    starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    overclaims = []
    for sentence, found in _statements(text, format, rules):
        written = text[sentence.start : sentence.end]
        named = named_claims(written, evidence)
        unsupported = _strongest(found, evidence, named)
        if unsupported is None:
            continue
        statement, words, verdict = unsupported
        line = bisect_right(starts, sentence.start)
        overclaims.append(
            Overclaim(
                line=line,
                column=sentence.start - starts[line - 1] + 1,
                sentence=" ".join(written.split()),
                statement=statement,
                words=words,
                reason=grounds(statement, verdict),
                wording=supported_sentence(verdict),
            )
        )
    return overclaims


def unread_files(text: str, format: Format) -> list[tuple[int, str]]:
    """Files that a text brings in and that are not read, with their lines."""
    return not_followed(text) if format == "latex" else []


def _statements(
    text: str, format: Format, rules: tuple[Rule, ...]
) -> Iterator[tuple[Sentence, list[Found]]]:
    """Every sentence that holds a statement, and its statements."""
    listing = False
    for block in READERS[format](text):
        listing = _lists_references(block, listing)
        if listing:
            continue
        quoted = quotations(block.text)
        before = ""
        for sentence in split_sentences(block):
            if _REFERENCE.search(sentence.text):
                continue
            shift = sentence.start - block.start
            words = read_words(sentence.text, [(a - shift, b - shift) for a, b in quoted])
            question = sentence.text.rstrip(" \"'”’)]}").endswith("?") or _LABEL.fullmatch(before)
            before = sentence.text
            found = list(find_statements(words, rules, sentence.kind, question=bool(question)))
            if found:
                yield sentence, found


def _lists_references(block: Block, before: bool) -> bool:
    """Whether a block belongs to the list of references: after its heading, up to another one."""
    if _REFERENCES.match(block.text):
        return True
    return before and block.kind is not BlockKind.HEADING and not _APPENDIX.match(block.text)


def _strongest(
    found: list[Found], evidence: Verdicts, named: tuple[Verdict, ...] | None
) -> tuple[Statement, str, Verdict | None] | None:
    """The strongest statement that is made and not supported, with the verdict that it was held against."""
    unsupported = []
    for one in found:
        statement = one.statement
        if one.force is Force.NEGATED and one.plain:
            statement = Statement.NOT_SHOWN
        elif one.force is not Force.ASSERTED:
            continue
        verdict = _held_against(statement, evidence, named)
        if statement is Statement.NOT_SHOWN:
            # A negative that a stronger verdict contradicts is a mistake, not an overclaim.
            if verdict is not None and verdict.label not in SILENT:
                continue
        elif verdict is not None and verdict.supports(statement):
            continue
        unsupported.append((statement, one.words, verdict))
    return max(unsupported, key=lambda item: _STRENGTH.index(item[0]), default=None)


def _held_against(
    statement: Statement, evidence: Verdicts, named: tuple[Verdict, ...] | None
) -> Verdict | None:
    """The verdict that a statement stands on: of the claims that are named, else of the run."""
    if named is None:
        return evidence.best(statement)
    confirmatory = [v for v in named if v.label is not FinalLabel.DIAGNOSTIC_ONLY]
    return evidence.best(statement, confirmatory or named)
