"""Layers that level 1 stops, for those who decide many times and ask only which claims are integrated."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import Layer
from lpact.analyses.lpact.gates.calibrated.frames import Level1, read_level1_by_layer
from lpact.analyses.lpact.gates.calibrated.predictive import PredictiveTests
from lpact.analyses.lpact.gates.claims import list_layers
from lpact.analyses.lpact.gates.discoveries import gate_p_value
from lpact.analyses.lpact.gates.known import Known
from lpact.analyses.lpact.gates.point_rules.predictive import predictive_gate, summarise_predictive
from lpact.analyses.lpact.gates.point_rules.replication import replication_gate
from lpact.analyses.lpact.gates.rows import label_predictive
from lpact.analyses.lpact.tables.levels import (
    BLOCK_SCORES,
    CONTROL_DELTAS,
    CONTROL_NULLS,
    PREDICTIVE_SCORES,
)


def promising_layers(
    measured: Mapping[str, pl.DataFrame], *, gates: GatesConfig, primary_metric: str, known: Known
) -> tuple[set[Layer], dict[Layer, PredictiveTests]]:
    """Layers that pass gates P and Rep of a profile: by the point rules, or with p-values that are low enough.

    No claim of any other layer passes every gate, whatever the other levels show. Also the tests of all layers.
    """
    deltas = measured[CONTROL_DELTAS.name]
    layers = list_layers(deltas)
    summaries = summarise_predictive(label_predictive(deltas), primary_metric)
    predicted = predictive_gate(summaries, layers)
    replicated = replication_gate(summaries, layers, gates)
    level1 = read_level1_by_layer(
        measured[PREDICTIVE_SCORES.name],
        measured[BLOCK_SCORES.name],
        measured[CONTROL_NULLS.name],
        primary_metric,
    )
    tests = {
        layer: PredictiveTests(layer, level1.get(layer, Level1()), gates, known) for layer in layers
    }
    promising = {
        layer
        for layer in layers
        if (predicted[layer].passed and replicated[layer].passed)
        or not max(map(gate_p_value, (tests[layer].gate(), tests[layer].replication())))
        > known.enough
    }
    return promising, tests
