"""What a gate is made of: criteria, each one number compared with one threshold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from lpact.codes import Gate

NOBODY = "none"
"""``beaten_by`` of a claim that no gate stops."""

Relation = Literal[">", ">=", "<="]


class CriterionName(StrEnum):
    """Every criterion of the decision; ``docs/explanation/decision.md`` explains each."""

    CONFIRMATORY = "confirmatory"
    MEAN_DELTA_NUISANCE = "mean_delta_nuisance"
    MEAN_DELTA_CONTROL = "mean_delta_control"
    SMALLEST_CONTROL_DELTA = "smallest_control_delta"
    SUMMARIES_NOT_REACHED = "summaries_not_reached"
    SUMMARIES_PASSING = "summaries_passing"
    TYPICAL_PASS_SHARE = "typical_pass_share"  # noqa: S105
    TYPICAL_DELTA_REL = "typical_delta_rel"
    N_TARGETS = "n_targets"
    METHODS_AGREEING = "methods_agreeing"
    TYPICAL_DROP = "typical_drop"
    TYPICAL_MARGIN = "typical_margin"
    TYPICAL_MISMATCH_MARGIN = "typical_mismatch_margin"
    MEAN_RELIABILITY = "mean_reliability"
    MEAN_DELTA_FRACTION = "mean_delta_fraction"
    MEAN_FRACTION_OF_CEILING = "mean_fraction_of_ceiling"
    MEDIAN_FRACTION_OF_CEILING = "median_fraction_of_ceiling"
    N_SUBJECT_RUNS = "n_subject_runs"
    POSITIVE_DIRECTION = "positive_direction"
    P_NUISANCE = "p_nuisance"
    P_SURROGATES = "p_surrogates"
    P_RIVALS = "p_rivals"
    P_CONTROLS_LEVEL1 = "p_controls_level1"
    P_CONTROLS_LEVEL2 = "p_controls_level2"
    RELIABLE_UNITS = "reliable_units"
    P_RELATIONAL_SURROGATES = "p_relational_surrogates"
    P_UNIT_ORDER = "p_unit_order"
    P_RELATIONAL_RIVALS = "p_relational_rivals"
    P_OTHER_TARGETS = "p_other_targets"
    P_RANDOM_DIRECTIONS = "p_random_directions"
    P_BEYOND_NUISANCE = "p_beyond_nuisance"
    P_FRACTION = "p_fraction"
    P_CONTRAST = "p_contrast"
    P_REPLICATION = "p_replication"


TESTS = frozenset(
    name for name in CriterionName if name.startswith("p_") or name == CriterionName.RELIABLE_UNITS
)
"""Criteria of the calibrated profile alone."""

SHARED = frozenset(
    {CriterionName.N_TARGETS, CriterionName.MEAN_RELIABILITY, CriterionName.N_SUBJECT_RUNS}
)
"""Criteria that both profiles ask, the dataset's standing left aside."""

ILLUSTRATIVE = frozenset(
    {
        CriterionName.TYPICAL_PASS_SHARE,
        CriterionName.TYPICAL_DELTA_REL,
        CriterionName.TYPICAL_DROP,
        CriterionName.TYPICAL_MARGIN,
        CriterionName.TYPICAL_MISMATCH_MARGIN,
    }
)
"""Criteria that are shown beside a gate and never stop it: typical values behind a majority vote."""


@dataclass(frozen=True)
class Criterion:
    """One number against one threshold.

    ``value`` is None where nothing could be computed; the criterion then does not hold. ``n`` counts the rows that the
    number summarises, ``compared_with`` names what set it, ``beaten_by`` what a failure is put down to.
    """

    name: CriterionName
    value: float | None
    relation: Relation
    threshold: float
    n: int
    compared_with: str
    sentence: str
    beaten_by: str

    @property
    def passed(self) -> bool:
        """Whether the number exists and satisfies the relation."""
        if self.value is None:
            return False
        if self.relation == "<=":
            return self.value <= self.threshold
        return self.value > self.threshold if self.relation == ">" else self.value >= self.threshold

    @property
    def decisive(self) -> bool:
        """Whether the gate depends on it."""
        return self.name not in ILLUSTRATIVE


def nothing_computed(
    bounds: Iterable[tuple[CriterionName, Relation, float]], sentence: str, why: str
) -> tuple[Criterion, ...]:
    """Criteria of a gate for which no row has a number; ``why`` is the code of the cause."""
    return tuple(
        Criterion(name, None, relation, threshold, 0, "", sentence, why)
        for name, relation, threshold in bounds
    )


@dataclass(frozen=True)
class GateEvidence:
    """A gate with its criteria, evaluated on the evidence alone: the dataset's role does not enter."""

    gate: Gate
    criteria: tuple[Criterion, ...]

    @property
    def passed(self) -> bool:
        """Whether every decisive criterion holds."""
        return self.failure is None

    @property
    def failure(self) -> Criterion | None:
        """The first decisive criterion that does not hold."""
        return next((c for c in self.criteria if c.decisive and not c.passed), None)

    def criterion(self, name: CriterionName) -> Criterion:
        """Return one criterion."""
        return next(c for c in self.criteria if c.name == name)


@dataclass(frozen=True)
class ClaimEvidence:
    """All gates of one claim."""

    predictive: GateEvidence
    severe_control: GateEvidence
    relational: GateEvidence
    mechanism: GateEvidence
    ceiling: GateEvidence
    replication: GateEvidence

    @property
    def severe_level1(self) -> Criterion:
        """Severe-control survival at level 1: the first criterion of its gate."""
        return self.severe_control.criteria[0]

    @property
    def severe_level2(self) -> Criterion:
        """Severe-control survival at level 2: the second criterion of its gate."""
        return self.severe_control.criteria[1]

    def in_order(self) -> tuple[GateEvidence, ...]:
        """Return the gates in the order in which a failure is reported."""
        by_gate = {e.gate: e for e in vars(self).values()}
        return tuple(by_gate[gate] for gate in Gate)

    @property
    def first_failed(self) -> GateEvidence | None:
        """The first gate that the evidence does not pass."""
        return next((e for e in self.in_order() if not e.passed), None)
