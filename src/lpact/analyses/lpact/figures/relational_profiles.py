"""Relational profiles: is the real pattern more like the brain's than that of nuisance and of every control?

Above, for every layer and alignment × profile summary, the advantage over the nearest rival. Below, for one layer per
dataset, all similarities, and the statistic of the tests with its draws.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    LAYER,
    NUISANCE,
    PROFILE_LOOKS,
    PROFILES,
    REAL,
    SUBJECT_RUN,
    ShortLayerNames,
    largest,
    layer_name,
    run_name,
)
from lpact.analyses.lpact.figures.similarities import (
    SUMMARY,
    Similarities,
    by_promise,
    layers_of,
    nearest_rivals,
    similarities,
    summary_order,
    telling_layers,
)
from lpact.analyses.lpact.gates.calibrated.relational import SURROGATE, SWAP, UNIT_ORDER, pool
from lpact.analyses.lpact.tables.levels import (
    PROFILE_SCORES,
    RELATIONAL_NULLS,
    RELATIONAL_SUMMARY,
)
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import BOX, DASH, LINE, Look
from lpact.report.wording import bound, counted, number, short, short_forms, signed, span
from lpact.store.frames import frame

MAX_ROWS = 40
MAX_DETAILS = 4
FEW_DRAWS = 20
"""Below so many draws they are shown one by one."""
EXTRAPOLATED = "*"
"""Stands after a p-value that is smaller than a rank among so many draws can be."""
_NOT_PASSED = Look(DASH, None, "line", 40)
_KINDS = {
    UNIT_ORDER: ("shuffled", "shuffled unit orders"),
    SURROGATE: ("draws", "draws"),
    SWAP: ("exchanged", "exchanged units"),
}
_LOOKS = {
    REAL: Look("circle", "real", "real", 70),
    "control": Look(LINE, None, "control", 120),
    NUISANCE: Look("diamond", "nuisance", "nuisance", 50),
}
_NEAREST = Look("triangle-left", "winner", "winner", 40)
_HEIGHT = 150


@figure(
    "relational_profiles",
    "Relational profiles: the real pattern against nuisance and every control",
    PROFILE_SCORES,
)
def make(material: Material) -> Drawing | str:
    """The advantage over the nearest rival everywhere, and the whole comparison for one layer per dataset."""
    found = similarities(material)
    nearest = nearest_rivals(found.rows)
    if nearest.is_empty():
        why = ", ".join(sorted(set(_reasons(material)["why"]))) or "not_computed"
        return f"no profile similarity could be compared with a rival ({why})"
    layers = layers_of(material, nearest)
    shown = _shown_layers(layers)
    order = summary_order(material, nearest)
    telling = telling_layers(layers).head(MAX_DETAILS)
    cells = advantage_cells(material, nearest, shown, order)
    classes = panels.diverging(largest(nearest["advantage"].abs()))
    entries: list[Any] = [
        (
            "real − nearest rival, profile similarity",
            classes,
            [bound(own) for own in classes.bounds],
        )
    ]
    if cells["advantage"].null_count():
        entries.append(("not computed", Look(BOX, "missing", "missing", 160)))
    entries += [(f"R passed, {PROFILES[name]}", look) for name, look in PROFILE_LOOKS.items()]
    names = ShortLayerNames(layers)
    detail_key = panels.key(
        ("real, mean", _LOOKS[REAL]),
        ("real, one subject-run", Look("circle", "real", "real", 18, 0.5)),
        ("control", _LOOKS["control"]),
        ("nuisance", _LOOKS[NUISANCE]),
        ("points at the nearest rival", _NEAREST),
        ("95 % of draws", Look(BOX, "missing", "missing", 160)),
    )
    chart = panels.stacked(
        panels.key(*entries, ("not passed", _NOT_PASSED), width=900),
        *_overview(classes.paint(cells, "advantage"), shown, order, names),
        detail_key,
        *(_detail(material, found, layer, order, names) for layer in telling.iter_rows(named=True)),
        spacing=14,
    )
    return chart, _caption(found, layers, shown, telling), _summary(layers)


def _shown_layers(layers: pl.DataFrame) -> pl.DataFrame:
    """Layers of the overview: all, or the most telling ones of every dataset."""
    if layers.height <= MAX_ROWS:
        return layers
    share = max(1, MAX_ROWS // layers["dataset"].n_unique())
    place = pl.int_range(pl.len()).over("dataset")
    return by_promise(layers).filter(place < share).head(MAX_ROWS).sort(LAYER)


# -- overview: layers down, summaries across ---------------------------------------------------------------------------


def _reasons(material: Material) -> pl.DataFrame:
    """The most frequent reason, ``why``, for a layer's summary without numbers."""
    keys = [*LAYER, *SUMMARY]
    if not material.has(RELATIONAL_SUMMARY.name):
        return pl.DataFrame(
            schema=dict.fromkeys(keys, pl.String) | {"layer": pl.Int64, "why": pl.String}
        )
    table = material.table(RELATIONAL_SUMMARY.name).filter(pl.col("reason") != "ok").sort(keys)
    return table.group_by(keys, maintain_order=True).agg(why=pl.col("reason").mode().sort().first())


