"""Checks of stimuli and recordings: what raises, what is a finding, and what is neither."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lpact.codes import Reason
from lpact.datasets.base import (
    WORD_COLUMNS,
    Envelope,
    Epochs,
    Recording,
    RecordingId,
    Stimulus,
    TimeSeries,
    Units,
)
from lpact.datasets.validate import (
    check_recording,
    check_recording_ids,
    check_stimulus,
    overlap_findings,
    unit_findings,
)
from lpact.errors import InputError, RecordingError, StimulusError

WORDS = pl.DataFrame(
    {
        "word": ["the", "cat", "sat", "it", "ran"],
        "onset_s": [0.0, 0.5, 1.0, 2.0, 2.5],
        "offset_s": [0.4, 0.9, 1.5, 2.5, 3.0],
        "sentence_id": [0, 0, 0, 1, 1],
        "story_id": ["a", "a", "a", "b", "b"],
    }
)
STIMULUS = Stimulus("s", WORDS, "words.tsv", mechanisms={"surprisal": np.arange(5.0)})
ID = RecordingId("01", "1", "1", "s")
UNITS = Units(("u1", "u2", "u3"), ("A", "A", "B"), np.zeros((3, 3)))
SERIES = Recording(ID, TimeSeries(np.arange(12.0).reshape(4, 3), 10.0), UNITS, "neural.npy")
EPOCHS = Recording(ID, Epochs(np.arange(24.0).reshape(2, 4, 3), (0.0, 100.0)), UNITS, "neural.npy")


def with_cell(column: str, row: int, value: object) -> Stimulus:
    values = WORDS[column].to_list()
    values[row] = value
    return replace(STIMULUS, words=WORDS.with_columns(pl.Series(column, values, WORDS.schema[column])))


def test_well_formed_stimulus_passes() -> None:
    check_stimulus(replace(STIMULUS, envelope=Envelope(np.ones(10), 50.0)))


def test_no_words_is_not_an_error() -> None:
    empty = Stimulus("s", pl.DataFrame(schema=WORD_COLUMNS), "words.tsv")
    check_stimulus(empty)
    assert overlap_findings(empty) == []


@pytest.mark.parametrize("column", list(WORD_COLUMNS))
def test_missing_column(column: str) -> None:
    renamed = WORDS.rename({column: column + "x"})
    with pytest.raises(StimulusError, match=f"no column '{column}'") as caught:
        check_stimulus(replace(STIMULUS, words=renamed))
    assert f"did you mean '{column}x'" in str(caught.value)


@pytest.mark.parametrize("column", list(WORD_COLUMNS))
def test_wrong_type(column: str) -> None:
    wrong = WORDS.with_columns(pl.lit(None, dtype=pl.Boolean).alias(column))
    with pytest.raises(StimulusError, match=f"'{column}' of the words table has the wrong type"):
        check_stimulus(replace(STIMULUS, words=wrong))


@pytest.mark.parametrize(
    ("column", "row", "value", "found"),
    [
        ("onset_s", 1, float("nan"), "nan s"),
        ("onset_s", 0, -0.1, "-0.1 s"),
        ("offset_s", 2, float("inf"), "inf s"),
        ("offset_s", 3, 1.9, "offset 1.9 s, onset 2.0 s"),
        ("onset_s", 2, 0.4, "0.4 s after 0.5 s"),
        ("sentence_id", 2, None, "nothing"),
        ("word", 4, None, "nothing"),
        ("story_id", 4, "a", "'a'"),
        ("sentence_id", 4, 0, "0"),
        ("sentence_id", 3, 0, "sentence 0 in stories 'a' and 'b'"),
    ],
)
def test_malformed_words_are_placed(column: str, row: int, value: object, found: str) -> None:
    with pytest.raises(StimulusError) as caught:
        check_stimulus(with_cell(column, row, value))
    error = caught.value
    assert error.where is not None
    assert error.where.startswith(f"words.tsv, column '{column}', row {row + 1}, word ")
    assert error.got == found
    assert error.expected
    assert error.remedy


@pytest.mark.parametrize("values", [np.arange(4.0), np.zeros((5, 1)), np.array([0, 1, np.nan, 2, 3])])
def test_malformed_mechanism(values: np.ndarray) -> None:
    with pytest.raises(StimulusError, match="surprisal"):
        check_stimulus(replace(STIMULUS, mechanisms={"surprisal": values}))


@pytest.mark.parametrize(
    "envelope",
    [
        Envelope(np.array([1.0, np.nan]), 50.0),
        Envelope(np.ones((2, 2)), 50.0),
        Envelope(np.ones(2), 0.0),
        Envelope(np.ones(2), 50.0, float("nan")),
    ],
)
def test_malformed_envelope(envelope: Envelope) -> None:
    with pytest.raises(StimulusError, match="envelope"):
        check_stimulus(replace(STIMULUS, envelope=envelope))


def test_overlap_is_one_note_with_count_and_example() -> None:
    assert overlap_findings(STIMULUS) == []
    (finding,) = overlap_findings(replace(STIMULUS, words=WORDS.with_columns(pl.col("offset_s") + 0.11)))
    assert (finding.reason, finding.severity) == (Reason.WORDS_OVERLAP, "note")
    assert finding.found.startswith("3 overlapping word(s); first: row 2, 'cat' starts at 0.5 s")


@pytest.mark.parametrize(("extra_s", "n_findings"), [(0.9e-6, 0), (1.2e-6, 1)])
def test_rounding_is_no_overlap(extra_s: float, n_findings: int) -> None:
    words = WORDS.with_columns(pl.col("onset_s").shift(-1).fill_null(9.0).alias("offset_s") + extra_s)
    assert len(overlap_findings(replace(STIMULUS, words=words))) == n_findings


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6), swap=st.data())
def test_any_order_of_contiguous_ids_passes_and_a_return_raises(sizes: list[int], swap: st.DataObject) -> None:
    ids = swap.draw(st.permutations(range(len(sizes))))
    sentence = np.repeat(ids, sizes)
    n = len(sentence)
    words = pl.DataFrame(
        {
            "word": ["w"] * n,
            "onset_s": np.arange(n, dtype=float),
            "offset_s": np.arange(n) + 0.5,
            "sentence_id": sentence,
            "story_id": ["a"] * n,
        },
        schema=WORD_COLUMNS,
    )
    check_stimulus(Stimulus("s", words, "w"))
    if len(sizes) > 1:
        again = pl.concat([words, words[:1].with_columns(onset_s=pl.lit(n + 1.0), offset_s=pl.lit(n + 2.0))])
        with pytest.raises(StimulusError, match=f"row {n + 1}"):
            check_stimulus(Stimulus("s", again, "w"))


@pytest.mark.parametrize("recording", [SERIES, EPOCHS])
def test_well_formed_recording_passes(recording: Recording) -> None:
    check_recording(recording)
    assert unit_findings(recording) == ([0, 1, 2], [])


@pytest.mark.parametrize(
    "recording",
    [
        replace(SERIES, signal=TimeSeries(np.zeros((0, 3)), 10.0)),
        replace(SERIES, signal=TimeSeries(np.zeros((4, 0)), 10.0), units=Units((), ())),
        replace(EPOCHS, signal=Epochs(np.zeros((2, 0, 3)), (0.0, 1.0))),
    ],
)
def test_nothing_recorded_is_not_an_error(recording: Recording) -> None:
    check_recording(recording)
    assert unit_findings(recording) == (list(range(len(recording.units.ids))), [])


@pytest.mark.parametrize(
    ("recording", "message"),
    [
        (replace(SERIES, signal=TimeSeries(np.zeros((4, 2)), 10.0)), "2 columns"),
        (replace(SERIES, signal=TimeSeries(np.zeros(4), 10.0)), "wrong number of axes"),
        (replace(EPOCHS, signal=Epochs(np.zeros((4, 3)), (0.0,))), "wrong number of axes"),
        (replace(SERIES, signal=TimeSeries(np.zeros((4, 3), complex), 10.0)), "not real"),
        (replace(SERIES, signal=TimeSeries(np.zeros((4, 3)), 0.0)), "0.0 Hz"),
        (replace(SERIES, signal=TimeSeries(np.zeros((4, 3)), float("nan"))), "nan Hz"),
        (replace(SERIES, signal=TimeSeries(np.zeros((4, 3)), 1.0, float("inf"))), "inf s"),
        (replace(EPOCHS, signal=Epochs(np.zeros((2, 4, 3)), (0.0,))), "1 lags"),
        (replace(EPOCHS, signal=Epochs(np.zeros((2, 4, 3)), (5.0, 5.0))), "5.0 ms"),
        (
            replace(SERIES, units=Units(("u1", "u2", "u1"), ("A",) * 3)),
            "'u1' is listed more than once",
        ),
        (replace(SERIES, units=Units(("u1", " ", "u3"), ("A",) * 3)), "unit number 2"),
        (replace(SERIES, units=Units(UNITS.ids, ("A", "B"))), "2 regions"),
        (replace(SERIES, units=Units(UNITS.ids, UNITS.regions, np.zeros((3, 2)))), r"\(3, 2\)"),
    ],
)
def test_malformed_recording(recording: Recording, message: str) -> None:
    with pytest.raises(RecordingError, match=message) as caught:
        check_recording(recording)
    error = caught.value
    assert error.where == "neural.npy"
    assert all((error.got, error.expected, error.remedy))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_constant_units_are_found_exactly(dtype: type) -> None:
    values = np.array([[1, 7, 1], [2, 7, 1], [3, 7, 2]], dtype=dtype)
    usable, findings = unit_findings(replace(SERIES, signal=TimeSeries(values, 10.0)))
    assert usable == [0, 2]
    (finding,) = findings
    assert (finding.field, finding.reason, finding.severity) == (
        "u2",
        Reason.CONSTANT_UNIT,
        "excluded",
    )
    assert "7" in finding.found


def test_the_smallest_change_is_not_constant() -> None:
    values = np.full((4, 3), 1e6)
    values[3, 0] = np.nextafter(1e6, 2e6)
    usable, _ = unit_findings(replace(SERIES, signal=TimeSeries(values, 10.0)))
    assert usable == [0]


def test_non_finite_units_say_how_many_and_where_first() -> None:
    values = np.arange(24.0).reshape(2, 4, 3)
    values[1, 2, 0] = np.nan
    values[1, 3, 0] = np.inf
    usable, findings = unit_findings(replace(EPOCHS, signal=Epochs(values, (0.0, 100.0))))
    assert usable == [1, 2]
    (finding,) = findings
    assert (finding.field, finding.reason) == ("u1", Reason.NON_FINITE_NEURAL)
    assert finding.found == "2 of 8 values not finite; first: nan at lag 1, word 2 (from 0)"


@settings(deadline=None)
@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6),
        elements=st.sampled_from([0.0, 1.0, np.nan, np.inf]),
    )
)
def test_every_unit_is_usable_or_has_one_finding(values: np.ndarray) -> None:
    ids = tuple(f"u{i}" for i in range(values.shape[1]))
    recording = Recording(ID, TimeSeries(values, 1.0), Units(ids, ids), "x")
    usable, findings = unit_findings(recording)
    assert sorted([ids[i] for i in usable] + [f.field for f in findings]) == sorted(ids)
    assert all(len(set(values[:, i])) > 1 and np.isfinite(values[:, i]).all() for i in usable)


def test_duplicate_recording_ids() -> None:
    check_recording_ids([ID, replace(ID, run="2")], where="here")
    with pytest.raises(InputError, match="sub-01_ses-1_run-1"):
        check_recording_ids([ID, replace(ID, stimulus="other")], where="here")
