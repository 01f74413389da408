"""All gates of all claims under the calibrated profile.

Gate T as tests:

    mean reliability ≥ min_reliability                                           (as the point rule)
    lower bound of the mean fraction of the ceiling ≥ min_ceiling_fraction       (bootstrap over subject-runs and units)
    contrast with every control at level 2                                       (as in S)

A unit's fraction is the median over alignment × profile summaries of similarity / reliability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import LAYER_KEY, SUBJECT_RUN_KEY, Layer
from lpact.analyses.lpact.gates.calibrated.frames import (
    Level1,
    cells,
    layer_of,
    of_layers,
    read_level1,
    read_null_draws,
)
from lpact.analyses.lpact.gates.calibrated.mechanism import mechanism_gate, read_drops
from lpact.analyses.lpact.gates.calibrated.predictive import PredictiveTests
from lpact.analyses.lpact.gates.calibrated.relational import (
    RelationalTests,
    controls_by_layer,
    reliable_units,
)
from lpact.analyses.lpact.gates.criteria import (
    CALIBRATED,
    Criterion,
    CriterionName,
    GateEvidence,
    Profile,
)
from lpact.analyses.lpact.gates.point_rules import Summaries
from lpact.analyses.lpact.gates.summaries import BOUNDED, LabelledRows
from lpact.analyses.lpact.tables.levels import (
    BLOCK_DROPS,
    BLOCK_SCORES,
    PREDICTIVE_SCORES,
    RELATIONAL_NULLS,
)
from lpact.codes import Gate
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.stats import bootstrap_p_value
from lpact.wording import counted, number


def calibrated_profile(
    rows: LabelledRows,
    measured: Mapping[str, pl.DataFrame],
    paper: Profile,
    found: Summaries,
    gates: GatesConfig,
    primary_metric: str,
    stop_above: float,
) -> Profile:
    """Every gate as a test; rules without a test are those of ``paper``.

    A layer with a p-value above ``stop_above`` at level 1 is not tested at level 2, nor one with such a p-value
    anywhere at level 3.
    """
    layers = list(paper.layers)
    level1 = read_level1(
        measured[PREDICTIVE_SCORES.name], measured[BLOCK_SCORES.name], rows.nulls, primary_metric
    )
    predictive = {
        layer: PredictiveTests(layer, level1.get(layer, Level1()), gates, stop_above)
        for layer in layers
    }
    first = {layer: (tests.gate(), tests.replication()) for layer, tests in predictive.items()}
    going = {layer for layer in layers if not max(g.p_value for g in first[layer]) > stop_above}
    units = reliable_units(of_layers(rows.relational, going))
    fractions = _read_fractions(of_layers(rows.ceiling, going))
    draws = read_null_draws(of_layers(measured[RELATIONAL_NULLS.name], going))
    controls = controls_by_layer(rows.nulls)
    by_layer: dict[Layer, dict[Gate, GateEvidence]] = {}
    for layer in layers:
        why = found.why_no_relation(layer)
        own = (draws.get(layer), units.get(layer), controls.get(layer, []))
        relational = RelationalTests(*own, gates, why)
        reliability = paper.layers[layer][Gate.CEILING].criterion(CriterionName.MEAN_RELIABILITY)
        fraction = _fraction(layer, fractions.get(layer), reliability, gates)
        severe = (predictive[layer].severe(), relational.severe())
        by_layer[layer] = {
            Gate.PREDICTIVE: first[layer][0],
            Gate.SEVERE_CONTROL: GateEvidence(Gate.SEVERE_CONTROL, severe),
            Gate.RELATIONAL: relational.gate(),
            Gate.CEILING: GateEvidence(
                Gate.CEILING, (reliability, fraction, relational.contrast())
            ),
            Gate.REPLICATION: first[layer][1],
        }
    open_layers = {
        layer
        for layer, made in by_layer.items()
        if not max(gate.p_value for gate in made.values()) > stop_above
    }
    drops = read_drops(of_layers(measured[BLOCK_DROPS.name], open_layers))
    mechanisms = {
        claim: mechanism_gate(
            claim,
            drops.get(claim[:3]),
            rule.criterion(CriterionName.N_TARGETS),
            gates,
            has_nuisance=bool(predictive[claim[:3]].nuisance),
            stop_above=stop_above,
        )
        for claim, rule in paper.mechanisms.items()
    }
    return Profile(CALIBRATED, True, by_layer, mechanisms)


def _read_fractions(labelled: pl.DataFrame) -> dict[Layer, list[FloatArray]]:
    """Fractions of the units of every subject-run, by layer, where the reliability is sufficient."""
    bounded = labelled.filter(pl.col("evidence").is_in([label.value for label in BOUNDED]))
    groups = (
        bounded.drop_nulls("fraction_of_ceiling")
        .group_by([*LAYER_KEY, *SUBJECT_RUN_KEY, "unit"], maintain_order=True)
        .agg(pl.col("fraction_of_ceiling").median())
        .group_by([*LAYER_KEY, *SUBJECT_RUN_KEY], maintain_order=True)
        .agg("fraction_of_ceiling")
    )
    found: dict[Layer, list[FloatArray]] = {}
    keys = groups.select(LAYER_KEY).iter_rows()
    for key, values in zip(keys, cells(groups["fraction_of_ceiling"]), strict=True):
        found.setdefault(layer_of(key), []).append(values)
    return found


def _fraction(
    layer: Layer,
    groups: Sequence[FloatArray] | None,
    reliability: Criterion,
    gates: GatesConfig,
) -> Criterion:
    """The test of gate T on the fraction of the ceiling."""
    threshold, mode = gates.min_ceiling_fraction, reliability.compared_with
    if not groups:
        sentence = "No row has both a sufficient reliability and a contrast."
        nothing = (None, 0, mode, sentence, reliability.beaten_by)
        return Criterion(CriterionName.P_FRACTION, "<=", gates.alpha, *nothing)
    p, lower = bootstrap_p_value(list(groups), threshold, keyed_rng(0, "bootstrap", *layer))
    mean = sum(float(g.mean()) for g in groups) / len(groups)
    bound = f"{number(lower)} at least with 95 % confidence" if math.isfinite(lower) else "no bound"
    sentence = (
        f"The model reaches {number(mean)} of the {mode} ceiling on average, {bound} (bootstrap over "
        f"{counted(len(groups), 'subject-run')} and their units); that it is above {number(threshold)}: "
        f"p = {number(p)}."
    )
    found = (p, len(groups), mode, sentence, mode)
    return Criterion(CriterionName.P_FRACTION, "<=", gates.alpha, *found)
