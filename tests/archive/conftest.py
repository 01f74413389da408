"""A locked run, and copies of it to change."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tampering import writable_copy

from lpact.archive import lock_run

if TYPE_CHECKING:
    from lpact.study import Run

Copy = Callable[[], Path]


@pytest.fixture(scope="session")
def locked(small_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A locked copy of the small run, without a report; not to be changed."""
    root = writable_copy(small_run.root, tmp_path_factory.mktemp("locked") / "small")
    (root / "log.jsonl").write_text('{"event": "started"}\n')
    lock_run(root)
    return root


@pytest.fixture
def copy(locked: Path, tmp_path: Path) -> Copy:
    """Copies of the locked run that can be written to."""
    number = count()
    return lambda: writable_copy(locked, tmp_path / f"copy-{next(number)}")
