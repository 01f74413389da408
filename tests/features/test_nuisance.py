"""Nuisance features against plain loops."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpact.codes import Reason
from lpact.config import NuisanceConfig
from lpact.datasets.base import Envelope, Stimulus
from lpact.errors import ConfigError, StimulusError
from lpact.features.nuisance import NUISANCE, build_nuisance


def make_stimulus(onset_s, offset_s, sentence_id, story_id, words=None, extra=None, envelope=None):
    n = len(onset_s)
    table = pl.DataFrame(
        {
            "word": words or [f"w{i}" for i in range(n)],
            "onset_s": onset_s,
            "offset_s": offset_s,
            "sentence_id": sentence_id,
            "story_id": story_id,
        },
        schema={
            "word": pl.String,
            "onset_s": pl.Float64,
            "offset_s": pl.Float64,
            "sentence_id": pl.Int64,
            "story_id": pl.String,
        },
    )
    table = table.with_columns(**(extra or {}))
    return Stimulus(id="stim", words=table, where="words.csv", envelope=envelope)


@st.composite
def stimuli(draw):
    """Words in order of onset, some overlapping or simultaneous, in several stories."""
    n = draw(st.integers(0, 25))
    steps = draw(st.lists(st.sampled_from((0.0, 0.25, 0.3, 1.0, 7.0)), min_size=n, max_size=n))
    durations = draw(st.lists(st.sampled_from((0.0, 0.2, 0.5, 3.0)), min_size=n, max_size=n))
    breaks = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    ends = draw(st.lists(st.sampled_from((0, 0, 0, 1)), min_size=n, max_size=n))
    onset_s = 100.0 + np.cumsum(steps)
    sentence = np.cumsum(np.maximum(breaks, ends)) if n else np.empty(0)
    story = [f"s{-i}" for i in np.cumsum(ends).astype(int).tolist()]
    return make_stimulus(
        onset_s.tolist(),
        (onset_s + durations).tolist() if n else [],
        sentence.tolist(),
        story,
    )


def build_one(name, stimulus, **options):
    values, columns, missing = build_nuisance(stimulus, NuisanceConfig(include=(name,), **options))
    assert missing == {}
    assert values.shape == (stimulus.words.height, len(columns))
    return values


def rows_of(stimulus):
    return list(stimulus.words.iter_rows(named=True))


def loop_word_rate(rows, window_s):
    rate = []
    for row in rows:
        low, high = row["onset_s"] - window_s / 2, row["onset_s"] + window_s / 2
        count = 0
        for other in rows:
            if other["story_id"] == row["story_id"] and low <= other["onset_s"] < high:
                count += 1
        rate.append([count / window_s])
    return rate


def loop_pause(rows):
    pause = []
    for i, row in enumerate(rows):
        before = [r["offset_s"] for r in rows[:i] if r["story_id"] == row["story_id"]]
        pause.append([max(0.0, row["onset_s"] - max(before)) if before else 0.0])
    return pause


def loop_sentences(rows):
    sentences = []
    for i, row in enumerate(rows):
        key = (row["story_id"], row["sentence_id"])
        if i and key == (rows[i - 1]["story_id"], rows[i - 1]["sentence_id"]):
            sentences[-1].append(i)
        else:
            sentences.append([i])
    return sentences


@settings(deadline=None)
@given(stimulus=stimuli(), window_s=st.sampled_from((0.5, 2.0, 20.0)), cosines=st.integers(0, 5))
def test_every_timing_feature_matches_its_loop(stimulus, window_s, cosines):
    rows = rows_of(stimulus)
    n = len(rows)

    rate = build_one("word_rate", stimulus, rate_window_s=window_s)
    np.testing.assert_array_equal(rate, np.reshape(loop_word_rate(rows, window_s), (n, 1)))

    duration = [row["offset_s"] - row["onset_s"] for row in rows]
    np.testing.assert_array_equal(build_one("word_duration", stimulus)[:, 0], duration)

    np.testing.assert_array_equal(build_one("pause_duration", stimulus), np.reshape(loop_pause(rows), (n, 1)))

    length, index, relative = [], [], []
    for sentence in loop_sentences(rows):
        for i in range(len(sentence)):
            length.append(len(sentence))
            index.append(i)
            relative.append(i / (len(sentence) - 1) if len(sentence) > 1 else 0.0)
    np.testing.assert_array_equal(build_one("sentence_length", stimulus)[:, 0], length)
    np.testing.assert_array_equal(build_one("position_in_sentence", stimulus), np.reshape([index, relative], (2, n)).T)

    place, share = [], []
    for row in rows:
        own = [r["sentence_id"] for r in rows if r["story_id"] == row["story_id"]]
        order = list(dict.fromkeys(own))
        place.append(order.index(row["sentence_id"]))
        share.append(place[-1] / (len(order) - 1) if len(order) > 1 else 0.0)
    np.testing.assert_array_equal(build_one("sentence_position", stimulus), np.reshape([place, share], (2, n)).T)

    story = build_one("position_in_story", stimulus, drift_cosines=cosines)
    assert story.shape == (n, 1 + cosines)
    for i, row in enumerate(rows):
        times = [r["onset_s"] for r in rows if r["story_id"] == row["story_id"]]
        span = max(times) - min(times)
        x = (row["onset_s"] - min(times)) / span if span else 0.0
        expected = [x, *(math.cos(math.pi * k * x) for k in range(1, cosines + 1))]
        np.testing.assert_allclose(story[i], expected, atol=1e-12)


@settings(deadline=None)
@given(stimulus=stimuli(), shift_s=st.integers(-64, 64))
def test_nothing_depends_on_where_the_clock_starts(stimulus, shift_s):
    moved = Stimulus(
        id="stim",
        words=stimulus.words.with_columns(pl.col("onset_s", "offset_s") + float(shift_s)),
        where="words.csv",
    )
    # A window off the grid of onsets: none lies on its edge, where rounding would decide.
    config = NuisanceConfig(rate_window_s=1.77)
    base, columns, _ = build_nuisance(stimulus, config)
    shifted, same, _ = build_nuisance(moved, config)
    assert columns == same
    np.testing.assert_allclose(shifted, base, atol=1e-9)


def test_word_length_counts_letters_and_digits_of_any_script():
    words = ["don't", "naïve,", "nai\u0308ve", "—", "Straße", "日本語。", "42nd", "well-known"]
    n = len(words)
    times = [float(i) for i in range(n)]
    stimulus = make_stimulus(times, times, [0] * n, ["a"] * n, words=words)
    assert build_one("word_length", stimulus)[:, 0].tolist() == [4, 5, 5, 0, 6, 3, 4, 9]


def test_log_frequency_comes_from_its_column_or_is_missing():
    base = ([0.0, 1.0, 2.0], [0.5, 1.5, 2.5], [0, 0, 0], ["a"] * 3)
    offered = make_stimulus(*base, extra={"log_frequency": pl.Series([-1.5, -2, 0.0])})
    assert build_one("log_frequency", offered)[:, 0].tolist() == [-1.5, -2.0, 0.0]
    config = NuisanceConfig(include=("log_frequency",))
    for extra, why in (
        ({}, "no column 'log_frequency'"),
        ({"log_frequency": pl.Series([1.0, None, 2.0])}, "1 of 3 words, first word 1 ('w1'"),
        ({"log_frequency": pl.Series([1.0, 2.0, math.nan])}, "1 of 3 words, first word 2 ('w2'"),
        ({"log_frequency": pl.Series(["x", "y", "z"])}, "'log_frequency' contains String"),
    ):
        values, columns, missing = build_nuisance(make_stimulus(*base, extra=extra), config)
        assert (values.shape, columns) == ((3, 0), ())
        assert missing["log_frequency"].reason is Reason.NUISANCE_NOT_OFFERED
        assert "stimulus 'stim' (words.csv)" in missing["log_frequency"].detail
        assert why in missing["log_frequency"].detail


@pytest.mark.parametrize("rate_hz", [100.0, 1000 / 3, 99.9])
def test_envelope_is_averaged_over_each_word(rate_hz):
    rng = np.random.default_rng(0)
    envelope = Envelope(rng.uniform(size=int(rate_hz * 12)), rate_hz, start_s=-1.0)
    onset_s = np.sort(rng.uniform(0, 9, 30))
    offset_s = onset_s + rng.uniform(0, 0.6, 30)
    stimulus = make_stimulus(onset_s.tolist(), offset_s.tolist(), [0] * 30, ["a"] * 30, envelope=envelope)
    expected = []
    for onset, offset in zip(onset_s.tolist(), offset_s.tolist(), strict=True):
        first = round((onset + 1.0) * rate_hz)
        n = max(1, round((offset - onset) * rate_hz))
        expected.append(sum(envelope.values[first : first + n].tolist()) / n)
    np.testing.assert_allclose(build_one("acoustic_envelope", stimulus)[:, 0], expected, rtol=1e-12)


def test_an_envelope_that_does_not_cover_every_word_is_missing():
    base = ([0.0, 1.0], [0.5, 1.5], [0, 0], ["a", "a"])
    config = NuisanceConfig(include=("acoustic_envelope",))
    for envelope, why in (
        (None, "it has no acoustic envelope"),
        (Envelope(np.ones(149), 100.0), "does not cover 1 of 2 words, first word 1 ('w1' at 1.000"),
        (Envelope(np.ones(300), 100.0, 0.1), "does not cover 1 of 2 words, first word 0 ('w0'"),
    ):
        stimulus = make_stimulus(*base, envelope=envelope)
        values, columns, missing = build_nuisance(stimulus, config)
        assert (values.shape, columns) == ((2, 0), ())
        assert missing["acoustic_envelope"].reason is Reason.NUISANCE_NOT_OFFERED
        assert why in missing["acoustic_envelope"].detail
    covered = make_stimulus(*base, envelope=Envelope(np.ones(150), 100.0))
    assert build_one("acoustic_envelope", covered)[:, 0].tolist() == [1.0, 1.0]


def test_columns_follow_the_configured_order_and_name_what_is_missing():
    stimulus = make_stimulus([0.0, 1.0], [0.5, 1.5], [0, 0], ["a", "a"])
    include = ("position_in_story", "log_frequency", "position_in_sentence", "word_duration")
    values, columns, missing = build_nuisance(stimulus, NuisanceConfig(include=include, drift_cosines=1))
    assert columns == (
        "position_in_story_0",
        "position_in_story_1",
        "position_in_sentence_0",
        "position_in_sentence_1",
        "word_duration",
    )
    np.testing.assert_allclose(values, [[0, 1, 0, 0, 0.5], [1, -1, 1, 1, 0.5]])
    assert list(missing) == ["log_frequency"]


def test_the_default_configuration_names_every_builder_but_one():
    # Sentence position says nearly what position in the story says; a study of short passages adds it.
    assert NuisanceConfig().include == tuple(n for n in NUISANCE if n != "sentence_position")
    assert all(builder.__doc__ for builder in NUISANCE.values())


def test_an_unknown_name_is_a_config_error_with_a_suggestion():
    stimulus = make_stimulus([0.0], [0.5], [0], ["a"])
    with pytest.raises(ConfigError) as error:
        build_nuisance(stimulus, NuisanceConfig(include=("word_rates",)))
    assert error.value.remedy == "did you mean 'word_rate'?"
    assert error.value.where == "option 'nuisance.include'"


def test_malformed_words_are_refused():
    stimulus = make_stimulus([1.0, 0.0], [1.5, 0.5], [0, 0], ["a", "a"])
    with pytest.raises(StimulusError, match="onset_s"):
        build_nuisance(stimulus, NuisanceConfig())
