"""Statements that a text can make about a study, and the verdicts that support them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Self

import polars as pl

from lpact.store import frame, validate
from lpact.tables import Table
from lpact.wording import counted

NONE = "none"


class Statement(StrEnum):
    """A kind of statement: ``meaning`` in words, and whether it is ``never`` supported."""

    meaning: str
    never: bool

    def __new__(cls, code: str, meaning: str, never: bool = False) -> Statement:
        """Make a member from its code and attributes."""
        member = str.__new__(cls, code)
        member._value_, member.meaning, member.never = code, meaning, never
        return member

    CORRESPONDENCE = (
        "correspondence",
        "The model's features are associated with the brain responses; controls are not considered.",
    )
    PREDICTION = (
        "prediction_beyond_controls",
        "The model predicts brain responses beyond nuisance and severe controls.",
    )
    RELATIONAL = (
        "relational_alignment",
        "The model reproduces the relations among brain units better than its controls do.",
    )
    MECHANISM = (
        "mechanism_specific",
        "The prediction of the matching targets depends on the named mechanism in the model's features.",
    )
    CEILING = (
        "reliability_bounded",
        "The model reaches a fraction of the brain–brain ceiling that its controls do not reach.",
    )
    ALIGNMENT = ("alignment", "The model is aligned with the brain.")
    BELOW_BRAINS = (
        "below_brains",
        "The model is further from brains than brains are from each other.",
    )
    INDISTINGUISHABLE = (
        "indistinguishable",
        "The model cannot be told from a brain by this measure on these data.",
    )
    ABOVE_BRAINS = (
        "above_brains",
        "The model is closer to brains than brains are to each other.",
    )
    PATTERN = (
        "alignment_pattern",
        "The model's alignment pattern cannot be told from that of the brain region, by this measure on these data.",
    )
    NOT_SHOWN = (
        "not_shown",
        "Alignment is not shown in this study, under its gates and controls.",
    )
    BRAIN_LIKE = ("brain_like", "The model is brain-like or human-like.", True)
    EQUIVALENCE = (
        "equivalence",
        "Model and brain share a mechanism or code, or do the same; or one reproduces the other.",
        True,
    )
    EXPLANATION = (
        "explanation",
        "The model explains how the brain does it, or is a theory of it.",
        True,
    )
    HOMOLOGY = ("homology", "Parts of model and brain are homologous.", True)
    CAUSATION = (
        "biological_causation",
        "Something in the brain causes, or depends on, what was found in the model.",
        True,
    )
    UNIVERSAL = (
        "universal",
        "A positive statement about all models, brains or languages, or one said to be proven.",
        True,
    )
    UNIVERSAL_NEGATIVE = (
        "universal_negative",
        "Language models in general are not aligned with brains, or have nothing to do with them.",
        True,
    )


@dataclass(frozen=True)
class Verdict(ABC):
    """The verdict of an analysis on one claim.

    ``claim`` has a value for each of ``Verdicts.fields``, or is None for a verdict without a claim.
    """

    claim: tuple[str | int, ...] | None
    label: str

    tests: ClassVar[frozenset[Statement]]
    """Statements that some verdict of the analysis supports."""
    silent: ClassVar[frozenset[str]]
    """Labels that support neither a positive nor a negative statement."""
    order: ClassVar[Sequence[str]]
    """Labels from the one that supports least to the one that supports most."""

    @property
    def confirmatory(self) -> bool:
        """Whether the study is judged by it."""
        return True

    @property
    @abstractmethod
    def name(self) -> str:
        """The claim in words."""

    @property
    @abstractmethod
    def wording(self) -> str:
        """One sentence that the verdict supports."""

    @property
    def strength(self) -> tuple[int, ...]:
        """Sorts verdicts by what they support."""
        return (self.order.index(self.label),)

    @abstractmethod
    def licenses(self, statement: Statement) -> bool:
        """Whether a verdict that is not silent supports a statement of ``tests``."""

    @abstractmethod
    def why_not(self, statement: Statement) -> str:
        """Why it does not support a statement of ``tests``: what follows "The best verdict is …"."""

    def supports(self, statement: Statement) -> bool:
        """Whether this verdict supports ``statement``."""
        testable = statement in self.tests and self.label not in self.silent
        return testable and self.licenses(statement)

    def grounds(self, statement: Statement) -> str:
        """Why a statement is or is not supported."""
        found = f"{self.label} ({self.name})"
        if self.supports(statement):
            return f"The verdict {found} supports it."
        if statement not in self.tests:
            never = "No gate licenses it" if statement.never else "This analysis does not test it"
            return f"{never}, whatever the verdict; the best one is {found}."
        if self.label in self.silent:
            return f"The best verdict is {found}, which supports neither a positive nor a negative."
        return f"The best verdict is {found}{self.why_not(statement)}."


@dataclass(frozen=True)
class LabelVerdict(Verdict):
    """A verdict whose label supports one statement or none. ``reason`` is a sentence."""

    reason: str

    supported: ClassVar[Mapping[str, Statement]]
    """The statement of each label that supports one."""
    meanings: ClassVar[Mapping[str, str]]
    """All labels, strongest first."""

    def __init_subclass__(cls) -> None:
        cls.tests = frozenset(cls.supported.values())
        cls.order = tuple(reversed(list(cls.meanings)))
        cls.silent = frozenset(cls.meanings.keys() - cls.supported)

    @property
    def name(self) -> str:
        """The id of the claim."""
        return "/".join(map(str, self.claim or ()))

    @property
    def wording(self) -> str:
        """The reason."""
        return self.reason

    def licenses(self, statement: Statement) -> bool:
        """Whether it is the statement of this label."""
        return self.supported[self.label] is statement

    def why_not(self, statement: Statement) -> str:
        """What the label means."""
        del statement
        return f": {self.meanings[self.label].rstrip('.')}"


@dataclass(frozen=True)
class Verdicts:
    """All verdicts of an analysis on a run, under one gate profile."""

    claims: tuple[Verdict, ...]
    profile: str = ""

    kind: ClassVar[type[Verdict]]
    fields: ClassVar[tuple[str, ...]]
    """What a claim consists of; in sentences, names of a ``measure``, a ``region`` and the like are found by these."""
    without: ClassVar[tuple[str, str]] = (
        "The run has no verdict, so nothing is supported.",
        "This study has no verdict, and supports no statement.",
    )
    """Reason and wording where no verdict counts."""
    tables: ClassVar[tuple[Table, Table] | None] = None
    """Tables of `tabulate`, if the analysis declares them."""

    @property
    def confirmatory(self) -> tuple[Verdict, ...]:
        """Verdicts that the study is judged by."""
        return tuple(v for v in self.claims if v.confirmatory)

    @property
    def summary(self) -> str:
        """What they are, in a few words."""
        return counted(len(self.confirmatory), "claim")

    def best(self, statement: Statement, among: Iterable[Verdict] | None = None) -> Verdict | None:
        """The verdict that counts for a statement: one that supports it, else the strongest; None without claims."""
        return max(
            self.confirmatory if among is None else among,
            key=lambda v: (v.supports(statement), v.strength),
            default=None,
        )

    def details(self, statement: Statement, verdict: Verdict | None) -> Mapping[str, Any]:
        """Further columns of `tabulate`."""
        del statement, verdict
        return {}

    def said(self, statement: Statement, verdict: Verdict | None) -> tuple[str, str]:
        """Why a statement is or is not supported, and a sentence that is."""
        if verdict is None:
            return self.without
        return verdict.grounds(statement), verdict.wording

    def _cells(self, number: int, verdict: Verdict | None, *, allowed: bool) -> dict[str, Any]:
        statement = self.listed[number]
        reason, wording = self.said(statement, verdict)
        return {
            "statement": statement.value,
            "statement_order": number,
            "meaning": statement.meaning,
            "allowed": allowed,
            "reason": reason,
            "wording": wording,
            **self.details(statement, verdict),
        }

    @property
    def listed(self) -> list[Statement]:
        """Statements that the analysis tests, or that nothing supports."""
        return [own for own in Statement if own.never or own in self.kind.tests]

    def of_claims(self) -> list[dict[str, Any]]:
        """One row per claim and statement."""
        return [
            dict(zip(self.fields, verdict.claim or (), strict=True))
            | {"label": str(verdict.label)}
            | self._cells(i, verdict, allowed=verdict.supports(statement))
            for verdict in self.claims
            for i, statement in enumerate(self.listed)
        ]

    def of_study(self) -> list[dict[str, Any]]:
        """One row per statement: a study supports what its best confirmatory claim supports."""
        rows = []
        for i, statement in enumerate(self.listed):
            # A study shows alignment if any claim does; it fails to show it only if none does.
            negative = statement is Statement.NOT_SHOWN
            best = self.best(Statement.ALIGNMENT if negative else statement)
            allowed = best is not None and best.supports(statement)
            rows.append(
                {
                    "best_label": NONE if best is None else str(best.label),
                    "n_claims": len(self.confirmatory),
                    "n_supporting": sum(v.supports(statement) for v in self.confirmatory),
                    **self._cells(i, best, allowed=allowed),
                }
            )
        return rows


class LabelVerdicts(Verdicts):
    """Verdicts that labels support alone."""

    kind: ClassVar[type[LabelVerdict]]

    @classmethod
    def of_table(cls, claims: pl.DataFrame) -> Self:
        """From the claims of a run."""
        rows = claims.select(*cls.fields, "label", "reason").iter_rows()
        return cls(tuple(cls.kind(tuple(claim), label, reason) for *claim, label, reason in rows))


def tabulate(found: Sequence[Verdicts]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Whether the verdicts support each statement, one row per claim and statement, and one per statement.

    ``found`` are the verdicts under each gate profile. Statements that nothing supports are forbidden in every row.
    """
    claims = [row for own in found for row in own.of_claims()]
    study = [row for own in found for row in own.of_study()]
    if found[0].tables is None:
        return pl.DataFrame(claims), pl.DataFrame(study)
    of_claims, of_study = found[0].tables
    return (
        validate(frame(of_claims, claims), of_claims),
        validate(frame(of_study, study), of_study),
    )
