"""Both files of a table, and the page of verdicts, are what lpact writes from the table, whatever checksums say."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tampering import edit_manifest, rehash_lock, rehash_manifest, writable_copy

from lpact.archive import export_run, lock_run, verify_run
from lpact.archive.check_report import first_difference
from lpact.errors import RunError
from lpact.report.folder import report_contents
from lpact.store import read_table
from lpact.tables import find_table

if TYPE_CHECKING:
    from lpact.study import Run

Copy = Callable[[], Path]
DECISIONS = "decisions/lpact_decision_table"
SCORES = "predictive/predictive_scores"


def _csv(root: Path) -> Path:
    return root / f"{DECISIONS}.csv"


def label_in_csv(root: Path) -> None:
    label = read_table(root, find_table(DECISIONS))["label"][0]
    lines = _csv(root).read_text().splitlines(keepends=True)
    assert label in lines[1]
    lines[1] = lines[1].replace(label, "integrated_candidate", 1)
    _csv(root).write_text("".join(lines))


def row_in_csv(root: Path) -> None:
    lines = _csv(root).read_text().splitlines(keepends=True)
    _csv(root).write_text("".join([*lines, lines[-1]]))


def spaces_in_csv(root: Path) -> None:
    """The same values, in quotes that nobody needs."""
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


def more_metadata(root: Path) -> None:
    path = root / f"{DECISIONS}.parquet"
    stored = pq.read_table(path)
    pq.write_table(stored.replace_schema_metadata({**stored.schema.metadata, b"x": b"y"}), path)


def repacked(root: Path) -> None:
    path = root / f"{DECISIONS}.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=2)


FORGED = {
    "a label in the CSV file": (label_in_csv, f"{DECISIONS}.csv", "→ 'integrated_candidate'"),
    "a row in the CSV file": (row_in_csv, f"{DECISIONS}.csv", "the row was added"),
    "quotes in the CSV file": (spaces_in_csv, f"{DECISIONS}.csv", "not written as lpact writes it"),
    "values of the Parquet file": (scaled_parquet, f"{SCORES}.csv", "→"),
    "rows of the Parquet file": (reversed_parquet, f"{DECISIONS}.parquet", "in another order"),
    "metadata": (more_metadata, f"{DECISIONS}.parquet", "other descriptions than lpact writes"),
    "packing": (repacked, f"{DECISIONS}.parquet", "packed otherwise than lpact packs it"),
}


@pytest.mark.parametrize(("forge", "where", "what"), FORGED.values(), ids=FORGED.keys())
def test_a_file_that_is_not_what_its_twin_gives_is_named_though_all_checksums_fit(
    forge: Callable[[Path], None], where: str, what: str, copy: Copy
) -> None:
    root = copy()
    forge(root)
    rehash_manifest(root)
    rehash_lock(root)
    found = verify_run(root, report=False).problems
    assert not [problem for problem in found if problem.kind == "file"]
    named = [p.text for p in found if p.kind == "table" and p.where == where]
    assert what in "\n".join(named)
    (root / "lock.json").unlink()
    with pytest.raises(RunError, match="disagree with each other") as refused:
        lock_run(root)
    assert where in str(refused.value)
    assert not (root / "lock.json").exists()


def other_code(values: dict[str, Any]) -> None:
    values["lpact_code"] = "feedfeedfeedfeed"
    values["versions"]["polars"] = "0.1"


@pytest.mark.parametrize("forge", [repacked, more_metadata, spaces_in_csv])
def test_what_another_version_wrote_with_the_same_values_is_no_fault(
    forge: Callable[[Path], None], copy: Copy
) -> None:
    root = copy()
    forge(root)
    edit_manifest(root, other_code)
    rehash_manifest(root)
    (root / "lock.json").unlink()
    lock_run(root)
    found = verify_run(root, report=False)
    assert found.ok
    assert any("with the same values as here" in note and DECISIONS in note for note in found.notes)


@pytest.mark.parametrize("forge", [label_in_csv, scaled_parquet, reversed_parquet])
def test_values_of_another_version_are_compared_all_the_same(
    forge: Callable[[Path], None], copy: Copy
) -> None:
    root = copy()
    forge(root)
    edit_manifest(root, other_code)
    rehash_manifest(root)
    (root / "lock.json").unlink()
    with pytest.raises(RunError, match="disagree with each other"):
        lock_run(root)


def test_an_edited_page_of_verdicts_is_neither_locked_nor_exported(
    small_run: Run, copy: Copy, tmp_path: Path
) -> None:
    root = writable_copy(small_run.root, tmp_path / "run")
    page = root / "report" / "verdicts.md"
    page.write_text(page.read_text().replace("Outcome", "Triumph", 1))
    with pytest.raises(RunError, match=r"report/verdicts\.md: is not what the tables give: line"):
        lock_run(root)
    root = copy()
    page = root / "report" / "verdicts.md"
    page.write_text(page.read_text().replace("Outcome", "Triumph", 1))
    rehash_lock(root)
    (problem,) = verify_run(root, report=False).problems
    assert (problem.kind, problem.where) == ("report", "report/verdicts.md")
    with pytest.raises(RunError, match=r"report/verdicts\.md: is not what the tables give"):
        export_run(root, tmp_path / "x.zip")


def test_a_listed_page_of_verdicts_counts_only_as_it_was_written(tmp_path: Path) -> None:
    """A run's own page has no list beside it; that of a report has."""
    (tmp_path / "manifest.json").write_text("{}")
    report = tmp_path / "report"
    report.mkdir()
    (report / "verdicts.md").write_text("edited")
    assert report_contents(report) == {"verdicts.md"}
    (report / "contents.json").write_text('{"verdicts.md": "0"}')
    assert report_contents(report) == set()
    (report / "contents.json").write_text("[" * 100_000)
    assert report_contents(report) == {"verdicts.md"}


@pytest.mark.parametrize(
    ("stored", "made", "said"),
    [
        (b"", b"", ""),
        (b"a\nb\n", b"a\nb\n", ""),
        (b"a\nbcd\ne", b"a\nbxd\ne", "line 2 reads 'bcd', made again 'bxd'"),
        (b"a\n", b"a\nb\n", "line 2 reads '', made again 'b'"),
        (b"x" * 2**20 + b"\nab", b"x" * 2**20 + b"\nac", "line 2 reads 'ab', made again 'ac'"),
    ],
)
def test_the_first_difference_of_two_texts(stored: bytes, made: bytes, said: str) -> None:
    assert first_difference(io.BytesIO(stored), io.BytesIO(made)) == said


def test_a_frame_is_compared_by_bytes_before_values(locked: Path) -> None:
    """An untouched run has neither problems nor notes about packing."""
    found = verify_run(locked, report=False)
    assert found.ok
    assert not [note for note in found.notes if "same values" in note]
    assert pl.read_parquet(locked / f"{DECISIONS}.parquet").height > 1
