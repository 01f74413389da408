"""Tables with planted numbers, from which figures of alignment patterns are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.patterns import tables
from lpact.analyses.patterns.config import LABELS, PatternsSection
from lpact.config import StudyConfig
from lpact.store import frame
from lpact.tables import Table
from lpact.validation import validate_model

MEASURES, REGIONS = ("rsa", "linear_r2"), ("V1", "V2", "MT", "PIT")
MODELS, SUBJECTS = (
    ("video", "image", "speech", "noise", "video_untrained"),
    ("s1", "s2", "s3", "s4"),
)
TWINS = {"video": "video_untrained"}
PLAIN: dict[str, Any] = {"str": "", "int": 0, "float": 0.0, "bool": False}


def made(table: Table, rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows with what is planted; other columns are null, or empty."""
    rest = {own.name: None if own.nullable else PLAIN[own.dtype] for own in table.columns} | {
        "reason": "ok"
    }
    names = table.column_names
    return frame(table, [{name: (rest | row)[name] for name in names} for row in rows])


def made_material(
    measures: Sequence[str] = MEASURES,
    regions: Sequence[str] = REGIONS,
    models: Sequence[str] = MODELS,
    subjects: Sequence[str] = SUBJECTS,
    twins: dict[str, str] = TWINS,
    **options: Any,
) -> Material:
    """All tables that figures read. The earlier a model, the better; by `linear_r2` patterns are all alike."""
    rng = np.random.default_rng(5)
    rows: dict[Table, list[dict[str, Any]]] = {
        own: []
        for own in (tables.SCORES, tables.RANKING, tables.CEILINGS, tables.CLASSES, tables.PATTERNS, tables.SIMILARITIES,
                    tables.CLAIMS, tables.CONFUSION, tables.STRUCTURE, tables.PLACES, tables.UNAVAILABLE)
    }  # fmt: skip
    labels = list(LABELS)
    for measure in measures:
        alike = 0.9 if measure == "linear_r2" else 0.2
        scores = _scores(rng, measure, regions, models, subjects, rows)
        for r, region in enumerate(regions):
            base = {"dataset": "d", "measure": measure, "region": region}
            _patterns(rng, base | {"source_region": region}, regions, models, rows[tables.PATTERNS])
            for i, model in enumerate(models):
                label = labels[(r + i) % len(labels)]
                similarity = rng.uniform(-0.2, 0.8, len(subjects))
                rows[tables.CLAIMS].append(
                    base | {"model": model, "label": label, "similarity": float(similarity.mean()),
                            "similarity_of_brains": 0.8, "score": scores[region, model]}
                )  # fmt: skip
                rows[tables.SIMILARITIES] += [
                    base
                    | {
                        "kind": "model",
                        "source": model,
                        "target": who,
                        "similarity_without_source": value,
                    }
                    for who, value in zip(subjects, similarity.tolist(), strict=True)
                ]
            rows[tables.SIMILARITIES] += [
                base
                | {
                    "kind": "brain",
                    "source": a,
                    "target": b,
                    "similarity_without_source": float(rng.uniform(0.6, 0.95)),
                }
                for a, b in permutations(subjects, 2)
            ]
            rows[tables.STRUCTURE].append(
                base | {"similarity": 0.7 - 0.2 * r % 1.1, "null_low": -0.5, "null_high": 0.52, "p_higher": 0.01 + 0.05 * r,
                        "q_higher": 0.02 + 0.05 * r, "significant": r == 0, "outside_in_paper": r < 2}
            )  # fmt: skip
        for (r, region), (o, other) in product(enumerate(regions), repeat=2):
            away = abs(r - o) / len(regions)
            value = 1.0 if r == o else alike - 0.3 * away
            rows[tables.CONFUSION].append({"dataset": "d", "measure": measure, "region": region, "other": other,
                                           "similarity": value})  # fmt: skip
    rows[tables.PLACES] = [
        {"dataset": "d", "region": region, "side": side, "x_mm": sign * (8.0 + 32 * r / len(regions)),
         "y_mm": -95.0 + 50 * r / len(regions), "z_mm": 20 * np.cos(r), "coordinate_frame": "MNI152NLin2009cAsym",
         "n_subjects": len(subjects)}
        for r, region in enumerate(regions)
        for side, sign in (("left", -1), ("right", 1))
    ]  # fmt: skip
    study = {
        "name": "s",
        "datasets": [{"name": "d", "reader": "simulated"}],
        "models": [{"name": name, "layers": [1]} for name in models],
    }
    own = {
        "measures": measures,
        "regions": regions,
        "untrained": twins,
        "connectivity": "dataset",
    } | options
    section = validate_model(PatternsSection, own, where="tests")
    config = validate_model(StudyConfig, study | {"analyses": {"patterns": section}}, where="tests")
    # In the order of a run's files.
    return Material(
        {table.name: made(table, own).sort(table.key) for table, own in rows.items()}, config
    )


