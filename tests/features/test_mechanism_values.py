"""The values of every built-in mechanism, against definitions written out word by word."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from lpact.codes import Reason
from lpact.datasets.base import Stimulus
from lpact.errors import ConfigError, StimulusError
from lpact.features.mechanisms import MECHANISMS, MechanismInputs, Missing, mechanism_matrix
from lpact.features.parsing import Parse, read_parse

ALL = tuple(MECHANISMS.names())
FROM_LANGUAGE = ("surprisal", "semantic_transition", "context_update")
FROM_PARSE = ("dependency_integration", "syntactic_boundary", "discourse_boundary")


@dataclass
class Values:
    """A language model's view, given as arrays."""

    vectors: dict = field(default_factory=dict)
    bits: np.ndarray | Missing | None = None
    entropies: np.ndarray | Missing | None = None
    where: str = "model 'toy'"

    def surprisal(self):
        return self.bits

    def entropy(self):
        return self.entropies

    def states(self, layer):
        return self.vectors[layer]

    @property
    def layers(self):
        return tuple(sorted(layer for layer in self.vectors if layer is not None))


def make_stimulus(story_lengths, mechanisms=None, extra=None):
    story = [f"s{i}" for i, n in enumerate(story_lengths) for _ in range(n)]
    n = len(story)
    words = pl.DataFrame(
        {
            "word": [f"w{i}" for i in range(n)],
            "onset_s": np.arange(n, dtype=float),
            "offset_s": np.arange(n) + 0.5,
            "sentence_id": [int(s[1:]) for s in story],
            "story_id": story,
        },
        schema_overrides={"sentence_id": pl.Int64, "story_id": pl.String, "word": pl.String},
    )
    words = words.with_columns(**(extra or {}))
    return Stimulus("stim", words, "words.csv", mechanisms=mechanisms or {})


def compute(name, stimulus, language=None, parse=None, **options):
    given_inputs = {"language": language, "parse": parse}
    inputs = MechanismInputs(stimulus, **{k: v for k, v in given_inputs.items() if v is not None})
    values, _, missing = mechanism_matrix((name,), inputs, {name: options})
    return missing[name] if missing else values[:, 0]


# --- Where values come from ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_values_of_the_dataset_win(name):
    own = np.array([3, 1, 2])
    language = Values({None: np.eye(3), 1: np.eye(3)}, np.zeros(3), np.zeros(3))
    parse = Parse(np.array([-1, 0, 1]), ("root", "obj", "obj"), None, "here")
    stimulus = make_stimulus([3], mechanisms={name: own})
    values = compute(name, stimulus, language, parse)
    assert values.dtype == np.float64
    assert values.tolist() == [3, 1, 2]
    assert compute(name, make_stimulus([3]), language, parse).tolist() != [3, 1, 2]


@pytest.mark.parametrize("name", ALL)
def test_without_any_source_the_reason_says_what_is_needed(name):
    missing = compute(name, make_stimulus([3]))
    assert missing.reason is Reason.MECHANISM_NOT_OFFERED
    assert f"has no values of '{name}'; needed: one value per word, or " in missing.detail
    why = "no model of the study reads text" if name in FROM_LANGUAGE else "no parser is named"
    assert missing.detail.endswith(why)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("surprisal", {}),
        ("semantic_transition", {}),
        ("context_update", {}),
        ("context_update", {"of": "prediction"}),
    ],
)
def test_what_the_model_cannot_say_is_passed_on(name, options):
    why = Missing(Reason.CONTEXT_NOT_OFFERED, "it is masked")
    language = Values({None: why, 4: why}, why, why)
    missing = compute(name, make_stimulus([3]), language, **options)
    assert missing.reason is Reason.CONTEXT_NOT_OFFERED
    assert missing.detail.endswith("; but: it is masked")


