r"""Rules that find statements: which words, in which order, say what.

A rule is written on a line (indented lines continue it)::

    STATEMENT: element element … @noun @prose @needs SIDE @unless WORDS @never-with WORDS

An element stands for one word or more: a class of ``lexicon`` in capitals, ``..4`` for up to four words of any kind,
or a regular expression; ``~`` after an element makes it optional.

``@needs``
    the sides of the comparison that the sentence must mention: model, brain, both, either.
``@unless``
    words that take the rule back where they stand in the stretch found; ``@never-with`` where they stand anywhere
    in the sentence. ``{NAME}`` stands for a list of ``WORD_LISTS``.
``@noun``
    the stretch is a noun phrase, which says nothing until a verb of showing stands beside it.
``@prose``
    the rule is not for headings, items and cells, which often have no verb.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from lpact.analyses.lpact.claim_audit import rules_levels, rules_meaning, rules_never
from lpact.analyses.lpact.claim_audit.lexicon import CLASSES
from lpact.analyses.lpact.claim_audit.statement import Statement

WORD_LISTS = {
    # What a model explains when it explains no more than a score.
    "VARIANCE": r"varian\w+|effects?|gap|differences?|drops?|percent|%|advantage|gains?|apparent|improvement|scores?",
    # The relations among units, which have a level of their own.
    "GEOMETRY_WORDS": r"relational|geometr\w+|profiles?|similarity|patterns?|topograph\w+|relations?",
    # Results in numbers, as against conclusions.
    "NUMBERS": (
        r"predicts?|predicted|predictive(?! (?:processing|coding))|predictions? (?:of|beyond|scores?|accuracy)|"
        r"scores?|correlat\w*|"
        r"controls?|gates?|reliab\w+|stable|samples?|features|nuisances?|regress\w*|"
        r"varian\w+|ceilings?|rows?|candidates?|profiles?|geometr\w+|relational|assay|structure|signals?|recordings?|"
        r"surviv\w+|held-out"
    ),
    # Wording of a measurement: what was scored, against what, on what.
    "SCORED": (
        r"scores?|scored|correlat\w*|controls?|nuisances?|baselines?|surrogates?|shuffl\w+|shifted|circular\w*|"
        r"permut\w+|varian\w+|gates?|ridge|regress\w*|held-out|ceilings?|profiles?|datasets?|rows?|extract\w*|"
        r"averag\w*|measured|electrodes?|sensors?|voxels?|weights|accuracy|accurately|predictions? (?:of|in|at|from)|"
        r"predicting|predictivity|fitted|compar(?:e|ed|ison)|benchmarks?"
    ),
    # How brains are recorded, and what they respond to.
    "RECORDED": (
        r"record\w*|listened|scann\w+|acquired|stimul\w+|responds?|responded|"
        r"responses? to (?:speech|words?|stories|sounds?|language|natural|repeated)|participants were"
    ),
    # Positive controls.
    "CHAIN": r"implant\w*|positive controls?|assay",
    # Plain scores, methods, and scores set against others.
    "RAW": (
        r"raw|can|scores?|correlat\w+|controls?|nuisances?|baselines?|chance|zero|but|however|although|"
        r"trained|training|"
        r"no better|conventional|attempt\w*|used|using|fitted|fit|readout|ridge|to predict|regressors?|how well"
    ),
    # Talk about a field of research.
    "TALK": (
        r"interest\w*|tools?|popular\w*|stud(?:y|ies|ied|ying)|questions?|papers?|research\w*|fields?|"
        r"literature|topics?|"
        r"compar\w+|requires?|propos\w+|candidate (?:models?|mechanisms?|accounts?)"
    ),
    # Alignment in time.
    "TIMING": r"rates?|onsets?|times?|timing|clocks?|triggers?|sampling|samples|stimul\w+|audio|transcripts?|"
    "time-series|series",
    # Methods, numbers and talk about the comparison itself.
    "METHOD": (
        r"controls?|nuisances?|basesurrogates?|shuffl\w+|shifted|scor(?:e|es|ed|ing)|correlation\w*|correlated|"
        r"varian\w+|gates?|candidates?|"
        r"rows?|subject-runs?|ridge|regress\w+|fit|fits|fitted|fitting|extract\w+|(?:was|were) trained|"
        r"record\w+|listened|"
        r"participants|measur\w+|compar\w+|averag\w+|window|ms|hz|datasets?|samples?|outcome|verdicts?|reliab\w+|"
        r"used|using|we use|useful|tables?|figures?|fig|sections?|tools?|stud(?:y|ies|ied|ying)|questions?|"
        r"papers?|methods?|"
        r"approach\w*|benchmark\w*|frameworks?|research\w*|fields?|topics?|literature|evaluat\w+|investigat\w+|"
        r"predict|predicts|predicted|encoding|profiles?|geometr\w+|relational|patterns?|was|were|align\w*|strip\w*|"
        r"ceilings?|probab\w+|outscor\w+|outperform\w*|fMRI scans?|analys\w+|contrast\w*|debate\w*|interest\w*|"
        r"model of|models of|signals?|raw|effects?|drop\w*|assay|simulat\w+|implant\w*|"
        r"series|events?|planted|noise|"
        r"performance|performed? (?:better|worse|at|above|below|well)|best|predictions? (?:of|in|at|from)|"
        r"predicting|predictivity|voxels?|plots?|lines?|significan\w+|requir\w+|"
        r"convert\w*|goals?|"
        r"pass|passes"
    ),
}
SIDES = {
    "both": frozenset({"model", "brain"}),
    "either": frozenset({"either"}),
    "model": frozenset({"model"}),
    "brain": frozenset({"brain"}),
}
TEXTS = (
    rules_never.EQUIVALENCE,
    rules_never.KINSHIP,
    rules_never.EXPLANATION,
    rules_never.CONCLUSION,
    rules_never.NEVER,
    rules_never.TOGETHER,
    rules_meaning.LIKENESS,
    rules_meaning.REPLACEMENT,
    rules_meaning.HUMANITY,
    rules_meaning.THEORY,
    rules_meaning.CONSEQUENCE,
    rules_meaning.BEYOND,
    rules_levels.ALIGNMENT,
    rules_levels.PREDICTION,
    rules_levels.RELATIONAL,
    rules_levels.MECHANISM,
    rules_levels.CEILING,
)

_GAP = re.compile(r"\.\.(\d+) ")
_CLASS = re.compile(r"\b[A-Z]{4,}\b")
_DENIAL = re.compile(r"\b(?:not|no|nothing|never|neither|in place of|in lieu of)\b")


def words_pattern(alternatives: str | Iterable[str]) -> re.Pattern[str]:
    """A pattern for whole words: one of ``alternatives``."""
    joined = alternatives if isinstance(alternatives, str) else "|".join(alternatives)
    return re.compile(rf"(?<![^ ])(?:{joined})(?= )")


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
    return tuple(_compile(line, classes) for text in TEXTS for line in _lines(text))


def _lines(text: str) -> Iterator[str]:
    """Rules of a text, continued lines joined."""
    joined = re.sub(r"\|\n +", "|", text.strip("\n"))
    yield from re.sub(r"\n +", " ", joined).splitlines()


def _compile(line: str, classes: Mapping[str, str]) -> Rule:
    name, _, rest = line.partition(": ")
    pattern, *options = rest.split(" @")
    given = {option.partition(" ")[0]: option.partition(" ")[2] for option in options}
    return Rule(
        Statement[name],
        _expression(pattern, classes),
        SIDES[given["needs"]] if "needs" in given else frozenset(),
        words_pattern(given["unless"].format(**WORD_LISTS)) if "unless" in given else None,
        words_pattern(given["never-with"].format(**WORD_LISTS)) if "never-with" in given else None,
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
