"""Small tables of level 3, with numbers that are easy to follow, and the decision rows that go with them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

DELTAS = "causal/causal_stripping_deltas"
SPECIFICITY = "causal/mechanism_specificity_summary"
DISSOCIATIONS = "causal/double_dissociation_tests"
DECISIONS = "decisions/lpact_decision_table"

MECHANISMS = ("surprisal", "semantic_transition", "context_update")
METHODS = ("feature_zeroing", "layer_ablation")


def place(layer: tuple[str, str, int], subject: int) -> dict:
    dataset, model, number = layer
    run = {"subject": f"{subject:02d}", "session": "01", "run": "01"}
    return {"dataset": dataset, **run, "model": model, "layer": number}


def stripping_tables(
    layers: Sequence[tuple[str, str, int]] = (("d", "m", 1),),
    n_runs: int = 3,
    mechanisms: Sequence[str] = MECHANISMS,
) -> dict[str, pl.DataFrame]:
    """Drops of every strip and target, with the specificity rows that follow from them; matching ones are larger."""
    rng = np.random.default_rng(5)
    deltas, specificity = [], []
    for layer in layers:
        for subject in range(n_runs):
            for method in METHODS:
                for stripped in mechanisms:
                    drops = {t: float(rng.normal(0.05 + 0.1 * (t == stripped), 0.04)) for t in mechanisms}
                    strip = {**place(layer, subject), "method": method, "stripped": stripped}
                    deltas += [
                        {
                            **strip,
                            "target": target,
                            "matching": target == stripped,
                            "drop": drop,
                            "reason": "ok",
                            "label": "pass",
                        }
                        for target, drop in drops.items()
                    ]
                    others = {t: drop for t, drop in drops.items() if t != stripped}
                    rival = max(others, key=others.__getitem__)
                    specificity.append(
                        {
                            **strip,
                            "matching_drop": drops[stripped],
                            "best_nonmatching_target": rival,
                            "margin": drops[stripped] - others[rival],
                            "mismatch_kind": "random_direction",
                            "mismatch_margin": float(rng.normal(0.02, 0.01)),
                            "n_targets": len(mechanisms),
                            "reason": "ok",
                        }
                    )
    return {DELTAS: pl.DataFrame(deltas), SPECIFICITY: pl.DataFrame(specificity)}


def decisions(
    layers: Sequence[tuple[str, str, int]],
    predictive: Sequence[tuple[str, str, int]] = (),
    specific: Sequence[tuple[str, str, int, str, str]] = (),
    mechanisms: Sequence[str] = MECHANISMS,
) -> pl.DataFrame:
    """Claims of these layers; ``specific`` names those that pass M, with mechanism and gate profile."""
    return pl.DataFrame(
        [
            {
                "dataset": layer[0],
                "model": layer[1],
                "layer": layer[2],
                "mechanism": mechanism,
                "gate_profile": profile,
                "predictive": layer in predictive,
                "mechanism_specific": (*layer, mechanism, profile) in specific,
                "label": "mechanism_specific_candidate"
                if (*layer, mechanism, profile) in specific
                else ("predictive_only" if layer in predictive else "null"),
                "raw_score": 0.01 * layer[2],
            }
            for layer in layers
            for mechanism in mechanisms
            for profile in ("paper", "calibrated")
        ]
    )


def dissociation_table(
    layers: Sequence[tuple[str, str, int]] = (("d", "m", 1),),
    n_runs: int = 5,
    mechanisms: Sequence[str] = MECHANISMS,
) -> pl.DataFrame:
    """Four drops of every pair and subject-run; the flag is the rule, spelled out."""
    rng = np.random.default_rng(11)
    rows = []
    for layer in layers:
        for subject in range(n_runs):
            for a, b in combinations(mechanisms, 2):
                aa, ab, ba, bb = (float(x) for x in rng.normal([0.08, 0.04, 0.04, 0.08], 0.03))
                rows.append(
                    {
                        **place(layer, subject),
                        "mechanism_a": a,
                        "mechanism_b": b,
                        "drop_aa": aa,
                        "drop_ab": ab,
                        "drop_ba": ba,
                        "drop_bb": bb,
                        "reason": "ok",
                        "double_dissociation": aa > 0 and bb > 0 and min(aa, bb) > max(ab, ba),
                    }
                )
    return pl.DataFrame(rows)
