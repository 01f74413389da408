"""Filters, envelopes and new rates against MNE, SciPy's theory and planted signals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal
from scipy.fft import next_fast_len
from small_recordings import noise, processed, recording, values_of

from lpact.config import PreprocessConfig
from lpact.datasets.base import Recording, RecordingId, TimeSeries, Units
from lpact.errors import RecordingError
from lpact.math.types import FloatArray
from lpact.preprocess import preprocess
from lpact.preprocess.filters import NEVER, butterworth, settling_samples

RATE_HZ = 500.0
TIMES_S = np.arange(10_000) / RATE_HZ
INNER = slice(1000, -1000)


def sine(frequency_hz: float, phase: float = 0.3) -> FloatArray:
    return np.sin(2 * np.pi * frequency_hz * TIMES_S + phase)


def one(values: FloatArray, rate_hz: float = RATE_HZ, **options: object) -> FloatArray:
    """One channel through the given steps."""
    return values_of(processed(recording(values[:, None], rate_hz=rate_hz), **options))[:, 0]


def test_a_notch_takes_out_its_line_and_nothing_else() -> None:
    kept = sine(10.0) + 0.5 * sine(80.0)
    result = one(kept + 2 * sine(50.0) + sine(100.0), notch_hz=(50.0, 100.0))
    assert np.abs(result - kept)[INNER].max() < 0.01


def test_a_line_between_the_notches_stays() -> None:
    assert np.abs(one(sine(50.0), notch_hz=(60.0,)) - sine(50.0))[INNER].max() < 0.01


@pytest.mark.parametrize(
    ("options", "kept_hz", "gone_hz"),
    [
        ({"highpass_hz": 1.0}, 10.0, 0.1),
        ({"lowpass_hz": 40.0}, 10.0, 120.0),
        ({"highpass_hz": 2.0, "lowpass_hz": 40.0}, 10.0, 0.2),
        ({"highpass_hz": 2.0, "lowpass_hz": 40.0}, 10.0, 120.0),
    ],
)
def test_a_band_keeps_amplitude_and_phase_inside(options: dict[str, float], kept_hz: float, gone_hz: float) -> None:
    result = one(sine(kept_hz) + sine(gone_hz), **options)
    assert np.abs(result - sine(kept_hz))[INNER].max() < 0.01
    assert np.abs(one(sine(gone_hz), **options))[INNER].max() < 0.01


def test_a_cut_off_halves_the_amplitude() -> None:
    """Butterworth of order 4, both ways: the squared gain at the cut-off is 1/2 each way."""
    for options in ({"highpass_hz": 20.0}, {"lowpass_hz": 20.0}):
        result = one(sine(20.0), **options)
        np.testing.assert_allclose(result[INNER], sine(20.0)[INNER] / 2, atol=1e-3)


@pytest.mark.parametrize(("low_hz", "high_hz"), [(1.0, None), (None, 40.0), (2.0, 40.0), (70.0, 150.0)])
def test_bands_are_mnes(low_hz: float | None, high_hz: float | None) -> None:
    mne = pytest.importorskip("mne")
    values = noise(10_000, 1)[:, 0]
    expected = mne.filter.filter_data(
        values,
        RATE_HZ,
        low_hz,
        high_hz,
        method="iir",
        iir_params={"order": 4, "ftype": "butter", "output": "sos"},
        phase="zero",
        verbose="error",
    )
    result = one(values, highpass_hz=low_hz, lowpass_hz=high_hz)
    middle = slice(4500, 5500)  # both extend the edges, by other lengths
    np.testing.assert_allclose(result[middle], expected[middle], rtol=0, atol=1e-6)


def test_notch_and_reference_can_be_exchanged() -> None:
    """The study's order is notch, then reference: MNE does it in that order."""
    mne = pytest.importorskip("mne")
    values = noise(5000, 4) + sine(50.0)[:5000, None]
    b, a = signal.iirnotch(50.0, 30.0, fs=RATE_HZ)
    notched = signal.filtfilt(b, a, values, axis=0)
    raw = mne.io.RawArray(notched.T, mne.create_info(4, RATE_HZ, "eeg"), verbose="error")
    expected, _ = mne.set_eeg_reference(raw, "average", verbose="error")
    result = values_of(processed(recording(values), notch_hz=(50.0,), reference="average"))
    middle = slice(2000, 3000)
    np.testing.assert_allclose(result[middle], expected.get_data().T[middle], atol=1e-6)


