"""Model folders and plain readers of every family, made once."""

from __future__ import annotations

import pytest
from small_models import shared_model, shared_reader


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory):
    return lambda family: shared_model(tmp_path_factory, family)


@pytest.fixture(scope="session")
def reader_of(tmp_path_factory):
    return lambda family: shared_reader(tmp_path_factory, family)
