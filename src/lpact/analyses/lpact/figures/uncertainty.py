"""How certain the contrasts are: intervals over subject-runs, and how far one subject-run moves them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import SUBJECT_RUN, mechanism_order, metric_name, names
from lpact.analyses.lpact.tables.levels import SPECIFICITY
from lpact.analyses.lpact.tables.robustness import (
    CAUSAL_UNCERTAINTY,
    LEAVE_SUBJECT_RUN_OUT,
    UNCERTAINTY,
)
from lpact.codes import Reason
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.panels import BROKEN, LINE, TICK, Look
from lpact.report.wording import counted, short, span

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
_BRAIN_AXIS = "real − shuffled units, profile similarity"

QUANTITIES: dict[str, str] = {
    "matching_drop": "drop of the matching target",
    "margin": "its margin over other targets",
    "mismatch_margin": "its margin over mismatch controls",
}
"""Quantities of level 3 that are drawn by mechanism; row rules ask all three to be positive."""
_LOOKS = {
    "matching_drop": Look("circle", "real", "real", 34),
    "margin": Look("square", "nuisance", "nuisance", 30),
    "mismatch_margin": Look("triangle-up", "other", "other", 34),
}

_LEFT_OUT: dict[str, type[pl.DataType]] = {
    "dataset": pl.String,
    "level": pl.String,
    "leave_one_min": pl.Float64,
    "leave_one_max": pl.Float64,
    "sign_flip": pl.Boolean,
    "most_influential": pl.String,
}
_UNITS = {"subject_run": "subject-runs", "source_target_pair": "pairs of recordings"}


@figure("uncertainty", "How certain the contrasts are", UNCERTAINTY)
def make(material: Material) -> Drawing | str:
    """Forest plots by level and dataset, and by mechanism."""
    levels, mechanisms = level_rows(material), mechanism_rows(material)
    if levels["mean"].is_null().all():
        return "no contrast of any level has a number"
    metric = metric_name(material.config.readout.primary_metric)
    datasets = sorted(set(levels["dataset"]))
    forests = [
        _level(own, datasets, metric, labels=i % COLUMNS == 0)
        for i, own in enumerate(levels.partition_by("level", maintain_order=True))
    ]
    chart = panels.stacked(
        _key(levels),
        panels.grid(forests, COLUMNS, spacing={"row": 18, "column": 14}),
        *([] if mechanisms.is_empty() else [_mechanisms(mechanisms, metric)]),
        spacing=20,
    )
    return chart, _caption(levels, mechanisms), _summary(levels, metric)


# -- rows --------------------------------------------------------------------------------------------------------------


def is_brain(level: str) -> bool:
    """Whether brains take the place of the model at this level."""
    return level.startswith(_BRAIN)


def level_words(level: str, metric: str) -> tuple[str, str]:
    """Title and axis of a level's panel."""
    if is_brain(level):
        return f"Brain as model, {level.removeprefix(_BRAIN).replace('_', ' ')}", _BRAIN_AXIS
    title, axis = LEVELS.get(level, (level.replace("_", " "), "contrast"))
    return title, axis.format(metric=metric)


def level_rows(material: Material) -> pl.DataFrame:
    """One row per level and dataset, levels in the order of the chain.

    A pair without a row in the table has no numbers, so that every panel has the same lanes.
    """
    table = material.table(UNCERTAINTY.name)
    one_out = pl.DataFrame(schema=_LEFT_OUT)
    if material.has(LEAVE_SUBJECT_RUN_OUT.name):
        one_out = material.table(LEAVE_SUBJECT_RUN_OUT.name).select(*_LEFT_OUT)
    others = sorted(set(table["level"]) - LEVELS.keys())
    order = [level for level in (*LEVELS, *others) if level in table["level"]]
    key = ["level", "dataset"]
    every = pl.DataFrame({"level": order}).join(
        table.select("dataset").unique().sort("dataset"), how="cross"
    )
    rows = every.join(table, on=key, how="left").join(one_out, on=key, how="left")
    # Ends of the n units, from the mean and the means without one: x_i = n · mean − (n − 1) · mean_{−i}.
    n, sum_of_all = pl.col("n_units"), pl.col("n_units") * pl.col("mean")
    rows = rows.with_columns(
        pl.col("sign_flip").fill_null(value=False),
        unit_min=sum_of_all - (n - 1) * pl.col("leave_one_max"),
        unit_max=sum_of_all - (n - 1) * pl.col("leave_one_min"),
    )
    return with_marks(_with_kinds(rows), _level_tooltip, value="mean")


