"""Two runs side by side: what they were made from, and which claims differ.

Claims are compared through the declarations of an analysis (`lpact.analyses.explanation.ClaimTable`). Why a label
differs is what the analysis itself gives as the reason, with the criteria of the gates that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import polars as pl

from lpact.analyses.base import Analysis, Material, analyses_of
from lpact.analyses.explanation import ClaimTable, Value
from lpact.archive.problems import number_pair
from lpact.config import StudyConfig, study_config
from lpact.store import Manifest, RunTables, StoredRun
from lpact.tables import declared_tables

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Kind = Literal["changed", "added", "removed"]
"""``added``: only in the second run; ``removed``: only in the first."""
Claim = tuple[Value, ...]
Row = Mapping[str, Any]
Criteria = Mapping[tuple[str, str], Row]

MOST_NUMBERS = 3
"""Criteria without a change of pass that are listed, those with the largest relative change first."""


@dataclass(frozen=True)
class OptionChange:
    """An option of the configuration; lists of named tables are identified by name: ``datasets[meg].grid.lags_ms``."""

    path: str
    kind: Kind
    before: Json
    after: Json


@dataclass(frozen=True)
class VersionChange:
    """A package or code version; None if the run does not record it."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class InputChange:
    """A source file, by its checksum; None if the run does not have it."""

    dataset: str
    path: str
    kind: Kind
    before: str | None
    after: str | None


@dataclass(frozen=True)
class TableChange:
    """A table with other content, or of one run only.

    ``only_before`` and ``only_after`` count rows whose key only one of the runs has; None if that was not counted.
    """

    table: str
    kind: Kind
    rows_before: int | None = None
    rows_after: int | None = None
    only_before: int | None = None
    only_after: int | None = None


def _changes(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Iterator[tuple[Any, Kind]]:
    """Keys with different values, sorted; 1 and true differ, 1 and 1.0 do not."""
    for key in sorted({*before, *after}):
        if key not in before:
            yield key, "added"
        elif key not in after:
            yield key, "removed"
        else:
            old, new = before[key], after[key]
            if old != new or isinstance(old, bool) != isinstance(new, bool):
                yield key, "changed"


def option_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[OptionChange, ...]:
    """Options that differ, by dotted path. A missing option differs from one that is null."""
    first, second = dict(_leaves(before)), dict(_leaves(after))
    return tuple(
        OptionChange(path, kind, first.get(path), second.get(path))
        for path, kind in _changes(first, second)
    )


def _leaves(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Json]]:
    """Every value with its path. An empty table is a value; a list of named tables is that of its names."""
    for key, inner in value.items():
        here = f"{path}.{key}" if path else key
        if isinstance(inner, Mapping) and inner:
            yield from _leaves(inner, here)
        elif _is_named_list(inner):
            yield here, [table["name"] for table in inner]
            for table in inner:
                rest = {name: part for name, part in table.items() if name != "name"}
                yield from _leaves(rest, f"{here}[{table['name']}]")
        else:
            yield here, inner


def _is_named_list(value: object) -> bool:
    """Whether it is a list of tables with distinct names."""
    if not isinstance(value, list) or not value:
        return False
    if not all(isinstance(table, Mapping) and "name" in table for table in value):
        return False
    return len({str(table["name"]) for table in value}) == len(value)


def version_changes(before: Manifest, after: Manifest) -> tuple[VersionChange, ...]:
    """Code, libraries and plug-ins that differ."""
    first, second = _versions(before), _versions(after)
    return tuple(
        VersionChange(name, first.get(name), second.get(name))
        for name, _ in _changes(first, second)
    )


def _versions(manifest: Manifest) -> dict[str, str]:
    return {
        **manifest.versions,
        **{f"plugin {name}": "in use" for name in manifest.plugins},
        **{f"{name} (code)": code[:16] for name, code in manifest.plugin_code.items()},
        "lpact": manifest.lpact_version,
        "lpact (code)": manifest.lpact_code,
    }


def _input_changes(before: Manifest, after: Manifest) -> tuple[InputChange, ...]:
    first, second = (
        {(file.dataset, file.path): file.sha256 for file in manifest.inputs}
        for manifest in (before, after)
    )
    return tuple(
        InputChange(key[0], key[1], kind, first.get(key), second.get(key))
        for key, kind in _changes(first, second)
    )


