"""What the Turing test concludes, in words and as data, from tables alone."""

from __future__ import annotations

from collections.abc import Mapping
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
from lpact.analyses.turing import summaries, tables
from lpact.analyses.turing.config import (
    ABOVE,
    BELOW,
    CANNOT_REJECT,
    CONVERGES,
    GATES,
    INCONCLUSIVE,
    LABELS,
    LABELS_POOLED,
    NO_AGREEMENT,
    PAIRED,
    UNKNOWN,
    TuringSection,
    models_of,
    options_of,
    short,
)
from lpact.analyses.turing.jobs import BRAIN, POOLED, TRIALS
from lpact.config import StudyConfig
from lpact.measures import MEASURES
from lpact.report.methods import cite
from lpact.wording import counted, fixed, listed, number, p_value, percent

TESTS = {"none": "a test"} | {own: f"the {own} test" for own in ("exact", "approximate", "paired")}
CODES = {CONVERGES: "C", ABOVE: "A", INCONCLUSIVE: "I", BELOW: "B"}
MEANINGS = {
    "C": "At least one model cannot be told from a brain, by some measure on these data.",
    "A": "No model converges; at least one is closer to brains than they are to each other.",
    "I": "For at least one model the data are inconclusive.",
    "B": "Every model is further from brains than they are from each other.",
    "U": "No model could be tested.",
}
MEANINGS_POOLED = MEANINGS | {
    "C": "At least one model scores as high as all other brains together, by some measure on these data.",
    "A": "No model converges; at least one scores higher than all other brains together.",
    "B": "Every model scores lower than all other brains together.",
}
PASSES = (
    "A model that passes cannot be told from a brain by this measure on these data. It is not shown to be a "
    "brain: another measure, more subjects or other stimuli may reveal a difference."
)
PASSES_POOLED = (
    "A model that passes scores as high as all other brains together by this measure on these data; single brains "
    "were not compared."
)
CAVEATS = (
    "Verdicts have no multiple-testing correction over models, regions, time points and measures.",
    "Subjects are a random sample, stimuli are not: the test says nothing about other stimuli.",
)
AVERAGE_BRAIN = "A model above the brains may be an average brain: it is closer to each brain than single brains are."
LOW_RELIABILITY = 0.5
"""Reliability of the mean over trials. Below it, a mean of ratios with noisy denominators can be clearly too high."""
NEW_STIMULI = "a model reaches brain–brain agreement. To separate such models, use new stimuli or a stricter measure."


def conclusion(material: Material) -> Conclusion:
    """One sentence per model, and what limits them."""
    claims = in_order(material)
    labels = claims["label"].to_list()
    code = next((CODES[own] for own in (CONVERGES, ABOVE, INCONCLUSIVE, BELOW) if own in labels), "U")
    said = of_models(claims)
    headline = " ".join(said) or "Nothing could be tested."
    why = tuple(claims["reason"]) if claims.height <= len(said) else ()
    if claims.is_empty():
        why = tuple(material.table(tables.UNAVAILABLE.name)["detail"].unique(maintain_order=True))
    why = (*why, *warnings(material))
    meanings = MEANINGS_POOLED if _pooled(claims) else MEANINGS
    return Conclusion("turing", headline, why, (Outcome(code, meanings[code]),))


def _pooled(claims: pl.DataFrame) -> bool:
    """Whether each brain was compared with all others together."""
    return bool((claims["test"] == PAIRED).any())


def in_order(material: Material) -> pl.DataFrame:
    """All claims, by dataset, region, time and measure, with models in the order of the study."""
    claims = material.table(tables.CLAIMS.name)
    rank = {name: i for i, name in enumerate(models_of(material.config))}
    at = pl.col("model").replace_strict(rank, default=len(rank), return_dtype=pl.Int64)
    return claims.sort("dataset", "region", "lag_ms", "measure", at, "model")


def of_models(claims: pl.DataFrame) -> list[str]:
    """One sentence per model."""
    found = claims.group_by(["model"], maintain_order=True)
    return [_of_model(model, rows) for (model,), rows in found]