def advantage_cells(
    material: Material, nearest: pl.DataFrame, shown: pl.DataFrame, order: list[tuple[str, str]]
) -> pl.DataFrame:
    """One row per layer and summary: advantage over the nearest rival, or why there is none."""
    keys = [*LAYER, *SUMMARY]
    summaries = pl.DataFrame(order, schema=SUMMARY, orient="row")
    cells = (
        shown.select(LAYER)
        .join(summaries, how="cross")
        .join(nearest.rename({"condition": "nearest"}), on=keys, how="left", maintain_order="left")
        .join(_reasons(material), on=keys, how="left", maintain_order="left")
        .with_columns(
            pl.col("why").fill_null("not_computed"),
            summary=pl.concat_str(SUMMARY, separator="\n"),
        )
    )
    cells = cells.with_columns(
        pl.Series("shown", [signed(value, 2) for value in cells["advantage"]], dtype=pl.String)
    )
    return with_marks(cells, _cell_tooltip, "advantage")


def _cell_tooltip(row: dict[str, Any]) -> str:
    if row["advantage"] is None:
        return f"{_place(row)}: not computed ({row['why']})"
    counts = "" if row["counted"] else ", not counted by point rules"
    return (
        f"{_place(row)}: real − nearest rival {signed(row['advantage'])} ({row['nearest']}{counts}; "
        f"mean over units, then over {counted(row['n_subject_runs'], 'subject-run')})"
    )


def _overview(
    cells: pl.DataFrame, shown: pl.DataFrame, order: list[tuple[str, str]], names: ShortLayerNames
) -> list[alt.HConcatChart]:
    """One block per dataset: advantages, marks of gate R, and the most frequent nearest rival."""
    width = max(30.0, min(52.0, 430 / len(order))) * len(order)
    blocks = []
    for i, own in enumerate(shown.partition_by("dataset", maintain_order=True)):
        lane = names.lanes(own, 30)
        rival = [
            f"{short(row['rival'], 30)} ({row['times']} of {row['n_summaries']})"
            if row["rival"]
            else "–"
            for row in own.iter_rows(named=True)
        ]
        own = own.with_columns(lane, pl.Series("rival_text", rival))
        y = {**panels.lanes("lane", lane.to_list()), "axis": None}
        x = _summaries(order, orient="top", labels=i == 0, labelPadding=16)
        size: dict[str, Any] = {"height": {"step": 18}}
        inside = cells.join(own.select(*LAYER, "lane"), on=LAYER, maintain_order="left")
        parts: list[Any] = [
            panels.column(own, "lane", y, 170, align="right", **size),
            panels.overlay(*panels.cells(inside, x, y, label="shown"), width=width, **size),
            _gate_marks(own, y, size, first=i == 0),
            panels.column(
                own,
                "rival_text",
                y,
                210,
                size=10,
                ink="muted",
                title="nearest rival (in how many summaries)" if i == 0 else "",
                **size,
            ),
        ]
        title = panels.title(short(own["dataset"][0], 100), offset=4)
        blocks.append(panels.beside(*parts, title=title, spacing=10))
    return blocks


