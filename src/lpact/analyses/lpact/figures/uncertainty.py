"""How certain the contrasts are: intervals over subject-runs, and how far one subject-run moves them."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import marked, names
from lpact.analyses.lpact.tables.robustness import CAUSAL_UNCERTAINTY, LEAVE_SUBJECT_RUN_OUT, UNCERTAINTY
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure
from lpact.report.panels import LINE, Look
from lpact.wording import short, span, spoken

FEWEST = 5
"""Units that an interval needs: bootstrap intervals over fewer cover far less than 95 %."""
COLUMNS, WIDTH = 3, 185
MECHANISM_COLUMNS, MECHANISM_WIDTH = 4, 140
_LABELS = 150
"""Pixels for names of datasets and mechanisms."""

LEVELS: dict[str, tuple[str, str]] = {
    "predictive_delta": ("Level 1, predictive", "real − best control, held-out {metric}"),
    "relational_delta": ("Level 2, relational", "real − best control, profile similarity"),
    "stripping_drop": ("Level 3, stripping, any target", "drop in held-out {metric}, all targets"),
    "ceiling_delta": ("Level 4, ceiling", "real − best control, fraction of the ceiling"),
}
"""Title and axis of each level's panel, in the order of the chain."""
_BRAIN = "brain_as_model_"
"""Before the names of levels at which brains take the place of the model."""
QUANTITIES: dict[str, tuple[str, Look]] = {
    "matching_drop": ("drop of the matching target", Look("circle", "real", "real", 34)),
    "margin": ("its margin over other targets", Look("square", "nuisance", "nuisance", 30)),
    "mismatch_margin": (
        "its margin over mismatch controls",
        Look("triangle-up", "other", "other", 34),
    ),
}
"""Quantities of level 3 that are drawn by mechanism; row rules require all three to be positive."""
_UNITS = {"subject_run": "subject-runs", "source_target_pair": "pairs of recordings"}
_TOOLTIP = (
    "{what}: [{mean:4}][, 95 % interval {low:4} to {high:4}][, too few for an interval{few}][; n = {n_units} {units}]"
    "[; positive in {positive_rate:2} of them][not measured ({why})][; pairs share recordings, so this interval is too "
    "narrow{narrow}][; the sign flips without one subject-run{sign_flip}]."
)


@figure("uncertainty", "How certain the contrasts are", UNCERTAINTY)
def make(material: Material) -> Drawing | str:
    """Forest plots by level and dataset, and by mechanism."""
    levels, mechanisms = level_rows(material), mechanism_rows(material)
    known = levels.drop_nulls("mean")
    if known.is_empty():
        return "no contrast of any level has a number"
    metric, datasets = common.metric_name(material), sorted(set(levels["dataset"]))
    forests = [
        _level(own, datasets, metric, labels=i % COLUMNS == 0)
        for i, own in enumerate(levels.partition_by("level", maintain_order=True))
    ]
    key = panels.key(
        ("mean, model", Look("circle", "real", "real", 46)),
        ("mean, brain as model", Look("circle", "brain", "brain", 46)),
        ("95 % bootstrap interval", Look(LINE, None, "real", 160)),
        (f"open: fewer than {FEWEST} units, no interval", Look("circle", "paper", "real", 46)),
        width=760,
    )
    parts: list[Any] = [key, panels.grid(forests, COLUMNS, spacing={"row": 18, "column": 14})]
    if mechanisms.height:
        parts.append(_mechanisms(mechanisms, metric))
    few = known.filter(pl.col("n_units") < FEWEST).height
    flips, n_missing = int(known["sign_flip"].sum()), levels.height - known.height
    caption = {
        "Means over n subject-runs (pairs of recordings where brains take the place of the model), all models and "
        f"layers together; intervals over these n from {span(levels['n_draws'].drop_nulls())} draws.": True,
        f"Bootstrap intervals over fewer than {FEWEST} units cover far less than 95 %: {few} of {known.height} "
        "contrasts have an open point and no interval.": few,
        "Pairs share recordings and are not independent: intervals of brains as models are too narrow.": known["level"]
        .str.starts_with(_BRAIN)
        .any(),
        "The drop over any target is above zero for every model that predicts, no matter what is stripped; only "
        "margins of the matching target speak for a mechanism.": "stripping_drop" in known["level"],
        f"“Sign flips”: leaving one out changes the sign ({flips} of {known.height}).": flips,
        f"{n_missing} of {levels.height} contrasts were not measured.": n_missing,
        "Level 3: what stripping a mechanism costs its own target, and by how much more than the largest of the "
        "other targets and than the mismatch controls; gate M requires all three above zero "
        f"({CAUSAL_UNCERTAINTY.name} has the drop over all targets).": mechanisms.height,
    }
    return panels.stacked(*parts, spacing=20), caption, _summary(known, metric)


