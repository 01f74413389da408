"""From a figure to SVG, PDF and PNG, with vl-convert: no browser, no network, the same bytes every time.

Its SVG carries each mark's description; here it becomes attributes to filter by, a label for screen readers, and a
title that shows on hovering. Fonts of the machine are not used, so pictures do not differ between machines; characters
that the font of vl-convert lacks (it has Latin, Greek, Cyrillic and Hebrew) are boxes in PDF and PNG. To use the fonts
of the system, set the environment variable ``LPACT_SYSTEM_FONTS``.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from html import escape, unescape
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from lpact.errors import RunError
from lpact.report.figure import VEGA_LITE, Figure, Missing, drawable
from lpact.report.theme import following_viewer

SYSTEM_FONTS = "LPACT_SYSTEM_FONTS"
PNG_SCALE = 2.0
_FONTCONFIG = "FONTCONFIG_FILE"
_EMPTY_SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><text>.</text></svg>'
_DESCRIBED = re.compile(
    r'<(?P<tag>[a-z]+)(?P<before>[^<>]*?) aria-label="(?P<given>\{[^"]*\})"(?P<after>[^<>]*?)(?P<end>/?)>'
)
_TEXT = re.compile(r">[^<>]+<")
_FILTERS = ("dataset", "model", "layer", "profile", "value")


@cache
def converter() -> Any:
    """The module ``vl_convert``; it looks fonts up when it is first used in a process, which is here."""
    import vl_convert

    if not os.environ.get(SYSTEM_FONTS):
        before = os.environ.get(_FONTCONFIG)
        with as_file(files("lpact.report").joinpath("fonts.conf")) as config:
            os.environ[_FONTCONFIG] = str(config)
            try:
                vl_convert.svg_to_png(_EMPTY_SVG)
            finally:
                del os.environ[_FONTCONFIG]
                os.environ |= {} if before is None else {_FONTCONFIG: before}
    return vl_convert


def write_pictures(folder: Path, figure: Figure) -> str:
    """Draw a figure, write it in all formats, and return its SVG; the file follows the viewer's colour scheme."""
    try:
        svg = to_svg(figure)
        pdf, png = to_pdf(svg), to_png(svg)
    except (RuntimeError, ValueError) as error:
        raise RunError(
            f"the figure '{figure.title}' cannot be drawn",
            where=f"figure {figure.name}",
            got=str(error).splitlines()[0] if str(error) else type(error).__name__,
            expected="a picture",
            remedy="please report it, with the table that the figure is made from",
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, data in (("svg", following_viewer(svg).encode()), ("pdf", pdf), ("png", png)):
        (folder / f"{figure.name}.{suffix}").write_bytes(data)
    return svg


def picture(made: Figure | Missing) -> str:
    """A figure as the text of an SVG file; one that cannot be drawn is its title and the reason."""
    if isinstance(made, Missing):
        from lpact.report import panels

        words = panels.heading(f"Not drawn: {made.reason}.", y=10, ink="ink")
        chart = panels.overlay(words, width=600, height=20, title=made.title)
        made = Figure(made.name, made.title, "", made.reason, chart)
    return following_viewer(to_svg(made))


def to_svg(figure: Figure) -> str:
    """The figure as a self-contained SVG in light colours; strings from data are escaped."""
    drawn = converter().vegalite_to_svg(figure.spec, vl_version=VEGA_LITE)
    # Without bare quotes, no text between tags can be taken for an attribute.
    drawn = _TEXT.sub(lambda text: text[0].replace('"', "&quot;"), drawn)
    label = _attribute(drawable(f"{figure.title}. {figure.summary}"))
    head = f'<svg role="img" aria-label="{label}" '
    return _DESCRIBED.sub(_mark, drawn).replace("<svg ", head, 1)


def _mark(found: re.Match[str]) -> str:
    """One mark with its text and filters, as attributes and title."""
    given = json.loads(unescape(found["given"]))
    text = str(given.get("text", ""))
    attributes = "".join(f' data-{name}="{_attribute(str(given[name]))}"' for name in _FILTERS if name in given)
    head = (
        f'<{found["tag"]}{found["before"]} class="m"{attributes} aria-label="{_attribute(text)}"{found["after"]}>'
        f"<title>{escape(text)}</title>"
    )
    return f"{head}</{found['tag']}>" if found["end"] else head


def _attribute(text: str) -> str:
    """Text for an attribute; a parser would turn bare line ends into spaces."""
    return escape(text).replace("\n", "&#10;")


def to_png(svg: str) -> bytes:
    """A picture as PNG, in a resolution for print."""
    return bytes(converter().svg_to_png(svg, scale=PNG_SCALE))


def to_pdf(svg: str) -> bytes:
    """A picture as PDF."""
    return same_bytes(bytes(converter().svg_to_pdf(svg)))


# -- PDF ---------------------------------------------------------------------------------------------------------------

_ENTRY = re.compile(rb"^(\d{10}) \d{5} n", re.MULTILINE)
_HEAD = re.compile(rb"(\d+) 0 obj\n")
_LENGTH = re.compile(rb"/Length (\d+)")
_REFERENCE = re.compile(rb"\b(\d+) 0 R\b")
_RESOURCES = re.compile(rb"(?:^ *\/\w+ \d+ 0 R\n){2,}", re.MULTILINE)
_STREAM = b"\nstream\n"


def same_bytes(pdf: bytes) -> bytes:
    """The same document with its objects in an order that depends on the picture alone.

    vl-convert writes resources and fonts in an order that changes from call to call. Objects are numbered again in the
    order in which they are reached from the catalogue, and lists of resources are sorted by name; streams are copied.
    """
    trailer = pdf[pdf.rindex(b"trailer") :]
    settings = trailer[: trailer.index(b"startxref")]
    table = pdf[int(trailer.split(b"startxref\n")[1].split()[0]) :]
    objects = dict(_object(pdf, int(offset)) for offset in _ENTRY.findall(table))
    new: dict[int, int] = {}
    waiting = [int(number) for number in _REFERENCE.findall(settings)][::-1]
    while waiting:
        number = waiting.pop()
        if number not in new:
            new[number] = len(new) + 1
            waiting += [int(found) for found in _REFERENCE.findall(objects[number][0])][::-1]

    def numbered(text: bytes) -> bytes:
        return _REFERENCE.sub(lambda found: b"%d 0 R" % new[int(found[1])], text)

    body, entries = bytearray(pdf[: pdf.index(b"\n") + 1]), b""
    for number, place in new.items():
        entries += b"%010d 00000 n\r\n" % len(body)
        dictionary, stream = objects[number]
        body += b"%d 0 obj\n%s%s\nendobj\n\n" % (place, numbered(dictionary), stream)
    size = b"%d" % (len(new) + 1)
    settings = numbered(re.sub(rb"(?<=/Size )\d+", size, settings))
    head = b"xref\n0 %s\n0000000000 65535 f\r\n" % size
    return bytes(body) + head + entries + settings + b"startxref\n%d\n%%%%EOF" % len(body)


def _object(pdf: bytes, offset: int) -> tuple[int, tuple[bytes, bytes]]:
    """Number, dictionary and stream of the object at an offset."""
    found = _HEAD.match(pdf, offset)
    if found is None:
        raise ValueError(f"there is no object at byte {offset} of the PDF")
    end = pdf.index(b"\nendobj", found.end())
    stream = pdf.find(_STREAM, found.end(), end)
    if stream >= 0:
        length = _LENGTH.search(pdf, found.end(), stream)
        skip = int(length[1]) if length else 0
        end = pdf.index(b"\nendobj", stream + len(_STREAM) + skip)
    middle = stream if stream >= 0 else end
    lines = pdf[found.end() : middle]
    lines = _RESOURCES.sub(lambda own: b"".join(sorted(own[0].splitlines(keepends=True))), lines)
    return int(found[1]), (lines, pdf[middle:end])
