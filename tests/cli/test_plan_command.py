"""``lpact plan`` shows what every stage costs, and says no where a run cannot fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from lpact.analyses.lpact.plan.stages import BRAINS, CONTROLS, LEVELS
from lpact.run import plan
from lpact.run.machine import Limits
from lpact.run.progress import DECISION, FEATURES, TABLES
from tiny_study import Lpact


def test_plan_shows_every_stage_and_what_the_figures_rest_on(lpact: Lpact, tiny_study: Path) -> None:
    result = lpact("plan", tiny_study, "--workers", "1")
    assert result.exit_code == 0
    _, _, costs = result.stdout.partition("Cost per stage")
    rows = [line.split("  ") for line in costs.splitlines()]
    by_stage = {cells[1].strip(): [c.strip() for c in cells[2:] if c.strip()] for cells in rows if len(cells) > 2}
    assert by_stage[BRAINS][0] == "3"
    assert by_stage[LEVELS][0] == "6"
    assert {DECISION, TABLES} <= by_stage.keys()
    # Nothing is to be extracted, and the study has no positive controls.
    assert not {FEATURES, CONTROLS} & by_stage.keys()
    assert "iB" in " ".join(by_stage[LEVELS])
    assert "Estimated from counts of operations and the speed of this machine" in costs
    assert "the first finished tasks refine the estimate" in costs
    assert "4 claims, 10 tasks; about" in " ".join(costs.split())
    assert "with 1 worker;" in costs


def test_plan_says_that_a_device_is_not_measured(
    lpact: Lpact, tiny_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "check_device", lambda config: None)
    assert "can be much faster" not in lpact("plan", tiny_study).stdout
    on_gpu = tmp_path / "gpu.toml"
    on_gpu.write_text(tiny_study.read_text().replace("[readout]", '[readout]\ndevice = "cuda"'))
    assert "Times are those of the processor; 'cuda' can be much faster." in lpact("plan", on_gpu).stdout


def test_plan_says_no_where_memory_is_short(lpact: Lpact, tiny_study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Limits(memory=2**20, out=None, features=None)
    monkeypatch.setattr(plan, "machine_limits", lambda *_: small)
    result = lpact("plan", tiny_study)
    assert result.exit_code == 1
    assert "this run does not fit: memory is short" in result.stderr
    assert "use a machine with more memory" in result.stderr
    assert "Cost per stage" in result.stdout


def test_plan_says_no_where_the_disk_is_full(
    lpact: Lpact, tiny_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def full(out: Path, features: Path) -> Limits:
        asked.extend((out, features))
        return Limits(memory=None, out=10_000, features=10_000)

    monkeypatch.setattr(plan, "machine_limits", full)
    result = lpact("plan", tiny_study, "--out", tmp_path / "run")
    assert result.exit_code == 1
    assert "the disk is too full" in result.stderr
    assert asked[0] == tmp_path / "run"
    assert asked[1].name == "lpact-features"
