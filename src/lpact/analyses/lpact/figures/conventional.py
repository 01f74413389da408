"""Conventional scores and L-PACT: what a weaker rule alone would call positive, and what passes."""

from __future__ import annotations

from typing import Any, NamedTuple

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.common import (
    LABEL_RANK,
    LAYER,
    PROFILES,
    metric_name,
    primary_deltas,
    where,
)
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.gates.wording import words
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import (
    CONTROL_DELTAS,
    DISSOCIATIONS,
    NORMALIZED_SCORES,
    PROFILE_DELTAS,
    STRIPPING_DELTAS,
)
from lpact.codes import FinalLabel
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import BOX, CROSS, DASH, Look
from lpact.report.wording import counted, number
from lpact.tables import Table

WEAKER, ROWS = "weaker rule", "rows that pass"
DISSOCIATION = "double dissociation"
"""A diagnostic without a rule for rows: no row of it can pass or fail."""

_KEYS = {
    WEAKER: ("positive by the weaker rule alone", Look(BOX, "nuisance", "nuisance", 180)),
    ROWS: ("rows that pass their rule", Look(BOX, "missing", "control", 180)),
    PAPER: (f"claims that pass the gate, {PROFILES[PAPER]}", Look(BOX, "paper", "pass", 180)),
    CALIBRATED: (f"the same, {PROFILES[CALIBRATED]}", Look(BOX, "pass", "pass", 180)),
}
LOOKS = {
    "integrated_candidate": Look("diamond", "pass", "pass", 88),
    "mechanism_specific_candidate": Look("triangle-right", "pass", "pass", 88),
    "relational_candidate": Look("triangle-up", "pass", "pass", 88),
    "predictive_only": Look("square", "pass", "pass", 88),
    "insufficient_brain_ceiling": Look("triangle-down", None, "line", 88),
    "control_explained": Look(CROSS, None, "fail", 120),
    "null": Look(DASH, None, "fail", 120),
    "insufficient_coverage": Look("triangle-left", None, "line", 88),
    "diagnostic_only": Look("circle", None, "line", 88),
}
"""Symbol of each verdict: filled where it is a positive one."""


class _Evidence(NamedTuple):
    """A kind of evidence: its rows, those that can pass, those that a weaker rule calls positive, and its gate."""

    name: str
    table: Table
    eligible: pl.Expr
    positive: pl.Expr
    rule: str
    gate: str


def _evidence(material: Material) -> list[_Evidence]:
    metric = material.config.readout.primary_metric
    least = LPactConfig.of(material.config).gates.min_ceiling_fraction
    judged, primary = pl.col("confirmatory"), pl.col("metric") == metric
    named = metric_name(metric)
    datasets = judged_claims(material)["dataset"].unique().to_list()
    kinds = [
        ("raw predictive score", CONTROL_DELTAS, judged & primary, pl.col("real_score") > 0,
         f"held-out {named} > 0", "predictive"),
        ("improvement over nuisance", CONTROL_DELTAS, judged & primary, pl.col("delta_nuisance") > 0,
         f"{named} above that of nuisance", "predictive"),
        ("raw relational similarity", PROFILE_DELTAS, judged, pl.col("real_similarity") > 0,
         "profile similarity > 0", "relational"),
        ("raw stripping drop", STRIPPING_DELTAS, judged & pl.col("matching"), pl.col("drop") > 0,
         "drop of the matching target > 0", "mechanism_specific"),
        (DISSOCIATION, DISSOCIATIONS, pl.col("dataset").is_in(datasets), pl.col("double_dissociation"),
         "matching drops > 0 and above the crossed ones", "mechanism_specific"),
        ("raw ceiling fraction", NORMALIZED_SCORES, judged, pl.col("fraction_of_ceiling") >= least,
         f"fraction of the ceiling ≥ {least:g}", "ceiling"),
    ]  # fmt: skip
    return [own for own in map(_Evidence._make, kinds) if material.has(own.table.name)]


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
    claims = judged_claims(material)
    made: list[dict[str, Any]] = []

    def add(evidence: str, rule: str, gate: str, kind: str, n: int, total: int, what: str) -> None:
        made.append(
            {"evidence": evidence, "rule": rule, "gate": gate, "kind": kind}
            | {"n": n, "total": total, "what": what, "share": n / max(total, 1)}
        )

    def add_claims(evidence: str, rule: str, gate: str) -> None:
        for profile in PROFILES:
            own = claims.filter(gate_profile=profile)
            if own.height:
                add(evidence, rule, gate, profile, int(own[gate].sum()), own.height, "claims")

    for own in _evidence(material):
        rows = material.table(own.table.name).filter(own.eligible)
        named = (own.name, own.rule, own.gate)
        add(*named, WEAKER, rows.filter(own.positive).height, rows.height, "rows")
        if own.name != DISSOCIATION:
            add(*named, ROWS, int(rows["gate_pass"].sum()), rows.height, "rows")
        add_claims(*named)
    whole = ("whole decision", "a raw positive at any level", "integrated")
    first = claims.filter(gate_profile=claims["gate_profile"].first())
    add(*whole, WEAKER, int(first["raw_positive"].sum()), first.height, "claims")
    add_claims(*whole)
    return pl.DataFrame(made)


