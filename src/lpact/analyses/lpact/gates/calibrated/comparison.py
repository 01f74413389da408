"""Tests as criteria: a p-value compared with the level of its gate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lpact.analyses.lpact.gates.criteria import Criterion, CriterionName
from lpact.analyses.lpact.gates.wording import number
from lpact.codes import RowLabel


@dataclass(frozen=True)
class Comparison:
    """One test: what the model was compared with, by how much it is ahead, and how likely that is by chance."""

    against: str
    advantage: float
    p_value: float
    n: int
    n_draws: int = 0
    """Draws that the p-value is a rank among; 0 where it is none."""


def hardest(tests: Iterable[Comparison]) -> Comparison | None:
    """The one with the largest p-value: the intersection–union of all. Ties go to the first in the alphabet."""
    ranked = sorted(tests, key=lambda test: (-test.p_value, test.advantage, test.against))
    return ranked[0] if ranked else None


def criterion(
    name: CriterionName, tests: Iterable[Comparison], alpha: float, what: str, by: str, nothing: str
) -> Criterion:
    """The hardest of several tests as a criterion.

    ``what`` is the alternative ("the score is above that of"), ``by`` names the method, ``nothing`` is said where
    there is no test.
    """
    tests = list(tests)
    test = hardest(tests)
    if test is None:
        return Criterion(name, None, "<=", alpha, 0, "", nothing, str(RowLabel.NOT_COMPUTED))
    of = f", the hardest of {len(tests)}" if len(tests) > 1 else ""
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
    return Criterion(name, test.p_value, "<=", alpha, test.n, test.against, sentence, test.against)


def unrivalled(name: CriterionName, alpha: float) -> Criterion:
    """A criterion for which no rival is at hand, so that nothing could have explained the result instead."""
    sentence = "No rival is at hand; the surrogates stand alone."
    return Criterion(name, 0.0, "<=", alpha, 0, "", sentence, "")
