"""The explorer in a real browser: it loads, opens, filters, and nothing from the data runs."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Page, expect

from explorer_runs import PLANTED, planted_run, rewrite, shared_tiny

pytestmark = [pytest.mark.browser, pytest.mark.stress]

TABLE = "/runs/tiny/tables/relational/profile_similarity_deltas"
CLAIM = "/claim?run_slug=tiny&dataset=sim&model=integrated&layer=2&mechanism=surprisal&profile="
VIEWS = {
    "overview": "/",
    "matrix": "/decisions",
    "both profiles": "/decisions?profile=both&sort=raw_score&dir=desc",
    "claim": CLAIM + "paper",
    "calibrated claim": CLAIM + "calibrated",
    "compare": "/compare?show=all",
    "run": "/runs/tiny",
    "table": TABLE,
    "filtered table": f"{TABLE}?is.model=drift&col=delta_rel&op=ge&val=0&sort=delta_rel",
    "lists": "/runs/tiny/tables/predictive/predictive_unit_scores",
}


@dataclass(frozen=True)
class Explorer:
    """Where it is served, and the decisions of its two runs together."""

    url: str
    decisions: pl.DataFrame
    tiny: Path


@pytest.fixture(scope="session")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    folder = tmp_path_factory.mktemp("explorer")
    runs = [shared_tiny(tmp_path_factory)]
    runs.append(planted_run(runs[0], folder / "planted"))
    tables = [pl.read_parquet(run / "decisions" / "lpact_decision_table.parquet") for run in runs]
    with served(runs) as url:
        yield Explorer(url, pl.concat(tables), runs[0])


@contextmanager
def served(runs: list[Path]) -> Iterator[str]:
    """The address of an explorer that runs meanwhile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from lpact.cli import main; main()"
    command = [sys.executable, "-c", code, "explore", *map(str, runs), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert "explorer:" in server.stdout.readline()
        yield f"http://127.0.0.1:{port}"
        server.terminate()


def total(page: Page) -> int:
    return int(page.locator("#results [data-total]").get_attribute("data-total") or "")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_loads_and_fits_any_width(page: Page, explorer: Explorer, view: str) -> None:
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 740})
        page.goto(explorer.url + VIEWS[view])
        expect(page.locator("h1")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.querySelectorAll('main').length") == 1


def test_a_planted_wide_page_would_be_found(page: Page, explorer: Explorer) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(explorer.url)
    page.evaluate("document.querySelector('h1').insertAdjacentHTML('afterend', '<pre>' + 'x'.repeat(500) + '</pre>')")
    page.evaluate(
        "document.querySelector('pre').className = 'plain'; document.querySelector('pre').style.overflow = 'visible'"
    )
    assert page.evaluate("document.documentElement.scrollWidth") > 360


def test_changed_claims_are_cards_on_a_phone(page: Page, explorer: Explorer, tmp_path: Path) -> None:
    def lower(frame: pl.DataFrame) -> pl.DataFrame:
        if not {"raw_score", "label"} <= set(frame.columns):
            return frame
        return frame.with_columns(pl.col("raw_score") - 1.0)

    changed = rewrite(explorer.tiny, tmp_path / "changed", lower, "changed")
    fits = """() => { const e = document.querySelector('.compared').closest('.scroll');
      return e.scrollWidth <= e.clientWidth; }"""
    with served([explorer.tiny, changed]) as url:
        for width, layout in ((1280, "table-row"), (360, "flex")):
            page.set_viewport_size({"width": width, "height": 740})
            page.goto(f"{url}/compare?show=all")
            row = page.locator(".compared tbody tr").first
            expect(row).to_be_visible()
            assert row.evaluate("e => getComputedStyle(e).display") == layout
            assert page.evaluate(fits)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        expect(row.get_by_role("cell").first).to_be_visible()


def test_a_claim_opens_by_click(page: Page, explorer: Explorer) -> None:
    page.goto(f"{explorer.url}/decisions?run_slug=tiny&model=integrated")
    page.get_by_role("link", name="sim, integrated, 2, surprisal").click()
    expect(page.locator("h1")).to_contain_text("surprisal")
    row = explorer.decisions.filter(dataset="sim", model="integrated", mechanism="surprisal", gate_profile="paper").row(
        0, named=True
    )
    expect(page.get_by_text(row["reason"])).to_be_visible()
    marks = [text.split()[-1] for text in page.locator(".x-chain li").all_inner_texts()]
    gates = (
        "predictive",
        "severe_control",
        "relational",
        "mechanism_specific",
        "ceiling",
        "replication",
    )
    assert marks == ["pass" if row[gate] else "fail" for gate in gates]
    assert page.locator("figure svg.distribution").count() > 5


def test_a_claim_opens_by_keyboard(page: Page, explorer: Explorer) -> None:
    page.goto(f"{explorer.url}/decisions?run_slug=tiny")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("k")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    rows = page.locator("tbody tr").all()
    assert focused == rows[1].locator("a").get_attribute("aria-label")
    page.keyboard.press("Enter")
    page.wait_for_url("**/claim?**")
    page.keyboard.press("d")
    page.wait_for_url("**/decisions")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_the_skip_link_is_the_first_stop(page: Page, explorer: Explorer) -> None:
    page.goto(explorer.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_filters_act_while_typing_and_stand_in_the_address(page: Page, explorer: Explorer) -> None:
    paper = explorer.decisions.filter(gate_profile="paper")
    page.goto(f"{explorer.url}/decisions")
    assert total(page) == paper.height
    page.get_by_label("search").press_sequentially("drift")
    page.wait_for_url(re.compile(r"/decisions\?q=drift(&|$)"))
    drift = paper.filter(model="drift")
    expect(page.locator("#results [data-total]")).to_have_attribute("data-total", str(drift.height))
    assert page.locator("tbody tr").count() == drift.height
    page.get_by_label("mechanism").select_option("context_update")
    page.wait_for_url(re.compile(r"q=drift&.*mechanism=context_update"))
    kept = drift.filter(mechanism="context_update")
    expect(page.locator("#results [data-total]")).to_have_attribute("data-total", str(kept.height))
    # The address alone gives the same page.
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    assert total(page) == kept.height
    assert page.get_by_label("search").input_value() == "drift"
    assert page.get_by_label("mechanism").input_value() == "context_update"


def test_counts_on_the_page_are_those_of_the_table(page: Page, explorer: Explorer) -> None:
    page.goto(f"{explorer.url}/decisions?profile=calibrated")
    counted = explorer.decisions.filter(gate_profile="calibrated")["label"].value_counts()
    for label, n in counted.iter_rows():
        expect(page.locator(f'[data-count="{label}"]')).to_have_text(str(n))
    page.locator(f'a:has([data-count="{counted["label"][0]}"])').click()
    page.wait_for_url("**verdict=**")
    assert total(page) == counted["count"][0]


def test_sorting_by_a_click_on_a_head(page: Page, explorer: Explorer) -> None:
    page.goto(f"{explorer.url}/decisions?run_slug=tiny")
    for way in ("ascending", "descending"):
        page.get_by_role("columnheader", name="raw score").get_by_role("link").click()
        expect(page.get_by_role("columnheader", name="raw score")).to_have_attribute("aria-sort", way)
    scores = [float(text.replace("−", "-")) for text in page.locator('td[data-label="raw score"]').all_inner_texts()]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 1


def test_downloading_what_is_shown(page: Page, explorer: Explorer) -> None:
    page.goto(f"{explorer.url}/decisions?run_slug=tiny&model=drift")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV").click()
    path = Path(waiting.value.path())
    assert len(path.read_text().splitlines()) == total(page) + 1


def test_everything_works_without_javascript(page: Page, explorer: Explorer) -> None:
    assert page.context.browser is not None
    context = page.context.browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(f"{explorer.url}/decisions")
    plain.get_by_label("search").fill("drift")
    plain.get_by_role("button", name="Show").click()
    plain.wait_for_url(re.compile(r"/decisions\?(.*&)?q=drift(&|$)"))
    assert total(plain) == explorer.decisions.filter(gate_profile="paper", model="drift").height
    plain.goto(f"{explorer.url}{TABLE}")
    plain.get_by_label("where").select_option("model")
    plain.locator("input[name=val]").fill("drift")
    plain.get_by_role("button", name="Show").click()
    plain.wait_for_url(re.compile(r"col=model&op=is&val=drift"))
    context.close()


def test_the_theme_is_kept(page: Page, explorer: Explorer) -> None:
    page.goto(explorer.url)
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Theme: auto").click()
    page.get_by_role("button", name="Theme: light").click()
    dark = page.evaluate(background)
    assert dark != light
    page.goto(f"{explorer.url}/decisions")
    assert page.evaluate(background) == dark


def luminance(colour: str) -> float:
    """Relative luminance of an ``rgb(…)`` colour, as in WCAG 2."""
    parts = [int(v) / 255 for v in re.findall(r"\d+", colour)[:3]]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


CONTRASTS = """() => {
  const back = (e) => { while (e) { const c = getComputedStyle(e).backgroundColor;
    if (c !== 'rgba(0, 0, 0, 0)') return c; e = e.parentElement; } return 'rgb(255, 255, 255)'; };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) { const e = walk.currentNode.parentElement;
    const text = walk.currentNode.textContent.trim().slice(0, 30);
    if (!text || e.closest('svg, script, option, .skip') || !e.checkVisibility()) continue;
    found.push([getComputedStyle(e).color, back(e), text]); }
  return found; }"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", ["overview", "matrix", "calibrated claim", "compare", "table"])
def test_text_stands_out_in_both_themes(page: Page, explorer: Explorer, view: str, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.goto(explorer.url + VIEWS[view])
    texts = page.evaluate(CONTRASTS)
    assert len(texts) > 30
    weak = [(text, contrast(ink, ground)) for ink, ground, text in texts if contrast(ink, ground) < 4.5]
    assert weak == []
    assert contrast("rgb(150, 150, 150)", "rgb(255, 255, 255)") < 4.5


def test_planted_scripts_stay_text(page: Page, explorer: Explorer) -> None:
    names = {name: page_name for name, page_name in PLANTED.items() if name in ("sim", "integrated", "surprisal")}
    page.goto(f"{explorer.url}/decisions?run_slug=planted")
    for planted in names.values():
        expect(page.get_by_text(planted, exact=True).first).to_be_attached()
    first = page.locator("tbody tr", has_text=names["integrated"]).filter(has_text=names["surprisal"])
    first.get_by_role("link").click()
    expect(page.locator("h1")).to_contain_text(names["surprisal"])
    for address in ("/", "/runs/planted", "/compare?a=tiny&b=planted", "/decisions?profile=both"):
        page.goto(explorer.url + address)
    page.goto(f"{explorer.url}/runs/planted/tables/relational/brain_unit_index")
    expect(page.get_by_text(PLANTED["u001"], exact=True).first).to_be_attached()
    page.get_by_label("search").press_sequentially("<script>")
    page.wait_for_url("**q=%3Cscript%3E**")
    assert page.evaluate("window.planted") is None
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.querySelectorAll('main img, main iframe, main script').length") == 0


def test_a_planted_script_that_ran_would_be_seen(page: Page, explorer: Explorer, problems: list[str]) -> None:
    page.goto(explorer.url)
    page.evaluate(
        """document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=x onerror="window.planted=9">')"""
    )
    page.wait_for_timeout(100)
    # The policy of the page stops even markup that got in, and says so.
    assert page.evaluate("window.planted") is None
    assert any("Content Security Policy" in problem for problem in problems)
    problems.clear()
