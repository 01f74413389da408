"""Low-level neural gates: does the signal respond to word onsets, and to word rate?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lpact.analyses.lpact.assays.scores import (
    Scores,
    by_gaps,
    held_out_pearson,
    rotated_rows,
    rotated_times,
    shift_parts,
)
from lpact.analyses.lpact.assays.signal import OpenRecording, words_heard
from lpact.analyses.lpact.config import LPactConfig
from lpact.codes import Reason
from lpact.datasets.base import Stimulus
from lpact.features.nuisance import word_rate
from lpact.grid.words import story_codes
from lpact.inputs.prepare import Prepared, make_folds
from lpact.math.splits import BlockedFolds
from lpact.math.surrogates import autocorrelation_time
from lpact.math.types import FloatArray, IntArray
from lpact.math.windows import nearest_sample

MIN_SHIFT_S = 1.0
"""Smallest shift: responses to words last about as long."""
HAEMODYNAMIC_S = 16.0
"""The same for haemodynamic responses."""
FEWEST_EVENTS = 20
FEWEST_SAMPLES = 2
"""Fewest samples of a window."""
UNITS_AT_A_TIME = 1024


def window_name(window_ms: tuple[float, float]) -> str:
    """Name of a window in tables."""
    return f"{window_ms[0]:g}-{window_ms[1]:g} ms"


class WordWindows:
    """Mean signal in windows after words, real and rotated within their story, collected unit by unit.

    Shifts are longer than a second, the latest window and the signal's autocorrelation time.
    """

    def __init__(
        self,
        opened: OpenRecording,
        stimulus: Stimulus,
        windows_ms: Sequence[tuple[float, float]],
        n_shifts: int,
        autocorrelation_s: float,
        rng: np.random.Generator,
    ) -> None:
        onset_s, _ = words_heard(opened.recording, stimulus)
        series = opened.series
        self.words = np.flatnonzero(np.isfinite(onset_s))
        self.story = story_codes(stimulus.words)[self.words]
        onset_s = onset_s[self.words]
        latest_s = max(stop for _, stop in windows_ms) / 1000.0
        min_shift_s = max(MIN_SHIFT_S, latest_s, autocorrelation_s)
        parts = shift_parts(n_shifts, max(1, np.unique(self.story).size), rng)
        rotated = rotated_times(onset_s, self.story, min_shift_s, parts)
        self.shiftable = rotated is not None
        times_s = onset_s[None] if rotated is None else np.vstack([onset_s, rotated])
        rate_hz = series.sampling_rate_hz
        self._starts, self._stops, self._held = [], [], []
        for start_ms, stop_ms in windows_ms:
            start_s = times_s + start_ms / 1000.0
            first = nearest_sample(start_s, start_s=series.start_s, sampling_rate_hz=rate_hz)
            stop = first + max(1, round((stop_ms - start_ms) / 1000.0 * rate_hz))
            held = (first >= 0) & (stop <= series.n_samples)
            self._starts.append(np.where(held, first, 0))
            self._stops.append(np.where(held, stop, 1))
            self._held.append(held)
        samples = ((stop - start) / 1000.0 * rate_hz for start, stop in windows_ms)
        self.too_short = [n < FEWEST_SAMPLES for n in samples]
        self._means: list[FloatArray] = []
        self._responses: list[FloatArray] = []

    def add(self, columns: FloatArray) -> None:
        """Add units, [n_samples, n]; NaN marks missing samples."""
        for column in columns.T:
            finite = np.isfinite(column)
            known = column[finite]
            sd = known.std() if known.size else 0.0
            if not sd > 0.0:
                n_windows, n_places = len(self._starts), len(self._starts[0])
                self._means.append(np.full((n_windows, n_places), np.nan))
                self._responses.append(np.full((n_windows, self.words.size), np.nan))
                continue
            centre = known.mean()
            level = np.concatenate(([0.0], np.cumsum(np.where(finite, column - centre, 0.0))))
            lost = None if finite.all() else np.concatenate(([0], np.cumsum(~finite)))
            means, responses = [], []
            for starts, stops, held in zip(self._starts, self._stops, self._held, strict=True):
                whole = held if lost is None else held & (lost[stops] == lost[starts])
                value = (level[stops] - level[starts]) / (stops - starts) / sd
                count = whole.sum(axis=1)
                total = np.where(whole, value, 0.0).sum(axis=1)
                means.append(np.where(count >= FEWEST_EVENTS, total / np.maximum(count, 1), np.nan))
                responses.append(np.where(whole[0], value[0], np.nan))
            self._means.append(np.stack(means))
            self._responses.append(np.stack(responses))

    @property
    def n_units(self) -> int:
        """Units added so far."""
        return len(self._means)

    def onset_scores(self, window: int) -> Scores | Reason:
        """Return the size of the event effect, in standard deviations of the signal, or why there is none.

        With m_k the mean over words of the signal in the window, at the real onsets (k = 0) or at shifted ones, it is
        |m_k − mean of the other m| / sd: without sign, since a unit may go down.
        """
        if self.too_short[window]:
            return Reason.NO_SAMPLES_IN_WINDOW
        if self.words.size < FEWEST_EVENTS:
            return Reason.TOO_FEW_EVENTS
        if not self.shiftable:
            return Reason.SHIFT_NOT_POSSIBLE
        means = np.stack([unit[window] for unit in self._means], axis=1)
        n = len(means)
        effect = np.abs(means - means.mean(axis=0)) * n / (n - 1)
        n_events = int(self._held[window][0].sum())
        return Scores(effect[0], effect[1:], n_events, "mean")

    def responses(self, window: int) -> tuple[IntArray, FloatArray]:
        """Words whose window is inside the recording, and their responses [n, n_units]."""
        held = np.flatnonzero(self._held[window][0])
        values = np.stack([unit[window][held] for unit in self._responses], axis=1)
        return self.words[held], values


def rate_scores(
    predictors: FloatArray,
    responses: FloatArray,
    story: IntArray,
    *,
    folds: BlockedFolds | None,
    config: LPactConfig,
    min_shift: int,
    rng: np.random.Generator,
) -> Scores | Reason:
    """Held-out correlation of word rate [n, q] and responses [n, n_units], and of rotated word rates, or why not.

    Rates are rotated within their story, by ``min_shift`` events and their own autocorrelation time or more. ``folds``
    are created if None.
    """
    if len(predictors) < FEWEST_EVENTS:
        return Reason.TOO_FEW_EVENTS
    kept = predictors[:, predictors.max(axis=0) > predictors.min(axis=0)]
    if kept.shape[1] == 0:
        return Reason.UNDEFINED_SCORE
    n_shifts = config.assay.shifts
    parts = shift_parts(n_shifts, np.unique(story).size, rng)
    real = np.full(responses.shape[1], np.nan)
    shifted = np.full((n_shifts, responses.shape[1]), np.nan)
    problem = Reason.UNDEFINED_SCORE
    for rows, columns in by_gaps(responses):
        if rows.size < FEWEST_EVENTS:
            problem = Reason.TOO_FEW_EVENTS
            continue
        x = kept[rows]
        own = folds if folds is not None and rows.size == len(kept) else None
        blocks = own or make_folds(rows.size, story[rows], config.readout)
        far = max(min_shift, autocorrelation_time(x))
        orders = rotated_rows(story[rows], far, parts)
        if isinstance(blocks, Reason) or orders is None:
            problem = blocks if isinstance(blocks, Reason) else Reason.SHIFT_NOT_POSSIBLE
            continue
        for first in range(0, columns.size, UNITS_AT_A_TIME):
            some = columns[first : first + UNITS_AT_A_TIME]
            y = responses[np.ix_(rows, some)]
            found = held_out_pearson(x, y, blocks, orders)
            real[some], shifted[:, some] = found[0], found[1:]
    scores = Scores(real, shifted, len(kept), "median")
    return scores if scores.defined.any() else problem


def series_rate_scores(
    windows: WordWindows,
    window: int,
    stimulus: Stimulus,
    config: LPactConfig,
    rng: np.random.Generator,
) -> Scores | Reason:
    """Word rate and the response in a window after each word; see `rate_scores`."""
    if windows.too_short[window]:
        return Reason.NO_SAMPLES_IN_WINDOW
    words, responses = windows.responses(window)
    if words.size < FEWEST_EVENTS:
        return Reason.TOO_FEW_EVENTS
    onset_s = stimulus.words["onset_s"].to_numpy()
    step_s = max(float(np.median(np.diff(onset_s))), 1e-3)
    latest_s = max(stop for _, stop in config.assay.onset_windows_ms) / 1000.0
    return rate_scores(
        word_rate(stimulus, config.nuisance)[words],
        responses,
        story_codes(stimulus.words)[words],
        folds=None,
        config=config,
        min_shift=math.ceil(max(MIN_SHIFT_S, latest_s) / step_s),
        rng=rng,
    )


def grid_rate_scores(
    prepared: Prepared,
    responses: FloatArray,
    response_s: float,
    config: LPactConfig,
    rng: np.random.Generator,
) -> Scores | Reason:
    """Word rate and responses on the study's event grid, for TRs and epochs.

    ``response_s`` is how long a response lasts: no rotation is smaller.
    """
    if prepared.stimulus.lacks("onset_s"):
        return Reason.NUISANCE_NOT_OFFERED
    grid = prepared.grid
    step_s = float(np.median(np.diff(grid.onset_s))) if grid.n_events > 1 else 0.0
    return rate_scores(
        grid.pool(word_rate(prepared.stimulus, config.nuisance)),
        responses,
        grid.story,
        folds=prepared.folds,
        config=config,
        min_shift=math.ceil(response_s / max(step_s, 1e-3)),
        rng=rng,
    )
