"""The decision matrix as a picture: one row a (dataset, model, layer), one column a gate.

Pass and fail differ in shape as well as colour, so that the picture reads in grey and for any colour vision. It is a
self-contained SVG; strings from data are escaped.
"""

from __future__ import annotations

from html import escape

import polars as pl

from lpact.reasons import FinalLabel

GATES = {
    "P": "predictive",
    "S": "severe_control",
    "R": "relational",
    "M": "mechanism_specific",
    "T": "ceiling",
    "Rep": "replication",
}
"""Column of the decision table behind each letter."""

ROW_HEIGHT, TOP, BOTTOM = 24, 64, 46
NAME_X, SCORE_X, GATE_X, GATE_STEP, VERDICT_X, WIDTH = 16, 240, 424, 40, 666, 1100
SCORE_ZERO, SCORE_SCALE = 312, 80.0
BLUE, VERMILION, GREY, INK = "#0072b2", "#d55e00", "#8a8a8a", "#1a1a1a"
_RANK = {label.value: i for i, label in enumerate(FinalLabel)}


def decision_matrix_svg(decisions: pl.DataFrame) -> str:
    """Draw a decision table; each layer is shown by the mechanism that passes most gates."""
    rows = best_mechanisms(decisions)
    height = TOP + ROW_HEIGHT * len(rows) + BOTTOM
    body = [
        _head(),
        *(_row(row, TOP + ROW_HEIGHT * i) for i, row in enumerate(rows)),
        _legend(height),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui, sans-serif" font-size="13" role="img" '
        f'aria-label="Decision matrix: claims by gates">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def best_mechanisms(decisions: pl.DataFrame) -> list[dict[str, object]]:
    """One row a dataset, model and layer: its mechanism with the most gates passed, strongest label first."""
    passed = pl.sum_horizontal([pl.col(column).cast(pl.Int64) for column in GATES.values()])
    ranked = decisions.with_columns(
        n_passed=passed, rank=pl.col("label").replace_strict(_RANK, return_dtype=pl.Int64)
    ).sort("dataset", "model", "layer", -pl.col("n_passed"), "rank", "mechanism")
    return ranked.group_by("dataset", "model", "layer", maintain_order=True).first().to_dicts()


def _text(x: float, y: float, content: object, *, extra: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="{INK}" {extra}>{escape(str(content))}</text>'


def _head() -> str:
    bold = 'font-weight="600"'
    parts = [
        _text(NAME_X, TOP - 26, "dataset / model / layer", extra=bold),
        _text(SCORE_X, TOP - 26, "brain score", extra=bold),
        _text(VERDICT_X, TOP - 26, "verdict, and what it failed on", extra=bold),
    ]
    for i, letter in enumerate(GATES):
        parts.append(
            _text(GATE_X + GATE_STEP * i, TOP - 26, letter, extra=f'{bold} text-anchor="middle"')
        )
    parts.append(
        f'<line x1="{NAME_X}" y1="{TOP - 16}" x2="{WIDTH - 16}" y2="{TOP - 16}" stroke="{GREY}"/>'
    )
    return "\n".join(parts)


def _row(row: dict[str, object], y: float) -> str:
    parts = [_text(NAME_X, y + 5, f"{row['dataset']} / {row['model']} / {row['layer']}")]
    score = row["raw_score"]
    if isinstance(score, float):
        length = min(abs(score), 1.0) * SCORE_SCALE
        left, colour = (SCORE_ZERO, BLUE) if score > 0 else (SCORE_ZERO - length, GREY)
        parts.append(_text(SCORE_X, y + 5, f"{score:+.2f}"))
        parts.append(
            f'<rect x="{left:.1f}" y="{y - 7}" width="{length:.1f}" height="13" fill="{colour}" fill-opacity="0.4"/>'
        )
    for i, column in enumerate(GATES.values()):
        parts.append(_mark(GATE_X + GATE_STEP * i, y, passed=bool(row[column])))
    why = (
        ""
        if row["first_failed_gate"] == "none"
        else f" — {row['first_failed_gate']}: {row['beaten_by']}"
    )
    weight = 'font-weight="600"' if row["label"] == FinalLabel.INTEGRATED_CANDIDATE else ""
    parts.append(_text(VERDICT_X, y + 5, f"{row['label']}{why}", extra=weight))
    return "\n".join(parts)


def _mark(x: float, y: float, *, passed: bool) -> str:
    """A filled disc for a pass, a cross for a failure."""
    if passed:
        return f'<circle cx="{x}" cy="{y}" r="6" fill="{BLUE}"><title>pass</title></circle>'
    return (
        f'<path d="M{x - 5} {y - 5}L{x + 5} {y + 5}M{x + 5} {y - 5}L{x - 5} {y + 5}" stroke="{VERMILION}" '
        f'stroke-width="2"><title>fail</title></path>'
    )


def _legend(height: float) -> str:
    y = height - 18
    words = (
        "P predictive   S severe controls   R relational   M mechanism   T brain–brain ceiling   Rep replication; "
        "each layer by its best mechanism"
    )
    return _text(NAME_X, y, words, extra='font-size="11" xml:space="preserve"')
