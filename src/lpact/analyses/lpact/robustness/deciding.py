"""The decision, taken again under altered tables or thresholds, and compared with the run's own.

Everything that asks what would be integrated goes through `lpact.analyses.lpact.gates`: no gate is written twice.
Only what can have changed is decided again. A change touches some gates and not others; a claim that fails a gate
which the change does not touch is not integrated before or after it, so that its layer need not be looked at. Neither
need a layer without any number at some level. Where a gate profile corrects over the claims of a study, the
correction is made over all of them, with the p-values that the decision stores. Gates and tests whose tables and
thresholds are untouched are taken from the run's own decision. Where only the integrated claims are counted, a layer
that level 1 stops is not looked at further, nor is one tested further that a test has stopped: its p-value is above
the false discovery rate, and how far above it is changes no other claim (Benjamini & Hochberg 1995 look at p-values
up to the rate only).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates import NEEDED
from lpact.analyses.lpact.gates.decision import decide_gathered, gather, integrated_claims, read_all
from lpact.analyses.lpact.gates.known import Known
from lpact.analyses.lpact.gates.screening import promising_layers
from lpact.analyses.lpact.robustness.counting import Counts, StudyClaims
from lpact.analyses.lpact.robustness.decided import DecidedRun, Tables
from lpact.analyses.lpact.tables.levels import (
    BLOCK_DROPS,
    CONTROL_DELTAS,
    DISSOCIATIONS,
    NORMALIZED_SCORES,
    PROFILE_DELTAS,
    SPECIFICITY,
    STRIPPING_DELTAS,
)
from lpact.codes import Gate, Reason
from lpact.tables import RECORDING_KEY

MECHANISM = "mechanism_specific"
GATES: Mapping[str, Gate] = {
    "predictive": Gate.PREDICTIVE,
    "relational": Gate.RELATIONAL,
    MECHANISM: Gate.MECHANISM,
    "ceiling": Gate.CEILING,
    "severe_control": Gate.SEVERE_CONTROL,
    "replication": Gate.REPLICATION,
}
"""Gates by their column in the decision table."""

LAYER_KEY = ("dataset", "model", "layer")
_NOT_IN_GATES = (STRIPPING_DELTAS, DISSOCIATIONS)
"""Tables whose rows are labelled by the decision, and that no gate reads."""
_LEVELS = (CONTROL_DELTAS, PROFILE_DELTAS, SPECIFICITY, NORMALIZED_SCORES)


class Decider(DecidedRun):
    """Decides a run's tables again; ``base`` is the decision with nothing altered."""

    def __init__(
        self,
        tables: Tables,
        gates: GatesConfig,
        primary_metric: str,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        tell("deciding the run")
        measured = read_all(tables)
        block_tests: dict[tuple[object, ...], float] = {}
        found = gather(
            measured,
            gates=gates,
            primary_metric=primary_metric,
            known=Known(block_tests=block_tests),
        )
        super().__init__(
            {**tables, **measured}, decide_gathered(measured, found), gates, primary_metric
        )
        self.tell = tell
        self._found = found
        self._block_tests = block_tests
        self._claims = StudyClaims(self.decisions, list(GATES))
        self._opened: dict[tuple[str, ...], tuple[pl.DataFrame, Tables]] = {}

    def without_dataset(self, dataset: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Decisions and outcomes without one dataset; layers of the others are as they were."""
        return self._found.without_dataset(dataset)

    def unchanged(self) -> Counts:
        """Counts of the run itself."""
        return self._claims.unchanged()

    def counts_with_gates(self, gates: GatesConfig, touched: Sequence[str]) -> Counts:
        """Counts with other thresholds, which the gates ``touched`` look at and no others."""
        if gates == self.gates:
            return self.unchanged()
        layers, tables = self._open(touched)
        return self._counts(tables, gates, layers, touched)

    def counts_with_tables(self, altered: Tables, touched: Sequence[str]) -> Counts:
        """Counts with altered tables, which the gates ``touched`` look at and no others."""
        layers, tables = self._open(touched)
        return self._counts({**tables, **_of_layers(altered, layers)}, self.gates, layers, touched)

    def counts_with_change(
        self, change: Callable[[Tables], Tables], touched: Sequence[str]
    ) -> Counts:
        """The same, with a function that alters the tables of any layers on their own."""
        layers, tables = self._open(touched)
        if not layers.height:
            return self.unchanged()
        return self._counts({**tables, **change(tables)}, self.gates, layers, touched)

    def counts_without(self, recording: Sequence[str]) -> Counts:
        """Counts without one subject-run (values of `RECORDING_KEY`); all gates of its dataset may change."""
        touched = tuple(GATES)
        layers, tables = self._open(touched, recording[0])
        return self._counts(_without(tables, recording), self.gates, layers, touched)

    def _open(self, touched: Sequence[str], *datasets: str) -> tuple[pl.DataFrame, Tables]:
        """`_open_layers`, of one dataset where it is named, and the rows of all tables about them."""
        place = (*sorted(touched), "", *datasets)
        if place not in self._opened:
            layers = self._open_layers(touched)
            if datasets:
                layers = layers.filter(pl.col("dataset").is_in(datasets))
            read = {t.name: self.tables[t.name] for t in NEEDED if t not in _NOT_IN_GATES}
            self._opened[place] = layers, _of_layers(read, layers)
        return self._opened[place]

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
        known = Known(
            paper=self._found.paper,
            tests=self._found.calibrated if gates != self.gates else None,
            unchanged=frozenset(GATES.values()) - {GATES[gate] for gate in touched},
            mechanisms={} if MECHANISM in touched else self._found.calibrated.mechanisms,
            block_tests=self._block_tests,
            enough=gates.fdr,
        )
        if known.still(Gate.PREDICTIVE, Gate.REPLICATION):
            promising = self._found.promising_layers(gates.fdr)
        else:
            promising, level1 = promising_layers(
                tables, gates=gates, primary_metric=self.primary_metric, known=known
            )
            known = replace(known, level1=level1 if known.tests is None else {})
        present = tables[CONTROL_DELTAS.name].select(LAYER_KEY).unique().rows()
        stripped = tables[SPECIFICITY.name]
        # A claim that is lost is asked for its label, too.
        asked = layers.filter(_is_one_of(promising | self._claims.integrated_layers))
        decided = None
        if asked.height:
            if asked.height < layers.height:
                # Drops by block are not read where the tests of their gate are known.
                same = () if MECHANISM in touched else (BLOCK_DROPS.name,)
                rest = {name: t for name, t in tables.items() if name not in same}
                tables = {**tables, **_of_layers(rest, asked)}
            found = gather(
                tables,
                gates=gates,
                primary_metric=self.primary_metric,
                known=known,
                stripped=stripped,
            )
            decided = integrated_claims(found)
        return self._claims.counts(layers.rows(), present, decided, gates.fdr)


def _is_one_of(layers: Collection[tuple[str, str, int]]) -> pl.Expr:
    here = pl.struct(LAYER_KEY)
    names = [dict(zip(LAYER_KEY, layer, strict=True)) for layer in sorted(layers)]
    schema = pl.Struct({"dataset": pl.String, "model": pl.String, "layer": pl.Int64})
    return here.is_in(pl.Series(names, dtype=schema).implode())


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