@pytest.mark.parametrize("name", ["semantic_transition", "context_update"])
def test_a_layer_that_does_not_exist_is_named_with_those_that_do(name):
    language = Values({None: np.eye(3), 0: np.eye(3), 2: np.eye(3)})
    missing = compute(name, make_stimulus([3]), language, layer=1)
    assert missing.detail.endswith("model 'toy' has no layer 1 (available: 0, 2)")
    with pytest.raises(ConfigError, match="layer"):
        compute(name, make_stimulus([3]), language, layer=-1)


@pytest.mark.parametrize("name", ALL)
def test_a_stimulus_without_words_has_no_values(name):
    language = Values({None: np.empty((0, 4)), 1: np.empty((0, 4))}, np.empty(0), np.empty(0))
    parse = Parse(np.empty(0, dtype=np.int64), (), (), "here")
    assert compute(name, make_stimulus([]), language, parse).shape == (0,)


# --- From a language model -----------------------------------------------------------------------


def test_surprisal_is_the_models():
    bits = np.array([1.5, 0.0, 7.25])
    values = compute("surprisal", make_stimulus([3]), Values(bits=bits))
    np.testing.assert_array_equal(values, bits)


def pearson(a, b):
    if len(set(a)) == 1 or len(set(b)) == 1:
        return 0.0
    return scipy.stats.pearsonr(a, b).statistic


stories = st.lists(st.integers(1, 7), min_size=1, max_size=4)
scales = st.sampled_from((1e-200, 1e-3, 1.0, 1e5, 1e200))


@settings(deadline=None)
@given(stories, st.integers(0, 2**32 - 1), st.integers(1, 8), scales, st.sampled_from((None, 3)))
def test_transitions_match_their_definition(lengths, seed, context_words, scale, layer):
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    vectors = rng.standard_normal((n, 5)) + 3.0
    vectors[rng.random(n) < 0.2] = 0.0
    vectors[rng.random(n) < 0.1] = 0.1
    values = compute(
        "semantic_transition",
        make_stimulus(lengths),
        Values({layer: vectors * scale, 8: np.ones((n, 5))}),
        layer=layer,
        context_words=context_words,
    )
    expected, begin = [], 0
    for length in lengths:
        for i in range(begin, begin + length):
            before = vectors[max(begin, i - context_words) : i]
            r = pearson(vectors[i], before.mean(axis=0)) if len(before) else 0.0
            expected.append(1.0 - r)
        begin += length
    np.testing.assert_allclose(values, expected, atol=1e-9)
    assert values.min() >= 0
    assert values.max() <= 2


def test_words_without_a_vector_move_nothing():
    vectors = np.zeros((4, 6))
    vectors[0] = np.arange(6)
    values = compute("semantic_transition", make_stimulus([4]), Values({None: vectors}), context_words=1)
    assert values.tolist() == [1, 1, 1, 1]


def test_the_same_vector_again_is_no_transition_and_its_opposite_the_largest():
    v = np.array([0.3, -1.0, 2.0])
    vectors = np.array([v, v, -v, v])
    values = compute("semantic_transition", make_stimulus([3, 1]), Values({None: vectors}), context_words=2)
    np.testing.assert_allclose(values, [1, 0, 2, 1], atol=1e-15)


@settings(deadline=None)
@given(stories, st.integers(0, 2**32 - 1))
def test_updates_of_the_state_match_their_definition(lengths, seed):
    n = sum(lengths)
    rng = np.random.default_rng(seed)
    layers = {layer: rng.standard_normal((n, 4)).astype(np.float16) for layer in (0, 1, 2)}
    language = Values({**layers, None: np.zeros((n, 4))})
    firsts = set(np.cumsum([0, *lengths]).tolist())
    for options, used in (({}, 2), ({"layer": 1}, 1)):
        states = layers[used].astype(np.float64)
        expected = [1.0 - (0.0 if i in firsts else pearson(states[i], states[i - 1])) for i in range(n)]
        values = compute("context_update", make_stimulus(lengths), language, **options)
        np.testing.assert_allclose(values, expected, atol=1e-12)


