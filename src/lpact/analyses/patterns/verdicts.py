"""From scores and similarities of patterns to verdicts; tables alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from lpact.analyses.base import Frames
from lpact.analyses.patterns import tables as own
from lpact.analyses.patterns.arrays import Place, Tables, cube, of_own_region, places
from lpact.analyses.patterns.config import (
    ALIGNED,
    CANNOT_REJECT,
    EXCLUDED,
    FEWEST_REGIONS,
    FEWEST_SUBJECTS,
    INCONCLUSIVE,
    NEITHER,
    NO_PATTERN,
    PATTERN_ONLY,
    SCORE_ONLY,
    UNKNOWN,
    PatternsSection,
    options_of,
)
from lpact.analyses.patterns.jobs import OTHERS
from lpact.analyses.patterns.summaries import BRAIN, MODEL, PAIRWISE, finite
from lpact.config import StudyConfig
from lpact.math.columns import mean_of_finite, median_of_finite
from lpact.math.types import FloatArray
from lpact.measures import MEASURES
from lpact.stats import SubjectTest, compare_with_subjects, pair_means
from lpact.store import frame
from lpact.wording import counted, fixed, number

Row = dict[str, Any]
OF_RANKING = (
    "rank", "best", "equivalent_in_paper", "equivalent", "best_p", "best_bootstrap_p",
)  # fmt: skip
LARGEST = 1.0 - 1e-9
"""Correlations beyond it count as this."""


NO_NOISE = "the model had no noise, but brains do, which can make patterns differ"


def decide(study: StudyConfig, tables: Tables) -> Frames:
    """One verdict per dataset, measure, region and model."""
    return {own.CLAIMS.name: claims(tables, options_of(study))}


def claims(tables: Tables, options: PatternsSection) -> pl.DataFrame:
    """One verdict per place and model."""
    made: list[Row] = []
    every = {
        name: tables[table.name]
        for name, table in (
            ("ranking", own.RANKING), ("ceilings", own.CEILINGS), ("similarities", own.SIMILARITIES),
        )
    }  # fmt: skip
    for place in places(tables, options):
        rows = {name: table.filter(**place.key) for name, table in every.items()}
        models = {"region": place.regions, "source": place.models, "target": place.subjects}
        brains = models | {"source": place.subjects}
        of_kind = {kind: rows["similarities"].filter(kind=kind) for kind in (BRAIN, MODEL)}
        brain = {name: cube(of_kind[BRAIN], name, **brains) for name in ("similarity_without_source", "other_regions")}
        model = {name: cube(of_kind[MODEL], name, **models) for name in ("similarity_without_source", "similarity")}
        scored = of_own_region(place.models_patterns)
        ceiling = {
            name: cube(rows["ceilings"].filter(ceiling=name), "mean", region=place.regions)
            for name in (PAIRWISE, OTHERS)
        }
        ranks = {(r["region"], r["model"]): r for r in rows["ranking"].iter_rows(named=True)}
        symmetric = bool(MEASURES.get(place.measure).symmetric) if place.regions else False
        between = place.between
        if symmetric:
            between = mean_of_finite(np.stack([between, between.swapaxes(1, 2)]))
        for r, region in enumerate(place.regions):
            of_brains = brain["similarity_without_source"][r]
            peculiar = pair_means(of_brains - brain["other_regions"][r])
            shared = pair_means(of_brains)
            difference = float(peculiar.mean)
            here: Row = {
                **place.key,
                "region": region,
                "pairwise": finite(ceiling[PAIRWISE][r]),
                "mean_of_others": finite(ceiling[OTHERS][r]),
                "similarity_of_brains": finite(shared.mean),
                "other_regions": finite(pair_means(brain["other_regions"][r]).mean),
                "pattern_p": finite(shared.p_value),
                "distinct_p": finite(peculiar.p_value),
                "reproduced": bool(shared.p_value <= options.alpha),
                "distinct": bool(peculiar.p_value <= options.alpha),
            }
            for m, name in enumerate(place.models):
                rank = ranks[region, name]
                turing = one_more(between[r], scored[r, m], 1.0, options, symmetric=symmetric)
                pattern = model["similarity_without_source"][r, m]
                bound = options.equivalence_bound * difference
                test = one_more(of_brains, pattern, bound, options)
                by_z = one_more(fisher_z(of_brains), fisher_z(pattern), 1.0, options)
                similar = float(mean_of_finite(pattern))
                row = here | {
                    "model": name,
                    "layer": rank["layer"],
                    "noise": finite(place.noise[m, r]),
                    "score": rank["mean"],
                    "score_low": rank["low"],
                    "score_high": rank["high"],
                    "median_score": rank["median"],
                    **{key: rank[key] for key in OF_RANKING},
                    "turing_p": turing and finite(turing.p_value),
                    "turing_gap": turing and finite(turing.gap),
                    "similarity": finite(similar),
                    "similarity_in_paper": finite(median_of_finite(model["similarity"][r, m])),
                    "share": (
                        finite(1.0 - (float(shared.mean) - similar) / difference)
                        if difference > 0.0
                        else None
                    ),
                    "optimistic": bool(place.optimistic[m]),
                }  # fmt: skip
                made.append(row | verdict(row, test, by_z, place, options))
    return frame(own.CLAIMS, made)


def fisher_z(similarity: FloatArray) -> FloatArray:
    """Fisher's z of correlations: near 1 these are skewed, and tests of one more brain would reject too often."""
    return np.asarray(np.arctanh(np.clip(similarity, -LARGEST, LARGEST)))


