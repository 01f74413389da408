"""Which control wins, where: how often each rival is the strongest one, and whether the real features beat it.

Level 1 compares subject-runs: the strongest rival is the better of nuisance and the best counted control (a tie goes to
nuisance). Level 2 compares every subject-run, unit and relational summary with the best counted control only; rows
whose unit orders differ compare different units and are left out. A rival wins where real − rival is not positive.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import LANE, LAYER, NUISANCE, marked, primary_deltas
from lpact.analyses.lpact.gates.keys import OK, missing
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, CONTROL_NULLS, PROFILE_DELTAS
from lpact.report import panels
from lpact.report.figure import Caption, Drawing, Spec, figure
from lpact.report.panels import Classes
from lpact.report.theme import DIVERGING
from lpact.wording import counted

NOT_COMPUTED = "not computed"
LEVEL1, LEVEL2 = "level 1", "level 2"
MAX_ROWS = 60
_CELL, _STEP, _NAMES, _MOST_COLUMNS = 40, 18, 170, 18
_HEAD = {
    LEVEL1: "Level 1, predictive: subject-runs",
    LEVEL2: "Level 2, relational: units × summaries",
}
_UNIT = {LEVEL1: "subject-runs", LEVEL2: "unit and summary comparisons"}
_SIDES = {
    "n_wins": (Classes(DIVERGING[2::-1], (0.2, 0.5)), "is not beaten by"),
    "n_beaten": (Classes(DIVERGING[4:], (0.2, 0.5)), "is beaten by"),
}
"""Halves of a cell: shades for up to a fifth, up to half and more of a row's comparisons."""
_CONTRAST = OK & ~missing("delta_rel")
_SAME_ORDER = pl.col("model_unit_order_hash") == pl.col("brain_unit_order_hash")


def rows_of(material: Material) -> pl.DataFrame:
    """One row per level, layer and rival: ``n_wins`` and ``n_beaten``, of ``n_all`` comparisons.

    Comparisons without a contrast have the rival `NOT_COMPUTED`, and ``n_wins`` counts them.
    """
    nuisance, control = pl.col("delta_nuisance"), pl.col("delta_control")
    by_nuisance = pl.when(nuisance <= control).then(pl.lit(NUISANCE)).otherwise("best_control")
    first = primary_deltas(material).select(
        *LAYER,
        level=pl.lit(LEVEL1),
        rival=pl.when(OK & ~missing("delta_nuisance", "delta_control")).then(by_nuisance),
        delta=pl.min_horizontal(nuisance, control),
    )
    second = common.table_of(material, PROFILE_DELTAS).filter(_SAME_ORDER | ~_CONTRAST)
    second = second.select(
        *LAYER,
        level=pl.lit(LEVEL2),
        rival=pl.when(_CONTRAST).then("best_control"),
        delta="delta_rel",
    )
    by, known = ["level", *LAYER], pl.col("rival").is_not_null()
    beaten = (known & (pl.col("delta") > 0)).sum().cast(pl.Int64)
    n_wins = pl.len().cast(pl.Int64) - beaten
    n_all = (pl.col("n_wins") + pl.col("n_beaten")).sum().over(by)
    return (
        pl.concat([first, second])
        .group_by(*by, "rival")
        .agg(n_wins=n_wins, n_beaten=beaten)
        .with_columns(pl.col("rival").fill_null(NOT_COMPUTED), n_all=n_all)
        .sort([*by, "rival"])
    )


def rivals_of(material: Material, rows: pl.DataFrame) -> list[str]:
    """Nuisance, then every counted control of the study and every other rival of ``rows``, by how often it is one."""
    controls = common.table_of(material, CONTROL_NULLS).filter("counted")["control"]
    found = {*rows["rival"], *controls} - {NUISANCE, NOT_COMPUTED}
    n = (pl.col("n_wins") + pl.col("n_beaten")).sum()
    total = dict(rows.filter(level=LEVEL1).group_by("rival").agg(n).iter_rows())
    return [NUISANCE, *sorted(found, key=lambda name: (-total.get(name, 0), name))]


@figure("control_winners", "Which control is the strongest rival, and whether it wins", CONTROL_DELTAS)
def make(material: Material) -> Drawing | str:
    """Counts of strongest rivals at levels 1 and 2."""
    rows = rows_of(material)
    first = rows.filter(level=LEVEL1)
    if first.is_empty():
        return "level 1 has no row at the primary metric"
    layers, left_out = common.shown(material, first, MAX_ROWS, CONTROL_DELTAS)
    rivals = rivals_of(material, rows)
    columns = {
        level: [*(rivals if level == LEVEL1 else rivals[1:]), *lost]
        for (level,), own in rows.group_by("level", maintain_order=True)
        for lost in [own.filter(rival=NOT_COMPUTED)["rival"].unique()]
    }
    groups = [columns]
    if sum(map(len, columns.values())) > _MOST_COLUMNS:
        groups = [{level: own} for level, own in columns.items()]
    cells = _cells(rows.join(layers, on=LAYER, how="semi", maintain_order="left"))
    shares = ("≤ 1/5", "≤ 1/2", "more")
    key = panels.key(
        ("left half: the rival is not beaten", _SIDES["n_wins"][0], shares),
        ("right half: the real features beat it", _SIDES["n_beaten"][0], shares),
    )
    drawn = [block for group in groups for block in common.blocks(layers, partial(_block, cells, group))]
    chart = panels.stacked(key, *drawn, spacing=10)
    return chart, _caption(rows, material, left_out), _summary(rows)


