"""How many rows the positive controls of a study will have."""

from __future__ import annotations

from collections import Counter

from lpact.analyses.lpact.assays import brain_as_model, implant, reliability
from lpact.analyses.lpact.assays.courses import PROXIES
from lpact.analyses.lpact.levels.pairing import MODES
from lpact.analyses.lpact.stimulus_controls import stimulus_jobs, stimulus_rows
from lpact.analyses.lpact.tables.assay_brain import (
    BRAIN_AS_MODEL,
    BRAIN_AS_MODEL_SUMMARY,
    BRAIN_ORACLE,
    BRAIN_RELIABILITY,
    IMPLANT,
    PROFILE_ORDER,
)
from lpact.analyses.lpact.tables.assay_stimulus import (
    FULL_SUMMARY,
    LOW_LEVEL_SUMMARY,
    PROXY_SUMMARY,
    STANDALONE_SUMMARY,
)
from lpact.config import StudyConfig
from lpact.run.audit import StudyAudit


def assay_rows(config: StudyConfig, audit: StudyAudit) -> Counter[str]:
    """Rows that the positive controls will have, by table."""
    n_summaries = len(config.relational.alignments) * len(config.relational.profiles)
    n_datasets, n_comparisons = len(audit.datasets), len(brain_as_model.COMPARISONS)
    rows = Counter(
        {
            IMPLANT.name: len(implant.ARMS) * len(implant.GATE_PROFILES) * len(implant.QUANTITIES),
            BRAIN_RELIABILITY.name: n_datasets * len(MODES) * len(reliability.KINDS),
            BRAIN_AS_MODEL_SUMMARY.name: n_datasets * n_comparisons * n_summaries,
            BRAIN_ORACLE.name: n_datasets * n_comparisons,
            PROFILE_ORDER.name: n_datasets * n_summaries,
            BRAIN_AS_MODEL.name: 0,
        }
    )
    for name, dataset in audit.datasets.items():
        units = [set(recording.unit_ids) for recording in dataset.recordings]
        for comparison in brain_as_model.COMPARISONS:
            chosen, _ = brain_as_model.pairs(config, name, comparison, dataset.recordings)
            n_shared = sum(len(units[i] & units[j]) for i, j in chosen)
            rows[BRAIN_AS_MODEL.name] += n_shared * n_summaries
    return rows + stimulus_rows(config, audit) + _stimulus_summary_rows(config, audit)


def _stimulus_summary_rows(config: StudyConfig, audit: StudyAudit) -> Counter[str]:
    """One row a dataset and group; a dataset without recordings has the groups of a time series."""
    without = 2 * len(config.assay.onset_windows_ms)
    groups: dict[str, set[tuple[str, str]]] = {name: set() for name in audit.datasets}
    for job in stimulus_jobs(config, audit):
        windows = job.place(config).windows
        groups[job.dataset] |= {(t, window) for t, named in windows.items() for window in named}
    n_datasets = len(audit.datasets)
    return Counter(
        {
            LOW_LEVEL_SUMMARY.name: sum(len(own) or without for own in groups.values()),
            STANDALONE_SUMMARY.name: n_datasets,
            FULL_SUMMARY.name: n_datasets,
            PROXY_SUMMARY.name: n_datasets * len(PROXIES),
        }
    )
