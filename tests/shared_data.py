"""Real recordings beside the project, which tests read when they are there."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(name: str) -> Path:
    """Folder of a real dataset; skips the test, with the reason, where it is not there."""
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"data missing: {folder}")
    return folder
