"""What alignment patterns conclude, in words and as data, from tables alone."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import polars as pl

from lpact.analyses.base import Material, Rows
from lpact.analyses.explanation import (
    Block,
    Conclusion,
    Criterion,
    Distribution,
    Explanation,
    Gate,
    MethodsPart,
    Outcome,
)
from lpact.analyses.patterns import tables
from lpact.analyses.patterns.config import (
    ALIGNED,
    CANNOT_REJECT,
    EXCLUDED,
    FEWEST_SUBJECTS,
    GATES,
    INCONCLUSIVE,
    LABELS,
    MEAN,
    NEITHER,
    NO_PATTERN,
    PATTERN_ONLY,
    SCORE_ONLY,
    UNKNOWN,
    PatternsSection,
    models_of,
    options_of,
)
from lpact.analyses.patterns.summaries import ALIKE, FOLLOWS, PAIRWISE, RELIABILITY, follows_targets
from lpact.analyses.patterns.verdicts import NO_NOISE
from lpact.config import StudyConfig
from lpact.report.methods import cite
from lpact.wording import MISSING, counted, fixed, listed, number, p_value, percent

PLACE = ["dataset", "measure", "region"]
OUTCOMES = {
    ALIGNED: ("A", "At least one model relates to all regions as some region of the brain does."),
    PATTERN_ONLY: ("P", "Patterns are reproduced only by models that are not among the best."),
    INCONCLUSIVE: ("I", "For at least one model and region the data are inconclusive."),
    NO_PATTERN: ("N", "No model reproduces a pattern, or there is none that brains share."),
}
"""Code and meaning of the study, by its strongest label; those that are not here count as the next that is."""
NOTHING = ("U", "No pattern could be compared.")
CEILINGS = (PAIRWISE, "leave_one_out_mean")
PREDICTABILITY = {RELIABILITY: "reliability of the targets", PAIRWISE: "brain–brain ceiling"}
MEANINGS = (
    "`pairwise`: each subject predicted from every other one, as by one more brain (lower ceiling of Hoefling et al.).",
    "`leave_one_out_mean`: from the mean of the others (upper ceiling of Hoefling et al., lower one of rsatoolbox).",
    "Scores of models are without noise, so they can be above ceilings of noisy brains.",
)
NOISY = (
    "The model would have to be compared with noise like that of brains, which takes repeated test stimuli and "
    'patterns.model_trials = "matched".'
)
TRIALS = {
    "matched": "Patterns of models were those of features with normal noise, matched to the split-half reliability of "
    "the region and to the number of trials in a typical subject, where subjects had repeated test stimuli.",
    "none": "Models had no noise.",
}
CAVEATS = (
    "A model whose pattern is that of a region cannot be told from a brain by this measure, these regions and these "
    "stimuli. It is not shown to be a brain, nor to compute what the region computes.",
    "Verdicts have no multiple-testing correction over models, regions and measures.",
    "Subjects are a random sample; stimuli and regions are not.",
)
AVERAGE_BRAIN = (
    "A score above the ceiling of pairs may be that of an average brain, which is closer to each brain than single "
    "brains are."
)


# --- the study ------------------------------------------------------------------------------------


def conclusion(material: Material) -> Conclusion:
    """Which models reproduce the pattern of which regions, and what limits this."""
    claims = material.table(tables.CLAIMS.name)
    if claims.is_empty():
        lacks = material.table(tables.UNAVAILABLE.name)["detail"].unique(maintain_order=True)
        return Conclusion("patterns", "Nothing could be compared.", tuple(lacks), (Outcome(*NOTHING),))
    parts = _by_measure(claims)
    headline = " ".join(_aligned(own) for own in parts)
    why = [
        *map(_counts, parts),
        *_equivalence(material),
        *_structure(material),
        *warnings(material),
    ]
    code = next((c for label, c in OUTCOMES.items() if label in _strength(claims)), NOTHING)
    return Conclusion("patterns", headline, tuple(why), (Outcome(*code),))


def _strength(claims: pl.DataFrame) -> set[str]:
    weak = {SCORE_ONLY, NEITHER, EXCLUDED}
    return {NO_PATTERN if label in weak else label for label in claims["label"]}


def _by_measure(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Rows of every dataset and measure."""
    return rows.partition_by("dataset", "measure", maintain_order=True) if rows.height else []