@given(stories, st.data())
def test_updates_of_the_prediction_are_entropy_reductions(lengths, data):
    n = sum(lengths)
    bits = data.draw(st.lists(st.floats(0, 16), min_size=n, max_size=n))
    firsts = set(np.cumsum([0, *lengths]).tolist())
    expected = [0.0 if i in firsts else max(0.0, bits[i - 1] - bits[i]) for i in range(n)]
    language = Values(entropies=np.array(bits))
    values = compute("context_update", make_stimulus(lengths), language, of="prediction")
    assert values.tolist() == expected


def test_a_model_without_layers_has_no_states():
    missing = compute("context_update", make_stimulus([2]), Values({None: np.eye(2)}))
    assert missing.detail.endswith("model 'toy' has no hidden states")


# --- From a parse --------------------------------------------------------------------------------


def parsed(text, sentence_ids=None, upos=True, paragraphs=None, stories=None):
    """A stimulus from lines of ``word head relation upos``, and its parse."""
    rows = [line.split() for line in text.strip().splitlines()]
    n = len(rows)
    words = pl.DataFrame(
        {
            "word": [row[0] for row in rows],
            "onset_s": np.arange(n, dtype=float),
            "offset_s": np.arange(n) + 0.5,
            "sentence_id": sentence_ids or [0] * n,
            "story_id": stories or ["a"] * n,
            "head": [int(row[1]) for row in rows],
            "deprel": [row[2] for row in rows],
        }
    )
    if upos:
        words = words.with_columns(upos=pl.Series([row[3] for row in rows]))
    if paragraphs:
        words = words.with_columns(paragraph_id=pl.Series(paragraphs))
    stimulus = Stimulus("stim", words, "words.csv")
    return stimulus, read_parse(stimulus, None)


GARDEN = """
The      2 det       DET
dog      6 nsubj     NOUN
that     5 obj       PRON
I        5 nsubj     PRON
saw      2 acl:relcl VERB
barked   0 root      VERB
.        6 punct     PUNCT
"""


def test_integration_and_boundaries_of_a_sentence_worked_by_hand():
    stimulus, parse = parsed(GARDEN)
    cost = compute("dependency_integration", stimulus, parse=parse)
    assert cost.tolist() == [0, 1, 0, 0, 2 + 1 + 3, 4, 0]
    closes = compute("syntactic_boundary", stimulus, parse=parse)
    assert closes.tolist() == [0, 0, 0, 0, 2, 0, 1]
    begins = compute("discourse_boundary", stimulus, parse=parse)
    assert begins.tolist() == [3, 0, 1, 0, 0, 0, 0]  # story, sentence and clause; relative clause


def test_integration_stays_inside_its_sentence():
    stimulus, parse = parsed("\n".join([GARDEN.strip()] * 3), sentence_ids=[0] * 7 + [1] * 7 + [9] * 7)
    cost = compute("dependency_integration", stimulus, parse=parse)
    assert cost.tolist() == [0, 1, 0, 0, 6, 4, 0] * 3
    assert compute("syntactic_boundary", stimulus, parse=parse).tolist() == [0, 0, 0, 0, 2, 0, 1] * 3


FRONTED = """
When   3 mark   SCONJ
he     3 nsubj  PRON
came   5 advcl  VERB
I      5 nsubj  PRON
left   0 root   VERB
and    8 cc     CCONJ
she    8 nsubj  PRON
stayed 5 conj   VERB
"""
COPULAS = """
She     3 nsubj PRON
was     3 cop   AUX
tired   0 root  ADJ
and     7 cc    CCONJ
he      7 nsubj PRON
was     7 cop   AUX
awake   3 conj  ADJ
"""
NOUNS = """
Cats  0 root NOUN
and   3 cc   CCONJ
dogs  1 conj NOUN
"""
COMPLEMENTS = """
He      2 nsubj PRON
said    0 root  VERB
she     4 nsubj PRON
wanted  2 ccomp VERB
to      6 mark  PART
eat     4 xcomp VERB
and     8 cc    CCONJ
drink   6 conj  VERB
"""
CHAIN = """
Come   0 root VERB
see    1 conj VERB
win    2 conj VERB
"""


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        (FRONTED, [0, 3, 5]),  # the main clause begins after the fronted one
        (COPULAS, [0, 3]),  # predicates need not be verbs
        (NOUNS, [0]),
        (COMPLEMENTS, [0, 2]),  # reported speech, but no infinitive and nothing joined to one
        (CHAIN, [0, 1, 2]),  # conjuncts of conjuncts
    ],
)
def test_elementary_discourse_units(text, starts):
    stimulus, parse = parsed(text)
    values = compute("discourse_boundary", stimulus, parse=parse, units=["clause"])
    assert np.flatnonzero(values).tolist() == starts
    assert values.max() == 1


