"""Where an overclaim is found, what it is compared with, and how scope is read."""

from __future__ import annotations

import pytest
from synthetic_tables import (
    CONTROL_DELTAS,
    DECISIONS,
    OUTCOME,
    PROFILE_DELTAS,
    RUNS,
    decided,
    make_diagnostic,
    passing_tables,
    put,
    stack,
)

from lpact.analyses.lpact.claims import Verdicts
from lpact.claim_audit import Statement, check_text, format_of

WEAK = Verdicts.of_label("control_explained")
STRONG = Verdicts.of_label("integrated_candidate")


def flagged(text: str, evidence: Verdicts = WEAK) -> list[Statement]:
    return [found.statement for found in check_text(text, "text", evidence)]


@pytest.fixture(scope="module")
def study() -> Verdicts:
    """gpt2 passes every gate, bert only predicts, llama-7b is explained; a fourth model is diagnostic."""
    out = decided(
        stack(
            passing_tables(dataset="podcast", model="gpt2"),
            put(
                passing_tables(dataset="podcast", model="bert", layer=4),
                PROFILE_DELTAS,
                delta_rel=-0.1,
            ),
            put(
                passing_tables(dataset="podcast", model="llama-7b"),
                CONTROL_DELTAS,
                delta_control=-0.1,
            ),
            make_diagnostic(passing_tables(dataset="treebank", model="gpt2")),
            passing_tables(dataset="short", model="gpt2", runs=RUNS[:2]),
        )
    )
    return Verdicts.of_tables(out[DECISIONS], out[OUTCOME])


def test_place_sentence_reason_and_wording() -> None:
    text = "First line.\n\nScores were low.  GPT-2 is aligned\nwith the brain. Nothing else.\n"
    (found,) = check_text(text, "text", WEAK)
    assert (found.line, found.column) == (3, 19)
    assert found.sentence == "GPT-2 is aligned with the brain."
    assert found.statement is Statement.ALIGNMENT
    assert "control_explained" in found.reason
    assert "predictive gate" in found.reason
    assert found.wording.endswith(".")


def test_a_sentence_is_listed_once_with_its_strongest_statement() -> None:
    text = "GPT-2 is aligned with the brain, survives every control, and is brain-like."
    assert flagged(text) == [Statement.BRAIN_LIKE]


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("GPT-2", None),
        ("gpt2", None),
        ("BERT", Statement.ALIGNMENT),
        ("Llama-7B", Statement.ALIGNMENT),
    ],
)
def test_a_named_model_is_compared_with_its_own_verdict(
    study: Verdicts, name: str, statement: Statement | None
) -> None:
    found = flagged(f"In this study, {name} is aligned with the recordings.", study)
    assert found == ([] if statement is None else [statement])


def test_without_a_name_the_best_verdict_counts(study: Verdicts) -> None:
    assert flagged("In this study, the model is aligned with the recordings.", study) == []


def test_layers_and_datasets_narrow_the_claims(study: Verdicts) -> None:
    assert flagged("In this study, layer 8 is aligned with the recordings.", study) == []
    assert flagged("In this study, layer 4 is aligned with the recordings.", study) == [Statement.ALIGNMENT]
    (found,) = check_text("In the treebank dataset, GPT-2 is aligned with the brain.", "text", study)
    assert "diagnostic_only" in found.reason
    assert "neither" in found.reason


def test_a_plain_word_is_no_name_of_a_model() -> None:
    out = decided(
        stack(
            passing_tables(dataset="demo", model="gpt2"),
            put(passing_tables(dataset="demo", model="drift"), CONTROL_DELTAS, delta_control=-0.1),
        )
    )
    verdicts = Verdicts.of_tables(out[DECISIONS], out[OUTCOME])
    text = "In this study the model is aligned with the recordings, slow drift removed."
    assert flagged(text, verdicts) == []
    assert flagged("In this study the drift model is aligned with the recordings.", verdicts) == [Statement.ALIGNMENT]


def test_a_plain_negative_needs_coverage(study: Verdicts) -> None:
    text = "In the short dataset, GPT-2 is not aligned with the brain."
    assert flagged(text, study) == [Statement.NOT_SHOWN]
    assert flagged("In the podcast dataset, BERT is not aligned with the brain.", study) == []
    assert flagged("For the short dataset we do not claim that GPT-2 is aligned with the brain.", study) == []


