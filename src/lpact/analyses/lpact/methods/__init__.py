"""L-PACT's own parts of the Methods section: from recordings to the decision, each with the run's parameters."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lpact.analyses.explanation import MethodsPart
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.methods import decision, levels
from lpact.analyses.lpact.methods.words import FRAMEWORK, MODES, Tables
from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    FINDINGS,
    INGREDIENT_AVAILABILITY,
    MEDIA_SUMMARY,
    MODEL_INVENTORY,
    RELIABILITY_MODES,
    UNIT_INVENTORY,
)
from lpact.codes import Reason
from lpact.report.methods import (
    amount,
    cite,
    listed,
    names,
    numbers,
    option_sentences,
    plain,
    spread,
)

_WHY = {reason.value: reason.explanation for reason in Reason}


def methods_parts(config: LPactConfig, tables: Tables) -> list[MethodsPart]:
    """Parts in their order; ``tables`` may lack any table, and the text then says less."""
    made = {
        "Levels of evidence": _evidence(),
        "Recordings": _recordings_used(config, tables),
        "Nuisance features": levels.nuisance(config, tables),
        "Severe controls": levels.controls(config, tables),
        "Relational patterns": levels.relational(config),
        "Mechanism stripping": levels.stripping(config),
        "Brain–brain ceilings": levels.ceilings(config, tables),
        "Decision by point rules": decision.point_rules(config, tables),
        "Decision by tests": decision.tests(config),
        "Positive controls": decision.positive_controls(config),
        "What was not available": unavailable(tables),
        "Measures and stripping methods": _own_options(config),
    }
    return [MethodsPart(title, tuple(said)) for title, said in made.items() if said]


def _evidence() -> list[str]:
    return [
        f"Whether features of language models align with brain responses was asked with L-PACT{cite(*FRAMEWORK)}. Four "
        "levels of evidence were measured (held-out prediction, relational patterns, mechanism stripping, brain–brain "
        "ceilings), each compared with nuisance features and severe controls."
    ]


def _own_options(config: LPactConfig) -> list[str]:
    measures, strippings = config.relational.options, config.stripping.options
    return option_sentences(
        [
            *(("measure", name, given) for name, given in sorted(measures.items())),
            *(("stripping method", name, given) for name, given in sorted(strippings.items())),
        ]
    )


def _recordings_used(config: LPactConfig, tables: Tables) -> list[str]:
    """One sentence per dataset and model, with what the source audit found."""
    sentences = [_dataset(own.name, tables) for own in config.datasets]
    sentences += [said for own in config.models for said in _columns(own.name, tables)]
    audit = config.audit
    required = listed([plain(name) for name in audit.required_controls]) or "none"
    sentences.append(
        f"A dataset could support confirmatory claims if its role was primary and its evidence chain complete: "
        f"at least {amount(audit.min_subject_runs, 'usable subject-run')} with at least "
        f"{amount(audit.min_brain_units, 'usable unit')}, words, model features, a reliability estimate, and the "
        f"required controls ({required})."
    )
    sentences.append(
        "Subject-runs (one run of one subject) are the replicates of the point rules: all else is averaged within them "
        "first, but for the share of units with a positive relational contrast, which pools the units of all. Of the "
        "tests, those of replication and of the fraction of the ceiling sample subject-runs (the latter units within "
        "them, too). Those against nuisance and other rivals, and those of drops, take outer blocks of the recordings "
        "as the sample, those of relational patterns against shuffled orders and rivals take units, and those against "
        "surrogate controls rank a mean over subject-runs among draws."
    )
    return sentences


def _dataset(name: str, tables: Tables) -> str:
    audited = _rows(tables, EVIDENCE_FEASIBILITY.name, dataset=name)
    recordings = _rows(tables, UNIT_INVENTORY.name, dataset=name)
    name = plain(name)
    if audited is None or audited.is_empty() or recordings is None:
        return f"{name}: the tables do not say what was recorded."
    row = audited.row(0, named=True)
    now = plain(row["role"])
    asked = plain(row["configured_role"])
    role = f"role {now}" if now == asked else f"role {now} (configured as {asked})"
    if row["role_detail"] and not row["confirmatory"]:
        role += f", not confirmatory: {plain(row['role_detail'])}"
    used = recordings.filter("used")
    left_out = row["n_subject_runs_excluded"]
    n_events = int(used["n_events_excluded"].sum())
    return (
        f"{name}: {role}; {amount(row['n_subjects'], 'subject')}, "
        f"{amount(row['n_subject_runs'], 'recording')} of {_stimuli(row['n_stimuli'])}"
        + (f" ({left_out} more left out)" if left_out else "")
        + f"; {spread(used['n_units_used'], 'unit')}, {spread(used['n_words'], 'word')} and "
        f"{spread(used['n_events'], 'event')} per recording"
        + (f" ({n_events} events left out in all)" if n_events else "")
        + _sampling(used)
        + f"; source: {plain(row['source']) or 'not named'}, version {plain(row['version']) or 'not named'}, licence "
        f"{plain(row['licence']) or 'not named'}."
    )


def _rows(tables: Tables, name: str, **where: object) -> pl.DataFrame | None:
    """Rows of a table, or None where the run does not have it."""
    frame = tables.get(name)
    return None if frame is None else frame.filter(**where)


def _columns(model: str, tables: Tables) -> list[str]:
    offered = _rows(tables, MODEL_INVENTORY.name, model=model, included=True)
    if offered is None or offered.is_empty():
        return []
    return [f"Features of {plain(model)} have {spread(offered['n_features'].explode(), 'column')}."]


def _stimuli(n: int) -> str:
    return "1 stimulus" if n == 1 else f"{n} stimuli"


def _sampling(used: pl.DataFrame) -> str:
    rates = used["sampling_rate_hz"].drop_nulls().unique().sort()
    if used.height and not len(rates):
        return "; one response per event, at lags of their own"
    return f"; sampled at {numbers(rates.to_list(), 'Hz')}" if len(rates) else ""


def unavailable(tables: Tables) -> list[str]:
    """Everything that the audit could not offer, with its reason; what is the same everywhere is said once."""
    missing = [
        *_missing(tables, CONTROL_AVAILABILITY.name, "available", "control", "Control"),
        *_ingredients(tables),
        *_missing(tables, RELIABILITY_MODES.name, "possible", "mode", "Reliability", MODES),
        *_missing(tables, MODEL_INVENTORY.name, "included", "model", "Model"),
        *_media(tables),
        *_recordings(tables),
        *_findings(tables),
    ]
    audited = (CONTROL_AVAILABILITY, INGREDIENT_AVAILABILITY, RELIABILITY_MODES)
    if not missing and not any(table.name in tables for table in audited):
        return ["The tables do not say what was unavailable."]
    return missing or ["Nothing that the study asked for was unavailable."]


def _ingredients(tables: Tables) -> list[str]:
    made = []
    frame = tables.get(INGREDIENT_AVAILABILITY.name)
    for kind in ("nuisance", "mechanism") if frame is not None else ():
        part = {INGREDIENT_AVAILABILITY.name: frame.filter(kind=kind)} if frame is not None else {}
        what = "Nuisance feature" if kind == "nuisance" else "Mechanism"
        made += _missing(part, INGREDIENT_AVAILABILITY.name, "available", "name", what)
    return made


def _missing(
    tables: Tables,
    table: str,
    there: str,
    column: str,
    what: str,
    words: Mapping[str, str] | None = None,
) -> list[str]:
    frame = tables.get(table)
    if frame is None:
        return []
    gone = (
        frame.filter(~pl.col(there))
        .group_by(column, "reason")
        .agg(pl.col("dataset").unique().sort())
        .sort(column, "reason")
    )
    return [
        f"{what} {(words or {}).get(name, plain(name))} was not available for {names(datasets)}: {_why(reason)}"
        for name, reason, datasets in gone.iter_rows()
    ]


def _why(code: str) -> str:
    said = _WHY.get(code, code)
    return f"{said[:1].lower()}{said[1:]}" if not said[:2].isupper() else said


def _media(tables: Tables) -> list[str]:
    frame = tables.get(MEDIA_SUMMARY.name)
    if frame is None:
        return []
    gone = (
        frame.filter(pl.col("n_stimuli_present") < pl.col("n_stimuli"))
        .group_by("media", "reason")
        .agg(pl.col("dataset").unique().sort())
        .sort("media", "reason")
    )
    return [
        f"Stimulus media of the kind {plain(media).replace('_', ' ')} were missing or incomplete for {names(datasets)}"
        + ("." if reason == Reason.OK.value else f": {_why(reason)}")
        for media, reason, datasets in gone.iter_rows()
    ]


def _recordings(tables: Tables) -> list[str]:
    frame = tables.get(UNIT_INVENTORY.name)
    if frame is None:
        return []
    gone = (
        frame.filter(~pl.col("used")).group_by("dataset", "reason").len().sort("dataset", "reason")
    )
    return [
        f"{amount(n, 'recording')} of {plain(dataset)} left out: {_why(reason)}"
        for dataset, reason, n in gone.iter_rows()
    ]


def _findings(tables: Tables) -> list[str]:
    frame = tables.get(FINDINGS.name)
    if frame is None:
        return []
    gone = (
        frame.filter(severity="excluded")
        .group_by("dataset", "reason")
        .agg(pl.struct("subject", "session", "run").n_unique())
        .sort("dataset", "reason")
    )
    return [
        f"In {plain(dataset)} parts of {amount(n, 'recording')} were left out: {_why(reason)}"
        for dataset, reason, n in gone.iter_rows()
    ]
