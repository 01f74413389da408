"""How well brains agree with brains, and how models compare with that."""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.ceiling_panels import (
    fraction_key,
    fraction_lines,
    reliability_key,
    reliability_lines,
)
from lpact.analyses.lpact.figures.ceiling_rows import (
    DELTA,
    NOISE_FREE,
    PREDICTIVE,
    REAL,
    RELATIONAL,
    fraction_dots,
    fraction_rows,
    reliability_rows,
)
from lpact.analyses.lpact.figures.common import LAYER, MODES
from lpact.analyses.lpact.tables.ceilings import (
    BRAIN_CEILING,
    NORMALIZED_PREDICTIVE,
    NORMALIZED_SCORES,
)
from lpact.report.figure import Figure, Missing, Spec
from lpact.report.wording import counted, number

NAME = "ceilings"
TITLE = "Brain–brain reliability, and model scores relative to it"
MOST_ROWS = 60
"""With more layers than this, every model is one row, with its layers as dots."""


def make(material: Material) -> Figure | Missing:
    """Reliability by dataset, mode and kind; fractions of the ceiling by dataset, model and layer."""
    if not material.has(BRAIN_CEILING.name):
        return Missing(NAME, TITLE, f"the run has no table {BRAIN_CEILING.name}")
    reliability = reliability_rows(material)
    if reliability.is_empty():
        return Missing(NAME, TITLE, f"the table {BRAIN_CEILING.name} has no row")
    gates = LPactConfig.of(material.config).gates
    parts: list[Spec] = [
        reliability_key(gates.min_reliability),
        *reliability_lines(reliability, gates.min_reliability),
    ]
    said = _about_reliability(reliability)
    seen = _seen_reliability(reliability)
    if material.has(NORMALIZED_SCORES.name) or material.has(NORMALIZED_PREDICTIVE.name):
        rows, dots = fraction_rows(material), fraction_dots(material)
        n_layers = rows.select(LAYER).unique().height
        by_layer = n_layers <= MOST_ROWS
        if not by_layer:
            rows, dots = best_layers(rows)
        parts += [
            fraction_key(gates.min_ceiling_fraction, set(rows["level"]), by_layer=by_layer),
            *fraction_lines(rows, dots, gates.min_ceiling_fraction),
        ]
        said += _about_fractions(rows, n_layers, material, by_layer=by_layer)
        seen += _seen_fractions(rows)
    spec = {"vconcat": parts, "spacing": 12}
    return Figure(NAME, TITLE, " ".join(filter(None, said)), " ".join(seen), spec)


def best_layers(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Of every dataset and model the layer with the highest contrast; and all layers, as dots.

    The layer is chosen anew at each level, by real minus best control; ties go to the first.
    """
    by = ["dataset", "model", "level"]
    contrast = rows.filter(pl.col("quantity") == DELTA).sort(
        [*by, "value", "layer"], descending=[False, False, False, True, False], nulls_last=True
    )
    first = contrast.unique(by, keep="first", maintain_order=True).select(*by, "layer")
    known = rows.filter(pl.col("value").is_not_null() & (pl.col("quantity") != NOISE_FREE))
    dots = known.select(*LAYER, "level", "quantity", "value")
    return rows.join(first, on=[*by, "layer"], how="semi", maintain_order="left"), dots


def _about_reliability(rows: pl.DataFrame) -> list[str]:
    recordings = rows.select("dataset", "subject", "session", "run").unique().height
    said = [
        f"Above: brain–brain reliability of {counted(recordings, 'recording')} (dots) and their mean (bar) by "
        "mode, from "
        "the strictest to the most lenient, or why a mode is not possible; relational patterns: mean over alignment "
        "measures and profile similarities; responses: correlation over events of the same stimulus."
    ]
    alone = sorted(rows.filter(pl.col("alone"))["dataset"].unique().to_list())
    if alone:
        said.append(
            f"In {', '.join(alone)} only split half is valid, which slow drift can inflate."
        )
    return said


def _about_fractions(
    rows: pl.DataFrame, n_layers: int, material: Material, *, by_layer: bool
) -> list[str]:
    gates = LPactConfig.of(material.config).gates
    levels = set(rows["level"])
    said = [
        f"Below: mean over subject-runs in {counted(n_layers, 'layer')}, by the strictest valid mode."
    ]
    if RELATIONAL in levels:
        said.append(
            "Relational patterns: similarity as a fraction of the ceiling, which is the reliability (solid line at 1); "
            f"gate T asks for at least {gates.min_ceiling_fraction:g}, and for real minus best control above 0."
        )
    if PREDICTIVE in levels:
        said.append(
            "Responses: held-out Pearson r as a ratio to response reliability r, which no gate reads. 1 is not the "
            "most that can be reached: reliability correlates two noisy recordings, and a model without noise could "
            "reach about a score of √r, so a ratio of 1/√r (upright line, mean over the layer's subject-runs)."
        )
    said += [
        f"Rows with a reliability below {gates.min_reliability:g} are left out.",
        ""
        if by_layer
        else "For room, a model's marks are those of the layer with the largest real minus best control; small marks "
        "are its layers, which are in the tables.",
    ]
    absent = rows.filter((pl.col("quantity") == REAL) & pl.col("value").is_null()).height
    if absent:
        said.append(f"{counted(absent, 'row')} without a number; each has its reason.")
    return said


def _seen_reliability(rows: pl.DataFrame) -> list[str]:
    said = []
    own = rows.filter((pl.col("kind") == "profile") & pl.col("valid"))
    for dataset in own["dataset"].unique(maintain_order=True):
        mine = own.filter(pl.col("dataset") == dataset)
        mode = next((m for m in MODES if m in set(mine["mode"])), None)
        if mode is not None:
            mean = mine.filter(pl.col("mode") == mode)["reliability"].mean()
            said.append(f"{dataset} {number(mean, 2)} ({MODES[mode]})")  # type: ignore[arg-type]
    if not said:
        return ["No dataset has a valid reliability of relational patterns."]
    return [f"Reliability of relational patterns by the strictest mode: {', '.join(said)}."]


def _seen_fractions(rows: pl.DataFrame) -> list[str]:
    said = []
    for level in (RELATIONAL, PREDICTIVE):
        own = rows.filter((pl.col("level") == level) & pl.col("value").is_not_null())
        real = own.filter(pl.col("quantity") == REAL).sort("value", descending=True)
        positive = own.filter((pl.col("quantity") == DELTA) & (pl.col("value") > 0)).height
        if real.is_empty():
            continue
        top = real.row(0, named=True)
        who = f"{top['model']} layer {top['layer']} in {top['dataset']}"
        if level == RELATIONAL:
            text = f"Of the ceiling of {level}, {who} reaches the largest fraction, {number(top['value'], 2)}"
            kept = "fraction"
        else:
            reach = own.filter(
                (pl.col("quantity") == NOISE_FREE), *(pl.col(name) == top[name] for name in LAYER)
            )
            text = f"For {level}, {who} has the largest ratio to response reliability, {number(top['value'], 2)}"
            if reach.height:
                text += (
                    f", where a noise-free model could reach about {number(reach['value'][0], 2)}"
                )
            kept = "ratio"
        said.append(
            f"{text}; {positive} of {counted(real.height, 'row')} keep a positive {kept} after the best control is "
            "subtracted."
        )
    return said