def _cells(rows: pl.DataFrame) -> pl.DataFrame:
    """Halves of cells: one row per row of `rows_of` and side with a count, with its words and colours."""
    absent = pl.col("rival") == NOT_COMPUTED
    made = []
    for side, (classes, ends) in _SIDES.items():
        won = pl.format(f"{{}} is the strongest rival and {ends} the real features in", "rival")
        own = rows.filter(pl.col(side) > 0).with_columns(
            result=pl.when(absent).then(pl.lit("not computed:")).otherwise(won),
            unit=pl.col("level").replace(_UNIT),
            side=pl.lit(side),
            share=pl.when(~absent).then(pl.col(side) / pl.col("n_all") - 1e-12),
        )
        counts = [f"{n / 1000:.0f}k" if n > 9999 else str(n) for n in own[side]]
        own = own.with_columns(count=pl.Series(counts, dtype=pl.String))
        text = f"{{at}}, {{level}}: {{result}} {{{side}}} of {{n_all}} {{unit}}"
        made.append(classes.paint(marked(own, text, side), "share"))
    return pl.concat(made)


def _block(cells: pl.DataFrame, columns: dict[str, list[str]], layers: pl.DataFrame, first: bool) -> list[Any]:
    """One dataset: a panel per level, with the names of the layers on the left."""
    lanes = layers.with_columns(LANE)
    y = panels.lanes("lane", lanes["lane"], shown=False)
    parts: list[Any] = [panels.column(lanes, "lane", y, _NAMES, align="right", step=_STEP)]
    slanted: Spec = {"labelAngle": -45, "labelAlign": "left", "labelFontSize": 10}
    for level, rivals in columns.items():
        x = panels.lanes("rival", rivals, labels=first, limit=160, orient="top", **slanted)
        own = cells.filter(level=level).join(lanes, on=LAYER, maintain_order="left")
        empty = lanes.select("lane").join(pl.DataFrame({"rival": rivals}), how="cross")
        look = {"fill": "band", "stroke": "paper", "strokeWidth": 2}
        offset = {"field": "side", "type": "nominal", "scale": {"domain": list(_SIDES)}}
        top = -22 - 3.9 * min(26, max(map(len, rivals)))
        head = _HEAD[level] if first else ""
        layered = [
            panels.layer(empty, "rect", look, x=x, y=y),
            *panels.cells(own, x, y, label="count", size=9, xOffset=offset),
            panels.heading(head, y=top, ink="ink", fontWeight="bold"),
        ]
        parts.append(panels.overlay(*layered, width=_CELL * len(rivals), step=_STEP))
    return parts


def _caption(rows: pl.DataFrame, material: Material, left_out: str) -> Caption:
    relational = common.table_of(material, PROFILE_DELTAS)
    other_order = relational.filter(_CONTRAST & ~_SAME_ORDER).height
    absent = int(rows.filter(rival=NOT_COMPUTED)["n_wins"].sum())
    n1, n2 = (
        int((own["n_wins"] + own["n_beaten"]).sum()) for own in (rows.filter(level=LEVEL1), rows.filter(level=LEVEL2))
    )
    return {
        "Each comparison has one strongest rival; a cell counts how often it is this one: left where real minus rival "
        "is zero or less, right where it is above zero. Shades show the share of the row's comparisons; the rival of "
        "an empty cell is never the strongest.": True,
        f"Level 1 ({common.metric_name(material)}) compares {counted(n1, 'subject-run row')} with the better of "
        "nuisance and the best counted control.": True,
        f"Level 2 compares {n2:,} combinations of subject-run, unit, alignment measure and profile similarity "
        "with the best counted control; nuisance is no rival there under the point rules, but it is one in the tests "
        "of gates R and T.": n2,
        "Level 2 has no comparison to draw.": not n2,
        f"{counted(other_order, 'level-2 comparison')} of different unit orders left out, as in the "
        "decision.": other_order,
        left_out: left_out,
        f"{counted(absent, 'comparison')} not computed.": absent,
    }


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    known = rows.filter(pl.col("rival") != NOT_COMPUTED)
    for (level,), own in known.group_by("level", maintain_order=True):
        wins, beaten = int(own["n_wins"].sum()), int(own["n_beaten"].sum())
        by_rival = own.group_by("rival").agg(pl.col("n_wins").sum())
        first = common.top(by_rival, "n_wins", then=["rival"])
        most = f"; most often {first['rival']} ({first['n_wins']:,})" if wins else ""
        of = f"{wins:,} of {counted(wins + beaten, 'comparison')}"
        parts.append(f"At {level}, the strongest rival is not beaten in {of}{most}.")
    return " ".join(parts) or "No comparison was computed."
