"""The palette by numbers: contrast, order in grey, and distance for every common kind of colour vision.

Contrast is that of WCAG 2.1. Colour vision is simulated with the matrices of Machado, Oliveira and Fernandes (2009,
IEEE Trans. Vis. Comput. Graph. 15) at severity 1, in linear light; distances are CIEDE2000.
"""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from lpact.report.theme import (
    DIVERGING,
    PALETTE,
    RAMP,
    colour,
    following_page,
    following_viewer,
    unknown_colours,
)

THEMES = ("light", "dark")
VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
APART = 12.0
"""Smallest CIEDE2000 distance between categories; 1 is just noticeable side by side, 10 at a glance."""

TEXT = ("ink", "muted", "pass", "fail")
MARKS = ("line", "pass", "fail", "real", "nuisance", "control", "winner", "brain", "other")
CATEGORIES = ("real", "nuisance", "control", "winner", "brain", "other")
ON_STRONG = ("ramp4", "ramp5", "ramp6", "below3", "below2", "above2", "above3")
ON_LIGHT = ("ramp0", "ramp1", "ramp2", "ramp3", "below1", "middle", "above1", "missing", "band")
_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def shown(role: str, theme: str) -> str:
    return PALETTE[role][THEMES.index(theme)]


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, vision: str) -> np.ndarray:
    seen = np.clip(VISION[vision] @ linear(colour), 0.0, 1.0)
    t = _TO_XYZ @ seen / _WHITE
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(one: np.ndarray, other: np.ndarray) -> float:
    """Colour difference after Sharma, Wu and Dalal (2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean_c = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    if c1 * c2 == 0:
        h = h1 + h2
    elif abs(h1 - h2) <= 180:
        h = (h1 + h2) / 2
    else:
        h = (h1 + h2 + (360 if h1 + h2 < 360 else -360)) / 2
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    d_hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    t = (
        1
        - 0.17 * np.cos(np.radians(h - 30))
        + 0.24 * np.cos(np.radians(2 * h))
        + 0.32 * np.cos(np.radians(3 * h + 6))
        - 0.20 * np.cos(np.radians(4 * h - 63))
    )
    s_l = 1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)
    s_c, s_h = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    swing = 60 * np.exp(-(((h - 275) / 25) ** 2))
    rotate = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(np.radians(swing))
    parts = ((l2 - l1) / s_l, (c2 - c1) / s_c, d_hue / s_h)
    return float(np.sqrt(sum(p**2 for p in parts) + rotate * parts[1] * parts[2]))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # Published test data of Sharma, Wu and Dalal (2005), table 1.
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, -1.0, 2.0), (50.0, 0.0, 0.0), 2.3669),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0009), 7.1792),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286), 0.6377),
    ],
)
def test_the_distance_is_that_of_the_standard(one, other, expected):
    assert ciede2000(np.array(one), np.array(other)) == pytest.approx(expected, abs=1e-4)


def test_contrast_is_that_of_the_standard():
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)
    assert contrast("#ffffff", "#767676") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("roles", "least"), [(TEXT, 4.5), (MARKS, 3.0)])
def test_text_and_marks_stand_out_from_the_paper(theme, roles, least):
    found = {role: contrast(shown(role, theme), shown("paper", theme)) for role in roles}
    assert {role: value for role, value in found.items() if value < least} == {}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("ink", "cells"), [("on_strong", ON_STRONG), ("on_light", ON_LIGHT)])
def test_text_over_cells_is_readable(theme, ink, cells):
    found = {role: contrast(shown(role, theme), shown(ink, theme)) for role in cells}
    assert {role: value for role, value in found.items() if value < 4.5} == {}


def test_every_cell_colour_has_its_ink():
    assert {*RAMP, *DIVERGING} <= {*ON_LIGHT, *ON_STRONG}
    assert not {*ON_LIGHT} & {*ON_STRONG}


@pytest.mark.parametrize("theme", THEMES)
def test_ramps_go_one_way_in_grey(theme):
    away = -1.0 if theme == "light" else 1.0
    ramp = [away * luminance(shown(role, theme)) for role in RAMP]
    below = [away * luminance(shown(role, theme)) for role in DIVERGING[3::-1]]
    above = [away * luminance(shown(role, theme)) for role in DIVERGING[3:]]
    for steps in (ramp, below, above):
        assert steps == sorted(steps)
        # No two neighbours look the same in grey: CIE lightness differs by at least 4.
        light = [116 * np.cbrt(abs(step)) for step in steps]
        assert min(abs(b - a) for a, b in itertools.pairwise(light)) > 4


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("roles", [("pass", "fail"), CATEGORIES, ("below2", "above2")])
def test_categories_stay_apart(theme, vision, roles):
    found = {
        pair: ciede2000(*(lab(shown(role, theme), vision) for role in pair))
        for pair in itertools.combinations(roles, 2)
    }
    assert {pair: value for pair, value in found.items() if value < APART} == {}


def test_colours_that_differ_in_hue_alone_would_be_found():
    """The bound can fail: red and green of one lightness are one colour without a green receptor."""
    pair = ("#c0504d", "#7f7f2f")
    near = ciede2000(*(lab(own, "deuteranopia") for own in pair))
    assert near < APART < ciede2000(*(lab(own, "normal") for own in pair))


def test_roles_have_colours_of_their_own():
    light = [light for light, _ in PALETTE.values()]
    assert len(set(light)) == len(light)


PICTURE = (
    f'<svg xmlns="http://www.w3.org/2000/svg"><rect fill="{colour("paper")}"/>'
    f'<path aria-label="{colour("real")}" data-dataset="{colour("fail")}" fill="none" stroke="{colour("real")}"/>'
    f"<text>{colour('real')}</text></svg>"
)


def attributes(svg: str) -> list[dict[str, str]]:
    return [dict(element.attrib) for element in ElementTree.fromstring(svg)]


def test_a_theme_changes_colours_of_marks_and_no_names():
    rect, path, text = attributes(following_page(PICTURE))
    assert path["stroke"] != colour("real")
    assert rect["fill"] != colour("paper")
    assert path["fill"] == "none"
    assert (path["aria-label"], path["data-dataset"]) == (colour("real"), colour("fail"))
    assert f">{colour('real')}</text>" in following_page(PICTURE)
    assert text == {}


def test_a_picture_for_itself_keeps_light_colours_and_brings_dark_ones():
    made = following_viewer(PICTURE)
    style, *rest = ElementTree.fromstring(made)
    assert [dict(element.attrib) for element in rest] == attributes(PICTURE)
    assert style.text is not None
    assert style.text.startswith("@media(prefers-color-scheme:dark){")
    for what, role in (("fill", "paper"), ("stroke", "real")):
        light, in_dark = PALETTE[role]
        assert f'[{what}="{light}"]{{{what}:{in_dark}}}' in style.text
    assert PALETTE["fail"][1] not in style.text


@pytest.mark.parametrize("strange", ["#123456", "black", "rgb(1,2,3)", "#fff"])
def test_unknown_colours_are_found(strange):
    assert unknown_colours(PICTURE) == []
    assert unknown_colours(PICTURE.replace('fill="none"', f'fill="{strange}"')) == [strange]
