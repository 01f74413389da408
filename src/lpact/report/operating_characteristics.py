"""Operating characteristics as pictures: power against the signal, and false passes against the nominal rate.

Profiles differ in shape, fill and place as well as in colour, so that the pictures read in grey and for any colour
vision; they follow the viewer's light or dark scheme. Each is a self-contained SVG; strings from data are escaped.
"""

from __future__ import annotations

from html import escape
from math import sqrt
from typing import Any

import polars as pl

from lpact.math.intervals import wilson_interval

GATES = {
    "predictive": "predictive",
    "severe_control": "severe controls",
    "relational": "relational",
    "mechanism_specific": "mechanism",
    "ceiling": "ceiling",
    "replication": "replication",
    "integrated": "integrated",
    "other_mechanism_specific": "other mechanisms",
    "other_integrated": "integrated, other",
}
"""Gates that are drawn, with their short names."""

_STYLE = """<style>
.paper{fill:#fff}.ink{fill:#1a1a1a}.line{stroke:#8a8a8a}.grid{stroke:#8a8a8a;stroke-opacity:.25}
.point{stroke:#d55e00;fill:#fff}.tests{stroke:#0072b2;fill:#0072b2}.nominal{stroke:#1a1a1a}
@media(prefers-color-scheme:dark){.paper{fill:#161616}.ink{fill:#ececec}.point{stroke:#ff8c42;fill:#161616}
.tests{stroke:#56b4e9;fill:#56b4e9}.nominal{stroke:#ececec}}
</style>"""
_MARKS = ("point", "tests")
MARGIN, HEAD, FOOT = 16, 56, 34
PANEL, PANEL_GAP, ROW_HEIGHT = 104, 34, 186
ROW, LABEL, AXIS, COUNT = 30, 230, 520, 130
TICKS = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)


def power_svg(rates: pl.DataFrame) -> str:
    """Draw power against the signal-to-noise ratio: a row a truth, a panel a gate, both profiles in each.

    ``rates`` are rows of ``calibration/rates``; cells of the same signal-to-noise ratio are taken together.
    """
    power = _pooled(rates.filter(pl.col("role") == "power", pl.col("gate").is_in(list(GATES))))
    truths = power["truth"].unique(maintain_order=True).to_list()
    n_panels = max((power.filter(truth=truth)["gate"].n_unique() for truth in truths), default=1)
    width = max(2 * MARGIN + n_panels * (PANEL + PANEL_GAP), 760)
    profiles = _profiles(rates)
    body = [_legend(profiles, "Power: share of studies in which a gate passes, 95 % intervals")]
    for row, truth in enumerate(truths):
        own, top = power.filter(truth=truth), HEAD + row * ROW_HEIGHT
        body.append(_text(MARGIN, top + 14, f"truth: {truth}", 'font-weight="600"'))
        for column, gate in enumerate(own["gate"].unique(maintain_order=True)):
            left = MARGIN + 24 + column * (PANEL + PANEL_GAP)
            body.append(_power_panel(own.filter(gate=gate), gate, left, top + 44, profiles))
    return _picture(width, HEAD + len(truths) * ROW_HEIGHT + FOOT, body, "Power of the gates")


def _pooled(rates: pl.DataFrame) -> pl.DataFrame:
    """Passes and studies by truth, gate, profile and signal, gates in the order of the chain."""
    order = pl.col("gate").replace_strict(
        {gate: i for i, gate in enumerate(GATES)}, return_dtype=pl.Int64
    )
    keys = ["truth", "gate", "gate_profile", "snr"]
    pooled = rates.with_columns(order=order).group_by([*keys, "order"])
    return pooled.agg(pl.col("n_passes").sum(), pl.col("n_studies").sum()).sort(
        "truth", "order", "gate_profile", "snr"
    )


def _power_panel(
    points: pl.DataFrame, gate: str, left: float, top: float, profiles: list[str]
) -> str:
    """One panel: signal-to-noise ratio across, share of passes upwards."""
    strengths = points["snr"].unique().sort().to_list()
    largest = max(*strengths, 1e-9) if len(strengths) > 1 else 2.0 * strengths[0] or 1.0
    parts = [_text(left, top - 6, GATES[gate], 'font-size="11"')]
    for share in (0.0, 0.5, 1.0):
        y = top + PANEL * (1.0 - share)
        parts.append(_line(left, y, left + PANEL, y, "grid"))
        if left < MARGIN + PANEL:
            parts.append(_text(left - 6, y + 4, f"{share:g}", 'font-size="10" text-anchor="end"'))
    for strength in strengths:
        x = left + PANEL * strength / largest
        parts.append(
            _text(x, top + PANEL + 13, f"{strength:g}", 'font-size="10" text-anchor="middle"')
        )
    for place, profile in enumerate(profiles):
        own = points.filter(gate_profile=profile)
        shift = 5.0 * (place - (len(profiles) - 1) / 2.0)
        at = []
        for row in own.iter_rows(named=True):
            x = left + PANEL * row["snr"] / largest + shift
            low, high = wilson_interval(row["n_passes"], row["n_studies"])
            y = top + PANEL * (1.0 - row["n_passes"] / row["n_studies"])
            at.append((x, y))
            ends = (top + PANEL * (1.0 - high), top + PANEL * (1.0 - low))
            parts.append(_line(x, ends[0], x, ends[1], _MARKS[place % 2], 'stroke-width="1.5"'))
        parts.append(_path(at, place))
        parts += [_mark(x, y, place) for x, y in at]
    sizes = points["n_studies"].to_list()
    told = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)}–{max(sizes)}"
    note = f"snr; n = {told} a point"
    parts.append(
        _text(left + PANEL / 2, top + PANEL + 26, note, 'font-size="9" text-anchor="middle"')
    )
    return "\n".join(parts)


