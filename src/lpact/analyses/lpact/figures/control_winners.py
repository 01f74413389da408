"""Which control wins, where: how often each rival is the strongest one, and whether the real features beat it."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    LAYER,
    NUISANCE,
    ShortLayerNames,
    metric_name,
    primary_deltas,
)
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, CONTROL_NULLS, PROFILE_DELTAS
from lpact.codes import Reason
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import Classes
from lpact.report.theme import DIVERGING
from lpact.report.wording import counted, letters_in, short

NOT_COMPUTED = "not computed"
LEVEL1, LEVEL2 = "level 1", "level 2"
MOST_ROWS = 60
"""With more rows than this, the layers of a model are added up."""
_CELL, _NAMES, _BESIDE = 40, 170, 18
_SHARES = (0.2, 0.5)
_SIDES = {
    "n_wins": Classes(DIVERGING[2::-1], _SHARES),
    "n_beaten": Classes(DIVERGING[4:], _SHARES),
}
"""Shades for up to a fifth, up to half and more of a row's comparisons."""
_UNIT = {LEVEL1: "subject-run", LEVEL2: "unit and summary comparison"}
_HEAD = {
    LEVEL1: "Level 1, predictive: subject-runs",
    LEVEL2: "Level 2, relational: units × summaries",
}
_OK = pl.col("reason") == Reason.OK.value
_SAME_ORDER = pl.col("model_unit_order_hash") == pl.col("brain_unit_order_hash")


def rows_of(material: Material) -> pl.DataFrame:
    """One row per level, dataset, model, layer and rival: ``n_wins`` and ``n_beaten``, of ``n_all`` comparisons.

    Level 1 compares subject-runs: the strongest rival is the better of nuisance and the best counted control (a tie
    goes to nuisance). Level 2 compares each subject-run, unit and relational summary with the best counted control
    only. A rival wins where real − rival is not positive. Comparisons without a contrast have the rival `NOT_COMPUTED`,
    and ``n_wins`` counts them. Level-2 rows whose unit orders differ compare different units; they are left out
    (`n_other_order`), as in the decision.
    """
    parts = [_counts(_level1(material), LEVEL1)]
    if material.has(PROFILE_DELTAS.name):
        parts.append(_counts(_level2(material), LEVEL2))
    return pl.concat(parts).sort(["level", *LAYER, "rival"])


def n_other_order(material: Material) -> int:
    """Level-2 rows with a contrast that are left out, since brain and model have different unit orders."""
    if not material.has(PROFILE_DELTAS.name):
        return 0
    known = _OK & pl.col("delta_rel").is_not_null()
    return material.table(PROFILE_DELTAS.name).filter(known & ~_SAME_ORDER).height


def rivals_of(material: Material, rows: pl.DataFrame) -> list[str]:
    """Nuisance, then every counted control of the study and every other rival of ``rows``, by how often it is one."""
    known = {str(name) for name in rows["rival"]}
    for name in (CONTROL_NULLS.name, CONTROL_AVAILABILITY.name):
        if material.has(name):
            counted = material.table(name).filter(pl.col("counted"))
            known |= {str(control) for control in counted["control"].unique()}
    total = {
        str(rival): int(n)
        for rival, n in rows.filter(pl.col("level") == LEVEL1)
        .group_by("rival")
        .agg((pl.col("n_wins") + pl.col("n_beaten")).sum())
        .iter_rows()
    }
    known -= {NUISANCE, NOT_COMPUTED}
    return [NUISANCE, *sorted(known, key=lambda name: (-total.get(name, 0), name))]


def _level1(material: Material) -> pl.DataFrame:
    known = _OK & pl.col("delta_nuisance").is_not_null() & pl.col("delta_control").is_not_null()
    by_nuisance = pl.col("delta_nuisance") <= pl.col("delta_control")
    return primary_deltas(material).select(
        *LAYER,
        rival=pl.when(~known)
        .then(pl.lit(NOT_COMPUTED))
        .when(by_nuisance)
        .then(pl.lit(NUISANCE))
        .otherwise(pl.col("best_control")),
        delta=pl.when(known).then(pl.min_horizontal("delta_nuisance", "delta_control")),
    )


def _level2(material: Material) -> pl.DataFrame:
    known = _OK & pl.col("delta_rel").is_not_null()
    return (
        material.table(PROFILE_DELTAS.name)
        .filter(~known | _SAME_ORDER)
        .select(
            *LAYER,
            rival=pl.when(known).then(pl.col("best_control")).otherwise(pl.lit(NOT_COMPUTED)),
            delta=pl.when(known).then(pl.col("delta_rel")),
        )
    )