def _table_changes(before: StoredRun, after: StoredRun, *, rows: bool) -> Iterator[TableChange]:
    """Tables of one run only, or with other content; with ``rows``, rows that only one run has are counted."""
    first, second = (
        {
            f.path.removesuffix(".parquet"): f.sha256
            for f in run.manifest.outputs
            if f.path.endswith(".parquet")
        }
        for run in (before, after)
    )
    for name, kind in _changes(first, second):
        table = declared_tables().get(name)
        if not rows or table is None or kind != "changed":
            yield TableChange(name, kind)
            continue
        key = list(table.key)
        old, new = (run.table(name).select(key) for run in (before, after))
        only = (
            one.join(other, on=key, how="anti", nulls_equal=True).height
            for one, other in ((old, new), (new, old))
        )
        yield TableChange(name, kind, old.height, new.height, *only)


@dataclass(frozen=True)
class CriterionChange:
    """A criterion of a claim before and after; all None in a run that does not have it."""

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

    @property
    def flipped(self) -> bool:
        """Whether it passes in one run only."""
        return self.passed_before != self.passed_after

    @property
    def sentence(self) -> str:
        """Its number, what that is compared with, its threshold, and whether it passes, before and after."""
        numbers = number_pair(self.before, self.after)
        thresholds = number_pair(self.threshold_before, self.threshold_after)
        passes = (
            {None: "none", True: "yes", False: "no"}[p]
            for p in (self.passed_before, self.passed_after)
        )
        parts = [
            (self.criterion, *numbers),
            ("against", self.compared_before, self.compared_after),
            ("threshold", *thresholds),
            ("passes", *passes),
        ]
        texts = [
            f"{what} {before}"
            if before == after
            else f"{what} {before or 'nothing'} → {after or 'nothing'}"
            for what, before, after in parts
            if before or after
        ]
        return f"{', '.join(texts)}."


@dataclass(frozen=True)
class GateFlip:
    """A gate that only one of the runs passes."""

    letter: str
    meaning: str
    before: bool
    after: bool


@dataclass(frozen=True)
class ClaimChange:
    """A claim of both runs that differs.

    Attributes
    ----------
    claim
        Values of the claim's key columns.
    reason_before, reason_after
        The sentence with which the analysis explains the label.
    score_before, score_after
        The conventional score, if the analysis has one.
    criteria
        Those whose pass changed, in the order of the gates, then those whose numbers changed most.
    n_criteria_changed
        All criteria that differ.
    sentence
        The change in words.
    """

    claim: Claim
    label_before: str
    label_after: str
    reason_before: str
    reason_after: str
    gates: tuple[GateFlip, ...]
    score_before: float | None
    score_after: float | None
    criteria: tuple[CriterionChange, ...]
    n_criteria_changed: int
    sentence: str

    @property
    def verdict_changed(self) -> bool:
        """Whether the label differs."""
        return self.label_before != self.label_after


@dataclass(frozen=True)
class ProfileComparison:
    """Claims of both runs under one gate profile; ``profile`` is empty for an analysis without profiles.

    ``n_unchanged`` claims are the same in every number; ``n_same_verdict`` have the same label and pass the same gates.
    """

    profile: str
    outcome_before: str | None
    outcome_after: str | None
    n_common: int
    n_unchanged: int
    n_same_verdict: int
    claims: tuple[ClaimChange, ...]


@dataclass(frozen=True)
class AnalysisComparison:
    """The claims of one analysis in two runs; ``removed`` are only in the first run, ``added`` only in the second."""

    analysis: str
    key: tuple[str, ...]
    removed: tuple[Claim, ...]
    added: tuple[Claim, ...]
    profiles: tuple[ProfileComparison, ...]


