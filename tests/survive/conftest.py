"""An undisturbed run, to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from survivors import write_study
from victims import finish, start


@dataclass(frozen=True)
class Undisturbed:
    """A study file and its run, which nothing happened to."""

    study: Path
    run: Path


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    study = write_study(folder)
    finish(start(study, folder / "run"))
    return Undisturbed(study, folder / "run")
