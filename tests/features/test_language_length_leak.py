"""Summing over tokens lets a model that has learned nothing tell how long a sentence is.

In an untrained transformer, the activation of a feed-forward block has a positive mean (GELU of a centred value), so
that every token adds the same vector, besides one of its own, to the residual stream. A sum over n tokens holds it n
times, and n is linearly decodable (Feghhi et al., 2024). A mean or a single token holds it once, whatever n is.

GPT-2 without its position vectors and GPT-NeoX, whose positions are rotations, show that and nothing else. GPT-2 also
adds a vector for each position to its input: the last token then tells its position, and the mean over tokens is a
mean over the first n position vectors. No token stands before a sentence here: a token that all sentences share is one
more thing that a mean tells length by, since attention gives it a share of about 1/n.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

import lpact

KINDS = ("gpt2", "gpt2 placeless", "gpt_neox gelu", "gpt_neox tanh")
N_SENTENCES, SHORTEST, LONGEST, N_WORDS, WIDTH, PENALTY = 500, 4, 20, 4000, 128, 30.0


def word_tokenizer():
    """One token a word. Words are far more than columns, so that their counts cannot be read off a sum of vectors."""
    vocabulary = {f"w{i}": i for i in range(N_WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def write_folder(folder, kind):
    """GPT-2, GPT-2 with all position vectors set to zero, or GPT-NeoX with a given activation; random weights."""
    tokenizer = word_tokenizer()
    family, _, activation = kind.partition(" ")
    sizes = {"vocab_size": len(tokenizer), "bos_token_id": None, "eos_token_id": None}
    if family == "gpt2":
        config = transformers.GPT2Config(n_embd=WIDTH, n_layer=4, n_head=4, n_positions=64, **sizes)
    else:
        config = transformers.GPTNeoXConfig(
            hidden_size=WIDTH,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=4 * WIDTH,
            max_position_embeddings=64,
            hidden_act=activation,
            **sizes,
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        network = transformers.AutoModelForCausalLM.from_config(config)
    if kind == "gpt2 placeless":
        torch.nn.init.zeros_(network.transformer.wpe.weight)
    transformers.utils.logging.disable_progress_bar()
    network.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def sentences():
    """Random words; every sentence is a story of its own, and its length tells nothing about its words."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(SHORTEST, LONGEST + 1, N_SENTENCES)
    story = np.repeat(np.arange(N_SENTENCES), lengths)
    words = [f"w{i}" for i in rng.integers(N_WORDS, size=lengths.sum())]
    return lengths, pl.DataFrame({"word": words, "story_id": story.astype(str)})


def decoded(features, lengths):
    """Correlation of length with its ridge prediction, in sentences that were held out."""
    train = np.arange(N_SENTENCES) % 5 > 0
    mean, scale = features[train].mean(axis=0), features[train].std(axis=0)
    x = (features - mean) / scale
    y = lengths - lengths[train].mean()
    gram = x[train].T @ x[train] + PENALTY * np.eye(x.shape[1])
    weights = np.linalg.solve(gram, x[train].T @ y[train])
    return np.corrcoef(x[~train] @ weights, y[~train])[0, 1]


@pytest.fixture(scope="module")
def correlations(sentences, tmp_path_factory):
    """Held-out r of layers 0 to 4 by model and pooling."""
    lengths, table = sentences
    starts = np.cumsum(lengths) - lengths
    found = {}
    for kind in KINDS:
        folder = write_folder(tmp_path_factory.mktemp("model"), kind)
        # The context `untrained` draws weights anew; zeroed position vectors are weights, and are read as they are.
        context = "full" if kind == "gpt2 placeless" else "untrained"
        (features,) = lpact.extract_features(
            folder,
            table,
            tmp_path_factory.mktemp("features"),
            contexts=[context],
            pooling="sum",
            untrained_seeds=1,
        )
        for layer in range(5):
            rows = features.hidden(layer)
            total = np.add.reduceat(rows, starts)
            mean, last = total / lengths[:, None], rows[starts + lengths - 1]
            for pooling, values in (("sum", total), ("mean", mean), ("last", last)):
                found.setdefault((kind, pooling), []).append(decoded(values, lengths))
    return found


@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_sum_over_tokens_tells_the_length(kind, correlations):
    assert min(correlations[kind, "sum"][2:4]) > 0.9


@pytest.mark.parametrize("kind", KINDS[1:3])
@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_a_mean_or_a_single_token_does_not(kind, pooling, correlations):
    assert max(correlations[kind, pooling]) < 0.4


@pytest.mark.parametrize("kind", KINDS[1:])
def test_the_sum_of_input_vectors_does_not_either(kind, correlations):
    assert correlations[kind, "sum"][0] < 0.4


def test_an_activation_with_mean_zero_leaks_nothing(correlations):
    """tanh is odd: the vector that all tokens share is gone, and with it the length."""
    assert max(correlations["gpt_neox tanh", "sum"]) < 0.4


def test_position_vectors_tell_the_length_however_tokens_are_pooled(correlations):
    """At the input already, and through the residual stream in all layers: GPT-2 needs no sum for it."""
    for pooling in ("sum", "mean", "last"):
        assert min(correlations["gpt2", pooling]) > 0.8
