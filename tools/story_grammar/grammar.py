"""The grammar: sentences, clauses and predicates of a story."""

from __future__ import annotations

from dataclasses import dataclass, field

from story_grammar import lexicon as lex
from story_grammar.lexicon import (
    Place,
    State,
    Subject,
    Verb,
    destinations,
    new_things,
    people,
    settings,
    subjects,
    things,
    weather_spots,
    weathers,
    whereabouts,
)
from story_grammar.writer import Chooser, Phrase, Token, Writer, words

CONSTRUCTIONS: dict[str, tuple[float, dict[str, Verb]]] = {
    "alone": (0.2, lex.ALONE),
    "motion": (0.12, lex.MOTION),
    "handle": (0.3, lex.HANDLE),
    "meet": (0.12, lex.MEET),
    "give": (0.06, lex.GIVE),
    "say": (0.1, lex.SAY),
    "want": (0.1, lex.WANT),
}
"""Verbs of each construction, and how often it is used before people and places favour some verbs."""

INFINITIVES = ("alone", "motion", "handle", "meet")
TAKING = frozenset({"take", "find", "buy", "pick", "catch", "carry", "wear", "write"})

STOP = {4: 0.2, 5: 0.3, 6: 0.4, 7: 0.5, 8: 0.55, 9: 0.65, 10: 0.75, 11: 0.9}
"""Probability that a sentence ends at its n-th word, if it can; 0 before, 1 after."""


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


