"""Draw the pictures of the README from a finished demo: tools/draw_demo.py RUN.

``docs/images/demo-verdicts.svg`` is the decision matrix; ``docs/images/report.png`` is the head of the report in a real
browser (Chromium of the system, through Playwright).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import lpact
from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import maker
from lpact.report.render import picture
from lpact.store import RunTables
from lpact.study import Run

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, HEIGHT = 1180, 1020


def verdicts(run: Run) -> str:
    """The decision matrix as a file of its own."""
    return picture(maker("decision_matrix")(Material(RunTables(run), run.config)))


def photograph(page: Path, out: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=1.5)
        opened.goto(page.as_uri())
        opened.screenshot(path=out)
        browser.close()


def main(folder: str) -> None:
    run = lpact.open_run(folder)
    (IMAGES / "demo-verdicts.svg").write_text(verdicts(run), encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        photograph(run.report(Path(place) / "report", tables=False).page, IMAGES / "report.png")


if __name__ == "__main__":
    main(sys.argv[1])
