"""Tables of alignment patterns as arrays and back, and the similarity of patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.patterns import tables as own_tables
from lpact.analyses.patterns.config import PatternsSection
from lpact.codes import Reason
from lpact.math.columns import mean_of_finite
from lpact.math.profiles import pearson_rows
from lpact.math.types import BoolArray, FloatArray, IntArray
from lpact.store.frames import empty, frame_from_columns
from lpact.tables import Table

Tables = Mapping[str, pl.DataFrame]
PLACE = ("dataset", "measure")


def cube(rows: pl.DataFrame, value: str, **axes: Sequence[Any]) -> FloatArray:
    """A column as an array with an axis per key column, whose labels are given; NaN where there is no value."""
    made = np.full([len(labels) for labels in axes.values()], np.nan)
    if not made.size:
        return made
    where = tuple(
        rows[name]
        .replace_strict(list(labels), range(len(labels)), return_dtype=pl.Int64)
        .to_numpy()
        .astype(np.int64)  # of no rows it may have another type
        for name, labels in axes.items()
    )
    made[where] = rows[value].fill_null(np.nan).to_numpy()
    return made


def rows_of(
    table: Table, fixed: Mapping[str, Any], axes: Mapping[str, Sequence[str]],
    kept: BoolArray | None = None, **values: Any,
) -> pl.DataFrame:  # fmt: skip
    """A row for every combination of labels that is kept; values are scalars, or arrays that broadcast to the axes."""
    shape = tuple(len(labels) for labels in axes.values())
    keep = np.ones(shape, dtype=bool) if kept is None else np.broadcast_to(kept, shape)
    columns: dict[str, Any] = dict(fixed)
    for axis, (name, labels) in enumerate(axes.items()):
        number = np.broadcast_to(np.expand_dims(np.arange(len(labels)), _others(axis, shape)), shape)
        columns[name] = [labels[i] for i in number[keep].tolist()]
    for name, value in values.items():
        if not isinstance(value, np.ndarray):
            columns[name] = [value] * int(keep.sum())
            continue
        cells = np.broadcast_to(value, shape)[keep]
        columns[name] = cells if cells.dtype.kind == "f" else cells.tolist()
    return frame_from_columns(table, {**columns, **{k: [v] * int(keep.sum()) for k, v in fixed.items()}})  # fmt: skip


def _others(axis: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i in range(len(shape)) if i != axis)


def joined(table: Table, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Rows of all parts."""
    return pl.concat([empty(table), *parts])


def reasons(value: FloatArray) -> Any:
    """Reason of every value: `ok`, or that the score is undefined."""
    codes = np.array([Reason.OK.value, Reason.UNDEFINED_SCORE.value], dtype=object)
    return codes[np.isnan(value).astype(int)]


def integers(value: FloatArray) -> Any:
    """Whole numbers, None for NaN."""
    made = np.empty(value.shape, dtype=object)
    made[...] = None
    made[np.isfinite(value)] = value[np.isfinite(value)].astype(int)
    return made


def labels_of(*columns: pl.Series) -> list[str]:
    """Labels of columns, sorted."""
    return sorted({label for column in columns for label in column.unique()})


