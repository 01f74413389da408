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
from lpact.analyses.lpact.gates._frames import SUBJECT_RUN_KEY, Claim, Layer
from lpact.analyses.lpact.gates.calibrated.frames import SubjectRun, read_level1, subject_run
from lpact.analyses.lpact.gates.calibrated.predictive import REAL, PredictiveTests
from lpact.analyses.lpact.gates.rows import (
    is_label,
    label_ceiling,
    label_predictive,
    label_relational,
)
from lpact.analyses.lpact.gates.summaries import BOUNDED
from lpact.analyses.lpact.tables.levels import (
    BLOCK_DROPS,
    BLOCK_SCORES,
    BRAIN_CEILING,
    CONTROL_DELTAS,
    CONTROL_NULLS,
    MISMATCH_CONTROLS,
    NORMALIZED_SCORES,
    PREDICTIVE_SCORES,
    PROFILE_DELTAS,
    PROFILE_SCORES,
    RELATIONAL_NULLS,
    SPECIFICITY,
    STRIPPING_DELTAS,
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
"""How a criterion's number follows from the values of a distribution (`Distribution.gives`)."""

_CENTRES: dict[str, Callable[[Sequence[float]], Any]] = {
    MEAN: np.mean,
    MEDIAN: np.median,
    SMALLEST: np.min,
}
_METRICS = {"pearson": "Pearson r", "spearman": "Spearman rho", "r2": "R²"}


class Material:
    """The rows of one claim's dataset, model and layer, sorted by key, the order in which the decision reads them."""

    def __init__(self, config: LPactConfig, rows: Rows, claim: Mapping[str, Any]) -> None:
        self._rows = rows
        self._draws: dict[str, dict[SubjectRun, FloatArray]] = {}
        dataset, model, layer, mechanism = (claim[name] for name in CLAIM_KEY)
        self.claim: Claim = (dataset, model, layer, mechanism)
        self.layer: Layer = (dataset, model, layer)
        self.mechanism: str = mechanism
        self.gates = config.gates
        self.metric: str = config.readout.primary_metric
        self.score_unit = _METRICS.get(self.metric, self.metric)

    def _read(self, table: Table, **more: str) -> pl.DataFrame:
        dataset, model, layer = self.layer
        rows = self._rows(table.name, dataset=dataset, model=model, layer=layer, **more)
        return rows.sort(table.key)

    @cached_property
    def deltas(self) -> pl.DataFrame:
        """Level-1 contrasts at the primary metric; ``computed`` says which rows have both."""
        labelled = label_predictive(self._read(CONTROL_DELTAS).filter(metric=self.metric))
        return labelled.with_columns(computed=~is_label("evidence", RowLabel.NOT_COMPUTED))

    @cached_property
    def nulls(self) -> pl.DataFrame:
        """Level-1 controls, all metrics."""
        return self._read(CONTROL_NULLS)

    @cached_property
    def scores(self) -> pl.DataFrame:
        """Level-1 scores of every condition and draw at the primary metric."""
        return self._read(PREDICTIVE_SCORES, metric=self.metric)

    @cached_property
    def real_scores(self) -> dict[SubjectRun, float]:
        """The real score of every subject-run that has one."""
        rows = self.scores.filter(condition=REAL).drop_nulls("score_median")
        return {subject_run(row): row["score_median"] for row in rows.iter_rows(named=True)}

    def draws_of(self, condition: str) -> dict[SubjectRun, FloatArray]:
        """Scores of a condition by draw number, NaN where there is none, for every subject-run with a real score."""
        if condition not in self._draws:
            by_run: dict[SubjectRun, dict[int, float]] = {}
            rows = self.scores.filter(condition=condition).drop_nulls("score_median")
            for row in rows.iter_rows(named=True):
                if subject_run(row) in self.real_scores:
                    by_run.setdefault(subject_run(row), {})[row["draw"]] = row["score_median"]
            made = {run: np.full(max(by_run[run]) + 1, np.nan) for run in sorted(by_run)}
            for run, scores in made.items():
                scores[list(by_run[run])] = list(by_run[run].values())
            self._draws[condition] = made
        return self._draws[condition]

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """Level-1 scores by outer block."""
        return self._read(BLOCK_SCORES)

    @cached_property
    def level1(self) -> PredictiveTests:
        """The tests of level 1."""
        gathered = read_level1(self.scores, self.blocks, self.nulls, self.metric)
        return PredictiveTests(self.layer, gathered, self.gates)

    @cached_property
    def unit_rows(self) -> pl.DataFrame:
        """Level-2 contrasts of all units, labelled."""
        return label_relational(self._read(PROFILE_DELTAS), self.gates)

    @cached_property
    def similarities(self) -> pl.DataFrame:
        """Level-2 similarities of all conditions."""
        return self._read(PROFILE_SCORES)

    @cached_property
    def relational_nulls(self) -> pl.DataFrame:
        """Level-2 draws."""
        return self._read(RELATIONAL_NULLS)

    @cached_property
    def specificity(self) -> pl.DataFrame:
        """Level 3 of the claim's mechanism, by method and subject-run."""
        return self._read(SPECIFICITY, stripped=self.mechanism)

    @cached_property
    def stripping(self) -> pl.DataFrame:
        """Drops of all targets when the claim's mechanism is stripped."""
        return self._read(STRIPPING_DELTAS, stripped=self.mechanism)

    @cached_property
    def mismatches(self) -> pl.DataFrame:
        """Drops of the claim's target when something else is stripped."""
        return self._read(MISMATCH_CONTROLS, stripped=self.mechanism)

    @cached_property
    def block_drops(self) -> pl.DataFrame:
        """Level-3 drops by outer block."""
        return self._read(BLOCK_DROPS)

    @cached_property
    def ceiling_rows(self) -> pl.DataFrame:
        """Level-4 rows, labelled."""
        return label_ceiling(self._read(NORMALIZED_SCORES), self.gates)

    @cached_property
    def bounded(self) -> pl.DataFrame:
        """Level-4 rows whose reliability is high enough for a fraction of it."""
        return self.ceiling_rows.filter(pl.col("evidence").is_in([own.value for own in BOUNDED]))

    @cached_property
    def reliabilities(self) -> pl.DataFrame:
        """Brain–brain reliabilities of the dataset."""
        return self._rows(BRAIN_CEILING.name, dataset=self.claim[0]).sort(BRAIN_CEILING.key)


def place(row: Mapping[str, Any] | Sequence[Any]) -> str:
    """A subject-run in words."""
    subject, session, run = (
        (row[name] for name in SUBJECT_RUN_KEY) if isinstance(row, Mapping) else row[:3]
    )
    return f"subject {subject}, session {session}, run {run}"


def places(frame: pl.DataFrame) -> list[str]:
    """The subject-runs of a frame's rows in words."""
    return [place(row) for row in frame.iter_rows(named=True)]


def pooled_over(n: int) -> str:
    """What a mean over subject-runs pools."""
    return f"mean over {counted(n, 'subject-run')}"


def distribution(
    title: str,
    unit: str,
    values: Iterable[float | None],
    labels: Sequence[str],
    *,
    kind: str,
    gives: str = "",
    observed: float | None = None,
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
    """The model's number beside the same number in every draw of something else."""
    finite = draws[np.isfinite(draws)]
    n_reaching = int((finite >= observed).sum())
    verb = "reaches" if n_reaching == 1 else "reach"
    said = f"{n_reaching} of {counted(finite.size, 'draw')} {verb} it"
    if p_value is not None:
        said += f": p = {number(p_value)}"
    return distribution(
        title,
        unit,
        draws.tolist(),
        [f"draw {i}" for i in range(draws.size)],
        kind="draw",
        observed=observed,
        note=f"{said}. {note}".strip(),
        p_value=p_value,
        **more,
    )


def over_blocks(
    title: str,
    unit: str,
    contrasts: Mapping[SubjectRun, FloatArray],
    *,
    p_value: float | None = None,
    where: str = "",
    **more: Any,
) -> Distribution:
    """Contrasts in the held-out blocks of all given subject-runs; their mean is the model's own number."""
    values = [v for run in contrasts for v in contrasts[run].tolist()]
    finite = [v for v in values if math.isfinite(v)]
    p = "" if p_value is None else f", p = {number(p_value)}"
    n_above = sum(v > 0 for v in finite)
    return distribution(
        title,
        unit,
        values,
        [f"{place(run)}, block {i}" for run in contrasts for i in range(contrasts[run].size)],
        kind="held-out block",
        gives="" if p_value is None else BLOCK_TEST,
        observed=float(np.mean(finite)) if finite else None,
        bound=0.0,
        where=where or f"held-out blocks of {counted(len(contrasts), 'subject-run')}",
        note=f"{n_above} of {counted(len(finite), 'block')} above 0{p}.",
        p_value=p_value,
        **more,
    )
