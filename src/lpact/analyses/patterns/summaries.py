"""From scores of sources and targets to ranks, patterns and their similarities; tables alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.patterns import tables as own
from lpact.analyses.patterns.arrays import (
    Place,
    Tables,
    correlations,
    cube,
    draws_without,
    integers,
    joined,
    labels_of,
    places,
    reasons,
    rows_of,
)
from lpact.analyses.patterns.config import (
    MEAN,
    PatternsSection,
    options_of,
)
from lpact.analyses.patterns.jobs import EVERYBODY, OTHERS
from lpact.codes import Reason
from lpact.config import StudyConfig
from lpact.math.columns import mean_of_finite, median_of_finite
from lpact.math.profiles import pearson_rows
from lpact.math.seeding import keyed_rng
from lpact.math.types import FloatArray
from lpact.stats import (
    benjamini_hochberg,
    best_bootstrap_p_values,
    best_p_values,
    pair_means,
    paired_t,
    rank_p_values,
    student_interval,
)
from lpact.stats.randomization import ROUNDING
from lpact.store import frame

Row = dict[str, Any]
PAIRWISE, RELIABILITY = "pairwise", "reliability"
BRAIN, MODEL, BRAINS = "brain", "model", "brains"
FOLLOWS, ALIKE = 0.7, 0.5
"""Correlations from which a pattern counts as a profile of its targets, and as like the patterns of other regions."""
NAMES = {OTHERS: ("upper", "lower"), PAIRWISE: ("lower", ""), EVERYBODY: ("", "upper")}
"""Ceilings in the paper and in rsatoolbox."""


def derive(study: StudyConfig, tables: Tables) -> Mapping[str, Callable[[], pl.DataFrame]]:
    """All tables between tasks and verdicts."""
    options, seed = options_of(study), study.seed

    @cache
    def found() -> list[Place]:
        return list(places(tables, options))

    @cache
    def ceiling_rows() -> pl.DataFrame:
        return ceilings(found(), tables[own.CEILING_VALUES.name], options, seed)

    @cache
    def ranks() -> tuple[pl.DataFrame, pl.DataFrame]:
        return ranking(found(), ceiling_rows(), options, seed)

    def of_targets() -> pl.DataFrame:
        return diagnostics(found(), tables[own.TARGETS.name], ceiling_rows())

    return {
        own.SCORES.name: lambda: scores(found()),
        own.CEILINGS.name: ceiling_rows,
        own.RANKING.name: lambda: ranks()[0],
        own.CLASSES.name: lambda: ranks()[1],
        own.PATTERNS.name: lambda: patterns(found(), options),
        own.SIMILARITIES.name: lambda: similarity_rows(found()),
        own.CONFUSION.name: lambda: confusion(found()),
        own.DIAGNOSTICS.name: of_targets,
        own.STRUCTURE.name: lambda: structure(found(), tables[own.CONNECTIVITY.name], options, seed),
    }


def finite(value: Any) -> float | None:
    """A number, or None."""
    return float(value) if value is not None and np.isfinite(value) else None


# --- scores and ceilings --------------------------------------------------------------------------


def scores(found: list[Place]) -> pl.DataFrame:
    """Score of every model in every subject, at the layer that was chosen for the region."""
    made = []
    for place in found:
        value = place.scores()
        made.append(
            rows_of(
                own.SCORES, place.key,
                {"region": place.regions, "model": place.models, "target": place.subjects},
                layer=integers(place.layers.T[:, :, None]),
                value=value,
                clipped=place.scores("clipped"),
                optimistic=place.optimistic[None, :, None],
                reason=reasons(value),
            )
        )  # fmt: skip
    return joined(own.SCORES, made)


def drawn_pairs(place: Place, options: PatternsSection, seed: int) -> FloatArray:
    """Scores of the pairs of the ceiling, [region, source, target]; NaN for others."""
    n, k = len(place.subjects), options.pairs_per_target
    if k == 0 or k >= n - 1:
        return place.between
    kept = np.zeros((n, n), dtype=bool)
    for t, target in enumerate(place.subjects):
        rng = keyed_rng(seed, "patterns pairs", place.dataset, target)
        kept[draws_without(rng, n, t, k, 1)[0], t] = True
    return np.where(kept, place.between, np.nan)


def ceilings(found: list[Place], values: pl.DataFrame, options: PatternsSection, seed: int) -> pl.DataFrame:
    """How well brains predict a brain, in three ways."""
    made = []
    for place in found:
        rows = values.filter(**place.key)
        for ceiling, (in_paper, in_rsatoolbox) in NAMES.items():
            if ceiling == PAIRWISE:
                pairs = drawn_pairs(place, options, seed)
                means = pair_means(pairs)
                mean, n = means.mean, means.n
                low, high = means.interval(options.alpha)
                n_values = np.isfinite(pairs).sum(axis=(1, 2))
                reason = reasons(mean)
            else:
                mine = rows.filter(ceiling=ceiling)
                own_values = cube(mine, "value", region=place.regions, target=place.subjects)
                mean = mean_of_finite(own_values, 1)
                low, high = student_interval(own_values, confidence=1.0 - options.alpha)
                n = n_values = np.isfinite(own_values).sum(axis=1)
                reason = reasons(mean)
                for r, region in enumerate(place.regions):
                    if np.isnan(mean[r]) and (why := mine.filter(region=region)["reason"]).len():
                        reason[r] = why[0]
            made.append(
                rows_of(
                    own.CEILINGS, place.key | {"ceiling": ceiling}, {"region": place.regions},
                    in_paper=in_paper, in_rsatoolbox=in_rsatoolbox, mean=mean, low=low, high=high,
                    n_subjects=n, n_values=n_values, reason=reason,
                )
            )  # fmt: skip
    return joined(own.CEILINGS, made)


# --- ranks ----------------------------------------------------------------------------------------


def mean_over_regions(values: FloatArray) -> FloatArray:
    """Mean over regions of [region, model, subject]; regions that no model has a score in are left out."""
    used = np.isfinite(values).any(axis=(1, 2))
    return values[used].mean(axis=0) if used.any() else np.full(values.shape[1:], np.nan)


def ranking(
    found: list[Place], ceiling_rows: pl.DataFrame, options: PatternsSection, seed: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Models in the order of their means, which could be the best, and how many pairs differ."""
    ranks: list[Row] = []
    classes: list[Row] = []
    for place in found:
        if not place.models:
            continue
        values = place.scores()
        of_ceilings = {
            name: cube(ceiling_rows.filter(ceiling=name, **place.key), "mean", region=place.regions)
            for name in (PAIRWISE, OTHERS)
        }
        every = [*zip(place.regions, values, strict=True), (MEAN, mean_over_regions(values))]
        for r, (region, scored) in enumerate(every):
            rng = keyed_rng(seed, "patterns best", place.dataset, place.measure, region)
            at = place.key | {"region": region}
            compared = compare_models(scored, place.models, options, rng)
            classes.append(at | compared.pop("class"))
            low, high = student_interval(scored, confidence=1.0 - options.alpha)
            mean = mean_of_finite(scored, 1)
            layers = [None] * len(place.models) if region == MEAN else integers(place.layers[:, r])
            to = {k: float(v.mean() if region == MEAN else v[r]) for k, v in of_ceilings.items()}
            for m, model in enumerate(place.models):
                ranks.append(
                    at
                    | {
                        "model": model,
                        "layer": layers[m],
                        "mean": finite(mean[m]),
                        "low": finite(low[m]),
                        "high": finite(high[m]),
                        "median": finite(median_of_finite(scored[m])),
                        "best": compared["best"],
                        "rank": compared["rank"][m],
                        "equivalent_in_paper": compared["equivalent_in_paper"][m],
                        "equivalent": compared["equivalent"][m],
                        "best_p": compared["best_p"][m],
                        "best_bootstrap_p": compared["best_bootstrap_p"][m],
                        "fraction_of_pairwise": fraction(mean[m], to[PAIRWISE]),
                        "fraction_of_mean": fraction(mean[m], to[OTHERS]),
                        "n_subjects": int(np.isfinite(scored[m]).sum()),
                        "reason": (Reason.OK if compared["rank"][m] else Reason.UNDEFINED_SCORE).value,
                    }
                )
    return frame(own.RANKING, ranks), frame(own.CLASSES, classes)


