"""The reader of Le Petit Prince against what its writer wrote, and against the real annotation."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset_writers.petit_prince import N_SECTIONS, PetitPrinceTruth, write_petit_prince
from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.base import DATASETS, Dataset
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.features.mechanisms import Missing
from lpact.features.parsing import parse_from_columns
from lpact.grid import build_grid
from shared_data import shared_data

ATLAS = {"atlas": "atlas.nii.gz", "atlas_labels": "atlas.tsv"}
WORDS = "annotation/EN/lppEN_word_information.csv"


@dataclass(frozen=True)
class Written:
    folder: Path
    truth: PetitPrinceTruth


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("petit_prince")
    return Written(folder, write_petit_prince(folder))


@pytest.fixture
def copy(written: Written, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(written.folder, tmp_path / "copy"))


def opened(folder: Path, **options: Any) -> Dataset:
    return DATASETS.build("petit_prince", {**ATLAS, **options}).open(name="lpp", path=folder, seed=0)


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_sorted_runs_are_sections(written: Written) -> None:
    dataset = opened(written.folder)
    assert [str(key) for key in dataset.recording_ids()] == sorted(written.truth.means)
    for key in dataset.recording_ids():
        recording = dataset.recording(key)
        assert key.stimulus == f"lppEN-section{key.run}"
        assert f"_run-{written.truth.run_of[str(key)]}_" in recording.where
        assert recording.signal.sampling_rate_hz == 0.5
        assert recording.signal.start_s == 0.0
        np.testing.assert_allclose(recording.signal.read(range(3)), written.truth.means[str(key)], atol=1e-12)
    assert recording.units.ids == written.truth.regions
    assert recording.units.coordinate_frame == "MNIColin27"
    np.testing.assert_allclose(recording.units.coordinates_mm, written.truth.centres_mm)


def test_every_word_meets_its_volume(written: Written) -> None:
    dataset = opened(written.folder)
    for key in dataset.recording_ids():
        grid = build_grid(
            dataset.recording(key),
            dataset.stimulus(key.stimulus),
            GridConfig(events="trs", lags_ms=(0.0,)),
        )
        volumes = written.truth.volumes[str(key)]
        covered = volumes >= 0
        np.testing.assert_array_equal(grid.responses[0, :, 0], np.unique(volumes[covered]) + 1.0)
        counts = np.unique(volumes[covered], return_counts=True)[1]
        np.testing.assert_array_equal(grid.stop_word - grid.first_word, counts)
    assert not covered.all(), "section 9 ends early"
    assert [e.reason for e in grid.exclusions if e.reason == Reason.WORDS_OUTSIDE_RECORDING]


def check_words(dataset: Dataset, truth: PetitPrinceTruth) -> None:
    for section in range(N_SECTIONS):
        stimulus = dataset.stimulus(f"lppEN-section{section + 1}")
        words = stimulus.words
        assert tuple(words["word"]) == truth.words[section]
        assert tuple(words["lemma"]) == truth.lemmas[section]
        np.testing.assert_array_equal(words["onset_s"], truth.onset_s[section])
        np.testing.assert_array_equal(words["offset_s"], truth.offset_s[section])
        assert tuple(words["head"]) == truth.heads[section]
        assert tuple(words["deprel"]) == truth.relations[section]
        assert not isinstance(parse_from_columns(stimulus), Missing)
        roots = words.filter(words["head"] == 0).height
        assert roots == words["sentence_id"].n_unique()


def test_words_and_parses_are_as_written(written: Written) -> None:
    dataset = opened(written.folder)
    check_words(dataset, written.truth)
    words = dataset.stimulus("lppEN-section1").words
    assert words["log_frequency"][0] == 5.25
    assert words["upos"][:2].to_list() == ["NOUN", "VERB"]
    assert words["left_corner"][0] == 3.0


def test_rows_without_a_word_and_capitalised_ones_are_told(written: Written) -> None:
    assert written.truth.n_blank == 1
    findings = opened(written.folder).stimulus("lppEN-section1").findings
    told = [f.found for f in findings if f.reason == Reason.SOURCE_VALUES_CORRECTED]
    assert "1 row(s) without a word" in told[0]
    assert "after 'didnt'" in told[0]
    assert "2 word(s) that a spreadsheet capitalised; first: row 10" in told[1]
    assert "several heads" in told[2]


def test_known_broken_rows_are_left_out_and_told(tmp_path: Path) -> None:
    truth = write_petit_prince(tmp_path, n_sentences=160, scans=True)
    assert truth.known_broken == 3
    dataset = opened(tmp_path, subjects=("EN057",))
    check_words(dataset, truth)
    left_out = [
        finding
        for section in range(1, 10)
        for finding in dataset.stimulus(f"lppEN-section{section}").findings
        if finding.reason == Reason.SOURCE_ROWS_LEFT_OUT
    ]
    assert [re.findall(r"row (\d+) \(", f.found) for f in left_out] == [["3919"], ["6775", "6781"]]
    assert all(finding.severity == "excluded" for finding in left_out)


def test_without_parses_sentences_follow_pauses(copy: Path) -> None:
    for path in (copy / "annotation/EN").glob("lppEN_[td]*.csv"):
        path.unlink()
    stimulus = opened(copy).stimulus("lppEN-section3")
    words = stimulus.words
    gaps = words["onset_s"].to_numpy()[1:] - words["offset_s"].to_numpy()[:-1]
    expected = np.concatenate([[0], np.cumsum(gaps >= 0.5)])
    np.testing.assert_array_equal(words["sentence_id"], expected)
    assert "head" not in words.columns
    assert Reason.SENTENCES_BY_RULE in [f.reason for f in stimulus.findings]


def test_parses_of_another_release_are_not_used(copy: Path) -> None:
    replace_text(copy / "annotation/EN/lppEN_tree.csv", "(CC and)", "(CC and) (RB so)")
    replace_text(copy / "annotation/EN/lppEN_dependency.csv", "root(", "advmod(boa-1, so-6)\nroot(")
    stimulus = opened(copy).stimulus("lppEN-section1")
    assert "head" not in stimulus.words.columns
    [note] = [f for f in stimulus.findings if f.reason == Reason.SENTENCES_BY_RULE]
    assert "181 words" in note.found


def test_sources_are_listed_once_with_the_atlas(written: Written) -> None:
    files = opened(written.folder).source_files()
    names = [file.path for file in files]
    assert len(names) == len(set(names)) == 18 * 2 + 3 + 2
    assert WORDS in names
    assert all(re.fullmatch(r"[0-9a-f]{64}", file.sha256) for file in files)


def test_a_subject_without_nine_runs_is_named(copy: Path) -> None:
    func = copy / "derivatives/sub-EN057/func"
    next(func.glob("*_run-19_*.nii.gz")).unlink()
    with pytest.raises(RecordingError) as caught:
        opened(copy)
    message = str(caught.value)
    assert "'EN057' does not have nine runs" in message
    assert "15, 16, 17, 18, 20" in message
    assert "option subjects" in message
    assert len(opened(copy, subjects=("EN058",)).recording_ids()) == 9


def test_an_unknown_subject_is_named(written: Written) -> None:
    with pytest.raises(InputError, match="there is no subject 'EN059'"):
        opened(written.folder, subjects=("EN059",))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (",boa,boa,0.113,", ",boa,boa,early,", "column 'onset'"),
        (",1,1,2,3\n", ",12,1,2,3\n", "column 'section'"),
        ("onset,", "start,", "the column 'onset' is missing"),
    ],
)
def test_broken_words_are_named(copy: Path, old: str, new: str, told: str) -> None:
    replace_text(copy / WORDS, old, new)
    with pytest.raises(StimulusError) as caught:
        opened(copy).stimulus("lppEN-section1")
    assert told in str(caught.value)
    assert "lppEN_word_information.csv, line" in str(caught.value)


def test_a_table_in_another_encoding_is_named(copy: Path) -> None:
    text = (copy / WORDS).read_text(encoding="utf-8").replace("boa", "b\u00f6a")
    (copy / WORDS).write_bytes(text.encode("latin-1"))
    with pytest.raises(StimulusError, match="UnicodeDecodeError"):
        opened(copy).stimulus("lppEN-section1")


def test_broken_parses_are_named(copy: Path) -> None:
    path = copy / "annotation/EN/lppEN_dependency.csv"
    replace_text(path, "root(ROOT-0, swallowed-2)", "root(ROOT-0 swallowed-2)")
    with pytest.raises(StimulusError, match="relation") as caught:
        opened(copy).stimulus("lppEN-section1")
    assert "lppEN_dependency.csv, line 2" in str(caught.value)
    replace_text(path, "root(ROOT-0 swallowed-2)", "dep(boa-1, swallowed-2)")
    with pytest.raises(StimulusError, match="a tree: words"):
        opened(copy).stimulus("lppEN-section1")


def test_the_other_languages_are_read_alike(tmp_path: Path) -> None:
    truth = write_petit_prince(tmp_path, language="FR", n_sentences=2)
    dataset = opened(tmp_path, language="FR")
    assert tuple(dataset.stimulus("lppFR-section2").words["word"]) == truth.words[1]
    assert dataset.recording_ids()[0].subject == "FR057"


def test_the_real_annotation_is_read(tmp_path: Path) -> None:
    real = shared_data("lpp_en_annotation")
    write_petit_prince(tmp_path, n_sentences=2)
    shutil.copytree(real, tmp_path / "annotation/EN", dirs_exist_ok=True)
    dataset = opened(tmp_path)
    sections = [dataset.stimulus(f"lppEN-section{number}") for number in range(1, 10)]
    n_words = [section.words.height for section in sections]
    # 15,376 rows; 31 have no word and 3 are broken.
    assert n_words == [1516, 1690, 1851, 1615, 1518, 1810, 1785, 1583, 1974]
    assert sum(n_words) == 15376 - 31 - 3
    # 1,499 trees; the broken row 3919 is a sentence of its own.
    assert sum(section.words["sentence_id"].n_unique() for section in sections) == 1498
    for section in sections:
        assert not isinstance(parse_from_columns(section), Missing)
    five = sections[4].words
    at = five["word"].to_list().index("phew")
    assert five["word"][at : at + 8].to_list() == five["lemma"][at : at + 8].to_list()
    assert five["lemma"][at : at + 4].to_list() == ["phew", "then", "that", "makes"]
    assert "TRUE" not in sections[0].words["word"]
    assert {"VERB", "NOUN", "PRON", "DET", "ADP"} <= set(sections[0].words["upos"])
    assert sections[7].words["onset_s"][0] == 0.015


def test_the_description_is_read(copy: Path) -> None:
    (copy / "dataset_description.json").unlink(missing_ok=True)
    assert opened(copy).info.licence == "CC0"
    text = '{"Name": "LPP", "License": "PDDL", "DatasetDOI": "10.1/ds003643.v2.0.5"}'
    (copy / "dataset_description.json").write_text(text, encoding="utf-8")
    info = opened(copy).info
    assert (info.source, info.version, info.licence) == (
        "LPP (10.1/ds003643.v2.0.5)",
        "2.0.5",
        "PDDL",
    )
