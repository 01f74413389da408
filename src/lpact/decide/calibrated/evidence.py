"""All gates of all claims under the calibrated profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    ) -> None:
        self._paper = paper
        scores, blocks, nulls = by_layer(tests.scores), by_layer(tests.blocks), by_layer(rows.nulls)
        null_draws, unit_rows = by_layer(tests.relational_nulls), by_layer(rows.relational)
        bounded = by_layer(
            rows.ceiling.filter(pl.col("evidence").is_in([label.value for label in BOUNDED]))
        )
        drops = by_layer(tests.block_drops)
        self._layers: dict[Layer, dict[Gate, GateEvidence]] = {}
        has_nuisance: dict[Layer, bool] = {}
        for layer in layers:
            level1 = read_level1(
                scores.get(layer), blocks.get(layer), nulls.get(layer), primary_metric
            )
            predictive = PredictiveTests(layer, level1, gates)
            has_nuisance[layer] = bool(predictive.nuisance)
            relational = RelationalTests(
                null_draws.get(layer),
                unit_rows.get(layer),
                controls_of(nulls.get(layer)),
                gates,
                paper.why_no_relation(layer),
            )
            reliability = paper.ceiling[layer].criterion(CriterionName.MEAN_RELIABILITY)
            self._layers[layer] = {
                Gate.PREDICTIVE: predictive.gate(),
                Gate.SEVERE_CONTROL: GateEvidence(
                    Gate.SEVERE_CONTROL, (predictive.severe(), relational.severe())
                ),
                Gate.RELATIONAL: relational.gate(),
                Gate.CEILING: ceiling_gate(
                    layer, bounded.get(layer), reliability, relational.contrast(), gates
                ),
                Gate.REPLICATION: predictive.replication(),
            }
        self._mechanism = {
            claim: mechanism_gate(
                claim,
                drops.get(claim[:3]),
                paper.mechanism[claim].criterion(CriterionName.N_TARGETS),
                gates,
                has_nuisance=has_nuisance[claim[:3]],
            )
            for claim in claims
        }

    def of(self, claim: Claim) -> ClaimEvidence:
        """Return the gates of one claim."""
        layer = self._layers[claim[:3]]
        return ClaimEvidence(
            predictive=layer[Gate.PREDICTIVE],
            severe_control=layer[Gate.SEVERE_CONTROL],
            relational=layer[Gate.RELATIONAL],
            mechanism=self._mechanism[claim],
            ceiling=layer[Gate.CEILING],
            replication=layer[Gate.REPLICATION],
        )

    def raw(self, claim: Claim) -> RawEvidence:
        """Return what one claim shows before any control is asked."""
        return self._paper.raw(claim)