def _by(own: pl.DataFrame) -> str:
    return f"{own['dataset'][0]}, {own['measure'][0]}"


def _aligned(claims: pl.DataFrame) -> str:
    """Models that are aligned with some region, by one measure."""
    found = claims.filter(label=ALIGNED)
    n, k = claims["model"].n_unique(), claims["region"].n_unique()
    if found.is_empty():
        return f"{_by(claims)}: no model of {n} is aligned with any of {counted(k, 'region')}."
    named = [
        f"'{model}' ({listed(own['region'].to_list())})"
        for (model,), own in found.group_by(["model"], maintain_order=True)
    ]
    of, verb = counted(n, "model"), "is" if len(named) == 1 else "are"
    return f"{_by(claims)}: {len(named)} of {of} {verb} aligned with regions: {listed(named, joint='; ')}."


def _counts(claims: pl.DataFrame) -> str:
    """Number of claims of every label, by one measure."""
    counts = {label: int((claims["label"] == label).sum()) for label in LABELS}
    said = ", ".join(f"{k} {label}" for label, k in counts.items() if k)
    return f"{_by(claims)}: of {counted(claims.height, 'model and region', 'pairs of model and region')}: {said}."


def _equivalence(material: Material) -> list[str]:
    """How well each measure tells models apart."""
    classes = material.table(tables.CLASSES.name).filter(pl.col("region") != MEAN, pl.col("n_models") > 1)
    made = []
    for own in _by_measure(classes):
        apart = percent(sum(own["n_pairs_apart"]) / max(1, sum(own["n_pairs"])), 2)
        n_models = max(own["n_models"])
        made.append(
            f"{_by(own)}: {_mean(own['n_equivalent'])} of {n_models} models could be the best of a region "
            f"(mean over regions; {_mean(own['n_equivalent_in_paper'])} as in the paper), and {apart} of "
            "pairs of models have different scores."
        )
    return made


def _mean(values: pl.Series) -> str:
    return fixed(fmean(values), 1)


def _structure(material: Material) -> list[str]:
    """Where patterns follow structural connectivity."""
    found = material.table(tables.STRUCTURE.name).drop_nulls("q_higher")
    made = []
    for own in _by_measure(found):
        names = own.filter("significant")["region"].to_list()
        said = f": {listed(names)}" if names else ""
        made.append(
            f"{_by(own)}: the patterns of {len(names)} of {counted(own.height, 'region')} follow structural "
            f"connectivity{said}."
        )
    return made


def warnings(material: Material) -> list[str]:
    """What limits the verdicts of this run."""
    claims = material.table(tables.CLAIMS.name)
    made = [*_predictable(material)]
    above = claims.filter(pl.col("turing_gap") > 0, pl.col("turing_p") <= options_of(material.config).alpha)
    if above.height:
        made.append(AVERAGE_BRAIN)
    plain = claims.filter(pl.col("noise").is_null(), pl.col("gap").is_not_null())
    if plain.height:
        made.append(
            f"In {counted(plain.height, 'claim')} models have no noise, but brains do: a pattern that is less similar "
            "than brains' are then is inconclusive."
        )
    if claims["optimistic"].any():
        made.append("Layers are chosen by test scores, which is optimistic; see patterns.layer_choice.")
    lost = material.table(tables.SUBJECTS.name).filter(pl.col("n_own") > 0)
    if lost.height:
        made.append(
            f"Stimuli that some subject lacks are not used: up to {max(lost['n_own'])} per subject; see "
            "patterns/subjects."
        )
    undefined = int((claims["label"] == UNKNOWN).sum())
    if undefined:
        made.append(f"{counted(undefined, 'claim')} could not be computed; the column `reason` says why.")
    return made


