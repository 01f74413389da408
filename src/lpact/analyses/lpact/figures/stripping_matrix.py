"""Stripping matrix: what stripping each mechanism costs the target units of each mechanism.

Over the rows that gate M uses (all three numbers are known, at least two targets),

    drop(k → t) = median over stripping methods of the median over subject-runs of (s_real(t) − s_stripped k(t)),

so that drop(k → k) is the ``typical_drop`` of the gate evidence.
"""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import GATE_PROFILES, LAYER, PROFILE_LOOKS, SUBJECT_RUN, layer_name, marked
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.gates.summaries import usable_rows
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import SPECIFICITY, STRIPPING_DELTAS
from lpact.report import panels
from lpact.report.figure import Drawing, figure
from lpact.wording import counted, fixed, short

MAX_PANELS = 9
_TOOLTIP = (
    "{at}: strip {stripped}, target {target}[: not computed ({why})][ ({kind}): drop {drop:+4} (median over "
    "{n_methods:method}, {n_subject_runs:subject-run})]"
)
_CELL = (40, 27)


def rows_of(material: Material) -> pl.DataFrame:
    """One row per layer, stripped and target mechanism: drop, its n, whether it is matching, and why it is missing."""
    strip = [*LAYER, *SUBJECT_RUN, "method", "stripped"]
    deltas = material.table(STRIPPING_DELTAS.name).sort([*strip, "target"])
    used = usable_rows(material.table(SPECIFICITY.name))
    usable = deltas.join(used, on=strip, how="semi", maintain_order="left")
    usable = usable.filter(pl.col("drop").is_finite(), pl.col("reason") == "ok")
    keys, drop = [*LAYER, "stripped", "target"], pl.col("drop").median()
    methods = usable.group_by([*keys, "method"], maintain_order=True).agg(drop, runs=pl.struct(SUBJECT_RUN).n_unique())
    drops = methods.group_by(keys, maintain_order=True).agg(
        drop,
        n_methods=pl.len().cast(pl.Int64),
        n_subject_runs=pl.col("runs").max().cast(pl.Int64),
    )
    cells = deltas.group_by(keys, maintain_order=True).agg(
        pl.col("matching").first(),
        why=pl.coalesce(
            pl.col("reason").filter(pl.col("reason") != "ok").mode().sort().first(),
            pl.col("label").mode().sort().first(),
            pl.lit("not_computed"),
        ),
    )
    return cells.join(drops, on=keys, how="left", maintain_order="left").with_columns(
        pl.col("n_methods", "n_subject_runs").fill_null(0),
        why=pl.when(pl.col("drop").is_null()).then("why"),
    )


@figure(
    "stripping_matrix",
    "What stripping a mechanism costs: matching targets on the diagonal",
    STRIPPING_DELTAS,
    SPECIFICITY,
)
def make(material: Material) -> Drawing | str:
    """Draw the stripping matrix of the layers that matter."""
    rows = rows_of(material)
    if rows.is_empty():
        return "no mechanism was stripped in this run"
    layers, left_out = common.shown(material, rows, MAX_PANELS, STRIPPING_DELTAS)
    order = common.mechanism_order(material, pl.concat([rows["stripped"], rows["target"]]))
    drawn = rows.join(layers, on=LAYER, how="semi", maintain_order="left")
    missing = drawn.filter(pl.col("drop").is_null())
    why = ", ".join(missing["why"].unique().sort().to_list())
    if missing.height == drawn.height:
        return f"no drop could be computed ({why})"
    classes = panels.diverging(drawn["drop"])
    decimals = 3 if classes.bounds[-1] < 0.5 else 2
    shown = [fixed(value, decimals, sign=True) for value in drawn["drop"]]
    drawn = mechanism_lanes(drawn, "stripped", "target", order).with_columns(
        kind=pl.when("matching").then(pl.lit("matching")).otherwise(pl.lit("other target")),
        shown=pl.Series(shown, dtype=pl.String),
    )
    cells = classes.paint(marked(drawn, _TOOLTIP, "drop"), "drop")
    gates = _passed(material, cells)
    titles = ("stripped mechanism", "target units of mechanism")
    grid = panel_grid(layers, cells, order, titles, _subtitle, gates)
    title = f"drop in held-out {common.metric_name(material)}, real − stripped"
    entries = [panels.class_entry(title, classes), *common.profile_entries(gate="M")]
    if missing.height:
        entries.append(common.MISSING_BOX)
    caption = {
        "Drop of the held-out score, real − stripped, by stripped mechanism (rows) and the mechanism whose target "
        "units are predicted (columns, by the number before its name): median over subject-runs, then over stripping "
        "methods.": True,
        "Outlined: the matching target. Gate M requires that this cell is above zero, above the others of its row, "
        "and above strips of something else.": True,
        left_out: left_out,
        f"A dash: {counted(missing.height, 'cell')} not computed or not used by the gate ({why}).": missing.height,
    }
    chart = panels.stacked(panels.key(*entries), grid)
    return chart, caption, _summary(cells, gates)


