"""Real model folders with random weights and tokenizers trained on the tests' own text, and a slow, plain reader."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
import transformers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

import lpact

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
ENCODERS = ("bert", "roberta")


def byte_level_tokenizer(
    bos: str | None = "<|endoftext|>", eos: str | None = "<|endoftext|>"
) -> transformers.PreTrainedTokenizerFast:
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
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=bos, eos_token=eos)


def masked_byte_level_tokenizer() -> transformers.PreTrainedTokenizerFast:
    """A byte-level tokenizer of an encoder: a word has other tokens at the start of a text than after a blank."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        cls_token="<s>",
        pad_token="<pad>",
        sep_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


def metaspace_tokenizer() -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>", "<s>", "</s>", *bytes_], show_progress=False)
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


def build_network(family: str, tokenizer: transformers.PreTrainedTokenizerFast, seed: int = 7) -> torch.nn.Module:
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
    elif family == "roberta":  # positions are counted from pad_token_id + 1: 126 are left of 128
        config = transformers.RobertaConfig(**common, pad_token_id=tokenizer.pad_token_id)
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
    auto = transformers.AutoModelForMaskedLM if family in ENCODERS else transformers.AutoModelForCausalLM
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return auto.from_config(config).eval()


def write_model(
    folder: Path,
    family: str = "gpt2",
    *,
    tokenizer: transformers.PreTrainedTokenizerFast | None = None,
    seed: int = 7,
) -> Path:
    """Save a model folder as users have them: configuration, safetensors, tokenizer."""
    if tokenizer is not None:
        pass
    elif family == "bert":
        tokenizer = wordpiece_tokenizer()
    elif family == "roberta":
        tokenizer = masked_byte_level_tokenizer()
    elif family == "llama":
        tokenizer = metaspace_tokenizer()
    else:
        tokenizer = byte_level_tokenizer(bos=None if family.startswith("qwen") else "<|endoftext|>")
    transformers.utils.logging.disable_progress_bar()
    network = build_network(family, tokenizer, seed)
    network.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


_FOLDERS: dict[str, Path] = {}


def shared_model(tmp_path_factory, family: str) -> Path:
    """The folder of a family, written once a session. Nobody changes it."""
    if family not in _FOLDERS:
        _FOLDERS[family] = write_model(tmp_path_factory.mktemp(f"model-{family}"), family)
    return _FOLDERS[family]


