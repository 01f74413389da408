"""The decision matrix: one row per dataset, model and layer, one column per gate, for both gate profiles."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import GATE_NAMES, GATE_PROFILES, GATES, LABEL_RANK, LAYER, marked
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.codes import FinalLabel
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure
from lpact.report.panels import PART, SHARES
from lpact.wording import counted, fixed, short, spoken

MOST_ROWS = 150
"""Layers that are drawn; of larger studies those with the best verdicts."""
_NAMES, _SCORES, _GATE, _VERDICT, _STEP = 150, 62, 25, 205, 28


def rows_of(material: Material) -> pl.DataFrame:
    """One row per gate profile, dataset, model and layer, in the order of the table's key.

    Columns of a gate's letter count the mechanisms whose claim passes it, out of ``n_claims``. ``label`` is the
    strongest verdict among the mechanisms and ``n_label`` how many have it; ``first_failed_gate`` and ``beaten_by`` are
    those of the one that passes most gates among these, and ``n_failed`` of all claims failed on the same.
    """
    rank = pl.col("label").replace_strict(LABEL_RANK, return_dtype=pl.Int64)
    n_passed = pl.sum_horizontal(pl.col(list(GATES.values())).cast(pl.Int64))
    order = pl.col("gate_profile").cast(common.GATE_PROFILE_ORDER)
    ranked = material.table(DECISIONS.name).with_columns(rank=rank)
    ranked = ranked.sort(order, *LAYER, "rank", -n_passed, "mechanism")
    failure, first = pl.struct("first_failed_gate", "beaten_by"), pl.col("label").first()
    return ranked.group_by("gate_profile", *LAYER, maintain_order=True).agg(
        pl.col("role", "n_subject_runs", "rank", "label", "first_failed_gate", "beaten_by").first(),
        pl.col("reason").first(),
        pl.col("raw_score").fill_nan(None).first(),
        *(pl.col(column).sum().cast(pl.Int64).alias(letter) for letter, column in GATES.items()),
        n_claims=pl.len().cast(pl.Int64),
        n_label=(pl.col("label") == first).sum().cast(pl.Int64),
        n_failed=failure.eq(failure.first()).sum().cast(pl.Int64),
        confirmatory=first != FinalLabel.DIAGNOSTIC_ONLY.value,
    )


def verdict_text(row: dict[str, Any]) -> tuple[str, str]:
    """The verdict, and what it failed on where it is not the strongest: ``control explained``, ``P: nuisance``."""

    def of_claims(text: str, n: int) -> str:
        return text if n == row["n_claims"] else f"{text}, {n} of {row['n_claims']}"

    label = of_claims(spoken(row["label"]), row["n_label"])
    if row["beaten_by"] == "none" or row["label"] == FinalLabel.INTEGRATED_CANDIDATE.value:
        return label, ""
    letters = {"mechanism": "M"} | {column: letter for letter, column in GATES.items()}
    gate = letters.get(row["first_failed_gate"])
    by_control = gate in ("P", "S", "R")  # names of controls stay as they are
    beaten = row["beaten_by"] if by_control else spoken(row["beaten_by"])
    return label, of_claims(f"{gate}: {beaten}" if gate else beaten, row["n_failed"])


@figure("decision_matrix", "Decision matrix: claims by gates", DECISIONS)
def make(material: Material) -> Drawing | str:
    """Draw the matrix."""
    rows = rows_of(material)
    if rows.is_empty():
        return "the study makes no claim"
    best, left_out = common.shown(material, rows, MOST_ROWS, DECISIONS)
    shown = rows.join(best, on=LAYER, how="semi", maintain_order="left")
    head, domain = f"raw {common.metric_name(material)}", panels.domain(shown["raw_score"])
    blocks = common.blocks(shown, lambda own, first: _block(own, head if first else "", domain, first), 10, "role")
    key = panels.key(
        ("all claims pass", SHARES["all"]),
        ("some do, n/m", PART),
        ("none passes", SHARES["none"]),
        ("not confirmatory, no gate can pass", SHARES["unknown"]),
        " · ".join(f"{letter} {name}" for letter, name in GATE_NAMES.items()),
        width=700,
    )
    missing = rows.filter(pl.col("raw_score").is_null()).select(LAYER).n_unique()
    caption = {
        "One row per dataset, model and layer, with one claim per mechanism (at most "
        f"{max(rows['n_claims'])}); only gate M and the verdict can differ between the claims of a row.": True,
        "The verdict is the strongest of the row, with the first gate that its best claim failed and what it was "
        "beaten by. Bars show the mean held-out score of the real features over subject-runs; hollow ones are below "
        "zero.": True,
        f"{counted(missing, 'row')} without a score: a dash.": missing,
        left_out: left_out,
    }
    return panels.stacked(*blocks, key, spacing=12), caption, _summary(rows)


def _block(rows: pl.DataFrame, score: str, domain: tuple[float, float], first: bool) -> list[Any]:
    """The rows of one dataset: names, scores, and for each profile gates and verdicts."""
    rows = rows.with_columns(lane=pl.format("{} · {}", "model", "layer"))
    layers = rows.unique(LAYER, maintain_order=True)
    y = panels.lanes("lane", layers["lane"], shown=False)
    head = "model · layer" if first else ""
    parts: list[Any] = [
        panels.column(layers, "lane", y, _NAMES, step=_STEP, title=head),
        _scores(layers, score, domain, y),
    ]
    for own in rows.partition_by("gate_profile", maintain_order=True):
        parts += [_gates(own, y, first=first), _verdicts(own, y, first=first)]
    return parts


def _scores(layers: pl.DataFrame, head: str, domain: tuple[float, float], y: Spec) -> alt.LayerChart:
    """Bars from zero, hollow where negative, with the number next to them."""
    numbers = layers.with_columns(shown=pl.Series([fixed(own, 2) for own in layers["raw_score"]]))
    text = "{at}: raw score {raw_score}, mean over {n_subject_runs:subject-run}"
    bars = marked(layers, text, "raw_score")
    x, positive = panels.bare("raw_score", domain), pl.col("raw_score") > 0
    return panels.overlay(
        panels.bars(bars.filter(positive), x, y, "real", height=11),
        panels.bars(bars.filter(~positive), x, y, "control", hollow=True, height=11),
        panels.text(numbers, "shown", {"value": -6}, y, align="right", size=10),
        panels.reference(0),
        panels.heading(head, -34),
        width=_SCORES,
        step=_STEP,
    )


def _gates(rows: pl.DataFrame, y: Spec, *, first: bool) -> alt.LayerChart:
    """One symbol per gate."""
    kept = ["gate_profile", *LAYER, "lane", "n_claims", "confirmatory"]
    cells = rows.unpivot(list(GATES), index=kept, variable_name="gate", value_name="n_passed")
    judged = pl.when("confirmatory")
    result = judged.then(pl.format("{} of {} claims pass", "n_passed", "n_claims"))
    cells = cells.with_columns(
        share=judged.then(pl.col("n_passed") / pl.col("n_claims")),
        result=result.otherwise(pl.lit("not confirmatory, no gate can pass")),
        gate_name=pl.col("gate").replace_strict(GATE_NAMES),
        count=pl.format("{}/{}", "n_passed", "n_claims"),
    )
    cells = marked(cells, "{at}; {rules}, gate {gate}, {gate_name}: {result}", "n_passed")
    part = cells.filter(pl.col("share").is_between(0, 1, closed="none")).drop("mark")
    x = panels.lanes("gate", GATES, labels=first, orient="top", labelFontWeight="bold", labelPadding=3)
    profile = rows["gate_profile"][0]
    head = f"{GATE_PROFILES[profile]} ({profile})" if first else ""
    return panels.overlay(
        *panels.shares(cells, x, y),
        panels.text(part, "count", x, y, size=8, align="center", dy=11),
        panels.heading(head, y=-28, ink="ink", fontWeight="bold"),
        width=_GATE * len(GATES),
        step=_STEP,
    )


def _verdicts(rows: pl.DataFrame, y: Spec, *, first: bool) -> alt.LayerChart:
    """The verdict, bold where it is positive, and below it what it failed on."""
    texts = [verdict_text(row) for row in rows.iter_rows(named=True)]
    upper, lower = ([short(own, _VERDICT // 5) for own in part] for part in zip(*texts, strict=True))
    rows = rows.with_columns(
        pl.Series("upper", upper),
        pl.Series("lower", lower),
        label=pl.Series([spoken(label) for label in rows["label"]]),
        strong=pl.col("label").str.ends_with("_candidate") | (pl.col("label") == "predictive_only"),
    )
    passed = ", ".join(f"{letter} {{{letter}}}" for letter in GATES)
    text = "{at}; {rules}: {label} for {n_label} of {n_claims:claim}. "
    marks, left = marked(rows, f"{text}Claims that pass: {passed}. {{reason}}"), {"value": 0}
    strong, weak = marks.filter("strong"), marks.filter(~pl.col("strong"))
    return panels.overlay(
        panels.text(strong, "upper", left, y, size=10, dy=-6, fontWeight="bold"),
        panels.text(weak, "upper", left, y, size=10, dy=-6),
        panels.text(rows, "lower", left, y, size=10, ink="muted", dy=7),
        panels.heading("best verdict · failed gate: beaten by" if first else ""),
        width=_VERDICT,
        step=_STEP,
    )


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    for own in rows.partition_by("gate_profile", maintain_order=True):
        counts = own.sort("rank").group_by("label", maintain_order=True).len()
        verdicts = ", ".join(f"{spoken(label)} {n}" for label, n in counts.iter_rows())
        rules = GATE_PROFILES[own["gate_profile"][0]].capitalize()
        parts.append(f"{rules}, best verdict of each row: {verdicts}.")
    return " ".join(parts)