class Narrator(Writer):
    """Writes a story, one sentence at a time."""

    def __init__(self, chooser: Chooser) -> None:
        super().__init__(chooser)
        self.state = State()
        self._since_paragraph = 0

    def write_sentence(self) -> None:
        """Write the next sentence of the story."""
        self.depth = 0
        if not self.tokens:
            self._setting().attach(None, "root")
        else:
            age = self._since_paragraph
            turn = 0.0 if age < 3 else 1.0 if age >= 7 else 0.12 * (age - 1)
            how = self.choose(
                {
                    "paragraph": turn,
                    "clause": 0.64 * (1.0 - turn),
                    "place": 0.08 * (1.0 - turn) * (self.state.place is not None),
                    "subordinate": 0.12 * (1.0 - turn),
                    "weather": 0.06 * (1.0 - turn),
                    "there": 0.1 * (1.0 - turn),
                }
            )
            getattr(self, f"_{how}_sentence")().attach(None, "root")
        self._since_paragraph += 1
        self.end_sentence()

    def _setting(self) -> Token:
        """``A young girl named Mira lived in a small village near the sea.``"""
        noun, _ = self._subject(subjects(self.state, new=1.0))
        self.state.tense = self.choose({"past": 0.6, "present": 0.4})
        root = self.word(self._form(lex.LIVE, plural=False), "VERB")
        noun.attach(root, "nsubj")
        head, _ = self.phrase(settings())
        head.attach(root, "obl")
        self.mark({".": 1.0})
        return root

    def _paragraph_sentence(self) -> Token:
        """``Later, Mira walked to the mill.``"""
        self.paragraph += 1
        self._since_paragraph = 0
        opener, _ = self.phrase([Phrase(1.0, words(text), None) for text in lex.OPENERS])
        self.mark({",": 1.0})
        root = self._clause(Frame(), moving=6.0, new=0.5)
        opener.attach(root, "advmod" if opener.upos == "ADV" else "obl")
        return root

    def _clause_sentence(self) -> Token:
        return self._clause(Frame(), new=0.15, weather=0.3)

    def _place_sentence(self) -> Token:
        """``In the garden, Mira sang.``"""
        head = self._whereabouts()
        self.mark({",": 1.0})
        root = self._clause(Frame(placed=True))
        head.attach(root, "obl")
        return root

    def _subordinate_sentence(self) -> Token:
        """``When it rained, Mira ran home.``"""
        inner = self._embedded(Frame("front"))
        root = self._clause(Frame(coordinated=True))
        inner.attach(root, "advcl")
        return root

    def _weather_sentence(self) -> Token:
        """``It rained all day.``"""
        return self._impersonal(Frame())

    def _there_sentence(self) -> Token:
        """``There was a rusty key on the bench.``"""
        there = self.word("there", "PRON")
        root = self.word(lex.BE[self.state.tense][0], "VERB")
        there.attach(root, "expl")
        head, mention = self.phrase(new_things(self.state))
        head.attach(root, "nsubj")
        self.state.mention_thing(mention, self.sentence)
        self._whereabouts().attach(root, "obl")
        self.mark({".": 1.0})
        return root

    # Clauses

    def _clause(self, frame: Frame, *, moving: float = 1.0, new: float = 0.0, weather: float = 0.0) -> Token:
        """Write subject, predicate and what follows; return the root, to be attached."""
        options = subjects(self.state, new=new, weather=weather, close=self.n_in_sentence > 2)
        noun, frame.subject = self._subject(options)
        if frame.subject.weather is None and not frame.subject.pronoun:
            self._expand_subject(noun, frame)
        root, closed = self._predicate(frame, moving)
        noun.attach(root, "nsubj")
        frame.root = root
        if not closed:
            self._tail(frame)
        return root

    def _subject(self, options: list[Phrase[Subject]]) -> tuple[Token, Subject]:
        head, subject = self.phrase(options)
        if subject.weather is not None:
            self.state.weather = subject.weather
        else:
            self._mention(subject.people)
        return head, subject

    def _expand_subject(self, noun: Token, frame: Frame) -> None:
        """Add ``and Tom`` or a relative clause, ``who waited at the well``."""
        (person,) = frame.subject.people
        short = self.n_in_sentence <= 4 and frame.kind == "main" and not self.depth
        others = [p for p in self.state.cast if p is not person]
        how = self.choose(
            {
                "no": 1.0,
                "and": 0.2 * bool(others),
                "who": 0.2 * (short and noun.upos == "NOUN" and not frame.subject.new),
            }
        )
        if how == "and":
            cc = self.word("and", "CCONJ")
            options = people(self.state, (person,), pronouns=False)
            head, other = self.phrase(options)
            cc.attach(head, "cc")
            head.attach(noun, "conj")
            pair = (person, *other.people)
            self._mention(pair)
            self.state.pair = pair
            frame.subject = Subject(pair)
        elif how == "who":
            self.depth += 1
            who = self.word("who", "PRON")
            inner = Frame("relative", subject=frame.subject)
            root, _ = self._predicate(inner, 1.0)
            inner.root = root
            who.attach(root, "nsubj")
            root.attach(noun, "acl:relcl")
            self._tail(inner)
            self.depth -= 1
            self._mention(frame.subject.people)
            frame.manner = True

    def _embedded(self, frame: Frame, *, weather: float = 0.2) -> Token:
        """Write ``when it rained``; return its root. ``weather`` is its share of the weather."""
        self.depth += 1
        mark = self.word(self.choose(dict.fromkeys(lex.MARKS, 1.0)), "SCONJ")
        how = self.choose({"people": 1.0 - weather, "weather": weather})
        frame.coordinated = True
        root = self._impersonal(frame) if how == "weather" else self._clause(frame)
        mark.attach(root, "mark")
        self.depth -= 1
        return root

    def _impersonal(self, frame: Frame) -> Token:
        """Write ``it rained`` or ``it was foggy``; return the root."""
        options: list[Phrase[lex.Weather]] = []
        for kind, probability in weathers(self.state).items():
            adjective = {"sun": "sunny", "fog": "foggy"}.get(kind.noun, f"{kind.noun}y")
            be, share = lex.BE[self.state.tense][0], 1.0
            if kind.impersonal is not None:
                verb = self._form(kind.impersonal, plural=False)
                options.append(Phrase(0.6 * probability, words(f"it/PRON/expl {verb}/VERB"), kind))
                share = 0.4
            text = words(f"it/PRON/expl {be}/AUX/cop {adjective}/ADJ")
            options.append(Phrase(share * probability, text, kind))
        root, kind = self.phrase(options)
        self.state.weather = kind
        frame.subject, frame.root = Subject(weather=kind), root
        self._tail(frame)
        return root

    def _relative(self, frame: Frame) -> None:
        """Write ``that Tom found`` after a thing, to the end of the sentence."""
        thing, noun = self.state.it, frame.object
        assert thing is not None
        self.depth += 1
        that = self.word("that", "PRON")
        inner = Frame(coordinated=True)
        options = subjects(self.state, without=frame.subject.people)
        subject, inner.subject = self._subject(options)
        base = self.choose(dict.fromkeys(sorted(thing.verbs), 1.0))
        form = self._form(lex.HANDLE[base], plural=inner.subject.plural)
        inner.root = self.word(form, "VERB")
        that.attach(inner.root, "obj")
        subject.attach(inner.root, "nsubj")
        inner.root.attach(noun, "acl:relcl")
        self._tail(inner)
        self.depth -= 1

    def _tail(self, frame: Frame) -> None:
        """Add adjuncts and further clauses until the clause ends."""
        while True:
            more = self._continuations(frame)
            if frame.kind == "relative":
                more = {"place": 0.5} if "place" in more else {}
                how = self.choose({**more, "close": 0.5})
                if how == "close":
                    return
            else:
                n = self.n_in_sentence
                stop = STOP.get(n, 0.0 if n < 4 else 1.0) if frame.kind == "main" else min(0.2 * n, 1.0)
                marks = {"." if frame.kind == "main" else ",": stop if more else 1.0}
                marks[""] = (1.0 - stop) * bool(more)
                if frame.kind == "main" and not frame.coordinated and not self.depth and 3 < n < 8:
                    marks[","] = 0.15
                mark = self.mark(marks)
                if mark == "," and frame.kind == "main":
                    self._coordinate(frame)
                    return
                if mark:
                    return
                how = self.choose(more)
            if self._continue(frame, how):
                return

    def _continuations(self, frame: Frame) -> dict[str, float]:
        """What can follow here without a mark."""
        n, weather = self.n_in_sentence, frame.subject.weather is not None
        more: dict[str, float] = {}
        if n > 11:
            return more
        if weather and not frame.placed:
            more["over"] = 0.4
        if not weather and not frame.placed:
            more["place"] = 0.35
        if not frame.timed:
            more["time"] = 0.15
        if not weather and not frame.manner:
            more["manner"] = 0.15
        if not weather and not frame.plain and not frame.subject.plural and n < 10:
            more["with"] = 0.1
        if frame.kind == "main" and not self.depth and not frame.coordinated and n < 8:
            more["when"] = 0.25
            others = [p for p in self.state.cast if p not in frame.subject.people]
            noun = frame.object
            if noun is self.tokens[-1] and noun.upos == "NOUN" and others:
                more["that"] = 0.15
            if not weather:
                more["and"] = 0.2
        return more

    def _continue(self, frame: Frame, how: str) -> bool:
        """Write one continuation; return whether the sentence ended with it."""
        root = frame.root
        if how in ("place", "over"):
            frame.placed = True
            head = self.phrase(weather_spots())[0] if how == "over" else self._whereabouts()
            head.attach(root, "obl")
        elif how == "time":
            frame.timed = True
            head, _ = self.phrase([Phrase(1.0, words(text), None) for text in lex.TIMES])
            head.attach(root, "advmod" if head.upos == "ADV" else "obl")
        elif how == "manner":
            frame.manner = True
            adverb = self.choose(dict.fromkeys(lex.MANNERS, 1.0))
            self.word(adverb, "ADV").attach(root, "advmod")
        elif how == "with":
            frame.plain = True
            case = self.word("with", "ADP")
            head = self._person(frame)
            case.attach(head, "case")
            head.attach(root, "obl")
        elif how == "when":
            weather = 0.0 if frame.subject.weather is not None else 0.2
            self._embedded(Frame(), weather=weather).attach(root, "advcl")
            return True
        elif how == "that":
            self._relative(frame)
            return True
        else:
            cc = self.word("and", "CCONJ")
            inner = Frame(subject=frame.subject, coordinated=True, manner=True)
            inner.root, closed = self._predicate(inner, 1.0)
            cc.attach(inner.root, "cc")
            inner.root.attach(root, "conj")
            if not closed:
                self._tail(inner)
            return True
        return False

    def _coordinate(self, frame: Frame) -> None:
        """Write ``and Tom laughed``."""
        cc = self.word(self.choose({"and": 0.5, "but": 0.3, "so": 0.2}), "CCONJ")
        root = self._clause(Frame(coordinated=True), weather=0.3)
        cc.attach(root, "cc")
        root.attach(frame.root, "conj")

    # Predicates

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
            tense = self.state.tense
            if kind == "can":
                helpers = [self.word(lex.CAN[tense], "AUX")]
            else:
                did = self.word(lex.DO[tense][subject.plural], "AUX")
                helpers = [did, self.word("not", "PART")]
            kind, base = self.choose(self._verbs(frame, INFINITIVES, moving))
            form = base
        else:
            form = self._form(CONSTRUCTIONS[kind][1][base], plural=subject.plural)
        root = self.word(form, "VERB")
        for helper in helpers:
            helper.attach(root, "aux" if helper.upos == "AUX" else "advmod")
        if adverb_token is not None:
            adverb_token.attach(root, "advmod")
        return root, self._complement(kind, base, root, frame)

    def _verbs(self, frame: Frame, kinds: tuple[str, ...], moving: float) -> dict[tuple[str, str], float]:
        """Weights of verbs: people and places favour some."""
        who, place = frame.subject.people, self.state.place
        weights: dict[tuple[str, str], float] = {}
        for kind in kinds:
            if kind == "say" and (frame.kind != "main" or self.depth > 0 or self.n_in_sentence > 5):
                continue
            if kind == "want" and frame.kind != "main":
                continue
            share, verbs = CONSTRUCTIONS[kind]
            for base in verbs:
                weight = share / len(verbs)
                weight *= 6.0 if any(base in person.verbs for person in who) else 1.0
                weight *= 4.0 if place is not None and base in place.verbs else 1.0
                weights[(kind, base)] = weight * (moving if kind == "motion" else 1.0)
        return weights

    def _be(self, frame: Frame) -> Token:
        """Write ``was tired`` or ``was in the garden``; return the root."""
        who = frame.subject.people
        verb = self.word(lex.BE[self.state.tense][frame.subject.plural], "AUX")
        options: list[Phrase[str | Place]] = []
        for mood in lex.MOODS:
            weight = 8.0 if self.state.moods.get(who) == mood else 1.0
            if self.state.weather is not None and mood in self.state.weather.moods:
                weight *= 3.0
            options.append(Phrase(weight, words(f"{mood}/ADJ"), mood))
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
        name = mention[0].name
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
