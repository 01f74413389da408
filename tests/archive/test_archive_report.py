"""A report recreated from the tables is compared with the stored one, file by file."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lpact.archive.problems import first_difference
from lpact.archive.verify import check_report
from lpact.errors import RunError

MADE = {
    "report.html": b"<p>Verdict</p>\n",
    "methods.md": b"Five folds.\nThree lags.\n",
    "figures/a.png": b"\x89PNG1",
    "tables/t.csv": b"a\n1\n",
}


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def make_again(root: Path, *, out: Path, with_tables: bool, **_: object) -> None:
    """Stands in for drawing a report: writes `MADE`."""
    if (root / "broken").exists():
        raise RunError("a table is damaged", got="nothing")
    write(out, {n: c for n, c in MADE.items() if with_tables or not n.startswith("tables/")})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("lpact.archive.verify.StoredRun", Path)
    monkeypatch.setattr("lpact.report.write.write_report", make_again)
    write(tmp_path / "report", MADE)
    return tmp_path


def test_the_same_report_has_no_problem(root: Path) -> None:
    problems, done = check_report(root)
    assert problems == []
    assert done == "The report was recreated from the tables: 4 files."
    (root / "report" / "tables" / "t.csv").unlink()
    assert check_report(root)[0] == [], "a report without tables is recreated without tables"


def test_every_file_that_differs_is_named(root: Path) -> None:
    write(
        root / "report",
        {
            "methods.md": MADE["methods.md"].replace(b"Three", b"Seven"),
            "figures/a.png": b"\x89PNG22",
            "extra.txt": b"mine",
        },
    )
    (root / "report" / "report.html").unlink()
    found = {p.where: p.what for p in check_report(root, names=list(MADE))[0]}
    assert found == {
        "report/extra.txt": "is in the report, but the tables do not give it",
        "report/figures/a.png": "differs from what the tables give: 6 bytes instead of 5",
        "report/methods.md": "differs from what the tables give: line 2 reads 'Seven lags.' instead of 'Three lags.'",
        "report/report.html": "is missing: the tables give it",
    }


def test_a_run_without_report_and_a_report_that_cannot_be_made(root: Path) -> None:
    write(root, {"broken": b""})
    (problem,), done = check_report(root)
    assert "cannot be recreated: a table is damaged" in problem.text
    assert done == "The report could not be recreated."
    (root / "report" / "report.html").unlink()
    assert check_report(root) == ([], "The run has no report.")


@pytest.mark.parametrize(
    ("stored", "made", "expected"),
    [
        (b"", b"", ""),
        (b"a\nb\n", b"a\nb\n", ""),
        (b"a\nbcd\ne", b"a\nbxd\ne", "line 2 reads 'bcd' instead of 'bxd'"),
        (b"a\n", b"a\nb\n", "line 2 reads '' instead of 'b'"),
        (b"x" * 2**20 + b"\nab", b"x" * 2**20 + b"\nac", "line 2 reads 'ab' instead of 'ac'"),
    ],
)
def test_the_first_difference_of_two_texts(stored: bytes, made: bytes, expected: str) -> None:
    assert first_difference(io.BytesIO(stored), io.BytesIO(made)) == expected