def level_words(level: str, metric: str) -> tuple[str, str]:
    """Title and axis of a level's panel."""
    if level.startswith(_BRAIN):
        title = f"Brain as model, {spoken(level.removeprefix(_BRAIN))}"
        return title, "real − shuffled units, profile similarity"
    title, axis = LEVELS.get(level, (spoken(level), "contrast"))
    return title, axis.format(metric=metric)


def level_rows(material: Material) -> pl.DataFrame:
    """One row per level and dataset, levels in the order of the chain.

    A pair without a row in the table has no numbers, so that every panel has the same lanes.
    """
    rows, key = material.table(UNCERTAINTY.name), ["level", "dataset"]
    one_out = common.table_of(material, LEAVE_SUBJECT_RUN_OUT).select(*key, "sign_flip")
    levels = [*LEVELS, *sorted(set(rows["level"]) - LEVELS.keys())]
    order = pl.DataFrame({"level": [level for level in levels if level in rows["level"]]})
    every = order.join(rows.select("dataset").unique().sort("dataset"), how="cross")
    for part in (rows, one_out):
        every = every.join(part, on=key, how="left", maintain_order="left")
    what = pl.format("{}, {}", "dataset", pl.col("level").str.replace_all("_", " "))
    units = pl.col("unit").replace_strict(_UNITS, default="units")
    return _with_tooltips(every, what, units)


def mechanism_rows(material: Material) -> pl.DataFrame:
    """One row per dataset, stripped mechanism and drawn quantity."""
    rows = common.table_of(material, CAUSAL_UNCERTAINTY)
    rows = rows.filter(pl.col("quantity").is_in(list(QUANTITIES)))
    mechanisms = pl.Enum(common.mechanism_order(material, rows["mechanism"]))
    quantity = pl.col("quantity").cast(pl.Enum(list(QUANTITIES)))
    words = {name: text for name, (text, _) in QUANTITIES.items()}
    named = pl.col("quantity").replace_strict(words, return_dtype=pl.String)
    what = pl.format("{}, {} stripped, {}", "dataset", "mechanism", named)
    rows = rows.sort("dataset", pl.col("mechanism").cast(mechanisms), quantity)
    return _with_tooltips(rows.with_columns(sign_flip=False), what, pl.lit("subject-runs"))


def _with_tooltips(rows: pl.DataFrame, what: pl.Expr, units: pl.Expr) -> pl.DataFrame:
    """The rows with marks, and whether they have an interval."""
    sure = (pl.col("ci_low").is_not_null() & (pl.col("n_units") >= FEWEST)).fill_null(value=False)
    absent = pl.col("mean").is_null()
    brain = pl.col("level").str.starts_with(_BRAIN) if "level" in rows.columns else pl.lit(value=False)
    rows = rows.with_columns(
        pl.col("sign_flip").fill_null(value=False),
        has_interval=sure,
        narrow=sure & brain,
        few=~sure & ~absent,
        n_units=pl.when(~absent).then("n_units"),
        low=pl.when(sure).then("ci_low"),
        high=pl.when(sure).then("ci_high"),
        what=what,
        units=units,
        why=pl.when(absent).then(pl.col("reason").fill_null("no row").str.replace_all("_", " ")),
    )
    return marked(rows, _TOOLTIP, "mean")


