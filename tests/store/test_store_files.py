from __future__ import annotations

import csv
import errno
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_examples import EVERY_TYPE, ROWS, row

from lpact.errors import RunError, TableError
from lpact.store import (
    atomic_write_bytes,
    frame,
    frame_from_columns,
    frames,
    read_table,
    sha256_file,
    table_path,
    validate,
    write_table,
)
from lpact.store.frames import ROWS_PER_CSV_SLICE, csv_rows

TWO = frame(EVERY_TYPE, [row(name="b"), row(name="a", delta=0.1, best="x")])


def parse(field: str, dtype: str, *, null: bool) -> object:
    """A CSV field by the standard library alone."""
    if null:
        assert field == ""
        return None
    if dtype.startswith("list["):
        return json.loads(field)
    return {"str": str, "int": int, "float": float, "bool": {"true": True, "false": False}.get}[dtype](field)


@settings(deadline=None)
@given(ROWS)
def test_round_trip_through_both_files(rows) -> None:
    built = frame(EVERY_TYPE, rows)
    with tempfile.TemporaryDirectory() as folder:
        parquet, twin = write_table(built, EVERY_TYPE, Path(folder))
        again = read_table(Path(folder), EVERY_TYPE)
        assert again.equals(validate(built, EVERY_TYPE))
        assert pq.read_table(parquet, partitioning=None).to_pylist() == again.to_dicts()
        with twin.open(encoding="utf-8", newline="") as handle:
            header, *lines = csv.reader(handle, strict=True)
    assert tuple(header) == EVERY_TYPE.column_names
    assert len(lines) == again.height
    for line, cells in zip(lines, again.to_dicts(), strict=True):
        for column, field in zip(EVERY_TYPE.columns, line, strict=True):
            value = cells[column.name]
            parsed = parse(field, column.dtype, null=value is None)
            assert parsed == value
            if column.dtype == "float" and value is not None:
                assert np.signbit(parsed) == np.signbit(value)


@settings(deadline=None)
@given(ROWS, st.randoms(use_true_random=False), st.integers(0, 6))
def test_bytes_depend_on_neither_row_order_nor_chunks(rows, rng: random.Random, cut) -> None:
    shuffled = list(rows)
    rng.shuffle(shuffled)
    parts = [frame(EVERY_TYPE, shuffled[:cut]), frame(EVERY_TYPE, shuffled[cut:])]
    chunked = pl.concat(parts, rechunk=False)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first = write_table(frame(EVERY_TYPE, rows), EVERY_TYPE, Path(one))
        second = write_table(chunked, EVERY_TYPE, Path(other))
        assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_bytes_of_a_large_table_do_not_depend_on_chunks(tmp_path) -> None:
    rng = np.random.default_rng(0)
    n_rows = 2 * ROWS_PER_CSV_SLICE + 17
    pattern = rng.standard_normal((n_rows, 3))
    pattern[::7, 1] = np.nan
    large = frame_from_columns(
        EVERY_TYPE,
        {
            "name": np.array(["a", "b"])[rng.integers(0, 2, n_rows)],
            "draw": np.arange(n_rows),
            "score": rng.standard_normal(n_rows),
            "delta": np.where(rng.random(n_rows) < 0.1, np.nan, 1.0),
            "passed": rng.random(n_rows) < 0.5,
            "best": None,
            "pattern": pattern,
            "layers": rng.integers(0, 9, (n_rows, 2)),
            "units": None,
        },
    )
    order = rng.permutation(n_rows)
    pieces = [large[order[start : start + 9_999]] for start in range(0, n_rows, 9_999)]
    first = write_table(large, EVERY_TYPE, tmp_path / "one")
    second = write_table(pl.concat(pieces, rechunk=False), EVERY_TYPE, tmp_path / "two")
    assert [sha256_file(p) for p in first] == [sha256_file(p) for p in second]
    assert len(first[1].read_text().splitlines()) == n_rows + 1
    assert read_table(tmp_path / "two", EVERY_TYPE).equals(large.sort("name", "draw"))


