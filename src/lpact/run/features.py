"""Features that a study still has to extract from its language models."""

from __future__ import annotations

from collections.abc import Iterator

from lpact.datasets.base import Stimulus
from lpact.features.models import NO_COST, ExtractionCost, ModelSource
from lpact.levels.audit_offers import wanted_contexts
from lpact.run.progress import Reporter
from lpact.run.workspace import Workspace


def extract_features(workspace: Workspace, reporter: Reporter) -> bool:
    """Extract what is not there yet; says whether anything was done."""
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
    seen: set[tuple[str, str, str]] = set()
    for entry in workspace.config.datasets:
        dataset = workspace.dataset(entry.name)
        for recording in dataset.recording_ids():
            for model, source in workspace.sources.items():
                place = (entry.name, recording.stimulus, model)
                if place in seen:
                    continue
                seen.add(place)
                stimulus = dataset.stimulus(recording.stimulus)
                if not source.ready(model, stimulus, wanted):
                    yield model, source, stimulus
