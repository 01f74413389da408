"""Numbers of the calibrated tests, read from the tables for all layers at once, and tests over blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.lpact.gates.keys import LAYER_KEY, OK, SUBJECT_RUN_KEY, Layer
from lpact.math.columns import mean_of_finite
from lpact.math.types import FloatArray
from lpact.stats import draw_p_value, one_sample_p_value, sign_flip_p_value

SubjectRun = tuple[str, str, str]


def layer_of(key: Sequence[Any]) -> Layer:
    """Dataset, model and layer of a row."""
    dataset, model, layer = key
    return str(dataset), str(model), int(layer)


def of_layers(frame: pl.DataFrame, layers: Collection[Layer]) -> pl.DataFrame:
    """Rows of some layers, in the same order."""
    schema = {name: frame.schema[name] for name in LAYER_KEY}
    chosen = pl.DataFrame(sorted(layers), schema=schema, orient="row")
    return frame.join(chosen, on=LAYER_KEY, how="semi", maintain_order="left")


def cells(column: pl.Series) -> list[FloatArray]:
    """Every list of a column as an array, NaN for null. All are parts of one array."""
    lengths = column.list.len()
    flat = column.filter(lengths > 0).explode().to_numpy()
    ends = np.cumsum(lengths.to_numpy(), dtype=np.int64).tolist()
    return [flat[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def subject_run(row: Mapping[str, Any]) -> SubjectRun:
    """Subject, session and run of a row."""
    subject, session, run = (str(row[name]) for name in SUBJECT_RUN_KEY)
    return subject, session, run


@dataclass
class Level1:
    """Level 1 of one layer at the primary metric, by subject-run.

    ``real`` holds the score, ``draws`` the scores of every draw of each surrogate control (NaN where undefined),
    ``blocks`` the scores in every outer block of each condition, ``stimulus`` what was presented.
    """

    real: dict[SubjectRun, float] = field(default_factory=dict)
    stimulus: dict[SubjectRun, str] = field(default_factory=dict)
    draws: dict[str, dict[SubjectRun, FloatArray]] = field(default_factory=dict)
    blocks: dict[str, dict[SubjectRun, FloatArray]] = field(default_factory=dict)


def read_level1(scores: pl.DataFrame, blocks: pl.DataFrame, nulls: pl.DataFrame, metric: str) -> dict[Layer, Level1]:
    """Level 1 of all layers with rows in every table; a control without a row in the control nulls is left out."""
    layers = [{layer_of(k) for k in f.select(LAYER_KEY).unique().iter_rows()} for f in (scores, blocks, nulls)]
    held = {layer: Level1() for layer in set.intersection(*layers)}
    known: dict[Layer, set[str]] = {layer: {"real", "nuisance"} for layer in held}
    surrogates: dict[Layer, set[str]] = {layer: set() for layer in held}
    controls = nulls.filter(pl.col("metric") == metric).select(*LAYER_KEY, "control", "surrogate")
    for *key, control, surrogate in controls.unique().iter_rows():
        if (layer := layer_of(key)) in held:
            known[layer].add(control)
            if surrogate:
                surrogates[layer].add(control)
    kept = scores.filter(pl.col("metric") == metric).drop_nulls("score_median")
    _read_scores(kept, held, surrogates)
    rows = blocks.select(*LAYER_KEY, *SUBJECT_RUN_KEY, "condition", "stimulus").iter_rows()
    for (*key, subject, session, run, condition, stimulus), values in zip(rows, cells(blocks["scores"]), strict=True):
        if (layer := layer_of(key)) in held and condition in known[layer]:
            place = (subject, session, run)
            held[layer].blocks.setdefault(condition, {})[place] = values
            held[layer].stimulus[place] = stimulus
    return held


def _read_scores(kept: pl.DataFrame, held: Mapping[Layer, Level1], surrogates: Mapping[Layer, set[str]]) -> None:
    """Store the real scores, and the scores of all draws of the surrogates."""
    wanted = {"real"}.union(*surrogates.values())
    drawn = (
        kept.filter(pl.col("condition").is_in(sorted(wanted)))
        .sort("draw", maintain_order=True)
        .group_by(*LAYER_KEY, "condition", *SUBJECT_RUN_KEY, maintain_order=True)
        .agg("draw", "score_median")
    )
    rows = drawn.select(*LAYER_KEY, "condition", *SUBJECT_RUN_KEY).iter_rows()
    for (*key, condition, subject, session, run), draws, values in zip(
        rows, cells(drawn["draw"]), cells(drawn["score_median"]), strict=True
    ):
        layer, place = layer_of(key), (subject, session, run)
        if layer not in held:
            continue
        if condition == "real":
            held[layer].real[place] = float(values[-1])
        if condition in surrogates[layer]:
            by_number = np.full(int(draws[-1]) + 1, np.nan)
            by_number[draws] = values
            held[layer].draws.setdefault(condition, {})[place] = by_number


@dataclass(frozen=True)
class RunDraws:
    """One relational test in one subject-run: medians over alignment × profile summaries.

    ``draws`` is [n_draws], NaN where a draw is undefined.
    """

    observed: float
    advantage: float
    draws: FloatArray


LayerDraws = dict[tuple[str, str], list[RunDraws]]
"""By test and rival: one entry per subject-run, in their order."""


def read_null_draws(nulls: pl.DataFrame) -> dict[Layer, LayerDraws]:
    """All relational tests of all layers, from the rows with a number."""
    found: dict[Layer, LayerDraws] = {}
    keys = [*LAYER_KEY, "test", "against", *SUBJECT_RUN_KEY]
    for (*layer, test, against, _, _, _), draws in summarise_runs(nulls.filter(OK), keys):
        tests = found.setdefault(layer_of(layer), {})
        tests.setdefault((str(test), str(against)), []).append(draws)
    return found


def summarise_runs(rows: pl.DataFrame, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], RunDraws]]:
    """Medians over the rows of every group of ``keys``, in the order in which the groups appear."""
    groups = rows.group_by(keys, maintain_order=True).agg("observed", "advantage", "draws")
    drawn = iter(cells(groups["draws"].explode()) if groups.height else ())
    for key, observed, advantage in zip(
        groups.select(keys).iter_rows(),
        cells(groups["observed"]),
        cells(groups["advantage"]),
        strict=True,
    ):
        draws = typical([next(drawn) for _ in observed])
        yield key, RunDraws(float(np.median(observed)), float(np.median(advantage)), draws)


def draw_p(observed: float, draws: FloatArray) -> float:
    """`draw_p_value`, and 1 where nothing can be compared: a gate that cannot be tested does not pass."""
    p = draw_p_value(observed, draws)
    return 1.0 if np.isnan(p) else p


def mean_over_runs(by_run: Mapping[SubjectRun, FloatArray]) -> FloatArray:
    """Mean over subject-runs, draw by draw, over the draws that all of them have."""
    mean: FloatArray = _cut([by_run[run] for run in sorted(by_run)]).mean(axis=0)
    return mean


def typical(stacked: Sequence[FloatArray]) -> FloatArray:
    """Median over the first axis, entry by entry, of finite values; NaN where there is none."""
    table = _cut(stacked)
    finite = np.isfinite(table)
    if finite.all():
        return np.asarray(np.median(table, axis=0))
    ranked = np.sort(np.where(finite, table, np.inf), axis=0)
    n = finite.sum(axis=0, keepdims=True)
    low = np.take_along_axis(ranked, np.maximum(n - 1, 0) // 2, 0)
    high = np.take_along_axis(ranked, n // 2, 0)
    return np.squeeze(np.where(n > 0, (low + high) / 2, np.nan), 0)


def block_p_value(
    contrasts: Mapping[SubjectRun, FloatArray],
    stimulus: Mapping[SubjectRun, str],
    rng: np.random.Generator | Callable[[], np.random.Generator],
    stop_above: float = 1.0,
) -> float:
    """P-value of a mean contrast above 0, from its values in the outer blocks of every subject-run.

    The larger of two: signs of all blocks flipped one by one, and Student's t over the blocks of the stimuli after
    averaging over the subject-runs that share them. Listeners of the same story share its easy and hard parts, so
    their blocks are not independent; the parts are. The second test is left out if the first is above ``stop_above``.
    """
    values = [contrasts[run] for run in sorted(contrasts)]
    if not values:
        return 1.0
    p = one_sample_p_value(means_by_stimulus(contrasts, stimulus))
    return p if p > stop_above else max(p, sign_flip_p_value(np.concatenate(values), rng))


def means_by_stimulus(contrasts: Mapping[SubjectRun, FloatArray], stimulus: Mapping[SubjectRun, str]) -> FloatArray:
    """Contrasts in the blocks of all stimuli, averaged over the subject-runs that share them."""
    by_stimulus: dict[str, list[FloatArray]] = {}
    for run in sorted(contrasts):
        by_stimulus.setdefault(stimulus[run], []).append(contrasts[run])
    return np.concatenate([mean_of_finite(_cut(parts)) for parts in by_stimulus.values()])


def _cut(parts: Sequence[FloatArray]) -> FloatArray:
    """Arrays stacked as far as the shortest goes."""
    return np.stack([values[: min(map(len, parts))] for values in parts])
