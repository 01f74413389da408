"""Vocabulary of the stories, what a story has established so far, and the noun phrases that follow from it.

Every verb belongs to one construction, and no form of a verb is a form of another one or of another
tense: a form tells its verb.

The state of a story can be read off the words before: who has been named, who was mentioned last, what belongs to whom,
where the scene is, what the weather is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from story_grammar.writer import Phrase, Word, words


@dataclass(frozen=True)
class Verb:
    """Forms of a verb: past, third person singular, base."""

    past: str
    singular: str
    base: str


@dataclass(frozen=True)
class Person:
    """Someone a story is about; ``trade`` and ``adjective`` go with the name in every story."""

    name: str
    trade: str
    adjective: str
    female: bool
    verbs: frozenset[str]


@dataclass(frozen=True)
class Place:
    """Where a scene is set: its preposition, spots in it, and what is done and found there."""

    name: str
    preposition: str
    spots: tuple[tuple[str, str], ...]
    verbs: frozenset[str]
    things: frozenset[str]


@dataclass(frozen=True)
class Thing:
    """An object; one of ``adjectives`` may go with it, the same one for the whole story."""

    name: str
    adjectives: tuple[str, str]
    verbs: frozenset[str]


@dataclass(frozen=True)
class Weather:
    """A weather: its noun, what the noun does, where, and how it makes people feel."""

    noun: str
    verbs: tuple[Verb, ...]
    moods: frozenset[str]
    impersonal: Verb | None = None


def _verbs(text: str) -> dict[str, Verb]:
    """Parse ``past/singular/base`` forms; verbs are known by their base."""
    verbs = [Verb(*forms.split("/")) for forms in text.split()]
    return {verb.base: verb for verb in verbs}


ALONE = _verbs(
    "waited/waits/wait rested/rests/rest worked/works/work sang/sings/sing slept/sleeps/sleep "
    "laughed/laughs/laugh stood/stands/stand sat/sits/sit danced/dances/dance prayed/prays/pray "
    "swam/swims/swim listened/listens/listen smiled/smiles/smile dreamed/dreams/dream"
)
MOTION = _verbs(
    "walked/walks/walk ran/runs/run went/goes/go hurried/hurries/hurry rode/rides/ride returned/returns/return"
)
HANDLE = _verbs(
    "took/takes/take found/finds/find carried/carries/carry lost/loses/lose cleaned/cleans/clean "
    "hid/hides/hide mended/mends/mend painted/paints/paint bought/buys/buy sold/sells/sell "
    "opened/opens/open closed/closes/close lit/lights/light baked/bakes/bake ate/eats/eat "
    "picked/picks/pick wrote/writes/write folded/folds/fold counted/counts/count rang/rings/ring "
    "filled/fills/fill caught/catches/catch fed/feeds/feed brushed/brushes/brush "
    "pushed/pushes/push pulled/pulls/pull wore/wears/wear studied/studies/study"
)
MEET = _verbs(
    "saw/sees/see greeted/greets/greet followed/follows/follow thanked/thanks/thank "
    "helped/helps/help called/calls/call watched/watches/watch met/meets/meet"
)
GIVE = _verbs("gave/gives/give showed/shows/show brought/brings/bring")
SAY = _verbs("said/says/say thought/thinks/think knew/knows/know hoped/hopes/hope")
WANT = _verbs("wanted/wants/want tried/tries/try began/begins/begin decided/decides/decide")
LIVE = Verb("lived", "lives", "live")
BE = {"past": ("was", "were"), "present": ("is", "are")}
DO = {"past": ("did", "did"), "present": ("does", "do")}
CAN = {"past": "could", "present": "can"}

MOODS = (
    *("tired", "happy", "hungry", "afraid", "proud", "sad", "angry", "curious"),
    *("wet", "cold", "warm", "dusty"),
)
MANNERS = ("slowly", "quietly", "quickly", "carefully", "gladly", "silently")
OFTEN = ("often", "always", "never")
TIMES = (
    *("again/ADV", "all/DET/det day/NOUN", "all/DET/det night/NOUN", "for/ADP/case hours/NOUN"),
    "once/ADV/advmod more/ADV",
)
MARKS = ("when", "because", "while", "although", "until")
OPENERS = (
    *("later/ADV", "afterwards/ADV", "meanwhile/ADV", "that/DET/det evening/NOUN"),
    *("that/DET/det night/NOUN", "one/NUM/nummod morning/NOUN", "one/NUM/nummod day/NOUN"),
    "soon/ADV/advmod after/ADV",
)
SETTINGS = ("village", "town", "island", "valley")
SETTING_ADJECTIVES = ("small", "quiet", "poor", "lonely")
NEAR = ("sea", "mountains", "border")


def _person(line: str) -> Person:
    name, trade, adjective, sex, verbs = line.split(maxsplit=4)
    return Person(name, trade, adjective, sex == "f", frozenset(verbs.split()))


PEOPLE = tuple(
    _person(line)
    for line in (
        "Mira girl young f run sing laugh find pick dance",
        "Tom boy little m run swim lose catch laugh hide",
        "Anna baker busy f bake sell work eat fill",
        "Otto fisherman old m catch mend wait clean pull",
        "Rosa teacher kind f write study help open say",
        "Karl farmer strong m feed sell work pull push",
        "Clara painter clever f paint watch clean dream",
        "Hugo sailor brave m sing carry fold sleep see",
        "Nora gardener patient f pick brush fill smile",
        "Max carpenter lazy m mend push sit hide sleep",
        "Vera doctor wise f help carry study listen know",
        "Felix postman cheerful m bring ride walk count ring",
        "Ida widow lonely f pray light wear sit think",
        "Ben shepherd shy m follow call rest stand count",
        "Lena weaver quiet f fold sell wear show listen",
        "Paul miller stubborn m fill close count buy decide",
    )
)


def _place(line: str) -> Place:
    name, preposition, spots, verbs, things = line.split()
    return Place(
        name,
        preposition,
        tuple((spot.split("/")[0], spot.split("/")[1]) for spot in spots.split(",")),
        frozenset(verbs.split(",")),
        frozenset(things.split(",")),
    )


PLACES = tuple(
    _place(line)
    for line in (
        "harbour at on/pier,near/lighthouse,behind/boats wait,watch,sell boat,net,rope,fish",
        "mill at under/wheel,behind/sacks,on/stairs work,rest,push sack,wheel,ladder,cart",
        "market at near/stalls,under/awning,behind/crowd buy,sell,meet apple,cheese,basket,coin",
        "garden in under/oak,by/fence,near/roses pick,sit,rest flower,bucket,apple,ladder",
        "forest in under/pines,near/stream,behind/rocks run,find,listen mushroom,stone,fox,axe",
        "bridge on by/railing,under/arch,near/steps stand,meet,dream hat,stone,coin,horse",
        "school at on/bench,near/blackboard,behind/desk study,laugh,write book,pencil,map,bell",
        "church in by/altar,near/candles,on/tower pray,sing,listen candle,bell,book,door",
        "bakery in by/oven,near/counter,behind/shelf bake,buy,eat bread,cake,egg,door",
        "farm on behind/barn,near/haystack,by/gate feed,work,sleep goat,horse,egg,cart",
        "river by on/bank,under/willow,near/reeds swim,sit,catch fish,boat,net,stone",
        "tavern in by/hearth,near/window,on/chair eat,sing,dance cup,drum,cheese,coat",
    )
)


def _thing(line: str) -> Thing:
    name, adjectives, verbs = line.split()
    first, second = adjectives.split(",")
    return Thing(name, (first, second), frozenset(verbs.split(",")))


THINGS = tuple(
    _thing(line)
    for line in (
        "boat wooden,blue mend,paint,push,pull,sell",
        "net long,torn mend,carry,fold,pull",
        "rope long,thick take,find,pull,carry",
        "fish silver,fat catch,eat,sell,clean,buy",
        "sack heavy,torn carry,fill,open,close",
        "wheel broken,wooden mend,push,paint",
        "ladder wooden,long carry,find,take,hide",
        "cart broken,heavy push,pull,mend,sell",
        "apple red,ripe pick,eat,buy,sell",
        "cheese ripe,soft eat,buy,sell,hide",
        "basket empty,round fill,carry,take,lose",
        "coin golden,old find,lose,count,hide",
        "flower yellow,wild pick,find,take",
        "bucket empty,rusty fill,carry,clean",
        "mushroom white,wild pick,find,eat",
        "stone round,white find,paint,hide,carry",
        "fox thin,wild feed,catch,find",
        "axe rusty,sharp take,lose,clean,hide",
        "hat green,round wear,lose,brush,find",
        "horse brown,gentle feed,brush,buy,sell",
        "book thick,secret open,close,study,find,write",
        "pencil sharp,green find,lose,take",
        "map secret,torn study,fold,find,hide",
        "bell loud,golden ring,hide,clean",
        "candle white,thin light,take,buy",
        "door heavy,green open,close,paint",
        "bread fresh,soft bake,eat,buy,carry",
        "cake sweet,round bake,eat,carry,sell",
        "egg fresh,broken find,count,sell,eat",
        "goat stubborn,brown feed,catch,brush",
        "cup blue,empty fill,clean,take",
        "drum loud,round carry,mend,hide",
        "coat warm,torn wear,brush,mend,fold",
        "letter secret,long write,open,hide,find",
        "lantern rusty,bright light,carry,mend,clean",
        "key rusty,golden find,lose,hide,take",
    )
)

_FALL = Verb("fell", "falls", "fall")
WEATHERS = (
    Weather("rain", (_FALL, Verb("stopped", "stops", "stop")), frozenset({"wet", "cold", "sad"}),
            Verb("rained", "rains", "rain")),
    Weather("snow", (_FALL, Verb("melted", "melts", "melt")), frozenset({"cold", "happy"}),
            Verb("snowed", "snows", "snow")),
    Weather("wind", (Verb("blew", "blows", "blow"), Verb("howled", "howls", "howl")),
            frozenset({"cold", "afraid"})),
    Weather("fog", (Verb("rose", "rises", "rise"), Verb("lifted", "lifts", "lift")),
            frozenset({"afraid", "sad"})),
    Weather("sun", (Verb("shone", "shines", "shine"), Verb("burned", "burns", "burn")),
            frozenset({"warm", "happy", "dusty"})),
    Weather("storm", (Verb("raged", "rages", "rage"), Verb("passed", "passes", "pass")),
            frozenset({"wet", "afraid"})),
)  # fmt: skip
WEATHER_SPOTS = (("over", "roofs"), ("over", "hills"), ("over", "fields"))

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


def _with_article(text: str) -> tuple[Word, ...]:
    """A phrase behind its indefinite article."""
    return words(f"{'an' if text[0] in 'aeiou' else 'a'}/DET/det {text}")


def _new_people(state: State, weight: float) -> list[Phrase[Subject]]:
    """``a young girl named Mira``, for everyone who is not in the story yet."""
    others = [person for person in PEOPLE if person not in state.cast]
    if len(state.cast) >= MAX_CAST:
        return []
    text = "{0.adjective}/ADJ/amod {0.trade}/NOUN named/VERB/acl {0.name}/PROPN/xcomp/3"
    weight /= len(others)
    return [Phrase(weight, _with_article(text.format(p)), Subject((p,), new=True)) for p in others]


def _known_person(person: Person, weight: float) -> list[Phrase[Subject]]:
    """``Mira``, ``the girl``, ``the young girl``."""
    texts = {
        f"{person.name}/PROPN": 0.6,
        f"the/DET/det {person.trade}/NOUN": 0.3,
        f"the/DET/det {person.adjective}/ADJ/amod {person.trade}/NOUN": 0.1,
    }
    return [Phrase(p * weight, words(text), Subject((person,))) for text, p in texts.items()]


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
            pronoun = words("she/PRON" if person.female else "he/PRON")
            share = (0.9 if close else 0.55) if person in state.last else 0.3
            options.append(Phrase(share * weight, pronoun, Subject((person,), pronoun=True)))
            weight *= 1.0 - share
        options += _known_person(person, weight)
    if state.pair and not set(state.pair) & set(without):
        weight = 1.5 if state.last == state.pair else 0.4
        options.append(Phrase(weight, words("they/PRON"), Subject(state.pair, pronoun=True)))
    for kind, probability in weathers(state).items():
        noun = words(f"the/DET/det {kind.noun}/NOUN")
        options.append(Phrase(weather * probability, noun, Subject(weather=kind)))
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
            pronoun = words("her/PRON" if person.female else "him/PRON")
            options.append(Phrase(0.5, pronoun, Subject((person,), pronoun=True)))
            weight = 0.5
        options += _known_person(person, weight)
    return options


def things(state: State, candidates: list[Thing], subject: Subject, sentence: int) -> list[Phrase[Mention]]:
    """Things as objects: new (``a rusty key``), known (``the key``, ``her key``), or ``it``."""
    options: list[Phrase[Mention]] = []
    for thing in candidates:
        noun = f"{thing.name}/NOUN"
        weight = 5.0 if state.place is not None and thing.name in state.place.things else 1.0
        if thing.name not in state.things:
            options.append(Phrase(0.6 * weight, _with_article(noun), (thing, "")))
            for adjective in thing.adjectives:
                text = _with_article(f"{adjective}/ADJ/amod {noun}")
                options.append(Phrase(0.2 * weight, text, (thing, adjective)))
            continue
        weight *= 8.0
        mention = (thing, "")
        if state.it is thing and sentence - state.it_sentence <= 1:
            options.append(Phrase(0.5 * weight, words("it/PRON"), mention))
            weight *= 0.5
        if subject.people and state.owner.get(thing.name) == subject.people:
            own = words(f"{subject.possessive}/PRON/nmod:poss {noun}")
            options.append(Phrase(0.5 * weight, own, mention))
            weight *= 0.5
        if adjective := state.things[thing.name]:
            text = words(f"the/DET/det {adjective}/ADJ/amod {noun}")
            options.append(Phrase(0.3 * weight, text, mention))
            weight *= 0.7
        options.append(Phrase(weight, words(f"the/DET/det {noun}"), mention))
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
    options: list[Phrase[Place | None]] = [Phrase(1.0, words("home/ADV"), None)]
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
    text = "{}/ADP/case a/DET/det {}/ADJ/amod {}/NOUN near/ADP/case/6 the/DET/det/6 {}/NOUN/nmod"
    return [
        Phrase(1.0, words(text.format("on" if place == "island" else "in", kind, place, near)), None)
        for place in SETTINGS
        for kind in SETTING_ADJECTIVES
        for near in NEAR
    ]


def weather_spots() -> list[Phrase[None]]:
    """Where the weather is: ``over the roofs``."""
    return [Phrase(1.0, _at(*spot), None) for spot in WEATHER_SPOTS]


def _at(preposition: str, noun: str) -> tuple[Word, ...]:
    return words(f"{preposition}/ADP/case the/DET/det {noun}/NOUN")
