"""What two runs differ in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from lpact.analyses.lpact.claim_story.model import Claim

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Kind = Literal["changed", "added", "removed"]
"""``added``: only in the second run; ``removed``: only in the first."""


@dataclass(frozen=True)
class OptionChange:
    """An option of the configuration; lists of named tables are told apart by name: ``datasets[meg].grid.lags_ms``."""

    path: str
    kind: Kind
    before: Json
    after: Json


@dataclass(frozen=True)
class VersionChange:
    """Something that the numbers were computed with; None where the run does not name it."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class InputChange:
    """A source file, by its checksum; None where the run does not have it."""

    dataset: str
    path: str
    kind: Kind
    before: str | None
    after: str | None


@dataclass(frozen=True)
class TableChange:
    """A table whose content differs, or that only one run has."""

    table: str
    kind: Kind


@dataclass(frozen=True)
class CriterionChange:
    """A criterion of a claim before and after. A run that does not ask it has None everywhere."""

    gate: str
    criterion: str
    before: float | None
    after: float | None
    passed_before: bool | None
    passed_after: bool | None
    threshold_before: float | None
    threshold_after: float | None
    compared_before: str
    compared_after: str
    sentence: str

    @property
    def flipped(self) -> bool:
        """Whether it holds in one run and not in the other."""
        return self.passed_before != self.passed_after


@dataclass(frozen=True)
class GateFlip:
    """A gate that only one of the runs passes."""

    gate: str
    letter: str
    before: bool
    after: bool


@dataclass(frozen=True)
class ClaimChange:
    """A claim of both runs in which something differs.

    ``criteria`` holds those whose pass changed, in the order of the gates, then those whose numbers changed most;
    ``n_criteria_changed`` counts all whose number or pass changed.
    """

    claim: Claim
    label_before: str
    label_after: str
    gates: tuple[GateFlip, ...]
    raw_score_before: float | None
    raw_score_after: float | None
    beaten_by_before: str
    beaten_by_after: str
    criteria: tuple[CriterionChange, ...]
    n_criteria_changed: int
    sentence: str

    @property
    def verdict_changed(self) -> bool:
        """Whether the label differs."""
        return self.label_before != self.label_after


@dataclass(frozen=True)
class ProfileComparison:
    """Claims of both runs under one gate profile; None where a run has no outcome of that profile.

    ``n_unchanged`` claims are the same in every number; ``n_same_verdict`` have the same label and pass the same gates.
    """

    gate_profile: str
    outcome_before: str | None
    outcome_after: str | None
    n_common: int
    n_unchanged: int
    n_same_verdict: int
    claims: tuple[ClaimChange, ...]


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side. Everything is sorted by name."""

    study_before: str
    study_after: str
    options: tuple[OptionChange, ...]
    versions: tuple[VersionChange, ...]
    inputs: tuple[InputChange, ...]
    tables: tuple[TableChange, ...]
    claims_removed: tuple[Claim, ...]
    """Claims only in the first run."""
    claims_added: tuple[Claim, ...]
    """Claims only in the second run."""
    profiles: tuple[ProfileComparison, ...]

    @property
    def identical(self) -> bool:
        """Whether nothing differs."""
        return self.study_before == self.study_after and not any(
            (
                self.options,
                self.versions,
                self.inputs,
                self.tables,
                self.claims_removed,
                self.claims_added,
                *(p.claims for p in self.profiles),
            )
        )
