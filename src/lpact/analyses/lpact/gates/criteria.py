"""What a gate is made of: criteria, each one number compared with one threshold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from lpact.analyses.lpact.gates.keys import Claim, Layer
from lpact.codes import Gate, RowLabel
from lpact.wording import counted, number

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


SHARED = frozenset({CriterionName.N_TARGETS, CriterionName.MEAN_RELIABILITY, CriterionName.N_SUBJECT_RUNS})
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


@dataclass(frozen=True)
class Comparison:
    """One test: the rival, the model's advantage, and its p-value."""

    against: str
    advantage: float
    p_value: float
    n: int
    n_draws: int = 0
    """Draws of which the p-value is a rank; 0 for other tests."""


Bound = tuple[CriterionName, Relation, float]
Found = tuple[float | None, int, str, str, str]
"""Value, n, compared_with, sentence and beaten_by of a criterion."""
Tests = tuple[CriterionName, Sequence[Comparison], str, str, str | None]
"""Criterion, its tests, the alternative ("the score is above that of"), the method, and the sentence where there is no
test; None: without a rival, nothing else could explain the result."""


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

    @classmethod
    def of_tests(cls, tests: Tests, alpha: float) -> Criterion:
        """The test with the largest p-value: the intersection–union of all."""
        name, compared, what, by, nothing = tests
        bound: Bound = (name, "<=", alpha)
        if not compared:
            if nothing is None:
                unrivalled = "There is no rival; only the surrogates are compared."
                return cls(*bound, 0.0, 0, "", unrivalled, "")
            return cls(*bound, None, 0, "", nothing, str(RowLabel.NOT_COMPUTED))
        test = min(compared, key=lambda test: (-test.p_value, test.advantage, test.against))
        of = f", the hardest of {len(compared)}" if len(compared) > 1 else ""
        against = f"{what} {test.against.replace('unit_order', 'unit order')}{of}"
        shown = test.p_value <= alpha
        said = against[:1].upper() + against[1:] if shown else f"It is not shown that {against}"
        beyond = ""
        if test.n_draws and test.p_value < 1 / (1 + test.n_draws):
            beyond = f", beyond all {test.n_draws} draws by their mean and spread"
        sentence = (
            f"{said}: {number(test.advantage)} on average, p = {number(test.p_value)} by {by}{beyond} "
            f"(at most {number(alpha)} is needed)."
        )
        return cls(*bound, test.p_value, test.n, test.against, sentence, test.against)

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

    @classmethod
    def of_tests(cls, gate: Gate, tests: Iterable[Tests], alpha: float, *first: Criterion) -> GateEvidence:
        """A gate of tests at one level, after criteria that are no tests."""
        return cls(gate, (*first, *(Criterion.of_tests(own, alpha) for own in tests)))

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
    """All gates of one claim, in the order in which a failure is reported."""

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

    @property
    def passed(self) -> bool:
        """Whether every gate passes."""
        return self.first_failed is None

    @property
    def first_failed(self) -> GateEvidence | None:
        """The first gate that the evidence does not pass."""
        return next((e for e in self.gates.values() if not e.passed), None)


@dataclass(frozen=True)
class GateProfile:
    """All gates under one gate profile: of layers, and the mechanism gate of claims.

    ``corrected`` says that labels are corrected over all claims.
    """

    name: str
    corrected: bool
    layers: Mapping[Layer, Mapping[Gate, GateEvidence]]
    mechanisms: Mapping[Claim, GateEvidence]

    def of(self, claim: Claim) -> ClaimEvidence:
        """Return the gates of one claim."""
        found = {**self.layers[claim[:3]], Gate.MECHANISM: self.mechanisms[claim]}
        return ClaimEvidence({gate: found[gate] for gate in Gate})


def mean_over(n_subject_runs: int, n_left_out: int = 0) -> str:
    """The scope of a mean, and how many subject-runs are missing from it."""
    over = f"mean over {counted(n_subject_runs, 'subject-run')}"
    return f"({over}; {n_left_out} more not computed)" if n_left_out else f"({over})"


def rivalry(model: float | None, rival_name: str, rival: float | None, difference: float) -> str:
    """The scores of the model and its rival, and their difference, which rounding of the scores would hide."""
    return f"The model scores {number(model)}, {rival_name} {number(rival)}: a difference of {number(difference)}"


def joined(prefix: str, sentence: str) -> str:
    """Return ``prefix: sentence`` as one sentence."""
    return f"{prefix}: {sentence[:1].lower()}{sentence[1:]}"