def fraction(value: float, ceiling: float) -> float | None:
    """A score as a fraction of a ceiling above 0."""
    return finite(value / ceiling) if ceiling > 0.0 else None


def compare_models(
    scored: FloatArray, models: list[str], options: PatternsSection, rng: np.random.Generator
) -> dict[str, Any]:
    """Ranks of models, and which could be the best, from scores [model, subject].

    Models are compared on the subjects that any of them has a score in; a model that lacks one of these is not.
    """
    n_models = len(models)
    ranks: list[int | None] = [None] * n_models
    p: list[float | None] = [None] * n_models
    resampled: list[float | None] = [None] * n_models
    in_paper, equivalent = [False] * n_models, [False] * n_models
    x = scored[:, np.isfinite(scored).any(axis=0)]
    kept = np.flatnonzero(np.isfinite(x).all(axis=1) & (x.shape[1] > 0))
    x = x[kept]
    best, apart = "", 0
    if kept.size:
        mean = x.mean(axis=1)
        top = int(mean.argmax())
        best = models[kept[top]]
        drawn = rng.multinomial(x.shape[1], np.full(x.shape[1], 1 / x.shape[1]), options.n_bootstrap)
        lowest = np.quantile(drawn @ x[top] / x.shape[1], 0.025)
        slack = ROUNDING * np.abs(x).max()
        p_best = best_p_values(x)
        p_bootstrap = best_bootstrap_p_values(x, rng, n_draws=options.n_bootstrap)
        apart = n_pairs_apart(x, options.alpha)
        for i, m in enumerate(kept):
            ranks[m] = 1 + int((mean > mean[i] + slack).sum())
            p[m], resampled[m] = float(p_best[i]), float(p_bootstrap[i])
            in_paper[m] = bool(mean[i] >= lowest - slack)
            equivalent[m] = bool(p_best[i] > options.alpha)
    size = len(kept)
    return {
        "best": best,
        "rank": ranks,
        "best_p": p,
        "best_bootstrap_p": resampled,
        "equivalent_in_paper": in_paper,
        "equivalent": equivalent,
        "class": {
            "best": best,
            "n_models": size,
            "n_equivalent_in_paper": sum(in_paper),
            "n_equivalent": sum(equivalent),
            "n_pairs": size * (size - 1) // 2,
            "n_pairs_apart": apart,
        },
    }


