"""Triggers carry stimulus times to the recording's clock, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpact.codes import Reason
from lpact.datasets.triggers import Mark, Rule, TriggerClock
from lpact.errors import RecordingError

RATE_HZ = 2048.0
TWO_HOURS_S = 7200.0


def drifting(ppm: float, *, every_s: float = 1.0, length_s: float = TWO_HOURS_S) -> tuple[np.ndarray, np.ndarray]:
    """Triggers every second; the recording's clock starts 12.5 s earlier, drifts, and counts whole samples."""
    stimulus = np.arange(0.0, length_s, every_s)
    samples = np.rint((12.5 + stimulus * (1 + ppm * 1e-6)) * RATE_HZ)
    return stimulus, samples / RATE_HZ


@pytest.mark.parametrize("ppm", [0.0, 50.0, -120.0])
@pytest.mark.parametrize("rule", ["linear", "nearest", "next"])
def test_two_hours_at_2048_hz_are_exact_to_one_sample(ppm: float, rule: Rule) -> None:
    stimulus, recording = drifting(ppm)
    words = np.sort(np.random.default_rng(0).uniform(0.0, stimulus[-1], 10_000))
    truth = (12.5 + words * (1 + ppm * 1e-6)) * RATE_HZ
    mapped = TriggerClock(stimulus, recording, rule=rule).to_recording(words) * RATE_HZ
    # Triggers are whole samples, so half a sample of each is lost at most; drift adds 0.25 samples in a second.
    assert np.abs(mapped - truth).max() <= 0.75
    assert np.abs(np.rint(mapped) - np.rint(truth)).max() <= 1


def test_without_rounding_linear_is_exact_far_below_a_sample() -> None:
    stimulus = np.arange(0.0, TWO_HOURS_S, 10.0)
    words = np.linspace(-5.0, TWO_HOURS_S + 5.0, 9_999)
    mapped = TriggerClock(stimulus, 3.0 + stimulus * 1.0001).to_recording(words)
    np.testing.assert_allclose(mapped, 3.0 + words * 1.0001, rtol=0, atol=1e-9)


def test_a_trigger_maps_to_itself_under_every_rule() -> None:
    stimulus, recording = drifting(80.0, every_s=7.0)
    rules: tuple[Rule, ...] = ("linear", "nearest", "next")
    for rule in rules:
        clock = TriggerClock(stimulus, recording, rule=rule)
        assert np.array_equal(clock.to_recording(stimulus), recording)


def test_nearest_and_next_count_from_the_named_trigger() -> None:
    # The second trigger came 0.02 s late: which one per word takes can be seen.
    stimulus, recording = [0.0, 1.0, 2.0], [10.0, 11.02, 12.0]
    times = [-0.5, 0.4, 0.5, 0.6, 1.0, 1.4, 1.6, 2.5]
    nearest = TriggerClock(stimulus, recording, rule="nearest").to_recording(times)
    np.testing.assert_allclose(nearest, [9.5, 10.4, 10.5, 10.62, 11.02, 11.42, 11.6, 12.5])
    following = TriggerClock(stimulus, recording, rule="next").to_recording(times)
    np.testing.assert_allclose(following, [9.5, 10.42, 10.52, 10.62, 11.02, 11.4, 11.6, 12.5])


def test_a_pause_is_not_interpolated_over() -> None:
    # The stimulus stops at 2 s for one minute; both triggers of the pause are there.
    stimulus, recording = [0.0, 1.0, 2.0, 2.0, 3.0], [5.0, 6.0, 7.0, 67.0, 68.0]
    clock = TriggerClock(stimulus, recording)
    np.testing.assert_allclose(clock.to_recording([1.9, 2.0, 2.1]), [6.9, 67.0, 67.1])
    assert clock.slope == 1.0
    (note,) = clock.findings("here")
    assert note.found.endswith("; 1 pause(s)")


RULES: tuple[Rule, ...] = ("linear", "nearest", "next")


@pytest.mark.parametrize("rule", RULES)
def test_a_pause_at_an_unknown_place_leaves_words_without_a_time(rule: Rule) -> None:
    # The stimulus stopped for one minute somewhere between 1 s and 2 s.
    clock = TriggerClock([0.0, 1.0, 2.0, 3.0], [5.0, 6.0, 67.0, 68.0], rule=rule)
    times = [0.9, 1.0, 1.2, 1.8, 2.0, 2.1]
    np.testing.assert_allclose(clock.to_recording(times), [5.9, 6.0, np.nan, np.nan, 67.0, 67.1])
    assert clock.in_break(times).tolist() == [False, False, True, True, False, False]
    (note,) = clock.findings("here")
    assert note.reason is Reason.CLOCK_DRIFT
    assert "1 pause(s); in 1 of them words have no time" in note.found
    assert "after trigger 1 at 1.000 s" in note.found


