"""Train the tiny language model that comes with lpact, on prose of lpact's own grammar.

    OMP_NUM_THREADS=1 python tools/train_tiny_model.py train [--out FOLDER] [--steps N]
    python tools/train_tiny_model.py evaluate [--folder FOLDER]

``train`` writes a model folder that transformers opens; ``evaluate`` compares it, on held-out stories,
with unigram and bigram models and with the grammar's true surprisal.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel
from transformers import PreTrainedTokenizerFast as FastTokenizer

from lpact.math.seeding import keyed_rng
from story_grammar import Prose, write_prose

SOURCE = Path(__file__).parents[1] / "src/lpact"
FOLDER = SOURCE / "features/language/tiny"
SEED = 20240501
END = "<|endoftext|>"
VOCABULARY = 1000
CONTEXT = 256
N_LAYER, N_HEAD, WIDTH = 3, 4, 80
STEPS, BATCH = 1500, 12
LEARNING_RATE, WARM_UP = 4e-3, 60
N_TRAIN, N_TEST, N_SENTENCES = 8000, 60, 24


def stories(kind: str, n: int, n_sentences: int = N_SENTENCES) -> list[Prose]:
    """Stories of the tool's own streams: no dataset draws from them."""
    return [write_prose(keyed_rng(SEED, "tiny model", kind, i), n_stories=1, n_sentences=n_sentences) for i in range(n)]