def _counts(contrasts: pl.DataFrame, level: str) -> pl.DataFrame:
    beaten = (pl.col("delta") > 0).fill_null(value=False)
    counts = contrasts.group_by([*LAYER, "rival"]).agg(
        n_wins=(~beaten).sum().cast(pl.Int64), n_beaten=beaten.sum().cast(pl.Int64)
    )
    return counts.with_columns(
        n_all=(pl.col("n_wins") + pl.col("n_beaten")).sum().over(LAYER), level=pl.lit(level)
    )


def grouped(rows: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """The rows, by layer where there is space for that, else with the layers of a model added up."""
    if rows.select(LAYER).n_unique() <= MOST_ROWS:
        return rows, True
    by = ["level", "dataset", "model"]
    added = (
        rows.group_by([*by, "rival"])
        .agg(pl.col("n_wins", "n_beaten").sum())
        .with_columns(n_all=(pl.col("n_wins") + pl.col("n_beaten")).sum().over(by))
    )
    return added.sort([*by, "rival"]), False


@figure(
    "control_winners", "Which control is the strongest rival, and whether it wins", CONTROL_DELTAS
)
def make(material: Material) -> Drawing | str:
    """Counts of strongest rivals at levels 1 and 2."""
    if primary_deltas(material).is_empty():
        return "level 1 has no row at the primary metric"
    rows, by_layer = grouped(rows_of(material))
    rivals = rivals_of(material, rows)
    rows = rows.with_columns(ShortLayerNames(rows).lanes(rows, letters_in(_NAMES - 12)))
    levels = [level for level in (LEVEL1, LEVEL2) if level in set(rows["level"])]
    columns = {level: _columns(rows, rivals, level) for level in levels}
    both = sum(map(len, columns.values())) <= _BESIDE
    blocks = [
        _block(own, {level: columns[level] for level in group}, first=i == 0)
        for group in ([levels] if both else [[level] for level in levels])
        for i, own in enumerate(rows.partition_by("dataset", maintain_order=True))
    ]
    shares = ("≤ 1/5", "≤ 1/2", "more")
    key = panels.key(
        ("left half: comparisons in which the rival is not beaten", _SIDES["n_wins"], shares),
        ("right half: the real features beat it", _SIDES["n_beaten"], shares),
    )
    chart = panels.stacked(key, *blocks, spacing=10)
    return chart, _caption(rows, material, by_layer=by_layer), _summary(rows)


def _columns(rows: pl.DataFrame, rivals: list[str], level: str) -> list[str]:
    shown = [name for name in rivals if level == LEVEL1 or name != NUISANCE]
    absent = rows.filter(level=level, rival=NOT_COMPUTED).height
    return [*shown, NOT_COMPUTED] if absent else shown


def _block(rows: pl.DataFrame, columns: dict[str, list[str]], *, first: bool) -> alt.HConcatChart:
    """One dataset: a panel per level, with the names of the layers on the left."""
    key = [name for name in (*LAYER, "lane") if name in rows.columns]
    lanes = rows.select(key).unique().sort(key)["lane"]
    y = {**panels.lanes("lane", lanes.to_list()), "axis": None}
    size: dict[str, Any] = {"height": {"step": 18}}
    parts: list[Any] = [panels.column(lanes.to_frame(), "lane", y, _NAMES, align="right", **size)]
    parts += [
        _level(rows.filter(level=level), lanes, names, y, level, first=first)
        for level, names in columns.items()
    ]
    title = panels.title(short(rows["dataset"][0], 100), offset=4)
    return panels.beside(*parts, title=title, spacing=16)


def _level(
    rows: pl.DataFrame,
    lanes: pl.Series,
    columns: list[str],
    y: dict[str, Any],
    level: str,
    *,
    first: bool,
) -> alt.LayerChart:
    """Cells with two halves: how often the rival is not beaten, and how often it is."""
    slanted: dict[str, Any] = {
        "orient": "top",
        "labelAngle": -45,
        "labelAlign": "left",
        "labelFontSize": 10,
    }
    x = panels.lanes("rival", columns, labels=first, limit=160, **slanted)
    empty = lanes.to_frame().join(pl.DataFrame({"rival": columns}), how="cross")
    look = {"fill": "band", "stroke": "paper", "strokeWidth": 2}
    layers = [panels.layer(empty, "rect", look, x=x, y=y)]
    for side, classes in _SIDES.items():
        shown = rows.filter(pl.col(side) > 0).with_columns(
            side=pl.lit(side), share=pl.col(side) / pl.col("n_all") - 1e-12
        )
        painted = classes.paint(
            with_marks(shown, lambda row, side=side: _tooltip(row, side, level), side),  # type: ignore[misc]
            "share",
        )
        grey = Classes(("missing",), ()).paint(painted, "share").select("fill", "ink")
        absent = pl.col("rival") == NOT_COMPUTED
        painted = painted.with_columns(
            pl.when(absent).then(grey[name]).otherwise(name).alias(name) for name in ("fill", "ink")
        ).with_columns(pl.Series("count", [short_count(n) for n in painted[side]], dtype=pl.String))
        offset = {"field": "side", "type": "nominal", "scale": {"domain": list(_SIDES)}}
        layers += panels.cells(painted, x, y, label="count", size=9, xOffset=offset)
    top = -22 - 3.9 * min(26, max(map(len, columns)))
    head = panels.heading(_HEAD[level] if first else "", y=top, ink="ink", fontWeight="bold")
    return panels.overlay(*layers, head, width=_CELL * len(columns), height={"step": 18})


def short_count(n: int) -> str:
    """A count in at most four characters."""
    if n < 1000:
        return str(n)
    return f"{n / 1000:.1f}k" if n < 9950 else f"{n / 1000:.0f}k"


def _tooltip(row: dict[str, Any], column: str, level: str) -> str:
    at = f"layer {row['layer']}" if "layer" in row else "all layers"
    of = f"{row[column]:,} of {counted(row['n_all'], _UNIT[level])}"
    start = f"{row['dataset']}, {row['model']}, {at}, {level}:"
    if row["rival"] == NOT_COMPUTED:
        return f"{start} {of} not computed"
    ends = "is not beaten by" if column == "n_wins" else "is beaten by"
    return f"{start} {row['rival']} is the strongest rival and {ends} the real features in {of}"


def _caption(rows: pl.DataFrame, material: Material, *, by_layer: bool) -> str:
    metric, other_order = material.config.readout.primary_metric, n_other_order(material)
    n1 = rows.filter(pl.col("level") == LEVEL1)
    n_first = int((n1["n_wins"] + n1["n_beaten"]).sum())
    parts = [
        "Each comparison has one strongest rival; a cell counts how often it is this one: left where real minus rival "
        "is zero or less, right where it is above zero. Shades show the share of the row's comparisons (up to a fifth, "
        "up to half, more); the rival of an empty cell is never the strongest.",
        f"Level 1 ({metric_name(metric)}) compares {counted(n_first, 'subject-run row')} "
        "with the better of nuisance and the best counted control.",
    ]
    if LEVEL2 in set(rows["level"]):
        n2 = rows.filter(pl.col("level") == LEVEL2)
        parts.append(
            f"Level 2 compares {int((n2['n_wins'] + n2['n_beaten']).sum()):,} combinations of subject-run, unit, "
            "alignment measure and profile similarity with the best counted control; nuisance is no rival there under "
            "the point rules, but it is one in the tests of gates R and T."
        )
    else:
        why = (
            "no comparison to draw" if material.has(PROFILE_DELTAS.name) else "no table in this run"
        )
        parts.append(f"Level 2 has {why}.")
    if other_order:
        parts.append(
            f"{counted(other_order, 'level-2 comparison')} of different unit orders left out, as in the decision."
        )
    if not by_layer:
        parts.append(
            "The layers of each model are added up for lack of space; the tables have every layer."
        )
    absent = rows.filter(pl.col("rival") == NOT_COMPUTED)
    if absent.height:
        parts.append(f"{int(absent['n_wins'].sum()):,} comparisons were not computed.")
    return " ".join(parts)


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    for level in (LEVEL1, LEVEL2):
        own = rows.filter((pl.col("level") == level) & (pl.col("rival") != NOT_COMPUTED))
        if own.is_empty():
            continue
        total = int((own["n_wins"] + own["n_beaten"]).sum())
        wins = int(own["n_wins"].sum())
        first = (
            own.group_by("rival")
            .agg(pl.col("n_wins").sum())
            .sort(["n_wins", "rival"], descending=[True, False])
            .row(0)
        )
        text = f"At {level}, the strongest rival is not beaten in {wins:,} of {counted(total, 'comparison')}"
        parts.append(f"{text}; most often {first[0]} ({first[1]:,})." if wins else f"{text}.")
    return " ".join(parts) or "No comparison was computed."