def mechanism_lanes(rows: pl.DataFrame, down: str, across: str, order: list[str]) -> pl.DataFrame:
    """The rows with their places in a panel: ``row`` by number and name, ``column`` by number."""
    lanes, numbers = _lanes(order)
    return rows.with_columns(
        row=pl.col(down).replace_strict(order, lanes),
        column=pl.col(across).replace_strict(order, numbers),
    )


def _lanes(order: list[str]) -> tuple[list[str], list[str]]:
    numbers = [str(i + 1) for i in range(len(order))]
    return [f"{i} {name}" for i, name in zip(numbers, order, strict=True)], numbers


def panel_grid(
    layers: pl.DataFrame,
    cells: pl.DataFrame,
    order: list[str],
    titles: tuple[str, str],
    subtitle: Callable[[pl.DataFrame], str],
    gates: pl.DataFrame | None = None,
) -> alt.ConcatChart:
    """One panel per layer, mechanism by mechanism; the first of a line names them.

    With ``gates``, matching cells are outlined, and gate passes are symbols.
    """
    n, drawn = layers.height, []
    columns = n if n < 4 else 2 if n == 4 else 3
    lanes, numbers = _lanes(order)
    x = panels.lanes("column", numbers, title=titles[1])
    for i, layer in enumerate(layers.iter_rows(named=True)):
        same, first = common.of_layer(layer), i % columns == 0
        own, y = cells.filter(same), panels.lanes("row", lanes, limit=150)
        if not first:
            y["axis"]["labelExpr"] = "split(datum.label, ' ')[0]"
        parts = panels.cells(own, x, y, label="shown")
        if gates is not None:
            outline = {"filled": False, "stroke": "ink", "strokeWidth": 2}
            matching = own.filter("matching").drop("mark")
            parts.append(panels.layer(matching, "rect", outline, x=x, y=y))
            for name, shift in ((PAPER, -14), (CALIBRATED, 14)):
                passed = gates.filter(*same, gate_profile=name)
                parts.append(panels.points(passed, x, y, PROFILE_LOOKS[name], shift=(shift, 9)))
        parts.append(panels.heading(titles[0] if first else " ", -8, align="right"))
        model = f"{layer['model']} · layer {layer['layer']}"
        named = [short(layer["dataset"], 38), short(model, 38)]
        title = panels.panel_title(named, 250, offset=6, subtitle=subtitle(own))
        size = {"width": _CELL[0] * len(order), "height": _CELL[1] * len(order)}
        drawn.append(panels.overlay(*parts, **size, title=title))
    return panels.grid(drawn, columns)


def _passed(material: Material, cells: pl.DataFrame) -> pl.DataFrame:
    """Matching cells whose claim passes gate M, one row per gate profile."""
    claims = common.table_of(material, DECISIONS).filter("mechanism_specific")
    passed = claims.select(*LAYER, "gate_profile", stripped="mechanism")
    diagonal = cells.filter("matching").select(*LAYER, "stripped", "row", "column")
    found = diagonal.join(passed, on=[*LAYER, "stripped"], maintain_order="left")
    return marked(found, "{at}: gate M passes for {stripped}, {rules}")


def _subtitle(cells: pl.DataFrame) -> str:
    runs, methods = cells.select(pl.col("n_subject_runs", "n_methods").max()).row(0)
    return f"{counted(runs, 'subject-run')}, {counted(methods, 'method')}"


def _summary(cells: pl.DataFrame, gates: pl.DataFrame) -> str:
    matching = cells.filter("matching")
    passed = " and ".join(
        f"{gates.filter(gate_profile=name).height} under {words}" for name, words in GATE_PROFILES.items()
    )
    text = f"Of {counted(matching.height, 'matching cell')} drawn, gate M passes {passed}."
    if matching["drop"].is_null().all():
        return text
    best = common.top(matching.drop_nulls("drop"), "drop", then=[*LAYER, "stripped"])
    largest = f"{fixed(best['drop'], sign=True)}, of {best['stripped']} in {layer_name(best)}"
    return f"The largest matching drop is {largest}. {text}"
