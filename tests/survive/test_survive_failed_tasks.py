"""An error of one task: the others are finished and kept, and only what was missing is computed next time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from survivors import assert_same_run, computed, events, partial_of, results_in, write_study
from victims import Breeder

pytestmark = pytest.mark.stress

PLUGIN = '''
import os
from pathlib import Path
from lpact.controls.base import SevereControl

TROUBLE = Path(__file__).with_name("trouble.txt")


class Fragile(SevereControl):
    """Features in reverse order; raises while there is trouble, for one layer of one recording."""

    name = "fragile"
    summary = "features in reverse order of time"
    random = False

    def draw(self, inputs, rng, draw):
        """Return the features backwards."""
        if TROUBLE.exists() and inputs.layer == 1:
            trouble = TROUBLE.read_text()
            if trouble == "die":
                os._exit(9)
            raise ValueError(trouble)
        return inputs.features[::-1].copy()
'''
TROUBLE = "the [red]cable[/red] is\nunplugged"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plugin, laid out as an installer would."""
    site = tmp_path_factory.mktemp("site")
    (site / "fragile_plugin.py").write_text(PLUGIN)
    info = site / "fragile_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lpact.controls]\nfragile = fragile_plugin:Fragile\n")
    return site


@pytest.fixture(scope="module")
def breeder(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Breeder]:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    with Breeder(tmp_path_factory.mktemp("breeder"), PYTHONPATH=path) as started:
        yield started


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_study(tmp_path_factory.mktemp("fragile"))
    path.write_text(path.read_text().replace('"circular_shift"', '"circular_shift", "fragile"'))
    return path


@pytest.fixture(scope="module")
def expected(breeder: Breeder, study: Path) -> Path:
    process = breeder.start(study, study.with_name("run"))
    assert process.wait() == 0, process.said()
    return study.with_name("run")


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_some_tasks_does_not_lose_the_rest(breeder, study, expected, site, tmp_path, workers) -> None:
    out = tmp_path / "run"
    (site / "trouble.txt").write_text(TROUBLE)
    try:
        process = breeder.command(study, out, "--workers", workers)
        assert process.wait() == 2, process.said()
    finally:
        (site / "trouble.txt").unlink()
    assert not out.exists()
    failed = events(partial_of(out), "task_failed")
    assert {event["task"] for event in failed} == {
        f"lpact/context/sim/sub-{subject}_ses-01_run-{run}/integrated/1"
        for subject in ("01", "02")
        for run in ("01", "02")
    }
    for event in failed:
        assert event["what"] == f"ValueError: {TROUBLE}"
        assert "fragile_plugin.py" in event["trace"]
        assert event["task"] in process.said()
        assert event["key"][:12] in process.said()
    assert "[red]cable[/red]" in process.said()
    assert f"{len(failed)} task(s) failed, and the run is not published" in process.said()
    # Everything else is there, tasks of later stages too.
    before = results_in(partial_of(out))
    assert len(before) == len(computed(expected)) - len(failed)
    finished = computed(partial_of(out))
    process = breeder.start(study, out, workers)
    assert process.wait() == 0, process.said()
    assert len(computed(out)) == len(finished) + len(failed)
    assert not set(computed(out)[len(finished) :]) & before.keys()
    assert_same_run(out, expected)


def test_tasks_that_kill_their_process_are_known_by_name(breeder, study, site, tmp_path) -> None:
    """As the system does to a process that takes too much memory: the others go on, in new processes."""
    out = tmp_path / "run"
    narrow = tmp_path / "study.toml"
    narrow.write_text(study.read_text().replace("n_subjects = 2", "n_subjects = 1"))
    (site / "trouble.txt").write_text("die")
    try:
        process = breeder.start(narrow, out, workers=2)
        assert process.wait() == 2, process.said()
    finally:
        (site / "trouble.txt").unlink()
    failed = events(partial_of(out), "task_failed")
    assert {event["task"] for event in failed} == {
        f"lpact/context/sim/sub-01_ses-01_run-{run}/integrated/1" for run in ("01", "02")
    }
    assert all("worker processes die when they run this task alone" in event["what"] for event in failed)
    assert events(partial_of(out), "worker_lost")
    n_before = len(computed(partial_of(out)))
    assert n_before == len(results_in(partial_of(out)))
    assert breeder.start(narrow, out).wait() == 0
    assert len(computed(out)) == n_before + len(failed)
