"""Pictures in files: SVG, PDF and PNG of a figure."""

from __future__ import annotations

from pathlib import Path

from lpact.report.figure import Figure
from lpact.report.render import standalone, to_pdf, to_png, to_svg
from lpact.report.theme import dark

DARK = "dark"


def write_pictures(folder: Path, figure: Figure) -> str:
    """Draw a figure, write it in all formats, and return its SVG.

    The SVG in the file follows the viewer's light or dark scheme; ``dark/`` is always dark.
    """
    svg = to_svg(figure)
    name = figure.name
    (folder / DARK).mkdir(parents=True, exist_ok=True)
    for path, text in ((f"{name}.svg", standalone(svg)), (f"{DARK}/{name}.svg", dark(svg))):
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    (folder / f"{name}.pdf").write_bytes(to_pdf(svg))
    (folder / f"{name}.png").write_bytes(to_png(svg))
    return svg
