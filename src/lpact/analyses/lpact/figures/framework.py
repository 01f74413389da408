"""The chain of gates with this study's counts: how many claims pass each gate, and how many are still in."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    GATE_NAMES,
    GATES,
    LABEL_RANK,
    LAYER,
    PROFILES,
    names,
    profiles_in,
)
from lpact.analyses.lpact.gates.wording import words
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.codes import FinalLabel
from lpact.report import panels
from lpact.report.figure import Drawing, Spec, figure, with_marks
from lpact.report.panels import BOX, TICK, Look
from lpact.report.wording import counted

CLAIMS, CONFIRMATORY, RAW, INTEGRATED = "claims", "confirmatory", "raw positive", "integrated"
_ABOUT: dict[str, tuple[str, str]] = {
    CLAIMS: ("claims", "dataset × model × layer × mechanism"),
    CONFIRMATORY: ("confirmatory", "the dataset can carry evidence"),
    RAW: ("raw positive", "above zero at any level, not only the score"),
    "P": (GATE_NAMES["P"], "beats nuisance and the best control"),
    "S": (GATE_NAMES["S"], "each control on its own, at both levels"),
    "R": (GATE_NAMES["R"], "pattern over units as in the brain"),
    "M": (GATE_NAMES["M"], "stripping costs the right units most"),
    "T": (GATE_NAMES["T"], "a fair part of what brains share"),
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


def rows_of(material: Material) -> pl.DataFrame:
    """One row per gate profile and step: ``own`` claims pass it, ``still_in`` pass it and every step before.

    ``dropped`` claims leave at this step. ``layers_in`` counts the layers (dataset, model and layer) of those still in,
    which share every gate but M. A claim whose dataset is not confirmatory, and no other, has the verdict
    `diagnostic_only`.
    """
    decisions = material.table(DECISIONS.name)
    steps: dict[str, pl.Expr] = {
        CLAIMS: pl.lit(True),
        CONFIRMATORY: pl.col("label") != FinalLabel.DIAGNOSTIC_ONLY.value,
        RAW: pl.col("raw_positive"),
        **{letter: pl.col(column) for letter, column in GATES.items()},
        INTEGRATED: pl.col("integrated"),
    }
    made: list[dict[str, Any]] = []
    for profile in PROFILES:
        claims = decisions.filter(gate_profile=profile).select(**steps)
        if claims.is_empty():
            continue
        layers = decisions.filter(gate_profile=profile).select(LAYER)
        left, before = pl.repeat(True, claims.height, eager=True), claims.height
        for place, step in enumerate(steps):
            left = left & claims[step]
            made.append(
                {
                    "gate_profile": profile,
                    "place": place,
                    "step": step,
                    "own": int(claims[step].sum()),
                    "still_in": int(left.sum()),
                    "layers_in": layers.filter(left).n_unique(),
                    "dropped": before - int(left.sum()),
                    "n_claims": claims.height,
                }
            )
            before = int(left.sum())
    return pl.DataFrame(made, infer_schema_length=None)


def verdicts_of(material: Material) -> pl.DataFrame:
    """One row per gate profile and verdict that any profile gives: how many claims have it."""
    decisions = material.table(DECISIONS.name)
    given = sorted(set(decisions["label"]), key=_strength)
    return pl.DataFrame(
        [
            {
                "gate_profile": profile,
                "label": label,
                "n": decisions.filter(gate_profile=profile, label=label).height,
                "n_claims": decisions.filter(gate_profile=profile).height,
            }
            for profile in profiles_in(decisions)
            for label in given
        ]
    )


def _strength(label: str) -> tuple[bool, int]:
    """Candidates first, the strongest on top; claims that were not judged last."""
    unjudged = (FinalLabel.DIAGNOSTIC_ONLY.value, FinalLabel.INSUFFICIENT_COVERAGE.value)
    return label in unjudged, LABEL_RANK[label]


@figure("framework", "The chain of gates, with the claims of this study", DECISIONS)
def make(material: Material) -> Drawing | str:
    """Draw the chain."""
    rows = rows_of(material)
    if rows.is_empty():
        return "the study makes no claim"
    verdicts = verdicts_of(material)
    steps, labels, profiles = names(rows, "step"), names(verdicts, "label"), profiles_in(rows)
    y = {**panels.lanes("step", steps), "axis": None}
    top: list[Any] = [_chain(steps, y)]
    top += [_bars(rows.filter(gate_profile=profile), profile, y) for profile in profiles]
    y = {**panels.lanes("label", labels), "axis": None}
    below: list[Any] = [_verdict_names(labels, y)]
    below += [_verdict_bars(verdicts.filter(gate_profile=profile), y) for profile in profiles]
    key = panels.key(
        ("still in after this step", Look(BOX, "pass", "pass", 140)),
        ("drop out at this step", Look(BOX, "paper", "fail", 140)),
        ("pass this step on its own", Look(TICK, None, "ink", 140)),
    )
    chart = panels.stacked(panels.beside(*top), panels.beside(*below), key, spacing=24)
    return chart, _caption(rows), _summary(rows)


def _chain(steps: list[str], y: Spec) -> alt.LayerChart:
    """The steps below each other, gates as boxes with their letters."""
    rows = pl.DataFrame(
        {
            "step": steps,
            "kind": ["gate" if step in GATES else "other" for step in steps],
            "letter": [step if step in GATES else "" for step in steps],
            "name": [_ABOUT[step][0] for step in steps],
            "about": [_ABOUT[step][1] for step in steps],
        }
    )
    looks = {
        "gate": Look("M-1,-0.6L1,-0.6L1,0.6L-1,0.6Z", "band", "line", 36**2),
        "other": Look("circle", "line", "line", 80),
    }
    middle = {"value": 26}
    arrow = Look("triangle-down", "line", "line", 40)
    ends = {"y": {"value": _STEP / 2}, "y2": {"value": _STEP * (len(steps) - 0.5)}}
    return panels.overlay(
        panels.layer([{}], "rule", {"color": "line"}, x=middle, **ends),
        panels.symbols(rows[:-1], arrow, middle, {**y, "bandPosition": 1}, shift=(0, 1)),
        panels.points(panels.with_looks(rows, "kind", looks), middle, y, thick=1),
        panels.text(rows, "letter", middle, y, align="center", fontWeight="bold"),
        panels.text(rows, "name", {"value": 54}, y, dy=-7, fontWeight="bold"),
        panels.text(rows, "about", {"value": 54}, y, dy=7, size=10, ink="muted"),
        width=_LEFT,
        height={"step": _STEP},
    )


def _scale(rows: pl.DataFrame, field: str) -> Spec:
    """Claims along x, so that all of them end where the numbers begin."""
    return panels.bare(field, (0, max(rows["n_claims"][0], 1) * _PANEL / _SCALE))


def _bars(rows: pl.DataFrame, profile: str, y: Spec) -> alt.LayerChart:
    """Claims still in as bars from zero, those that drop out as dashed ends, those that pass a step as lines."""
    rows = rows.with_columns(before=pl.col("still_in") + pl.col("dropped"))
    gone = with_marks(rows.filter(pl.col("dropped") > 0), _tooltip, value="dropped")
    one_step = rows.filter(~pl.col("step").is_in([CLAIMS, CONFIRMATORY, INTEGRATED]))
    own = with_marks(one_step, _tooltip, value="own")
    x = _scale(rows, "still_in")
    dashed = {"fill": "paper", "stroke": "fail", "strokeDash": [3, 2], "height": 20}
    layers = [
        panels.layer(gone, "bar", dashed, x=x, x2={"field": "before"}, y=y),
        panels.bars(with_marks(rows, _tooltip, value="still_in"), x, y, "pass", height=20),
        panels.symbols(own, Look(TICK, None, "ink", 26**2), {**x, "field": "own"}, y, thick=2),
        panels.reference(0),
    ]
    for column, (head, right, ink) in _COLUMNS.items():
        number = pl.format("{}", column)
        shown = rows.select("step", n=number.replace("0", "–") if column == "dropped" else number)
        look: Spec = {"fontWeight": "bold"} if column == "still_in" else {}
        at = {"value": _SCALE + right}
        layers += [
            panels.text(shown, "n", at, y, align="right", ink=ink, **look),
            panels.heading(head, _SCALE + right, align="right"),
        ]
    title = panels.title(PROFILES[profile], f"gate profile {profile}", offset=20)
    return panels.overlay(*layers, width=_PANEL, height={"step": _STEP}, title=title)


def _tooltip(row: dict[str, Any]) -> str:
    name = GATE_NAMES.get(row["step"], row["step"])
    return (
        f"{PROFILES[row['gate_profile']]}, {name}: {row['still_in']} of {counted(row['n_claims'], 'claim')} "
        f"still in ({_of_layers(row['layers_in'])}); {row['dropped']} drop out here; "
        f"{row['own']} pass this step on its own"
    )


def _of_layers(n: int) -> str:
    return f"in {counted(n, 'layer')}"


def _verdict_names(labels: list[str], y: Spec) -> alt.LayerChart:
    rows = pl.DataFrame({"label": labels, "name": [words(label) for label in labels]})
    return panels.overlay(
        panels.text(rows, "name", {"value": 54}, y),
        panels.heading("verdicts", 8, ink="ink", fontWeight="bold"),
        width=_LEFT,
        height={"step": 20},
    )


def _verdict_bars(verdicts: pl.DataFrame, y: Spec) -> alt.LayerChart:
    marked = with_marks(
        verdicts,
        lambda row: (
            f"{PROFILES[row['gate_profile']]}, verdict {row['label']}: {row['n']} of "
            f"{counted(row['n_claims'], 'claim')}"
        ),
        value="n",
    )
    x, numbers = _scale(verdicts, "n"), verdicts.with_columns(text=pl.format("{}", "n"))
    return panels.overlay(
        panels.bars(marked, x, y, "control", height=12),
        panels.text(numbers, "text", x, y, xOffset=5, fontWeight="bold"),
        panels.reference(0),
        width=_PANEL,
        height={"step": 20},
    )


def _caption(rows: pl.DataFrame) -> str:
    n, layers = rows["n_claims"][0], rows["layers_in"][0]
    return (
        f"{counted(n, 'claim')} {_of_layers(layers)} (one per dataset, model, layer and mechanism) on their way down "
        "the chain of gates, by point rules (left) and by statistical tests (right; the last step also corrects over "
        "all claims). Filled bar: claims that pass this step and every step above it; dashed end: claims that drop out "
        "here; upright line: claims that pass this step on its own. Claims of one layer share every gate but M, so "
        "they are not independent findings; the column of layers counts the layers with a claim still in. Gates of "
        "datasets that are not confirmatory never pass. Below: the resulting verdicts."
    )


def _summary(rows: pl.DataFrame) -> str:
    parts = []
    for (profile,), own in rows.group_by("gate_profile", maintain_order=True):
        at = {row["step"]: row for row in own.iter_rows(named=True)}
        worst = max(
            (row for row in own.iter_rows(named=True) if row["step"] in GATES),
            key=lambda row: row["dropped"],
        )
        part = (
            f"{PROFILES[str(profile)]}: of {counted(at[CLAIMS]['still_in'], 'claim')} "
            f"{at[CONFIRMATORY]['still_in']} are confirmatory, "
            f"{at[RAW]['still_in']} of these raw positive, {at[INTEGRATED]['still_in']} integrated "
            f"({_of_layers(at[INTEGRATED]['layers_in'])})"
        )
        if worst["dropped"]:
            part += f"; most drop out at gate {worst['step']} ({worst['dropped']})"
        parts.append(part + ".")
    return " ".join(parts)