def test_the_envelope_of_a_modulated_carrier_is_the_modulator() -> None:
    modulator = 1 + 0.5 * sine(2.0)
    carrier = modulator * sine(100.0) + 20 * sine(7.0) + 5.0
    result = one(carrier, highpass_hz=70.0, lowpass_hz=150.0, envelope="hilbert")
    assert np.abs(result - modulator)[INNER].max() < 0.01


@pytest.mark.parametrize("n_samples", [2, 7, 1000, 1009, 4001])
def test_the_amplitude_is_scipys(n_samples: int) -> None:
    values = noise(n_samples, 1)[:, 0]
    padded = np.zeros(next_fast_len(n_samples, real=True))
    padded[:n_samples] = values
    expected = np.abs(signal.hilbert(padded))[:n_samples]
    result = one(values, envelope="hilbert")
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)


def test_high_gamma_weighs_its_bands_alike() -> None:
    """The lower band carries a hundred times the amplitude, and another modulator."""
    first, second = 1 + 0.5 * sine(2.0), 1 + 0.5 * sine(3.0)
    values = 100 * first * sine(85.0) + second * sine(135.0)
    result = one(values, envelope="high_gamma", envelope_bands_hz=(70.0, 100.0, 120.0, 150.0))
    # The band between them holds what leaks into it; the two others have a mean of 1 each.
    two = one(values, envelope="high_gamma", envelope_bands_hz=(70.0, 100.0))
    np.testing.assert_allclose(two[INNER], first[INNER] / first.mean(), atol=0.01)
    assert result.mean() == pytest.approx(1.0, abs=1e-9)
    spectrum = np.abs(np.fft.rfft(result[INNER] - result[INNER].mean()))
    frequency_hz = np.fft.rfftfreq(result[INNER].size, 1 / RATE_HZ)
    at_2, at_3 = (spectrum[np.argmin(np.abs(frequency_hz - f))] for f in (2.0, 3.0))
    assert 0.3 < at_3 / at_2 < 1.5  # without weights it would be about 0.01


def test_the_default_bands_cover_70_to_150_hz() -> None:
    modulator = 1 + 0.5 * sine(1.0)
    rng = np.random.default_rng(0)
    result = one(modulator * rng.standard_normal(TIMES_S.size), envelope="high_gamma")
    assert np.corrcoef(result[INNER], modulator[INNER])[0, 1] > 0.8
    result_signal = processed(recording(noise(2000, 2)), envelope="high_gamma").signal
    assert result_signal.physical_unit == "a.u."


# --- New sampling rates --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate_hz", "new_hz"),
    [(512.0, 128.0), (1000.0, 128.0), (2048.0, 100.0), (500.0, 499.0), (499.907, 100.0)],
)
def test_impulses_stay_where_they_are(rate_hz: float, new_hz: float) -> None:
    n_samples = 20_000
    values = np.zeros(n_samples)
    places = np.arange(700, n_samples - 700, 1537)
    values[places] = 1.0
    result = processed(recording(values[:, None], rate_hz=rate_hz, start_s=-3.25), resample_hz=new_hz)
    new = result.signal
    assert isinstance(new, TimeSeries)
    assert new.start_s == -3.25
    assert new.sampling_rate_hz == pytest.approx(new_hz, rel=1e-6)
    # Every sample of the result lies within the recording, and none of it is left uncovered.
    assert (new.n_samples - 1) / new.sampling_rate_hz < n_samples / rate_hz
    assert new.n_samples / new.sampling_rate_hz >= n_samples / rate_hz * (1 - 1e-12)
    resampled = values_of(result)[:, 0]
    for place in places:
        expected = place / rate_hz * new.sampling_rate_hz
        near = slice(round(expected) - 5, round(expected) + 6)
        assert abs(np.argmax(resampled[near]) + near.start - expected) <= 0.5 + 1e-9


