"""Gate T as tests.

    mean reliability ≥ min_reliability                                           (as the point rule)
    lower bound of the mean fraction of the ceiling ≥ min_ceiling_fraction       (bootstrap over subject-runs and units)
    contrast with every control at level 2                                       (as in S)

A unit's fraction is the median over alignment × profile summaries of similarity / reliability.
"""

from __future__ import annotations

import math

import polars as pl

from lpact.config import GatesConfig
from lpact.decide._frames import SUBJECT_RUN_KEY, Layer
from lpact.decide.criteria import Criterion, CriterionName, GateEvidence
from lpact.decide.wording import count, number
from lpact.math.randomization import bootstrap_p_value
from lpact.math.seeding import keyed_rng
from lpact.reasons import Gate


def ceiling_gate(
    layer: Layer,
    bounded: pl.DataFrame | None,
    reliability: Criterion,
    contrast: Criterion,
    gates: GatesConfig,
) -> GateEvidence:
    """Evaluate T for one layer; ``bounded`` are its rows whose fractions stand on a sufficient reliability."""
    return GateEvidence(
        Gate.CEILING, (reliability, _fraction(layer, bounded, reliability, gates), contrast)
    )


def _fraction(
    layer: Layer, bounded: pl.DataFrame | None, reliability: Criterion, gates: GatesConfig
) -> Criterion:
    rows = None if bounded is None else bounded.drop_nulls("fraction_of_ceiling")
    threshold, alpha = gates.min_ceiling_fraction, gates.alpha
    mode = reliability.compared_with
    if rows is None or not rows.height:
        sentence = "No row has both a sufficient reliability and a contrast."
        return Criterion(
            CriterionName.P_FRACTION, None, "<=", alpha, 0, mode, sentence, reliability.beaten_by
        )
    units = rows.group_by([*SUBJECT_RUN_KEY, "unit"], maintain_order=True).agg(
        pl.col("fraction_of_ceiling").median()
    )
    groups = [
        part["fraction_of_ceiling"].to_numpy()
        for _, part in units.group_by(SUBJECT_RUN_KEY, maintain_order=True)
    ]
    p, lower = bootstrap_p_value(groups, threshold, keyed_rng(0, "bootstrap", *layer))
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
