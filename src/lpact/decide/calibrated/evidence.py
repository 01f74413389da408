"""All gates of all claims under the calibrated profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lpact.config import GatesConfig
from lpact.decide._frames import Layer
from lpact.decide.calibrated.ceiling import ceiling_gate, read_fractions
from lpact.decide.calibrated.frames import Level1, of_layers, read_level1_by_layer
from lpact.decide.calibrated.mechanism import mechanism_gate, read_drops
from lpact.decide.calibrated.null_draws import read_null_draws
from lpact.decide.calibrated.predictive import PredictiveTests
from lpact.decide.calibrated.relational import (
    RelationalTests,
    controls_by_layer,
    reliable_units,
)
from lpact.decide.claims import Claim
from lpact.decide.criteria import ClaimEvidence, CriterionName, GateEvidence
from lpact.decide.discoveries import gate_p_value
from lpact.decide.evidence import Evidence, LabelledRows
from lpact.decide.known import Known
from lpact.decide.verdict import RawEvidence
from lpact.reasons import Gate


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
                has_nuisance=levels.has_nuisance[claim[:3]],
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
        self.gates: dict[Layer, Mapping[Gate, GateEvidence]] = {}
        self.has_nuisance: dict[Layer, bool] = {}
        level1 = read_level1_by_layer(tests.scores, tests.blocks, rows.nulls, primary_metric)
        predictive = {
            layer: PredictiveTests(layer, level1.get(layer, Level1()), gates, known.block_tests)
            for layer in layers
        }
        first = {layer: (test.gate(), test.replication()) for layer, test in predictive.items()}
        going = {
            layer for layer in layers if not max(map(gate_p_value, first[layer])) > known.enough
        }
        draws = read_null_draws(of_layers(tests.relational_nulls, going))
        units = reliable_units(of_layers(rows.relational, going))
        fractions = read_fractions(of_layers(rows.ceiling, going))
        controls = controls_by_layer(rows.nulls)
        for layer in layers:
            self.has_nuisance[layer] = bool(predictive[layer].nuisance)
            relational = RelationalTests(
                draws.get(layer),
                units.get(layer),
                controls.get(layer, []),
                gates,
                paper.why_no_relation(layer),
            )
            reliability = paper.ceiling[layer].criterion(CriterionName.MEAN_RELIABILITY)
            self.gates[layer] = {
                Gate.PREDICTIVE: first[layer][0],
                Gate.SEVERE_CONTROL: GateEvidence(
                    Gate.SEVERE_CONTROL, (predictive[layer].severe(), relational.severe())
                ),
                Gate.RELATIONAL: relational.gate(),
                Gate.CEILING: ceiling_gate(
                    layer, fractions.get(layer), reliability, relational.contrast(), gates
                ),
                Gate.REPLICATION: first[layer][1],
            }
        self.stopped = {
            layer
            for layer in layers
            if max(map(gate_p_value, self.gates[layer].values())) > known.enough
        }
