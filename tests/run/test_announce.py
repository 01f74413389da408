"""A run that still looks at its sources is seen and keeps others out; sources that are wrong leave no trace of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import lpact
from lpact.config import StudyConfig
from lpact.errors import RunError
from lpact.run.journal import announced
from lpact.run.progress import AUDIT
from lpact.run.status import LOG_NAME, STATUS_NAME, run_status
from lpact.store import FolderLock, partial_folder
from small_study import SMALL

CONFIG: StudyConfig = lpact.load_study(SMALL).config


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "mine" / "first"


def fail(out: Path, error: BaseException) -> None:
    """Look at sources that are wrong."""
    with announced(out, CONFIG, 1) as journal:
        journal.stage(AUDIT, 5)
        assert run_status(out).state == "running"
        raise error


def test_it_is_seen_and_keeps_others_out(out: Path) -> None:
    with announced(out, CONFIG, 2) as journal:
        journal.stage(AUDIT, 5)
        journal.advance(2)
        status = run_status(out)
        assert status.state == "running"
        assert status.said is not None
        (stage,) = status.said.stages
        assert (stage.stage, stage.total) == (AUDIT, 5)
        assert status.said.workers == 2
        with pytest.raises(RunError, match="another process is making this run"):
            FolderLock(partial_folder(out))
    # What follows takes the lock at once; until then there is nothing to resume, and no log.
    FolderLock(partial_folder(out)).release()
    assert not (partial_folder(out) / "study").exists()
    assert not (partial_folder(out) / LOG_NAME).exists()
    assert run_status(out).state == "interrupted"


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()])
def test_what_goes_wrong_leaves_nothing(out: Path, tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        fail(out, error)
    assert not list(tmp_path.iterdir())


def test_what_goes_wrong_before_a_resume_leaves_all_as_it_was(out: Path) -> None:
    partial = partial_folder(out)
    partial.mkdir(parents=True)
    (partial / "study").write_text(CONFIG.digest())
    before = b'{"format": 1, "state": "failed"}'
    (partial / STATUS_NAME).write_bytes(before)
    assert (partial_folder(out) / "study").exists()
    with pytest.raises(ValueError, match="wrong"):
        fail(out, ValueError("wrong"))
    assert (partial / STATUS_NAME).read_bytes() == before
    assert (partial_folder(out) / "study").exists()
    FolderLock(partial).release()


def test_an_empty_folder_that_was_there_stays_empty(out: Path) -> None:
    partial_folder(out).mkdir(parents=True)
    with pytest.raises(ValueError, match="wrong"):
        fail(out, ValueError("wrong"))
    assert not list(partial_folder(out).iterdir())


def test_files_of_others_are_refused_before_anything_is_written(out: Path) -> None:
    partial = partial_folder(out)
    partial.mkdir(parents=True)
    (partial / "mine.txt").write_text("mine")
    with pytest.raises(RunError, match=r"mine\.txt in it"), announced(out, CONFIG, 1):
        raise AssertionError("it was taken")
    assert [path.name for path in partial.iterdir()] == ["mine.txt"]


def test_a_run_with_wrong_sources_leaves_nothing(tmp_path: Path) -> None:
    study = lpact.load_study({**SMALL, "models": [{"name": "nobody", "layers": [1]}]})
    with pytest.raises(lpact.LPactError, match="must be fixed"):
        study.run(tmp_path / "new" / "run", progress=False)
    assert not list(tmp_path.iterdir())
