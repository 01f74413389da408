"""How certain the contrasts are: intervals over subject-runs, and how far one subject-run moves them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import marked, names
from lpact.analyses.lpact.tables.robustness import (
    CAUSAL_UNCERTAINTY,
    LEAVE_SUBJECT_RUN_OUT,
    UNCERTAINTY,
)
from lpact.report import panels
from lpact.report.figure import Caption, Drawing, Spec, figure
from lpact.report.panels import LINE, Look
from lpact.wording import counted, short, span

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
QUANTITIES: dict[str, tuple[str, Look]] = {
    "matching_drop": ("drop of the matching target", Look("circle", "real", "real", 34)),
    "margin": ("its margin over other targets", Look("square", "nuisance", "nuisance", 30)),
    "mismatch_margin": (
        "its margin over mismatch controls",
        Look("triangle-up", "other", "other", 34),
    ),
}
"""Quantities of level 3 that are drawn by mechanism; row rules require all three to be positive."""
_HAS_INTERVAL = (
    (pl.col("ci_low").is_not_null() & (pl.col("n_units") >= FEWEST))
    .fill_null(value=False)
    .alias("has_interval")
)
_UNITS = {"subject_run": "subject-runs", "source_target_pair": "pairs of recordings"}


@figure("uncertainty", "How certain the contrasts are", UNCERTAINTY)
def make(material: Material) -> Drawing | str:
    """Forest plots by level and dataset, and by mechanism."""
    levels, mechanisms = level_rows(material), mechanism_rows(material)
    if levels["mean"].is_null().all():
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
    chart = panels.stacked(*parts, spacing=20)
    return chart, _caption(levels, mechanisms), _summary(levels, metric)


# -- rows --------------------------------------------------------------------------------------------------------------


def _is_brain(level: str) -> bool:
    """Whether brains take the place of the model at this level."""
    return level.startswith(_BRAIN)


def level_words(level: str, metric: str) -> tuple[str, str]:
    """Title and axis of a level's panel."""
    if _is_brain(level):
        title = f"Brain as model, {level.removeprefix(_BRAIN).replace('_', ' ')}"
        return title, "real − shuffled units, profile similarity"
    title, axis = LEVELS.get(level, (level.replace("_", " "), "contrast"))
    return title, axis.format(metric=metric)


def level_rows(material: Material) -> pl.DataFrame:
    """One row per level and dataset, levels in the order of the chain.

    A pair without a row in the table has no numbers, so that every panel has the same lanes.
    """
    rows, key = material.table(UNCERTAINTY.name), ["level", "dataset"]
    one_out = common.table(material, LEAVE_SUBJECT_RUN_OUT).select(*key, "sign_flip")
    others = sorted(set(rows["level"]) - LEVELS.keys())
    order = pl.DataFrame(
        {"level": [level for level in (*LEVELS, *others) if level in rows["level"]]}
    )
    every = order.join(rows.select("dataset").unique().sort("dataset"), how="cross")
    for part in (rows, one_out):
        every = every.join(part, on=key, how="left", maintain_order="left")
    made = every.with_columns(pl.col("sign_flip").fill_null(value=False), _HAS_INTERVAL)
    return marked(made, _level_tooltip, "mean")


def mechanism_rows(material: Material) -> pl.DataFrame:
    """One row per dataset, stripped mechanism and drawn quantity."""
    rows = common.table(material, CAUSAL_UNCERTAINTY)
    rows = rows.filter(pl.col("quantity").is_in(list(QUANTITIES)))
    mechanisms = pl.Enum(common.mechanism_order(material, rows["mechanism"]))
    order = pl.col("mechanism").cast(mechanisms), pl.col("quantity").cast(pl.Enum(list(QUANTITIES)))
    names = {quantity: name for quantity, (name, _) in QUANTITIES.items()}
    rows = rows.sort("dataset", *order).with_columns(
        _HAS_INTERVAL, name=pl.col("quantity").replace_strict(names, return_dtype=pl.String)
    )

    def tooltip(row: dict[str, Any]) -> str:
        what = f"{row['dataset']}, {row['mechanism']} stripped, {row['name']}"
        return f"{what}: {_numbers(row, 'subject-runs')}."

    return marked(rows, tooltip, "mean")


def _numbers(row: dict[str, Any], unit: str) -> str:
    if row["mean"] is None:
        return f"not measured ({(row['reason'] or 'no row').replace('_', ' ')})"
    text = f"{row['mean']:.4f}"
    if row["has_interval"]:
        text += f", 95 % interval {row['ci_low']:.4f} to {row['ci_high']:.4f}"
    else:
        text += f", {counted(row['n_units'], 'unit')}, too few for an interval"
    share = "" if row["positive_rate"] is None else f"; positive in {row['positive_rate']:.0%}"
    return f"{text}; n = {row['n_units']} {unit}{share}"