def test_a_slow_wave_is_kept_at_the_new_times() -> None:
    source = recording((sine(3.0) + 10.0)[:, None])
    result = processed(source, resample_hz=60.0)
    new = result.signal
    assert isinstance(new, TimeSeries)
    times_s = np.arange(new.n_samples) / new.sampling_rate_hz
    expected = 10.0 + np.sin(2 * np.pi * 3.0 * times_s + 0.3)
    errors = np.abs(values_of(result)[:, 0] - expected)
    assert errors[20:-20].max() < 2e-3 * 10
    assert errors.max() < 0.5  # edges do not fall to zero


def test_resampling_is_mnes() -> None:
    mne = pytest.importorskip("mne")
    values = noise(8000, 1)[:, 0]
    expected = mne.filter.resample(values, 1, 4, method="polyphase", verbose="error")
    result = one(values, resample_hz=125.0)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result[50:-50], expected[50:-50], rtol=0, atol=1e-9)


def test_what_the_new_rate_cannot_hold_does_not_fold_back() -> None:
    assert np.abs(one(sine(90.0), resample_hz=100.0)[50:-50]).max() < 0.01


def test_the_same_rate_is_no_resampling() -> None:
    source = recording(noise(100, 2))
    assert processed(source, resample_hz=500.0).signal is source.signal


# --- Missing samples -----------------------------------------------------------------------------

STEPS = {
    "band": {"highpass_hz": 5.0, "lowpass_hz": 40.0},
    "notch": {"notch_hz": (50.0,)},
    "envelope": {"highpass_hz": 20.0, "lowpass_hz": 40.0, "envelope": "hilbert"},
    "high_gamma": {"envelope": "high_gamma", "envelope_bands_hz": (70.0, 110.0, 150.0)},
}


@pytest.mark.parametrize("options", STEPS.values(), ids=STEPS)
def test_filters_work_between_gaps(options: dict[str, object]) -> None:
    values = noise(10_000, 1)[:, 0]
    values[4000:4200] = np.nan
    values[4700] = np.inf
    result = one(values, missing="drop_events", **options)
    long, short, last = slice(0, 4000), slice(4200, 4700), slice(4701, 10_000)
    assert np.isnan(result[4000:4200]).all()
    assert np.isnan(result[4700])
    assert np.isfinite(result[long]).all()
    assert np.isfinite(result[last]).all()
    if "envelope_bands_hz" not in options:
        np.testing.assert_array_equal(result[long], one(values[long], **options))
        np.testing.assert_array_equal(result[last], one(values[last], **options))
    # A notch at 50 Hz takes 660 samples to settle: the stretch of 500 is too short for it alone.
    assert np.isnan(result[short]).all() == ("notch_hz" in options)
    assert np.isnan(one(values, missing="drop_units", **options)).all()


def test_a_gap_costs_about_ten_new_samples_on_each_side() -> None:
    values = noise(10_000, 1)[:, 0]
    values[4000:4200] = np.nan
    result = one(values, resample_hz=100.0, missing="drop_events")
    missing = np.flatnonzero(np.isnan(result))
    assert (missing[0], missing[-1]) == (800 - 11, 839 + 10)
    assert missing.size == 61
    whole = np.where(np.isnan(values), 0.0, values)
    kept = np.isfinite(result)
    np.testing.assert_allclose(result[kept], one(whole, resample_hz=100.0)[kept], atol=1e-12)


# --- Settings that a recording does not allow ----------------------------------------------------