def _summaries(order: list[tuple[str, str]], **more: Any) -> dict[str, Any]:
    """Summaries across, with the alignment measure above the profile similarity."""
    labels = {"labelFontSize": 9, "labelExpr": "split(datum.label, '\\n')", **more}
    return panels.lanes("summary", [f"{a}\n{p}" for a, p in order], **labels)


def _gate_marks(
    layers: pl.DataFrame, y: dict[str, Any], size: dict[str, Any], *, first: bool
) -> alt.LayerChart:
    rows = layers.select(*LAYER, "lane", *PROFILES).unpivot(
        list(PROFILES), index=[*LAYER, "lane"], variable_name="gate_profile", value_name="passed"
    )
    marked = with_marks(
        rows,
        lambda row: (
            f"{layer_name(row)}: R {'passed' if row['passed'] else 'not passed'}, "
            f"{PROFILES[row['gate_profile']]}"
        ),
    ).with_columns(
        kind=pl.when("passed").then(pl.col("gate_profile")).otherwise(pl.lit("not passed"))
    )
    looks = {**PROFILE_LOOKS, "not passed": _NOT_PASSED}
    x = panels.lanes("gate_profile", list(PROFILES), labels=False)
    head = panels.heading("R" if first else "", 18, align="center", ink="ink", fontWeight="bold")
    return panels.overlay(
        panels.points(panels.with_looks(marked, "kind", looks), x, y), head, width=36, **size
    )


# -- details: one layer in full ----------------------------------------------------------------------------------------


def _detail(
    material: Material,
    found: Similarities,
    layer: dict[str, Any],
    order: list[tuple[str, str]],
    names: ShortLayerNames,
) -> alt.HConcatChart:
    """Similarities by summary on the left, tests on the right."""
    same = [pl.col(name) == layer[name] for name in LAYER]
    rows, runs = found.rows.filter(same), found.runs.filter(same)
    n_runs = runs.select(SUBJECT_RUN).n_unique()
    about = (
        f"{counted(n_runs, 'subject-run')}, up to {counted(int(largest(rows['n_units'])), 'unit')}"
    )
    nulls = frame(RELATIONAL_NULLS, [])
    if material.has(RELATIONAL_NULLS.name):
        nulls = material.table(RELATIONAL_NULLS.name).filter(*same, reason="ok")
    parts: list[Any] = [_similarity_panel(rows, runs, order)]
    if nulls.height:
        parts.append(_tests(null_rows(nulls)))
    title = panels.title(names.of(layer, 60), about, fontSize=12, limit=420, offset=6)
    return panels.beside(*parts, title=title, spacing=225)


def _similarity_panel(
    rows: pl.DataFrame, runs: pl.DataFrame, order: list[tuple[str, str]]
) -> alt.LayerChart:
    """Summaries across, similarity upwards."""
    named = pl.concat_str(SUMMARY, separator="\n").alias("summary")
    rows = with_marks(rows.with_columns(named), _condition_tooltip, "similarity")
    runs = with_marks(runs.with_columns(named), _run_tooltip, "similarity")
    kind = pl.when(pl.col("condition").is_in([REAL, NUISANCE])).then("condition")
    looked = rows.with_columns(kind=kind.otherwise(pl.lit("control")))
    x = _summaries(order)
    domain = panels.domain(rows["similarity"], runs["similarity"])
    y = panels.axis("similarity", "profile similarity", domain, grid=True)
    nearest = nearest_rivals(rows).drop("mark").with_columns(kind=pl.lit("nearest"))
    return panels.overlay(
        panels.reference(0, "y", "ink"),
        panels.dots(runs.filter(condition=REAL), x, y, "real", size=18, opacity=0.5, xOffset=-14),
        *(
            panels.points(
                panels.with_looks(looked.filter(kind=name), "kind", _LOOKS), x, y, thick=2
            )
            for name in ("control", NUISANCE, REAL)
        ),
        panels.points(
            panels.with_looks(nearest, "kind", {"nearest": _NEAREST}), x, y, shift=(14, 0)
        ),
        width=46 * len(order),
        height=_HEIGHT,
    )