def mechanism_rows(material: Material) -> pl.DataFrame:
    """One row per dataset, stripped mechanism and drawn quantity; none where the table is missing."""
    if not material.has(CAUSAL_UNCERTAINTY.name):
        return pl.DataFrame()
    table = material.table(CAUSAL_UNCERTAINTY.name)
    rows = table.filter(pl.col("quantity").is_in(list(QUANTITIES))).join(
        _mechanism_ranges(material), on=["dataset", "mechanism", "quantity"], how="left"
    )
    orders = {
        "mechanism": mechanism_order(material, rows["mechanism"]),
        "quantity": list(QUANTITIES),
    }
    rows = rows.sort("dataset", *(pl.col(own).cast(pl.Enum(orders[own])) for own in orders))
    return with_marks(_with_kinds(rows), _mechanism_tooltip, value="mean")


def _mechanism_ranges(material: Material) -> pl.DataFrame:
    """Smallest and largest mean of a subject-run, one row per dataset, mechanism and quantity."""
    key = ["dataset", "mechanism", "quantity"]
    if not material.has(SPECIFICITY.name):
        kinds = dict.fromkeys(key, pl.String)
        return pl.DataFrame(schema={**kinds, "unit_min": pl.Float64, "unit_max": pl.Float64})
    units = (
        material.table(SPECIFICITY.name)
        .filter(pl.col("reason") == Reason.OK.value)
        .rename({"stripped": "mechanism"})
        .group_by("dataset", "mechanism", *SUBJECT_RUN)
        .agg(pl.col(*QUANTITIES).mean())
        .unpivot(list(QUANTITIES), index=key[:2], variable_name="quantity")
    )
    return units.group_by(key).agg(unit_min=pl.col("value").min(), unit_max=pl.col("value").max())


