"""Where everything in the decision matrix stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.lpact.figures.canvas import CROSS, DASH, Canvas, wedge
from lpact.analyses.lpact.figures.common import GATE_NAMES, GATES, PROFILES
from lpact.analyses.lpact.figures.layers import LAYER
from lpact.analyses.lpact.figures.short_names import folded, short
from lpact.analyses.lpact.figures.wording import counted, metric_name, number
from lpact.report.figure import MARK, Spec, mark

_MODEL, _LAYER_END, _SCORE, _SCORE_WIDTH, _GATES_AT = 12, 142, 152, 96, 264
_STEP, _WIDE, _VERDICT = 21, 42, 206
_HEAD = 58


@dataclass(frozen=True)
class Size:
    """Height of a row, of its letters, and radius of its symbols, in pixels; verdicts on one line or two."""

    row: int
    font: int
    radius: float
    two_lines: bool = False


def size_for(n_rows: int) -> Size:
    """Smaller rows for larger studies."""
    if n_rows <= 40:
        return Size(28, 11, 5.5, two_lines=True)
    return Size(16, 10, 4.5) if n_rows <= 120 else Size(13, 9, 3.8)


def gate_places() -> dict[str, float]:
    """Middle of each gate's column, from the left of its profile; the mechanism gate has room for numbers."""
    places, at = {}, 8.0
    for letter in GATES:
        places[letter] = at
        at += _WIDE if letter == "M" else _STEP
    return places


def _block() -> float:
    """Width of one profile's columns."""
    return max(gate_places().values()) + 18 + _VERDICT


def draw(rows: pl.DataFrame, metric: str) -> Spec:
    """The whole matrix; ``rows`` hold ``verdict`` and ``told`` besides what `rows_of` gives."""
    layers = rows.select(*LAYER, "role", "raw_score", "n_subject_runs").unique(
        LAYER, maintain_order=True
    )
    size = size_for(layers.height)
    placed, bottom = _placed(layers, size)
    profiles = [own for own in PROFILES if own in set(rows["gate_profile"])]
    width = _GATES_AT + len(profiles) * _block() - 8
    canvas = Canvas(width, bottom + 44)
    _names(canvas, placed, size, width)
    _scores(canvas, placed, size, metric)
    at = placed.select(*LAYER, "y", "new_model")
    for i, profile in enumerate(profiles):
        own = rows.filter(gate_profile=profile).join(at, on=LAYER, maintain_order="left")
        left = _GATES_AT + i * _block()
        _profile_head(canvas, profile, left)
        _symbols(canvas, own, left, size)
        _verdicts(canvas, own, left, size)
    _legend(canvas, bottom + 18)
    return canvas.spec()


def _legend(canvas: Canvas, y: float) -> None:
    """What symbols and letters mean, below the rows."""
    first, second, third, fourth = ({"x": x, "y": y} for x in (_MODEL, 130, 252, 374))
    canvas.symbols([first], "circle", radius=5, fill="pass")
    canvas.symbols([second], "circle", radius=5, edge="pass", thick=1.2)
    canvas.symbols([second], wedge(1 / 3), radius=5, fill="pass")
    canvas.symbols([third], CROSS, radius=5, edge="fail", thick=1.8)
    canvas.symbols([fourth], DASH, radius=5, edge="line", thick=1.5)
    told = ("all claims pass", "some do, n/m", "none passes", "not confirmatory, no gate can pass")
    canvas.words(
        [
            {"x": own["x"] + 10, "y": y, "text": text}
            for own, text in zip((first, second, third, fourth), told, strict=True)
        ],
        size=10,
    )
    letters = " · ".join(f"{letter} {name}" for letter, name in GATE_NAMES.items())
    canvas.words([{"x": _MODEL - 5, "y": y + 17, "text": letters}], size=10, ink="muted")


def _placed(layers: pl.DataFrame, size: Size) -> tuple[pl.DataFrame, float]:
    """Middle of every row from the top; a new dataset opens with a heading."""
    at, y = [], float(_HEAD)
    for i, row in enumerate(layers.iter_rows(named=True)):
        before = layers.row(i - 1, named=True) if i else {}
        if row["dataset"] != before.get("dataset"):
            y += 22 + (6 if i else 0)
        same = (row["dataset"], row["model"]) == (before.get("dataset"), before.get("model"))
        at.append((y + size.row / 2, not same))
        y += size.row
    placed = layers.with_columns(
        pl.Series("y", [own[0] for own in at], dtype=pl.Float64),
        pl.Series("new_model", [own[1] for own in at], dtype=pl.Boolean),
    )
    return placed, y


def _names(canvas: Canvas, placed: pl.DataFrame, size: Size, width: float) -> None:
    canvas.words([{"x": _MODEL, "y": _HEAD - 8, "text": "model"}], size=10, ink="muted")
    canvas.words(
        [{"x": _LAYER_END, "y": _HEAD - 8, "text": "layer"}], size=10, ink="muted", align="right"
    )
    first = placed.unique("dataset", keep="first", maintain_order=True)
    canvas.boxes(
        first.select(
            x=pl.lit(0.0),
            x2=pl.lit(float(width)),
            y=pl.col("y") - size.row / 2 - 20,
            y2=pl.col("y") - size.row / 2 - 2,
        ),
        fill="band",
    )
    heads = first.select(x=pl.lit(4.0), y=pl.col("y") - size.row / 2 - 11, text="dataset")
    canvas.words(heads, bold=True, limit=_GATES_AT - 84)
    end = pl.lit(_GATES_AT - 14.0)
    canvas.words(
        first.select(x=end, y=heads["y"], text="role"), size=10, ink="muted", align="right"
    )
    canvas.words(_model_names(placed, size), size=size.font)
    numbers = placed.select(
        x=pl.lit(float(_LAYER_END)), y="y", text=pl.col("layer").cast(pl.String)
    )
    canvas.words(numbers, size=size.font, align="right")


def _model_names(placed: pl.DataFrame, size: Size) -> list[dict[str, Any]]:
    """Each model's name at its first layer; a long one goes on beside the next ones."""
    wide = int((_LAYER_END - _MODEL - 22) / (0.54 * size.font))
    a_row, step = (2, 13.0) if size.two_lines else (1, float(size.row))
    shown = []
    for (_, model), own in placed.group_by("dataset", "model", maintain_order=True):
        pieces = folded(str(model), wide, a_row * own.height)
        shift = -step / 2 if size.two_lines and len(pieces) > 1 else 0.0
        shown += [
            {
                "x": _MODEL,
                "y": own["y"][i // a_row] + shift + step * (i % a_row),
                "text": piece,
            }
            for i, piece in enumerate(pieces)
        ]
    return shown


def _scores(canvas: Canvas, placed: pl.DataFrame, size: Size, metric: str) -> None:
    """Bars from zero, to the right where positive, hollow to the left where negative, with the number beside."""
    known = placed.filter(pl.col("raw_score").is_not_null())
    low = min(0.0, *known["raw_score"].to_list(), 0.0)
    high = max(0.0, *known["raw_score"].to_list(), 0.0)
    per_unit = (_SCORE_WIDTH - 38) / (high - low) if high > low else 0.0
    zero = _SCORE + 38 - low * per_unit
    canvas.words([{"x": _SCORE, "y": _HEAD - 22, "text": "raw score"}], size=10, ink="muted")
    canvas.words(
        [{"x": _SCORE, "y": _HEAD - 8, "text": f"held-out {metric_name(metric)}"}],
        size=10,
        ink="muted",
        limit=_GATES_AT - _SCORE - 8,
    )
    bars = known.with_columns(
        pl.Series(MARK, [_score_mark(row) for row in known.iter_rows(named=True)], dtype=pl.String),
        x=pl.min_horizontal(pl.lit(zero), zero + pl.col("raw_score") * per_unit),
        x2=pl.max_horizontal(pl.lit(zero), zero + pl.col("raw_score") * per_unit),
        top=pl.col("y") - size.radius,
        bottom=pl.col("y") + size.radius,
    ).with_columns(y="top", y2="bottom")
    canvas.boxes(bars.filter(pl.col("raw_score") > 0), fill="real")
    canvas.boxes(bars.filter(pl.col("raw_score") <= 0), fill="paper", edge="control")
    ends = placed.group_by("dataset", maintain_order=True).agg(
        pl.col("y").min().alias("top"), pl.col("y").max().alias("bottom")
    )
    canvas.lines(
        ends.select(
            x=pl.lit(zero),
            x2=pl.lit(zero),
            y=pl.col("top") - size.row / 2,
            y2=pl.col("bottom") + size.row / 2,
        )
    )
    shown = [
        {"x": _SCORE + 30, "y": row["y"], "text": number(row["raw_score"], 2)}
        for row in placed.iter_rows(named=True)
    ]
    canvas.words(shown, size=size.font, align="right")


def _score_mark(row: dict[str, Any]) -> str:
    where = f"{row['dataset']}, {row['model']}, layer {row['layer']}"
    return mark(
        f"{where}: raw score {number(row['raw_score'])}, mean over {counted(row['n_subject_runs'], 'subject-run')}",
        dataset=row["dataset"],
        model=row["model"],
        layer=row["layer"],
        value=row["raw_score"],
    )


def _profile_head(canvas: Canvas, profile: str, left: float) -> None:
    canvas.words([{"x": left, "y": 8, "text": PROFILES[profile]}], size=13, bold=True)
    canvas.words([{"x": left, "y": 24, "text": f"gate profile {profile}"}], size=10, ink="muted")
    canvas.words(
        [{"x": left + x, "y": _HEAD - 8, "text": letter} for letter, x in gate_places().items()],
        bold=True,
        align="center",
    )
    at = left + max(gate_places().values()) + 18
    head = [{"x": at, "y": _HEAD - 8, "text": "best verdict · failed gate: beaten by"}]
    canvas.words(head, size=10, ink="muted", limit=_VERDICT)


def _cell(row: dict[str, Any], letter: str) -> str:
    gate = f"gate {letter}, {GATE_NAMES[letter]}"
    where = (
        f"{row['dataset']}, {row['model']}, layer {row['layer']}; {PROFILES[row['gate_profile']]}"
    )
    if not row["confirmatory"]:
        text = f"{where}, {gate}: not confirmatory, no gate can pass"
    else:
        text = f"{where}, {gate}: {row[letter]} of {row['n_claims']} claims pass"
    return mark(
        text,
        dataset=row["dataset"],
        model=row["model"],
        layer=row["layer"],
        profile=row["gate_profile"],
        value=row[letter],
    )


def _symbols(canvas: Canvas, rows: pl.DataFrame, left: float, size: Size) -> None:
    """Discs, part discs, crosses and dashes of one profile."""
    cells = [
        {
            "x": left + x,
            "y": row["y"],
            "share": row[letter] / row["n_claims"],
            "judged": row["confirmatory"],
            "text": f"{row[letter]}/{row['n_claims']}",
            "numbered": letter == "M",
            MARK: _cell(row, letter),
        }
        for row in rows.iter_rows(named=True)
        for letter, x in gate_places().items()
    ]
    frame = pl.DataFrame(cells, infer_schema_length=None)
    judged = frame.filter("judged")
    part = judged.filter((pl.col("share") > 0) & (pl.col("share") < 1))
    canvas.symbols(judged.filter(pl.col("share") == 1), "circle", radius=size.radius, fill="pass")
    canvas.symbols(
        judged.filter(pl.col("share") == 0),
        CROSS,
        radius=size.radius,
        edge="fail",
        thick=size.radius / 3,
    )
    canvas.symbols(
        frame.filter(~pl.col("judged")), DASH, radius=size.radius, edge="line", thick=1.5
    )
    canvas.symbols(part, "circle", radius=size.radius, fill="paper", edge="pass", thick=1.2)
    for (share,), own in part.group_by("share", maintain_order=True):
        canvas.symbols(own.drop(MARK), wedge(float(str(share))), radius=size.radius, fill="pass")
    beside = part.filter("numbered").with_columns(x=pl.col("x") + size.radius + 4).drop(MARK)
    canvas.words(beside, size=min(size.font, 10))


def _verdicts(canvas: Canvas, rows: pl.DataFrame, left: float, size: Size) -> None:
    """The verdict, in bold where it is positive, and what it failed on: beside it, or below where there is room."""
    at = left + max(gate_places().values()) + 18
    marks = [
        mark(
            row["told"],
            dataset=row["dataset"],
            model=row["model"],
            layer=row["layer"],
            profile=row["gate_profile"],
        )
        for row in rows.iter_rows(named=True)
    ]
    below = pl.col("failed") != ""
    both = pl.when(below).then(pl.concat_str("verdict", pl.lit(" · "), "failed"))
    shown = rows.with_columns(
        pl.Series(MARK, marks, dtype=pl.String),
        x=pl.lit(at),
        y=pl.when(below & pl.lit(size.two_lines)).then(pl.col("y") - 6).otherwise(pl.col("y")),
        text=pl.col("verdict") if size.two_lines else both.otherwise(pl.col("verdict")),
    )
    font = min(size.font, 10)
    letters = int(_VERDICT / (0.5 * font))
    shown = shown.with_columns(
        pl.col("text", "failed").map_elements(lambda t: short(t, letters), pl.String)
    )
    strong = pl.col("label").str.ends_with("_candidate") | (pl.col("label") == "predictive_only")
    for best, own in ((True, shown.filter(strong)), (False, shown.filter(~strong))):
        canvas.words(own, size=font, bold=best, limit=_VERDICT - 4)
    if size.two_lines:
        second = shown.filter(below).with_columns(y=pl.col("y") + 13, text="failed").drop(MARK)
        canvas.words(second, size=font, ink="muted", limit=_VERDICT - 4)
