"""Scores by layer: the real features, the nuisance features and every severe control, with the response reliability."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.explain.claim_rows import MODES
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import LAYER, SUBJECT_RUN, marked, primary_deltas
from lpact.analyses.lpact.robustness.uncertainty import DRAWS, bootstrap_mean
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, CONTROL_NULLS, NORMALIZED_PREDICTIVE
from lpact.codes import Reason
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure
from lpact.report.panels import BROKEN, LINE, Look
from lpact.tables import RECORDING_KEY
from lpact.wording import counted, fixed, short, span

REAL, NUISANCE, BOTH = "real features", "nuisance", "nuisance plus model"
BEST, COUNTED = "strongest counted control", "other counted control"
NOT_COUNTED = "not counted by point rules"
_COLUMNS = {"real_score": REAL, "nuisance_score": NUISANCE, "nuisance_plus_model_score": BOTH}
FEW_LAYERS = 2
"""Models with at most this many layers are drawn as points, others as lines over layers."""
MOST_PANELS = 6
"""Panels in a row; more continue below."""
CEILING = "brain–brain response reliability"
_WIDTH, _LABELS, _GAP = 900, 170, 14

_DOTS = {
    REAL: Look("circle", "real", "real", 46),
    NUISANCE: Look("diamond", "nuisance", "nuisance", 54),
    BOTH: Look("square", "paper", "nuisance", 40),
    BEST: Look("triangle-up", "winner", "winner", 80),
    COUNTED: Look("triangle-up", "control", "control", 20),
    NOT_COUNTED: Look("triangle-up", "paper", "control", 20),
}
_LINES = {
    # kind: (size of a point, colour, width and dashes of the line)
    COUNTED: (3, "control", 1.0, []),
    NOT_COUNTED: (3, "control", 1.0, [2, 2]),
    BOTH: (18, "nuisance", 1.4, [5, 2]),
    NUISANCE: (22, "nuisance", 1.4, []),
    REAL: (26, "real", 2.0, []),
    BEST: (34, "control", 1.0, []),
}
"""Controls over layers are lines; their points are only there to be hovered over."""
_TOOLTIP = (
    "{at}: {condition}[ was not computed ({lost})][, mean {metric} {mean}][ (95 % {low} to {high})]"
    "[ over {over:subject-run}][ of {of}][; real minus {other} {delta}][; {note}]"
)


def rows_of(material: Material) -> pl.DataFrame:
    """One row per dataset, model, layer and condition.

    ``mean`` runs over the ``n`` subject-runs with a score, of ``n_all``; ``low`` and ``high`` are the bootstrap
    interval over them (real features only, from two subject-runs on); ``delta`` is the mean of real − condition over
    the subject-runs that have both. ``kind`` names how a condition is drawn: the strongest counted control has the
    smallest ``delta``, as in the severe-control gate. A condition without a mean has a ``reason``.
    """
    deltas, key = primary_deltas(material), [*LAYER, "condition"]
    found = _scores(material, deltas)
    layers = deltas.group_by(LAYER, maintain_order=True).agg(n_all=pl.len().cast(pl.Int64))
    rows = layers.join(found.select("condition").unique(), how="cross")
    for part in (found, _intervals(deltas, material.config.seed)):
        rows = rows.join(part, on=key, how="left", maintain_order="left")
    anywhere = pl.col("counted").fill_null(value=False).any().over("condition")
    rows = rows.with_columns(
        pl.col("n").fill_null(0),
        delta=pl.when(pl.col("condition") != REAL).then("delta"),
        counted=pl.col("counted").fill_null(anywhere),
    )
    least = pl.col("delta").filter("counted").min().over(LAYER)
    best = pl.col("condition").filter("counted", pl.col("delta") == least).min().over(LAYER)
    control = pl.when("counted").then(pl.lit(COUNTED)).otherwise(pl.lit(NOT_COUNTED))
    control = pl.when(pl.col("condition") == best).then(pl.lit(BEST)).otherwise(control)
    is_feature = pl.col("condition").is_in([*_COLUMNS.values()])
    why = pl.when(pl.col("mean").is_null()).then(pl.col("why").fill_null("not_computed"))
    return rows.with_columns(
        reason=why.otherwise(pl.lit(Reason.OK.value)),
        kind=pl.when(is_feature).then("condition").otherwise(control),
    ).sort(key)


def _scores(material: Material, deltas: pl.DataFrame) -> pl.DataFrame:
    """Means of every condition, and of real − condition, over the subject-runs that have them."""
    key = [*LAYER, *SUBJECT_RUN]
    features = deltas.rename(_COLUMNS).unpivot(
        list(_COLUMNS.values()), index=key, variable_name="condition", value_name="score"
    )
    features = features.with_columns(counted=pl.lit(value=False), reason=pl.lit(Reason.OK.value))
    nulls = material.table(CONTROL_NULLS.name)
    controls = nulls.filter(metric=material.config.readout.primary_metric).select(
        *key, "counted", "reason", condition="control", score="control_score"
    )
    scores = pl.concat([features, controls.select(features.columns)])
    scores = scores.join(deltas.select(*key, real="real_score"), on=key, how="left")
    by, ok = [*LAYER, "condition"], pl.col("reason") == Reason.OK.value
    grouped = scores.sort(*by, *SUBJECT_RUN).group_by(by, maintain_order=True)
    return grouped.agg(
        pl.col("counted").any(),
        delta=(pl.col("real") - pl.col("score")).filter(ok).mean(),
        mean=pl.col("score").mean(),
        n=pl.col("score").count().cast(pl.Int64),
        why=pl.col("reason").filter(~ok).first(),
    )


def ceilings_of(material: Material) -> pl.DataFrame:
    """Mean response reliability of a dataset over recordings, by the strictest valid mode; Pearson only."""
    key, rows = list(RECORDING_KEY), common.table_of(material, NORMALIZED_PREDICTIVE)
    if material.config.readout.primary_metric != "pearson":
        rows = rows.clear()
    recordings = rows.select([*key, "mode", "reliability"]).unique(maintain_order=True)
    reliable = common.strictest(recordings, key).sort([*key, "mode"])
    return reliable.group_by("dataset", maintain_order=True).agg(
        pl.col("reliability").mean(),
        pl.col("mode").replace(MODES).unique(maintain_order=True).str.join(", "),
        n=pl.len().cast(pl.Int64),
    )


def _intervals(deltas: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Bootstrap interval of the real features over subject-runs; one number has no spread."""
    found = []
    for key, own in deltas.drop_nulls("real_score").group_by(LAYER, maintain_order=True):
        if own.height > 1:
            scores = own["real_score"].to_numpy().astype(np.float64)
            name = ("layer_scores", *(str(part) for part in key))
            made = bootstrap_mean(scores, seed=seed, draws=DRAWS, key=name)
            found.append((*key, REAL, made.low, made.high))
    kinds: list[Any] = [*deltas.select(LAYER).dtypes, pl.String, pl.Float64, pl.Float64]
    names = [*LAYER, "condition", "low", "high"]
    return pl.DataFrame(found, schema=dict(zip(names, kinds, strict=True)), orient="row")


