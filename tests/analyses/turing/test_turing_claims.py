"""What a text may say of models that were compared with brains as brains are with each other."""

from __future__ import annotations

import polars as pl
import pytest

from lpact.analyses.lpact.claims import Verdicts as OfLPact
from lpact.analyses.turing.claims import Verdicts
from lpact.analyses.turing.config import LABELS
from lpact.claim_audit import Format, Statement, check_text, tabulate
from lpact.codes import FinalLabel

RUN = (
    ("linear", "gpt2", "converges"),
    ("rsa", "gpt2", "below"),
    ("linear", "lexical", "below"),
    ("linear", "average", "above"),
    ("linear", "small_net", "inconclusive"),
    ("rsa", "small_net", "cannot_reject"),
)
OWN = {
    "converges": Statement.INDISTINGUISHABLE,
    "above": Statement.ABOVE_BRAINS,
    "below": Statement.BELOW_BRAINS,
}
SENTENCES = {
    Statement.INDISTINGUISHABLE: (
        "The model cannot be told from a brain by this measure on these data.",
        "On these data, the network could not be distinguished from a human brain by linear predictivity.",
        "The model is indistinguishable from a brain by this measure on this dataset.",
        "By this measure, the model is not distinguishable from other subjects in our recordings.",
        "On these stimuli the test does not tell the model from one more brain.",
        "The model passes the NeuroAI Turing Test by linear predictivity on these data.",
        "In this dataset, the network passed the brain Turing test by RSA.",
        "The model did not differ from the other subjects by this measure on these data.",
        "By RSA, the network is not significantly different from a brain in our recordings.",
        "No difference between the model and a subject was found by RSA on these data.",
        "The model explains 100% of the inter-subject consistency.",
        "The network accounts for all of the agreement between subjects.",
        "The model reaches 100 % of inter-subject consistency.",
        "The network is as close to brains as brains are to each other.",
        "Its features are as similar to the brains as other brains are.",
        "The model reaches inter-subject consistency.",
        "The last layer matched the brain–brain agreement.",
        "The model attains the consistency between subjects.",
        "The model converges to brains under linear predictivity.",
        "The model is statistically equivalent to a brain by RSA on these data.",
        "Model–brain consistency is on par with brain–brain consistency.",
        "The model is as predictive of each subject as the other subjects are.",
        "The network is indistinguishable from the other subjects by RSA in this dataset.",
    ),
    Statement.ABOVE_BRAINS: (
        "The model is closer to brains than brains are to each other.",
        "The network is more similar to every subject's responses than subjects are to one another.",
        "The model exceeds the inter-subject consistency.",
        "Its score surpasses brain–brain similarity.",
        "The score lies above the between-subject agreement.",
        "The model is above the inter-subject ceiling.",
        "The model exceeds the inter-subject noise ceiling.",
        "The model exceeds 100 % of the inter-subject consistency.",
        "The model predicts a brain better than another brain does.",
        "Model–brain scores are higher than brain–brain scores.",
    ),
    Statement.BELOW_BRAINS: (
        "The model is further from brains than brains are from each other.",
        "The network is less close to brains than brains are to each other.",
        "The model is not as close to brains as brains are to each other.",
        "The model fails the NeuroAI Turing Test.",
        "The model did not pass the NeuroAI Turing Test.",
        "The model can be told from a brain by this measure.",
        "The network is clearly distinguishable from a brain.",
        "This measure tells the model from a brain.",
        "The model falls short of inter-subject consistency.",
        "Its score stays below the brain–brain agreement.",
    ),
}
NEVER = (
    "The model is a brain.",
    "The model is brain-like.",
    "The model is indistinguishable from the human brain.",
    "The model cannot be told from a brain.",
    "The model cannot be told from a brain by any measure on these data.",
    "The model converges to the brain.",
    "The model and the brain share a mechanism.",
    "No measure can tell the model from a brain.",
    "Language models pass the NeuroAI Turing Test.",
    "The model passes the NeuroAI Turing Test.",
    "The model passes the NeuroAI Turing Test by linear predictivity.",
    "The model passes the NeuroAI Turing Test on these data.",
    "The model passes the NeuroAI Turing Test by any measure on these data.",
    "The model did not differ from brains.",
    "There was no difference between the network and the other subjects.",
    "The model cannot be told from a brain by this measure on these data, and so it works like the brain.",
    "It passes the NeuroAI Turing Test, which proves that the model is brain-like.",
    "The model passes the NeuroAI Turing Test and therefore implements the algorithm of the cortex.",
    "The model cannot be told from a brain by linear on these data and works like the brain.",
    "On these data the model cannot be told from a brain by this measure; it understands language as people do.",
    "The network cannot be told from a brain by RSA on these data, so model and brain are equivalent.",
    "The model is closer to brains than brains are to each other, and it is a theory of the brain.",
    "Transformers cannot be told from brains.",
    "The network is just another brain.",
)
UNTESTED = (
    "GPT-2 is aligned with the brain.",
    "The model predicts brain responses beyond controls.",
    "The geometry of the model matches the geometry of the brain.",
    "GPT-2 is not aligned with the brain in this study.",
)
SAYS_NOTHING = (
    "Is the model closer to brains than brains are to each other?",
    "We ask whether the model can be told from a brain by this measure on these data.",
    "The model may be as close to brains as brains are to each other.",
    "A larger model might exceed the inter-subject consistency.",
    "The model is not closer to brains than brains are to each other.",
    "We do not claim that the model passes the NeuroAI Turing Test.",
    "It is not shown that the model reaches inter-subject consistency.",
    "Feather et al. (2025) claim that the model passes the NeuroAI Turing Test.",
    "Smith and colleagues argue that the network is as close to brains as brains are to each other.",
    "The slogan “the model passes the NeuroAI Turing Test” is often misread.",
    "To pass the NeuroAI Turing Test, a model must reach the agreement of brains.",
    "If the model exceeded the inter-subject consistency, new stimuli would be needed.",
    "The model reaches 60 % of the inter-subject consistency.",
    "The model explains 70% of the inter-subject consistency.",
    "The model explains nearly all of the inter-subject consistency.",
    "The model exceeds 60 % of the inter-subject consistency.",
    "The model's scores did not differ from zero in any subject.",
    "The model did not differ from its controls in the other subjects.",
    "Subjects did not differ from one another.",
    "Subjects listened to stories, and the responses of every subject were compared with those of the others.",
    "We compared five brains with each other by linear predictivity.",
    "With four subjects no test could tell the model from a brain.",
    "The data are too few to say whether the model is as close to brains as brains are to each other.",
    "A model that passes cannot be told from a brain by this measure on these data.",
    "A model that passes the NeuroAI Turing Test is as close to brains as brains are to each other.",
    "Passing the NeuroAI Turing Test does not mean that a model is a brain.",
    "Inter-subject consistency was 0.41 for linear and 0.35 for RSA.",
)
MISSED = (
    ("The network falls within the range of inter-subject variability.", Statement.INDISTINGUISHABLE),
    ("There remains a gap between the model and the inter-subject consistency.", Statement.BELOW_BRAINS),
)  # fmt: skip
"""Sentences that are not found, and what they say: the list may shrink."""


