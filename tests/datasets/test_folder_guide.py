"""The how-to page on bringing one's own arrays runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lpact import load_study
from lpact.datasets.base import DATASETS

PAGE = Path(__file__).parents[2] / "docs/how-to/bring-your-own-arrays.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = blocks("python")
    assert len(code) == 3
    exec("\n".join(code), {})
    assert capsys.readouterr().out.count("(10000, 10) 10") == 3
    for folder, n_recordings in (("my-data", 3), ("simulated-data", 2)):
        dataset = DATASETS.build("folder").open(name="mine", path=Path(folder), seed=0)
        assert len(dataset.recording_ids()) == n_recordings
        stimulus = dataset.stimulus(dataset.recording_ids()[0].stimulus)
        assert stimulus.features is not None


def test_the_study_file_makes_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(blocks("python")[0], {})
    (text,) = blocks("toml")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    plan = load_study("study.toml").plan()
    assert plan.n_subject_runs == 3
    assert plan.n_claims == 6
    chain = plan.audit.tables["audits/lpact_evidence_feasibility"].row(0, named=True)
    assert chain["chain_complete"]
