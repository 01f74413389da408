"""What L-PACT's Methods cite, and what names in its tables mean."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

Tables = Mapping[str, pl.DataFrame]

FRAMEWORK = ("lpact_paper",)
PATTERNS = ("hoefling2026",)
CEILING = ("feather2025",)
SPLIT_HALF = ("brown1910", "spearman1910")
LOCALISER = ("kriegeskorte2009",)
INTERSECTION = ("berger1982",)
DRAWS = ("phipson2010", "winkler2016")
FLIPS = ("nichols2002",)
BOUND = ("hesterberg2015",)
CONJUNCTION = ("benjamini2008",)
CORRECTION = ("benjamini1995",)
UNIT_ORDERS = ("mantel1967",)
MEASURE_KEYS: Mapping[str, tuple[str, ...]] = {
    "rsa": ("kriegeskorte2008",),
    "cka": ("kornblith2019",),
    "cka_debiased": ("kornblith2019", "song2007"),
    "cka_rbf": ("kornblith2019",),
    "cka_rbf_debiased": ("kornblith2019", "song2007"),
}
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
MODES: Mapping[str, str] = {
    "subject_to_subject": "subject to subject",
    "session_to_session": "session to session",
    "run_to_run": "run to run",
    "split_half": "split half",
}
"""Reliability modes, from strict to lenient."""
