"""Which control wins, where: how often each rival is the strongest one, and whether the real features beat it."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import LAYER, NUISANCE, marked, primary_deltas
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, CONTROL_NULLS, PROFILE_DELTAS
from lpact.codes import Reason
from lpact.report import panels
from lpact.report.figure import Caption, Drawing, Spec, figure
from lpact.report.panels import Classes
from lpact.report.theme import DIVERGING
from lpact.report.values import short
from lpact.wording import counted

NOT_COMPUTED = "not computed"
LEVEL1, LEVEL2 = "level 1", "level 2"
MOST_ROWS = 60
"""With more rows than this, the layers of a model are added up."""
_CELL, _NAMES, _BESIDE = 40, 170, 18
_SHARES = (0.2, 0.5)
_SIDES = {
    "n_wins": (Classes(DIVERGING[2::-1], _SHARES), "is not beaten by"),
    "n_beaten": (Classes(DIVERGING[4:], _SHARES), "is beaten by"),
}
"""Shades for up to a fifth, up to half and more of a row's comparisons."""
_UNIT = {LEVEL1: "subject-run", LEVEL2: "unit and summary comparison"}
_HEAD = {
    LEVEL1: "Level 1, predictive: subject-runs",
    LEVEL2: "Level 2, relational: units × summaries",
}
_OK = pl.col("reason") == Reason.OK.value
_SAME_ORDER = pl.col("model_unit_order_hash") == pl.col("brain_unit_order_hash")
_KNOWN2 = _OK & pl.col("delta_rel").is_not_null()


def rows_of(material: Material, by: list[str] | None = None) -> pl.DataFrame:
    """One row per level, dataset, model, layer and rival: ``n_wins`` and ``n_beaten``, of ``n_all`` comparisons.

    Level 1 compares subject-runs: the strongest rival is the better of nuisance and the best counted control (a tie
    goes to nuisance). Level 2 compares each subject-run, unit and relational summary with the best counted control
    only. A rival wins where real − rival is not positive. Comparisons without a contrast have the rival `NOT_COMPUTED`,
    and ``n_wins`` counts them. Level-2 rows whose unit orders differ compare different units; they are left out
    (`n_other_order`), as in the decision. With other columns ``by`` than a layer's, rows are added up.
    """
    known = _OK & pl.col("delta_nuisance").is_not_null() & pl.col("delta_control").is_not_null()
    by_nuisance = pl.col("delta_nuisance") <= pl.col("delta_control")
    rival = pl.when(by_nuisance).then(pl.lit(NUISANCE)).otherwise("best_control")
    levels = {
        LEVEL1: (
            primary_deltas(material),
            known,
            rival,
            pl.min_horizontal("delta_nuisance", "delta_control"),
        ),
        LEVEL2: (
            common.table(material, PROFILE_DELTAS).filter(~_KNOWN2 | _SAME_ORDER),
            _KNOWN2,
            pl.col("best_control"),
            pl.col("delta_rel"),
        ),
    }
    by = ["level", *(by or LAYER)]
    rows = pl.concat(
        frame.select(
            *LAYER,
            level=pl.lit(level),
            rival=pl.when(known).then(rival).otherwise(pl.lit(NOT_COMPUTED)),
            beaten=(known & (delta > 0)).fill_null(value=False),
        )
        for level, (frame, known, rival, delta) in levels.items()
    )
    counts = rows.group_by([*by, "rival"]).agg(
        n_wins=(~pl.col("beaten")).sum().cast(pl.Int64),
        n_beaten=pl.col("beaten").sum().cast(pl.Int64),
    )
    n_all = (pl.col("n_wins") + pl.col("n_beaten")).sum().over(by)
    return counts.with_columns(n_all=n_all).sort([*by, "rival"])


def n_other_order(material: Material) -> int:
    """Level-2 rows with a contrast that are left out, since brain and model have different unit orders."""
    return common.table(material, PROFILE_DELTAS).filter(_KNOWN2 & ~_SAME_ORDER).height


def rivals_of(material: Material, rows: pl.DataFrame) -> list[str]:
    """Nuisance, then every counted control of the study and every other rival of ``rows``, by how often it is one."""
    known = set(rows["rival"])
    for declared in (CONTROL_NULLS, CONTROL_AVAILABILITY):
        known |= set(common.table(material, declared).filter("counted")["control"])
    n = pl.col("n_wins") + pl.col("n_beaten")
    total = dict(rows.filter(level=LEVEL1).group_by("rival").agg(n.sum()).iter_rows())
    known -= {NUISANCE, NOT_COMPUTED}
    return [NUISANCE, *sorted(known, key=lambda name: (-total.get(name, 0), name))]


@figure(
    "control_winners", "Which control is the strongest rival, and whether it wins", CONTROL_DELTAS
)
def make(material: Material) -> Drawing | str:
    """Counts of strongest rivals at levels 1 and 2."""
    deltas = primary_deltas(material)
    if deltas.is_empty():
        return "level 1 has no row at the primary metric"
    by_layer = deltas.select(LAYER).n_unique() <= MOST_ROWS
    rows = rows_of(material, LAYER if by_layer else LAYER[:2])
    rivals = rivals_of(material, rows)
    name = pl.format("{} · layer {}", "model", "layer") if by_layer else pl.col("model")
    rows = rows.with_columns(lane=name)
    columns = {
        level: [
            name
            for name in [*rivals, NOT_COMPUTED]
            if (level == LEVEL1 or name != NUISANCE)
            and (name != NOT_COMPUTED or NOT_COMPUTED in own["rival"])
        ]
        for level in (LEVEL1, LEVEL2)
        if (own := rows.filter(level=level)).height
    }
    beside = sum(map(len, columns.values())) <= _BESIDE
    groups = [columns] if beside else [{level: own} for level, own in columns.items()]
    blocks = [
        _block(own, group, first=i == 0)
        for group in groups
        for i, own in enumerate(rows.partition_by("dataset", maintain_order=True))
    ]
    shares = ("≤ 1/5", "≤ 1/2", "more")
    key = panels.key(
        ("left half: the rival is not beaten", _SIDES["n_wins"][0], shares),
        ("right half: the real features beat it", _SIDES["n_beaten"][0], shares),
    )
    chart = panels.stacked(key, *blocks, spacing=10)
    return chart, _caption(rows, material, by_layer=by_layer), _summary(rows)


