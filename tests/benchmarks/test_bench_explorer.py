"""The run that the explorer is timed on opens like any other, and has as many rows as it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.explorer import make_big_run, questions

from explorer_runs import shared_tiny
from lpact.store import StoredRun

pytestmark = pytest.mark.stress


def test_a_repeated_run_is_a_run(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    tiny = shared_tiny(tmp_path_factory)
    stored = StoredRun(tiny)
    small = {table.name: stored.table(table.name).height for table in stored.tables()}
    wanted = 20 * sum(small.values())
    made = make_big_run(tiny, tmp_path / "big", wanted)
    big = StoredRun(tmp_path / "big")
    assert made >= wanted
    total = 0
    for table in big.tables():
        frame = big.table(table.name)  # checks types, missing values and the key
        total += frame.height
        assert frame.height % max(1, small[table.name]) == 0
    assert total == made


def test_kinds_have_their_addresses() -> None:
    kinds = questions("big", 1_000_000)
    assert len(kinds) == 13
    assert all(address.startswith("/") for addresses in kinds.values() for address in addresses)
