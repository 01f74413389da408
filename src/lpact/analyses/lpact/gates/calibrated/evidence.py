"""All gates of all claims under the calibrated profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import Layer
from lpact.analyses.lpact.gates.calibrated.ceiling import ceiling_gate, read_fractions
from lpact.analyses.lpact.gates.calibrated.frames import Level1, of_layers, read_level1_by_layer
from lpact.analyses.lpact.gates.calibrated.mechanism import mechanism_gate, read_drops
from lpact.analyses.lpact.gates.calibrated.null_draws import read_null_draws
from lpact.analyses.lpact.gates.calibrated.predictive import PredictiveTests
from lpact.analyses.lpact.gates.calibrated.relational import (
    RelationalTests,
    controls_by_layer,
    reliable_units,
)
from lpact.analyses.lpact.gates.claims import Claim
from lpact.analyses.lpact.gates.criteria import (
    ClaimEvidence,
    Criterion,
    CriterionName,
    GateEvidence,
)
from lpact.analyses.lpact.gates.discoveries import gate_p_value
from lpact.analyses.lpact.gates.evidence import Evidence, LabelledRows
from lpact.analyses.lpact.gates.known import Known
from lpact.analyses.lpact.gates.verdict import RawEvidence
from lpact.codes import Gate
from lpact.math.types import FloatArray


@dataclass(frozen=True)
class DrawTables:
    """Measured tables that only the tests read."""

    scores: pl.DataFrame
    blocks: pl.DataFrame
    relational_nulls: pl.DataFrame
    block_drops: pl.DataFrame


class CalibratedEvidence:
    """Gates by claim; point rules that both profiles share are taken from ``paper``."""

    def __init__(
        self,
        rows: LabelledRows,
        tests: DrawTables,
        layers: Sequence[Layer],
        claims: Sequence[Claim],
        gates: GatesConfig,
        primary_metric: str,
        paper: Evidence,
        known: Known,
    ) -> None:
        self._paper = paper
        levels = _LevelTests(rows, tests, layers, gates, primary_metric, paper, known)
        self.predictive_tests = levels.predictive
        self.relational_tests = levels.relational
        self.layers: Mapping[Layer, Mapping[Gate, GateEvidence]] = levels.gates
        untested = {claim[:3] for claim in claims if claim not in known.mechanisms}
        drops = read_drops(of_layers(tests.block_drops, untested - levels.stopped))
        self.mechanisms: Mapping[Claim, GateEvidence] = {
            claim: known.mechanisms.get(claim)
            or mechanism_gate(
                claim,
                drops.get(claim[:3]),
                paper.mechanism[claim].criterion(CriterionName.N_TARGETS),
                gates,
                has_nuisance=bool(levels.predictive[claim[:3]].nuisance),
                enough=known.enough,
            )
            for claim in claims
        }

    def of(self, claim: Claim) -> ClaimEvidence:
        """Return the gates of one claim."""
        layer = self.layers[claim[:3]]
        return ClaimEvidence(
            predictive=layer[Gate.PREDICTIVE],
            severe_control=layer[Gate.SEVERE_CONTROL],
            relational=layer[Gate.RELATIONAL],
            mechanism=self.mechanisms[claim],
            ceiling=layer[Gate.CEILING],
            replication=layer[Gate.REPLICATION],
        )

    def raw(self, claim: Claim) -> RawEvidence:
        """Return what one claim shows before any control is asked."""
        return self._paper.raw(claim)


class _LevelTests:
    """Gates of levels 1, 2 and 4 of some layers.

    ``stopped`` are those with a p-value above what is enough; one that level 1 stops is not tested at level 2.
    """

    def __init__(
        self,
        rows: LabelledRows,
        tests: DrawTables,
        layers: Sequence[Layer],
        gates: GatesConfig,
        primary_metric: str,
        paper: Evidence,
        known: Known,
    ) -> None:
        before = known.tests
        self.predictive: dict[Layer, PredictiveTests] = (
            {layer: before.predictive_tests[layer].under(gates) for layer in layers}
            if before
            else _predictive_tests(rows, tests, layers, gates, primary_metric, known)
        )
        first = {layer: (t.gate(), t.replication()) for layer, t in self.predictive.items()}
        going = {
            layer for layer in layers if not max(map(gate_p_value, first[layer])) > known.enough
        }
        units = reliable_units(of_layers(rows.relational, going))
        fractions = read_fractions(of_layers(rows.ceiling, going))
        draws = {} if before else read_null_draws(of_layers(tests.relational_nulls, going))
        controls = {} if before else controls_by_layer(rows.nulls)
        self.relational: dict[Layer, RelationalTests] = {}
        self.gates: dict[Layer, Mapping[Gate, GateEvidence]] = {}
        for layer in layers:
            why = paper.why_no_relation(layer)
            self.relational[layer] = (
                before.relational_tests[layer].under(units.get(layer), gates, why)
                if before and layer in going
                else RelationalTests(
                    draws.get(layer), units.get(layer), controls.get(layer, []), gates, why
                )
            )
            self.gates[layer] = _layer_gates(
                layer,
                first[layer],
                self.predictive[layer],
                self.relational[layer],
                fractions.get(layer),
                paper.ceiling[layer].criterion(CriterionName.MEAN_RELIABILITY),
                gates,
            )
        self.stopped: set[Layer] = {
            layer
            for layer in layers
            if max(map(gate_p_value, self.gates[layer].values())) > known.enough
        }


def _predictive_tests(
    rows: LabelledRows,
    tests: DrawTables,
    layers: Sequence[Layer],
    gates: GatesConfig,
    primary_metric: str,
    known: Known,
) -> dict[Layer, PredictiveTests]:
    if known.level1:
        return {layer: known.level1[layer] for layer in layers}
    level1 = read_level1_by_layer(tests.scores, tests.blocks, rows.nulls, primary_metric)
    return {
        layer: PredictiveTests(layer, level1.get(layer, Level1()), gates, known) for layer in layers
    }


def _layer_gates(
    layer: Layer,
    level1: tuple[GateEvidence, GateEvidence],
    predictive: PredictiveTests,
    relational: RelationalTests,
    fractions: Sequence[FloatArray] | None,
    reliability: Criterion,
    gates: GatesConfig,
) -> dict[Gate, GateEvidence]:
    severe = (predictive.severe(), relational.severe())
    return {
        Gate.PREDICTIVE: level1[0],
        Gate.SEVERE_CONTROL: GateEvidence(Gate.SEVERE_CONTROL, severe),
        Gate.RELATIONAL: relational.gate(),
        Gate.CEILING: ceiling_gate(layer, fractions, reliability, relational.contrast(), gates),
        Gate.REPLICATION: level1[1],
    }
