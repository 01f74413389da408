"""The study file: what changes numbers (`StudyConfig`, hashed) and what does not (`RunConfig`, never hashed).

Every option carries its explanation; ``docs/reference/study-file.md`` and the starter file of ``lpact init`` are made
from them.
"""

from __future__ import annotations

from lpact.config.sections import (
    ControlsConfig,
    DatasetConfig,
    EventKind,
    Fraction,
    GridConfig,
    LanguageModelConfig,
    MechanismsConfig,
    Metric,
    Name,
    NuisanceConfig,
    Pooling,
    PreprocessConfig,
    ReadoutConfig,
    Role,
)
from lpact.config.study import (
    Dataset,
    Model,
    RunConfig,
    SharedConfig,
    StudyConfig,
    check_paths,
    flat_options,
    list_once,
    parse_study,
    read_study_file,
    study_config,
    study_from_values,
    with_paths,
)
from lpact.validation import Section

__all__ = [
    "ControlsConfig",
    "Dataset",
    "DatasetConfig",
    "EventKind",
    "Fraction",
    "GridConfig",
    "LanguageModelConfig",
    "MechanismsConfig",
    "Metric",
    "Model",
    "Name",
    "NuisanceConfig",
    "Pooling",
    "PreprocessConfig",
    "ReadoutConfig",
    "Role",
    "RunConfig",
    "Section",
    "SharedConfig",
    "StudyConfig",
    "check_paths",
    "flat_options",
    "list_once",
    "parse_study",
    "read_study_file",
    "study_config",
    "study_from_values",
    "with_paths",
]
