"""Datasets and models of a study that is built in Python: with their folders on this machine.

>>> import lpact
>>> study = lpact.Study(                                                          # doctest: +SKIP
...     name="mine",
...     datasets=[lpact.Dataset(name="talk", reader="folder", path="my-data")],
...     models=[lpact.Model(name="gpt2", source="transformers", layers=[6], path="models/gpt2")],
...     readout=lpact.Readout(folds=5),
...     analyses=[lpact.LPact(gates=lpact.Gates(alpha=0.01))],
... )

Folders change no number: they are no part of the configuration that is hashed and recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from lpact.config import DatasetConfig, LanguageModelConfig, RunConfig


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


def with_paths(
    run: RunConfig | None, datasets: Sequence[BaseModel], models: Sequence[BaseModel]
) -> RunConfig:
    """Add the folders of datasets and models to the run's settings, which they override."""
    run = run or RunConfig()
    given = {"paths": _paths(datasets), "models": _paths(models)}
    return run.model_copy(update={k: {**getattr(run, k), **v} for k, v in given.items()})


def _paths(sections: Sequence[BaseModel]) -> dict[str, str]:
    found = ((dict(section)["name"], getattr(section, "path", None)) for section in sections)
    return {name: str(Path(path).absolute()) for name, path in found if path is not None}
