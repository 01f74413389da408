"""Small Parquet files that would fill the memory are named, and not read; honest ones are read whatever they hold."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tampering import sha256, writable_copy

from lpact.archive import opened_run, read_lock, verify_run
from lpact.archive.apart import apart
from lpact.archive.check_tables import unreadable_tables
from lpact.archive.lockfile import Sealed, make_lock, write_lock
from lpact.archive.page_headers import pages
from lpact.archive.swollen import limit_of, parquet_fault
from lpact.archive.twins import UnreadableError, read_csv, read_parquet
from lpact.errors import RunError
from lpact.store import read_table, write_table
from lpact.tables import find_table

Copy = Callable[[], Path]
DECISIONS = "decisions/lpact_decision_table"
INVENTORY = "audits/lpact_dataset_unit_inventory"


def fault(path: Path, csv: Path | None = None) -> str | None:
    with path.open("rb") as handle:
        return parquet_fault(handle, limit_of(path, csv))


def write(folder: Path, columns: dict[str, Any], *, csv_bytes: int, **more: Any) -> str | None:
    """A Parquet file beside a CSV file of so many bytes: why it is not read."""
    path, csv = folder / "x.parquet", folder / "x.csv"
    pq.write_table(pa.table(columns), path, compression="zstd", **more)
    csv.write_bytes(b"x" * csv_bytes)
    found = fault(path, csv)
    if found is not None:
        with pytest.raises(UnreadableError, match="says to hold more than it can"):
            read_parquet(path, csv)
    return found


def long_text(n_rows: int, length: int) -> pa.Array:
    indices = pa.array([0] * n_rows, pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(["a" * length]))


def test_a_long_text_that_stands_once_in_the_file_and_often_in_the_table(tmp_path: Path) -> None:
    columns = {"a": long_text(30, 100_000)}
    found = write(tmp_path, columns, csv_bytes=2_999_999)
    assert (tmp_path / "x.parquet").stat().st_size < 2000
    assert found == "3000000 bytes of text or more; at most 2999999, the bytes of the CSV file"
    assert write(tmp_path, columns, csv_bytes=3_000_000) is None
    assert (
        read_parquet(tmp_path / "x.parquet")["a"].cast(pl.String).str.len_bytes().sum() == 3_000_000
    )


def test_the_same_in_lists_and_over_row_groups(tmp_path: Path) -> None:
    texts = long_text(30, 100_000)
    lists = pa.LargeListArray.from_arrays(pa.array([0, 10, 10, 30], pa.int64()), texts)
    assert write(tmp_path, {"a": lists}, csv_bytes=3_000_000) is None
    assert "3000000 bytes of text" in str(write(tmp_path, {"a": lists}, csv_bytes=2_999_999))
    more = {"row_group_size": 7}
    assert write(tmp_path, {"a": texts}, csv_bytes=3_000_000, **more) is None
    assert "bytes of text" in str(write(tmp_path, {"a": texts}, csv_bytes=2_999_999, **more))


def test_pages_that_unpack_to_more_than_they_should(tmp_path: Path) -> None:
    """They are not unpacked to find that out."""
    columns = {"a": ["a" * 2**22] * 4}
    found = write(tmp_path, columns, csv_bytes=1000, use_dictionary=False)
    assert (tmp_path / "x.parquet").stat().st_size < 2**15
    assert str(found).startswith("pages of 167")


def test_texts_that_share_their_beginnings(tmp_path: Path) -> None:
    more = {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}
    found = write(tmp_path, {"a": ["a" * 9000] * 90}, csv_bytes=900_000, **more)
    assert found == "an encoding of texts that lpact does not write"


def test_values_of_a_fixed_length(tmp_path: Path) -> None:
    columns = {"a": pa.array([b"a" * 100_000] * 90, pa.binary(100_000))}
    assert str(write(tmp_path, columns, csv_bytes=1000)).startswith("pages of 9000000 bytes")
    assert write(tmp_path, {"a": pa.array([Decimal(1)] * 3)}, csv_bytes=1000) is None


def test_many_values_in_few_bytes(tmp_path: Path) -> None:
    columns = {"a": np.zeros(3_000_000, dtype=np.int64)}
    found = write(tmp_path, columns, csv_bytes=2_999_999)
    assert found == "3000000 values; at most 2999999, the bytes of the CSV file"
    path = tmp_path / "x.parquet"
    assert path.stat().st_size < 2**16
    assert "because it has no CSV twin" in str(fault(path))
    (tmp_path / "link.csv").symlink_to("/dev/zero")
    assert "because it has no CSV twin" in str(fault(path, tmp_path / "link.csv"))


def test_more_columns_than_any_table_has(tmp_path: Path) -> None:
    assert "1001 columns" in str(
        write(tmp_path, {f"c{i}": [1] for i in range(1001)}, csv_bytes=9999)
    )
    csv = tmp_path / "x.csv"
    csv.write_text("," * 5000 + "\n")
    with pytest.raises(UnreadableError, match="a first line of more than 1000 columns"):
        read_csv(csv, find_table(DECISIONS))


@pytest.mark.parametrize(
    ("name", "column", "cell"),
    [
        (DECISIONS, "predictive", "perhaps"),
        ("relational/brain_half_patterns", "pattern", "[" * 100_000),
    ],
)
def test_cells_that_are_none_of_their_type_are_unreadable(
    name: str, column: str, cell: str, tmp_path: Path
) -> None:
    csv = tmp_path / "x.csv"
    csv.write_text(f"{column}\n{cell}\n")
    with pytest.raises(UnreadableError, match="cannot be read"):
        read_csv(csv, find_table(name))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"data_page_version": "2.0"},
        {"data_page_size": 200, "write_batch_size": 16},
        {"use_dictionary": False, "write_page_checksum": True},
        {"row_group_size": 100, "compression": "none"},
    ],
)
def test_page_headers_say_what_arrow_counts(tmp_path: Path, more: dict[str, Any]) -> None:
    """Arrow's writer adds up the same numbers by itself, headers included; there are less than 200 bytes of each."""
    chance = np.random.default_rng(8)
    columns = {
        "number": chance.normal(size=500),
        "text": [None if i % 7 == 0 else f"text {i % 40}" * (i % 5) for i in range(500)],
        "lists": [list(range(i % 4)) for i in range(500)],
        "truth": [i % 3 == 0 for i in range(500)],
    }
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns), path, **more)
    metadata = pq.ParquetFile(path).metadata
    n_pages = 0
    with path.open("rb") as handle:
        for i in range(metadata.num_row_groups):
            for j in range(metadata.num_columns):
                column = metadata.row_group(i).column(j)
                found = list(pages(handle, column))
                assert sum(page.n_values for page in found) == column.num_values
                headers = column.total_uncompressed_size - sum(page.n_bytes for page in found)
                assert 10 * len(found) <= headers < 200 * len(found)
                n_pages += len(found)
    assert n_pages >= 4
    assert fault(path, None) is None