@pytest.mark.parametrize(
    ("made", "not_made"),
    [
        ("GPT-2 is brain-like.", "GPT-2 is not brain-like."),
        (
            "GPT-2 is not only predictive but also brain-like.",
            "GPT-2 is predictive, not brain-like.",
        ),
        (
            "It cannot be denied that GPT-2 is brain-like.",
            "It cannot be shown that GPT-2 is brain-like.",
        ),
        (
            "It is no longer in doubt that GPT-2 is brain-like.",
            "It is in doubt whether GPT-2 is brain-like.",
        ),
        ("It seems clear that GPT-2 is brain-like.", "It seems that GPT-2 is brain-like."),
        (
            "The effect may be small, but GPT-2 is brain-like.",
            "GPT-2 may be brain-like, but the effect is small.",
        ),
        (
            "Because no control came close, GPT-2 is brain-like.",
            "Because controls came close, GPT-2 is not brain-like.",
        ),
        (
            "We conclude that GPT-2 is brain-like.",
            "Smith et al. (2020) conclude that GPT-2 is brain-like.",
        ),
        (
            "Like Smith et al. (2020), we conclude that GPT-2 is brain-like.",
            "Smith and colleagues claim that GPT-2 is brain-like.",
        ),
        (
            "Our results confirm the hypothesis that GPT-2 is brain-like.",
            "We test the hypothesis that GPT-2 is brain-like.",
        ),
        ("So GPT-2 is brain-like!", "Is GPT-2 brain-like?"),
        ("GPT-2 is, in our view, brain-like.", "They call GPT-2 “brain-like”."),
        ("GPT-2's states are brain-like.", "A headline said 'GPT-2 is brain-like' last year."),
        (
            "The absence of any gap shows that GPT-2 is brain-like.",
            "The absence of brain-like features is telling.",
        ),
        ("As expected, GPT-2 is brain-like.", "GPT-2 was expected to be brain-like."),
        ("GPT-2 predicts well and is brain-like.", "GPT-2 predicts well without being brain-like."),
        (
            "We can therefore say that GPT-2 is brain-like.",
            "We cannot say that GPT-2 is brain-like.",
        ),
        (
            "The scores show that GPT-2 is brain-like.",
            "To show that GPT-2 is brain-like, one would need evidence from the brain.",
        ),
        (
            "The claim that GPT-2 is brain-like is confirmed.",
            "The claim that GPT-2 is brain-like finds no support.",
        ),
        (
            "The debate over whether GPT-2 is brain-like is settled.",
            "The debate over whether GPT-2 is brain-like continues.",
        ),
        (
            "We therefore state that GPT-2 is brain-like.",
            "Wikipedia states that GPT-2 is brain-like.",
        ),
        (
            "As Smith et al. (2020) anticipated, we find GPT-2 to be brain-like.",
            "Supporters of the view see GPT-2 as brain-like.",
        ),
        (
            "The phrase “brain-like” is justified: GPT-2 is brain-like.",
            "The slogan “GPT-2 is brain-like” confuses a predictor with a brain.",
        ),
        (
            "Main result: GPT-2 is brain-like.",
            "Hypothesis: GPT-2 is brain-like.",
        ),
    ],
)
def test_scope_in_pairs(made: str, not_made: str) -> None:
    assert flagged(made) == [Statement.BRAIN_LIKE]
    assert flagged(not_made) == []


@pytest.mark.parametrize(
    "text",
    [
        "No language model is aligned with the brain.",
        "Language models cannot be aligned with brains.",
        "LLMs and brains have nothing in common.",
        "All language models are aligned with the brain.",
    ],
)
def test_statements_about_all_models_are_never_supported(text: str) -> None:
    assert flagged(text, STRONG)[0] in (Statement.UNIVERSAL, Statement.UNIVERSAL_NEGATIVE)


def test_the_same_about_this_study_is() -> None:
    assert flagged("None of the tested models is aligned with the brain.") == []
    assert flagged("In this study, the tested model is aligned with the brain.", STRONG) == []


def test_controls_that_predict_are_no_claim_for_the_model() -> None:
    assert flagged("A shuffled copy of the embeddings predicts MEG responses as well.") == []
    assert flagged("GPT-2 was matched by a random feature in its prediction of MEG.") == []
    assert flagged("GPT-2 predicts MEG responses beyond controls.") == [Statement.PREDICTION]
    assert flagged("The effect cannot be explained by nuisance regressors.") == [Statement.PREDICTION]


def test_grounds_do_not_excuse_a_conclusion() -> None:
    measured = "Scores of GPT-2 in temporal cortex exceeded those of the envelope in three runs."
    assert flagged(measured, STRONG) == []
    assert flagged(f"{measured[:-1]}, which shows that it is brain-like.", STRONG) == [Statement.BRAIN_LIKE]


def test_what_would_follow_for_a_brain_is_a_claim_unless_it_is_conditional() -> None:
    text = "blocking surprisal would impair comprehension in patients"
    assert flagged(f"Since the gate was passed, {text}.") == [Statement.CAUSATION]
    assert flagged(f"If the brain used it, {text}.") == []


def test_positive_controls_are_not_models() -> None:
    assert flagged("The implanted signal passed all four gates.") == []
    assert flagged("GPT-2 passed all four gates.") == [Statement.ALIGNMENT]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.tex", "latex"),
        ("b.MD", "markdown"),
        ("c.qmd", "markdown"),
        ("d.txt", "text"),
        ("-", "text"),
    ],
)
def test_format_of_a_name(name: str, format: str) -> None:
    assert format_of(name) == format
