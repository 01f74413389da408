"""Nothing in the repository depends on one machine or says where it was made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from source_tree import tracked_files

# Written in two parts, so that this file does not find itself.
PATTERNS = {
    "package index": "|".join((r"pypi\." + "org", "python" + "hosted", "anaconda" + r"\.org")),
    "absolute path": "|".join(("/wo" + r"rk/", "/ro" + r"ot/", "/ho" + r"me/\w", r"/Us" + r"ers/\w")),
    "authorship": "|".join(("co-auth" + "ored-by", "__auth" + "or__", "@auth" + "or", "chat" + "gpt")),
}


def offences(path: Path) -> list[str]:
    """Lines that match one of the patterns, with what they match."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    return [
        f"{path}:{number}: {what}"
        for number, line in enumerate(lines, start=1)
        for what, pattern in PATTERNS.items()
        if re.search(pattern, line, re.IGNORECASE)
    ]


def test_tracked_files_are_free_of_places_and_makers() -> None:
    files = tracked_files()
    assert len(files) > 100
    assert [found for path in files for found in offences(path)] == []


@pytest.mark.parametrize(
    "planted",
    [
        "https://pypi." + "org/simple",
        "files.python" + "hosted.org",
        "open('/wo" + "rk/main/x')",
        "/ro" + "ot/.cache",
        "/ho" + "me/someone/data",
        "Co-Auth" + "ored-By: someone",
        "__auth" + "or__ = 'someone'",
    ],
)
def test_the_search_finds_what_is_planted(tmp_path: Path, planted: str) -> None:
    path = tmp_path / "planted.txt"
    path.write_text(f"first line\n{planted}\n", encoding="utf-8")
    assert len(offences(path)) == 1


@pytest.mark.parametrize("harmless", ["../work", "framework/", "root/", "authors = []", "workers"])
def test_the_search_leaves_the_harmless_alone(tmp_path: Path, harmless: str) -> None:
    path = tmp_path / "harmless.txt"
    path.write_text(f"{harmless}\n", encoding="utf-8")
    assert offences(path) == []