def null_rows(nulls: pl.DataFrame) -> pl.DataFrame:
    """One row per test and rival: observed statistic, range of its draws, advantage and p-value, as gate R pools them.

    ``rank_bound`` is 1 / (1 + draws), the smallest p-value that a rank among the draws can give; a smaller one is
    ``extrapolated``.
    """
    keys = [*LAYER, "test", "against"]
    known = nulls.filter(reason="ok").sort([*keys, *SUBJECT_RUN, *SUMMARY])
    made = []
    for _, part in known.group_by(keys, maintain_order=True):
        pooled = pool(part)
        draws = pooled.draws[np.isfinite(pooled.draws)]
        ends = np.percentile(draws, [2.5, 97.5]) if draws.size else (None, None)
        made.append(
            {
                **part.select(keys).row(0, named=True),
                "observed": pooled.observed,
                "low": ends[0],
                "high": ends[1],
                "draws": draws.tolist(),
                "n_draws": int(draws.size),
                "advantage": pooled.advantage,
                "p_value": pooled.p_value if draws.size else None,
                "rank_bound": 1 / (1 + draws.size) if draws.size else None,
            }
        )
    # Draws rank no finer than the bound: a smaller p comes from the tail of a fitted distribution.
    beyond = pl.col("p_value") < pl.col("rank_bound") * (1 - 1e-9)
    place = {kind: i for i, kind in enumerate(_KINDS)}
    rank = pl.col("test").replace_strict(place, default=len(place))
    return (
        pl.DataFrame(made, infer_schema_length=None)
        .with_columns(extrapolated=beyond.fill_null(value=False))
        .sort([*LAYER, rank, pl.col("against") != NUISANCE, "against"])
    )


def _tests(tests: pl.DataFrame) -> alt.LayerChart:
    """Tests down: a bar or ticks for draws, a point for the observed statistic, and the p-value."""
    rivals = short_forms(tests["against"], 26)
    labels = [
        f"{'unit order' if test == UNIT_ORDER else rivals[against]}, {_KINDS.get(test, (test,))[0]}"
        for test, against in tests.select("test", "against").iter_rows()
    ]
    p_values = [
        f"p {_p_value(p)}{EXTRAPOLATED if beyond else ''}"
        for p, beyond in tests.select("p_value", "extrapolated").iter_rows()
    ]
    rows = with_marks(
        tests.with_columns(pl.Series("label", labels), pl.Series("shown", p_values)),
        _test_tooltip,
        "observed",
    )
    many = rows.filter(pl.col("n_draws") >= FEW_DRAWS)
    few = rows.filter(pl.col("n_draws") < FEW_DRAWS).explode("draws").drop_nulls("draws")
    domain = panels.domain(rows["observed"], rows["low"], rows["high"], few["draws"])
    x = panels.axis("observed", "relational statistic and its draws", domain, grid=True)
    y = panels.lanes("label", labels, limit=220, labelFontSize=10)
    tick = {"thickness": 1.5, "size": 9, "color": "control"}
    return panels.overlay(
        panels.reference(0, "x", "ink"),
        panels.draws(many, x, y),
        panels.layer(few, "tick", tick, x={**x, "field": "draws"}, y=y),
        panels.dots(rows, x, y, "real", size=42, opacity=1),
        panels.text(rows.drop("mark"), "shown", {"value": 180}, y, size=10),
        width=170,
        height={"step": _HEIGHT / max(len(labels), 8)},
    )


