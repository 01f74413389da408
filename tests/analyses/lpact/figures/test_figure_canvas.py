"""Pictures that are tables: places in pixels, long names folded, parts of discs."""

from __future__ import annotations

import re

import pytest
from figure_checks import checked_svg, marks, texts

from lpact.analyses.lpact.figures.canvas import CROSS, Canvas, wedge
from lpact.analyses.lpact.figures.short_names import folded
from lpact.report.figure import Figure, mark


def test_marks_stand_where_they_are_told_to():
    canvas = Canvas(200, 100)
    canvas.boxes([{"x": 10, "y": 20, "x2": 60, "y2": 35, "mark": mark("box")}], fill="pass")
    canvas.symbols([{"x": 80, "y": 50, "mark": mark("cross")}], CROSS, radius=10, edge="fail")
    canvas.lines([{"x": 0, "y": 90, "x2": 200, "y2": 90}])
    canvas.words([{"x": 5, "y": 95, "text": "a long text that does not fit"}], limit=40)
    canvas.words([])
    root = checked_svg(Figure("f", "t", "c", canvas.spec(), "s"))
    box, cross = marks(root)
    assert (box.text, box.element.get("d")) == ("box", "M10,20h50v15h-50Z")
    assert (cross.text, cross.element.get("transform")) == ("cross", "translate(80,50)")
    assert cross.element.get("d", "").startswith("M-7,-7L7,7")
    (text,) = texts(root)
    assert re.fullmatch(r"a lo.*…", text)


@pytest.mark.parametrize(
    ("share", "end", "large"), [(0.25, (1, 0), 0), (0.5, (0, 1), 0), (0.75, (-1, 0), 1)]
)
def test_a_part_of_a_disc_turns_clockwise_from_the_top(share, end, large):
    found = re.fullmatch(r"M0,0L0,-1A1,1,0,([01]),1,(-?[\d.]+),(-?[\d.]+)Z", wedge(share))
    assert found is not None
    assert int(found[1]) == large
    assert (float(found[2]), float(found[3])) == pytest.approx(end, abs=1e-3)


def test_long_names_go_on_below_and_lose_their_middle_last():
    assert folded("short", 10, 1) == ["short"]
    assert folded("abcdefghij", 5, 2) == ["abcde", "fghij"]
    assert folded("abcdefghijklmn", 5, 1) == ["ab…mn"]
    assert folded("", 5, 1) == [""]
