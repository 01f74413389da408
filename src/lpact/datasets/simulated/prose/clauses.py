"""Clauses: subject, predicate, and what follows until the clause ends."""

from __future__ import annotations

from lpact.datasets.simulated.prose import lexicon as lex
from lpact.datasets.simulated.prose.predicates import Frame, Predicates
from lpact.datasets.simulated.prose.state import (
    Subject,
    people,
    subjects,
    weather_spots,
    weathers,
)
from lpact.datasets.simulated.prose.writer import Phrase, Token, Word

STOP = {4: 0.2, 5: 0.3, 6: 0.4, 7: 0.5, 8: 0.55, 9: 0.65, 10: 0.75, 11: 0.9}
"""Probability that a sentence ends at its n-th word, if it can; 0 before, 1 after."""


class Clauses(Predicates):
    """Writes simple, coordinated, subordinate and relative clauses."""

    def _clause(
        self, frame: Frame, *, moving: float = 1.0, new: float = 0.0, weather: float = 0.0
    ) -> Token:
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
            be = Word(lex.BE[self.state.tense][0], "AUX", "cop")
            it = Word("it", "PRON", "expl")
            adjective = Word(_weather_adjective(kind.noun), "ADJ")
            words = (it, be, adjective)
            share = 1.0
            if kind.impersonal is not None:
                verb = Word(self._form(kind.impersonal, plural=False), "VERB")
                options.append(Phrase(0.6 * probability, (it, verb), kind))
                share = 0.4
            options.append(Phrase(share * probability, words, kind))
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
                stop = (
                    STOP.get(n, 0.0 if n < 4 else 1.0)
                    if frame.kind == "main"
                    else min(0.2 * n, 1.0)
                )
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
            head, _ = self.phrase([Phrase(1.0, _time(words), None) for words in lex.TIMES])
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


def _time(words: tuple[str, ...]) -> tuple[Word, ...]:
    if len(words) == 1:
        return (Word(words[0], "ADV"),)
    if words[0] == "once":
        return (Word("once", "ADV", "advmod"), Word("more", "ADV"))
    first = Word("all", "DET", "det") if words[0] == "all" else Word("for", "ADP", "case")
    return (first, Word(words[1], "NOUN"))


def _weather_adjective(noun: str) -> str:
    return {"sun": "sunny", "fog": "foggy"}.get(noun, f"{noun}y")