def run(*rows: tuple[str, str, str], test: str = "approximate") -> Verdicts:
    """Verdicts from a table: measure, model and label of each claim."""
    return Verdicts.of_table(
        pl.DataFrame(
            [
                {"dataset": "brains", "region": "all", "time": "100ms", "measure": measure, "model": model}
                | {"label": label, "reason": f"'{model}' is {label} by {measure}.", "test": test}
                for measure, model, label in rows
            ]
        )
    )  # fmt: skip


def flagged(text: str, verdicts: Verdicts | OfLPact) -> list[Statement]:
    return [found.statement for found in check_text(text, "text", verdicts)]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(("statement", "text"), [(own, text) for own, texts in SENTENCES.items() for text in texts])
def test_a_statement_is_supported_by_its_own_label_only(label: str, statement: Statement, text: str) -> None:
    expected = [] if OWN.get(label) is statement else [statement]
    assert flagged(text, run(("linear", "net", label))) == expected


@pytest.mark.parametrize("text", NEVER)
def test_nothing_licenses_more_than_this_measure_on_these_data(text: str) -> None:
    (found,) = check_text(text, "text", run(("linear", "net", "converges")))
    assert found.statement.never
    assert "No gate licenses it" in found.reason


@pytest.mark.parametrize("text", UNTESTED)
def test_statements_of_other_analyses_are_not_tested(text: str) -> None:
    (found,) = check_text(text, "text", run(("linear", "net", "converges")))
    assert not found.statement.never
    assert found.reason.startswith("This analysis does not test it")


@pytest.mark.parametrize("text", SAYS_NOTHING)
@pytest.mark.parametrize("label", ["converges", "below", "cannot_reject"])
def test_questions_hedges_negations_and_reports_say_nothing(text: str, label: str) -> None:
    assert flagged(text, run(("linear", "net", label))) == []


@pytest.mark.parametrize(
    ("subject", "supported"),
    [
        ("'gpt2' cannot be told from a brain by linear", True),
        ("GPT-2 cannot be told from a brain by linear", True),
        ("'gpt2' cannot be told from a brain by this measure", True),
        ("'gpt2' cannot be told from a brain by rsa", False),
        ("GPT-2 cannot be told from a brain by RSA", False),
        ("'lexical' cannot be told from a brain by linear", False),
        ("The lexical model cannot be told from a brain by linear", False),
        ("'average' cannot be told from a brain by linear", False),
        ("'small_net' cannot be told from a brain by linear", False),
        ("'small_net' cannot be told from a brain by rsa", False),
        ("Without lexical stress, the model cannot be told from a brain by linear", True),
        ("The model cannot be told from a brain by rsa", False),
    ],
)
def test_a_sentence_counts_for_the_model_and_measure_that_it_names(subject: str, supported: bool) -> None:
    found = check_text(f"{subject} on these data.", "text", run(*RUN))
    assert [one.statement for one in found] == ([] if supported else [Statement.INDISTINGUISHABLE])
    if "lexical' " in subject:
        assert found[0].reason == (
            "The best verdict is below (brains/all/100ms/linear/lexical): Further from brains than brains are from "
            "each other."
        )
        assert found[0].wording == "'lexical' is below by linear."
    if "small_net" in subject:
        assert "neither a positive nor a negative" in found[0].reason


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("The model half_brain explains 100% of the inter-subject consistency.", "indistinguishable"),
        ("half_brain did not differ from brains by linear on these data.", "indistinguishable"),
        ("half_brain did not differ from brains.", "equivalence"),
        ("The test could not tell half_brain from a brain.", "equivalence"),
        ("Half-brain and the brain share a mechanism.", "equivalence"),
        ("half_brain is above the inter-subject ceiling.", "above_brains"),
    ],
)  # fmt: skip
def test_a_name_of_a_model_is_a_model(text: str, statement: str) -> None:
    assert flagged(text, run(("linear", "half_brain", "below"))) == [statement]


