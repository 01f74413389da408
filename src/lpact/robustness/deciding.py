"""The decision, taken again under altered tables or thresholds, and compared with the run's own.

Everything that asks what would be integrated goes through `lpact.decide.decide`: no gate is written twice. Only what
can have changed is decided again. A change touches some gates and not others; a claim that fails a gate which the
change does not touch is not integrated before or after it, so that its layer need not be looked at. Neither need a
layer without any number at some level. Where a gate profile corrects over the claims of a study, the correction is
made over all of them, with the p-values that the decision stores.

Tests whose tables and thresholds are untouched are taken from the run's own decision. Where only the integrated claims
are counted, a layer that one test stops is not tested further: its p-value is above the false discovery rate, and how
far above it is changes no other claim (Benjamini & Hochberg 1995 look at p-values up to the rate only).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from lpact.config import GatesConfig
from lpact.decide.calibrated.evidence import Known
from lpact.decide.decision import decide_claims, decide_measured, read_all
from lpact.math.multiple_testing import benjamini_hochberg
from lpact.reasons import FinalLabel, Reason
from lpact.tables import CLAIM_KEY, RECORDING_KEY
from lpact.tables.causal import SPECIFICITY
from lpact.tables.ceilings import NORMALIZED_SCORES
from lpact.tables.decisions import DECISIONS
from lpact.tables.predictive import CONTROL_DELTAS
from lpact.tables.relational import PROFILE_DELTAS

Tables = Mapping[str, pl.DataFrame]
Counts = dict[str, dict[str, int]]
"""By gate profile: claims, integrated ones, and those that a change gains and loses."""

MECHANISM = "mechanism_specific"
GATES = (
    "predictive",
    "relational",
    MECHANISM,
    "ceiling",
    "severe_control",
    "replication",
)
"""Gate columns of the decision table."""

LAYER_KEY = ("dataset", "model", "layer")
_KEY = [*CLAIM_KEY, "gate_profile"]
_LEVELS = (CONTROL_DELTAS, PROFILE_DELTAS, SPECIFICITY, NORMALIZED_SCORES)


class Decider:
    """Decides a run's tables again; ``base`` is the decision with nothing altered."""

    def __init__(
        self,
        tables: Tables,
        gates: GatesConfig,
        primary_metric: str,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.tell = tell
        tell("deciding the run")
        measured = read_all(tables)
        self.tables: Tables = {**tables, **measured}
        self.gates = gates
        self.primary_metric = primary_metric
        self._layers_of: dict[str, tuple[pl.DataFrame, Tables]] = {}
        base, self._known = decide_measured(
            measured, gates=gates, primary_metric=primary_metric, known=Known()
        )
        self.base: Tables = base

    @property
    def decisions(self) -> pl.DataFrame:
        """The decision table of the run."""
        return self.base[DECISIONS.name]

    @property
    def profiles(self) -> list[str]:
        """Gate profiles, sorted."""
        return self.decisions["gate_profile"].unique().sort().to_list()

    def without_dataset(self, dataset: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Decisions and outcomes without one dataset; layers of the others are tested as they were."""
        left = {
            name: table.filter(pl.col("dataset") != dataset)
            if "dataset" in table.columns
            else table
            for name, table in self.tables.items()
        }
        return decide_claims(
            left, gates=self.gates, primary_metric=self.primary_metric, known=self._known
        )

    def unchanged(self) -> Counts:
        """Counts of the run itself."""
        nothing = {"n_gained": 0, "n_lost": 0, "n_lost_coverage": 0}
        return {
            profile: {
                "n_claims": mine.height,
                "n_integrated": int(mine["integrated"].sum()),
                **nothing,
            }
            for profile in self.profiles
            for mine in [self.decisions.filter(gate_profile=profile)]
        }

    def counts_with_gates(self, gates: GatesConfig, touched: Sequence[str]) -> Counts:
        """Counts with other thresholds, which the gates ``touched`` look at and no others."""
        if gates == self.gates:
            return self.unchanged()
        layers = self._open_layers(touched)
        return self._counts(_of_layers(self.tables, layers), gates, layers, touched)

    def counts_with_tables(self, altered: Tables, touched: Sequence[str]) -> Counts:
        """Counts with altered tables, which the gates ``touched`` look at and no others."""
        layers = self._open_layers(touched)
        tables = _of_layers({**self.tables, **altered}, layers)
        return self._counts(tables, self.gates, layers, touched)

    def counts_without(self, recording: Sequence[str]) -> Counts:
        """Counts without one subject-run (values of `RECORDING_KEY`); all gates of its dataset may change."""
        dataset = recording[0]
        if dataset not in self._layers_of:
            layers = self._open_layers(GATES).filter(pl.col("dataset") == dataset)
            self._layers_of[dataset] = layers, _of_layers(self.tables, layers)
        layers, tables = self._layers_of[dataset]
        return self._counts(_without(tables, recording), self.gates, layers, GATES)

    def _open_layers(self, touched: Sequence[str]) -> pl.DataFrame:
        """Layers with rows at every level, and a claim that passes every gate which is not touched."""
        claims = self.decisions
        # A claim that one gate stops has a p-value above alpha, and cannot be found at an fdr up to it.
        if self.gates.fdr <= self.gates.alpha:
            closed = [gate for gate in GATES if gate not in touched]
            claims = claims.filter(pl.all_horizontal(pl.lit(True), *closed))
        layers = claims.select(LAYER_KEY).unique(maintain_order=True)
        for table in _LEVELS:
            measured = self.tables[table.name].filter(pl.col("reason") == Reason.OK.value)
            layers = layers.join(measured, on=LAYER_KEY, how="semi", maintain_order="left")
        return layers

    def _counts(
        self, tables: Tables, gates: GatesConfig, layers: pl.DataFrame, touched: Sequence[str]
    ) -> Counts:
        if not layers.height:
            return self.unchanged()
        mechanisms = {} if MECHANISM in touched else self._known.mechanisms
        decided, _ = decide_claims(
            tables,
            gates=gates,
            primary_metric=self.primary_metric,
            known=Known(mechanisms=mechanisms, enough=gates.fdr),
        )
        now = _corrected(self._whole(decided, layers), gates)
        before = self.decisions.select(*_KEY, before="integrated")
        both = before.join(now, on=_KEY, how="left", maintain_order="left").with_columns(
            pl.col("now").fill_null(value=False)
        )
        return {profile: _count(now, both, profile) for profile in self.profiles}

    def _whole(self, decided: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
        """The decided claims of some layers, and all others as they were.

        A layer that is gone makes no claim. A mechanism that is gone from these layers only still does, and fails.
        """
        passed = pl.all_horizontal(*GATES)
        columns = [*_KEY, "label", "p_value"]
        base = self.decisions.select(*columns, now=passed)
        # Layers that strip nothing by themselves name no mechanism; the study does.
        found = decided.select(*columns, now=passed).join(base, on=_KEY, how="semi")
        untouched = base.join(layers, on=LAYER_KEY, how="anti", maintain_order="left")
        gone = (
            base.join(decided.select(LAYER_KEY).unique(), on=LAYER_KEY, how="semi")
            .join(found, on=_KEY, how="anti")
            .with_columns(
                now=pl.lit(False), p_value=pl.when(pl.col("p_value").is_not_null()).then(1.0)
            )
        )
        return pl.concat([found, untouched, gone]).sort(_KEY)


def _of_layers(tables: Tables, layers: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Rows of some layers, and tables without layers as they are."""
    return {
        name: table.join(layers, on=LAYER_KEY, how="semi", maintain_order="left")
        if set(LAYER_KEY) <= set(table.columns)
        else table
        for name, table in tables.items()
    }


def _without(tables: Tables, recording: Sequence[str]) -> dict[str, pl.DataFrame]:
    """All tables without the rows of one subject-run; those that name no subject-run as they are."""
    same = pl.all_horizontal(
        *(pl.col(name) == value for name, value in zip(RECORDING_KEY, recording, strict=True))
    )
    return {
        name: table.filter(~same) if set(RECORDING_KEY) <= set(table.columns) else table
        for name, table in tables.items()
    }


def _corrected(claims: pl.DataFrame, gates: GatesConfig) -> pl.DataFrame:
    """Integrated claims after the correction over all claims with a p-value."""
    parts = []
    for _, part in claims.group_by("gate_profile", maintain_order=True):
        p = part["p_value"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        q = benjamini_hochberg(p)
        parts.append(part.with_columns(now=part["now"] & pl.Series(~(q > gates.fdr))))
    return pl.concat(parts) if parts else claims


def _count(now: pl.DataFrame, both: pl.DataFrame, profile: str) -> dict[str, int]:
    mine, compared = now.filter(gate_profile=profile), both.filter(gate_profile=profile)
    lost = pl.col("before") & ~pl.col("now")
    uncovered = pl.col("label") == FinalLabel.INSUFFICIENT_COVERAGE.value
    return {
        "n_claims": mine.height,
        "n_integrated": int(mine["now"].sum()),
        "n_gained": compared.filter(~pl.col("before") & pl.col("now")).height,
        "n_lost": compared.filter(lost).height,
        "n_lost_coverage": compared.filter(lost & uncovered.fill_null(value=True)).height,
    }
