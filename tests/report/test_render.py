"""Marks of a picture say what they stand for, names stay text, and themes only exchange colours."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import polars as pl
import pytest

from lpact.report import panels
from lpact.report.figure import Figure, mark, with_marks
from lpact.report.render import to_pdf, to_png, to_svg
from lpact.report.theme import (
    PALETTE,
    colour,
    following_page,
    following_viewer,
    unknown_colours,
)

SVG = "{http://www.w3.org/2000/svg}"
EVIL = """</title></svg><script>alert("1")</script>'&\n<img src=x onerror=alert(1)>"""


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    raw = pl.DataFrame(
        {
            "dataset": [EVIL, "b"],
            "model": ["m", EVIL],
            "layer": [1, 2],
            "score": [0.123456789012345, float("nan")],
        }
    )
    return with_marks(raw, lambda row: f"{row['dataset']}: {row['score']}", value="score")


@pytest.fixture(scope="module")
def svg(rows: pl.DataFrame) -> str:
    place = {"x": "dataset", "y": "layer"}
    layers = [
        panels.layer(rows, "point", {"color": "real"}, **place),
        panels.layer(rows, "bar", {"color": "fail"}, **place),
        panels.layer(rows, "text", text="model", **place),
    ]
    return to_svg(Figure("f", EVIL, "c", EVIL, panels.overlay(*layers, width=90, height=90)))


def marks(svg: str) -> list[ElementTree.Element]:
    return [e for e in ElementTree.fromstring(svg).iter() if e.get("class") == "m"]


def test_every_mark_says_what_it_stands_for(svg: str) -> None:
    found = marks(svg)
    assert len(found) == 6
    assert [e.get("data-layer") for e in found] == ["1", "2"] * 3
    assert {e.get("data-value") for e in found} == {"0.123456789012345", None}
    for element in found:
        title = element.find(f"{SVG}title")
        assert title is not None
        assert title.text == element.get("aria-label")


def test_names_from_data_stay_text(svg: str) -> None:
    tags = {e.tag.removeprefix(SVG) for e in ElementTree.fromstring(svg).iter()}
    assert tags <= {"svg", "rect", "g", "path", "line", "text", "title", "tspan"}
    assert {"text", "title"} <= tags
    assert "<script" not in svg
    assert "<img" not in svg
    first = marks(svg)[0]
    assert first.get("data-dataset") == EVIL


def test_a_label_that_only_looks_like_a_mark_is_left_alone() -> None:
    rows = pl.DataFrame({"a": ['{"text": "no"}', "{}", "{broken"], "b": [1, 2, 3]})
    drawn = to_svg(Figure("f", "t", "c", "s", panels.layer(rows, "bar", x="a", y="b")))
    assert marks(drawn) == []
    assert "{broken" in drawn


@pytest.mark.parametrize("odd", ["a\x00b", "a\x1bb", "a\ufffeb", "a\ud800b"])
def test_characters_that_no_picture_can_hold_are_boxes(odd: str) -> None:
    rows = with_marks(pl.DataFrame({"model": ["x"], "b": [1]}), lambda row: odd)
    chart = panels.layer(rows, "bar", x="model")
    drawn = to_svg(Figure("f", odd, "c", odd, chart.properties(title=odd)))
    assert [e.get("aria-label") for e in marks(drawn)] == ["a\ufffdb"]
    assert to_png(drawn)
    assert to_pdf(drawn)


def test_a_name_that_looks_like_a_colour_keeps_its_text() -> None:
    name = '" fill="#ffffff" x="'
    rows = pl.DataFrame({"model": [name], "b": [1]})
    chart = panels.layer(rows, "bar", {"color": "real"}, x="model")
    svg = to_svg(Figure("f", name, "c", name, chart))
    for look in (svg, following_page(svg), following_viewer(svg)):
        texts = [e.text for e in ElementTree.fromstring(look).iter(f"{SVG}text")]
        assert name in texts


def test_themes_exchange_colours_and_nothing_else(svg: str) -> None:
    assert unknown_colours(svg) == []
    in_page = following_page(svg)
    colours = re.compile(r"var\(--\w+, #[0-9a-f]{6}\)|#[0-9a-f]{6}")
    assert len({colours.sub("C", own) for own in (svg, in_page)}) == 1
    assert PALETTE["fail"][0] in svg
    assert f"var(--fail, {PALETTE['fail'][0]})" in in_page


def test_a_colour_outside_the_palette_is_found(svg: str) -> None:
    assert unknown_colours(svg.replace(colour("fail"), "#abcdef")) == ["#abcdef"]


def test_the_same_rows_give_the_same_bytes(svg: str, rows: pl.DataFrame) -> None:
    again = mark("t", dataset="d", value=float("inf"))
    assert again == '{"dataset": "d", "text": "t"}'
    pdf, png = to_pdf(svg), to_png(svg)
    assert pdf == to_pdf(svg)
    assert png == to_png(svg)
    assert pdf.startswith(b"%PDF-")
    assert png.startswith(b"\x89PNG")
    width = int.from_bytes(png[16:20])
    assert width == round(2 * float(ElementTree.fromstring(svg).get("width", "0")))


def test_the_chart_of_a_figure_displays_as_in_the_report(rows: pl.DataFrame) -> None:
    made = Figure("f", "t", "c", "s", panels.layer(rows, "point", x="dataset", y="layer"))
    chart = made.themed()
    own, spec = chart.to_dict(), made.spec
    assert {**own["config"], "view": None} == {**spec["config"], "view": None}
    assert own["config"]["view"].items() >= spec["config"]["view"].items()
    assert own["description"] == "s"
    assert "vega" in chart._repr_mimebundle_()["text/html"]
    assert "config" not in made.chart.to_dict(context={"top_level": False})


def test_settings_of_a_session_do_not_change_a_figure(rows: pl.DataFrame) -> None:
    import altair as alt

    made = Figure("f", "t", "c", "s", panels.layer(rows, "point", x="dataset", y="layer"))
    plain = made.spec
    with alt.theme.enable("dark"):
        assert "usermeta" in made.chart.to_dict(validate=False)
        assert made.spec == plain
    twin = Figure("f", "t", "c", "s", panels.layer(rows, "point", x="dataset", y="layer"))
    assert twin == made
    other = panels.layer(rows.head(1), "point", x="dataset", y="layer")
    assert Figure("f", "t", "c", "s", other) != made
