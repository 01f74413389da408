"""Features that a study still has to extract from its language models."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lpact.analyses.base import analyses_of
from lpact.config import StudyConfig
from lpact.datasets.base import Stimulus
from lpact.features.models import FULL, NO_COST, STATIC, ExtractionCost, ModelSource, StoredSet
from lpact.inputs.workspace import Workspace
from lpact.run.progress import Reporter


def wanted_contexts(config: StudyConfig) -> tuple[str, ...]:
    """Contexts of features that the analyses of a study load."""
    wanted = {FULL, STATIC}
    for analysis in analyses_of(config).values():
        wanted |= analysis.contexts(config)
    return tuple(sorted(wanted))


def extract_features(workspace: Workspace, reporter: Reporter) -> bool:
    """Extract missing feature sets; return whether anything was done."""
    wanted = wanted_contexts(workspace.config)
    worked = False
    for model, source, stimulus in unready(workspace):
        source.extract(model, stimulus, wanted, reporter)
        worked = True
    return worked


def extraction_cost(workspace: Workspace) -> ExtractionCost:
    """What extraction will take; a model that has work to do is loaded, and one batch is timed."""
    wanted = wanted_contexts(workspace.config)
    total = NO_COST
    for model, source, stimulus in unready(workspace):
        total += source.cost(model, stimulus, wanted)
    return total


def unready(workspace: Workspace) -> Iterator[tuple[str, ModelSource, Stimulus]]:
    """Models and stimuli with features to extract; recordings share stimuli, and stimuli can share their text."""
    wanted = wanted_contexts(workspace.config)
    for _, model, source, stimulus in _read(workspace, workspace.sources):
        if not source.ready(model, stimulus, wanted):
            yield model, source, stimulus


def stored_sets(workspace: Workspace) -> dict[tuple[str, str], dict[str, StoredSet | None]]:
    """Sets of extracted features that the study reads, by dataset and model; None for one that is to come."""
    wanted = wanted_contexts(workspace.config)
    found: dict[tuple[str, str], dict[str, StoredSet | None]] = {}
    extracting = [
        name for name, s in workspace.sources.items() if type(s).sets is not ModelSource.sets
    ]
    for dataset, model, source, stimulus in _read(workspace, extracting):
        if sets := source.sets(model, stimulus, wanted):
            found.setdefault((dataset, model), {}).update(sets)
    return found


def _read(
    workspace: Workspace, models: Collection[str]
) -> Iterator[tuple[str, str, ModelSource, Stimulus]]:
    """Every dataset, model and stimulus, each once."""
    for entry in workspace.config.datasets if models else ():
        dataset = workspace.dataset(entry.name)
        for name in dict.fromkeys(r.stimulus for r in dataset.recording_ids()):
            stimulus = dataset.stimulus(name)
            for model in models:
                yield entry.name, model, workspace.sources[model], stimulus
