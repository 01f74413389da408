"""The report in a real browser, opened from disk: it filters, opens claims, and nothing from the data runs."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

import polars as pl
import pytest
from playwright.sync_api import Page, expect

import lpact
from explorer_runs import PLANTED, planted_run, shared_tiny
from lpact.analyses.lpact.analysis import LPact
from lpact.report.folder import REPORT_PAGE
from lpact.study import Run

pytestmark = [pytest.mark.browser, pytest.mark.stress]

SHOWN = ".claim-table tbody tr[data-claim]:visible"
Scheme = Literal["light", "dark"]
NAMES = [name for section in LPact.figures.values() for name in section]


@pytest.fixture(scope="module")
def address(small_report: Path) -> str:
    return (small_report / REPORT_PAGE).as_uri()


@pytest.fixture(scope="module")
def planted_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("planted")
    run = planted_run(shared_tiny(tmp_path_factory), folder / "planted")
    return lpact.open_run(run).report(folder / "report", tables=False).page.as_uri()


@pytest.fixture(scope="module")
def visit(new_page: Callable[[], AbstractContextManager[Page]], address: str) -> Iterator[Page]:
    """The page, opened once for tests that leave it as they found it."""
    with new_page() as page:
        page.goto(address)
        yield page


def shown_claims(page: Page) -> int:
    return page.locator(SHOWN).count()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_the_page_opens_from_disk_at_any_width(page: Page, address: str, scheme: Scheme, width: int) -> None:
    """And the other scheme is followed when the viewer changes it."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(address)
    assert_readable(page, scheme, width)
    other: Scheme = "dark" if scheme == "light" else "light"
    page.emulate_media(color_scheme=other)
    assert_readable(page, other, width)


