"""Features stay on disk: what a run holds does not grow with the number of layers."""

from __future__ import annotations

import pytest
from survivors import events
from wide_folder import write_wide

FEW, MANY = 9, 33
EVERY = 8
COLUMNS = 4096

pytestmark = pytest.mark.stress


def test_memory_does_not_grow_with_the_number_of_layers(breeder, tmp_path) -> None:
    peaks, sizes = [], []
    for layers in (FEW, MANY):
        folder = tmp_path / str(layers)
        folder.mkdir()
        study, n_bytes = write_wide(folder, layers=layers, columns=COLUMNS, every=EVERY)
        process = breeder.start(study, folder / "run")
        assert process.wait() == 0, process.said()
        contexts = [e for e in events(folder / "run", "task_finished") if "/wide-model/" in e["task"]]
        assert len(contexts) == len(range(0, layers, EVERY))
        peaks.append(process.peak_bytes)
        sizes.append(n_bytes)
    added = sizes[1] - sizes[0]
    assert added > 180e6
    assert peaks[1] - peaks[0] < added / 4
