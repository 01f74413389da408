"""The stimulus media audit: what sound there is, why there is none, and what stand-ins must be called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

import lpact
from lpact.analyses.lpact.plan.media import MediaAudit, release_rows
from lpact.analyses.lpact.tables.audit import (
    ACOUSTIC_PROXIES,
    AUDIO_SOURCES,
    MEDIA_SUMMARY,
    RELEASE_AUDIT,
    STIMULUS_MEDIA,
)
from lpact.codes import Reason
from lpact.datasets.base import DATASETS, AbsentMedium, Envelope, RecordingId, SourceFile, Stimulus
from lpact.datasets.catalogue import Expected
from lpact.datasets.folder import write_folder
from lpact.store import frame

BOUNDARY = AbsentMedium(Reason.MEDIA_NOT_RELEASED, "the films are not in the release")


def words(**columns: list[float]) -> pl.DataFrame:
    given = {
        "word": ["a", "b"],
        "onset_s": [0.0, 1.0],
        "offset_s": [0.5, 1.5],
        "sentence_id": [0, 0],
        "story_id": ["s", "s"],
    }
    return pl.DataFrame(given | columns)


def film(name: str = "film", **what: object) -> Stimulus:
    what.setdefault("words", words(rms=[0.1, 0.2], pitch=[1.0, 2.0]))
    return Stimulus(id=name, where="here", **what)  # type: ignore[arg-type]


def audit(*stimuli: Stimulus, runs: int = 1) -> MediaAudit:
    found = MediaAudit("set")
    for stimulus in stimuli:
        for run in range(runs):
            recording = RecordingId("1", "1", f"{stimulus.id}{run}", stimulus.id)
            found.add(recording, lambda s=stimulus: s)  # type: ignore[misc]
    return found


def rows(table: object, made: list[dict[str, object]], key: str) -> dict[str, dict[str, object]]:
    checked = frame(table, made)  # type: ignore[arg-type]
    return {row[key]: row for row in checked.iter_rows(named=True)}


UNRELEASED = film(media_absent={"audio": BOUNDARY, "video": BOUNDARY})


def test_missing_media_say_whether_it_is_the_source() -> None:
    made = rows(STIMULUS_MEDIA, audit(UNRELEASED).mapping(), "media")
    assert made.keys() == {"audio_envelope", "audio", "video"}
    for kind in made:
        assert made[kind]["present"] is False
        assert made[kind]["reason"] == "media_not_released"
        assert made[kind]["detail"] == "the films are not in the release"
    unknown = rows(STIMULUS_MEDIA, audit(film()).mapping(), "media")
    assert {row["reason"] for row in unknown.values()} == {"media_not_offered"}
    assert unknown["audio_envelope"]["detail"] == "it has no acoustic envelope and no audio"


def test_media_that_are_there_have_a_path() -> None:
    sounding = film(media={"audio": "a/film.wav", "video": "a/film.mp4", "frames": "a/frames"})
    made = rows(STIMULUS_MEDIA, audit(sounding).mapping(), "media")
    assert {kind: row["path"] for kind, row in made.items()} == {
        "audio_envelope": "computed from a/film.wav",
        "audio": "a/film.wav",
        "video": "a/film.mp4",
        "frames": "a/frames",
    }
    assert all(row["present"] and row["reason"] == "ok" for row in made.values())


def test_the_summary_counts_recordings_and_stimuli() -> None:
    sounding = film("other", media={"audio": "other.wav"})
    made = rows(MEDIA_SUMMARY, audit(UNRELEASED, sounding, runs=3).summary(), "media")
    audio = made["audio"]
    assert (audio["n_recordings"], audio["n_recordings_present"]) == (6, 3)
    assert (audio["n_stimuli"], audio["n_stimuli_present"]) == (2, 1)
    assert (audio["reason"], audio["detail"]) == ("media_not_released", BOUNDARY.detail)
    assert made["video"]["n_stimuli_present"] == 0


def test_sources_of_sound() -> None:
    envelope = Envelope(np.ones(10), 100.0)
    for stimulus, there, true in (
        (UNRELEASED, {"transcript_columns", "word_times"}, set()),
        (
            film(envelope=envelope, words=words()),
            {"envelope_in_dataset", "word_times"},
            {"envelope_in_dataset"},
        ),
        (film(media={"audio": "f.WAV"}, words=words()), {"wav_file", "word_times"}, {"wav_file"}),
        (film(media={"audio": "f.mp3"}, words=words()), {"other_audio_file", "word_times"}, set()),
        (film(media={"video": "f.mov"}, words=words()), {"video_file", "word_times"}, set()),
        (film(words=words().clear()), set(), set()),
    ):
        made = rows(AUDIO_SOURCES, audit(stimulus).sources(), "source")
        assert {name for name, row in made.items() if row["n_stimuli_with"]} == there
        assert {name for name, row in made.items() if row["true_envelope"]} == true
        for name, row in made.items():
            assert (row["reason"] == "ok") == (name in there)
    mp3 = rows(AUDIO_SOURCES, audit(film(media={"audio": "f.mp3"})).sources(), "source")
    assert "write it as a WAV file" in str(mp3["other_audio_file"]["detail"])
    assert "is not a WAV file" in str(mp3["wav_file"]["detail"])


def test_a_proxy_is_a_diagnostic_and_is_never_called_an_envelope() -> None:
    made = rows(ACOUSTIC_PROXIES, audit(UNRELEASED).proxies(["podcast"]), "option")
    assert len(made) == 5
    true = made["true_waveform_envelope"]
    assert (true["status"], true["true_envelope"], true["diagnostic"]) == ("blocked", False, False)
    assert true["reason"] == "media_not_released"
    for option in ("transcript_derived_proxy", "speech_activity_boxcar", "word_onset_control"):
        row = made[option]
        assert (row["status"], row["true_envelope"]) == ("available_diagnostic", False)
        assert row["diagnostic"] is True
        assert str(row["label"]).endswith("not an acoustic envelope")
    assert "rms, pitch" in str(made["transcript_derived_proxy"]["detail"])
    elsewhere = made["envelope_of_another_dataset"]
    assert (elsewhere["true_envelope"], elsewhere["detail"]) == (True, "podcast")
    assert "does not replace" in str(elsewhere["recommended_use"])


def test_with_sound_the_envelope_is_available() -> None:
    sounding = film("other", media={"audio": "other.wav"}, words=words())
    made = rows(ACOUSTIC_PROXIES, audit(sounding).proxies([]), "option")
    assert made["true_waveform_envelope"]["status"] == "available"
    assert made["transcript_derived_proxy"]["status"] == "blocked"
    assert made["transcript_derived_proxy"]["diagnostic"] is False
    assert made["envelope_of_another_dataset"]["status"] == "blocked"
    partial = rows(ACOUSTIC_PROXIES, audit(sounding, UNRELEASED).proxies([]), "option")
    assert partial["true_waveform_envelope"]["status"] == "partial"
    assert "1 of 2 stimuli" in str(partial["true_waveform_envelope"]["detail"])


def test_a_stimulus_is_asked_for_once() -> None:
    asked = []

    def give() -> Stimulus:
        asked.append(1)
        return UNRELEASED

    found = MediaAudit("set")
    for run in range(4):
        found.add(RecordingId("1", "1", str(run), "film"), give)
    assert len(asked) == 1
    assert len(found.mapping()) == 4 * 3


def test_text_alone_is_audited_too_and_nothing_is_told_as_such() -> None:
    alone = MediaAudit("set")
    alone.add_stimulus("film", lambda: UNRELEASED)
    made = rows(MEDIA_SUMMARY, alone.summary(), "media")
    assert (made["audio"]["n_recordings"], made["audio"]["n_stimuli"]) == (0, 1)
    assert made["audio"]["reason"] == "media_not_released"
    assert alone.mapping() == []
    empty = rows(MEDIA_SUMMARY, MediaAudit("set").summary(), "media")
    assert {row["reason"] for row in empty.values()} == {"dataset_has_no_recording"}
    blocked = rows(ACOUSTIC_PROXIES, MediaAudit("set").proxies([]), "option")
    assert {row["status"] for row in blocked.values()} == {"blocked"}


def test_the_release_audit_tells_parts_that_were_never_released() -> None:
    layout = (
        Expected("neural data", ("sub_*.h5", "all/sub_*.h5")),
        Expected("regions", ("localization/*.csv",), needed=False),
        Expected("films", ("media/*.wav",), boundary="word times may stand in"),
    )
    files = [SourceFile(p, n, "0" * 64, "CC0") for p, n in (("all/sub_1.h5", 5), ("all/sub_2.h5", 6))]
    made = rows(RELEASE_AUDIT, release_rows("set", layout, files), "part")
    neural, regions, films = made.values()
    assert (neural["status"], neural["n_files"], neural["n_bytes"]) == ("read", 2, 11)
    assert neural["patterns"] == ["sub_*.h5", "all/sub_*.h5"]
    assert (regions["status"], regions["released"], regions["needed"]) == ("not_read", True, False)
    assert (films["status"], films["released"], films["needed"]) == ("not_released", False, False)
    assert films["stand_in"] == "word times may stand in"


def test_a_study_writes_every_table_for_every_dataset(tmp_path: Path) -> None:
    options = {"n_subjects": 2, "n_runs": 1, "n_stories": 2, "sentences_per_story": 8, "n_units": 8}
    reader = DATASETS.build("simulated", options)
    write_folder(reader.open(name="mine", path=None, seed=0), tmp_path / "mine")
    readout = {"folds": 3, "gap_events": 2, "alphas": [10.0], "min_train_events": 30}
    study = lpact.load_study(
        {
            "name": "media",
            "datasets": [
                {"name": "mine", "reader": "folder"},
                {"name": "sim", "reader": "simulated", "options": options},
            ],
            "models": [{"name": "integrated", "layers": [2]}],
            "readout": readout,
            "run": {"paths": {"mine": str(tmp_path / "mine")}},
        }
    )
    tables = study.audit().tables
    assert {STIMULUS_MEDIA.name, RELEASE_AUDIT.name} <= tables.keys()
    mapping = tables[STIMULUS_MEDIA.name]
    assert mapping.height == 2 * 2 * 3
    proxies = tables[ACOUSTIC_PROXIES.name]
    assert proxies.height == 2 * 5
    other = proxies.filter(pl.col("option") == "envelope_of_another_dataset")
    assert dict(zip(other["dataset"], other["detail"], strict=True)) == {
        "mine": "sim",
        "sim": "mine",
    }
    release = tables[RELEASE_AUDIT.name]
    assert set(release["dataset"]) == {"mine"}
    read = release.filter(pl.col("part") == "neural data")
    assert (read["n_files"][0], read["status"][0]) == (2, "read")
