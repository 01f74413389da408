"""One explanation, three renderings: text, HTML and notebook say the same, and names from data stay text."""

from __future__ import annotations

import ast
import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import altair as alt
import pytest

import lpact
from lpact.analyses.explanation import (
    Conclusion,
    Criterion,
    Distribution,
    Explanation,
    Gate,
    Outcome,
)
from lpact.errors import ConfigError
from lpact.report.explanation import (
    FAIL,
    PASS,
    description,
    explanation_html,
    explanation_text,
    needed,
    number,
    numbers,
)
from lpact.report.notebook import plan_html, run_html, study_html
from lpact.report.theme import vega_config
from lpact.study import Claim, Run
from lpact.wording import fixed, size
from small_study import SMALL

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"


def explained(name: str = "sim") -> Explanation:
    shown = Distribution(
        title=f"Scores of {name}",
        unit="Pearson r",
        values=(0.1, 0.2, 0.4),
        labels=(f"{name} 1", "2", "3"),
        n_missing=1,
        kind="subject-run",
        observed=0.2333,
        bound=0.0,
        marks=((name, 0.15),),
        compared_with=name,
        gives="mean",
        note=f"About {name}.",
    )
    first = Criterion("mean_score", f"Of {name}.", 0.2333, ">", 0.0, True, 3, name, distributions=(shown,))
    second = Criterion("p_value", "Too large.", 0.25, "<=", 0.05, False, 12)
    aside = Criterion("typical", "Shown.", None, ">=", 1.0, False, 0, decisive=False)
    return Explanation(
        analysis="toy",
        claim={"dataset": name, "layer": 3},
        profile="strict",
        label="not_shown",
        meaning=f"Nothing about {name}.",
        reason=f"The p-value of {name} is 0.25.",
        facts=(("score", 0.123456), ("beaten by", name), ("missing", None), ("n", 4)),
        gates=(
            Gate("score", "S", "The score is positive.", True, (first,)),
            Gate("test", "T", "The test rejects.", False, (second, aside)),
        ),
        what_would_change=(f"p would have to fall from 0.25 to 0.05 in {name}.",),
        rows=(("predictive/predictive_scores", {"dataset": name}),),
    )


