from __future__ import annotations

from importlib.resources import files

import pytest

import lpact
from lpact.study import Run, Study, study_from_text


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Run]:
    """The built-in study, run once."""
    text = files("lpact.analyses.lpact").joinpath("demo.toml").read_text(encoding="utf-8")
    study = study_from_text(text, where="demo.toml")
    assert lpact.Run is Run
    return study, study.run(tmp_path_factory.mktemp("demo") / "run", workers=2, progress=False)
