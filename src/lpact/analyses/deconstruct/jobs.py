"""Tasks of deconstruct: layers, OASM widths, and subsets of feature spaces, each for recordings that share events."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lpact.analyses.base import Frames, Scope
from lpact.analyses.deconstruct import fits, tables
from lpact.analyses.deconstruct.config import DeconstructSection, options_of
from lpact.analyses.deconstruct.fits import Fit, Subset, nonempty_subsets
from lpact.analyses.deconstruct.rows import Rows, events_of, rows_of
from lpact.analyses.deconstruct.spaces import (
    chunks_of,
    model_features,
    model_of,
    oasm,
    space_of,
)
from lpact.codes import Reason
from lpact.datasets.base import RecordingId
from lpact.features.models import FULL
from lpact.inputs.prepare import compute_settings
from lpact.inputs.workspace import Workspace
from lpact.math.columns import mean_of_finite
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray, IntArray
from lpact.stats import random_signs
from lpact.store import Results, frame
from lpact.tables import Table

Row = dict[str, object]

CODE = tuple(f"analyses/deconstruct/{name}.py" for name in ("config", "spaces", "rows", "fits", "jobs", "tables"))
UNRELATED = (
    "name", "controls", "mechanisms", "deconstruct.alpha", "deconstruct.sub_model",
    "deconstruct.scored_models", "deconstruct.untrained", "deconstruct.oasm", "deconstruct.shuffled",
)  # fmt: skip
"""Parts of the configuration that no task depends on: they choose tasks, or judge results."""

LADDER, OASM, UNTRAINED = "ladder", "oasm", "untrained"
"""Families of comparisons."""

SIMPLE, BOTH = "simple", "simple+model"
"""Pools of all simple features, and of these with the model."""
BEYOND_SIMPLE, BEYOND_NOTHING = "model_beyond_simple", "model_beyond_nothing"


@dataclass(frozen=True)
class Place:
    """Recordings of a dataset with the same events, fitted together: they share every decomposition."""

    dataset: str
    recordings: tuple[RecordingId, ...]

    @property
    def name(self) -> str:
        """The first recording, and how many share its events."""
        more = len(self.recordings) - 1
        return f"{self.dataset}/{self.recordings[0]}" + (f"+{more}" if more else "")


@dataclass(frozen=True)
class DeconstructJob:
    """A job about one place and kind of split."""

    code: ClassVar[tuple[str, ...]] = CODE
    kind: ClassVar[str] = ""

    place: Place
    split: str

    @property
    def name(self) -> str:
        """Name of the job among all jobs of the study."""
        own = ("family", "model", "context", "draw", "layer")
        parts = [str(getattr(self, part)) for part in own if hasattr(self, part)]
        return "/".join(["deconstruct", self.kind, self.place.name, self.split, *parts])

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the tasks whose results it reads."""
        return ()

    @property
    def models(self) -> tuple[str, ...]:
        """Models whose features it reads."""
        return ()

    @property
    def scope(self) -> Scope:
        """The dataset and the models."""
        return Scope(self.place.dataset, self.models, without=UNRELATED)

    def open(self, workspace: Workspace) -> Opened:
        """The rows of the job, kept while its place is in use."""
        rows = workspace.recall(
            ("deconstruct", self.place, self.split),
            lambda: rows_of(workspace, self.place.dataset, self.place.recordings, self.split),
        )
        return Opened(workspace, self, rows)


