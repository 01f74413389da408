"""Tests as criteria: a p-value compared with the level of its gate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lpact.analyses.lpact.gates.criteria import Criterion, CriterionName
from lpact.codes import RowLabel
from lpact.wording import number


@dataclass(frozen=True)
class Comparison:
    """One test: the rival, the model's advantage, and its p-value."""

    against: str
    advantage: float
    p_value: float
    n: int
    n_draws: int = 0
    """Draws of which the p-value is a rank; 0 for other tests."""


def criterion(
    name: CriterionName, tests: Iterable[Comparison], alpha: float, what: str, by: str, nothing: str
) -> Criterion:
    """The test with the largest p-value as a criterion: the intersection–union of all.

    ``what`` is the alternative ("the score is above that of"), ``by`` names the method, ``nothing`` is the sentence
    where there is no test.
    """
    tests = sorted(tests, key=lambda test: (-test.p_value, test.advantage, test.against))
    if not tests:
        return Criterion(name, "<=", alpha, None, 0, "", nothing, str(RowLabel.NOT_COMPUTED))
    test = tests[0]
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
    return Criterion(name, "<=", alpha, test.p_value, test.n, test.against, sentence, test.against)


def unrivalled(name: CriterionName, alpha: float) -> Criterion:
    """A criterion without any rival that could explain the result instead."""
    sentence = "There is no rival; only the surrogates are compared."
    return Criterion(name, "<=", alpha, 0.0, 0, "", sentence, "")
