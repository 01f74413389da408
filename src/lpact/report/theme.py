"""The look of every figure: palette roles with a light and a dark colour, and the Vega-Lite configuration.

A figure is drawn once, in the light colours. Every colour in it is one of the roles below, so that exchanging colours
gives the dark picture, and the one that follows the page. Categorical colours differ in
lightness as well as in hue, so that they stay apart for all common kinds of colour vision; ramps change steadily in
lightness, so that they read in grey. Text over a cell is ``on_strong`` from ``ramp4``, ``below2`` and ``above2`` on,
and ``on_light`` on weaker ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Colour:
    """A palette role: its name in style sheets, and its colour on light and on dark paper."""

    role: str
    light: str
    dark: str


_PALETTE = (
    # role, light, dark
    ("paper", "#ffffff", "#15181c"),
    ("ink", "#1a1a1a", "#ececee"),
    ("muted", "#5a5f66", "#a8aeb6"),
    ("line", "#8a8f96", "#7a8088"),
    ("grid", "#e3e5e8", "#2c3138"),
    ("band", "#f3f4f6", "#1e2228"),
    ("pass", "#0072b2", "#56b4e9"),
    ("fail", "#c24e00", "#ff8c42"),
    ("real", "#0b84c4", "#4ab4f5"),
    ("nuisance", "#c28500", "#f5d95c"),
    ("control", "#8b9098", "#a9aeb6"),
    ("winner", "#ab4000", "#e0481f"),
    ("brain", "#005c4d", "#2f8a72"),
    ("other", "#8a4384", "#b04fa3"),
    ("missing", "#c9cdd2", "#454b54"),
    ("on_light", "#1b1b1b", "#ededef"),
    ("on_strong", "#fefefe", "#101214"),
    # A ramp from nothing to much: steadily darker on light paper, steadily brighter on dark paper.
    ("ramp0", "#f0f4f8", "#1d242c"),
    ("ramp1", "#cfdfed", "#23394b"),
    ("ramp2", "#a3c6e0", "#29526f"),
    ("ramp3", "#6ba6cd", "#2f6d93"),
    ("ramp4", "#2f7aab", "#4a9fce"),
    ("ramp5", "#126294", "#7cc1e8"),
    ("ramp6", "#084069", "#b5def7"),
    # A ramp from below to above, with the paper's own shade in the middle.
    ("below3", "#8f3a00", "#ffb27a"),
    ("below2", "#b85712", "#d97a35"),
    ("below1", "#f0b98a", "#7d4a26"),
    ("middle", "#f2f2f1", "#22262b"),
    ("above1", "#9cc3df", "#27506e"),
    ("above2", "#2c78a9", "#3d8fc2"),
    ("above3", "#0a4a78", "#8fd0f5"),
)
PALETTE: Mapping[str, Colour] = {role: Colour(role, *both) for role, *both in _PALETTE}
"""Every colour that a figure may use, by role."""

RAMP = tuple(f"ramp{i}" for i in range(7))
DIVERGING = ("below3", "below2", "below1", "middle", "above1", "above2", "above3")

FONT = "Liberation Sans, Arial, Helvetica, Arimo, Nimbus Sans, FreeSans, sans-serif"
"""It has the widths of Arial and comes with vl-convert, so pictures are the same on every machine."""


def colour(role: str) -> str:
    """The light colour of a palette role, as figures are drawn in."""
    return PALETTE[role].light


def colours(roles: tuple[str, ...]) -> list[str]:
    """Light colours of several roles."""
    return [colour(role) for role in roles]


_BY_LIGHT = {own.light: own for own in PALETTE.values()}
_PAINT = re.compile(r' (?P<what>fill|stroke|stop-color)="(?P<colour>[^"]*)"')
"""A colour of a mark. Names from data have no bare quotes, so that none of them looks like this."""

_NO_COLOUR = frozenset({"none", "transparent", "currentColor"})


def dark(svg: str) -> str:
    """The same picture in dark colours."""
    return _painted(svg, lambda own: _known(own).dark)


def following_page(svg: str) -> str:
    """The same picture with style-sheet variables for colours, so that it follows the page's theme."""
    return _painted(svg, lambda own: f"var(--{_known(own).role}, {own})")


def following_viewer(svg: str) -> str:
    """The same picture with its dark colours in a style sheet, for viewers who ask for them.

    The colours in the marks stay the light ones, so that programs without style sheets draw those.
    """
    used = sorted({(found["what"], found["colour"]) for found in _PAINT.finditer(svg)})
    rules = "".join(
        f'[{what}="{own}"]{{{what}:{_BY_LIGHT[own].dark}}}'
        for what, own in used
        if own in _BY_LIGHT
    )
    style = f"<style>@media(prefers-color-scheme:dark){{{rules}}}</style>"
    return re.sub(r"<svg\b[^>]*>", lambda found: found[0] + style, svg, count=1)


def grey(svg: str) -> str:
    """The same picture without colour, by luminance: what a grey print shows."""
    return _painted(svg, _grey)


def _painted(svg: str, change: Callable[[str], str]) -> str:
    return _PAINT.sub(
        lambda found: (
            f' {found["what"]}="{change(found["colour"])}"'
            if found["colour"].startswith("#")
            else found[0]
        ),
        svg,
    )


def _grey(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    level = round(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return f"#{level:02x}{level:02x}{level:02x}"


def strange_colours(svg: str) -> list[str]:
    """Colours of a picture that are not of the palette: none, in a figure that follows the theme."""
    found = {own["colour"] for own in _PAINT.finditer(svg)}
    return sorted(found - _BY_LIGHT.keys() - _NO_COLOUR)


def _known(light: str) -> Colour:
    return _BY_LIGHT.get(light, Colour("", light, light))


def variables(*, of_dark: bool) -> str:
    """Declarations of the palette as style-sheet variables."""
    return "".join(f"--{c.role}:{c.dark if of_dark else c.light};" for c in PALETTE.values())


def vega_config() -> dict[str, Any]:
    """Configuration that all figures share."""
    ink, muted = colour("ink"), colour("muted")
    text = {"labelColor": ink, "titleColor": ink, "labelFont": FONT, "titleFont": FONT}
    return {
        "background": colour("paper"),
        "font": FONT,
        "padding": 8,
        "view": {"stroke": None, "continuousWidth": 260, "continuousHeight": 180},
        "axis": {
            **text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "titlePadding": 6,
            "domainColor": colour("line"),
            "tickColor": colour("line"),
            "gridColor": colour("grid"),
            "tickSize": 4,
            "labelPadding": 3,
            "labelLimit": 260,
            "labelOverlap": "greedy",
        },
        "axisX": {"grid": False},
        "legend": {
            **text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "symbolSize": 70,
            "labelLimit": 260,
            "orient": "top",
            "titleOrient": "left",
            "symbolStrokeWidth": 1.5,
        },
        "header": {
            **text,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "labelFontWeight": "bold",
            "labelLimit": 400,
            "titleFontWeight": "normal",
        },
        "title": {
            "color": ink,
            "subtitleColor": muted,
            "font": FONT,
            "subtitleFont": FONT,
            "fontSize": 13,
            "subtitleFontSize": 11,
            "fontWeight": "bold",
            "anchor": "start",
            "offset": 10,
        },
        "text": {"color": ink, "font": FONT, "fontSize": 11},
        "rule": {"color": colour("line")},
        "point": {"filled": True, "size": 60, "opacity": 1},
        "range": {"category": colours(("real", "nuisance", "brain", "other", "control", "winner"))},
        "facet": {"spacing": 18},
        "concat": {"spacing": 24},
    }