def _forest(
    rows: pl.DataFrame,
    x: Spec,
    y: Spec,
    look: Look,
    width: float,
    *,
    thick: float,
    shift: float = 0,
) -> list[alt.Chart]:
    """Means with intervals; open points where there are too few units for one."""
    known, sure = rows.drop_nulls("mean"), pl.col("has_interval")
    absent = rows.filter(pl.col("mean").is_null()).with_columns(words=pl.lit("not measured"))
    looks = [look if own else look.changed(fill="paper") for own in known["has_interval"]]
    bar: Spec = {"strokeWidth": thick, "yOffset": shift}
    return [
        panels.intervals(rows.filter(sure), "x", y, x, look.fill or "ink", **bar),
        panels.points(known, x, y, looks, thick=1.5, shift=(0, shift)),
        *panels.notes(absent, "words", {"value": width / 2}, y, align="center", yOffset=shift),
    ]


def _axis(rows: pl.DataFrame, title: str, ticks: int) -> Spec:
    """The axis of a forest: everything that is drawn in it, and zero."""
    ends = panels.domain(rows["mean"], rows["low"], rows["high"])
    look: Spec = {"grid": True, "labelFlush": False, "labelSeparation": 6}
    return panels.axis("mean", title, ends, ticks=ticks, **look)


def _level(rows: pl.DataFrame, datasets: list[str], metric: str, *, labels: bool) -> alt.LayerChart:
    """One level: one lane per dataset."""
    title, axis = level_words(rows["level"][0], metric)
    role = "brain" if rows["level"][0].startswith(_BRAIN) else "real"
    x, y = _axis(rows, axis, 4), panels.lanes("dataset", datasets, labels=labels, limit=_LABELS)
    plain, right = rows.drop("mark"), {"value": WIDTH + 6}
    known = plain.drop_nulls("mean").with_columns(words=pl.format("n = {}", "n_units"))
    flips = plain.filter("sign_flip").with_columns(words=pl.lit("sign flips"))
    return panels.overlay(
        panels.separators(y),
        panels.reference(0, role="ink"),
        *_forest(rows, x, y, Look("circle", role, role, 46), WIDTH, thick=3),
        panels.text(known, "words", right, y, size=10),
        panels.text(flips, "words", right, y, size=10, fontWeight="bold", yOffset=12),
        width=WIDTH,
        step=30,
        title=panels.title(title, fontSize=12, frame="group", offset=6),
    )


def _mechanisms(rows: pl.DataFrame, metric: str) -> alt.VConcatChart:
    """Level 3: one panel per dataset, one lane per stripped mechanism, three quantities in it."""
    mechanisms, made = names(rows, "mechanism"), []
    for i, own in enumerate(rows.partition_by("dataset", maintain_order=True)):
        x, labels = _axis(own, f"held-out {metric}", 3), i % MECHANISM_COLUMNS == 0
        y = panels.lanes("mechanism", mechanisms, labels=labels, limit=_LABELS)
        layers = [panels.separators(y), panels.reference(0, role="ink")]
        for place, (quantity, (_, look)) in enumerate(QUANTITIES.items()):
            part, shift = own.filter(quantity=quantity), 10 * (place - 1)
            layers += _forest(part, x, y, look, MECHANISM_WIDTH, thick=1.8, shift=shift)
        about = f"n = {span(own['n_units'])} subject-runs"
        title = panels.title(short(own["dataset"][0], 20), about, fontSize=12, frame="group")
        made.append(panels.overlay(*layers, width=MECHANISM_WIDTH, step=34, title=title))
    forests = panels.grid(made, MECHANISM_COLUMNS, spacing=18)
    return panels.stacked(panels.key(*QUANTITIES.values()), forests, title="Level 3 by stripped mechanism")


def _summary(known: pl.DataFrame, metric: str) -> str:
    parts = []
    for own in known.partition_by("level", maintain_order=True):
        sure = own.filter("has_interval")
        narrow = " (too narrow, pairs share recordings)" if sure["narrow"].any() else ""
        parts.append(
            f"{level_words(own['level'][0], metric)[0]}: interval{narrow} above zero in "
            f"{sure.filter(pl.col('low') > 0).height}, below zero in {sure.filter(pl.col('high') < 0).height} of "
            f"{own.height} datasets ({own.height - sure.height} without an interval)"
        )
    return "; ".join(parts) + "."
