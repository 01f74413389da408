"""Conventional scores against L-PACT: shares of bars, means over the same subject-runs, verdicts as shapes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from decision_rows import claim, decisions
from figure_checks import EVIL, checked_svg, marks, material, texts, width_of

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.conventional import make, rows_of, scores_of
from lpact.analyses.lpact.figures.conventional_bars import ROWS, WEAKER, bars_of
from lpact.analyses.lpact.robustness import READS, READS_IF_THERE, robustness
from lpact.analyses.lpact.tables.causal import DISSOCIATIONS, STRIPPING_DELTAS
from lpact.analyses.lpact.tables.predictive import CONTROL_DELTAS
from lpact.analyses.lpact.tables.relational import PROFILE_DELTAS
from lpact.analyses.lpact.tables.robustness import CONVENTIONAL_CONTRAST
from lpact.report.figure import Figure, Missing

if TYPE_CHECKING:
    from lpact.study import Run


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
        "delta_nuisance": 0.1,
        "confirmatory": True,
        "gate_pass": False,
        **changes,
    }


CONTRAST = pl.DataFrame(
    [
        contrast("integrated_decision", "calibrated", 0, counted="claims", gate="integrated"),
        contrast("integrated_decision", "paper", 1, counted="claims", gate="integrated"),
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
        ("raw_predictive_pearson", "paper", 1, 3),
        ("raw_predictive_pearson", "calibrated", 1, 3),
        ("integrated_decision", WEAKER, 2, 3),
        ("integrated_decision", "paper", 0, 3),
        ("integrated_decision", "calibrated", 0, 3),
    ]


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
    DISSOCIATIONS.name: pl.DataFrame(
        {"dataset": ["d", "d", "e"], "double_dissociation": [True, False, True]}
    ),
}
FAIR = [
    "raw_predictive_pearson",
    "nuisance_only_improvement",
    "raw_relational_similarity",
    "raw_stripping_drop",
    "pairwise_double_dissociation",
]


def of_a_run(metric: str = "pearson") -> Material:
    claims = [*CLAIMS, claim(dataset="e", label="diagnostic_only")]
    told = [contrast(name, "paper", 0, n_positive=99, n_total=999) for name in FAIR]
    own = material(
        decisions(*claims) | ROWS_OF_RUN, {CONVENTIONAL_CONTRAST.name: pl.DataFrame(told)}
    )
    readout = own.config.readout.model_copy(update={"primary_metric": metric})
    return replace(own, config=own.config.model_copy(update={"readout": readout}))


def test_only_what_can_pass_is_counted():
    rows = rows_of(of_a_run())
    assert rows.select("analysis", "n_positive", "n_total", "n_lpact_pass", "n_claims").rows() == [
        (FAIR[0], 2, 3, 1, 3),  # one metric, and not the diagnostic dataset
        (FAIR[1], 1, 3, 1, 3),
        (FAIR[2], 5, 8, 1, 3),
        (FAIR[3], 1, 2, 1, 3),  # matching targets
        (FAIR[4], 1, 2, None, 3),
    ]
    assert rows["fair"].all()
    kinds = bars_of(rows).group_by("analysis", maintain_order=True).agg("kind")
    assert dict(kinds.iter_rows())[FAIR[3]] == [WEAKER, ROWS, "paper"]
    assert dict(kinds.iter_rows())[FAIR[4]] == [WEAKER, "paper"]  # a diagnostic has no row rule


def test_the_weaker_rule_uses_the_primary_metric():
    first, second = rows_of(of_a_run("spearman")).head(2).iter_rows(named=True)
    assert (first["n_positive"], first["n_total"], first["rule"]) == (
        0,
        1,
        "held-out Spearman ρ > 0",
    )
    assert (second["n_positive"], second["n_total"]) == (1, 1)


def test_the_caption_says_what_is_counted():
    caption = make(of_a_run()).caption
    assert "level 1 at the primary metric (Pearson r), level 3 at the matching target" in caption
    assert (
        "The 3 claims are of 2 layers; claims of a layer share everything but the mechanism"
        in caption
    )
    assert "of profile cosines 100% are, of the other similarities 25%" in caption
    assert "no rule for rows, so no bar" in caption
    assert "not at hand" not in caption
    alone = make(material(decisions(*CLAIMS), {CONVENTIONAL_CONTRAST.name: CONTRAST}))
    assert "not at hand, and all rows are counted: raw predictive score" in alone.caption


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
    # Of layer 1 three subject-runs have a positive Pearson r, layer 2 has no number: 3 of 4 rows.
    longest = lengths[
        "raw predictive score, weaker rule (held-out Pearson r > 0): 3 of 4 rows (75 %) positive"
    ]
    passed = lengths[
        "raw predictive score, gate predictive, point rules: 1 of 3 claims (33.3 %) pass"
    ]
    assert longest[0] == passed[0]
    assert longest[1] / passed[1] == pytest.approx(2.25, abs=0.01)
    points = [own for own in found if own.dataset == "d"]
    assert {own.profile for own in points} == {"paper", "calibrated"}
    assert len(points) == 2  # layer 2 has no number
    assert [own.value for own in points] == pytest.approx([0.3, 0.3])
    assert "1 layer without these numbers not drawn" in figure.caption
    assert {"3 of 4 rows", "1 of 3 claims", "relational candidate", "equal"} <= set(texts(root))
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
        pl.col("metric") == config.readout.primary_metric,
        pl.col("real_score") > 0,
        pl.col("confirmatory"),
    )
    first = rows.row(0, named=True)
    assert (first["analysis"], first["n_positive"]) == ("raw_predictive_pearson", positive.height)
    table = more[CONVENTIONAL_CONTRAST.name]
    whole = table.filter(analysis="raw_predictive_pearson")["n_total"][0]
    assert first["n_total"] < whole  # one of the two datasets is diagnostic
