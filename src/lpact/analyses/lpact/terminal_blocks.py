"""What L-PACT prints: the source audit, the outline of a study without data, and the positive controls of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from lpact.analyses.base import Audit, Material
from lpact.analyses.explanation import Block
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.tables import audit as audit_tables
from lpact.codes import Reason
from lpact.store import empty
from lpact.tables import RECORDING_KEY, Table
from lpact.wording import counted, fixed, listed, spoken

LINKS = {
    "B": ("has_brain", "brain data"),
    "W": ("has_words", "words"),
    "F": ("has_features", "model features"),
    "S": ("has_controls", "required severe controls"),
    "R": ("has_reliability", "a reliability mode"),
    "K": ("has_coverage", "enough subject-runs and units"),
}
"""Links of the evidence chain: column of the audit, and what it means."""

FINDING = ("dataset", "severity", "reason", "expected", "remedy")
"""Columns that findings of one kind share."""

MAX_SHOWN = 20
NOTABLE_CORRELATION = 0.5
_TRUE = "true_waveform_envelope"
_EXPLANATIONS = {reason.value: reason.explanation for reason in Reason}

Row = dict[str, Any]


# --- The source audit ----------------------------------------------------------------------------


def audit_blocks(audit: Audit, *, full: bool = False) -> list[Block]:
    """The source audit in short tables; with ``full``, every finding has its own lines."""
    return [
        _chain(audit),
        _roles(audit),
        _findings(audit, full=full),
        _possible(audit),
        _correlations(audit),
        _reliability(audit),
        _media(audit),
    ]


def _rows(audit: Audit, table: Table) -> list[Row]:
    return list(audit.tables[table.name].iter_rows(named=True))


def _chain(audit: Audit) -> Block:
    """The six links of every dataset's evidence chain."""
    rows = tuple(
        (
            row["dataset"],
            *("yes" if row[column] else "no" for column, _ in LINKS.values()),
            str(row["n_subject_runs"]),
            str(row["n_brain_units"]),
        )
        for row in _rows(audit, audit_tables.EVIDENCE_FEASIBILITY)
    )
    return Block(
        "Evidence chain",
        (", ".join(f"{link}: {what}" for link, (_, what) in LINKS.items()),),
        ("dataset", *LINKS, "subject-runs", "units"),
        rows,
        frozenset({"subject-runs", "units"}),
    )


def _roles(audit: Audit) -> Block:
    """The role of every dataset after the audit, and why it cannot confirm anything."""
    rows = []
    for row in _rows(audit, audit_tables.EVIDENCE_FEASIBILITY):
        lowered = row["role"] != row["configured_role"]
        role = f"{row['role']} (lowered from {row['configured_role']})" if lowered else row["role"]
        confirmatory = "yes" if row["confirmatory"] else "no"
        rows.append((row["dataset"], role, confirmatory, row["role_detail"]))
    return Block("Roles", (), ("dataset", "role", "confirmatory", "why not"), tuple(rows))


def _findings(audit: Audit, *, full: bool) -> Block:
    """Everything that was excluded, then notes; findings of one kind are listed once unless ``full``."""
    columns = (*FINDING, *(("found", "subject", "session", "run", "field") if full else ()))
    grouped: dict[tuple[str, ...], list[Row]] = {}
    for row in sorted(_rows(audit, audit_tables.FINDINGS), key=lambda row: row["severity"] != "excluded"):
        grouped.setdefault(tuple(str(row[k]) for k in columns), []).append(row)
    lines: list[str] = []
    hidden = 0
    for position, alike in enumerate(grouped.values()):
        first = alike[0]
        if position >= MAX_SHOWN and first["severity"] != "excluded" and not full:
            hidden += 1
            continue
        place = f"sub-{first['subject']}_ses-{first['session']}_run-{first['run']} {first['field']}"
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        others = f" (the first of {len(alike)})" if len({r["found"] for r in alike}) > 1 else ""
        lines += [
            f"{first['severity']}: {first['reason']} in {first['dataset']}, {place} ({first['where']}){more}",
            f"  found: {first['found']}{others}",
            f"  expected: {first['expected']}",
            f"  remedy: {first['remedy']}",
        ]
    if hidden:
        lines.append(f"… and {counted(hidden, 'more kind')} of notes: `lpact audit --all` lists them")
    return Block(f"Findings: {len(grouped) or 'none'}", tuple(lines))


