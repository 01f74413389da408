"""The model source `transformers`: what it offers a study before and after extraction."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import transformers
from small_models import TEXT, write_model

from lpact import extract_features
from lpact.codes import Reason
from lpact.datasets.base import FeatureKey, Stimulus
from lpact.errors import ConfigError, FeatureError
from lpact.features.mechanisms import MECHANISMS, MechanismInputs, Missing, mechanism_matrix
from lpact.features.models import MODELS, NO_COST, ModelPlace, ModelSource
from lpact.run.progress import Reporter

OPTIONS = {"untrained_seeds": 2, "shuffled_draws": 2, "word_context_tokens": 32}
CONTEXTS = ("full", "sentence_reset", "reversed", "shuffled", "untrained", "static")
N_DRAWS = {"shuffled": 2, "untrained": 2}


def stimulus(text: str = TEXT, **more: object) -> Stimulus:
    words = text.split()
    ends = np.array([word.endswith(".") for word in words])
    onset = np.arange(len(words)) * 0.4
    table = pl.DataFrame(
        {
            "word": words,
            "onset_s": onset,
            "offset_s": onset + 0.3,
            "sentence_id": np.concatenate([[0], np.cumsum(ends)[:-1]]),
            "story_id": ["tale"] * len(words),
        }
    )
    return Stimulus("tale", table, "words of the tale", **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "gpt2", "gpt2")


def source(folder: Path, out: Path, **options: object) -> ModelSource:
    built = MODELS.build("transformers", OPTIONS | options, where="model 'm'")
    built.at(ModelPlace(folder, out))
    return built


def test_every_layer_and_context_is_on_offer(gpt2: Path, tmp_path: Path) -> None:
    keys = source(gpt2, tmp_path).offers("m", stimulus())
    expected = {
        FeatureKey("m", layer, context, draw)
        for context in CONTEXTS
        for layer in ([0] if context == "static" else range(4))
        for draw in range(N_DRAWS.get(context, 1))
    }
    assert set(keys) == expected
    assert len(keys) == len(expected)
    assert source(gpt2, tmp_path).width(keys[0], stimulus()) == 32
    assert not list(tmp_path.iterdir())  # offers read the configuration alone


def test_before_extraction_nothing_is_made_up(gpt2: Path, tmp_path: Path) -> None:
    it = source(gpt2, tmp_path)
    assert it.reads_text
    assert not it.ready("m", stimulus(), CONTEXTS)
    words = it.words("m", stimulus())
    assert isinstance(words, Missing)
    assert words.reason is Reason.FEATURES_NOT_EXTRACTED
    assert "'m'" in words.detail
    with pytest.raises(FeatureError, match="features have not been extracted") as caught:
        it.load(FeatureKey("m", 1, "full"), stimulus())
    assert caught.value.remedy
    names = ["surprisal", "semantic_transition", "context_update"]
    _, available, missing = mechanism_matrix(names, MechanismInputs(stimulus(), words))
    assert available == ()
    assert {m.reason for m in missing.values()} == {Reason.FEATURES_NOT_EXTRACTED}


def test_after_extraction_everything_loads(gpt2: Path, tmp_path: Path) -> None:
    it = source(gpt2, tmp_path)
    cost = it.cost("m", stimulus(), CONTEXTS)
    assert cost.n_sets == 8
    assert cost.n_words == 8 * stimulus().words.height
    assert cost.tokens > 0
    assert cost.seconds > 0
    assert cost.n_bytes == 7 * stimulus().words.height * 4 * 32 * 4
    it.extract("m", stimulus(), CONTEXTS, Reporter())
    for now in (it, source(gpt2, tmp_path)):
        assert now.ready("m", stimulus(), CONTEXTS)
        assert now.cost("m", stimulus(), CONTEXTS) == NO_COST
        for key in now.offers("m", stimulus()):
            values = now.load(key, stimulus())
            assert values.shape == (stimulus().words.height, now.width(key, stimulus()))
            assert np.isfinite(values).all()
        words = now.words("m", stimulus())
        assert not isinstance(words, Missing)
        assert words.layers == (0, 1, 2, 3)
    names = ["surprisal", "semantic_transition", "context_update"]
    matrix, available, missing = mechanism_matrix(names, MechanismInputs(stimulus(), words))
    assert available == tuple(names)
    assert not missing
    assert np.isfinite(matrix).all()
    surprisal = words.surprisal()
    assert isinstance(surprisal, np.ndarray)
    np.testing.assert_array_equal(matrix[:, 0], surprisal)


def test_the_source_and_the_call_share_their_sets(gpt2: Path, tmp_path: Path) -> None:
    made = extract_features(gpt2, stimulus().words, tmp_path, contexts=("full", "untrained"), name="m", **OPTIONS)
    it = source(gpt2, tmp_path)
    assert it.ready("m", stimulus(), ("full", "untrained"))
    assert not it.ready("m", stimulus(), ("full", "reversed"))
    key = FeatureKey("m", 2, "untrained", 1)
    np.testing.assert_array_equal(it.load(key, stimulus()), made[2].hidden(2))


def test_words_say_what_the_set_says(gpt2: Path, tmp_path: Path) -> None:
    it = source(gpt2, tmp_path)
    it.extract("m", stimulus(), ("full", "static"), Reporter())
    words = it.words("m", stimulus())
    assert not isinstance(words, Missing)
    (full, static) = extract_features(
        gpt2, stimulus().words, tmp_path, contexts=("full", "static"), name="m", **OPTIONS
    )
    np.testing.assert_array_equal(words.surprisal(), full.surprisal())
    np.testing.assert_array_equal(words.entropy(), full.entropy())
    np.testing.assert_array_equal(words.states(3), full.hidden(3))
    np.testing.assert_array_equal(words.states(None), static.hidden(0))


def test_other_words_are_another_extraction(gpt2: Path, tmp_path: Path) -> None:
    it = source(gpt2, tmp_path)
    it.extract("m", stimulus(), ("full", "static"), Reporter())
    other = stimulus(TEXT.replace("whales", "snails"))
    assert it.ready("m", stimulus(), ("full",))
    assert not it.ready("m", replace(other, id="other"), ("full",))
    assert not source(gpt2, tmp_path).ready("m", other, ("full",))
    moved = replace(other, words=stimulus().words.with_columns(onset_s=pl.col("onset_s") + 9))
    assert source(gpt2, tmp_path).ready("m", moved, ("full",))


def test_transcripts_are_what_the_model_reads(gpt2: Path, tmp_path: Path) -> None:
    plain = stimulus(TEXT.replace(",", "").replace(".", ""))
    with_text = replace(plain, transcripts={"tale": TEXT})
    it = source(gpt2, tmp_path)
    it.extract("m", with_text, ("full", "static"), Reporter())
    again = source(gpt2, tmp_path)
    assert again.ready("m", with_text, ("full",))
    assert not again.ready("m", replace(plain, id="plain"), ("full",))


def test_a_stimulus_without_words_offers_nothing(gpt2: Path, tmp_path: Path) -> None:
    empty = replace(stimulus(), words=stimulus().words.clear())
    assert source(gpt2, tmp_path).offers("m", empty) == []


def test_files_are_listed_with_their_checksums(gpt2: Path, tmp_path: Path) -> None:
    files = {f.path: f for f in source(gpt2, tmp_path).files("m")}
    assert set(files) == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    for name, file in files.items():
        content = (gpt2 / name).read_bytes()
        assert file.n_bytes == len(content)
        assert file.sha256 == hashlib.sha256(content).hexdigest()


def test_a_model_without_its_head_has_no_surprisal(tmp_path: Path) -> None:
    """Random weights of a head that was not stored would pass for numbers."""
    whole = write_model(tmp_path / "bert", "bert")
    level = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity_error()
    bare = transformers.AutoModel.from_pretrained(str(whole), add_pooling_layer=False)
    transformers.utils.logging.set_verbosity(level)
    bare.save_pretrained(str(whole))
    short = stimulus(" ".join(TEXT.split()[:20]))
    it = source(whole, tmp_path / "out")
    it.extract("m", short, ("full", "static"), Reporter())
    words = it.words("m", short)
    assert not isinstance(words, Missing)
    for missing in (
        words.surprisal(),
        words.entropy(),
        MECHANISMS.build("surprisal", {}, where="test").compute(MechanismInputs(short, words)),
    ):
        assert isinstance(missing, Missing)
        assert missing.reason is Reason.MECHANISM_NOT_OFFERED
        assert "20 of 20 words" in missing.detail
    assert it.load(FeatureKey("m", 3, "full"), short).shape == (20, 32)


def test_the_model_is_named_in_the_study_or_by_its_options(gpt2: Path, tmp_path: Path) -> None:
    by_option = MODELS.build("transformers", {"model": str(gpt2)}, where="model 'm'")
    by_option.at(ModelPlace(None, tmp_path))
    assert len(by_option.offers("m", stimulus())) > 0
    by_name = MODELS.build("transformers", {}, where="model 'm'")
    by_name.at(ModelPlace(None, tmp_path))
    with pytest.raises(FeatureError, match=r"the model '.*' does not exist"):
        by_name.offers("./not/there", stimulus())


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "median"},
        {"window_tokens": 4},
        {"window_tokens": 32, "stride_tokens": 64},
        {"device": "tpu"},
        {"precision": "float64"},
        {"untrained_seeds": 0},
        {"windows": 3},
    ],
)
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        MODELS.build("transformers", options, where="model 'm'")
    assert list(options)[-1] in str(caught.value)