def words_table(stories: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Words of stories, by story id; a word that ends in a full stop ends a sentence."""
    rows, sentence = [], 0
    for story, words in stories.items():
        for word in words:
            rows.append((word, story, sentence))
            sentence += word.endswith(".")
        sentence += 1
    schema = {"word": pl.String, "story_id": pl.String, "sentence_id": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


@dataclass(frozen=True)
class Read:
    """``hidden`` [layers, words, width]; ``surprisal`` and ``entropy`` [words]."""

    hidden: np.ndarray
    surprisal: np.ndarray
    entropy: np.ndarray


class PlainReader:
    """One text, one pass, slow loops: no batch, no padding, no window that is not asked for."""

    def __init__(self, folder: Path, family: str, *, framed: bool = True) -> None:
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
        self.masked = family in ENCODERS
        kind = transformers.AutoModelForMaskedLM if self.masked else transformers.AutoModelForCausalLM
        self.network = kind.from_pretrained(str(folder), dtype=torch.float32).eval()
        start = {"llama": "<s>", "bert": "[CLS]", "roberta": "<s>"}.get(family, "<|endoftext|>")
        end = {"bert": ["[SEP]"], "roberta": ["</s>"]}.get(family, [])
        self.start = self.tokenizer.convert_tokens_to_ids([start]) if framed else []
        self.end = self.tokenizer.convert_tokens_to_ids(end)

    def look(self, ids: Sequence[int]) -> tuple[list[np.ndarray], np.ndarray]:
        """States of all layers [T, width], and log2 of the model's probabilities [T, vocabulary]."""
        with torch.no_grad():
            out = self.network(input_ids=torch.tensor([list(ids)]), output_hidden_states=True)
        log2 = torch.log_softmax(out.logits[0].double(), dim=-1) / math.log(2)
        return [h[0].numpy() for h in out.hidden_states], log2.numpy()

    def tokens(self, words: Sequence[str], joiner: str = " ") -> tuple[list[int], list[list[int]]]:
        """Ids of the joined words, and each word's [first, last, lead] token: lead is its first blank before."""
        text, chars = "", []
        for i, word in enumerate(words):
            text += joiner if i else ""
            chars.append(set(range(len(text), len(text) + len(word))))
            text += word
        coded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ids = coded["input_ids"]
        pieces = self.tokenizer.convert_ids_to_tokens(ids)
        # "Ġ" and "▁" are how tokenizers write a blank, also one that they put before a text themselves.
        blank = [
            not (piece.strip("Ġ▁") and text[a:b].strip())
            for piece, (a, b) in zip(pieces, coded["offset_mapping"], strict=True)
        ]
        places = []
        for own in chars:
            mine = [t for t, (a, b) in enumerate(coded["offset_mapping"]) if not blank[t] and own & set(range(a, b))]
            lead = mine[0]
            while lead > 0 and blank[lead - 1]:
                lead -= 1
            places.append([mine[0], mine[-1], lead])
        return ids, places

    def read(
        self,
        words: Sequence[str],
        *,
        joiner: str = " ",
        pooling: str = "last",
        window: tuple[int, int] | None = None,
        wanted: Sequence[int] | None = None,
    ) -> Read:
        """Read words (all, or those ``wanted``) in one pass over the tokens ``window`` of the joined words, or all."""
        ids, places = self.tokens(words, joiner)
        begin, stop = window or (0, len(ids))
        shift = len(self.start) - begin
        full = [*self.start, *ids[begin:stop], *self.end]
        layers, log2 = self.look(full)
        hidden, surprisal, entropy = [], [], []
        for word in range(len(words)) if wanted is None else wanted:
            first, last, lead = (place + shift for place in places[word])
            hidden.append([pool(layer[first : last + 1], pooling) for layer in layers])
            if self.masked:
                surprisal.append(self.masked_surprisal(full, max(lead, len(self.start)), last))
                entropy.append(math.nan)
                continue
            bits = 0.0
            for t in range(max(lead, len(self.start)), last + 1):
                bits -= log2[t - 1, full[t]] if t else math.nan
            surprisal.append(bits)
            entropy.append(-(2 ** log2[last] * log2[last]).sum())
        return Read(np.array(hidden).swapaxes(0, 1), np.array(surprisal), np.array(entropy))

    def masked_surprisal(self, full: Sequence[int], first: int, last: int) -> float:
        """Bits of the tokens ``first … last``, each expected with itself and the rest of the word masked."""
        bits = 0.0
        for token in range(first, last + 1):
            hidden = list(full)
            hidden[token : last + 1] = [self.tokenizer.mask_token_id] * (last + 1 - token)
            bits -= self.look(hidden)[1][token, full[token]]
        return bits


_READERS: dict[str, PlainReader] = {}


def shared_reader(tmp_path_factory, family: str) -> PlainReader:
    """The plain reader of a family's shared folder."""
    if family not in _READERS:
        _READERS[family] = PlainReader(shared_model(tmp_path_factory, family), family)
    return _READERS[family]


def pool(rows: np.ndarray, pooling: str) -> np.ndarray:
    """One row from a word's tokens [n, width]."""
    if pooling in ("first", "last"):
        return rows[0 if pooling == "first" else -1]
    total = rows[0].astype(np.float64)
    for row in rows[1:]:
        total = total + row
    return total / (len(rows) if pooling == "mean" else 1)


def assert_near(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    """Equal up to ``tolerance`` times the largest expected value: float32 sums in another order, and no more."""
    expected = np.asarray(expected, dtype=np.float64)
    assert found.shape == expected.shape
    assert (np.isnan(found) == np.isnan(expected)).all()
    scale = np.nanmax(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def extract(folder, words, out, **options):
    """Feature sets of a list of words, or of stories by id."""
    stories = words if isinstance(words, dict) else {"story": words}
    return lpact.extract_features(folder, words_table(stories), out, **options)
