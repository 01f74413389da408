"""What a story has established so far, and the noun phrases that follow from it.

All of it can be read off the words before: who has been named, who was mentioned last, what belongs to
whom, where the scene is, what the weather is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from lpact.datasets.simulated.prose.lexicon import (
    NEAR,
    PEOPLE,
    PLACES,
    SETTING_ADJECTIVES,
    SETTINGS,
    THINGS,
    WEATHER_SPOTS,
    WEATHERS,
    Person,
    Place,
    Thing,
    Weather,
)
from lpact.datasets.simulated.prose.writer import Phrase, Word

Mention: TypeAlias = tuple[Thing, str]
"""A thing, and the adjective that goes with it; empty without."""

MAX_CAST = 4
STAY = 0.85
"""Probability that the weather is the same when it is spoken of again."""


@dataclass(frozen=True)
class Subject:
    """Who or what a clause is about: one or two people, or the weather."""

    people: tuple[Person, ...] = ()
    weather: Weather | None = None
    pronoun: bool = False
    new: bool = False

    @property
    def plural(self) -> bool:
        """Whether the verb is plural."""
        return len(self.people) > 1

    @property
    def possessive(self) -> str:
        """The possessive pronoun."""
        return "their" if self.plural else "her" if self.people[0].female else "his"


@dataclass
class State:
    """The state of a story."""

    tense: str = ""
    cast: list[Person] = field(default_factory=list)
    salient: dict[bool, Person] = field(default_factory=dict)
    last: tuple[Person, ...] = ()
    pair: tuple[Person, ...] = ()
    things: dict[str, str] = field(default_factory=dict)
    owner: dict[str, tuple[Person, ...]] = field(default_factory=dict)
    it: Thing | None = None
    it_sentence: int = -9
    place: Place | None = None
    visited: list[str] = field(default_factory=list)
    weather: Weather | None = None
    moods: dict[tuple[Person, ...], str] = field(default_factory=dict)

    def mention(self, people: tuple[Person, ...]) -> None:
        """Note that people were mentioned."""
        for person in people:
            if person not in self.cast:
                self.cast.append(person)
            self.salient[person.female] = person
        self.last = people

    def mention_thing(self, mention: Mention, sentence: int) -> None:
        """Note that a thing was mentioned; its adjective stays with it."""
        thing, adjective = mention
        self.things.setdefault(thing.name, adjective)
        self.it, self.it_sentence = thing, sentence

    def go(self, place: Place) -> None:
        """Set the scene at a place."""
        self.place = place
        if place.name not in self.visited:
            self.visited.append(place.name)


def article(following: str) -> Word:
    """Return the indefinite article before a word, as dependent of the phrase's head."""
    return Word("an" if following[0] in "aeiou" else "a", "DET", "det")


THE = Word("the", "DET", "det")


def _new_people(state: State, weight: float) -> list[Phrase[Subject]]:
    """``a young girl named Mira``, for everyone who is not in the story yet."""
    others = [person for person in PEOPLE if person not in state.cast]
    if len(state.cast) >= MAX_CAST:
        return []
    return [
        Phrase(
            weight / len(others),
            (
                article(p.adjective),
                Word(p.adjective, "ADJ", "amod"),
                Word(p.trade, "NOUN"),
                Word("named", "VERB", "acl"),
                Word(p.name, "PROPN", "xcomp", 3),
            ),
            Subject((p,), new=True),
        )
        for p in others
    ]


def _known_person(person: Person, weight: float) -> list[Phrase[Subject]]:
    """``Mira``, ``the girl``, ``the young girl``."""
    subject = Subject((person,))
    noun = Word(person.trade, "NOUN")
    adjective = Word(person.adjective, "ADJ", "amod")
    return [
        Phrase(0.6 * weight, (Word(person.name, "PROPN"),), subject),
        Phrase(0.3 * weight, (THE, noun), subject),
        Phrase(0.1 * weight, (THE, adjective, noun), subject),
    ]


def subjects(
    state: State,
    *,
    new: float = 0.0,
    weather: float = 0.0,
    without: tuple[Person, ...] = (),
    close: bool = False,
) -> list[Phrase[Subject]]:
    """Subjects of a clause; a pronoun refers to the last person mentioned whom it fits.

    ``close``: later in a sentence, where pronouns are more frequent.
    """
    options = _new_people(state, new)
    for person in state.cast:
        if person in without:
            continue
        weight = 2.0 if person in state.last else 1.0
        if state.salient[person.female] is person:
            pronoun = Word("she" if person.female else "he", "PRON")
            share = (0.9 if close else 0.55) if person in state.last else 0.3
            options.append(Phrase(share * weight, (pronoun,), Subject((person,), pronoun=True)))
            weight *= 1.0 - share
        options += _known_person(person, weight)
    if state.pair and not set(state.pair) & set(without):
        weight = 1.5 if state.last == state.pair else 0.4
        options.append(Phrase(weight, (Word("they", "PRON"),), Subject(state.pair, pronoun=True)))
    for kind, probability in weathers(state).items():
        noun = Word(kind.noun, "NOUN")
        options.append(Phrase(weather * probability, (THE, noun), Subject(weather=kind)))
    return options