def n_pairs_apart(x: FloatArray, alpha: float) -> int:
    """Pairs of models [model, subject] whose means differ by paired t-tests at a false discovery rate of alpha.

    Differences that do not vary have no t: their p-value is that of flipping signs, 2/2ⁿ.
    """
    from scipy import special

    n = x.shape[1]
    if n < 2:
        return 0
    t = np.abs(paired_t(x)[np.triu_indices(len(x), 1)])
    p = np.where(np.isinf(t), 2.0 ** (1 - n), 2.0 * special.stdtr(n - 1, -t))
    return int((benjamini_hochberg(p) <= alpha).sum())


# --- patterns -------------------------------------------------------------------------------------


def patterns(found: list[Place], options: PatternsSection) -> pl.DataFrame:
    """Mean patterns of brains and models."""
    made = []
    for place in found:
        of_brains = pair_means(np.moveaxis(place.brains, 3, 1))
        low, high = of_brains.interval(options.alpha)
        axes = {"source_region": place.regions, "region": place.regions}
        made.append(
            rows_of(
                own.PATTERNS, place.key | {"kind": BRAIN, "source": BRAINS}, axes,
                layer=None, mean=of_brains.mean, low=low, high=high, reason=reasons(of_brains.mean),
            )
        )  # fmt: skip
        values = np.moveaxis(place.models_patterns, 2, 3)
        mean = mean_of_finite(values, 3)
        low, high = student_interval(values, confidence=1.0 - options.alpha)
        made.append(
            rows_of(
                own.PATTERNS, place.key | {"kind": MODEL}, {"source": place.models} | axes,
                layer=integers(place.layers[:, :, None]), mean=mean, low=low, high=high, reason=reasons(mean),
            )
        )  # fmt: skip
    return joined(own.PATTERNS, made)


def similarity_rows(found: list[Place]) -> pl.DataFrame:
    """Similarity of every pattern to those of brains."""
    made = []
    for place in found:
        n = len(place.subjects)
        these = place.similarities
        axes = {"region": place.regions, "source": place.subjects, "target": place.subjects}
        made.append(
            rows_of(
                own.SIMILARITIES, place.key | {"kind": BRAIN}, axes, ~np.eye(n, dtype=bool),
                layer=None, similarity=these.brains, similarity_without_source=these.brains_without_source,
                other_regions=these.brains_other, reason=reasons(these.brains_without_source),
            )
        )  # fmt: skip
        made.append(
            rows_of(
                own.SIMILARITIES, place.key | {"kind": MODEL}, axes | {"source": place.models},
                layer=integers(place.layers.T[:, :, None]), similarity=these.models,
                similarity_without_source=these.models_without_source, other_regions=these.models_other,
                reason=reasons(these.models_without_source),
            )
        )  # fmt: skip
    return joined(own.SIMILARITIES, made)


