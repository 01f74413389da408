"""Conventional scores against L-PACT: shares of bars, means over the same subject-runs, verdicts as shapes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest
from decision_rows import claim, decisions
from figure_checks import checked_svg, marks, material, texts, width_of

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.conventional import ROWS, WEAKER, bars_of, make
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, PROFILE_DELTAS, STRIPPING_DELTAS
from lpact.report.figure import Figure, Missing

if TYPE_CHECKING:
    from lpact.study import Run


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
        "delta_nuisance": 0.1,
        "confirmatory": True,
        "gate_pass": False,
        **changes,
    }


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
    claim(
        "P" if mechanism == "b" else "",
        gate_profile=profile,
        layer=i,
        mechanism=mechanism,
        label=label,
        raw_score=score,
        raw_positive=label != "null",
    )
    for profile in ("paper", "calibrated")
    for i, score, mechanism, label in (
        (1, 0.3, "a", "control_explained"),
        (1, 0.3, "b", "relational_candidate"),
        (2, None, "a", "null"),
    )
]


@pytest.fixture(scope="module")
def figure() -> Figure:
    made = make(material(decisions(*CLAIMS) | {CONTROL_DELTAS.name: DELTAS}))
    assert isinstance(made, Figure)
    return made


def similar(profile: str, value: float | None, **changes) -> dict:
    own = {"dataset": "d", "profile": profile, "real_similarity": value}
    return {**own, "confirmatory": True, "gate_pass": False, **changes}


def drop(value: float, **changes) -> dict:
    own = {"dataset": "d", "drop": value, "matching": True}
    return {**own, "confirmatory": True, "gate_pass": False, **changes}


ROWS_OF_RUN = {
    CONTROL_DELTAS.name: pl.DataFrame(
        [
            deltas(gate_pass=True),
            deltas(subject="2", real_score=-0.2, delta_nuisance=-0.1),
            deltas(subject="3", delta_nuisance=-0.1),
            deltas(metric="spearman", real_score=-0.2, delta_nuisance=0.3),
            deltas(dataset="e", confirmatory=False),
        ]
    ),
    PROFILE_DELTAS.name: pl.DataFrame(
        [
            *(similar("cosine", 0.5, gate_pass=i == 0) for i in range(4)),
            *(similar("pearson", value) for value in (0.2, -0.2, None, -0.1)),
            similar("cosine", -0.5, dataset="e", confirmatory=False),
        ]
    ),
    STRIPPING_DELTAS.name: pl.DataFrame(
        [
            drop(0.1, gate_pass=True),
            drop(-0.1),
            *(drop(0.1, matching=False) for _ in range(5)),
            drop(0.1, dataset="e", confirmatory=False),
        ]
    ),
}


def of_a_run(metric: str = "pearson") -> Material:
    claims = [*CLAIMS, claim(dataset="e", label="diagnostic_only")]
    return material(decisions(*claims) | ROWS_OF_RUN, readout={"primary_metric": metric})


def test_only_what_can_pass_is_counted():
    bars = bars_of(of_a_run()).filter(pl.col("kind") != "calibrated")
    assert bars.select("evidence", "kind", "n", "total").rows() == [
        ("raw predictive score", WEAKER, 2, 3),  # one metric, and not the diagnostic dataset
        ("raw predictive score", ROWS, 1, 3),
        ("raw predictive score", "paper", 1, 3),
        ("improvement over nuisance", WEAKER, 1, 3),
        ("improvement over nuisance", ROWS, 1, 3),
        ("improvement over nuisance", "paper", 1, 3),
        ("raw relational similarity", WEAKER, 5, 8),
        ("raw relational similarity", ROWS, 1, 8),
        ("raw relational similarity", "paper", 0, 3),
        ("raw stripping drop", WEAKER, 1, 2),  # matching targets
        ("raw stripping drop", ROWS, 1, 2),
        ("raw stripping drop", "paper", 0, 3),
        ("whole decision", WEAKER, 2, 3),
        ("whole decision", "paper", 0, 3),
    ]


def test_the_weaker_rule_uses_the_primary_metric():
    bars = bars_of(of_a_run("spearman")).filter(kind=WEAKER)
    assert bars.select("n", "total", "rule").head(2).rows() == [
        (0, 1, "held-out Spearman ρ > 0"),
        (1, 1, "Spearman ρ above nuisance"),
    ]


def test_the_caption_says_what_is_counted():
    caption = make(of_a_run()).caption
    assert "level 1 at the primary metric (Pearson r), level 3 at the matching target" in caption
    assert "The 3 claims are of 2 layers; claims of one layer share everything" in caption


def test_bars_are_as_long_as_their_shares(figure: Figure):
    root = checked_svg(figure)
    found = marks(root)
    lengths = {}
    for own in found:
        shape = re.match(r"M([\d.]+),[\d.]+h([\d.]+)v", own.element.get("d", ""))
        if shape:
            lengths[own.text] = (float(shape[1]), float(shape[2]))
    # Of layer 1 three subject-runs have a positive Pearson r, layer 2 has no number: 3 of 4 rows.
    longest = lengths["raw predictive score, weaker rule (held-out Pearson r > 0): 3 of 4 rows (75 %) positive"]
    passed = lengths["raw predictive score, gate predictive, point rules: 1 of 3 claims (33.3 %) pass"]
    assert longest[0] == passed[0]
    assert longest[1] / passed[1] == pytest.approx(2.25, abs=0.01)
    assert {"3 of 4 rows", "1 of 3 claims"} <= set(texts(root))
    assert width_of(root) <= 1000


def test_without_the_tables_of_the_levels_claims_are_counted():
    made = make(material(decisions(claim())))
    assert isinstance(made, Figure)
    assert made.summary == ("Whole decision: 1 of 1 claims positive, claims that pass 0 of 1 (point rules).")
    assert isinstance(make(material({})), Missing)
    assert isinstance(make(material(decisions(claim(label="diagnostic_only")))), Missing)


def test_a_real_run_agrees_with_the_level_1_table(small_run: Run):
    tables = {table.name: small_run.table(table.name) for table in small_run.tables()}
    metric = small_run.config.readout.primary_metric
    judged = tables[CONTROL_DELTAS.name].filter(pl.col("metric") == metric, pl.col("confirmatory"))
    first = bars_of(Material(tables, small_run.config)).row(0, named=True)
    assert (first["n"], first["total"]) == (int((judged["real_score"] > 0).sum()), judged.height)
    assert judged.height < tables[CONTROL_DELTAS.name].height  # one of the two datasets is diagnostic
