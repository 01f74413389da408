"""Relational profiles: is the real pattern more like the brain's than that of nuisance and of every control?

Above, for every layer and alignment × profile summary, the advantage over the nearest rival. Below, for one layer per
dataset, all similarities.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import (
    LAYER,
    NUISANCE,
    PROFILE_LOOKS,
    PROFILES,
    REAL,
    SUBJECT_RUN,
    layer_name,
    marked,
)
from lpact.analyses.lpact.figures.similarities import (
    SUMMARY,
    Similarities,
    layers_of,
    most_telling,
    nearest_rivals,
    similarities,
    summary_order,
)
from lpact.analyses.lpact.tables.levels import PROFILE_SCORES, RELATIONAL_SUMMARY
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure
from lpact.report.panels import DASH, LINE, Look
from lpact.report.values import short, signed, span
from lpact.wording import counted

MAX_ROWS = 40
MAX_DETAILS = 4
_LOOKS = {
    "control": Look(LINE, None, "control", 120),
    NUISANCE: Look("diamond", "nuisance", "nuisance", 50),
    REAL: Look("circle", "real", "real", 70),
}
_NEAREST = Look("triangle-left", "winner", "winner", 40)
_GATE_LOOKS = {**PROFILE_LOOKS, "not passed": Look(DASH, None, "line", 40)}
_AT = "{at}: {alignment} alignment, {profile} profile similarity: "
Summaries = list[tuple[str, str]]


@figure(
    "relational_profiles",
    "Relational profiles: the real pattern against nuisance and every control",
    PROFILE_SCORES,
)
def make(material: Material) -> Drawing | str:
    """The advantage over the nearest rival everywhere, and the whole comparison for one layer per dataset."""
    found = similarities(material)
    nearest, reasons = nearest_rivals(found.rows), _reasons(material)
    if nearest.is_empty():
        why = ", ".join(sorted(set(reasons["why"]))) or "not_computed"
        return f"no profile similarity could be compared with a rival ({why})"
    layers, order = layers_of(material, nearest), summary_order(material, nearest)
    shown = layers
    if layers.height > MAX_ROWS:
        share = max(1, MAX_ROWS // layers["dataset"].n_unique())
        shown = most_telling(layers, share).head(MAX_ROWS).sort(LAYER)
    cells = advantage_cells(nearest, reasons, shown, order)
    classes = panels.diverging(nearest["advantage"])
    entries = [panels.class_entry("real − nearest rival, profile similarity", classes)]
    if cells["advantage"].null_count():
        entries.append(common.MISSING_BOX)
    entries += [*common.profile_entries(gate="R"), ("not passed", _GATE_LOOKS["not passed"])]
    detail_key = panels.key(
        ("real, mean", _LOOKS[REAL]),
        ("real, one subject-run", Look("circle", "real", "real", 18, 0.5)),
        ("control", _LOOKS["control"]),
        ("nuisance", _LOOKS[NUISANCE]),
        ("points at the nearest rival", _NEAREST),
    )
    telling = most_telling(layers).head(MAX_DETAILS)
    details = [_detail(found, layer, order) for layer in telling.iter_rows(named=True)]
    chart = panels.stacked(
        panels.key(*entries, width=900),
        *_overview(classes.paint(cells, "advantage"), shown, order),
        detail_key,
        panels.grid(details, max(1, 960 // (46 * len(order) + 60))),
    )
    return chart, _caption(found, layers, shown, telling), _summary(layers)


def _reasons(material: Material) -> pl.DataFrame:
    """The most frequent reason, ``why``, for a layer's summary without numbers."""
    keys = [*LAYER, *SUMMARY]
    rows = common.table(material, RELATIONAL_SUMMARY).filter(pl.col("reason") != "ok").sort(keys)
    return rows.group_by(keys, maintain_order=True).agg(why=pl.col("reason").mode().sort().first())


