"""Links inside the documentation resolve, and every page can be reached from its index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import DOCS, ROOT, pages

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINKED = [*pages(), ROOT / "CONTRIBUTING.md"]


def links(page: Path) -> Iterator[str]:
    """Targets of a page's links, code and links to other hosts aside."""
    text = CODE.sub("code", FENCED.sub("", page.read_text(encoding="utf-8")))
    for target in LINK.findall(text):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken(page: Path) -> list[str]:
    """Links of a page that lead nowhere."""
    found = []
    for target in links(page):
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        if not other.exists() or (anchor and anchor not in anchors(other)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    assert broken(page) == []


def test_every_page_is_reachable_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        waiting += [(page.parent / t.partition("#")[0]).resolve() for t in links(page)]
    assert set(DOCS.rglob("*.md")) - reached == set()


def test_readme_leads_to_the_index() -> None:
    assert "docs/index.md" in set(links(ROOT / "README.md"))


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# One `[two]` heading\n", encoding="utf-8")
    page.write_text(
        "[a](missing.md) [b](other.md) [c](other.md#one-two-heading) [d](other.md#missing) [e](#here)\n"
        "[f](https://example.org/missing.md) `[g](code.md)`\n## Here\n",
        encoding="utf-8",
    )
    assert broken(page) == ["missing.md", "other.md#missing"]
