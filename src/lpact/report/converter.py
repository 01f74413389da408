"""vl-convert, with the font that it carries.

With fonts of the machine it would read their files again for every text, and pictures would differ from machine to
machine. Characters that its own font lacks (it has Latin, Greek, Cyrillic and Hebrew) are boxes in PDF and PNG; to use
the fonts of the system, set the environment variable ``LPACT_SYSTEM_FONTS``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import as_file, files
from typing import Any

SYSTEM_FONTS = "LPACT_SYSTEM_FONTS"
_FONTCONFIG = "FONTCONFIG_FILE"
_NOTHING = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><text>.</text></svg>'


@cache
def converter() -> Any:
    """The module ``vl_convert``; fonts are looked up when it is first used in a process, which is here."""
    import vl_convert

    if not os.environ.get(SYSTEM_FONTS):
        with _own_fonts():
            vl_convert.svg_to_png(_NOTHING)
    return vl_convert


@contextmanager
def _own_fonts() -> Iterator[None]:
    before = os.environ.get(_FONTCONFIG)
    with as_file(files("lpact.report").joinpath("fonts.conf")) as config:
        os.environ[_FONTCONFIG] = str(config)
        try:
            yield
        finally:
            if before is None:
                del os.environ[_FONTCONFIG]
            else:
                os.environ[_FONTCONFIG] = before
