"""One tiny study and its run, shared by the tests of all commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock
from tiny_study import TINY, Lpact, TinyRun
from typer.testing import CliRunner, Result

from lpact.cli import app
from shared_folder import shared_folder


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
def tiny_run(lpact: Lpact, tmp_path_factory: pytest.TempPathFactory) -> TinyRun:
    """Shared by parallel workers; not to be changed, so copy its folder where a test must."""
    shared = shared_folder(tmp_path_factory, "tiny-run")
    study, folder, said = shared / "tiny.toml", shared / "tiny", shared / "said.txt"
    with FileLock(f"{shared}.lock"):
        if not said.exists():
            shared.mkdir(exist_ok=True)
            study.write_text(TINY, encoding="utf-8")
            result = lpact("run", study, "--out", folder, "--no-progress")
            assert result.exit_code == 0, result.output
            said.write_text(result.stdout, encoding="utf-8")
    return TinyRun(study, folder, said.read_text(encoding="utf-8"))