def _of_model(model: str, rows: pl.DataFrame) -> str:
    """One sentence about a model at all places."""
    n = rows.height
    test = PAIRED if PAIRED in rows["test"] else ""
    counts = {label: int((rows["label"] == label).sum()) for label in LABELS}
    found = [(label, k) for label, k in counts.items() if k]
    if len(found) == 1:
        label = found[0][0]
        each = "any of" if label in (CANNOT_REJECT, NO_AGREEMENT, UNKNOWN) else "all"
        where = f" by {rows['measure'][0]} on these data" if n == 1 else f" in {each} {n} comparisons"
        return f"'{model}' {short(label, test)}{where}."
    parts = "; ".join(f"{short(label, test)} in {k}" for label, k in found)
    return f"'{model}', {n} comparisons: {parts}."


def warnings(material: Material) -> list[str]:
    """What limits the verdicts of this run."""
    claims = material.table(tables.CLAIMS.name)
    made = []
    if (claims["label"] == ABOVE).any():
        made.append(AVERAGE_BRAIN)
    saturated = claims.filter("saturated").select(summaries.PLACE).n_unique()
    if _pooled(claims):
        made.append("Each brain was compared with all others together, which usually score higher than a single brain.")
    if saturated:
        n = claims.select(summaries.PLACE).n_unique()
        made.append(f"Saturated in {saturated} of {counted(n, 'place')}: {NEW_STIMULI}")
    growing = material.table(tables.GROWTH_FITS.name).filter(verdict=summaries.GROWING)
    for over, of in growing.group_by(["over"], maintain_order=True):
        made.append(
            f"Brain–brain agreement still grows with {over[0]} in {counted(of.height, 'place')}: the bound would "
            "be higher with more data."
        )
    plain = claims.filter(~pl.col("corrected"), pl.col("score").is_not_null())
    if plain.height:
        which = listed(plain["measure"].unique(maintain_order=True).to_list())
        made.append(f"Not corrected for noise: {which}. The table turing/pairs says why.")
    pairs = material.table(tables.PAIRS.name)
    corrected = pairs.filter("corrected", pl.col("kind").is_in([BRAIN, POOLED]))
    reliability = corrected.group_by(summaries.PLACE).agg(pl.col("reliability_target").median())
    if low := reliability.filter(pl.col("reliability_target") < LOW_RELIABILITY).height:
        made.append(
            f"Reliability is below {LOW_RELIABILITY:g} in {counted(low, 'place')}: corrected scores of brains and "
            "models may be too high there."
        )
    noisy = set(pairs.filter(kind=TRIALS)["measure"])
    if without := [m for m in pairs["measure"].unique(maintain_order=True) if m not in noisy]:
        made.append(
            f"By {listed(without)}, models have no noise but brains do: models may look closer or further than they "
            "are."
        )
    answered = claims.filter("corrected")["measure"].unique(maintain_order=True)
    if answers := [m for m in answered if MEASURES.get(m).behavioural]:
        made.append(
            f"By {listed(answers)}, a model's single answers count as noise-free: give the proportion of every answer "
            "over many runs."
        )
    if options_of(material.config).estimator == "as_printed" and claims["corrected"].any():
        made.append(
            "Scores of brains and models are too low: the estimator as_printed divides scores of half of the trials "
            "by reliabilities of all trials."
        )
    if claims["optimistic"].any():
        made.append("Layers or folds are chosen in an optimistic way; see turing.layer_choice and turing.split_by.")
    instances = material.table(tables.INSTANCES.name).drop_nulls("p_spread")
    made += [_of_instances(row) for row in instances.iter_rows(named=True)]
    present = material.table(tables.SUBJECTS.name).group_by("dataset", maintain_order=True)
    compared = pairs.filter(pl.col("n_stimuli") > 0).group_by("dataset").agg(pl.min("n_stimuli"))
    counts = present.agg(most=pl.max("n_stimuli")).join(compared, on="dataset", maintain_order="left")
    for name, most, fewest in counts.filter(pl.col("n_stimuli") < pl.col("most")).iter_rows():
        made.append(
            f"Dataset '{name}': only {fewest} of {counted(most, 'stimulus', 'stimuli')} could be compared everywhere, "
            "since subjects lack the others; see turing/subjects and turing/pairs."
        )
    fewer = claims.filter(pl.col("n_left_out") > 0)
    if fewer.height:
        most = fewer.select(pl.max("n_left_out")).item()
        made.append(
            f"Subjects with an undefined value are left out of tests: up to {most} in "
            f"{counted(fewer.height, 'comparison')}; see n_left_out of turing/claims."
        )
    scores = material.table(tables.SCORES.name)
    if undefined := int(scores["n_undefined"].sum()):
        share = undefined / int(scores["n_values"].sum())
        made.append(
            f"{undefined:,} values ({percent(share)}) are undefined and left out of means; turing/pairs says where."
        )
    return made  # fmt: skip