@pytest.mark.parametrize("rule", RULES)
def test_marks_say_where_a_pause_was(rule: Rule) -> None:
    # From 1.2 s on the stimulus stands still for one minute.
    stimulus, recording = [0.0, 1.0, 1.2, 1.2, 2.0, 3.0], [5.0, 6.0, 6.2, 66.2, 67.0, 68.0]
    marks = [Mark.TRIGGER, Mark.TRIGGER, Mark.PAUSE, Mark.UNPAUSE, Mark.TRIGGER, Mark.TRIGGER]
    clock = TriggerClock(stimulus, recording, rule=rule, marks=marks)
    mapped = clock.to_recording([1.1, 1.19, 1.2, 1.21, 1.6, 2.5])
    np.testing.assert_allclose(mapped, [6.1, 6.19, 66.2, 66.21, 66.6, 67.5])
    assert clock.slope == pytest.approx(1.0)
    # A pause is no trigger that could be missed.
    assert clock.dropped.tolist() == [0, 0, 0]
    (note,) = clock.findings("here")
    assert note.found.endswith("; 1 pause(s)")


@pytest.mark.parametrize("rule", RULES)
def test_a_pause_too_short_to_be_seen_counts_where_it_is_marked(rule: Rule) -> None:
    marks = [Mark.TRIGGER, Mark.PAUSE, Mark.UNPAUSE, Mark.TRIGGER]
    clock = TriggerClock([0.0, 0.3, 0.3, 1.0], [0.0, 0.3, 0.33, 1.03], rule=rule, marks=marks)
    np.testing.assert_allclose(clock.to_recording([0.2, 0.3, 0.4]), [0.2, 0.33, 0.43])
    assert clock.slope == 1.0


def test_before_an_unpause_and_after_a_pause_nothing_was_heard() -> None:
    marks = [Mark.UNPAUSE, Mark.TRIGGER, Mark.PAUSE]
    clock = TriggerClock([1.0, 2.0, 2.5], [5.0, 6.0, 6.5], marks=marks)
    mapped = clock.to_recording([0.9, 1.0, 1.5, 2.4, 2.5, 2.6, np.nan])
    np.testing.assert_allclose(mapped, [np.nan, 5.0, 5.5, 6.4, 6.5, np.nan, np.nan])
    assert clock.in_break([0.9, 1.5, 2.6, np.nan]).tolist() == [True, False, True, False]
    alone = TriggerClock([1.0], [5.0], marks=[Mark.TRIGGER | Mark.PAUSE])
    np.testing.assert_allclose(alone.to_recording([0.5, 1.0, 1.5]), [4.5, 5.0, np.nan])


@pytest.mark.parametrize("rule", RULES)
def test_a_stretch_that_was_skipped_has_no_time(rule: Rule) -> None:
    # From 2 s the stimulus jumps to 8 s; triggers come every second.
    stimulus, recording = np.append(np.arange(3.0), np.arange(9.0, 20.0)), np.arange(14.0)
    clock = TriggerClock(stimulus, recording, rule=rule)
    mapped = clock.to_recording([1.5, 2.0, 2.1, 5.0, 8.9, 9.0, 9.5])
    np.testing.assert_allclose(mapped, [1.5, 2.0, np.nan, np.nan, np.nan, 3.0, 3.5])
    (note,) = clock.findings("here")
    assert note.reason is Reason.CLOCK_DRIFT
    assert "; 1 skip(s); in 1 of them words have no time" in note.found
    assert "pause" not in note.found


def test_triggers_of_one_stimulus_time_within_jitter_are_no_pause() -> None:
    # Film times in steps of a frame: two triggers fall on one.
    clock = TriggerClock([0.0, 0.04, 0.04, 0.08], [0.0, 0.03, 0.05, 0.08])
    np.testing.assert_allclose(clock.to_recording([0.02, 0.04, 0.06]), [0.015, 0.05, 0.065])
    assert not clock.jumps.any()
    assert clock.findings("here") == []


