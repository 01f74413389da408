"""The amplitude envelope against closed forms and against whole-sound computations of scipy."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy import signal

from lpact.math.envelope import amplitude_envelope, hilbert_kernel


def of_array(sound, **options):
    sound = np.asarray(sound, dtype=np.float64)
    sound = sound[:, None] if sound.ndim == 1 else sound
    settings = {"sampling_rate_hz": 8000.0, "lowpass_hz": 10.0, "rate_hz": 100.0} | options
    return amplitude_envelope(lambda start, stop: sound[start:stop], len(sound), **settings)


def speech_like(n_samples, rate_hz, seed=0):
    """Noise under a slow modulation, silent at both ends, then limited to a band."""
    noise = np.random.default_rng(seed).standard_normal(n_samples)
    band = signal.butter(4, [80.0, 0.3 * rate_hz], "bandpass", fs=rate_hz, output="sos")
    time_s = np.arange(n_samples) / rate_hz
    slow = 1.0 + np.sin(2 * np.pi * 2.7 * time_s) + 0.5 * np.sin(2 * np.pi * 0.3 * time_s)
    fade = np.zeros(n_samples)
    silence = int(0.15 * rate_hz)
    fade[silence:-silence] = signal.windows.tukey(n_samples - 2 * silence, 0.2)
    return signal.sosfiltfilt(band, noise * slow * fade)


def whole(sound, rate_hz, lowpass_hz):
    """Low-passed magnitude of the analytic signal by one Fourier transform."""
    sections = signal.butter(4, lowpass_hz, fs=rate_hz, output="sos")
    return signal.sosfiltfilt(sections, np.abs(signal.hilbert(sound)))


@pytest.mark.parametrize(("rate_hz", "carrier_hz"), [(8000.0, 440.0), (22050.0, 3000.0)])
@pytest.mark.parametrize("modulation_hz", [1.5, 8.0, 14.0])
def test_an_amplitude_modulated_tone_gives_back_its_modulation(rate_hz, carrier_hz, modulation_hz):
    n = int(8 * rate_hz)
    time_s = np.arange(n) / rate_hz
    depth, lowpass_hz = 0.7, 10.0
    modulation = 2 * np.pi * modulation_hz
    sound = (3.0 + depth * np.cos(modulation * time_s)) * np.cos(2 * np.pi * carrier_hz * time_s)
    # A digital Butterworth filter of order 4, run twice; frequencies are warped by the tangent.
    warped = np.tan(np.pi * modulation_hz / rate_hz) / np.tan(np.pi * lowpass_hz / rate_hz)
    gain = 1.0 / (1.0 + warped**8)
    envelope = of_array(sound, sampling_rate_hz=rate_hz, lowpass_hz=lowpass_hz)
    inner = slice(200, 600)
    expected = 3.0 + depth * gain * np.cos(modulation * np.arange(800) / 100.0)
    np.testing.assert_allclose(envelope[inner], expected[inner], atol=2e-5)


@pytest.mark.parametrize(
    ("n", "rate_hz", "lowpass_hz", "result_hz"),
    [(40_001, 8000.0, 10.0, 100.0), (60_000, 11025.0, 10.0, 100.0), (33_333, 8000.0, 25.0, 64.0)],
)
def test_pieces_give_what_one_transform_of_the_whole_gives(n, rate_hz, lowpass_hz, result_hz):
    sound = speech_like(n, rate_hz)
    smooth = whole(sound, rate_hz, lowpass_hz)
    times_s = np.arange(math.ceil(n * result_hz / rate_hz)) / result_hz
    expected = np.interp(times_s, np.arange(n) / rate_hz, smooth)
    envelope = of_array(
        sound,
        sampling_rate_hz=rate_hz,
        lowpass_hz=lowpass_hz,
        rate_hz=result_hz,
        piece_samples=9_973,
    )
    np.testing.assert_allclose(envelope, expected, atol=2e-6 * expected.max())


def test_interpolation_between_samples_is_as_good_as_promised():
    rate_hz, lowpass_hz = 22050.0, 10.0
    sound = speech_like(44_100, rate_hz)
    # A Fourier series has the values between the samples. It wraps around: the ends must be alike.
    smooth = whole(sound, rate_hz, lowpass_hz)
    silence = np.zeros(22_050)
    fade = signal.windows.tukey(44_100, 0.05)
    expected = signal.resample(np.concatenate([silence, smooth * fade, silence]), 400)[100:300]
    envelope = of_array(sound, sampling_rate_hz=rate_hz, lowpass_hz=lowpass_hz)
    promised = (2 * np.pi * lowpass_hz / rate_hz) ** 2 / 8 + 2e-6
    inner = slice(20, -20)
    np.testing.assert_allclose(envelope[inner], expected[inner], rtol=0, atol=promised * expected.max())


@pytest.mark.parametrize("piece_samples", [1_000, 7_919, 16_000, 10**9])
def test_the_length_of_a_piece_does_not_matter(piece_samples):
    sound = np.column_stack([speech_like(50_021, 8000.0, seed) for seed in (1, 2)])
    base = of_array(sound, piece_samples=20_000)
    other = of_array(sound, piece_samples=piece_samples)
    np.testing.assert_allclose(other, base, atol=1e-9 * base.max(), rtol=0)


def test_memory_does_not_grow_with_the_sound():
    def peak_and_longest(n_samples):
        asked = []

        def read(start, stop):
            asked.append(stop - start)
            time_s = np.arange(start, stop) / 8000.0
            return np.sin(2 * np.pi * 300.0 * time_s)[:, None]

        tracemalloc.start()
        amplitude_envelope(
            read,
            n_samples,
            sampling_rate_hz=8000.0,
            lowpass_hz=10.0,
            rate_hz=100.0,
            piece_samples=16_000,
        )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak, max(asked), sum(asked)

    peak_and_longest(8_000)  # what libraries keep after their first call
    short, short_piece, _ = peak_and_longest(400_000)
    long, long_piece, n_read = peak_and_longest(3_200_000)
    assert long_piece == short_piece < 40_000
    assert n_read > 3_200_000
    # Only the result itself grows: 8 bytes a hundredth of a second, with a few arrays of its size.
    assert long - short < 6 * 8 * (3_200_000 - 400_000) / 80
    assert long < 8 * 3_200_000 / 2


def test_channels_are_averaged_after_rectification():
    sound = speech_like(24_000, 8000.0)
    one = of_array(sound)
    np.testing.assert_allclose(of_array(np.column_stack([sound, -sound])), one, atol=1e-12)
    np.testing.assert_allclose(of_array(np.column_stack([sound, 0 * sound, 2 * sound, sound])), one, atol=1e-12)


def test_scale_and_silence():
    sound = speech_like(24_000, 8000.0)
    np.testing.assert_allclose(of_array(5 * sound), 5 * of_array(sound), atol=1e-12)
    assert not of_array(np.zeros(24_000)).any()


@pytest.mark.parametrize("n", [1, 2, 5, 16, 79, 80, 81, 160])
def test_short_sounds_have_a_sample_at_every_time_inside_them(n):
    envelope = of_array(np.full(n, -0.5))
    assert envelope.size == sum(1 for k in range(10) if k / 100.0 < n / 8000.0)
    assert np.isfinite(envelope).all()
    if n == 1:
        np.testing.assert_allclose(envelope, [0.5])


def test_the_kernel_turns_cosines_into_sines():
    kernel = hilbert_kernel(8000.0)
    half = kernel.size // 2
    n = np.arange(-half, half + 1)
    for frequency_hz in (8.0, 100.0, 1234.5, 3992.0):
        response = np.sum(kernel * np.exp(-2j * np.pi * frequency_hz / 8000.0 * n))
        assert abs(response - (-1j)) < 2e-6
    assert abs(np.sum(kernel)) < 1e-12


@pytest.mark.parametrize(
    "options",
    [{"lowpass_hz": 0.0}, {"lowpass_hz": 4000.0}, {"rate_hz": 0.0}, {"piece_samples": 0}],
)
def test_impossible_settings_are_refused(options):
    with pytest.raises(ValueError, match=r"at least one sample|cut-off"):
        of_array(np.ones(100), **options)


def test_a_sound_without_samples_is_refused():
    with pytest.raises(ValueError, match="at least one sample"):
        of_array(np.empty((0, 1)))
