"""Gate T as tests.

    mean reliability ≥ min_reliability                                           (as the point rule)
    lower bound of the mean fraction of the ceiling ≥ min_ceiling_fraction       (bootstrap over subject-runs and units)
    contrast with every control at level 2                                       (as in S)

A unit's fraction is the median over alignment × profile summaries of similarity / reliability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import LAYER_KEY, SUBJECT_RUN_KEY, Layer
from lpact.analyses.lpact.gates.calibrated.frames import cells, layer_of
from lpact.analyses.lpact.gates.criteria import Criterion, CriterionName, GateEvidence
from lpact.analyses.lpact.gates.point_rules.ceiling import BOUNDED
from lpact.analyses.lpact.gates.wording import count, number
from lpact.codes import Gate
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.stats import bootstrap_p_value


def ceiling_gate(
    layer: Layer,
    fractions: Sequence[FloatArray] | None,
    reliability: Criterion,
    contrast: Criterion,
    gates: GatesConfig,
) -> GateEvidence:
    """Evaluate T for one layer; ``fractions`` holds those of the units of every subject-run."""
    return GateEvidence(
        Gate.CEILING, (reliability, _fraction(layer, fractions, reliability, gates), contrast)
    )


def read_fractions(labelled: pl.DataFrame) -> dict[Layer, list[FloatArray]]:
    """Fractions of the units of every subject-run, by layer, where they stand on a sufficient reliability."""
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
    threshold, alpha = gates.min_ceiling_fraction, gates.alpha
    mode = reliability.compared_with
    if not groups:
        sentence = "No row has both a sufficient reliability and a contrast."
        return Criterion(
            CriterionName.P_FRACTION, None, "<=", alpha, 0, mode, sentence, reliability.beaten_by
        )
    p, lower = bootstrap_p_value(list(groups), threshold, keyed_rng(0, "bootstrap", *layer))
    mean = sum(float(g.mean()) for g in groups) / len(groups)
    bound = f"{number(lower)} at least with 95 % confidence" if math.isfinite(lower) else "no bound"
    return Criterion(
        CriterionName.P_FRACTION,
        p,
        "<=",
        alpha,
        len(groups),
        mode,
        f"The model reaches {number(mean)} of the {mode} ceiling on average, {bound} (bootstrap over "
        f"{count(len(groups), 'subject-run')} and their units); that it is above {number(threshold)}: "
        f"p = {number(p)}.",
        mode,
    )
