r"""From a sentence to the statements that it makes: rules (``rules.txt``), word lists (``words.toml``), scope.

A rule is written on a line (indented lines continue it)::

    STATEMENT: element element … @noun @prose @needs SIDE @unless WORDS @never-with WORDS

An element matches one or more words: a class of ``words.toml`` in capitals, ``..4`` for up to four words of any kind,
or a regular expression; ``~`` after an element makes it optional.

``@needs``
    the sides of the comparison that the sentence must mention: model, brain, both, either.
``@unless``
    words that cancel the rule if the match contains them; ``@never-with``: if the clause contains them.
    ``{NAME}`` inserts a list of ``words.toml``.
``@with``
    classes of words that the sentence must contain outside the match, too.
``@noun``
    the match is a noun phrase, which states nothing without a verb of showing next to it.
``@prose``
    the rule does not apply to headings, items and cells, which often have no verb.

A sentence is cut into parts at semicolons, colons and conjunctions that open a clause, and after an opening subordinate
clause. A negation reaches what follows it in its part; a hedge its whole part; a report by somebody else everything
after it until the text speaks for itself again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import pairwise

from lpact.claim_audit.readers import BlockKind, Words
from lpact.claim_audit.statements import Statement


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
_DENIAL = re.compile(r"\b(?:not|no|nothing|never|neither|in place of|in lieu of|short of)\b")


def sides(line: str, model: re.Pattern[str]) -> set[str]:
    """Sides of the comparison that a sentence mentions; ``model`` finds the model side."""
    found = {side for side, own in {"model": model, "brain": PATTERNS["BRAIN"]}.items() if own.search(line)}
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
    with_: tuple[re.Pattern[str], ...]
    noun: bool
    prose: bool
    denies: bool


@dataclass(frozen=True)
class Rules:
    """All rules in order; ``model`` finds words of the model side."""

    rules: tuple[Rule, ...]
    model: re.Pattern[str]


@cache
def compile_rules(named: tuple[tuple[str, str], ...] = ()) -> Rules:
    """Compile all rules; ``named`` are expressions for names of a run, with the class that each is added to."""
    classes = {
        name: "|".join([*(own for where, own in named if where == name), *expressions])
        for name, expressions in _CLASSES.items()
    }
    text = files(__package__).joinpath("rules.txt").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n|^\n", "", text, flags=re.MULTILINE)
    lines = re.sub(r"\n +", " ", re.sub(r"\|\n +", "|", text)).splitlines()
    return Rules(tuple(_compile(line, classes) for line in lines), _words([classes["MODEL"]]))


def _compile(line: str, classes: Mapping[str, str]) -> Rule:
    name, _, rest = line.partition(": ")
    pattern, *options = rest.split(" @")
    given = {option.partition(" ")[0]: option.partition(" ")[2] for option in options}
    unless, never_with = (
        _words([given[option].format(**_LISTS)]) if option in given else None for option in ("unless", "never-with")
    )
    return Rule(
        Statement[name],
        _expression(pattern, classes),
        SIDES[given["needs"]] if "needs" in given else frozenset(),
        unless,
        never_with,
        tuple(_words([classes[own]]) for own in given.get("with", "").split()),
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


# --- Scope -----------------------------------------------------------------------------------------

_NEAR, _AFTER_REACH, _REPORT_REACH, _LONG, _SUBJECT = 6, 14, 10, 6, 6
"""Numbers of words: before a match, after it, after a reporter; of a long match, of a subject."""
_SHORTEST_SENTENCE = 4
_FOR_MODELS_ONLY = {
    Statement.PREDICTION,
    Statement.RELATIONAL,
    Statement.CEILING,
    Statement.ALIGNMENT,
}
_LEVELS = {*_FOR_MODELS_ONLY, Statement.MECHANISM}
_AGAINST_BRAINS = {
    Statement.BELOW_BRAINS,
    Statement.INDISTINGUISHABLE,
    Statement.ABOVE_BRAINS,
    Statement.PATTERN,
}
"""Statements within bounds: their rules come first, and no other rule reads the same words as more."""


class Force(StrEnum):
    """What a sentence does with a statement that it contains."""

    ASSERTED = "asserted"
    NEGATED = "negated"
    HEDGED = "hedged"
    QUOTED = "quoted"
    REPORTED = "reported"
    MENTIONED = "mentioned"


@dataclass(frozen=True)
class Found:
    """A statement in a sentence, and what the sentence does with it.

    ``plain`` marks a negative that is asserted ("is not aligned"), in contrast to one that withholds a statement ("does
    not show that …", "we do not claim that …").
    """

    statement: Statement
    force: Force
    words: str
    plain: bool = False


def find_statements(words: Words, rules: Rules, kind: BlockKind, *, question: bool) -> Iterator[Found]:
    """All statements of a sentence; a question or a quotation makes none."""
    scope = Scope.of(words)
    mentioned = sides(words.line, rules.model)
    long_enough = len(words.line.split()) >= _SHORTEST_SENTENCE
    prose = kind is BlockKind.PROSE or (long_enough and has("FINITE_VERBS", words.line))
    bounded: list[tuple[int, int]] = []
    for rule in rules.rules:
        if not rule.needs <= mentioned or (rule.prose and not prose):
            continue
        if bounded and rule.statement not in _AGAINST_BRAINS:
            words = words.without(bounded)
            scope, bounded = Scope.of(words), []
        for match in rule.pattern.finditer(words.line):
            if rule.unless is not None and rule.unless.search(match[0]):
                continue
            rest = words.line[: match.start()] + words.line[match.end() :]
            if not all(own.search(rest) for own in rule.with_):
                continue
            if rule.never_with is not None and rule.never_with.search(_claimed(scope, match)):
                continue
            if rule.noun and not _stated(scope, match):
                continue
            force = scope.force(match.start(), match.end(), noun=rule.noun, denies=rule.denies)
            if rule.statement in _AGAINST_BRAINS and force is not Force.NEGATED:
                bounded.append(match.span())
            if _excused(rule.statement, scope, match):
                continue
            if question or kind is BlockKind.QUOTE:
                force = Force.QUOTED if kind is BlockKind.QUOTE else Force.HEDGED
            yield _widened(rule.statement, force, scope, match)


# --- Force -----------------------------------------------------------------------------------------


def _first(text: str, n_words: int) -> str:
    return "".join(f"{word} " for word in text.split()[:n_words])


def _last(text: str, n_words: int) -> str:
    return " ".join(text.split()[-n_words:]) + " "


def _affirmed(text: str) -> bool:
    """Whether a text affirms what it names: "is confirmed", and not "is not confirmed" or "finds no support"."""
    return any(not has("NEGATIONS", _last(text[: m.start()], _NEAR)) for m in PATTERNS["AFFIRMED"].finditer(text))


@dataclass(frozen=True)
class Scope:
    """One sentence, cut into parts; emphatic phrases are blanked in ``line``."""

    words: Words
    line: str
    parts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, words: Words) -> Scope:
        """Cut a sentence."""
        line = PATTERNS["EMPHATIC"].sub(lambda m: re.sub(r"[^ ]", "_", m[0]), words.line)
        cuts = {0, len(line), *(m.end() for m in PATTERNS["CUT"].finditer(line))}
        if lead := PATTERNS["LEAD"].match(line):
            cuts.add(lead.end())
        return cls(words, line, tuple(pairwise(sorted(cuts))))

    def part(self, offset: int) -> tuple[int, int]:
        """Start and end of the part at an offset."""
        return next(((a, b) for a, b in self.parts if a <= offset < b), (0, len(self.line)))

    def force(self, start: int, end: int, *, noun: bool, denies: bool) -> Force:
        """What the sentence does with the statement between two offsets of its line."""
        if self._quoted(start, end):
            return Force.QUOTED
        if self._reported(start, end):
            return Force.REPORTED
        if self._negated(start, end, noun=noun, denies=denies):
            return Force.NEGATED
        if self._hedged(start, end, denies=denies):
            return Force.HEDGED
        return Force.MENTIONED if self._mentioned(start, end) else Force.ASSERTED

    def disowned(self, start: int, end: int) -> bool:
        """Whether a statement, negative or not, is withheld, asked or only named: "we do not claim that no model …"."""
        first, last = self.part(start)
        return (
            has("DISOWNED", self.line[first:start])
            or self._mentioned(start, end)
            or has("AFTER_NOUN", _first(self.line[end:last], _AFTER_REACH))
        )

    def _quoted(self, start: int, end: int) -> bool:
        """Whether the match is in quotation marks, or the sentence is about a wording: the slogan "…"."""
        first, last = self.words.index(start), self.words.index(end - 2)
        inside = self.words.quoted[first : last + 1]
        if 2 * sum(inside) >= len(inside) or sum(inside) > 1:
            return True
        outside = "".join(
            f"{word} " for word, quoted in zip(self.line.split(), self.words.quoted, strict=True) if not quoted
        )
        return sum(self.words.quoted) > 1 and has("WORDING", outside) and not _affirmed(outside)

    def _negated(self, start: int, end: int, *, noun: bool, denies: bool) -> bool:
        first, last = self.part(start)
        before, inside = self.line[first:start], self.line[start:end]
        return (
            has("NEGATIONS", before)
            or any(not has("SHOWING", before[m.end() :]) for m in PATTERNS["LOCAL_NEGATIONS"].finditer(before))
            or has("SHORT_NEGATIONS", _last(before, _NEAR))
            or (not denies and (has("NEGATIONS", inside) or has("WITHDRAWN", inside)))
            or self._taken_back(start, end, first, last, noun=noun)
        )

    def _taken_back(self, start: int, end: int, first: int, last: int, *, noun: bool) -> bool:
        near, after = _first(self.line[end:last], _AFTER_REACH), self.line[end:]
        opens = noun or len(self.line[first:start].split()) <= 1 or self.line.startswith("that ")
        if (opens and has("AFTER_NOUN", near)) or has("AFTER", near):
            return True
        return has("REFERRING", after) and (has("NEGATIONS", after) or has("HEDGES", after))

    def _hedged(self, start: int, end: int, *, denies: bool) -> bool:
        first, last = self.part(start)
        line = self.line
        if PATTERNS["OPENED"].match(line) and ";" not in line[:start]:
            return True
        if first == 0 and PATTERNS["PURPOSE"].match(line) and last < len(line):
            return True
        if has("GROUNDED", line) and has("CONSEQUENCE", line[first:last]):
            # What would happen to a brain, drawn from what was found, is a claim.
            line = re.sub(r"(?<![^ ])(?:would|should)(?= )", "_____", line)
        elif not has("CONDITIONS", line):
            line = PATTERNS["EFFECT"].sub("_____", line)
        if has("HEDGES", line[first:start]) or has("HEDGES", line[end:last]):
            return True
        inside = line[start:end]
        if denies:
            return has("SOFT_HEDGES", inside)
        return has("HEDGES" if len(inside.split()) > _LONG else "MODALS", inside)

    def _mentioned(self, start: int, end: int) -> bool:
        first, last = self.part(start)
        mention = PATTERNS["MENTIONS"].search(self.line[first:end])
        if mention is None or first + mention.start() >= start:
            return False
        around = self.words.line[first : first + mention.start()] + self.words.line[end:last]
        return not _affirmed(around)

    def _reported(self, start: int, end: int) -> bool:
        line, (first, last) = self.line, self.part(start)
        for other in PATTERNS["OTHERS"].finditer(line[:start]):
            own = has("OWN", line[other.end() : start])
            if not own and has("REPORTING", self._reach(other, end)):
                return True
        subject = PATTERNS["PEOPLE_SUBJECT"].match(line, first, start)
        if subject is not None and not has("OWN", line[subject.start() : start]):
            return True
        for verb in PATTERNS["PERSON_VERBS"].finditer(line):
            if verb.end() > end:
                break
            before = _last(line[: verb.start()], _SUBJECT)
            if has("NOUN_BEFORE", before) or not before.strip():
                continue
            if not has("OWN", before) and not has("NO_PERSON", before):
                return True
        own = has("OWN", line[first:start])
        if PATTERNS["LEAD"].match(line) and first == self.parts[0][1]:
            # "In the press, …": an opening phrase attributes what follows it.
            first = 0
        return has("PASSIVE_REPORT", line[first:last]) and not own

    def _reach(self, other: re.Match[str], end: int) -> str:
        """Words in which somebody else's verb can follow: up to a comma, unless they open the sentence."""
        after = self.line[other.end() : end]
        if other.start() > 0 and not re.match(r"[^,]*, (?:who|which|in|on) ", after):
            after = after.partition(", ")[0] + " "
        return _first(after, _REPORT_REACH)


# --- Content ---------------------------------------------------------------------------------------


def _claimed(scope: Scope, match: re.Match[str]) -> str:
    """The part without its grounds: what follows "the scores show that" and precedes ", as they attest"."""
    line = scope.words.line
    first, last = scope.part(match.start())[0], scope.part(match.end() - 1)[1]
    for grounds in PATTERNS["GROUNDS_BEFORE"].finditer(line, first, match.start()):
        first = grounds.end()
    after = PATTERNS["GROUNDS_AFTER"].search(line, match.end() - 1, last)
    return line[first : after.start() if after else last]


def _stated(scope: Scope, match: re.Match[str]) -> bool:
    """Whether a noun phrase is part of a statement: a verb of showing is next to it."""
    first, last = scope.part(match.start())
    around = scope.words.line[first : match.start()] + scope.words.line[match.end() : last]
    emphatic = "_" in scope.line[first:last].split(" ")[0] or " __" in scope.line[first:last]
    return emphatic or has("SHOW", around)


def _excused(statement: Statement, scope: Scope, match: re.Match[str]) -> bool:
    """Whether the clause is about a positive control, a control or a score instead of a model or a region."""
    first, last = scope.part(match.start())
    part = scope.words.line[first:last]
    before, after = part[: match.start() - first], part[match.start() - first :]
    rest = PATTERNS["NOT_A_MODEL"].sub("", part)
    if statement in _FOR_MODELS_ONLY and rest != part and not has("MODEL", rest):
        return True
    if PATTERNS["CONTROL_ACTS"].match(part):
        return True
    if statement is Statement.CAUSATION:
        return has("SCORE_OF", before) or has("IN_PREDICTOR", part)
    any_model = {*_AGAINST_BRAINS, Statement.PREDICTION, Statement.CEILING, Statement.EQUIVALENCE}
    if statement in any_model and has("ANY_MODEL", before):
        return True
    if statement is not Statement.PREDICTION:
        return False
    by_control = has("CONTROL_SUBJECT", before) or has("BY_CONTROL", after)
    return by_control and not has("DENIED", part)


def _widened(statement: Statement, force: Force, scope: Scope, match: re.Match[str]) -> Found:
    """The statement, or the universal one if the sentence is about all models instead of those of a study."""
    line, words = scope.words.line, match[0].strip()
    first, last = scope.part(match.start())
    part = line[first : scope.part(match.end() - 1)[1]]
    against = statement in _AGAINST_BRAINS
    tested = force is Force.ASSERTED and (statement in _LEVELS or against)
    if tested and has("REQUIRED", scope.line[first:last]):
        return Found(statement, Force.MENTIONED, words)
    bounded = has("BOUNDED", line)
    if force is Force.NEGATED and not bounded:
        denied = has("NO_MODEL", part) or has("NEVER", part) or has("GENERIC_NEGATED", line[:last])
        if (
            denied
            and not has("PAST_DENIAL", part)
            and not has("UNSHOWN", part)
            and statement is not Statement.PREDICTION
            and not scope.disowned(match.start(), match.end())
        ):
            return Found(Statement.UNIVERSAL_NEGATIVE, Force.ASSERTED, words)
    if tested:
        wide = against or statement is Statement.ALIGNMENT
        generic = wide and has("GENERIC_SUBJECT", part)
        # "Every brain" of a comparison is one of the study.
        if has("UNIVERSAL", part.replace(match[0], "") if against else part) or (generic and not bounded):
            return Found(Statement.UNIVERSAL, Force.ASSERTED, words)
    plain = force is Force.NEGATED and statement in _LEVELS and not has("WITHHELD", part)
    return Found(statement, force, words, plain)
