"""Vocabulary of the stories: people, places, things, verbs, weather.

Every verb belongs to one construction, and no form of a verb is a form of another one or of another
tense: a form tells its verb.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    "walked/walks/walk ran/runs/run went/goes/go hurried/hurries/hurry rode/rides/ride "
    "returned/returns/return"
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
TIMES = (("again",), ("all", "day"), ("all", "night"), ("for", "hours"), ("once", "more"))
MARKS = ("when", "because", "while", "although", "until")
OPENERS = (
    *(("later",), ("afterwards",), ("meanwhile",), ("that", "evening"), ("that", "night")),
    *(("one", "morning"), ("one", "day"), ("soon", "after")),
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
