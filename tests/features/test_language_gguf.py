"""Models in GGUF files: weights and tokenizer in one file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file
from small_models import TEXT, write_model

from lpact import extract_features, plan_features
from lpact.errors import ConfigError, FeatureError
from lpact.features.language.model_files import find_model

gguf = pytest.importorskip("gguf", reason="tool missing: gguf")
pytest.importorskip("accelerate", reason="tool missing: accelerate")

WORDS = pl.DataFrame({"word": TEXT.split()[:60]})
NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
PARTS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    if name in NAMES:
        return NAMES[name]
    layer, part = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
    return f"blk.{layer}.{PARTS[part]}.weight"


def interleaved(weight: np.ndarray, n_heads: int) -> np.ndarray:
    """Rows of queries and keys as the format has them: the two halves of a head's rotation in turn."""
    rows, columns = weight.shape
    return weight.reshape(n_heads, 2, rows // n_heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(model: Path, target: Path, dtype: type = np.float32) -> Path:
    """The Llama of a folder as a GGUF file."""
    config = json.loads((model / "config.json").read_text())
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    writer = gguf.GGUFWriter(str(target), "llama")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    rank = {"".join(pair): i for i, pair in enumerate(tokenizer["model"]["merges"])}
    kinds = {
        "<unk>": gguf.TokenType.UNKNOWN,
        "<s>": gguf.TokenType.CONTROL,
        "</s>": gguf.TokenType.CONTROL,
    }
    byte = gguf.TokenType.BYTE
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(rank.get(token, len(rank))) for token in tokens])
    writer.add_token_types([kinds.get(t, byte if t.startswith("<0x") else gguf.TokenType.NORMAL) for t in tokens])
    writer.add_bos_token_id(tokens.index("<s>"))
    writer.add_eos_token_id(tokens.index("</s>"))
    writer.add_unk_token_id(tokens.index("<unk>"))
    for name, weight in load_file(model / "model.safetensors").items():
        if "q_proj" in name:
            weight = interleaved(weight, config["num_attention_heads"])
        elif "k_proj" in name:
            weight = interleaved(weight, config["num_key_value_heads"])
        kept = np.float32 if weight.ndim == 1 else dtype
        writer.add_tensor(gguf_name(name), np.ascontiguousarray(weight.astype(kept)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "llama", "llama")


@pytest.fixture(scope="module")
def packed(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(llama, tmp_path_factory.mktemp("packed") / "small.gguf")


def test_a_gguf_file_gives_the_numbers_of_its_weights(llama: Path, packed: Path, tmp_path: Path) -> None:
    contexts = ("full", "reversed", "static")
    plain = extract_features(llama, WORDS, tmp_path, contexts=contexts)
    found = extract_features(packed, WORDS, tmp_path, contexts=contexts)
    assert found[0].path.parent == tmp_path / "small"
    for ours, theirs in zip(found, plain, strict=True):
        assert ours.n_layers == theirs.n_layers
        for layer in range(ours.n_layers):
            np.testing.assert_allclose(ours.hidden(layer), theirs.hidden(layer), atol=1e-6)
    np.testing.assert_allclose(found[0].surprisal(), plain[0].surprisal(), atol=1e-5)
    np.testing.assert_allclose(found[0].entropy(), plain[0].entropy(), atol=1e-5)
    assert list(found[0].about["files"]) == ["weights"]


def test_a_folder_with_one_gguf_file_is_that_file(packed: Path, tmp_path: Path) -> None:
    assert find_model(str(packed.parent)).gguf == "small.gguf"
    by_folder, by_file = (plan_features(p, WORDS, tmp_path, name="m").sets[0].path for p in (packed.parent, packed))
    assert by_folder == by_file


def test_sizes_are_known_before_the_weights_are_read(packed: Path) -> None:
    assert find_model(str(packed)).sizes() == (3, 32)


def test_half_precision_weights_are_widened(llama: Path, tmp_path: Path) -> None:
    half = write_gguf(llama, tmp_path / "half.gguf", np.float16)
    (plain,) = extract_features(llama, WORDS, tmp_path / "out")
    (found,) = extract_features(half, WORDS, tmp_path / "out")
    assert found.about["precision"] == "float32"
    distance = np.abs(found.hidden(3) - plain.hidden(3)).max() / np.abs(plain.hidden(3)).max()
    assert 1e-6 < distance < 1e-2


def test_the_untrained_model_has_other_weights(packed: Path, tmp_path: Path) -> None:
    full, *drawn = extract_features(packed, WORDS, tmp_path, contexts=("full", "untrained"), untrained_seeds=2)
    assert not np.allclose(full.hidden(3), drawn[0].hidden(3))
    assert not np.allclose(drawn[0].hidden(3), drawn[1].hidden(3))


def test_one_bit_of_a_gguf_file_makes_another_set(packed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    content = bytearray(packed.read_bytes())
    content[-3] ^= 1
    other.write_bytes(content)
    paths = {plan_features(p, WORDS, tmp_path, name="m").sets[0].path for p in (packed, other)}
    assert len(paths) == 2


def truncate(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


def rename(content: bytes) -> bytes:
    return content.replace(b"blk.1.ffn_up.weight", b"blk.9.ffn_up.weight")


@pytest.mark.parametrize(
    "spoil",
    [truncate, rename, lambda content: b"GGUF", lambda content: b"", lambda content: b"x" * 999],
)
def test_a_damaged_gguf_file(packed: Path, tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(spoil(packed.read_bytes()))
    with pytest.raises(FeatureError) as caught:
        extract_features(path, WORDS, tmp_path / "out")
    assert "damaged.gguf" in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("package", ["gguf", "accelerate"])
def test_without_its_packages_the_error_names_them(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError) as caught:
        extract_features(packed, WORDS, tmp_path)
    assert caught.value.where == package
    assert caught.value.remedy == "pip install 'lpact[gguf]'"