def _scores(
    rng: np.random.Generator,
    measure: str,
    regions: Sequence[str],
    models: Sequence[str],
    subjects: Sequence[str],
    rows: dict[Table, list[dict[str, Any]]],
) -> dict[tuple[str, str], float]:
    """Scores, ranks, ceilings and classes; the mean score of every region and model."""
    n, wide = len(models), 0.02 if measure == "rsa" else 0.05
    values = {
        (region, model): 0.5
        - 0.6 * i / n
        - 0.02 * (r % 4)
        + wide * rng.standard_normal(len(subjects))
        for r, region in enumerate(regions)
        for i, model in enumerate(models)
    }
    for region, model in values:
        rows[tables.SCORES] += [
            {
                "dataset": "d",
                "measure": measure,
                "region": region,
                "model": model,
                "target": who,
                "value": value,
            }
            for who, value in zip(subjects, values[region, model].tolist(), strict=True)
        ]
    for model in models:
        values["mean", model] = np.mean([values[region, model] for region in regions], axis=0)
    for region in (*regions, "mean"):
        base = {"dataset": "d", "measure": measure, "region": region}
        means = {model: float(values[region, model].mean()) for model in models}
        order = sorted(models, key=lambda model: -means[model])
        best = means[order[0]]
        for rank, model in enumerate(order, 1):
            half = float(values[region, model].std(ddof=1))
            rows[tables.RANKING].append(
                base | {"model": model, "mean": means[model], "low": means[model] - half, "high": means[model] + half,
                        "rank": rank, "best": order[0], "equivalent": means[model] > best - 0.8 * wide - 0.05,
                        "equivalent_in_paper": means[model] > best - 1.6 * wide - 0.05,
                        "fraction_of_pairwise": means[model] / 0.42, "n_subjects": len(subjects)}
            )  # fmt: skip
        for ceiling, mean, paper, toolbox in (("pairwise", 0.42, "lower", ""), ("leave_one_out_mean", 0.6, "upper", "lower"),
                                              ("all_including_self", 0.8, "", "upper")):  # fmt: skip
            if region == "mean":
                continue
            rows[tables.CEILINGS].append(
                base | {"ceiling": ceiling, "in_paper": paper, "in_rsatoolbox": toolbox, "mean": mean, "low": mean - 0.04,
                        "high": mean + 0.04}
            )  # fmt: skip
        own = rows[tables.RANKING][-n:]
        rows[tables.CLASSES].append(
            base | {"best": order[0], "n_models": n, "n_equivalent": sum(row["equivalent"] for row in own),
                    "n_equivalent_in_paper": sum(row["equivalent_in_paper"] for row in own),
                    "n_pairs": n * (n - 1) // 2, "n_pairs_apart": n * (n - 1) // 3}
        )  # fmt: skip
    return {key: float(own.mean()) for key, own in values.items()}


def _patterns(
    rng: np.random.Generator,
    base: dict[str, Any],
    regions: Sequence[str],
    models: Sequence[str],
    rows: list[dict[str, Any]],
) -> None:
    """Patterns of brains and of all models for one source region."""
    own = regions.index(base["source_region"])
    shape = np.array([0.5 * np.exp(-abs(own - i) / 2) + 0.1 for i in range(len(regions))])
    sources = [
        ("brain", "brains", 0.0),
        *(("model", model, 0.05 + 0.2 * i / len(models)) for i, model in enumerate(models)),
    ]
    for kind, source, noise in sources:
        pattern = shape - noise + 0.4 * noise * rng.standard_normal(len(regions))
        rows += [
            base
            | {
                "kind": kind,
                "source": source,
                "region": region,
                "mean": value,
                "low": value - 0.03,
                "high": value + 0.03,
            }
            for region, value in zip(regions, pattern.tolist(), strict=True)
        ]
