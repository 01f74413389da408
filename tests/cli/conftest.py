"""One tiny study and its run, shared by the tests of all commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_study import TINY, Lpact, TinyRun
from typer.testing import CliRunner, Result

from lpact.cli import app


@pytest.fixture(scope="session")
def lpact() -> Lpact:
    """``lpact("run", study, "--out", folder)`` runs a command in this process."""
    runner = CliRunner()

    def invoke(*args: object, **env: str) -> Result:
        result = runner.invoke(app, [str(arg) for arg in args], env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture(scope="session")
def tiny_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_run(lpact: Lpact, tiny_study: Path, tmp_path_factory: pytest.TempPathFactory) -> TinyRun:
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    result = lpact("run", tiny_study, "--out", folder, "--no-progress")
    assert result.exit_code == 0, result.output
    return TinyRun(tiny_study, folder, result.stdout)
