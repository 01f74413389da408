"""References against MNE, and bad channels that must not spread."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from small_recordings import Stream, noise, processed, recording, values_of

from lpact.codes import Reason
from lpact.datasets.base import Recording, TimeSeries
from lpact.datasets.validate import unit_findings
from lpact.errors import RecordingError
from lpact.math.types import FloatArray

SHAFTS = ("LA1", "LA2", "LA3", "LA5", "RB9", "RB10", "Cz")


def raw(values: FloatArray, ids: tuple[str, ...]) -> Any:
    mne = pytest.importorskip("mne")
    info = mne.create_info(list(ids), 500.0, "seeg")
    return mne.io.RawArray(values.T.copy(), info, verbose="error")


def by_reason(result: Recording) -> dict[Reason, str]:
    return {finding.reason: finding.found for finding in result.findings}


def test_the_common_average_is_mnes() -> None:
    mne = pytest.importorskip("mne")
    values = noise(300, 5)
    ids = ("a", "b", "c", "d", "e")
    expected, _ = mne.set_eeg_reference(raw(values, ids), "average", ch_type="seeg", verbose="error")
    result = processed(recording(values, ids), reference="average")
    np.testing.assert_allclose(values_of(result), expected.get_data().T, rtol=0, atol=1e-12)
    assert result.units.ids == ids
    assert result.findings == ()


def test_bipolar_pairs_are_mnes() -> None:
    mne = pytest.importorskip("mne")
    values = noise(300, 7)
    regions = ("STG", "STG", "MTG", "MTG", "unknown", "IFG", "IFG")
    places = np.arange(21.0).reshape(7, 3) % 5
    source = recording(values, SHAFTS, regions=regions, coordinates_mm=places)
    result = processed(source, reference="bipolar")
    assert result.units.ids == ("LA1-LA2", "LA2-LA3", "RB9-RB10")
    assert result.units.regions == ("STG", "STG", "IFG")
    np.testing.assert_allclose(
        result.units.coordinates_mm,
        [places[[0, 1]].mean(axis=0), places[[1, 2]].mean(axis=0), places[[4, 5]].mean(axis=0)],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = mne.set_bipolar_reference(
            raw(values, SHAFTS), ["LA1", "LA2", "RB9"], ["LA2", "LA3", "RB10"], verbose="error"
        )
    picked = expected.get_data(picks=list(result.units.ids)).T
    np.testing.assert_allclose(values_of(result), picked, rtol=0, atol=1e-12)
    assert by_reason(result) == {Reason.CHANNEL_WITHOUT_REFERENCE: "2 of 7 channels: LA5, Cz"}


def test_the_laplacian_takes_the_contacts_on_both_sides() -> None:
    values = noise(300, 7)
    result = processed(recording(values, SHAFTS), reference="laplacian")
    assert result.units.ids == ("LA1", "LA2", "LA3", "RB9", "RB10")
    a, b, c, _, d, e, _ = values.T
    expected = np.stack([a - b, b - (a + c) / 2, c - b, d - e, e - d], axis=1)
    np.testing.assert_allclose(values_of(result), expected, rtol=0, atol=1e-12)
    assert by_reason(result) == {Reason.CHANNEL_WITHOUT_REFERENCE: "2 of 7 channels: LA5, Cz"}


@pytest.mark.parametrize(
    ("ids", "pairs"),
    [
        (("LA01", "LA02", "LA10", "LA11"), ("LA01-LA02", "LA10-LA11")),
        (("A'1", "A2", "A'2"), ("A'1-A'2",)),
        (("LA2", "x", "LA1"), ("LA1-LA2",)),
        (("LA1-Ref", "LA2-Ref", "LA3-Avg"), ("LA1-Ref-LA2-Ref",)),
        (("L2T1", "L2T2", "L3T3"), ("L2T1-L2T2",)),
    ],
)
def test_names_that_make_a_shaft(ids: tuple[str, ...], pairs: tuple[str, ...]) -> None:
    result = processed(recording(noise(20, len(ids)), ids), reference="bipolar")
    assert result.units.ids == pairs


def test_the_end_of_a_grid_row_is_no_neighbour_of_the_next() -> None:
    """A grid of 2 rows of 4 at 10 mm: G4 and G5 are 31 mm apart."""
    places = np.array([[10.0 * (i % 4), 10.0 * (i // 4), 0.0] for i in range(8)])
    ids = [f"G{i + 1}" for i in range(8)]
    source = recording(noise(20, 8), ids, coordinates_mm=places)
    pairs = processed(source, reference="bipolar").units.ids
    assert pairs == ("G1-G2", "G2-G3", "G3-G4", "G5-G6", "G6-G7", "G7-G8")
    # Without places the names are all there is.
    assert "G4-G5" in processed(recording(noise(20, 8), ids), reference="bipolar").units.ids
    # A contact whose place is not known goes by its name too.
    places[3] = np.nan
    source = recording(noise(20, 8), ids, coordinates_mm=places)
    assert "G4-G5" in processed(source, reference="bipolar").units.ids


def test_electrodes_of_a_scalp_are_no_shaft() -> None:
    places = np.array([[-50.0, 0.0, 0.0], [50.0, 0.0, 0.0]])
    source = recording(noise(20, 2), ["F3", "F4"], coordinates_mm=places)
    with pytest.raises(RecordingError, match="has a neighbour to be referenced to") as caught:
        processed(source, reference="laplacian")
    assert "'laplacian' with the units F3, F4" in str(caught.value)
    assert 'reference = "average"' in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_channels_are_in_no_average(bad: float) -> None:
    values = noise(300, 6)
    values[:, 1] = 7.0
    values[100, 3] = bad
    values[:, 5] = np.nan
    result = processed(recording(values), reference="average")
    good = [0, 2, 4]
    expected = values[:, good] - values[:, good].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(values_of(result)[:, good], expected, rtol=0, atol=1e-12)
    assert by_reason(result) == {
        Reason.CONSTANT_UNIT: "1 of 6 channels: LA2",
        Reason.NON_FINITE_NEURAL: "2 of 6 channels: LA4, LA6",
    }
    # They are still found out afterwards, for what they are.
    usable, found = unit_findings(result)
    assert usable == good
    reasons = {f.field: f.reason for f in found}
    assert reasons == {
        "LA2": Reason.CONSTANT_UNIT,
        "LA4": Reason.NON_FINITE_NEURAL,
        "LA6": Reason.NON_FINITE_NEURAL,
    }


@pytest.mark.parametrize("reference", ["none", "average", "laplacian"])
def test_a_dead_channel_stays_dead_through_all_steps(reference: str) -> None:
    values = noise(3000, 5)
    values[:, 2] = 0.1  # no binary fraction: filters would leave traces of rounding
    result = processed(
        recording(values),
        reference=reference,
        notch_hz=(50.0,),
        highpass_hz=2.0,
        lowpass_hz=40.0,
        envelope="hilbert",
        resample_hz=100.0,
        zscore=True,
    )
    assert unit_findings(result)[0] == [0, 1, 3, 4]


def test_bad_channels_are_no_neighbours() -> None:
    values = noise(200, 5)
    values[50:60, 2] = np.nan
    pairs = processed(recording(values), reference="bipolar")
    assert pairs.units.ids == ("LA1-LA2", "LA4-LA5")
    assert by_reason(pairs) == {Reason.NON_FINITE_NEURAL: "1 of 5 channels: LA3"}
    assert np.isfinite(values_of(pairs)).all()
    around = processed(recording(values), reference="laplacian")
    assert around.units.ids == ("LA1", "LA2", "LA3", "LA4", "LA5")
    bad = ~np.isfinite(values_of(around))
    assert bad.sum(axis=0).tolist() == [0, 0, 10, 0, 0]
    np.testing.assert_allclose(values_of(around)[:, 1], values[:, 1] - values[:, 0])


def test_gaps_that_all_channels_share_do_not_end_the_average() -> None:
    values = noise(200, 4)
    values[50:60] = np.nan
    values[100:105, 3] = np.nan
    result = processed(recording(values), reference="average", missing="drop_events")
    expected = values - values[:, :3].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(values_of(result), expected, rtol=0, atol=1e-12)
    assert by_reason(result) == {Reason.NON_FINITE_NEURAL: "1 of 4 channels: LA4"}
    pairs = processed(recording(values), reference="bipolar", missing="drop_events")
    assert pairs.units.ids == ("LA1-LA2", "LA2-LA3", "LA3-LA4")
    np.testing.assert_allclose(values_of(pairs), values[:, :3] - values[:, 1:], atol=1e-12)


def test_the_selection_comes_before_the_reference() -> None:
    values = noise(200, 4)
    values[:, 3] *= 1e6
    result = processed(recording(values), reference="average", drop_channels=("LA4",))
    expected = values[:, :3] - values[:, :3].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(values_of(result), expected, atol=1e-12)


@pytest.mark.parametrize("reference", ["bipolar", "laplacian"])
def test_a_stream_is_read_once_to_look_and_once_to_use(reference: str) -> None:
    stream = Stream(noise(200, 6).astype(np.float32))
    result = processed(recording(stream), reference=reference)
    assert stream.reads == [(i,) for i in range(6)]
    signal = result.signal
    assert isinstance(signal, TimeSeries)
    for indices, _ in signal.blocks():
        assert len(indices) == 1
    assert sorted(stream.reads[6:]) == [(0, 1), (2,), (3,), (4,), (5,)]
