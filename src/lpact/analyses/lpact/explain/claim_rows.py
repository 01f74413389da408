"""Rows behind one claim, read when they are needed, and the distributions made from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.base import Rows
from lpact.analyses.explanation import Distribution
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.gates.calibrated.frames import Level1, SubjectRun, read_level1
from lpact.analyses.lpact.gates.calibrated.tests import REAL, PredictiveTests
from lpact.analyses.lpact.gates.keys import SUBJECT_RUN_KEY, Claim, Layer, is_label
from lpact.analyses.lpact.gates.labels import BOUNDED, label_ceiling, label_predictive, label_relational
from lpact.analyses.lpact.tables.levels import (
    BLOCK_SCORES,
    BRAIN_CEILING,
    CONTROL_DELTAS,
    CONTROL_NULLS,
    NORMALIZED_SCORES,
    PREDICTIVE_SCORES,
    PROFILE_DELTAS,
)
from lpact.codes import RowLabel
from lpact.math.types import FloatArray
from lpact.tables import CLAIM_KEY, Table
from lpact.wording import counted, number

Made = tuple[Distribution, ...]

MEAN, MEDIAN, SMALLEST = "mean", "median", "smallest value"
SHARE_ABOVE = "share above the threshold"
SHARE_AT_LEAST = "share at or above the threshold, missing ones counted as below"
RANK = "rank p-value"
BEHIND = "p-value of 1, because the model is not ahead"
BLOCK_TEST = "p-value of a test over blocks"
CONJUNCTION = "p-value of a partial conjunction"
BOOTSTRAP = "p-value of a bootstrap"
"""How a criterion's number is made from the values of a distribution (`Distribution.gives`)."""

_CENTRES: dict[str, Callable[[Sequence[float]], Any]] = {
    MEAN: np.mean,
    MEDIAN: np.median,
    SMALLEST: np.min,
}
METRICS = {"pearson": "Pearson r", "spearman": "Spearman ρ", "r2": "R²"}
"""Metrics on an axis."""
MODES = {
    "subject_to_subject": "subject to subject",
    "session_to_session": "session to session",
    "run_to_run": "run to run",
    "split_half": "split half",
}
"""Reliability modes, from strict to lenient."""


class ClaimRows:
    """The rows of one claim's dataset, model and layer, sorted by key, the order in which the decision reads them."""

    def __init__(self, config: LPactConfig, rows: Rows, claim: Mapping[str, Any]) -> None:
        self._rows = rows
        self._read: dict[str, pl.DataFrame] = {}
        self._draws: dict[str, dict[SubjectRun, FloatArray]] = {}
        dataset, model, layer, mechanism = (claim[name] for name in CLAIM_KEY)
        self.key: Claim = (dataset, model, layer, mechanism)
        self.layer: Layer = (dataset, model, layer)
        self.mechanism: str = mechanism
        self.gates = config.gates
        self.metric: str = config.readout.primary_metric
        self.score_unit = METRICS.get(self.metric, self.metric)

    def rows(self, table: Table) -> pl.DataFrame:
        """Rows of a table; scores at the primary metric."""
        if table.name not in self._read:
            key = dict(zip(("dataset", "model", "layer"), self.layer, strict=True))
            own = {"metric": self.metric} if table is PREDICTIVE_SCORES else {}
            if table is BRAIN_CEILING:
                key = {"dataset": key["dataset"]}
            self._read[table.name] = self._rows(table.name, **key, **own).sort(table.key)
        return self._read[table.name]

    def stripped(self, table: Table) -> pl.DataFrame:
        """Rows of a level-3 table in which the claim's mechanism is stripped."""
        return self.rows(table).filter(stripped=self.mechanism)

    @cached_property
    def deltas(self) -> pl.DataFrame:
        """Level-1 contrasts at the primary metric; ``computed`` says which rows have both."""
        labelled = label_predictive(self.rows(CONTROL_DELTAS).filter(metric=self.metric))
        return labelled.with_columns(computed=~is_label("evidence", RowLabel.NOT_COMPUTED))

    @cached_property
    def real_scores(self) -> dict[SubjectRun, float]:
        """The real score of every subject-run that has one."""
        return {run: float(scores[0]) for run, scores in self._scores(REAL).items()}

    def draws_of(self, condition: str) -> dict[SubjectRun, FloatArray]:
        """Scores of a condition by draw number, NaN if missing, for every subject-run with a real score."""
        if condition not in self._draws:
            found = self._scores(condition)
            self._draws[condition] = {r: found[r] for r in sorted(found) if r in self.real_scores}
        return self._draws[condition]

    def _scores(self, condition: str) -> dict[SubjectRun, FloatArray]:
        rows = self.rows(PREDICTIVE_SCORES).filter(condition=condition).drop_nulls("score_median")
        found: dict[SubjectRun, FloatArray] = {}
        for (subject, session, run), own in rows.group_by(SUBJECT_RUN_KEY, maintain_order=True):
            draws = own["draw"].to_numpy()
            scores = np.full(draws.max() + 1, np.nan)
            scores[draws] = own["score_median"].to_numpy()
            found[str(subject), str(session), str(run)] = scores
        return found

    @cached_property
    def level1(self) -> PredictiveTests:
        """The tests of level 1."""
        tables = (PREDICTIVE_SCORES, BLOCK_SCORES, CONTROL_NULLS)
        scores, blocks, nulls = map(self.rows, tables)
        found = read_level1(scores, blocks, nulls, self.metric)
        return PredictiveTests(self.layer, found.get(self.layer, Level1()), self.gates)

    @cached_property
    def unit_rows(self) -> pl.DataFrame:
        """Level-2 contrasts of all units, labelled."""
        return label_relational(self.rows(PROFILE_DELTAS), self.gates)

    @cached_property
    def ceiling_rows(self) -> pl.DataFrame:
        """Level-4 rows, labelled."""
        return label_ceiling(self.rows(NORMALIZED_SCORES), self.gates)

    @cached_property
    def bounded(self) -> pl.DataFrame:
        """Level-4 rows whose reliability is high enough for a fraction of it."""
        return self.ceiling_rows.filter(pl.col("evidence").is_in([own.value for own in BOUNDED]))


