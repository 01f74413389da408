"""Pictures in files: SVG, PDF and PNG of a figure."""

from __future__ import annotations

from pathlib import Path

from lpact.report.render import standalone, to_pdf, to_png
from lpact.report.theme import dark

DARK = "dark"


def write_pictures(folder: Path, name: str, svg: str) -> None:
    """Write a picture in all formats; the SVG follows the viewer's light or dark scheme, ``dark/`` is always dark."""
    (folder / DARK).mkdir(parents=True, exist_ok=True)
    in_dark = dark(svg)
    for path, text in ((f"{name}.svg", standalone(svg)), (f"{DARK}/{name}.svg", in_dark)):
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    (folder / f"{name}.pdf").write_bytes(to_pdf(svg))
    (folder / f"{name}.png").write_bytes(to_png(svg))
    (folder / DARK / f"{name}.pdf").write_bytes(to_pdf(in_dark))
