"""The chain of gates with this study's counts: how many claims pass each gate, and how many are still in."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import GATE_NAMES, GATE_PROFILES, GATES, marked, names
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.codes import FinalLabel
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure
from lpact.report.panels import BOX, TICK, Look
from lpact.wording import counted

CLAIMS, CONFIRMATORY, RAW, INTEGRATED = "claims", "confirmatory", "raw positive", "integrated"
_ABOUT: dict[str, tuple[str, str]] = {
    CLAIMS: ("claims", "dataset × model × layer × mechanism"),
    CONFIRMATORY: ("confirmatory", "the dataset can carry evidence"),
    RAW: ("raw positive", "above zero at any level, not only the score"),
    "P": (GATE_NAMES["P"], "beats nuisance and the best control"),
    "S": (GATE_NAMES["S"], "each control on its own, at both levels"),
    "R": (GATE_NAMES["R"], "pattern over units as in the brain"),
    "M": (GATE_NAMES["M"], "stripping costs the right units most"),
    "T": (GATE_NAMES["T"], "a minimum fraction of the ceiling"),
    "Rep": (GATE_NAMES["Rep"], "holds in enough subject-runs"),
    INTEGRATED: ("integrated", "all six; tests: corrected over claims"),
}
_STEP, _LEFT, _PANEL, _SCALE = 34, 236, 356, 190
"""Pixels: height of a step, widths of the chain, of a profile's panel, and of the bars within it."""
_COLUMNS = {
    # column: (heading, right end in pixels from the end of the bars, colour)
    "still_in": ("still in", 40, "ink"),
    "layers_in": ("layers", 80, "ink"),
    "dropped": ("drop out", 126, "fail"),
    "own": ("pass it", 164, "muted"),
}
_TOOLTIP = (
    "{rules}, {name}: {still_in} of {n_claims:claim} still in (in {layers_in:layer}); {dropped} drop out here; "
    "{own} pass this step on its own"
)


def rows_of(material: Material) -> pl.DataFrame:
    """One row per gate profile and step: ``own`` claims pass it, ``still_in`` pass it and every step before.

    ``dropped`` claims leave at this step. ``layers_in`` counts the layers of those still in, which share every gate
    but M. A claim whose dataset is not confirmatory, and no other, has the verdict `diagnostic_only`.
    """
    steps: dict[str, pl.Expr] = {
        CLAIMS: pl.lit(True),
        CONFIRMATORY: pl.col("label") != FinalLabel.DIAGNOSTIC_ONLY.value,
        RAW: pl.col("raw_positive"),
        **{letter: pl.col(column) for letter, column in GATES.items()},
        INTEGRATED: pl.col("integrated"),
    }
    made: list[dict[str, Any]] = []
    for profile in GATE_PROFILES:
        claims = material.table(DECISIONS.name).filter(gate_profile=profile)
        passed = claims.select(**steps)
        left, before = pl.repeat(True, claims.height, eager=True), claims.height
        for step in steps if claims.height else ():
            left = left & passed[step]
            made.append(
                {
                    "gate_profile": profile,
                    "step": step,
                    "name": GATE_NAMES.get(step, step),
                    "own": int(passed[step].sum()),
                    "still_in": int(left.sum()),
                    "layers_in": claims.filter(left).select(common.LAYER).n_unique(),
                    "dropped": before - int(left.sum()),
                    "n_claims": claims.height,
                }
            )
            before = int(left.sum())
    return pl.DataFrame(made)


@figure("framework", "The chain of gates, with the claims of this study", DECISIONS)
def make(material: Material) -> Drawing | str:
    """Draw the chain."""
    rows = rows_of(material)
    if rows.is_empty():
        return "the study makes no claim"
    y = panels.lanes("step", names(rows, "step"), shown=False)
    top = [_bars(own, y) for own in rows.partition_by("gate_profile", maintain_order=True)]
    key = panels.key(
        ("still in after this step", Look(BOX, "pass", "pass", 140)),
        ("drop out at this step", Look(BOX, "paper", "fail", 140)),
        ("pass this step on its own", Look(TICK, None, "ink", 140)),
    )
    chart = panels.stacked(panels.side_by_side(_chain(y), *top), key, spacing=24)
    n, layers = rows["n_claims"][0], rows["layers_in"][0]
    caption = [
        f"{counted(n, 'claim')} in {counted(layers, 'layer')} (one per dataset, model, layer and mechanism) on their "
        "way down the chain of gates, by point rules (left) and by statistical tests (right; the last step also "
        "corrects over all claims). Filled bar: claims that pass this step and every step above it; dashed end: "
        "claims that drop out here; upright line: claims that pass this step on its own. Claims of one layer share "
        "every gate but M, so they are not independent findings. Gates of datasets that are not confirmatory never "
        "pass."
    ]
    return chart, caption, _summary(rows)


