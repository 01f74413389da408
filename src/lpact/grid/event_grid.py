"""The event grid: one row per event, shared by features and neural responses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lpact.codes import Reason
from lpact.config import Pooling
from lpact.datasets.base import Units
from lpact.errors import FeatureError
from lpact.math.types import FloatArray, IntArray
from lpact.math.windows import mean_slices, sum_slices


@dataclass(frozen=True)
class Exclusion:
    """Candidate events left out for one reason; ``detail`` describes the first of them."""

    reason: Reason
    n_events: int
    detail: str


@dataclass(frozen=True, eq=False)
class EventGrid:
    """Events of one recording, in order of time; every array has the same rows."""

    onset_s: FloatArray
    offset_s: FloatArray
    """Begin and end of each event on the recording's clock, [n_events]."""
    sentence: IntArray
    story: IntArray
    """Sentence id and story code (0, 1, … in order of appearance) of the event's first word, [n_events]."""
    responses: FloatArray
    """Neural response of every event at every lag, [n_lags, n_events, n_units], C-contiguous."""
    lags_ms: tuple[float, ...]
    reference_lag: int
    """Lag of each array of ``responses``, and the index of the lag for measures without a fit."""
    units: Units
    """Brain units, in the recording's order."""
    first_word: IntArray
    stop_word: IntArray
    """Event i has the rows ``first_word[i] : stop_word[i]`` of the words table, [n_events]."""
    n_words: int
    """Rows of the words table."""
    pooling: Pooling
    """How an event's words become one feature row."""
    exclusions: tuple[Exclusion, ...]
    n_candidate_events: int
    """Events left out, with reasons; and how many events there were before."""
    weights: sparse.csr_array | None = None
    """[n_events · n_delays, n_words], sparse: feature rows are ``weights @ word features`` (haemodynamic responses,
    Lanczos filters). Row ``i · n_delays + j`` is event i at delay j. None: words are pooled.
    """
    fir_delays: tuple[int, ...] = ()
    """Delays of a finite impulse response, in TRs; features at each of them are side by side. Empty: no delays."""

    @property
    def n_events(self) -> int:
        """Events that were kept."""
        return len(self.onset_s)

    @property
    def n_delays(self) -> int:
        """Blocks of columns that `pool` returns."""
        return max(1, len(self.fir_delays))

    def pool(self, word_values: FloatArray) -> FloatArray:
        """Return the feature rows of the events: words pooled over each event, or filtered by ``weights``.

        [n_words, n_columns] → [n_events, n_delays · n_columns]. ``last`` and ``first`` select one word, ``mean`` and
        ``sum`` run over all words of an event. An event of one word has that word's row, bit for bit. With delays of a
        finite impulse response, block j has all columns at the TR that is ``fir_delays[j]`` earlier.
        """
        values = np.asarray(word_values, dtype=np.float64)
        if values.ndim != 2 or values.shape[0] != self.n_words:
            raise FeatureError(
                "features do not fit the words of the event grid",
                where="EventGrid.pool",
                got=f"shape {values.shape}",
                expected=f"shape ({self.n_words}, columns), one row per word",
                remedy="compute the features for the words table that the grid was built from",
            )
        if self.weights is not None:
            rows = np.asarray(self.weights @ values)
            return rows.reshape(self.n_events, self.n_delays * values.shape[1])
        n_event_words = self.stop_word - self.first_word
        if self.pooling == "first" or (n_event_words == 1).all():
            return values[self.first_word]
        if self.pooling == "last":
            return values[self.stop_word - 1]
        pool = mean_slices if self.pooling == "mean" else sum_slices
        return pool(values, self.first_word, n_event_words)
