"""The report folder: complete or not at all, the same bytes every time, nothing of anybody else's touched."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

import lpact
from lpact.analyses.lpact import robustness
from lpact.analyses.lpact.analysis import LPact
from lpact.errors import RunError
from lpact.report.folder import CONTENTS, REPORT_PAGE, new_folder, refuse_foreign, report_contents
from lpact.report.write import MOST_LATEX_ROWS
from lpact.study import Run

NAMES = [name for section in LPact.figures.values() for name in section]


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_everything_is_there(small_run: Run, small_report: Path) -> None:
    found = set(files(small_report))
    for name in NAMES:
        for suffix in ("svg", "pdf", "png"):
            assert f"figures/{name}.{suffix}" in found
    for table in small_run.tables():
        if small_run.table(table.name).height <= MOST_LATEX_ROWS:
            assert f"tables/{table.name}.tex" in found
        twin = small_run.root / f"{table.name}.csv"
        assert (small_report / f"tables/{table.name}.csv").read_bytes() == twin.read_bytes()
    assert {REPORT_PAGE, "methods.md", "methods.tex", "references.bib"} <= found
    assert "tables/controls/main_table_conventional_vs_lpact_contrast.csv" in found


@pytest.mark.slow
def test_contents_lists_every_file_with_its_checksum(small_report: Path) -> None:
    listed = json.loads((small_report / CONTENTS).read_text())
    assert listed == {path: own for path, own in files(small_report).items() if path != CONTENTS}
    assert report_contents(small_report) == set(files(small_report))


@pytest.mark.slow
def test_the_page_holds_every_figure_and_is_small(small_report: Path) -> None:
    page = (small_report / REPORT_PAGE).read_text()
    for name in NAMES:
        assert f'id="figure-{name}"' in page
    assert page.count('<div class="picture"') == len(NAMES)
    assert len(page) < 15e6
    assert str(small_report) not in page


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes_with_processes_too(
    small_run: Run, small_report: Path, tmp_path: Path
) -> None:
    again = small_run.report(tmp_path / "again", workers=2)
    assert files(again.folder) == files(small_report)


def put(target: Path, text: str) -> None:
    refuse_foreign(target)
    with new_folder(target) as made:
        (made / REPORT_PAGE).write_text(text)


def test_a_report_replaces_an_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "report"
    for text in ("first", "second"):
        put(target, text)
    assert (target / REPORT_PAGE).read_text() == "second"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report"]
    (target / "notes").mkdir()
    (target / "notes" / "mine.txt").write_text("keep me")
    with pytest.raises(RunError, match="did not write") as refused:
        refuse_foreign(target)
    assert refused.value.got == "notes/mine.txt"


def test_a_file_that_was_edited_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "report"
    put(target, "first")
    (target / REPORT_PAGE).write_text("my notes")
    with pytest.raises(RunError, match="changed since") as refused:
        refuse_foreign(target)
    assert refused.value.got in {REPORT_PAGE, CONTENTS}


def test_a_file_that_comes_meanwhile_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "report"
    put(target, "first")

    def meanwhile() -> None:
        with new_folder(target) as made:
            (made / REPORT_PAGE).write_text("second")
            (target / "mine.txt").write_text("keep me")

    with pytest.raises(RunError, match="did not write"):
        meanwhile()
    assert (target / "mine.txt").read_text() == "keep me"
    assert (target / REPORT_PAGE).read_text() == "first"


@pytest.mark.parametrize("fault", [OSError("no"), KeyboardInterrupt()])
def test_a_fault_between_the_two_renames_leaves_the_earlier_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    target = tmp_path / "report"
    put(target, "first")
    rename = Path.rename

    def fail(self: Path, to: Path) -> Path:
        if self.name == "new":
            raise fault
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises((RunError, KeyboardInterrupt)):
        put(target, "second")
    assert (target / REPORT_PAGE).read_text() == "first"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report"]


def test_what_goes_wrong_leaves_the_earlier_report(tmp_path: Path) -> None:
    target = tmp_path / "report"
    with new_folder(target) as made:
        (made / REPORT_PAGE).write_text("good")

    def fail() -> None:
        with new_folder(target) as made:
            (made / REPORT_PAGE).write_text("bad")
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        fail()
    assert (target / REPORT_PAGE).read_text() == "good"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report"]


def test_a_file_or_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link"):
        with pytest.raises(RunError, match="cannot be written to this place"):
            refuse_foreign(tmp_path / name)
    refuse_foreign(tmp_path / "new")


def test_a_changed_table_is_not_reported_on(small_run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(small_run.root, copy)
    table = copy / "decisions" / "lpact_decision_table.parquet"
    table.write_bytes(table.read_bytes() + b"x")
    with pytest.raises(RunError, match="has changed since the run was published"):
        lpact.open_run(copy).report(tmp_path / "report")
    assert not (tmp_path / "report").exists()


@pytest.mark.slow
def test_figures_that_cannot_be_drawn_are_named(
    small_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robustness, "MAX_CLAIM_DECISIONS", 0)
    written = small_run.report(tmp_path / "report", tables=False)
    assert {own.name for own in written.missing} == {"sensitivity"}
    page = written.page.read_text()
    for own in written.missing:
        assert own.reason
        assert "Not drawn: " in page
    assert written.n_tables == 0
    assert not (written.folder / "tables").exists()
