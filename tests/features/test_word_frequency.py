"""Word frequencies from lists: against the lists' own bands, and visible where a word has none."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.io import wavfile

import lpact
from lpact.codes import Reason
from lpact.config import NuisanceConfig
from lpact.datasets.base import DATASETS, Stimulus
from lpact.datasets.folder import write_folder
from lpact.errors import ConfigError
from lpact.features.nuisance import (
    build_nuisance,
    list_floor,
    list_log_frequency,
    nuisance_findings,
)

wordfreq = pytest.importorskip("wordfreq", reason="wordfreq is an extra")

ROUNDING = 0.005
"""Lists give three digits."""


def stimulus_of(words: list[str], **columns: pl.Series) -> Stimulus:
    n = len(words)
    table = pl.DataFrame(
        {
            "word": words,
            "onset_s": [float(i) for i in range(n)],
            "offset_s": [i + 0.5 for i in range(n)],
            "sentence_id": [0] * n,
            "story_id": ["a"] * n,
        }
    )
    return Stimulus("stim", table.with_columns(**columns), "words.tsv")


def config_for(language: str | None) -> NuisanceConfig:
    return NuisanceConfig(include=("log_frequency",), language=language)


def band(word: str, language: str) -> int:
    """Hundredths of a decade below 1, found by looking through the list itself."""
    for index, words in enumerate(wordfreq.get_frequency_list(language)):
        if word in words:
            return index
    raise AssertionError(word)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ["the", "house", "don't", "naïve"]),
        ("de", ["und", "häuser"]),
        ("fr", ["le", "été"]),
    ],
)
def test_a_listed_word_has_the_log_probability_of_its_band(language: str, words: list[str]) -> None:
    values, columns, missing = build_nuisance(stimulus_of(words), config_for(language))
    assert (columns, missing) == (("log_frequency",), {})
    expected = [-band(word, language) / 100 * math.log(10) for word in words]
    np.testing.assert_allclose(values[:, 0], expected, atol=ROUNDING)
    assert nuisance_findings(stimulus_of(words), config_for(language)) == []


def test_case_punctuation_and_quotes_do_not_matter() -> None:
    plain, _ = list_log_frequency(["house", "don't"], "en")
    other, unlisted = list_log_frequency(["“House,”", "DON’T!"], "en")
    np.testing.assert_array_equal(plain, other)
    assert not unlisted.any()
    spellings, unlisted = list_log_frequency(["Straße", "STRASSE"], "de")
    assert spellings[0] == spellings[1]
    assert not unlisted.any()


def test_tokens_of_a_word_combine_by_their_inverses() -> None:
    values, unlisted = list_log_frequency(["ice-cold"], "en")
    p_ice, p_cold = (10 ** (-band(word, "en") / 100) for word in ("ice", "cold"))
    assert values[0] == pytest.approx(-math.log(1 / p_ice + 1 / p_cold), abs=ROUNDING)
    assert not unlisted.any()


@pytest.mark.parametrize("language", ["en", "bg"])
def test_unlisted_words_have_the_floor_and_nothing_has_less(language: str) -> None:
    bands = wordfreq.get_frequency_list(language)
    rarest = bands[-1][0]
    words = ["—", "...", "xqzzvkw", rarest, f"{rarest}-{rarest}", "1" * 400]
    values, unlisted = list_log_frequency(words, language)
    floor = -(len(bands) - 1) / 100 * math.log(10)
    assert math.log(list_floor(language)) == pytest.approx(floor, abs=1e-12)
    np.testing.assert_allclose(values, floor, atol=1e-12)
    assert unlisted.tolist() == [True, True, True, False, False, True]
    common, _ = list_log_frequency(bands[300][:20], language)
    assert (common > floor + 1).all()


def test_unlisted_words_are_counted_and_named() -> None:
    words = ["the", "xqzzvkw", "—", "house", "xqzzvkw"]
    (finding,) = nuisance_findings(stimulus_of(words), config_for("en"))
    assert finding.reason is Reason.WORDS_WITHOUT_FREQUENCY
    assert (finding.field, finding.severity, finding.where) == (
        "log_frequency",
        "note",
        "words.tsv",
    )
    assert finding.found == "3 of 5 words (2 different): 'xqzzvkw', '—'"
    assert "language 'en'" in finding.expected
    many = [f"xqzz{chr(97 + i)}vkw" for i in range(20)]
    (finding,) = nuisance_findings(stimulus_of(many), config_for("en"))
    assert finding.found.startswith("20 of 20 words (20 different): 'xqzzavkw', ")
    assert finding.found.endswith("'xqzzhvkw' …")


def test_the_column_wins_and_no_language_means_missing() -> None:
    own = stimulus_of(["the", "xqzzvkw"], log_frequency=pl.Series([-1.0, -2.0]))
    values, _, _ = build_nuisance(own, config_for("en"))
    assert values[:, 0].tolist() == [-1.0, -2.0]
    assert nuisance_findings(own, config_for("en")) == []
    # A column with a gap is not patched from the list.
    gap = stimulus_of(["the", "house"], log_frequency=pl.Series([-1.0, None]))
    assert "1 of 2 words" in build_nuisance(gap, config_for("en"))[2]["log_frequency"].detail
    bare = stimulus_of(["the", "xqzzvkw"])
    assert "nuisance.language" in build_nuisance(bare, config_for(None))[2]["log_frequency"].detail
    assert nuisance_findings(bare, config_for(None)) == []
    without = NuisanceConfig(include=("word_length",), language="en")
    assert nuisance_findings(bare, without) == []


@pytest.mark.parametrize("language", ["xx", "af", "eng"])
def test_a_language_without_a_list_is_an_error(language: str) -> None:
    with pytest.raises(ConfigError, match="no list of word frequencies") as caught:
        build_nuisance(stimulus_of(["the"]), config_for(language))
    assert caught.value.where == "option 'nuisance.language'"
    assert " en, " in str(caught.value.expected)
    assert "log_frequency" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("language", "module", "inner"),
    [("zh", "jieba", "wordfreq.chinese"), ("ja", "MeCab", "wordfreq.mecab")],
)
def test_a_missing_tokenizer_is_named(monkeypatch: pytest.MonkeyPatch, language: str, module: str, inner: str) -> None:
    list_floor.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, inner, raising=False)
    with pytest.raises(ConfigError, match="not installed") as caught:
        list_log_frequency(["猫"], language)
    assert module.lower() in str(caught.value.got).lower()
    assert "wordfreq[cjk]" in str(caught.value.remedy)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    list_floor.cache_clear()
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(ConfigError, match="not installed") as caught:
        list_log_frequency(["the"], "en")
    assert "pip install 'lpact[lm]'" in str(caught.value.remedy)


@pytest.mark.slow
def test_the_audit_shows_where_frequencies_and_envelopes_come_from(tmp_path: Path) -> None:
    options = {"n_subjects": 2, "n_runs": 1, "sentences_per_story": 12, "n_units": 8}
    simulated = DATASETS.build("simulated", options).open(name="sim", path=None, seed=0)
    write_folder(simulated, tmp_path / "data")
    for path in (tmp_path / "data/stimuli").glob("*/words.tsv"):
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        column = rows[0].index("log_frequency")
        for row in rows:
            del row[column]
        for row in rows[1:]:
            row[0] = "house"
        rows[5][0] = "xqzzvkw"
        path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
        for name in ("envelope.npy", "envelope.toml"):
            path.with_name(name).unlink()
        n_samples = 8000 * math.ceil(float(rows[-1][2]) + 1.0)
        sound = np.random.default_rng(0).integers(-9000, 9000, n_samples, dtype=np.int16)
        wavfile.write(path.with_name("audio.wav"), 8000, sound)
    study = {
        "name": "frequencies",
        "datasets": [{"name": "mine", "reader": "folder"}],
        "models": [{"name": "integrated", "layers": [1]}],
        "nuisance": {"language": "en"},
        "readout": {"folds": 3, "min_train_events": 4, "min_test_events": 4, "gap_events": 0},
        "run": {"paths": {"mine": str(tmp_path / "data")}},
    }
    tables = lpact.load_study(study).plan().audit.tables
    notes = tables["audits/lpact_findings"].filter(pl.col("reason") == "words_without_frequency")
    assert notes.height == 2
    assert all("(1 different): 'xqzzvkw'" in found for found in notes["found"])
    ingredients = tables["audits/lpact_ingredient_availability"]
    for name in ("log_frequency", "acoustic_envelope"):
        row = ingredients.row(by_predicate=pl.col("name") == name, named=True)
        assert (row["available"], row["reason"]) == (True, "ok")
    media = tables["controls/stimulus_media_mapping"].filter(pl.col("media") == "audio_envelope")
    assert media["path"].to_list() == [f"computed from stimuli/{stimulus}/audio.wav" for stimulus in media["stimulus"]]
    assert media.height == 2