def false_pass_svg(truth_rates: pl.DataFrame) -> str:
    """Draw how often gates pass that should not: a block a truth, a line a gate, on a square-root scale.

    ``truth_rates`` are rows of ``calibration/truth_rates``. The dashed line is the nominal rate.
    """
    false = truth_rates.filter(
        pl.col("role") == "false_pass", pl.col("gate").is_in(list(GATES))
    ).sort("truth")
    profiles = _profiles(truth_rates)
    body = [_legend(profiles, "False passes: share of studies in which a gate passes in error")]
    y = HEAD + 14
    nominal = false["alpha"].drop_nulls().max()
    for truth in false["truth"].unique(maintain_order=True):
        own = false.filter(truth=truth)
        body.append(_text(MARGIN, y, f"truth: {truth}", 'font-weight="600"'))
        first = y + 8
        for gate in [g for g in GATES if g in own["gate"]]:
            y += ROW
            body.append(_false_pass_line(own.filter(gate=gate), gate, y, profiles))
        body.append(_scale(first, y + 12, nominal if isinstance(nominal, float) else None))
        y += 52
    width = LABEL + AXIS + COUNT * len(profiles) + MARGIN
    return _picture(width, y + FOOT - 14, body, "False-pass rates of the gates")


def _false_pass_line(rows: pl.DataFrame, gate: str, y: float, profiles: list[str]) -> str:
    parts = [_text(MARGIN + 12, y + 4, GATES[gate])]
    for row in rows.iter_rows(named=True):
        place = profiles.index(row["gate_profile"])
        at = y + 9.0 * (place - (len(profiles) - 1) / 2.0)
        ends = (_across(row["low"]), _across(row["high"]))
        parts.append(_line(ends[0], at, ends[1], at, _MARKS[place % 2], 'stroke-width="1.5"'))
        parts.append(_mark(_across(row["rate"]), at, place))
        count = f"{row['n_passes']} of {row['n_studies']}"
        x = LABEL + AXIS + 20 + place * COUNT
        parts.append(_text(x, y + 4, f"{row['gate_profile']} {count}", 'font-size="10"'))
    return "\n".join(parts)


def _scale(top: float, bottom: float, nominal: float | None) -> str:
    """The scale under a block of false-pass rates, with the nominal rate."""
    parts = []
    for tick in TICKS:
        x = _across(tick)
        parts.append(_line(x, top, x, bottom, "grid"))
        parts.append(_text(x, bottom + 13, f"{tick:g}", 'font-size="10" text-anchor="middle"'))
    if nominal is not None:
        x = _across(nominal)
        dashed = 'stroke-dasharray="4 3"'
        parts.append(_line(x, top - 4, x, bottom, "nominal", dashed))
        parts.append(
            _text(x, top - 6, f"nominal {nominal:g}", 'font-size="9" text-anchor="middle"')
        )
    return "\n".join(parts)


def _across(rate: float) -> float:
    return LABEL + AXIS * sqrt(rate)


def _profiles(rates: pl.DataFrame) -> list[str]:
    """Profiles, point rules first."""
    names = rates["gate_profile"].unique().sort().to_list()
    return sorted(names, key=lambda name: (name != "paper", name))


def _legend(profiles: list[str], title: str) -> str:
    parts = [_text(MARGIN, 22, title, 'font-weight="600"')]
    for place, profile in enumerate(profiles):
        x = MARGIN + 8 + 150 * place
        parts += [_mark(x, 40, place), _text(x + 12, 44, profile)]
    return "\n".join(parts)


def _mark(x: float, y: float, place: int) -> str:
    """An open disc for the first profile, a filled square for the second."""
    if place % 2 == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" class="{_MARKS[0]}" stroke-width="1.5"/>'
    return (
        f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4" class="{_MARKS[1]}"/>'
    )


def _path(points: list[tuple[float, float]], place: int) -> str:
    dash = 'stroke-dasharray="3 3"' if place % 2 == 0 else ""
    at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{at}" class="{_MARKS[place % 2]}" style="fill:none" {dash}/>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, extra: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}" {extra}/>'


def _text(x: float, y: float, content: Any, extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="ink" {extra}>{escape(str(content))}</text>'


def _picture(width: float, height: float, body: list[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="{escape(label)}">\n'
        f'{_STYLE}\n<rect width="{width:.0f}" height="{height:.0f}" class="paper"/>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )
