"""What a gate is made of: criteria, each one number compared with one threshold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from lpact.analyses.lpact.gates._frames import Claim, Layer
from lpact.codes import Gate

PAPER = "paper"
"""Name of the point rules in every decision table."""

CALIBRATED = "calibrated"
"""Name of the tests in every decision table."""

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


SHARED = frozenset(
    {CriterionName.N_TARGETS, CriterionName.MEAN_RELIABILITY, CriterionName.N_SUBJECT_RUNS}
)
"""Criteria of both profiles, other than the standing of the dataset."""

ILLUSTRATIVE = frozenset(
    {
        CriterionName.TYPICAL_PASS_SHARE,
        CriterionName.TYPICAL_DELTA_REL,
        CriterionName.TYPICAL_DROP,
        CriterionName.TYPICAL_MARGIN,
        CriterionName.TYPICAL_MISMATCH_MARGIN,
    }
)
"""Criteria that are shown with a gate but never stop it: typical values behind a majority vote."""


Bound = tuple[CriterionName, Relation, float]
Found = tuple[float | None, int, str, str, str]
"""Value, n, compared_with, sentence and beaten_by of a criterion."""


@dataclass(frozen=True)
class Criterion:
    """One number and its threshold.

    ``value`` is None where nothing could be computed; the criterion then does not hold. ``n`` counts the rows that the
    number summarises, ``compared_with`` names what set it, ``beaten_by`` explains a failure.
    """

    name: CriterionName
    relation: Relation
    threshold: float
    value: float | None
    n: int
    compared_with: str
    sentence: str
    beaten_by: str

    @classmethod
    def of(cls, bound: Bound, found: Found) -> Criterion:
        """A bound with what was found."""
        name, relation, threshold = bound
        return cls(name, relation, threshold, *found)

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

    @property
    def p_value(self) -> float:
        """The p-value of a test; of any other criterion 0 where it holds and 1 where it does not."""
        if self.value is not None and self.relation == "<=":
            return self.value
        return 0.0 if self.passed else 1.0


@dataclass(frozen=True)
class GateEvidence:
    """A gate with its criteria, from the evidence alone: the role of the dataset is not considered."""

    gate: Gate
    criteria: tuple[Criterion, ...]

    @classmethod
    def of(cls, gate: Gate, bounds: Iterable[Bound], found: Iterable[Found]) -> GateEvidence:
        """A gate from its bounds and what was found for each of them."""
        return cls(gate, tuple(map(Criterion.of, bounds, found)))

    @classmethod
    def empty(cls, gate: Gate, bounds: Iterable[Bound], sentence: str, why: str) -> GateEvidence:
        """A gate for which no row has a number; ``why`` is the code of the cause."""
        nothing = (None, 0, "", sentence, why)
        return cls(gate, tuple(Criterion.of(bound, nothing) for bound in bounds))

    @property
    def passed(self) -> bool:
        """Whether every decisive criterion holds."""
        return self.failure is None

    @property
    def failure(self) -> Criterion | None:
        """The first decisive criterion that does not hold."""
        return next((c for c in self.criteria if c.decisive and not c.passed), None)

    @property
    def p_value(self) -> float:
        """The largest p-value of the decisive criteria (intersection–union)."""
        return max((c.p_value for c in self.criteria if c.decisive), default=1.0)

    def criterion(self, name: CriterionName) -> Criterion:
        """Return one criterion."""
        return next(c for c in self.criteria if c.name == name)


@dataclass(frozen=True)
class ClaimEvidence:
    """All gates of one claim."""

    gates: Mapping[Gate, GateEvidence]

    def __getitem__(self, gate: Gate) -> GateEvidence:
        return self.gates[gate]

    @property
    def severe_level1(self) -> Criterion:
        """Severe-control survival at level 1: the first criterion of its gate."""
        return self[Gate.SEVERE_CONTROL].criteria[0]

    @property
    def severe_level2(self) -> Criterion:
        """Severe-control survival at level 2: the second criterion of its gate."""
        return self[Gate.SEVERE_CONTROL].criteria[1]

    def in_order(self) -> tuple[GateEvidence, ...]:
        """Return the gates in the order in which a failure is reported."""
        return tuple(self[gate] for gate in Gate)

    @property
    def passed(self) -> bool:
        """Whether every gate passes."""
        return self.first_failed is None

    @property
    def first_failed(self) -> GateEvidence | None:
        """The first gate that the evidence does not pass."""
        return next((e for e in self.in_order() if not e.passed), None)


@dataclass(frozen=True)
class Profile:
    """All gates under one gate profile: of layers, and the mechanism gate of claims.

    ``corrected`` says that labels are corrected over all claims.
    """

    name: str
    corrected: bool
    layers: Mapping[Layer, Mapping[Gate, GateEvidence]]
    mechanisms: Mapping[Claim, GateEvidence]

    def of(self, claim: Claim) -> ClaimEvidence:
        """Return the gates of one claim."""
        return ClaimEvidence({**self.layers[claim[:3]], Gate.MECHANISM: self.mechanisms[claim]})
