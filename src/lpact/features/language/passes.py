"""One pass of a batch through a model: a row for every word that it is read for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lpact.features.language.extra import require
from lpact.features.language.loading import LanguageModel
from lpact.features.language.settings import Pooling
from lpact.math.types import IntArray

ROWS_AT_A_TIME = 2048
"""Distributions over the vocabulary in one step."""


@dataclass(frozen=True)
class ReadSequence:
    """Tokens that a model reads at once, its own included, and the words that are read off.

    ``ids`` is [T]; word w of ``rows`` has the tokens ``first[w] … last[w]``, and its surprisal is counted from
    ``lead[w]`` on; ``rows`` are rows of the words table.
    """

    ids: IntArray
    rows: IntArray
    first: IntArray
    last: IntArray
    lead: IntArray


@dataclass(frozen=True)
class Rows:
    """What was read: ``hidden`` [L + 1, n, width], ``surprisal`` and ``entropy`` [n] in bits (nan: undefined)."""

    hidden: Any
    surprisal: Any
    entropy: Any


def read_static(model: LanguageModel, batch: Sequence[ReadSequence], pooling: Pooling) -> Rows:
    """Input embeddings, pooled over each word's tokens; no surprisal, no entropy."""
    torch = require("torch")
    ids, _ = _tensor(model, [s.ids for s in batch])
    how: Pooling = "mean" if pooling in ("last", "first") else pooling
    return _without_bits(_pool(torch, (model.embed(ids),), batch, how))


def _without_bits(hidden: Any) -> Rows:
    torch = require("torch")
    undefined = torch.full((hidden.shape[1],), torch.nan, dtype=torch.float64)
    return Rows(hidden, undefined, undefined)


def read_causal(model: LanguageModel, batch: Sequence[ReadSequence], pooling: Pooling) -> Rows:
    """Hidden states of all layers, and what the model expected, from one pass."""
    torch = require("torch")
    ids, lengths = _tensor(model, [s.ids for s in batch])
    first_needed = max(0, min(int(s.lead.min()) for s in batch) - 1)
    hidden, logits, kept = model.forward(ids, lengths, first_needed)
    pooled = _pool(torch, hidden, batch, pooling)
    if not model.has_head:
        return _without_bits(pooled)
    return Rows(pooled, *_expectations(torch, logits, kept, batch))


def read_masked(
    model: LanguageModel,
    batch: Sequence[ReadSequence],
    pooling: Pooling,
    *,
    future_seen: bool,
    batch_tokens: int,
) -> Rows:
    """Hidden states of the passage as it is; surprisal from copies in which the word's tokens are masked.

    A word of tokens t_1 … t_k has the surprisal Σ_j −log2 p(t_j | passage, t_1 … t_{j−1}), with t_j … t_k masked (Kauf
    and Ivanova, 2023). The entropy is that of a mask that follows the word; where the future is seen it is undefined.
    """
    torch = require("torch")
    ids, lengths = _tensor(model, [s.ids for s in batch])
    hidden, _, _ = model.forward(ids, lengths, ids.shape[1] - 1)
    pooled = _pool(torch, hidden, batch, pooling)
    if not model.has_head or model.mask is None:
        return _without_bits(pooled)
    n_words = pooled.shape[1]
    surprisal = torch.zeros(n_words, dtype=_wide(torch, ids.device), device=ids.device)
    entropy = torch.full_like(surprisal, torch.nan)
    probes = _probes(model, batch, future_seen=future_seen)
    probes.sort(key=lambda probe: len(probe[0]))
    for group in _groups([len(probe[0]) for probe in probes], batch_tokens):
        part = probes[group]
        copies, sizes = _tensor(model, [probe[0] for probe in part])
        first = min(probe[1] for probe in part)
        _, logits, kept = model.forward(copies, sizes, first)
        place = torch.tensor([probe[1] - kept for probe in part], device=ids.device)
        picked = logits[torch.arange(len(part), device=ids.device), place].float()
        total = torch.logsumexp(picked, dim=1)
        word = torch.tensor([probe[3] for probe in part], device=ids.device)
        target = torch.tensor([probe[2] for probe in part], device=ids.device)
        asks = target < 0
        bits = (total - picked.gather(1, target.clamp(min=0)[:, None])[:, 0]).to(surprisal.dtype)
        bits = bits / np.log(2)
        surprisal.index_add_(0, word[~asks], bits[~asks])
        entropy[word[asks]] = _entropy(torch, picked[asks], total[asks])
    return Rows(pooled, surprisal, entropy)


_Probe = tuple[IntArray, int, int, int]
"""Tokens with masks, the place to look at, the token expected there (−1: its entropy is asked), the word."""


def _probes(
    model: LanguageModel, batch: Sequence[ReadSequence], *, future_seen: bool
) -> list[_Probe]:
    probes: list[_Probe] = []
    word = 0
    for sequence in batch:
        for lead, last in zip(sequence.lead.tolist(), sequence.last.tolist(), strict=True):
            for token in range(lead, last + 1):
                masked = sequence.ids.copy()
                masked[token : last + 1] = model.mask
                probes.append((masked, token, int(sequence.ids[token]), word))
            if not future_seen:
                after = np.concatenate(
                    [sequence.ids[: last + 1], [model.mask], np.array(model.end, dtype=np.int64)]
                )
                probes.append((after, last + 1, -1, word))
            word += 1
    return probes


def batches(sequences: Sequence[ReadSequence], batch_tokens: int) -> list[IntArray]:
    """Numbers of the sequences in batches of like length, at most ``batch_tokens`` padded tokens each."""
    order = np.argsort([len(s.ids) for s in sequences], kind="stable")
    sizes = [len(sequences[i].ids) for i in order]
    return [order[group] for group in _groups(sizes, batch_tokens)]