def place(run: Sequence[Any]) -> str:
    """A subject-run in words."""
    subject, session, name = run
    return f"subject {subject}, session {session}, run {name}"


def places(frame: pl.DataFrame) -> list[str]:
    """The subject-runs of a frame's rows in words."""
    return [place(row) for row in frame.select(SUBJECT_RUN_KEY).iter_rows()]


def pooled_over(n: int) -> str:
    """The scope of a mean over subject-runs."""
    return f"mean over {counted(n, 'subject-run')}"


def distribution(
    title: str,
    unit: str,
    values: Iterable[float | None],
    labels: Iterable[str],
    kind: str,
    gives: str = "",
    *,
    observed: Any = None,
    n_missing: int = 0,
    **more: Any,
) -> Distribution:
    """Labelled numbers; missing ones are counted. ``observed`` is what ``gives`` makes of them, unless it is given."""
    pairs = list(zip(values, labels, strict=True))
    found = [(float(v), label) for v, label in pairs if v is not None and math.isfinite(v)]
    numbers = tuple(v for v, _ in found)
    if observed is None and numbers and gives in _CENTRES:
        observed = float(_CENTRES[gives](numbers))
    return Distribution(
        title=title,
        unit=unit,
        values=numbers,
        labels=tuple(label for _, label in found),
        n_missing=len(pairs) - len(found) + n_missing,
        kind=kind,
        gives=gives,
        observed=observed if observed is not None and math.isfinite(observed) else None,
        **more,
    )


def by_run(title: str, unit: str, frame: pl.DataFrame, values: pl.Expr | str, gives: str, **more: Any) -> Distribution:
    """One number per row of a frame, each row a subject-run."""
    numbers = frame.select(values).to_series()
    return distribution(title, unit, numbers, places(frame), "subject-run", gives, **more)


def among_draws(
    title: str,
    unit: str,
    observed: float,
    draws: FloatArray,
    *,
    p_value: float | None = None,
    note: str = "",
    **more: Any,
) -> Distribution:
    """The model's number among those of all draws of something else."""
    finite = draws[np.isfinite(draws)]
    n_reaching = int((finite >= observed).sum())
    verb = "reaches" if n_reaching == 1 else "reach"
    p = "" if p_value is None else f": p = {number(p_value)}"
    reaching = f"{n_reaching} of {counted(finite.size, 'draw')} {verb} it{p}."
    labels = [f"draw {i}" for i in range(draws.size)]
    more |= {"observed": observed, "p_value": p_value, "note": f"{reaching} {note}".strip()}
    return distribution(title, unit, draws.tolist(), labels, "draw", **more)


def over_blocks(
    title: str,
    unit: str,
    contrasts: Mapping[SubjectRun, FloatArray],
    rival: str,
    p_value: float,
    *,
    each_run: bool,
) -> list[Distribution]:
    """Contrasts in the held-out blocks of all subject-runs, whose mean is the model's number; then ``each_run``."""

    def part(runs: Mapping[SubjectRun, FloatArray], where: str, p_value: float | None = None) -> Distribution:
        values = [v for own in runs.values() for v in own.tolist()]
        finite = [v for v in values if math.isfinite(v)]
        p = "" if p_value is None else f", p = {number(p_value)}"
        labels = [f"{place(run)}, block {i}" for run, own in runs.items() for i in range(own.size)]
        return distribution(
            title,
            unit,
            values,
            labels,
            "held-out block",
            "" if p_value is None else BLOCK_TEST,
            observed=float(np.mean(finite)) if finite else None,
            bound=0.0,
            where=where,
            note=f"{sum(v > 0 for v in finite)} of {counted(len(finite), 'block')} above 0{p}.",
            p_value=p_value,
            compared_with=rival,
        )

    pooled = part(contrasts, f"held-out blocks of {counted(len(contrasts), 'subject-run')}", p_value)
    single = [part({run: own}, place(run)) for run, own in contrasts.items()] if each_run else []
    return [pooled, *single]
