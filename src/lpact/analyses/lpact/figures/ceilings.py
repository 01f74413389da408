"""How well brains agree with brains, and how models compare with that."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.common import (
    LAYER,
    MODES,
    SUBJECT_RUN,
    ShortLayerNames,
    run_name,
    strictest,
    where,
)
from lpact.analyses.lpact.tables.levels import (
    BRAIN_CEILING,
    NORMALIZED_PREDICTIVE,
    NORMALIZED_SCORES,
)
from lpact.codes import Reason
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.panels import BROKEN, LINE, TICK, Look
from lpact.report.wording import counted, letters_in, number, short
from lpact.tables import RECORDING_KEY

MOST_ROWS = 60
"""With more layers than this, every model is one row, with its layers as dots."""
RELATIONAL, PREDICTIVE = "relational patterns", "responses"
REAL, DELTA, TYPICAL = "real features", "real minus best control", "real, median summary"
NOISE_FREE = "noise-free model"
FRACTION, CONTRAST = "fraction_of_ceiling", "delta_fraction"
_KINDS = {
    "profile": "relational patterns",
    "response": "responses, partner by partner",
    "response_to_mean": "responses, mean of partners",
}
_LEVELS = {
    RELATIONAL: (
        "relational patterns: fraction of the ceiling",
        "fraction of the ceiling",
        "of the ceiling",
    ),
    PREDICTIVE: (
        "responses: ratio to response reliability (no gate)",
        "ratio to response reliability",
        "times the response reliability",
    ),
}
"""Title, axis and words of each level."""
_LOOKS = {
    NOISE_FREE: Look(TICK, None, "brain", 240, 0.8),
    REAL: Look("circle", "real", "real", 56),
    TYPICAL: Look(TICK, None, "real", 110),
    DELTA: Look("diamond", "winner", "winner", 56),
}
_OK = pl.col("reason") == Reason.OK.value
_TABLES = {RELATIONAL: NORMALIZED_SCORES.name, PREDICTIVE: NORMALIZED_PREDICTIVE.name}
_ROW, _LABELS = 16, 190


def reliability_rows(material: Material) -> pl.DataFrame:
    """One row per recording, mode and kind: the mean ``reliability`` over its ``n_summaries`` valid summaries.

    A row without any is not ``valid``, and ``reason`` is the most frequent one (ties: the first in the alphabet).
    """
    by = [*RECORDING_KEY, "mode", "kind"]
    table = material.table(BRAIN_CEILING.name).sort([*by, "alignment", "profile"])
    valid = pl.col("valid")
    return table.group_by(by, maintain_order=True).agg(
        reliability=pl.col("reliability").filter(valid).mean(),
        n_summaries=valid.sum().cast(pl.Int64),
        valid=valid.any(),
        alone=pl.col("alone").any(),
        reason=pl.when(valid.any())
        .then(pl.lit(Reason.OK.value))
        .otherwise(pl.col("reason").mode().sort().first()),
    )


def fraction_dots(material: Material) -> pl.DataFrame:
    """One row per subject-run, layer, level and quantity: its fraction of the ceiling.

    Relational fractions are means over the units and summaries of a subject-run, as gate T takes them. Only rows whose
    reliability reaches ``min_reliability`` enter: a division by a reliability near zero makes any fraction large.
    """
    key = [*LAYER, *SUBJECT_RUN]
    means = {REAL: pl.col(FRACTION).mean(), DELTA: pl.col(CONTRAST).mean()}
    parts = [
        rows.group_by(key, maintain_order=True)
        .agg(**means)
        .unpivot(list(means), index=key, variable_name="quantity")
        .with_columns(level=pl.lit(level))
        for level, rows in _bounded(material).items()
    ]
    order = [*key, "level", "quantity"]
    return pl.concat(parts).drop_nulls("value").select(*order, "value").sort(order)


def fraction_rows(material: Material) -> pl.DataFrame:
    """One row per layer, level and quantity: mean over subject-runs (``n``), or why there is none.

    `TYPICAL` is, as in gate T, the median over relational summaries of the mean over subject-runs. `NOISE_FREE` is the
    ratio to response reliability that a model of the shared response without noise could reach, mean over the
    subject-runs of the layer. Reliability r correlates two noisy recordings, such a model meets only one:

        score = √r, so score / r = 1 / √r
    """
    by, n = [*LAYER, "level", "quantity"], pl.len().cast(pl.Int64)
    dots, bounded = fraction_dots(material), _bounded(material)
    found = [dots.group_by(by, maintain_order=True).agg(value=pl.col("value").mean(), n=n)]
    if RELATIONAL in bounded:
        summary = [*LAYER, "alignment", "profile"]
        within = bounded[RELATIONAL].group_by([*summary, *SUBJECT_RUN], maintain_order=True)
        over = within.agg(pl.col(FRACTION).mean()).group_by(summary, maintain_order=True)
        typical = over.agg(value=pl.col(FRACTION).mean(), n=n).group_by(LAYER, maintain_order=True)
        numbers = typical.agg(value=pl.col("value").median(), n=pl.col("n").max())
        found.append(_labelled(numbers, RELATIONAL, TYPICAL).select(*by, "value", "n"))
    if PREDICTIVE in bounded:
        reliable = bounded[PREDICTIVE].filter(pl.col("reliability") > 0)
        ratio = (1 / pl.col("reliability").sqrt()).mean()
        numbers = reliable.group_by(LAYER, maintain_order=True).agg(value=ratio, n=n)
        found.append(_labelled(numbers, PREDICTIVE, NOISE_FREE).select(*by, "value", "n"))
    rows = _grid(material).join(pl.concat(found), on=by, how="left", maintain_order="left")
    why = pl.when(pl.col("value").is_null()).then(pl.col("reason"))
    return rows.with_columns(n=pl.col("n").fill_null(0), reason=why.fill_null(Reason.OK.value))


def _labelled(rows: pl.DataFrame, level: str, quantity: str) -> pl.DataFrame:
    return rows.with_columns(level=pl.lit(level), quantity=pl.lit(quantity))


def _bounded(material: Material) -> dict[str, pl.DataFrame]:
    """Rows with both fractions, on a sufficient reliability, by the strictest valid mode."""
    out = {}
    enough = pl.col("reliability") >= LPactConfig.of(material.config).gates.min_reliability
    known = pl.col(FRACTION).is_not_null() & pl.col(CONTRAST).is_not_null()
    for level, name in _TABLES.items():
        if material.has(name):
            rows = material.table(name).sort([*LAYER, *SUBJECT_RUN], maintain_order=True)
            if level == PREDICTIVE:
                rows = strictest(rows, [*LAYER, *SUBJECT_RUN])
            out[level] = rows.filter(_OK & enough & known)
    return out


def _grid(material: Material) -> pl.DataFrame:
    """Every layer with every quantity, and why there may be no number."""
    low = pl.lit("reliability_below_minimum")
    least = LPactConfig.of(material.config).gates.min_reliability
    why = pl.coalesce(pl.col("reason").filter(~_OK).mode().sort().first(), low)
    reason = pl.when((_OK & (pl.col("reliability") < least)).any()).then(low).otherwise(why)
    parts = [
        _labelled(material.table(name).group_by(LAYER).agg(reason=reason), level, quantity)
        for level, name in _TABLES.items()
        if material.has(name)
        for quantity in (REAL, DELTA, TYPICAL if level == RELATIONAL else NOISE_FREE)
    ]
    return pl.concat(parts).sort([*LAYER, "level", "quantity"])


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


@figure("ceilings", "Brain–brain reliability, and model scores relative to it", BRAIN_CEILING)
def make(material: Material) -> Drawing | str:
    """Reliability by dataset, mode and kind; fractions of the ceiling by dataset, model and layer."""
    reliability = reliability_rows(material)
    if reliability.is_empty():
        return f"the table {BRAIN_CEILING.name} has no row"
    gates = LPactConfig.of(material.config).gates
    reliability = reliability.with_columns(name=pl.col("mode").replace(MODES))
    known = reliability["reliability"].drop_nulls()
    ends = (1.05 * min([0.0, *known]), max([1.0, *known]))
    parts: list[Any] = [
        panels.key(
            ("one recording", Look("circle", "brain", "brain", 20, 0.65)),
            ("mean", Look(TICK, None, "brain", 110)),
            (
                f"least reliability of a ceiling, {gates.min_reliability:g}",
                Look(BROKEN, None, "fail", 160),
            ),
        ),
        *(
            _reliability_block(own, ends, gates.min_reliability)
            for own in reliability.partition_by("dataset", maintain_order=True)
        ),
    ]
    caption, summary = _about_reliability(reliability), _seen_reliability(reliability)
    if material.has(NORMALIZED_SCORES.name) or material.has(NORMALIZED_PREDICTIVE.name):
        rows, dots = fraction_rows(material), fraction_dots(material)
        n_layers = rows.select(LAYER).n_unique()
        by_layer = n_layers <= MOST_ROWS
        if not by_layer:
            rows, dots = best_layers(rows)
        parts += [
            _fraction_key(gates.min_ceiling_fraction, set(rows["level"]), by_layer=by_layer),
            *_fraction_blocks(rows, dots, gates.min_ceiling_fraction, by_layer=by_layer),
        ]
        caption += _about_fractions(rows, n_layers, material, by_layer=by_layer)
        summary += _seen_fractions(rows)
    return panels.stacked(*parts, spacing=12), " ".join(filter(None, caption)), " ".join(summary)


def _block(dataset: str, drawn: list[alt.LayerChart]) -> alt.HConcatChart:
    title = panels.title(short(dataset, 100), limit=600, offset=4, fontSize=12)
    return panels.beside(*drawn, title=title, spacing=18)


def _reliability_block(
    rows: pl.DataFrame, domain: tuple[float, float], least: float
) -> alt.HConcatChart:
    """One dataset, one panel per kind; modes from the strictest."""
    x = panels.axis("reliability", None, domain)
    drawn = []
    for i, (kind, name) in enumerate(_KINDS.items()):
        y = panels.lanes("name", [*MODES.values()], labels=i == 0, grid=True)
        own = with_marks(rows.filter(kind=kind), _reliability_tooltip, "reliability")
        means = (
            own.filter("valid")
            .group_by("dataset", "name", maintain_order=True)
            .agg(pl.col("reliability").mean(), n=pl.len())
        )
        absent = with_marks(
            _absent(own), lambda row: f"{row['dataset']}, {row['name']}: {row['why']}"
        )
        drawn.append(
            panels.overlay(
                panels.reference(0),
                panels.reference(least, "x", "fail", dash=(4, 3)),
                panels.layer(
                    with_marks(means, _mean_tooltip, "reliability"),
                    "tick",
                    {"thickness": 2.5, "size": 13, "color": "brain"},
                    x=x,
                    y=y,
                ),
                panels.dots(own.filter("valid"), x, y, "brain", size=20, opacity=0.65),
                *panels.notes(absent, "why", {"value": 202}, y, align="right", limit=197),
                width=205,
                height={"step": _ROW},
                title=panels.panel_title(f"reliability: {name}", 205, fontWeight="normal"),
            )
        )
    return _block(rows["dataset"][0], drawn)


def _mean_tooltip(row: dict[str, Any]) -> str:
    mean = f"mean reliability {number(row['reliability'])} over {counted(row['n'], 'recording')}"
    return f"{row['dataset']}, {row['name']}: {mean}"


def _absent(rows: pl.DataFrame) -> pl.DataFrame:
    """Modes with recordings that have no reliability: the reason where none has, else how many have not."""
    invalid = ~pl.col("valid")
    counts = rows.group_by("dataset", "name", maintain_order=True).agg(
        n=invalid.sum(),
        n_all=pl.len(),
        reason=pl.col("reason").filter(invalid).mode().sort().first(),
    )
    some = pl.format("{} of {}: {}", "n", "n_all", "reason")
    why = pl.when(pl.col("n") == pl.col("n_all")).then(pl.col("reason")).otherwise(some)
    return counts.filter(pl.col("n") > 0).with_columns(why=why.str.replace_all("_", " "))


def _reliability_tooltip(row: dict[str, Any]) -> str:
    what = (
        f"{row['dataset']}, {run_name(row)}: {_KINDS.get(row['kind'], row['kind'])}, {row['name']}"
    )
    if not row["valid"]:
        return f"{what} is not valid ({row['reason']})"
    over = counted(row["n_summaries"], "summary", "summaries")
    return f"{what}, reliability {number(row['reliability'])} over {over}"


def _fraction_blocks(
    rows: pl.DataFrame, dots: pl.DataFrame, least: float, *, by_layer: bool
) -> list[alt.HConcatChart]:
    """One line of panels per dataset, one panel per level; models and layers below each other."""
    x = panels.axis("value", None, panels.domain(rows["value"], dots["value"], [1.0]))
    key = ["model", "layer"] if by_layer else ["model"]
    lines = rows.select(key).unique().sort(key)
    lines = lines.with_columns(ShortLayerNames(rows).lanes(lines, letters_in(_LABELS)))
    rows, dots = (
        own.join(lines, on=key, how="left", maintain_order="left") for own in (rows, dots)
    )
    levels = [level for level in _LEVELS if level in set(rows["level"])]
    made = []
    for own in rows.partition_by("dataset", maintain_order=True):
        dataset, order = own["dataset"][0], own.sort(key)["lane"].unique(maintain_order=True)
        drawn = [
            _fraction_panel(
                own.filter(level=level),
                dots.filter(dataset=dataset, level=level),
                x,
                panels.lanes("lane", order.to_list(), labels=i == 0, limit=_LABELS, grid=True),
                least,
                panels.panel_title(_LEVELS[level][0], 316, fontWeight="normal"),
            )
            for i, level in enumerate(levels)
        ]
        made.append(_block(dataset, drawn))
    return made


def _fraction_panel(
    rows: pl.DataFrame, dots: pl.DataFrame, x: Spec, y: Spec, least: float, title: alt.Title
) -> alt.LayerChart:
    """Zero, the ceiling or what a noise-free model could reach, and the quantities with their dots."""
    drawn, faint = (
        with_marks(rows, _fraction_tooltip, "value"),
        with_marks(dots, _dot_tooltip, "value"),
    )
    absent = drawn.filter(pl.col("value").is_null(), quantity=REAL)
    absent = absent.with_columns(why=pl.col("reason").str.replace_all("_", " "))
    small = panels.with_looks(faint, "quantity", _LOOKS).with_columns(
        size=pl.lit(12.0), opacity=pl.lit(0.4)
    )
    gated = [
        panels.reference(1, "x", "brain", thick=1.5),
        panels.reference(least, "x", "fail", dash=(4, 3)),
    ]
    known = panels.with_looks(drawn.drop_nulls("value"), "quantity", _LOOKS)
    return panels.overlay(
        panels.reference(0),
        *(gated if RELATIONAL in set(rows["level"]) else []),
        panels.points(small, x, y, shift=(0, 4), thick=1),
        *(panels.points(known.filter(quantity=name), x, y, thick=2) for name in _LOOKS),
        *panels.notes(absent, "why", {"value": 4}, y, limit=308),
        width=316,
        height={"step": _ROW},
        title=title,
    )


def _fraction_tooltip(row: dict[str, Any]) -> str:
    what = f"{where(row)}, {row['level']}"
    _, named, of = _LEVELS[row["level"]]
    if row["value"] is None:
        return f"{what}: {row['quantity']} has no {named} ({row['reason']})"
    over = f"mean over {counted(row['n'], 'subject-run')}"
    if row["quantity"] == NOISE_FREE:
        return f"{what}: a noise-free model could reach about {number(row['value'])} {of}, {over}"
    return f"{what}: {row['quantity']} is {number(row['value'])} {of}, {over}"


def _dot_tooltip(row: dict[str, Any]) -> str:
    what = f"{where(row)}, {row['level']}" + (f", {run_name(row)}" if "subject" in row else "")
    return f"{what}: {row['quantity']} is {number(row['value'])} {_LEVELS[row['level']][2]}"


def _fraction_key(least: float, levels: set[str], *, by_layer: bool) -> alt.LayerChart:
    entries = [(name, _LOOKS[name]) for name in (REAL, TYPICAL, DELTA)]
    small = "one subject-run" if by_layer else "one layer"
    entries.append((small, Look("circle", "real", "real", 12, 0.4)))
    if RELATIONAL in levels:
        entries.append(("relational patterns: the ceiling", Look(LINE, None, "brain", 160)))
        entries.append((f"least fraction for gate T, {least:g}", Look(BROKEN, None, "fail", 160)))
    if PREDICTIVE in levels:
        entries.append(("responses: a noise-free model", _LOOKS[NOISE_FREE]))
    return panels.key(*entries)


def _about_reliability(rows: pl.DataFrame) -> list[str]:
    recordings = rows.select("dataset", "subject", "session", "run").unique().height
    parts = [
        f"Above: brain–brain reliability of {counted(recordings, 'recording')} (dots) and their mean (bar) by mode, "
        "from the strictest to the most lenient, or why a mode is not possible; relational patterns: mean over "
        "alignment measures and profile similarities; responses: correlation over events of the same stimulus."
    ]
    alone = sorted(rows.filter(pl.col("alone"))["dataset"].unique().to_list())
    if alone:
        parts.append(
            f"In {', '.join(alone)} only split half is valid, which slow drift can inflate."
        )
    return parts


def _about_fractions(
    rows: pl.DataFrame, n_layers: int, material: Material, *, by_layer: bool
) -> list[str]:
    gates = LPactConfig.of(material.config).gates
    levels = set(rows["level"])
    parts = [
        f"Below: mean over subject-runs in {counted(n_layers, 'layer')}, by the strictest valid mode."
    ]
    if RELATIONAL in levels:
        parts.append(
            "Relational patterns: similarity as a fraction of the ceiling, which is the reliability (solid line at 1); "
            f"gate T asks for at least {gates.min_ceiling_fraction:g}, and for real minus best control above 0."
        )
    if PREDICTIVE in levels:
        parts.append(
            "Responses: held-out Pearson r as a ratio to response reliability r, which no gate reads. 1 is not the "
            "most that can be reached: reliability correlates two noisy recordings, and a model without noise could "
            "reach about a score of √r, so a ratio of 1/√r (upright line, mean over the layer's subject-runs)."
        )
    parts += [
        f"Rows with a reliability below {gates.min_reliability:g} are left out.",
        ""
        if by_layer
        else "For lack of space, a model's marks are those of the layer with the largest real minus best control; "
        "small marks are all its layers.",
    ]
    absent = rows.filter((pl.col("quantity") == REAL) & pl.col("value").is_null()).height
    if absent:
        parts.append(f"{counted(absent, 'row')} without a number; each has its reason.")
    return parts


def _seen_reliability(rows: pl.DataFrame) -> list[str]:
    parts = []
    own = rows.filter((pl.col("kind") == "profile") & pl.col("valid"))
    for dataset in own["dataset"].unique(maintain_order=True):
        mine = own.filter(pl.col("dataset") == dataset)
        mode = next((m for m in MODES if m in set(mine["mode"])), None)
        if mode is not None:
            mean = mine.filter(pl.col("mode") == mode)["reliability"].mean()
            parts.append(f"{dataset} {number(mean, 2)} ({MODES[mode]})")  # type: ignore[arg-type]
    if not parts:
        return ["No dataset has a valid reliability of relational patterns."]
    return [f"Reliability of relational patterns by the strictest mode: {', '.join(parts)}."]


def _seen_fractions(rows: pl.DataFrame) -> list[str]:
    parts = []
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
        parts.append(
            f"{text}; {positive} of {counted(real.height, 'row')} keep a positive {kept} after the best control is "
            "subtracted."
        )
    return parts
