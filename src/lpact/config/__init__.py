"""The study file: what changes numbers (`StudyConfig`, hashed) and what does not (`RunConfig`, never hashed).

Every option carries its explanation; ``docs/reference/study-file.md`` and the starter file of ``lpact init`` are made
from them.
"""

from __future__ import annotations

from lpact.config.assay import AssayConfig
from lpact.config.files import check_paths, parse_study, read_study_file
from lpact.config.levels import (
    AuditConfig,
    ControlsConfig,
    GatesConfig,
    LanguageModelConfig,
    MechanismsConfig,
    NuisanceConfig,
    ReadoutConfig,
    RelationalConfig,
    StrippingConfig,
)
from lpact.config.recordings import DatasetConfig, GridConfig, PreprocessConfig
from lpact.config.section import EventKind, Fraction, Metric, Name, Pooling, Role, Section
from lpact.config.study import RunConfig, StudyConfig
from lpact.config.validate import PLUGIN_OPTIONS, config_digest, validate_model

__all__ = [
    "PLUGIN_OPTIONS",
    "AssayConfig",
    "AuditConfig",
    "ControlsConfig",
    "DatasetConfig",
    "EventKind",
    "Fraction",
    "GatesConfig",
    "GridConfig",
    "LanguageModelConfig",
    "MechanismsConfig",
    "Metric",
    "Name",
    "NuisanceConfig",
    "Pooling",
    "PreprocessConfig",
    "ReadoutConfig",
    "RelationalConfig",
    "Role",
    "RunConfig",
    "Section",
    "StrippingConfig",
    "StudyConfig",
    "check_paths",
    "config_digest",
    "parse_study",
    "read_study_file",
    "validate_model",
]
