"""How well brains agree with brains, and what fraction of that the relational patterns of models reach."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.explain.claim_rows import MODES
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import LANE, LAYER, SUBJECT_RUN, marked
from lpact.analyses.lpact.gates.keys import mean_over_subject_runs
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, NORMALIZED_SCORES
from lpact.codes import Reason
from lpact.report import panels
from lpact.report.figure import Drawing, figure
from lpact.report.panels import BROKEN, LINE, TICK, Look
from lpact.tables import RECORDING_KEY
from lpact.wording import counted, fixed

MOST_LAYERS = 60
"""Layers that are drawn, those with the best verdicts."""
REAL, DELTA, TYPICAL = "real features", "real minus best control", "real, median summary"
FRACTION, CONTRAST = "fraction_of_ceiling", "delta_fraction"
_KINDS = {
    "profile": "relational patterns",
    "response": "responses, partner by partner",
    "response_to_mean": "responses, mean of partners",
}
_LOOKS = {
    REAL: Look("circle", "real", "real", 56),
    TYPICAL: Look(TICK, None, "real", 110),
    DELTA: Look("diamond", "winner", "winner", 56),
}
_LEAST = Look(BROKEN, None, "fail", 160)
_OK = pl.col("reason") == Reason.OK.value
_ROW, _LABELS, _WIDTH = 16, 190, 500


def reliability_rows(material: Material) -> pl.DataFrame:
    """One row per recording, mode and kind: the mean ``reliability`` over its ``n_summaries`` valid summaries.

    A row without any is not ``valid``, and ``reason`` is the most frequent one (ties: the first in the alphabet).
    """
    by = [*RECORDING_KEY, "mode", "kind"]
    rows, valid = material.table(BRAIN_CEILING.name).sort(by), pl.col("valid")
    reason = pl.col("reason").mode().sort().first()
    return rows.group_by(by, maintain_order=True).agg(
        reliability=pl.col("reliability").filter(valid).mean(),
        n_summaries=valid.sum().cast(pl.Int64),
        valid=valid.any(),
        alone=pl.col("alone").any(),
        reason=pl.when(valid.any()).then(pl.lit(Reason.OK.value)).otherwise(reason),
    )


def _bounded(material: Material) -> pl.DataFrame:
    """Rows with both fractions whose reliability reaches ``min_reliability``.

    A division by a reliability near zero makes any fraction large.
    """
    rows = common.table_of(material, NORMALIZED_SCORES).sort([*LAYER, *SUBJECT_RUN], maintain_order=True)
    least = LPactConfig.of(material.config).gates.min_reliability
    known = pl.all_horizontal(pl.col(FRACTION, CONTRAST).is_not_null())
    return rows.filter(_OK, known, pl.col("reliability") >= least)


def fraction_dots(material: Material) -> pl.DataFrame:
    """One row per subject-run, layer and quantity: its fraction of the ceiling.

    Fractions are means over the units and summaries of a subject-run, as in gate T.
    """
    key = [*LAYER, *SUBJECT_RUN]
    means = {REAL: pl.col(FRACTION).mean(), DELTA: pl.col(CONTRAST).mean()}
    rows = _bounded(material).group_by(key, maintain_order=True).agg(**means)
    dots = rows.unpivot(list(means), index=key, variable_name="quantity")
    return dots.drop_nulls("value").sort([*key, "quantity"])


def fraction_rows(material: Material) -> pl.DataFrame:
    """One row per layer and quantity: mean over subject-runs (``n``), or why there is none.

    `TYPICAL` is, as in gate T, the median over relational summaries of the mean over subject-runs.
    """
    bounded, by = _bounded(material), [*LAYER, "quantity"]
    means = mean_over_subject_runs(bounded, LAYER, [FRACTION, CONTRAST])
    means = means.rename({FRACTION: REAL, CONTRAST: DELTA, "n_subject_runs": "n"})
    summaries = mean_over_subject_runs(bounded, [*LAYER, "alignment", "profile"], [FRACTION])
    medians = summaries.group_by(LAYER).agg(pl.col(FRACTION).median().alias(TYPICAL))
    numbers = means.join(medians, on=LAYER, how="left").unpivot(
        [REAL, DELTA, TYPICAL], index=[*LAYER, "n"], variable_name="quantity"
    )
    rows = _every_quantity(material).join(numbers, on=by, how="left", maintain_order="left")
    why = pl.when(pl.col("value").is_null()).then(pl.col("reason"))
    return rows.with_columns(pl.col("n").fill_null(0), reason=why.fill_null(Reason.OK.value))


def _every_quantity(material: Material) -> pl.DataFrame:
    """Every layer with every quantity, and why there may be no number."""
    least = LPactConfig.of(material.config).gates.min_reliability
    low = pl.lit("reliability_below_minimum")
    why = pl.coalesce(pl.col("reason").filter(~_OK).mode().sort().first(), low)
    reason = pl.when((_OK & (pl.col("reliability") < least)).any()).then(low).otherwise(why)
    layers = common.table_of(material, NORMALIZED_SCORES).group_by(LAYER).agg(reason=reason)
    quantities = pl.DataFrame({"quantity": [REAL, DELTA, TYPICAL]})
    return layers.join(quantities, how="cross").sort([*LAYER, "quantity"])


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
            (f"least reliability of a ceiling, {gates.min_reliability:g}", _LEAST),
        ),
        *common.blocks(reliability, lambda own, _: _reliability(own, ends, gates.min_reliability), 18),
    ]
    rows, dots = fraction_rows(material), fraction_dots(material)
    layers, left_out = common.shown(material, rows, MOST_LAYERS, NORMALIZED_SCORES)
    rows, dots = (own.join(layers, on=LAYER, how="semi", maintain_order="left") for own in (rows, dots))
    if rows.height:
        x = panels.axis("value", None, panels.domain(rows["value"], dots["value"], [1.0]))
        least = gates.min_ceiling_fraction
        parts += [
            panels.key(
                *_LOOKS.items(),
                ("one subject-run", Look("circle", "real", "real", 12, 0.4)),
                ("the ceiling", Look(LINE, None, "brain", 160)),
                (f"least fraction for gate T, {least:g}", _LEAST),
            ),
            *common.blocks(rows, lambda own, _: [_fractions(own, dots, x, least)]),
        ]
    alone = ", ".join(sorted(reliability.filter("alone")["dataset"].unique()))
    absent = rows.filter(pl.col("value").is_null(), quantity=REAL).height
    n_recordings = reliability.select(RECORDING_KEY).n_unique()
    caption = {
        f"Above: brain–brain reliability of {counted(n_recordings, 'recording')} (dots) and "
        "their mean (bar) by mode, from the strictest to the most lenient, or why a mode is not possible.": True,
        f"In {alone} only split half is valid, which slow drift can inflate.": alone,
        "Below: similarity of relational patterns as a fraction of the ceiling (solid line at 1), mean over "
        f"subject-runs, by the strictest valid mode; rows with a reliability below {gates.min_reliability:g} are left "
        f"out. Gate T requires at least {gates.min_ceiling_fraction:g}, and real minus best control above "
        "0.": rows.height,
        left_out: left_out,
        f"{counted(absent, 'row')} without a number; each has its reason.": absent,
    }
    return panels.stacked(*parts, spacing=12), caption, _summary(reliability, rows)


def _reliability(rows: pl.DataFrame, domain: tuple[float, float], least: float) -> list[alt.LayerChart]:
    """One dataset, one panel per kind; modes from the strictest."""
    x, invalid, drawn = panels.axis("reliability", None, domain), ~pl.col("valid"), []
    for i, (kind, name) in enumerate(_KINDS.items()):
        y = panels.lanes("name", MODES.values(), labels=i == 0, grid=True)
        own = rows.filter(kind=kind)
        found = own.group_by("dataset", "name", maintain_order=True).agg(
            pl.col("reliability").filter("valid").mean(),
            n=pl.col("valid").sum().cast(pl.Int64),
            n_absent=invalid.sum(),
            n_all=pl.len(),
            reason=pl.col("reason").filter(invalid).mode().sort().first(),
        )
        some = pl.format("{} of {}: {}", "n_absent", "n_all", "reason")
        why = pl.when(pl.col("n") == 0).then(pl.col("reason")).otherwise(some)
        absent = found.filter(pl.col("n_absent") > 0)
        absent = absent.with_columns(why=why.str.replace_all("_", " "))
        text = f"{{at}}: {name}, {{name}}, reliability {{reliability}} over {{n_summaries:summary}}"
        of_mean = "{at}, {name}: mean reliability {reliability} over {n:recording}"
        mean = marked(found.filter(pl.col("n") > 0), of_mean, "reliability")
        recordings = marked(own.filter("valid"), text, "reliability")
        note = {"align": "right", "limit": 197}
        drawn.append(
            panels.overlay(
                panels.reference(0),
                panels.reference(least, "x", "fail", dash=(4, 3)),
                panels.points(mean, x, y, Look(TICK, None, "brain", 150), thick=2.5),
                panels.dots(recordings, x, y, "brain", size=20, opacity=0.65),
                *panels.notes(marked(absent, "{at}, {name}: {why}"), "why", {"value": 202}, y, **note),
                width=205,
                step=_ROW,
                title=panels.panel_title(f"reliability: {name}", 205, fontWeight="normal"),
            )
        )
    return drawn


def _fractions(rows: pl.DataFrame, dots: pl.DataFrame, x: Any, least: float) -> alt.LayerChart:
    """One dataset: zero, the ceiling, the least fraction, and the quantities with their dots."""
    rows, dots = rows.with_columns(LANE), dots.filter(dataset=rows["dataset"][0]).with_columns(LANE)
    y = panels.lanes("lane", common.names(rows, "lane"), limit=_LABELS, grid=True)
    text = "{at}: {quantity} is {value} of the ceiling"
    known = marked(rows.drop_nulls("value"), f"{text}, mean over {{n:subject-run}}", "value")
    absent = rows.filter(pl.col("value").is_null(), quantity=REAL)
    absent = absent.with_columns(why=pl.col("reason").str.replace_all("_", " "))
    faint = {name: look.changed(size=12, opacity=0.4) for name, look in _LOOKS.items()}
    return panels.overlay(
        panels.reference(0),
        panels.reference(1, "x", "brain", thick=1.5),
        panels.reference(least, "x", "fail", dash=(4, 3)),
        panels.points(marked(dots, text, "value"), x, y, faint, "quantity", shift=(0, 4), thick=1),
        panels.points(known, x, y, _LOOKS, "quantity", thick=2),
        *panels.notes(marked(absent, "{at}: no number ({reason})"), "why", {"value": 4}, y),
        width=_WIDTH,
        step=_ROW,
        title=panels.panel_title("fraction of the ceiling", _WIDTH, fontWeight="normal"),
    )


def _summary(reliability: pl.DataFrame, rows: pl.DataFrame) -> str:
    strictest = common.strictest(reliability.filter("valid", kind="profile"), ["dataset"])
    means = strictest.group_by("dataset", "name").agg(pl.col("reliability").mean()).sort("dataset")
    found = ", ".join(f"{dataset} {fixed(r, 2)} ({mode})" for dataset, mode, r in means.iter_rows())
    text = f"Reliability of relational patterns by the strictest mode: {found or 'none is valid'}."
    known = rows.drop_nulls("value")
    if known.is_empty():
        return text
    best = common.top(known.filter(quantity=REAL), "value")
    positive = known.filter(pl.col("value") > 0, quantity=DELTA).height
    return (
        f"{text} {common.place(best)} has the largest fraction of the ceiling, {fixed(best['value'], 2)}; in "
        f"{positive} of {counted(known.filter(quantity=REAL).height, 'layer')} real minus best control is positive."
    )
