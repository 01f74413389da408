"""Scores of models against those of brains: bars, and dots of subjects."""

from __future__ import annotations

import textwrap
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.turing import tables
from lpact.analyses.turing.config import options_of
from lpact.analyses.turing.explain import in_order, of_models
from lpact.analyses.turing.figures import common
from lpact.analyses.turing.figures.common import VERDICTS
from lpact.analyses.turing.summaries import PLACE
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import BOX, BROKEN, LINE, TICK, Look
from lpact.report.theme import colour
from lpact.wording import counted, fixed, listed, spoken

BRAINS = " brains"
"""Lane of the brains; names of models have no space in front."""
SUBJECT = Look("circle", "paper", "ink", 14)
WIDTH, STEP, MOST_PAIRS, MOST_SENTENCES = 260, 24, 120, 8


@figure(
    "brains_and_models",
    "Is the model as close to a brain as brains are to each other?",
    tables.CLAIMS,
    tables.SCORES,
    tables.PAIRS,
    tables.MODEL_PAIRS,
)
def brains_and_models(material: Material) -> Drawing | str:
    """A bar per model over the distribution of pairs of brains, and its verdict."""
    found = common.shown(material)
    if found.claims["score"].is_null().all() and found.claims["between"].is_null().all():
        return common.nothing(material)
    pairs = material.table(tables.PAIRS.name).select(*PLACE, "kind", "source", "target", "value")
    ceiling = pl.when("corrected").then(1.0).otherwise("noise_ceiling")
    scores = found.rows(material.table(tables.SCORES.name).with_columns(ceiling=ceiling))
    values = found.rows(pairs)
    dots = found.rows(common.tested_of_places(material.table(tables.MODEL_PAIRS.name)))
    made = []
    for name, claims in found.places:
        at = claims.select(PLACE).row(0)
        own = [rows for key, rows in scores.items() if key[-1] == at[-1]]
        subjects = [rows["value"] for key, rows in dots.items() if key[-1] == at[-1]]
        reach = panels.domain(
            *(common.brain_pairs(rows)["value"] for key, rows in values.items() if key[-1] == at[-1]),
            *(rows["score"] + sign * rows["sem"].fill_null(0.0) for rows in own for sign in (-1, 1)),
            *(rows["ceiling"] for rows in own),
            *subjects,
        )
        pairs_here = common.brain_pairs(values[at])
        made.append(_place(name, claims, pairs_here, scores[at], dots[at], reach))
    said = of_models(in_order(material))
    lines = [line for own in said[:MOST_SENTENCES] for line in textwrap.wrap(own, 150)]
    lines += [f"… and {counted(len(said) - MOST_SENTENCES, 'model')} more."] * (len(said) > MOST_SENTENCES)
    at_x, at_y = panels.pixels("x"), panels.pixels("y")
    rows = [{"x": 0, "y": 8 + 16 * i, "text": line} for i, line in enumerate(lines)]
    words = panels.overlay(panels.text(rows, "text", at_x, at_y), width=800, height=16 * len(lines) + 2)
    has_ceiling = any(rows["ceiling"].is_not_null().any() for rows in scores.values())
    pooled = options_of(material.config).source == "pooled"
    one = "brain against the others" if pooled else "pair of brains"
    key = panels.key(
        (f"one {one}", Look(TICK, None, "brain", 60)),
        ("95 % of them", Look(BOX, "ramp1", "ramp1", 180)),
        ("score of brains", Look(LINE, None, "brain", 120)),
        ("one subject with the model", SUBJECT),
        *([("noise ceiling", Look(BROKEN, None, "muted", 120))] if has_ceiling else []),
    )
    caption = {
        "Bars are scores with their standard error: the mean over sources for every unit of every subject, then the "
        "median over units; for measures of populations, the median over subjects. The colour and symbol of a bar is "
        "its verdict.": True,
        "Dots are subjects: the median over their units.": True,
        found.note: True,
        common.chance_note(material): True,
        "The noise ceiling is what a perfect model would score: 1 where scores are corrected for noise, else the "
        "square root of the reliability of responses.": has_ceiling,
        "The test compares means of pairs, not these scores: its gaps and intervals are in the figure of gaps.": True,
        f"Where there are more than {MOST_PAIRS} pairs, an evenly spaced selection is drawn.": any(
            common.brain_pairs(own).height > MOST_PAIRS for own in values.values()
        ),
    }
    chart = panels.stacked(words, key, panels.grid(made, 2))
    return chart, caption, listed(said, 12, " ")


