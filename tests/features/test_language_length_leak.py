"""Summing over tokens lets a model that has learned nothing tell how long a sentence is.

In an untrained transformer, the activation of a feed-forward block has a positive mean (GELU of a centred value), so
that every token adds the same vector, besides one of its own, to the residual stream. A sum over n tokens holds it n
times, and n is linearly decodable (Feghhi et al., 2024). A mean or a single token holds it once, whatever n is.

Rotary models (GPT-NeoX) show that and nothing else. GPT-2 also adds a vector for each position to its input: the last
token then tells its position, and even the mean over tokens is a mean over the first n position vectors.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

import lpact

N_SENTENCES, SHORTEST, LONGEST, N_WORDS, WIDTH, PENALTY = 500, 4, 20, 4000, 128, 30.0


def word_tokenizer():
    """One token a word. Words are far more than columns, so that their counts cannot be read off a sum of vectors."""
    vocabulary = {f"w{i}": i for i in range(N_WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def write_folder(folder, family):
    tokenizer = word_tokenizer()
    sizes = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 0}
    if family == "gpt2":
        config = transformers.GPT2Config(n_embd=WIDTH, n_layer=4, n_head=4, n_positions=64, **sizes)
    else:
        config = transformers.GPTNeoXConfig(
            hidden_size=WIDTH,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=4 * WIDTH,
            max_position_embeddings=64,
            **sizes,
        )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(str(folder))
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
    """Held-out r by family, pooling and layer."""
    lengths, table = sentences
    starts = np.cumsum(lengths) - lengths
    found = {}
    for family in ("gpt2", "gpt_neox"):
        folder = write_folder(tmp_path_factory.mktemp(family), family)
        out = tmp_path_factory.mktemp("features")
        (features,) = lpact.extract_features(
            folder, table, out, contexts=["untrained"], pooling="sum", untrained_seeds=1
        )
        for layer in range(features.n_layers):
            rows = features.hidden(layer)
            total = np.add.reduceat(rows, starts)
            pooled = {
                "sum": total,
                "mean": total / lengths[:, None],
                "last": rows[starts + lengths - 1],
            }
            for pooling, values in pooled.items():
                found[family, pooling, layer] = decoded(values, lengths)
    return found


def test_show(correlations):
    for k, v in correlations.items():
        print(k, round(v, 3))
