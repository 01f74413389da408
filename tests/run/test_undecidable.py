"""Studies in which almost nothing can be decided are published, and a decision that fails loses nothing."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import lpact
from lpact.analyses.lpact.analysis import LPact
from lpact.datasets.base import DATASETS
from lpact.datasets.folder import write_folder
from lpact.errors import RunError

KEPT = ("surprisal", "context_update")


def _constant(word: int, n_words: int) -> float:
    return 1.5


def _one_word(word: int, n_words: int) -> float:
    return float(word == n_words // 2)


@pytest.fixture(scope="module")
def folder(tinier_study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "sim"
    own = tinier_study()["datasets"][0]
    reader = DATASETS.build("simulated", own["options"], where="test")
    write_folder(reader.open(name="sim", path=None, seed=3), path)
    return path


@pytest.mark.parametrize("value", [_constant, _one_word])
@pytest.mark.parametrize("changed", [KEPT[1:], KEPT])
def test_a_mechanism_that_hardly_varies_is_decided(folder, tinier_study, tmp_path, value, changed) -> None:
    data = tmp_path / "data"
    _copy(folder, data, dict.fromkeys(changed, value))
    study = _on(data, tinier_study(mechanisms={"include": list(KEPT)}))
    run = study.run(tmp_path / "run", progress=False)
    claims = run.claims()
    assert set(claims["mechanism"]) == set(KEPT)
    assert not claims["mechanism_specific"].any()
    assert all(claims["reason"])


def test_a_single_mechanism_is_decided(tinier_study, tmp_path) -> None:
    study = lpact.load_study(tinier_study(mechanisms={"include": ["surprisal"]}))
    run = study.run(tmp_path / "run", progress=False)
    evidence = run.rows("lpact_gate_evidence", criterion="n_targets", gate_profile="calibrated")
    assert set(evidence["sentence"]) == {"1 mechanism with target units; 2 are needed."}


@pytest.mark.parametrize("step", ["decide", "derive"])
def test_a_decision_that_fails_keeps_every_result(tinier_study, tmp_path, monkeypatch, step) -> None:
    study, out = lpact.load_study(tinier_study()), tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(LPact, step, lambda *_: max([]))
        with pytest.raises(RunError, match="'lpact' could not decide") as caught:
            study.run(out, progress=False)
        assert "ValueError" in str(caught.value.got)
        assert not out.exists()
    run = study.run(out, progress=False)
    events = [json.loads(line) for line in (run.root / "log.jsonl").read_text().splitlines()]
    last = [e["event"] for e in events].index("resuming")
    assert not [e for e in events[last:] if e["event"] == "task_finished"]
    assert run.claims().height


def test_short_memory_is_no_fault_of_the_decision(tinier_study, tmp_path, monkeypatch) -> None:
    def short(*_: object) -> None:
        raise MemoryError("malloc of 8 bytes failed")

    monkeypatch.setattr(LPact, "decide", short)
    with pytest.raises(MemoryError):
        lpact.load_study(tinier_study()).run(tmp_path / "run", progress=False)


def _copy(source: Path, target: Path, changes: dict[str, Any]) -> None:
    """A copy of a dataset folder with other values of some mechanisms."""
    shutil.copytree(source, target)
    for path in target.glob("stimuli/*/mechanisms.tsv"):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        for i, row in enumerate(rows):
            row |= {name: str(value(i, len(rows))) for name, value in changes.items()}
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="\t", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def _on(data: Path, study: dict[str, Any]) -> lpact.Study:
    """The study on recordings that are read from a folder."""
    own = study["datasets"][0]
    own["reader"] = "folder"
    del own["options"]
    return lpact.load_study(study, paths={"sim": data})
