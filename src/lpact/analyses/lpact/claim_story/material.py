"""Everything that the criteria of one claim rest on, read when it is asked for and in the order of the decision."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

import polars as pl

from lpact.analyses.lpact.claim_story.model import Claim
from lpact.analyses.lpact.claim_story.rows import Rows
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import SUBJECT_RUN_KEY, Layer
from lpact.analyses.lpact.gates.calibrated.frames import read_level1
from lpact.analyses.lpact.gates.calibrated.predictive import PredictiveTests
from lpact.analyses.lpact.gates.criteria import CriterionName
from lpact.analyses.lpact.gates.point_rules.ceiling import BOUNDED
from lpact.analyses.lpact.gates.rows import (
    is_label,
    label_ceiling,
    label_predictive,
    label_relational,
)
from lpact.analyses.lpact.tables.causal import (
    BLOCK_DROPS,
    MISMATCH_CONTROLS,
    SPECIFICITY,
    STRIPPING_DELTAS,
)
from lpact.analyses.lpact.tables.ceilings import BRAIN_CEILING, NORMALIZED_SCORES
from lpact.analyses.lpact.tables.predictive import (
    BLOCK_SCORES,
    CONTROL_DELTAS,
    CONTROL_NULLS,
    PREDICTIVE_SCORES,
)
from lpact.analyses.lpact.tables.relational import PROFILE_DELTAS, PROFILE_SCORES, RELATIONAL_NULLS
from lpact.codes import RowLabel
from lpact.tables import Table

T = TypeVar("T")

_METRICS = {"pearson": "Pearson r", "spearman": "Spearman rho", "r2": "R²"}
_THRESHOLDS = {
    CriterionName.TYPICAL_PASS_SHARE: "direction_fraction",
    CriterionName.RELIABLE_UNITS: "direction_fraction",
    CriterionName.N_SUBJECT_RUNS: "min_subject_runs",
    CriterionName.MEAN_RELIABILITY: "min_reliability",
    CriterionName.MEAN_FRACTION_OF_CEILING: "min_ceiling_fraction",
    CriterionName.SUMMARIES_PASSING: "summary_majority",
    CriterionName.METHODS_AGREEING: "method_majority",
    CriterionName.P_SURROGATES: "alpha",
}
"""Criteria whose thresholds are options of the gates."""


def gates_behind(evidence: pl.DataFrame) -> GatesConfig:
    """The thresholds that the evidence of a claim was held against, both gate profiles together."""
    found: dict[str, float] = {}
    for name, threshold in evidence.select("criterion", "threshold").iter_rows():
        if name in _THRESHOLDS:
            found[_THRESHOLDS[CriterionName(name)]] = threshold
    if "min_subject_runs" in found:
        found["min_subject_runs"] = int(found["min_subject_runs"])
    return GatesConfig.model_validate(found)


class Material:
    """The rows of one claim's layer. ``gates`` are the thresholds of the decision."""

    def __init__(
        self, rows: Rows, claim: Claim, gates: GatesConfig, primary_metric: str | None
    ) -> None:
        self._rows = rows
        self._metric = primary_metric
        self._made: dict[Hashable, Any] = {}
        self.claim = claim
        self.gates = gates

    def about(self, mechanism: str) -> Material:
        """The same layer with another mechanism; what both rest on is read and made once."""
        other = Material(self._rows, (*self.layer, mechanism), self.gates, self._metric)
        other._made = self._made
        return other

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` returns, made once for all criteria and mechanisms of the layer that ask for it."""
        if key not in self._made:
            self._made[key] = make()
        return cast("T", self._made[key])

    @property
    def layer(self) -> Layer:
        """Dataset, model and layer."""
        return self.claim[:3]

    @property
    def mechanism(self) -> str:
        """The claim's mechanism."""
        return self.claim[3]

    def _read(self, table: Table) -> pl.DataFrame:
        dataset, model, layer = self.layer
        return in_order(self._rows(table.name, dataset=dataset, model=model, layer=layer), table)

    @property
    def metric(self) -> str:
        """The primary metric: that of the block scores, which are kept for no other."""
        return self.once("metric", self._read_metric)

    def _read_metric(self) -> str:
        if self._metric is not None:
            return self._metric
        known = self.blocks["metric"].unique().sort().to_list()
        known = known or self._read(CONTROL_DELTAS)["metric"].unique().sort().to_list()
        return str(known[0]) if known and "pearson" not in known else "pearson"

    @property
    def score_unit(self) -> str:
        """The primary metric, for an axis."""
        return _METRICS.get(self.metric, self.metric)

    @property
    def deltas(self) -> pl.DataFrame:
        """Level-1 contrasts at the primary metric; ``computed`` says which have both."""
        return self.once("deltas", self._read_deltas)

    def _read_deltas(self) -> pl.DataFrame:
        labelled = label_predictive(self._read(CONTROL_DELTAS).filter(metric=self.metric))
        return labelled.with_columns(computed=~is_label("evidence", RowLabel.NOT_COMPUTED))

    @property
    def nulls(self) -> pl.DataFrame:
        """Level-1 controls, all metrics."""
        return self.once("nulls", lambda: self._read(CONTROL_NULLS))

    @property
    def scores(self) -> pl.DataFrame:
        """Level-1 scores of every condition and draw, all metrics."""
        return self.once("scores", lambda: self._read(PREDICTIVE_SCORES))

    @property
    def blocks(self) -> pl.DataFrame:
        """Level-1 scores by outer block."""
        return self.once("blocks", lambda: self._read(BLOCK_SCORES))

    @property
    def level1(self) -> PredictiveTests:
        """The tests of level 1."""
        return self.once("level1", self._read_level1)

    def _read_level1(self) -> PredictiveTests:
        gathered = read_level1(self.scores, self.blocks, self.nulls, self.metric)
        return PredictiveTests(self.layer, gathered, self.gates)

    @property
    def unit_rows(self) -> pl.DataFrame:
        """Level-2 contrasts of all units, labelled."""
        return self.once(
            "unit_rows", lambda: label_relational(self._read(PROFILE_DELTAS), self.gates)
        )

    @property
    def similarities(self) -> pl.DataFrame:
        """Level-2 similarities of all conditions."""
        return self.once("similarities", lambda: self._read(PROFILE_SCORES))

    @property
    def relational_nulls(self) -> pl.DataFrame:
        """Level-2 draws."""
        return self.once("relational_nulls", lambda: self._read(RELATIONAL_NULLS))

    @cached_property
    def specificity(self) -> pl.DataFrame:
        """Level 3 of the claim's mechanism, by method and subject-run."""
        return self._read(SPECIFICITY).filter(stripped=self.mechanism)

    @cached_property
    def stripping(self) -> pl.DataFrame:
        """Drops of all targets when the claim's mechanism is stripped."""
        return self._read(STRIPPING_DELTAS).filter(stripped=self.mechanism)

    @cached_property
    def mismatches(self) -> pl.DataFrame:
        """Drops of the claim's target when something else is stripped."""
        return self._read(MISMATCH_CONTROLS).filter(stripped=self.mechanism)

    @property
    def block_drops(self) -> pl.DataFrame:
        """Level-3 drops by outer block."""
        return self.once("block_drops", lambda: self._read(BLOCK_DROPS))

    @property
    def ceiling_rows(self) -> pl.DataFrame:
        """Level-4 rows, labelled."""
        return self.once(
            "ceiling_rows", lambda: label_ceiling(self._read(NORMALIZED_SCORES), self.gates)
        )

    @property
    def bounded(self) -> pl.DataFrame:
        """Level-4 rows whose fractions stand on a sufficient reliability."""
        fits = pl.col("evidence").is_in([label.value for label in BOUNDED])
        return self.once("bounded", lambda: self.ceiling_rows.filter(fits))

    @property
    def reliabilities(self) -> pl.DataFrame:
        """Brain–brain reliabilities of the dataset."""
        return self.once(
            "reliabilities",
            lambda: in_order(self._rows(BRAIN_CEILING.name, dataset=self.claim[0]), BRAIN_CEILING),
        )


def in_order(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Rows sorted by key, in which the decision adds them up."""
    return frame.sort(table.key) if frame.height else frame


def place(row: dict[str, Any] | Sequence[Any]) -> str:
    """A subject-run in words."""
    subject, session, run = (
        (row[name] for name in SUBJECT_RUN_KEY) if isinstance(row, dict) else row[:3]
    )
    return f"subject {subject}, session {session}, run {run}"
