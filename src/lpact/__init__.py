"""What is a brain score worth? Source-audited tests of language-model-to-brain alignment.

>>> import lpact
>>> study = lpact.load_study("study.toml")      # doctest: +SKIP
>>> study.plan().n_claims                       # doctest: +SKIP
>>> run = study.run("runs/first")               # doctest: +SKIP
>>> run.decisions                               # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpact import ceilings, measures, splits, stats
    from lpact.archive import export_run, lock_run, verify_run
    from lpact.errors import LPactError
    from lpact.features.language.feature_set import FeatureSet
    from lpact.run.extract import extract_features, plan_features
    from lpact.study import Run, Study, load_study, open_run

__all__ = [
    "FeatureSet",
    "LPactError",
    "Run",
    "Study",
    "__version__",
    "ceilings",
    "export_run",
    "extract_features",
    "load_study",
    "lock_run",
    "measures",
    "open_run",
    "plan_features",
    "splits",
    "stats",
    "verify_run",
]

_HOMES = {
    "FeatureSet": "lpact.features.language.feature_set",
    "LPactError": "lpact.errors",
    "Run": "lpact.study",
    "Study": "lpact.study",
    "ceilings": "lpact.ceilings",
    "export_run": "lpact.archive",
    "extract_features": "lpact.run.extract",
    "load_study": "lpact.study",
    "lock_run": "lpact.archive",
    "measures": "lpact.measures",
    "open_run": "lpact.study",
    "plan_features": "lpact.run.extract",
    "splits": "lpact.splits",
    "stats": "lpact.stats",
    "verify_run": "lpact.archive",
}


def __getattr__(name: str) -> Any:
    """Import the public names on first use: ``import lpact`` and ``lpact --help`` stay quick."""
    import importlib

    if name == "__version__":
        import importlib.metadata

        return importlib.metadata.version("lpact")
    if name in _HOMES:
        home = importlib.import_module(_HOMES[name])
        return home if home.__name__ == f"lpact.{name}" else getattr(home, name)
    raise AttributeError(f"module 'lpact' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