@pytest.mark.parametrize(
    ("options", "option", "found"),
    [
        ({"notch_hz": (50.0, 250.0)}, "notch_hz", "250 Hz"),
        ({"highpass_hz": 300.0}, "highpass_hz", "300 Hz"),
        ({"highpass_hz": 1.0, "lowpass_hz": 250.0}, "lowpass_hz", "250 Hz"),
        (
            {"envelope": "high_gamma", "envelope_bands_hz": (70.0, 150.0, 260.0)},
            "envelope_bands_hz",
            "260 Hz",
        ),
    ],
)
def test_a_filter_beyond_half_the_rate(options: dict[str, object], option: str, found: str) -> None:
    with pytest.raises(RecordingError, match="does not fit the sampling rate") as caught:
        one(TIMES_S, **options)
    message = str(caught.value)
    assert f"small recording, option 'preprocess.{option}'" in message
    assert f"{found}, with a sampling rate of 500 Hz" in message
    assert "below 250 Hz" in message


def test_a_rate_above_the_recordings() -> None:
    with pytest.raises(RecordingError, match="does not fit the recording") as caught:
        one(TIMES_S, resample_hz=512.0)
    assert "512 Hz for 10000 samples at 500 Hz" in str(caught.value)


def test_a_recording_shorter_than_its_filter() -> None:
    with pytest.raises(RecordingError, match="too short for the filters") as caught:
        one(TIMES_S, highpass_hz=0.01)
    assert "10000 samples (20 s)" in str(caught.value)
    assert "raise highpass_hz" in str(caught.value)


@pytest.mark.parametrize("option", [{"highpass_hz": 1e-9}, {"lowpass_hz": 1e-6}, {"notch_hz": (4e-4,)}])
def test_a_filter_that_rounding_would_spoil_is_named(option: dict[str, object]) -> None:
    with pytest.raises(RecordingError, match="does not fit the sampling rate") as caught:
        processed(recording(noise(3000, 2)), **option)
    message = str(caught.value)
    assert f"small recording, option 'preprocess.{next(iter(option))}'" in message
    assert "with a sampling rate of 500 Hz" in message
    assert "from 0.0005 Hz to below 250 Hz" in message


def test_the_lowest_filters_are_sound_and_ask_for_long_recordings() -> None:
    # A Butterworth filter has half the power at its cut-off; poles are inside the unit circle.
    for low, high in ((5e-4, None), (None, 5e-4)):
        sections = butterworth(low, high, 500.0)
        gain = np.abs(signal.sosfreqz(sections, worN=[5e-4], fs=500.0)[1][0])
        assert gain == pytest.approx(np.sqrt(0.5), rel=1e-3)
        assert 2.8e6 < settling_samples(sections) < 2.9e6
    with pytest.raises(RecordingError, match="too short for the filters"):
        processed(recording(noise(3000, 2)), lowpass_hz=5e-4)


def test_a_filter_with_a_pole_on_the_unit_circle_never_settles() -> None:
    assert settling_samples(butterworth(1e-17, None, 1.0)) == NEVER


def test_a_new_rate_that_leaves_too_few_samples_is_named() -> None:
    with pytest.raises(RecordingError, match="does not fit the recording") as caught:
        processed(recording(noise(1000, 2)), resample_hz=1e-6)
    message = str(caught.value)
    assert "small recording, option 'preprocess.resample_hz'" in message
    assert "1e-06 Hz for 1000 samples at 500 Hz" in message
    assert "from 10 Hz" in message
    assert values_of(processed(recording(noise(1000, 2)), resample_hz=10.0)).shape == (20, 2)


def test_an_envelope_has_no_envelope():
    signal = TimeSeries(np.random.default_rng(0).random((5000, 2)), 500.0, envelope=True)
    units = Units(("a", "b"), ("r", "r"))
    read = Recording(RecordingId("1", "1", "1", "s"), signal, units, "gamma.fif")
    for envelope in ("hilbert", "high_gamma"):
        with pytest.raises(RecordingError, match="an envelope already") as error:
            preprocess(read, PreprocessConfig(envelope=envelope))
        assert "preprocess.envelope" in error.value.where
    assert preprocess(read, PreprocessConfig()) is read
