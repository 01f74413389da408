"""What must not slip through: models that see the future, unfair contexts, files that nobody recorded, overflow."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from small_models import TEXT, words_table, write_model

from lpact import extract_features, plan_features
from lpact.codes import Reason
from lpact.datasets.base import Stimulus
from lpact.errors import ConfigError, FeatureError, LPactError
from lpact.features.language import extraction
from lpact.features.language.feature_set import open_set
from lpact.features.models import ModelPlace
from lpact.features.parsing import parser_files
from lpact.features.sources.transformers import Transformers, TransformersOptions

WORDS = words_table({"story": TEXT.split()[:40]})
BY_WORD = ("reversed", "shuffled")


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "gpt2", "gpt2")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "bert", "bert")


@pytest.fixture
def copied(gpt2: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(gpt2, tmp_path / "copied"))


def test_an_encoder_is_not_read_as_if_it_were_causal(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(FeatureError, match="sees the future") as caught:
        extract_features(bert, WORDS, tmp_path, kind="causal")
    assert "masked" in str(caught.value)


def test_a_model_that_looks_ahead_a_little_is_found_out(bert: Path, tmp_path: Path) -> None:
    """Small weights, as in a fresh model: what leaks is a thousandth of a state, and leaks all the same."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    config = transformers.XLMConfig(vocab_size=len(tokenizer), emb_dim=32, n_layers=2, n_heads=4, pad_index=0)
    torch.manual_seed(0)
    network = transformers.XLMWithLMHeadModel(config)
    transformers.utils.logging.disable_progress_bar()
    network.save_pretrained(str(tmp_path / "xlm"))
    tokenizer.save_pretrained(str(tmp_path / "xlm"))
    with pytest.raises(FeatureError, match="sees the future"):
        extract_features(tmp_path / "xlm", WORDS, tmp_path / "out", kind="causal")


@pytest.mark.parametrize("context", ["fixed-03", "fixed-٣", "fixed-0", "fixed-", "fixed-3.0"])
def test_a_context_is_spelt_in_one_way(gpt2: Path, tmp_path: Path, context: str) -> None:
    with pytest.raises(ConfigError, match="there is no context"):
        plan_features(gpt2, WORDS, tmp_path, contexts=[context])


def test_all_contexts_reach_equally_far(gpt2: Path, tmp_path: Path) -> None:
    """With three words before each, no context reads a longer sequence than four words' tokens."""
    contexts = ["full", "untrained", "sentence_reset", "reversed", "shuffled"]
    plan = plan_features(gpt2, WORDS, tmp_path, contexts=contexts, context_words=3, untrained_seeds=1)
    reader = plan._reader(None)
    for context in contexts:
        sequences = [s for block in reader.blocks(context, 0) for s in block]
        assert len(sequences) == len(WORDS)
        story = plan.stories[0]
        for word, sequence in enumerate(sequences):
            spelt = len("".join(story.words[max(0, word - 3) : word + 1])) + 4
            assert len(sequence.ids) <= spelt + len(reader.model.start)


def test_controls_that_hide_the_future_are_not_offered_where_it_is_seen(bert: Path, gpt2: Path, tmp_path: Path) -> None:
    stimulus = stimulus_of(TEXT.split()[:20])
    for folder, lacking in ((bert, set(BY_WORD)), (gpt2, set())):
        source = Transformers(TransformersOptions(future="seen"))
        source.at(ModelPlace(folder, tmp_path))
        offered = {key.context for key in source.offers("m", stimulus)}
        assert set(BY_WORD) - offered == lacking
        assert {"full", "sentence_reset", "untrained", "static"} <= offered


@pytest.mark.parametrize("options", [{"context_words": 2}, {"word_context_tokens": 8}], ids=lambda o: next(iter(o)))
def test_a_promise_of_context_that_cannot_be_kept(gpt2: Path, tmp_path: Path, options) -> None:
    plan = plan_features(gpt2, WORDS, tmp_path, contexts=["reversed"], min_context_tokens=20, **options)
    with pytest.raises(ConfigError, match="min_context_tokens"):
        plan.run(Silent())


