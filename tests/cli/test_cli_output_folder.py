"""Tables in a new folder: all or nothing, and never into what is there."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from lpact.analyses.lpact.calibration.biases import measure_biases
from lpact.analyses.lpact.tables.calibration import BIASES
from lpact.cli import _options
from lpact.cli._options import refuse_existing, write_tables
from lpact.errors import LPactError, RunError
from lpact.store import read_table


@pytest.fixture(scope="module")
def tables() -> dict[str, pl.DataFrame]:
    return {BIASES.name: measure_biases(share=0.005).sort(BIASES.key)}


@pytest.mark.parametrize("there", [False, True])
def test_a_new_or_empty_folder_gets_tables_and_files(tmp_path, tables, there):
    out = tmp_path / "deep" / "out"
    if there:
        out.mkdir(parents=True)
    write_tables(tables, out, files={"about.json": b"{}"})
    assert read_table(out, BIASES).equals(tables[BIASES.name])
    assert (out / "about.json").read_bytes() == b"{}"
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    umask = os.umask(0)
    os.umask(umask)
    assert out.stat().st_mode & 0o777 == 0o777 & ~umask


def test_what_is_there_is_refused_and_left(tmp_path, tables):
    (tmp_path / "mine").write_text("keep")
    (tmp_path / "link").symlink_to("nowhere")
    for out in (tmp_path, tmp_path / "mine", tmp_path / "link"):
        with pytest.raises(RunError, match="it is not empty"):
            refuse_existing(out)
        with pytest.raises(RunError, match="it is not empty"):
            write_tables(tables, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "mine"]


def test_a_folder_inside_the_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="inside the run"):
        refuse_existing(tmp_path / "run" / "out", tmp_path / "run")
    refuse_existing(tmp_path / "run-out", tmp_path / "run")


def test_a_place_that_cannot_be_written_is_found_first(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="file is not a writable folder"):
        refuse_existing(tmp_path / "file" / "out")
    asked: list[Path] = []

    def no_access(path: Path, _: int) -> bool:
        asked.append(path)
        return False

    monkeypatch.setattr(_options.os, "access", no_access)
    with pytest.raises(RunError, match="is not a writable folder"):
        refuse_existing(tmp_path / "new" / "out")
    assert asked == [tmp_path]


def test_an_error_leaves_nothing(tmp_path, tables, monkeypatch):
    wrong = tables | {BIASES.name: tables[BIASES.name].drop("meaning")}
    with pytest.raises(LPactError, match="meaning"):
        write_tables(wrong, tmp_path / "out")
    with pytest.raises(RunError, match="choose a shorter output path"):
        write_tables(tables, tmp_path / ("x" * 400))
    assert list(tmp_path.iterdir()) == []
    # Somebody else fills the folder between the check and the end.
    monkeypatch.setattr(_options, "refuse_existing", lambda _: None)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("keep")
    with pytest.raises(RunError, match="cannot be used"):
        write_tables(tables, tmp_path / "out")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine"]
