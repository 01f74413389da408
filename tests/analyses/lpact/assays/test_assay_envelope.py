"""The acoustic envelope in the signal: seen at its lag where it is planted, and nowhere else."""

from __future__ import annotations

import shutil
import wave
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from one_recording import (
    FULL,
    ID,
    PROXY,
    STANDALONE,
    assay,
    make_epochs,
    make_recording,
    make_words,
    noise,
    study,
)
from scipy import integrate, ndimage, stats

from lpact.analyses.lpact.assays.envelope import (
    BOXCAR,
    ONSETS,
    PROXIES,
    TRANSCRIPT,
    TimeCourse,
    envelope_time_course,
    proxy_time_course,
    through_hrf,
)
from lpact.analyses.lpact.assays.signal import Clock
from lpact.analyses.lpact.assays.stimulus import Place, summarise_recordings, unused_recording
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.tables.assay import (
    ENVELOPE_FULL,
    FULL_SUMMARY,
    LOW_LEVEL_SUMMARY,
    PROXY_SUMMARY,
    STANDALONE_SUMMARY,
)
from lpact.codes import Reason
from lpact.config import NuisanceConfig
from lpact.datasets._files import wav
from lpact.datasets.base import AbsentMedium, Envelope, Stimulus
from lpact.math.resample import HRFS
from lpact.math.types import FloatArray
from lpact.store import concat, validate
from lpact.tables import find_table

SOUND_HZ = 4000
LENGTH_S = 60.0
RATE_HZ = 50.0


def modulation(seed: int, length_s: float = LENGTH_S) -> FloatArray:
    """A slow, positive course at the rate of the sound."""
    rng = np.random.default_rng(seed)
    coarse = ndimage.gaussian_filter1d(rng.standard_normal(int(length_s * 50)), 3)
    course = 0.1 + np.clip(0.4 + 0.5 * coarse / coarse.std(), 0.0, 2.0)
    times_s = np.arange(int(length_s * SOUND_HZ)) / SOUND_HZ
    return np.interp(times_s, np.arange(course.size) / 50.0, course) / 2.5


def write_wav(path: Path, course: FloatArray, seed: int = 9) -> Path:
    """Noise with this envelope, 16 bits."""
    carrier = np.random.default_rng(seed).uniform(-1.0, 1.0, course.size)
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(SOUND_HZ)
        stream.writeframes((32000 * course * carrier).astype("<i2").tobytes())
    return path


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sounds")
    write_wav(folder / "heard.wav", modulation(0))
    write_wav(folder / "other.wav", modulation(1))
    write_wav(folder / "reversed.wav", modulation(0)[::-1])
    return folder


def tale(sounds: Path, name: str = "heard", **more: object) -> Stimulus:
    words = make_words(np.random.default_rng(0), 150)
    media = {"audio": f"{name}.wav"}
    return Stimulus("tale", words, "here", media=media, media_root=sounds, **more)  # type: ignore[arg-type]


def planted(delay_s: float, n_units: int = 4, length_s: float = LENGTH_S + 5.0) -> FloatArray:
    """The course itself, not its estimate, ``delay_s`` later, in noise; every other unit goes down."""
    times_s = np.arange(int(length_s * RATE_HZ)) / RATE_HZ
    course = modulation(0)
    delayed = np.interp(times_s - delay_s, np.arange(course.size) / SOUND_HZ, course)
    delayed = (delayed - delayed.mean()) / delayed.std()
    signs = np.where(np.arange(n_units) % 2, -1.0, 1.0)
    return 0.5 * np.outer(delayed, signs) + noise(np.random.default_rng(3), length_s, n_units)


def row(table: pl.DataFrame) -> dict[str, object]:
    assert table.height == 1
    return table.row(0, named=True)


