"""From a figure to SVG, PDF and PNG.

vl-convert compiles the specification without a browser or a network. Its SVG carries each mark's description; here it
becomes attributes to filter by, a label for screen readers, and a title that shows on hovering, in the bare file too.
"""

from __future__ import annotations

import json
import re
from html import escape, unescape

from lpact.report.converter import converter
from lpact.report.figure import VEGA_LITE, Figure, Missing, drawable
from lpact.report.pdf import same_bytes
from lpact.report.theme import following_viewer

PNG_SCALE = 2.0
_DESCRIBED = re.compile(
    r'<(?P<tag>[a-z]+)(?P<before>[^<>]*?) aria-label="(?P<given>\{[^"]*\})"(?P<after>[^<>]*?)(?P<end>/?)>'
)
_TEXT = re.compile(r">[^<>]+<")
_FILTERS = ("dataset", "model", "layer", "profile", "value")


def to_svg(figure: Figure) -> str:
    """The figure as a self-contained SVG in light colours; strings from data are escaped."""
    drawn = converter().vegalite_to_svg(figure.spec, vl_version=VEGA_LITE)
    return _named(_DESCRIBED.sub(_mark, _TEXT.sub(_without_quotes, drawn)), figure)


def standalone(svg: str) -> str:
    """A picture for a file of its own: it follows the viewer's light or dark scheme."""
    return following_viewer(svg)


def picture(made: Figure | Missing) -> str:
    """A figure as the text of an SVG file; one that cannot be drawn is its title and the reason."""
    return standalone(to_svg(made if isinstance(made, Figure) else _reason(made)))


def _reason(missing: Missing) -> Figure:
    from lpact.report import panels

    words = [{"text": f"Not drawn: {missing.reason}."}]
    chart = panels.overlay(
        panels.text(words, "text", {"value": 0}, {"value": 10}),
        width=600,
        height=20,
        title=panels.title(missing.title),
    )
    return Figure(missing.name, missing.title, "", missing.reason, chart)


def to_pdf(svg: str) -> bytes:
    """A picture as PDF."""
    return same_bytes(bytes(converter().svg_to_pdf(svg)))


def to_png(svg: str) -> bytes:
    """A picture as PNG, in a resolution for print."""
    return bytes(converter().svg_to_png(svg, scale=PNG_SCALE))


def _mark(found: re.Match[str]) -> str:
    """One mark: what it stands for, as attributes and title."""
    given = json.loads(unescape(found["given"]))
    text = str(given.get("text", ""))
    attributes = "".join(
        f' data-{name}="{_attribute(str(given[name]))}"' for name in _FILTERS if name in given
    )
    head = (
        f'<{found["tag"]}{found["before"]} class="m"{attributes} aria-label="{_attribute(text)}"{found["after"]}>'
        f"<title>{escape(text)}</title>"
    )
    return f"{head}</{found['tag']}>" if found["end"] else head


def _without_quotes(text: re.Match[str]) -> str:
    """Text between tags, in which nothing can be taken for an attribute."""
    return text[0].replace('"', "&quot;")


def _attribute(text: str) -> str:
    """Text for an attribute; a parser would turn bare line ends into spaces."""
    return escape(text).replace("\n", "&#10;")


def _named(svg: str, figure: Figure) -> str:
    """The picture with its title and summary for screen readers."""
    label = _attribute(drawable(f"{figure.title}. {figure.summary}"))
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
