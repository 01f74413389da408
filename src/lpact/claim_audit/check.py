"""Compare a text with the verdicts of a run."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from lpact.claim_audit.detect import Force, Found, Rules, compile_rules, find_statements
from lpact.claim_audit.readers import (
    JOINER,
    READERS,
    Block,
    BlockKind,
    Format,
    Sentence,
    line_starts,
    quoted_characters,
    read_words,
    split_sentences,
)
from lpact.claim_audit.statements import NONE, Statement, Verdict, Verdicts

_SUFFIXES: dict[str, Format] = {
    **dict.fromkeys(("md", "markdown", "qmd", "rmd"), "markdown"),
    **dict.fromkeys(("tex", "latex", "ltx"), "latex"),
}
_REFERENCES = re.compile(r"[\s#*\d.]*(?:references|bibliography|literature cited|works cited)[\s:*.]*$", re.IGNORECASE)
_APPENDIX = re.compile(r"[\s#*\d.]*(?:appendix|appendices|supplement)", re.IGNORECASE)
# An entry of a list of references: initials of an author, and a year, an arXiv number or a digital object identifier.
_REFERENCE = re.compile(
    r"^(?:-\s*)?(?:\[\d+\]\s*)?(?=.*\b[A-Z]\. ?(?:[A-Z]\. ?)*[A-Z][a-z]+).*"
    r"(?:\([12]\d{3}[a-z]?\)\.?$|\barXiv:|\bdoi\b|\d+, \d+[–-]\d+|^\[\d+\])|^(?:-\s*)?\[\d+\]\s+[A-Z]\.",
    re.DOTALL,
)
# "Hypothesis 2." marks the next sentence as one.
_LABEL = re.compile(r"[\s*]*(?:hypothes[ie]s|question|aim|conjecture)\s*\w{0,3}\.[\s*]*", re.IGNORECASE)


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
    rules = compile_rules(_named_words(evidence))
    names = _names_in_lower_case(evidence)
    starts = line_starts(text)
    overclaims = []
    for sentence, found in _statements(text, format, rules, names):
        written = text[sentence.start : sentence.end]
        unsupported = _strongest(found, evidence, named_claims(written, evidence))
        if unsupported is None:
            continue
        statement, words, verdict = unsupported
        reason, wording = evidence.said(statement, verdict)
        line = bisect_right(starts, sentence.start)
        overclaims.append(
            Overclaim(
                line=line,
                column=sentence.start - starts[line - 1] + 1,
                sentence=" ".join(written.split()),
                statement=statement,
                words=words,
                reason=reason,
                wording=wording,
            )
        )
    return overclaims


def _statements(text: str, format: Format, rules: Rules, names: list[str]) -> Iterator[tuple[Sentence, list[Found]]]:
    in_references = False
    for block in READERS[format](text):
        in_references = _lists_references(block, in_references)
        if in_references:
            continue
        quoted = quoted_characters(block.text)
        before = ""
        for sentence in split_sentences(block, names):
            if _REFERENCE.search(sentence.text):
                continue
            own = slice(sentence.start - block.start, sentence.end - block.start)
            words = read_words(sentence.text, quoted[own])
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
        named = tuple(v for v in named if v.confirmatory) or named
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
            testable = statement in evidence.kind.tests
            supported = testable and verdict is not None and verdict.label not in verdict.silent
        if not supported:
            unsupported.append((statement, one.words, verdict))
    return max(unsupported, key=lambda item: tuple(Statement).index(item[0]), default=None)


_NEARBY = {
    "measure": r"(?:measures?|metrics?|predictivity|regression|similarity|scores?|tests?)",
    "region": r"(?:areas?|regions?|cortex|gyrus|units|electrodes|voxels|neurons)",
}
_NEARBY_ANY = r"(?:models?|layers?|features|embeddings|network|dataset|data|recordings|study|corpus)"
_BY = re.compile(r"\b(?:by|under|with|using)\s+[`'\"*]*$", re.IGNORECASE)
_QUOTED = re.compile(r"[\"'“‘]$")
_NO_NAME = (NONE, "all")
"""Values of a field that name nothing: no mechanism, all regions."""
_ADDED_TO = {
    "mechanism": ("NAMED", "{}s?", " "),
    "measure": ("MEASURE", "{}", "[ _-]"),
    "dataset": ("DATASET", "(?:in|on|for) (?:the )?{}", "[ _-]"),
    "model": ("MODEL", "{}", "[ _-]"),
}
"""Class of words that names of a field are added to, as which expression, and what joins their parts."""
_LAYERS = re.compile(r"\blayers?\s+(\d+)(?:\s*(?:,|and|or|to|-|–)\s*(\d+))*", re.IGNORECASE)


def _named_words(verdicts: Verdicts) -> tuple[tuple[str, str], ...]:
    """Expressions for names of a run, with the class of words that they are added to."""
    found = dict.fromkeys(
        (*_ADDED_TO[field], str(value))
        for v in verdicts.claims
        for field, value in zip(verdicts.fields, v.claim or (), strict=False)
        if field in _ADDED_TO and value != NONE and not (field == "model" and _is_word(str(value)))
    )
    return tuple(
        (word, pattern.format(re.escape(name.lower()).replace("_", joint)))
        for word, pattern, joint, name in sorted(found)
    )


def _names_in_lower_case(verdicts: Verdicts) -> list[str]:
    """Expressions for names of a run that begin in lower case, and so do sentences that begin with them."""
    names = {str(value) for v in verdicts.claims for value in v.claim or ()} - {*_NO_NAME}
    return [rf"{_spelled(name)}(?!\w)" for name in sorted(names) if re.match("[a-z]", name)]


def _is_word(name: str) -> bool:
    """Whether a name is a plain lower-case word, which can also mean something else."""
    return name.isalpha() and name.islower()


def _spelled(name: str) -> str:
    """An expression for a name however its parts are joined: gpt2, gpt-2, gpt_2."""
    return rf"[\s_\-–/.\\{JOINER}]*".join(re.findall(r"[A-Za-z]+|\d+", name))


def named_claims(sentence: str, verdicts: Verdicts) -> tuple[Verdict, ...] | None:
    """Claims that a sentence is about, or None if it names nothing of the run.

    A name that is a plain lower-case word (``drift``) counts only in quotation marks, next to a noun such as *model* or
    *dataset*, or with a capital inside the sentence; names with digits, marks or capitals always count. A name of one
    field narrows that field only.
    """
    layers = {n for m in _LAYERS.finditer(sentence) for n in re.findall(r"\d+", m[0])}
    values = zip(*(v.claim for v in verdicts.claims if v.claim is not None), strict=True)
    chosen = []
    for field, own in zip(verdicts.fields, values, strict=False):
        known = set(own)
        if field == "layer":
            named = {value for value in known if str(value) in layers}
        else:
            named = {n for n in known if _is_named(str(n), sentence, field)}
        chosen.append(named or known)
    claims = tuple(
        v
        for v in verdicts.claims
        if v.claim is not None and all(value in named for value, named in zip(v.claim, chosen, strict=True))
    )
    return claims if 0 < len(claims) < len(verdicts.claims) else None


def _is_named(name: str, sentence: str, field: str) -> bool:
    """Whether a sentence contains a name, however its parts are joined: gpt2, GPT-2, gpt_2."""
    joined = _spelled(name)
    if not joined or name in _NO_NAME:
        return False
    plain = _is_word(name) and field != "mechanism"
    # The region IT is not "it".
    case = re.NOFLAG if field == "region" and not plain else re.IGNORECASE
    nearby = _NEARBY.get(field, _NEARBY_ANY)
    for match in re.finditer(rf"(?<!\w){joined}(?:s|es)?(?!\w)", sentence, case):
        before, after = sentence[: match.start()], sentence[match.end() :]
        if (
            not plain
            or (match.start() > 0 and match[0][0].isupper())
            or re.match(rf"[`'\"*]*\s+{nearby}\b", after)
            or re.search(rf"\b{nearby}\s+[`'\"*]*$", before)
            or (field == "measure" and _BY.search(before))
            or (_QUOTED.search(before) and re.match(r"[\"'”’]", after))
            or before.endswith(("`", "texttt{", "emph{"))
        ):
            return True
    return False
