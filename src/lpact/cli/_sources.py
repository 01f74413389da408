"""What the source audit found, in short tables: shared by ``lpact audit`` and ``lpact plan``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lpact.cli._layout import Grid
from lpact.cli._render import counted, heading, number, say, show
from lpact.codes import Reason

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from lpact.run.audit import StudyAudit

LINKS = {
    "B": ("has_brain", "brain data"),
    "W": ("has_words", "words"),
    "F": ("has_features", "model features"),
    "S": ("has_controls", "required severe controls"),
    "R": ("has_reliability", "a reliability mode"),
    "K": ("has_coverage", "enough subject-runs and units"),
}
"""Links of the evidence chain."""

FINDING = ("dataset", "severity", "reason", "expected", "remedy")
"""Columns that make two findings of one kind."""

MAX_FINDINGS = 20
NOTABLE_CORRELATION = 0.5
_MARKS = {"yes": "green", "no": "red"}
_TRUE = "true_waveform_envelope"

Rows = list[dict[str, Any]]


def audit_rows(audit: StudyAudit, table: str) -> Rows:
    """Rows of one of the audit's tables, by its short name."""
    frame: pl.DataFrame = audit.tables[f"audits/{table}"]
    return list(frame.iter_rows(named=True))


def show_chain(out: Console, audit: StudyAudit) -> None:
    """The six links of every dataset's evidence chain, and what is missing."""
    heading(out, "Evidence chain")
    numbers = frozenset({"subject-runs", "units"})
    chain = Grid(("dataset", *LINKS, "subject-runs", "units"), right=numbers, styles=_MARKS)
    for row in audit_rows(audit, "lpact_evidence_feasibility"):
        flags = ["yes" if row[column] else "no" for column, _ in LINKS.values()]
        chain.add(row["dataset"], *flags, row["n_subject_runs"], row["n_brain_units"])
    show(out, chain)
    say(out, ", ".join(f"{link}: {what}" for link, (_, what) in LINKS.items()), indent=2)


def show_roles(out: Console, audit: StudyAudit) -> None:
    """The role of every dataset after the audit, and why it cannot confirm anything."""
    heading(out, "Roles")
    roles = Grid(("dataset", "role", "confirmatory", "why not"))
    for row in audit_rows(audit, "lpact_evidence_feasibility"):
        lowered = row["role"] != row["configured_role"]
        role = f"{row['role']} (lowered from {row['configured_role']})" if lowered else row["role"]
        confirmatory = "yes" if row["confirmatory"] else "no"
        roles.add(row["dataset"], role, confirmatory, row["role_detail"])
    show(out, roles)


def show_findings(out: Console, audit: StudyAudit, *, every: bool = False) -> None:
    """What was left out, all of it, then what deserves a look; findings of one kind are told once.

    With ``every``, each is told by itself.
    """
    rows = audit_rows(audit, "lpact_findings")
    columns = (*FINDING, *(("found", "subject", "session", "run", "field") if every else ()))
    grouped: dict[tuple[str, ...], Rows] = {}
    for row in sorted(rows, key=lambda row: row["severity"] != "excluded"):
        grouped.setdefault(tuple(str(row[k]) for k in columns), []).append(row)
    heading(out, f"Findings: {len(grouped) or 'none'}")
    hidden = 0
    for place_in_list, alike in enumerate(grouped.values()):
        first = alike[0]
        if place_in_list >= MAX_FINDINGS and first["severity"] != "excluded" and not every:
            hidden += 1
            continue
        place = f"sub-{first['subject']}_ses-{first['session']}_run-{first['run']} {first['field']}"
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        head = f"{first['severity']}: {first['reason']} in {first['dataset']}"
        say(out, f"{head}, {place} ({first['where']}){more}", indent=2)
        others = f" (the first of {len(alike)})" if len({r["found"] for r in alike}) > 1 else ""
        say(out, f"found: {first['found']}{others}", indent=4)
        say(out, f"expected: {first['expected']}", indent=4)
        say(out, f"remedy: {first['remedy']}", indent=4)
    if hidden:
        say(
            out,
            f"… and {counted(hidden, 'kind')} of notes more: `lpact audit --all` shows each",
            indent=2,
        )


def show_controls(out: Console, audit: StudyAudit) -> None:
    """Severe controls that are possible and impossible; equal reasons are told once."""
    rows = audit_rows(audit, "lpact_control_availability")
    everywhere = {r["control"] for r in rows} - {r["control"] for r in rows if not r["available"]}
    heading(out, "Severe controls")
    possible = [name for name in dict.fromkeys(r["control"] for r in rows) if name in everywhere]
    say(out, f"possible everywhere: {', '.join(possible) or 'none'}", indent=2)
    told = [
        (r["control"], f"{r['dataset']}/{r['model']}/{r['layer']}", _why(r))
        for r in rows
        if not r["available"]
    ]
    _show_impossible(out, "control", told)