@dataclass(frozen=True, eq=False)
class Opened:
    """A job with its rows."""

    workspace: Workspace
    job: DeconstructJob
    rows: Rows

    @cached_property
    def options(self) -> DeconstructSection:
        """The options of the study."""
        return options_of(self.workspace.config)

    @property
    def events(self) -> str:
        """What one row is."""
        return events_of(self.workspace.config, self.job.place.dataset)

    def fit(self, bands: fits.Bands, variants: Sequence[Hashable], subsets: list[Subset]) -> Fit:
        """Fit subsets of feature spaces."""
        grid = replace(self.options.grid, seed=self.workspace.config.seed)
        compute = compute_settings(self.workspace.config.readout)
        return fits.fit(self.rows, bands, variants, subsets, grid, compute)

    def scored(self, values: FloatArray, **place: object) -> list[Row]:
        """Rows of one feature space alone, one per recording."""
        fitted = self.fit(lambda _: [values], [None] * self.rows.folds.n_blocks, [(0,)])
        return [
            {
                **key,
                **place,
                **self.summary(fitted.scores[0], units),
                "validation": self.deciding(fitted.validation[0], units, clipped=True),
                "scores": fitted.scores[0, units],
            }
            for key, units in self.each()
        ]

    def model(self, model: str, layer: int, context: str = FULL, draw: int = 0) -> FloatArray:
        """Features of a model on the events."""
        return model_features(self.workspace, self.rows.prepared[0], model, layer, context, draw)

    def each(self) -> Iterator[tuple[Row, slice]]:
        """Key and columns of every recording."""
        for prepared, units in zip(self.rows.prepared, self.rows.units, strict=True):
            stimulus = prepared.id.stimulus
            yield {**prepared.key, "stimulus": stimulus, "split": self.job.split}, units

    def deciding(self, values: FloatArray, units: slice, *, clipped: bool) -> FloatArray:
        """Mean of [..., t] over the deciding units of a recording."""
        own = values[..., units][..., self.rows.deciding[units]]
        return mean_of_finite(np.maximum(own, 0.0) if clipped else own, -1)

    def summary(self, scores: FloatArray, units: slice) -> Row:
        """Mean scores of a recording's deciding units, and why there are none."""
        means = {
            "r2": self.deciding(scores, units, clipped=True),
            "r2_raw": self.deciding(scores, units, clipped=False),
        }
        found: Row = {name: number(float(value)) for name, value in means.items()}
        reason = Reason.OK if found["r2"] is not None else Reason.UNDEFINED_SCORE
        return {**found, "reason": reason.value}


def number(value: float) -> float | None:
    """A finite number, or None."""
    return value if np.isfinite(value) else None