def mean_patterns(place: Place) -> FloatArray:
    """Mean patterns over all pairs of brains, [source region, target region]."""
    return pair_means(np.moveaxis(place.brains, 3, 1)).mean


def confusion(found: list[Place]) -> pl.DataFrame:
    """Correlations of the mean patterns of brains between regions."""
    made = []
    for place in found:
        similarity = correlations(mean_patterns(place))
        axes = {"region": place.regions, "other": place.regions}
        made.append(
            rows_of(own.CONFUSION, place.key, axes, similarity=similarity, reason=reasons(similarity))
        )  # fmt: skip
    return joined(own.CONFUSION, made)


def diagnostics(found: list[Place], target_rows: pl.DataFrame, ceiling_rows: pl.DataFrame) -> pl.DataFrame:
    """What patterns depend on: the region, all regions alike, or the predictability of targets."""
    made = []
    for place in found:
        mean = mean_patterns(place)
        alike = correlations(mean)
        np.fill_diagonal(alike, np.nan)
        own_region = pair_means(place.similarities.brains_without_source).mean
        reliable = cube(
            target_rows.filter(dataset=place.dataset), "reliability", region=place.regions, target=place.subjects,
        )  # fmt: skip
        predictable, name = mean_of_finite(reliable, 1), RELIABILITY
        if not np.isfinite(predictable).any():
            rows = ceiling_rows.filter(ceiling=PAIRWISE, **place.key)
            predictable, name = cube(rows, "mean", region=place.regions), PAIRWISE
        made.append(
            rows_of(
                own.DIAGNOSTICS, place.key, {"region": place.regions},
                own_region=own_region, other_regions=mean_of_finite(alike, 1),
                targets=pearson_rows(mean, predictable), predictability=name, reason=reasons(own_region),
            )
        )  # fmt: skip
    return joined(own.DIAGNOSTICS, made)


def follows_targets(row: Mapping[str, Any]) -> bool:
    """Whether a region's pattern, a row of `patterns/diagnostics`, is hardly more than a profile of its targets.

    It is like the patterns of other regions, and follows the predictability of target regions.
    """
    targets, others = row["targets"], row["other_regions"]
    return targets is not None and others is not None and targets >= FOLLOWS and others >= ALIKE


def structure(found: list[Place], connectivity: pl.DataFrame, options: PatternsSection, seed: int) -> pl.DataFrame:
    """Correlation of the patterns of brains with structural connectivity, against random structural patterns."""
    made = []
    for place in found:
        links = connectivity.filter(dataset=place.dataset)
        if not links.height:
            continue
        names = labels_of(links["region"], links["other"])
        weights = cube(links, "weight", region=names, other=names)
        mean, n_draws = mean_patterns(place), options.structure_draws
        n = len(place.regions)
        at = [names.index(region) for region in place.regions]
        numbers = np.full((6, n), np.nan)
        sizes = np.zeros((2, n), dtype=int)
        for r, region in enumerate(place.regions):
            rest = np.delete(np.arange(n), r)
            functional = mean[r, rest]
            structural = weights[at[r]][[at[i] for i in rest]]
            rng = keyed_rng(seed, "patterns structure", place.dataset, region)
            drawn = weights[at[r]][draws_without(rng, len(names), at[r], n - 1, n_draws)]
            null = pearson_rows(functional, drawn)
            null = null[np.isfinite(null)]
            observed = float(pearson_rows(functional, structural))
            sizes[:, r] = np.isfinite(functional * structural).sum(), null.size
            if np.isfinite(observed) and null.size:
                higher = float(rank_p_values(observed, null, slack=ROUNDING))
                lower = float(rank_p_values(-observed, -null, slack=ROUNDING))
                ends = np.quantile(null, [0.025, 0.975])
                two_sided = min(1.0, 2.0 * min(higher, lower))
                outside = not ends[0] <= observed <= ends[1]
                numbers[:, r] = observed, *ends, higher, two_sided, outside
        similarity, low, high, p_higher, p_two_sided, is_outside = numbers
        q = benjamini_hochberg(p_higher)
        made.append(
            rows_of(
                own.STRUCTURE, place.key, {"region": place.regions},
                similarity=similarity, n_regions=sizes[0], n_drawn_from=len(names) - 1, n_draws=sizes[1],
                null_low=low, null_high=high, p_higher=p_higher, p_two_sided=p_two_sided,
                q_higher=q, q_two_sided=benjamini_hochberg(p_two_sided),
                significant=q <= options.alpha, outside_in_paper=is_outside == 1.0,
                reason=reasons(similarity),
            )
        )  # fmt: skip
    return joined(own.STRUCTURE, made)