def _place(
    name: str,
    claims: pl.DataFrame,
    pairs: pl.DataFrame,
    scores: pl.DataFrame,
    subjects: pl.DataFrame,
    reach: tuple[float, float],
) -> alt.LayerChart:
    """Brains and models at one place; the axis is that of all places with its measure."""
    brains = scores.filter(pl.col("source") == "brains", pl.col("kind").is_in(common.OF_BRAINS))
    of_model = common.tested(scores).select("sem", "n", model="source")
    rows = claims.join(of_model, on="model", how="left", maintain_order="left").with_columns(
        low=pl.col("score") - pl.col("sem"),
        high=pl.col("score") + pl.col("sem"),
        said=pl.Series([spoken(label) for label in claims["label"]]),
    )
    where = "{dataset}, {region}, {time}, {measure}"
    text = (
        f"{where}, {{model}}: score {{score}}, s.e.m. {{sem}}, {{score_without_noise}} without noise; "
        "{fraction_of_between:2} of brains; {said}"
    )
    rows = with_marks(rows, text, "score")
    looks = [VERDICTS[label].columns() for label in rows["label"]]
    paint = {side: pl.Series([look[side] for look in looks], dtype=pl.String) for side in ("fill", "stroke")}
    hollow = pl.col("fill") == colour("paper")
    rows = rows.with_columns(**paint).with_columns(fill=pl.when(hollow).then(pl.lit("transparent")).otherwise("fill"))
    line = with_marks(brains, f"{where}, brains: score {{score}}, s.e.m. {{sem}}", "score")
    ceiling = with_marks(brains.drop_nulls("ceiling"), f"{where}: noise ceiling {{ceiling}}", "ceiling")
    drawn = pairs.sort("value")
    if drawn.height > MOST_PAIRS:
        kept = np.linspace(0, drawn.height - 1, MOST_PAIRS).round().astype(int)
        drawn = drawn[kept.tolist()]
    strip = with_marks(drawn, f"{where}, {{source}} → {{target}}: {{value}}", "value")
    strip = strip.with_columns(lane=pl.lit(BRAINS))
    dots = subjects.filter(pl.col("model").is_in(rows["model"])).drop_nulls("value")
    dots = with_marks(dots, f"{where}, {{model}} and {{target}}: {{value}}", "value")
    low, high = (pairs["value"].quantile(q, "linear") for q in (0.025, 0.975))
    most = pl.DataFrame({"low": [low], "high": [high]}, schema={"low": pl.Float64, "high": pl.Float64})
    corrected = "corrected" if brains["corrected"].all() else "uncorrected"
    x = panels.axis("score", f"score ({corrected})", reach, ticks=5)
    lanes = [BRAINS, *rows["model"]]
    y = panels.lanes("model", lanes, limit=110)
    known = rows.drop_nulls("score")
    band = {"fill": "ramp1", "opacity": 0.7}
    return panels.overlay(
        panels.layer(most.drop_nulls(), "rect", band, x={**x, "field": "low"}, x2="high"),
        panels.layer(known, "bar", {"height": 12, "strokeWidth": 1}, x=x, x2={"datum": 0}, y=y,
                     fill=panels.own("fill"), stroke=panels.own("stroke")),
        panels.intervals(known.drop("mark"), "x", y, x, strokeWidth=1.2),
        panels.points(dots, {**x, "field": "value"}, y, SUBJECT),
        panels.layer(line.drop_nulls("score"), "rule", {"color": "brain", "strokeWidth": 2}, x=x),
        panels.layer(ceiling, "rule", {"color": "muted", "strokeWidth": 1.2, "strokeDash": [4, 3]},
                     x={**x, "field": "ceiling"}),
        panels.points(strip, {**x, "field": "value"}, {**y, "field": "lane"}, Look(TICK, None, "brain", 60, 0.6)),
        panels.points(rows.drop("mark"), {"value": WIDTH + 12}, y, VERDICTS, "label"),
        panels.text(rows.drop("mark"), "said", {"value": WIDTH + 22}, y, size=10),
        width=WIDTH,
        step=STEP,
        title=panels.panel_title(name, WIDTH + 100),
    )  # fmt: skip


