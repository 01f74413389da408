"""Scores by layer: the real features, the nuisance features and every severe control, with the response reliability."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    LAYER,
    SUBJECT_RUN,
    ShortLayerNames,
    largest,
    metric_name,
    mode_names,
    n_subject_runs,
    primary_deltas,
    response_reliability,
    run_name,
    where,
)
from lpact.analyses.lpact.robustness.uncertainty import DRAWS, bootstrap_mean
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, CONTROL_NULLS
from lpact.codes import Reason
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.panels import BROKEN, LINE, Look
from lpact.report.wording import counted, letters_in, number, short, short_forms

REAL, NUISANCE, BOTH = "real features", "nuisance", "nuisance plus model"
BEST, COUNTED = "strongest counted control", "other counted control"
NOT_COUNTED = "not counted by point rules"
NO_PAIR = "no_subject_run_with_both"
_COLUMNS = {"real_score": REAL, "nuisance_score": NUISANCE, "nuisance_plus_model_score": BOTH}
FEW_LAYERS = 2
"""Models with up to so many layers are drawn as strips, others as lines over layers."""
MOST_PANELS = 6
"""Panels beside each other; more continue below."""
ONE_RUN = "real features, one subject-run"
CEILING = "brain–brain response reliability"
ABSENT = "a condition was not computed here"
_WIDTH, _LABELS, _GAP = 900, 170, 14

_STRIPS = {
    REAL: Look("circle", "real", "real", 46),
    NUISANCE: Look("diamond", "nuisance", "nuisance", 54),
    BOTH: Look("square", "paper", "nuisance", 40),
    BEST: Look("triangle-up", "winner", "winner", 80),
    COUNTED: Look("triangle-up", "control", "control", 20),
    NOT_COUNTED: Look("triangle-up", "paper", "control", 20),
}
_LINES = {
    REAL: Look("circle", "real", "real", 26),
    NUISANCE: Look("diamond", "nuisance", "nuisance", 22),
    BOTH: Look("square", "paper", "nuisance", 18),
    BEST: Look("triangle-up", "winner", "winner", 34),
    COUNTED: Look("circle", "control", "control", 3),
    NOT_COUNTED: Look("circle", "paper", "control", 3),
}
_ON_LINES = {
    COUNTED: Look(LINE, None, "control", 120),
    NOT_COUNTED: Look(BROKEN, None, "control", 120),
}
"""Controls over layers are lines; their points are only there to be hovered over."""


def rows_of(material: Material) -> pl.DataFrame:
    """One row per dataset, model, layer and condition.

    ``mean`` runs over the ``n`` subject-runs with a score, of ``n_all``; ``low`` and ``high`` are the bootstrap
    interval over them (real features only, from two subject-runs on); ``delta`` is the mean of real − condition over
    the ``n_both`` subject-runs that have both. ``place`` is where a condition is drawn:

        place = mean of the real features (over its own ``n_real`` subject-runs) − delta

    which is the condition's mean where no subject-run is missing. So the order of the marks is that of the paired
    differences, which the gates use. ``kind`` names how it is drawn: the strongest counted control has the smallest
    ``delta``, as the severe-control gate reads it. A condition without a place has a ``reason``.
    """
    deltas = primary_deltas(material)
    own = [_plain(deltas, column, name) for column, name in _COLUMNS.items()]
    found = pl.concat([*own, _controls(material)], how="diagonal")
    conditions = pl.DataFrame({"condition": sorted(found["condition"].unique())})
    key = [*LAYER, "condition"]
    layers = deltas.group_by(LAYER, maintain_order=True).agg(n_all=pl.len().cast(pl.Int64))
    rows = layers.join(conditions, how="cross")
    for part in (found, _unavailable(material), _intervals(deltas, material.config.seed)):
        rows = rows.join(part, on=key, how="left", maintain_order="left")
    is_real = pl.col("condition") == REAL
    real = pl.col("mean").filter(is_real).first().over(LAYER)
    counted_anywhere = pl.col("counted").fill_null(value=False).any().over("condition")
    rows = rows.with_columns(
        place=pl.when(is_real | real.is_null()).then("mean").otherwise(real - pl.col("delta")),
        n_real=pl.col("n").filter(is_real).first().over(LAYER),
        delta=pl.when(~is_real).then("delta"),
        n=pl.col("n").fill_null(0),
        n_both=pl.col("n_both").fill_null(0),
        counted=pl.col("counted").fill_null(counted_anywhere),
    )
    unpaired = pl.when(pl.col("mean").is_not_null()).then(pl.lit(NO_PAIR))
    why = pl.coalesce("why", "audit_reason", unpaired, pl.lit("not_computed"))
    strongest = pl.col("delta") == pl.col("delta").filter("counted").min().over(LAYER)
    first = pl.col("condition").filter(strongest & pl.col("counted")).min().over(LAYER)
    kind = (
        pl.when(pl.col("condition").is_in([REAL, NUISANCE, BOTH]))
        .then(pl.col("condition"))
        .when(pl.col("condition") == first)
        .then(pl.lit(BEST))
        .when("counted")
        .then(pl.lit(COUNTED))
        .otherwise(pl.lit(NOT_COUNTED))
    )
    reason = pl.when(pl.col("place").is_null()).then(why).otherwise(pl.lit(Reason.OK.value))
    return rows.with_columns(reason=reason, kind=kind).drop("why", "audit_reason").sort(key)


def dots_of(material: Material) -> pl.DataFrame:
    """Held-out score of the real features in every subject-run."""
    rows = primary_deltas(material).drop_nulls("real_score")
    return rows.select(*LAYER, *SUBJECT_RUN, score="real_score")


def ceilings_of(material: Material) -> pl.DataFrame:
    """Mean response reliability of a dataset over recordings, by the strictest valid mode; Pearson only."""
    reliable = response_reliability(material)
    if material.config.readout.primary_metric != "pearson":
        reliable = reliable.clear()
    return reliable.group_by("dataset", maintain_order=True).agg(
        pl.col("reliability").mean(),
        pl.col("mode").unique().sort().alias("modes"),
        n=pl.len().cast(pl.Int64),
    )


def _plain(deltas: pl.DataFrame, column: str, name: str) -> pl.DataFrame:
    difference = pl.col("real_score") - pl.col(column)
    return deltas.group_by(LAYER, maintain_order=True).agg(
        condition=pl.lit(name),
        counted=pl.lit(value=False),
        delta=difference.mean(),
        n_both=difference.count().cast(pl.Int64),
        mean=pl.col(column).mean(),
        n=pl.col(column).count().cast(pl.Int64),
    )


def _controls(material: Material) -> pl.DataFrame:
    metric = material.config.readout.primary_metric
    nulls = material.table(CONTROL_NULLS.name).filter(pl.col("metric") == metric)
    known = (pl.col("reason") == Reason.OK.value) & pl.col("control_score").is_not_null()
    delta = pl.col("delta").filter(known)
    rows = nulls.sort([*LAYER, "control", *SUBJECT_RUN])
    return (
        rows.group_by([*LAYER, "control"], maintain_order=True)
        .agg(
            pl.col("counted").any(),
            delta=delta.mean(),
            n_both=delta.count().cast(pl.Int64),
            mean=pl.col("control_score").mean(),
            n=pl.col("control_score").count().cast(pl.Int64),
            why=pl.col("reason").filter(pl.col("reason") != Reason.OK.value).first(),
        )
        .rename({"control": "condition"})
    )


def _unavailable(material: Material) -> pl.DataFrame:
    """Why the audit found a control unavailable."""
    columns = [*LAYER, "condition", "audit_reason"]
    if not material.has(CONTROL_AVAILABILITY.name):
        return pl.DataFrame(schema=dict.fromkeys(columns, pl.String()) | {"layer": pl.Int64()})
    audit = material.table(CONTROL_AVAILABILITY.name).filter(~pl.col("available"))
    return audit.select(*LAYER, condition="control", audit_reason="reason")


def _intervals(deltas: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Bootstrap interval of the real features over subject-runs; one number has no spread."""
    found = []
    for key, own in deltas.drop_nulls("real_score").group_by(LAYER, maintain_order=True):
        if own.height > 1:
            scores = own["real_score"].to_numpy().astype(np.float64)
            name = ("layer_scores", *(str(part) for part in key))
            made = bootstrap_mean(scores, seed=seed, draws=DRAWS, key=name)
            found.append((*key, REAL, made.low, made.high))
    names = dict(deltas.select(LAYER).schema) | {"condition": pl.String()}
    return pl.DataFrame(
        found, schema={**names, "low": pl.Float64(), "high": pl.Float64()}, orient="row"
    )


