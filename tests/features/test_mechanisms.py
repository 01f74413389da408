"""Mechanisms: offered values, what is missing, and their correlations."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from lpact.codes import Reason
from lpact.config import MechanismsConfig
from lpact.datasets.base import Stimulus
from lpact.errors import ConfigError, RegistryError, StimulusError
from lpact.features.mechanisms import (
    MECHANISMS,
    MechanismInputs,
    mechanism_correlations,
    mechanism_matrix,
)


def make_inputs(n_words=4, **mechanisms):
    words = pl.DataFrame(
        {
            "word": [f"w{i}" for i in range(n_words)],
            "onset_s": np.arange(n_words, dtype=float),
            "offset_s": np.arange(n_words) + 0.5,
            "sentence_id": [0] * n_words,
            "story_id": ["a"] * n_words,
        }
    )
    stimulus = Stimulus(id="stim", words=words, where="words.csv", mechanisms=mechanisms)
    return MechanismInputs(stimulus)


def test_the_six_mechanisms_of_the_default_study_are_registered():
    assert set(MechanismsConfig().include) <= set(MECHANISMS.names())
    summaries = [entry.summary for entry in MECHANISMS.entries()]
    assert len(set(summaries)) == len(summaries)
    assert all(summary and "\n" not in summary for summary in summaries)


def test_columns_are_the_offered_values_in_the_order_asked_for():
    inputs = make_inputs(surprisal=np.array([1.0, 2.0, 3.0, 4.0]), context_update=np.array([0, 1, 0, 1]))
    names = ("context_update", "syntactic_boundary", "surprisal")
    values, available, missing = mechanism_matrix(names, inputs)
    assert available == ("context_update", "surprisal")
    np.testing.assert_array_equal(values, [[0, 1], [1, 2], [0, 3], [1, 4]])
    assert values.dtype == np.float64
    assert list(missing) == ["syntactic_boundary"]
    assert missing["syntactic_boundary"].reason is Reason.MECHANISM_NOT_OFFERED
    assert missing["syntactic_boundary"].detail == (
        "stimulus 'stim' (words.csv) has no values of 'syntactic_boundary'; "
        "needed: one value per word, or a dependency parse; but: the words table has no columns 'head' "
        "and 'deprel', and no parser is named"
    )


@pytest.mark.parametrize("n_words", [0, 4])
def test_nothing_offered_gives_no_columns(n_words):
    names = MechanismsConfig().include
    values, available, missing = mechanism_matrix(names, make_inputs(n_words))
    assert (values.shape, available) == ((n_words, 0), ())
    assert tuple(missing) == names


@pytest.mark.parametrize("shape", [(3,), (5,), (4, 1)])
def test_a_mechanism_has_one_value_a_word(shape):
    with pytest.raises(StimulusError, match="does not have one value per word") as error:
        mechanism_matrix(("surprisal",), make_inputs(surprisal=np.zeros(shape)))
    assert error.value.got == f"shape {shape}"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused_and_named(bad):
    values = np.array([1.0, 2.0, bad, bad])
    with pytest.raises(StimulusError) as error:
        mechanism_matrix(("surprisal",), make_inputs(surprisal=values))
    assert error.value.where == "words.csv, mechanism 'surprisal', word 2 ('w2')"
    assert error.value.got == f"{bad} (2 such values)"


def test_options_reach_their_mechanism_alone():
    names = ("discourse_boundary", "syntactic_boundary")
    values, available, missing = mechanism_matrix(names, make_inputs(), {"discourse_boundary": {"units": ["sentence"]}})
    assert available == ("discourse_boundary",)
    assert list(missing) == ["syntactic_boundary"]
    assert values[:, 0].tolist() == [1, 0, 0, 0]
    with pytest.raises(ConfigError, match="unknown option; did you mean 'units'"):
        mechanism_matrix(names, make_inputs(), {"discourse_boundary": {"unit": ["sentence"]}})


def test_an_unknown_mechanism_is_named_with_a_suggestion():
    with pytest.raises(RegistryError, match="did you mean 'surprisal'"):
        mechanism_matrix(("suprisal",), make_inputs())


@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from((1e-200, 1e-3, 1.0, 1e5, 1e200)))
def test_correlations_match_scipy_at_every_scale(seed, scale):
    matrix = np.random.default_rng(seed).standard_normal((30, 3)) + 2.0
    names = ("a", "b", "c")
    pairs = mechanism_correlations(matrix * scale, names)
    assert [(a, b) for a, b, _ in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    for a, b, r in pairs:
        expected = scipy.stats.pearsonr(matrix[:, names.index(a)], matrix[:, names.index(b)])
        assert r == pytest.approx(expected.statistic, abs=1e-12)


def test_a_constant_mechanism_has_no_correlation():
    matrix = np.column_stack((np.full(7, 0.1), np.arange(7.0), -2 * np.arange(7.0) + 1))
    pairs = mechanism_correlations(matrix, ("constant", "up", "down"))
    assert math.isnan(pairs[0][2])
    assert math.isnan(pairs[1][2])
    assert pairs[2][2] == pytest.approx(-1.0)
    assert mechanism_correlations(np.empty((0, 2)), ("a", "b"))[0][:2] == ("a", "b")
    assert mechanism_correlations(np.empty((5, 0)), ()) == []