def _chain(y: Spec) -> alt.LayerChart:
    """The steps below each other, gates as boxes with their letters."""
    steps = y["scale"]["domain"]
    rows = pl.DataFrame(
        [(step, step if step in GATES else "", *_ABOUT[step]) for step in steps],
        schema=["step", "letter", "name", "about"],
        orient="row",
    )
    box = Look("M-1,-0.6L1,-0.6L1,0.6L-1,0.6Z", "band", "line", 36**2)
    looks = [box if step in GATES else Look("circle", "line", "line", 80) for step in steps]
    middle, arrow = {"value": 26}, Look("triangle-down", "line", "line", 40)
    ends = {"y": {"value": _STEP / 2}, "y2": {"value": _STEP * (len(steps) - 0.5)}}
    return panels.overlay(
        panels.layer([{}], "rule", {"color": "line"}, x=middle, **ends),
        panels.points(rows[:-1], middle, {**y, "bandPosition": 1}, arrow, shift=(0, 1)),
        panels.points(rows, middle, y, looks, thick=1),
        panels.text(rows, "letter", middle, y, align="center", fontWeight="bold"),
        panels.text(rows, "name", {"value": 54}, y, dy=-7, fontWeight="bold"),
        panels.text(rows, "about", {"value": 54}, y, dy=7, size=10, ink="muted"),
        width=_LEFT,
        step=_STEP,
    )


def _bars(rows: pl.DataFrame, y: Spec) -> alt.LayerChart:
    """Claims still in as bars from zero, those that drop out as dashed ends, those that pass a step as lines."""
    rows = rows.with_columns(before=pl.col("still_in") + pl.col("dropped"))
    gone = marked(rows.filter(pl.col("dropped") > 0), _TOOLTIP, "dropped")
    own = rows.filter(~pl.col("step").is_in([CLAIMS, CONFIRMATORY, INTEGRATED]))
    # All claims end where the numbers begin.
    x = panels.bare("still_in", (0, rows["n_claims"][0] * _PANEL / _SCALE))
    profile = rows["gate_profile"][0]
    dashed = {"fill": "paper", "stroke": "fail", "strokeDash": [3, 2], "height": 20}
    tick = Look(TICK, None, "ink", 26**2)
    layers = [
        panels.layer(gone, "bar", dashed, x=x, x2={"field": "before"}, y=y),
        panels.bars(marked(rows, _TOOLTIP, "still_in"), x, y, "pass", height=20),
        panels.points(marked(own, _TOOLTIP, "own"), {**x, "field": "own"}, y, tick, thick=2),
        panels.reference(0),
    ]
    for column, (head, right, ink) in _COLUMNS.items():
        number = pl.format("{}", column)
        shown = rows.select("step", n=number.replace("0", "–") if column == "dropped" else number)
        look: Spec = {"fontWeight": "bold"} if column == "still_in" else {}
        layers += [
            panels.text(shown, "n", {"value": _SCALE + right}, y, align="right", ink=ink, **look),
            panels.heading(head, _SCALE + right, align="right"),
        ]
    title = panels.title(GATE_PROFILES[profile], f"gate profile {profile}", offset=20)
    return panels.overlay(*layers, width=_PANEL, step=_STEP, title=title)


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    for own in rows.partition_by("gate_profile", maintain_order=True):
        at = {row["step"]: row for row in own.iter_rows(named=True)}
        worst = max((at[letter] for letter in GATES), key=lambda row: row["dropped"])
        most = f"; most drop out at gate {worst['step']} ({worst['dropped']})"
        parts.append(
            f"{GATE_PROFILES[own['gate_profile'][0]]}: of {counted(at[CLAIMS]['still_in'], 'claim')} "
            f"{at[CONFIRMATORY]['still_in']} are confirmatory, {at[RAW]['still_in']} of these raw positive, "
            f"{at[INTEGRATED]['still_in']} integrated (in {counted(at[INTEGRATED]['layers_in'], 'layer')})"
            f"{most if worst['dropped'] else ''}."
        )
    return " ".join(parts)
