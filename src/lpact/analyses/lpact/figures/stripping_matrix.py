"""Stripping matrix: what stripping each mechanism costs the target units of each mechanism.

For a layer, over the rows that gate M uses (all three numbers there, at least two targets),

    drop(k → t) = median over stripping methods of the median over subject-runs of (s_real(t) − s_stripped k(t)),

so that drop(k → k) is the ``typical_drop`` of the gate evidence.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.cell_colours import (
    class_of,
    diverging_breaks,
    fill_of,
    ink_on,
    own_colour,
    painted,
)
from lpact.analyses.lpact.figures.common import (
    LAYER,
    PROFILES,
    ShortLayerNames,
    layer_name,
    mechanism_order,
    metric_name,
    passed_under,
)
from lpact.analyses.lpact.figures.key import Key
from lpact.analyses.lpact.figures.profile_marks import PROFILE_SHAPES, explain_passed
from lpact.analyses.lpact.figures.stripping_rows import (
    DELTAS,
    MAX_PANELS,
    SPECIFICITY,
    chosen_layers,
    rows_of,
)
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.report.figure import DESCRIPTION, Figure, Missing, Spec, values, with_marks
from lpact.report.theme import DIVERGING, colour
from lpact.report.wording import bound, counted, signed

NAME = "stripping_matrix"
TITLE = "What stripping a mechanism costs: matching targets on the diagonal"
EVIDENCE = "decisions/lpact_gate_evidence"
_CELL = (40, 27)


def make(material: Material) -> Figure | Missing:
    """Draw the stripping matrix of the layers that matter."""
    lacking = material.lacks(DELTAS, SPECIFICITY)
    if lacking:
        return Missing(NAME, TITLE, f"The run has no table {', '.join(lacking)}.")
    rows = rows_of(material)
    if not rows.height:
        return Missing(NAME, TITLE, "No mechanism was stripped in this run.")
    layers = chosen_layers(material, rows)
    order = mechanism_order(material, pl.concat([rows["stripped"], rows["target"]]))
    drawn = rows.join(layers.select(LAYER), on=LAYER, how="semi", maintain_order="left")
    if not drawn["drop"].count():
        why = ", ".join(drawn["why"].drop_nulls().unique().sort().to_list())
        return Missing(NAME, TITLE, f"No drop could be computed ({why}).")
    cells = _cells(drawn, order)
    gates = _gate_rows(material, cells)
    breaks, metric = _breaks(drawn), metric_name(material.config.readout.primary_metric)
    columns, names = _columns(layers.height), ShortLayerNames(layers)
    panels = [
        _panel(layer, cells, gates, _axes(order, first=i % columns == 0), names)
        for i, layer in enumerate(layers.iter_rows(named=True))
    ]
    n_layers = rows.select(LAYER).n_unique()
    spec = _spec(panels, breaks, f"held-out {metric}", any_missing=bool(cells["drop"].null_count()))
    return Figure(NAME, TITLE, _caption(cells, layers, n_layers), _summary(cells, gates), spec)


def _columns(n_panels: int) -> int:
    return n_panels if n_panels < 4 else 2 if n_panels == 4 else 3


def _cells(drawn: pl.DataFrame, order: list[str]) -> pl.DataFrame:
    """Cells with labels, colours and text."""
    breaks = _breaks(drawn)
    decimals = 3 if breaks[-1] < 0.5 else 2
    labels = {name: f"{i} {name}" for i, name in enumerate(order, 1)}
    classes = [class_of(value, breaks) for value in drawn["drop"]]
    cells = drawn.with_columns(
        row=pl.col("stripped").replace_strict(labels, return_dtype=pl.String),
        column=pl.col("target").replace_strict(
            {name: str(i) for i, name in enumerate(order, 1)}, return_dtype=pl.String
        ),
        shown=pl.Series([signed(value, decimals) for value in drawn["drop"]], dtype=pl.String),
        ink=pl.Series(painted([ink_on(DIVERGING, place) for place in classes]), dtype=pl.String),
        fill=pl.Series(painted([fill_of(DIVERGING, place) for place in classes]), dtype=pl.String),
    )
    return with_marks(cells, _cell_text, "drop")


def _breaks(drawn: pl.DataFrame) -> list[float]:
    largest = drawn["drop"].abs().max()
    return diverging_breaks(float(largest) if isinstance(largest, float) else 0.0)


def _cell_text(row: dict[str, Any]) -> str:
    what = f"{layer_name(row)}: strip {row['stripped']}, target {row['target']}"
    if row["drop"] is None:
        return f"{what}: not computed ({row['why']})"
    kind = "matching" if row["matching"] else "other target"
    n = f"{counted(row['n_methods'], 'method')}, {counted(row['n_subject_runs'], 'subject-run')}"
    return f"{what} ({kind}): drop {signed(row['drop'], 4)} (median over {n})"


def _gate_rows(material: Material, cells: pl.DataFrame) -> pl.DataFrame:
    """Matching cells whose claim passes M, one row a gate profile."""
    diagonal = cells.filter("matching").select(*LAYER, "stripped", "row", "column", "ink", "drop")
    if not material.has(DECISIONS.name):
        return diagonal.head(0).with_columns(gate_profile=pl.lit(""), profile_name=pl.lit(""))
    held = material.table(DECISIONS.name).filter("mechanism_specific")
    marks = held.select(*LAYER, stripped="mechanism", gate_profile="gate_profile")
    found = diagonal.join(marks, on=[*LAYER, "stripped"], maintain_order="left")
    found = found.sort([*LAYER, "stripped", "gate_profile"]).with_columns(
        profile_name=pl.col("gate_profile").replace_strict(
            PROFILES, default="", return_dtype=pl.String
        )
    )
    evidence = _sentences(material)
    return with_marks(
        found,
        lambda row: (
            f"{layer_name(row)}: gate M passes for {row['stripped']}, {row['profile_name']}. "
            f"{evidence.get(_claim(row), '')}"
        ).strip(),
    )


def _claim(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*LAYER, "stripped", "gate_profile"))


def _sentences(material: Material) -> dict[tuple[Any, ...], str]:
    if not material.has(EVIDENCE):
        return {}
    rows = material.table(EVIDENCE).filter(
        (pl.col("gate") == "mechanism") & pl.col("criterion").is_in(_DECIDING)
    )
    return {
        _claim({**row, "stripped": row["mechanism"]}): row["sentence"]
        for row in rows.sort("criterion_order").iter_rows(named=True)
    }


_DECIDING = ("methods_agreeing", "p_other_targets")


def _axes(order: list[str], *, first: bool) -> Spec:
    """Stripped mechanisms down, targets across; only the first panel of a line has the names in full."""
    plain = {"ticks": False, "domain": False}
    return {
        "y": {
            "field": "row",
            "type": "nominal",
            "scale": {"domain": [f"{i} {name}" for i, name in enumerate(order, 1)]},
            "axis": {
                **plain,
                "title": "stripped mechanism" if first else None,
                "labelLimit": 150,
                **({} if first else {"labelExpr": "split(datum.label, ' ')[0]"}),
            },
        },
        "x": {
            "field": "column",
            "type": "nominal",
            "scale": {"domain": [str(i) for i in range(1, len(order) + 1)]},
            "axis": {**plain, "title": "target units of mechanism", "labelAngle": 0},
        },
    }


def _panel(
    layer: dict[str, Any],
    cells: pl.DataFrame,
    gates: pl.DataFrame,
    axes: Spec,
    names: ShortLayerNames,
) -> Spec:
    """One layer: cells, outlined diagonal, numbers, and marks of passed gates."""
    same = [pl.col(name) == layer[name] for name in LAYER]
    own, passed = cells.filter(same), gates.filter(same)
    outline = {
        "type": "rect",
        "filled": False,
        "stroke": colour("ink"),
        "strokeWidth": 2,
        "aria": False,
    }
    return {
        "title": _panel_title(layer, own, names),
        "data": values(own),
        "width": {"step": _CELL[0]},
        "height": {"step": _CELL[1]},
        "encoding": axes,
        "layer": [
            {
                "mark": {"type": "rect", "stroke": colour("paper"), "strokeWidth": 1},
                "encoding": {"fill": own_colour("fill"), "description": DESCRIPTION},
            },
            {"transform": [{"filter": "datum.matching"}], "mark": outline},
            {
                "mark": {"type": "text", "fontSize": 10, "dy": -2, "aria": False},
                "encoding": {"text": {"field": "shown"}, "color": own_colour("ink")},
            },
            *(_pass_marks(passed, profile) for profile in (PAPER, CALIBRATED)),
        ],
    }


def _panel_title(layer: dict[str, Any], own: pl.DataFrame, names: ShortLayerNames) -> Spec:
    dataset, model = names.in_two_lines(layer, 38)
    n = f"{counted(int(own['n_subject_runs'].max() or 0), 'subject-run')}"  # type: ignore[arg-type]
    n += f", {counted(int(own['n_methods'].max() or 0), 'method')}"  # type: ignore[arg-type]
    return {
        "text": [dataset, model],
        "subtitle": f"{n} · P: {passed_under(layer)}",
        "fontSize": 11,
        "limit": 250,
        "frame": "group",
        "offset": 6,
    }


def _pass_marks(passed: pl.DataFrame, profile: str) -> Spec:
    """Small marks in the lower corners of matching cells: left for point rules, right for tests."""
    return {
        "data": values(passed.filter(pl.col("gate_profile") == profile)),
        "mark": {
            "type": "point",
            "filled": profile != PAPER,
            "strokeWidth": 1.3,
            "shape": PROFILE_SHAPES[profile],
            "size": 34,
            "yOffset": 9,
            "xOffset": -14 if profile == PAPER else 14,
        },
        "encoding": {
            "stroke" if profile == PAPER else "color": own_colour("ink"),
            "description": DESCRIPTION,
        },
    }


def _spec(panels: list[Spec], breaks: list[float], metric: str, *, any_missing: bool) -> Spec:
    """The key, and the panels beneath it in lines."""
    key = Key(810).classes(
        f"drop in {metric}, real − stripped", DIVERGING, [bound(b) for b in breaks]
    )
    if any_missing:
        key.box("not computed", "missing")
    explain_passed(key, "M")
    matrix = {
        "concat": panels,
        "columns": _columns(len(panels)),
        "align": "each",
        "spacing": {"row": 26, "column": 26},
    }
    return {"vconcat": [key.spec(), matrix], "spacing": 14}


def _caption(cells: pl.DataFrame, layers: pl.DataFrame, n_layers: int) -> str:
    missing = cells.filter(pl.col("drop").is_null())
    parts = [
        "Drop of the held-out score, real − stripped, by stripped mechanism (rows) and the mechanism whose "
        "target units "
        "are predicted (columns, by the number before its name): median over subject-runs, then over "
        "stripping methods.",
        "Outlined: the matching target. Gate M asks that this cell is above zero, above the others of its "
        "row, and above "
        "strips of something else.",
    ]
    left_out = n_layers - layers.height
    if left_out:
        parts.append(
            f"Drawn are {layers.height} of {n_layers} layers: those that pass P or M under either profile, and the "
            "layer "
            f"with the largest matching drop of every other dataset (at most {MAX_PANELS}); the other {left_out} "
            "are in "
            f"{DELTAS}."
        )
    if missing.height:
        why = ", ".join(missing["why"].unique().sort().to_list())
        parts.append(
            f"A dash: {counted(missing.height, 'cell')} not computed or not used by the gate ({why})."
        )
    return " ".join(parts)


def _summary(cells: pl.DataFrame, gates: pl.DataFrame) -> str:
    known = cells.drop_nulls("drop")
    top = known.filter("matching").sort(
        ["drop", *LAYER, "stripped"], descending=[True, False, False, False, False]
    )
    words = []
    if top.height:
        best = top.row(0, named=True)
        words.append(
            f"The largest matching drop is {signed(best['drop'])}, of {best['stripped']} in {layer_name(best)}."
        )
    passed = gates.select(*LAYER, "stripped", "gate_profile") if gates.height else gates
    by_profile = [
        f"{passed.filter(pl.col('gate_profile') == p).height} under {PROFILES[p]}" for p in PROFILES
    ]
    words.append(
        f"Of {counted(cells.filter('matching').height, 'matching cell')} drawn, gate M passes "
        f"{' and '.join(by_profile)}."
    )
    return " ".join(words)
