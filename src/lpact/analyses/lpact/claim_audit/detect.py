"""From a sentence to the statements that it makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lpact.analyses.lpact.claim_audit.blocks import BlockKind
from lpact.analyses.lpact.claim_audit.rules import (
    BOTH_SIDES,
    BRAIN_SIDE,
    MODEL_SIDE,
    Rule,
)
from lpact.analyses.lpact.claim_audit.scope import NOT_A_MODEL, Force, Scope
from lpact.analyses.lpact.claim_audit.statement import Statement
from lpact.analyses.lpact.claim_audit.tokens import Words
from lpact.analyses.lpact.claim_audit.word_lists import CLASSES, SCOPE, words_pattern

_GENERIC = SCOPE["GENERIC"][0]
SHOW = words_pattern(CLASSES["SHOW"])
REQUIRED = words_pattern(SCOPE["REQUIRED"])
BOUNDED = words_pattern(SCOPE["BOUNDED"])
UNIVERSAL = words_pattern(SCOPE["UNIVERSAL"])
NO_MODEL = words_pattern(
    r"no (?:[\w-]+ )?(?:language model|llm|transformer|(?:neural )?network|machine|model|architecture|"
    r"artificial \w+)s?"
)
UNSHOWN = words_pattern(
    r"(?:not|never|neither) (?:\w+ )?(?:been )?(?:demonstrated|shown|established|supported|confirmed|tested|"
    r"claimed|proven|warranted|implied|obtained)"
)
NEVER = re.compile(
    rf"(?:^|(?<=[,;:] )|(?<=that )|(?<=and )){_GENERIC} (?:\w+ )?(?:never|will not|can not) "
)
PAST_DENIAL = words_pattern(
    r"no (?:[\w-]+ ){0,2}?(?:models?|llms?|transformers?|networks?|architectures?|layers?|machines?) "
    r"(?:[\w-]+ed|was|were|did|had|came|fell|beat|"
    r"met|rose|turned|has been|have been)"
)
WITHHELD = words_pattern(
    r"evidence|claim\w*|show\w*|prov\w+|mean\w*|impl\w+|establish\w*|demonstrat\w+|conclu\w+|interpret\w*|follow\w*|"
    r"assert\w*|say|said|know\w*|whether|tell|license\w*|support\w*|tested|candidate\w*|gates?|wrong|premature|"
    r"refrain\w*|amount\w*|confirm\w*|rather than|without|far from|caution\w*|warn\w*|avoid\w*"
)
GENERIC = re.compile(rf"(?:^|(?<=[,;:] )|(?<=that )|(?<=and )|(?<=but )|(?<=do )){_GENERIC} ")
GENERIC_NEGATED = re.compile(
    rf"(?:^|(?<=[,;:] )|(?<=that )|(?<=and )|(?<=but ))(?:{_GENERIC}|(?:human )?brains?(?! (?:alignment|"
    rf"scores?|activity|responses?|data|recordings?|evidence))|"
    r"artificial intelligence|ai|humans|people) (?:\w+ )?"
    r"(?:do|does|can|could|will|are|is|have|has|share|shares) (?:\w+ )?(?:not|never|nothing|no|"
    r"fundamentally|entirely)"
)
GROUNDS_BEFORE = re.compile(
    r"(?<![^ ])(?:(?:show|demonstrat|prov|reveal|establish|confirm|indicat|impl|mean|tell|conclud|attest|"
    r"infer|find|found|"
    r"evidence|proof|testif|certif|follow|know|report|learn|deduc|gather|recogni|see)\w* (?:(?:us|here|"
    r"clearly|now|thus|therefore|, (?:[^ ,;:?]+ ){1,5},) )*that|"
    r"unless) "
)
GROUNDS_AFTER = re.compile(
    r" , (?:as|which|and) (?:[^ ;:?]+ ){1,8}?(?:attest|show|prov|confirm|mak|demonstrat|testif|document|"
    r"reveal|establish)\w* "
)
FINITE = words_pattern(
    r"is|are|has|have|does|do|can|must|will|was|were|became|emerges?|speak|share|thinks?|works?|becomes?|"
    r"understands?|process(?:es)?|"
    r"reproduces?|captures?|explains?|reveals?|mirrors?|match(?:es)?|converges?|align|aligns|uses?|"
    r"computes?|implements?|predicts?|"
    r"resembles?|solves?|shows?|proves?|follows?|reads?|learns?|represents?|encodes?|runs?|reach(?:es)?|"
    r"recapitulates?|track|tracks"
)
_SENTENCE = 4
CONTROL_SUBJECT = re.compile(
    r"^(?:[^ ;:?]+ ){0,7}?(?:(?:random|shuffled|permuted|shifted|surrogate|scrambled|untrained|"
    r"autocorrelated|phase-randomi[sz]ed|"
    r"nuisance|control|low-level|acoustic|static|circularly|reversed|time-shifted) (?:[^ ;:?]+ "
    r")?(?:features?|embeddings?|versions?|"
    r"models?|vectors?|predictors?|signals?|series|regressors?|network|inputs?|layers?|states|copy|"
    r"baselines?)|surrogates?|"
    r"shuffles?|(?:circular )?shifts?|controls?|envelope|word (?:rate|onsets?|frequency|length)|baselines?|nuisance) "
    r"(?!(?:[^ ;:?]+ ){0,8}(?:fail\w*|not|no|never|unable|less|worse|short) )"
)
CONTROL_ACTS = re.compile(
    r"(?:(?:even|in|on|of|for) (?:[^ ,;:?]+ ){1,4}, )?(?:(?:the|a|an|each|every|all|some|even|both|its|"
    r"their) )*(?:[^ ,;:?]+ ){0,3}?"
    r"(?:controls?|surrogates?|baselines?|shuffles?|shifts?|random walks?|random features?|nuisance \w+|"
    r"nuisances?|envelope|word rate|"
    r"shuffled \w+|random \w+|circular shift|word onsets?|autocorrelation|untrained \w+) (?:of (?:[^ ,;:?]+ "
    r"){1,4})?(?:already |also |"
    r"alone |itself |can |could |did |does )*(?:explain|predict|account|reproduc|match|captur|reach|scor|"
    r"perform|fit|yield|track|equal|exceed|"
    r"outperform|do )"
)
GENERIC_SUBJECT = re.compile(
    r"^(?:a|an|any) (?:[\w-]+ )?(?:model|network|system|predictor|feature|machine|transformer|llm) (?:that|which) $"
)
SCORE_OF = re.compile(r"(?:predictions?|scores?|fit|advantage) (?:of|for|in|at) (?:[^ ]+ ){0,3}$")
IN_PREDICTOR = words_pattern(
    r"(?:within|in|inside) the (?:[\w-]+ )?(?:predictor|encoding model|readout)"
)
DENIED = words_pattern(r"not|no|never|neither|nor|none|nothing|hardly|fail\w*")
BY_CONTROL = words_pattern(
    r"(?:exceeded|matched|beaten|equalled|equaled|surpassed|outperformed|reached|explained|outscored|"
    r"reproduced|accounted for) "
    r"(?:[^ ;:?]+ ){0,3}?by (?:[^ ;:?]+ ){0,8}?(?:controls?|surrogates?|baselines?|nuisances?|shuffl\w+|"
    r"shift\w*|random \w+)"
)
_FOR_MODELS_ONLY = {
    Statement.PREDICTION,
    Statement.RELATIONAL,
    Statement.CEILING,
    Statement.ALIGNMENT,
}
_LEVELS = {*_FOR_MODELS_ONLY, Statement.MECHANISM}


@dataclass(frozen=True)
class Found:
    """A statement in a sentence, and what the sentence does with it.

    ``plain`` marks a negative that is asserted ("is not aligned"), as against one that withholds a statement ("does not
    show that …", "we do not claim that …").
    """

    statement: Statement
    force: Force
    words: str
    plain: bool = False


def find_statements(
    words: Words, rules: tuple[Rule, ...], kind: BlockKind, *, question: bool
) -> Iterator[Found]:
    """All statements of a sentence; in a question or a quotation they are not made."""
    scope = Scope.of(words)
    sides = _sides(words.line)
    prose = kind is BlockKind.PROSE or _has_verb(words.line)
    for rule in rules:
        if not rule.needs <= sides or (rule.prose and not prose):
            continue
        for match in rule.pattern.finditer(words.line):
            if rule.unless is not None and rule.unless.search(match[0]):
                continue
            if rule.never_with is not None and rule.never_with.search(_claimed(scope, match)):
                continue
            if rule.noun and not _stated(scope, match):
                continue
            if any(excused(rule.statement, scope, match) for excused in _EXCUSED):
                continue
            force = scope.force(match.start(), match.end(), noun=rule.noun, denies=rule.denies)
            if question or kind is BlockKind.QUOTE:
                force = Force.QUOTED if kind is BlockKind.QUOTE else Force.HEDGED
            yield _widened(rule.statement, force, scope, match)


def _part(scope: Scope, match: re.Match[str]) -> str:
    """The part, or parts, of the sentence that a stretch is in."""
    return scope.words.line[scope.part(match.start())[0] : scope.part(match.end() - 1)[1]]


def _claimed(scope: Scope, match: re.Match[str]) -> str:
    """The part without its grounds: what follows "the scores show that" and precedes ", as they attest"."""
    first, last = scope.part(match.start())[0], scope.part(match.end() - 1)[1]
    for grounds in GROUNDS_BEFORE.finditer(scope.words.line, first, match.start()):
        first = grounds.end()
    grounds_after = GROUNDS_AFTER.search(scope.words.line, match.end() - 1, last)
    return scope.words.line[first : grounds_after.start() if grounds_after else last]


def _has_verb(line: str) -> bool:
    """Whether a heading, item or cell reads as a sentence."""
    return len(line.split()) >= _SENTENCE and FINITE.search(line) is not None


def _sides(line: str) -> set[str]:
    """Sides of the comparison that a sentence mentions."""
    sides = set()
    if MODEL_SIDE.search(line):
        sides.add("model")
    if BRAIN_SIDE.search(line):
        sides.add("brain")
    if BOTH_SIDES.search(line):
        sides |= {"model", "brain"}
    return sides | ({"either"} if sides else set())


def _stated(scope: Scope, match: re.Match[str]) -> bool:
    """Whether something is said of a noun phrase: a verb of showing stands beside it."""
    first, last = scope.part(match.start())
    around = scope.words.line[first : match.start()] + scope.words.line[match.end() : last]
    emphatic = "_" in scope.line[first:last].split(" ")[0] or " __" in scope.line[first:last]
    return emphatic or SHOW.search(around) is not None


def _of_no_model(statement: Statement, scope: Scope, match: re.Match[str]) -> bool:
    """Whether the part of the sentence is about a positive control and names no model."""
    first, last = scope.part(match.start())
    part = scope.words.line[first:last]
    return (
        statement in _FOR_MODELS_ONLY
        and NOT_A_MODEL.search(part) is not None
        and MODEL_SIDE.search(NOT_A_MODEL.sub("", part)) is None
    )


def _of_a_control(statement: Statement, scope: Scope, match: re.Match[str]) -> bool:
    """Whether it is a control that predicts as well, or that was not reached: no claim for the model."""
    first, last = scope.part(match.start())
    if CONTROL_ACTS.match(scope.words.line[first:last]):
        return True
    if statement is not Statement.PREDICTION:
        return False
    if GENERIC_SUBJECT.search(scope.words.line[first : match.start()]):
        return True
    before, after = scope.words.line[first : match.start()], scope.words.line[match.start() : last]
    if DENIED.search(scope.words.line[first:last]):
        return False
    return CONTROL_SUBJECT.search(before) is not None or BY_CONTROL.search(after) is not None


def _of_a_score(statement: Statement, scope: Scope, match: re.Match[str]) -> bool:
    """Whether it is the prediction of a region that depends on something, not the region."""
    if statement is not Statement.CAUSATION:
        return False
    first, last = scope.part(match.start())
    line = scope.words.line
    return bool(
        SCORE_OF.search(line[first : match.start()]) or IN_PREDICTOR.search(line[first:last])
    )


_EXCUSED = (_of_no_model, _of_a_control, _of_a_score)


def _widened(statement: Statement, force: Force, scope: Scope, match: re.Match[str]) -> Found:
    """Statements about all models are another matter than statements about those of a study."""
    part = _part(scope, match)
    first, last = scope.part(match.start())
    if force is Force.ASSERTED and statement in _LEVELS and REQUIRED.search(scope.line[first:last]):
        return Found(statement, Force.MENTIONED, match[0].strip())
    bounded = BOUNDED.search(scope.words.line) is not None
    if force is Force.NEGATED and not bounded:
        denied = (
            NO_MODEL.search(part)
            or NEVER.search(part)
            or GENERIC_NEGATED.search(scope.words.line[:last])
        )
        if (
            denied
            and not PAST_DENIAL.search(part)
            and not UNSHOWN.search(part)
            and statement is not Statement.PREDICTION
            and not scope.disowned(match.start(), match.end())
        ):
            return Found(Statement.UNIVERSAL_NEGATIVE, Force.ASSERTED, match[0].strip())
    if force is Force.ASSERTED and statement in _LEVELS:
        everywhere = UNIVERSAL.search(part) is not None
        generic = GENERIC.search(part) is not None and statement is Statement.ALIGNMENT
        if everywhere or (generic and not bounded):
            return Found(Statement.UNIVERSAL, Force.ASSERTED, match[0].strip())
    plain = force is Force.NEGATED and statement in _LEVELS and not WITHHELD.search(part)
    return Found(statement, force, match[0].strip(), plain)
