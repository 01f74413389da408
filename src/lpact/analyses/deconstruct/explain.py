"""What deconstruct concludes, in words and as data, from tables alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from lpact.analyses.base import Material, Rows
from lpact.analyses.deconstruct import summaries, tables
from lpact.analyses.deconstruct.config import (
    ACCOUNTED_FOR,
    ADDS,
    LABELS,
    NOTHING,
    UNKNOWN,
    DeconstructSection,
    options_of,
)
from lpact.analyses.deconstruct.fits import NONE, OPTIMISTIC
from lpact.analyses.deconstruct.jobs import BEYOND_SIMPLE, UNTRAINED
from lpact.analyses.deconstruct.rows import CONTIGUOUS, events_of
from lpact.analyses.deconstruct.spaces import described, ladder_of
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
from lpact.config import StudyConfig
from lpact.math.types import FloatArray
from lpact.report.methods import cite
from lpact.wording import counted, enumerated, fixed, number

CODES = {ADDS: "A", ACCOUNTED_FOR: "S", NOTHING: "N", UNKNOWN: "U"}
MEANINGS = {
    "A": "At least one model adds to simple features.",
    "S": "Simple features account for every model that predicts.",
    "N": "No model predicts held-out responses.",
    "U": "Nothing could be compared.",
}
CAVEATS = (
    "Fitting large feature spaces to few noisy responses makes the model's own share uncertain, and the search grows "
    "with the number of spaces.",
    "A model's own share is what it adds to these features in the form given: a restatement of them that is easier to "
    "fit, such as fewer columns, adds too.",
    "Adding features can lower a held-out score; the sub-model used for a step is a choice "
    "(deconstruct.sub_model), and all choices are stored.",
    "Cross-validated blocks share training data, so that p-values over blocks are approximate.",
)


def simple_words(study: StudyConfig, dataset: str) -> str:
    """The simple features of a dataset, in words."""
    options = options_of(study)
    steps = ladder_of(options, events_of(study, dataset))
    steps = steps[: options.simple_steps or len(steps)]
    return enumerated(described(space) for step in steps for space in step)


def conclusion(material: Material) -> Conclusion:
    """The verdicts in one sentence, and each of them."""
    claims = material.table(tables.CLAIMS.name)
    labels = claims["label"].to_list()
    code = next((CODES[own] for own in (ADDS, ACCOUNTED_FOR, NOTHING) if own in labels), "U")
    said = {f"{row['dataset']}/{row['stimulus']}/{row['model']}": row["reason"] for row in claims.iter_rows(named=True)}
    if not said:
        headline = "Nothing could be compared; the table deconstruct/unavailable says why."
    elif len(said) == 1:
        headline = next(iter(said.values()))
    else:
        n = {own: labels.count(own) for own in LABELS}
        headline = (
            f"{counted(len(labels), 'claim')}: {n[ADDS]} where the model adds to simple features, {n[ACCOUNTED_FOR]} "
            f"accounted for by them, {n[NOTHING]} where it predicts nothing."
        )
    why = [f"{claim}: {reason}" for claim, reason in said.items()] if len(said) > 1 else []
    why += _warnings(material, options_of(material.config))
    return Conclusion("deconstruct", headline, tuple(why), (Outcome(code, MEANINGS[code]),))


def _warnings(material: Material, options: DeconstructSection) -> list[str]:
    """What makes the numbers optimistic, and what shuffled splits do."""
    made = []
    if options.sub_model in OPTIMISTIC:
        made.append(f"Sub-models are chosen by test scores ({options.sub_model}): optimistic.")
    if options.layer_choice != "nested":
        made.append("Layers are chosen by test scores: optimistic.")
    if options.oasm and options.oasm_choice != "nested":
        made.append("The widths of OASM are chosen by test scores: optimistic.")
    found = material.table(tables.CLAIMS.name).drop_nulls(["shuffled_r2", "oasm_r2", "model_r2"])
    return made + [
        f"{row['dataset']}/{row['stimulus']}, shuffled splits: {row['model']} reaches R² {fixed(row['shuffled_r2'])} "
        f"({fixed(row['model_r2'])} under contiguous ones), and OASM, which encodes only time, "
        f"{fixed(row['oasm_r2'])}."
        for row in found.iter_rows(named=True)
    ]


def result_blocks(material: Material) -> list[Block]:
    """The ladder of the sub-models that decide, mean over subjects; then the limits of the method."""
    options = options_of(material.config)
    network = summaries.deciding_network(options)
    found = material.table(tables.LADDER.name).filter(network=network, sub_model=options.sub_model)
    by = ["dataset", "stimulus", "model", "step", "step_name"]
    r2, share = (summaries.mean_of_subjects(found, column, *by) for column in ("r2", "share_of_model"))
    means = r2.join(share, on=by).sort(by)
    rows = tuple(
        (row["dataset"], row["stimulus"], row["model"], row["step_name"], fixed(row["r2"]),
         "" if row["share_of_model"] is None else f"{row['share_of_model']:.0f} %")
        for row in means.iter_rows(named=True)
    )  # fmt: skip
    columns = ("dataset", "stimulus", "model", "features up to this step", "R²", "of the model")
    title = f"Ladder, contiguous splits, sub_model '{options.sub_model}'"
    ladder = Block(title, (), columns, rows, frozenset({"R²", "of the model"}))
    return [ladder, Block("Limits", CAVEATS)]


# --- one claim --------------------------------------------------------------------------------------


def explain_claim(config: StudyConfig, rows: Rows, claim: Mapping[str, Any]) -> Explanation:
    """Scores, shares and both gates of one claim."""
    options = options_of(config)
    row = rows(tables.CLAIMS.name, **claim).row(0, named=True)
    facts = {
        "score of the model (R²)": row["model_r2"],
        "score of the simple features": row["simple_r2"],
        "score of both": row["both_r2"],
        "accounted for by simple features (%)": row["accounted_for"],
        "the model's own (%)": row["own"],
        "layers chosen": row["layer"],
        "chosen by test scores (optimistic)": row["optimistic"],
        "subjects": row["n_subjects"],
        "units": row["n_units"],
        "score of the model, shuffled splits": row["shuffled_r2"],
        "score of OASM, shuffled splits": row["oasm_r2"],
    }
    untrained = rows(tables.SCORES.name, family=UNTRAINED, sub_model=NONE, **claim)
    if untrained.height:
        alone = untrained.filter(pl.col("features") == pl.col("model"))
        facts["score of the untrained model"] = alone["r2"].mean()
    gates: tuple[Gate, ...] = ()
    if row["label"] != UNKNOWN:
        nothing, simple = summaries.gains(rows(tables.TESTS.name, **claim), {}, options.sub_model, config.seed)
        words = simple_words(config, str(claim["dataset"]))
        gates = (
            _gate("predicts", "P", "The model predicts held-out responses.", nothing, options,
                  "the training mean", row["predicts"]),
            _gate("adds", "O", f"The model adds to {words}.", simple, options, words, row["adds"]),
        )  # fmt: skip
    return Explanation(
        "deconstruct",
        claim,
        "",
        row["label"],
        LABELS[row["label"]],
        row["reason"],
        facts=tuple(facts.items()),
        gates=gates,
        what_would_change=_what_would_change(row, options),
        rows=(
            (tables.CLAIMS.name, claim),
            (tables.ACCOUNTED.name, claim),
            (tables.LADDER.name, claim),
            (tables.TESTS.name, {**claim, "comparison": BEYOND_SIMPLE, "split": CONTIGUOUS}),
        ),
    )


def _gate(
    name: str,
    letter: str,
    meaning: str,
    gain: summaries.Gain,
    options: DeconstructSection,
    against: str,
    passed: bool,
) -> Gate:
    few = len(gain.subjects) < summaries.FEWEST_SUBJECTS
    note = f"; not decisive with {counted(len(gain.subjects), 'subject')}" if few else ""

    def criterion(what: str, kind: str, gains: FloatArray, labels: tuple[str, ...], p: float, test: str) -> Criterion:
        shown = Distribution(
            f"{kind.capitalize()}s", "gain in R²", tuple(gains.tolist()), labels, kind=kind,
            bound=0.0, compared_with=against, gives=test, p_value=p,
        )  # fmt: skip
        own = note if kind == "subject" else ""
        return Criterion(
            f"p_over_{what}",
            f"Mean gain in R² {number(float(gains.mean()))} over {against} in {kind}s; p-value of a {test}{own}.",
            p, "<=", options.alpha, p <= options.alpha, len(gains), against,
            decisive=not (few and kind == "subject"), distributions=(shown,),
        )  # fmt: skip

    criteria = (
        criterion("blocks", "held-out block", gain.of_blocks, (), gain.p_blocks, "sign-flip test"),
        criterion("subjects", "subject", gain.of_subjects, gain.subjects, gain.p_subjects, "t-test"),
    )
    return Gate(name, letter, meaning, passed, criteria)


def _what_would_change(row: Mapping[str, Any], options: DeconstructSection) -> tuple[str, ...]:
    now = f"p ≤ {options.alpha:g}, now"
    return {
        UNKNOWN: ("The sources would have to offer every feature space of the ladder.",),
        NOTHING: (f"The model would have to predict held-out blocks: {now} {number(row['p_predicts'])}.",),
        ACCOUNTED_FOR: (f"The model would have to add to simple features: {now} {number(row['p_own'])}.",),
        ADDS: (f"Nearest to failing: the gain over simple features, p = {number(row['p_own'])}.",),
    }[row["label"]]


# --- Methods ----------------------------------------------------------------------------------------


_CHOSEN = {
    "nested": "the validation score within each outer fold",
    "best_on_test": "the test score, which is optimistic",
}
_SUB_MODELS = {
    "none": "Each step has all of its features.",
    "validation": "For each unit and outer fold, the sub-model with the best validation score represents a step.",
    "best_of_network": "The sub-model with the best mean test score over units represents a step, which is optimistic.",
    "best_of_unit": "For each unit, the sub-model with the best test score represents a step, which is optimistic.",
}
_GROUPS = {
    "auto": "sentences (of words) or stories",
    "story": "stories",
    "sentence": "sentences",
}


def methods_parts(study: StudyConfig) -> list[MethodsPart]:
    """Splits, feature spaces, banded ridge, choices of sub-models and tests."""
    options = options_of(study)
    sigmas, alphas = options.oasm_sigmas, options.alphas
    score = "of all validation rows together"
    if options.selection_score != "pooled":
        score = "averaged over folds"
    steps = {own.name: ladder_of(options, events_of(study, own.name)) for own in study.datasets}
    ladders = [
        f"{name}: {'; '.join(enumerated(map(described, step)) for step in own)}; then the model."
        for name, own in steps.items()
    ]
    shuffled = "Shuffled splits of the same sizes were a diagnostic." if options.shuffled else ""
    oasm = (
        "Orthogonal autocorrelated sequences were identity matrices, smoothed within groups by Gaussians of "
        f"{counted(len(sigmas), 'width')} from {min(sigmas):g} to {max(sigmas):g} events; the width was chosen by "
        f"{_CHOSEN[options.oasm_choice]}."
    )
    parts = {
        "Splits": (
            _folds(study, options),
            "All other folds served as validation folds in turn.",
            shuffled,
            "Responses were taken at the reference lag. Scores are out-of-sample R², 1 − MSE / MSE of the training "
            f"mean, from predictions pooled over outer folds{cite('hawinkel2024')}; units below 0 count as 0 in means.",
        ),
        "Feature spaces": (
            f"Steps from simple to complex: {' '.join(ladders)}",
            f"Layers were chosen by {_CHOSEN[options.layer_choice]}.",
            oasm if options.oasm else "",
        ),
        "Banded ridge": (
            f"Each feature space had its own penalty{cite('nunezelizalde2019', 'duprelatour2022')}. All ways of "
            f"dropping spaces were tried first, then up to {counted(options.draws, 'draw')} of Dirichlet weights, "
            f"until {options.patience} in a row raised the mean score by less than {options.min_gain:g}.",
            f"Weights and penalty ({counted(len(alphas), 'value')} from {min(alphas):g} to {max(alphas):g}) were "
            f"chosen for each unit by the validation R² {score}.",
            _SUB_MODELS[options.sub_model],
        ),
        "Tests": (
            "Gains of the model were tested by flipping signs of held-out blocks and, from "
            f"{summaries.FEWEST_SUBJECTS} subjects on, also by a t-test over subjects, at {options.alpha:g}.",
            "Units were tested by one-sided paired t-tests of squared errors over events and over blocks, and by "
            f"{counted(options.permutations, 'random sign flip')} of blocks, corrected for multiple tests within "
            f"recording and network{cite('benjamini1995')}.",
            "Ω, the share of the model's score that simple features account for, is 1 − (R² of both − R² of simple "
            "features) / R² of the model, limited to 0–100 %, from means over subjects.",
        ),
    }
    return [MethodsPart(title, tuple(filter(None, said))) for title, said in parts.items()]


def _folds(study: StudyConfig, options: DeconstructSection) -> str:
    """How folds were made, in one sentence."""
    if options.split_by == "rows":
        return (
            f"Outer folds were {options.n_folds} contiguous blocks of events, with "
            f"{counted(study.readout.gap_events, 'event')} left out of training on either side."
        )
    if options.category:
        return f"Every outer fold tested one story of each category ({options.category}), for half of the categories."
    return f"Outer folds held out whole {_GROUPS[options.split_by]}, at most {options.n_folds} folds."
