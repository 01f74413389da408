"""Where parallel workers of one test session meet: what is slow to make is made by the first that needs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder of this session; parallel workers share the one above their own."""
    alone = os.environ.get("PYTEST_XDIST_WORKER") is None
    base = factory.getbasetemp()
    return (base if alone else base.parent) / name