def scores_of(material: Material) -> pl.DataFrame:
    """One row per gate profile and layer: mean score, mean score of the best control, strongest verdict.

    Both means run over the same ``n`` subject-runs, those with both numbers; ``n_left_out`` others are counted.
    """
    order = {name: place for place, name in enumerate(PROFILES)}
    verdicts = (
        material.table(DECISIONS.name)
        .sort(
            pl.col("gate_profile").replace_strict(order, return_dtype=pl.Int64),
            *LAYER,
            pl.col("label").replace_strict(LABEL_RANK, return_dtype=pl.Int64),
            "mechanism",
        )
        .group_by("gate_profile", *LAYER, maintain_order=True)
        .agg(pl.col("label").first())
    )
    both = pl.col("real_score").is_finite() & pl.col("best_control_score").is_finite()
    both = both.fill_null(value=False)
    means = primary_deltas(material).group_by(LAYER, maintain_order=True).agg(
        real=pl.col("real_score").filter(both).mean(),
        control=pl.col("best_control_score").filter(both).mean(),
        n=both.sum().cast(pl.Int64),
        n_left_out=(~both).sum().cast(pl.Int64),
    )  # fmt: skip
    return verdicts.join(means, on=LAYER, how="left", maintain_order="left")


@figure("conventional", "Conventional scores against L-PACT", DECISIONS)
def make(material: Material) -> Drawing | str:
    """Shares of what a weaker rule and what L-PACT calls positive; below, scores against the best control."""
    if judged_claims(material).is_empty():
        return "the study makes no claim that can pass"
    bars = bars_of(material)
    parts: list[Any] = [_bars(bars)]
    caption, summary = _caption(material, bars), _summary(bars)
    if material.has(CONTROL_DELTAS.name):
        scores = scores_of(material)
        drawn = scores.drop_nulls("real")
        if drawn.height:
            parts.append(_scores(drawn, metric_name(material.config.readout.primary_metric)))
            caption += _scores_caption(scores, drawn)
            summary += _scores_summary(drawn)
    return panels.stacked(*parts, spacing=28), caption, summary


def _bars(bars: pl.DataFrame) -> alt.VConcatChart:
    """One group of bars per kind of evidence, with an empty lane after each."""
    order: list[str] = []
    for own in bars.partition_by("evidence", maintain_order=True):
        order += [f"{own['evidence'][0]}/{kind}" for kind in [*own["kind"], ""]]
    bars = bars.with_columns(
        lane=pl.concat_str("evidence", pl.lit("/"), "kind"),
        count=pl.Series([_count(row) for row in bars.iter_rows(named=True)]),
    )
    y = {**panels.lanes("lane", order[:-1]), "axis": None}
    x = panels.axis("share", "share of rows or claims", (0, 1), fmt=".0%", grid=True)
    marked = with_marks(bars, _bar_tooltip, "n")
    layers = [
        panels.layer(
            marked.filter(kind=kind),
            "bar",
            {"fill": look.fill, "stroke": look.edge, "strokeWidth": 1, "height": 11},
            x=x,
            x2={"datum": 0},
            y=y,
        )
        for kind, (_, look) in _KEYS.items()
    ]
    first = bars.unique("evidence", keep="first", maintain_order=True)
    size: dict[str, Any] = {"height": {"step": 13}}
    names = panels.overlay(
        panels.text(first, "evidence", {"value": 0}, y, fontWeight="bold"),
        panels.text(first, "rule", {"value": 0}, y, size=10, ink="muted", dy=15),
        width=240,
        **size,
    )
    plot = panels.overlay(
        *layers, panels.text(bars, "count", x, y, size=10, dx=5), width=500, **size
    )
    keys = [_KEYS[kind] for kind in _KEYS if kind in set(bars["kind"])]
    return panels.stacked(panels.key(*keys), panels.beside(names, plot))


def _count(row: dict[str, Any]) -> str:
    return f"{row['n']:,} of {row['total']:,} {row['what']}"


def _bar_tooltip(row: dict[str, Any]) -> str:
    share = f"{_count(row)} ({100 * row['share']:.3g} %)"
    if row["kind"] == WEAKER:
        return f"{row['evidence']}, weaker rule ({row['rule']}): {share} positive"
    if row["kind"] == ROWS:
        return f"{row['evidence']}: {share} pass their row rule"
    return f"{row['evidence']}, gate {words(row['gate'])}, {PROFILES[row['kind']]}: {share} pass"


