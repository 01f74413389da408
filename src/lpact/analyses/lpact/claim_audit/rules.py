r"""Rules that find statements: which words, in which order, say what. They are in ``rules.txt``.

A rule is written on a line (indented lines continue it)::

    STATEMENT: element element … @noun @prose @needs SIDE @unless WORDS @never-with WORDS

An element stands for one word or more: a class of ``words.toml`` in capitals, ``..4`` for up to four words of any kind,
or a regular expression; ``~`` after an element makes it optional.

``@needs``
    the sides of the comparison that the sentence must mention: model, brain, both, either.
``@unless``
    words that take the rule back where they stand in the stretch found; ``@never-with`` where they stand anywhere
    in the sentence. ``{NAME}`` stands for a list of ``words.toml``.
``@noun``
    the stretch is a noun phrase, which says nothing until a verb of showing stands beside it.
``@prose``
    the rule is not for headings, items and cells, which often have no verb.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from lpact.analyses.lpact.claim_audit.statement import Statement
from lpact.analyses.lpact.claim_audit.word_lists import CLASSES, LISTS, words_pattern

SIDES = {
    "both": frozenset({"model", "brain"}),
    "either": frozenset({"either"}),
    "model": frozenset({"model"}),
    "brain": frozenset({"brain"}),
}
_GAP = re.compile(r"\.\.(\d+) ")
_CLASS = re.compile(r"\b[A-Z]{4,}\b")
_DENIAL = re.compile(r"\b(?:not|no|nothing|never|neither|in place of|in lieu of)\b")


@dataclass(frozen=True)
class Rule:
    """A rule, compiled; ``denies`` if a negation is part of what it looks for."""

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
    added = {"NAMED": mechanisms}
    classes = {
        name: "|".join([*added.get(name, ()), *expressions])
        for name, expressions in CLASSES.items()
    }
    return tuple(_compile(line, classes) for line in _lines())


def _lines() -> list[str]:
    """Rules of ``rules.txt``, continued lines joined."""
    text = files(__package__).joinpath("rules.txt").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n|^\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\n +", " ", re.sub(r"\|\n +", "|", text)).splitlines()


def _compile(line: str, classes: Mapping[str, str]) -> Rule:
    name, _, rest = line.partition(": ")
    pattern, *options = rest.split(" @")
    given = {option.partition(" ")[0]: option.partition(" ")[2] for option in options}
    return Rule(
        Statement[name],
        _expression(pattern, classes),
        SIDES[given["needs"]] if "needs" in given else frozenset(),
        words_pattern(given["unless"].format(**LISTS)) if "unless" in given else None,
        words_pattern(given["never-with"].format(**LISTS)) if "never-with" in given else None,
        "noun" in given,
        "prose" in given,
        _DENIAL.search(pattern) is not None,
    )


def _expression(pattern: str, classes: Mapping[str, str]) -> re.Pattern[str]:
    parts = []
    for element in _elements(pattern):
        if gap := _GAP.fullmatch(f"{element} "):
            parts.append(_gap(gap))
            continue
        body = _CLASS.sub(lambda m: f"(?:{classes[m[0]]})", element.removesuffix("~"))
        body = _GAP.sub(_gap, body)
        parts.append(f"(?:(?:{body}) )?" if element.endswith("~") else f"(?:{body}) ")
    return re.compile(r"(?<![^ ])" + "".join(parts))


def _gap(match: re.Match[str]) -> str:
    """Up to so many words, none of them a mark that ends a clause."""
    return f"(?:[^ ;:?]+ ){{0,{match[1]}}}?"


def _elements(pattern: str) -> Iterator[str]:
    """Elements of a rule: split at spaces outside of brackets."""
    depth = 0
    element = ""
    for character in pattern:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == " " and depth == 0:
            yield element
            element = ""
        else:
            element += character
    yield element


BRAIN_SIDE = words_pattern(CLASSES["BRAIN"])
MODEL_SIDE = words_pattern(CLASSES["MODEL"])
BOTH_SIDES = words_pattern(r"(?:the )?(?:two|both) (?:systems?|kinds?|sides)")
