"""The study file: what changes numbers (`StudyConfig`, hashed) and what does not (`RunConfig`, never hashed).

Every option carries its explanation; ``docs/reference/study-file.md`` and the starter file of ``lpact init`` are made
from them.
"""

from __future__ import annotations

from lpact.config.files import check_paths, parse_study, read_study_file
from lpact.config.recordings import DatasetConfig, GridConfig, PreprocessConfig
from lpact.config.section import EventKind, Fraction, Metric, Name, Pooling, Role, Section
from lpact.config.shared import (
    ControlsConfig,
    LanguageModelConfig,
    MechanismsConfig,
    NuisanceConfig,
    ReadoutConfig,
)
from lpact.config.study import RunConfig, SharedConfig, StudyConfig, list_once, study_config

__all__ = [
    "ControlsConfig",
    "DatasetConfig",
    "EventKind",
    "Fraction",
    "GridConfig",
    "LanguageModelConfig",
    "MechanismsConfig",
    "Metric",
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
    "list_once",
    "parse_study",
    "read_study_file",
    "study_config",
]