@figure(
    "layer_scores",
    "Held-out score of the real features, with nuisance and every severe control",
    CONTROL_DELTAS,
    CONTROL_NULLS,
)
def make(material: Material) -> Drawing | str:
    """The layer-wise brain score, and what it has to beat."""
    metric = material.config.readout.primary_metric
    if primary_deltas(material).drop_nulls("real_score").is_empty():
        return f"no held-out {metric_name(metric)} was computed at level 1"
    rows, dots, ceilings = rows_of(material), dots_of(material), ceilings_of(material)
    n_layers = rows.group_by("dataset", "model").agg(pl.col("layer").n_unique())["layer"]
    strips = largest(n_layers) <= FEW_LAYERS
    by = ["model", "layer"] if strips else ["model"]
    most = max(own.select(by).n_unique() for own in rows.partition_by("dataset"))
    beside = len(panels.chunks(range(most), MOST_PANELS)[0])
    room = _WIDTH - (_LABELS if strips else 60)
    width = min(260 if strips else 420, room // beside - _GAP)
    order = (
        rows.group_by("condition")
        .agg(pl.col("place").mean())
        .sort(["place", "condition"], descending=[True, False], nulls_last=True)
    )["condition"].to_list()
    blocks = [
        block
        for own in rows.partition_by("dataset", maintain_order=True)
        for block in _blocks(own, dots, ceilings, metric_name(metric), order, width, strips=strips)
    ]
    chart = panels.stacked(_key(rows, ceilings, strips=strips), *blocks)
    return (
        chart,
        _caption(rows, ceilings, metric, strips=strips),
        _summary(rows, metric_name(metric)),
    )


def _blocks(
    rows: pl.DataFrame,
    dots: pl.DataFrame,
    ceilings: pl.DataFrame,
    metric: str,
    order: list[str],
    width: int,
    *,
    strips: bool,
) -> list[alt.HConcatChart]:
    """Rows of panels of one dataset, on one scale."""
    dataset = rows["dataset"][0]
    dots, ceiling = (own.filter(dataset=dataset) for own in (dots, ceilings))
    domain = panels.domain(
        rows["place"], rows["low"], rows["high"], dots["score"], ceiling["reliability"]
    )
    scale = panels.axis("place", f"held-out {metric}", domain)
    marked = with_marks(rows, lambda row: _tooltip(row, metric), "place")
    runs = with_marks(dots, lambda row: _run_tooltip(row, metric), "score")
    short_names = ShortLayerNames(rows)
    models = short_forms(rows["model"], letters_in(width))
    parts = panels.chunks(
        marked.partition_by(["model", "layer"] if strips else ["model"], maintain_order=True),
        MOST_PANELS,
    )
    made = []
    for n, part in enumerate(parts):
        drawn: list[Any] = []
        for i, panel in enumerate(part):
            model, layer = panel["model"][0], panel["layer"][0]
            own_scale = (
                scale if strips or i == 0 else panels.axis("place", None, domain, labels=False)
            )
            if strips:
                name = short_names.of_model(model, layer, letters_in(width))
                own = runs.filter(model=model, layer=layer)
                layers = _strip(panel, own, own_scale, order, first=i == 0)
            else:
                name, own = models[model], runs.filter(model=model)
                layers = _lines(panel, own, own_scale)
            height: Any = {"step": 14} if strips else 150
            title = panels.panel_title(name, width)
            zero = panels.reference(0, "x" if strips else "y")
            top = _ceiling(ceiling, own_scale, strips=strips)
            drawn.append(
                panels.overlay(zero, top, *layers, width=width, height=height, title=title)
            )
        name = short(dataset, 100) + (" (continued)" if n else "")
        about = f"{n_subject_runs(rows)}; {_reliability(ceiling)}"
        heading = panels.title(name, about, limit=600, offset=6)
        made.append(panels.beside(*drawn, title=heading, spacing=_GAP))
    return made


def _strip(
    rows: pl.DataFrame, dots: pl.DataFrame, x: Spec, order: list[str], *, first: bool
) -> list[alt.Chart]:
    """One layer: conditions below each other; the thin line marks the real features."""
    y = panels.lanes("condition", order, labels=first, limit=_LABELS, grid=True)
    known, real = rows.drop_nulls("place"), rows.filter(condition=REAL).drop_nulls("place")
    absent = rows.filter(pl.col("place").is_null()).with_columns(text=pl.lit("not computed"))
    own = dots.with_columns(condition=pl.lit(REAL))
    return [
        panels.layer(real.drop("mark"), "rule", {"color": "real", "opacity": 0.6}, x=x),
        panels.dots(own, {**x, "field": "score"}, y, "real", yOffset=5),
        panels.intervals(real, "x", y, x, "real"),
        panels.points(panels.with_looks(known, "kind", _STRIPS), x, y),
        panels.text(absent, "text", {"value": 3}, y, size=9, ink="muted"),
    ]


def _lines(rows: pl.DataFrame, dots: pl.DataFrame, y: Spec) -> list[alt.Chart]:
    """One model: conditions as lines over layers, which end where a layer is missing."""
    layers = rows["layer"].unique().sort().to_list()
    x = panels.axis("layer", "layer", (layers[0], layers[-1]), ticks=ticks_of(layers), fmt="d")
    x["scale"]["padding"] = 6
    missing = pl.col("place").is_null().cast(pl.Int64)
    rows = rows.sort(["condition", "layer"]).with_columns(
        stretch=missing.cum_sum().over("condition")
    )
    known = rows.drop_nulls("place")
    loose = set(known.filter(kind=NOT_COUNTED)["condition"])
    shape = {"color": "control", "thick": 1.0, "dash": []}
    styles = {
        REAL: shape | {"color": "real", "thick": 2.0},
        NUISANCE: shape | {"color": "nuisance", "thick": 1.4},
        BOTH: shape | {"color": "nuisance", "thick": 1.4, "dash": [5, 2]},
    } | {name: shape | {"dash": [2, 2]} for name in sorted(loose)}
    groups = [known.filter(~pl.col("condition").is_in(list(styles)))]
    groups += [known.filter(condition=name) for name in reversed(styles)]
    looks = [shape, *reversed(styles.values())]
    lines = [
        panels.layer(
            own.drop("mark"),
            "line",
            {"color": look["color"], "strokeWidth": look["thick"], "strokeDash": look["dash"]},
            x=x,
            y=y,
            detail=["condition", {"field": "stretch", "type": "nominal"}],
        )
        for own, look in zip(groups, looks, strict=True)
    ]
    best = known["kind"] == BEST
    marks = [panels.with_looks(known.filter(own), "kind", _LINES) for own in (~best, best)]
    real = known.filter(condition=REAL)
    return [
        *lines,
        panels.dots(dots, x, {**y, "field": "score"}, "real", size=9, opacity=0.35),
        panels.intervals(real, "y", x, y, "real", strokeWidth=1.2),
        *(panels.points(own, x, y, thick=1) for own in marks),
        _absent(rows, x),
    ]


def _absent(rows: pl.DataFrame, x: Spec) -> alt.Chart:
    """A cross above the panel at every layer in which something was not computed."""
    found = rows.filter(pl.col("place").is_null()).sort(["layer", "condition"])
    each = pl.format("{} ({})", "condition", "reason").str.join(", ")
    layers = found.group_by(LAYER, maintain_order=True).agg(why=each)
    marked = with_marks(layers, lambda row: f"{where(row)}: not computed: {row['why']}")
    look = {"shape": "cross", "size": 26, "fill": "muted", "opacity": 1, "strokeWidth": 0}
    return panels.layer(marked, "point", look, x=x, y={"value": -7})


def ticks_of(layers: list[int], most: int = 7) -> list[int]:
    """At most so many of the layers, evenly spaced in their order, from the first."""
    return layers[:: -(-len(layers) // most)]


def _ceiling(ceiling: pl.DataFrame, scale: Spec, *, strips: bool) -> alt.Chart:
    """A broken line at the response reliability."""
    rows = with_marks(
        ceiling,
        lambda row: (
            f"{row['dataset']}: {CEILING} {number(row['reliability'])}, {mode_names(row['modes'])}, "
            f"mean over {counted(row['n'], 'recording')}"
        ),
        "reliability",
    )
    dashed = {"color": "brain", "strokeDash": [4, 3], "strokeWidth": 1.5}
    at = {**scale, "field": "reliability"}
    return panels.layer(rows, "rule", dashed, **{"x" if strips else "y": at})


def _reliability(ceiling: pl.DataFrame) -> str:
    if ceiling.is_empty():
        return "no response reliability"
    value = number(ceiling["reliability"][0], 2)
    return f"response reliability {value}, {mode_names(ceiling['modes'][0])}"


def _key(rows: pl.DataFrame, ceilings: pl.DataFrame, *, strips: bool) -> alt.LayerChart:
    looks = _STRIPS | (
        {}
        if strips
        else {
            COUNTED: Look(LINE, None, "control", 120),
            NOT_COUNTED: Look(BROKEN, None, "control", 120),
        }
    )
    kinds = set(rows["kind"])
    entries = [(REAL, looks[REAL]), (ONE_RUN, Look("circle", "real", "real", 14, 0.5))]
    entries += [(kind, look) for kind, look in looks.items() if kind in kinds - {REAL}]
    if ceilings.height:
        entries.append((CEILING, Look(BROKEN, None, "brain", 120)))
    if not strips and rows["place"].null_count():
        entries.append((ABSENT, Look("cross", "muted", "muted", 26)))
    return panels.key(*entries, width=760)


def _tooltip(row: dict[str, Any], metric: str) -> str:
    if row["place"] is None:
        return f"{where(row)}: {row['condition']} was not computed ({row['reason']})"
    text = f"{where(row)}: {row['condition']}, mean {metric} {number(row['mean'])}"
    if row["low"] is not None:
        text += f" [{number(row['low'])}, {number(row['high'])}]"
    text += f" over {counted(row['n'], 'subject-run')}"
    if row["n"] < row["n_all"]:
        text += f" of {row['n_all']}"
    if row["delta"] is not None:
        other = "this" if row["kind"] in (NUISANCE, BOTH) else "control"
        text += f"; real minus {other} {number(row['delta'])}"
        if row["n_both"] < max(row["n"], row["n_real"]):
            text += (
                f" over the {counted(row['n_both'], 'subject-run')} with both (the real features have "
                f"{row['n_real']}), so drawn at {number(row['place'])}"
            )
    if row["kind"] == BEST:
        text += "; the strongest counted control here"
    if row["kind"] == NOT_COUNTED:
        text += "; not counted by the point rules"
    return text


def _run_tooltip(row: dict[str, Any], metric: str) -> str:
    return f"{where(row)}, {run_name(row)}: {metric} of the real features {number(row['score'])}"


def _caption(rows: pl.DataFrame, ceilings: pl.DataFrame, metric: str, *, strips: bool) -> str:
    n_layers, n_pairs = (rows.select(own).n_unique() for own in (LAYER, ["dataset", "model"]))
    parts = [
        f"Held-out {metric_name(metric)}, median over units and mean over subject-runs, in "
        f"{counted(n_layers, 'layer')} of {counted(n_pairs, 'dataset and model pair')}. The bar is the 95 % bootstrap "
        "interval over subject-runs; for two or three of them it is no more than their range, and one has none.",
        "Conditions run from the highest to the lowest mean over all panels; the thin line marks the real features."
        if strips
        else "Each severe control is a grey line; hovering names it, and so does the figure of control winners.",
        "The strongest counted control has the smallest mean difference from the real features. Controls that the "
        "point rules do not count are counted by the statistical tests.",
    ]
    apart = rows.filter(pl.col("n_both") < pl.max_horizontal("n", "n_real")).drop_nulls("place")
    if apart.height:
        parts.append(
            f"{apart.height} of {counted(rows.height, 'condition')} have other subject-runs than the real features. "
            "Each is drawn at the mean of the real features minus the mean difference over the subject-runs with "
            "both, which the gates use; hovering gives its own mean and both numbers."
        )
    if ceilings.height:
        parts.append(
            "Response reliability (strictest valid mode, mean over recordings) correlates one noisy recording with "
            "another; a model without noise could reach its square root."
        )
    elif metric != "pearson":
        parts.append(
            "Response reliability is a Pearson correlation and is not drawn for this metric."
        )
    absent = rows["place"].null_count()
    if absent:
        over = "" if strips else " over the crosses above the panels"
        parts.append(
            f"{absent} of {counted(rows.height, 'condition')} were not computed; hovering{over} says why."
        )
    return " ".join(parts)


def _summary(rows: pl.DataFrame, metric: str) -> str:
    real = rows.filter(condition=REAL).drop_nulls("mean")
    best = real.sort(["mean", *LAYER], descending=[True, False, False, False]).row(0, named=True)
    rivals = rows.filter(kind=BEST)
    beaten = rivals.filter(pl.col("delta") > 0).height
    return (
        f"The highest mean {metric} of real features is {number(best['mean'])} ({best['dataset']}, {best['model']}, "
        f"layer {best['layer']}). In {beaten} of {counted(rivals.height, 'layer')} "
        "the real features score above every counted control on average."
    )
