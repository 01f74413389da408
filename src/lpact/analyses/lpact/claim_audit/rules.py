r"""Rules that find statements (``rules.txt``), and the word lists that they use (``words.toml``).

A rule is written on a line (indented lines continue it)::

    STATEMENT: element element … @noun @prose @needs SIDE @unless WORDS @never-with WORDS

An element matches one or more words: a class of ``words.toml`` in capitals, ``..4`` for up to four words of any kind,
or a regular expression; ``~`` after an element makes it optional.

``@needs``
    the sides of the comparison that the sentence must mention: model, brain, both, either.
``@unless``
    words that cancel the rule if the match contains them; ``@never-with``: if the clause contains them.
    ``{NAME}`` inserts a list of ``words.toml``.
``@noun``
    the match is a noun phrase, which states nothing without a verb of showing beside it.
``@prose``
    the rule does not apply to headings, items and cells, which often have no verb.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from lpact.analyses.lpact.claim_audit.statements import Statement


def _words(alternatives: Iterable[str]) -> re.Pattern[str]:
    """A pattern for whole words: one of ``alternatives``."""
    return re.compile(rf"(?<![^ ])(?:{'|'.join(alternatives)})(?= )")


_TABLES = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
_CLASSES: dict[str, list[str]] = _TABLES["classes"]
_LISTS = {name: "|".join(entries) for name, entries in _TABLES["lists"].items()}
_WORDS: dict[str, list[str]] = _TABLES["scope"] | _TABLES["reports"]


def _inserted(pattern: str) -> str:
    """A pattern with ``{NAME}`` replaced by the list of that name."""
    return re.sub(r"\{([A-Z]+)\}", lambda m: "|".join(_WORDS[m[1]]), pattern)


PATTERNS = {
    **{name: _words(entries) for name, entries in (_CLASSES | _WORDS).items()},
    **{name: re.compile(_inserted(pattern)) for name, pattern in _TABLES["patterns"].items()},
}
"""Everything in ``words.toml``, compiled, by name."""


def has(name: str, text: str) -> bool:
    """Whether ``text`` contains a match of ``PATTERNS[name]``."""
    return PATTERNS[name].search(text) is not None


SIDES = {
    "both": frozenset({"model", "brain"}),
    "either": frozenset({"either"}),
    "model": frozenset({"model"}),
    "brain": frozenset({"brain"}),
}
_BOTH_SIDES = _words([r"(?:the )?(?:two|both) (?:systems?|kinds?|sides)"])
_ANY_GAP = re.compile(r"\.\.(\d+) ")
_CLASS = re.compile(r"\b[A-Z]{4,}\b")
_DENIAL = re.compile(r"\b(?:not|no|nothing|never|neither|in place of|in lieu of)\b")


def sides(line: str) -> set[str]:
    """Sides of the comparison that a sentence mentions."""
    found = {side for side in ("model", "brain") if has(side.upper(), line)}
    if _BOTH_SIDES.search(line):
        found = {"model", "brain"}
    return found | ({"either"} if found else set())


@dataclass(frozen=True)
class Rule:
    """A compiled rule; ``denies`` if a negation is part of what it looks for."""

    statement: Statement
    pattern: re.Pattern[str]
    needs: frozenset[str]
    unless: re.Pattern[str] | None
    never_with: re.Pattern[str] | None
    noun: bool
    prose: bool
    denies: bool


@cache
def compile_rules(mechanisms: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """Compile all rules; ``mechanisms`` are expressions for those of a run, added to the class NAMED."""
    named = {**_CLASSES, "NAMED": [*mechanisms, *_CLASSES["NAMED"]]}
    classes = {name: "|".join(expressions) for name, expressions in named.items()}
    text = files(__package__).joinpath("rules.txt").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n|^\n", "", text, flags=re.MULTILINE)
    lines = re.sub(r"\n +", " ", re.sub(r"\|\n +", "|", text)).splitlines()
    return tuple(_compile(line, classes) for line in lines)


def _compile(line: str, classes: Mapping[str, str]) -> Rule:
    name, _, rest = line.partition(": ")
    pattern, *options = rest.split(" @")
    given = {option.partition(" ")[0]: option.partition(" ")[2] for option in options}
    unless, never_with = (
        _words([given[option].format(**_LISTS)]) if option in given else None
        for option in ("unless", "never-with")
    )
    return Rule(
        Statement[name],
        _expression(pattern, classes),
        SIDES[given["needs"]] if "needs" in given else frozenset(),
        unless,
        never_with,
        "noun" in given,
        "prose" in given,
        _DENIAL.search(pattern) is not None,
    )


def _expression(pattern: str, classes: Mapping[str, str]) -> re.Pattern[str]:
    parts = []
    for element in _elements(pattern):
        if gap := _ANY_GAP.fullmatch(f"{element} "):
            parts.append(_gap(gap))
            continue
        body = _CLASS.sub(lambda m: f"(?:{classes[m[0]]})", element.removesuffix("~"))
        body = _ANY_GAP.sub(_gap, body)
        parts.append(f"(?:(?:{body}) )?" if element.endswith("~") else f"(?:{body}) ")
    return re.compile(r"(?<![^ ])" + "".join(parts))


def _gap(match: re.Match[str]) -> str:
    """Up to so many words, none of them a mark that ends a clause."""
    return f"(?:[^ ;:?]+ ){{0,{match[1]}}}?"


def _elements(pattern: str) -> list[str]:
    """Elements of a rule: split at spaces outside of brackets."""
    elements = [""]
    depth = 0
    for character in pattern:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == " " and depth == 0:
            elements.append("")
        else:
            elements[-1] += character
    return elements
