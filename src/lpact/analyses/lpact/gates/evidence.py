"""All gates of all claims, from labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import Layer, Row
from lpact.analyses.lpact.gates.claims import Claim
from lpact.analyses.lpact.gates.criteria import ClaimEvidence, GateEvidence
from lpact.analyses.lpact.gates.known import Known
from lpact.analyses.lpact.gates.point_rules.ceiling import ceiling_gate, summarise_ceiling
from lpact.analyses.lpact.gates.point_rules.mechanism import mechanism_gate, summarise_mechanisms
from lpact.analyses.lpact.gates.point_rules.predictive import predictive_gate, summarise_predictive
from lpact.analyses.lpact.gates.point_rules.relational import (
    relational_gate,
    summarise_relational,
    why_nothing,
)
from lpact.analyses.lpact.gates.point_rules.replication import replication_gate
from lpact.analyses.lpact.gates.point_rules.severe import severe_gate
from lpact.analyses.lpact.gates.verdict import RawEvidence
from lpact.codes import Gate


@dataclass(frozen=True)
class LabelledRows:
    """Rows that the gates read, with their evidence labels where they have any."""

    predictive: pl.DataFrame
    nulls: pl.DataFrame
    similarities: pl.DataFrame
    relational: pl.DataFrame
    relational_summary: pl.DataFrame
    specificity: pl.DataFrame
    ceiling: pl.DataFrame


class Evidence:
    """Gates and raw evidence by claim. All gates but the mechanism gate are evaluated once a layer."""

    def __init__(
        self,
        rows: LabelledRows,
        layers: Sequence[Layer],
        claims: Sequence[Claim],
        gates: GatesConfig,
        primary_metric: str,
        known: Known,
    ) -> None:
        level1 = known.still(Gate.PREDICTIVE, Gate.REPLICATION)
        level2, level3 = known.still(Gate.RELATIONAL), known.still(Gate.MECHANISM)
        level4, severe = known.still(Gate.CEILING), known.still(Gate.SEVERE_CONTROL)
        self._predictive: dict[Layer, Row] = (
            level1._predictive if level1 else summarise_predictive(rows.predictive, primary_metric)
        )
        self._relational: dict[Layer, Row] = (
            level2._relational
            if level2
            else summarise_relational(rows.relational, rows.relational_summary, gates)
        )
        self._mechanisms: dict[Claim, Row] = (
            level3._mechanisms if level3 else summarise_mechanisms(rows.specificity)
        )
        self._ceiling: dict[Layer, Row] = (
            level4._ceiling if level4 else summarise_ceiling(rows.ceiling)
        )
        self.predictive = predictive_gate(self._predictive, layers)
        self.severe_control: dict[Layer, GateEvidence] = (
            {layer: severe.severe_control[layer] for layer in layers}
            if severe
            else severe_gate(
                rows.nulls,
                rows.similarities,
                rows.relational,
                self._relational,
                layers,
                gates,
                primary_metric,
            )
        )
        self.relational = relational_gate(self._relational, layers, gates)
        self.mechanism = mechanism_gate(self._mechanisms, claims, gates)
        self.ceiling = ceiling_gate(self._ceiling, self._relational, layers, gates)
        self.replication = replication_gate(self._predictive, layers, gates)

    def of(self, claim: Claim) -> ClaimEvidence:
        """Return the gates of one claim."""
        layer = claim[:3]
        return ClaimEvidence(
            predictive=self.predictive[layer],
            severe_control=self.severe_control[layer],
            relational=self.relational[layer],
            mechanism=self.mechanism[claim],
            ceiling=self.ceiling[layer],
            replication=self.replication[layer],
        )

    def why_no_relation(self, layer: Layer) -> str:
        """Code of the cause why a layer has no comparable relational contrast."""
        return why_nothing(self._relational.get(layer))

    def raw(self, claim: Claim) -> RawEvidence:
        """Return what one claim shows before any control is asked."""
        nothing: Row = {}
        predictive = self._predictive.get(claim[:3], nothing)
        relational = self._relational.get(claim[:3], nothing)
        return RawEvidence(
            n_subject_runs=predictive.get("n", 0),
            score=predictive.get("raw_score"),
            delta_nuisance=predictive.get("delta_nuisance"),
            similarity=relational.get("raw_similarity"),
            drop=self._mechanisms.get(claim, nothing).get("raw_drop"),
            fraction_of_ceiling=self._ceiling.get(claim[:3], nothing).get("fraction_of_ceiling"),
            lacks_units=relational.get("lacks_units", False),
        )


def passed_by_layer(gate: dict[Layer, GateEvidence], name: str) -> pl.DataFrame:
    """Return a gate's evidence as a frame with one row per layer and the boolean column ``name``."""
    rows = [(*layer, evidence.passed) for layer, evidence in gate.items()]
    schema = {"dataset": pl.String, "model": pl.String, "layer": pl.Int64, name: pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")
