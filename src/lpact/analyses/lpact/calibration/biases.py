"""Where a point rule is biased: small simulations of one rule each, with what it finds and what is true.

`best_of_many_controls`
    A model is compared with the best of k controls that know exactly as much. The expected difference is not 0 but
    ``−σ E max(z_1 … z_k)``, with σ the spread of a score that comes from the control's own noise: the more controls,
    the harder the rule, for no other reason than their number.
`reliability_under_drift`
    The halves of a recording share its slow drifts. Split-half reliability counts them as signal; a second recording,
    which drifts in its own way, does not.
`few_rows_localiser`, `few_rows_localiser_units`
    Units with the largest correlations on few rows are partly those whose noise happened to fit. Their correlation on
    these rows is larger than it really is, and fewer of them carry the mechanism than the target has units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.tables.calibration import BIASES
from lpact.math.profiles import pearson_rows
from lpact.math.scores import partial_correlations
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.splits import alternating_halves
from lpact.store import frame

N_EVENTS = 300
CONTROLS = (1, 2, 4, 8, 16)
CONTROL_SIMULATIONS = 2000
DRIFTS = (0.0, 0.25, 0.5, 1.0, 2.0)
DRIFT_SIMULATIONS = 200
N_UNITS = 16
HALF_BLOCKS = 8
ROWS = (20, 50, 100, 200, 400, 800)
ROW_SIMULATIONS = 300
LOCALISER_UNITS, CARRIERS, N_MECHANISMS = 20, 3, 3
CARRIER_GAIN = 0.25
CARRIER_CORRELATION = CARRIER_GAIN / sqrt(1.0 + CARRIER_GAIN**2)


def measure_biases(seed: int = 0, *, share: float = 1.0) -> pl.DataFrame:
    """Return the rows of `BIASES`; ``share`` of the simulations is made, at least ten of each kind."""

    def n(full: int) -> int:
        return max(10, round(share * full))

    rows = [
        *_best_of_many(seed, n(CONTROL_SIMULATIONS)),
        *_reliability_under_drift(seed, n(DRIFT_SIMULATIONS)),
        *_few_rows(seed, n(ROW_SIMULATIONS)),
    ]
    steps: Counter[str] = Counter()
    for row in rows:
        row["step"] = steps[row["bias"]]
        steps[row["bias"]] += 1
    return frame(BIASES, rows)


def _best_of_many(seed: int, n_simulations: int) -> Iterator[dict[str, Any]]:
    """Score of a model minus the best of k controls: a brain and k + 1 predictions that all know its signal."""
    deltas = np.empty((n_simulations, len(CONTROLS)))
    for simulation in range(n_simulations):
        rng = keyed_rng(seed, "best_of_many_controls", simulation)
        signal = rng.standard_normal(N_EVENTS)
        brain = 0.5 * signal + rng.standard_normal(N_EVENTS)
        noise = rng.standard_normal((1 + max(CONTROLS), N_EVENTS))
        scores = pearson_rows(signal + noise, brain[None])
        best = np.maximum.accumulate(scores[1:])
        deltas[simulation] = scores[0] - best[np.array(CONTROLS) - 1]
    for k, found in zip(CONTROLS, deltas.T, strict=True):
        differs = f"a model's score differs by {found.mean():+.3f}"
        meaning = f"Against the best of {k}, each knowing exactly as much, {differs}."
        true = np.zeros_like(found)
        yield _row("best_of_many_controls", "controls", k, found, true, meaning)


def _reliability_under_drift(seed: int, n_simulations: int) -> Iterator[dict[str, Any]]:
    """Reliability of patterns over units, between halves of a recording and between two recordings."""
    halves = alternating_halves(N_EVENTS, HALF_BLOCKS)
    for drift in DRIFTS:
        within, between = np.empty(n_simulations), np.empty(n_simulations)
        for simulation in range(n_simulations):
            rng = keyed_rng(seed, "reliability_under_drift", simulation)
            gains = rng.uniform(0.0, 0.8, N_UNITS)
            stimulus = rng.standard_normal(N_EVENTS)
            first, second = (_drifting(rng, gains, stimulus, drift) for _ in range(2))
            parts = [_patterns(first[rows]) for rows in halves]
            within[simulation] = np.mean(pearson_rows(*parts))
            whole = [_patterns(run[halves[0]]) for run in (first, second)]
            between[simulation] = np.mean(pearson_rows(*whole))
        meaning = (
            f"With a drift of {drift:g} times the noise, the halves of a recording agree by {within.mean():.2f}, and "
            f"two recordings of as many events by {between.mean():.2f}."
        )
        setting = "drift relative to the noise"
        yield _row("reliability_under_drift", setting, drift, within, between, meaning)


def _drifting(rng: np.random.Generator, gains: FloatArray, stimulus: FloatArray, drift: float) -> FloatArray:
    """Responses [n_events, n_units]: the stimulus, noise, and drifts of one and two cycles per recording."""
    place = np.linspace(0.0, 1.0, len(stimulus))[:, None]
    phases = rng.uniform(0.0, 2.0 * np.pi, 2)
    courses = np.sqrt(2.0) * np.cos(2.0 * np.pi * place * np.array([1.0, 2.0]) + phases)
    noise = rng.standard_normal((len(stimulus), len(gains)))
    weights = rng.standard_normal((2, len(gains))) / np.sqrt(2.0)
    responses: FloatArray = np.outer(stimulus, gains) + noise + drift * (courses @ weights)
    return responses


def _patterns(responses: FloatArray) -> FloatArray:
    """Correlations between units, each unit's own entry missing."""
    patterns = np.asarray(np.corrcoef(responses.T), dtype=np.float64)
    np.fill_diagonal(patterns, np.nan)
    return patterns


