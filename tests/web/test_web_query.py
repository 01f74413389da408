"""Pages, orders and searches of the database beside the same done by Polars."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from lpact.tables import declared_tables
from lpact.web.address import find_column
from lpact.web.query import (
    Cache,
    Condition,
    Database,
    Query,
    Source,
    count,
    page,
    value_counts,
    values,
)
from lpact.web.runs import open_runs

TABLE = declared_tables()["relational/profile_similarity_scores"]


@pytest.fixture(scope="module")
def source(tiny_run: Path) -> Iterator[Source]:
    opened = open_runs([tiny_run])
    return Source(TABLE, (opened[0].file(TABLE),))


@pytest.fixture(scope="module")
def frame(tiny_run: Path) -> pl.DataFrame:
    return pl.read_parquet(tiny_run / f"{TABLE.name}.parquet")


@pytest.fixture
def database(source: Source) -> Iterator[Database]:
    made = Database([source.files[0].path])
    yield made
    made.close()


def test_pages_follow_each_other(database: Database, source: Source, frame: pl.DataFrame) -> None:
    query = Query(source)
    seen = [row for at in range(0, frame.height, 100) for row in page(database, query, at, 100)]
    assert seen == frame.to_dicts()
    assert page(database, query, frame.height, 100) == []


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", ["similarity", "condition", "counted"])
def test_sorted_pages_are_those_of_a_stable_sort(
    database: Database,
    source: Source,
    frame: pl.DataFrame,
    name: str,
    descending: bool,
) -> None:
    keep = Condition(find_column(TABLE, "model"), "is", "drift")
    query = Query(source, (keep,), sort=find_column(TABLE, name), descending=descending)
    expected = frame.filter(model="drift").sort(name, descending=descending, nulls_last=True, maintain_order=True)
    seen = [row for at in range(0, expected.height, 7) for row in page(database, query, at, 7)]
    assert seen == expected.to_dicts()


def test_missing_numbers_come_last_both_ways(
    database: Database, source: Source, frame: pl.DataFrame, tiny_run: Path
) -> None:
    table = declared_tables()["decisions/lpact_decision_table"]
    opened = open_runs([tiny_run])
    own = Source(table, (opened[0].file(table),))
    reader = Database([own.files[0].path])
    for descending in (False, True):
        query = Query(own, sort=find_column(table, "p_value"), descending=descending)
        seen = [row["p_value"] for row in page(reader, query, 0, 100)]
        n_missing = seen.count(None)
        assert 0 < n_missing < len(seen)
        assert seen[-n_missing:] == [None] * n_missing
    reader.close()


@pytest.mark.parametrize(("name", "decoy"), [("run[1]", "run1"), ("a*b", "axb"), ("a?b", "axb")])
def test_a_path_is_no_pattern(tiny_run: Path, planted: Path, tmp_path: Path, name: str, decoy: str) -> None:
    """The explorer shows the run of that very name, whatever another one is called."""
    table = declared_tables()["decisions/lpact_decision_table"]
    shutil.copytree(planted, tmp_path / name)
    shutil.copytree(tiny_run, tmp_path / decoy)
    opened = open_runs([tmp_path / name, tmp_path / decoy])
    files = [run.file(table) for run in opened]
    made = Database([file.path for file in files])
    shown = [page(made, Query(Source(table, (file,))), 0, 100) for file in files]
    assert shown == [run.table(table.name).to_dicts() for run in opened]
    assert shown[0] != shown[1]
    made.close()


@pytest.mark.parametrize("text", ["DRIFT", "random_", "u00", "zzz", "Real"])
def test_search_looks_into_every_text_column(
    database: Database, source: Source, frame: pl.DataFrame, text: str
) -> None:
    found = pl.any_horizontal(pl.col(pl.String).str.to_lowercase().str.contains(text.lower(), literal=True))
    assert count(database, Query(source, search=text)) == frame.filter(found).height


def test_values_and_tallies(database: Database, source: Source, frame: pl.DataFrame) -> None:
    column = find_column(TABLE, "condition")
    assert values(database, source, column) == sorted(frame["condition"].unique())
    expected = dict(frame["condition"].value_counts().iter_rows())
    assert value_counts(database, Query(source), column) == expected


def test_a_cache_forgets_the_oldest() -> None:
    cache = Cache(limit=3)
    made: list[int] = []

    def make(value: int) -> int:
        made.append(value)
        return value

    for key in (1, 2, 3, 1, 4, 1, 2):  # 4 pushes out 2, which was asked longest ago
        assert cache.get(key, lambda key=key: make(key)) == key  # type: ignore[misc]
    assert made == [1, 2, 3, 4, 2]