@figure(
    "subject_dots",
    "Does every subject show the gap?",
    tables.CLAIMS,
    tables.PAIRS,
    tables.MODEL_PAIRS,
)
def subject_dots(material: Material) -> Drawing | str:
    """Agreement of every subject with other brains and with every model."""
    found = common.shown(material)
    pairs = material.table(tables.PAIRS.name).select(*PLACE, "kind", "source", "target", "value")
    values, models = found.rows(pairs), found.rows(material.table(tables.MODEL_PAIRS.name))
    made, said = [], []
    for name, claims in found.places:
        at = claims.select(PLACE).row(0)
        own = common.tested(models[at]).select("model", "value", subject="target")
        both = common.of_subjects(values[at]).rename({"value": "brains"})
        both = both.join(own.drop_nulls("value"), on="subject")
        both = claims.select(*PLACE, "model", "label").join(both, on="model", maintain_order="left")
        if both.height:
            chart, words = _slopes(name, claims["model"].to_list(), both)
            made.append(chart)
            said.append(f"{name}: {words}.")
    if not made:
        return "no subject has both a value with other brains and one with a model"
    key = panels.key(
        ("a subject and the other brains (mean)", Look("circle", "paper", "brain", 30)),
        ("the same subject and the model", Look("circle", "ink", "ink", 30)),
        ("mean over subjects", Look(TICK, None, "ink", 90)),
        *common.verdict_key(found.claims["label"]),
    )
    caption = [
        "Lines join the values of a subject: above, the mean of its agreement with the other brains; below, its "
        "agreement with the model. On the right: for how many subjects the model is further from the brain (lower) "
        "than other brains are.",
        found.note,
        common.chance_note(material),
    ]
    return panels.stacked(key, panels.grid(made, 2)), caption, listed(said, 6, " ")


def _slopes(name: str, models: list[str], rows: pl.DataFrame) -> tuple[alt.LayerChart, str]:
    """A line per subject and model from brains to the model; and the counts in words."""
    where = "{dataset}, {region}, {time}, {measure}, subject {subject}"
    ends = [
        with_marks(rows.with_columns(side=pl.lit("0"), at=pl.col("brains")),
                   f"{where}, other brains: {{brains}}", "brains").unique(["model", "subject"], maintain_order=True),
        with_marks(rows.with_columns(side=pl.lit("1"), at=pl.col("value")),
                   f"{where}, {{model}}: {{value}}, {{brains}} with other brains", "value"),
    ]  # fmt: skip
    lower = pl.col("value") < pl.col("brains")
    counts = rows.group_by("model", maintain_order=True).agg(
        pl.col("label").first(), pl.col("brains", "value").mean(), k=lower.sum(), n=pl.len()
    )
    counts = counts.with_columns(said=pl.format("{} of {} lower", "k", "n"))
    means = counts.unpivot(["brains", "value"], index="model", variable_name="side", value_name="at")
    means = means.with_columns(pl.col("side").replace_strict({"brains": "0", "value": "1"}))
    x = panels.axis("at", "agreement", panels.domain(rows["brains"], rows["value"]), ticks=5)
    y = panels.lanes("model", models, limit=110)
    offset: dict[str, Any] = {"yOffset": {"field": "side", "type": "nominal",
                          "scale": {"domain": ["0", "1"], "paddingOuter": 0.6}}}  # fmt: skip
    joined = pl.concat([own.drop("mark") for own in ends])
    look = {"color": "muted", "opacity": 0.5, "strokeWidth": 1}
    chart = panels.overlay(
        panels.separators(y),
        panels.layer(joined, "line", look, x=x, y=y, detail=["subject", "model"], **offset),
        panels.points(ends[0], x, y, Look("circle", "paper", "brain", 26), **offset),
        panels.points(ends[1], x, y, [Look("circle", own, own, 26) for own in _roles(rows)], **offset),
        panels.points(means, x, y, Look(TICK, None, "ink", 110), thick=2, **offset),
        panels.points(counts, {"value": WIDTH + 12}, y, VERDICTS, "label"),
        panels.text(counts, "said", {"value": WIDTH + 22}, y, size=10),
        width=WIDTH,
        height=2 * STEP * len(models),
        title=panels.panel_title(name, WIDTH + 100),
    )  # fmt: skip
    words = ", ".join(
        f"{said} with {model} ({fixed(value)}, brains {fixed(brains)})"
        for said, model, value, brains in counts.select("said", "model", "value", "brains").iter_rows()
    )
    return chart, words


def _roles(rows: pl.DataFrame) -> list[str]:
    return [VERDICTS[label].edge or "ink" for label in rows["label"]]
