"""Prose of simulated studies: stories, parse, true surprisal, and what is planted from it."""

from __future__ import annotations

import hashlib
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lpact.datasets.base import DATASETS, FeatureKey
from lpact.datasets.simulated.brain import word_response
from lpact.datasets.simulated.dataset import Simulated
from lpact.datasets.simulated.latents import discourse_state
from lpact.datasets.simulated.options import MECHANISMS
from lpact.datasets.simulated.prose import (
    N_STORIES,
    SENTENCES_PER_STORY,
    read_stories,
    unigrams,
    word_type,
)
from lpact.datasets.validate import check_recording, check_stimulus
from lpact.errors import ConfigError
from lpact.features.mechanisms import MECHANISMS as REGISTERED
from lpact.features.mechanisms import MechanismInputs
from lpact.features.parsing import parse_from_columns
from story_grammar import lexicon

UPOS = {"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "NOUN", "NUM"} | {*("PART", "PRON", "PROPN", "SCONJ", "VERB")}
DEPREL = {"root", "nsubj", "obj", "obl", "nmod", "nmod:poss", "det", "amod", "advmod", "case"} | {
    *("cc", "conj", "mark", "advcl", "acl", "acl:relcl", "ccomp", "xcomp", "cop", "aux", "expl"),
    "nummod",
}
WORDS_DIGEST = "0426e64f8c3b1a28e3b2cbf8d068c23856bdbcccc4bdd51f1e2c5017d8af41c9"
RECIPE_DIGEST = "2849aba2584bc832a035c5d152c4ee1f3af737586bd67c75e502adbf0fde716c"
SMALL: dict[str, Any] = {"text": "prose", "n_stories": 2, "sentences_per_story": 12, "n_units": 8}


def study(seed: int = 0, **options: Any) -> Simulated:
    dataset = DATASETS.build("simulated", options).open(name="sim", path=None, seed=seed)
    assert isinstance(dataset, Simulated)
    return dataset


@pytest.fixture(scope="module")
def text():
    columns = read_stories(range(60), 20).to_dict()
    return SimpleNamespace(**{name: values.to_numpy() for name, values in columns.items()})


def test_a_source_cannot_be_coded_in_fewer_bits_than_its_entropy(text) -> None:
    """Mean bits are the entropy rate: every other distribution over words costs more."""
    bits = text.bits
    assert 2.0 < bits.mean() < 3.5
    probability = unigrams()
    unigram = np.array([-math.log2(probability[word_type(word)]) for word in text.word])
    assert unigram.mean() > bits.mean() + 3.0
    assert bits.min() >= 0.0
    assert np.corrcoef(bits, unigram)[0, 1] > 0.3


def test_heads_form_one_tree_a_sentence(text) -> None:
    for sentence in np.unique(text.sentence):
        head = text.head[text.sentence == sentence].tolist()
        assert head.count(0) == 1
        for start in range(1, len(head) + 1):
            seen, at = set(), start
            while at:
                assert at not in seen
                assert 1 <= at <= len(head)
                seen.add(at)
                at = head[at - 1]
    roots = np.array(text.deprel)[text.head == 0]
    assert set(roots) == {"root"}


def test_labels_are_those_of_universal_dependencies(text) -> None:
    assert set(text.upos) == UPOS
    assert set(text.deprel) == DEPREL


def test_subjects_and_verbs_agree(text) -> None:
    """In present-tense stories: singular verbs with one subject, base forms with two or ``they``."""
    verbs = {v.singular: v.base for kind in ("ALONE", "MOTION", "HANDLE", "MEET", "GIVE", "SAY")
             for v in getattr(lexicon, kind).values()}  # fmt: skip
    first = np.searchsorted(text.sentence, text.sentence)
    n_checked = 0
    for row, relation in enumerate(text.deprel):
        if relation != "nsubj":
            continue
        verb_row = first[row] + text.head[row] - 1
        verb = word_type(text.word[verb_row])
        helped = any(
            text.deprel[r] == "aux" and first[r] + text.head[r] - 1 == verb_row for r in range(first[row], verb_row)
        )
        subject = word_type(text.word[row])
        if helped or subject == "who" or verb not in {*verbs, *verbs.values()}:
            continue
        joined = any(text.deprel[r] == "conj" and first[r] + text.head[r] - 1 == row for r in range(row, verb_row))
        plural = joined or subject == "they"
        assert (verb in verbs.values()) == plural, " ".join(text.word[row : verb_row + 1])
        n_checked += 1
    assert n_checked > 100


def test_sentences_look_like_sentences(text) -> None:
    sizes = np.bincount(text.sentence)
    low, high = np.percentile(sizes, [2, 97])
    assert low >= 4
    assert high <= 15
    assert 7 < sizes.mean() < 11
    first = np.flatnonzero(np.diff(text.sentence, prepend=-1))
    last = np.append(first[1:], len(text.word)) - 1
    assert all(text.word[row][0].isupper() for row in first)
    assert all(text.word[row][-1] == "." for row in last)
    assert sum(word.endswith(".") for word in text.word) == len(last)
    assert sum(word.endswith(",") for word in text.word) > 0.1 * len(last)
    assert {"acl:relcl", "advcl", "conj", "ccomp"} <= set(text.deprel)
    n_types = len({word_type(word) for word in text.word})
    assert 300 < n_types <= len(unigrams()) < 600
    assert np.bincount(text.paragraph).min() >= 5


def test_people_and_places_persist_in_a_story(text) -> None:
    names = {person.name for person in lexicon.PEOPLE}
    for story in range(60):
        words = {text.word[row].rstrip(".,") for row in np.flatnonzero(text.story == story)}
        assert 1 <= len(names & words) <= 4
    assert len(names & {word.rstrip(".,") for word in text.word}) == len(names)


def test_pronouns_refer_to_someone_named_before(text) -> None:
    female = {person.name: person.female for person in lexicon.PEOPLE}
    pronouns = {"he": False, "him": False, "she": True}
    for row, word in enumerate(text.word):
        if word_type(word) in pronouns:
            start = int(np.searchsorted(text.story, text.story[row]))
            known = {w.rstrip(".,") for w in text.word[start:row]} & set(female)
            assert text.person[row] in known
            assert female[text.person[row]] == pronouns[word_type(word)]


def test_prose_is_deterministic_and_keyed() -> None:
    one, two = (
        study(**SMALL).stimulus("stimulus01").words,
        study(**SMALL).stimulus("stimulus01").words,
    )
    assert one.equals(two)
    other = study(1, **SMALL).stimulus("stimulus01").words
    assert one["word"].to_list() != other["word"].to_list()
    first = study(**SMALL)
    again = study(**SMALL)
    recording_id = first.recording_ids()[0]
    np.testing.assert_array_equal(
        first.recording(recording_id).signal.values, again.recording(recording_id).signal.values
    )


def test_stimuli_have_their_own_stories() -> None:
    dataset = study(text="prose", n_runs=8, repeat_stimulus=False, n_stories=N_STORIES // 8)
    shown = [
        " ".join(words["word"])
        for stimulus in dataset.stimulus_ids()
        for words in dataset.stimulus(stimulus).words.partition_by("story_id")
    ]
    assert len(set(shown)) == N_STORIES


@pytest.mark.parametrize(
    ("sizes", "remedy"),
    [
        ({"n_stories": N_STORIES + 1}, "lower n_stories"),
        ({"n_stories": 81, "n_runs": 2, "repeat_stimulus": False}, "lower n_stories or n_runs"),
        ({"sentences_per_story": SENTENCES_PER_STORY + 1}, "raise n_stories"),
    ],
)
def test_prose_beyond_the_stories_is_an_error(sizes: dict[str, Any], remedy: str) -> None:
    DATASETS.build("simulated", sizes)
    with pytest.raises(ConfigError, match=remedy):
        study(text="prose", **sizes)


def test_syllables_are_as_they_were() -> None:
    """Digests of words, onsets and recipe from before there was prose."""
    dataset = study(n_stories=2, sentences_per_story=6, n_units=8)
    words = dataset.stimulus("stimulus01").words
    assert words.columns[-1] == "log_frequency"
    spelled = "".join(words["word"]).encode() + words["onset_s"].to_numpy().tobytes()
    assert hashlib.sha256(spelled).hexdigest() == WORDS_DIGEST
    assert study().source_files()[0].sha256 == RECIPE_DIGEST
    assert study(text="prose").source_files()[0].sha256 != RECIPE_DIGEST


@pytest.mark.parametrize("modality", ["intracranial", "fmri", "epoched"])
def test_a_prose_study_is_well_formed(modality: str) -> None:
    truths = ("drift", "lexical", "predictive", "relational", "mechanism")
    dataset = study(**SMALL, modality=modality, truths=truths)
    stimulus = dataset.stimulus("stimulus01")
    check_stimulus(stimulus)
    assert stimulus.mechanisms == {}
    assert stimulus.words["paragraph_id"].n_unique() > 2
    check_recording(dataset.recording(dataset.recording_ids()[0]))
    features = stimulus.features[FeatureKey("integrated", 2, "full")].load()
    assert features.shape[0] == stimulus.words.height
    assert np.isfinite(stimulus.features[FeatureKey("integrated", 2, "reversed")].load()).all()


def test_a_very_short_study_has_finite_latents() -> None:
    for seed in range(5):
        tiny = {"text": "prose", "n_stories": 1, "sentences_per_story": 4, "n_context_dims": 7}
        latents = study(seed, **tiny).latents("stimulus01").contextual
        for values in (latents.context, latents.private, latents.mechanisms):
            assert np.isfinite(values).all()


def test_the_planted_surprisal_is_the_true_one() -> None:
    options = SMALL | {"truths": ("mechanism",), "mechanisms": ("surprisal",)}
    dataset = study(**options)
    bits = dataset.stimulus("stimulus01").words["true_surprisal_bits"].to_numpy()
    gains = dataset.gains(dataset.recording_ids()[0])
    response = word_response(dataset.options, dataset.latents("stimulus01"), gains)
    carriers = gains.mechanisms[MECHANISMS.index("surprisal")] > 0
    assert carriers.sum() == 3
    for unit in np.flatnonzero(carriers):
        assert np.corrcoef(response[:, unit], bits)[0, 1] == pytest.approx(1.0)
    assert not response[:, ~carriers].any()


def test_planted_mechanisms_of_the_parse_are_those_that_a_study_computes() -> None:
    dataset = study(**SMALL)
    stimulus = dataset.stimulus("stimulus01")
    inputs = MechanismInputs(stimulus, parse=parse_from_columns(stimulus))
    planted = dataset.latents("stimulus01").contextual.mechanisms
    for name in ("dependency_integration", "syntactic_boundary", "discourse_boundary"):
        computed = REGISTERED.build(name, {}, where="test").compute(inputs)
        assert isinstance(computed, np.ndarray)
        r = np.corrcoef(planted[:, MECHANISMS.index(name)], computed)[0, 1]
        assert r == pytest.approx(1.0)


def test_planted_context_is_read_from_the_text() -> None:
    dataset = study(text="prose")
    latents = dataset.latents("stimulus01").contextual
    words = dataset.stimulus("stimulus01").words
    bits = words["true_surprisal_bits"].to_numpy()
    assert np.corrcoef(latents.context[:, 0], bits)[0, 1] == pytest.approx(1.0)
    np.testing.assert_allclose(latents.context.T @ latents.private / len(bits), 0.0, atol=1e-9)
    for values in (latents.context, latents.private, latents.mechanisms):
        np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(values.std(axis=0), 1.0)


def test_the_discourse_state_is_slow_and_knows_no_future() -> None:
    long, short = (read_stories([4], n) for n in (20, 10))
    state, n = discourse_state(long, 3), short.height
    np.testing.assert_array_equal(state[:n], discourse_state(short, 3))
    assert all(np.corrcoef(state[1:, i], state[:-1, i])[0, 1] > 0.9 for i in range(3))
