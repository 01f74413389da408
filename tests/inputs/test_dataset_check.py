"""A check of the folder of every dataset that has a reader, in the layout that its writer makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dataset_writers.alice import write_alice
from dataset_writers.arrays import write_arrays
from dataset_writers.assemblies import write_blank2014, write_fedorenko2016, write_pereira2018
from dataset_writers.betas import GLMSINGLE, write_betas, write_bold_moments
from dataset_writers.bids import write_bids
from dataset_writers.brain_treebank import write_brain_treebank
from dataset_writers.meg_masc import write_meg_masc
from dataset_writers.narratives import write_narratives
from dataset_writers.natural_stories import write_natural_stories
from dataset_writers.petit_prince import write_petit_prince
from dataset_writers.podcast_ecog import write_podcast_ecog
from dataset_writers.sentence_table import write_sentence_table
from lpact.datasets.base import DATASETS
from lpact.inputs.check import DatasetCheck, check_dataset
from shared_data import shared_data

ATLAS = {"atlas": "atlas.nii.gz"}
WRITERS: dict[str, tuple[Callable[..., object], Mapping[str, Any], str]] = {
    "alice": (write_alice, {}, "primary"),
    "arrays": (lambda folder: write_arrays(folder, formats=("npy", "hdf5")), {}, "primary"),
    "betas": (write_betas, GLMSINGLE, "primary"),
    "bids": (write_bids, {}, "primary"),
    "blank2014": (write_blank2014, {}, "secondary"),
    "bold_moments": (write_bold_moments, {"atlas": "glasser.dlabel.nii"}, "secondary"),
    "brain_treebank": (write_brain_treebank, {}, "primary"),
    "fedorenko2016": (write_fedorenko2016, {}, "secondary"),
    "meg_masc": (write_meg_masc, {}, "primary"),
    "narratives": (write_narratives, ATLAS, "secondary"),
    "natural_stories": (write_natural_stories, {}, "diagnostic"),
    "pereira2018": (write_pereira2018, {}, "secondary"),
    "petit_prince": (write_petit_prince, ATLAS, "secondary"),
    "podcast_ecog": (write_podcast_ecog, {}, "primary"),
    "sentence_table": (write_sentence_table, {}, "secondary"),
}


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], DatasetCheck]:
    """``looks(name)`` writes a dataset, and checks it; once."""
    known: dict[str, DatasetCheck] = {}

    def look(name: str) -> DatasetCheck:
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            write, options, _ = WRITERS[name]
            write(folder)
            known[name] = check_dataset(name, folder, options)
        return known[name]

    return look


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_writer_wrote_is_found(looks: Callable[[str], DatasetCheck], name: str) -> None:
    """Small files have too few events; nothing else may be wrong with them."""
    found = looks(name)
    assert found.role == WRITERS[name][2]
    assert not any(part.must_be_fixed for part in found.parts)
    assert found.info is not None
    assert {problem.what for problem in found.problems} <= {"no recording can be used"}
    for look in found.recordings:
        assert look.n_units > 0
        assert look.n_words > 0
        assert 0 <= look.n_words_without_time <= look.n_words
        assert look.n_events <= look.n_words
        assert {"audio_envelope", "audio", "video"} <= {*look.media.present, *look.media.absent}


@pytest.mark.parametrize("name", WRITERS)
def test_a_needed_part_that_is_away_is_named(looks: Callable[[str], DatasetCheck], name: str, tmp_path: Path) -> None:
    """An empty folder lacks every needed part, and is never an unexpected error."""
    found = check_dataset(name, tmp_path, WRITERS[name][1])
    assert not found.usable
    missing = {part.expected.what for part in found.parts if part.must_be_fixed}
    assert missing == {part.what for part in DATASETS.get(name).layout if part.needed}
    assert looks(name).parts


def test_the_missing_media_of_brain_treebank_are_a_boundary(
    looks: Callable[[str], DatasetCheck],
) -> None:
    found = looks("brain_treebank")
    (films,) = [part for part in found.parts if part.status == "not released"]
    assert "speech-activity boxcar" in films.expected.boundary
    for look in found.recordings:
        assert look.media.why_not("audio").reason == "media_not_released"
        assert look.media.why_not("audio_envelope").reason == "media_not_released"
        assert "transcript_columns" in look.media.sources
        assert look.sampling_rate_hz == 2048
        assert look.physical_unit == "µV"


def test_podcast_ecog_has_its_sound(looks: Callable[[str], DatasetCheck]) -> None:
    for look in looks("podcast_ecog").recordings:
        assert look.media.present["audio"].endswith("podcast.wav")
        assert "wav_file" in look.media.sources


def test_sentences_are_the_events_of_sentence_data(looks: Callable[[str], DatasetCheck]) -> None:
    for name in ("pereira2018", "sentence_table"):
        assert all(look.n_events < look.n_words for look in looks(name).recordings)
    for look in looks("fedorenko2016").recordings:
        assert look.n_events == look.n_words


def test_text_alone_is_usable_as_such(looks: Callable[[str], DatasetCheck]) -> None:
    found = looks("natural_stories")
    assert found.usable
    assert found.recordings == []
    assert list(found.stimuli) == ["natural_stories"]
    assert {finding.severity for finding in found.findings} == {"note"}


# --- Real files --------------------------------------------------------------------------------


def test_the_real_alice_dataset() -> None:
    """Deep, s33 is constant in every region; all others can be used."""
    found = check_dataset("alice", shared_data("alice_fmri"), deep=True)
    assert found.usable
    unused = {look.id.subject: look.reason for look in found.recordings if look.reason != "ok"}
    assert unused == {"s33": "too_many_bad_units"}
    assert {look.n_units for look in found.recordings if look.reason == "ok"} == {6}
    assert {look.n_words for look in found.recordings} == {2127}


def test_the_real_podcast_folder_lacks_its_recordings() -> None:
    found = check_dataset("podcast_ecog", shared_data("podcast_ds005574"))
    assert not found.usable
    missing = [part.expected.what for part in found.parts if part.must_be_fixed]
    assert len(missing) == 1
    assert missing[0].startswith("recordings")