@pytest.mark.parametrize("delay_ms", [0.0, 150.0, 300.0])
def test_a_planted_envelope_is_seen_at_its_lag(sounds: Path, delay_ms: float) -> None:
    found = assay(make_recording(planted(delay_ms / 1000.0)), tale(sounds))
    for name in (STANDALONE, FULL):
        seen = row(found[name])
        assert seen["gate_pass"]
        assert seen["best_lag_ms"] == delay_ms
        assert seen["p"] == pytest.approx(1 / 21)
        assert seen["n_units_passing"] == seen["n_units"] == 4
        assert seen["delta"] == pytest.approx(seen["value"] - max(seen["reversed"], seen["shifted_mean"]))
        assert seen["source"] == "computed from heard.wav"
        assert seen["rate_hz"] == 25.0
    words = tale(sounds).words
    spoken_s = words["offset_s"][-1] - words["onset_s"][0]
    assert row(found[STANDALONE])["n_rows"] == pytest.approx(25 * spoken_s, abs=2)
    assert row(found[FULL])["n_rows"] == pytest.approx(25 * (LENGTH_S - 0.3), abs=12)


@pytest.mark.parametrize("sound", ["other", "reversed"])
def test_another_sound_is_not_seen(sounds: Path, sound: str) -> None:
    right = assay(make_recording(planted(0.15)), tale(sounds))
    found = assay(make_recording(planted(0.15)), tale(sounds, sound))
    for name in (STANDALONE, FULL):
        assert not row(found[name])["gate_pass"]
        assert row(found[name])["value"] < 0.2 * row(right[name])["value"]


def test_a_clock_with_an_offset_is_followed_and_a_wrong_one_is_not(sounds: Path) -> None:
    """The sound begins 8 s into the recording; three ways to say so, and a wrong one for each."""
    values = np.vstack([noise(np.random.default_rng(4), 8.0), planted(0.15)])
    right = row(assay(make_recording(values, start_s=-8.0), tale(sounds))[FULL])
    assert right["gate_pass"]
    assert right["best_lag_ms"] == 150.0
    own = tale(sounds).words["onset_s"].to_numpy() + 8.0
    for offset_s, seen in ((0.0, True), (2.0, False)):
        by_start = assay(make_recording(values, start_s=-8.0 + offset_s), tale(sounds))
        later = tale(sounds, audio_start_s=8.0 + offset_s)
        by_audio = assay(make_recording(values), later)
        told = make_recording(values, word_onsets_s=own + offset_s)
        by_words = assay(told, tale(sounds))
        for found in (by_start, by_audio, by_words):
            assert row(found[FULL])["gate_pass"] == seen
        for found in (by_start, by_words):
            assert row(found[STANDALONE])["gate_pass"] == seen


def test_a_clock_that_drifts_is_interpolated_between_words(sounds: Path) -> None:
    """The recording's clock runs 3 % fast: seen with the words' own times, lost without."""
    stimulus = tale(sounds)
    times_s = np.arange(int(LENGTH_S * 1.03 * RATE_HZ)) / RATE_HZ / 1.03
    course = modulation(0)
    heard = np.interp(times_s - 0.1, np.arange(course.size) / SOUND_HZ, course)
    values = noise(np.random.default_rng(5), times_s.size / RATE_HZ + 0.001)[: times_s.size]
    values += 0.5 * ((heard - heard.mean()) / heard.std())[:, None]
    own = stimulus.words["onset_s"].to_numpy() * 1.03
    scored = row(assay(make_recording(values, word_onsets_s=own), stimulus)[STANDALONE])
    lost = row(assay(make_recording(values), stimulus)[STANDALONE])
    assert scored["gate_pass"]
    assert scored["value"] > 3 * lost["value"]


def test_times_between_words() -> None:
    words = make_words(np.random.default_rng(0), 5).with_columns(
        onset_s=pl.Series([1.0, 2.0, 3.0, 4.0, 5.0]), offset_s=pl.Series([1.5, 2.5, 3.5, 4.5, 5.5])
    )
    own = np.array([11.0, 12.1, np.nan, 14.1, 20.0])  # told, told, not told, told, after a pause
    recording = make_recording(np.zeros((10, 1)), word_onsets_s=own)
    clock = Clock.of(recording, Stimulus("tale", words, "here"))
    asked = np.array([9.0, 11.0, 11.55, 12.1, 13.1, 14.1, 16.0, 20.0, 22.0])
    expected = [-1.0, 1.0, 1.5, 2.0, 3.0, 4.0, np.nan, 5.0, 7.0]
    np.testing.assert_allclose(clock.stimulus_s(asked), expected)
    same = Clock.of(make_recording(np.zeros((10, 1))), Stimulus("tale", words, "here"))
    np.testing.assert_array_equal(same.stimulus_s(asked), asked)