def test_scores_that_overflow_are_an_error(copied: Path, tmp_path: Path) -> None:
    """The states fit into half precision, what the head makes of them does not."""
    weights = load_file(copied / "model.safetensors")
    weights["transformer.ln_f.weight"] = weights["transformer.ln_f.weight"] * 3e4
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(FeatureError, match="not finite") as caught:
        extract_features(copied, WORDS, tmp_path / "out", precision="float16")
    assert "float32" in str(caught.value)
    (found,) = extract_features(copied, WORDS, tmp_path / "out", precision="float32")
    assert np.isfinite(found.surprisal()).all()


def test_only_the_first_word_is_without_surprisal_where_there_is_no_start(copied: Path, tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(copied)
    tokenizer.bos_token = tokenizer.eos_token = None
    tokenizer.save_pretrained(copied)
    (found,) = extract_features(copied, WORDS, tmp_path, window_tokens=24, stride_tokens=24)
    assert np.flatnonzero(np.isnan(found.surprisal())).tolist() == [0]


@pytest.mark.parametrize(
    ("file", "option", "value"),
    [
        ("config.json", "transformers_weights", "other.safetensors"),
        ("tokenizer_config.json", "fast_tokenizer_files", ["tokenizer.4.0.0.json"]),
    ],
)
def test_files_that_are_named_elsewhere_are_refused(copied, tmp_path, file, option, value) -> None:
    settings = json.loads((copied / file).read_text())
    (copied / file).write_text(json.dumps(settings | {option: value}))
    with pytest.raises(FeatureError, match=option):
        plan_features(copied, WORDS, tmp_path)


def test_a_set_is_made_by_one_version_of_the_libraries(gpt2: Path, tmp_path: Path) -> None:
    plan = plan_features(gpt2, WORDS, tmp_path)
    (whole,) = plan.run(Silent())
    record = json.loads((whole.path / "set.json").read_text())
    half = record | {"n_done": 20, "about": record["about"] | {"torch": "1.0"}}
    (whole.path / "set.json").write_text(json.dumps(half))
    passes = []
    model = plan.model()
    forward = model.forward
    model.forward = lambda ids, *rest: passes.append(ids.numel()) or forward(ids, *rest)  # type: ignore[method-assign]
    (again,) = plan.run(Silent())
    assert sum(passes) > len(WORDS)  # from the first word on
    assert again.about["torch"] == torch.__version__
    np.testing.assert_array_equal(again.hidden(3), whole.hidden(3))


def test_other_words_under_the_same_name_are_other_words(gpt2: Path, tmp_path: Path) -> None:
    source = Transformers(TransformersOptions())
    source.at(ModelPlace(gpt2, tmp_path))
    one, two = stimulus_of(TEXT.split()[:20]), stimulus_of(TEXT.split()[20:40])
    assert (one.id, one.where) == (two.id, two.where)
    source.extract("m", one, ("full", "static"), Silent())
    assert source.ready("m", one, ("full", "static"))
    assert not source.ready("m", two, ("full", "static"))


def test_stimuli_share_one_loaded_model(gpt2, tmp_path, monkeypatch) -> None:
    loads: list[object] = []
    load = extraction.load_model

    def counted(*args, **options):
        loads.append(args)
        return load(*args, **options)

    monkeypatch.setattr(extraction, "load_model", counted)
    source = Transformers(TransformersOptions())
    source.at(ModelPlace(gpt2, tmp_path))
    for start in (0, 20, 40):
        stimulus = stimulus_of(TEXT.split()[start : start + 20])
        source.extract("m", stimulus, ("full", "static"), Silent())
    assert len(loads) == 1


def test_files_that_are_missing_are_found_before_a_run(gpt2: Path, tmp_path: Path) -> None:
    source = Transformers(TransformersOptions())
    source.at(ModelPlace(gpt2, tmp_path))
    stimulus = stimulus_of(TEXT.split()[:20])
    source.extract("m", stimulus, ("full",), Silent())
    key = next(k for k in source.offers("m", stimulus) if k.context == "full")
    source.check(key, stimulus)
    (shard,) = (p for p in tmp_path.rglob("hidden/c/0/*/0"))
    shard.unlink()
    again = Transformers(TransformersOptions())
    again.at(ModelPlace(gpt2, tmp_path))
    with pytest.raises(FeatureError, match="have changed"):
        again.check(key, stimulus)


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/b", "", ".hidden"])
def test_a_name_cannot_lead_out_of_the_folder(gpt2: Path, tmp_path: Path, name: str) -> None:
    if name:
        with pytest.raises(LPactError, match="name"):
            plan_features(gpt2, WORDS, tmp_path / "in", name=name)
    else:
        assert plan_features(gpt2, WORDS, tmp_path / "in", name=name).sets[0].path.is_relative_to(tmp_path / "in")


def test_a_special_token_in_the_text_is_text(gpt2: Path, tmp_path: Path) -> None:
    words = ["The", "<|endoftext|>", "door"]
    plan = plan_features(gpt2, pl.DataFrame({"word": words}), tmp_path)
    (block,) = plan._reader(None).blocks("full", 0)
    (sequence,) = block
    start = plan.model().start[0]
    assert sequence.ids[0] == start
    assert start not in sequence.ids[1:]


def test_no_set_is_no_error(tmp_path: Path) -> None:
    assert open_set(tmp_path / "nothing") is None


def test_what_a_model_cannot_spell_is_a_note(bert: Path, tmp_path: Path) -> None:
    source = Transformers(TransformersOptions())
    source.at(ModelPlace(bert, tmp_path))
    stimulus = stimulus_of(["The", "door", "日本語", "of", "the", "שלום", "sea."])
    assert source.findings("m", stimulus) == []  # not extracted yet
    source.extract("m", stimulus, ("full",), Silent())
    (note,) = source.findings("m", stimulus)
    assert note.reason is Reason.WORDS_UNKNOWN_TO_MODEL
    assert note.found == "2 words, such as 日本語, שלום"
    plain = stimulus_of(["The", "door", "of", "the", "sea."])
    source.extract("m", plain, ("full",), Silent())
    assert source.findings("m", plain) == []


def test_text_beyond_the_words_is_a_note(gpt2: Path, tmp_path: Path) -> None:
    source = Transformers(TransformersOptions())
    source.at(ModelPlace(gpt2, tmp_path))
    stimulus = replace(
        stimulus_of(["The", "door", "of", "the", "sea"]),
        transcripts={"story": "The door [a gull cries] of the sea"},
    )
    source.extract("m", stimulus, ("full",), Silent())
    (note,) = source.findings("m", stimulus)
    assert note.reason is Reason.TRANSCRIPT_BEYOND_WORDS
    assert "[a gull cries]" in note.found


def test_a_parser_is_known_by_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "pipeline"
    (folder / "parser").mkdir(parents=True)
    (folder / "meta.json").write_text("{}")
    (folder / "parser" / "model").write_bytes(b"one")
    before = {file.path: file.sha256 for file in parser_files(f"spacy:{folder}")}
    assert {"meta.json", "parser/model"} < set(before)
    assert any(path.startswith("package spacy ") for path in before)
    (folder / "parser" / "model").write_bytes(b"two")
    after = {file.path: file.sha256 for file in parser_files(f"spacy:{folder}")}
    assert {path for path in before if before[path] != after[path]} == {"parser/model"}
    assert parser_files(None) == []


def stimulus_of(words: list[str]) -> Stimulus:
    table = pl.DataFrame(
        {
            "word": words,
            "onset_s": np.arange(len(words), dtype=float),
            "offset_s": np.arange(len(words)) + 0.5,
            "sentence_id": [0] * len(words),
            "story_id": ["story"] * len(words),
        }
    )
    return Stimulus(id="s", words=table, where="words.tsv")


class Silent:
    def stage(self, name: str, total: int) -> None: ...

    def advance(self, steps: int = 1) -> None: ...
