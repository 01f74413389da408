"""A recording in the study, and its rows in the tables of low-level controls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpact.analyses.lpact.assays.envelope import Followed, Follower
from lpact.analyses.lpact.assays.low_level import Scores, window_name
from lpact.analyses.lpact.assays.shifts import reachable_level, shift_p
from lpact.analyses.lpact.assays.signal import TRS
from lpact.analyses.lpact.config import AssayConfig, LPactConfig
from lpact.codes import Reason
from lpact.config import DatasetConfig
from lpact.datasets.base import RecordingId
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray

Row = dict[str, object]
ONSET, RATE = "word_onset", "word_rate"
METRICS = {ONSET: "event_effect", RATE: "pearson"}


@dataclass(frozen=True)
class Place:
    """A recording in the study: what every row begins with, and what its draws are keyed by."""

    config: LPactConfig
    entry: DatasetConfig
    id: RecordingId
    kind: str

    @property
    def key(self) -> Row:
        """Recording columns of every table."""
        return {
            "dataset": self.entry.name,
            "subject": self.id.subject,
            "session": self.id.session,
            "run": self.id.run,
        }

    def rng(self, *what: str) -> np.random.Generator:
        """Return the generator of some draws for this recording."""
        place = (self.entry.name, self.id.subject, self.id.session, self.id.run)
        return keyed_rng(self.config.seed, "assay", *what, *place)

    @property
    def windows(self) -> dict[str, tuple[str, ...]]:
        """Names of the windows of each target."""
        after = tuple(window_name(window) for window in self.config.assay.onset_windows_ms)
        delays = tuple(f"delay {lag_ms:g} ms" for lag_ms in self.entry.grid.lags_ms)
        return {ONSET: after, RATE: delays if self.kind == TRS else after}


@dataclass(frozen=True)
class Absent:
    """Why there is no course to follow."""

    reason: Reason
    detail: str


def low_level_row(place: Place, target: str, window: str, scores: Scores | Reason) -> Row:
    """Return the row of a target and window."""
    about = {"kind": place.kind, "target": target, "window": window, "metric": METRICS[target]}
    row = place.key | about
    if isinstance(scores, Scores) and not scores.defined.any():
        scores = Reason.UNDEFINED_SCORE
    if isinstance(scores, Reason):
        numbers = ("value", "shifted_mean", "shifted_best", "delta", "p")
        return row | _no_units() | dict.fromkeys(numbers) | {"n_events": 0, "reason": scores}
    assay = place.config.assay
    value, shifted = scores.pooled()
    p, delta = _p(value, shifted), value - float(shifted.mean())
    return row | {
        "n_events": scores.n_events,
        **_unit_counts(scores, assay),
        "value": value,
        "shifted_mean": float(shifted.mean()),
        "shifted_best": float(shifted.max()),
        "delta": delta,
        "p": p,
        "gate_pass": delta > 0 and p <= assay.alpha,
        "reason": Reason.OK,
    }


def followed_row(place: Place, follower: Follower | Absent, source: str) -> Row:
    """Return the columns that envelope and proxies share; ``source`` says what the course was made from."""
    row: Row = {"stimulus": place.id.stimulus, "kind": place.kind}
    nothing: Row = dict.fromkeys(
        ("rate_hz", "value", "value_mean", "reversed", "shifted_mean", "shifted_best")
    ) | dict.fromkeys(("delta", "p", "best_lag_ms"))
    nothing |= _no_units() | {"n_rows": 0}
    if isinstance(follower, Absent):
        why = {"source": "", "reason": follower.reason, "detail": follower.detail}
        return row | nothing | why
    row["source"] = source
    followed = follower.result()
    if isinstance(followed, Reason):
        rows = {"n_rows": follower.n_rows, "rate_hz": follower.rate_hz}
        return row | nothing | rows | {"reason": followed, "detail": followed.explanation}
    return row | _numbers(place.config.assay, follower, followed)


def _numbers(assay: AssayConfig, follower: Follower, followed: Followed) -> Row:
    scores = followed.scores
    value, shifted = scores.pooled()
    turned = float(np.median(followed.turned[scores.defined]))
    p, delta = _p(value, shifted), value - max(turned, float(shifted.mean()))
    return {
        "n_rows": follower.n_rows,
        "rate_hz": follower.rate_hz,
        **_unit_counts(scores, assay),
        "value": value,
        "value_mean": float(scores.real[scores.defined].mean()),
        "reversed": turned,
        "shifted_mean": float(shifted.mean()),
        "shifted_best": float(shifted.max()),
        "delta": delta,
        "p": p,
        "best_lag_ms": followed.best_lag_ms,
        "gate_pass": delta > 0 and p <= assay.alpha,
        "reason": Reason.OK,
        "detail": "",
    }


def _p(value: float, shifted: FloatArray) -> float:
    return float(shift_p(np.array([value]), shifted[:, None])[0])


def _unit_counts(scores: Scores, assay: AssayConfig) -> Row:
    n_units = int(scores.defined.sum())
    return {
        "n_units": n_units,
        "n_units_passing": int((scores.unit_p() <= assay.alpha).sum()),
        "n_units_by_chance": n_units * reachable_level(assay.alpha, assay.shifts),
    }


def _no_units() -> Row:
    return {"n_units": 0, "n_units_passing": 0, "n_units_by_chance": 0.0, "gate_pass": False}
