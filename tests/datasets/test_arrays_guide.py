"""The how-to page on array files runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lpact.config import read_study_file
from lpact.datasets.arrays.table import RecordingEntry, StimulusEntry
from lpact.datasets.base import DATASETS

PAGE = Path(__file__).parents[2] / "docs/how-to/datasets/arrays.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_examples_run_and_say_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = blocks("python")
    assert len(code) == 3
    exec("\n".join(code), {})
    (shown,) = blocks("text")
    assert capsys.readouterr().out == shown
    (study,) = blocks("toml")
    (tmp_path / "study.toml").write_text(study, encoding="utf-8")
    config, run = read_study_file(tmp_path / "study.toml")
    (dataset,) = config.datasets
    reader = DATASETS.build(dataset.reader, dataset.options)
    opened = reader.open(name=dataset.name, path=Path(run.paths[dataset.name]), seed=0)
    assert [str(found.subject) for found in opened.recording_ids()] == ["ada", "ben"]


@pytest.mark.parametrize("entry", [StimulusEntry, RecordingEntry])
def test_every_key_is_explained(entry: type[StimulusEntry] | type[RecordingEntry]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [key for key in entry.model_fields if f"`{key}`" not in page] == []
