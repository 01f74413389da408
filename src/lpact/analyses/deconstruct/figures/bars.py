"""Bars and dots of subjects: shares of a score, the ladder, choices of the sub-model, and untrained copies."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from itertools import pairwise

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.deconstruct import tables
from lpact.analyses.deconstruct.config import options_of
from lpact.analyses.deconstruct.figures import common
from lpact.analyses.deconstruct.figures.common import ALONE, MORE, PLACE, SUBJECT, WITH, WITHOUT
from lpact.analyses.deconstruct.fits import NONE, OPTIMISTIC, SUB_MODELS, VALIDATION
from lpact.analyses.deconstruct.jobs import BOTH, SIMPLE, UNTRAINED
from lpact.analyses.deconstruct.summaries import deciding_network
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.panels import BOX, BROKEN, Look
from lpact.wording import counted, fixed, spoken


@figure(
    "accounted_for",
    "How much of a model's score simple features account for",
    tables.CLAIMS,
    tables.ACCOUNTED,
)
def accounted_for(material: Material) -> Drawing | str:
    """The share of every claim, and its verdict in one sentence."""
    claims = material.table(tables.CLAIMS.name)
    if claims.is_empty():
        return "the study makes no claim"
    said = [textwrap.fill(reason, 145) for reason in claims["reason"]]
    claims = claims.with_columns(
        lane=pl.concat_str(PLACE, separator="/"),
        end=pl.lit(100.0),
        name=pl.Series([name for name, _ in common.by_claim(claims)]),
        said=pl.Series(said),
    )
    known = claims.drop_nulls("accounted_for")
    if known.is_empty():
        return common.why_not("no claim has a share", material, common.SPACES, common.MODELS)
    shares = common.decided(material, tables.ACCOUNTED)
    dots = common.of_subjects(shares, *PLACE, value="accounted_for")
    dots = dots.join(known.select(*PLACE, "lane"), on=PLACE, maintain_order="left")
    text = "{dataset}, {model}: {accounted_for:1} % accounted for by simple features, "
    simple = with_marks(known, text + "from means over {n_subjects:subject}", "accounted_for")
    own = with_marks(known, "{dataset}, {model}: {own:1} % the model's own", "own")
    text = "{dataset}, {model}, subject {subject}: {value:1} % accounted for"
    x = panels.axis("accounted_for", "share of the model's score (%)", (0, 100), fmt="d")
    y = panels.lanes("lane", claims["lane"], shown=False)
    chart = panels.overlay(
        panels.bars(simple, x, y, "nuisance", height=18),
        panels.layer(own, "bar", {"height": 18, "fill": "real"}, x=x, x2="end", y=y),
        panels.dots(with_marks(dots, text, "value"), {**x, "field": "value"}, y, "ink", size=22),
        panels.text(claims, "name", {"value": 0}, y, dy=-20, fontWeight="bold"),
        panels.text(claims, "said", {"value": 0}, y, ink="muted", dy=20, lineBreak="\n"),
        width=800,
        step=66 + 26 * max(own.count("\n") for own in said),
    )
    key = panels.key(
        ("accounted for by simple features", Look(BOX, "nuisance", "nuisance", 180)),
        ("the model's own", Look(BOX, "real", "real", 180)),
        SUBJECT,
    )
    lost, chosen = claims.height - known.height, options_of(material.config).sub_model
    caption = {
        "Ω = 1 − (R² of both − R² of simple features) / R² of the model, in percent between 0 and 100, for each "
        f"subject and on average, under contiguous splits. {common.scores_are(material)} Sub-models were chosen by "
        f"'{chosen}'.": True,
        "That is a choice by test scores, which is optimistic.": chosen in OPTIMISTIC,
        f"{counted(lost, 'claim has', 'claims have')} no share. {common.missing(material)}": lost,
    }
    summary = " ".join(f"{name}: {reason}" for name, reason in claims.select("name", "reason").rows())
    return panels.stacked(key, chart), caption, summary


@figure("ladder", "From simple features to the model, step by step", tables.LADDER, tables.ACCOUNTED)
def ladder(material: Material) -> Drawing | str:
    """Scores of the steps, and of the model alone."""
    options, step = options_of(material.config), pl.col("step")
    rows = common.decided(material, tables.LADDER).sort(*PLACE, "step", maintain_order=True)
    last = step.max().over(PLACE)
    kind = pl.when(step == last).then(pl.lit(WITH))
    more = kind.when(step >= (options.simple_steps or last)).then(pl.lit(MORE))
    rows = rows.with_columns(features="step_name", kind=more.otherwise(pl.lit(WITHOUT)))
    steps = common.of_subjects(rows, *PLACE, "features", "kind")
    if steps.is_empty():
        return common.no_ladder(material)
    alone = common.of_subjects(common.decided(material, tables.ACCOUNTED), *PLACE, value="model_r2")
    dashed = {"color": "real", "strokeDash": [4, 3], "strokeWidth": 1.5}
    made = []
    for name, own in common.by_claim(steps):
        text = "{dataset}, {model}, the model alone"
        model, _ = common.marked(alone.join(own, on=PLACE, how="semi"), text, *PLACE)
        names = own["features"].unique(maintain_order=True).to_list()
        added = [f"+ {b.removeprefix(a + '+')}" for a, b in pairwise(names)]
        lanes = dict(zip(names, [*names[:1], *added], strict=True))
        own = own.with_columns(lane=pl.col("features").replace_strict(lanes))
        rule = panels.layer(model, "rule", dashed, x="value")
        reach = [*steps.filter(dataset=own["dataset"][0])["value"], *model["value"]]
        chart, words = common.dotted_bars(own, name, "R²", rule, reach=reach)
        made.append((chart, f"{words[:-1]}; {fixed(model['value'].max())} of the model alone."))  # type: ignore[arg-type]
    caption = [
        "Each step adds feature spaces to those above it; the last one adds the model. Bars are means over "
        f"subjects, under contiguous splits. {common.scores_are(material)}",
        f"A step is represented by the sub-model that '{options.sub_model}' chose among those with its features.",
        common.missing(material),
    ]
    line = ("the model alone", Look(BROKEN, None, "real", 120))
    return common.drawing(common.key_of(steps["kind"], line, SUBJECT), made, caption)


_POOLS = {"simple_r2": "simple", "both_r2": "+ model"}
_HOW = {NONE: "all features", VALIDATION: "by validation score"}


@figure("sub_models", "Scores under every choice of the sub-model", tables.ACCOUNTED)
def sub_models(material: Material) -> Drawing | str:
    """Simple features against these with the model, per subject and choice of the sub-model."""
    options = options_of(material.config)
    rows = material.table(tables.ACCOUNTED.name).filter(network=deciding_network(options))
    rows = rows.unpivot(list(_POOLS), index=[*PLACE, "subject", "sub_model"], variable_name="pool")
    rows = rows.with_columns(pl.col("pool").replace_strict(_POOLS))
    subjects = common.of_subjects(rows, *PLACE, "sub_model", "pool", value="value")
    if subjects.is_empty():
        return common.no_ladder(material)
    made: list[common.Panel] = []
    for name, own in common.by_claim(subjects):
        ends = panels.domain(1.04 * own["value"])
        drawn = [
            _pairs(
                own.filter(sub_model=sub_model),
                panels.axis("value", None if i else "R²", ends, labels=not i),
                sub_model == options.sub_model,
            )
            for i, sub_model in enumerate(SUB_MODELS)
        ]
        means = own.filter(sub_model=options.sub_model).group_by("pool", maintain_order=True)
        parts = (f"{fixed(value)} {pool}" for pool, value in means.agg(pl.col("value").mean()).rows())
        title = panels.title(name, limit=600)
        words = f"{name}, {options.sub_model}: R² {', '.join(parts)}."
        made.append((panels.side_by_side(*drawn, title=title, spacing=24), words))
    caption = [
        "Lines join the scores of a subject: simple features, and these with the model, under contiguous splits. "
        "Panels differ in how the sub-model that represents them is chosen: all features; for each unit the one "
        "with the best validation score; the one with the best mean test score over units; for each unit the one "
        "with the best test score. Choices by test score are optimistic.",
        common.scores_are(material),
        common.missing(material),
    ]
    key = panels.key(SUBJECT, ("mean", Look(panels.LINE, None, "real", 160)))
    return common.drawing(key, made, caption, 1)


def _pairs(subjects: pl.DataFrame, y: Spec, decides: bool) -> alt.LayerChart:
    """Two dots of every subject, joined by a line, with the means."""
    sub_model = subjects["sub_model"][0]
    x = panels.lanes("pool", _POOLS.values(), labelPadding=4)
    text = "{dataset}, {model}, {sub_model}, {pool}"
    means, dots = common.marked(subjects, text, "dataset", "model", "sub_model", "pool")
    line = {"color": "muted", "opacity": 0.5}
    how = _HOW.get(sub_model, "by test score, optimistic")
    words = spoken(sub_model) + (" (decides)" if decides else "")
    return panels.overlay(
        panels.reference(0, "y"),
        panels.layer(dots.drop("mark"), "line", line, x=x, y=y, detail="subject"),
        panels.points(means, x, y, Look(panels.LINE, None, "real", 900), thick=3),
        panels.dots(dots, x, y, "ink", size=18, opacity=0.6),
        width=130,
        height=150,
        title=panels.panel_title(words, 150, subtitle=how, subtitleFontSize=10),
    )


@figure("untrained", "Untrained copies against the first step of the ladder", tables.SCORES)
def untrained(material: Material) -> Drawing | str:
    """All combinations of the first step's feature spaces and the untrained model."""
    if not options_of(material.config).untrained:
        return "untrained copies are not compared (deconstruct.untrained is false)"
    rows = material.table(tables.SCORES.name).filter(family=UNTRAINED, sub_model=NONE)
    features, model = pl.col("features"), pl.col("model")
    kind = pl.when(features == model).then(pl.lit(ALONE))
    added = kind.when(features.str.ends_with("+" + model)).then(pl.lit(WITH))
    rows = rows.filter(~features.is_in([SIMPLE, BOTH])).with_columns(
        lane="features", kind=added.otherwise(pl.lit(WITHOUT))
    )
    subjects = common.of_subjects(rows, *PLACE, "features", "lane", "kind")
    if subjects.is_empty():
        return common.why_not("no untrained copy has a score", material, UNTRAINED, common.SPACES)
    made = []
    for name, own in common.by_claim(subjects):
        lanes = _by_size(own["lane"].unique(), own["model"][0])
        rank = {lane: i for i, lane in enumerate(lanes)}
        own = own.sort(pl.col("lane").replace_strict(rank), maintain_order=True)
        made.append(common.dotted_bars(own, f"{name}, untrained"))
    n_draws = counted(rows["draw"].n_unique(), "draw")
    caption = [
        "Every combination of the feature spaces of the first step and the untrained model, with all its features, "
        f"under contiguous splits: mean over random initialisations (up to {n_draws}) and subjects. "
        f"{common.scores_are(material)}",
        common.missing(material, UNTRAINED),
    ]
    return common.drawing(common.key_of(subjects["kind"], SUBJECT), made, caption)


def _by_size(lanes: Iterable[str], model: str) -> list[str]:
    """Combinations without the model, then with it; few spaces first, in the order of the largest one."""
    parts = {lane: lane.split("+") for lane in lanes}
    order = max(parts.values(), key=len)
    places = {lane: [order.index(part) for part in own] for lane, own in parts.items()}
    return sorted(parts, key=lambda lane: (model in parts[lane], len(places[lane]), places[lane]))