def assert_readable(page: Page, scheme: Scheme, width: int) -> None:
    for name in NAMES:
        expect(page.locator(f"#figure-{name} svg")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    bright = [sum(map(int, own[4:-1].split(", "))) for own in (ink, paper)]
    assert (bright[0] > bright[1]) == (scheme == "dark")
    drawn = page.evaluate("getComputedStyle(document.querySelector('#figure-framework svg text')).fill")
    assert (sum(map(int, drawn[4:-1].split(", "))) > 382) == (scheme == "dark")


def test_filters_reach_figures_and_claims_and_the_address(page: Page, address: str, small_run: Run) -> None:
    page.goto(address)
    claims = small_run.claims()
    assert shown_claims(page) == claims.height
    page.select_option("[name=model]", "drift")
    of_model = claims.filter(model="drift").height
    assert shown_claims(page) == of_model
    assert 0 < of_model < claims.height
    expect(page.locator("#shown")).to_have_text(f"{of_model} of {claims.height} claims")
    faded = page.locator("#figure-layer_scores .m.off").evaluate_all("own => own.map(mark => mark.dataset.model)")
    kept = page.locator("#figure-layer_scores .m:not(.off)").evaluate_all("own => own.map(mark => mark.dataset.model)")
    assert set(faded) == {"integrated"}
    assert "drift" in kept
    assert "integrated" not in kept
    assert page.url.endswith("#model=drift")
    page.reload()
    assert shown_claims(page) == of_model
    page.locator(".search").fill("surprisal")
    assert shown_claims(page) == claims.filter(model="drift", mechanism="surprisal").height
    page.get_by_role("button", name="Clear").click()
    # A form is empty only after its reset event.
    expect(page.locator(SHOWN)).to_have_count(claims.height)


def test_a_claim_opens_to_its_evidence_by_mouse_and_keyboard(page: Page, address: str, small_run: Run) -> None:
    page.goto(address)
    row = small_run.claims().filter(dataset="planted", model="integrated", layer=2).row(0, named=True)
    key = f"planted/integrated/2/{row['mechanism']}"
    opener = page.locator(f"tr[data-claim='{key}'] .open-claim")
    evidence = small_run.table("lpact_gate_evidence").filter(
        dataset="planted", model="integrated", layer=2, mechanism=row["mechanism"]
    )
    opener.focus()
    page.keyboard.press("Enter")
    expect(opener).to_have_attribute("aria-expanded", "true")
    shown = page.locator("tr.chain li").all_inner_texts()
    for sentence in evidence["sentence"]:
        assert any(sentence in line for line in shown), sentence
    assert page.locator("tr.chain li .fail").count() == evidence.filter(~pl.col("passed")).height
    opener.click()
    expect(page.locator("tr.chain")).to_have_count(0)
    page.goto(f"{address}#claim={key}")
    page.reload()
    expect(page.locator("tr.chain")).to_have_count(1)


@pytest.mark.parametrize("media", ["screen", "print"])
def test_names_of_claims_are_whole_and_cover_nothing(visit: Page, media: Literal["screen", "print"]) -> None:
    visit.emulate_media(media=media)
    wrong = visit.locator(".claim-table tbody tr[data-claim]").evaluate_all(
        """rows => rows.filter(row => {
          const [cell, name] = [row.cells[0], row.querySelector(".open-claim")].map(e => e.getBoundingClientRect());
          return name.width < 40 || name.right > cell.right + 1 || name.bottom > cell.bottom + 1;
        }).length"""
    )
    visit.emulate_media(media="screen")
    assert wrong == 0


def test_what_is_folded_is_printed(visit: Page) -> None:
    folded = visit.locator("details:not([open])")
    assert folded.count() > 0
    visit.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert folded.count() == 0
    visit.evaluate("dispatchEvent(new Event('afterprint'))")
    assert folded.count() > 0


def test_hovering_shows_the_rows_behind_a_mark(visit: Page) -> None:
    mark = visit.locator("#figure-framework .m").first
    mark.scroll_into_view_if_needed()
    mark.hover()
    tip = visit.locator("#tip")
    expect(tip).to_be_visible()
    assert tip.inner_text().split() == (mark.get_attribute("aria-label") or "").split()
    visit.keyboard.press("Escape")
    expect(tip).to_be_hidden()


def test_pictures_say_what_the_tables_say(visit: Page, small_run: Run) -> None:
    scores = dict(
        small_run.claims().select(pl.concat_str("dataset", "model", "layer", separator="/"), "raw_score").iter_rows()
    )
    found = visit.locator("#figure-layer_scores .m[data-value]").evaluate_all(
        "own => own.map(m => [[m.dataset.dataset, m.dataset.model, m.dataset.layer].join('/'), m.dataset.value])"
    )
    drawn: dict[str, set[float]] = {}
    for place, value in found:
        drawn.setdefault(place, set()).add(float(value))
    for place, score in scores.items():
        assert any(abs(own - score) < 1e-12 for own in drawn[place]), place
    for profile in ("paper", "calibrated"):
        table = small_run.claims(profile=profile)
        for at, column in enumerate(LPact.claims.gates.values(), start=1):
            n = visit.locator(f".claim-table tbody td.gate[data-profile={profile}] .pass").evaluate_all(
                f"own => own.filter(s => [...s.closest('tr').querySelectorAll("
                f"'td.gate[data-profile={profile}]')].indexOf(s.parentElement) === {at - 1}).length"
            )
            assert n == table[column].sum(), (profile, column)


def test_shown_claims_can_be_downloaded(page: Page, address: str, small_run: Run, tmp_path: Path) -> None:
    page.goto(address)
    page.select_option("[name=dataset]", "empty")
    page.select_option("[name=profile]", "calibrated")
    with page.expect_download() as download:
        page.click(".download")
    path = tmp_path / "claims.csv"
    download.value.save_as(path)
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    table = small_run.claims(profile="calibrated").filter(dataset="empty").sort("model", "layer", "mechanism")
    assert [row["claim"] for row in rows] == [
        f"empty / {r['model']} / {r['layer']} / {r['mechanism']}" for r in table.iter_rows(named=True)
    ]
    assert [row["calibrated_label"] for row in rows] == table["label"].to_list()
    assert "paper_label" not in rows[0]


def test_the_theme_button_wins_over_the_system(page: Page, address: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(address)
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"


def test_planted_scripts_stay_text(page: Page, planted_address: str) -> None:
    page.goto(planted_address)
    assert page.evaluate("window.planted") is None
    page.locator(".open-claim").first.click()
    for mark in page.locator("#figure-layer_scores .m").all()[:5]:
        mark.dispatch_event("pointerover", {"bubbles": True})
    assert page.evaluate("window.planted") is None
    assert page.locator("main img, main iframe, main script, svg script").count() == 0
    text = page.locator("main").inner_text()
    assert PLANTED["sim"] in text
    assert PLANTED["integrated"] in text
    assert page.locator("[name=dataset] option").last.get_attribute("value") == PLANTED["sim"]
    page.select_option("[name=dataset]", PLANTED["sim"])
    assert shown_claims(page) > 0


def test_a_planted_script_would_be_noticed(page: Page, problems: list[str]) -> None:
    """The twin of the test above: without a policy and without escaping, it does run."""
    page.goto("about:blank")
    page.set_content(f"<p>{PLANTED['sim']}</p>")
    assert page.evaluate("window.planted") == 1
    assert problems == []


def test_the_page_reads_without_script(browser, address: str, small_run: Run) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator(".claim-table tbody tr").count() == small_run.claims().height
    assert page.locator("#filters").is_hidden()
    assert page.locator("figure .picture svg").count() == len(NAMES)
    context.close()