def test_other_rows_give_other_bytes(tmp_path) -> None:
    first = write_table(TWO, EVERY_TYPE, tmp_path / "one")
    second = write_table(TWO.with_columns(score=0.5000001), EVERY_TYPE, tmp_path / "two")
    assert all(a.read_bytes() != b.read_bytes() for a, b in zip(first, second, strict=True))


def test_csv_text_is_plain(tmp_path) -> None:
    rows = [
        row(name='q"u,o\nte', score=0.1, delta=-0.0, best="", units=["é", 'a"b']),
        row(name="", score=1e300, passed=False, best=None, pattern=[], layers=[], units=None),
    ]
    _, twin = write_table(frame(EVERY_TYPE, rows), EVERY_TYPE, tmp_path)
    assert twin.read_bytes().decode() == (
        "name,draw,score,delta,passed,best,pattern,layers,units\n"
        '"",0,1e+300,,false,,[],[],\n'
        '"q""u,o\nte",0,0.1,-0.0,true,"","[0.25,null]","[1,2]","[""é"",""a\\""b""]"\n'
    )


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_csv_floats_are_no_longer_than_pythons_shortest(value) -> None:
    with tempfile.TemporaryDirectory() as folder:
        built = frame(EVERY_TYPE, [row(score=value)])
        _, twin = write_table(built, EVERY_TYPE, Path(folder))
        field = twin.read_text().splitlines()[1].split(",")[2]
    digits = field.lower().split("e")[0].replace(".", "").strip("-0")
    shortest = repr(value).lower().split("e")[0].replace(".", "").strip("-0")
    assert digits == shortest


def test_parquet_carries_the_declaration(tmp_path) -> None:
    parquet, _ = write_table(TWO, EVERY_TYPE, tmp_path)
    assert parquet == tmp_path / "audits" / "every_type.parquet" == table_path(tmp_path, EVERY_TYPE)
    schema = pq.read_schema(parquet)
    assert json.loads(schema.metadata[b"key"]) == ["name", "draw"]
    assert schema.metadata[b"meaning"].decode() == EVERY_TYPE.meaning
    assert b"pandas" not in schema.metadata
    for column in EVERY_TYPE.columns:
        field = schema.field(column.name)
        assert field.nullable == column.nullable
        assert field.metadata[b"meaning"].decode() == column.meaning
        assert field.metadata[b"unit"].decode() == column.unit
    group = pq.ParquetFile(parquet).metadata.row_group(0)
    assert group.column(0).compression == "ZSTD"


def test_folders_that_look_like_partitions_add_no_column(tmp_path) -> None:
    root = tmp_path / "lag=100"
    write_table(TWO, EVERY_TYPE, root)
    assert tuple(read_table(root, EVERY_TYPE).columns) == EVERY_TYPE.column_names