@dataclass(frozen=True)
class LayerJob(DeconstructJob):
    """One layer alone."""

    kind = "layer"

    model: str
    context: str
    draw: int
    layer: int

    @property
    def models(self) -> tuple[str, ...]:
        """The model."""
        return (self.model,)

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Score the layer."""
        opened = self.open(workspace)
        values = opened.model(self.model, self.layer, self.context, self.draw)
        place = {"model": self.model, "context": self.context, "draw": self.draw}
        rows = opened.scored(values, **place, layer=self.layer)
        return {tables.LAYERS.name: frame(tables.LAYERS, rows)}


@dataclass(frozen=True)
class WidthsJob(DeconstructJob):
    """OASM with every width of its filter."""

    kind = "oasm widths"

    def run(self, workspace: Workspace, results: Results) -> Frames:  # noqa: ARG002
        """Score every width."""
        opened = self.open(workspace)
        chunks = chunks_of(opened.rows.prepared[0].grid, opened.events)
        rows = [
            row
            for width, sigma in enumerate(opened.options.oasm_sigmas)
            for row in opened.scored(oasm(chunks, sigma), width=width, sigma=sigma)
        ]
        for row in rows:
            del row["scores"]
        return {tables.SIGMAS.name: frame(tables.SIGMAS, rows)}


@dataclass(frozen=True)
class SubsetsJob(DeconstructJob):
    """All subsets of the simple steps and a model: the ladder, OASM, or an untrained model.

    ``layers`` and ``widths`` are keys of the tasks that layer and width are chosen from; ``ladder`` are the steps.
    """

    kind = "subsets"

    family: str
    model: str
    draw: int
    ladder: tuple[tuple[str, ...], ...]
    layers: tuple[str, ...]
    widths: tuple[str, ...]
    also_read: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """Scores of the layers, and of the widths of OASM."""
        return (*self.layers, *self.widths)

    @property
    def models(self) -> tuple[str, ...]:
        """The model, and those in the ladder."""
        return (self.model, *self.also_read)

    @property
    def context(self) -> str:
        """Context of the model's features."""
        return UNTRAINED if self.family == UNTRAINED else FULL

    def run(self, workspace: Workspace, results: Results) -> Frames:
        """Fit, choose and test."""
        opened = self.open(workspace)
        options, n_folds = opened.options, opened.rows.folds.n_blocks
        layers = _chosen(results, self.layers, tables.LAYERS, "layer", options.layer_choice, n_folds)
        sigmas: list[Any] = [None] * n_folds
        if self.widths:
            how = options.oasm_choice
            sigmas = _chosen(results, self.widths, tables.SIGMAS, "sigma", how, n_folds)
        first = opened.rows.prepared[0]
        steady = [space_of(space, first, workspace) for step in self.ladder for space in step]
        chunks = chunks_of(first.grid, opened.events)

        def bands(variant: Any) -> list[FloatArray]:
            layer, sigma = variant
            simple = steady if sigma is None else [oasm(chunks, sigma)]
            return [*simple, opened.model(self.model, layer, self.context, self.draw)]

        elements, variants = self._elements(), list(zip(layers, sigmas, strict=True))
        subsets = nonempty_subsets(len(elements))
        of_bands = [tuple(band for e in own for band in elements[e][1]) for own in subsets]
        n_simple = len(elements) - 1
        if self.family == LADDER and options.simple_steps:
            n_simple = min(options.simple_steps, n_simple)
        report = _Report(
            opened,
            self,
            opened.fit(bands, variants, of_bands),
            subsets,
            [name for name, _ in elements],
            n_simple,
            [f"layer {i}" + ("" if sigma is None else f", σ {sigma:g}") for i, sigma in variants],
            "best_on_test" in (options.layer_choice, self.widths and options.oasm_choice),
        )
        return {
            tables.SCORES.name: frame(tables.SCORES, report.scores()),
            tables.TESTS.name: frame(tables.TESTS, report.tests()),
        }

    def _elements(self) -> list[tuple[str, tuple[int, ...]]]:
        """What subsets are made of, each with its bands: steps of the ladder, or its spaces; the model last."""
        if self.family == OASM:
            return [("OASM", (0,)), (self.model, (1,))]
        steps = self.ladder if self.family == LADDER else [(s,) for step in self.ladder for s in step]
        made, start = [], 0
        for step in steps:
            made.append(("+".join(step), tuple(range(start, start + len(step)))))
            start += len(step)
        return [*made, (self.model, (start,))]