def people(
    state: State, without: tuple[Person, ...], *, new: float = 0.0, pronouns: bool = True
) -> list[Phrase[Subject]]:
    """People as objects, other than the subject's; someone new if there is nobody else."""
    others = [person for person in state.cast if person not in without]
    options = _new_people(state, new if others else 1.0)
    for person in others:
        weight = 1.0
        if pronouns and state.salient[person.female] is person:
            pronoun = Word("her" if person.female else "him", "PRON")
            options.append(Phrase(0.5, (pronoun,), Subject((person,), pronoun=True)))
            weight = 0.5
        options += _known_person(person, weight)
    return options


def things(
    state: State, candidates: list[Thing], subject: Subject, sentence: int
) -> list[Phrase[Mention]]:
    """Things as objects: new (``a rusty key``), known (``the key``, ``her key``), or ``it``."""
    options: list[Phrase[Mention]] = []
    for thing in candidates:
        noun = Word(thing.name, "NOUN")
        weight = 5.0 if state.place is not None and thing.name in state.place.things else 1.0
        if thing.name not in state.things:
            options.append(Phrase(0.6 * weight, (article(thing.name), noun), (thing, "")))
            for adjective in thing.adjectives:
                words = (article(adjective), Word(adjective, "ADJ", "amod"), noun)
                options.append(Phrase(0.2 * weight, words, (thing, adjective)))
            continue
        weight *= 8.0
        if state.it is thing and sentence - state.it_sentence <= 1:
            options.append(Phrase(0.5 * weight, (Word("it", "PRON"),), (thing, "")))
            weight *= 0.5
        adjective, mention = state.things[thing.name], (thing, "")
        if subject.people and state.owner.get(thing.name) == subject.people:
            own = Word(subject.possessive, "PRON", "nmod:poss")
            options.append(Phrase(0.5 * weight, (own, noun), mention))
            weight *= 0.5
        if adjective:
            words = (THE, Word(adjective, "ADJ", "amod"), noun)
            options.append(Phrase(0.3 * weight, words, mention))
            weight *= 0.7
        options.append(Phrase(weight, (THE, noun), mention))
    return options


def new_things(state: State) -> list[Phrase[Mention]]:
    """Things that the story has not mentioned yet."""
    fresh = [thing for thing in THINGS if thing.name not in state.things]
    return things(state, fresh or list(THINGS), Subject(), -9)


def whereabouts(state: State) -> list[Phrase[Place]]:
    """Places of a scene: the present one, spots in it, rarely another one."""
    options = []
    for place in PLACES:
        here = place is state.place
        weight = 3.0 if here else 0.05 if state.place is not None else 1.0
        options.append(Phrase(weight, _at(place.preposition, place.name), place))
        if here:
            options += [Phrase(1.5, _at(*spot), place) for spot in place.spots]
    return options


def destinations(state: State) -> list[Phrase[Place | None]]:
    """Where one can go: home, or to another place, one seen before more often."""
    options: list[Phrase[Place | None]] = [Phrase(1.0, (Word("home", "ADV"),), None)]
    for place in PLACES:
        if place is not state.place:
            weight = 1.0 if place.name in state.visited else 0.4
            options.append(Phrase(weight, _at("to", place.name), place))
    return options


def weathers(state: State) -> dict[Weather, float]:
    """Probability of each weather when it is spoken of."""
    if state.weather is None:
        return dict.fromkeys(WEATHERS, 1.0 / len(WEATHERS))
    change = (1.0 - STAY) / (len(WEATHERS) - 1)
    return {kind: STAY if kind is state.weather else change for kind in WEATHERS}


def settings() -> list[Phrase[None]]:
    """Where the people of a story live: ``in a small village near the sea``."""
    return [
        Phrase(
            1.0,
            (
                Word("on" if setting == "island" else "in", "ADP", "case"),
                article(adjective),
                Word(adjective, "ADJ", "amod"),
                Word(setting, "NOUN"),
                Word("near", "ADP", "case", 6),
                Word("the", "DET", "det", 6),
                Word(near, "NOUN", "nmod"),
            ),
            None,
        )
        for setting in SETTINGS
        for adjective in SETTING_ADJECTIVES
        for near in NEAR
    ]


def weather_spots() -> list[Phrase[None]]:
    """Where the weather is: ``over the roofs``."""
    return [Phrase(1.0, _at(*spot), None) for spot in WEATHER_SPOTS]


def _at(preposition: str, noun: str) -> tuple[Word, ...]:
    return (Word(preposition, "ADP", "case"), THE, Word(noun, "NOUN"))
