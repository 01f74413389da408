"""The decision matrix: a symbol for every gate of every row, and the verdict that the table has."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from decision_rows import claim, decisions
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import GATES, shown
from lpact.analyses.lpact.figures.decision_matrix import MOST_ROWS, make, rows_of, verdict_text
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.report.figure import Figure, Missing

if TYPE_CHECKING:
    from lpact.study import Run

ALL = "P S R M T Rep"


def layer(n: int, **changes) -> dict:
    """A claim of layer 2, with the mechanism numbered ``n``."""
    return {"layer": 2, "mechanism": f"mechanism{n}", **changes}


CLAIMS = [
    claim("P S R T Rep", **layer(1, label="relational_candidate", first_failed_gate="mechanism")),
    claim(
        ALL,
        **layer(2, label="integrated_candidate", first_failed_gate="none", beaten_by="none"),
    ),
    claim("P S R T Rep", **layer(3, label="relational_candidate", first_failed_gate="mechanism")),
    claim(raw_score=-0.25, beaten_by="circular_shift"),
    claim(dataset="e", label="diagnostic_only", role="diagnostic", raw_score=None),
]


@pytest.fixture(scope="module")
def root():
    tests = [row | {"gate_profile": "calibrated"} for row in CLAIMS]
    return checked_svg(make(material(decisions(*CLAIMS, *tests))))


def test_rows_count_the_mechanisms_that_pass():
    rows = rows_of(material(decisions(*CLAIMS)))
    assert rows.select("dataset", "layer").rows() == [("d", 1), ("d", 2), ("e", 1)]
    first, second, third = rows.iter_rows(named=True)
    assert [second[letter] for letter in GATES] == [3, 3, 3, 1, 3, 3]
    assert (second["label"], second["n_label"], second["n_claims"]) == (
        "integrated_candidate",
        1,
        3,
    )
    assert [first[letter] for letter in GATES] == [0] * 6
    assert (first["confirmatory"], third["confirmatory"]) == (True, False)


def test_symbols_are_what_the_table_says(root):
    cells = [own for own in marks(root) if ", gate " in own.text]
    assert len(cells) == 2 * 3 * len(GATES)
    assert Counter(own.profile for own in cells) == {"paper": 18, "calibrated": 18}
    kinds = Counter(_kind(own.element) for own in cells if own.profile == "paper")
    assert kinds == {"disc": 5, "part": 1, "cross": 6, "dash": 6}
    (part,) = [own for own in cells if _kind(own.element) == "part" and own.profile == "paper"]
    assert (part.dataset, part.model, part.layer, part.value) == ("d", "m", "2", 1.0)
    assert part.text.endswith("gate M, mechanism: 1 of 3 claims pass")
    assert "1/3" in texts(root)


def _kind(element) -> str:
    d, fill = element.get("d", ""), element.get("fill")
    if "A" in d:
        return "disc" if fill == "#0072b2" else "part"
    return "cross" if d.count("M") == 2 else "dash"


def test_verdicts_scores_and_names_are_written(root):
    written = texts(root)
    assert written.count("integrated candidate, 1 of 3") == 2
    assert written.count("P: circular_shift") == 2
    assert {"0.50", "−0.25", "–"} <= set(written)
    bars = {own.value: own for own in marks(root) if "raw score" in own.text}
    assert set(bars) == {0.5, -0.25}
    assert width_of(root) <= 1000


def test_the_shown_failure_is_of_the_claim_that_passes_most():
    fails = {"label": "predictive_only", "first_failed_gate": "mechanism", "beaten_by": "other"}
    near = {
        "label": "predictive_only",
        "first_failed_gate": "none",
        "beaten_by": "false_discovery_rate",
    }
    rows = rows_of(material(decisions(claim("P S", **layer(1, **fails)), claim(ALL, **layer(2, **near)))))
    assert verdict_text(rows.row(0, named=True)) == (
        "predictive only",
        "false discovery rate, 1 of 2",  # the other one failed at gate M
    )
    rows = rows_of(material(decisions(claim("P S", **layer(1, **fails)))))
    assert verdict_text(rows.row(0, named=True)) == ("predictive only", "M: other")


def test_large_studies_show_the_best_layers_and_say_what_is_left_out():
    many = [
        claim(model=model, layer=i, raw_score=i / 1000, label="predictive_only" if i == 3 else "null")
        for model in ("a", "b")
        for i in range(250)
    ]
    of_many = material(decisions(*many))
    rows = rows_of(of_many)
    best, note = shown(of_many, rows, MOST_ROWS, DECISIONS)
    assert best.height == 150
    assert best.filter(model="a").height == best.filter(model="b").height == 75
    assert best.filter(layer=3).height == 2  # the better verdict, although its score is low
    assert set(best["layer"]) == {3, *range(176, 250)}
    made = make(material(decisions(*many)))
    assert isinstance(made, Figure)
    assert "Drawn are 150 of 500 layers" in note
    assert note in made.caption
    assert shown(of_many, rows.head(9), MOST_ROWS, DECISIONS)[0].height == 9


def test_names_from_data_stay_text():
    evil = claim(dataset=EVIL, model=EVIL, beaten_by=EVIL, reason=EVIL, role=EVIL)
    found = checked_svg(make(material(decisions(evil))))
    assert not [own for own in found.iter() if own.tag.endswith(("script", "img"))]
    assert {own.dataset for own in marks(found)} == {EVIL}
    assert any("<script>" in text for text in texts(found))


def test_a_real_run_is_drawn_row_by_row(small_run: Run):
    tables = {table.name: small_run.table(table.name) for table in small_run.tables()}
    rows = rows_of(Material(tables, small_run.config))
    table = tables["decisions/lpact_decision_table"]
    for row in rows.iter_rows(named=True):
        own = table.filter(**{key: row[key] for key in ("gate_profile", "dataset", "model", "layer")})
        assert row["n_claims"] == own.height == 3
        assert [row[letter] for letter in GATES] == [own[column].sum() for column in GATES.values()]
        assert row["raw_score"] == own["raw_score"][0]
    assert rows.height == table.select("gate_profile", "dataset", "model", "layer").n_unique() == 12


def test_without_claims_it_says_so():
    assert isinstance(make(material({})), Missing)
    empty = {name: table.clear() for name, table in decisions(claim()).items()}
    assert isinstance(make(material(empty)), Missing)
    assert isinstance(make(material(decisions(claim()))), Figure)