@figure(
    "layer_scores",
    "Held-out score of the real features, with nuisance and every severe control",
    CONTROL_DELTAS,
    CONTROL_NULLS,
)
def make(material: Material) -> Drawing | str:
    """The layer-wise brain score, and what it has to beat."""
    metric = common.metric_name(material)
    runs = primary_deltas(material).drop_nulls("real_score")
    if runs.is_empty():
        return f"no held-out {metric} was computed at level 1"
    rows, ceilings = _with_tooltips(rows_of(material), metric), ceilings_of(material)
    runs = marked(runs, f"{{at}}: {metric} of the real features {{real_score}}", "real_score")
    n_layers = rows.group_by("dataset", "model").agg(pl.col("layer").n_unique())["layer"]
    few = max(n_layers) <= FEW_LAYERS
    order = rows.group_by("condition").agg(pl.col("mean").mean())
    order = order.sort(["mean", "condition"], descending=[True, False], nulls_last=True)
    lanes = order["condition"].to_list() if few else []
    by = LAYER if few else LAYER[:2]
    most = max(rows.select(by).unique()["dataset"].value_counts()["count"])
    columns = -(-most // -(-most // MOST_PANELS))
    drawn = [
        _dataset(own, runs, ceilings, f"held-out {metric}", lanes, columns)
        for own in rows.partition_by("dataset", maintain_order=True)
    ]
    absent = rows["mean"].null_count()
    caption = {
        f"Held-out {metric}, median over units and mean over subject-runs. The bar is the 95 % bootstrap interval over "
        "subject-runs; for two or three of them it is no more than their range.": True,
        "Conditions are sorted by their mean over all panels; the thin line marks the real features.": few,
        "Each severe control is a grey line; hover over it for its name.": not few,
        "The strongest counted control has the smallest mean difference from the real features. Controls that the "
        "point rules do not count are counted by the statistical tests.": True,
        "Response reliability (strictest valid mode, mean over recordings) correlates one noisy recording with "
        "another; a model without noise could reach its square root.": ceilings.height,
        f"{absent} of {counted(rows.height, 'condition')} were not computed; a line ends where its condition is "
        "missing.": absent,
    }
    top, rivals = common.top(rows.filter(condition=REAL), "mean"), rows.filter(kind=BEST)
    summary = (
        f"The highest mean {metric} of real features is {fixed(top['mean'])} ({common.place(top)}). In "
        f"{rivals.filter(pl.col('delta') > 0).height} of {counted(rivals.height, 'layer')} the real features score "
        "above every counted control on average."
    )
    lines = {} if few else {COUNTED: LINE, NOT_COUNTED: BROKEN}
    entries = [
        (
            kind,
            look.changed(shape=lines.get(kind, look.shape), size=120 if kind in lines else look.size),
        )
        for kind, look in _DOTS.items()
        if kind in rows["kind"]
    ]
    one = ("real features, one subject-run", Look("circle", "real", "real", 14, 0.5))
    line = [(CEILING, Look(BROKEN, None, "brain", 120))] if ceilings.height else []
    key = panels.key(entries[0], one, *entries[1:], *line, width=760)
    return panels.stacked(key, *drawn), caption, summary


def _with_tooltips(rows: pl.DataFrame, metric: str) -> pl.DataFrame:
    notes = {BEST: "the strongest counted control here", NOT_COUNTED: NOT_COUNTED}
    kind, known = pl.col("kind"), pl.col("mean").is_not_null()
    rows = rows.with_columns(
        metric=pl.lit(metric),
        over=pl.when(known).then("n"),
        of=pl.when(known & (pl.col("n") < pl.col("n_all"))).then("n_all"),
        other=pl.when(kind.is_in([NUISANCE, BOTH])).then(pl.lit("this")).otherwise(pl.lit("control")),
        note=pl.when(known).then(kind.replace_strict(notes, default=None, return_dtype=pl.String)),
        lost=pl.when(~known).then("reason"),
    )
    return marked(rows, _TOOLTIP, "mean")


def _dataset(
    rows: pl.DataFrame,
    runs: pl.DataFrame,
    ceilings: pl.DataFrame,
    title: str,
    lanes: list[str],
    columns: int,
) -> alt.ConcatChart:
    """All panels of a dataset, on one scale; points where ``lanes`` are given."""
    by, along = (LAYER, "x") if lanes else (LAYER[:2], "y")
    dataset = rows["dataset"][0]
    width = min(260 if lanes else 420, (_WIDTH - (_LABELS if lanes else 60)) // columns - _GAP)
    runs, ceilings = runs.filter(dataset=dataset), ceilings.filter(dataset=dataset)
    ends = (rows["mean"], rows["low"], rows["high"], runs["real_score"], ceilings["reliability"])
    text = f"{{at}}: {CEILING} {{reliability}}, {{mode}}, mean over {{n:recording}}"
    ceiling = marked(ceilings, text, "reliability")
    dashed = {"color": "brain", "strokeDash": [4, 3], "strokeWidth": 1.5}
    drawn = []
    for i, panel in enumerate(rows.partition_by(by, maintain_order=True)):
        first = i % columns == 0
        shown = bool(lanes) or first
        scale = panels.axis("mean", title if shown else None, panels.domain(*ends), labels=shown)
        own = runs.join(panel, on=by, how="semi", maintain_order="left")
        layers = _points(panel, own, scale, lanes, first) if lanes else _lines(panel, own, scale)
        name = short(" · layer ".join(str(panel[key][0]) for key in by[1:]), int(width / 5.9))
        drawn.append(
            panels.overlay(
                panels.reference(0, along),
                panels.layer(ceiling, "rule", dashed, **{along: {**scale, "field": "reliability"}}),
                *layers,
                width=width,
                height=150,
                step=14 if lanes else 0,
                title=panels.panel_title(name, width),
            )
        )
    known = [f" {fixed(r, 2)}, {mode}" for r, mode in ceilings.select("reliability", "mode").rows()]
    about = f"{span(rows['n_all'], 'subject-run')}; {'' if known else 'no '}response reliability"
    heading = panels.title(short(dataset, 100), about + "".join(known), limit=600, offset=6)
    return panels.grid(drawn, columns, title=heading, spacing={"row": 18, "column": _GAP})


def _points(rows: pl.DataFrame, runs: pl.DataFrame, x: Spec, order: list[str], first: bool) -> list[alt.Chart]:
    """One layer: conditions below each other; the thin line marks the real features."""
    y = panels.lanes("condition", order, labels=first, limit=_LABELS, grid=True)
    known = rows.drop_nulls("mean")
    real, dots = known.filter(condition=REAL), runs.with_columns(condition=pl.lit(REAL))
    absent = rows.filter(pl.col("mean").is_null()).with_columns(text=pl.lit("not computed"))
    return [
        panels.layer(real.drop("mark"), "rule", {"color": "real", "opacity": 0.6}, x=x),
        panels.dots(dots, {**x, "field": "real_score"}, y, "real", yOffset=5),
        panels.intervals(real, "x", y, x, "real"),
        panels.points(known, x, y, _DOTS, "kind"),
        panels.text(absent, "text", {"value": 3}, y, size=9, ink="muted"),
    ]


def _lines(rows: pl.DataFrame, runs: pl.DataFrame, y: Spec) -> list[alt.Chart]:
    """One model: conditions as lines over layers, which end where a layer is missing."""
    layers = rows["layer"].unique().sort().to_list()
    x = panels.axis("layer", "layer", (layers[0], layers[-1]), ticks=ticks_of(layers), fmt="d")
    x["scale"]["padding"] = 6
    gap = pl.col("mean").is_null().cast(pl.Int64)
    rows = rows.sort(["condition", "layer"])
    known = rows.with_columns(stretch=gap.cum_sum().over("condition")).drop_nulls("mean")
    drawn, looks = [], {}
    # The strongest control differs between layers: its line is that of a counted one.
    style = pl.when(pl.col("kind") == BEST).then(pl.lit(COUNTED)).otherwise("kind")
    for kind, (size, role, thick, dash) in _LINES.items():
        look = {"color": role, "strokeWidth": thick, "strokeDash": dash}
        path = {"detail": ["condition", {"field": "stretch", "type": "nominal"}]}
        own = known.filter(style == kind).drop("mark")
        drawn.append(panels.layer(own, "line", look, x=x, y=y, **path))
        looks[kind] = _DOTS[kind].changed(size=size)
    best = known["kind"] == BEST
    return [
        *drawn,
        panels.dots(runs, x, {**y, "field": "real_score"}, "real", size=9, opacity=0.35),
        panels.intervals(known.filter(condition=REAL), "y", x, y, "real", strokeWidth=1.2),
        *(panels.points(known.filter(own), x, y, looks, "kind", thick=1) for own in (~best, best)),
    ]


def ticks_of(layers: list[int], most: int = 7) -> list[int]:
    """At most ``most`` layers, evenly spaced, from the first."""
    return layers[:: -(-len(layers) // most)]