def _level_tooltip(row: dict[str, Any]) -> str:
    unit = _UNITS.get(row["unit"] or "", "units")
    text = f"{row['dataset']}, {row['level'].replace('_', ' ')}: {_numbers(row, unit)}"
    if _is_brain(row["level"]) and row["has_interval"]:
        text += "; pairs share recordings, so this interval is too narrow"
    return f"{text}; the sign flips without one subject-run." if row["sign_flip"] else f"{text}."


# -- drawing -----------------------------------------------------------------------------------------------------------


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
    role, sure = look.fill or "ink", pl.col("has_interval")
    known = rows.drop_nulls("mean")
    absent = rows.filter(pl.col("mean").is_null()).with_columns(words=pl.lit("not measured"))
    bar: Spec = {"ends": ("ci_low", "ci_high"), "strokeWidth": thick, "yOffset": shift}
    move: Spec = {"thick": 1.5, "shift": (0, shift)}
    return [
        panels.intervals(rows.filter(sure), "x", y, x, role, **bar),
        panels.points(known.filter(sure), x, y, look, **move),
        panels.points(known.filter(~sure), x, y, replace(look, fill="paper"), **move),
        *panels.notes(absent, "words", {"value": width / 2}, y, align="center", yOffset=shift),
    ]


def _axis(rows: pl.DataFrame, title: str, ticks: int) -> Spec:
    """The axis of a forest: everything that is drawn in it, and zero."""
    sure = rows.filter("has_interval")
    ends = panels.domain(rows["mean"], sure["ci_low"], sure["ci_high"])
    look: Spec = {"grid": True, "labelFlush": False, "labelSeparation": 6}
    return panels.axis("mean", title, ends, ticks=ticks, **look)


def _level(rows: pl.DataFrame, datasets: list[str], metric: str, *, labels: bool) -> alt.LayerChart:
    """One level: one lane per dataset."""
    title, axis = level_words(rows["level"][0], metric)
    role = "brain" if _is_brain(rows["level"][0]) else "real"
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
    mechanisms = names(rows, "mechanism")
    made = []
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
    return panels.stacked(
        panels.key(*QUANTITIES.values()), forests, title="Level 3 by stripped mechanism"
    )


def _caption(levels: pl.DataFrame, mechanisms: pl.DataFrame) -> Caption:
    known = levels.drop_nulls("mean")
    few = known.filter(pl.col("n_units") < FEWEST).height
    flips, n_missing = int(known["sign_flip"].sum()), levels.height - known.height
    return {
        "Means over n subject-runs (pairs of recordings where brains take the place of the model), all models and "
        f"layers together; intervals over these n from {span(levels['n_draws'].drop_nulls())} draws.": True,
        f"Bootstrap intervals over fewer than {FEWEST} units cover far less than 95 %: {few} of {known.height} "
        "contrasts have an open point and no interval.": few,
        "Pairs share recordings and are not independent: intervals of brains as models are too narrow.": any(
            _is_brain(level) for level in known["level"]
        ),
        "The drop over any target is above zero for every model that predicts, whatever is stripped; only margins "
        "of the matching target speak for a mechanism.": "stripping_drop" in known["level"],
        f"“Sign flips”: leaving one out changes the sign ({flips} of {known.height}).": flips,
        f"{n_missing} of {levels.height} contrasts were not measured.": n_missing,
        "Level 3: what stripping a mechanism costs its own target, and by how much more than the largest of the "
        "other targets and than the mismatch controls; gate M requires all three above zero "
        f"({CAUSAL_UNCERTAINTY.name} has the drop over all targets).": mechanisms.height,
    }


def _summary(levels: pl.DataFrame, metric: str) -> str:
    parts = []
    for own in levels.drop_nulls("mean").partition_by("level", maintain_order=True):
        enough = own.filter(pl.col("n_units") >= FEWEST)
        few = own.height - enough.height
        above = enough.filter(pl.col("ci_low") > 0).height
        below = enough.filter(pl.col("ci_high") < 0).height
        found = []
        if enough.height:
            narrow = " (too narrow, pairs share recordings)" if _is_brain(own["level"][0]) else ""
            found.append(
                f"interval{narrow} above zero in {above}, below zero in {below} of {enough.height} datasets"
            )
        if few:
            found.append(f"{few} with fewer than {FEWEST} units, without an interval")
        parts.append(f"{level_words(own['level'][0], metric)[0]}: {', '.join(found)}")
    return "; ".join(parts) + "."
