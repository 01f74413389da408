"""An undisturbed run, to compare with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from survivors import Undisturbed, write_study
from victims import Breeder


@pytest.fixture(scope="session")
def breeder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Breeder]:
    with Breeder(tmp_path_factory.mktemp("breeder")) as started:
        yield started


@pytest.fixture(scope="session")
def undisturbed(breeder: Breeder, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    study = write_study(folder)
    process = breeder.start(study, folder / "run")
    assert process.wait() == 0, process.said()
    return Undisturbed(study, folder / "run")