def _of_instances(row: Mapping[str, Any]) -> str:
    """Do instances of a model vary as brains do?"""
    where = " / ".join(str(row[name]) for name in summaries.PLACE)
    return (
        f"{where}: the {len(row['of_instances'])} instances of '{row['group']}' have a standard deviation of "
        f"{fixed(row['sd_instances'])}, brains of {fixed(row['sd_brains'])} (equal spread: p = "
        f"{number(row['p_spread'])}; equal means: p = {number(row['p_mean'])}; smallest possible p = "
        f"{number(row['smallest_p'])})."
    )


def result_blocks(material: Material) -> list[Block]:
    """Every verdict with its numbers, the tests of the paper, and the limits of the method."""
    claims = material.table(tables.CLAIMS.name)
    rows = tuple(
        (*(row[name] for name in summaries.PLACE), row["model"], fixed(row["score"]), fixed(row["between"]),
         fixed(row["fraction_of_between"], 2), p_value(row["p_value"]), p_value(row["equivalence_p"]), row["label"])
        for row in claims.iter_rows(named=True)
    )  # fmt: skip
    titles = ("score", "between brains", "fraction", "p", "p equivalent")
    columns = (*summaries.PLACE, "model", *titles, "verdict")
    paper = tuple(
        (*(row[name] for name in summaries.PLACE), row["model"], p_value(row["rank_sum_p"]), p_value(row["ks_p"]),
         "converges" if row["converges_in_paper"] else "does not converge",
         f"{fixed(row['rank_sum_false_alarms'], 2)} / {fixed(row['ks_false_alarms'], 2)}")
        for row in claims.drop_nulls("rank_sum_p").iter_rows(named=True)
    )  # fmt: skip
    tests = ("rank-sum p", "KS p", "in the paper", "false alarms at 0.05")
    said = ("These tests treat pairs as independent, although pairs share subjects: false alarms are how often they "
            "reject one more brain. In the paper, a model converges if the rank-sum test does not reject it.",
           )  # fmt: skip
    return [
        Block("Is the model as close to a brain as brains are to each other?", (), columns, rows, frozenset(titles)),
        Block("Tests of Feather et al. (2025)", said, (*summaries.PLACE, "model", *tests), paper, frozenset(tests[:2])),
        Block("Limits", (PASSES_POOLED if _pooled(claims) else PASSES, *CAVEATS)),
    ]  # fmt: skip


# --- one claim ------------------------------------------------------------------------------------


def explain_claim(config: StudyConfig, rows: Rows, claim: Mapping[str, Any]) -> Explanation:
    """Scores, tests and gates of one claim."""
    options = options_of(config)
    row = rows(tables.CLAIMS.name, **claim).row(0, named=True)
    place = {name: claim[name] for name in summaries.PLACE}
    facts = {
        "score of the model": row["score"],
        "score of the model without noise": row["score_without_noise"],
        "score between brains": row["between"],
        "fraction of the score between brains (both above chance)": row["fraction_of_between"],
        "position": row["position"],
        "gap": row["gap"],
        "interval of the gap": summaries.interval(row),
        "test": row["test"] if row["test"] != "none" else None,
        "smallest p-value that the test can give": row["smallest_p"],
        "smallest gap detected with a probability of 0.8": row["detectable_gap"],
        "subjects": row["n_subjects"],
        "subjects with an undefined value, left out of the test": row["n_left_out"] or None,
        "share of variance between pairs due to subjects": row["subject_share"],
        "layers": ", ".join(map(str, dict.fromkeys(row["layers"]))),
        "corrected for noise": row["corrected"],
        "undefined values": f"{row['n_undefined']} of {row['n_values']}",
        "rank-sum test, as in the paper": _in_paper(row, "rank_sum"),
        "Kolmogorov–Smirnov test, as in the paper": _in_paper(row, "ks"),
        "benchmark saturated": row["saturated"],
    }  # fmt: skip
    meaning = (LABELS_POOLED if row["test"] == PAIRED else LABELS)[row["label"]]
    gates = () if row["label"] == UNKNOWN else _gates(row, rows, claim, place, options)
    return Explanation(
        "turing",
        claim,
        "",
        row["label"],
        meaning,
        row["reason"],
        facts=tuple((name, value) for name, value in facts.items() if value is not None),
        gates=gates,
        what_would_change=_what_would_change(row, options),
        rows=(
            (tables.CLAIMS.name, claim),
            (tables.SCORES.name, place),
            (tables.PAIRS.name, place),
            (tables.GROWTH_FITS.name, place),
        ),
    )


