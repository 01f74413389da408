"""Files that change behind a run's back: found by their checksum, named, and computed again; never read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from survivors import Undisturbed, assert_same_run, computed, events, partial_of

import lpact
from lpact.analyses.lpact.plan.stages import LEVELS
from lpact.errors import RunError
from lpact.run.journal import Journal
from lpact.run.progress import DECISION


def cut(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def cut_by_one(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path, _: Path) -> None:
    path.write_bytes(b"")


def flip_a_bit(path: Path, _: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 1
    path.write_bytes(content)


def zero_a_block(path: Path, _: Path) -> None:
    """As a file system may leave after a power cut: the right size, and nothing in it."""
    path.write_bytes(bytes(path.stat().st_size))


def copy_another(path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


def link_to_another(path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to(other)


def append(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


DAMAGES = (
    cut,
    cut_by_one,
    empty,
    flip_a_bit,
    zero_a_block,
    copy_another,
    link_to_another,
    append,
)


class Stopped(Exception):
    """Somebody stops the run."""


def stop_at(stage: str, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something when a stage begins, in the process that runs the study."""
    begin = Journal.stage

    def began(journal: Journal, name: str, total: int) -> None:
        begin(journal, name, total)
        if name == stage:
            act()

    monkeypatch.setattr(Journal, "stage", began)


def stop() -> None:
    raise Stopped


@pytest.fixture(scope="module")
def stopped(undisturbed: Undisturbed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of a run that was stopped when all of its tasks were finished."""
    out = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.MonkeyPatch.context() as patch:
        stop_at(DECISION, patch, stop)
        with pytest.raises(Stopped):
            lpact.load_study(undisturbed.study).run(out, workers=1, progress=False)
    return partial_of(out)


@pytest.fixture
def out(stopped: Path, tmp_path: Path) -> Path:
    """A run that can be finished; its working folder may be changed."""
    path = tmp_path / "run"
    shutil.copytree(stopped, partial_of(path))
    return path


def results(out: Path) -> list[Path]:
    return sorted(partial_of(out).glob("tasks/*/*.task"))


def finish(undisturbed: Undisturbed, out: Path) -> None:
    lpact.load_study(undisturbed.study).run(out, workers=1, progress=False)


def test_nothing_is_computed_again_where_nothing_is_damaged(undisturbed, out) -> None:
    n = len(results(out))
    assert n == len(computed(undisturbed.run)) > len(DAMAGES)
    finish(undisturbed, out)
    assert len(computed(out)) == n
    assert events(out, "damaged_result") == []
    assert_same_run(out, undisturbed.run)


def test_damaged_results_are_named_and_computed_again(undisturbed, out) -> None:
    files = results(out)
    last = files[-1]
    damaged = dict(zip(files, DAMAGES, strict=False))
    assert len(damaged) == len(DAMAGES)
    assert last not in damaged
    n_before = len(computed(partial_of(out)))
    for path, damage in damaged.items():
        damage(path, last)
    finish(undisturbed, out)
    named = events(out, "damaged_result")
    assert sorted(Path(event["what"].split(": ")[1]).name for event in named) == sorted(path.name for path in damaged)
    assert all(event["task"] and event["key"] for event in named)
    # What was damaged is computed again, and nothing else.
    assert sorted(computed(out)[n_before:]) == sorted(path.name for path in damaged)
    assert_same_run(out, undisturbed.run)


def test_removed_results_are_computed_again(undisturbed, out) -> None:
    gone, lost = results(out)[:2]
    n_before = len(computed(partial_of(out)))
    gone.unlink()
    lost.unlink()
    lost.symlink_to("nowhere")
    finish(undisturbed, out)
    assert sorted(computed(out)[n_before:]) == sorted([gone.name, lost.name])
    assert_same_run(out, undisturbed.run)


def test_a_folder_in_the_place_of_a_result_is_refused_and_kept(undisturbed, out) -> None:
    path = results(out)[0]
    content = path.read_bytes()
    path.unlink()
    path.mkdir()
    (path / "mine.txt").write_text("mine")
    with pytest.raises(RunError, match="a finished task cannot be read") as caught:
        finish(undisturbed, out)
    assert caught.value.where == str(path)
    assert "in the way" in str(caught.value.remedy)
    assert (path / "mine.txt").read_text() == "mine"
    (path / "mine.txt").unlink()
    path.rmdir()
    path.write_bytes(content)
    finish(undisturbed, out)
    assert_same_run(out, undisturbed.run)


def test_a_result_damaged_before_the_tables_are_made_is_refused(undisturbed, tmp_path, monkeypatch) -> None:
    """The run that computed it has checked it once; it is checked again when it is read."""
    out = tmp_path / "run"
    touched: list[Path] = []

    def damage() -> None:
        path = results(out)[3]
        flip_a_bit(path, path)
        touched.append(path)

    with monkeypatch.context() as patch:
        stop_at(DECISION, patch, damage)
        with pytest.raises(RunError, match="the result of a finished task is damaged") as caught:
            finish(undisturbed, out)
    assert caught.value.where == str(touched[0])
    assert caught.value.remedy == "run again: it is computed again"
    assert not out.exists()
    n_before = len(computed(partial_of(out)))
    finish(undisturbed, out)
    assert computed(out)[n_before:] == [touched[0].name]
    assert len(events(out, "damaged_result")) == 1
    assert_same_run(out, undisturbed.run)


def test_brain_patterns_damaged_before_they_are_compared_fail_only_who_needs_them(
    undisturbed, tmp_path, monkeypatch
) -> None:
    out = tmp_path / "run"
    touched: list[Path] = []

    def damage() -> None:
        path = results(out)[0]
        cut(path, path)
        touched.append(path)

    with monkeypatch.context() as patch:
        stop_at(LEVELS, patch, damage)
        with pytest.raises(RunError, match="failed, and the run is not published") as caught:
            finish(undisturbed, out)
    assert str(touched[0]) in str(caught.value)
    failed = events(partial_of(out), "task_failed")
    assert 0 < len(failed) < len(computed(partial_of(out)))
    n_before = len(computed(partial_of(out)))
    finish(undisturbed, out)
    names = computed(out)[n_before:]
    assert len(names) == len(failed) + 1
    assert touched[0].name in names
    assert_same_run(out, undisturbed.run)


def test_left_over_temporary_files_are_harmless(undisturbed, out) -> None:
    """A process that is killed while it writes leaves a file without a name."""
    for folder in {path.parent for path in results(out)}:
        (folder / ".0123456789abcdef.tmp").write_bytes(b"half of a result")
    (partial_of(out) / "run").mkdir()
    (partial_of(out) / "run" / ".0123456789abcdef.tmp").write_bytes(b"half of a table")
    n_before = len(computed(partial_of(out)))
    finish(undisturbed, out)
    assert len(computed(out)) == n_before
    assert_same_run(out, undisturbed.run)
