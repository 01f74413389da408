"""The look of every figure: palette roles with a light and a dark colour, and the Vega-Lite configuration.

Figures are drawn in light colours, all of them from the palette, so exchanging colours gives the picture that follows
the page or the viewer. Categorical colours also differ in lightness, for all common kinds of colour vision; ramps
change steadily in lightness, so they read in grey. Text over a cell is ``on_strong`` from ``ramp4``, ``below2`` and
``above2`` on, and ``on_light`` on weaker ones.
"""

from __future__ import annotations

import re
from typing import Any

PALETTE: dict[str, tuple[str, str]] = {
    # role: (light, dark)
    "paper": ("#ffffff", "#15181c"),
    "ink": ("#1a1a1a", "#ececee"),
    "muted": ("#5a5f66", "#a8aeb6"),
    "line": ("#8a8f96", "#7a8088"),
    "grid": ("#e3e5e8", "#2c3138"),
    "band": ("#f3f4f6", "#1e2228"),
    "pass": ("#0072b2", "#56b4e9"),
    "fail": ("#c24e00", "#ff8c42"),
    "real": ("#0b84c4", "#4ab4f5"),
    "nuisance": ("#c28500", "#f5d95c"),
    "control": ("#8b9098", "#a9aeb6"),
    "winner": ("#ab4000", "#e0481f"),
    "brain": ("#005c4d", "#2f8a72"),
    "other": ("#8a4384", "#b04fa3"),
    "missing": ("#c9cdd2", "#454b54"),
    "on_light": ("#1b1b1b", "#ededef"),
    "on_strong": ("#fefefe", "#101214"),
    # From nothing to much: steadily darker on light paper, steadily brighter on dark paper.
    "ramp0": ("#f0f4f8", "#1d242c"),
    "ramp1": ("#cfdfed", "#23394b"),
    "ramp2": ("#a3c6e0", "#29526f"),
    "ramp3": ("#6ba6cd", "#2f6d93"),
    "ramp4": ("#2f7aab", "#4a9fce"),
    "ramp5": ("#126294", "#7cc1e8"),
    "ramp6": ("#084069", "#b5def7"),
    # From below to above, with the shade of the paper in the middle.
    "below3": ("#8f3a00", "#ffb27a"),
    "below2": ("#b85712", "#d97a35"),
    "below1": ("#f0b98a", "#7d4a26"),
    "middle": ("#f2f2f1", "#22262b"),
    "above1": ("#9cc3df", "#27506e"),
    "above2": ("#2c78a9", "#3d8fc2"),
    "above3": ("#0a4a78", "#8fd0f5"),
}
"""Every colour that a figure may use, by role."""

RAMP = tuple(f"ramp{i}" for i in range(7))
SERIES = ("real", "nuisance", "other", "winner", "ink")
"""Lines and bars of models or measures, in this order; ``brain`` is for brains."""
DIVERGING = ("below3", "below2", "below1", "middle", "above1", "above2", "above3")

FONT = "Liberation Sans, Arial, Helvetica, Arimo, Nimbus Sans, FreeSans, sans-serif"
"""The first one ships with vl-convert, so pictures are the same on every machine."""

_ROLES = {light: role for role, (light, _) in PALETTE.items()}
_PAINT = re.compile(r' (?P<what>fill|stroke|stop-color)="(?P<colour>[^"]*)"')
"""A colour of a mark. Names from data have no bare quotes, so none of them looks like this."""


def colour(role: str) -> str:
    """The light colour of a palette role, in which figures are drawn."""
    return PALETTE[role][0]


def following_page(svg: str) -> str:
    """The same picture with style-sheet variables for colours, so that it follows the page's theme."""

    def painted(found: re.Match[str]) -> str:
        own = found["colour"]
        follows = f"var(--{_ROLES.get(own, '')}, {own})" if own.startswith("#") else own
        return f' {found["what"]}="{follows}"'

    return _PAINT.sub(painted, svg)


def following_viewer(svg: str) -> str:
    """The same picture with its dark colours in a style sheet, for viewers who prefer a dark scheme.

    Marks keep their light colours, for programs without style sheets.
    """
    used = sorted({(found["what"], found["colour"]) for found in _PAINT.finditer(svg)})
    rules = "".join(f'[{what}="{own}"]{{{what}:{PALETTE[_ROLES[own]][1]}}}' for what, own in used if own in _ROLES)
    style = f"<style>@media(prefers-color-scheme:dark){{{rules}}}</style>"
    return re.sub(r"<svg\b[^>]*>", lambda found: found[0] + style, svg, count=1)


def unknown_colours(svg: str) -> list[str]:
    """Colours of a picture that are not in the palette; a figure that follows the theme has none."""
    found = {own["colour"] for own in _PAINT.finditer(svg)}
    return sorted(found - _ROLES.keys() - {"none", "transparent", "currentColor"})


def variables(*, of_dark: bool) -> str:
    """The palette as declarations of style-sheet variables."""
    return "".join(f"--{role}:{both[of_dark]};" for role, both in PALETTE.items())


def vega_config() -> dict[str, Any]:
    """Configuration that all figures share."""
    ink, muted, line = colour("ink"), colour("muted"), colour("line")
    text = {"labelColor": ink, "titleColor": ink, "labelFontSize": 11, "titleFontSize": 11}
    text |= {"labelFont": FONT, "titleFont": FONT, "titleFontWeight": "normal", "labelLimit": 260}
    lines = {"domainColor": line, "tickColor": line, "gridColor": colour("grid")}
    title = {"color": ink, "subtitleColor": muted, "font": FONT, "subtitleFont": FONT}
    return {
        "background": colour("paper"),
        "font": FONT,
        "padding": 8,
        "view": {"stroke": None, "continuousWidth": 260, "continuousHeight": 180},
        "axis": {
            **text,
            **lines,
            "titlePadding": 6,
            "tickSize": 4,
            "labelPadding": 3,
            "labelOverlap": "greedy",
        },
        "axisX": {"grid": False},
        "legend": {**text, "orient": "top", "titleOrient": "left", "symbolStrokeWidth": 1.5},
        "title": {
            **title,
            "fontSize": 13,
            "subtitleFontSize": 11,
            "fontWeight": "bold",
            "anchor": "start",
            "offset": 10,
        },
        "text": {"color": ink, "font": FONT, "fontSize": 11},
        "rule": {"color": line},
        "point": {"filled": True, "size": 60, "opacity": 1},
        "range": {"category": [colour(c) for c in ("real", "nuisance", "brain", "other", "control", "winner")]},
        "concat": {"spacing": 24},
    }