def _in_paper(row: Mapping[str, Any], test: str) -> str | None:
    if row[f"{test}_p"] is None:
        return None
    said, rate = f"p = {number(row[f'{test}_p'])}", row[f"{test}_false_alarms"]
    return said if rate is None else f"{said}; false alarms {fixed(rate, 2)} at 0.05"


def _gates(
    row: Mapping[str, Any],
    rows: Rows,
    claim: Mapping[str, Any],
    place: Mapping[str, Any],
    options: TuringSection,
) -> tuple[Gate, ...]:
    alpha, n = options.alpha, row["n_subjects"]
    pairs = rows(tables.PAIRS.name, **place).filter(pl.col("kind").is_in([BRAIN, POOLED]))
    pairs = pairs.drop_nulls("value")
    between = Distribution(
        "Brains", "agreement", tuple(pairs["value"]),
        tuple(f"{s} → {t}" for s, t in pairs.select("source", "target").iter_rows()),
        kind="pair", observed=row["score"], marks=(("between brains", row["between"]),),
        note="One value per pair of brains; the model's own score is marked.",
    )  # fmt: skip
    models = rows(tables.MODEL_PAIRS.name, model=claim["model"], **place)
    models = models.filter(kind=summaries.tested_kind(models)).drop_nulls("value")
    targets = Distribution(
        "Model", "agreement", tuple(models["value"]), tuple(models["target"]), kind="subject",
        bound=row["between"], compared_with="brains", note="One value per subject.",
    )  # fmt: skip
    gap = fixed(row["gap"], sign=True)
    null = "the gap is 0" if row["test"] == PAIRED else "the model is one more brain"
    agreement = Criterion(
        "agreement", f"Brains agree by {fixed(row['between'])}; p-value over subjects (at least 3) that they do not.",
        row["agreement_p"], "<=", alpha, row["agrees"], n, "no agreement", distributions=(between,),
    )  # fmt: skip
    possible = Criterion(
        "smallest_p", f"Smallest p-value of {TESTS[row['test']]} with {counted(n, 'subject')}.",
        row["smallest_p"], "<=", alpha, row["could_reject"], n,
    )  # fmt: skip
    rejection = Criterion(
        "p_value", f"The gap is {gap}; p-value that {null}.", row["p_value"], ">", alpha,
        row["not_rejected"], n, "brains", distributions=(targets,),
    )  # fmt: skip
    power = Criterion(
        "power", f"Probability of detecting a gap of {fixed(row['bound'])}.", row["power"], ">=", 0.8,
        (row["power"] or 0.0) >= 0.8, n, decisive=False,
    )  # fmt: skip
    equivalence = Criterion(
        "equivalence_p", f"P-value that the gap, {gap}, is outside ±{fixed(row['bound'])} "
        f"({percent(options.equivalence_bound)} of the agreement of brains).",
        row["equivalence_p"], "<=", alpha, row["equivalent"], n, "the bound",
    )  # fmt: skip
    return (
        Gate("agreement", "A", GATES["A"], row["agrees"], (agreement,)),
        Gate("testable", "T", GATES["T"], row["could_reject"], (possible,)),
        Gate("comparable", "C", GATES["C"], row["comparable"]),
        Gate(
            "not rejected",
            "N",
            f"The test does not reject that {null}.",
            row["not_rejected"],
            (rejection, power),
        ),
        Gate("equivalent", "E", GATES["E"], row["equivalent"], (equivalence,)),
    )


