"""What is a brain score worth? Source-audited tests of language-model-to-brain alignment.

>>> import lpact
>>> study = lpact.load_study("study.toml")      # doctest: +SKIP
>>> study.plan().n_claims                       # doctest: +SKIP
>>> run = study.run("runs/first")               # doctest: +SKIP
>>> run.claims()                                # doctest: +SKIP
>>> run.conclusion().headline                   # doctest: +SKIP

or, from arrays,

>>> run = lpact.audit(features=features, responses=responses, words=words)        # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpact import ceilings, measures, splits, stats
    from lpact.analyses.deconstruct.config import DeconstructSection as Deconstruct
    from lpact.analyses.explanation import Claim
    from lpact.analyses.lpact.config import GatesConfig as Gates
    from lpact.analyses.lpact.config import LPactSection as LPact
    from lpact.analyses.patterns.config import PatternsSection as Patterns
    from lpact.analyses.turing.config import TuringSection as Turing
    from lpact.archive import diff_runs, export_run, lock_run, verify_run
    from lpact.config import ControlsConfig as Controls
    from lpact.config import Dataset, Model
    from lpact.config import GridConfig as Grid
    from lpact.config import MechanismsConfig as Mechanisms
    from lpact.config import NuisanceConfig as Nuisance
    from lpact.config import PreprocessConfig as Preprocess
    from lpact.config import ReadoutConfig as Readout
    from lpact.config import RunConfig as RunSettings
    from lpact.errors import LPactError
    from lpact.features.language.feature_set import FeatureSet
    from lpact.in_memory import alignment_patterns, audit, deconstruct, turing_test
    from lpact.inputs.responses import read_responses
    from lpact.responses import Responses
    from lpact.study import Run, Study, load_study, open_run
    from lpact.word_features import extract_features, plan_features

__all__ = [
    "Claim",
    "Controls",
    "Dataset",
    "Deconstruct",
    "FeatureSet",
    "Gates",
    "Grid",
    "LPact",
    "LPactError",
    "Mechanisms",
    "Model",
    "Nuisance",
    "Patterns",
    "Preprocess",
    "Readout",
    "Responses",
    "Run",
    "RunSettings",
    "Study",
    "Turing",
    "__version__",
    "alignment_patterns",
    "audit",
    "ceilings",
    "deconstruct",
    "diff_runs",
    "export_run",
    "extract_features",
    "load_study",
    "lock_run",
    "measures",
    "open_run",
    "plan_features",
    "read_responses",
    "splits",
    "stats",
    "turing_test",
    "verify_run",
]

_HOMES = {
    "Claim": "lpact.analyses.explanation:Claim",
    "Controls": "lpact.config:ControlsConfig",
    "Dataset": "lpact.config:Dataset",
    "Deconstruct": "lpact.analyses.deconstruct.config:DeconstructSection",
    "FeatureSet": "lpact.features.language.feature_set:FeatureSet",
    "Gates": "lpact.analyses.lpact.config:GatesConfig",
    "Grid": "lpact.config:GridConfig",
    "LPact": "lpact.analyses.lpact.config:LPactSection",
    "LPactError": "lpact.errors:LPactError",
    "Mechanisms": "lpact.config:MechanismsConfig",
    "Model": "lpact.config:Model",
    "Nuisance": "lpact.config:NuisanceConfig",
    "Patterns": "lpact.analyses.patterns.config:PatternsSection",
    "Preprocess": "lpact.config:PreprocessConfig",
    "Readout": "lpact.config:ReadoutConfig",
    "Responses": "lpact.responses:Responses",
    "Run": "lpact.study:Run",
    "RunSettings": "lpact.config:RunConfig",
    "Study": "lpact.study:Study",
    "Turing": "lpact.analyses.turing.config:TuringSection",
    "alignment_patterns": "lpact.in_memory:alignment_patterns",
    "audit": "lpact.in_memory:audit",
    "ceilings": "lpact.ceilings",
    "deconstruct": "lpact.in_memory:deconstruct",
    "diff_runs": "lpact.archive:diff_runs",
    "export_run": "lpact.archive:export_run",
    "extract_features": "lpact.word_features:extract_features",
    "load_study": "lpact.study:load_study",
    "lock_run": "lpact.archive:lock_run",
    "measures": "lpact.measures",
    "open_run": "lpact.study:open_run",
    "plan_features": "lpact.word_features:plan_features",
    "read_responses": "lpact.inputs.responses:read_responses",
    "splits": "lpact.splits",
    "stats": "lpact.stats",
    "turing_test": "lpact.in_memory:turing_test",
    "verify_run": "lpact.archive:verify_run",
}
"""Module (and name in it) that defines a public name."""


def __getattr__(name: str) -> Any:
    """Import the public names on first use: ``import lpact`` and ``lpact --help`` stay quick."""
    import importlib

    if name == "__version__":
        import importlib.metadata

        return importlib.metadata.version("lpact")
    if name in _HOMES:
        module, _, member = _HOMES[name].partition(":")
        home = importlib.import_module(module)
        return getattr(home, member) if member else home
    raise AttributeError(f"module 'lpact' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