def _predictable(material: Material) -> list[str]:
    """Measures whose patterns are those of the targets' predictability."""
    made = []
    for own in _by_measure(material.table(tables.DIAGNOSTICS.name)):
        found = [row for row in own.iter_rows(named=True) if follows_targets(row)]
        if not found:
            continue
        regions = listed([row["region"] for row in found])
        what = PREDICTABILITY[found[0]["predictability"]]
        median = pl.DataFrame(found).select(pl.col("targets", "other_regions").median()).row(0)
        made.append(
            f"{_by(own)}: the patterns of {len(found)} of {counted(own.height, 'region')} ({regions}) follow the "
            f"{what} (median r = {fixed(median[0], 2)}) and resemble those of other regions (median r = "
            f"{fixed(median[1], 2)}): they show how predictable targets are rather than how regions relate."
        )
    return made


def result_blocks(material: Material) -> list[Block]:
    """Rankings, regions, what patterns follow, and the limits of the method."""
    claims, ranking = (material.table(own.name) for own in (tables.CLAIMS, tables.RANKING))
    order = pl.col("rank").fill_null(ranking.height)
    means = ranking.filter(region=MEAN).sort("dataset", "measure", order, maintain_order=True)
    ranks = tuple(
        (row["dataset"], row["measure"], number(row["rank"]), row["model"], fixed(row["mean"]),
         _range(row["low"], row["high"]), fixed(row["fraction_of_pairwise"], 2), _yes(row["equivalent"]),
         _yes(row["equivalent_in_paper"]))
        for row in means.iter_rows(named=True)
    )  # fmt: skip
    titles = ("rank", "score", "interval", "of brain pairs")
    columns = ("dataset", "measure", "rank", "model", *titles[1:], "could be best", "in the paper")
    return [
        Block("Ranking, mean over regions", (), columns, ranks, frozenset(titles)),
        _regions(material, claims),
        _follows(material),
        Block("Limits", CAVEATS),
    ]


def _regions(material: Material, claims: pl.DataFrame) -> Block:
    """The best models of every region, its ceilings, and who is aligned with it."""
    classes = material.table(tables.CLASSES.name).filter(pl.col("region") != MEAN)
    ceilings = material.table(tables.CEILINGS.name)
    rows = []
    for row in classes.iter_rows(named=True):
        at = {name: row[name] for name in PLACE}
        bounds = dict(ceilings.filter(**at).select("ceiling", "mean").iter_rows())
        own = claims.filter(**at)
        best = own.filter(model=row["best"])["score"]
        scores = (best[0] if best.len() else None, *map(bounds.get, CEILINGS))
        could = f"{row['n_equivalent']} of {row['n_models']}"
        aligned = listed(own.filter(label=ALIGNED)["model"].to_list())
        rows.append((*at.values(), row["best"], *map(fixed, scores), could, aligned or MISSING))
    titles = ("score", *CEILINGS, "could be best")
    columns = (*PLACE, "best model", *titles, "aligned")
    return Block("Regions", MEANINGS, columns, tuple(rows), frozenset(titles))


def _follows(material: Material) -> Block:
    """What the pattern of every region follows."""
    structure = material.table(tables.STRUCTURE.name)
    rows = []
    for row in material.table(tables.DIAGNOSTICS.name).iter_rows(named=True):
        at = {name: row[name] for name in PLACE}
        found = structure.filter(**at)
        numbers = found.select("similarity", "q_higher").row(0) if found.height else (None, None)
        values = (fixed(row[name], 2) for name in ("own_region", "other_regions", "targets"))
        rows.append((*at.values(), *values, fixed(numbers[0], 2), p_value(numbers[1])))
    titles = ("other brains", "other regions", "predictability", "structure", "structure q")
    said = (
        "Correlation of a region's pattern with that of other brains, with those of other regions, with the "
        "predictability of the targets, and with structural connectivity.",
    )
    return Block("What patterns follow", said, (*PLACE, *titles), tuple(rows), frozenset(titles))