def _p_value(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _place(row: dict[str, Any]) -> str:
    return f"{layer_name(row)}: {row['alignment']} alignment, {row['profile']} profile similarity"


def _condition_tooltip(row: dict[str, Any]) -> str:
    text = f"{_place(row)}: {row['condition']} {number(row['similarity'])}"
    if row["condition"] != REAL:
        counts = "counted" if row["counted"] else "not counted"
        text += f"; real ahead by {signed(row['advantage'])} ({counts} by point rules)"
    return f"{text}; mean over {counted(row['n_subject_runs'], 'subject-run')}"


def _run_tooltip(row: dict[str, Any]) -> str:
    return (
        f"{_place(row)}: {row['condition']} {number(row['similarity'])}, {run_name(row)}, "
        f"mean over {counted(row['n_units'], 'unit')}"
    )


def _test_tooltip(row: dict[str, Any]) -> str:
    against = "its own units in another order" if row["test"] == UNIT_ORDER else row["against"]
    text = (
        f"{layer_name(row)}: real pattern against {against}: statistic {signed(row['observed'])}; "
        f"{counted(row['n_draws'], 'draw')} ({_KINDS.get(row['test'], (row['test'],))[-1]})"
    )
    if row["low"] is not None:
        text += f", 95 % between {signed(row['low'])} and {signed(row['high'])}"
    text += f"; advantage in similarity {signed(row['advantage'])}; p {_p_value(row['p_value'])}"
    if row["extrapolated"]:
        text += f", extrapolated by Student's distribution; the rank says p ≤ {_p_value(row['rank_bound'])}"
    return text


def _caption(
    found: Similarities, layers: pl.DataFrame, shown: pl.DataFrame, telling: pl.DataFrame
) -> str:
    runs = found.rows["n_subject_runs"].to_list()
    rivals = found.rows.filter(pl.col("condition") != REAL)["condition"].n_unique()
    parts = [
        "Profile similarity is how much a model's alignment with all units resembles a brain unit's own; mean over "
        f"units, then over subject-runs ({span(runs)} per layer).",
        f"Above: real features minus the nearest of {counted(rivals, 'rival')} (nuisance and every control) for every "
        "alignment measure and profile similarity; on the right, which rival is nearest most often.",
        f"Below, for the most telling layer of {counted(telling.height, 'dataset')} (gate R under most profiles, then "
        "the largest median advantage): similarities (left), and the statistic of the tests with its draws, 95 % of "
        f"them as a bar or, if fewer than {FEW_DRAWS}, each one (right).",
        "The statistic is similarity times the spread of the pattern (similarity alone for unit orders), median over "
        "summaries and mean over subject-runs, real − rival where units are exchanged. Each row has its own scale, so "
        "rows are not comparable with each other; p is 1 by rule where a rival is at least as similar.",
        f"{EXTRAPOLATED}: m draws rank no finer than 1/(1 + m); this smaller p is extrapolated from their mean and "
        "spread (Student's distribution), and is less certain the fewer they are.",
    ]
    if shown.height < layers.height:
        parts.append(
            f"Drawn are {shown.height} of {layers.height} layers, the most telling of every dataset; the table "
            f"{PROFILE_SCORES.name} has all of them."
        )
    n_datasets = layers.filter(pl.col("n_summaries") > 0)["dataset"].n_unique()
    if telling.height < n_datasets:
        parts.append(f"{n_datasets - telling.height} further datasets are not drawn below.")
    if found.n_left_out:
        parts.append(
            f"{counted(found.n_left_out, 'unit row')} left out: the unit orders of model and brain differ."
        )
    return " ".join(parts)


def _summary(layers: pl.DataFrame) -> str:
    known = layers.filter(pl.col("n_summaries") > 0)
    ahead = known.filter(pl.col("n_ahead") == pl.col("n_summaries"))
    best = known.sort(["typical", *LAYER], descending=[True, False, False, False])
    top = best.row(0, named=True)
    passed = [f"{int(known[name].sum())} under {words}" for name, words in PROFILES.items()]
    summaries = counted(top["n_summaries"], "summary", "summaries")
    return (
        f"In {ahead.height} of {counted(known.height, 'layer')} the real pattern is above every rival in every "
        f"summary. Furthest ahead: {layer_name(top)}, median advantage {signed(top['typical'])} over the nearest "
        f"rival (above it in {top['n_ahead']} of {summaries}). Gate R passes {' and '.join(passed)}."
    )
