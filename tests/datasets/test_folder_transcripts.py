"""Transcripts of a folder: read, written back, counted as sources, and what a model reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from lpact.datasets.folder import Folder, write_folder
from lpact.datasets.simulated.dataset import Simulated
from lpact.datasets.simulated.options import SimulatedOptions
from lpact.errors import StimulusError

STIMULUS = "stimulus01"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    options = SimulatedOptions(n_subjects=1, n_runs=1, text="prose", sentences_per_story=4)
    dataset = Simulated(options).open(name="prose", path=None, seed=0)
    write_folder(dataset, tmp_path / "data")
    words = dataset.stimulus(STIMULUS).words
    folder = tmp_path / "data" / "stimuli" / STIMULUS / "transcripts"
    folder.mkdir()
    for story in words["story_id"].unique():
        text = "  ".join(words.filter(words["story_id"] == story)["word"]).upper()
        (folder / f"{story}.txt").write_text(f"[Music] {text}", encoding="utf-8")
    return tmp_path / "data"


def opened(root: Path):
    return Folder(Folder.Options()).open(name="prose", path=root, seed=0)


def test_transcripts_are_read_and_are_sources(root: Path) -> None:
    dataset = opened(root)
    transcripts = dataset.stimulus(STIMULUS).transcripts
    assert sorted(transcripts) == ["story01", "story02", "story03"]
    assert all(text.startswith("[Music] ") for text in transcripts.values())
    paths = {file.path for file in dataset.source_files()}
    assert f"stimuli/{STIMULUS}/transcripts/story01.txt" in paths


def test_transcripts_are_written_back(root: Path, tmp_path: Path) -> None:
    first = opened(root)
    write_folder(first, tmp_path / "copy")
    assert opened(tmp_path / "copy").stimulus(STIMULUS).transcripts == (first.stimulus(STIMULUS).transcripts)


def test_a_file_that_is_no_transcript_is_named(root: Path) -> None:
    (root / "stimuli" / STIMULUS / "transcripts" / "story01.docx").write_text("x")
    with pytest.raises(StimulusError, match=r"story01\.docx"):
        opened(root)


def test_a_model_reads_the_transcript(root: Path, tmp_path: Path) -> None:
    from lpact.features.models import ModelPlace
    from lpact.features.sources.transformers import Transformers, TransformersOptions

    class Silent:
        def stage(self, name: str, total: int) -> None: ...

        def advance(self, steps: int = 1) -> None: ...

    def mean_surprisal() -> float:
        stimulus = opened(root).stimulus(STIMULUS)
        source = Transformers(TransformersOptions())
        source.at(ModelPlace(features=tmp_path / "features"))
        source.extract("lpact-tiny", stimulus, ("full", "static"), Silent())
        return float(source.words("lpact-tiny", stimulus).surprisal().mean())

    shouted = mean_surprisal()
    (root / "stimuli" / STIMULUS / "transcripts").rename(tmp_path / "away")
    # The same words in capitals, with wide blanks, are not what the model was trained on.
    assert shouted > mean_surprisal() + 2.0
