"""Word onsets and word rate in the signal: seen where they are planted, and no more often than promised elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from one_recording import LOW, PROXY, assay, make_epochs, make_recording, make_words, noise, study
from scipy import stats

import lpact
from lpact.analyses.base import Audit
from lpact.analyses.lpact.assays.jobs import stimulus_jobs
from lpact.analyses.lpact.assays.low_level import WordWindows, series_rate_scores
from lpact.analyses.lpact.assays.scores import (
    Scores,
    by_gaps,
    held_out_pearson,
    passes_by_chance,
    reachable_level,
    rotated_rows,
    rotated_times,
    shift_p,
    shift_parts,
)
from lpact.analyses.lpact.assays.signal import OpenRecording, usable_columns
from lpact.analyses.lpact.assays.stimulus import summarise_recordings
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.plan.sizes import assay_rows
from lpact.analyses.lpact.tables.assay import LOW_LEVEL, LOW_LEVEL_SUMMARY, STIMULUS_TABLES
from lpact.analyses.lpact.tables.audit import UNIT_INVENTORY
from lpact.config import GridConfig, PreprocessConfig
from lpact.datasets.base import Recording, Span, Stimulus, TimeSeries
from lpact.datasets.series import StreamedSeries
from lpact.errors import ConfigError
from lpact.grid import build_grid
from lpact.inputs.workspace import Workspace
from lpact.math.splits import contiguous_folds
from lpact.math.types import FloatArray
from lpact.run.audit import audit_study
from lpact.run.progress import Reporter
from lpact.store import MemoryTasks, concat, validate
from lpact.tables import find_table

WINDOWS = ((0.0, 100.0), (100.0, 300.0), (250.0, 500.0))


# --- The readout and the shifts ------------------------------------------------------------------


def naive_pearson(x: FloatArray, y: FloatArray, n_blocks: int, gap: int) -> float:
    """Rows laid out one by one: ridge on training deviations, correlated over all blocks."""
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    blocks = np.array_split(np.arange(len(x)), n_blocks)
    predicted, observed = [], []
    for block in blocks:
        train = [i for i in range(len(x)) if i < block[0] - gap or i > block[-1] + gap]
        a, b = x[train] - x[train].mean(axis=0), y[train] - y[train].mean()
        w = np.linalg.solve(a.T @ a + 0.01 * len(train) * np.eye(x.shape[1]), a.T @ b)
        predicted.append((x[block] - x[train].mean(axis=0)) @ w)
        observed.append(y[block] - y[train].mean())
    return float(stats.pearsonr(np.concatenate(predicted), np.concatenate(observed)).statistic)


def test_held_out_correlation_is_that_of_rows_laid_out() -> None:
    rng = np.random.default_rng(0)
    x = 5.0 + rng.standard_normal((103, 3)).cumsum(axis=0)
    y = 100.0 + x @ rng.standard_normal((3, 2)) + rng.standard_normal((103, 2))
    orders = np.stack([np.roll(np.arange(103), 31), np.roll(np.arange(103), 64)])
    found = held_out_pearson(x, y, contiguous_folds(103, 4, gap=5), orders)
    scale = y.std(axis=0)
    expected = [
        [naive_pearson(x[order], y[:, t] / scale[t], 4, 5) for t in range(2)] for order in (np.arange(103), *orders)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_what_does_not_vary_has_no_correlation() -> None:
    x = np.arange(40.0)[:, None]
    found = held_out_pearson(x, np.hstack([x, np.ones((40, 1))]), contiguous_folds(40, 4))
    assert found[0, 0] > 0.9
    assert np.isnan(found[0, 1])


def test_units_with_the_same_gaps_stand_together() -> None:
    y = np.zeros((5, 4))
    y[2, 1] = y[2, 3] = np.nan
    groups = {tuple(columns): tuple(rows) for rows, columns in by_gaps(y)}
    assert groups == {(0, 2): (0, 1, 2, 3, 4), (1, 3): (0, 1, 3, 4)}
    assert len(by_gaps(np.zeros((5, 4)))) == 1


def test_shifts_and_the_real_place_form_a_group() -> None:
    """Seen from any of the places, the others lie at the same distances: none stands apart."""
    parts = shift_parts(20, 4, np.random.default_rng(0))
    places = np.vstack([np.zeros(4), parts])
    as_set = {tuple(row) for row in np.rint(places * 21).astype(int)}
    assert len(as_set) == 21
    for origin in places:
        seen = np.rint((places - origin) * 21).astype(int) % 21
        assert {tuple(row) for row in seen} == as_set
    assert not (parts[:, 1:] == parts[:, :1]).all()  # stories move by amounts of their own
    assert parts.min() == pytest.approx(1 / 21)


def test_rows_rotate_within_their_segment_and_far_enough() -> None:
    segments = np.repeat([0, 1], [63, 105])
    parts = shift_parts(20, 2, np.random.default_rng(0))
    orders = rotated_rows(segments, 3, parts)
    assert orders is not None
    for order in orders:
        for rows in (slice(0, 63), slice(63, 168)):
            n = rows.stop - rows.start
            assert sorted(order[rows]) == list(range(rows.start, rows.stop))
            shift = (np.arange(n) - (order[rows] - rows.start)) % n
            assert np.unique(shift).size == 1
            assert 3 <= shift[0] <= n - 3
    # Four rows at least are too many for the first segment, not for all rows as one.
    orders = rotated_rows(segments, 4, parts)
    assert orders is not None
    assert (orders[:, :63] >= 63).any()
    assert sorted((-orders[:, 0]) % 168) == [8 * k for k in range(1, 21)]
    assert rotated_rows(segments, 8, parts) is not None
    assert rotated_rows(segments, 9, parts) is None


def test_times_rotate_within_their_story() -> None:
    times_s = np.concatenate([np.arange(20.0), 100.0 + np.arange(30.0)])
    story = np.repeat([0, 1], [20, 30])
    parts = shift_parts(5, 2, np.random.default_rng(0))
    rotated = rotated_times(times_s, story, 2.0, parts)
    assert rotated is not None
    for row in rotated:
        for start_s, own in ((0.0, row[:20]), (100.0, row[20:])):
            n = own.size
            assert own.min() >= start_s
            assert own.max() <= start_s + n
            moved_s = (own - start_s - np.arange(n)) % n
            assert np.ptp(moved_s) == pytest.approx(0.0, abs=1e-9)
            assert 2.0 <= moved_s[0] <= n - 2.0
    assert rotated_times(times_s[:11], story[:11], 2.0, parts) is None
    assert rotated_times(times_s[:12], story[:12], 2.0, parts) is not None


def test_p_counts_the_real_place() -> None:
    shifted = np.array([[1.0, 0.0], [2.0, 0.5], [3.0, np.nan]])
    assert shift_p(np.array([2.0, 1.0]), shifted).tolist()[0] == 0.75
    assert np.isnan(shift_p(np.array([2.0, 1.0]), shifted)[1])
    assert shift_p(np.array([4.0]), shifted[:, :1])[0] == 0.25


def test_chance_of_recordings_that_pass() -> None:
    assert reachable_level(0.05, 20) == pytest.approx(1 / 21)
    assert reachable_level(0.05, 19) == pytest.approx(0.05)
    assert reachable_level(0.05, 99) == pytest.approx(0.05)
    level = 1 / 21
    assert passes_by_chance(1, 1, level) == pytest.approx(level)
    assert passes_by_chance(1, 3, level) == pytest.approx(1 - (20 / 21) ** 3)
    assert passes_by_chance(0, 3, level) == 1.0


def test_shifts_must_allow_the_level() -> None:
    entry = {"name": "a", "reader": "simulated"}
    models = [{"name": "integrated", "layers": [1]}]
    for shifts, fits in ((19, True), (18, False)):
        given = {"name": "x", "datasets": [entry], "models": models}
        given["lpact"] = {"assay": {"shifts": shifts}}
        if fits:
            assert LPactConfig.of(lpact.load_study(given).config).assay.shifts == 19
            continue
        with pytest.raises(ConfigError, match="18 shifts"):
            lpact.load_study(given)


# --- Windows after words -------------------------------------------------------------------------


def opened(recording: Recording, **preprocess: object) -> OpenRecording:
    return OpenRecording(recording, "time_series", PreprocessConfig(**preprocess))  # type: ignore[arg-type]


def windows_of(
    recording: Recording,
    stimulus: Stimulus,
    seed: int = 0,
    fading_s: float = 0.1,
    **preprocess: object,
) -> WordWindows:
    rng = np.random.default_rng(seed)
    source = opened(recording, **preprocess)
    windows = WordWindows(source, stimulus, WINDOWS, 20, fading_s, rng)
    for _, columns in usable_columns(source):
        windows.add(columns)
    return windows


def tale(n_words: int = 120, n_stories: int = 1, seed: int = 0) -> Stimulus:
    return Stimulus("tale", make_words(np.random.default_rng(seed), n_words, n_stories), "here")


def end_s(stimulus: Stimulus) -> float:
    return float(stimulus.words["offset_s"][-1]) + 2.0


def test_responses_are_those_of_the_event_grid() -> None:
    stimulus = tale()
    values = noise(np.random.default_rng(1), end_s(stimulus) - 4.0)
    recording = make_recording(values, start_s=1.0)  # some words come after its end
    windows = windows_of(recording, stimulus)
    for number, (start_ms, stop_ms) in enumerate(WINDOWS):
        config = GridConfig(lags_ms=(start_ms,), window_ms=stop_ms - start_ms)
        grid = build_grid(recording, stimulus, config)
        words, responses = windows.responses(number)
        np.testing.assert_array_equal(words, grid.first_word)
        assert 0 < words.size < stimulus.words.height
        scaled = (grid.responses[0] - values.mean(axis=0)) / values.std(axis=0)
        np.testing.assert_allclose(responses, scaled, atol=1e-10)


def test_effect_is_the_distance_from_other_places() -> None:
    """A unit that is 1 for 100 ms after every word, else 0, against shifted onsets counted by hand."""
    stimulus = tale()
    rate_hz = 100.0
    onset_s = np.round(stimulus.words["onset_s"].to_numpy(), 2)
    words = stimulus.words.with_columns(onset_s=pl.Series(onset_s))
    stimulus = replace(stimulus, words=words)
    values = np.zeros((int(end_s(stimulus) * rate_hz), 1))
    for onset in onset_s:
        first = round(onset * rate_hz)
        values[first : first + 10] = 1.0
    windows = windows_of(make_recording(values, rate_hz), stimulus)
    scores = windows.onset_scores(0)
    assert isinstance(scores, Scores)
    parts = shift_parts(20, 1, np.random.default_rng(0))
    shifted = rotated_times(onset_s, np.zeros(onset_s.size, np.int64), 1.0, parts)
    assert shifted is not None
    means = []
    for times in (onset_s, *shifted):
        starts = [round(t * rate_hz) for t in times]
        means.append(np.mean([values[s : s + 10].mean() for s in starts]))
    assert means[0] == pytest.approx(1.0)
    expected = (1.0 - np.mean(means[1:])) / values.std()
    assert scores.real[0] == pytest.approx(expected)
    assert scores.pooled()[0] == pytest.approx(expected)
    assert scores.unit_p()[0] == pytest.approx(1 / 21)


def test_missing_samples_cost_their_words_in_their_unit() -> None:
    stimulus = tale()
    values = noise(np.random.default_rng(1), end_s(stimulus), 2)
    onset_s = stimulus.words["onset_s"].to_numpy()
    spans = (Span(onset_s[10] + 0.02, onset_s[10] + 0.05, "burst"),)
    values[round((onset_s[40] + 0.05) * 50), 1] = 99.0
    recording = make_recording(values, bad_spans=spans)
    _, responses = windows_of(recording, stimulus, artefact_threshold=50.0).responses(0)
    assert np.isnan(responses[10]).all()
    assert np.isnan(responses[40]).tolist() == [False, True]
    assert np.isfinite(responses[[0, 20, 60]]).all()
    _, untouched = windows_of(make_recording(values[:, :1]), stimulus).responses(0)
    assert np.isfinite(untouched).all()


class Streamed(StreamedSeries):
    """An array that is read one unit at a time, and remembers how much was asked for."""

    unit_major = True

    def __init__(self, values: FloatArray) -> None:
        self._values, self.shape, self.dtype = values, values.shape, values.dtype  # type: ignore[assignment]
        self.most = 0

    def read(self, units: Sequence[int]) -> FloatArray:
        self.most = max(self.most, len(units))
        return self._values[:, list(units)]


def test_a_recording_read_unit_by_unit_gives_the_same() -> None:
    stimulus = tale()
    values = noise(np.random.default_rng(1), end_s(stimulus))
    recording = make_recording(values)
    series = Streamed(values)
    streamed = replace(recording, signal=TimeSeries(series, 50.0))
    whole, by_unit = assay(recording, stimulus), assay(streamed, stimulus)
    for name, table in whole.items():
        assert table.equals(by_unit[name])
    assert (whole[LOW]["n_units"] == 4).all()
    assert whole[PROXY]["n_units"].max() == 4
    assert series.most == 1


# --- Planted and not -----------------------------------------------------------------------------


def with_onsets(stimulus: Stimulus, values: FloatArray, offset_s: float = 0.0) -> FloatArray:
    """Add 0.8 between 100 and 250 ms after every word; every other unit goes down."""
    planted = values.copy()
    signs = np.where(np.arange(values.shape[1]) % 2, -1.0, 1.0)
    for onset_s in stimulus.words["onset_s"]:
        first = round((onset_s + offset_s + 0.1) * 50)
        planted[first : first + 8] += 0.8 * signs
    return planted


def onset_row(table: pl.DataFrame, window: str = "100-300 ms") -> dict[str, object]:
    return table.row(by_predicate=(pl.col("target") == "word_onset") & (pl.col("window") == window), named=True)


def test_a_recording_with_its_own_clock_is_followed() -> None:
    stimulus = tale(200, 2)
    n_words = stimulus.words.height
    values = with_onsets(stimulus, noise(np.random.default_rng(1), end_s(stimulus) + 10.0), 7.3)
    own = stimulus.words["onset_s"].to_numpy() + 7.3
    right = onset_row(assay(make_recording(values, word_onsets_s=own), stimulus)[LOW])
    assert right["gate_pass"]
    assert right["n_units_passing"] == right["n_units"] == 4
    started = make_recording(values, start_s=-7.3)
    assert onset_row(assay(started, stimulus)[LOW])["value"] == pytest.approx(right["value"], rel=0.05)
    wrong = onset_row(assay(make_recording(values, word_onsets_s=own - 3.1), stimulus)[LOW])
    assert not wrong["gate_pass"]
    assert right["value"] > 3 * wrong["value"]
    some = np.where(np.arange(n_words) % 2, np.nan, own)
    half = onset_row(assay(make_recording(values, word_onsets_s=some), stimulus)[LOW])
    assert half["gate_pass"]
    assert half["n_events"] == n_words // 2


def test_word_rate_is_seen_on_words_and_on_sentences() -> None:
    stimulus = tale(240)
    onset_s = stimulus.words["onset_s"].to_numpy()
    rate = np.array([((onset_s >= t - 1) & (onset_s < t + 1)).sum() / 2 for t in onset_s])
    values = noise(np.random.default_rng(1), end_s(stimulus))
    for onset, here in zip(onset_s, rate, strict=True):
        values[round(onset * 50) : round(onset * 50) + 10] -= 1.5 * (here - rate.mean())
    table = assay(make_recording(values), stimulus)[LOW].filter(target="word_rate")
    assert table.filter(window="0-100 ms")["gate_pass"][0]
    assert (table["metric"] == "pearson").all()
    epochs = np.stack([noise(np.random.default_rng(2), 240 / 50.0), -rate[:, None] + np.zeros(4)])
    epochs[1] += noise(np.random.default_rng(3), 240 / 50.0)
    found = assay(make_epochs(epochs, (-100.0, 150.0)), stimulus)[LOW]
    rows = {(r["target"], r["window"]): r for r in found.iter_rows(named=True)}
    assert {r["reason"] for (t, _), r in rows.items() if t == "word_onset"} == {"not_continuous"}
    assert rows["word_rate", "100-300 ms"]["gate_pass"]
    for window in ("0-100 ms", "250-500 ms"):
        row = rows["word_rate", window]
        assert (row["reason"], row["value"], row["gate_pass"]) == (
            "no_samples_in_window",
            None,
            False,
        )


def test_what_cannot_be_shifted_or_is_too_short_says_so() -> None:
    stimulus = tale(12)
    values = noise(np.random.default_rng(1), end_s(stimulus))
    table = assay(make_recording(values), stimulus)[LOW]
    assert set(table["reason"]) == {"too_few_events"}
    stimulus = tale(120)  # 45 s
    recording = make_recording(noise(np.random.default_rng(1), end_s(stimulus)))
    for stop_ms, reason in ((2500.0, "shift_not_possible"), (500.0, "ok")):
        config = study(assay={"onset_windows_ms": ((0.0, stop_ms),)})
        onset = assay(recording, stimulus, config)[LOW].filter(target="word_onset")
        assert onset["reason"].to_list() == [reason]
        assert onset["p"].is_null().to_list() == [reason != "ok"]
    slow = study(assay={"onset_windows_ms": ((0.0, 30.0), (0.0, 40.0))})
    found = assay(recording, stimulus, slow)[LOW].filter(target="word_onset")
    assert found["reason"].to_list() == ["no_samples_in_window", "ok"]  # 1.5 and 2 samples at 50 Hz


SEEDS = 100


def test_a_slow_signal_does_not_pass_for_being_slow() -> None:
    """A random walk is nearly the same wherever it is looked at; it must not pass more often than promised."""
    n_passing = 0
    for seed in range(SEEDS):
        stimulus = tale(150, 2, seed)
        walk = np.random.default_rng(seed).standard_normal((int(50 * end_s(stimulus)), 3)).cumsum(axis=0)
        scores = windows_of(make_recording(walk), stimulus, seed, fading_s=2.0).onset_scores(1)
        assert isinstance(scores, Scores)
        value, shifted = scores.pooled()
        n_passing += shift_p(np.array([value]), shifted[:, None])[0] <= 0.05
    assert stats.binomtest(n_passing, SEEDS, 1 / 21, alternative="greater").pvalue > 0.01


def test_p_is_uniform_where_nothing_is_planted() -> None:
    """100 recordings of autocorrelated noise: p of onsets and rates is uniform on 1/21 … 1."""
    onset_p, rate_p, unit_p = [], [], []
    for seed in range(SEEDS):
        stimulus = tale(150, 2, seed)
        config = study(seed)
        recording = make_recording(noise(np.random.default_rng(seed + 500), end_s(stimulus), 3))
        windows = windows_of(recording, stimulus, seed)
        onset = windows.onset_scores(1)
        rate = series_rate_scores(windows, 1, stimulus, config, np.random.default_rng(seed))
        assert isinstance(onset, Scores)
        assert isinstance(rate, Scores)
        for scores, found in ((onset, onset_p), (rate, rate_p)):
            value, shifted = scores.pooled()
            found.append(shift_p(np.array([value]), shifted[:, None])[0])
        unit_p.append(onset.unit_p()[0])
    for found in (onset_p, rate_p, unit_p):
        n_passing = int((np.array(found) <= 0.05).sum())
        assert stats.binomtest(n_passing, SEEDS, 1 / 21).pvalue > 0.001
        rank = np.round(np.array(found) * 21).astype(int)
        counts = np.bincount((rank - 1) // 3, minlength=7)
        assert stats.chisquare(counts).pvalue > 0.001


# --- The built-in study --------------------------------------------------------------------------

SMALL = {"n_subjects": 3, "n_runs": 1, "n_stories": 3, "sentences_per_story": 8, "n_units": 8}
BUILT_IN = {
    "name": "assay",
    "datasets": [
        {
            "name": "planted",
            "reader": "simulated",
            "options": SMALL | {"truths": ["onset", "sound"]},
        },
        {
            "name": "silent",
            "reader": "simulated",
            "options": SMALL | {"truths": ["onset", "sound"], "snr": 0.0},
        },
        {
            "name": "scanner",
            "reader": "simulated",
            "grid": {"events": "trs", "tr_features": "hrf", "lags_ms": [0.0]},
            "options": SMALL | {"truths": ["onset"], "snr": 2.0, "modality": "fmri", "sentences_per_story": 40},
        },
        {
            "name": "tiny",
            "reader": "simulated",
            "options": SMALL | {"n_stories": 1, "sentences_per_story": 4},
        },
    ],
    "models": [{"name": "integrated", "layers": [2]}],
}


@pytest.fixture(scope="module")
def built_in() -> tuple[lpact.Study, Audit, dict[str, pl.DataFrame]]:
    study = lpact.load_study(BUILT_IN)
    config = LPactConfig.of(study.config)
    workspace = Workspace(study.config)
    audit = audit_study(workspace, Reporter()).of["lpact"]
    parts: dict[str, list[pl.DataFrame]] = {}
    for job in stimulus_jobs(config, audit):
        for name, table in job.run(workspace, MemoryTasks()).items():
            parts.setdefault(name, []).append(table)
    joined = {name: concat(find_table(name), tables) for name, tables in parts.items()}
    return study, audit, summarise_recordings(joined, config)


def test_the_built_in_study_is_seen_where_signal_is_planted(built_in) -> None:
    _, _, tables = built_in
    summary = tables[LOW_LEVEL_SUMMARY.name]
    gates = {(r["dataset"], r["target"], r["window"]): r["gate"] for r in summary.iter_rows(named=True)}
    assert gates["planted", "word_onset", "0-100 ms"] == "pass"
    assert gates["planted", "word_onset", "100-300 ms"] == "pass"
    assert {gate for (name, *_), gate in gates.items() if name == "silent"} == {"no"}
    assert gates["scanner", "word_onset", "0-100 ms"] == "not_computed"
    assert gates["scanner", "word_rate", "delay 0 ms"] == "pass"
    planted = summary.filter(dataset="planted", target="word_onset", window="100-300 ms")
    assert planted["interpretation"][0].startswith("Seen in 3 of 3 recordings")


def test_every_recording_has_its_rows_and_reasons(built_in) -> None:
    study, audit, tables = built_in
    assert tables.keys() == {table.name for table in STIMULUS_TABLES}
    for table in STIMULUS_TABLES:
        assert validate(tables[table.name], table).height > 0
    planned = assay_rows(LPactConfig.of(study.config), audit)
    for table in STIMULUS_TABLES:
        assert tables[table.name].height == planned[table.name]
    unused = audit.tables[UNIT_INVENTORY.name].filter(dataset="tiny")
    assert not unused["used"].any()
    rows = tables[LOW_LEVEL.name].filter(dataset="tiny")
    assert rows.height == 3 * 6
    assert set(rows["reason"]) == set(unused["reason"]) == {"too_few_events"}
    scanner = tables[LOW_LEVEL.name].filter(dataset="scanner", target="word_onset")
    assert set(scanner["reason"]) == {"no_samples_in_window"}
    assert set(scanner["kind"]) == {"trs"}


def test_jobs_do_not_depend_on_each_other(built_in) -> None:
    study, audit, tables = built_in
    job = stimulus_jobs(LPactConfig.of(study.config), audit)[1]
    alone = job.run(Workspace(study.config), MemoryTasks())[LOW_LEVEL.name]
    key = ("target", "window")
    together = tables[LOW_LEVEL.name].filter(dataset=job.dataset, subject=job.recording.subject)
    assert alone.sort(key).equals(together.sort(key))
