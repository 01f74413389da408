"""What is a brain score worth? Source-audited tests of language-model-to-brain alignment.

>>> import lpact
>>> study = lpact.load_study("study.toml")      # doctest: +SKIP
>>> study.plan().n_claims                       # doctest: +SKIP
>>> run = study.run("runs/first")               # doctest: +SKIP
>>> run.claims()                                # doctest: +SKIP
>>> run.conclusion().headline                   # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpact.analyses.lpact.config import LPactSection as LPact
    from lpact.archive import export_run, lock_run, verify_run
    from lpact.config import ControlsConfig as Controls
    from lpact.config import DatasetConfig as Dataset
    from lpact.config import LanguageModelConfig as Model
    from lpact.config import MechanismsConfig as Mechanisms
    from lpact.config import NuisanceConfig as Nuisance
    from lpact.config import ReadoutConfig as Readout
    from lpact.config import RunConfig as RunSettings
    from lpact.errors import LPactError
    from lpact.features.language.feature_set import FeatureSet
    from lpact.run.extract import extract_features, plan_features
    from lpact.study import Claim, Run, Study, load_study, open_run

__all__ = [
    "Claim",
    "Controls",
    "Dataset",
    "FeatureSet",
    "LPact",
    "LPactError",
    "Mechanisms",
    "Model",
    "Nuisance",
    "Readout",
    "Run",
    "RunSettings",
    "Study",
    "__version__",
    "export_run",
    "extract_features",
    "load_study",
    "lock_run",
    "open_run",
    "plan_features",
    "verify_run",
]

_HOMES = {
    "Claim": "lpact.study",
    "Controls": "lpact.config:ControlsConfig",
    "Dataset": "lpact.config:DatasetConfig",
    "FeatureSet": "lpact.features.language.feature_set",
    "LPact": "lpact.analyses.lpact.config:LPactSection",
    "LPactError": "lpact.errors",
    "Mechanisms": "lpact.config:MechanismsConfig",
    "Model": "lpact.config:LanguageModelConfig",
    "Nuisance": "lpact.config:NuisanceConfig",
    "Readout": "lpact.config:ReadoutConfig",
    "Run": "lpact.study",
    "RunSettings": "lpact.config:RunConfig",
    "Study": "lpact.study",
    "export_run": "lpact.archive",
    "extract_features": "lpact.run.extract",
    "load_study": "lpact.study",
    "lock_run": "lpact.archive",
    "open_run": "lpact.study",
    "plan_features": "lpact.run.extract",
    "verify_run": "lpact.archive",
}
"""Where each public name is; after a colon, its name there."""


def __getattr__(name: str) -> Any:
    """Import the public names on first use: ``import lpact`` and ``lpact --help`` stay quick."""
    import importlib

    if name == "__version__":
        import importlib.metadata

        return importlib.metadata.version("lpact")
    if name in _HOMES:
        module, _, attribute = _HOMES[name].partition(":")
        return getattr(importlib.import_module(module), attribute or name)
    raise AttributeError(f"module 'lpact' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