def _few_rows(seed: int, n_simulations: int) -> Iterator[dict[str, Any]]:
    """What a localiser picks on few rows, with its partial correlations there and in the long run."""
    for n_rows in ROWS:
        apparent, true, carrying = (np.empty(n_simulations) for _ in range(3))
        for simulation in range(n_simulations):
            rng = keyed_rng(seed, "few_rows_localiser", n_rows, simulation)
            mechanisms = rng.standard_normal((n_rows, N_MECHANISMS))
            responses = rng.standard_normal((n_rows, LOCALISER_UNITS))
            responses[:, :CARRIERS] += CARRIER_GAIN * mechanisms[:, :1]
            found = partial_correlations(responses, mechanisms)[0]
            picked = np.argsort(-np.abs(found), kind="stable")[:CARRIERS]
            real = np.where(picked < CARRIERS, CARRIER_CORRELATION, 0.0)
            apparent[simulation] = np.abs(found[picked]).mean()
            true[simulation] = (np.sign(found[picked]) * real).mean()
            carrying[simulation] = np.sum(picked < CARRIERS)
        correlate = f"correlate by {apparent.mean():.2f} there, and by {true.mean():.2f} in truth"
        meaning = f"Units picked on {n_rows} rows {correlate}."
        yield _row("few_rows_localiser", "rows", n_rows, apparent, true, meaning)
        carry = f"{carrying.mean():.1f} carry the mechanism"
        meaning = f"Of {CARRIERS} units picked on {n_rows} rows, {carry}."
        n_picked = np.full(n_simulations, float(CARRIERS))
        yield _row("few_rows_localiser_units", "rows", n_rows, n_picked, carrying, meaning)


def _row(bias: str, setting: str, value: float, apparent: FloatArray, true: FloatArray, meaning: str) -> dict[str, Any]:
    differences = apparent - true
    return {
        "bias": bias,
        "setting": setting,
        "value": float(value),
        "apparent": float(apparent.mean()),
        "true": float(true.mean()),
        "bias_size": float(differences.mean()),
        "standard_error": float(differences.std(ddof=1) / np.sqrt(len(differences))),
        "n_simulations": len(differences),
        "meaning": meaning,
    }
