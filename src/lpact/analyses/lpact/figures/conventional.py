"""What a conventional analysis would call positive, and what passes the gates."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import GATE_PROFILES, LAYER, marked
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, NORMALIZED_SCORES, PROFILE_DELTAS, STRIPPING_DELTAS
from lpact.codes import FinalLabel
from lpact.report import panels
from lpact.report.figure import Drawing, figure
from lpact.report.panels import BOX, Look
from lpact.wording import counted, spoken

WEAKER, ROWS = "weaker rule", "rows that pass"
_KEYS = {
    WEAKER: ("positive by the weaker rule alone", Look(BOX, "nuisance", "nuisance", 180)),
    ROWS: ("rows that pass their rule", Look(BOX, "missing", "control", 180)),
    PAPER: (f"claims that pass the gate, {GATE_PROFILES[PAPER]}", Look(BOX, "paper", "pass", 180)),
    CALIBRATED: (f"the same, {GATE_PROFILES[CALIBRATED]}", Look(BOX, "pass", "pass", 180)),
}


def judged_claims(material: Material) -> pl.DataFrame:
    """Claims that can pass: those of confirmatory datasets."""
    label = pl.col("label")
    return material.table(DECISIONS.name).filter(label != FinalLabel.DIAGNOSTIC_ONLY.value)


def bars_of(material: Material) -> pl.DataFrame:
    """One row per bar: ``n`` of ``total`` rows or claims (``what``) of a kind of evidence.

    Rows are those of confirmatory datasets, level 1 at the primary metric and level 3 at matching targets; claims are
    those of confirmatory datasets. The last kind of evidence is the study's own: claims with a raw positive at any
    level, and those that pass every gate.
    """
    claims, metric = judged_claims(material), common.metric_name(material)
    least = LPactConfig.of(material.config).gates.min_ceiling_fraction
    primary = pl.col("metric") == material.config.readout.primary_metric
    made: list[tuple[Any, ...]] = []

    def add(named: tuple[str, str, str], kind: str, passed: pl.Series, what: str) -> None:
        made.append((*named, kind, int(passed.sum()), passed.len(), what))

    def add_claims(named: tuple[str, str, str]) -> None:
        for profile in common.profiles_in(claims):
            add(named, profile, claims.filter(gate_profile=profile)[named[2]], "claims")

    for name, rule, gate, table, positive, eligible in (
        ("raw predictive score", f"held-out {metric} > 0", "predictive",
         CONTROL_DELTAS, pl.col("real_score") > 0, primary),
        ("improvement over nuisance", f"{metric} above nuisance", "predictive",
         CONTROL_DELTAS, pl.col("delta_nuisance") > 0, primary),
        ("raw relational similarity", "profile similarity > 0", "relational",
         PROFILE_DELTAS, pl.col("real_similarity") > 0, pl.lit(value=True)),
        ("raw stripping drop", "drop of the matching target > 0", "mechanism_specific",
         STRIPPING_DELTAS, pl.col("drop") > 0, pl.col("matching")),
        ("raw ceiling fraction", f"fraction of the ceiling ≥ {least:g}", "ceiling",
         NORMALIZED_SCORES, pl.col("fraction_of_ceiling") >= least, pl.lit(value=True)),
    ):  # fmt: skip
        if material.has(table.name):
            rows = material.table(table.name).filter("confirmatory", eligible)
            weaker = rows.select(positive.fill_null(value=False)).to_series()
            add((name, rule, gate), WEAKER, weaker, "rows")
            add((name, rule, gate), ROWS, rows["gate_pass"], "rows")
            add_claims((name, rule, gate))
    whole = ("whole decision", "a raw positive at any level", "integrated")
    first = claims.filter(gate_profile=claims["gate_profile"].first())
    add(whole, WEAKER, first["raw_positive"], "claims")
    add_claims(whole)
    columns = ["evidence", "rule", "gate", "kind", "n", "total", "what"]
    share = pl.col("n") / pl.max_horizontal("total", 1)
    return pl.DataFrame(made, schema=columns, orient="row").with_columns(share=share)


@figure("conventional", "Conventional evidence against L-PACT", DECISIONS)
def make(material: Material) -> Drawing | str:
    """Shares of what a weaker rule and what L-PACT calls positive."""
    claims = judged_claims(material)
    if claims.is_empty():
        return "the study makes no claim that can pass"
    bars, n_layers = bars_of(material), claims.select(LAYER).n_unique()
    n = bars.filter(what="claims")["total"][0]
    cosine = (
        "Cosine similarities above zero mean little where patterns are all positive; fractions of the ceiling and “a "
        "raw positive at any level” inherit this."
    )
    caption = {
        "For each kind of evidence, what a weaker rule alone would call positive, and what passes, as shares of what "
        "can pass at all, including what could not be computed: rows and claims of confirmatory datasets, level 1 at "
        f"the primary metric ({common.metric_name(material)}), level 3 at the matching target. Rows are judged by the "
        "point rule for rows, claims by the gate of this evidence.": True,
        f"The {counted(n, 'claim')} are of {counted(n_layers, 'layer')}; claims of one layer share everything but the "
        "mechanism.": True,
        cosine if material.has(PROFILE_DELTAS.name) else "": True,
    }
    return _bars(bars), caption, _summary(bars)


def _bars(bars: pl.DataFrame) -> alt.VConcatChart:
    """One group of bars per kind of evidence, with an empty lane after each."""
    order: list[str] = []
    for own in bars.partition_by("evidence", maintain_order=True):
        order += [f"{own['evidence'][0]}/{kind}" for kind in [*own["kind"], ""]]
    bars = bars.with_columns(
        lane=pl.concat_str("evidence", pl.lit("/"), "kind"),
        count=pl.Series([_count(row) for row in bars.iter_rows(named=True)]),
    )
    y = panels.lanes("lane", order[:-1], shown=False)
    x = panels.axis("share", "share of rows or claims", (0, 1), fmt=".0%", grid=True)
    tooltips = marked(bars, _bar_tooltip, "n")
    layers = []
    for kind, (_, box) in _KEYS.items():
        look = {"fill": box.fill, "stroke": box.edge, "strokeWidth": 1, "height": 11}
        layers.append(panels.layer(tooltips.filter(kind=kind), "bar", look, x=x, x2={"datum": 0}, y=y))
    first = bars.unique("evidence", keep="first", maintain_order=True)
    named = panels.overlay(
        panels.text(first, "evidence", {"value": 0}, y, fontWeight="bold"),
        panels.text(first, "rule", {"value": 0}, y, size=10, ink="muted", dy=15),
        width=240,
        step=13,
    )
    counts = panels.text(bars, "count", x, y, size=10, dx=5)
    keys = [_KEYS[kind] for kind in _KEYS if kind in bars["kind"]]
    plot = panels.overlay(*layers, counts, width=500, step=13)
    return panels.stacked(panels.key(*keys), panels.side_by_side(named, plot))


def _count(row: dict[str, Any]) -> str:
    return f"{row['n']:,} of {row['total']:,} {row['what']}"


def _bar_tooltip(row: dict[str, Any]) -> str:
    share = f"{_count(row)} ({100 * row['share']:.3g} %)"
    if row["kind"] == WEAKER:
        return f"{row['evidence']}, weaker rule ({row['rule']}): {share} positive"
    if row["kind"] == ROWS:
        return f"{row['evidence']}: {share} pass their row rule"
    return f"{row['evidence']}, gate {spoken(row['gate'])}, {GATE_PROFILES[row['kind']]}: {share} pass"


def _summary(bars: pl.DataFrame) -> str:
    parts = []
    for own in bars.partition_by("evidence", maintain_order=True):
        weaker, *rest = own.iter_rows(named=True)
        passed = " and ".join(
            f"{row['n']:,} of {row['total']:,} ({GATE_PROFILES[row['kind']]})"
            for row in rest
            if row["kind"] in GATE_PROFILES
        )
        name = weaker["evidence"].capitalize()
        parts.append(f"{name}: {_count(weaker)} positive, claims that pass {passed}.")
    return " ".join(parts)