def _range(low: float | None, high: float | None) -> str:
    return MISSING if low is None else f"{fixed(low)} to {fixed(high)}"


def _yes(value: bool | None) -> str:
    return "yes" if value else "no"


# --- one claim ------------------------------------------------------------------------------------


def explain_claim(config: StudyConfig, rows: Rows, claim: Mapping[str, Any]) -> Explanation:
    """Scores, patterns, tests and gates of one claim."""
    options = options_of(config)
    row = rows(tables.CLAIMS.name, **claim).row(0, named=True)
    place = {name: claim[name] for name in PLACE}
    noise = "" if row["noise"] is None else ", with noise,"
    facts = {
        "score of the model": row["score"],
        "interval of the score": _interval(row, "score"),
        "rank": row["rank"],
        "best model": row["best"],
        "ceiling of pairs (the paper's lower)": row["pairwise"],
        "ceiling of the others' mean (the paper's upper, rsatoolbox's lower)": row["mean_of_others"],
        f"p-value that the score{noise} is one more brain's": row["turing_p"],
        f"score{noise} minus that of brains": row["turing_gap"],
        "layer": row["layer"],
        "noise of a trial given to the model, relative to its signal": row["noise"],
        "pattern similarity of the model": row["similarity"],
        "pattern similarity of brains": row["similarity_of_brains"],
        "brains' similarity to patterns of other regions": row["other_regions"],
        "share of brains' similarity beyond other regions": row["share"],
        "pattern similarity of the model, as in the paper": row["similarity_in_paper"],
        "gap": row["gap"],
        "interval of the gap": _interval(row, "gap"),
        "equivalent to the best, as in the paper": row["equivalent_in_paper"],
        "subjects": row["n_subjects"],
    }  # fmt: skip
    gates = () if row["label"] in (UNKNOWN, CANNOT_REJECT) else _gates(row, rows, place, options)
    at = {**place, "source": claim["model"], "kind": "model"}
    return Explanation(
        "patterns",
        claim,
        "",
        row["label"],
        LABELS[row["label"]],
        row["reason"],
        facts=tuple((name, value) for name, value in facts.items() if value is not None),
        gates=gates,
        what_would_change=_what_would_change(row, options),
        rows=(
            (tables.CLAIMS.name, claim),
            (tables.SCORES.name, claim),
            (tables.RANKING.name, place),
            (tables.CEILINGS.name, place),
            (tables.SIMILARITIES.name, at),
            (tables.DIAGNOSTICS.name, place),
        ),
    )


def _interval(row: Mapping[str, Any], name: str) -> str | None:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return None if low is None else _range(low, high)