def show_ingredients(out: Console, audit: StudyAudit) -> None:
    """Nuisance features and mechanisms that a dataset cannot offer."""
    rows = audit_rows(audit, "lpact_ingredient_availability")
    pending = [r for r in rows if r["reason"] == Reason.FEATURES_NOT_EXTRACTED]
    missing = [r for r in rows if not r["available"] and r not in pending]
    heading(out, "Nuisance features and mechanisms")
    if not missing and not pending:
        say(out, f"all {len({(r['kind'], r['name']) for r in rows})} available", indent=2)
    if pending:
        names = ", ".join(dict.fromkeys(r["name"] for r in pending))
        say(
            out,
            f"to come, from a language model whose features a run extracts first: {names}",
            indent=2,
        )
    told = [(f"{r['kind']} {r['name']}", r["dataset"], _why(r)) for r in missing]
    _show_impossible(out, "ingredient", told)


def show_correlations(out: Console, audit: StudyAudit) -> None:
    """Pairs of mechanisms that go together: nearly collinear ones cannot be told apart by stripping."""
    rows = [
        r
        for r in audit_rows(audit, "lpact_mechanism_correlations")
        if r["pearson"] is not None and abs(r["pearson"]) >= NOTABLE_CORRELATION
    ]
    heading(out, f"Correlations between mechanisms of {NOTABLE_CORRELATION} or more")
    if not rows:
        say(out, "none", indent=2)
        return
    grid = Grid(("dataset", "stimulus", "mechanisms", "r", "note"), right=frozenset({"r"}))
    for row in sorted(rows, key=lambda r: -abs(r["pearson"]))[:MAX_FINDINGS]:
        note = "" if row["reason"] == Reason.OK else str(row["reason"])
        pair = f"{row['mechanism_a']}, {row['mechanism_b']}"
        grid.add(row["dataset"], row["stimulus"], pair, number(row["pearson"], 2), note)
    show(out, grid)
    if len(rows) > MAX_FINDINGS:
        say(out, f"… and {len(rows) - MAX_FINDINGS} more", indent=2)


def show_reliability(out: Console, audit: StudyAudit) -> None:
    """Reliability modes: how many recordings can be paired, or why none can."""
    heading(out, "Brain–brain reliability")
    rows = audit_rows(audit, "lpact_reliability_modes")
    modes = list(dict.fromkeys(r["mode"] for r in rows))
    grid = Grid(("dataset", *modes))
    for dataset in dict.fromkeys(r["dataset"] for r in rows):
        by_mode = {r["mode"]: r for r in rows if r["dataset"] == dataset}
        grid.add(dataset, *(_mode(by_mode[mode]) for mode in modes))
    show(out, grid)


def show_media(out: Console, audit: StudyAudit) -> None:
    """Stimulus media that a dataset lacks, why, and what may stand in for the sound."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for row in audit.tables["controls/main_table_stimulus_media_mapping"].iter_rows(named=True):
        if row["n_stimuli_present"] < row["n_stimuli"]:
            n_there, n_all = row["n_stimuli_present"], row["n_stimuli"]
            part = f" ({n_there} of {n_all} stimuli have it)" if n_there else ""
            lacking.setdefault((row["dataset"], row["reason"]), []).append(row["media"] + part)
    heading(out, "Stimulus media missing")
    for (dataset, reason), media in lacking.items():
        boundary = " (not released: a boundary of the source)"
        told = boundary if reason == Reason.MEDIA_NOT_RELEASED else ""
        say(out, f"{dataset}: {', '.join(media)}{told}", indent=2)
    if not lacking:
        say(out, "none", indent=2)
    for dataset, labels in _stand_ins(audit).items():
        say(out, f"{dataset}, as diagnostics only: {'; '.join(labels)}", indent=2)


def _stand_ins(audit: StudyAudit) -> dict[str, list[str]]:
    """What may stand in for sound, for datasets that lack it, under the names that it must have."""
    rows = list(audit.tables["controls/acoustic_proxy_alternatives"].iter_rows(named=True))
    silent = {r["dataset"] for r in rows if (r["option"], r["status"]) == (_TRUE, "blocked")}
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["dataset"] in silent and row["diagnostic"]:
            found.setdefault(row["dataset"], []).append(row["label"])
    return found


def _mode(row: Mapping[str, Any]) -> str:
    return counted(row["n_recordings"], "recording") if row["possible"] else f"no: {row['reason']}"


def _why(row: Mapping[str, Any]) -> str:
    from lpact.codes import Reason

    explanations = {reason.value: reason.explanation for reason in Reason}
    return str(row["detail"]) or explanations[row["reason"]]


def _show_impossible(out: Console, what: str, missing: Iterable[tuple[str, str, str]]) -> None:
    """Names with the same reason and places on one line."""
    places: dict[tuple[str, str], list[str]] = {}
    for name, place, why in missing:
        places.setdefault((name, why), []).append(place)
    names: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for (name, why), found in places.items():
        names.setdefault((tuple(found), why), []).append(name)
    if not names:
        return
    grid = Grid((f"impossible {what}", "where", "why"))
    for (where, why), own in names.items():
        grid.add(", ".join(own), _places(where), why)
    show(out, grid)


def _places(places: Sequence[str], most: int = 3) -> str:
    listed = ", ".join(places[:most])
    return listed if len(places) <= most else f"{listed} and {len(places) - most} more"