class _Side:
    """One analysis of one of two runs."""

    def __init__(self, analysis: Analysis, study: StudyConfig, run: StoredRun) -> None:
        self.analysis, self.claims, self._run = analysis, analysis.claims, run
        found = analysis.conclude(Material(RunTables(run), study)).outcomes
        self.outcomes = {outcome.profile: outcome.code for outcome in found}

    def rows(self, profile: str) -> dict[Claim, Row]:
        """Rows of the claim table under one profile, by claim; an empty profile means all."""
        rows = self._table(self.claims.table.name, profile)
        return {self._claim(row): row for row in rows.iter_rows(named=True)}

    def criteria(self, profile: str) -> dict[Claim, Criteria]:
        """Criteria by gate and name, in the order of the gates, for every claim."""
        if self.claims.evidence is None:
            return {}
        rows = self._table(self.claims.evidence.name, profile)
        order = [c for c in ("gate_order", "criterion_order") if c in rows.columns]
        found: dict[Claim, dict[tuple[str, str], Row]] = {}
        for row in rows.sort(*self.claims.key, *order).iter_rows(named=True):
            found.setdefault(self._claim(row), {})[row["gate"], row["criterion"]] = row
        return dict(found)

    def _table(self, name: str, profile: str) -> pl.DataFrame:
        table = self._run.table(name)
        return table.filter(gate_profile=profile) if profile else table

    def _claim(self, row: Row) -> Claim:
        return tuple(row[name] for name in self.claims.key)


def _compare_analysis(
    before: _Side, after: _Side, options: Sequence[OptionChange]
) -> AnalysisComparison:
    """What the claims of one analysis differ in, under each of its profiles."""
    old, new = (side.rows("").keys() for side in (before, after))
    profiles = before.claims.profiles or ("",)
    return AnalysisComparison(
        analysis=before.analysis.name,
        key=before.claims.key,
        removed=tuple(sorted(old - new, key=str)),
        added=tuple(sorted(new - old, key=str)),
        profiles=tuple(_compare_profile(before, after, own, options) for own in profiles),
    )


def _compare_profile(
    before: _Side, after: _Side, profile: str, options: Sequence[OptionChange]
) -> ProfileComparison:
    old, new = before.rows(profile), after.rows(profile)
    old_criteria, new_criteria = before.criteria(profile), after.criteria(profile)
    common = [claim for claim in old if claim in new]
    changes = []
    for claim in common:
        criteria = list(_criteria(old_criteria.get(claim, {}), new_criteria.get(claim, {})))
        if criteria or old[claim] != new[claim]:
            rows = old[claim], new[claim]
            changes.append(_claim_change(after.claims, claim, rows, criteria, options))
    return ProfileComparison(
        profile=profile,
        outcome_before=before.outcomes.get(profile),
        outcome_after=after.outcomes.get(profile),
        n_common=len(common),
        n_unchanged=len(common) - len(changes),
        n_same_verdict=len(common) - sum(c.verdict_changed or bool(c.gates) for c in changes),
        claims=tuple(changes),
    )


def _criteria(old: Criteria, new: Criteria) -> Iterator[CriterionChange]:
    """Criteria that differ, in the order of the gates."""
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key, {}), new.get(key, {})
        pairs = [
            (before.get(name), after.get(name))
            for name in ("value", "passed", "threshold", "compared_with")
        ]
        if any(then != now for then, now in pairs):
            value, passed, threshold, (rival, now) = pairs
            yield CriterionChange(*key, *value, *passed, *threshold, rival or "", now or "")


def _claim_change(
    table: ClaimTable,
    claim: Claim,
    rows: tuple[Row, Row],
    criteria: list[CriterionChange],
    options: Sequence[OptionChange],
) -> ClaimChange:
    before, after = rows
    flips = tuple(
        GateFlip(letter, table.gate_meanings.get(letter, ""), before[column], after[column])
        for letter, column in table.gates.items()
        if before[column] != after[column]
    )
    flipped = [own for own in criteria if own.flipped]
    rest = sorted((own for own in criteria if not own.flipped), key=_size, reverse=True)
    shown = (*flipped, *rest[:MOST_NUMBERS])
    return ClaimChange(
        claim=claim,
        label_before=before["label"],
        label_after=after["label"],
        reason_before=before["reason"],
        reason_after=after["reason"],
        gates=flips,
        score_before=before.get(table.score),
        score_after=after.get(table.score),
        criteria=shown,
        n_criteria_changed=len(criteria),
        sentence=_sentence(before, after, flips, shown, options),
    )


