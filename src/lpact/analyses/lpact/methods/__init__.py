"""L-PACT's own parts of the Methods section: from recordings to the decision, each with the run's parameters."""

from __future__ import annotations

import polars as pl

from lpact.analyses.explanation import MethodsPart
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.methods import levels
from lpact.analyses.lpact.methods.levels import Tables
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY, FINDINGS, MODEL_INVENTORY, UNIT_INVENTORY
from lpact.analyses.lpact.terminal_blocks import explained, missing
from lpact.codes import Reason
from lpact.report.methods import cite, option_sentences
from lpact.store import empty
from lpact.tables import RECORDING_KEY
from lpact.wording import counted, names, one_line, settings, span


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
            n_columns = span(offered["n_features"].explode(), "column")
            sentences.append(f"Features of {one_line(own.name)} have {n_columns}.")
    audit = config.audit
    required = names(audit.required_controls) or "none"
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
    name = one_line(name)
    if audited is None or audited.is_empty() or recordings is None:
        return f"{name}: the tables do not say what was recorded."
    row = audited.row(0, named=True)
    now = one_line(row["role"])
    asked = one_line(row["configured_role"])
    role = f"role {now}" if now == asked else f"role {now} (configured as {asked})"
    if row["role_detail"] and not row["confirmatory"]:
        role += f", not confirmatory: {one_line(row['role_detail'])}"
    used = recordings.filter("used")
    left_out = row["n_subject_runs_excluded"]
    n_events = int(used["n_events_excluded"].sum())
    return (
        f"{name}: {role}; {counted(row['n_subjects'], 'subject')}, "
        f"{counted(row['n_subject_runs'], 'recording')} of {counted(row['n_stimuli'], 'stimulus', 'stimuli')}"
        + (f" ({left_out} more left out)" if left_out else "")
        + f"; {span(used['n_units_used'], 'unit')}, {span(used['n_words'], 'word')} and "
        f"{span(used['n_events'], 'event')} per recording"
        + (f" ({n_events} events left out in all)" if n_events else "")
        + _sampling(used)
        + f"; source: {one_line(row['source']) or 'not named'}, version {one_line(row['version']) or 'not named'}, "
        f"licence {one_line(row['licence']) or 'not named'}."
    )


def _rows(tables: Tables, name: str, **where: object) -> pl.DataFrame | None:
    """Rows of a table, or None where the run does not have it."""
    frame = tables.get(name)
    return None if frame is None else frame.filter(**where)


def _sampling(used: pl.DataFrame) -> str:
    rates = used["sampling_rate_hz"].drop_nulls().unique().sort()
    if used.height and not len(rates):
        return "; one response per event, at lags of their own"
    return f"; sampled at {settings(rates.to_list(), 'Hz')}" if len(rates) else ""


def unavailable(tables: Tables) -> list[str]:
    """Everything that the audit could not offer; what has the same reason and datasets is said at once."""
    datasets: dict[tuple[str, str], dict[str, None]] = {}
    for what, row in missing(tables):
        if "role_reason" not in row:  # the sentence of the dataset says it
            datasets.setdefault((what, row["reason"]), {})[row["dataset"]] = None
    said: dict[tuple[str, str], list[str]] = {}
    for (what, reason), found in datasets.items():
        said.setdefault((names(sorted(found)), reason), []).append(what)
    sentences = []
    for (where, reason), own in said.items():
        verb = "was" if len(own) == 1 else "were"
        text = f"{names(own)} {verb} not available for {where}"
        sentences.append(f"{text[:1].upper()}{text[1:]}{_because(reason)}")
    findings = tables.get(FINDINGS.name, empty(FINDINGS)).filter(severity="excluded")
    parts = findings.group_by("dataset", "reason").agg(n=pl.struct(RECORDING_KEY).n_unique())
    sentences += [
        f"In {one_line(dataset)} parts of {counted(n, 'recording')} were left out{_because(reason)}"
        for dataset, reason, n in parts.sort("dataset", "reason").iter_rows()
    ]
    return sentences or ["The audit found nothing that the study asked for to be unavailable."]


def _because(code: str) -> str:
    said = explained(code)
    lower = said if said[:2].isupper() else f"{said[:1].lower()}{said[1:]}"
    return "." if code == Reason.OK.value else f": {lower}"