def _scores(scores: pl.DataFrame, metric: str) -> alt.VConcatChart:
    """One square panel per gate profile, with the line of equality and verdicts as symbols."""
    domain = panels.domain(scores["real"], scores["control"])
    x = panels.axis("control", f"best severe control, held-out {metric}", domain, ticks=6)
    y = panels.axis("real", f"real features, held-out {metric}", domain, ticks=6)
    ends = pl.DataFrame({"control": domain, "real": domain, "text": ["", "equal"]})
    equal = {"color": "line", "strokeDash": [4, 3]}
    marked = panels.with_looks(with_marks(scores, _score_tooltip, "real"), "label", LOOKS)
    parts = [
        panels.overlay(
            panels.reference(0, "x", thick=0.7),
            panels.reference(0, "y", thick=0.7),
            panels.layer(ends, "line", equal, x=x, y=y),
            panels.text(ends.tail(1), "text", x, y, ink="muted", align="right", dx=-22, dy=8),
            panels.points(marked.filter(gate_profile=profile), x, y, thick=1.6),
            width=340,
            height=340,
            title=panels.title(PROFILES[profile], f"gate profile {profile}", offset=6),
        )
        for profile in PROFILES
        if profile in set(scores["gate_profile"])
    ]
    found = set(scores["label"])
    keys = [(words(label), look) for label, look in LOOKS.items() if label in found]
    return panels.stacked(panels.beside(*parts, spacing=60), panels.key(*keys))


def _score_tooltip(row: dict[str, Any]) -> str:
    left = f", {row['n_left_out']} more not computed" if row["n_left_out"] else ""
    return (
        f"{where(row)}; {PROFILES[row['gate_profile']]}: {words(row['label'])}. Real features "
        f"{number(row['real'])}, best control {number(row['control'])} (mean over "
        f"{counted(row['n'], 'subject-run')}{left})"
    )


def _caption(material: Material, bars: pl.DataFrame) -> str:
    claims = judged_claims(material)
    n = bars.filter(what="claims")["total"].max()
    metric = metric_name(material.config.readout.primary_metric)
    parts = [
        "Above: for each kind of evidence, what a weaker rule alone would call positive, and what passes, as shares of "
        "what can pass at all, including what could not be computed: rows and claims of confirmatory datasets, level 1 "
        f"at the primary metric ({metric}), level 3 at the matching target. Rows are judged by the point rule for "
        "rows, claims by the gate of this evidence.",
        f"The {counted(int(str(n)), 'claim')} are of {counted(claims.select(LAYER).n_unique(), 'layer')}; claims of "
        "one layer share everything but the mechanism.",
    ]
    if DISSOCIATION in set(bars["evidence"]):
        parts.append("Double dissociations are a diagnostic: rows have no rule, and so no bar.")
    if material.has(PROFILE_DELTAS.name):
        rows = material.table(PROFILE_DELTAS.name).filter("confirmatory")
        cosine = pl.col("profile") == "cosine"
        groups = [own["real_similarity"] for own in (rows.filter(cosine), rows.filter(~cosine))]
        if all(own.len() for own in groups):
            shares = [f"{(own > 0).sum() / own.len():.0%}" for own in groups]
            parts.append(
                "Similarities above zero mean little where patterns are all positive: of profile cosines "
                f"{shares[0]} are, of the other similarities {shares[1]}; fractions of the ceiling and “a raw positive "
                "at any level” inherit this."
            )
    return " ".join(parts)


def _scores_caption(scores: pl.DataFrame, drawn: pl.DataFrame) -> str:
    n = drawn.select(LAYER).n_unique()
    absent = scores.select(LAYER).n_unique() - n
    missing = f" {counted(absent, 'layer')} without these numbers not drawn." if absent else ""
    return (
        f" Below: {counted(n, 'layer')}, mean held-out score of the real features against that of the best severe "
        "control of each subject-run, over the same subject-runs; below the line of equality a control scores higher. "
        f"Symbols are the layer's strongest verdict.{missing}"
    )


def _summary(bars: pl.DataFrame) -> str:
    parts = []
    for own in bars.partition_by("evidence", maintain_order=True):
        weaker, *rest = own.iter_rows(named=True)
        passed = " and ".join(
            f"{row['n']:,} of {row['total']:,} ({PROFILES[row['kind']]})"
            for row in rest
            if row["kind"] in PROFILES
        )
        parts.append(
            f"{weaker['evidence'].capitalize()}: {_count(weaker)} positive, claims that pass {passed}."
        )
    return " ".join(parts)


def _scores_summary(drawn: pl.DataFrame) -> str:
    layers = drawn.unique(LAYER, maintain_order=True)
    above = layers.filter(pl.col("real") > pl.col("control")).height
    best = layers.sort("real", descending=True).row(0, named=True)
    return (
        f" {above} of {counted(layers.height, 'layer')} score above their best control; the highest score is "
        f"{number(best['real'])}, its best control {number(best['control'])}."
    )