def _block(rows: pl.DataFrame, columns: dict[str, list[str]], *, first: bool) -> alt.HConcatChart:
    """One dataset: a panel per level, with the names of the layers on the left."""
    key = [name for name in (*LAYER, "lane") if name in rows.columns]
    lanes = rows.select(key).unique().sort(key).select("lane")
    y = panels.lanes("lane", lanes["lane"], shown=False)
    parts: list[Any] = [panels.column(lanes, "lane", y, _NAMES, align="right", step=18)]
    parts += [
        _level(rows.filter(level=level), lanes, names, y, level, first=first)
        for level, names in columns.items()
    ]
    title = panels.title(short(rows["dataset"][0], 100), offset=4)
    return panels.beside(*parts, title=title, spacing=16)


def _level(
    rows: pl.DataFrame, lanes: pl.DataFrame, columns: list[str], y: Spec, level: str, *, first: bool
) -> alt.LayerChart:
    """Cells with two halves: how often the rival is not beaten, and how often it is."""
    slanted: Spec = {"labelAngle": -45, "labelAlign": "left", "labelFontSize": 10}
    x = panels.lanes("rival", columns, labels=first, limit=160, orient="top", **slanted)
    empty = lanes.join(pl.DataFrame({"rival": columns}), how="cross")
    look = {"fill": "band", "stroke": "paper", "strokeWidth": 2}
    layers = [panels.layer(empty, "rect", look, x=x, y=y)]
    for side, (classes, ends) in _SIDES.items():
        won = f"{{}} is the strongest rival and {ends} the real features in"
        absent = pl.col("rival") == NOT_COMPUTED
        shown = rows.filter(pl.col(side) > 0)
        share = pl.col(side) / pl.col("n_all") - 1e-12
        shown = shown.with_columns(
            result=pl.when(absent).then(pl.lit("not computed:")).otherwise(pl.format(won, "rival")),
            of=pl.format(f"{{}} of {{}} {_UNIT[level]}s", side, "n_all"),
            side=pl.lit(side),
            count=pl.Series(
                [f"{n / 1000:.0f}k" if n > 9999 else str(n) for n in shown[side]], dtype=pl.String
            ),
            share=pl.when(~absent).then(share),
        )
        cells = classes.paint(marked(shown, f"{{at}}, {level}: {{result}} {{of}}", side), "share")
        offset = {"field": "side", "type": "nominal", "scale": {"domain": list(_SIDES)}}
        layers += panels.cells(cells, x, y, label="count", size=9, xOffset=offset)
    top = -22 - 3.9 * min(26, max(map(len, columns)))
    head = panels.heading(_HEAD[level] if first else "", y=top, ink="ink", fontWeight="bold")
    return panels.overlay(*layers, head, width=_CELL * len(columns), step=18)


def _caption(rows: pl.DataFrame, material: Material, *, by_layer: bool) -> Caption:
    other_order = n_other_order(material)
    absent = int(rows.filter(rival=NOT_COMPUTED)["n_wins"].sum())
    n = {
        level: sum(own["n_wins"]) + sum(own["n_beaten"])
        for level in (LEVEL1, LEVEL2)
        for own in [rows.filter(level=level)]
    }
    return {
        "Each comparison has one strongest rival; a cell counts how often it is this one: left where real minus rival "
        "is zero or less, right where it is above zero. Shades show the share of the row's comparisons; the rival of "
        "an empty cell is never the strongest.": True,
        f"Level 1 ({common.metric_name(material)}) compares {counted(n[LEVEL1], 'subject-run row')} with the better of "
        "nuisance and the best counted control.": True,
        f"Level 2 compares {n[LEVEL2]:,} combinations of subject-run, unit, alignment measure and profile similarity "
        "with the best counted control; nuisance is no rival there under the point rules, but it is one in the tests "
        "of gates R and T.": n[LEVEL2],
        "Level 2 has no comparison to draw.": not n[LEVEL2],
        f"{counted(other_order, 'level-2 comparison')} of different unit orders left out, as in the "
        "decision.": other_order,
        "The layers of each model are added up for lack of space; the tables have every layer.": not by_layer,
        f"{absent:,} comparisons were not computed.": absent,
    }


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    known = rows.filter(pl.col("rival") != NOT_COMPUTED)
    for own in known.partition_by("level", maintain_order=True):
        wins = int(own["n_wins"].sum())
        total = wins + int(own["n_beaten"].sum())
        by_rival = own.group_by("rival").agg(pl.col("n_wins").sum())
        first = common.top(by_rival, "n_wins", then=["rival"])
        most = f"; most often {first['rival']} ({first['n_wins']:,})" if wins else ""
        of = f"{wins:,} of {counted(total, 'comparison')}"
        parts.append(f"At {own['level'][0]}, the strongest rival is not beaten in {of}{most}.")
    return " ".join(parts) or "No comparison was computed."
