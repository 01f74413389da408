"""What every reader of a published dataset does: lookups, source files, and links that lead out of the folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataset_writers.alice import write_alice
from dataset_writers.assemblies import write_blank2014, write_fedorenko2016, write_pereira2018
from dataset_writers.betas import GLMSINGLE, write_betas, write_bold_moments
from dataset_writers.bids import write_bids
from dataset_writers.bids_fmri import write_bids_fmri
from dataset_writers.brain_treebank import write_brain_treebank
from dataset_writers.meg_masc import write_meg_masc
from dataset_writers.narratives import write_narratives
from dataset_writers.natural_stories import write_natural_stories
from dataset_writers.petit_prince import write_petit_prince
from dataset_writers.podcast_ecog import write_podcast_ecog
from dataset_writers.sentence_table import write_sentence_table
from lpact.datasets.base import DATASETS, Dataset, RecordingId
from lpact.errors import InputError, RecordingError, StimulusError

ATLAS = {"atlas": "atlas.nii.gz"}
READERS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "alice": (write_alice, {}),
    "betas": (write_betas, GLMSINGLE),
    "bids": (write_bids, {}),
    "bids_fmri": (write_bids_fmri, {**ATLAS, "words": "stimuli/{task}_words.tsv"}),
    "blank2014": (write_blank2014, {}),
    "bold_moments": (write_bold_moments, {"atlas": "glasser.dlabel.nii"}),
    "brain_treebank": (write_brain_treebank, {}),
    "fedorenko2016": (write_fedorenko2016, {}),
    "meg_masc": (write_meg_masc, {}),
    "narratives": (write_narratives, ATLAS),
    "natural_stories": (write_natural_stories, {}),
    "pereira2018": (write_pereira2018, {}),
    "petit_prince": (write_petit_prince, ATLAS),
    "podcast_ecog": (write_podcast_ecog, {}),
    "sentence_table": (write_sentence_table, {}),
}


@pytest.fixture(scope="module", params=READERS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp(request.param) / "data"
    READERS[request.param][0](folder)
    return request.param, folder


def opened(name: str, folder: Path | None) -> Dataset:
    return DATASETS.build(name, READERS[name][1]).open(name="own", path=folder, seed=0)


def test_unknown_recordings_and_stimuli_are_named(written: tuple[str, Path]) -> None:
    dataset = opened(*written)
    with pytest.raises(RecordingError, match="there is no recording"):
        dataset.recording(RecordingId("nobody", "1", "1", "nothing"))
    known = dataset.stimulus_ids()[0]
    with pytest.raises(StimulusError, match=r"there is no stimulus[^?]*did you mean"):
        dataset.stimulus(f"{known}x")


def test_a_folder_that_is_missing_is_named(written: tuple[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder does not exist"):
        opened(written[0], tmp_path / "nowhere")
    with pytest.raises(InputError, match=re.escape("[run.paths] own")):
        opened(written[0], None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        opened(written[0], tmp_path / "empty")


def test_source_files_are_listed_with_checksums(written: tuple[str, Path]) -> None:
    name, folder = written
    files = opened(name, folder).source_files()
    paths = [file.path for file in files]
    assert paths == sorted(set(paths))
    for file in files:
        assert (folder / file.path).stat().st_size == file.n_bytes
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert file.licence


def test_findings_do_not_depend_on_where_the_folder_lies(written: tuple[str, Path]) -> None:
    name, folder = written
    dataset = opened(name, folder)
    for recording_id in dataset.recording_ids()[:1]:
        recording = dataset.recording(recording_id)
        findings = (*recording.findings, *dataset.stimulus(recording_id.stimulus).findings)
        assert str(folder) not in recording.where
        assert not any(str(folder) in f"{f.where} {f.found}" for f in findings)


def test_a_link_out_of_the_folder_is_refused(written: tuple[str, Path], tmp_path: Path) -> None:
    """The first, the middle and the last source file."""
    name, folder = written
    paths = [file.path for file in opened(name, folder).source_files()]
    for relative in {paths[0], paths[len(paths) // 2], paths[-1]}:
        copy = Path(shutil.copytree(folder, tmp_path / "copy"))
        outside = tmp_path / "elsewhere"
        shutil.move(copy / relative, outside)
        (copy / relative).symlink_to(outside)
        with pytest.raises(InputError, match="leads out of the dataset's folder") as caught:
            opened(name, copy).source_files()
        assert str(outside) in str(caught.value)
        shutil.rmtree(copy)
        outside.unlink()
