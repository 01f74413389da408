"""How strongly each unit responds to what: a property of the dataset, with jitter over subjects."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from lpact.datasets.base import RecordingId
from lpact.datasets.simulated.latents import N_DRIFTS, N_NUISANCES
from lpact.datasets.simulated.options import MECHANISMS, SimulatedOptions
from lpact.datasets.simulated.streams import Streams
from lpact.math.types import FloatArray

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


def recording_gains(
    options: SimulatedOptions, streams: Streams, recording_id: RecordingId
) -> Gains:
    """Return the gains of one recording: ``base · exp(v (ε_subject + 0.3 ε_session + 0.2 ε_run))``.

    The ε are standard normal for every gain; v is ``subject_variability``.
    """
    place = (recording_id.subject, recording_id.session, recording_id.run)
    owner = "" if options.shared_units else place[0]
    base = _base_gains(
        options, streams.rng("gains", owner), streams.rng("gains", "nuisances", owner)
    )
    generators = [streams.rng("gain jitter", *place[: depth + 1]) for depth in range(3)]
    weights = options.subject_variability * np.array([1.0, SESSION_SHARE, RUN_SHARE])
    jittered = {}
    for field in fields(Gains):
        gains: FloatArray = getattr(base, field.name)
        jitter = [
            w * rng.standard_normal(gains.shape) for w, rng in zip(weights, generators, strict=True)
        ]
        jittered[field.name] = gains * np.exp(np.sum(jitter, axis=0))
    return Gains(**jittered)


def _base_gains(
    options: SimulatedOptions, rng: np.random.Generator, nuisance_rng: np.random.Generator
) -> Gains:
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


def _unrelated(
    rng: np.random.Generator, limits: tuple[float, float], others: list[FloatArray]
) -> FloatArray:
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
    for mechanism, units in zip(
        options.mechanisms, np.split(carriers, len(options.mechanisms)), strict=True
    ):
        gains[MECHANISMS.index(mechanism), units] = MECHANISM_GAIN
    return gains
