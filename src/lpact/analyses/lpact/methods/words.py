"""Words for the parts of a study: names as the tables have them, with what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

OPEN, CLOSE = "\ue000", "\ue001"
"""Around the keys of a citation, until a text is written out; no string from data keeps them."""

CONTROLS: Mapping[str, str] = {
    "random_matched_dim": "Gaussian features of the same size, mean and variance",
    "random_matched_autocorr": "features with the phases of their spectra randomised within each story",
    "circular_shift": "features rotated in time within the run",
    "token_order_shuffle": "feature rows shuffled within each sentence",
    "within_story_block_shuffle": "blocks of feature rows permuted within each story",
    "layer_label_permutation": "features of another layer of the same model",
    "sentence_reset_fresh": "features extracted anew with the context cut at the start of the sentence",
    "reversed_context_fresh": "features extracted anew with the preceding words in reverse order",
    "token_order_shuffle_fresh": "features extracted anew with the preceding words in random order",
    "untrained_model_fresh": "features of the same architecture with random weights",
    "static_embedding": "the model's own input embedding, without context",
}
MEASURES: Mapping[str, str] = {
    "linear": "held-out correlation of the readout",
    "rsa": "representational similarity analysis",
    "cka": "linear centred kernel alignment",
    "cka_debiased": "debiased linear centred kernel alignment",
    "cka_rbf": "centred kernel alignment with Gaussian kernels",
    "cka_rbf_debiased": "debiased centred kernel alignment with Gaussian kernels",
    "event_response": "correlation of response magnitudes over events",
    "pearson": "absolute correlation with the leading principal component",
}
PROFILES: Mapping[str, str] = {
    "pearson": "Pearson correlation",
    "spearman": "rank correlation",
    "cosine": "cosine",
}
MECHANISMS: Mapping[str, str] = {
    "surprisal": "surprisal",
    "semantic_transition": "semantic distance to the preceding words",
    "dependency_integration": "cost of integrating dependencies",
    "syntactic_boundary": "number of phrases that close",
    "discourse_boundary": "strength of a discourse boundary",
    "context_update": "change of the model's state",
}
STRIPPINGS: Mapping[str, str] = {
    "feature_zeroing": "columns most correlated with the mechanism set to their training mean",
    "feature_residualization": "the mechanism regressed out of every column",
    "mechanism_projection_removal": "the mechanism's direction projected out of feature space",
    "layer_ablation": "the previous layer in the layer's place",
    "context_reset": "sentence-reset features at events that engage the mechanism",
    "reversed_context": "reversed-context features at events that engage the mechanism",
}
METRICS: Mapping[str, str] = {
    "pearson": "Pearson correlation",
    "spearman": "Spearman correlation",
    "r2": "out-of-sample R²",
}
MODES: Mapping[str, str] = {
    "subject_to_subject": "subject to subject",
    "session_to_session": "session to session",
    "run_to_run": "run to run",
    "split_half": "split half",
}
"""Reliability modes, from strict to lenient."""


def cite(*keys: str) -> str:
    """A citation, to be put right behind a word; nothing where there are no keys."""
    return f" {OPEN}{','.join(sorted(set(keys)))}{CLOSE}" if keys else ""


def plain(text: object) -> str:
    """A string from data on one line; characters that cannot be printed go, our own marks among them."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def number(value: float) -> str:
    """All digits of a setting, and no more: ``10``, ``0.05``, ``1e-06``."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def percent(share: float) -> str:
    """A share as a percentage, with all of its digits."""
    return f"{number(round(100 * share, 10))} %"


def numbers(values: Iterable[float], unit: str = "") -> str:
    """Settings one after the other, with their unit once."""
    text = listed([number(value) for value in values])
    return f"{text} {unit}" if unit else text


def listed(items: Sequence[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def names(items: Iterable[object], last: str = "and") -> str:
    """Names from data, listed."""
    return listed([plain(item) for item in items], last)


def amount(n: int, noun: str) -> str:
    """``1 unit``, ``16 units``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def spread(values: pl.Series, noun: str) -> str:
    """``401 events`` or ``392 to 435 events``."""
    counts = sorted(int(value) for value in values.drop_nulls().unique())
    if not counts:
        return f"no {noun}s"
    if len(counts) == 1:
        return amount(counts[0], noun)
    return f"{counts[0]} to {counts[-1]} {noun}s"


def meaning(name: str, words: Mapping[str, str]) -> str:
    """What a name stands for, with the name; a plugin's is the name alone."""
    known = words.get(name)
    if known is None or known == name:
        return plain(name)
    return f"{known} ({plain(name)})"


def setting(value: object) -> str:
    """The value of an option in words."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, Mapping):
        inner = [f"{plain(k)}: {setting(v)}" for k, v in sorted(value.items())]
        return f"({'; '.join(inner)})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(setting(item) for item in value)}]"
    return plain(value) or "empty"


def options(values: Mapping[str, object]) -> str:
    """Options of a plugin, one after the other."""
    return ", ".join(f"{plain(k)} = {setting(v)}" for k, v in sorted(values.items()))


def grouped(texts: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Subjects that share a text, in the order of their first: ``(text, subjects)``."""
    groups: dict[str, list[str]] = {}
    for subject, text in texts.items():
        groups.setdefault(text, []).append(subject)
    return list(groups.items())
