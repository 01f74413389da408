"""A simulated study of the same design: as many subject-runs, effective events and units, as slow responses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from lpact.analyses.lpact.calibration.cells import (
    EFFORT,
    N_STORIES,
    SENTENCES_AT_LEAST,
    Cell,
    Effort,
)
from lpact.analyses.lpact.calibration.power_design import DatasetDesign
from lpact.analyses.lpact.config import AuditConfig, GatesConfig, LPactConfig, RelationalConfig
from lpact.datasets.simulated.brain import SAMPLING_RATE_HZ
from lpact.datasets.simulated.kernels import WINDOW_S
from lpact.datasets.simulated.latents import CONTEXT_AUTOCORRELATION
from lpact.datasets.simulated.words import WORDS_PER_SENTENCE
from lpact.stats import ar1_variance_inflation

TRUTH = MODEL = "integrated"
"""What is planted: everything that the gates look for, and a model that knows it."""

EVENT_SPACING_S = 0.37
"""Typical distance of words in simulated stimuli: 0.34 s within sentences, 0.40 s with the pauses between them."""

LARGEST_COEFFICIENT = 0.998
MOST_EVENTS = 600
MOST_SUBJECT_RUNS = 6
MOST_UNITS = 16
MOST_FOLDS = 5
SAME, SMALLER, LARGER, MIXED = "same", "smaller", "larger", "mixed"
"""How large simulated studies are, compared with the design. Smaller ones find only larger effects."""
FEWEST_EVENTS = round(N_STORIES * SENTENCES_AT_LEAST * sum(WORDS_PER_SENTENCE) / 2)


@dataclass(frozen=True)
class MatchedDesign:
    """The cell that stands for a dataset (at any signal-to-noise ratio), and in what it differs from it, in words."""

    cell: Cell
    effort: Effort
    gates: GatesConfig
    relational: RelationalConfig
    caps: tuple[str, ...]
    size: str = SAME

    def at(self, snr: float) -> Cell:
        """The cell at a signal-to-noise ratio."""
        return replace(self.cell, snr=snr)


def matched_design(
    design: DatasetDesign, config: LPactConfig, effort: Effort | None = None
) -> MatchedDesign:
    """The simulated study that stands for a dataset.

    Features of simulated models are less autocorrelated than those of language models. So the number of simulated
    events is the one that is worth as many effective events, not the number of the dataset's events.
    """
    limiting = design.limiting
    if limiting is None or limiting.n_effective_events is None or design.n_units is None:
        raise ValueError(f"dataset '{design.name}' has no design to match")
    lag1 = min(max(design.response_autocorrelation or 0.0, 0.0), 0.99)
    n_effective = limiting.n_effective_events
    inflation = ar1_variance_inflation(
        CONTEXT_AUTOCORRELATION, lag1, max(2, round(design.n_events or 2))
    )
    caps: list[tuple[str, str]] = []
    n_events = _within(round(n_effective * inflation), FEWEST_EVENTS, MOST_EVENTS, "events", caps)
    n_runs = _within(design.n_subject_runs, 1, MOST_SUBJECT_RUNS, "subject-runs", caps)
    n_units = _within(round(design.n_units), 4, MOST_UNITS, "units", caps)
    cell = Cell(
        TRUTH,
        MODEL,
        n_events=n_events,
        n_subjects=n_runs,
        n_units=n_units,
        noise_autocorrelation=noise_coefficient(lag1),
    )
    if effort is None:
        _within(config.controls.draws, 1, EFFORT.draws, "draws of controls", caps)
    return MatchedDesign(
        cell,
        effort or _effort(design, config),
        config.gates,
        _relational(config),
        tuple(text for _, text in caps),
        _size({direction for direction, _ in caps}),
    )


def _within(n: int, fewest: int, most: int, what: str, caps: list[tuple[str, str]]) -> int:
    if n > most:
        text = (
            f"{most} {what} instead of {n}, to save time: the design itself finds smaller effects"
        )
        caps.append((SMALLER, text))
        return most
    if n < fewest:
        text = (
            f"{fewest} {what} instead of {n}, the fewest that can be simulated: the design itself finds only larger "
            "effects"
        )
        caps.append((LARGER, text))
        return fewest
    return n


def _size(directions: set[str]) -> str:
    return MIXED if len(directions) > 1 else next(iter(directions), SAME)


def _effort(design: DatasetDesign, config: LPactConfig) -> Effort:
    """The study's own folds, controls and draws (up to a number); penalties and lags as few as in the calibration."""
    include = config.controls.include
    return replace(
        EFFORT,
        draws=min(config.controls.draws, EFFORT.draws),
        mismatch_draws=min(config.stripping.mismatch_draws, EFFORT.mismatch_draws),
        folds=min(design.n_folds or EFFORT.folds, MOST_FOLDS),
        gap_events=min(config.readout.gap_events, EFFORT.gap_events),
        controls=include if set(AuditConfig().required_controls) <= set(include) else None,
    )


def _relational(config: LPactConfig) -> RelationalConfig:
    """The study's own patterns; a simulated subject has one run, so that another subject's stands for another run's."""
    if config.relational.brain_patterns_from != "other_run":
        return config.relational
    return config.relational.model_copy(update={"brain_patterns_from": "other_subject"})


def noise_coefficient(lag1: float) -> float:
    """Autocorrelation at 100 Hz of noise whose means over 200 ms correlate by ``lag1`` from one event to the next.

    For an autoregressive series with coefficient φ, means over w samples that begin D samples apart correlate by
    Σ_ij φ^|D + i − j| / Σ_ij φ^|i − j|, i and j from 1 to w. Events of simulated stimuli are about 0.37 s apart.
    """
    if lag1 <= _event_autocorrelation(0.0):
        return 0.0
    if lag1 >= _event_autocorrelation(LARGEST_COEFFICIENT):
        return LARGEST_COEFFICIENT
    root = optimize.brentq(lambda phi: _event_autocorrelation(phi) - lag1, 0.0, LARGEST_COEFFICIENT)
    return round(float(root), 4)


def _event_autocorrelation(phi: float) -> float:
    width = round(WINDOW_S * SAMPLING_RATE_HZ)
    distance = EVENT_SPACING_S * SAMPLING_RATE_HZ
    lags = np.arange(width)[:, None] - np.arange(width)[None, :]
    apart = np.abs(lags + distance)
    return float((phi**apart).sum() / (phi ** np.abs(lags)).sum())
