"""Which numbers stand behind which criterion."""

from __future__ import annotations

from collections.abc import Callable

from lpact.analyses.lpact.claim_story import level1, level2, level3, level4
from lpact.analyses.lpact.claim_story.material import Material
from lpact.analyses.lpact.claim_story.model import Distribution
from lpact.analyses.lpact.gates.calibrated.mechanism import NOTHING
from lpact.analyses.lpact.gates.calibrated.predictive import NUISANCE
from lpact.analyses.lpact.gates.calibrated.relational import SURROGATE, SWAP, UNIT_ORDER
from lpact.analyses.lpact.gates.criteria import CriterionName

OF_MECHANISM = frozenset(
    {
        CriterionName.N_TARGETS,
        CriterionName.METHODS_AGREEING,
        CriterionName.TYPICAL_DROP,
        CriterionName.TYPICAL_MARGIN,
        CriterionName.TYPICAL_MISMATCH_MARGIN,
        CriterionName.P_OTHER_TARGETS,
        CriterionName.P_RANDOM_DIRECTIONS,
        CriterionName.P_BEYOND_NUISANCE,
    }
)
"""Criteria that differ between the mechanisms of a layer."""

Made = tuple[Distribution, ...]
_Maker = Callable[[Material, str, float | None], Made]
"""From the material, what the criterion was compared with, and its value."""


def distributions_of(
    material: Material, criterion: str, compared_with: str, value: float | None
) -> Made:
    """The numbers behind a criterion; none for counts and roles."""
    if value is None or criterion not in _MAKERS:
        return ()
    make = _MAKERS[CriterionName(criterion)]
    if CriterionName(criterion) in OF_MECHANISM:
        return make(material, compared_with, value)
    key = ("distributions", criterion, compared_with, value)
    return material.once(key, lambda: make(material, compared_with, value))


def _relational(kinds: tuple[str, ...], *, nuisance: bool) -> _Maker:
    def make(material: Material, rival: str, _: float | None) -> Made:
        return level2.tests(level2.chosen_tests(material, kinds, nuisance=nuisance), rival)

    return make


def _typical(column: str) -> _Maker:
    def make(material: Material, rival: str, _: float | None) -> Made:
        own = level3.by_method(material, column, rival)
        beside = {
            "matching_drop": lambda: level3.targets(material, rival),
            "margin": lambda: level3.targets(material, rival),
            "mismatch_margin": lambda: level3.mismatched(material, rival),
        }
        return (own, *beside[column]())

    return make


_MAKERS: dict[CriterionName, _Maker] = {
    CriterionName.MEAN_DELTA_NUISANCE: lambda m, _, __: level1.mean_delta(
        m, "delta_nuisance", NUISANCE
    ),
    CriterionName.MEAN_DELTA_CONTROL: lambda m, rival, _: level1.mean_delta(
        m, "delta_control", rival
    ),
    CriterionName.SMALLEST_CONTROL_DELTA: lambda m, rival, _: level1.smallest_delta(m, rival),
    CriterionName.SUMMARIES_NOT_REACHED: lambda m, rival, _: level2.not_reached(m, rival),
    CriterionName.SUMMARIES_PASSING: lambda m, rival, _: level2.summaries_passing(m, rival),
    CriterionName.TYPICAL_PASS_SHARE: lambda m, _, __: level2.pass_shares(m),
    CriterionName.TYPICAL_DELTA_REL: lambda m, rival, _: level2.contrasts(m, rival),
    CriterionName.METHODS_AGREEING: lambda m, _, __: level3.agreeing(m),
    CriterionName.TYPICAL_DROP: _typical("matching_drop"),
    CriterionName.TYPICAL_MARGIN: _typical("margin"),
    CriterionName.TYPICAL_MISMATCH_MARGIN: _typical("mismatch_margin"),
    CriterionName.MEAN_RELIABILITY: lambda m, mode, _: level4.reliability(m, mode),
    CriterionName.MEAN_DELTA_FRACTION: lambda m, rival, _: level4.fraction(
        m, "delta_fraction", rival, 0.0
    ),
    CriterionName.MEAN_FRACTION_OF_CEILING: lambda m, mode, _: level4.fraction(
        m, "fraction_of_ceiling", mode, m.gates.min_ceiling_fraction
    ),
    CriterionName.MEDIAN_FRACTION_OF_CEILING: lambda m, mode, _: level4.median_fraction(m, mode),
    CriterionName.POSITIVE_DIRECTION: lambda m, _, __: level1.direction(m),
    CriterionName.P_NUISANCE: lambda m, rival, _: level1.tests(m, m.level1.nuisance, rival),
    CriterionName.P_SURROGATES: lambda m, rival, _: level1.tests(m, m.level1.surrogates, rival),
    CriterionName.P_RIVALS: lambda m, rival, _: level1.tests(m, m.level1.rivals, rival),
    CriterionName.P_CONTROLS_LEVEL1: lambda m, rival, _: level1.tests(
        m, [*m.level1.surrogates, *m.level1.rivals], rival
    ),
    CriterionName.P_CONTROLS_LEVEL2: _relational((SURROGATE, SWAP), nuisance=False),
    CriterionName.RELIABLE_UNITS: lambda m, _, __: level2.reliable_units(m),
    CriterionName.P_RELATIONAL_SURROGATES: _relational((SURROGATE,), nuisance=False),
    CriterionName.P_UNIT_ORDER: _relational((UNIT_ORDER,), nuisance=False),
    CriterionName.P_RELATIONAL_RIVALS: _relational((SWAP,), nuisance=True),
    CriterionName.P_OTHER_TARGETS: lambda m, rival, _: level3.other_targets(m, rival, NOTHING),
    CriterionName.P_RANDOM_DIRECTIONS: lambda m, rival, _: level3.random_directions(m, rival),
    CriterionName.P_BEYOND_NUISANCE: lambda m, rival, _: level3.beyond_nuisance(m, rival),
    CriterionName.P_FRACTION: level4.bootstrapped,
    CriterionName.P_CONTRAST: _relational((SURROGATE, SWAP), nuisance=True),
    CriterionName.P_REPLICATION: lambda m, _, __: level1.replication(m),
}
