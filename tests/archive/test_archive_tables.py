"""Tables whose checksums all match: the CSV file against the Parquet file, schema, row order; damaged files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tampering import rehash_lock, rehash_manifest

from lpact.archive import lock_run, verify_run
from lpact.archive.tables import CheckedTables, read_file
from lpact.errors import RunError
from lpact.store import read_table, table_path
from lpact.tables import find_table

Copy = Callable[[], Path]
DECISIONS = "decisions/lpact_decision_table"
SCORES = "predictive/predictive_scores"
TABLE = find_table(DECISIONS)


def _csv(root: Path) -> Path:
    return root / f"{DECISIONS}.csv"


def label_in_csv(root: Path) -> None:
    label = read_table(root, TABLE)["label"][0]
    lines = _csv(root).read_text().splitlines(keepends=True)
    assert label in lines[1]
    lines[1] = lines[1].replace(label, "integrated_candidate", 1)
    _csv(root).write_text("".join(lines))


def row_in_csv(root: Path) -> None:
    lines = _csv(root).read_text().splitlines(keepends=True)
    _csv(root).write_text("".join([*lines, lines[-1]]))


def quotes_in_csv(root: Path) -> None:
    """The same values, with unnecessary quotes."""
    header, rest = _csv(root).read_text().split("\n", 1)
    first, comma, more = header.partition(",")
    _csv(root).write_text(f'"{first}"{comma}{more}\n{rest}')


def scaled_parquet(root: Path) -> None:
    path = root / f"{SCORES}.parquet"
    stored = pq.read_table(path)
    at = stored.schema.names.index("score_median")
    doubled = pa.array([None if v is None else 2 * v for v in stored["score_median"].to_pylist()])
    pq.write_table(stored.set_column(at, stored.schema.field(at), doubled), path)


def reversed_parquet(root: Path) -> None:
    path = root / f"{DECISIONS}.parquet"
    stored = pq.read_table(path)
    pq.write_table(stored.take(list(range(stored.num_rows))[::-1]), path)


def repeated_key(root: Path) -> None:
    path = root / f"{DECISIONS}.parquet"
    stored = pq.read_table(path)
    pq.write_table(pa.concat_tables([stored, stored.slice(0, 1)]), path)


def column_gone(root: Path) -> None:
    path = root / f"{DECISIONS}.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["reason"]), path)


def column_of_another_type(root: Path) -> None:
    path = root / f"{DECISIONS}.parquet"
    stored = pq.read_table(path)
    at = stored.schema.names.index("layer")
    pq.write_table(stored.set_column(at, "layer", stored["layer"].cast(pa.float64())), path)


FORGED = {
    "a label in the CSV file": (label_in_csv, f"{DECISIONS}.csv", "→ 'integrated_candidate'"),
    "a row in the CSV file": (row_in_csv, f"{DECISIONS}.csv", "the row was added"),
    "values of the Parquet file": (scaled_parquet, f"{SCORES}.csv", "→"),
    "rows of the Parquet file": (reversed_parquet, f"{DECISIONS}.parquet", "in another order"),
    "a repeated key": (repeated_key, f"{DECISIONS}.parquet", "does not match its declared schema"),
    "a missing column": (column_gone, f"{DECISIONS}.parquet", "no column 'reason'"),
    "a type": (column_of_another_type, f"{DECISIONS}.parquet", "Float64 instead of Int64"),
}


@pytest.mark.parametrize(("forge", "where", "what"), FORGED.values(), ids=FORGED.keys())
def test_a_file_that_differs_from_its_twin_is_named_though_all_checksums_match(
    forge: Callable[[Path], None], where: str, what: str, copy: Copy
) -> None:
    root = copy()
    (root / "lock.json").unlink()
    forge(root)
    rehash_manifest(root)
    found = verify_run(root, report=False).problems
    assert not [problem for problem in found if problem.kind == "file"]
    assert what in "\n".join(p.text for p in found if p.kind == "table" and p.where == where)
    with pytest.raises(RunError, match="does not pass verification and was not locked") as refused:
        lock_run(root)
    assert where in str(refused.value)
    assert not (root / "lock.json").exists()


def test_the_same_with_a_lock_that_matches(copy: Copy) -> None:
    root = copy()
    label_in_csv(root)
    rehash_lock(root)
    cells = [p for p in verify_run(root, report=False).problems if p.kind == "table"]
    assert [(p.where, p.column, p.new) for p in cells] == [
        (f"{DECISIONS}.csv", "label", "integrated_candidate")
    ]


def test_other_bytes_with_the_same_values_are_a_note(copy: Copy) -> None:
    """As another version of Polars may write them."""
    root = copy()
    assert not [n for n in verify_run(root, report=False).notes if "Same values" in n]
    quotes_in_csv(root)
    rehash_manifest(root)
    rehash_lock(root)
    found = verify_run(root, report=False)
    assert found.ok
    assert any("Same values" in note and f"{DECISIONS}.csv" in note for note in found.notes)


def test_a_lock_that_lists_one_file_of_a_table_is_named(copy: Copy) -> None:
    root = copy()
    (root / "lock.json").unlink()
    path = f"{DECISIONS}.csv"
    text = (root / "manifest.json").read_text()
    assert path in text
    (root / "manifest.json").write_text(text.replace(path, f"{DECISIONS}.tsv"))
    _csv(root).rename(root / f"{DECISIONS}.tsv")
    found = {p.where: p.what for p in verify_run(root, report=False).problems}
    assert found[path] == "is not listed: a table has two files"


@pytest.mark.parametrize(
    ("column", "cell"),
    [("layer", "one"), ("layer", "1.5"), ("predictive", "yes"), ("raw_score", "[1]")],
)
def test_cells_of_another_type_make_a_csv_file_unreadable(
    column: str, cell: str, locked: Path, tmp_path: Path
) -> None:
    frame = pl.read_csv(table_path(locked, TABLE, ".csv"), infer_schema=False)
    first = pl.int_range(pl.len()) == 0
    changed = pl.when(first).then(pl.lit(cell)).otherwise(pl.col(column)).alias(column)
    frame.with_columns(changed).write_csv(tmp_path / "x.csv")
    with pytest.raises(RunError, match="the table file cannot be read"):
        read_file(tmp_path / "x.csv", TABLE)
    frame.write_csv(tmp_path / "y.csv")
    assert read_file(tmp_path / "y.csv", TABLE).equals(read_table(locked, TABLE))


def test_random_bits_of_a_table_are_found_and_end_no_verification(copy: Copy, locked: Path) -> None:
    """Every flipped bit is an error or other values; the process goes on."""
    root, chance, unreadable = copy(), random.Random(9), 0
    before = read_table(locked, TABLE)
    for suffix in (".parquet", ".csv"):
        path = table_path(root, TABLE, suffix)
        whole = path.read_bytes()
        for _ in range(60):
            content = bytearray(whole)
            content[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
            path.write_bytes(content)
            tables = CheckedTables(root, [TABLE], set(), {})
            unreadable += DECISIONS not in tables
            assert DECISIONS not in tables or tables[DECISIONS].columns == before.columns
        path.write_bytes(whole)
    assert CheckedTables(root, [TABLE], set(), {})[DECISIONS].equals(before)
    assert unreadable == 0, "the other file can be read"