def _possible(audit: Audit) -> Block:
    """How much of what the study asks for is possible, and what is not; equal places and reasons share a row."""
    controls = audit.tables[audit_tables.CONTROL_AVAILABILITY.name]
    controls = controls.group_by("control").agg(pl.col("available").all())
    others = audit.tables[audit_tables.INGREDIENT_AVAILABILITY.name]
    others = others.group_by("kind", "name").agg(pl.col("available").all())
    places: dict[tuple[str, str], list[str]] = {}
    pending: dict[str, None] = {}
    for what, row in missing(audit.tables):
        if row.get("reason") == Reason.FEATURES_NOT_EXTRACTED:
            pending[row.get("name", what)] = None
        elif "role_reason" not in row and "media" not in row:  # blocks of their own
            where = "/".join(str(row[key]) for key in ("dataset", "model", "layer") if key in row)
            why = explained(row["reason"], row.get("detail", ""))
            places.setdefault((what, why), []).append(where)
    names: dict[tuple[str, str], list[str]] = {}
    for (what, why), found in places.items():
        names.setdefault((listed(found, 3), why), []).append(what)
    lines = [
        f"{controls['available'].sum()} of {controls.height} severe controls, {others['available'].sum()} of "
        f"{others.height} nuisance features and mechanisms"
    ]
    if pending:
        lines.append(f"from a language model whose features a run extracts first: {', '.join(pending)}")
    rows = tuple((", ".join(own), where, why) for (where, why), own in names.items())
    return Block("Possible", tuple(lines), ("not possible", "where", "why") if rows else (), rows)


def _correlations(audit: Audit) -> Block:
    """Nearly collinear pairs of mechanisms, which stripping cannot separate."""
    notable = [
        r
        for r in _rows(audit, audit_tables.MECHANISM_CORRELATIONS)
        if r["pearson"] is not None and abs(r["pearson"]) >= NOTABLE_CORRELATION
    ]
    shown = sorted(notable, key=lambda r: -abs(r["pearson"]))[:MAX_SHOWN]
    hidden = len(notable) - len(shown)
    return Block(
        f"Correlations between mechanisms of {NOTABLE_CORRELATION} or more",
        (f"the {MAX_SHOWN} largest of {len(notable)}",) if hidden else () if notable else ("none",),
        ("dataset", "stimulus", "mechanisms", "r", "note"),
        tuple(
            (
                r["dataset"],
                r["stimulus"],
                f"{r['mechanism_a']}, {r['mechanism_b']}",
                fixed(r["pearson"], 2),
                "" if r["reason"] == Reason.OK else str(r["reason"]),
            )
            for r in shown
        ),
        frozenset({"r"}),
    )


def _reliability(audit: Audit) -> Block:
    """Reliability modes: how many recordings can be paired, or why none can."""
    rows = _rows(audit, audit_tables.RELIABILITY_MODES)
    modes = tuple(dict.fromkeys(r["mode"] for r in rows))
    cells = {
        (r["dataset"], r["mode"]): counted(r["n_recordings"], "recording") if r["possible"] else f"no: {r['reason']}"
        for r in rows
    }
    datasets = dict.fromkeys(r["dataset"] for r in rows)
    table = tuple((d, *(cells[d, mode] for mode in modes)) for d in datasets)
    return Block("Brain–brain reliability", (), ("dataset", *modes), table)


