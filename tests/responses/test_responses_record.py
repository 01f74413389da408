"""`Responses`: checks, means, halves, selection and alignment."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import polars as pl
import pytest

from lpact.errors import InputError
from lpact.responses import Responses

REGIONS = ("V1", "V1", "IT", "IT", "IT")


def make(n_stimuli: int = 6, n_repetitions: int = 4, seed: int = 0) -> Responses:
    values = np.random.default_rng(seed).normal(size=(n_stimuli, n_repetitions, 5))
    return Responses.from_numpy(
        values,
        regions=REGIONS,
        coordinates_mm=np.arange(15.0).reshape(5, 3),
        onset_s=np.arange(n_stimuli, dtype=float),
        groups=[f"g{i // 2}" for i in range(n_stimuli)],
        words={"word": [f"w{i}" for i in range(n_stimuli)]},
        metadata={"kind": list(range(n_stimuli))},
    )


def test_values_are_read_only_and_the_users_array_is_not() -> None:
    own = np.zeros((2, 3))
    made = Responses.from_numpy(own)
    with pytest.raises(ValueError, match="read-only"):
        made.values[0, 0, 0] = 1.0
    with pytest.raises(FrozenInstanceError):
        made.subject = "02"  # type: ignore[misc]
    own[0, 0] = 1.0
    assert made.values[0, 0, 0] == 0.0, "what the user does later changes nothing"
    assert (made.n_stimuli, made.n_repetitions, made.n_units) == (2, 1, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": np.zeros((6, 5))}, "three axes"),
        ({"values": np.full((6, 4, 5), np.inf)}, "infinite"),
        ({"values": np.full((6, 4, 5), "a")}, "not real numbers"),
        ({"stimulus_ids": ("a",)}, "'stimulus_ids' and the values do not match"),
        ({"stimulus_ids": ("a",) * 6}, "'stimulus_ids' are not distinct"),
        ({"unit_ids": ("a",) * 5}, "'unit_ids' are not distinct"),
        ({"regions": ("V1",)}, "'regions' and the values do not match"),
        ({"groups": ("g",) * 5}, "'groups' and the values do not match"),
        ({"onset_s": np.zeros(5)}, "'onset_s' and the values do not match"),
        ({"coordinates_mm": np.zeros((5, 2))}, "three columns"),
        ({"metadata": pl.DataFrame({"a": [1]})}, "'metadata' and the values do not match"),
        ({"words": {"text": ["a"] * 6}}, "no column 'word'"),
        ({"words": {"word": ["a"] * 7}}, "the stimulus of each word"),
        ({"words": {"word": ["a"], "stimulus_id": ["s9"]}}, "stimuli that have no responses"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        replace(make(), **change)  # type: ignore[arg-type]
    assert error.value.got
    assert error.value.remedy


def test_mean_and_counts_leave_out_missing_values() -> None:
    values = make().values.copy()
    values[0, 1, 2] = np.nan
    values[3, :, 4] = np.nan
    made = Responses.from_numpy(values)
    expected = np.nanmean(values[:3], axis=1)
    np.testing.assert_allclose(made.mean()[:3], expected, rtol=0, atol=1e-15)
    assert np.isnan(made.mean()[3, 4])
    assert made.n_missing == 5
    assert made.counts()[0].tolist() == [4, 4, 3, 4, 4]
    assert made.counts()[3, 4] == 0
    assert "5 values missing" in repr(made)


def test_halves_of_an_even_number_of_repetitions_average_to_the_mean() -> None:
    made = make(n_repetitions=6)
    a, b = made.split_halves(np.random.default_rng(1))
    np.testing.assert_allclose((a + b) / 2.0, made.mean(), rtol=0, atol=1e-14)
    assert not np.allclose(a, b)
    again, _ = made.split_halves(np.random.default_rng(1))
    np.testing.assert_array_equal(a, again)


def test_every_half_is_the_mean_of_as_many_distinct_repetitions() -> None:
    # Powers of two: a sum says which repetitions went into it.
    values = np.broadcast_to(2.0 ** np.arange(5)[None, :, None], (40, 5, 3))
    a, b = Responses.from_numpy(values).split_halves(np.random.default_rng(0))
    used = [np.array([[int(x) for x in row] for row in half * 2]) for half in (a, b)]
    assert all((used[0] & used[1]).ravel() == 0)
    assert {bin(x).count("1") for half in used for x in half.ravel().tolist()} == {2}
    assert (used[0] == used[0][:, :1]).all(), "units share the order of the repetitions"
    assert (used[0] == used[0][:1]).all(), "and so do stimuli"


def test_halves_of_unbalanced_repetitions() -> None:
    values = make(n_repetitions=4).values.copy()
    values[0, 1:] = np.nan
    values[1, 2:, 0] = np.nan
    a, b = Responses.from_numpy(values).split_halves(np.random.default_rng(0))
    assert np.isnan(a[0]).all()
    assert np.isnan(b[0]).all()
    np.testing.assert_allclose(sorted([a[1, 0], b[1, 0]]), sorted(values[1, :2, 0]))
    assert np.isfinite(a[1:]).all()


def test_one_repetition_has_no_halves() -> None:
    with pytest.raises(InputError, match="without repetitions have no halves") as error:
        make(n_repetitions=1).split_halves(np.random.default_rng(0))
    assert error.value.got == "1 repetitions"


def test_selection_keeps_everything_that_belongs_to_a_unit_or_stimulus() -> None:
    made = make()
    kept = made.select(regions="IT", stimuli=["s4", "s1"])
    np.testing.assert_array_equal(kept.values, made.values[[4, 1]][:, :, 2:])
    assert kept.unit_ids == ("u2", "u3", "u4")
    assert kept.coordinates_mm is not None
    assert kept.coordinates_mm.tolist() == np.arange(15.0).reshape(5, 3)[2:].tolist()
    assert kept.groups == ("g2", "g0")
    assert kept.onset_s is not None
    assert kept.onset_s.tolist() == [4.0, 1.0]
    assert kept.metadata is not None
    assert kept.metadata["kind"].to_list() == [4, 1]
    assert kept.words is not None
    assert kept.words["word"].to_list() == ["w4", "w1"]
    assert made.select(units=["u3", "u0"]).unit_ids == ("u3", "u0")
    assert list(made.by_region()) == ["V1", "IT"]
    assert made.by_region()["V1"].n_units == 2


def test_words_follow_their_stimulus_in_their_own_order() -> None:
    words = {"stimulus_id": ["s1", "s0", "s0", None], "word": ["c", "a", "b", "d"]}
    made = Responses.from_numpy(np.zeros((2, 1)), words=words)
    kept = made.select(stimuli=["s0", "s1"]).words
    assert kept is not None
    assert kept["word"].to_list() == ["a", "b", "c"]


def test_unknown_names_are_suggested() -> None:
    with pytest.raises(InputError, match="no entry of stimulus_ids 'S1'") as error:
        make().select(stimuli=["s2", "S1"])
    assert error.value.remedy == "did you mean 's1'?"
    with pytest.raises(InputError, match="have no regions"):
        Responses.from_numpy(np.zeros((2, 2))).select(regions="V1")


def test_alignment_puts_rows_in_order() -> None:
    made = make()
    other = make(seed=1).select(stimuli=["s5", "s3", "s1", "s0", "s2", "s4"])
    aligned = made.align(other)
    assert aligned.stimulus_ids == other.stimulus_ids
    np.testing.assert_array_equal(aligned.values[0], made.values[5])


def test_alignment_names_what_each_side_lacks() -> None:
    made = replace(make(), subject="A")
    other = replace(make().select(stimuli=["s0", "s1", "s2"]), subject="B")
    with pytest.raises(InputError, match="different stimuli") as error:
        made.align(other)
    assert error.value.got == "responses of subject 'B', session '1' lack 's3', 's4', 's5'"
    with pytest.raises(InputError, match="different stimuli"):
        other.align(made)


def test_reindexing_marks_other_stimuli_as_missing() -> None:
    made = make().reindex(["s9", "s3"])
    assert np.isnan(made.values[0]).all()
    np.testing.assert_array_equal(made.values[1], make().values[3])
    assert made.n_missing == 20


def test_html_is_escaped() -> None:
    shown = replace(make(), subject="<b>")._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "5 in 2 region(s)" in shown
