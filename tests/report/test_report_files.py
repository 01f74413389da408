from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import polars as pl

from lpact.report import decision_matrix_svg, verdicts_markdown
from lpact.report.decision_matrix import GATES, best_mechanisms

GATE_COLUMNS = list(GATES.values())
SVG = "{http://www.w3.org/2000/svg}"


def claim(**changes):
    return {
        "dataset": "d",
        "model": "m",
        "layer": 1,
        "mechanism": "surprisal",
        "role": "primary",
        "raw_score": 0.5,
        **dict.fromkeys(GATE_COLUMNS, False),
        "label": "control_explained",
        "first_failed_gate": "predictive",
        "beaten_by": "nuisance",
        "reason": "because",
        **changes,
    }


def outcome():
    return pl.DataFrame([{"outcome": "D", "gate_profile": "paper", "meaning": "Nothing robust."}])


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_marks_are_what_the_table_says():
    passed = dict.fromkeys(GATE_COLUMNS[:4], True)
    table = pl.DataFrame([claim(), claim(model="n", **passed), claim(model="o", raw_score=None)])
    root = ElementTree.fromstring(decision_matrix_svg(table))
    assert len(list(root.iter(f"{SVG}circle"))) == 4
    crosses = [e for e in root.iter(f"{SVG}path") if e.find(f"{SVG}title") is not None]
    assert len(crosses) == 3 * len(GATES) - 4
    words = texts(decision_matrix_svg(table))
    assert "d / n / 1" in words
    assert words.count("+0.50") == 2
    assert "control_explained — predictive: nuisance" in words


def test_a_layer_is_shown_by_the_mechanism_that_passes_most():
    best = dict.fromkeys(GATE_COLUMNS, True)
    table = pl.DataFrame(
        [
            claim(mechanism="a"),
            claim(mechanism="b", label="integrated_candidate", first_failed_gate="none", **best),
            claim(mechanism="c", predictive=True),
        ]
    )
    (row,) = best_mechanisms(table)
    assert row["mechanism"] == "b"
    assert "integrated_candidate" in texts(decision_matrix_svg(table))


def test_names_from_data_stay_text():
    evil = "<script>alert(1)</script>"
    table = pl.DataFrame([claim(dataset=evil, model="a|b*c", beaten_by=evil, reason=evil)])
    svg = decision_matrix_svg(table)
    assert "<script" not in svg
    assert any(evil in text for text in texts(svg))
    page = verdicts_markdown(table, outcome())
    assert "<script" not in page
    assert "a\\|b\\*c" in page


def test_page_holds_outcome_verdict_and_meaning():
    table = pl.DataFrame([claim(mechanism="a"), claim(mechanism="b")])
    page = verdicts_markdown(table, outcome())
    assert "**Outcome D** (paper gates). Nothing robust." in page
    assert "- **m, layer 1** (a, b): `control_explained`. because" in page
    assert "There is a raw positive" in page


def test_an_empty_table_is_an_empty_picture():
    empty = pl.DataFrame([claim()]).clear()
    assert texts(decision_matrix_svg(empty))
    assert verdicts_markdown(empty, outcome()).startswith("# Verdicts")