@dataclass(frozen=True)
class Place:
    """All that tasks found in a dataset by a measure."""

    dataset: str
    measure: str
    subjects: list[str]
    regions: list[str]
    models: list[str]
    pairs: pl.DataFrame
    layer_rows: pl.DataFrame
    noisy_rows: pl.DataFrame
    on_test: bool
    """Layers are chosen by test scores."""

    @property
    def key(self) -> dict[str, str]:
        """Columns that name the place."""
        return {"dataset": self.dataset, "measure": self.measure}

    @cached_property
    def brains(self) -> FloatArray:
        """Scores of brains, [source region, source, target, target region]."""
        return cube(
            self.pairs, "value", source_region=self.regions, source=self.subjects,
            target=self.subjects, region=self.regions,
        )  # fmt: skip

    @cached_property
    def between(self) -> FloatArray:
        """Scores of every region with itself in another subject, [region, source, target]."""
        return np.moveaxis(np.diagonal(self.brains, axis1=0, axis2=3), -1, 0)

    @cached_property
    def layers(self) -> FloatArray:
        """`chosen_layers` of every model, [model, region]."""
        rows = [self.layer_rows.filter(model=model) for model in self.models]
        found = [chosen_layers(own, self.regions, self.subjects, on_test=self.on_test) for own in rows]
        return np.reshape(found, (len(self.models), len(self.regions)))

    @cached_property
    def optimistic(self) -> BoolArray:
        """Models whose layers were chosen by test scores."""
        several = [self.layer_rows.filter(model=m)["layer"].n_unique() > 1 for m in self.models]
        return np.array(several, dtype=bool) & self.on_test

    def of_models(self, column: str = "value") -> FloatArray:
        """Scores of models at the layer that was chosen for a region, [model, that region, target, target region]."""
        n, r = len(self.subjects), len(self.regions)
        made = np.full((len(self.models), r, n, r), np.nan)
        for m, model in enumerate(self.models):
            rows = self.layer_rows.filter(model=model)
            for layer in set(self.layers[m][np.isfinite(self.layers[m])].astype(int).tolist()):
                found = cube(rows.filter(layer=layer), column, target=self.subjects, region=self.regions)
                made[m, self.layers[m] == layer] = found
        return made

    @cached_property
    def noise(self) -> FloatArray:
        """Noise that models were given, [model, region]; NaN for none."""
        return self._noisy("noise")[:, :, 0, 0]

    @cached_property
    def models_patterns(self) -> FloatArray:
        """Patterns of models, as `of_models`; with noise where it is matched."""
        matched = np.isfinite(self.noise)[:, :, None, None]
        return np.where(matched, self._noisy("value"), self.of_models())

    def _noisy(self, column: str) -> FloatArray:
        """A column of scores with noise, [model, region of the layer, target, target region], at the chosen layers."""
        axes = {"source_region": self.regions, "target": self.subjects, "region": self.regions}
        found = cube(self.noisy_rows, column, model=self.models, **axes)
        layers = cube(self.noisy_rows, "layer", model=self.models, **axes)
        return np.where(layers == self.layers[:, :, None, None], found, np.nan)

    def scores(self, column: str = "value") -> FloatArray:
        """Scores of models with the region itself, without noise, [region, model, target]."""
        return of_own_region(self.of_models(column))

    @cached_property
    def similarities(self) -> Similarities:
        """Similarity of all patterns to those of brains."""
        return similarities(self.brains, self.models_patterns)


def of_own_region(patterns: FloatArray) -> FloatArray:
    """Scores with the region itself, [region, model, target], of [model, region, target, target region]."""
    return np.moveaxis(np.diagonal(patterns, axis1=1, axis2=3), -1, 0)


def chosen_layers(rows: pl.DataFrame, regions: Sequence[str], subjects: Sequence[str], *, on_test: bool) -> FloatArray:
    """Layer of one model for every region, from its rows of `patterns/layers`; NaN if none has a score.

    The highest mean over subjects. A layer with scores in more subjects comes first; of equals, the first layer.
    """
    layers = sorted(set(rows["layer"]))
    if len(layers) == 1:
        return np.full(len(regions), float(layers[0]))
    scores = cube(rows, "value" if on_test else "training", layer=layers, region=regions, target=subjects)
    n = np.isfinite(scores).sum(axis=2)
    mean = np.where(n == n.max(axis=0), mean_of_finite(scores, 2), np.nan)
    best = np.nan_to_num(mean, nan=-np.inf).argmax(axis=0)
    return np.where(n.max(axis=0) > 0, np.array(layers)[best], np.nan)