def _gates(row: Mapping[str, Any], rows: Rows, place: Mapping[str, Any], options: PatternsSection) -> tuple[Gate, ...]:
    alpha, n = options.alpha, row["n_subjects"]
    score = Criterion(
        "median_score", "Median score over subjects.", row["median_score"], ">", 0.0, row["positive"], n,
        distributions=(_dots("Scores", "score", rows(tables.SCORES.name, model=row["model"], **place), "value",
                             row["pairwise"], "ceiling of pairs"),),
    )  # fmt: skip
    found = rows(tables.SIMILARITIES.name, **place)
    brains, own = found.filter(kind="brain"), found.filter(kind="model", source=row["model"])
    column = "similarity_without_source"
    similar = row["similarity_of_brains"]
    of_brains = _dots(
        "Brains",
        "pattern similarity",
        brains,
        column,
        row["other_regions"],
        "patterns of other regions",
    )
    of_model = _dots("Model", "pattern similarity", own, column, similar, "brains")
    pattern = Criterion(
        "pattern_p", f"Patterns of brains correlate by {fixed(similar)}; p-value over subjects.",
        row["pattern_p"], "<=", alpha, row["reproduced"], n, "0", distributions=(of_brains,),
    )  # fmt: skip
    distinct = Criterion(
        "distinct_p", f"They correlate by {fixed(similar)} with the pattern of the region, by "
        f"{fixed(row['other_regions'])} with those of others; p-value over subjects.", row["distinct_p"], "<=", alpha,
        row["distinct"], n, "other regions",
    )  # fmt: skip
    every = rows(tables.DIAGNOSTICS.name, dataset=place["dataset"], measure=place["measure"])
    follows = _follows_targets(every, place["region"])
    gap = fixed(row["gap"], sign=True)
    noise = "" if row["noise"] is not None else f" For information: {NO_NOISE}."
    rejection = Criterion(
        "p_value", f"The gap is {gap}; two-sided p-value that the pattern is one more brain's. Only less similar "
        f"patterns are rejected.{noise}", row["p_value"], ">", alpha, row["not_rejected"], n, "brains",
        distributions=(of_model,),
    )  # fmt: skip
    bound = None if row["bound"] is None else -row["bound"]
    loss = Criterion(
        "gap_low", f"Lower end of the gap's interval; the bound is {percent(options.equivalence_bound)} of brains' "
        "similarity beyond other regions.", row["gap_low"], ">=", bound, row["as_similar"], n, "the bound",
    )  # fmt: skip
    best = Criterion(
        "best_p", f"P-value that it is the best model; '{row['best']}' has the highest score.", row["best_p"],
        ">", alpha, row["equivalent"], n, "the best model",
    )  # fmt: skip
    return (
        Gate("positive", "V", GATES["V"], row["positive"], (score,)),
        Gate("reproduced", "R", GATES["R"], row["reproduced"], (pattern,)),
        Gate("distinct", "D", GATES["D"], row["distinct"], (distinct, *follows)),
        Gate("not rejected", "N", GATES["N"], row["not_rejected"], (rejection,)),
        Gate("as similar", "E", GATES["E"], row["as_similar"], (loss,)),
        Gate("among the best", "B", GATES["B"], row["equivalent"], (best,)),
    )


def _follows_targets(every: pl.DataFrame, region: str) -> tuple[Criterion, ...]:
    """Whether the region's pattern is a profile of its targets, for information."""
    row = every.row(by_predicate=pl.col("region") == region, named=True)
    if row["targets"] is None or row["other_regions"] is None:
        return ()
    alike = row["other_regions"] >= ALIKE
    sentence = (
        f"Correlation of the region's pattern with the {PREDICTABILITY[row['predictability']]}; with the patterns of "
        f"other regions it is {fixed(row['other_regions'])}. From {FOLLOWS} and {ALIKE} on, a pattern shows how "
        "predictable targets are rather than how regions relate."
    )
    return (
        Criterion(
            "follows_targets", sentence, row["targets"], "<", FOLLOWS if alike else None, not follows_targets(row),
            every.height, decisive=False,
        ),
    )  # fmt: skip


def _dots(
    title: str, unit: str, rows: pl.DataFrame, column: str, bound: float | None, compared_with: str
) -> Distribution:
    """One dot per subject, or pair of subjects."""
    known = rows.drop_nulls(column)
    pair = "kind" in rows.columns and (rows["kind"] == "brain").any()
    labels = known["target"] if not pair else known["source"] + " → " + known["target"]
    return Distribution(
        title, unit, tuple(known[column]), tuple(labels), rows.height - known.height, "pair" if pair else "subject",
        bound=bound, compared_with=compared_with,
    )  # fmt: skip


