"""Constructors of `Responses`, each against the library that it reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from lpact.errors import InputError
from lpact.responses import Responses

pd = pytest.importorskip("pandas")


def long_table(n_subjects: int = 1) -> Any:
    """Stimulus × repetition × unit, shuffled, with a value that names its own cell."""
    rows = [
        {
            "item": f"i{s}",
            "unit": f"e{u}",
            "rep": r + 1,
            "amplitude": 100.0 * s + 10.0 * r + u,
            "roi": "left" if u < 2 else "right",
            "story": f"t{s // 2}",
            "start": 0.5 * s,
            "subject": f"{who:02}",
            "length": s + 3,
        }
        for who in range(n_subjects)
        for s in range(4)
        for r in range(2)
        for u in range(3)
    ]
    return pd.DataFrame(rows)


COLUMNS: dict[str, Any] = {"stimulus": "item", "value": "amplitude", "repetition": "rep"}


def test_a_long_table_is_pivoted() -> None:
    made = Responses.from_pandas(
        long_table(),
        **COLUMNS,
        subject="subject",
        region="roi",
        group="story",
        onset="start",
        metadata=["length"],
    )
    s, r, u = np.indices((4, 2, 3))
    np.testing.assert_array_equal(made.values, 100.0 * s + 10.0 * r + u)
    assert made.stimulus_ids == ("i0", "i1", "i2", "i3")
    assert made.regions == ("left", "left", "right")
    assert made.groups == ("t0", "t0", "t1", "t1")
    assert made.onset_s is not None
    assert made.onset_s.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert made.metadata is not None
    assert made.metadata["length"].to_list() == [3, 4, 5, 6]
    assert made.subject == "00"


def test_rows_that_are_not_there_are_missing_whatever_their_order() -> None:
    table = long_table()
    kept = table.sample(frac=0.7, random_state=3)
    made = Responses.from_pandas(kept, **COLUMNS)
    assert made.n_missing == 24 - len(kept)
    pivot = kept.pivot_table(index=["item", "rep"], columns="unit", values="amplitude")
    for (item, rep), row in pivot.iterrows():
        cell = made.values[made.stimulus_ids.index(item), rep - 1]
        np.testing.assert_array_equal(cell, row[list(made.unit_ids)].to_numpy())
    table.loc[5, "amplitude"] = None
    assert Responses.from_pandas(table, **COLUMNS).n_missing == 1


def test_pandas_and_polars_give_the_same() -> None:
    table = long_table()
    plain = pl.DataFrame({name: table[name].to_list() for name in table.columns})
    a, b = (Responses.from_pandas(t, **COLUMNS, region="roi") for t in (table, plain))
    np.testing.assert_array_equal(a.values, b.values)
    assert a.regions == b.regions


def test_a_wide_table_counts_repetitions_in_order() -> None:
    wide = pd.DataFrame({"stimulus": ["a", "b", "a"], "x": [1.0, 2.0, 3.0], "y": [4, 5, 6]})
    made = Responses.from_pandas(wide, unit=["x", "y"])
    np.testing.assert_array_equal(made.values[0], [[1.0, 4.0], [3.0, 6.0]])
    np.testing.assert_array_equal(made.values[1, 0], [2.0, 5.0])
    assert np.isnan(made.values[1, 1]).all()


def test_each_subject_has_responses_of_its_own() -> None:
    made = Responses.by_subject(long_table(3), **COLUMNS)
    assert list(made) == ["00", "01", "02"]
    assert {r.values.shape for r in made.values()} == {(4, 2, 3)}


def test_subjects_with_rejected_trials_share_the_stimuli_of_the_table() -> None:
    table = pl.DataFrame(
        {
            "subject": ["a", "a", "b", "b", "b"],
            "item": [10, 9, 2, 9, 10],
            "story": ["y", "y", "x", "y", "y"],
            "n400": [1.0, 2.0, 3.0, 4.0, None],
        }
    )
    made = Responses.by_subject(table, stimulus="item", unit=["n400"], group="story")
    assert {r.stimulus_ids for r in made.values()} == {("2", "9", "10")}
    assert made["a"].groups == made["b"].groups == ("x", "y", "y")
    np.testing.assert_array_equal(made["a"].values.ravel(), [np.nan, 2.0, 1.0])
    np.testing.assert_array_equal(made["b"].values.ravel(), [3.0, 4.0, np.nan])


def test_behaviour_is_such_data() -> None:
    choices = np.random.default_rng(0).integers(0, 2, size=(7, 30))
    made = Responses.from_numpy(choices.T, unit_ids=[f"person{i}" for i in range(7)])
    np.testing.assert_array_equal(made.mean(), choices.T)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stimulus": "itm"}, "no column 'itm'"),
        ({"value": "roi"}, "'roi' does not contain numbers"),
        ({"repetition": None}, "two rows give the same value"),
        ({"region": "story"}, "'story' is not the same in all rows of 'e0'"),
        ({"group": "unit"}, "'unit' is not the same in all rows of 'i0'"),
        ({"subject": "subject"}, "'subject' has several values"),
        ({"unit": ["start", "length"], "region": "roi", "repetition": None}, "wide table"),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        Responses.from_pandas(long_table(1 + ("subject" in options)), **(COLUMNS | options))
    assert error.value.remedy


def assembly(*, time_bins: int = 0) -> Any:
    xr = pytest.importorskip("xarray")
    rng = np.random.default_rng(2)
    shape = (12, 5, time_bins) if time_bins else (12, 5)
    dims = ("presentation", "neuroid", "time_bin")[: len(shape)]
    return xr.DataArray(
        rng.normal(size=shape),
        dims=dims,
        coords={
            "stimulus_id": ("presentation", [f"im{i % 4}" for i in range(12)]),
            "repetition": ("presentation", [i // 4 for i in range(12)]),
            "object_name": ("presentation", ["cat", "dog", "car", "cup"] * 3),
            "trial": ("presentation", list(range(12))),
            "neuroid_id": ("neuroid", [f"n{i}" for i in range(5)]),
            "region": ("neuroid", ["V4", "V4", "IT", "IT", "IT"]),
            "subject": ("neuroid", ["m1"] * 5),
        },
    )


def test_an_assembly_is_grouped_by_stimulus() -> None:
    source = assembly()
    made = Responses.from_xarray(source)
    expected = source.groupby("stimulus_id").mean("presentation").sel(stimulus_id=list(made.stimulus_ids))
    np.testing.assert_allclose(made.mean(), expected.values, rtol=0, atol=1e-14)
    assert made.values.shape == (4, 3, 5)
    assert made.subject == "m1"
    assert made.regions == ("V4", "V4", "IT", "IT", "IT")
    assert made.metadata is not None
    assert made.metadata.to_dict(as_series=False) == {"object_name": ["cat", "dog", "car", "cup"]}


def test_an_assembly_with_a_multi_index_as_brain_score_stores_them() -> None:
    indexed = assembly().set_index(presentation=["stimulus_id", "repetition"], neuroid=["neuroid_id", "region"])
    made = Responses.from_xarray(indexed, subject="subject")
    np.testing.assert_array_equal(made.values, Responses.from_xarray(assembly()).values)


def test_a_time_bin_is_chosen() -> None:
    source = assembly(time_bins=2)
    made = Responses.from_xarray(source.transpose("time_bin", "neuroid", "presentation"), time_bin=1)
    np.testing.assert_array_equal(made.values[:, 0], source.values[:4, :, 1])
    with pytest.raises(InputError, match="one of the bins of 'time_bin' must be chosen"):
        Responses.from_xarray(source)


def test_assemblies_of_several_subjects_are_pooled_on_request() -> None:
    source = assembly().assign_coords(subject=("neuroid", ["m1", "m1", "m2", "m2", "m2"]))
    with pytest.raises(InputError, match="'subject' has several values"):
        Responses.from_xarray(source)
    pooled = Responses.from_xarray(source, subject=None)
    assert (pooled.subject, pooled.comparable_units) == ("pooled", False)
    with pytest.raises(InputError, match="no coordinate 'image'"):
        Responses.from_xarray(source, stimulus="image")


def raw_eeg(n_samples: int = 1000) -> Any:
    mne = pytest.importorskip("mne")
    info = mne.create_info(["Fz", "Cz", "Pz", "STI"], 100.0, ["eeg", "eeg", "eeg", "stim"])
    data = np.random.default_rng(4).normal(size=(4, n_samples))
    data[3] = 0.0
    raw = mne.io.RawArray(data, info, verbose="error")
    raw.set_montage("standard_1020", verbose="error")
    return raw


def make_epochs(metadata: Any = None) -> Any:
    mne = pytest.importorskip("mne")
    raw = raw_eeg()
    events = np.array([[100 * (i + 1), 0, 1 + i % 2] for i in range(8)])
    return mne.Epochs(
        raw,
        events,
        {"cat": 1, "dog": 2},
        -0.1,
        0.5,
        baseline=None,
        metadata=metadata,
        preload=True,
        verbose="error",
    )


def test_epochs_are_averaged_over_a_window() -> None:
    epochs = make_epochs()
    epochs.drop([2], verbose="error")
    made = Responses.from_mne_epochs(epochs, window_s=(0.3, 0.5))
    expected = epochs.copy().pick("eeg").crop(0.3, 0.5).get_data(copy=True).mean(axis=2)
    np.testing.assert_allclose(made.mean(), expected, rtol=0, atol=1e-15)
    assert made.stimulus_ids == ("e0", "e1", "e3", "e4", "e5", "e6", "e7")
    assert made.unit_ids == ("Fz", "Cz", "Pz")
    assert made.coordinate_frame == "head"
    assert made.coordinates_mm is not None
    assert 50.0 < np.linalg.norm(made.coordinates_mm[0]) < 150.0
    assert made.onset_s is not None
    assert made.onset_s[:3].tolist() == [1.0, 2.0, 4.0]


def test_epochs_of_one_event_are_repetitions() -> None:
    epochs = make_epochs()
    made = Responses.from_mne_epochs(epochs, stimulus="event")
    evoked = epochs["dog"].average(picks="eeg").data.mean(axis=1)
    assert made.stimulus_ids == ("cat", "dog")
    np.testing.assert_allclose(made.mean()[1], evoked, rtol=0, atol=1e-15)


def test_epochs_bring_their_metadata_and_words() -> None:
    table = pd.DataFrame({"word": list("abcdabcd"), "rt": np.arange(8.0), "item": [0, 1, 2, 3] * 2})
    made = Responses.from_mne_epochs(make_epochs(table), stimulus="item")
    assert made.values.shape == (4, 2, 3)
    assert made.words is not None
    assert made.words["word"].to_list() == list("abcd")
    assert made.metadata is not None
    assert "rt" not in made.metadata.columns, "it differs between presentations"
    with pytest.raises(InputError, match="no column 'items'"):
        Responses.from_mne_epochs(make_epochs(table), stimulus="items")


def test_raw_is_averaged_after_each_word() -> None:
    raw = raw_eeg()
    words = pd.DataFrame({"word": ["a", "b", "c"], "onset_s": [1.0, 2.5, 9.95]})
    made = Responses.from_mne_raw(raw, words, lag_s=0.1, window_s=0.2)
    data = raw.get_data(picks="eeg")
    np.testing.assert_allclose(made.mean()[0], data[:, 110:130].mean(axis=1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(made.mean()[1], data[:, 260:280].mean(axis=1), rtol=0, atol=1e-15)
    assert np.isnan(made.mean()[2]).all(), "the window ends after the recording"
    assert made.n_missing == 3
    with pytest.raises(InputError, match="no column 'onset_s'"):
        Responses.from_mne_raw(raw, {"word": ["a"]})


def test_scans_keep_their_time_and_their_words() -> None:
    rng = np.random.default_rng(5)
    runs = [rng.normal(size=(6, 3)) for _ in range(2)]
    words = {"word": ["a", "b", "c", "d"], "onset_s": [3.0, 4.49, 4.5, 99.0]}
    made = Responses.from_nilearn(runs, tr_s=1.5, words=words, labels=["V1", "V2", "IT"], regions=["V1", "V2", "IT"])
    np.testing.assert_array_equal(made.values, np.stack(runs, axis=1))
    assert made.words is not None
    assert made.words["stimulus_id"].to_list() == ["scan2", "scan2", "scan3", None]
    assert made.sampling_rate_hz == pytest.approx(1 / 1.5)
    assert made.onset_s is not None
    assert made.onset_s.tolist() == [0.0, 1.5, 3.0, 4.5, 6.0, 7.5]
    np.testing.assert_array_equal(Responses.from_nilearn(runs[0], tr_s=2.0).values[:, 0], runs[0])
    assert made.select(stimuli=["scan1", "scan0"]).sampling_rate_hz is None
    with pytest.raises(InputError, match="not matrices of one shape"):
        Responses.from_nilearn([runs[0], runs[1][:4]], tr_s=1.5)
    with pytest.raises(InputError, match="repetition time is not positive"):
        Responses.from_nilearn(runs, tr_s=0.0)