class Text(HTMLParser):
    """Text of a page, its tags, and its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.parts).split())


@pytest.mark.parametrize("name", ["sim", HOSTILE])
def test_all_renderings_say_the_same(name: str) -> None:
    made = explained(name)
    as_text = " ".join(explanation_text(made).split())
    as_html = Text(explanation_html(made)).words
    in_notebook = Text(Claim(made)._repr_html_()).words
    assert str(made) == explanation_text(made)
    for shown in (as_text, as_html, in_notebook):
        assert made.reason in shown
        assert made.meaning in shown
        assert made.what_would_change[0] in shown
        for gate in made.gates:
            assert gate.meaning in shown
            for criterion in gate.criteria:
                assert criterion.sentence in shown
        assert "0.2333; must be above 0; compared with" in shown
        assert "0.25; must be at most 0.05" in shown
        assert "missing; must be at least 1" in shown
        assert "0.1235" in shown
    assert "not_shown" in as_text
    for shown in (as_html, in_notebook):
        assert "not shown" in shown


def test_passes_and_failures_are_marked_in_words() -> None:
    made = explained()
    n_pass = sum(g.passed for g in made.gates) + sum(c.passed for g in made.gates for c in g.criteria)
    total = len(made.gates) + sum(len(g.criteria) for g in made.gates)
    text = explanation_text(made)
    assert (text.count(PASS), text.count(FAIL)) == (n_pass, total - n_pass)
    # The chain shows every gate once more.
    marks = re.findall(r'class="x-(pass|fail)"', explanation_html(made))
    chain = sum(g.passed for g in made.gates)
    assert marks.count("pass") == n_pass + chain
    assert len(marks) == total + len(made.gates)


@pytest.mark.parametrize("render", [explanation_html, lambda e: Claim(e)._repr_html_()])
def test_names_from_data_stay_text_in_html(render: object) -> None:
    page = render(explained(HOSTILE))  # type: ignore[operator]
    parsed = Text(page)
    assert "script" not in parsed.tags
    assert not {a for a in parsed.attributes if a.startswith("on")}
    assert "49" not in parsed.words
    assert HOSTILE in parsed.words
    assert "{{7*7}}" in html.unescape(page)


def test_an_explanation_without_gates_has_no_chain() -> None:
    bare = Explanation("toy", {"dataset": "d"}, "", "yes", "It is so.", "Because.")
    assert explanation_text(bare) == "d\nyes: It is so.\nBecause.\n"
    assert "<ol" not in explanation_html(bare)


def test_a_conclusion_displays_its_outcomes() -> None:
    made = Conclusion("toy", f"Yes, {HOSTILE}.", ("Because.",), (Outcome("A", "All.", "strict"),))
    page = Text(made._repr_html_())
    assert "Outcome A (strict gates): All." in page.words
    assert f"Yes, {HOSTILE}." in page.words
    assert "script" not in page.tags


def test_a_study_and_its_plan_display_themselves() -> None:
    study = lpact.load_study(SMALL)
    assert study._repr_html_() == study_html(study)
    words = Text(study_html(study)).words
    assert words.startswith("Study small seed 11")
    assert "Analyses: lpact." in words
    assert {"planted", "empty", "integrated", "drift"} <= set(words.split())
    plan = study.plan()
    page = plan_html(plan)
    assert plan._repr_html_() == page
    words = Text(page).words
    assert f"{plan.n_claims} claims, {plan.n_tasks:,} tasks" in words
    assert f"memory {size(plan.memory_with(1))}, disk {size(plan.disk_bytes)}." in words
    assert re.search(r"time \(h:mm:ss\) about \d+:\d\d:\d\d", words)
    own = replace(plan.audit.of["lpact"], impossible=("Ceilings: one <b>subject.",))
    poor = replace(plan, audit=replace(plan.audit, of={"lpact": own}))
    assert "Not possible: Ceilings: one <b>subject." in Text(plan_html(poor)).words
    folded = page.split("<details>")[1].split("</details>")[0]
    assert all(table in folded for table in plan.rows)
    assert repr(plan) == f"Plan('small', n_claims={plan.n_claims}, n_tasks={plan.n_tasks})"


def test_records_have_a_short_repr() -> None:
    made = explained()
    gate = made.gates[0]
    assert repr(made) == "Explanation('sim/3', label='not_shown')"
    assert repr(gate) == "Gate('score', passed=True, criteria=1)"
    assert repr(gate.criteria[0]) == "Criterion('mean_score', value=0.2333, passed=True)"
    assert repr(gate.criteria[0].distributions[0]) == "Distribution('Scores of sim', n=3)"


def test_a_criterion_without_threshold_says_nothing_about_one() -> None:
    bare = Criterion("typical", "Shown.", 0.5, ">=", None, True, 2, decisive=False)
    assert numbers(bare) == "0.5; n = 2; for information only"


@pytest.mark.parametrize(
    ("value", "threshold", "shown"),
    [
        (-1.1e-16, 0.0, "0; must be above 0"),
        (-1.1e-16, 0.05, "0; must be above 0.05"),
        (2e-13, 1e-13, "2e−13; must be above 1e−13"),
        (1e-11, 0.0, "1e−11; must be above 0"),
    ],
)
def test_round_off_is_zero(value: float, threshold: float, shown: str) -> None:
    assert needed(value, ">", threshold) == shown


def test_round_off_is_zero_in_scores_and_strips() -> None:
    assert (number(5.6e-17), fixed(-1e-17)) == ("0", "0.000")
    tesla = Distribution("Amplitude", "T", (1e-13, 3e-13), observed=2e-13)
    assert "from 1e-13 to 3e-13" in description(tesla)
    assert "from 0 to 0.3" in description(Distribution("Drop", "r", (1e-17, 0.3)))


@pytest.mark.parametrize(
    ("outcomes", "profile", "message"),
    [
        ((), "", "has no outcome"),
        ((Outcome("A", "All.", "strict"),), "strikt", "strict"),
    ],
)
def test_an_outcome_that_does_not_exist_is_a_clear_error(
    outcomes: tuple[Outcome, ...], profile: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Conclusion("toy", "Yes.", (), outcomes).outcome(profile)


def test_a_run_displays_its_conclusion_and_claims(small_run: Run) -> None:
    words = Text(run_html(small_run)).words
    assert small_run.conclusion().headline in words
    assert "18 claims of lpact; the first 10" in words
    first = small_run.claims().row(0, named=True)
    assert f"{first['dataset']} {first['model']} {first['layer']} {first['mechanism']}" in words


def test_a_figure_of_a_run_is_an_altair_chart(small_run: Run) -> None:
    chart = small_run.figure("decision_matrix")
    assert isinstance(chart, alt.TopLevelMixin)
    assert chart.to_dict(validate=False)["config"]["background"] == vega_config()["background"]


def test_every_claim_of_a_run_is_explained_with_its_stored_reason(small_run: Run) -> None:
    for profile in ("paper", "calibrated"):
        for row in small_run.claims(profile=profile)[::5].iter_rows(named=True):
            key = [row[name] for name in small_run.analysis().claims.key]
            claim = small_run.claim(key, profile=profile)
            assert (claim.label, claim.reason) == (row["label"], row["reason"])
            assert row["reason"] in Text(claim._repr_html_()).words
            assert row["reason"] in str(claim.explain())


@pytest.mark.parametrize("folder", ["report", "web"])
def test_no_surface_knows_an_analysis(folder: str) -> None:
    root = Path(lpact.__file__).parent / folder
    shared = ("lpact.analyses.base", "lpact.analyses.explanation")
    files = list(root.rglob("*.py"))
    assert len(files) > 5
    seen = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [own.name for own in node.names] if isinstance(node, ast.Import) else []
            seen |= {name for name in names if name.startswith("lpact.analyses")}
            assert not [n for n in names if n.startswith("lpact.analyses") and n not in shared], path
    assert seen