def places(tables: Tables, options: PatternsSection) -> Iterator[Place]:
    """Every dataset and measure."""
    on_test = options.layer_choice == "best_on_test"
    needed = (own_tables.BRAIN_PAIRS, own_tables.LAYERS, own_tables.MODEL_TRIALS)
    pairs, layers, trials = (tables[table.name] for table in needed)
    known = pl.concat([pairs.select(PLACE), layers.select(PLACE)]).unique().sort(PLACE)
    for dataset, measure in known.iter_rows():
        own = [rows.filter(dataset=dataset, measure=measure) for rows in (pairs, layers, trials)]
        yield Place(
            dataset, measure,
            labels_of(own[0]["source"], own[0]["target"], own[1]["target"]),
            labels_of(own[0]["source_region"], own[0]["region"], own[1]["region"]),
            labels_of(own[1]["model"]), own[0], own[1], own[2], on_test,
        )  # fmt: skip


# --- patterns -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Similarities:
    """Correlations of patterns with those of brains; NaN where a brain is its own target."""

    brains: FloatArray
    """[region, source, target] with all pairs of brains without the target, as in the paper."""
    brains_without_source: FloatArray
    """[region, source, target] without pairs of the source either."""
    brains_other: FloatArray
    """[region, source, target] the same, mean over the patterns of all other regions."""
    models: FloatArray
    """[region, model, target] as in the paper."""
    models_without_source: FloatArray
    """[region, model, target] mean over every other brain left out."""
    models_other: FloatArray
    """[region, model, target] the same, mean over the patterns of all other regions."""


def references(brains: FloatArray, left_out: Sequence[int]) -> FloatArray:
    """Mean patterns over ordered pairs of other subjects, [source region, target region]."""
    n = brains.shape[1]
    kept = np.setdiff1d(np.arange(n), left_out)
    sources, targets = np.array([(p, t) for p in kept for t in kept if p != t]).reshape(-1, 2).T
    return mean_of_finite(brains[:, sources.astype(int), targets.astype(int)], 1)


def similarities(brains: FloatArray, models: FloatArray) -> Similarities:
    """Similarity of patterns of brains [r, s, s, r] and models [m, r, s, r] to the mean patterns of other brains."""
    r, n = brains.shape[:2]
    one = np.stack([references(brains, [t]) for t in range(n)], axis=1)
    two = np.full((r, n, n, r), np.nan)
    for p, t in combinations(range(n), 2):
        two[:, p, t] = two[:, t, p] = references(brains, [p, t])
    # [pattern's region, reference's region, source, target]
    of_brains = pearson_rows(brains[:, None], two[None])
    n_models = len(models)
    of_models = np.full((n_models, r, r, n), np.nan)
    for m in range(n_models):
        found = pearson_rows(models[m][:, None, None], two[None])
        of_models[m] = mean_of_finite(found, 2)
    own, other = _own_and_other(of_brains)
    model_own, model_other = _own_and_other(np.moveaxis(of_models, 0, 2))
    return Similarities(
        pearson_rows(brains, one[:, None]), own, other,
        np.moveaxis(pearson_rows(models, one[None]), 1, 0), model_own, model_other,
    )  # fmt: skip


def _own_and_other(found: FloatArray) -> tuple[FloatArray, FloatArray]:
    """[region, reference's region, ...] as similarity to the own region's pattern, and the mean over others'."""
    own = np.moveaxis(np.diagonal(found, axis1=0, axis2=1), -1, 0)
    others = np.where(np.eye(len(found), dtype=bool)[(..., *[None] * (found.ndim - 2))], np.nan, found)
    return own, mean_of_finite(others, 1)


def correlations(patterns: FloatArray) -> FloatArray:
    """Correlation of every pattern [r, r] with every other, [r, r]."""
    return pearson_rows(patterns[:, None], patterns[None])


def draws_without(rng: np.random.Generator, n: int, without: int, size: int, n_draws: int) -> IntArray:
    """Numbers below n but one, drawn without replacement in random order, [n_draws, size]."""
    others = np.delete(np.arange(n), without)
    return rng.permuted(np.tile(others, (n_draws, 1)), axis=1)[:, :size]