def _with_kinds(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with ``has_interval`` (a mean over enough units) and ``has_range`` (a few units, more than one)."""
    n, known = pl.col("n_units"), pl.col("mean").is_not_null()
    kinds = {
        "has_interval": known & pl.col("ci_low").is_not_null() & (n >= FEWEST),
        "has_range": known & pl.col("unit_min").is_not_null() & n.is_between(2, FEWEST - 1),
    }
    return rows.with_columns(own.fill_null(value=False).alias(name) for name, own in kinds.items())


def _numbers(row: dict[str, Any], unit: str) -> str:
    if row["mean"] is None:
        why = f" ({row['reason'].replace('_', ' ')})" if row["reason"] else ""
        return f"not measured{why}"
    text = f"{row['mean']:.4f}"
    if row["has_interval"]:
        text += f", 95 % interval {row['ci_low']:.4f} to {row['ci_high']:.4f}"
    elif row["n_units"] == 1:
        text += ", one unit only, so no interval"
    else:
        text += f", {counted(row['n_units'], 'unit')}, too few for an interval"
    if row["has_range"]:
        text += f", from {row['unit_min']:.4f} to {row['unit_max']:.4f}"
    share = "" if row["positive_rate"] is None else f"; positive in {row['positive_rate']:.0%}"
    missing = f"; {row['n_rows_missing']:,} rows without a number" if row["n_rows_missing"] else ""
    return f"{text}; n = {row['n_units']} {unit}{share}{missing}"


def _level_tooltip(row: dict[str, Any]) -> str:
    unit = _UNITS.get(row["unit"] or "", "units")
    text = f"{row['dataset']}, {row['level'].replace('_', ' ')}: {_numbers(row, unit)}"
    if is_brain(row["level"]) and row["has_interval"]:
        text += "; pairs share recordings, so this interval is too narrow"
    if row["leave_one_min"] is not None:
        flip = ", the sign flips" if row["sign_flip"] else ""
        text += (
            f"; without one subject-run {row['leave_one_min']:.4f} to {row['leave_one_max']:.4f}{flip} "
            f"(most by {row['most_influential']})"
        )
    return f"{text}."


def _mechanism_tooltip(row: dict[str, Any]) -> str:
    what = f"{row['dataset']}, {row['mechanism']} stripped, {QUANTITIES[row['quantity']]}"
    return f"{what}: {_numbers(row, 'subject-runs')}."


# -- drawing -----------------------------------------------------------------------------------------------------------


def _key(rows: pl.DataFrame) -> alt.LayerChart:
    """What points, bars and brackets mean."""
    entries = [("mean, model", Look("circle", "real", "real", 46))]
    if any(is_brain(level) for level in rows["level"]):
        entries.append(("mean, brain as model", Look("circle", "brain", "brain", 46)))
    entries += [
        ("95 % bootstrap interval", Look(LINE, None, "real", 160)),
        (f"range of the units, fewer than {FEWEST}", Look(BROKEN, None, "real", 160)),
        ("range of the mean without one subject-run", Look(LINE, None, "muted", 100)),
    ]
    return panels.key(*entries, width=760)


def _forest(
    rows: pl.DataFrame, x: Spec, y: Spec, look: Look, width: float, *, thick: float, shift: float
) -> list[alt.Chart]:
    """Means with intervals; open points with the range of their units where these are too few for an interval."""
    role = look.fill or "ink"
    sure, few = pl.col("has_interval"), pl.col("has_range")
    known, hollow = rows.drop_nulls("mean"), replace(look, fill="paper")
    absent = rows.filter(pl.col("mean").is_null()).with_columns(words=pl.lit("not measured"))
    bar: Spec = {"low": "ci_low", "high": "ci_high", "strokeWidth": thick, "yOffset": shift}
    dashed: Spec = {"low": "unit_min", "high": "unit_max", "strokeWidth": 1.2, "strokeDash": [3, 2]}
    at: Spec = {"x": {"value": width / 2}, "y": y, "size": 10, "align": "center", "yOffset": shift}
    # Paper below the words, so that no line runs through them.
    paper: Spec = {"ink": "paper", "stroke": "paper", "strokeWidth": 5}
    return [
        panels.intervals(rows.filter(sure), "x", y, x, role, **bar),
        panels.intervals(rows.filter(few), "x", y, x, role, **dashed, yOffset=shift),
        panels.symbols(known.filter(sure), look, x, y, thick=1.5, shift=(0, shift)),
        panels.symbols(known.filter(~sure), hollow, x, y, thick=1.5, shift=(0, shift)),
        panels.text(absent.drop("mark"), "words", **at, **paper),
        panels.text(absent, "words", ink="muted", **at),
    ]


def _axis(rows: pl.DataFrame, title: str, ticks: int) -> Spec:
    """The axis of a forest: everything that is drawn in it, and zero."""
    one_out = [rows[end] for end in ("leave_one_min", "leave_one_max") if end in rows.columns]
    sure, few = rows.filter("has_interval"), rows.filter("has_range")
    ends = [sure["ci_low"], sure["ci_high"], few["unit_min"], few["unit_max"], *one_out]
    look: Spec = {"grid": True, "labelFlush": False, "labelSeparation": 6}
    return panels.axis("mean", title, panels.domain(rows["mean"], *ends), ticks=ticks, **look)


def _level(rows: pl.DataFrame, datasets: list[str], metric: str, *, labels: bool) -> alt.LayerChart:
    """One level: one lane per dataset."""
    level = rows["level"][0]
    title, axis = level_words(level, metric)
    role = "brain" if is_brain(level) else "real"
    x = _axis(rows, axis, 4)
    y = panels.lanes("dataset", datasets, labels=labels, limit=_LABELS)
    plain, right = rows.drop("mark"), {"value": WIDTH + 6}
    known = plain.drop_nulls("mean").with_columns(words=pl.format("n = {}", "n_units"))
    flips = plain.filter("sign_flip").with_columns(words=pl.lit("sign flips"))
    ends = {"low": "leave_one_min", "high": "leave_one_max"}
    bracket, brackets = Look(TICK, None, "muted", 36), plain.drop_nulls(list(ends.values()))
    return panels.overlay(
        panels.separators(y),
        panels.reference(0, role="ink"),
        panels.intervals(plain, "x", y, x, "muted", **ends, strokeWidth=1, yOffset=9),
        *(
            panels.symbols(brackets, bracket, {**x, "field": end}, y, thick=1, shift=(0, 9))
            for end in ends.values()
        ),
        *_forest(rows, x, y, Look("circle", role, role, 46), WIDTH, thick=3, shift=0),
        panels.text(known, "words", right, y, size=10),
        panels.text(flips, "words", right, y, size=10, fontWeight="bold", yOffset=12),
        width=WIDTH,
        height={"step": 30},
        title=panels.title(title, fontSize=12, frame="group", offset=6),
    )


def _mechanisms(rows: pl.DataFrame, metric: str) -> alt.VConcatChart:
    """Level 3: one panel per dataset, one lane per stripped mechanism, three quantities in it."""
    mechanisms = names(rows, "mechanism")
    made = []
    for i, own in enumerate(rows.partition_by("dataset", maintain_order=True)):
        x = _axis(own, f"held-out {metric}", 3)
        labels = i % MECHANISM_COLUMNS == 0
        y = panels.lanes("mechanism", mechanisms, labels=labels, limit=_LABELS)
        layers = [panels.separators(y), panels.reference(0, role="ink")]
        for place, quantity in enumerate(QUANTITIES):
            part, look = own.filter(quantity=quantity), _LOOKS[quantity]
            shift = 10 * (place - 1)
            layers += _forest(part, x, y, look, MECHANISM_WIDTH, thick=1.8, shift=shift)
        about = f"n = {span(own['n_units'])} subject-runs"
        title = panels.title(short(own["dataset"][0], 20), about, fontSize=12, frame="group")
        size: Spec = {"width": MECHANISM_WIDTH, "height": {"step": 34}}
        made.append(panels.overlay(*layers, title=title, **size))
    key = panels.key(*((name, _LOOKS[quantity]) for quantity, name in QUANTITIES.items()))
    heading = panels.title("Level 3 by stripped mechanism")
    forests = panels.grid(made, MECHANISM_COLUMNS, spacing=18)
    return panels.stacked(key, forests, title=heading)


def _caption(levels: pl.DataFrame, mechanisms: pl.DataFrame) -> str:
    known = levels.filter(pl.col("mean").is_not_null())
    draws = span(levels["n_draws"].drop_nulls())
    few = known.filter(pl.col("n_units") < FEWEST).height
    flips = int(known["sign_flip"].sum())
    parts = [
        "Means over n subject-runs (pairs of recordings where brains take the place of the model), all models and "
        f"layers together; intervals over these n from {draws} draws."
    ]
    if few:
        parts.append(
            f"Bootstrap intervals over fewer than {FEWEST} units cover far less than 95 %: {few} of {known.height} "
            "contrasts have none, but an open point, with the range of their units where there are several."
        )
    if any(is_brain(level) for level in known["level"]):
        parts.append(
            "Pairs share recordings and are not independent: intervals of brains as models are too narrow."
        )
    if "stripping_drop" in set(known["level"]):
        parts.append(
            "The drop over any target is above zero for every model that predicts, whatever is stripped; only margins "
            "of the matching target speak for a mechanism."
        )
    if flips:
        parts.append(f"“Sign flips”: leaving one out changes the sign ({flips} of {known.height}).")
    n_missing = levels.height - known.height
    if n_missing:
        parts.append(f"{n_missing} of {levels.height} contrasts were not measured.")
    if not mechanisms.is_empty():
        parts.append(
            "Level 3: what stripping a mechanism costs its own target, and by how much more than the largest of the "
            "other targets and than the mismatch controls; gate M asks for all three above zero "
            f"({CAUSAL_UNCERTAINTY.name} has the drop over all targets)."
        )
    return " ".join(parts)


def _summary(levels: pl.DataFrame, metric: str) -> str:
    parts = []
    for (level,), own in levels.filter(pl.col("mean").is_not_null()).group_by(
        "level", maintain_order=True
    ):
        enough = own.filter(pl.col("n_units") >= FEWEST)
        above = enough.filter(pl.col("ci_low") > 0).height
        below = enough.filter(pl.col("ci_high") < 0).height
        title, _ = level_words(str(level), metric)
        narrow = " (too narrow, pairs share recordings)" if is_brain(str(level)) else ""
        found = f"interval{narrow} above zero in {above}, below zero in {below} of {enough.height} datasets"
        few = own.height - enough.height
        rest = f"{few} with fewer than {FEWEST} units, without an interval" if few else ""
        parts.append(
            f"{title}: {', '.join(own for own in (found if enough.height else '', rest) if own)}"
        )
    return "; ".join(parts) + "."