def test_page_headers_that_make_no_sense_are_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1.5, 2.5]}), path, use_dictionary=False)
    whole = path.read_bytes()
    for start in (b"\xff" * 20, b"\x00" * 20, b"\x19\xff\xff\xff\xff\x0f", b"\x1c" * 20):
        path.write_bytes(whole[:4] + start + whole[4 + len(start) :])
        with pytest.raises(UnreadableError):
            read_parquet(path)


def test_every_table_of_a_run_is_read(locked: Path) -> None:
    """The positive twin: also empty ones, and ones with long texts in a few rows."""
    with apart() as reader:
        assert unreadable_tables(locked, reader) == []
    names = read_lock(locked).sealed.tables
    heights = {
        name: read_parquet(locked / f"{name}.parquet", locked / f"{name}.csv").height
        for name in names
    }
    assert heights == {name: facts.n_rows for name, facts in names.items()}
    assert min(heights.values()) == 0


def test_one_long_text_among_short_ones_is_read(locked: Path, tmp_path: Path) -> None:
    table = find_table(DECISIONS)
    own = read_table(locked, table)
    first = pl.int_range(pl.len()) == 0
    text = pl.when(first).then(pl.lit("long " * 20_000)).otherwise("reason")
    write_table(own.with_columns(reason=text), table, tmp_path)
    frame = read_parquet(tmp_path / f"{DECISIONS}.parquet", tmp_path / f"{DECISIONS}.csv")
    assert frame["reason"][0] == "long " * 20_000


