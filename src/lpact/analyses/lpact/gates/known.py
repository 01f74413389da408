"""What need not be found out again where a study is decided several times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lpact.analyses.lpact.gates._frames import Layer
from lpact.analyses.lpact.gates.claims import Claim
from lpact.analyses.lpact.gates.criteria import GateEvidence
from lpact.codes import Gate

if TYPE_CHECKING:
    from lpact.analyses.lpact.gates.calibrated.evidence import CalibratedEvidence
    from lpact.analyses.lpact.gates.calibrated.predictive import PredictiveTests
    from lpact.analyses.lpact.gates.evidence import Evidence


@dataclass(frozen=True)
class Known:
    """Results of an earlier decision that still hold.

    Attributes
    ----------
    paper, unchanged
        Point rules as they were evaluated before, and the gates whose rows and thresholds have not changed since.
    tests
        Tests as they were made before, where only thresholds have changed since.
    level1
        Tests of level 1, by layer, from these very tables and thresholds.
    mechanisms
        Tests of gate M, by claim, where their rows and thresholds have not changed.
    block_tests
        P-values of tests over blocks by everything that they depend on. New ones are added.
    enough
        For those who ask only whether a claim is integrated: a layer with a p-value above it at level 1 is not tested
        at level 2, nor one with such a p-value anywhere at level 3. What is not tested is not passed.
    """

    paper: Evidence | None = None
    unchanged: frozenset[Gate] = frozenset()
    tests: CalibratedEvidence | None = None
    level1: Mapping[Layer, PredictiveTests] = field(default_factory=dict)
    mechanisms: Mapping[Claim, GateEvidence] = field(default_factory=dict)
    block_tests: dict[tuple[object, ...], float] = field(default_factory=dict)
    enough: float = 1.0

    def still(self, *gates: Gate) -> Evidence | None:
        """The earlier point rules, if none of these gates has changed."""
        return self.paper if self.unchanged.issuperset(gates) else None