def _media(audit: Audit) -> Block:
    """Stimulus media that a dataset lacks, why, and what may replace the sound."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for row in _rows(audit, audit_tables.MEDIA_SUMMARY):
        present, n = row["n_stimuli_present"], row["n_stimuli"]
        if present < n:
            part = f" ({present} of {n} stimuli have it)" if present else ""
            lacking.setdefault((row["dataset"], row["reason"]), []).append(row["media"] + part)
    lines = [
        f"{dataset}: {', '.join(media)}"
        + (" (not released by the source)" if reason == Reason.MEDIA_NOT_RELEASED else "")
        for (dataset, reason), media in lacking.items()
    ]
    proxies = _rows(audit, audit_tables.ACOUSTIC_PROXIES)
    silent = {r["dataset"] for r in proxies if (r["option"], r["status"]) == (_TRUE, "blocked")}
    labels: dict[str, list[str]] = {}
    for row in proxies:
        if row["dataset"] in silent and row["diagnostic"]:
            labels.setdefault(row["dataset"], []).append(row["label"])
    lines = lines or ["none"]
    lines += [f"{d}, as diagnostics only: {'; '.join(own)}" for d, own in labels.items()]
    return Block("Missing stimulus media", tuple(lines))


# --- The outline of a study without data -----------------------------------------------------------


def outline_blocks(config: LPactConfig) -> list[Block]:
    """Levels, gates, rows and claims, from the study file alone."""
    relational, stripping, readout = config.relational, config.stripping, config.readout
    n_summaries = len(relational.alignments) * len(relational.profiles)
    levels = (
        f"1 predictive: {readout.folds} outer folds ({readout.split}), gap of {readout.gap_events} events, metric "
        f"{readout.primary_metric}, {len(config.nuisance.include)} nuisance features",
        f"2 relational: {', '.join(relational.alignments)} × {', '.join(relational.profiles)} = "
        f"{counted(n_summaries, 'summary')}, with {relational.min_units} units or more"
        + (", regions as populations" if relational.region_as == "population" else ""),
        f"3 mechanisms: {', '.join(config.mechanisms.include)}; stripped by {', '.join(stripping.methods)}",
        f"4 reliability: brain–brain ceilings of at least {config.gates.min_reliability:g}",
    )
    gates = tuple(f"{name} = {value}" for name, value in config.gates.model_dump().items())
    return [
        Block("Levels", levels),
        Block("Gates", gates),
        _claims(config),
    ]


def _claims(config: LPactConfig) -> Block:
    n_layers = sum(len(m.layers) for m in config.models)
    n_mechanisms = len(config.mechanisms.include)
    per_dataset = n_layers * n_mechanisms
    n_primary = sum(d.role == "primary" for d in config.datasets)
    line = (
        f"at most {counted(len(config.datasets) * per_dataset, 'claim')}: {counted(len(config.datasets), 'dataset')} × "
        f"{counted(n_layers, 'layer')} of {counted(len(config.models), 'model')} × "
        f"{counted(n_mechanisms, 'mechanism')}; {n_primary * per_dataset:,} of them can be confirmatory"
    )
    return Block("Claims", (line,))


# --- Results ---------------------------------------------------------------------------------------


def result_blocks(material: Material) -> list[Block]:
    """Whether the assay could have detected an effect: one row per positive control."""
    from lpact.analyses.lpact.assays.control_results import control_results

    title = "Can the assay detect anything? Positive controls"
    config = LPactConfig.of(material.config)
    if not config.assay.enabled:
        return [Block(title, ("Switched off ([lpact.assay] enabled = false).",))]
    fits: dict[str, list[bool | None]] = {}
    for found in control_results(material.tables, config.gates):
        as_expected = None if found.passes is None else found.passes == found.expected
        fits.setdefault(found.control, []).append(as_expected)
    rows = []
    for control, results in fits.items():
        known = [result for result in results if result is not None]
        share = f"{sum(known)} of {len(known)}" if known else "–"
        rows.append((control, share, str(results.count(None))))
    columns = ("control", "as expected", "not available")
    lines = ("Details: lpact assay RUN",)
    return [Block(title, lines, columns, tuple(rows), frozenset({"not available"}))]


# --- What was not available -------------------------------------------------------------------------

_MISSING: tuple[tuple[Table, str, pl.Expr], ...] = (
    (audit_tables.EVIDENCE_FEASIBILITY, "confirmatory role", ~pl.col("confirmatory")),
    (audit_tables.CONTROL_AVAILABILITY, "control {control}", ~pl.col("available")),
    (audit_tables.INGREDIENT_AVAILABILITY, "{kind} {name}", ~pl.col("available")),
    (audit_tables.RELIABILITY_MODES, "reliability {mode}", ~pl.col("possible")),
    (audit_tables.MODEL_INVENTORY, "model {model}", ~pl.col("included")),
    (
        audit_tables.MEDIA_SUMMARY,
        "stimulus media {media}",
        pl.col("n_stimuli_present") < pl.col("n_stimuli"),
    ),
    (audit_tables.UNIT_INVENTORY, "recording {subject}/{session}/{run}", ~pl.col("used")),
)
"""Tables of the audit: what their rows are about, and which of them are missing."""


def missing(tables: Mapping[str, pl.DataFrame]) -> Iterator[tuple[str, Row]]:
    """Rows of the audit about what a study asked for and did not get, with its name."""
    for table, what, absent in _MISSING:
        if table.name in tables:
            for row in tables[table.name].filter(absent).iter_rows(named=True):
                name = what.format(**row)
                yield spoken(name) if "mode" in row or "media" in row else name, row


def unavailable(tables: Mapping[str, pl.DataFrame]) -> list[tuple[str, str, str]]:
    """Everything that the source audit did not find or had to leave out: what, where and why."""
    layers: dict[tuple[str, str, str], list[str]] = {}
    for what, row in missing(tables):
        where = ", ".join(row[name] for name in ("dataset", "model") if name in row)
        reason = row.get("role_reason") or row["reason"]
        why = explained(reason, row.get("role_detail") or row.get("detail", ""))
        layers.setdefault((what, where, why), []).append(str(row.get("layer", "")))
    found = []
    for (what, where, why), own in layers.items():
        named = f", {'layer' if len(own) == 1 else 'layers'} {', '.join(own)}" if own[0] else ""
        found.append((what, where + named, why))
    findings = tables.get(audit_tables.FINDINGS.name, empty(audit_tables.FINDINGS))
    for row in findings.iter_rows(named=True):
        place = " ".join(str(row[key]) for key in RECORDING_KEY)
        why = f"{explained(row['reason'])} Found: {row['found']}. Expected: {row['expected']}."
        found.append((f"{row['severity']}: {row['field']}", place, why))
    return found


def explained(reason: str, detail: str = "") -> str:
    """The detail, or what the reason means."""
    return detail or _EXPLANATIONS.get(reason, reason)
