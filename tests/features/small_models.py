"""Real model folders with random weights and tokenizers trained on the tests' own text."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXT = (
    "The old keeper opened the door of the lighthouse and looked at the sea. It was calm, and the boats came home. "
    "He didn't know that a storm was near. His daughter read a book about whales, and she laughed at the pictures. "
    "In the evening they ate bread and fish, then the wind began to sing in the chimney. Nobody slept that night. "
    "When the morning came, the sea was quiet again. The boats were gone, but one small boat had come back. "
    "The girl ran down to the water, because she knew whose boat it was. The keeper smiled and closed the door."
)

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
}
FAMILIES = ("gpt2", "gpt_neox", "qwen2", "qwen3", "llama", "bert")
CAUSAL = FAMILIES[:-1]


def byte_level_tokenizer(bos: str | None = "<|endoftext|>") -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=bos, eos_token="<|endoftext|>"
    )


def metaspace_tokenizer() -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>", "<s>", "</s>", *bytes_], show_progress=False
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def wordpiece_tokenizer() -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def build_network(family: str, tokenizer: transformers.PreTrainedTokenizerFast) -> torch.nn.Module:
    """A model of the family with random weights, large enough that its outputs differ between words."""
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    common = {"vocab_size": len(tokenizer), "initializer_range": 0.2} | SMALL
    if family == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=len(tokenizer),
            n_embd=32,
            n_layer=3,
            n_head=4,
            n_positions=128,
            initializer_range=0.2,
            **special,
        )
    elif family == "bert":
        config = transformers.BertConfig(**common, pad_token_id=tokenizer.pad_token_id)
    elif family == "gpt_neox":
        config = transformers.GPTNeoXConfig(**common, **special)
    else:
        kinds = {
            "qwen2": transformers.Qwen2Config,
            "qwen3": transformers.Qwen3Config,
            "llama": transformers.LlamaConfig,
        }
        more = {"num_key_value_heads": 2} | ({"head_dim": 8} if family == "qwen3" else {})
        config = kinds[family](**common, **more, **special)
    torch.manual_seed(7)
    auto = (
        transformers.AutoModelForMaskedLM if family == "bert" else transformers.AutoModelForCausalLM
    )
    return auto.from_config(config).eval()


def write_model(folder: Path, family: str = "gpt2") -> Path:
    """Save a model folder as users have them: configuration, safetensors, tokenizer."""
    if family == "bert":
        tokenizer = wordpiece_tokenizer()
    elif family == "llama":
        tokenizer = metaspace_tokenizer()
    else:
        tokenizer = byte_level_tokenizer(bos=None if family.startswith("qwen") else "<|endoftext|>")
    transformers.utils.logging.disable_progress_bar()
    network = build_network(family, tokenizer)
    network.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder
