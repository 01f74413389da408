"""The chain of gates with this study's counts: how many claims pass each gate, and how many are still in."""

from __future__ import annotations

from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.canvas import Canvas
from lpact.analyses.lpact.figures.common import GATE_NAMES, GATES, LABEL_RANK, LAYER, PROFILES
from lpact.analyses.lpact.gates.wording import words
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.codes import FinalLabel
from lpact.report.figure import Figure, Missing, with_marks
from lpact.report.wording import counted

NAME = "framework"
TITLE = "The chain of gates, with the claims of this study"

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
_STEP, _TOP, _BAR = 34, 66, 20
_LEFT, _PANEL, _GAP, _SCALE = 250, 356, 14, 190
_COLUMNS = {
    "still_in": ("still in", 40),
    "layers_in": ("layers", 80),
    "dropped": ("drop out", 126),
    "own": ("pass it", 164),
}
"""Numbers beside the bars: heading, and right end in pixels from the end of the scale."""
_KEYED = ("still_in", "dropped", "own")
"""Those of them that are drawn as well."""


def rows_of(material: Material) -> pl.DataFrame:
    """One row a gate profile and step: ``own`` claims pass it, ``still_in`` pass it and every step before.

    ``layers_in`` counts the layers (dataset, model and layer) of these claims, which share every gate but M.

    Where a claim's dataset is not confirmatory its verdict is `diagnostic_only`, and only there. ``dropped`` claims
    leave at this step.
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
    """One row a gate profile and verdict that any profile gives: how many claims have it."""
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
            for profile in PROFILES
            if profile in set(decisions["gate_profile"])
            for label in given
        ]
    )


def _strength(label: str) -> tuple[bool, int]:
    """Candidates first, the strongest on top; claims that were not judged last."""
    unjudged = (FinalLabel.DIAGNOSTIC_ONLY.value, FinalLabel.INSUFFICIENT_COVERAGE.value)
    return label in unjudged, LABEL_RANK[label]


def make(material: Material) -> Figure | Missing:
    """Draw the chain."""
    if not material.has(DECISIONS.name):
        return Missing(NAME, TITLE, f"the run has no table {DECISIONS.name}")
    rows = rows_of(material)
    if rows.is_empty():
        return Missing(NAME, TITLE, "the study makes no claim")
    verdicts = verdicts_of(material)
    return Figure(NAME, TITLE, _caption(rows), _summary(rows), _draw(rows, verdicts))


def _draw(rows: pl.DataFrame, verdicts: pl.DataFrame) -> dict[str, Any]:
    profiles = list(rows["gate_profile"].unique(maintain_order=True))
    n_steps, labels = rows["place"].n_unique(), list(verdicts["label"].unique(maintain_order=True))
    below = _TOP + n_steps * _STEP + 34
    width = _LEFT + len(profiles) * (_PANEL + _GAP) - _GAP
    canvas = Canvas(width, below + len(labels) * 20)
    _chain(canvas, list(rows["step"].unique(maintain_order=True)))
    _verdict_names(canvas, labels, below)
    for at, profile in enumerate(profiles):
        left = _LEFT + at * (_PANEL + _GAP)
        _heads(canvas, profile, left)
        _bars(canvas, rows.filter(gate_profile=profile), left)
        _verdict_bars(canvas, verdicts.filter(gate_profile=profile), left, below)
    return canvas.spec()


def _middle(place: int) -> float:
    return _TOP + place * _STEP + _STEP / 2


def _chain(canvas: Canvas, steps: list[str]) -> None:
    """The gates as boxes under each other, with arrows between them."""
    places = [(step, _middle(i)) for i, step in enumerate(steps)]
    arrows = [{"x": 26, "y": y + 11, "x2": 26, "y2": y + _STEP - 15} for _, y in places[:-1]]
    heads = [{"x": 26, "y": arrow["y2"] + 1} for arrow in arrows]
    canvas.lines(arrows, ink="line")
    canvas.symbols(heads, "triangle-down", radius=3.5, fill="line")
    gates = [own for own in places if own[0] in GATES]
    others = [own for own in places if own[0] not in GATES]
    box = [{"x": 8, "y": y - 11, "x2": 44, "y2": y + 11} for _, y in gates]
    canvas.boxes(box, fill="band", edge="line", radius=4)
    canvas.words(
        [{"x": 26, "y": y, "text": letter} for letter, y in gates], align="center", bold=True
    )
    canvas.symbols([{"x": 26, "y": y} for _, y in others], "circle", radius=5, fill="line")
    canvas.words([{"x": 54, "y": y - 7, "text": _ABOUT[s][0]} for s, y in places], bold=True)
    told = [{"x": 54, "y": y + 7, "text": _ABOUT[s][1]} for s, y in places]
    canvas.words(told, size=10, ink="muted", limit=_LEFT - 60)


def _heads(canvas: Canvas, profile: str, left: float) -> None:
    canvas.words([{"x": left, "y": 10, "text": f"{PROFILES[profile]}"}], size=13, bold=True)
    canvas.words([{"x": left, "y": 27, "text": f"gate profile {profile}"}], size=10, ink="muted")
    ends = [{"x": left + _SCALE + x, "y": _TOP - 8, "text": head} for head, x in _COLUMNS.values()]
    canvas.words(ends, size=10, ink="muted", align="right")
    # What bar, dashed end and line stand for, above the words that name their numbers.
    at = [left + _SCALE + _COLUMNS[name][1] - 15 for name in _KEYED]
    top, bottom = _TOP - 27, _TOP - 17
    box = {"y": top, "y2": bottom}
    canvas.boxes([{"x": at[0] - 9, "x2": at[0] + 9, **box}], fill="pass")
    canvas.boxes([{"x": at[1] - 9, "x2": at[1] + 9, **box}], fill="paper", edge="fail", dash=(3, 2))
    canvas.lines([{"x": at[2], "x2": at[2], "y": top - 2, "y2": bottom + 2}], ink="ink", thick=2)


def _bars(canvas: Canvas, rows: pl.DataFrame, left: float) -> None:
    """Claims still in as a bar from zero, those that drop out here as its missing end, those that pass as a line."""
    scale = _SCALE / max(*rows["n_claims"].to_list(), 1)
    middle = _TOP + pl.col("place") * _STEP + _STEP / 2
    placed = rows.with_columns(
        x=pl.lit(left, pl.Float64),
        x2=left + pl.col("still_in") * scale,
        x3=left + (pl.col("still_in") + pl.col("dropped")) * scale,
        x4=left + pl.col("own") * scale,
        y=middle - _BAR / 2,
        y2=middle + _BAR / 2,
    )
    gone = placed.filter(pl.col("dropped") > 0).with_columns(x="x2", x2="x3")
    canvas.boxes(with_marks(gone, _told, value="dropped"), fill="paper", edge="fail", dash=(3, 2))
    canvas.boxes(with_marks(placed, _told, value="still_in"), fill="pass")
    own = placed.filter(~pl.col("step").is_in([CLAIMS, CONFIRMATORY, INTEGRATED])).with_columns(
        x="x4", x2="x4", y=pl.col("y") - 4, y2=pl.col("y2") + 4
    )
    canvas.lines(with_marks(own, _told, value="own"), ink="ink", thick=2)
    base = [{"x": left, "y": _TOP, "x2": left, "y2": _middle(rows.height - 1) + _STEP / 2}]
    canvas.lines(base)
    inks = {"still_in": "ink", "layers_in": "ink", "dropped": "fail", "own": "muted"}
    for column, (_, x) in _COLUMNS.items():
        number = pl.col(column).cast(pl.String)
        shown = placed.select(
            x=pl.lit(left + _SCALE + x),
            y=middle,
            text=number.replace("0", "–") if column == "dropped" else number,
        )
        canvas.words(shown, align="right", bold=column == "still_in", ink=inks[column])


def _told(row: dict[str, Any]) -> str:
    name = GATE_NAMES.get(row["step"], row["step"])
    return (
        f"{PROFILES[row['gate_profile']]}, {name}: {row['still_in']} of {counted(row['n_claims'], 'claim')} "
        f"still in ({_of_layers(row['layers_in'])}); {row['dropped']} drop out here; "
        f"{row['own']} pass this step on its own"
    )


def _of_layers(n: int) -> str:
    return f"in {counted(n, 'layer')}"


def _verdict_names(canvas: Canvas, labels: list[str], top: float) -> None:
    canvas.words([{"x": 8, "y": top - 12, "text": "verdicts"}], bold=True)
    names = [
        {"x": 54, "y": top + 10 + 20 * i, "text": words(label)} for i, label in enumerate(labels)
    ]
    canvas.words(names)


def _verdict_bars(canvas: Canvas, verdicts: pl.DataFrame, left: float, top: float) -> None:
    scale = _SCALE / max(*verdicts["n_claims"].to_list(), 1)
    placed = with_marks(
        verdicts,
        lambda row: (
            f"{PROFILES[row['gate_profile']]}, verdict {row['label']}: {row['n']} of "
            f"{counted(row['n_claims'], 'claim')}"
        ),
        value="n",
    ).with_row_index("place")
    placed = placed.with_columns(
        x=pl.lit(left, pl.Float64),
        x2=left + pl.col("n") * scale,
        y=top + 4 + pl.col("place") * 20.0,
        y2=top + 16 + pl.col("place") * 20.0,
    )
    canvas.boxes(placed, fill="control")
    canvas.lines([{"x": left, "y": top, "x2": left, "y2": top + 20 * verdicts.height}])
    shown = placed.select(x=pl.col("x2") + 5, y=pl.col("y") + 6, text=pl.col("n").cast(pl.String))
    canvas.words(shown, bold=True)


def _caption(rows: pl.DataFrame) -> str:
    n, layers = rows["n_claims"][0], rows["layers_in"][0]
    return (
        f"{counted(n, 'claim')} {_of_layers(layers)} (one a dataset, model, layer and mechanism) on the way down "
        "the chain of gates, by point "
        "rules (left) and with every gate a test (right; its last step also corrects over all claims). Filled bar: "
        "claims that pass this step and every step above it; dashed end: claims that drop out here; upright line: "
        "claims that pass this step on its own. Claims of a layer of a model in a dataset share every gate but M: "
        "they are not so many independent findings, and the column of layers counts those with a claim still in. "
        "Gates of datasets that are not confirmatory never pass. Below: the "
        "verdicts that follow."
    )


def _summary(rows: pl.DataFrame) -> str:
    told = []
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
        told.append(part + ".")
    return " ".join(told)
