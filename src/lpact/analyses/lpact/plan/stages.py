"""L-PACT's tasks, stage by stage: brain patterns, levels 1 to 3, ceilings, positive controls."""

from __future__ import annotations

from collections.abc import Mapping

from lpact.analyses.base import Audit, Frames, Keys, Stage
from lpact.analyses.lpact.assays.jobs import control_jobs
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.jobs import BrainJob, CeilingJob, ContextJob, partners
from lpact.analyses.lpact.plan.audit import DatasetAudit
from lpact.datasets.base import RecordingId
from lpact.run.conductor import measure_in_memory

BRAINS = "brain patterns"
LEVELS = "levels 1 to 3"
CEILINGS = "ceilings"
CONTROLS = "positive controls"


def stages(config: LPactConfig, audit: Audit, keys: Keys) -> list[Stage]:
    """All tasks of a study; later ones name earlier ones by their keys."""
    datasets: Mapping[str, DatasetAudit] = audit.detail
    brain_jobs = [BrainJob(name, r.id) for name, a in datasets.items() for r in a.recordings]
    brain_tasks = keys.tasks(brain_jobs)
    brains: dict[str, dict[RecordingId, str]] = {name: {} for name in datasets}
    for job, task in zip(brain_jobs, brain_tasks, strict=True):
        brains[job.dataset][job.recording] = task.key
    ceiling_jobs = [CeilingJob(name, tuple(own.items())) for name, own in brains.items() if own]
    ceiling_tasks = keys.tasks(ceiling_jobs)
    made = [
        Stage(BRAINS, brain_tasks),
        Stage(LEVELS, keys.tasks(_context_jobs(config, datasets, brains))),
        Stage(CEILINGS, ceiling_tasks),
    ]
    if config.assay.enabled:
        tasks = zip(ceiling_jobs, ceiling_tasks, strict=True)
        ceilings = {job.dataset: task.key for job, task in tasks}
        made.append(Stage(CONTROLS, keys.tasks(control_jobs(config, audit, brains, ceilings))))
    return made


def _context_jobs(
    config: LPactConfig,
    datasets: Mapping[str, DatasetAudit],
    brains: Mapping[str, Mapping[RecordingId, str]],
) -> list[ContextJob]:
    """One job per recording, model and layer; those of a recording follow one another and share what is read."""
    source = config.relational.brain_patterns_from
    jobs: list[ContextJob] = []
    for name, dataset in datasets.items():
        offers: dict[RecordingId, list[tuple[str, int]]] = {}
        for offer in dataset.contexts:
            offers.setdefault(offer.recording, []).append((offer.model, offer.layer))
        for recording in dataset.recordings:
            own = recording.id
            read = dict.fromkeys([own, *partners(source, own, brains[name])])
            if source == "other_subject" and not recording.comparable:
                read = {own: None}
            needed = tuple((r, brains[name][r]) for r in read)
            rest = (dataset.confirmatory, recording.comparable, needed)
            jobs += (ContextJob(name, own, m, layer, *rest) for m, layer in offers.get(own, ()))
    return jobs


def measure_levels(config: LPactConfig) -> Frames:
    """Measured tables of levels 1 to 4, audit included, in this process; positive controls are left out."""
    assay = config.assay.model_copy(update={"enabled": False})
    study = config.model_copy(update={"assay": assay}).study()
    return measure_in_memory(study, "lpact")