def one_more(
    between: FloatArray, model: FloatArray, bound: float, options: PatternsSection, *, symmetric: bool = False,
) -> SubjectTest | None:  # fmt: skip
    """The test whether a model is one more brain; None if too little is defined, or the bound is not above 0."""
    if not bound > 0.0:
        return None
    test = compare_with_subjects(between, model, symmetric=symmetric, bound=bound, alpha=options.alpha, brief=True)
    return None if test.test == "none" else test


def verdict(
    row: Row,
    test: SubjectTest | None,
    by_z: SubjectTest | None,
    place: Place,
    options: PatternsSection,
) -> Row:
    """Test, gates, label and reason of a claim."""
    n_subjects, n_regions = len(place.subjects), len(place.regions)
    made: Row = dict.fromkeys(("gap", "gap_low", "gap_high", "p_value", "bound"))
    made |= {"n_subjects": n_subjects if test is None else test.n}
    made |= {"not_rejected": False, "as_similar": False}
    made["positive"] = row["median_score"] is not None and row["median_score"] > 0.0
    if test is not None and by_z is not None:
        made |= {
            "gap": finite(test.gap),
            "gap_low": finite(test.low),
            "gap_high": finite(test.high),
            "p_value": finite(by_z.p_value),
            "bound": test.bound,
            "not_rejected": bool(by_z.p_value > options.alpha or by_z.gap > 0.0),
            "as_similar": bool(test.low > -test.bound),
        }
    full = row | made
    label = label_of(full)
    return {**made, "label": label, "reason": sentence(full, label, n_regions)}


def label_of(row: Row) -> str:
    """The verdict from the gates."""
    if row["n_subjects"] < FEWEST_SUBJECTS:
        return CANNOT_REJECT
    undefined = row["similarity"] is None or row["similarity_of_brains"] is None
    if row["rank"] is None or undefined or row["other_regions"] is None:
        return UNKNOWN
    if not row["positive"]:
        return EXCLUDED
    if not (row["reproduced"] and row["distinct"]):
        return NO_PATTERN
    if row["gap"] is None:
        return UNKNOWN
    if not row["not_rejected"] and row["noise"] is not None:
        return SCORE_ONLY if row["equivalent"] else NEITHER
    if not (row["not_rejected"] and row["as_similar"]):
        return INCONCLUSIVE  # a model without noise may differ from brains by that alone
    return ALIGNED if row["equivalent"] else PATTERN_ONLY


def sentence(row: Row, label: str, n_regions: int) -> str:
    """The verdict in one sentence."""
    model, region, measure = f"'{row['model']}'", row["region"], row["measure"]
    if label == CANNOT_REJECT:
        return (
            f"With {counted(row['n_subjects'], 'subject')} no test can tell the pattern of {model} from that of a "
            f"brain; at least {FEWEST_SUBJECTS} are needed."
        )
    if label == UNKNOWN:
        if row["rank"] is None:
            return f"Not computed: {model} has no score for {region} by {measure} in some subject."
        if n_regions < FEWEST_REGIONS:
            n = counted(n_regions, "region")
            return f"Not computed: patterns of {n} cannot be correlated; at least {FEWEST_REGIONS} are needed."
        return f"Not computed: the pattern of {model} or of brains for {region} by {measure} is undefined."
    if label == EXCLUDED:
        return f"{model} does not predict {region} by {measure}: its median score is {fixed(row['median_score'])}."
    brains, others = fixed(row["similarity_of_brains"], 2), fixed(row["other_regions"], 2)
    if label == NO_PATTERN and not row["reproduced"]:
        return (
            f"Brains do not share an alignment pattern of {region} by {measure} (similarity {brains}, "
            f"p = {number(row['pattern_p'], 2)}), so {model} has nothing to reproduce."
        )
    if label == NO_PATTERN:
        return (
            f"Brains' patterns of {region} by {measure} are not shown to be closer to each other ({brains}) than to "
            f"those of other regions ({others}; p = {number(row['distinct_p'], 2)}), so {model} has nothing to "
            "reproduce."
        )
    similar, p = fixed(row["similarity"], 2), f"p = {number(row['p_value'], 2)}"
    low, high = (fixed(row[end], 2, sign=True) for end in ("gap_low", "gap_high"))
    gap = f"gap {fixed(row['gap'], 2, sign=True)}, {low} to {high}"
    if row["equivalent"]:
        rank = f"its score is not distinguishable from that of the best model, '{row['best']}'"
        if row["best"] == row["model"]:
            rank = "its score is the highest"
    else:
        rank = f"'{row['best']}' has a higher score"
    if row["noise"] is None:
        rank += f"; {NO_NOISE}"
    compared = f"its pattern is {{}} ({similar}) {{}} brains' are ({brains}; {gap}; {p})"
    less = compared.format("less similar", "than")
    if label in (ALIGNED, PATTERN_ONLY):
        as_similar = compared.format("as similar", "as") + f", within {fixed(row['bound'], 2)}"
        return f"{model} relates to all regions as {region} does by {measure}: {as_similar}; {rank}."
    if label == INCONCLUSIVE and not row["not_rejected"]:
        return f"{model} is not shown to relate to all regions as {region} does by {measure}: {less}; {rank}."
    if label == INCONCLUSIVE:
        return (
            f"{measure} neither tells the pattern of {model} from that of {region} in a brain nor shows it to be as "
            f"similar within {fixed(row['bound'], 2)}: {similar} against {brains} for brains ({gap}; {p}); {rank}."
        )
    return f"{model} does not relate to all regions as {region} does by {measure}: {less}; {rank}."
