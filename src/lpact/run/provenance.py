"""What a run is made from, as its manifest will say."""

from __future__ import annotations

from dataclasses import replace

from lpact.config import StudyConfig
from lpact.features.models import FEATURE_SETS
from lpact.run.audit import StudyAudit, plugin_code, plugin_packages
from lpact.store import InputFile, Manifest, Provenance
from lpact.tables import MODEL_FILES, SOURCE_FILES


def with_sets_of(manifest: Manifest, now: Provenance) -> Provenance:
    """What a run is made from, with sets of features that the finished run names and that are no longer kept.

    They would be extracted again from files that are compared themselves.
    """
    there = {(file.dataset, file.path) for file in now.inputs}
    gone = tuple(
        file
        for file in manifest.inputs
        if file.dataset.startswith("model ")
        and file.path.startswith(FEATURE_SETS)
        and (file.dataset, file.path) not in there
    )
    return replace(now, inputs=(*now.inputs, *gone))


def provenance(config: StudyConfig, audit: StudyAudit) -> Provenance:
    """What the run is made from."""
    files = audit.tables[SOURCE_FILES.name].select("dataset", "path", "n_bytes", "sha256")
    inputs = [InputFile(**row) for row in files.iter_rows(named=True)]
    models = audit.tables[MODEL_FILES.name].select("model", "path", "n_bytes", "sha256")
    inputs += [
        InputFile(dataset=f"model {model}", path=path, n_bytes=n_bytes, sha256=sha256)
        for model, path, n_bytes, sha256 in models.iter_rows()
    ]
    return Provenance(
        study=config.name,
        seed=config.seed,
        config=config.model_dump(mode="json"),
        inputs=tuple(inputs),
        plugins=plugin_packages(config),
        plugin_code=dict(plugin_code(config)),
    )
