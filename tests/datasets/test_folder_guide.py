"""The how-to page on bringing one's own arrays runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lpact.config import parse_study
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
    assert capsys.readouterr().out.count("(2800, 4) 4") == 2
    for folder, n_recordings in (("my-data", 2), ("simulated-data", 2)):
        dataset = DATASETS.build("folder").open(name="mine", path=Path(folder), seed=0)
        assert len(dataset.recording_ids()) == n_recordings
        stimulus = dataset.stimulus(dataset.recording_ids()[0].stimulus)
        assert stimulus.features is not None


def test_the_study_file_entry_is_valid() -> None:
    (entry,) = blocks("toml")
    rest = '[[models]]\nname = "my-model"\nlayers = [1]\n'
    study, run = parse_study(f'name = "x"\n{rest}{entry}', where="page")
    assert study.datasets[0].reader == "folder"
    assert run.paths == {"mine": "my-data"}
