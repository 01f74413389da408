"""Readers of the assemblies: exact rows against planted numbers, the quirks of the real files, and broken ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset_writers.assemblies import (
    AssemblyTruth,
    write_assembly,
    write_blank2014,
    write_fedorenko2016,
    write_pereira2018,
    write_stimuli,
)
from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.base import DATASETS, Dataset, Epochs
from lpact.errors import ConfigError, InputError, LPactError, RecordingError, StimulusError
from lpact.grid import build_grid

WRITERS: dict[str, tuple[Callable[..., AssemblyTruth], str]] = {
    "pereira2018": (write_pereira2018, "sentences"),
    "fedorenko2016": (write_fedorenko2016, "words"),
    "blank2014": (write_blank2014, "trs"),
}


def opened(name: str, folder: Path, **options: object) -> Dataset:
    return DATASETS.build(name, options).open(name="asm", path=folder, seed=0)


@pytest.fixture(scope="module", params=["NETCDF4", "NETCDF3_64BIT"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, AssemblyTruth]:
    folder = tmp_path_factory.mktemp("assemblies")
    return {name: writer(folder / name, format=request.param) for name, (writer, _) in WRITERS.items()}


@pytest.mark.parametrize("name", WRITERS)
def test_every_event_has_the_response_of_its_presentation(name: str, written: Mapping[str, AssemblyTruth]) -> None:
    truth = written[name]
    dataset = opened(name, truth.path.parent)
    events = GridConfig(events=WRITERS[name][1], lags_ms=(0.0,), window_ms=1.0)
    ids = dataset.recording_ids()
    assert {(i.subject, i.run) for i in ids} == set(truth.values)
    for recording_id in ids:
        recording = dataset.recording(recording_id)
        stimulus = dataset.stimulus(recording_id.stimulus)
        grid = build_grid(recording, stimulus, events)
        wanted = truth.values[recording_id.subject, recording_id.run]
        assert grid.exclusions == ()
        assert np.array_equal(grid.responses[0], wanted)
        assert np.array_equal(grid.responses[0, :, 0], np.arange(len(wanted)) + 1)
        pairs = tuple(zip(recording.units.ids, recording.units.regions, strict=True))
        assert pairs == truth.units[recording_id.subject]
        text = [
            " ".join(stimulus.words["word"][int(a) : int(b)])
            for a, b in zip(grid.first_word, grid.stop_word, strict=True)
        ]
        if name != "blank2014":
            assert text == list(truth.texts[recording_id.run])
        stories = dict.fromkeys(truth.stories[recording_id.run])
        order = [list(stories).index(story) for story in truth.stories[recording_id.run]]
        assert grid.story.tolist() == order


@pytest.mark.parametrize("name", WRITERS)
def test_rows_that_were_moved_are_noted(name: str, written: Mapping[str, AssemblyTruth]) -> None:
    truth = written[name]
    dataset = opened(name, truth.path.parent)
    for run, rows in truth.rows.items():
        findings = {f.reason: f for f in dataset.stimulus(run).findings}
        moved = sum(a != b for a, b in zip(rows, sorted(rows), strict=True))
        assert moved > 0
        assert f"{moved} of {len(rows)}" in findings[Reason.SOURCE_ROWS_SORTED].found


@pytest.mark.parametrize("name", WRITERS)
def test_source_files_and_places_name_the_file(name: str, written: Mapping[str, AssemblyTruth]) -> None:
    dataset = opened(name, written[name].path.parent)
    assert [f.path for f in dataset.source_files()] == [written[name].path.name]
    recording = dataset.recording(dataset.recording_ids()[0])
    assert recording.where.startswith(f"dataset 'asm', {written[name].path.name}")
    assert recording.signal.physical_unit
    assert DATASETS.get(name).role == "secondary"


def test_a_subject_that_took_no_part_is_left_out_and_said(tmp_path: Path) -> None:
    truth = write_pereira2018(tmp_path)
    dataset = opened("pereira2018", tmp_path)
    ((subject, run),) = truth.absent
    assert (subject, run) not in {(i.subject, i.run) for i in dataset.recording_ids()}
    (finding,) = [f for f in dataset.stimulus(run).findings if f.reason is Reason.RECORDING_NOT_READ]
    assert finding.field == f"subject {subject}"
    assert finding.severity == "excluded"


def test_one_missing_sentence_is_not_an_absent_subject(tmp_path: Path) -> None:
    presentation, neuroid, values = _pereira_parts()
    values[0, :2] = np.nan
    write_assembly(tmp_path / "a.nc", values, presentation, neuroid)
    dataset = opened("pereira2018", tmp_path)
    assert [i.subject for i in dataset.recording_ids()] == ["1", "2"]
    signal = dataset.recording(dataset.recording_ids()[0]).signal
    assert isinstance(signal, Epochs)
    assert int(np.isnan(signal.values).sum()) == 2


def test_atlases_and_regions_are_chosen(tmp_path: Path) -> None:
    truth = write_pereira2018(tmp_path, n_voxels=2)
    chosen = opened("pereira2018", tmp_path, atlases=["auditory"], region="atlas")
    recording = chosen.recording(chosen.recording_ids()[0])
    assert recording.units.ids == ("auditory_0", "auditory_1")
    assert recording.units.regions == ("auditory", "auditory")
    key = (recording.id.subject, recording.id.run)
    assert isinstance(recording.signal, Epochs)
    assert np.array_equal(recording.signal.values[0], truth.values[key][:, 2:])
    by_roi = opened("pereira2018", tmp_path, rois=["LPostTemp"])
    assert by_roi.recording(by_roi.recording_ids()[0]).units.ids == ("language_0", "language_1")
    with pytest.raises(InputError, match="atlases") as error:
        opened("pereira2018", tmp_path, atlases=["languages"])
    assert "did you mean 'language'?" in str(error.value)


@pytest.mark.parametrize("name", ["pereira2018", "fedorenko2016"])
def test_places_are_read_where_the_neuroids_have_them(name: str, tmp_path: Path) -> None:
    n_neuroids = {"pereira2018": 18, "fedorenko2016": 5}[name]
    places_mm = np.random.default_rng(3).normal(0, 40, (n_neuroids, 3))
    places_mm[1] = np.nan
    places_mm[2] = (-3.0, 0.0, 12.0)
    WRITERS[name][0](tmp_path, places_mm=places_mm)
    dataset = opened(name, tmp_path)
    found, subjects = [], {}
    for recording_id in dataset.recording_ids():
        subjects.setdefault(recording_id.subject, dataset.recording(recording_id).units)
    for units in subjects.values():
        assert units.coordinates_mm is not None
        assert not units.comparable
        found.append(units.coordinates_mm)
    np.testing.assert_array_equal(np.concatenate(found), places_mm)


def test_a_place_that_is_no_number_is_named(tmp_path: Path) -> None:
    presentation, neuroid, values = _pereira_parts()
    axes = {"x": ["1", "2", "3", "left"], "y": ["0"] * 4, "z": ["0"] * 4}
    write_assembly(tmp_path / "a.nc", values, presentation, {**neuroid, **axes})
    _expect(RecordingError, tmp_path, "coordinate 'x'", "number 3", "'left'")


def test_passages_and_categories_are_kept_with_the_words(tmp_path: Path) -> None:
    write_pereira2018(tmp_path)
    words = opened("pereira2018", tmp_path).stimulus("384sentences").words
    assert words["story_id"].n_unique() == 4
    assert words["passage_category"].n_unique() == 2
    assert set(words["experiment"]) == {"384sentences"}
    starts = words.group_by("sentence_id", maintain_order=True).first()["onset_s"].to_numpy()
    # 8 s from sentence to sentence, 4 s more between passages of four.
    assert starts[:6].tolist() == [0.0, 8.0, 16.0, 24.0, 36.0, 44.0]


def test_text_comes_from_the_table_beside(tmp_path: Path) -> None:
    truth = write_pereira2018(tmp_path, text_in="table")
    dataset = opened("pereira2018", tmp_path)
    words = dataset.stimulus("243sentences").words
    assert " ".join(words["word"]) == " ".join(truth.texts["243sentences"])
    assert len(dataset.source_files()) == 2


def test_text_that_is_nowhere_is_named(tmp_path: Path) -> None:
    write_pereira2018(tmp_path, text_in="table")
    (tmp_path / "stimulus_Pereira2018.csv").unlink()
    _expect(StimulusError, tmp_path, "the sentences, in 'stimulus'", "table of stimuli next to")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"stimulus_id": ["x"], "sentence": ["A b."]}, "a row for every stimulus_id"),
        ({"stimulus_id": ["x", "x"], "sentence": ["A.", "B."]}, "every stimulus_id once"),
        ({"sentence": ["A."]}, "the column 'stimulus_id' is missing"),
    ],
)
def test_a_table_that_does_not_fit_is_named(columns: Mapping[str, list[str]], said: str, tmp_path: Path) -> None:
    write_pereira2018(tmp_path, text_in="table")
    write_stimuli(tmp_path / "stimulus_Pereira2018.csv", columns)
    _expect(StimulusError, tmp_path, said, "stimulus_Pereira2018.csv")


def test_regions_of_the_averaged_file_lose_their_subject(tmp_path: Path) -> None:
    """The version with regions in place of voxels has a third axis, no ids, no passages."""
    values = np.arange(12.0).reshape(3, 4, 1)
    presentation = {"sentence": ["A b.", "C d.", "E f."], "experiment": ["PereiraE2_96pass"] * 3}
    neuroid = {"subject": [18, 18, 19, 19], "roi": ["18_IFG", "18_MFG", "19_IFG", "19_MFG"]}
    dims = ("presentation", "neuroid", "time")
    write_assembly(tmp_path / "a.nc", values, presentation, neuroid, dims=dims)
    _expect(StimulusError, tmp_path, "which passage a sentence is from", "without_passages = true")
    dataset = opened("pereira2018", tmp_path, without_passages=True)
    first, second = (dataset.recording(i) for i in dataset.recording_ids())
    assert first.units.ids == second.units.ids == ("IFG", "MFG")
    assert isinstance(second.signal, Epochs)
    assert second.signal.values[0].tolist() == [[2.0, 3.0], [6.0, 7.0], [10.0, 11.0]]
    stimulus = dataset.stimulus("PereiraE2_96pass")
    assert stimulus.words["story_id"].n_unique() == 3
    assert Reason.SENTENCES_BY_RULE in {f.reason for f in stimulus.findings}


def test_axes_may_be_the_other_way_round(tmp_path: Path) -> None:
    presentation, neuroid, values = _pereira_parts()
    write_assembly(tmp_path / "a.nc", values.T, presentation, neuroid, dims=("neuroid", "presentation"))
    dataset = opened("pereira2018", tmp_path)
    signal = dataset.recording(dataset.recording_ids()[1]).signal
    assert isinstance(signal, Epochs)
    assert np.array_equal(signal.values[0], values[:, 2:])


def test_words_of_fedorenko_are_lowered_only_when_told(tmp_path: Path) -> None:
    truth = write_fedorenko2016(tmp_path)
    shown = opened("fedorenko2016", tmp_path).stimulus("sentences").words
    assert tuple(shown["word"]) == truth.texts["sentences"]
    assert shown["word"][0].isupper()
    lowered = opened("fedorenko2016", tmp_path, lowercase=True, word_s=0.7).stimulus("sentences")
    assert tuple(lowered.words["word"]) == tuple(w.lower() for w in truth.texts["sentences"])
    assert lowered.words["onset_s"][8] == pytest.approx(8 * 0.7 + 1.0)
    assert set(shown["word_num"]) == set(range(8))


@pytest.mark.parametrize(("position", "said"), [([0, 1, 1], "word 1 after word 1"), ([0, 1, 3], "word 3 after word 1")])
def test_words_that_are_misnumbered_are_named(position: list[int], said: str, tmp_path: Path) -> None:
    presentation = {"word": ["A", "B", "C"], "word_num": position, "sentence_id": [0, 0, 0]}
    neuroid = {"electrode": [0, 1], "subject_UID": [1, 1]}
    write_assembly(tmp_path / "a.nc", np.ones((3, 2)), presentation, neuroid)
    with pytest.raises(StimulusError, match="every word of a sentence once") as error:
        opened("fedorenko2016", tmp_path)
    assert said in str(error.value)


def test_words_of_a_story_are_cut_where_they_are_heard(tmp_path: Path) -> None:
    truth = write_blank2014(tmp_path)
    stimulus = opened("blank2014", tmp_path).stimulus("stories")
    words = stimulus.words
    for story in dict.fromkeys(truth.stories["stories"]):
        pieces = zip(truth.texts["stories"], truth.stories["stories"], strict=True)
        text = "".join(piece for piece, of in pieces if of == story)
        assert " ".join(words.filter(words["story_id"] == story)["word"]) == " ".join(text.split())
    # A quote goes with its word, a word with a hyphen is heard where it begins.
    samples = (words["onset_s"] / 2.0).floor().cast(int).to_list()
    for word, sample in zip(words["word"], samples, strict=True):
        piece = truth.texts["stories"][sample]
        if word == "'Come":
            assert piece.startswith("Come")
        if word == "long-lost":
            assert piece.endswith("long-")
    assert "'Come" in words["word"].to_list()
    assert "long-lost" in words["word"].to_list()


def test_the_words_of_a_tr_lie_in_its_sample(tmp_path: Path) -> None:
    truth = write_blank2014(tmp_path)
    dataset = opened("blank2014", tmp_path)
    recording = dataset.recording(dataset.recording_ids()[0])
    stimulus = dataset.stimulus("stories")
    grid = build_grid(recording, stimulus, GridConfig(events="trs", lags_ms=(0.0,)))
    codes = np.floor(grid.onset_s / 2.0) + 1.0
    assert np.array_equal(grid.responses[0, :, 0], codes)
    assert len(truth.texts["stories"]) == len(set(codes))
    # So they do where a time is rounded to the nearest sample.
    onset_s = stimulus.words["onset_s"].to_numpy()
    assert np.array_equal(np.rint(onset_s / 2.0), np.floor(onset_s / 2.0))


def test_ids_and_coordinates_that_disagree_are_said_and_chosen(tmp_path: Path) -> None:
    truth = write_blank2014(tmp_path, contradict=True)
    right = opened("blank2014", tmp_path)
    (first, *_) = right.recording_ids()
    wanted = truth.values[first.subject, "stories"]
    assert np.array_equal(right.recording(first).signal.values, wanted)
    finding = next(f for f in right.stimulus("stories").findings if f.reason is Reason.SOURCE_VALUES_CORRECTED)
    assert f"{len(wanted)} presentations" in finding.found
    assert "option 'trust'" in finding.remedy
    other = opened("blank2014", tmp_path, trust="coordinates")
    assert not np.array_equal(other.recording(first).signal.values, wanted)
    assert Reason.SIDECAR_DISAGREES in {f.reason for f in other.stimulus("stories").findings}


def test_regions_of_blank_can_be_paired_over_subjects(tmp_path: Path) -> None:
    write_blank2014(tmp_path, n_subjects=3)
    dataset = opened("blank2014", tmp_path)
    units = {dataset.recording(i).units.ids for i in dataset.recording_ids()}
    assert units == {("01_LH_PostTemp", "02_LH_AntTemp", "03_LH_IFG")}


@pytest.mark.parametrize(("fraction", "format"), [(0.5, "NETCDF4"), (0.9, "NETCDF4"), (0.3, "NETCDF3_64BIT")])
def test_a_truncated_file_is_named(fraction: float, format: Any, tmp_path: Path) -> None:
    path = write_pereira2018(tmp_path, format=format).path
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * fraction)])
    _expect(RecordingError, tmp_path, "truncated", path.name, "checksum")


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "assembly.nc").write_text("<html>log in</html>", encoding="utf-8")
    _expect(RecordingError, tmp_path, "classic netCDF", "<html>", "download it again")


def test_folders_with_no_file_or_several_are_named(tmp_path: Path) -> None:
    _expect(InputError, tmp_path, "there is no file", "put the file into the folder")
    presentation, neuroid, values = _pereira_parts()
    for name in ("a.nc", "b.nc"):
        write_assembly(tmp_path / name, values, presentation, neuroid)
    _expect(InputError, tmp_path, "there are several files", 'file = "a.nc"')
    assert len(opened("pereira2018", tmp_path, file="b.nc").recording_ids()) == 2
    with pytest.raises(InputError, match=r"'c\.nc' is missing"):
        opened("pereira2018", tmp_path, file="c.nc")
    with pytest.raises(ConfigError):
        opened("pereira2018", tmp_path, region="voxel")


def _drop(where: str, *names: str) -> Callable[[dict[str, dict[str, Any]]], None]:
    return lambda parts: [parts[where].pop(name) for name in names]


def _set(where: str, name: str, values: list[Any]) -> Callable[[dict[str, dict[str, Any]]], None]:
    return lambda parts: parts[where].update({name: values})


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (_drop("neuroid", "subject"), RecordingError, "the subjects, in 'subject'"),
        (_drop("neuroid", "neuroid_id", "roi"), RecordingError, "the names of the neuroids"),
        (_drop("presentation", "stimulus"), StimulusError, "the sentences, in 'stimulus'"),
        (_set("neuroid", "subject", ["1", "", "2", "2"]), RecordingError, "coordinate 'subject'"),
        (
            _set("presentation", "stimulus", ["A b.", "", "C d."]),
            StimulusError,
            "coordinate 'stimulus', number 1",
        ),
        (
            _set("presentation", "stimulus_id", ["e.0", "e.1", "e.1"]),
            StimulusError,
            "'e.1' is listed more than once",
        ),
    ],
)
def test_coordinates_that_are_missing_or_double_are_named(
    change: Callable[[dict[str, dict[str, Any]]], None],
    kind: type[LPactError],
    said: str,
    tmp_path: Path,
) -> None:
    presentation, neuroid, values = _pereira_parts()
    change({"presentation": presentation, "neuroid": neuroid})
    write_assembly(tmp_path / "a.nc", values, presentation, neuroid)
    _expect(kind, tmp_path, said, "a.nc")


def test_a_neuroid_that_is_listed_twice_is_named(tmp_path: Path) -> None:
    presentation, neuroid, values = _pereira_parts()
    neuroid["neuroid_id"] = ["v0", "v0", "v1", "v2"]
    write_assembly(tmp_path / "a.nc", values, presentation, neuroid)
    dataset = opened("pereira2018", tmp_path)
    with pytest.raises(RecordingError, match="'v0' 2 times") as error:
        dataset.recording(dataset.recording_ids()[0])
    assert "atlases" in str(error.value)
    other = dataset.recording(dataset.recording_ids()[1])
    assert other.units.ids == ("v1", "v2")


@pytest.mark.parametrize(
    ("shape", "dims", "said"),
    [
        ((3, 4), ("presentation", "unit"), "one array of numbers"),
        ((3, 4, 2), ("presentation", "neuroid", "time"), "'time' of size 2"),
    ],
)
def test_wrong_dimensions_are_named(shape: tuple[int, ...], dims: tuple[str, ...], said: str, tmp_path: Path) -> None:
    presentation, neuroid, _ = _pereira_parts()
    write_assembly(tmp_path / "a.nc", np.ones(shape), presentation, neuroid, dims=dims)
    _expect(RecordingError, tmp_path, said, "a.nc")


def _pereira_parts() -> tuple[dict[str, Any], dict[str, Any], np.ndarray]:
    presentation = {
        "stimulus_id": ["e.0", "e.1", "e.2"],
        "stimulus": ["A b.", "B c.", "C d."],
        "experiment": ["e"] * 3,
        "passage_index": [0, 0, 1],
    }
    neuroid = {
        "neuroid_id": ["v0", "v1", "v2", "v3"],
        "subject": ["1", "1", "2", "2"],
        "roi": ["IFG"] * 4,
    }
    return presentation, neuroid, np.arange(12.0).reshape(3, 4)


def _expect(kind: type[LPactError], folder: Path, *said: str) -> None:
    with pytest.raises(kind) as error:
        opened("pereira2018", folder)
    for part in said:
        assert part in str(error.value)