def test_a_long_sound_read_in_pieces_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty minutes in pieces of four seconds and their overlap, against all at once."""
    length_s = 1200.0
    write_wav(tmp_path / "long.wav", modulation(7, length_s))
    shutil.copy(tmp_path / "long.wav", tmp_path / "again.wav")
    read: list[int] = []
    plain = wav.WavFile.read

    def counted(self: wav.WavFile, start: int, stop: int) -> FloatArray:
        read.append(stop - start)
        return plain(self, start, stop)

    monkeypatch.setattr(wav.WavFile, "read", counted)
    courses, sizes = {}, {}
    for name, piece in (("long", 1 << 30), ("again", 4 * SOUND_HZ)):
        monkeypatch.setattr(wav, "PIECE_SAMPLES", piece)
        read.clear()
        courses[name] = envelope_time_course(tale(tmp_path, name), NuisanceConfig())
        sizes[name] = list(read)
    assert sizes["long"] == [length_s * SOUND_HZ]
    assert len(sizes["again"]) == 300
    assert max(sizes["again"]) < 0.01 * length_s * SOUND_HZ
    whole, pieces = courses["long"], courses["again"]
    assert isinstance(whole, TimeCourse)
    assert isinstance(pieces, TimeCourse)
    assert whole.values.shape == (length_s * 100, 1)
    np.testing.assert_allclose(pieces.values, whole.values, atol=1e-9 * whole.values.max())


# --- Courses -------------------------------------------------------------------------------------


def test_means_of_a_course_by_hand() -> None:
    course = TimeCourse(np.array([0.0, 1.0, 3.0, 4.0]), np.array([[2.0, 0.0], [5.0, 1.0], [1.0, 0.0]]))
    start, stop = (
        np.array([0.0, 0.5, 2.0, 3.5, -0.1, np.nan]),
        np.array([1.0, 1.5, 4.0, 4.1, 1.0, 2.0]),
    )
    expected = [[2.0, 0.0], [3.5, 0.5], [3.0, 0.5]] + 3 * [[np.nan, np.nan]]
    np.testing.assert_allclose(course.mean_between(start, stop), expected)
    turned = course.reversed_between(0.0, 4.0)
    np.testing.assert_allclose(turned.mean_between(np.array([0.0]), np.array([1.5]))[0, 0], 3.5 / 1.5)
    assert turned.reversed_between(0.0, 4.0).edges_s.tolist() == course.edges_s.tolist()


def test_an_envelope_sample_stands_for_the_time_around_it() -> None:
    stimulus = Stimulus(
        "tale",
        make_words(np.random.default_rng(0), 5),
        "here",
        envelope=Envelope(np.array([1.0, 2.0, 4.0]), 10.0, 5.0),
    )
    course = envelope_time_course(stimulus, NuisanceConfig())
    assert isinstance(course, TimeCourse)
    means = course.mean_between(np.array([4.95, 5.05, 5.0]), np.array([5.05, 5.15, 5.1]))
    np.testing.assert_allclose(means[:, 0], [1.0, 2.0, 1.5])


def test_a_haemodynamic_response_sums_up_what_came_before() -> None:
    """A course of 3 from 0 s to 100 s through the response: 3 times its integral, once that is over."""
    course = TimeCourse(np.array([0.0, 100.0]), np.array([[3.0]]))
    found = through_hrf(np.array([-1.0, 0.0, 50.0, 101.0]), course, "spm")
    integral, _ = integrate.quad(lambda t: float(HRFS["spm"](np.array(t))), 0.0, 32.0)
    np.testing.assert_allclose(found[:, 0], [np.nan, 0.0, 3.0 * integral, np.nan], atol=1e-3)
    assert integral > 0.5


WORDS = pl.DataFrame(
    {
        "word": ["a", "b", "c"],
        "onset_s": [1.0, 1.4, 3.0],
        "offset_s": [1.5, 2.0, 3.5],
        "sentence_id": [0, 0, 0],
        "story_id": ["s", "s", "s"],
        "rms": [1.0, 2.0, 3.0],
        "pitch": [5.0, 5.0, 5.0],
    }
)


def test_proxies_by_hand() -> None:
    stimulus = Stimulus("tale", WORDS, "here")
    courses = {proxy: proxy_time_course(stimulus, proxy) for proxy in PROXIES}
    assert all(isinstance(course, TimeCourse) for course in courses.values())
    start = np.array([0.0, 1.0, 1.4, 2.0, 2.9, 3.5])
    stop = np.array([1.0, 1.4, 1.5, 3.0, 3.1, 9.0])

    def means(proxy: str) -> list[float]:
        return courses[proxy].mean_between(start, stop)[:, 0].tolist()  # type: ignore[union-attr]

    assert means(BOXCAR) == pytest.approx([0.0, 1.0, 1.0, 0.0, 0.5, 0.0])
    assert means(ONSETS) == pytest.approx([0.0, 2.5, 10.0, 0.0, 5.0, 0.0])
    unit = 1.5**0.5  # rms 1, 2, 3 standardised: −unit, 0, unit; pitch does not vary
    assert means(TRANSCRIPT) == pytest.approx([0.0, -unit, -unit, 0.0, unit / 2, 0.0])
    bare = replace(stimulus, words=WORDS.drop("rms", "pitch"))
    why = proxy_time_course(bare, TRANSCRIPT)
    assert isinstance(why, AbsentMedium)
    assert why.reason is Reason.NUISANCE_NOT_OFFERED


# --- Without sound -------------------------------------------------------------------------------


def test_without_sound_proxies_are_looked_at_under_their_own_name() -> None:
    why = AbsentMedium(Reason.MEDIA_NOT_RELEASED, "films")
    words = make_words(np.random.default_rng(0), 150)
    stimulus = Stimulus("tale", words, "here", media_absent={"audio": why})
    length_s = words["offset_s"][-1] + 2.0
    values = noise(np.random.default_rng(1), length_s)
    quiet = assay(make_recording(values), stimulus)
    for onset_s, offset_s in words.select("onset_s", "offset_s").rows():
        values[round((onset_s + 0.1) * 50) : round((offset_s + 0.1) * 50)] += 1.0
    found = assay(make_recording(values), stimulus)
    for name in (STANDALONE, FULL):
        absent = row(found[name])
        assert (absent["reason"], absent["detail"]) == ("media_not_released", "films")
        assert (absent["value"], absent["gate_pass"], absent["n_units"]) == (None, False, 0)
    proxies = {r["proxy"]: r for r in found[PROXY].iter_rows(named=True)}
    boxcar = proxies[BOXCAR]
    assert boxcar["gate_pass"]
    assert boxcar["best_lag_ms"] == 100.0
    assert boxcar["source"] == "150 words"
    assert proxies[TRANSCRIPT]["reason"] == "nuisance_not_offered"
    assert all("not an acoustic envelope" in r["label"] for r in proxies.values())
    assert not quiet[PROXY].filter(proxy=BOXCAR)["gate_pass"][0]


def test_with_sound_no_proxy_is_needed(sounds: Path) -> None:
    found = assay(make_recording(planted(0.1)), tale(sounds))
    assert set(found[PROXY]["reason"]) == {"sound_available"}
    assert not found[PROXY]["gate_pass"].any()


def test_epochs_have_nothing_to_follow(sounds: Path) -> None:
    epochs = noise(np.random.default_rng(0), 150 / 50.0)[None]
    found = assay(make_epochs(epochs, (100.0,)), tale(sounds))
    assert row(found[STANDALONE])["reason"] == "not_continuous"
    silent = Stimulus("tale", tale(sounds).words, "here")
    found = assay(make_epochs(epochs, (100.0,)), silent)
    assert row(found[FULL])["reason"] == "media_not_offered"
    assert set(found[PROXY]["reason"]) == {"not_continuous"}


# --- Rates and summaries -------------------------------------------------------------------------

SEEDS = 100


def test_p_is_uniform_where_the_sound_is_not_heard() -> None:
    """100 recordings of noise and unrelated envelopes; the gate asks for more than p, and passes no more often."""
    found_p, gates = [], []
    words = make_words(np.random.default_rng(0), 60)
    length_s = words["offset_s"][-1] + 1.0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        envelope = ndimage.gaussian_filter1d(np.abs(rng.standard_normal(int(50 * length_s))), 3)
        stimulus = Stimulus("tale", words, "here", envelope=Envelope(envelope, 50.0))
        recording = make_recording(noise(rng, length_s, 3))
        seen = row(assay(recording, stimulus, study(seed))[FULL])
        found_p.append(seen["p"])
        gates.append(seen["gate_pass"])
    n_passing = int((np.array(found_p) <= 0.05).sum())
    assert stats.binomtest(n_passing, SEEDS, 1 / 21).pvalue > 0.001
    rank = np.round(np.array(found_p) * 21).astype(int)
    assert stats.chisquare(np.bincount((rank - 1) // 3, minlength=7)).pvalue > 0.001
    assert sum(gates) <= n_passing


def three_recordings(sounds: Path, n_heard: int) -> tuple[LPactConfig, dict[str, pl.DataFrame]]:
    config = study(datasets=({"name": "set", "reader": "simulated"}, {"name": "none", "reader": "simulated"}))
    parts: dict[str, list[pl.DataFrame]] = {}
    for number in range(3):
        values = planted(0.1) if number < n_heard else noise(np.random.default_rng(number), LENGTH_S)
        recording = replace(make_recording(values), id=replace(ID, run=str(number)))
        for name, table in assay(recording, tale(sounds), config).items():
            parts.setdefault(name, []).append(table)
    place = Place(config, config.datasets[0], replace(ID, run="4"), "time_series")
    for name, table in unused_recording(place, Reason.TOO_MANY_BAD_UNITS).items():
        parts[name.split("/")[1].split("_positive")[0]].append(table)
    names = {
        table.name.split("/")[1].split("_positive")[0]: table.name
        for table in map(
            find_table,
            (
                "low_level_neural_positive_control_gate",
                "acoustic_envelope_standalone_positive_control",
                "acoustic_envelope_full_length_positive_control",
                "low_level_nuisance_sanity_proxy",
            ),
        )
    }
    joined = {names[short]: concat(find_table(names[short]), tables) for short, tables in parts.items()}
    return config, summarise_recordings(joined, config)


@pytest.mark.parametrize(("n_heard", "gate"), [(3, "pass"), (2, "pass"), (1, "no")])
def test_a_dataset_passes_where_more_recordings_do_than_chance_allows(sounds: Path, n_heard: int, gate: str) -> None:
    _, tables = three_recordings(sounds, n_heard)
    summary = tables[FULL_SUMMARY.name]
    own = summary.row(by_predicate=pl.col("dataset") == "set", named=True)
    assert (own["n_recordings"], own["n_computed"], own["n_passing"]) == (4, 3, n_heard)
    assert own["gate"] == gate
    assert own["p_by_chance"] == pytest.approx(stats.binom.sf(n_heard - 1, 3, 1 / 21))
    detailed = tables[ENVELOPE_FULL.name].filter(pl.col("reason") == "ok")
    assert own["median_value"] == pytest.approx(np.median(detailed["value"].to_numpy()))
    assert f"{n_heard} of 3 recordings (1 not computed)" in own["interpretation"]


def test_a_dataset_without_recordings_says_so(sounds: Path) -> None:
    _, tables = three_recordings(sounds, 0)
    for table, n_rows in (
        (LOW_LEVEL_SUMMARY, 6),
        (STANDALONE_SUMMARY, 1),
        (FULL_SUMMARY, 1),
        (PROXY_SUMMARY, 3),
    ):
        rows = validate(tables[table.name], table).filter(dataset="none")
        assert rows.height == n_rows
        assert set(rows["reason"]) == {"dataset_has_no_recording"}
        assert set(rows["gate"]) == {"not_computed"}
        assert set(rows["n_recordings"]) == {0}
    proxies = tables[PROXY_SUMMARY.name].filter(dataset="set")
    assert set(proxies["reason"]) == {"sound_available"}
