"""Tables whose checksums all match: the CSV file against the Parquet file, schema, row order; damaged files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tampering import rehash_lock, rehash_manifest

from lpact.archive import lock_run, verify_run
from lpact.archive.verify import CheckedTables
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


def scaled_parquet(root: Path) -> None:
    path = root / f"{SCORES}.parquet"
    stored = pq.read_table(path)
    at = stored.schema.names.index("score_median")
    doubled = pa.array([None if v is None else 2 * v for v in stored["score_median"].to_pylist()])
    pq.write_table(stored.set_column(at, stored.schema.field(at), doubled), path)


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
    "a label in the CSV file": (label_in_csv, f"{DECISIONS}.csv", "line 2 reads '"),
    "a row in the CSV file": (row_in_csv, f"{DECISIONS}.csv", "instead of ''"),
    "values of the Parquet file": (
        scaled_parquet,
        f"{SCORES}.csv",
        "not what the Parquet file gives",
    ),
    "a repeated key": (repeated_key, f"{DECISIONS}.parquet", "a key occurs more than once"),
    "a missing column": (column_gone, f"{DECISIONS}.parquet", "the column 'reason' is missing"),
    "a type": (column_of_another_type, f"{DECISIONS}.parquet", "a column has the wrong type"),
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
    (problem,) = [p for p in verify_run(root, report=False).problems if p.kind == "table"]
    assert problem.where == f"{DECISIONS}.csv"
    assert "integrated_candidate" in problem.what


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
            tables = CheckedTables(root, [TABLE], set())
            unreadable += DECISIONS not in tables
            assert DECISIONS not in tables or tables[DECISIONS].columns == before.columns
        path.write_bytes(whole)
    assert CheckedTables(root, [TABLE], set())[DECISIONS].equals(before)
    assert unreadable > 0
