"""The study file: what changes numbers (`StudyConfig`, hashed) and what does not (`RunConfig`, never hashed).

Every option carries its explanation; ``docs/reference/study-file.md`` and the starter file of ``lpact init`` are made
from them.
"""

from __future__ import annotations

from lpact.config.sections import (
    ControlsConfig as ControlsConfig,
    DatasetConfig as DatasetConfig,
    EventKind as EventKind,
    Fraction as Fraction,
    GridConfig as GridConfig,
    LanguageModelConfig as LanguageModelConfig,
    MechanismsConfig as MechanismsConfig,
    Metric as Metric,
    Name as Name,
    NuisanceConfig as NuisanceConfig,
    Pooling as Pooling,
    PreprocessConfig as PreprocessConfig,
    ReadoutConfig as ReadoutConfig,
    Role as Role,
)
from lpact.config.study import (
    Dataset as Dataset,
    Model as Model,
    RunConfig as RunConfig,
    RunTable as RunTable,
    SharedConfig as SharedConfig,
    StudyConfig as StudyConfig,
    check_paths as check_paths,
    flat_options as flat_options,
    list_once as list_once,
    parse_study as parse_study,
    parse_toml as parse_toml,
    read_slurm_file as read_slurm_file,
    read_study_file as read_study_file,
    read_toml as read_toml,
    study_config as study_config,
    study_from_values as study_from_values,
    with_paths as with_paths,
)
from lpact.validation import Section as Section