def _chosen(results: Results, keys: Sequence[str], table: Table, column: str, how: str, n_folds: int) -> list[Any]:
    """Layer or width of every outer fold: by validation in that fold, or by test scores; ties go to the first."""
    found = pl.concat([results.load(key, [table.name])[table.name] for key in keys])
    candidates = found[column].unique(maintain_order=True).to_list()
    scores = np.full((n_folds, len(candidates)), -np.inf)
    for i, value in enumerate(candidates):
        own = found.filter(pl.col(column) == value)
        if how == "nested":
            by_fold = own["validation"].list.to_array(n_folds).to_numpy().astype(np.float64)
        else:
            tested = own["r2"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
            by_fold = np.repeat(tested[:, None], n_folds, axis=1)
        scores[:, i] = np.nan_to_num(mean_of_finite(by_fold), nan=-np.inf)
    return [candidates[i] for i in scores.argmax(axis=1)]


@dataclass(frozen=True, eq=False)
class _Report:
    """Rows of the tables from the fitted subsets."""

    opened: Opened
    job: SubsetsJob
    fitted: Fit
    subsets: list[Subset]
    names: list[str]
    n_simple: int
    chosen: list[str]
    optimistic: bool

    @cached_property
    def pools(self) -> dict[tuple[int, str], list[int]]:
        """Subsets that may stand for a step of the ladder, and for all simple features with and without the model.

        A step is represented by the subsets that contain it and nothing more complex.
        """
        model = len(self.names) - 1
        pools = {
            (step, "+".join(self.names[: step + 1])): [i for i, own in enumerate(self.subsets) if max(own) == step]
            for step in range(len(self.names))
        }
        simple = [i for i, own in enumerate(self.subsets) if max(own) < self.n_simple]
        allowed = {*range(self.n_simple), model}
        both = [i for i, own in enumerate(self.subsets) if model in own and {*own} <= allowed]
        return pools | {(-1, SIMPLE): simple, (-1, BOTH): both}

    @cached_property
    def choices(self) -> dict[tuple[str, int, str], IntArray]:
        """The subset that represents every pool, by choice of the sub-model, step and name."""
        return {
            (sub_model, *place): self.fitted.choice(pool, sub_model)
            for sub_model in fits.SUB_MODELS
            for place, pool in self.pools.items()
        }

    def _place(self, sub_model: str) -> Row:
        job = self.job
        return {
            "family": job.family,
            "model": job.model,
            "draw": job.draw,
            "sub_model": sub_model,
            "optimistic": self.optimistic or sub_model in fits.OPTIMISTIC,
        }

    def scores(self) -> list[Row]:
        """Scores of all subsets as they are, and of every pool under every choice of the sub-model."""
        found: dict[tuple[str, int, str], FloatArray] = {
            (fits.NONE, -1, "+".join(self.names[e] for e in own)): self.fitted.scores[i]
            for i, own in enumerate(self.subsets)
        }
        for (sub_model, step, name), choice in self.choices.items():
            if sub_model == fits.NONE:
                found.pop((sub_model, -1, name), None)
            found[sub_model, step, name] = self.fitted.chosen_scores(choice)
        return [
            {
                **key,
                **self._place(sub_model),
                "features": name,
                "step": step,
                **self.opened.summary(scores, units),
                "scores": scores[units],
                "chosen": self.chosen,
            }
            for (sub_model, step, name), scores in found.items()
            for key, units in self.opened.each()
        ]

    def tests(self) -> list[Row]:
        """The model against simple features under every choice of the sub-model, and against the training mean."""
        rows, config = self.opened.rows, self.opened.workspace.config
        alone = np.full(self.fitted.sums[0].shape, self.subsets.index((len(self.names) - 1,)))
        pairs: dict[tuple[str, str], tuple[IntArray | None, IntArray]] = {(BEYOND_NOTHING, fits.NONE): (None, alone)}
        for own in fits.SUB_MODELS:
            simple, both = (self.choices[own, -1, pool] for pool in (SIMPLE, BOTH))
            pairs[BEYOND_SIMPLE, own] = simple, both
        rng = keyed_rng(config.seed, "deconstruct signs", self.job.place.dataset, self.job.split)
        n_blocks = len(rows.block_names)
        signs = random_signs(rng, (self.opened.options.permutations, n_blocks))
        made: list[Row] = []
        for (comparison, sub_model), found in fits.compare(self.fitted, pairs, signs).items():
            for i, (key, units) in enumerate(self.opened.each()):
                row = {**key, **self._place(sub_model), "comparison": comparison}
                for test, p in found.p.items():
                    row[f"p_{test}"] = p[units]
                    row[f"q_{test}"] = fits.q_values(p[units], rows.regions[units])
                row |= {"block": list(rows.block_names), "gain": found.gain[i]}
                made.append({**row, "reason": Reason.OK.value})
        return made


def also_read(ladder: Sequence[Sequence[str]], workspace: Workspace) -> tuple[str, ...]:
    """Models that give feature spaces of a ladder."""
    models = workspace.config.models
    found = (model_of(space, models)[0] for step in ladder for space in step)
    return tuple(dict.fromkeys(model for model in found if model))