@pytest.mark.parametrize(
    ("format", "written"),
    [("text", "half_brain"), ("text", "half-brain"), ("latex", r"half\_brain")],
)
def test_a_sentence_can_begin_with_a_name_in_lower_case(format: Format, written: str) -> None:
    verdicts = run(("linear", "half_brain", "below"), ("linear", "other_net", "converges"))
    said = "cannot be told from a brain by linear on these data."
    text = f"Smith et al. argue that brains are all alike. {written} {said} other_net {said}"
    (found,) = check_text(text, format, verdicts)
    assert found.sentence == f"{written} {said}"
    assert found.column == text.index(written) + 1
    assert "half_brain" in found.reason
    text = f"{written} {said} so we found."
    (found,) = check_text(text, format, verdicts)
    assert found.sentence == text


def test_the_region_it_is_not_a_pronoun() -> None:
    rows = [
        {"dataset": "d", "region": region, "time": "0ms", "measure": "rsa", "model": "net"}
        | {"label": label, "reason": "It is so.", "test": "exact"}
        for region, label in (("all", "converges"), ("IT", "below"), ("V4", "below"))
    ]
    verdicts = Verdicts.of_table(pl.DataFrame(rows))
    said = "it cannot be told from a brain by RSA on these data"
    assert flagged(f"As for the network, {said}.", verdicts) == []
    assert flagged(f"In IT, {said}.", verdicts) == [Statement.INDISTINGUISHABLE]


def test_less_agreement_than_that_of_all_others_together_is_not_less_than_that_of_single_brains() -> None:
    said = "The model is further from brains than brains are from each other."
    assert_of_single_brains(said, "below")


def test_as_much_agreement_as_all_others_together_is_not_that_of_a_single_brain() -> None:
    assert_of_single_brains("The model cannot be told from a brain by this measure on these data.", "converges")


def assert_of_single_brains(said: str, label: str) -> None:
    """The label supports it only where single brains were compared."""
    claim = ("linear", "gpt2", label)
    assert flagged(said, run(claim)) == []
    (found,) = check_text(said, "text", run(claim, test="paired"))
    assert "single brains were not compared" in found.reason


@pytest.mark.parametrize("test", ["approximate", "paired"])
@pytest.mark.parametrize("label", [label for label in LABELS if label != "not_computed"])
def test_the_reason_of_a_verdict_is_supported_by_it(label: str, test: str) -> None:
    from lpact.analyses.turing.summaries import sentence

    numbers = (
        "between",
        "agreement_p",
        "gap",
        "gap_low",
        "gap_high",
        "p_value",
        "bound",
        "power",
        "smallest_p",
    )
    row = dict.fromkeys((*numbers, "fraction_of_between"), 0.2) | {"n_subjects": 4, "test": test}
    row["fewer_columns"] = True
    for model, fair in (("gpt2", True), ("half_brain", True), ("net", False)):
        named = row | {"model": model, "measure": "linear", "equivalent": True, "comparable": fair, "chance": fair}
        assert flagged(sentence(named, label), run(("linear", model, label), test=test)) == []


@pytest.mark.parametrize("label", list(FinalLabel), ids=str)
def test_no_verdict_of_lpact_supports_them(label: FinalLabel) -> None:
    for statement, texts in SENTENCES.items():
        for text in texts:
            assert flagged(text, OfLPact.of_label(label)) == [statement]


def test_the_study_supports_what_a_claim_supports() -> None:
    claims, study = tabulate([run(*RUN)])
    assert set(study.filter("allowed")["statement"]) == set(OWN.values())
    assert claims.filter("allowed").select("label", "statement").unique().height == 3
    assert claims.height == len(RUN) * study.height
    none = run(("rsa", "net", "cannot_reject"))
    assert not any(frame["allowed"].any() for frame in tabulate([none]))


@pytest.mark.parametrize(("text", "statement"), MISSED)
def test_known_misses(text: str, statement: Statement) -> None:
    label = next(label for label in LABELS if OWN.get(label) is not statement)
    assert flagged(text, run(("linear", "net", label))) == []