def _what_would_change(row: Mapping[str, Any], options: PatternsSection) -> tuple[str, ...]:
    alpha, bound = f"{options.alpha:g}", fixed(row["bound"])
    similar = f"The pattern would have to be as similar as brains' are: p > {alpha}, now {number(row['p_value'])}."
    better = f"No other model may have significantly higher scores: p > {alpha}, now {number(row['best_p'])}."
    sure = (
        f"The loss of similarity would have to be below {bound} with its interval, now "
        f"{_range(row['gap_low'], row['gap_high'])}: more subjects, stimuli or trials."
    )
    return {
        ALIGNED: (f"Nearest to failing: p = {number(row['p_value'])} of one more brain, and p = "
                  f"{number(row['best_p'])} of the best model.",),
        PATTERN_ONLY: (better,),
        INCONCLUSIVE: (
            sure if row["not_rejected"] else NOISY,
            *(() if row["equivalent"] else (better,)),
        ),
        SCORE_ONLY: (similar,),
        NEITHER: (similar, better),
        NO_PATTERN: ("Brains would have to share a pattern that is the region's own: more trials or stimuli, another "
                     "measure, or other regions.",),
        EXCLUDED: ("The model would have to predict the region in more than half of the subjects.",),
        CANNOT_REJECT: (f"More subjects: at least {FEWEST_SUBJECTS}.",),
        UNKNOWN: ("The sources would have to offer responses and features that vary.",),
    }[row["label"]]  # fmt: skip


# --- Methods --------------------------------------------------------------------------------------


def methods_parts(study: StudyConfig) -> list[MethodsPart]:
    """Populations, scores, ceilings, patterns and tests."""
    options = options_of(study)
    test = (
        f"Stimuli of {listed(options.test_stories)} were test stimuli."
        if options.test_stories
        else f"{len(options.test_stimuli):,} named stimuli were test stimuli."
        if options.test_stimuli
        else "Stimuli of the story 'test' were test stimuli, or else the last "
        f"{percent(options.test_share)}, after a gap of {options.gap_events}."
    )
    folds = (
        f"cross-validated in {options.layer_folds} contiguous folds" if options.layer_folds
        else "their leave-one-out score"
    )  # fmt: skip
    layers = {
        "training": " For each region, the layer of a model with the highest mean score over subjects on training "
        f"stimuli (fitted measures: {folds}) was used.",
        "best_on_test": " The layer with the best test score was used, which is optimistic.",
    }[options.layer_choice]
    several = any(len(own.layers) > 1 for own in study.models if own.name in models_of(study))
    pairs = (
        f"from {options.pairs_per_target} others, drawn at random" if options.pairs_per_target
        else "from every other subject (all ordered pairs)"
    )  # fmt: skip
    made = [
        MethodsPart(
            "Scores",
            (
                "Regions were populations of units, centred and scaled by training stimuli. "
                f"{test} Models were compared with every region of every subject by "
                f"{', '.join(options.measures)}, fitted on training stimuli where the measure is fitted, and scored on "
                f"test stimuli{cite('hoefling2026')}.{layers if several else ''}",
                f"Ceilings predict each subject {pairs}, or from the mean of the others. A model could be the best one "
                "unless paired t-tests over subjects, with Bonferroni's correction for the number of models, find a "
                f"better one at {options.alpha:g}.",
            ),
        ),
        MethodsPart(
            "Alignment patterns",
            (
                "The pattern of a source is its scores with all regions of a subject. It was correlated with the mean "
                "pattern of all pairs of brains without that subject and without the source.",
                TRIALS[options.model_trials],
                "A model's pattern was compared with those of brains by Student's t for one new subject, of Fisher's z "
                f"of the correlations, at {options.alpha:g}, and called as similar if the interval of the gap excludes "
                f"a loss of {percent(options.equivalence_bound)} of brains' similarity beyond that to other regions.",
            ),
        ),
    ]
    if options.connectivity:
        made.append(
            MethodsPart(
                "Structural connectivity",
                (
                    "The mean pattern of brains, without the region itself, was correlated with the region's "
                    f"structural connectivity, and compared with {options.structure_draws} patterns of regions drawn "
                    f"from the whole matrix; one-sided p-values were corrected over regions{cite('benjamini1995')}.",
                ),
            )
        )
    return made
