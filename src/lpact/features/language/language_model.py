"""A language model in memory: weights, tokenizer, limits, and one pass through it."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lpact.errors import ConfigError, FeatureError
from lpact.features.language.model_files import Kind, ModelFolder, declared_kind, pretrained, read_config, require
from lpact.features.language.settings import DEFAULT_WINDOW, Pooling, ReadingOptions
from lpact.math.types import IntArray

_UNLIMITED = 10**6
"""Tokenizers without a limit report a huge one."""


@dataclass
class LanguageModel:
    """A model and its tokenizer. ``start`` and ``end`` are tokens around a passage; ``width`` is that of a state."""

    folder: ModelFolder
    kind: Kind
    network: Any
    tokenizer: Any
    device: str
    dtype: Any
    has_head: bool

    def __post_init__(self) -> None:
        config = self.network.config
        text = config.get_text_config() if hasattr(config, "get_text_config") else config
        self.n_layers, self.width = int(text.num_hidden_layers), int(text.hidden_size)
        self.start, self.end = _frame(self.tokenizer, self.kind)
        self.mask = self.tokenizer.mask_token_id
        self.n_vectors = int(self.network.get_input_embeddings().weight.shape[0])
        self.most_tokens = _most_tokens(self.network, self.tokenizer, text)
        self._keeps = "logits_to_keep" in inspect.signature(self.network.forward).parameters

    @property
    def n_parameters(self) -> int:
        """Number of parameters, each counted once."""
        return sum(p.numel() for p in self.network.parameters())

    def limits(self, options: ReadingOptions) -> tuple[int, int]:
        """Tokens of a passage in one pass, without those that the model adds, and the stride.

        Raises `ConfigError` if they do not fit the model.
        """
        added = len(self.start) + len(self.end)
        most = self.most_tokens
        window = options.window_tokens or min(DEFAULT_WINDOW, most or DEFAULT_WINDOW)
        if most is not None and window > most:
            raise _cannot("window_tokens", window, f"at most {most} for model '{self.folder.name}'")
        room = window - added
        if room < 2:
            expected = f"more than {added + 1}: the model adds {added}"
            raise _cannot("window_tokens", window, expected)
        # Without a start token, the first word of a window needs a token before it.
        stride = min(options.stride_tokens or max(1, room // 4), room if self.start else room - 1)
        if room - stride < options.min_context_tokens:
            expected = f"at most {room - stride}: window {window} − {added} added − stride {stride}"
            raise _cannot("min_context_tokens", options.min_context_tokens, expected)
        return room, stride

    def word_room(self, options: ReadingOptions) -> int:
        """Tokens of a passage that is read for one word, without added tokens and a mask."""
        added = len(self.start) + len(self.end)
        window = self.limits(options)[0] + added
        most = min(options.word_context_tokens or window, window)
        return max(2, most - added - (self.kind == "masked"))

    def forward(self, ids: Any, lengths: list[int], first_needed: int) -> tuple[Any, Any, int]:
        """One pass: hidden states (a tuple of [B, T, width]), logits [B, kept, vocabulary] and the first kept place.

        ``ids`` is [B, T], padded on the right; ``lengths`` are the tokens of each row; logits are needed from place
        ``first_needed`` on.
        """
        torch = require("torch")
        n_tokens = ids.shape[1]
        more: dict[str, Any] = {}
        if min(lengths) < n_tokens:
            places = torch.arange(n_tokens, device=ids.device)
            sizes = torch.tensor(lengths, device=ids.device)
            more["attention_mask"] = (places < sizes[:, None]).long()
        elif self.kind == "masked":
            more["attention_mask"] = torch.ones_like(ids)
        first_kept = first_needed if self._keeps else 0
        if self._keeps:
            more["logits_to_keep"] = n_tokens - first_needed
        if self.kind == "causal":
            more["use_cache"] = False
        output = self.network(input_ids=ids, output_hidden_states=True, return_dict=True, **more)
        return output.hidden_states, output.logits, first_kept

    def embed(self, ids: Any) -> Any:
        """Input embeddings of tokens, without position or context."""
        return self.network.get_input_embeddings()(ids)


def load_model(folder: ModelFolder, options: ReadingOptions, *, seed: int | None = None) -> LanguageModel:
    """Read a model from its folder; with a ``seed``, the same architecture with random weights."""
    transformers, torch = require("transformers"), require("torch")
    if folder.gguf is not None:
        require("accelerate", extra="gguf")
    with _quiet(transformers), _named(folder):
        config = read_config(folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(**pretrained(folder))
        kind = _kind(config, options.kind)
        head = "MaskedLM" if kind == "masked" else "CausalLM"
        auto = getattr(transformers, f"AutoModelFor{head}")
        if seed is None:
            network, has_head = _read_weights(auto, folder, config)
        else:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                network = auto.from_config(config, dtype=torch.float32)
            has_head = True
    dtype = resolve_precision(folder, options)
    device = check_device(options.device)
    network = network.to(device=device, dtype=getattr(torch, dtype)).eval()
    model = LanguageModel(folder, kind, network, tokenizer, device, dtype, has_head)
    if kind == "causal":
        _check_causal(model)
    return model


def _check_causal(model: LanguageModel) -> None:
    """Raise `FeatureError` if the last token changes the states of the tokens before it."""
    torch = require("torch")
    # Late tokens of the vocabulary: early ones are often special.
    ids = model.n_vectors - 1 - torch.arange(PROBE_TOKENS, device=model.device)[None]
    ids = ids % model.n_vectors
    other = ids.clone()
    other[0, -1] = (ids[0, -1] - 1) % model.n_vectors
    with torch.inference_mode():
        one, two = (
            model.network(input_ids=x, output_hidden_states=True, use_cache=False, return_dict=True)
            for x in (ids, other)
        )
    pairs = zip(one.hidden_states, two.hidden_states, strict=True)
    states = [(a[0, :-1].float(), b[0, :-1].float()) for a, b in pairs]
    tolerance = PROBE_TOLERANCE[model.dtype]
    if not any((a - b).abs().max() > tolerance * a.abs().max() for a, b in states):
        return
    raise FeatureError(
        f"the model '{model.folder.name}' sees the future",
        where=str(model.folder.path),
        got="states of earlier tokens that change with a later one",
        expected="a causal model",
        remedy='set kind = "masked" if the model has a masked head, or choose another model',
    )


PROBE_TOKENS = 8
PROBE_TOLERANCE = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}
"""Relative to the largest state; rounding is less."""


def resolve_precision(folder: ModelFolder, options: ReadingOptions) -> str:
    """The precision that is computed in."""
    if options.precision != "auto":
        return options.precision
    if not options.device.startswith("cuda"):
        return "float32"
    stored = folder.config.get("text_config", folder.config)
    half = str(stored.get("dtype", stored.get("torch_dtype", "")))
    return "bfloat16" if "bfloat16" in half else "float16"


def check_device(device: str) -> str:
    """Raise `ConfigError` if a device is not available."""
    torch = require("torch")
    kind, _, index = device.partition(":")
    available = {
        "cpu": True,
        "cuda": int(index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not available[kind]:
        raise ConfigError(
            "the device of the language model is not available",
            where="option 'device'",
            got=device,
            remedy='choose "cpu", or extract the features on a machine that has the device',
        )
    return device


def _kind(config: Any, asked: Literal["auto", "causal", "masked"]) -> Kind:
    if asked != "auto":
        return asked
    declared = declared_kind(getattr(config, "architectures", None) or ())
    if declared is not None:
        return declared
    # A model that could be either (a bare BERT) is an encoder.
    masked = type(config) in require("transformers").MODEL_FOR_MASKED_LM_MAPPING
    return "masked" if masked and not getattr(config, "is_decoder", False) else "causal"


def _read_weights(auto: Any, folder: ModelFolder, config: Any) -> tuple[Any, bool]:
    torch = require("torch")
    network, found = auto.from_pretrained(
        config=config,
        use_safetensors=folder.gguf is None,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # reported below
        dtype=torch.float32,
        **pretrained(folder),
    )
    base = getattr(network, "base_model_prefix", "")
    missing = sorted(str(key) for key in found["missing_keys"])
    inner = [key for key in missing if key.startswith(f"{base}.")]
    unfit = sorted((str(key), tuple(has), tuple(needed)) for key, has, needed in found["mismatched_keys"])
    if inner or unfit:
        got = f"{len(inner)} parameters without stored values, first '{inner[0]}'" if inner else ""
        if unfit:
            key, has, needed = unfit[0]
            got = f"{len(unfit)} parameters of another shape, first '{key}': {has}, not {needed}"
        raise FeatureError(
            f"the weights of the model '{folder.name}' do not fit its configuration",
            where=str(folder.path),
            got=got,
            remedy="fetch the model again, with all its files",
        )
    return network, not missing


def _frame(tokenizer: Any, kind: Kind) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens before and after every passage."""

    def first(*names: str) -> tuple[int, ...]:
        tokens = [getattr(tokenizer, f"{name}_token_id") for name in names]
        return tuple(token for token in tokens if token is not None)[:1]

    if kind == "masked":
        return first("cls", "bos"), first("sep", "eos")
    # Models without a start token were trained on documents that are separated by the end token.
    return first("bos", "eos"), ()


