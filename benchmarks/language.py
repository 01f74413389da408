"""Time the extraction of features: 10,000 words through a model of 124 M parameters.

Run by ``make bench``; alone: ``python -m benchmarks.language --quick``, on a GPU with ``--device cuda``.

The model is GPT-2 small with random weights, which cost what trained ones do. Counted is everything from words and a
loaded model to features on disk; ``forward_s`` is the time inside the model's own passes, by the GPU's clock on a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from benchmarks.machine import machine, versions
from lpact.datasets.fetch import Progress
from lpact.word_features import plan_features

RESULTS = Path(__file__).parent / "results"
TARGET_SHARE = 0.1
"""Share of the time that may pass outside of the model's own passes, on a GPU and in full context."""

Row = dict[str, Any]


class _Silent(Progress):
    def stage(self, name: str, total: int) -> None:
        pass

    def advance(self, steps: int = 1) -> None:
        pass


def write_text(n_words: int, n_stories: int = 1) -> pl.DataFrame:
    """Words of a made-up language with Zipf's frequencies, in sentences of 12."""
    rng = np.random.default_rng(0)
    n_types = 4000
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    types = ["".join(rng.choice(letters, rng.integers(1, 10))) for _ in range(n_types)]
    weight = 1.0 / (np.arange(n_types) + 2.7)
    drawn = rng.choice(n_types, n_words, p=weight / weight.sum())
    sentence = np.arange(n_words) // 12
    words = [types[i] + ("." if (row + 1) % 12 == 0 else "") for row, i in enumerate(drawn)]
    story = [f"story{row * n_stories // n_words}" for row in range(n_words)]
    return pl.DataFrame({"word": words, "sentence_id": sentence, "story_id": story})


def write_model(folder: Path, text: str, *, quick: bool) -> Path:
    """GPT-2 small with random weights, and a tokenizer trained on the text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(
        vocab_size=3000,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )
    wrapped.save_pretrained(str(folder))
    small = {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 3000} if quick else {}
    config = transformers.GPT2Config(bos_token_id=0, eos_token_id=0, **small)
    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(str(folder))
    return folder


class _Clock:
    """Seconds inside the passes of a model; on a GPU, each pass is waited for."""

    def __init__(self, model: Any) -> None:
        self.seconds = 0.0
        self._gpu = model.device.startswith("cuda")
        model.network.register_forward_pre_hook(lambda *_: self._read(-1.0))
        model.network.register_forward_hook(lambda *_: self._read(1.0))

    def _read(self, sign: float) -> None:
        if self._gpu:
            torch.cuda.synchronize()
        self.seconds += sign * time.perf_counter()


def measure(folder: Path, words: pl.DataFrame, context: str, repeats: int, device: str, scratch: Path) -> Row:
    """Median over ``repeats``, after one run to warm up."""
    wall, inside, parts = [], [], {}
    for turn in range(repeats + 1):
        with tempfile.TemporaryDirectory(dir=scratch) as out:
            plan = plan_features(folder, words, out, contexts=[context], device=device)
            model = plan.model()
            clock = _Clock(model)
            start = time.perf_counter()
            plan.run(_Silent())
            seconds = time.perf_counter() - start
            if turn:
                wall.append(seconds)
                inside.append(clock.seconds)
            parts = {"precision": model.dtype, "n_parameters": model.n_parameters}
    total, forward = median(wall), median(inside)
    return {
        "name": f"{context} context, {len(words):,} words, stories: {words['story_id'].n_unique()}",
        "device": device,
        **parts,
        "n_words": len(words),
        "seconds": total,
        "forward_s": forward,
        "words_per_s": len(words) / total,
        "share_outside": 1.0 - forward / total,
        "repeats": repeats,
    }


def main(arguments: list[str] | None = None) -> list[Row]:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tiny model and few words")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given, _ = parser.parse_known_args(arguments)
    cases = [("full", 10_000, 10), ("full", 10_000, 1), ("reversed", 500, 1)]
    if given.quick:
        cases = [("full", 300, 2), ("reversed", 60, 1)]
    elif given.device == "cpu":
        cases = [("full", 2_000, 2), ("reversed", 30, 1)]
    text = write_text(max(n_words for _, n_words, _ in cases))
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "gpt2-random"
        write_model(folder, " ".join(text["word"]), quick=given.quick)
        for context, n_words, n_stories in cases:
            words = write_text(n_words, n_stories)
            row = measure(folder, words, context, given.repeats, given.device, Path(scratch))
            rows.append(row | {"machine": _machine(given.device), "versions": versions()})
            print(
                f"{row['name']:<44} {row['device']:<6} {row['seconds']:8.2f} s  {row['words_per_s']:9.0f} words/s  "
                f"{row['share_outside']:6.1%} outside the passes",
                flush=True,
            )
    where = given.out
    if where is None and not given.quick:
        kind = given.device.partition(":")[0]
        where = RESULTS / ("language.json" if kind == "cpu" else f"language-{kind}.json")
    if where is not None:
        where.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return rows


def _machine(device: str) -> str:
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name(device)}; {machine()}"
    return machine()


if __name__ == "__main__":
    found = main()
    full = [row for row in found if row["name"].startswith("full") and row["device"] != "cpu"]
    sys.exit(int(any(row["share_outside"] > TARGET_SHARE for row in full)))