def train_tokenizer(texts: list[str]) -> FastTokenizer:
    """Byte-level BPE, trained on the prose."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return FastTokenizer(
        tokenizer_object=tokenizer,
        bos_token=END,
        eos_token=END,
        unk_token=END,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )


def batches(ids: list[list[int]], rng: np.random.Generator, n_steps: int):
    """Windows after an end-of-text token: two thirds from the start of a story, the others from within."""
    for _ in range(n_steps):
        rows = []
        for pick in rng.integers(0, len(ids), BATCH):
            story = ids[int(pick)]
            last = max(len(story) - CONTEXT, 0)
            start = int(rng.integers(0, last + 1)) if rng.random() < 1 / 3 else 0
            window = story[start : start + CONTEXT - 1]
            rows.append([0, *window] + [-100] * (CONTEXT - 1 - len(window)))
        yield torch.tensor(rows)


def train(out: Path, steps: int) -> None:
    """Train and save; the same machine and versions give the same weights."""
    started = time.time()
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    texts = [" ".join(story.word) for story in stories("train", N_TRAIN)]
    tokenizer = train_tokenizer(texts[:2000])
    ids = [tokenizer(text, verbose=False)["input_ids"] for text in texts]
    n_words = sum(text.count(" ") + 1 for text in texts)
    print(f"{n_words} words, {sum(map(len, ids))} tokens, {time.time() - started:.0f} s")
    end = tokenizer.convert_tokens_to_ids(END)
    assert end == 0
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=CONTEXT,
        n_embd=WIDTH,
        n_layer=N_LAYER,
        n_head=N_HEAD,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=end,
        eos_token_id=end,
    )
    model = GPT2LMHeadModel(config)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda i: min((i + 1) / WARM_UP, 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * i / steps))),
    )
    model.train()
    total = 0.0
    for step, batch in enumerate(batches(ids, keyed_rng(SEED, "batches"), steps), start=1):
        loss = model(input_ids=batch.clamp(min=0), labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        total += loss.item()
        if step % 50 == 0 or step == steps:
            done = step % 50 or 50
            seconds = time.time() - started
            print(f"step {step}: {total / done:.3f} nats a token, {seconds:.0f} s", flush=True)
            total = 0.0
    save(model, tokenizer, out)


def save(model: GPT2LMHeadModel, tokenizer: FastTokenizer, out: Path) -> None:
    """Write weights in half precision; the configuration says float32, and so they are loaded."""
    out.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(out, safe_serialization=True)
    tokenizer.save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)
    path = out / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["dtype"] = "float32"
    config.pop("transformers_version", None)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    path = out / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config.pop("backend", None)
    config["tokenizer_class"] = "PreTrainedTokenizerFast"  # known to older versions, too
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    (out / "model.safetensors").chmod(0o644)
    print(f"{sum(f.stat().st_size for f in out.iterdir()) / 1e6:.2f} MB in {out}")


def word_bits(model, tokenizer, words: tuple[str, ...]) -> np.ndarray:
    """Surprisal of every word in bits, with up to ``CONTEXT`` − 1 tokens of the story before it."""
    text = " ".join(words)
    encoded = tokenizer(text, return_offsets_mapping=True, verbose=False)
    ids = [tokenizer.bos_token_id, *encoded["input_ids"]]
    ends = np.cumsum([len(word) + 1 for word in words])
    owner = [int(np.searchsorted(ends, e, side="left")) for _, e in encoded["offset_mapping"]]
    bits = np.zeros(len(words))
    half = CONTEXT // 2
    with torch.inference_mode():
        for start in range(0, len(ids) - 1, half):
            low = max(start - half, 0)
            window = torch.tensor([ids[low : start + half]])
            log_p = model(window).logits[0].log_softmax(-1) / -math.log(2)
            for place in range(max(start, 1), min(start + half, len(ids))):
                bits[owner[place - 1]] += float(log_p[place - 1 - low, ids[place]])
    return bits


class Ngrams:
    """Word models with interpolation: bigrams by Witten–Bell over unigrams with one added count."""

    def __init__(self, texts: list[Prose]) -> None:
        self.one: Counter[str] = Counter()
        self.two: dict[str, Counter[str]] = {}
        for text in texts:
            self.one.update(text.word)
            for a, b in zip(("", *text.word), text.word, strict=False):
                self.two.setdefault(a, Counter())[b] += 1
        self.total = sum(self.one.values()) + len(self.one) + 1

    def unigram(self, word: str) -> float:
        return (self.one[word] + 1) / self.total

    def bigram(self, before: str, word: str) -> float:
        seen = self.two.get(before, Counter())
        n, kinds = seen.total(), len(seen)
        return (seen[word] + kinds * self.unigram(word)) / (n + kinds) if n else self.unigram(word)


def evaluate(folder: Path) -> None:
    """Print bits per word on held-out stories, of each model and of the grammar."""
    model = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, local_files_only=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    ngrams = Ngrams(stories("train", N_TRAIN))
    tests = stories("test", N_TEST, 20)
    rng = keyed_rng(SEED, "shuffle")
    rows: dict[str, list[np.ndarray]] = {}
    for story in tests:
        shuffled = tuple(np.array(story.word)[rng.permutation(len(story.word))])
        one = [-math.log2(ngrams.unigram(w)) for w in story.word]
        two = [-math.log2(ngrams.bigram(a, b)) for a, b in zip(("", *story.word), story.word, strict=False)]
        found = {
            "grammar": story.bits,
            "model": word_bits(model, tokenizer, story.word),
            "bigram": np.array(two),
            "unigram": np.array(one),
            "shuffled": word_bits(model, tokenizer, shuffled),
        }
        for name, bits in found.items():
            rows.setdefault(name, []).append(bits)
    joined = {name: np.concatenate(bits) for name, bits in rows.items()}
    print(f"{len(joined['model'])} held-out words; {model.num_parameters()} parameters, {model.dtype}")
    for name, bits in joined.items():
        r = np.corrcoef(bits, joined["grammar"])[0, 1]
        print(f"{name:9s} {bits.mean():6.3f} bits a word" + f"   r with true {r:.3f}" * (name != "shuffled"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", choices=("train", "evaluate"))
    parser.add_argument("--out", "--folder", type=Path, default=FOLDER)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    if options.task == "evaluate":
        evaluate(options.out)
    else:
        train(options.out, options.steps)
        evaluate(options.out)


if __name__ == "__main__":
    main()
