"""What a run is made from, as its manifest will say."""

from __future__ import annotations

from lpact.config import StudyConfig
from lpact.run.inspect import StudyAudit, plugin_packages
from lpact.store import InputFile, Provenance
from lpact.tables.audit import MODEL_FILES, SOURCE_FILES


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
    )