def test_without_parts_of_speech_every_conjunct_of_a_clause_is_one():
    for text, starts in ((FRONTED, [0, 3, 5]), (COPULAS, [0, 3]), (NOUNS, [0, 1])):
        stimulus, parse = parsed(text, upos=False)
        values = compute("discourse_boundary", stimulus, parse=parse, units=["clause"])
        assert np.flatnonzero(values).tolist() == starts


def test_relations_that_make_a_clause_are_the_users_to_choose():
    stimulus, parse = parsed(COMPLEMENTS)
    none = compute("discourse_boundary", stimulus, parse=parse, units=["clause"], clauses=[])
    assert np.flatnonzero(none).tolist() == [0]
    more = compute("discourse_boundary", stimulus, parse=parse, units=["clause"], clauses=["xcomp"])
    assert np.flatnonzero(more).tolist() == [0, 4, 6]


def test_every_unit_that_begins_is_counted():
    stimulus, parse = parsed(
        "\n".join([NOUNS.strip()] * 4),
        sentence_ids=[i for i in range(4) for _ in range(3)],
        paragraphs=["p"] * 6 + ["q"] * 3 + ["q"] * 3,
        stories=["a"] * 9 + ["b"] * 3,
    )
    expected = {
        ("story",): [1, 0, 0, 1],
        ("paragraph",): [1, 0, 1, 1],  # a story begins a paragraph, whatever its name
        ("sentence",): [1, 1, 1, 1],
        ("clause",): [1, 1, 1, 1],
        ("story", "paragraph", "sentence", "clause"): [4, 2, 3, 4],
    }
    for units, firsts in expected.items():
        values = compute("discourse_boundary", stimulus, parse=parse, units=list(units))
        assert values[::3].tolist() == firsts
        assert values.sum() == sum(firsts)
    default = compute("discourse_boundary", stimulus, parse=parse)
    assert default[::3].tolist() == [4, 2, 3, 4]


def test_without_clauses_no_parse_is_needed():
    values = compute("discourse_boundary", make_stimulus([2, 1]), units=["story", "sentence"])
    assert values.tolist() == [2, 0, 2]
    missing = compute("discourse_boundary", make_stimulus([2, 1]))
    assert "a dependency parse (or its option `units` without `clause`)" in missing.detail


def test_a_word_without_a_paragraph_is_named():
    stimulus = make_stimulus([3], extra={"paragraph_id": pl.Series([1, None, 2])})
    with pytest.raises(StimulusError) as error:
        compute("discourse_boundary", stimulus, units=["paragraph"])
    assert error.value.where == "words.csv, column 'paragraph_id', row 2, word 'w1'"


def test_options_are_checked():
    for name, options in (
        ("semantic_transition", {"context_words": 0}),
        ("context_update", {"of": "states"}),
        ("discourse_boundary", {"units": []}),
        ("discourse_boundary", {"units": ["chapter"]}),
        ("surprisal", {"layer": 1}),
    ):
        with pytest.raises(ConfigError, match=next(iter(options))):
            MECHANISMS.build(name, options)


@pytest.mark.parametrize("name", FROM_PARSE)
def test_counts_are_finite_and_not_negative(name):
    stimulus, parse = parsed(COMPLEMENTS)
    values = compute(name, stimulus, parse=parse)
    assert values.dtype == np.float64
    assert all(math.isfinite(v) and v >= 0 for v in values)
