"""Pictures in files: SVG, PDF and PNG of a figure."""

from __future__ import annotations

from pathlib import Path

from lpact.errors import RunError
from lpact.report.figure import Figure
from lpact.report.render import standalone, to_pdf, to_png, to_svg
from lpact.report.theme import dark

DARK = "dark"


def write_pictures(folder: Path, figure: Figure) -> str:
    """Draw a figure, write it in all formats, and return its SVG.

    The SVG in the file follows the viewer's light or dark scheme; ``dark/`` is always dark.
    """
    name = figure.name
    try:
        svg = to_svg(figure)
        pdf, png = to_pdf(svg), to_png(svg)
    except (RuntimeError, ValueError) as error:
        raise RunError(
            f"the figure '{figure.title}' cannot be drawn",
            where=f"figure {name}",
            got=str(error).splitlines()[0] if str(error) else type(error).__name__,
            expected="a picture",
            remedy="please report it, with the table that the figure is made from",
        ) from error
    (folder / DARK).mkdir(parents=True, exist_ok=True)
    for path, text in ((f"{name}.svg", standalone(svg)), (f"{DARK}/{name}.svg", dark(svg))):
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    (folder / f"{name}.pdf").write_bytes(pdf)
    (folder / f"{name}.png").write_bytes(png)
    return svg