def _what_would_change(row: Mapping[str, Any], options: TuringSection) -> tuple[str, ...]:
    label, alpha = row["label"], options.alpha
    return {
        CONVERGES: (f"Nearest to failing: p = {number(row['p_value'])} of the test and p = "
                    f"{number(row['equivalence_p'])} of equivalence.",),
        ABOVE: (AVERAGE_BRAIN, NEW_STIMULI),
        INCONCLUSIVE: ("Equally many units of every source: set turing.source_units.",) if not row["comparable"] else
                      (f"The {percent(1 - 2 * alpha)} interval of the gap would have to lie within "
                       f"±{fixed(row['bound'])}: more subjects, trials or stimuli.",),
        BELOW: (f"The test would have to give p > {alpha:g}, now {number(row['p_value'])}.",),
        CANNOT_REJECT: ("More subjects: 3 for the approximate test, and 19 for the exact test at 0.05.",),
        NO_AGREEMENT: ("Brains would have to agree: more trials or stimuli, another region or time point.",),
        UNKNOWN: ("The sources would have to offer responses and features that vary.",),
    }[label]  # fmt: skip


# --- Methods --------------------------------------------------------------------------------------


def methods_parts(study: StudyConfig, pairs: pl.DataFrame) -> list[MethodsPart]:
    """Measures, noise correction and tests, as they were possible for these pairs."""
    options = options_of(study)
    corrected, noisy = (set(pairs.filter(own)["measure"]) for own in ("corrected", pl.col("kind") == TRIALS))
    estimators = {
        "full_trials": "Values were computed from all trials and divided by the square root of the product of the "
        "reliabilities of both sides (split halves, Spearman–Brown)",
        "half_trials": "Values were computed between halves of the trials and divided by the square root of the "
        "product of the split-half correlations of both sides",
        "as_printed": "Values were computed between halves of the trials and divided by reliabilities of all "
        "trials, which is biased low",
        "none": "Values were not corrected for noise",
    }
    correction = estimators["none"]
    if corrected:
        correction = (
            f"{estimators[options.estimator]}, averaged over "
            f"{counted(options.n_halves, 'random half', 'random halves')}{cite('feather2025')}"
        )
        if plain := [own for own in options.measures if own not in corrected]:
            correction += f", except for {listed(plain)}"
    folds = {
        "auto": f"{options.n_folds} folds of whole stories, or of contiguous stimuli where stories are few",
        "story": f"{options.n_folds} folds of whole stories",
        "rows": f"{options.n_folds} contiguous folds with a gap of {options.gap_events}",
        "random": f"{options.n_folds} random splits (80 % training)",
    }[options.split_by]
    several = any(len(own.layers) > 1 for own in study.models if own.name in models_of(study))
    layers = {
        "nested": " The layer with the best agreement on training stimuli was used in every fold.",
        "best_on_test": " The layer with the best test score was used, which is optimistic.",
    }[options.layer_choice]
    trials = "Models had no noise."
    if noisy:
        trials = "Models were given simulated trials, as many and as noisy as those of a typical subject"
        plain = [own for own in options.measures if own not in noisy]
        trials += f", except by {listed(plain)}." if plain else "."
    source = {
        "pairs": "every other subject",
        "pooled": "the units of all other subjects together",
    }[options.source]
    others = {
        "pairs": "subjects with each other. Its test treats subjects, not pairs, as independent: a permutation of who "
        "is the model where it can reject, else Student's t for one new subject",
        "pooled": "all other subjects together. Its test is a paired t-test over subjects",
    }[options.source]
    return [
        MethodsPart(
            "Agreement",
            (
                f"Models, and {source}, were compared with every subject by {', '.join(options.measures)}. Fitted "
                f"measures were scored on held-out stimuli of {folds}.{layers if several else ''}",
                f"{correction}. {trials} Missing trials were left out of means.",
            ),
        ),
        MethodsPart(
            "Turing test",
            (
                f"The gap is the mean agreement of the model with subjects minus that of {others}, two-sided at "
                f"{options.alpha:g}.",
                f"A model converges if it is not rejected and its gap is within "
                f"{percent(options.equivalence_bound)} of the agreement of brains, by two one-sided tests.",
            ),
        ),
    ]