def advantage_cells(
    nearest: pl.DataFrame, reasons: pl.DataFrame, shown: pl.DataFrame, order: Summaries
) -> pl.DataFrame:
    """One row per layer and summary: advantage over the nearest rival, or why there is none."""
    keys = [*LAYER, *SUMMARY]
    cells = shown.select(LAYER).join(pl.DataFrame(order, schema=SUMMARY, orient="row"), how="cross")
    for part in (nearest.rename({"condition": "nearest"}), reasons):
        cells = cells.join(part, on=keys, how="left", maintain_order="left")
    cells = cells.with_columns(
        pl.col("why").fill_null("not_computed"),
        summary=pl.concat_str(SUMMARY, separator="\n"),
        shown=pl.Series([signed(value, 2) for value in cells["advantage"]], dtype=pl.String),
        counts=pl.when("counted")
        .then(pl.lit(""))
        .otherwise(pl.lit(", not counted by point rules")),
    )
    known = (
        f"{_AT}real − nearest rival {{advantage:+}} ({{nearest}}{{counts}}; mean over units, then over "
        "{n_subject_runs:subject-run})"
    )
    absent = f"{_AT}not computed ({{why}})"
    lost = pl.col("advantage").is_null()
    return pl.concat(
        [
            marked(cells.filter(~lost), known, "advantage"),
            marked(cells.filter(lost), absent),
        ]
    )


def _overview(cells: pl.DataFrame, shown: pl.DataFrame, order: Summaries) -> list[alt.HConcatChart]:
    """One block per dataset: advantages, marks of gate R, and the most frequent nearest rival."""
    width = max(30.0, min(52.0, 430 / len(order))) * len(order)
    lane = pl.format("{} · layer {}", "model", "layer")
    rival = pl.format("{} ({} of {})", "rival", "times", "n_summaries").fill_null("–")
    shown = shown.with_columns(lane=lane, rival_text=rival)
    blocks = []
    for i, own in enumerate(shown.partition_by("dataset", maintain_order=True)):
        y = panels.lanes("lane", own["lane"], shown=False)
        x = _summaries(order, orient="top", labels=i == 0, labelPadding=16)
        inside = cells.join(own.select(*LAYER, "lane"), on=LAYER, maintain_order="left")
        title = "nearest rival (in how many summaries)" if i == 0 else ""
        look: Spec = {"size": 10, "ink": "muted", "title": title}
        parts: list[Any] = [
            panels.column(own, "lane", y, 170, align="right", step=18),
            panels.overlay(*panels.cells(inside, x, y, label="shown"), width=width, step=18),
            _gate_marks(own, y, first=i == 0),
            panels.column(own, "rival_text", y, 210, step=18, **look),
        ]
        heading = panels.title(short(own["dataset"][0], 100), offset=4)
        blocks.append(panels.beside(*parts, title=heading, spacing=10))
    return blocks


def _summaries(order: Summaries, **more: Any) -> Spec:
    """Summaries across, with the alignment measure above the profile similarity."""
    labels = {"labelFontSize": 9, "labelExpr": "split(datum.label, '\\n')", **more}
    return panels.lanes("summary", [f"{a}\n{p}" for a, p in order], **labels)


def _gate_marks(layers: pl.DataFrame, y: Spec, *, first: bool) -> alt.LayerChart:
    rows = layers.select(*LAYER, "lane", *PROFILES).unpivot(
        list(PROFILES), index=[*LAYER, "lane"], variable_name="gate_profile", value_name="passed"
    )
    passed = pl.when("passed").then(pl.lit("passed")).otherwise(pl.lit("not passed"))
    rows = rows.with_columns(result=passed)
    looks = [
        _GATE_LOOKS[profile if passed else "not passed"]
        for profile, passed in rows.select("gate_profile", "passed").iter_rows()
    ]
    x = panels.lanes("gate_profile", PROFILES, labels=False)
    head = panels.heading("R" if first else "", 18, align="center", ink="ink", fontWeight="bold")
    marks = panels.points(marked(rows, "{at}: R {result}, {rules}"), x, y, looks)
    return panels.overlay(marks, head, width=36, step=18)


