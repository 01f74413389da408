"""A figure in a file of its own follows the scheme of whoever looks at it, as an image of a page too."""

from __future__ import annotations

import base64

import pytest
from playwright.sync_api import Page

from lpact.report import panels
from lpact.report.figure import Figure
from lpact.report.render import to_svg
from lpact.report.theme import PALETTE, following_viewer

pytestmark = [pytest.mark.browser, pytest.mark.stress]

FIRST_PIXEL = """async (source) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const hex = (at) => "#" + [...context.getImageData(at, at, 1, 1).data.slice(0, 3)]
    .map((part) => part.toString(16).padStart(2, "0")).join("");
  return [hex(2), hex(Math.floor(image.width / 2))];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_follows_the_viewers_scheme(page: Page, scheme):
    chart = panels.layer([{"x": 1}], "bar", {"color": "real"}).properties(width=100, height=100)
    svg = following_viewer(to_svg(Figure("n", "title", "caption", "summary", chart)))
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    page.emulate_media(color_scheme=scheme)
    page.goto("about:blank")
    found = page.evaluate(FIRST_PIXEL, source)
    assert found == [PALETTE[role][scheme == "dark"] for role in ("paper", "real")]