def _groups(sizes: Sequence[int], most: int) -> list[slice]:
    """Runs of rising ``sizes`` whose count times largest size is at most ``most``; one at least."""
    bounds = [0]
    for i, size in enumerate(sizes):
        if i > bounds[-1] and size * (i + 1 - bounds[-1]) > most:
            bounds.append(i)
    bounds.append(len(sizes))
    return [slice(a, b) for a, b in pairwise(bounds) if b > a]


def onto(values: npt.NDArray[Any], device: Any) -> Any:
    """An array as a tensor on a device; to a GPU through pinned memory, so that nothing waits for the copy."""
    tensor = require("torch").from_numpy(values)
    if str(device).startswith("cuda"):
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def to_host(values: Any) -> npt.NDArray[Any]:
    """A tensor as an array; from a GPU through pinned memory."""
    torch = require("torch")
    if values.device.type != "cuda":
        return np.asarray(values.cpu().numpy())
    host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    return np.asarray(host.copy_(values).numpy())


def _tensor(model: LanguageModel, rows: Sequence[IntArray]) -> tuple[Any, list[int]]:
    """Tokens as [B, T], padded on the right by token 0, which nothing looks at."""
    lengths = [len(ids) for ids in rows]
    ids = np.zeros((len(rows), max(lengths)), dtype=np.int64)
    for row, own in zip(ids, rows, strict=True):
        row[: len(own)] = own
    return onto(ids, model.device), lengths


def _spread(first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """Return word and place of every token ``first[w] … last[w]``, one word after the other."""
    sizes = last - first + 1
    word = np.repeat(np.arange(len(first)), sizes)
    return word, np.arange(len(word)) - np.repeat(np.cumsum(sizes) - sizes - first, sizes)


def _pool(
    torch: Any, layers: Sequence[Any], batch: Sequence[ReadSequence], pooling: Pooling
) -> Any:
    """[n_layers, n_words, width] from layers [B, T, width]."""
    n_tokens = layers[0].shape[1]
    device = layers[0].device
    offset = np.repeat(np.arange(len(batch)) * n_tokens, [len(s.rows) for s in batch])
    first = np.concatenate([s.first for s in batch]) + offset
    last = np.concatenate([s.last for s in batch]) + offset
    flat = [layer.reshape(-1, layer.shape[-1]) for layer in layers]
    if pooling in ("last", "first"):
        place = onto(last if pooling == "last" else first, device)
        return torch.stack([layer[place] for layer in flat])
    sizes = last - first + 1
    word, token = _spread(first, last)
    word_index, token_index = onto(word, device), onto(token, device)
    pooled = []
    for layer in flat:
        total = torch.zeros((len(first), layer.shape[-1]), dtype=torch.float32, device=device)
        pooled.append(total.index_add_(0, word_index, layer[token_index].float()))
    out = torch.stack(pooled)
    if pooling == "mean":
        out /= onto(sizes.astype(np.float32), device)[:, None]
    return out.to(layers[0].dtype) if pooling == "mean" else out


def _expectations(
    torch: Any, logits: Any, kept: int, batch: Sequence[ReadSequence]
) -> tuple[Any, Any]:
    """Surprisal of each word and entropy after it, in bits, from logits [B, T − kept, vocabulary]."""
    n_kept = logits.shape[1]
    device = logits.device
    owner = np.repeat(np.arange(len(batch)), [len(s.rows) for s in batch])
    lead = np.concatenate([s.lead for s in batch])
    last = np.concatenate([s.last for s in batch])
    word, place = _spread(lead, last)
    ids = np.concatenate([s.ids[_spread(s.lead, s.last)[1]] for s in batch])
    # The token at place t is expected from place t − 1; nothing predicts the first token.
    asked = owner[word] * n_kept + place - 1 - kept
    known = place > 0
    asked = np.where(known, asked, 0)
    after = owner * n_kept + last - kept
    needed, position = np.unique(np.concatenate([asked, after]), return_inverse=True)
    flat = logits.reshape(-1, logits.shape[-1])
    total = torch.empty(len(needed), dtype=torch.float32, device=device)
    spread = torch.empty(len(needed), dtype=_wide(torch, device), device=device)
    rows = onto(needed, device)
    for begin in range(0, len(needed), ROWS_AT_A_TIME):
        part = slice(begin, begin + ROWS_AT_A_TIME)
        scores = flat[rows[part]].float()
        total[part] = torch.logsumexp(scores, dim=1)
        spread[part] = _entropy(torch, scores, total[part])
    where_asked = onto(position[: len(word)], device)
    target = flat[onto(asked, device), onto(ids, device)].float()
    bits = (total[where_asked] - target).to(spread.dtype) / np.log(2)
    bits = torch.where(onto(known, device), bits, torch.nan)
    surprisal = torch.zeros(len(lead), dtype=spread.dtype, device=device)
    surprisal.index_add_(0, onto(word, device), bits)
    return surprisal, spread[onto(position[len(word) :], device)]


def _wide(torch: Any, device: Any) -> Any:
    """The precision in which bits are added up: double, which `mps` lacks."""
    return torch.float32 if device.type == "mps" else torch.float64


def _entropy(torch: Any, scores: Any, total: Any) -> Any:
    """Entropy in bits of softmax(``scores``) [n, vocabulary], with ``total`` its log-sum-exp."""
    share = torch.exp(scores - total[:, None])
    # −inf scores have a share of 0, and 0 · −inf is 0 here.
    mean = torch.nansum(share * scores, dim=1)
    bits = (total - mean).to(_wide(torch, total.device)) / np.log(2)
    # Scores that overflow have no distribution.
    return torch.where(torch.isfinite(total), bits, torch.inf)
