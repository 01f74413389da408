"""How far negations, hedges, reports and quotations reach.

A sentence is cut into parts at semicolons, colons and conjunctions that open a clause of their own, and after an
opening subordinate clause. A negation reaches what follows it in its part; a hedge reaches its whole part; a report by
somebody else reaches all that follows it until the text speaks for itself again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from lpact.analyses.lpact.claim_audit.tokens import Words
from lpact.analyses.lpact.claim_audit.word_lists import REPORTS, SCOPE, words_pattern

EMPHATIC = words_pattern(SCOPE["EMPHATIC"])
NEGATION = words_pattern(SCOPE["NEGATIONS"])
LOCAL_NEGATION = words_pattern(SCOPE["LOCAL_NEGATIONS"])
SHOWING = words_pattern(SCOPE["SHOWING"])
SHORT_NEGATION = words_pattern(SCOPE["SHORT_NEGATIONS"])
AFTER_NOUN, *_AFTER = (words_pattern(expression) for expression in SCOPE["AFTER"])
HEDGE = words_pattern(SCOPE["HEDGES"])
MODAL = words_pattern(
    r"may|might|could|would|perhaps|possibly|whether|if|not|never|no|hardly|neither|nor"
)
OPENED = re.compile(
    r"(?:working |null |main |central |research )?(?:hypothesis|hypotheses|questions?|aims?|goals?|"
    r"conjecture|speculation|outlook|prediction|"
    r"to-?do|to do|idea|assumption)(?: \w{1,2})? :|"
    r"(?:it|there) (?:is|are|remains?|seems?|may be|might be) (?:\w+ )?(?:(?:conceivable|possible|plausible|"
    r"imaginable|likely|unlikely|"
    r"unclear|unknown|arguable|doubtful|debatable|questionable|uncertain|thinkable|an open question|not "
    r"known|not clear) |anyone 's)"
)
SOFT = words_pattern(r"may|might|perhaps|possibly|whether|if|clarify")
MENTION = words_pattern(SCOPE["MENTIONS"])
AFFIRMED = words_pattern(SCOPE["AFFIRMED"])
OTHERS = words_pattern(REPORTS["OTHERS"])
REPORTING = words_pattern(REPORTS["REPORTING"])
PASSIVE_REPORT = words_pattern(REPORTS["PASSIVE_REPORT"])
OWN = words_pattern(REPORTS["OWN"])
WORDING = words_pattern(REPORTS["WORDING"])
PERSON_VERB = words_pattern(REPORTS["PERSON_VERBS"])
PEOPLE_SUBJECT = re.compile(
    rf"(?:(?:[^ ,;:?]+ ){{1,6}}, )?(?:{REPORTS['DETERMINER'][0]} ){{0,4}}{REPORTS['PEOPLE'][0]} (?!of this|and our)"
)
NO_PERSON = words_pattern(REPORTS["NO_PERSON"])
# "The claim that …": a noun, not a verb.
NOUN_BEFORE = re.compile(r"(?<![^ ])(?:the|an?|this|that|any|no|such|strong|bold|opposite|its) $")
DISOWNED = words_pattern(SCOPE["DISOWNED"])
GROUNDED = words_pattern(SCOPE["GROUNDED"])
CONSEQUENCE = words_pattern(SCOPE["CONSEQUENCE"])
_WOULD = words_pattern("would|should")
CONDITION = words_pattern(
    "if|were|whether|suppose|supposing|provided|assuming|had|should|perhaps|might|may|could"
)
EFFECT = re.compile(
    r"(?<![^ ])would(?= (?:\w+ly )?(?:abolish|impair|disrupt|lose|prevent|destroy|suffer|be unable|be lost|"
    r"leave|deprive|cost|produce|"
    r"cripple|silence|stop) )"
)
NOT_A_MODEL = words_pattern(SCOPE["NOT_A_MODEL"])

_CUT = re.compile(
    r"; |(?<!supported )(?<!shown )(?<!forbidden )(?<!wrong ): (?!(?:not|un\w+|no|none|absent|forbidden|"
    r"confirmed|established|proven|demonstrated|shown|verified|yes|achieved|"
    r"premature|out) )"
    r"|, (?=(?:but|yet|whereas|while|although|though|even though|which|so|ergo|thus|hence|therefore|nor|"
    r"nevertheless|however|"
    r"showing|proving|demonstrating|indicating|implying|confirming|establishing|suggesting|revealing|meaning|"
    r"and (?:we|it|they|this|these|that|hence|thus|therefore|no|there|so|the|our|none|not)) )"
    r"|(?<= )(?=(?:because|whereas) )|(?<!nothing )(?<!all )(?<!anything )(?<=[^ ] )(?=but )"
)
_LEAD = re.compile(
    r"(?:because|since|although|though|while|whereas|despite|given|having|with|after|when|as|even|once|by|in|"
    r"for|if|unless|"
    r"far|unlike|like|where|until|before|to|were|given|considering|from|beyond|following|reaching|beating) [^,]*, "
)
_NEAR, _AFTER_REACH, _REPORT_REACH, _LONG, _WORDING, _SUBJECT = 6, 14, 10, 6, 2, 6
_PURPOSE = re.compile(r"(?:in order |so as )?to [a-z]+ ")

_WITHDRAWN = words_pattern(
    r"(?:reject|refut|disprov|contradict|den[iy])\w* (?:[^ ;:?]+ ){0,3}?(?:that|of)"
)


def affirmed(text: str) -> bool:
    """Whether a text upholds what it names: "is confirmed", and not "is not confirmed" or "finds no support"."""
    return any(
        NEGATION.search(" ".join(text[: m.start()].split()[-_NEAR:]) + " ") is None
        for m in AFFIRMED.finditer(text)
    )


class Force(StrEnum):
    """What a sentence does with a statement that it holds."""

    ASSERTED = "asserted"
    NEGATED = "negated"
    HEDGED = "hedged"
    QUOTED = "quoted"
    REPORTED = "reported"
    MENTIONED = "mentioned"


@dataclass(frozen=True)
class Scope:
    """One sentence, cut into parts, emphatic turns blanked."""

    words: Words
    line: str
    parts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, words: Words) -> Scope:
        """Cut a sentence."""
        line = EMPHATIC.sub(lambda m: re.sub(r"[^ ]", "_", m[0]), words.line)
        cuts = {0, len(line), *(m.end() for m in _CUT.finditer(line))}
        if lead := _LEAD.match(line):
            cuts.add(lead.end())
        places = sorted(cuts)
        return cls(words, line, tuple(pairwise(places)))

    def part(self, place: int) -> tuple[int, int]:
        """Start and end of the part that a place is in."""
        return next(((a, b) for a, b in self.parts if a <= place < b), (0, len(self.line)))

    def force(self, start: int, end: int, *, noun: bool, denies: bool) -> Force:
        """What the sentence does with the statement between two places of its line."""
        if self._quoted(start, end):
            return Force.QUOTED
        if self._reported(start, end):
            return Force.REPORTED
        if self._negated(start, end, noun=noun, denies=denies):
            return Force.NEGATED
        if self._hedged(start, end, denies=denies):
            return Force.HEDGED
        if self._mentioned(start, end):
            return Force.MENTIONED
        return Force.ASSERTED

    def disowned(self, start: int, end: int) -> bool:
        """Whether a statement, negative or not, is withheld, asked or only named: "we do not claim that no model …"."""
        first, last = self.part(start)
        withheld = DISOWNED.search(self.line[first:start]) is not None
        after = "".join(f"{word} " for word in self.line[end:last].split()[:_AFTER_REACH])
        return withheld or self._mentioned(start, end) or AFTER_NOUN.search(after) is not None

    def _quoted(self, start: int, end: int) -> bool:
        first, last = self.words.index(start), self.words.index(end - 2)
        inside = self.words.quoted[first : last + 1]
        if 2 * sum(inside) >= len(inside):
            return True
        if sum(inside) > 1:
            return True
        return self._about_words() and not affirmed(self._unquoted())

    def _about_words(self) -> bool:
        """Whether the sentence speaks of a quoted wording: the slogan "…", "…" is a sentence that …"""
        quoted = self.words.quoted
        if sum(quoted) < _WORDING:
            return False
        return WORDING.search(self._unquoted()) is not None

    def _unquoted(self) -> str:
        """The words of the sentence outside of quotation marks."""
        words = self.line.split()
        return "".join(
            f"{w} " for w, inside in zip(words, self.words.quoted, strict=True) if not inside
        )

    def _negated(self, start: int, end: int, *, noun: bool, denies: bool) -> bool:
        first, last = self.part(start)
        before = self.line[first:start]
        if NEGATION.search(before):
            return True
        if any(not SHOWING.search(before[m.end() :]) for m in LOCAL_NEGATION.finditer(before)):
            return True
        near = " ".join(before.split()[-_NEAR:]) + " "
        if SHORT_NEGATION.search(near):
            return True
        inside = self.line[start:end]
        if not denies and (NEGATION.search(inside) or _WITHDRAWN.search(inside)):
            return True
        return self._taken_back(start, end, first, last, noun=noun)

    def _taken_back(self, start: int, end: int, first: int, last: int, *, noun: bool) -> bool:
        after = self.line[end:last]
        near = "".join(f"{word} " for word in after.split()[:_AFTER_REACH])
        opens = noun or len(self.line[first:start].split()) <= 1 or self.line.startswith("that ")
        if opens and AFTER_NOUN.search(near):
            return True
        established, absent, beyond, referring, vanished = _AFTER
        if any(pattern.search(near) for pattern in (established, absent, beyond, vanished)):
            return True
        return referring.search(self.line[end:]) is not None and (
            NEGATION.search(self.line[end:]) is not None
            or HEDGE.search(self.line[end:]) is not None
        )

    def _hedged(self, start: int, end: int, *, denies: bool) -> bool:
        first, last = self.part(start)
        if OPENED.match(self.line) and ";" not in self.line[:start]:
            return True
        if first == 0 and _PURPOSE.match(self.line) and last < len(self.line):
            return True
        line = self.line
        if GROUNDED.search(line) and CONSEQUENCE.search(line[first:last]):
            # What would happen to a brain, drawn from what was found, is a claim.
            line = _WOULD.sub("_____", line)
        elif not CONDITION.search(line):
            line = EFFECT.sub("_____", line)
        if HEDGE.search(line[first:start]) or HEDGE.search(line[end:last]):
            return True
        inside = line[start:end]
        if denies:
            return SOFT.search(inside) is not None
        pattern = HEDGE if len(inside.split()) > _LONG else MODAL
        return pattern.search(inside) is not None

    def _mentioned(self, start: int, end: int) -> bool:
        first, last = self.part(start)
        mention = MENTION.search(self.line[first:end])
        if mention is None or first + mention.start() >= start:
            return False
        around = self.words.line[first : first + mention.start()] + self.words.line[end:last]
        return not affirmed(around)

    def _reported(self, start: int, end: int) -> bool:
        for other in OTHERS.finditer(self.line[:start]):
            if OWN.search(self.line[other.end() : start]):
                continue
            if REPORTING.search(self._reach(other, end)):
                return True
        subject = PEOPLE_SUBJECT.match(self.line, self.part(start)[0], start)
        if subject is not None and not OWN.search(self.line[subject.start() : start]):
            return True
        for verb in PERSON_VERB.finditer(self.line):
            if verb.end() > end:
                break
            before = " ".join(self.line[: verb.start()].split()[-_SUBJECT:]) + " "
            if NOUN_BEFORE.search(before) or not before.strip():
                continue
            if not OWN.search(before) and not NO_PERSON.search(before):
                return True
        first, last = self.part(start)
        own = OWN.search(self.line[first:start]) is not None
        lead = self.parts[0][1] if _LEAD.match(self.line) else 0
        if first == lead > 0:
            # "In the press, …": an opening phrase hands over what follows it.
            first = 0
        return PASSIVE_REPORT.search(self.line[first:last]) is not None and not own

    def _reach(self, other: re.Match[str], end: int) -> str:
        """Words in which somebody else's verb can stand: up to a comma, unless they open the sentence."""
        after = self.line[other.end() : end]
        if other.start() > 0 and not re.match(r"[^,]*, (?:who|which|in|on) ", after):
            after = after.partition(", ")[0] + " "
        return "".join(f"{word} " for word in after.split()[:_REPORT_REACH])
