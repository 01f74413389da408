"""Tables with planted numbers, from which figures of alignment patterns are drawn."""

from __future__ import annotations

from collections import defaultdict
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
MODELS = ("video", "image", "speech", "noise", "video_untrained")
SUBJECTS = ("s1", "s2", "s3", "s4")
PLAIN: dict[str, Any] = {"str": "", "int": 0, "float": 0.0, "bool": False}
CEILINGS = (
    ("pairwise", 0.42, "lower", ""),
    ("leave_one_out_mean", 0.6, "upper", "lower"),
    ("all_including_self", 0.8, "", "upper"),
)


class Planted:
    """Rows of tables as they grow; columns without a value are null, or empty."""

    def __init__(self, **sizes: Sequence[str]) -> None:
        self.measures = sizes.get("measures", MEASURES)
        self.regions = sizes.get("regions", REGIONS)
        self.models = sizes.get("models", MODELS)
        self.subjects = sizes.get("subjects", SUBJECTS)
        self.rng = np.random.default_rng(5)
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for measure in self.measures:
            self.scores(measure)
            for region in self.regions:
                self.patterns(measure, region)
                self.similarities(measure, region)
            self.relations(measure)
        for (r, region), side in product(enumerate(self.regions), ("left", "right")):
            share = r / len(self.regions)
            mm = {
                "x_mm": (8 + 32 * share) * (1 if side == "right" else -1),
                "y_mm": 50 * share - 95.0,
                "z_mm": 20.0,
            }
            self.add(
                tables.PLACES,
                region=region,
                side=side,
                coordinate_frame="MNI152NLin2009cAsym",
                **mm,
            )

    def add(self, table: Table, **row: Any) -> None:
        rest = {own.name: None if own.nullable else PLAIN[own.dtype] for own in table.columns}
        made = rest | {"dataset": "d", "reason": "ok"} | row
        self.rows[table.name].append({name: made[name] for name in table.column_names})

    def frames(self) -> dict[str, pl.DataFrame]:
        """All tables, in the order of a run's files."""
        return {own.name: frame(own, self.rows[own.name]).sort(own.key) for own in tables.TABLES}

    def scores(self, measure: str) -> None:
        """The earlier a model, the better; means over regions are exact."""
        n, noise = len(self.models), 0.02 if measure == "rsa" else 0.05
        values = {
            (region, model): 0.5 - 0.6 * i / n - 0.02 * (r % 4) + noise * self.rng.standard_normal(len(self.subjects))
            for r, region in enumerate(self.regions)
            for i, model in enumerate(self.models)
        }
        for (region, model), of_subjects in values.items():
            for who, value in zip(self.subjects, of_subjects.tolist(), strict=True):
                self.add(
                    tables.SCORES,
                    measure=measure,
                    region=region,
                    model=model,
                    target=who,
                    value=value,
                )
        for model in self.models:
            values["mean", model] = np.mean([values[region, model] for region in self.regions], axis=0)
        for region in (*self.regions, "mean"):
            at = {"measure": measure, "region": region}
            means = {model: float(values[region, model].mean()) for model in self.models}
            order = sorted(self.models, key=means.__getitem__, reverse=True)
            best, paper = means[order[0]] - noise - 0.05, means[order[0]] - 2 * noise - 0.05
            for rank, model in enumerate(order, 1):
                mean, half = means[model], float(values[region, model].std(ddof=1))
                own = {
                    "mean": mean,
                    "low": mean - half,
                    "high": mean + half,
                    "fraction_of_pairwise": mean / 0.42,
                }
                stars = {
                    "equivalent": mean > best,
                    "equivalent_in_paper": mean > paper,
                    "best": order[0],
                }
                self.add(tables.RANKING, **at, model=model, rank=rank, **own, **stars)
            counts = {"n_equivalent": sum(mean > best for mean in means.values()), "n_models": n}
            pairs = {"n_pairs": n * (n - 1) // 2, "n_pairs_apart": n * (n - 1) // 3}
            self.add(tables.CLASSES, **at, best=order[0], **counts, **pairs)
        for region, (ceiling, mean, in_paper, in_rsatoolbox) in product(self.regions, CEILINGS):
            own = {"mean": mean, "low": mean - 0.04, "high": mean + 0.04}
            called = {"ceiling": ceiling, "in_paper": in_paper, "in_rsatoolbox": in_rsatoolbox}
            self.add(tables.CEILINGS, measure=measure, region=region, **called, **own)

    def patterns(self, measure: str, source_region: str) -> None:
        """Scores fall with the distance of regions; the later a model, the more noise."""
        n, own = len(self.regions), self.regions.index(source_region)
        shape = 0.1 + 0.5 * np.exp(-np.abs(own - np.arange(n)) / 2)
        sources = [("brain", "brains", 0.0)]
        sources += [("model", model, 0.05 + 0.2 * i / len(self.models)) for i, model in enumerate(self.models)]
        for kind, source, noise in sources:
            pattern = shape - noise + 0.4 * noise * self.rng.standard_normal(n)
            for region, mean in zip(self.regions, pattern.tolist(), strict=True):
                at = {"measure": measure, "source_region": source_region, "region": region}
                ends = {"mean": mean, "low": mean - 0.03, "high": mean + 0.03}
                self.add(tables.PATTERNS, **at, kind=kind, source=source, **ends)

    def similarities(self, measure: str, region: str) -> None:
        """Random numbers, and every label in turn."""
        at = {"measure": measure, "region": region}
        for a, b in permutations(self.subjects, 2):
            value = float(self.rng.uniform(0.6, 0.95))
            self.add(
                tables.SIMILARITIES,
                **at,
                kind="brain",
                source=a,
                target=b,
                similarity_without_source=value,
            )
        for i, model in enumerate(self.models):
            label = list(LABELS)[(self.regions.index(region) + i) % len(LABELS)]
            values = self.rng.uniform(-0.2, 0.8, len(self.subjects)).tolist()
            means = {"similarity": float(np.mean(values)), "similarity_of_brains": 0.8}
            self.add(tables.CLAIMS, **at, model=model, label=label, **means)
            for who, value in zip(self.subjects, values, strict=True):
                own = {"target": who, "similarity_without_source": value}
                self.add(tables.SIMILARITIES, **at, kind="model", source=model, **own)

    def relations(self, measure: str) -> None:
        """By `linear_r2` patterns are alike; only the first region follows connectivity."""
        alike = 0.9 if measure == "linear_r2" else 0.2
        for (r, region), (o, other) in product(enumerate(self.regions), repeat=2):
            value = 1.0 if r == o else alike - 0.3 * abs(r - o) / len(self.regions)
            self.add(tables.CONFUSION, measure=measure, region=region, other=other, similarity=value)
        for r, region in enumerate(self.regions):
            null = {
                "null_low": -0.5,
                "null_high": 0.52,
                "p_higher": 0.01 + 0.05 * r,
                "q_higher": 0.02 + 0.05 * r,
            }
            found = {
                "similarity": 0.7 - (0.2 * r) % 1.1,
                "significant": r == 0,
                "outside_in_paper": r < 2,
            }
            self.add(tables.STRUCTURE, measure=measure, region=region, **null, **found)


def made_material(twins: dict[str, str] | None = None, **sizes: Sequence[str]) -> Material:
    """All tables that figures read: other names of ``measures``, ``regions``, ``models`` or ``subjects`` if given."""
    planted = Planted(**sizes)
    section = {
        "measures": planted.measures,
        "regions": planted.regions,
        "untrained": {"video": "video_untrained"} if twins is None else twins,
        "connectivity": "dataset",
    }
    study = {
        "name": "s",
        "datasets": [{"name": "d", "reader": "simulated"}],
        "models": [{"name": name, "layers": [1]} for name in planted.models],
        "analyses": {"patterns": validate_model(PatternsSection, section, where="tests")},
    }
    return Material(planted.frames(), validate_model(StudyConfig, study, where="tests"))