def test_dropped_triggers_cost_no_sample_and_are_noted() -> None:
    stimulus, recording = drifting(100.0)
    kept = np.ones(stimulus.size, dtype=bool)
    kept[[100, 101, 102, 3000, 7000]] = False
    clock = TriggerClock(stimulus[kept], recording[kept])
    words = np.linspace(95.0, 110.0, 400)
    truth = (12.5 + words * 1.0001) * RATE_HZ
    assert np.abs(clock.to_recording(words) * RATE_HZ - truth).max() <= 0.51
    drift, dropped = clock.findings("dataset 'x', triggers.tsv")
    assert drift.reason is Reason.CLOCK_DRIFT
    assert "+100.0 ppm" in drift.found
    assert dropped.reason is Reason.TRIGGERS_DROPPED
    assert dropped.found.startswith("5 missing, the first after trigger 99 at 99.000 s")
    assert dropped.where == "dataset 'x', triggers.tsv"


def test_clocks_that_agree_leave_no_note() -> None:
    assert TriggerClock([0.0, 1.0, 2.0], [4.0, 5.0, 6.0]).findings("here") == []
    # Triggers that do not come regularly cannot tell that one is missing.
    assert TriggerClock([0.0, 1.0, 5.0, 5.5], [0.0, 1.0, 5.0, 5.5]).findings("here") == []


def test_far_from_every_trigger_is_not_in_the_recording() -> None:
    clock = TriggerClock([0.0, 1.0, 9.0], [0.0, 1.0, 9.0], max_gap_s=2.0)
    mapped = clock.to_recording([-2.5, -2.0, 3.0, 3.5, 5.0, 8.0, 11.5, np.nan])
    np.testing.assert_array_equal(np.isnan(mapped), [True, False, False, True, True, False, True, True])


@pytest.mark.parametrize("rule", ["linear", "nearest", "next"])
def test_one_trigger_is_an_offset(rule: Rule) -> None:
    clock = TriggerClock([1.0], [4.0], rule=rule)
    np.testing.assert_allclose(clock.to_recording([0.0, 1.0, 2.0]), [3.0, 4.0, 5.0])
    assert clock.findings("here") == []


@pytest.mark.parametrize(
    ("stimulus", "recording", "what", "place"),
    [
        ([0.0, 2.0, 1.0], [0.0, 1.0, 2.0], "stimulus times in order", "c"),
        ([0.0, 1.0, 2.0], [0.0, 2.0, 2.0], "recording times in order", "c"),
        ([0.0, np.nan, 2.0], [0.0, 1.0, 2.0], "finite stimulus times", "b"),
        ([0.0, 1.0, 2.0], [0.0, 1.0, np.inf], "finite recording times", "c"),
    ],
)
def test_a_broken_trigger_is_named(stimulus: list[float], recording: list[float], what: str, place: str) -> None:
    with pytest.raises(RecordingError, match=what) as caught:
        TriggerClock(stimulus, recording, where="t.csv", labels=["a", "b", "c"])
    assert caught.value.where == f"t.csv, {place}"


def test_tables_that_cannot_be_triggers_are_refused() -> None:
    with pytest.raises(RecordingError, match="no triggers"):
        TriggerClock([], [])
    with pytest.raises(RecordingError, match="one recording time for every stimulus time"):
        TriggerClock([0.0, 1.0], [0.0])


def test_a_wrong_sampling_rate_shows_in_the_triggers() -> None:
    stimulus, recording = drifting(20.0, length_s=60.0)
    with pytest.raises(RecordingError, match="run at the same rate") as caught:
        TriggerClock(stimulus, recording * 2048 / 2000, where="t.csv")
    assert "1.024" in str(caught.value.got)
    assert "sampling rate" in str(caught.value.remedy)


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.floats(0.2, 30.0), min_size=2, max_size=40),
    ppm=st.floats(-900.0, 900.0),
    offset=st.floats(-100.0, 100.0),
    where=st.floats(-0.2, 1.2),
)
def test_linear_inverts_any_line(steps: list[float], ppm: float, offset: float, where: float) -> None:
    stimulus = np.cumsum([0.0, *steps])
    clock = TriggerClock(stimulus, offset + stimulus * (1 + ppm * 1e-6))
    time = where * stimulus[-1]
    assert clock.to_recording([time])[0] == pytest.approx(offset + time * (1 + ppm * 1e-6), abs=1e-9)
