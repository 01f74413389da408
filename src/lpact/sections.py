"""Sections of a study, for those who build it in Python.

>>> import lpact
>>> study = lpact.Study(                                                          # doctest: +SKIP
...     name="mine",
...     datasets=[lpact.Dataset(name="talk", reader="folder", path="my-data")],
...     models=[lpact.Model(name="gpt2", layers=[6])],
...     readout=lpact.Readout(folds=5),
...     lpact=lpact.LPact(gates=lpact.Gates(alpha=0.01)),
... )

Each section is the class that validates the table of the same name of a study file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from lpact.config import (
    ControlsConfig,
    DatasetConfig,
    LanguageModelConfig,
    MechanismsConfig,
    NuisanceConfig,
    ReadoutConfig,
    RunConfig,
    StudyConfig,
    study_config,
)
from lpact.validation import validate_model

Options = Mapping[str, Any]


class Dataset(DatasetConfig):
    """One dataset of the study, with its folder on this machine."""

    path: Path | str | None = Field(
        None, exclude=True, description="Folder of the dataset, where it is read from disk."
    )


class Model(LanguageModelConfig):
    """One model of the study, with its folder on this machine."""

    path: Path | str | None = Field(
        None, exclude=True, description="Folder (or GGUF file) of a language model."
    )


def build_config(
    name: str,
    *,
    datasets: Sequence[DatasetConfig | Options],
    models: Sequence[LanguageModelConfig | Options] = (),
    seed: int = 0,
    readout: ReadoutConfig | Options | None = None,
    nuisance: NuisanceConfig | Options | None = None,
    controls: ControlsConfig | Options | None = None,
    mechanisms: MechanismsConfig | Options | None = None,
    run: RunConfig | Options | None = None,
    **analyses: BaseModel | Options,
) -> tuple[StudyConfig, RunConfig]:
    """Validate a study that is given in sections; each may be a section object or a plain mapping.

    ``analyses`` are the study's questions by name, such as ``lpact=lpact.LPact()``; without any, L-PACT is asked.
    """
    shared = {
        "readout": readout,
        "nuisance": nuisance,
        "controls": controls,
        "mechanisms": mechanisms,
    }
    values = {
        "name": name,
        "seed": seed,
        "datasets": [_plain(dataset) for dataset in datasets],
        "models": [_plain(model) for model in models],
        **{key: _plain(section) for key, section in shared.items() if section is not None},
        **{key: _plain(section) for key, section in (analyses or {"lpact": {}}).items()},
    }
    settings = validate_model(RunConfig, _plain(run or {}), where="study, section 'run'")
    placed = {"paths": _paths(datasets), "models": _paths(models)}
    update = {key: {**getattr(settings, key), **given} for key, given in placed.items()}
    return study_config(values, where="study"), settings.model_copy(update=update)


def _plain(section: BaseModel | Options) -> dict[str, Any]:
    plain = section.model_dump() if isinstance(section, BaseModel) else dict(section)
    plain.pop("path", None)
    return plain


def _paths(sections: Sequence[BaseModel | Options]) -> dict[str, str]:
    """Folders by name, of the sections that have one."""
    found = {}
    for section in sections:
        given = dict(section)
        if given.get("path") is not None:
            found[str(given["name"])] = str(Path(given["path"]).absolute())
    return found
