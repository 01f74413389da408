"""All gates of all claims under the calibrated profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from lpact.config import GatesConfig
from lpact.decide._frames import Layer
from lpact.decide.calibrated.ceiling import ceiling_gate
from lpact.decide.calibrated.frames import by_layer, read_level1
from lpact.decide.calibrated.mechanism import mechanism_gate
from lpact.decide.calibrated.predictive import PredictiveTests
from lpact.decide.calibrated.relational import RelationalTests, controls_of
from lpact.decide.claims import Claim
from lpact.decide.criteria import ClaimEvidence, CriterionName, GateEvidence
from lpact.decide.discoveries import gate_p_value
from lpact.decide.evidence import Evidence, LabelledRows
from lpact.decide.gates.ceiling import BOUNDED
from lpact.decide.verdict import RawEvidence
from lpact.reasons import Gate


@dataclass(frozen=True)
class DrawTables:
    """Measured tables that only the tests read."""

    scores: pl.DataFrame
    blocks: pl.DataFrame
    relational_nulls: pl.DataFrame
    block_drops: pl.DataFrame


@dataclass(frozen=True)
class Known:
    """What need not be tested again where a study is decided several times.

    ``layers`` and ``mechanisms`` hold gates whose tables and thresholds have not changed. ``enough`` is for those who
    ask only whether a claim is integrated: a layer with a p-value above it at level 1 is not tested at level 2, nor one
    with such a p-value anywhere at level 3. What is not tested is not passed.
    """

    layers: Mapping[Layer, Mapping[Gate, GateEvidence]] = field(default_factory=dict)
    mechanisms: Mapping[Claim, GateEvidence] = field(default_factory=dict)
    enough: float = 1.0


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
        scores, blocks, nulls = by_layer(tests.scores), by_layer(tests.blocks), by_layer(rows.nulls)
        null_draws, unit_rows = by_layer(tests.relational_nulls), by_layer(rows.relational)
        bounded = by_layer(
            rows.ceiling.filter(pl.col("evidence").is_in([label.value for label in BOUNDED]))
        )
        drops = by_layer(tests.block_drops)
        by_layers: dict[Layer, Mapping[Gate, GateEvidence]] = {}
        has_nuisance: dict[Layer, bool] = {}
        for layer in layers:
            if layer in known.layers:
                by_layers[layer] = known.layers[layer]
                continue
            level1 = read_level1(
                scores.get(layer), blocks.get(layer), nulls.get(layer), primary_metric
            )
            predictive = PredictiveTests(layer, level1, gates)
            has_nuisance[layer] = bool(predictive.nuisance)
            level1_gates = (predictive.gate(), predictive.replication())
            stopped = max(map(gate_p_value, level1_gates)) > known.enough
            relational = RelationalTests(
                None if stopped else null_draws.get(layer),
                None if stopped else unit_rows.get(layer),
                controls_of(nulls.get(layer)),
                gates,
                paper.why_no_relation(layer),
            )
            reliability = paper.ceiling[layer].criterion(CriterionName.MEAN_RELIABILITY)
            by_layers[layer] = {
                Gate.PREDICTIVE: level1_gates[0],
                Gate.SEVERE_CONTROL: GateEvidence(
                    Gate.SEVERE_CONTROL, (predictive.severe(), relational.severe())
                ),
                Gate.RELATIONAL: relational.gate(),
                Gate.CEILING: ceiling_gate(
                    layer,
                    None if stopped else bounded.get(layer),
                    reliability,
                    relational.contrast(),
                    gates,
                ),
                Gate.REPLICATION: level1_gates[1],
            }
            if max(map(gate_p_value, by_layers[layer].values())) > known.enough:
                drops.pop(layer, None)
        self.layers: Mapping[Layer, Mapping[Gate, GateEvidence]] = by_layers
        self.mechanisms: Mapping[Claim, GateEvidence] = {
            claim: known.mechanisms.get(claim)
            or mechanism_gate(
                claim,
                drops.get(claim[:3]),
                paper.mechanism[claim].criterion(CriterionName.N_TARGETS),
                gates,
                has_nuisance=has_nuisance.get(claim[:3], True),
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
