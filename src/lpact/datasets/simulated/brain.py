"""Neural signals: gains of units, word responses through a kernel, and autocorrelated noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

import numpy as np
from scipy import sparse
from scipy.special import gamma

from lpact.datasets.base import Envelope, Epochs, RecordingId, Signal, TimeSeries
from lpact.datasets.simulated.latents import N_DRIFTS, N_NUISANCES, Latents
from lpact.datasets.simulated.options import MECHANISMS, SimulatedOptions
from lpact.datasets.simulated.streams import Streams, ar1, ar1_window_sd
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
WINDOW_S = 0.2
"""Response window in which signal and noise are compared."""

PEAK_S = 0.2
KERNEL_ORDER = 6
KERNEL_LENGTH_S = 1.0
HRF_LENGTH_S = 32.0
RELATIONAL_RANGE = (0.1, 1.6)
PREDICTIVE_RANGE = (0.35, 0.75)
LEXICAL_RANGE = (0.1, 0.5)
SHARED_NOISE_RANGE = (0.4, 1.6)
MECHANISM_GAIN = 1.2
DRIFT_GAIN = 0.8
NUISANCE_GAIN = 0.6
SESSION_SHARE = 0.3
RUN_SHARE = 0.2
N_CANDIDATE_ORDERS = 64


@dataclass(frozen=True)
class Gains:
    """Gains of every unit before the factor ``snr``.

    ``relational``, ``predictive``, ``lexical`` and ``shared_noise`` are [n_units], ``drift`` is
    [N_DRIFTS, n_units], ``mechanisms`` is [6, n_units] (zero where a unit does not carry one),
    ``nuisances`` is [N_NUISANCES, n_units].
    """

    relational: FloatArray
    predictive: FloatArray
    lexical: FloatArray
    shared_noise: FloatArray
    drift: FloatArray
    mechanisms: FloatArray
    nuisances: FloatArray


def recording_gains(options: SimulatedOptions, streams: Streams, recording_id: RecordingId) -> Gains:
    """Return the gains of one recording: ``base · exp(v (ε_subject + 0.3 ε_session + 0.2 ε_run))``.

    The ε are standard normal for every gain; v is ``subject_variability``.
    """
    place = (recording_id.subject, recording_id.session, recording_id.run)
    owner = "" if options.shared_units else place[0]
    base = _base_gains(options, streams.rng("gains", owner), streams.rng("gains", "nuisances", owner))
    generators = [streams.rng("gain jitter", *place[: depth + 1]) for depth in range(3)]
    weights = options.subject_variability * np.array([1.0, SESSION_SHARE, RUN_SHARE])
    jittered = {}
    for field in fields(Gains):
        gains: FloatArray = getattr(base, field.name)
        jitter = [w * rng.standard_normal(gains.shape) for w, rng in zip(weights, generators, strict=True)]
        jittered[field.name] = gains * np.exp(np.sum(jitter, axis=0))
    return Gains(**jittered)


def _base_gains(options: SimulatedOptions, rng: np.random.Generator, nuisance_rng: np.random.Generator) -> Gains:
    """Gains before jitter.

    Relational gains are evenly spread; lexical and shared-noise gains are ordered so that they
    hardly correlate with them or each other; predictive gains fall where relational gains rise, so
    that the predictive pattern never resembles the brain's own.
    """
    n_units = options.n_units
    relational = rng.permutation(np.linspace(*RELATIONAL_RANGE, n_units))
    shared_noise = _unrelated(rng, SHARED_NOISE_RANGE, [relational])
    lexical = _unrelated(rng, LEXICAL_RANGE, [relational, shared_noise])
    falling_rank = np.argsort(np.argsort(-relational))
    return Gains(
        relational=relational,
        predictive=np.linspace(*PREDICTIVE_RANGE, n_units)[falling_rank],
        lexical=lexical,
        shared_noise=options.shared_noise * shared_noise,
        drift=DRIFT_GAIN * rng.standard_normal((N_DRIFTS, n_units)),
        # Last, because it draws only if planted: the other gains are the same under any truth.
        mechanisms=_mechanism_gains(options, rng),
        nuisances=NUISANCE_GAIN * nuisance_rng.standard_normal((N_NUISANCES, n_units)),
    )


def _unrelated(rng: np.random.Generator, limits: tuple[float, float], others: list[FloatArray]) -> FloatArray:
    """Evenly spread gains, in the order (of 64 random ones) that correlates least with ``others``."""
    n_units = len(others[0])
    orders = np.stack([rng.permutation(n_units) for _ in range(N_CANDIDATE_ORDERS)])
    spread = np.linspace(*limits, n_units)
    centred = np.stack([other - other.mean() for other in others])
    overlap = np.abs(spread[orders] @ centred.T)
    best: FloatArray = spread[orders[int(overlap.max(axis=1).argmin())]]
    return best


def _mechanism_gains(options: SimulatedOptions, rng: np.random.Generator) -> FloatArray:
    """Distinct units for every planted mechanism, drawn at random."""
    gains = np.zeros((len(MECHANISMS), options.n_units))
    if "mechanism" not in options.truths:
        return gains
    n_carriers = len(options.mechanisms) * options.n_mechanism_units
    carriers = rng.permutation(options.n_units)[:n_carriers]
    for mechanism, units in zip(options.mechanisms, np.split(carriers, len(options.mechanisms)), strict=True):
        gains[MECHANISMS.index(mechanism), units] = MECHANISM_GAIN
    return gains


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
            kernel_window_mean(lag_ms / 1000.0) * response + slow + _noise(options, gains, words.n_words, rng)
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
    return np.where(np.arange(options.n_units) % 2, -1.0, 1.0)


def _sound(options: SimulatedOptions, envelope: Envelope, times_s: FloatArray) -> FloatArray:
    """``snr · (± 1) · z(t − 100 ms)`` with the standardised envelope z, [n_times, n_units]."""
    heard_s = envelope.start_s + np.arange(envelope.values.size) / envelope.sampling_rate_hz
    delayed = np.interp(times_s - SOUND_DELAY_S, heard_s, envelope.values)
    course = (delayed - delayed.mean()) / delayed.std()
    return options.snr * SOUND_GAIN * np.outer(course, _signs(options))


def _drift(options: SimulatedOptions, latents: Latents, gains: Gains, times_s: FloatArray) -> FloatArray:
    """Planted drift of every unit, ``snr Σ_k g_k d_k(t)``, [n_times, n_units]; 0 if not planted."""
    if "drift" not in options.truths:
        return np.zeros((len(times_s), options.n_units))
    return options.snr * (latents.drifts.at(times_s) @ gains.drift)


def _noise(options: SimulatedOptions, gains: Gains, n_rows: int, rng: np.random.Generator) -> FloatArray:
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


def _design(options: SimulatedOptions, words: Words, n_samples: int, rate_hz: float) -> sparse.csr_array:
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


def word_kernel(delay_s: FloatArray) -> FloatArray:
    """Response at ``delay_s`` after onset: ``∝ (x e^{1−x})^6``, x = delay / 200 ms; 0 before onset.

    Its mean over the best window, 100–300 ms, is about 1.
    """
    return _shape(delay_s) / _shape_window_mean(PEAK_S - WINDOW_S / 2)


def kernel_window_mean(lag_s: float) -> float:
    """Mean of `word_kernel` over the 200 ms that start ``lag_s`` after onset."""
    return _shape_window_mean(lag_s) / _shape_window_mean(PEAK_S - WINDOW_S / 2)


def _shape(delay_s: FloatArray) -> FloatArray:
    x = np.maximum(delay_s, 0.0) / PEAK_S
    return (x * np.exp(1.0 - x)) ** KERNEL_ORDER


@cache
def _shape_window_mean(lag_s: float) -> float:
    n_points = 2000
    return float(_shape(lag_s + (np.arange(n_points) + 0.5) * WINDOW_S / n_points).mean())


def hrf(delay_s: FloatArray) -> FloatArray:
    """Canonical double-gamma haemodynamic response, ``t⁵e⁻ᵗ/Γ(6) − t¹⁵e⁻ᵗ/(6 Γ(16))``, t in s."""
    t = np.maximum(delay_s, 0.0)
    return np.exp(-t) * (t**5 / gamma(6.0) - t**15 / (6.0 * gamma(16.0)))


def design_matrix(
    onset_s: FloatArray,
    n_samples: int,
    rate_hz: float,
    kernel: Callable[[FloatArray], FloatArray],
    kernel_length_s: float,
) -> sparse.csr_array:
    """Kernel of each word at each sample, [n_samples, n_words]; sample 0 is at 0 s."""
    first = np.ceil(onset_s * rate_hz).astype(np.int64)
    rows = first[:, None] + np.arange(int(kernel_length_s * rate_hz))
    columns = np.broadcast_to(np.arange(len(onset_s))[:, None], rows.shape)
    inside = rows < n_samples
    values = kernel((rows / rate_hz - onset_s[:, None])[inside])
    return sparse.csr_array((values, (rows[inside], columns[inside])), (n_samples, len(onset_s)))
