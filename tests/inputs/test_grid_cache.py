"""Grids kept on disk: the same as new ones, and never those of other sources."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import lpact.inputs.grid_cache as grid_cache
from dataset_writers.alice import write_alice
from lpact.config import DatasetConfig
from lpact.datasets.base import DATASETS
from lpact.inputs.grid_cache import GridCache, fingerprint, put_on_grid

ENTRY = {
    "name": "alice",
    "reader": "alice",
    "role": "primary",
    "grid": {"events": "trs", "tr_features": "hrf", "lags_ms": (0.0,)},
}


@pytest.fixture
def made(tmp_path):
    write_alice(tmp_path / "data")
    return open_alice(tmp_path / "data")


def open_alice(folder: Path):
    return DATASETS.build("alice").open(name="alice", path=folder, seed=0)


def cache(tmp_path, dataset, keep_after_s=-1.0):
    files = fingerprint(dataset)
    return GridCache(tmp_path / "grids", lambda name: files, keep_after_s=keep_after_s)


def place(kept, dataset, **changes):
    recording_id = dataset.recording_ids()[0]
    entry = DatasetConfig(**(ENTRY | changes))
    return kept.place(dataset, recording_id, dataset.stimulus("alice"), entry)


def same(a, b) -> None:
    for field in fields(a):
        if field.name != "grid":
            assert getattr(a, field.name) == getattr(b, field.name), field.name
    for field in fields(a.grid):
        one, two = getattr(a.grid, field.name), getattr(b.grid, field.name)
        if field.name == "weights":
            assert (one is None) == (two is None)
            if one is not None:
                assert (one.shape, one.dtype) == (two.shape, two.dtype)
                np.testing.assert_array_equal(one.toarray(), two.toarray())
        elif isinstance(one, np.ndarray):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)
        else:
            assert one == two, field.name


@pytest.fixture
def reads(monkeypatch):
    """Counts how often a recording is read."""
    seen = []

    def counted(*arguments):
        seen.append(arguments[1])
        return put_on_grid(*arguments)

    monkeypatch.setattr(grid_cache, "put_on_grid", counted)
    return seen


@pytest.mark.parametrize(
    "options",
    [
        {"tr_features": "hrf"},
        {"tr_features": "pool"},
        {"tr_features": "lanczos", "fir_ms": (2000.0, 4000.0, 6000.0)},
    ],
    ids=["hrf", "pool", "fir"],
)
def test_a_kept_grid_is_the_same_bit_for_bit(tmp_path, made, reads, options):
    grid = {"events": "trs", "lags_ms": (0.0, 2000.0), **options}
    first = place(cache(tmp_path, made), made, grid=grid)
    again = place(cache(tmp_path, made), made, grid=grid)
    assert len(reads) == 1
    same(first, again)


def test_quick_reads_are_not_kept(tmp_path, made, reads):
    for _ in range(2):
        place(cache(tmp_path, made, keep_after_s=3600.0), made)
    assert len(reads) == 2
    assert not (tmp_path / "grids").exists()


def test_other_sources_options_or_code_make_a_new_grid(tmp_path, made, reads, monkeypatch):
    place(cache(tmp_path, made), made)
    data = tmp_path / "data/alice_data_shared/10mm/s18-timecourses.txt"
    data.write_text(data.read_text().replace("0.000000", "0.500000", 1))
    changed = open_alice(tmp_path / "data")
    place(cache(tmp_path, changed), changed)
    assert len(reads) == 2
    place(cache(tmp_path, changed), changed, preprocess={"detrend": True})
    assert len(reads) == 3
    place(cache(tmp_path, changed), changed)
    assert len(reads) == 3
    monkeypatch.setattr(grid_cache, "code_digest", lambda: "other")
    place(cache(tmp_path, changed), changed)
    assert len(reads) == 4


@pytest.mark.parametrize("content", [b"", b"PK torn", None])
def test_a_torn_file_is_made_again(tmp_path, made, reads, content):
    first = place(cache(tmp_path, made), made)
    (file,) = (tmp_path / "grids").iterdir()
    file.write_bytes(file.read_bytes()[:-200] if content is None else content)
    again = place(cache(tmp_path, made), made)
    assert len(reads) == 2
    same(first, again)


def test_files_that_change_while_they_are_read_are_not_kept(tmp_path, made, monkeypatch):
    """A recording that is still being copied must not be kept under the checksum of the finished file."""
    data = tmp_path / "data/alice_data_shared/10mm/s18-timecourses.txt"

    def changed_meanwhile(*arguments):
        placed = put_on_grid(*arguments)
        data.write_text(data.read_text().replace("0.000000", "0.500000", 1))
        return placed

    monkeypatch.setattr(grid_cache, "put_on_grid", changed_meanwhile)
    place(cache(tmp_path, made), made)
    assert not (tmp_path / "grids").exists()


def test_a_folder_that_cannot_be_written_is_not_used(tmp_path, made, reads):
    (tmp_path / "grids").write_text("a file is in the way")
    first = place(cache(tmp_path, made), made)
    again = place(cache(tmp_path, made), made)
    assert len(reads) == 2
    same(first, again)


def test_a_reader_that_changes_makes_a_new_grid(tmp_path, made, reads, monkeypatch):
    place(cache(tmp_path, made), made)
    monkeypatch.setattr(grid_cache, "_reader", lambda name: "plugin 2.0")
    place(cache(tmp_path, made), made)
    assert len(reads) == 2
