"""The reader of Narratives against what its writer wrote."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset_writers.narratives import NarrativesTruth, write_narratives
from lpact.analyses.lpact.levels.pairing import paired
from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.base import DATASETS, Dataset, DatasetInfo, RecordingId
from lpact.datasets.narratives import Narratives
from lpact.errors import InputError, RecordingError, StimulusError
from lpact.grid import build_grid

ATLAS = {"atlas": "atlas.nii.gz", "atlas_labels": "atlas.tsv"}
DERIVATIVES = "derivatives/afni-nosmooth"


@dataclass(frozen=True)
class Written:
    folder: Path
    truth: NarrativesTruth


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("narratives")
    return Written(folder, write_narratives(folder))


@pytest.fixture
def copy(written: Written, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(written.folder, tmp_path / "copy"))


def opened(folder: Path, **options: Any) -> Dataset:
    return DATASETS.build("narratives", {**ATLAS, **options}).open(name="stories", path=folder, seed=0)


def find(dataset: Dataset, subject: str, run: str) -> RecordingId:
    [key] = [k for k in dataset.recording_ids() if (k.subject, k.run) == (subject, run)]
    return key


def test_every_scan_with_an_alignment_is_read(written: Written) -> None:
    dataset = opened(written.folder)
    truth = written.truth
    assert len(dataset.recording_ids()) == 8
    for key in dataset.recording_ids():
        recording = dataset.recording(key)
        assert recording.signal.start_s == truth.start_s[str(key)]
        assert recording.signal.sampling_rate_hz == pytest.approx(1 / 1.5)
        assert recording.signal.physical_unit == "a.u."
        means = recording.signal.read(range(3))
        np.testing.assert_allclose(means, truth.means[str(key)], atol=1e-12)
    assert recording.units.ids == recording.units.regions == truth.regions
    assert recording.units.coordinate_frame == "MNI152NLin2009cAsym"
    np.testing.assert_allclose(recording.units.coordinates_mm, truth.centres_mm)
    assert dataset.info.version == "1.1.4"


def test_every_word_meets_its_volume(written: Written) -> None:
    dataset = opened(written.folder)
    n_outside = 0
    for key in dataset.recording_ids():
        stimulus = dataset.stimulus(key.stimulus)
        config = GridConfig(events="trs", lags_ms=(0.0,))
        grid = build_grid(dataset.recording(key), stimulus, config)
        volumes = written.truth.volumes[str(key)]
        inside = volumes[volumes >= 0]
        np.testing.assert_array_equal(grid.responses[0, :, 0], np.unique(inside) + 1.0)
        counts = np.unique(inside, return_counts=True)[1]
        np.testing.assert_array_equal(grid.stop_word - grid.first_word, counts)
        n_outside += int((volumes < 0).sum())
    assert n_outside > 0, "one scan ends before its story"


def test_a_volume_can_count_at_its_middle(written: Written) -> None:
    # The volume nearest to a word is then the one during which it begins.
    dataset = opened(written.folder, tr_reference=0.5, stories=("pieman",))
    key = find(dataset, "001", "pieman-2")
    signal = dataset.recording(key).signal
    assert signal.start_s == 0.75
    onset_s = dataset.stimulus("pieman").words["onset_s"].to_numpy()
    nearest = np.rint((onset_s - signal.start_s) / 1.5).astype(int)
    np.testing.assert_array_equal(signal.read([0])[nearest, 0], written.truth.volumes[str(key)] + 1.0)


def test_words_and_sentences_are_as_written(written: Written) -> None:
    dataset = opened(written.folder)
    for story in ("pieman", "merlin", "milkywayoriginal", "milkywayvodka"):
        stimulus = dataset.stimulus(story)
        assert tuple(stimulus.words["word"]) == written.truth.words[story]
        np.testing.assert_array_equal(stimulus.words["onset_s"], written.truth.onset_s[story])
        sentences = stimulus.words["sentence_id"].to_numpy()
        np.testing.assert_array_equal(sentences, written.truth.sentences[story])
        assert stimulus.media_path("audio").is_file()
        assert set(stimulus.words["word"]) <= set(
            stimulus.transcripts[story].replace(",", " ").replace(".", " ").split()
        )
        assert "<unk>" in set(stimulus.words["aligned_word"])


def test_words_that_were_not_aligned_are_left_out_and_told(written: Written) -> None:
    [finding] = opened(written.folder).stimulus("pieman").findings
    assert finding.reason == Reason.SOURCE_ROWS_LEFT_OUT
    assert finding.severity == "excluded"
    assert f"{written.truth.n_unaligned['pieman']} of 60 words" in finding.found
    assert "line 1" in finding.found


def test_a_story_without_transcript_has_sentences_by_pauses(written: Written) -> None:
    stimulus = opened(written.folder, sentence_pause_s=0.7).stimulus("tunnel")
    words = stimulus.words
    gaps = words["onset_s"].to_numpy()[1:] - words["offset_s"].to_numpy()[:-1]
    expected = np.concatenate([[0], np.cumsum(gaps >= 0.7)])
    np.testing.assert_array_equal(words["sentence_id"], expected)
    assert stimulus.transcripts == {}
    assert Reason.SENTENCES_BY_RULE in [f.reason for f in stimulus.findings]


def test_a_transcript_of_other_words_is_not_used(copy: Path) -> None:
    path = copy / "stimuli/gentle/pieman/transcript.txt"
    path.write_text("Something else.", encoding="utf-8")
    stimulus = opened(copy).stimulus("pieman")
    assert stimulus.transcripts == {}
    [note] = [f for f in stimulus.findings if f.reason == Reason.SENTENCES_BY_RULE]
    assert "line 1 of the alignment" in note.found


def test_scans_that_are_not_read_are_told(written: Written) -> None:
    dataset = opened(written.folder)
    assert isinstance(dataset, Narratives)
    told = {finding.field: finding for finding in dataset.findings}
    assert set(told) == {"sub-004_task-tunnel", "sub-002_task-notthefallshortscram"}
    assert all(f.reason == Reason.RECORDING_NOT_READ for f in told.values())
    assert "scan_exclude.json" in told["sub-004_task-tunnel"].found
    assert told["sub-004_task-tunnel"] in dataset.stimulus("tunnel").findings
    with_it = opened(written.folder, use_exclude_list=False)
    assert find(with_it, "004", "tunnel").stimulus == "tunnel"


def test_excluded_names_do_not_reach_names_that_begin_alike(copy: Path) -> None:
    listed = {"pieman": {"sub-001": ["sub-001_task-pie", "sub-001_task-pieman_run-1"]}}
    (copy / "code/scan_exclude.json").write_text(json.dumps(listed), encoding="utf-8")
    runs = [key.run for key in opened(copy).recording_ids() if key.subject == "001"]
    assert "pieman-2" in runs
    assert "pieman-1" not in runs


def test_the_version_of_a_story_follows_from_the_events(written: Written) -> None:
    dataset = opened(written.folder)
    assert find(dataset, "001", "milkyway").stimulus == "milkywayoriginal"
    assert find(dataset, "002", "milkyway").stimulus == "milkywayvodka"


def test_partners_for_ceilings(written: Written) -> None:
    dataset = opened(written.folder)
    first, again = find(dataset, "001", "pieman-1"), find(dataset, "001", "pieman-2")
    other = find(dataset, "002", "pieman")
    assert paired("run_to_run", first, again)
    assert paired("subject_to_subject", first, other)
    assert first.stimulus == again.stimulus == other.stimulus


def test_fmriprep_volumes_come_with_their_confounds(tmp_path: Path) -> None:
    truth = write_narratives(tmp_path, pipeline="fmriprep", n_words=40)
    dataset = opened(tmp_path, pipeline="fmriprep", res="native", subjects=("002",))
    key = find(dataset, "002", "pieman")
    confounds = dataset.recording(key).confounds
    assert confounds is not None
    assert confounds.shape == (len(truth.means[str(key)]), 2)
    assert np.isnan(confounds["trans_x_derivative1"][0])
    assert confounds["trans_x"][1] == 0.75


def test_the_onset_of_the_audio_can_be_given(copy: Path) -> None:
    for path in copy.glob("sub-*/func/*_task-tunnel_events.tsv"):
        path.unlink()
    dataset = opened(copy)
    with pytest.raises(RecordingError, match="events of a run are not in the folder") as caught:
        dataset.recording(find(dataset, "001", "tunnel"))
    assert "audio_onset_s = { tunnel = <seconds> }" in str(caught.value)
    dataset = opened(copy, audio_onset_s={"tunnel": 4.25})
    assert dataset.recording(find(dataset, "001", "tunnel")).signal.start_s == -4.25


def test_events_without_a_story_are_named(copy: Path) -> None:
    path = copy / "sub-001/func/sub-001_task-tunnel_events.tsv"
    path.write_text(path.read_text(encoding="utf-8").replace("story", "rest"), encoding="utf-8")
    dataset = opened(copy)
    with pytest.raises(RecordingError, match="trial_type 'story'") as caught:
        dataset.recording(find(dataset, "001", "tunnel"))
    assert "sub-001_task-tunnel_events.tsv" in str(caught.value)


def write_events(folder: Path, *rows: str) -> Dataset:
    """Give a run of `tunnel` these events (onset, duration, trial_type, stim_file)."""
    text = "\n".join(["onset duration trial_type stim_file", *rows]).replace(" ", "\t")
    path = folder / "sub-001/func/sub-001_task-tunnel_events.tsv"
    path.write_text(text + "\n", encoding="utf-8")
    return opened(folder, stories=("tunnel",))


@pytest.mark.parametrize(
    ("rows", "onset_s"),
    [
        (("0.0 12 silence n/a", "12.0 30 story tunnel_audio.wav"), 12.0),
        (("0.0 2 fixation n/a", "2 9 music tunnel_audio.wav", "12 9 story tunnel_audio.wav"), 2.0),
        (("0.0 2 music intro.wav", "12.5 30 story stimuli/tunnel_audio.wav"), 12.5),
        (("0.0 2 silence n/a", "3.0 9 music n/a", "12.0 30 story n/a"), 3.0),
    ],
)
def test_the_audio_starts_with_the_first_event_that_plays_it(copy: Path, rows: tuple[str, ...], onset_s: float) -> None:
    dataset = write_events(copy, *rows)
    assert dataset.recording(find(dataset, "001", "tunnel")).signal.start_s == -onset_s


def test_a_run_that_plays_another_story_is_named(copy: Path) -> None:
    dataset = write_events(copy, "0.0 12 fixation n/a", "12.0 30 story OTHER_audio.wav")
    with pytest.raises(RecordingError, match="whose alignment is") as caught:
        dataset.recording(find(dataset, "001", "tunnel"))
    message = str(caught.value)
    assert "sub-001_task-tunnel_events.tsv, column 'stim_file'" in message
    assert "'OTHER_audio.wav' at 12 s" in message
    assert "audio_onset_s = { tunnel = <seconds> }" in message


def test_provenance_follows_the_description(copy: Path) -> None:
    path = copy / "dataset_description.json"
    about = {"Name": "Stories", "License": "PDDL", "DatasetDOI": "doi:10.1/openneuro.x.v2.0.1"}
    path.write_text(json.dumps(about), encoding="utf-8")
    dataset = opened(copy)
    assert dataset.info == DatasetInfo("Stories (10.1/openneuro.x.v2.0.1)", "2.0.1", "PDDL")
    assert {file.licence for file in dataset.source_files()} == {"PDDL"}
    path.unlink()
    expected = DatasetInfo("OpenNeuro ds002345 (Narratives)", "not stated", "CC0")
    assert opened(copy).info == expected


def test_surfaces_are_not_read_and_told(copy: Path) -> None:
    for path in (copy / DERIVATIVES).rglob("*_bold.nii.gz"):
        path.rename(path.with_name("x_space-fsaverage6_hemi-L_desc-clean.func.gii"))
    with pytest.raises(InputError, match=r"surfaces \(\.func\.gii\) are not read"):
        opened(copy)


def test_an_unknown_story_is_named(written: Written) -> None:
    with pytest.raises(InputError, match="no volumes to read") as caught:
        opened(written.folder, stories=("lucy",))
    assert "stories" in str(caught.value)


def test_a_repetition_time_that_is_not_the_published_one_is_named(copy: Path) -> None:
    sidecar = copy / "sub-001/func/sub-001_task-tunnel_bold.json"
    sidecar.write_text(json.dumps({"RepetitionTime": 2.0}), encoding="utf-8")
    dataset = opened(copy)
    with pytest.raises(RecordingError, match="disagree about the repetition time") as caught:
        dataset.recording(find(dataset, "001", "tunnel"))
    assert "sub-001_task-tunnel_bold.json: 2 s" in str(caught.value)
    assert "option tr_s" in str(caught.value)
    settled = opened(copy, tr_s=1.5)
    recording = settled.recording(find(settled, "001", "tunnel"))
    assert Reason.SIDECAR_DISAGREES in [finding.reason for finding in recording.findings]


def test_two_files_of_one_scan_are_named(copy: Path) -> None:
    func = copy / DERIVATIVES / "sub-002/func"
    path = next(func.glob("*_task-pieman_*"))
    shutil.copy(path, path.with_name(path.name.replace("res-native", "res-2")))
    with pytest.raises(InputError, match="sub-002_ses-1_run-pieman' is listed more than once"):
        opened(copy)


@pytest.mark.parametrize("text", ["[]", "{", '{"pieman": ["sub-001"]}'])
def test_a_broken_list_of_scans_is_named(copy: Path, text: str) -> None:
    (copy / "code/scan_exclude.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        opened(copy)
    assert "scan_exclude.json" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Toto,toto,early,1.0", "line 61, column 'onset'"),
        ("Toto,toto,1.0", "align.csv, line 61\n  found:    3 cell(s)"),
        ("Toto,toto,90.0,80.0", "column 'offset_s', row 57, word 'Toto'"),
        (",toto,90.0,91.0", "line 61, column 'word_orig'"),
    ],
)
def test_broken_alignments_are_named(copy: Path, line: str, told: str) -> None:
    path = copy / "stimuli/gentle/tunnel/align.csv"
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(StimulusError) as caught:
        opened(copy).stimulus("tunnel")
    assert told in str(caught.value)
    assert "align.csv" in str(caught.value)


def test_a_file_that_was_not_fetched_is_named(copy: Path) -> None:
    path = next((copy / DERIVATIVES / "sub-002/func").glob("*_task-pieman_*"))
    path.unlink()
    path.symlink_to(copy / ".git/annex/objects/ab/content")
    with pytest.raises(RecordingError, match="datalad get"):
        opened(copy)