def refit(root: Path, *, without: tuple[str, ...] = ()) -> None:
    """Make the lock fit with the files as they are; table facts stay."""
    lock = read_lock(root)
    values = lock.sealed.model_dump(mode="json")
    files = {name: root / name for name in values["files"] if name not in without}
    values["files"] = {
        name: {"n_bytes": path.stat().st_size, "sha256": sha256(path)}
        for name, path in files.items()
    }
    sealed = Sealed.model_validate_json(json.dumps(values))
    write_lock(root, make_lock(sealed, locked_on=lock.locked_on))


def pack(root: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for own in sorted(p for p in root.rglob("*") if p.is_file()):
            archive.write(own, own.relative_to(root).as_posix())
    return path


def swell(root: Path, name: str) -> None:
    """One text of a table is 100 kB long, in every row: few bytes in the file."""
    table = pq.read_table(root / f"{name}.parquet")
    at = next(i for i, f in enumerate(table.schema) if pa.types.is_large_string(f.type))
    column = long_text(max(30, table.num_rows), 100_000)
    row = table.slice(0, 1)
    many = pa.concat_tables([row] * len(column))
    pq.write_table(many.set_column(at, table.schema.names[at], column), root / f"{name}.parquet")


@pytest.mark.parametrize("name", [DECISIONS, INVENTORY])
def test_a_swollen_table_of_a_run_is_named_and_nothing_reads_it(
    name: str, copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that neither decisions nor units need: the report reads it."""
    root = copy()
    swell(root, name)
    refit(root)
    opened: list[str] = []
    monkeypatch.setattr("lpact.store.stored.read_table", lambda _, own: opened.append(own.name))
    found = verify_run(root)
    said = [p.text for p in found.problems if p.kind == "table"]
    assert len(said) == 1
    what = "cannot be read: a table file says to hold more than it can"
    assert said[0].startswith(f"{name}.parquet: {what}")
    assert any("because a table is not read" in note for note in found.notes)
    assert opened == []
    archive = pack(root, tmp_path / "x.zip")
    with pytest.raises(RunError, match=rf"{name}\.parquet: a table file says"), opened_run(archive):
        pass


def test_an_archive_without_a_twin_is_refused(copy: Copy, tmp_path: Path) -> None:
    root = copy()
    os.remove(root / f"{DECISIONS}.csv")
    archive = pack(root, tmp_path / "x.zip")
    with pytest.raises(RunError, match=rf"{DECISIONS}\.csv is missing"), opened_run(archive):
        pass


def test_a_lock_that_lists_no_twin_is_refused(copy: Copy, tmp_path: Path) -> None:
    root = copy()
    os.remove(root / f"{DECISIONS}.csv")
    refit(root, without=(f"{DECISIONS}.csv",))
    (problem,) = verify_run(root, report=False).problems
    assert problem.text == (
        f"{DECISIONS}.csv: is not listed, although its twin is: a table has two files"
    )
    archive = pack(root, tmp_path / "x.zip")
    with pytest.raises(RunError, match=rf"{DECISIONS}\.csv: is not listed"), opened_run(archive):
        pass


def test_the_description_of_an_archive_is_not_made_from_a_swollen_table(
    copy: Copy, locked: Path, tmp_path: Path
) -> None:
    from lpact.archive import export_run

    made = export_run(locked, tmp_path / "plain.zip")
    root = copy()
    with zipfile.ZipFile(made.path) as archive:
        (root / "ro-crate-metadata.json").write_bytes(archive.read("ro-crate-metadata.json"))
    assert verify_run(root, report=False).ok
    swell(root, DECISIONS)
    refit(root)
    crate = [p.what for p in verify_run(root, report=False).problems if p.kind == "crate"]
    assert len(crate) == 1
    assert "cannot be made" in crate[0]


def test_copies_can_be_refitted(copy: Copy, tmp_path: Path) -> None:
    """The positive twin of what is refused here."""
    root = writable_copy(copy(), tmp_path / "again")
    refit(root)
    assert verify_run(root, report=False).ok
    with opened_run(pack(root, tmp_path / "x.zip")) as opened:
        assert (opened / "lock.json").is_file()