def _most_tokens(network: Any, tokenizer: Any, config: Any) -> int | None:
    """Longest input of the model, including added tokens; None without a limit."""
    limits = []
    places = getattr(config, "max_position_embeddings", None)
    if isinstance(places, int) and places > 0:
        taken = 0
        for name, module in network.named_modules():
            padding = getattr(module, "padding_idx", None)
            if name.endswith("position_embeddings") and padding is not None:
                taken = padding + 1  # positions are counted from there
        limits.append(places - taken)
    if tokenizer.model_max_length < _UNLIMITED:
        limits.append(int(tokenizer.model_max_length))
    return min(limits, default=None)


def _cannot(option: str, got: int, expected: str) -> ConfigError:
    return ConfigError(
        f"'{option}' does not fit the model or the other options",
        where=f"option '{option}'",
        got=got,
        expected=expected,
        remedy="change the option, or leave it out",
    )


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep the library's progress bars and advice off the terminal."""
    log = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(logging.ERROR)
    log.disable_progress_bar()
    # The reader of GGUF files shows its own bar.
    gguf: Any = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    bar = gguf.tqdm
    gguf.tqdm = partial(bar, disable=True)
    try:
        yield
    finally:
        gguf.tqdm = bar
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


@contextmanager
def _named(folder: ModelFolder) -> Iterator[None]:
    """Name the model in errors of the library."""
    try:
        yield
    except (FeatureError, ConfigError, MemoryError):
        raise
    except Exception as error:  # transformers raises many types
        text = str(error)
        own_code = "trust_remote_code" in text or (bool(folder.config.get("auto_map")) and "does not recognize" in text)
        got = f"{type(error).__name__}: {(text.strip().splitlines() or ['no message'])[0]}"
        remedy = "fetch the model again, or install a newer transformers"
        if own_code:
            got = "an architecture with its own code, which is never run"
            remedy = "choose another model"
        elif "Unrecognized configuration class" in text:
            remedy = "choose a causal or masked language model, and its own kind"
        raise FeatureError(
            f"the model '{folder.name}' cannot be opened",
            where=str(folder.path),
            got=got,
            expected="undamaged files of an architecture that the installed transformers supports",
            remedy=remedy,
        ) from error


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
    ids, _ = _tensor(model, [s.ids for s in batch])
    how: Pooling = "sum" if pooling == "sum" else "mean"
    return _without_bits(_pool(require("torch"), (model.embed(ids),), batch, how))


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


def _probes(model: LanguageModel, batch: Sequence[ReadSequence], *, future_seen: bool) -> list[_Probe]:
    probes: list[_Probe] = []
    word = 0
    for sequence in batch:
        for lead, last in zip(sequence.lead.tolist(), sequence.last.tolist(), strict=True):
            for token in range(lead, last + 1):
                masked = sequence.ids.copy()
                masked[token : last + 1] = model.mask
                probes.append((masked, token, int(sequence.ids[token]), word))
            if not future_seen:
                after = np.concatenate([sequence.ids[: last + 1], [model.mask], np.array(model.end, dtype=np.int64)])
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


def _pool(torch: Any, layers: Sequence[Any], batch: Sequence[ReadSequence], pooling: Pooling) -> Any:
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


def _expectations(torch: Any, logits: Any, kept: int, batch: Sequence[ReadSequence]) -> tuple[Any, Any]:
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
