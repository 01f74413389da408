"""Could the assay have detected an effect? Positive controls by dataset: which pass, do not, or are not available."""

from __future__ import annotations

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.assays.control_results import SIMULATED, ControlResult, control_results
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.figures.common import GATE_PROFILES
from lpact.report import panels
from lpact.report.figure import MARK, Drawing, Spec, figure, with_marks
from lpact.report.panels import CROSS, DASH, Look
from lpact.wording import counted, short

_LEFT, _WIDTH, _ROW = 236, 960, 20
_WIDEST, _NARROWEST, _ROOM = 176, 26, 84
"""Pixels of a dataset's column: the most, the fewest, and what numbers next to the symbols need."""
_LOOKS = {
    (True, True): Look("circle", "pass", "pass", 100),
    (True, False): Look("circle", "fail", "fail", 100),
    (False, True): Look(CROSS, None, "pass", 100),
    (False, False): Look(CROSS, None, "fail", 100),
    (None, None): Look(DASH, None, "line", 100),
}
"""Symbols by whether a control passes and whether that is as expected."""
_FRAME = Look("square", None, "fail", 225)
_COLUMNS = [
    "control",
    "what",
    "dataset",
    "passes",
    "expected",
    "result",
    "detail",
    "reason",
    "number",
]


def rows_of(material: Material) -> pl.DataFrame:
    """One row per result, in the order of the controls; ``fits``: whether it is as expected (null: not available)."""
    found = control_results(material.tables, LPactConfig.of(material.config).gates)
    made = [[*(getattr(own, name) for name in _COLUMNS), _line(own)] for own in found]
    schema: Spec = dict.fromkeys((*_COLUMNS, "line"), pl.String)
    schema |= {"passes": pl.Boolean, "expected": pl.Boolean}
    frame = pl.DataFrame(made, schema=schema, orient="row")
    return frame.with_columns(fits=pl.col("passes") == pl.col("expected"))


def _line(result: ControlResult) -> str:
    """Name of a result's line, gate profiles in words."""
    what = result.what
    for profile, name in GATE_PROFILES.items():
        what = what.replace(f"gate profile {profile}", name)
    return what


@figure("assay_sensitivity", "Assay sensitivity: could the assay have detected an effect?")
def make(material: Material) -> Drawing | str:
    """Draw the matrix of positive controls."""
    rows = rows_of(material)
    if rows.is_empty():
        enabled = LPactConfig.of(material.config).assay.enabled
        return f"the run has no positive controls{'' if enabled else ' ([lpact.assay] enabled = false)'}"
    datasets = sorted(set(rows["dataset"]) - {SIMULATED})
    step = max(_NARROWEST, min(_WIDEST, (_WIDTH - _LEFT) / max(len(datasets), 1)))
    heads = {name: short(name, int((step - 8) / 5.9)) for name in datasets}
    key = panels.key(
        ("passes", _LOOKS[True, True]),
        ("does not pass", _LOOKS[False, True]),
        ("not available", _LOOKS[None, None]),
        ("framed: not as expected", _FRAME),
    )
    known = rows.drop_nulls("fits")
    caption = [
        f"Positive controls: {counted(rows.height, 'result')} in {counted(len(datasets), 'dataset')}. A negative "
        "verdict is worth something only where controls that should pass do: "
        f"{known.filter('fits').height} of {known.height} results that could be computed are as expected, "
        f"{rows.height - known.height} are not available. A frame marks a control that should pass and "
        "does not, or a sham that passes; blank: does not apply there.",
        "Numbers: recordings, rows, summaries or measures that pass, or the median reliability."
        if step >= _ROOM
        else "Numbers and reasons show on hovering, and in the tables of positive controls.",
    ]
    chart = panels.stacked(key, _matrix(rows, heads, step))
    return chart, caption, _summary(rows)


def _matrix(rows: pl.DataFrame, heads: dict[str, str], step: float) -> alt.LayerChart:
    """One lane per result below the heading of its control; one column per dataset."""
    left = {name: _LEFT + i * step for i, name in enumerate(heads)} | {SIMULATED: _LEFT}
    width = max(_LEFT + len(heads) * step, 560)
    lines = rows.select("control", "line").unique(maintain_order=True)
    lanes, groups, columns = [], [], []
    for own in rows.partition_by("control", maintain_order=True):
        group = own["control"][0]
        lanes += [group, *(f"{group}: {line}" for line in own["line"].unique(maintain_order=True))]
        groups.append({"lane": group, "text": group})
        # Datasets next to the heading of every control, so that no column is far from its name.
        simulated = set(own["dataset"]) == {SIMULATED}
        shown = {SIMULATED: "simulated study"} if simulated else heads
        columns += [{"lane": group, "x": left[name] + 6.0, "text": text} for name, text in shown.items()]
    y = panels.lanes("lane", lanes, shown=False)
    named = lines.select(lane=pl.format("{}: {}", "control", "line"), text="line")
    of_dataset, known = pl.col("dataset") != SIMULATED, pl.col("passes").is_not_null()
    of_known = pl.when(known).then("number").otherwise(pl.col("reason").str.replace_all("_", " "))
    cells = rows.with_columns(
        lane=pl.format("{}: {}", "control", "line"),
        where="dataset",
        dataset=pl.when(of_dataset).then("dataset"),
        x=pl.col("dataset").replace_strict(left, return_dtype=pl.Float64) + 12,
        # The simulated study is alone on its line, so its text may be longer.
        kind=pl.when(~of_dataset).then(pl.lit("alone")).when(known).then(pl.lit("known")),
        text=pl.when(of_dataset).then(of_known).otherwise("detail"),
        passed=pl.col("passes").cast(pl.Float64),
        wrong=~pl.col("expected"),
    ).with_columns(pl.col("kind").fill_null("absent"), label_x=pl.col("x") + 12)
    text = "{control}, {what}; {where}: {result}[; it should not pass{wrong}]. {detail}"
    cells = with_marks(cells, text, "passed")
    looks = [_LOOKS[both] for both in rows.select("passes", "fits").iter_rows()]
    wrong = cells.filter(~rows["fits"].fill_null(value=True)).drop(MARK)
    x, label_x = panels.pixels("x"), panels.pixels("label_x")
    layers = [
        panels.layer(groups, "rect", {"fill": "band", "height": _ROW - 2}, y=y),
        panels.text(groups, "text", {"value": 4}, y, fontWeight="bold", limit=_LEFT - 8),
        panels.text(named, "text", {"value": 14}, y, limit=_LEFT - 22),
        panels.text(columns, "text", x, y, ink="muted"),
        panels.points(cells, x, y, looks, thick=2),
        panels.points(wrong, x, y, _FRAME, thick=1),
    ]
    for kind, ink in (("alone", "ink"), ("known", "ink"), ("absent", "muted")):
        limit = width - _LEFT - 30 if kind == "alone" else step - 26
        if kind == "alone" or step >= _ROOM:
            own = cells.drop(MARK).filter(kind=kind)
            layers.append(panels.text(own, "text", label_x, y, size=10, ink=ink, limit=limit))
    return panels.overlay(*layers, width=width, step=_ROW)


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    for own in rows.partition_by("control", maintain_order=True):
        known = own.drop_nulls("fits")
        found = f"{known['fits'].sum()} of {known.height} as expected" if known.height else ""
        absent = own.height - known.height
        lost = f"{absent} not available" if absent else ""
        parts.append(f"{own['control'][0]}: {', '.join(filter(None, (found, lost)))}.")
    return " ".join(parts)
