"""Compare a text with the verdicts of a run."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from lpact.analyses.lpact.claim_audit.detect import (
    Force,
    Found,
    Rule,
    compile_rules,
    find_statements,
)
from lpact.analyses.lpact.claim_audit.readers import (
    READERS,
    Block,
    BlockKind,
    Format,
    Sentence,
    line_starts,
    quotations,
    read_words,
    split_sentences,
)
from lpact.analyses.lpact.claim_audit.statements import (
    NONE,
    SILENT,
    Statement,
    Verdict,
    Verdicts,
    grounds,
    supported_sentence,
)
from lpact.codes import FinalLabel

_SUFFIXES: dict[str, Format] = {
    **dict.fromkeys(("md", "markdown", "qmd", "rmd"), "markdown"),
    **dict.fromkeys(("tex", "latex", "ltx"), "latex"),
}
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
# "Hypothesis 2." marks the next sentence as one.
_LABEL = re.compile(
    r"[\s*]*(?:hypothes[ie]s|question|aim|conjecture)\s*\w{0,3}\.[\s*]*", re.IGNORECASE
)


@dataclass(frozen=True)
class Overclaim:
    """A sentence that says more than the run supports."""

    line: int
    column: int
    """Where the sentence begins, both from 1."""
    sentence: str
    """The sentence as written, on one line."""
    statement: Statement
    """What it claims, as a code; ``words`` are those that say so."""
    words: str
    reason: str
    """Why the run does not support it."""
    wording: str
    """A sentence that the run supports instead."""


def format_of(name: str) -> Format:
    """The format that a file's suffix implies; plain text by default."""
    return _SUFFIXES.get(name.rpartition(".")[2].lower(), "text")


def check_text(text: str, format: Format, evidence: Verdicts) -> list[Overclaim]:
    """Find the overclaims of a text, in order.

    Each sentence is compared with the verdicts on the claims that it names; one that names none, with the best
    verdict of the run's confirmatory claims. A sentence is listed once, with the strongest statement that is not
    supported.
    """
    names = {v.claim[3] for v in evidence.claims if v.claim is not None} - {NONE}
    mechanisms = (re.escape(name.replace("_", " ").lower()) + "s?" for name in sorted(names))
    rules = compile_rules(tuple(mechanisms))
    starts = line_starts(text)
    overclaims = []
    for sentence, found in _statements(text, format, rules):
        written = text[sentence.start : sentence.end]
        unsupported = _strongest(found, evidence, named_claims(written, evidence))
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


def _statements(
    text: str, format: Format, rules: tuple[Rule, ...]
) -> Iterator[tuple[Sentence, list[Found]]]:
    """Every sentence with a statement, and its statements."""
    in_references = False
    for block in READERS[format](text):
        in_references = _lists_references(block, in_references)
        if in_references:
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
    """The strongest statement that is made and not supported, with the verdict that counts for it."""
    if named is not None:
        named = tuple(v for v in named if v.label is not FinalLabel.DIAGNOSTIC_ONLY) or named
    unsupported = []
    for one in found:
        statement = one.statement
        if one.force is Force.NEGATED and one.plain:
            statement = Statement.NOT_SHOWN
        elif one.force is not Force.ASSERTED:
            continue
        verdict = evidence.best(statement, named)
        supported = verdict is not None and verdict.supports(statement)
        if statement is Statement.NOT_SHOWN:
            # A negative that a stronger verdict contradicts is a mistake, not an overclaim.
            supported = verdict is not None and verdict.label not in SILENT
        if not supported:
            unsupported.append((statement, one.words, verdict))
    return max(unsupported, key=lambda item: tuple(Statement).index(item[0]), default=None)


# --- Names -----------------------------------------------------------------------------------------

_BESIDE = r"(?:models?|layers?|features|embeddings|network|dataset|data|recordings|study|corpus)"
_LAYERS = re.compile(r"\blayers?\s+(\d+)(?:\s*(?:,|and|or|to|-|–)\s*(\d+))*", re.IGNORECASE)


def named_claims(sentence: str, verdicts: Verdicts) -> tuple[Verdict, ...] | None:
    """Claims that a sentence is about, or None if it names nothing of the run.

    A name that is a plain lower-case word (``drift``) counts only next to a noun such as *model* or *dataset*, or with
    a capital inside the sentence; names with digits, marks or capitals always count. A name of one field narrows that
    field only.
    """
    layers = {n for m in _LAYERS.finditer(sentence) for n in re.findall(r"\d+", m[0])}
    fields = list(zip(*(v.claim for v in verdicts.claims if v.claim is not None), strict=True))
    chosen = []
    for number, values in enumerate(fields):
        known = set(values)
        if number == 2:
            named = {value for value in known if str(value) in layers}
        else:
            named = {n for n in known if _is_named(str(n), sentence, mechanism=number == 3)}
        chosen.append(named or known)
    claims = tuple(
        v
        for v in verdicts.claims
        if v.claim is not None
        and all(value in named for value, named in zip(v.claim, chosen, strict=True))
    )
    return claims if 0 < len(claims) < len(verdicts.claims) else None


def _is_named(name: str, sentence: str, *, mechanism: bool) -> bool:
    """Whether a sentence contains a name, however its parts are joined: gpt2, GPT-2, gpt_2."""
    parts = re.findall(r"[A-Za-z]+|\d+", name)
    if not parts or name == NONE:
        return False
    joined = r"[\s_\-–/.]*".join(map(re.escape, parts))
    plain = name.isalpha() and name.islower() and not mechanism
    for match in re.finditer(rf"(?<!\w){joined}(?:s|es)?(?!\w)", sentence, re.IGNORECASE):
        before, after = sentence[: match.start()], sentence[match.end() :]
        if (
            not plain
            or (match.start() > 0 and match[0][0].isupper())
            or re.match(rf"[`'\"*]*\s+{_BESIDE}\b", after)
            or re.search(rf"\b{_BESIDE}\s+[`'\"*]*$", before)
            or before.endswith(("`", "texttt{", "emph{"))
        ):
            return True
    return False
