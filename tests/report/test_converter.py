"""Pictures are drawn with the converter's own font, whatever the machine has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lpact.report.render import SYSTEM_FONTS

DRAW = """
import hashlib, os
from lpact.report.render import converter
before = os.environ.get("FONTCONFIG_FILE")
text = '<text x="2" y="20" font-family="{}">Hamburg 123</text>'
svg = '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="30">' + text + '</svg>'
print(hashlib.sha256(converter().svg_to_png(svg)).hexdigest(), os.environ.get("FONTCONFIG_FILE") == before)
"""


def drawn(family: str, **env: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", DRAW.format(family)],
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_the_machines_fonts_do_not_matter(tmp_path) -> None:
    mine = drawn("Liberation Sans")
    config = tmp_path / "fonts.conf"
    config.write_text(f"<fontconfig><dir>{tmp_path}</dir></fontconfig>")
    assert drawn("Liberation Sans", FONTCONFIG_FILE=str(config)) == mine
    # The environment is as it was, and a font that it does not carry is another picture.
    assert mine[1] == "True"
    assert drawn("No Such Font")[0] != mine[0]


def test_whoever_needs_other_fonts_gets_them(tmp_path) -> None:
    """A font of the machine under another name: found with the variable, and not without."""
    name = "Lpact Test Sans"
    carried = [drawn(name)[0], drawn("No Such Font")[0]]
    assert carried[0] == carried[1]
    installed = next(iter(sorted(Path("/usr/share/fonts").rglob("*.ttf"))), None)
    if installed is None:
        pytest.skip("tool missing: a TrueType font of the system (fonts-liberation)")
    import matplotlib.font_manager as fonts

    family = fonts.FontProperties(fname=str(installed)).get_name()
    if family == "Liberation Sans":
        return
    assert drawn(family, **{SYSTEM_FONTS: "1"})[0] != drawn(family)[0]
