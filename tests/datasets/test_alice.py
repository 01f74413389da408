"""The Alice reader: files written here, and the real ones where they are."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from dataset_writers.alice import write_alice
from lpact.codes import Reason
from lpact.config import GridConfig
from lpact.datasets.alice import PREDICTORS, REGIONS
from lpact.datasets.base import DATASETS, RecordingId
from lpact.datasets.validate import check_recording, check_stimulus, unit_findings
from lpact.errors import RecordingError, StimulusError
from lpact.grid import build_grid
from lpact.math.ridge import RidgeGrid, nested_ridge
from lpact.math.splits import contiguous_folds
from shared_data import shared_data


def open_alice(folder, **options):
    return DATASETS.build("alice", options).open(name="alice", path=folder, seed=0)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alice")
    return folder, write_alice(folder)


@pytest.fixture
def copy(written, tmp_path):
    shutil.copytree(written[0], tmp_path / "copy")
    return tmp_path / "copy"


def test_recordings_are_the_subjects(written):
    folder, truth = written
    dataset = open_alice(folder)
    assert [i.subject for i in dataset.recording_ids()] == list(truth.subjects)
    recording = dataset.recording(dataset.recording_ids()[0])
    check_recording(recording)
    assert recording.units.ids == REGIONS
    assert (recording.signal.sampling_rate_hz, recording.signal.start_s) == (0.5, 20.0)
    assert recording.confounds.columns[6:] == list(PREDICTORS)
    assert recording.confounds.height == 362
    assert recording.where == "dataset 'alice', alice_data_shared/10mm/s18-timecourses.txt"


def test_every_word_meets_its_volume(written):
    folder, truth = written
    dataset = open_alice(folder)
    stimulus = dataset.stimulus("alice")
    check_stimulus(stimulus)
    assert stimulus.words["word"].to_list() == list(truth.words)
    np.testing.assert_allclose(stimulus.words["onset_s"].to_numpy(), truth.onset_s)
    recording = dataset.recording(dataset.recording_ids()[0])
    grid = build_grid(recording, stimulus, GridConfig(events="trs", lags_ms=(0.0,)))
    assert grid.responses[0, :, 0].tolist() == list(range(1, len(truth.words) + 1))
    np.testing.assert_array_equal(grid.onset_s, 20.0 + 2.0 * truth.volumes)


def test_motion_is_cut_to_the_kept_volumes(written):
    folder, _ = written
    dataset = open_alice(folder)
    motion = np.loadtxt(next((folder / "alice_data_shared").glob("s18-rp_*")))
    confounds = dataset.recording(dataset.recording_ids()[0]).confounds
    np.testing.assert_array_equal(confounds.to_numpy()[:, :6], motion[10:])


def test_what_is_missing_is_reported(written):
    folder, truth = written
    dataset = open_alice(folder)
    findings = {f.reason: f for f in dataset.stimulus("alice").findings}
    assert set(findings) == {Reason.SENTENCES_BY_RULE}
    bare = next(i for i in dataset.recording_ids() if i.subject == truth.bare)
    (note,) = dataset.recording(bare).findings
    assert note.found == f"no motion, word_rate, sound_power for {truth.bare}"


def test_running_text_joins_clitics(written):
    text = open_alice(written[0]).stimulus("alice").transcripts["alice"]
    assert text.startswith("Alice was beginning to get very tired what's the use Alice")


def test_provenance_covers_every_file_that_is_read(written):
    folder, truth = written
    files = open_alice(folder).source_files()
    assert len(files) == len(truth.subjects) * 4 - 3 + 1
    assert {f.licence for f in files} == {"CC BY 4.0"}


def test_pauses_make_sentences(written):
    few = open_alice(written[0], sentence_pause_s=1000.0).stimulus("alice")
    assert few.words["sentence_id"].n_unique() == 1


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (lambda f: f.write_text(f.read_text()[:5000]), RecordingError, "lines of"),
        (lambda f: f.write_text("many" + f.read_text()), RecordingError, "many"),
        (lambda f: f.write_bytes(b"\xff\xfe\x00"), RecordingError, "UTF-8"),
    ],
)
def test_broken_time_courses_are_named(copy, spoil, error, words):
    path = copy / "alice_data_shared/10mm/s18-timecourses.txt"
    spoil(path)
    dataset = open_alice(copy)
    with pytest.raises(error) as raised:
        dataset.recording(RecordingId("s18", "1", "1", "alice"))
    message = str(raised.value)
    assert str(path) in message
    assert any(word in message for word in words.split("|"))


def test_a_truncated_textgrid_is_named(copy):
    path = next((copy / "alice_stim_shared").glob("*.TextGrid"))
    text = path.read_text()
    for broken in (
        text[:-200],
        text.replace("xmax = ", "xmax = 1.2."),
        text.replace('"word"', '"x"'),
    ):
        path.write_text(broken)
        with pytest.raises(StimulusError, match="truncated"):
            open_alice(copy).stimulus("alice")


def test_a_textgrid_in_utf16_is_read_and_latin1_is_named(copy, written):
    path = next((copy / "alice_stim_shared").glob("*.TextGrid"))
    text = path.read_text()
    path.write_bytes(text.encode("utf-16"))
    assert open_alice(copy).stimulus("alice").words.height == len(written[1].words)
    path.write_bytes(text.replace("Alice", "Älice").encode("latin-1"))
    with pytest.raises(StimulusError, match="UTF-8 or UTF-16"):
        open_alice(copy).stimulus("alice")


def test_files_that_do_not_belong_are_named(copy):
    shutil.copy(
        copy / "alice_data_shared/10mm/s18-timecourses.txt",
        copy / "alice_data_shared/10mm/s18-timecourses (copy).txt",
    )
    with pytest.raises(RecordingError, match="sNN-timecourses"):
        open_alice(copy)


@pytest.fixture(scope="module")
def real():
    return open_alice(shared_data("alice_fmri"))


def test_real_words_are_those_published(real):
    stimulus = real.stimulus("alice")
    check_stimulus(stimulus)
    words = stimulus.words
    assert words.height == 2127
    assert (words["onset_s"][0], words["offset_s"][-1]) == pytest.approx((20.06, 743.3), abs=0.05)
    assert "what's the use of a book" in stimulus.transcripts["alice"]


def test_real_word_onsets_give_the_published_word_rate(real):
    """Word onsets convolved with SPM's response match the published predictor, and best without a shift."""
    recording = real.recording(RecordingId("s18", "1", "1", "alice"))
    stimulus = real.stimulus("alice")
    config = GridConfig(events="trs", tr_features="hrf", lags_ms=(0.0,))
    grid = build_grid(recording, stimulus, config)
    ours = grid.pool(np.ones((stimulus.words.height, 1)))[:, 0]
    assert grid.n_events == 362
    published = recording.confounds["word_rate"].to_numpy()
    assert np.corrcoef(ours, published)[0, 1] == pytest.approx(0.99, abs=0.005)
    by_shift = [np.corrcoef(ours[5:-5], np.roll(published, s)[5:-5])[0, 1] for s in range(-3, 4)]
    assert np.argmax(by_shift) == 3


