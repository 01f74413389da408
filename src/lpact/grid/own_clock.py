"""Events of a recording whose words have times of their own: those that it does not hold, or holds in pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from lpact.codes import Reason
from lpact.datasets.base import Recording
from lpact.grid.candidates import Candidates
from lpact.grid.event_grid import Exclusion
from lpact.grid.words import times_s
from lpact.math.types import BoolArray

PAUSE_S, PAUSE_SHARE = 0.25, 0.02
"""An event that takes this much longer in a recording, and this share of it, was interrupted."""


def as_held(found: Candidates, recording: Recording, words: pl.DataFrame) -> Candidates:
    """Return the events that the recording holds whole."""
    heard_s = recording.word_onsets_s
    if heard_s is None:
        return found
    known = np.concatenate(([0], np.cumsum(np.isfinite(heard_s))))
    told = known[found.stop_word] - known[found.first_word] == found.stop_word - found.first_word
    found = _without(
        found,
        np.asarray(told),
        Reason.WORDS_WITHOUT_TIME,
        "no time in this recording for a word of it",
    )
    onset_s, _ = times_s(words)
    last = found.stop_word - 1
    lasted_s = onset_s[last] - onset_s[found.first_word]
    extra_s = np.abs(heard_s[last] - heard_s[found.first_word] - lasted_s)
    whole = extra_s <= np.maximum(PAUSE_S, PAUSE_SHARE * lasted_s)
    longest = f"{extra_s.max():.3f} s" if extra_s.size else ""
    detail = f"the stimulus stood still or jumped within it (the largest difference: {longest})"
    return _without(found, whole, Reason.BAD_SPAN, detail)


def _without(found: Candidates, kept: BoolArray, reason: Reason, detail: str) -> Candidates:
    if kept.all():
        return found
    event = int(np.argmin(kept))
    first = f"{found.noun} at {found.onset_s[event]:.3f} s of the stimulus: {detail}"
    exclusion = Exclusion(reason, int((~kept).sum()), first)
    return replace(found.take(kept), exclusions=(*found.exclusions, exclusion))