def test_invalid_frames_are_not_written(tmp_path) -> None:
    with pytest.raises(TableError, match="more than once"):
        write_table(pl.concat([TWO, TWO]), EVERY_TYPE, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_table_is_named(tmp_path) -> None:
    with pytest.raises(RunError, match="is missing") as caught:
        read_table(tmp_path, EVERY_TYPE)
    assert caught.value.where == str(tmp_path / "audits" / "every_type.parquet")


def test_long_lists_are_written_in_small_pieces(monkeypatch) -> None:
    """The text of a table of draws would be many times as large as the table."""
    made = frame(EVERY_TYPE, [row(draw=i, pattern=[0.5] * 7, layers=[], units=[]) for i in range(100)])
    whole = "".join(csv_rows(made, EVERY_TYPE))
    monkeypatch.setattr(frames, "ITEMS_PER_CSV_SLICE", 70)
    pieces = list(csv_rows(made, EVERY_TYPE))
    assert [piece.count("\n") for piece in pieces] == [10] * 10
    assert "".join(pieces) == whole


def test_short_memory_is_not_damage(tmp_path, monkeypatch) -> None:
    write_table(TWO, EVERY_TYPE, tmp_path)

    def short(*_: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 8 failed")

    monkeypatch.setattr(pq.ParquetFile, "read", short)
    with pytest.raises(MemoryError):
        read_table(tmp_path, EVERY_TYPE)

    def full(*_: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(pq.ParquetFile, "read", full)
    with pytest.raises(RunError, match="cannot be read") as caught:
        read_table(tmp_path, EVERY_TYPE)
    assert "close other programs" in str(caught.value)


def test_damaged_tables_are_refused(tmp_path) -> None:
    parquet, _ = write_table(TWO, EVERY_TYPE, tmp_path)
    whole = parquet.read_bytes()
    footer_bytes = int.from_bytes(whole[-8:-4], "little")
    for damaged in (b"", b"not parquet", whole[:-20], whole[: len(whole) // 2]):
        parquet.write_bytes(damaged)
        with pytest.raises(RunError, match="is damaged"):
            read_table(tmp_path, EVERY_TYPE)
    n_noticed = 0
    for position in range(4, len(whole) - 8 - footer_bytes):
        flipped = bytearray(whole)
        flipped[position] ^= 0x10
        parquet.write_bytes(flipped)
        try:
            assert read_table(tmp_path, EVERY_TYPE).equals(TWO.sort("name", "draw"))
        except RunError:
            n_noticed += 1
    # Some bytes of page headers (statistics, offsets) carry no data; none may change a value.
    assert n_noticed > 0.5 * (len(whole) - footer_bytes)


def test_a_file_with_another_schema_is_a_table_error_that_names_it(tmp_path) -> None:
    parquet, _ = write_table(TWO, EVERY_TYPE, tmp_path)
    pq.write_table(pa.table({"name": ["a"], "draw": [1]}), parquet)
    with pytest.raises(TableError, match="is missing") as caught:
        read_table(tmp_path, EVERY_TYPE)
    assert str(parquet) in str(caught.value.where)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch) -> None:
    parquet, twin = write_table(TWO, EVERY_TYPE, tmp_path)
    before = parquet.read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("lpact.store.disk.os.fsync", full)
    with pytest.raises(RunError, match="free disk space") as caught:
        write_table(TWO.with_columns(score=9.0), EVERY_TYPE, tmp_path)
    assert caught.value.where == str(parquet)
    assert parquet.read_bytes() == before
    assert set(parquet.parent.iterdir()) == {parquet, twin}


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.EDQUOT, "raise the quota"),
        (errno.EACCES, "change the permissions"),
        (errno.EROFS, "another output folder"),
        (errno.ENAMETOOLONG, "shorter output path"),
        (errno.EIO, "check the path and its disk"),
    ],
)
def test_disk_errors_become_remedies(tmp_path, monkeypatch, code, remedy) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("lpact.store.disk.os.fsync", fail)
    with pytest.raises(RunError, match=remedy):
        atomic_write_bytes(tmp_path / "file", b"content")


def test_a_file_in_place_of_a_folder_is_named(tmp_path) -> None:
    (tmp_path / "audits").write_text("in the way")
    with pytest.raises(RunError, match="in the way"):
        write_table(TWO, EVERY_TYPE, tmp_path)


def test_the_systems_own_refusal_becomes_a_run_error(tmp_path) -> None:
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from store_examples import EVERY_TYPE, row\n"
        "from lpact.errors import RunError\n"
        "from lpact.store import frame, write_table\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))\n"
        "try: write_table(frame(EVERY_TYPE, [row()]), EVERY_TYPE, Path(sys.argv[1]))\n"
        "except RunError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert "free disk space" in done.stdout
    assert list((tmp_path / "audits").iterdir()) == []


def test_files_follow_the_umask(tmp_path) -> None:
    old = os.umask(0o027)
    try:
        atomic_write_bytes(tmp_path / "file", b"content")
    finally:
        os.umask(old)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
