"""Panels: marks stand where their numbers say, look as asked, and charts stay plain Altair charts."""

from __future__ import annotations

import pickle
import re
import xml.etree.ElementTree as ElementTree

import altair as alt
import jsonschema
import polars as pl
import pytest
from altair.vegalite.v6.schema.core import load_schema

from lpact.report import panels
from lpact.report.figure import Figure, Missing, figure, with_marks
from lpact.report.panels import CROSS, Classes, Look
from lpact.report.render import to_svg
from lpact.report.theme import DIVERGING, RAMP, colour, unknown_colours
from lpact.tables import SOURCE_FILES

SVG = "{http://www.w3.org/2000/svg}"
ROWS = with_marks(
    pl.DataFrame(
        {
            "name": ["a", "b", "c"],
            "value": [0.25, -0.5, None],
            "low": [0.0, -0.75, None],
            "high": [0.5, 0.0, None],
        }
    ),
    lambda row: str(row["name"]),
    "value",
)
X, Y = panels.axis("value", "score", (-1, 1)), panels.lanes("name", ["a", "b", "c"])


def drawn(*layers: alt.Chart) -> ElementTree.Element:
    svg = to_svg(Figure("f", "t", "c", "s", panels.overlay(*layers, width=200, height=60)))
    assert unknown_colours(svg) == []
    return ElementTree.fromstring(svg)


def marked(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {str(e.get("aria-label")): e for e in root.iter() if e.get("class") == "m"}


def place(element: ElementTree.Element) -> tuple[float, float]:
    found = re.match(r"translate\(([-\d.]+),([-\d.]+)\)", element.get("transform", ""))
    assert found is not None
    return float(found[1]), float(found[2])


def test_points_stand_at_their_numbers_and_look_as_asked():
    looks = {"a": Look("circle", "pass", "pass"), "b": Look(CROSS, None, "fail")}
    found = marked(drawn(panels.points(ROWS.head(2), X, Y, looks, "name")))
    assert place(found["a"]) == pytest.approx((125, 10))
    assert place(found["b"]) == pytest.approx((50, 30))
    assert (found["a"].get("fill"), found["b"].get("stroke")) == (colour("pass"), colour("fail"))
    assert (found["a"].get("data-value"), found["b"].get("data-value")) == ("0.25", "-0.5")
    assert found["b"].get("d", "").count("M") == 2


def test_intervals_span_low_to_high_and_missing_ones_are_left_out():
    found = marked(drawn(panels.intervals(ROWS, "x", Y, X)))
    assert set(found) == {"a", "b"}
    start, length = place(found["a"])[0], abs(float(found["a"].get("x2", "nan")))
    assert (min(start, 100.0), length) == pytest.approx((100, 50))


def test_bars_start_at_zero():
    found = marked(drawn(panels.bars(ROWS.head(2), X, Y, "real")))
    starts = {
        name: [float(n) for n in re.findall(r"M([-\d.]+),[-\d.]+h([-\d.]+)", e.get("d", ""))[0]]
        for name, e in found.items()
    }
    assert starts["a"] == pytest.approx([100, 25])
    assert starts["b"] == pytest.approx([50, 50])


def test_cells_are_painted_by_class_and_missing_ones_have_their_own_colour():
    classes = panels.diverging(pl.Series([2.0, -1.0, None]))
    assert classes.bounds == (-1, -0.4, -0.1, 0.1, 0.4, 1)
    values = [-3.0, -0.5, -0.2, 0.0, 0.1, 0.4, 1.0, None, float("nan")]
    painted = classes.paint(pl.DataFrame({"v": values}), "v")
    expected = [*(colour(role) for role in DIVERGING), colour("missing"), colour("missing")]
    assert painted["fill"].to_list() == expected
    inks = painted["ink"].to_list()
    assert inks[0] == inks[6] == colour("on_strong")
    assert inks[3] == inks[7] == colour("on_light")


@pytest.mark.parametrize(("value", "rounded"), [(0.73, 0.5), (0.2, 0.2), (49, 20), (1, 1), (0, 0.001), (-3, 0.001)])
def test_class_bounds_are_round(value, rounded):
    assert panels.round_down(value) == pytest.approx(rounded)


def test_a_domain_holds_every_finite_number_and_zero():
    low, high = panels.domain(pl.Series([0.2, None, 0.8]), [float("inf")])
    assert low == 0
    assert high > 0.8
    low, high = panels.domain([-0.5, -0.1])
    assert low < -0.5
    assert high == 0
    low, high = panels.domain([])
    assert low < 0 < high


def test_a_key_wraps_and_names_everything():
    entries = [(f"meaning {i}", Look("circle", "real", "real")) for i in range(9)]
    bounds = [str(i) for i in range(6)]
    key = panels.key(*entries, ("classes", Classes(RAMP, (1, 2, 3, 4, 5, 6)), bounds), width=300)
    svg = ElementTree.fromstring(to_svg(Figure("f", "t", "c", "s", key)))
    written = [e.text for e in svg.iter(f"{SVG}text")]
    assert {*(label for label, _ in entries), "classes", *bounds} == set(written)
    rows = {place(e)[1] for e in svg.iter(f"{SVG}text")}
    assert len(rows) > 3
    assert float(svg.get("width", "nan")) < 400


@pytest.mark.parametrize(("share", "end", "large"), [(0.25, (1, 0), 0), (0.5, (0, 1), 0), (0.75, (-1, 0), 1)])
def test_a_part_of_a_disc_turns_clockwise_from_the_top(share, end, large):
    found = re.fullmatch(r"M0,0L0,-1A1,1,0,([01]),1,(-?[\d.]+),(-?[\d.]+)Z", panels.wedge(share))
    assert found is not None
    assert int(found[1]) == large
    assert (float(found[2]), float(found[3])) == pytest.approx(end, abs=1e-3)


def test_a_chart_is_valid_vega_lite_and_can_be_sent_to_another_process():
    one = panels.overlay(
        panels.dots(ROWS, X, Y, "real"),
        panels.reference(0),
        *panels.notes(ROWS, "name", {"value": 0}, Y),
        panels.separators(Y),
        width=200,
        step=20,
        title=panels.title("one", "about"),
    )
    column = panels.column(ROWS, "name", Y, 50, step=20, title="names")
    chart = panels.stacked(panels.side_by_side(column, one), panels.grid([one, one], 2), title="all")
    made = Figure("f", "t", "c", "s", chart)
    jsonschema.validate(made.spec, load_schema(), cls=jsonschema.Draft7Validator)
    assert pickle.loads(pickle.dumps(made)) == made
    assert isinstance(chart.to_dict(), dict)  # Altair's own validation accepts it, too


def test_only_the_columns_that_are_drawn_enter_the_chart():
    chart = panels.dots(ROWS.with_columns(secret=pl.lit("x")), X, Y, "real")
    first = chart.to_dict(validate=False)["data"]["values"][0]
    assert set(first) == {"mark", "name", "tooltip", "value"}
    assert first["tooltip"] == "a"


def test_a_figure_without_its_tables_says_which():
    @figure("f", "t", SOURCE_FILES)
    def make(material):
        return "because"

    class Empty:
        def __init__(self, *lacking: str) -> None:
            self.lacking = lacking

        def lacks(self, *names: str) -> tuple[str, ...]:
            return self.lacking

    assert make(Empty(SOURCE_FILES.name)) == Missing("f", "t", f"the run has no table {SOURCE_FILES.name}")
    assert make(Empty()) == Missing("f", "t", "because")
