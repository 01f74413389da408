"""Conventional scores against L-PACT: shares of bars, means over the same subject-runs, verdicts as shapes."""

from __future__ import annotations

import re

import polars as pl
import pytest
from decision_rows import claim, decisions
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of

from lpact.report.figure import Figure, Material, Missing
from lpact.report.figures.conventional import make, rows_of, scores_of
from lpact.report.figures.conventional_bars import ROWS, WEAKER, bars_of
from lpact.robustness import READS, READS_IF_THERE, robustness
from lpact.study import Run
from lpact.tables.predictive import CONTROL_DELTAS
from lpact.tables.robustness import CONVENTIONAL_CONTRAST


def contrast(analysis: str, profile: str, n_claims_pass: int, **changes) -> dict:
    return {
        "analysis": analysis,
        "gate_profile": profile,
        "rule": "score > 0",
        "counted": "rows",
        "n_positive": 30,
        "n_total": 40,
        "n_lpact_pass": 10,
        "n_claims": 8,
        "n_claims_pass": n_claims_pass,
        "gate": "predictive",
        "interpretation": "",
        **changes,
    }


def deltas(**changes) -> dict:
    return {
        "dataset": "d",
        "model": "m",
        "layer": 1,
        "subject": "1",
        "session": "1",
        "run": "1",
        "metric": "pearson",
        "real_score": 0.4,
        "best_control_score": 0.1,
        **changes,
    }


CONTRAST = pl.DataFrame(
    [
        contrast("integrated_decision", "calibrated", 0, counted="claims", n_total=8, n_positive=6),
        contrast("integrated_decision", "paper", 1, counted="claims", n_total=8, n_positive=6),
        contrast("raw_predictive_pearson", "calibrated", 2),
        contrast("raw_predictive_pearson", "paper", 4),
    ]
)
DELTAS = pl.DataFrame(
    [
        deltas(),
        deltas(subject="2", real_score=0.2, best_control_score=0.3),
        deltas(subject="3", real_score=0.9, best_control_score=None),
        deltas(metric="spearman", real_score=9.0),
        deltas(layer=2, real_score=None),
    ]
)
CLAIMS = [
    claim(gate_profile=profile, layer=i, mechanism=mechanism, label=label, raw_score=score)
    for profile in ("paper", "calibrated")
    for i, score, mechanism, label in (
        (1, 0.3, "a", "control_explained"),
        (1, 0.3, "b", "relational_candidate"),
        (2, None, "a", "null"),
    )
]


@pytest.fixture(scope="module")
def figure() -> Figure:
    tables = decisions(*CLAIMS) | {CONTROL_DELTAS.name: DELTAS}
    made = make(material(tables, {CONVENTIONAL_CONTRAST.name: CONTRAST}))
    assert isinstance(made, Figure)
    return made


def test_bars_are_counts_in_the_order_of_the_chain():
    rows = rows_of(material(decisions(*CLAIMS), {CONVENTIONAL_CONTRAST.name: CONTRAST}))
    bars = bars_of(rows).select("analysis", "kind", "n", "total").rows()
    assert bars == [
        ("raw_predictive_pearson", WEAKER, 30, 40),
        ("raw_predictive_pearson", ROWS, 10, 40),
        ("raw_predictive_pearson", "paper", 4, 8),
        ("raw_predictive_pearson", "calibrated", 2, 8),
        ("integrated_decision", WEAKER, 6, 8),
        ("integrated_decision", "paper", 1, 8),
        ("integrated_decision", "calibrated", 0, 8),
    ]


def test_means_run_over_subject_runs_with_both_numbers():
    tables = decisions(*CLAIMS) | {CONTROL_DELTAS.name: DELTAS}
    scores = scores_of(material(tables))
    first = scores.filter(gate_profile="paper", layer=1).row(0, named=True)
    assert first["real"] == pytest.approx((0.4 + 0.2) / 2)
    assert first["control"] == pytest.approx((0.1 + 0.3) / 2)
    assert (first["n"], first["n_left_out"]) == (2, 1)
    assert first["label"] == "relational_candidate"  # the strongest of its mechanisms
    second = scores.filter(gate_profile="paper", layer=2).row(0, named=True)
    assert (second["real"], second["n"], second["n_left_out"]) == (None, 0, 1)


def test_the_picture_shows_both(figure: Figure):
    root = checked_svg(figure)
    found = marks(root)
    lengths = {}
    for own in found:
        shape = re.match(r"M([\d.]+),[\d.]+h([\d.]+)v", own.element.get("d", ""))
        if shape:
            lengths[own.text] = (float(shape[1]), float(shape[2]))
    longest = lengths[
        "raw predictive pearson, weaker rule (score > 0): 30 of 40 rows (75 %) positive"
    ]
    passed = lengths[
        "raw predictive pearson, gate predictive, point rules: 4 of 8 claims (50 %) pass"
    ]
    assert longest[0] == passed[0]
    assert longest[1] / passed[1] == pytest.approx(1.5)
    points = [own for own in found if own.dataset == "d"]
    assert {own.profile for own in points} == {"paper", "calibrated"}
    assert len(points) == 2  # layer 2 has no number
    assert [own.value for own in points] == pytest.approx([0.3, 0.3])
    assert "1 layer without these numbers not drawn" in figure.caption
    assert {"30 of 40 rows", "4 of 8 claims", "relational candidate", "equal"} <= set(texts(root))
    assert width_of(root) <= 1000


def test_without_the_robustness_tables_claims_are_counted():
    rows = rows_of(
        material(
            decisions(claim("P", raw_score=0.1), claim(raw_score=-0.1, layer=2, raw_positive=False))
        )
    )
    assert rows.select("analysis", "n_positive", "n_total", "n_claims_pass").rows() == [
        ("raw_score_above_zero", 1, 2, 1),
        ("integrated_decision", 1, 2, 0),
    ]
    made = make(material(decisions(claim())))
    assert isinstance(made, Figure)
    assert "Below" not in made.caption  # no level-1 table, no second panel
    assert isinstance(make(material({})), Missing)


def test_names_from_data_stay_text():
    tables = decisions(claim(dataset=EVIL, model=EVIL)) | {
        CONTROL_DELTAS.name: pl.DataFrame([deltas(dataset=EVIL, model=EVIL)])
    }
    root = checked_svg(make(material(tables)))
    assert not [own for own in root.iter() if own.tag.endswith(("script", "img"))]
    assert EVIL in {own.dataset for own in marks(root)}


def test_a_real_run_agrees_with_the_level_1_table(small_run: Run):
    tables = {table.name: small_run.table(table.name) for table in small_run.tables()}
    scores = scores_of(Material(tables, small_run.config))
    raw = tables["decisions/lpact_decision_table"].unique(["dataset", "model", "layer"])
    both = scores.filter(gate_profile="paper").join(raw, on=["dataset", "model", "layer"])
    assert both.height == 6
    assert both["n_left_out"].sum() == 0
    assert both["real"].to_list() == pytest.approx(both["raw_score"].to_list())
    config = small_run.config
    reads = [*READS, *(table for table in READS_IF_THERE if table.name in tables)]
    more = robustness(
        {table.name: tables[table.name] for table in reads},
        gates=config.gates,
        primary_metric=config.readout.primary_metric,
        seed=config.seed,
    )
    rows = rows_of(Material(tables, config, more))
    positive = tables[CONTROL_DELTAS.name].filter(
        pl.col("metric") == "pearson", pl.col("real_score") > 0
    )
    first = rows.row(0, named=True)
    assert (first["analysis"], first["n_positive"]) == ("raw_predictive_pearson", positive.height)
