"""What the story of a claim is made of: its gates, their criteria, and the numbers behind each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Claim: TypeAlias = tuple[str, str, int, str]
"""Dataset, model, layer, mechanism."""

Kind = Literal[
    "draws", "subject_runs", "blocks", "rivals", "summaries", "methods", "units", "recordings"
]
"""What one number of a distribution is: a draw of a control, a subject-run, a held-out block, a rival, an alignment ×
profile summary, a stripping method, a unit row, or a recording and measure."""

Gives = Literal[
    "",
    "mean",
    "median",
    "smallest",
    "share_above",
    "share_at_least",
    "rank",
    "block_test",
    "partial_conjunction",
    "bootstrap",
]
"""How the criterion's number follows from the distribution.

``mean``, ``median`` and ``smallest`` of its numbers; ``share_above``: the share of its numbers above ``bound``;
``share_at_least``: the share at or above it, missing ones counted as below; ``rank``: the p-value of ``observed`` among
draws (`lpact.stats.draw_p_value`), 1 where ``advantage`` is not above 0; ``block_test``,
``partial_conjunction`` and ``bootstrap``: p-values of those names. Empty: it is shown beside the criterion, which does
not rest on it alone.
"""


@dataclass(frozen=True)
class Distribution:
    """Numbers behind a criterion, ready to be drawn.

    Attributes
    ----------
    title
        What is shown.
    unit_of_value
        What ``observed`` and ``draws`` measure, for an axis.
    observed
        The model's own number among them: what ``gives`` makes of ``draws``, or what draws are held against. None where
        there is none in this unit.
    draws
        The numbers, finite, in a fixed order.
    n_missing
        Numbers that should be there and could not be computed.
    reference
        What the model is compared with: a control, ``nuisance``, a target; empty where nothing is.
    where
        The subject-run it is about, or what it pools.
    note
        How to read it, in a sentence; empty where there is nothing to add.
    labels
        What each of ``draws`` is, in the same order: a subject-run, a draw number, a control.
    bound
        The line that the numbers are held against; None where there is none in this unit.
    marks
        Further values worth a line, by name, such as the score of nuisance.
    p_value
        P-value of this one test; None where it is none.
    advantage
        Mean advantage of the model in similarity, at level 2; None elsewhere.
    """

    title: str
    unit_of_value: str
    observed: float | None
    draws: tuple[float, ...]
    n_missing: int
    reference: str
    where: str
    note: str = ""
    kind: Kind = "draws"
    gives: Gives = ""
    labels: tuple[str, ...] = ()
    bound: float | None = None
    marks: tuple[tuple[str, float], ...] = ()
    p_value: float | None = None
    advantage: float | None = None


@dataclass(frozen=True)
class CriterionStory:
    """One number against one threshold, and what it rests on. ``decisive``: the gate depends on it."""

    criterion: str
    sentence: str
    value: float | None
    relation: str
    threshold: float
    passed: bool
    compared_with: str
    n: int
    distributions: tuple[Distribution, ...] = ()
    decisive: bool = True


@dataclass(frozen=True)
class GateStory:
    """A gate with its criteria."""

    gate: str
    letter: str
    explanation: str
    passed: bool
    criteria: tuple[CriterionStory, ...]


@dataclass(frozen=True)
class Rival:
    """What a failure is put down to, beside the model: two numbers of the same unit."""

    name: str
    score: float
    model_score: float
    unit_of_value: str
    sentence: str


@dataclass(frozen=True)
class ClaimStory:
    """Why a claim got its verdict, number by number.

    ``what_would_change`` says what would have to be otherwise, one sentence a failing criterion in the order of the
    gates; for a claim that passes every gate, what is nearest to failing. ``beaten_by`` is the code of the decision
    table, ``rival`` the same with its score, where it has one.
    """

    claim: Claim
    gate_profile: str
    label: str
    label_explanation: str
    reason: str
    first_failed_gate: str
    beaten_by: str
    raw_score: float | None
    n_subject_runs: int
    p_value: float | None
    q_value: float | None
    gates: tuple[GateStory, ...]
    what_would_change: tuple[str, ...]
    role: str = ""
    rival: Rival | None = None
    primary_metric: str = ""
