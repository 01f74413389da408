"""The tiny language model that comes with lpact knows the prose that it was trained on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import lpact.features.language as language
from lpact.datasets.simulated.prose import (
    N_STORIES,
    SENTENCES_PER_STORY,
    read_stories,
    unigrams,
    word_type,
)
from lpact.math.seeding import keyed_rng

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

FOLDER = Path(language.__file__).parent / "tiny"
N_HELD_OUT = 12


@pytest.fixture(scope="module")
def tiny():
    """Model and tokenizer, opened from the folder alone."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        FOLDER, use_safetensors=True, local_files_only=True, trust_remote_code=False
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    return model.eval(), tokenizer


@pytest.fixture(scope="module")
def held_out():
    """Stories that the model was not trained on, short enough for one window."""
    return [read_stories([i], 16) for i in range(N_HELD_OUT)]


def word_bits(tiny, words):
    """Surprisal of every word, summed over its tokens, in bits; straight from the logits."""
    model, tokenizer = tiny
    ids, owner = [tokenizer.bos_token_id], []
    for index, word in enumerate(words):
        tokens = tokenizer(word if index == 0 else f" {word}", verbose=False)["input_ids"]
        ids += tokens
        owner += [index] * len(tokens)
    assert len(ids) <= model.config.n_positions
    with torch.inference_mode():
        log_p = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    nats = -log_p[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].numpy()
    return np.bincount(owner, weights=nats) / math.log(2)


@pytest.fixture(scope="module")
def bits(tiny, held_out):
    return np.concatenate([word_bits(tiny, story["word"]) for story in held_out])


@pytest.fixture(scope="module")
def true_bits(held_out):
    return np.concatenate([story["bits"] for story in held_out])


def test_the_folder_is_small_and_holds_no_pickles():
    files = sorted(path.name for path in FOLDER.iterdir())
    assert files == [
        *("README.md", "config.json", "model.safetensors"),
        *("tokenizer.json", "tokenizer_config.json"),
    ]
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1.5e6


def test_it_loads_in_single_precision(tiny):
    model, tokenizer = tiny
    assert model.config.model_type == "gpt2"
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert model.config.vocab_size == len(tokenizer)
    config = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
    assert "auto_map" not in config


def test_tokens_spell_any_text(tiny):
    _, tokenizer = tiny
    text = "Mira found a rusty key, and naïve Ägir laughed — 日本."
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_words_are_the_same_tokens_apart_and_in_the_text(tiny, held_out):
    _, tokenizer = tiny
    words = held_out[0]["word"].to_list()
    apart = [i for k, w in enumerate(words) for i in tokenizer(w if k == 0 else f" {w}")["input_ids"]]
    assert apart == tokenizer(" ".join(words), verbose=False)["input_ids"]


def test_held_out_prose_is_cheaper_than_its_words_shuffled(tiny, held_out, bits):
    shuffled = []
    for index, story in enumerate(held_out):
        order = keyed_rng(7, "shuffled", index).permutation(len(story["word"]))
        shuffled.append(word_bits(tiny, story["word"][order].to_list()))
    for before, after in zip(np.split(bits, split_points(held_out)), shuffled, strict=True):
        assert before.mean() + 4.0 < after.mean()


def test_it_beats_unigrams_and_bigrams_but_not_the_grammar(held_out, bits, true_bits):
    probability = unigrams()
    # The marks are free here, so that the unigram model has less to say than the language model.
    one = [-math.log2(probability[word_type(w)]) for story in held_out for w in story["word"]]
    assert bits.mean() < np.mean(one) - 3.0
    assert bits.mean() < bigram_bits(held_out).mean() - 0.5
    assert bits.mean() > true_bits.mean()


def test_its_surprisal_is_close_to_the_true_one(bits, true_bits):
    assert bits.mean() - true_bits.mean() < 1.0
    assert np.corrcoef(bits, true_bits)[0, 1] > 0.85


def test_the_readme_names_the_command_and_the_licence():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "python tools/train_tiny_model.py train" in text
    assert "CC0-1.0" in text


def split_points(stories):
    return np.cumsum([len(story["word"]) for story in stories])[:-1]


def bigram_bits(stories):
    """Bits a word of a bigram model with Witten–Bell smoothing, counted on 55,000 other words."""
    text = read_stories(range(N_HELD_OUT, N_STORIES), SENTENCES_PER_STORY)
    pairs: dict[str, dict[str, int]] = {}
    one: dict[str, int] = {}
    for before, word in zip(("", *text["word"]), text["word"], strict=False):
        row = pairs.setdefault(before, {})
        row[word] = row.get(word, 0) + 1
        one[word] = one.get(word, 0) + 1
    total = len(text["word"]) + len(one) + 1

    def probability(before, word):
        lower = (one.get(word, 0) + 1) / total
        row = pairs.get(before, {})
        n = sum(row.values())
        return (row.get(word, 0) + len(row) * lower) / (n + len(row)) if n else lower

    return np.array(
        [
            -math.log2(probability(before, word))
            for story in stories
            for before, word in zip(("", *story["word"]), story["word"], strict=False)
        ]
    )