def _detail(found: Similarities, layer: dict[str, Any], order: Summaries) -> alt.LayerChart:
    """One layer: summaries across, similarity upwards."""
    same, named = common.of_layer(layer), pl.concat_str(SUMMARY, separator="\n").alias("summary")
    rows, runs = (own.filter(same).with_columns(named) for own in (found.rows, found.runs))
    nearest, width = nearest_rivals(rows), 46 * len(order)
    real, counts = pl.col("condition") == REAL, pl.when("counted").then(pl.lit("counted"))
    text = f"{_AT}{{condition}} {{similarity}}"
    rivals = marked(
        rows.filter(~real).with_columns(counts=counts.otherwise(pl.lit("not counted"))),
        f"{text}; real ahead by {{advantage:+}} ({{counts}} by point rules); mean over {{n_subject_runs:subject-run}}",
        "similarity",
    ).with_columns(kind=pl.when(condition=NUISANCE).then("condition").otherwise(pl.lit("control")))
    own = marked(
        rows.filter(real), f"{text}; mean over {{n_subject_runs:subject-run}}", "similarity"
    )
    dots = marked(runs.filter(real), f"{text}, mean over {{n_units:unit}}", "similarity")
    x, domain = _summaries(order), panels.domain(rows["similarity"], runs["similarity"])
    y = panels.axis("similarity", "profile similarity", domain, grid=True)
    about = (
        f"{counted(runs.select(SUBJECT_RUN).n_unique(), 'subject-run')}, "
        f"up to {counted(rows['n_units'].max(), 'unit')}"  # type: ignore[arg-type]
    )
    return panels.overlay(
        panels.reference(0, "y", "ink"),
        panels.dots(dots, x, y, "real", size=18, opacity=0.5, xOffset=-14),
        *(
            panels.points(rivals.filter(kind=kind), x, y, _LOOKS[kind], thick=2)
            for kind in ("control", NUISANCE)
        ),
        panels.points(own, x, y, _LOOKS[REAL], thick=2),
        panels.points(nearest, x, y, _NEAREST, shift=(14, 0)),
        width=width,
        height=150,
        title=panels.panel_title(layer_name(layer), width, subtitle=about, offset=6),
    )


def _caption(
    found: Similarities, layers: pl.DataFrame, shown: pl.DataFrame, telling: pl.DataFrame
) -> list[str]:
    rivals = found.rows.filter(pl.col("condition") != REAL)["condition"].n_unique()
    more = layers.filter(pl.col("n_summaries") > 0)["dataset"].n_unique() - telling.height
    return [
        "Profile similarity is how much a model's alignment with all units resembles a brain unit's own; mean over "
        f"units, then over subject-runs ({span(found.rows['n_subject_runs'])} per layer).",
        f"Above: real features minus the nearest of {counted(rivals, 'rival')} (nuisance and every control) for every "
        "alignment measure and profile similarity; on the right, which rival is nearest most often.",
        f"Below: all similarities of the most telling layer of {counted(telling.height, 'dataset')} (gate R under most "
        "profiles, then the largest median advantage); a claim's explanation shows the tests of gate R.",
        f"Drawn are {shown.height} of {layers.height} layers, the most telling of every dataset; the table "
        f"{PROFILE_SCORES.name} has all of them."
        if shown.height < layers.height
        else "",
        f"{more} further datasets are not drawn below." if more else "",
        f"{counted(found.n_left_out, 'unit row')} left out: the unit orders of model and brain differ."
        if found.n_left_out
        else "",
    ]


def _summary(layers: pl.DataFrame) -> str:
    known = layers.filter(pl.col("n_summaries") > 0)
    ahead = known.filter(pl.col("n_ahead") == pl.col("n_summaries"))
    best = known.sort(["typical", *LAYER], descending=[True, False, False, False])
    top = best.row(0, named=True)
    passed = [f"{int(known[name].sum())} under {words}" for name, words in PROFILES.items()]
    return (
        f"In {ahead.height} of {counted(known.height, 'layer')} the real pattern is above every rival in every "
        f"summary. Furthest ahead: {layer_name(top)}, median advantage {signed(top['typical'])} over the nearest "
        f"rival (above it in {top['n_ahead']} of {counted(top['n_summaries'], 'summary')}). Gate R passes "
        f"{' and '.join(passed)}."
    )
