"""Neural signals: word responses through a kernel, on top of autocorrelated noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from lpact.datasets.base import Envelope, Epochs, Signal, TimeSeries
from lpact.datasets.simulated.gains import Gains
from lpact.datasets.simulated.kernels import (
    HRF_LENGTH_S,
    KERNEL_LENGTH_S,
    WINDOW_S,
    design_matrix,
    hrf,
    kernel_window_mean,
    word_kernel,
)
from lpact.datasets.simulated.latents import Latents
from lpact.datasets.simulated.options import SimulatedOptions
from lpact.datasets.simulated.streams import ar1, ar1_window_sd
from lpact.datasets.simulated.words import Words
from lpact.math.types import FloatArray

SAMPLING_RATE_HZ = 100.0
TR_S = 2.0
TAIL_S = 2.5
FMRI_TAIL_S = 18.0
SENSOR_LEAK = 0.15
ONSET_GAIN = 0.5
"""Response to any word under the truth `onset`, the same for all words."""
SOUND_GAIN, SOUND_DELAY_S = 0.5, 0.1
"""Size and delay of the response to the envelope under the truth `sound`."""
EPOCH_LAGS_MS = (-100.0, 100.0, 300.0)
"""Lags of epoched recordings: 200 ms windows that do not overlap, the middle one on the peak."""


def recording_length_s(options: SimulatedOptions, words: Words) -> float:
    """Length of a recording, from 0 s to well past the last word's response."""
    return words.end_s + (FMRI_TAIL_S if options.modality == "fmri" else TAIL_S)


def make_signal(
    options: SimulatedOptions,
    words: Words,
    latents: Latents,
    gains: Gains,
    rng: np.random.Generator,
    envelope: Envelope | None = None,
) -> Signal:
    """Return the neural signal of one recording; ``envelope`` is the stimulus' sound."""
    response = word_response(options, latents, gains)
    if options.modality == "epoched":
        slow = _drift(options, latents, gains, words.onset_s)
        layers = [
            kernel_window_mean(lag_ms / 1000.0) * response
            + slow
            + _noise(options, gains, words.n_words, rng)
            for lag_ms in EPOCH_LAGS_MS
        ]
        return Epochs(np.stack(layers), EPOCH_LAGS_MS)
    if options.modality == "fmri":
        rate_hz, noise_sd = 1.0 / TR_S, 1.0
    else:
        rate_hz = SAMPLING_RATE_HZ
        noise_sd = ar1_window_sd(options.noise_coefficient, round(WINDOW_S * rate_hz))
    n_samples = int(np.ceil(recording_length_s(options, words) * rate_hz)) + 1
    values = _design(options, words, n_samples, rate_hz) @ response
    values += _drift(options, latents, gains, np.arange(n_samples) / rate_hz)
    values += _noise(options, gains, n_samples, rng) / noise_sd
    if "sound" in options.truths and envelope is not None:
        values += _sound(options, envelope, np.arange(n_samples) / rate_hz)
    return TimeSeries(mix_sensors(values) if options.modality == "meg" else values, rate_hz)


def word_response(options: SimulatedOptions, latents: Latents, gains: Gains) -> FloatArray:
    """Planted response of every unit to every word, [n_words, n_units], without drift and noise.

    ``r_j(w) = snr (g_rel c + g_lex l + g_pred e + Σ_k g_k m_k + Σ_i g_i n_i)``, planted truths only.
    """
    contextual = latents.contextual
    parts: dict[str, Callable[[], FloatArray]] = {
        "relational": lambda: np.outer(contextual.relational_drive, gains.relational),
        "lexical": lambda: np.outer(latents.lexical_drive, gains.lexical),
        "predictive": lambda: np.outer(contextual.predictive_drive, gains.predictive),
        "mechanism": lambda: contextual.mechanisms @ gains.mechanisms,
        "nuisance": lambda: latents.nuisances @ gains.nuisances,
        "onset": lambda: ONSET_GAIN * _signs(options),
    }
    response = np.zeros((len(latents.lexical), options.n_units))
    for truth, part in parts.items():
        if truth in options.truths:
            response += part()
    return options.snr * response


def _signs(options: SimulatedOptions) -> FloatArray:
    """Every other unit goes down where its neighbours go up, [n_units]."""
    signs: FloatArray = np.where(np.arange(options.n_units) % 2, -1.0, 1.0)
    return signs


def _sound(options: SimulatedOptions, envelope: Envelope, times_s: FloatArray) -> FloatArray:
    """``snr · (± 1) · z(t − 100 ms)`` with the standardised envelope z, [n_times, n_units]."""
    heard_s = envelope.start_s + np.arange(envelope.values.size) / envelope.sampling_rate_hz
    delayed = np.interp(times_s - SOUND_DELAY_S, heard_s, envelope.values)
    course = (delayed - delayed.mean()) / delayed.std()
    planted: FloatArray = options.snr * SOUND_GAIN * np.outer(course, _signs(options))
    return planted


def _drift(
    options: SimulatedOptions, latents: Latents, gains: Gains, times_s: FloatArray
) -> FloatArray:
    """Planted drift of every unit, ``snr Σ_k g_k d_k(t)``, [n_times, n_units]; 0 if not planted."""
    if "drift" not in options.truths:
        return np.zeros((len(times_s), options.n_units))
    drift: FloatArray = options.snr * (latents.drifts.at(times_s) @ gains.drift)
    return drift


def _noise(
    options: SimulatedOptions, gains: Gains, n_rows: int, rng: np.random.Generator
) -> FloatArray:
    """Private noise of variance 1, shared noise, and the intrinsic factor, [n_rows, n_units].

    The intrinsic factor replaces the relational drive if that is not planted: the brain keeps a pattern
    that no model knows.
    """
    noise = ar1(rng, n_rows, options.n_units, options.noise_coefficient)
    shared, intrinsic = ar1(rng, n_rows, 2, options.noise_coefficient).T
    noise += np.outer(shared, gains.shared_noise)
    if "relational" not in options.truths:
        noise += np.outer(intrinsic, gains.relational)
    return noise


def _design(
    options: SimulatedOptions, words: Words, n_samples: int, rate_hz: float
) -> sparse.csr_array:
    """Response of each sample to each word.

    The haemodynamic response is scaled so that white word responses of variance 1 give a signal
    of variance 1 while words are spoken.
    """
    if options.modality != "fmri":
        return design_matrix(words.onset_s, n_samples, rate_hz, word_kernel, KERNEL_LENGTH_S)
    design = design_matrix(words.onset_s, n_samples, rate_hz, hrf, HRF_LENGTH_S)
    n_speech_samples = (words.end_s - words.onset_s[0]) * rate_hz
    design.data /= np.sqrt((design.data**2).sum() / n_speech_samples)
    return design


def mix_sensors(values: FloatArray) -> FloatArray:
    """Let every sensor pick up a little of its neighbours in unit order, at equal noise power."""
    mixed = values.copy()
    mixed[..., 1:] += SENSOR_LEAK * values[..., :-1]
    mixed[..., :-1] += SENSOR_LEAK * values[..., 1:]
    power = np.ones(values.shape[-1])
    power[1:] += SENSOR_LEAK**2
    power[:-1] += SENSOR_LEAK**2
    return mixed / np.sqrt(power)
