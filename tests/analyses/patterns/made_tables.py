"""Tables of tasks with planted truths: what brains share, what models do, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from lpact.analyses.patterns import tables
from lpact.analyses.patterns.arrays import chosen_layers
from lpact.analyses.patterns.summaries import derive
from lpact.analyses.patterns.verdicts import decide
from lpact.config import StudyConfig
from lpact.config.study import study_config
from lpact.store import frame
from lpact.store.frames import empty, validate

RNG = np.random.default_rng
OK = {"n_units": 5, "n_undefined": 0, "detail": "", "reason": "ok"}


def numbers(value: float | None) -> dict:
    """Columns of a score."""
    if value is None or not np.isfinite(value):
        return {"value": None, "clipped": None} | OK | {"reason": "undefined_score", "n_undefined": 5}
    return {"value": float(value), "clipped": max(float(value), 0.0)} | OK


def peculiar(n_regions: int, seed: int = 0) -> np.ndarray:
    """Mean scores [source region, target region]: every region has its own pattern, and is most like itself."""
    pattern = 0.3 + 0.1 * RNG(seed).normal(size=(n_regions, n_regions))
    return pattern + 0.3 * np.eye(n_regions)


def shared(n_regions: int, seed: int = 0) -> np.ndarray:
    """Mean scores that depend on the target region alone."""
    return np.tile(0.3 + 0.1 * RNG(seed).normal(size=n_regions), (n_regions, 1))


class Made:
    """Scores of brains [source region, source, target, target region] and of layers [layer, target, region]."""

    def __init__(
        self,
        pattern: np.ndarray,
        n_subjects: int = 6,
        *,
        sd_subject: float = 0.02,
        sd: float = 0.05,
        seed: int = 0,
        dataset: str = "brains",
        measure: str = "linear_r2",
    ) -> None:
        n_regions = len(pattern)
        self.rng, self.pattern = RNG(seed), pattern
        self.sd, self.sd_subject = sd, sd_subject
        self.key = {"dataset": dataset, "measure": measure}
        self.regions = [f"r{i:02d}" for i in range(n_regions)]
        self.subjects = [f"s{i:02d}" for i in range(n_subjects)]
        self.of_targets = sd_subject * self.rng.normal(size=(n_subjects, n_regions))
        self.brains = np.stack([self.like_a_brain() for _ in self.subjects], axis=1)
        for i in range(n_subjects):
            self.brains[:, i, i] = np.nan
        self.models: dict[str, dict[int, np.ndarray]] = {}
        self.training: dict[str, dict[int, np.ndarray]] = {}

    def like_a_brain(self, shift: float = 0.0, *, typical: bool = False) -> np.ndarray:
        """Scores of one more brain, [region, target, target region]; a typical one has nothing of its own."""
        own = self.sd_subject * (not typical) * self.rng.normal(size=self.pattern.shape)
        noise = self.sd * self.rng.normal(size=(len(self.regions), len(self.subjects), len(self.regions)))
        return (self.pattern + own)[:, None] + self.of_targets + noise + shift

    def add(
        self,
        name: str,
        layers: Mapping[int, np.ndarray],
        training: Mapping[int, np.ndarray] | None = None,
    ) -> Made:
        """Add a model: test scores [target, region] of its layers, and training scores (by default the same)."""
        self.models[name] = dict(layers)
        self.training[name] = dict(training or layers)
        return self

    def add_brain(self, name: str, shift: float = 0.0, *, typical: bool = False) -> Made:
        """Add a model that is one more brain; layer i is its region i, and training scores say so."""
        layers = dict(enumerate(self.like_a_brain(shift, typical=typical)))
        chosen = {i: np.tile(np.eye(len(self.regions))[i], (len(self.subjects), 1)) for i in layers}
        return self.add(name, layers, chosen)

    def tables(
        self, *, reliability: Sequence[float] | None = None, weights: Mapping[tuple[str, str], float] | None = None,
        noise: float | None = 1.0,
    ) -> dict[str, pl.DataFrame]:  # fmt: skip
        """Tables of tasks and audit; scores of models with noise are those without."""
        dataset = self.key["dataset"]
        pairs = [
            self.key | {"source_region": a, "source": p, "region": b, "target": t} | numbers(self.brains[i, j, k, m])
            for i, a in enumerate(self.regions)
            for j, p in enumerate(self.subjects)
            for k, t in enumerate(self.subjects)
            for m, b in enumerate(self.regions)
            if p != t
        ]
        layers = [
            self.key
            | {"model": model, "layer": layer, "region": region, "target": who}
            | {"training": None if len(of) == 1 else self.training[model][layer][s, r]}
            | numbers(values[s, r])
            for model, of in self.models.items()
            for layer, values in of.items()
            for s, who in enumerate(self.subjects)
            for r, region in enumerate(self.regions)
        ]
        for row in layers:
            if row["training"] is not None and not np.isfinite(row["training"]):
                row["training"] = None
        of_means = [
            self.key
            | {"ceiling": ceiling, "region": region, "target": who, "made_of": "units"}
            | numbers(0.5 + self.of_targets[s, r])
            for ceiling in ("leave_one_out_mean", "all_including_self")
            for r, region in enumerate(self.regions)
            for s, who in enumerate(self.subjects)
        ]
        targets = [
            {"dataset": dataset, "region": region, "target": who}
            | dict.fromkeys(("reliability", "median_reliability"), None if reliability is None else reliability[r])
            | OK
            for r, region in enumerate(self.regions)
            for who in self.subjects
        ]
        links = [
            {"dataset": dataset, "region": a, "other": b, "weight": weight}
            for (one, two), weight in (weights or {}).items()
            for a, b in ((one, two), (two, one))
        ]
        made = {table.name: empty(table) for table in tables.TABLES}
        for table, rows in (
            (tables.BRAIN_PAIRS, pairs),
            (tables.LAYERS, layers),
            (tables.CEILING_VALUES, of_means),
            (tables.TARGETS, targets),
            (tables.CONNECTIVITY, links),
        ):
            made[table.name] = frame(table, rows)
        made[tables.MODEL_TRIALS.name] = self.trials(made[tables.LAYERS.name], noise)
        return made

    def trials(self, layers: pl.DataFrame, noise: float | None) -> pl.DataFrame:
        """Scores of the chosen layers with noise."""
        rows = []
        for model, of in self.models.items():
            chosen = chosen_layers(layers.filter(model=model), self.regions, self.subjects, on_test=False)
            rows += [
                self.key
                | {"model": model, "source_region": region, "region": other, "target": who}
                | {"layer": int(layer), "noise": noise}
                | numbers(of[int(layer)][s, o])
                for region, layer in zip(self.regions, chosen, strict=True)
                if np.isfinite(layer)
                for o, other in enumerate(self.regions)
                for s, who in enumerate(self.subjects)
            ]
        return frame(tables.MODEL_TRIALS, rows)


def study(**options: object) -> StudyConfig:
    """A study file with these options of `[patterns]`; the tables need not be of its dataset."""
    values = {
        "name": "made",
        "seed": 3,
        "datasets": [{"name": "brains", "reader": "simulated_brains"}],
        "models": [{"name": "drift", "layers": [0]}],
        "patterns": {"n_bootstrap": 500, "structure_draws": 200} | options,
    }
    return study_config(values, where="made study")


def finished(made: Mapping[str, pl.DataFrame], **options: object) -> dict[str, pl.DataFrame]:
    """All tables of a run, from those of its tasks."""
    config = study(**options)
    derived = derive(config, made)
    found = dict(made) | {name: make() for name, make in derived.items()}
    found |= decide(config, found)
    declared = {table.name: table for table in tables.TABLES}
    return {name: validate(own, declared[name]) for name, own in found.items()}