def test_real_constant_subject_is_found(real):
    ids = real.recording_ids()
    assert len(ids) == 28
    constant = [i.subject for i in ids if not unit_findings(real.recording(i))[0]]
    assert constant == ["s33"]


def test_real_responses_agree_between_subjects(real):
    """Leave-one-out correlation, lowest in LIFG and highest in LPTL, after drift and motion are regressed out."""
    cleaned = []
    for recording_id in real.recording_ids():
        recording = real.recording(recording_id)
        if recording_id.subject == "s33":
            continue
        values = np.asarray(recording.signal.values)
        drift = np.linspace(-1, 1, len(values))
        motion = [c for c in recording.confounds.columns if c.startswith("motion")]
        nuisance = np.column_stack([np.ones_like(drift), drift, recording.confounds.select(motion).to_numpy()])
        left = values - nuisance @ np.linalg.lstsq(nuisance, values, rcond=None)[0]
        cleaned.append(left / left.std(axis=0))
    data = np.array(cleaned)
    correlations = [np.corrcoef(own[:, r], (data.sum(axis=0) - own)[:, r])[0, 1] for own in data for r in range(6)]
    by_region = np.reshape(correlations, (len(data), 6)).mean(axis=0)
    assert REGIONS[int(by_region.argmin())] == "LIFG"
    assert REGIONS[int(by_region.argmax())] == "LPTL"
    assert by_region.min() == pytest.approx(0.16, abs=0.02)
    assert by_region.max() == pytest.approx(0.40, abs=0.03)


def test_slow_time_predicts_only_where_folds_are_shuffled(real):
    """Cosines of time say nothing of the words; neighbours in time are alike, and shuffled folds let that in."""
    n = 362
    ids = [i for i in real.recording_ids() if i.subject != "s33"]
    responses = np.hstack([np.asarray(real.recording(i).signal.values) for i in ids])[None]
    cosines = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(1, 21)) / n)
    folds = contiguous_folds(n, 5)
    grid = RidgeGrid((1.0, 100.0, 10000.0))
    shuffled = np.random.default_rng(0).permutation(n)
    leaky = nested_ridge(cosines[shuffled], responses[:, shuffled], folds, grid).scores("pearson")
    honest = nested_ridge(cosines, responses, folds, grid).scores("pearson")
    assert np.median(leaky) > 0.4
    assert abs(np.median(honest)) < 0.1
