from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.figures.common import GATES
from lpact.report import verdict_pages, verdicts_markdown

GATE_COLUMNS = list(GATES.values())


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


def test_the_run_writes_the_page_of_verdicts():
    table = pl.DataFrame(
        [
            claim(gate_profile="paper", reason="by points"),
            claim(gate_profile="calibrated", reason="by tests"),
        ]
    )
    made = verdict_pages(
        {"decisions/lpact_decision_table": table, "decisions/lpact_study_outcome": outcome()}
    )
    assert tuple(made) == ("verdicts.md",)
    points, tests = made["verdicts.md"].split("# With every gate a test")
    assert "by points" in points
    assert "by tests" not in points
    assert "by tests" in tests
    assert "by points" not in tests


def test_names_from_data_stay_text():
    evil = "<script>alert(1)</script>"
    table = pl.DataFrame([claim(dataset=evil, model="a|b*c", beaten_by=evil, reason=evil)])
    page = verdicts_markdown(table, outcome())
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "a\\|b\\*c" in page


def test_page_holds_outcome_verdict_and_meaning():
    table = pl.DataFrame([claim(mechanism="a"), claim(mechanism="b")])
    page = verdicts_markdown(table, outcome())
    assert "**Outcome D** (paper gates). Nothing robust." in page
    assert "- **m, layer 1** (a, b): `control_explained`. because" in page
    assert "There is a raw positive" in page


def test_an_empty_table_is_an_empty_page():
    empty = pl.DataFrame([claim()]).clear()
    page = verdicts_markdown(empty, outcome())
    assert page.startswith("# Verdicts")
    assert "- **m" not in page
    assert "- **m" in verdicts_markdown(pl.DataFrame([claim()]), outcome())
