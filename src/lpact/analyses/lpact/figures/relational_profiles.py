"""Relational profiles: is the real pattern more like the brain's than that of nuisance and of every control?

Above, for every layer and alignment × profile summary, the advantage over the nearest rival. Below, for one layer a
dataset, all similarities themselves, and the statistic of the tests beside its draws.
"""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.cell_colours import diverging_breaks
from lpact.analyses.lpact.figures.common import LAYER, PROFILES, ShortLayerNames, layer_name
from lpact.analyses.lpact.figures.key import Key
from lpact.analyses.lpact.figures.profile_marks import explain_passed
from lpact.analyses.lpact.figures.relational_details import detail
from lpact.analyses.lpact.figures.relational_matrix import matrix, reasons_of
from lpact.analyses.lpact.figures.relational_tests import EXTRAPOLATED, FEW_DRAWS
from lpact.analyses.lpact.figures.similarities import (
    SCORES,
    Similarities,
    by_promise,
    layers_of,
    nearest_rivals,
    similarities,
    summary_order,
    telling_layers,
)
from lpact.report.figure import Figure, Missing, Spec
from lpact.report.theme import DIVERGING, colour
from lpact.report.wording import bound, counted, signed, span

NAME = "relational_profiles"
TITLE = "Relational profiles: the real pattern against nuisance and every control"
MAX_ROWS = 40
MAX_DETAILS = 4


def rows_of(material: Material) -> pl.DataFrame:
    """Similarity and advantage of every condition, one row a layer and summary."""
    return similarities(material).rows


def make(material: Material) -> Figure | Missing:
    """Draw the advantage over the nearest rival everywhere, and the whole comparison for one layer a dataset."""
    if not material.has(SCORES):
        return Missing(NAME, TITLE, f"The run has no table {SCORES}.")
    found = similarities(material)
    nearest = nearest_rivals(found.rows)
    if not nearest.height:
        why = ", ".join(sorted(set(reasons_of(material).values()))) or "not_computed"
        return Missing(
            NAME, TITLE, f"No profile similarity could be compared with a rival ({why})."
        )
    layers = layers_of(material, nearest)
    shown = _shown_layers(layers)
    order = summary_order(material, nearest)
    telling = telling_layers(layers).head(MAX_DETAILS)
    breaks, names = _breaks(nearest), ShortLayerNames(layers)
    parts = [
        _key(breaks, any_missing=_any_missing(nearest, shown, order)),
        matrix(material, nearest, shown, order, breaks),
        _detail_key(),
        *(
            detail(material, found, (layer, names.of(layer, 60)), order)
            for layer in telling.iter_rows(named=True)
        ),
    ]
    spec: Spec = {"vconcat": parts, "spacing": 16}
    caption = _caption(found, layers, shown, telling)
    return Figure(NAME, TITLE, caption, _summary(layers), spec)


def _shown_layers(layers: pl.DataFrame) -> pl.DataFrame:
    """Layers of the overview: all, or the most telling ones of every dataset."""
    if layers.height <= MAX_ROWS:
        return layers
    share = max(1, MAX_ROWS // layers["dataset"].n_unique())
    place = pl.int_range(pl.len()).over("dataset")
    kept = by_promise(layers).filter(place < share).head(MAX_ROWS)
    return kept.sort(LAYER)


def _breaks(nearest: pl.DataFrame) -> list[float]:
    largest = nearest["advantage"].abs().max()
    return diverging_breaks(float(largest) if isinstance(largest, float) else 0.0)


def _any_missing(nearest: pl.DataFrame, shown: pl.DataFrame, order: list[tuple[str, str]]) -> bool:
    have = nearest.join(shown.select(LAYER), on=LAYER, how="semi").height
    return have < shown.height * len(order)


def _key(breaks: list[float], *, any_missing: bool) -> Spec:
    key = Key(900).classes(
        "real − nearest rival, profile similarity", DIVERGING, [bound(b) for b in breaks]
    )
    if any_missing:
        key.box("not computed", "missing")
    explain_passed(key, "R")
    dash = {"filled": False, "stroke": colour("line"), "strokeWidth": 1}
    return key.symbol("not passed", shape="stroke", size=60, **dash).spec()


def _detail_key() -> Spec:
    real, control = colour("real"), colour("control")
    return (
        Key(820)
        .symbol("real, mean", shape="circle", size=70, filled=True, color=real)
        .symbol(
            "real, one subject-run", shape="circle", size=20, filled=True, color=real, opacity=0.5
        )
        .symbol("control", shape="stroke", size=80, filled=False, stroke=control, strokeWidth=2)
        .symbol("nuisance", shape="diamond", size=50, filled=True, color=colour("nuisance"))
        .symbol(
            "points at the nearest rival",
            shape="triangle-left",
            size=40,
            filled=True,
            color=colour("winner"),
        )
        .box("95 % of draws", "missing")
        .spec()
    )


def _caption(
    found: Similarities, layers: pl.DataFrame, shown: pl.DataFrame, telling: pl.DataFrame
) -> str:
    runs = found.rows["n_subject_runs"].to_list()
    rivals = found.rows.filter(pl.col("condition") != "real")["condition"].n_unique()
    parts = [
        "Profile similarity is how much a model's alignment with all units resembles a brain unit's own; mean over "
        f"units, then over subject-runs ({span(runs)} a layer).",
        f"Above: real features minus the nearest of {counted(rivals, 'rival')} (nuisance and every control) for every "
        "alignment measure (bold) and profile similarity beneath it; at the right, which rival is nearest most often.",
        f"Below, for the most telling layer of {counted(telling.height, 'dataset')} (gate R under most profiles, then "
        "the largest median advantage): similarities, with 95 % of the real pattern's own in shuffled unit orders "
        "(left), and the statistic of the tests beside its draws, 95 % of them as a bar or, if fewer than "
        f"{FEW_DRAWS}, each one (right).",
        "The statistic is similarity times the spread of the pattern (similarity alone for unit orders), median over "
        "summaries and mean over subject-runs, real − rival where units are exchanged; each row has a scale of its "
        "own, so that rows are not comparable with each other; p is 1 by rule where a rival is at least as similar.",
        f"{EXTRAPOLATED}: m draws rank no finer than 1/(1 + m); this smaller p is extrapolated from their mean and "
        "spread (Student's distribution), the less surely the fewer they are.",
    ]
    if shown.height < layers.height:
        parts.append(
            f"Drawn are {shown.height} of {layers.height} layers, the most telling of every dataset; "
            f"all are in {SCORES}."
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
    best = by_promise(known).sort(["typical", *LAYER], descending=[True, False, False, False])
    top = best.row(0, named=True)
    passed = [f"{int(known[p].sum())} under {PROFILES[p]}" for p in PROFILES]
    summaries = counted(top["n_summaries"], "summary", "summaries")
    return (
        f"In {ahead.height} of {counted(known.height, 'layer')} the real pattern is above every rival in every "
        f"summary. Furthest ahead: {layer_name(top)}, median advantage {signed(top['typical'])} over the nearest "
        f"rival (above it in {top['n_ahead']} of {summaries}). Gate R passes {' and '.join(passed)}."
    )
