"""What an analysis concludes, as data: terminal, report, explorer and notebook render these records.

An analysis fills them from tables alone; no surface adds a reason or a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lpact.errors import ConfigError, did_you_mean
from lpact.tables import Table

Value: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True)
class Distribution:
    """Numbers behind a criterion, ready to be drawn as one strip of dots."""

    title: str
    unit: str
    """What is shown, and what the numbers measure."""
    values: tuple[float, ...]
    """The numbers, finite, in a fixed order; ``labels`` names each of them."""
    labels: tuple[str, ...] = ()
    n_missing: int = 0
    """Numbers that could not be computed."""
    kind: str = "number"
    """What one number is, singular: "draw", "subject-run", "held-out block" …"""
    observed: float | None = None
    """The model's own number on the same axis."""
    bound: float | None = None
    """The threshold on the same axis."""
    marks: tuple[tuple[str, float], ...] = ()
    """Further named values worth a line, such as the score of the nuisance features."""
    compared_with: str = ""
    """The control, target or bound that the model is compared with."""
    where: str = ""
    """The recording it is about, or what it pools."""
    gives: str = ""
    """How the criterion's number follows from the values ("mean", "rank p-value" …); empty where the criterion does not
    rest on them alone.
    """
    p_value: float | None = None
    note: str = ""
    """How to read it, in one sentence."""

    def __repr__(self) -> str:
        return f"Distribution({self.title!r}, n={len(self.values)})"


@dataclass(frozen=True)
class Criterion:
    """One number and its threshold. A criterion that is not ``decisive`` is for information only."""

    name: str
    sentence: str
    value: float | None
    relation: str
    threshold: float | None
    passed: bool
    n: int = 0
    compared_with: str = ""
    decisive: bool = True
    distributions: tuple[Distribution, ...] = ()

    def __repr__(self) -> str:
        return f"Criterion({self.name!r}, value={self.value}, passed={self.passed})"


@dataclass(frozen=True)
class Gate:
    """A question that a claim must pass, with its criteria; ``letter`` is its short name in tables and figures."""

    name: str
    letter: str
    meaning: str
    passed: bool
    criteria: tuple[Criterion, ...] = ()

    def __repr__(self) -> str:
        return f"Gate({self.name!r}, passed={self.passed}, criteria={len(self.criteria)})"


@dataclass(frozen=True)
class Explanation:
    """Why a claim got its label."""

    analysis: str
    claim: Mapping[str, Value]
    profile: str
    """The analysis, the claim's columns by name, and the set of rules; ``profile`` is empty where there is only one."""
    label: str
    meaning: str
    """The verdict and what it means."""
    reason: str
    """What decided the label, in one sentence."""
    facts: tuple[tuple[str, Value], ...] = ()
    """Further numbers and names, in the order in which they are shown."""
    gates: tuple[Gate, ...] = ()
    """The gates in their order."""
    what_would_change: tuple[str, ...] = ()
    """One sentence per thing that would have to be different for a stronger label; for the strongest label, what is
    nearest to failing.
    """
    rows: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    """Tables with the rows behind it, each with the column values that select them."""

    @property
    def id(self) -> str:
        """The claim as one word: its values joined by slashes."""
        return "/".join(str(value) for value in self.claim.values())

    def __repr__(self) -> str:
        return f"Explanation({self.id!r}, label={self.label!r})"

    def __str__(self) -> str:
        from lpact.report.explanation import explanation_text

        return explanation_text(self)

    def _repr_html_(self) -> str:
        from lpact.report.notebook import explanation_cell

        return explanation_cell(self)


class Claim:
    """One claim of a run: its label, its gates, and why.

    Attributes
    ----------
    id
        The claim as one word, such as ``meg/gpt2/8/surprisal``.
    label
        The verdict.
    reason
        What decided it, in one sentence.
    gates
        The gates in their order, each with its criteria and their numbers.
    """

    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation
        self.id = explanation.id
        self.label = explanation.label
        self.reason = explanation.reason
        self.gates: tuple[Gate, ...] = explanation.gates

    def explain(self) -> Explanation:
        """Everything behind the label, as data; it prints and displays as text."""
        return self._explanation

    def __repr__(self) -> str:
        return f"Claim({self.id!r}, label={self.label!r})"

    def _repr_html_(self) -> str:
        return self._explanation._repr_html_()


@dataclass(frozen=True)
class ClaimTable:
    """Where an analysis keeps its claims, so that every surface can list, filter, compare and count them."""

    table: Table
    """One row per claim (and profile). It has the columns ``label`` and ``reason`` (one sentence)."""
    key: tuple[str, ...]
    """Columns that name a claim, in the order of its id."""
    labels: Mapping[str, str]
    """Every label with its meaning, strongest first."""
    profiles: Mapping[str, str] = field(default_factory=dict)
    """Values of the column ``gate_profile`` with their meaning, the default first; empty where the table has no such
    column.
    """
    gates: Mapping[str, str] = field(default_factory=dict)
    """Columns that say whether a gate passes, by the gate's letter; and ``gate_meanings`` by the same letter."""
    gate_meanings: Mapping[str, str] = field(default_factory=dict)
    score: str = ""
    """Column with the conventional score, if there is one."""
    details: tuple[str, ...] = ()
    """Further columns worth showing and filtering by where claims are listed."""
    evidence: Table | None = None
    """One row per claim, profile, gate and criterion, if the analysis stores its criteria. It has the columns ``gate``,
    ``passed`` and ``sentence``, and may have ``gate_order`` and ``criterion_order``.
    """


@dataclass(frozen=True)
class Outcome:
    """What an analysis says of the whole study under one profile: a short code and what it means."""

    code: str
    meaning: str
    profile: str = ""


@dataclass(frozen=True)
class Conclusion:
    """The answer of an analysis: one headline, the reasons for it, and the outcome under each profile."""

    analysis: str
    headline: str
    why: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()

    def outcome(self, profile: str = "") -> Outcome:
        """The outcome under one profile; without a name, under the first. Raises `ConfigError` if there is none."""
        for own in self.outcomes:
            if profile in ("", own.profile):
                return own
        known = [own.profile for own in self.outcomes if own.profile]
        raise ConfigError(
            f"the analysis '{self.analysis}' has no outcome{f' under {profile!r}' if profile else ''}",
            where="argument 'profile'" if profile else "Conclusion.outcome",
            got=profile or "no outcomes",
            expected=f"one of {', '.join(known)}" if known else "an analysis with outcomes",
            remedy=did_you_mean(profile, known) if known else "read `headline` and `why` instead",
        )

    def _repr_html_(self) -> str:
        from lpact.report.notebook import conclusion_html

        return conclusion_html(self)


@dataclass(frozen=True)
class Block:
    """A titled part of a printed answer: lines of text, then a small table. Terminal and notebook render it.

    ``columns`` in ``right`` are aligned to the right; cells are text already.
    """

    title: str
    lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    right: frozenset[str] = frozenset()


@dataclass(frozen=True)
class DatasetReport:
    """What a dataset supports: blocks to print, and the same as plain values for JSON."""

    blocks: tuple[Block, ...]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class MethodsPart:
    """One part of the Methods section: a heading, and sentences with citations by `lpact.report.methods.cite`."""

    title: str
    sentences: tuple[str, ...]
