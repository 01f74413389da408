"""L-PACT's own parts of the Methods section: from recordings to the decision, each with the run's parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from lpact.analyses.explanation import MethodsPart
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.methods import levels
from lpact.analyses.lpact.methods.levels import MODES, Tables
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
    cite,
    listed,
    names,
    numbers,
    option_sentences,
    plain,
    spread,
)
from lpact.tables import RECORDING_KEY, Table
from lpact.wording import counted

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
        "Decision by point rules": levels.point_rules(config, tables),
        "Decision by tests": levels.tests(config),
        "Positive controls": levels.positive_controls(config),
        "What was not available": unavailable(tables),
        "Measures and stripping methods": _own_options(config),
    }
    return [MethodsPart(title, tuple(said)) for title, said in made.items() if said]


def _evidence() -> list[str]:
    return [
        f"Whether features of language models align with brain responses was asked with L-PACT{cite('lpact_paper')}. "
        "Four levels of evidence were measured (held-out prediction, relational patterns, mechanism stripping, "
        "brain–brain ceilings), each compared with nuisance features and severe controls."
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
    for own in config.models:
        offered = _rows(tables, MODEL_INVENTORY.name, model=own.name, included=True)
        if offered is not None and offered.height:
            n_columns = spread(offered["n_features"].explode(), "column")
            sentences.append(f"Features of {plain(own.name)} have {n_columns}.")
    audit = config.audit
    required = listed([plain(name) for name in audit.required_controls]) or "none"
    sentences.append(
        f"A dataset could support confirmatory claims if its role was primary and its evidence chain complete: "
        f"at least {counted(audit.min_subject_runs, 'usable subject-run')} with at least "
        f"{counted(audit.min_brain_units, 'usable unit')}, words, model features, a reliability estimate, and the "
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
        f"{name}: {role}; {counted(row['n_subjects'], 'subject')}, "
        f"{counted(row['n_subject_runs'], 'recording')} of {counted(row['n_stimuli'], 'stimulus', 'stimuli')}"
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


def _sampling(used: pl.DataFrame) -> str:
    rates = used["sampling_rate_hz"].drop_nulls().unique().sort()
    if used.height and not len(rates):
        return "; one response per event, at lags of their own"
    return f"; sampled at {numbers(rates.to_list(), 'Hz')}" if len(rates) else ""


def _not_available(what: str, words: Mapping[str, str] | None = None) -> Callable[..., str]:
    return lambda name, datasets, _: (
        f"{what} {(words or {}).get(name, plain(name))} was not available for {names(datasets)}"
    )


_UNAVAILABLE: tuple[tuple[Table, pl.Expr, str, Callable[..., str]], ...] = (
    (CONTROL_AVAILABILITY, ~pl.col("available"), "control", _not_available("Control")),
    (
        INGREDIENT_AVAILABILITY,
        ~pl.col("available") & (pl.col("kind") == "nuisance"),
        "name",
        _not_available("Nuisance feature"),
    ),
    (
        INGREDIENT_AVAILABILITY,
        ~pl.col("available") & (pl.col("kind") == "mechanism"),
        "name",
        _not_available("Mechanism"),
    ),
    (RELIABILITY_MODES, ~pl.col("possible"), "mode", _not_available("Reliability", MODES)),
    (MODEL_INVENTORY, ~pl.col("included"), "model", _not_available("Model")),
    (
        MEDIA_SUMMARY,
        pl.col("n_stimuli_present") < pl.col("n_stimuli"),
        "media",
        lambda media, datasets, _: (
            f"Stimulus media of the kind {plain(media).replace('_', ' ')} were missing or incomplete for "
            f"{names(datasets)}"
        ),
    ),
    (
        UNIT_INVENTORY,
        ~pl.col("used"),
        "dataset",
        lambda dataset, _, n: f"{counted(n, 'recording')} of {plain(dataset)} left out",
    ),
    (
        FINDINGS,
        pl.col("severity") == "excluded",
        "dataset",
        lambda dataset, _, n: (
            f"In {plain(dataset)} parts of {counted(n, 'recording')} were left out"
        ),
    ),
)
"""Table, its rows about what is missing, the column that names it, and the sentence: name, datasets, recordings."""


def unavailable(tables: Tables) -> list[str]:
    """Everything that the audit could not offer, with its reason; what is the same everywhere is said once."""
    missing = []
    for table, where, column, say in _UNAVAILABLE:
        frame = tables.get(table.name)
        if frame is None:
            continue
        recordings = [name for name in RECORDING_KEY if name in frame.columns]
        gone = (
            frame.filter(where)
            .group_by(column, "reason")
            .agg(_datasets=pl.col("dataset").unique().sort(), _n=pl.struct(recordings).n_unique())
            .sort(column, "reason")
        )
        for name, reason, datasets, n in gone.iter_rows():
            why = "." if reason == Reason.OK.value else f": {_why(reason)}"
            missing.append(f"{say(name, datasets, n)}{why}")
    audited = (CONTROL_AVAILABILITY, INGREDIENT_AVAILABILITY, RELIABILITY_MODES)
    if not missing and not any(table.name in tables for table in audited):
        return ["The tables do not say what was unavailable."]
    return missing or ["Nothing that the study asked for was unavailable."]


def _why(code: str) -> str:
    said = _WHY.get(code, code)
    return f"{said[:1].lower()}{said[1:]}" if not said[:2].isupper() else said