def _size(change: CriterionChange) -> float:
    """Relative change of a number, from 0 to 2; 2 if only one run has it."""
    if change.before is None or change.after is None:
        return 0.0 if change.before == change.after else 2.0
    larger = max(abs(change.before), abs(change.after))
    return abs(change.after - change.before) / larger if larger else 0.0


def _sentence(
    before: Row,
    after: Row,
    flips: Sequence[GateFlip],
    criteria: Sequence[CriterionChange],
    options: Sequence[OptionChange],
) -> str:
    """Label, gates, the first criterion, and the reasons that the analysis gives."""
    changed = before["label"] != after["label"]
    parts = [
        f"The verdict changes from {before['label']} to {after['label']}"
        if changed
        else f"The verdict stays {after['label']}"
    ]
    parts += [f"gate {f.letter} {'now passes' if f.after else 'no longer passes'}" for f in flips]
    sentences = ["; ".join(parts) + "."]
    sentences += [own.sentence for own in criteria[:1]]
    if changed or (not criteria and before["reason"] != after["reason"]):
        sentences += [f"Reason before: {before['reason']}", f"Reason now: {after['reason']}"]
    if changed and options and not any(own.flipped for own in criteria):
        sentences.append(f"Changed options: {', '.join(own.path for own in options)}.")
    return " ".join(sentences)


@dataclass(frozen=True)
class Comparison:
    """The differences between two runs, sorted by name.

    ``analyses`` are those of both runs; ``analyses_removed`` are only in the first run, ``analyses_added`` only in the
    second.
    """

    study_before: str
    study_after: str
    options: tuple[OptionChange, ...]
    versions: tuple[VersionChange, ...]
    inputs: tuple[InputChange, ...]
    tables: tuple[TableChange, ...]
    analyses_removed: tuple[str, ...]
    analyses_added: tuple[str, ...]
    analyses: tuple[AnalysisComparison, ...]

    @property
    def identical(self) -> bool:
        """Whether nothing differs."""
        return self.study_before == self.study_after and not any(
            (self.options, self.versions, self.inputs, self.tables)
        )

    def __str__(self) -> str:
        from lpact.archive.diff_text import comparison_text

        return comparison_text(self)


def diff_runs(
    before: str | Path | StoredRun, after: str | Path | StoredRun, *, rows: bool = True
) -> Comparison:
    """What two finished runs differ in, whatever their datasets and models.

    Parameters
    ----------
    before, after
        Folders of runs, archives of `lpact.archive.export_run`, or open runs.
    rows
        Whether to count the rows that only one run has, which reads every table that differs.
    """
    from lpact.archive.unpack import opened_run

    with ExitStack() as stack:
        first, second = (
            run if isinstance(run, StoredRun) else StoredRun(stack.enter_context(opened_run(run)))
            for run in (before, after)
        )
        options = option_changes(first.manifest.config, second.manifest.config)
        old, new = _sides(first), _sides(second)
        return Comparison(
            study_before=first.manifest.study,
            study_after=second.manifest.study,
            options=options,
            versions=version_changes(first.manifest, second.manifest),
            inputs=_input_changes(first.manifest, second.manifest),
            tables=tuple(_table_changes(first, second, rows=rows)),
            analyses_removed=tuple(name for name in old if name not in new),
            analyses_added=tuple(name for name in new if name not in old),
            analyses=tuple(
                _compare_analysis(old[name], new[name], options) for name in old if name in new
            ),
        )


def _sides(run: StoredRun) -> dict[str, _Side]:
    study = study_config(run.manifest.config, where=f"{run.root}, manifest.json")
    return {name: _Side(own, study, run) for name, own in analyses_of(study).items()}


def comparison_json(comparison: Comparison) -> dict[str, Json]:
    """The comparison as plain JSON values, with the values of its properties."""
    return cast("dict[str, Json]", _json(comparison))


def _json(value: Any) -> Json:
    if is_dataclass(value):
        derived = [n for n, own in vars(type(value)).items() if isinstance(own, property)]
        names = [*(own.name for own in fields(value)), *derived]
        return {name: _json(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [_json(inner) for inner in value]
    if isinstance(value, dict):
        return {str(key): _json(inner) for key, inner in value.items()}
    return cast("Json", value)
