"""Whether a signal is of the pace that the configured events ask for."""

from __future__ import annotations

import numpy as np

from lpact.config import GridConfig
from lpact.datasets.base import Recording, TimeSeries
from lpact.errors import RecordingError
from lpact.grid.candidates import Candidates

FASTEST_TR_HZ = 5.0
"""No scanner takes volumes faster than this; what is faster is no series of TRs."""
FEWEST_EVENTS = 20
"""Of fewer events it cannot be told whether they share samples by their pace or by chance."""


def check_pace(
    recording: Recording, signal: TimeSeries, events: Candidates, config: GridConfig
) -> None:
    """Raise `RecordingError` where samples are taken for TRs, or several events would share one slow sample."""
    rate_hz = signal.sampling_rate_hz
    if config.events == "trs" and rate_hz > FASTEST_TR_HZ:
        raise RecordingError(
            "a signal that is no series of volumes is put on a grid of TRs",
            where=f"{recording.where}, option 'grid.events'",
            got=f"events = 'trs' with {rate_hz:g} samples a second",
            expected=f"at most {FASTEST_TR_HZ:g} a second, one per TR",
            remedy="set events = 'words' or 'sentences' for this dataset",
        )
    if config.events == "trs" or rate_hz > FASTEST_TR_HZ or events.onset_s.size < FEWEST_EVENTS:
        return
    starts = events.first_sample[0]
    shared = 1.0 - np.unique(starts).size / starts.size
    if (events.n_samples == 1).all() and shared > 0.2:
        raise RecordingError(
            f"the signal is slower than the {config.events}",
            where=f"{recording.where}, option 'grid.events'",
            got=f"events = '{config.events}' with one sample every {1 / rate_hz:g} s: "
            f"{shared:.0%} of the events would share another one's sample",
            expected="a sample, or several, for every event",
            remedy="set events = 'trs' for this dataset, with tr_features = 'hrf' or 'lanczos' and "
            "lags that suit the haemodynamic response",
        )
