"""The decision, taken again under altered tables or thresholds, and compared with the run's own.

Everything that asks what would be integrated goes through `lpact.decide.decide`: no gate is written twice. Only what
can have changed is decided again. A change touches some gates and not others; a claim that fails a gate which the
change does not touch is not integrated before or after it, so that its layer need not be looked at. Neither need a
layer without any number at some level. Where a gate profile corrects over the claims of a study, the correction is
made over all of them, with the p-values that the decision stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from lpact.config import GatesConfig
from lpact.decide import decide
from lpact.math.multiple_testing import benjamini_hochberg
from lpact.reasons import FinalLabel, Reason
from lpact.tables import CLAIM_KEY
from lpact.tables.causal import SPECIFICITY
from lpact.tables.ceilings import NORMALIZED_SCORES
from lpact.tables.decisions import DECISIONS
from lpact.tables.predictive import CONTROL_DELTAS
from lpact.tables.relational import PROFILE_DELTAS

Tables = Mapping[str, pl.DataFrame]
Counts = dict[str, dict[str, int]]
"""By gate profile: claims, integrated ones, and those that a change gains and loses."""

GATES = (
    "predictive",
    "relational",
    "mechanism_specific",
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

    def __init__(self, tables: Tables, gates: GatesConfig, primary_metric: str) -> None:
        self.tables = tables
        self.gates = gates
        self.primary_metric = primary_metric
        self.base: Tables = decide(tables, gates=gates, primary_metric=primary_metric)

    @property
    def decisions(self) -> pl.DataFrame:
        """The decision table of the run."""
        return self.base[DECISIONS.name]

    @property
    def profiles(self) -> list[str]:
        """Gate profiles, sorted."""
        return self.decisions["gate_profile"].unique().sort().to_list()

    def with_tables(self, altered: Tables) -> Tables:
        """Decide the whole study with some tables in the place of the run's."""
        return decide(
            {**self.tables, **altered}, gates=self.gates, primary_metric=self.primary_metric
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
        return self._counts({}, gates, self._open_layers(touched))

    def counts_with_tables(self, altered: Tables, touched: Sequence[str]) -> Counts:
        """Counts with altered tables, which the gates ``touched`` look at and no others."""
        return self._counts(altered, self.gates, self._open_layers(touched))

    def counts_without(self, dataset: str, altered: Tables) -> Counts:
        """Counts with tables that lack some rows of one dataset; all its gates may change."""
        layers = self._open_layers(GATES).filter(pl.col("dataset") == dataset)
        return self._counts(altered, self.gates, layers)

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

    def _counts(self, altered: Tables, gates: GatesConfig, layers: pl.DataFrame) -> Counts:
        if not layers.height:
            return self.unchanged()
        tables = {
            name: table.join(layers, on=LAYER_KEY, how="semi", maintain_order="left")
            if set(LAYER_KEY) <= set(table.columns)
            else table
            for name, table in {**self.tables, **altered}.items()
        }
        decided = decide(tables, gates=gates, primary_metric=self.primary_metric)
        now = _corrected(self._whole(decided[DECISIONS.name], layers), gates)
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
        found = decided.select(*columns, now="integrated").join(base, on=_KEY, how="semi")
        untouched = base.join(layers, on=LAYER_KEY, how="anti", maintain_order="left")
        gone = (
            base.join(decided.select(LAYER_KEY).unique(), on=LAYER_KEY, how="semi")
            .join(found, on=_KEY, how="anti")
            .with_columns(
                now=pl.lit(False), p_value=pl.when(pl.col("p_value").is_not_null()).then(1.0)
            )
        )
        return pl.concat([found, untouched, gone]).sort(_KEY)


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
