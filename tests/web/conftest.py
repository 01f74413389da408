"""One tiny run and an explorer over it, shared by the quick tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient

from explorer_runs import planted_run, shared_tiny
from lpact.web import create_app

BASE = "http://127.0.0.1"


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by parallel workers; not to be changed, so copy its folder where a test must."""
    return shared_tiny(tmp_path_factory)


@pytest.fixture(scope="session")
def planted(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted_run(tiny_run, tmp_path_factory.mktemp("explorer") / "planted")


@pytest.fixture(scope="session")
def client(tiny_run: Path) -> Iterator[TestClient]:
    with TestClient(create_app([tiny_run]), base_url=BASE) as made:
        yield made


@pytest.fixture(scope="session")
def two(tiny_run: Path, planted: Path) -> Iterator[TestClient]:
    """An explorer over the tiny run and its planted copy."""
    with TestClient(create_app([tiny_run, planted]), base_url=BASE) as made:
        yield made


@pytest.fixture(scope="session")
def decisions(tiny_run: Path) -> pl.DataFrame:
    return pl.read_parquet(tiny_run / "decisions" / "lpact_decision_table.parquet")
