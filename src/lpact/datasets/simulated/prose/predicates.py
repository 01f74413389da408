"""Predicates: a verb of one of seven constructions, or a form of `be`, with what it needs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from lpact.datasets.simulated.prose import lexicon as lex
from lpact.datasets.simulated.prose.lexicon import Place, Verb
from lpact.datasets.simulated.prose.state import (
    State,
    Subject,
    destinations,
    people,
    things,
    whereabouts,
)
from lpact.datasets.simulated.prose.writer import Chooser, Phrase, Token, Word, Writer

CONSTRUCTIONS: dict[str, dict[str, Verb]] = {
    "alone": lex.ALONE,
    "motion": lex.MOTION,
    "handle": lex.HANDLE,
    "meet": lex.MEET,
    "give": lex.GIVE,
    "say": lex.SAY,
    "want": lex.WANT,
}
SHARES = {
    "alone": 0.2,
    "motion": 0.12,
    "handle": 0.3,
    "meet": 0.12,
    "give": 0.06,
    "say": 0.1,
    "want": 0.1,
}
"""How often each construction is used before people and places favour some verbs."""

INFINITIVES = ("alone", "motion", "handle", "meet")
TAKING = frozenset({"take", "find", "buy", "pick", "catch", "carry", "wear", "write"})


@dataclass
class Frame:
    """A clause under way. ``kind`` says how it ends: ``main`` with the sentence, ``front`` with a comma,
    ``relative`` without a mark.
    """

    kind: str = "main"
    subject: Subject = field(default_factory=Subject)
    root: Token | None = None
    placed: bool = False
    manner: bool = False
    timed: bool = False
    plain: bool = False
    coordinated: bool = False
    object: Token | None = None


class Predicates(Writer):
    """Writes predicates in the state of a story."""

    def __init__(self, chooser: Chooser) -> None:
        super().__init__(chooser)
        self.state = State()

    @abstractmethod
    def _clause(
        self, frame: Frame, *, moving: float = 1.0, new: float = 0.0, weather: float = 0.0
    ) -> Token:
        """Write subject, predicate and what follows; return the root, to be attached."""

    def _predicate(self, frame: Frame, moving: float) -> tuple[Token, bool]:
        """Write the verb and what it needs; return the clause's root and whether it is closed."""
        subject = frame.subject
        if subject.weather is not None:
            verb = self.choose(dict.fromkeys(subject.weather.verbs, 1.0))
            frame.manner = True
            return self.word(self._form(verb, plural=False), "VERB"), False
        options = self._verbs(frame, tuple(CONSTRUCTIONS), moving)
        total = sum(options.values())
        options[("be", "be")] = 0.18 * total
        options[("do", "do")] = 0.06 * total
        options[("can", "can")] = 0.05 * total
        if frame.kind == "main" and not frame.manner:
            for adverb in (*lex.MANNERS, *lex.OFTEN):
                options[("adverb", adverb)] = 0.015 * total
        kind, base = self.choose(options)
        adverb_token: Token | None = None
        if kind == "adverb":
            frame.manner = True
            adverb_token = self.word(base, "ADV")
            kind, base = self.choose(self._verbs(frame, tuple(CONSTRUCTIONS), moving))
        if kind == "be":
            return self._be(frame), False
        helpers: list[Token] = []
        if kind in ("do", "can"):
            helpers = self._helpers(kind, subject.plural)
            kind, base = self.choose(self._verbs(frame, INFINITIVES, moving))
            form = base
        else:
            form = self._form(CONSTRUCTIONS[kind][base], plural=subject.plural)
        root = self.word(form, "VERB")
        for helper in helpers:
            helper.attach(root, "aux" if helper.upos == "AUX" else "advmod")
        if adverb_token is not None:
            adverb_token.attach(root, "advmod")
        return root, self._complement(kind, base, root, frame)

    def _verbs(
        self, frame: Frame, kinds: tuple[str, ...], moving: float
    ) -> dict[tuple[str, str], float]:
        """Weights of verbs: people and places have verbs of their own."""
        who, place = frame.subject.people, self.state.place
        weights: dict[tuple[str, str], float] = {}
        for kind in kinds:
            if kind == "say" and (frame.kind != "main" or self.depth > 0 or self.n_in_sentence > 5):
                continue
            if kind == "want" and frame.kind != "main":
                continue
            verbs = CONSTRUCTIONS[kind]
            for base in verbs:
                weight = SHARES[kind] / len(verbs)
                weight *= 6.0 if any(base in person.verbs for person in who) else 1.0
                weight *= 4.0 if place is not None and base in place.verbs else 1.0
                weights[(kind, base)] = weight * (moving if kind == "motion" else 1.0)
        return weights

    def _helpers(self, kind: str, plural: bool) -> list[Token]:
        """Write ``did not`` or ``could``."""
        tense = self.state.tense
        if kind == "can":
            return [self.word(lex.CAN[tense], "AUX")]
        return [self.word(lex.DO[tense][plural], "AUX"), self.word("not", "PART")]

    def _be(self, frame: Frame) -> Token:
        """Write ``was tired`` or ``was in the garden``; return the root."""
        who = frame.subject.people
        verb = self.word(lex.BE[self.state.tense][frame.subject.plural], "AUX")
        options: list[Phrase[str | Place]] = []
        for mood in lex.MOODS:
            weight = 8.0 if self.state.moods.get(who) == mood else 1.0
            if self.state.weather is not None and mood in self.state.weather.moods:
                weight *= 3.0
            options.append(Phrase(weight, (Word(mood, "ADJ"),), mood))
        total = sum(option.weight for option in options)
        at = whereabouts(self.state)
        share = 0.25 * total / sum(option.weight for option in at)
        options += [Phrase(share * o.weight, o.words, o.meaning) for o in at]
        root, meaning = self.phrase(options)
        if isinstance(meaning, Place):
            self._go(meaning)
            frame.placed = True
        else:
            self.state.moods[who] = meaning
        frame.manner = frame.plain = True
        verb.attach(root, "cop")
        return root

    def _complement(self, kind: str, base: str, verb: Token, frame: Frame) -> bool:
        """Write what a verb needs; return whether the clause ended with it."""
        if kind == "motion":
            frame.placed = True
            head, place = self.phrase(destinations(self.state))
            head.attach(verb, "advmod" if place is None else "obl")
            if place is not None:
                self._go(place)
        elif kind == "handle":
            frame.object = self._thing(base, frame)
            frame.object.attach(verb, "obj")
        elif kind == "meet":
            self._person(frame).attach(verb, "obj")
        elif kind == "give":
            self._thing(None, frame).attach(verb, "obj")
            to = self.word("to", "ADP")
            head = self._person(frame)
            to.attach(head, "case")
            head.attach(verb, "obl")
        elif kind == "say":
            self.depth += 1
            that = self.word("that", "SCONJ")
            inner = self._clause(Frame(coordinated=True))
            that.attach(inner, "mark")
            inner.attach(verb, "ccomp")
            self.depth -= 1
            return True
        elif kind == "want":
            to = self.word("to", "PART")
            kind, base = self.choose(self._verbs(frame, INFINITIVES, 1.0))
            inner = self.word(base, "VERB")
            to.attach(inner, "mark")
            inner.attach(verb, "xcomp")
            return self._complement(kind, base, inner, frame)
        return False

    def _person(self, frame: Frame) -> Token:
        new = 0.3 if not self.depth and self.n_in_sentence < 5 else 0.0
        head, other = self.phrase(people(self.state, frame.subject.people, new=new))
        self._mention(other.people)
        return head

    def _thing(self, base: str | None, frame: Frame) -> Token:
        candidates = [thing for thing in lex.THINGS if base is None or base in thing.verbs]
        options = things(self.state, candidates, frame.subject, self.sentence)
        head, mention = self.phrase(options)
        self.state.mention_thing(mention, self.sentence)
        name = mention.thing.name
        if base in TAKING:
            self.state.owner[name] = frame.subject.people
        elif base is None or base == "sell":
            self.state.owner.pop(name, None)
        return head

    def _whereabouts(self) -> Token:
        head, place = self.phrase(whereabouts(self.state))
        self._go(place)
        return head

    def _go(self, place: Place) -> None:
        self.state.go(place)
        self.place_name = self.tokens[-1].place = place.name

    def _form(self, verb: Verb, *, plural: bool) -> str:
        if self.state.tense == "past":
            return verb.past
        return verb.base if plural else verb.singular

    def _mention(self, who: tuple[lex.Person, ...]) -> None:
        self.state.mention(who)
        self.person = self.tokens[-1].person = who[0].name
