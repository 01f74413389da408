"""The page: verdict first, every claim with its evidence, nothing from data that is more than text."""

from __future__ import annotations

import base64
import json
import re
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest

from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY, EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE
from lpact.report.figure import Figure, Missing
from lpact.report.page import Drawn, PageParts, TableFile, page_html
from lpact.report.page.build import script_json
from lpact.report.page.claims import claim_rows, evidence_data
from lpact.report.page.provenance import options, unavailable
from lpact.study import Run

EVIL = "</script><script>alert(1)</script><!--\"'&"


class Page(HTMLParser):
    """Elements, attributes and texts of a page, as a browser would take it apart."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.inside[-1] if self.inside else "", []).append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def tables(small_run: Run) -> dict[str, pl.DataFrame]:
    return {table.name: small_run.table(table.name) for table in small_run.tables()}


def parts(run: Run, tables: dict[str, pl.DataFrame], **changes: Any) -> PageParts:
    svg = '<svg width="1"><path class="m" data-dataset="a" aria-label="x" fill="#0072b2"><title>x</title></path></svg>'
    drawn = [
        Drawn("verdict", Figure("one", "One", "Caption one.", {}, "Summary."), svg),
        Drawn("why", Missing("two", "Two", "There is no table for it.")),
    ]
    content: dict[str, Any] = {
        "verdict": "One sentence.",
        "why": ["Because."],
        "drawn": drawn,
        "methods": "We did it.",
        "bibtex": "@article{key}",
        "table_files": [TableFile("a/b", "A row.", 1234, {"csv": "tables/a/b.csv"})],
    }
    return PageParts(run.manifest, tables, **(content | changes))


def test_the_page_has_its_parts_in_order(small_run: Run, tables: dict[str, pl.DataFrame]) -> None:
    html = page_html(parts(small_run, tables))
    page = Page(html)
    assert page.texts["h1"] == ["One sentence."]
    assert [s["id"] for s in page.of("section")] == [
        "verdict",
        "why",
        "how-sure",
        "how-it-was-made",
        "tables",
    ]
    assert "Not drawn: There is no table for it." in html
    assert "We did it." in html
    assert "@article{key}" in html
    assert small_run.manifest.config_digest in html
    for file in (*small_run.manifest.inputs, *small_run.manifest.outputs):
        assert file.sha256 in html
    assert "1,234" in html
    # The picture follows the theme and leaves hovering to the page.
    assert 'fill="var(--pass, #0072b2)"' in html
    assert "<title>x" not in html


def test_every_claim_is_a_row_with_both_profiles(
    small_run: Run, tables: dict[str, pl.DataFrame]
) -> None:
    page = Page(page_html(parts(small_run, tables)))
    keys = [row["data-key"] for row in page.of("tr") if "data-key" in row]
    claims = small_run.decisions
    assert keys == [
        f"{c['dataset']}/{c['model']}/{c['layer']}/{c['mechanism']}"
        for c in claims.sort("dataset", "model", "layer", "mechanism").iter_rows(named=True)
    ]
    gates = [
        "predictive",
        "severe_control",
        "relational",
        "mechanism_specific",
        "ceiling",
        "replication",
    ]
    n_passes = int(tables[DECISIONS.name].select(gates).sum().sum_horizontal()[0])
    signs = [e["aria-label"] for e in page.of("span") if e.get("role") == "img"]
    assert signs.count("pass") == n_passes
    assert len(signs) == 2 * claims.height * len(gates)
    assert n_passes > 0


def test_evidence_of_the_page_is_that_of_the_table(tables: dict[str, pl.DataFrame]) -> None:
    data = evidence_data(tables)
    rebuilt = [
        (row.dataset, row.model, str(row.layer), row.mechanism, profile, *data["criteria"][index])
        for row, profiles in zip(claim_rows(tables), data["claims"], strict=True)
        for profile, indices in profiles.items()
        for index in indices
    ]
    table = tables[GATE_EVIDENCE.name].sort(
        "dataset", "model", "layer", "mechanism", "gate_profile", "gate_order", "criterion_order"
    )
    columns = [
        "dataset",
        "model",
        "layer",
        "mechanism",
        "gate_profile",
        "gate",
        "passed",
        "sentence",
    ]
    assert sorted(map(repr, rebuilt)) == sorted(
        repr((r[0], r[1], str(r[2]), *r[3:])) for r in table.select(columns).iter_rows()
    )
    assert len(data["criteria"]) < table.height


def test_names_from_data_stay_text(small_run: Run, tables: dict[str, pl.DataFrame]) -> None:
    evil = {
        name: frame.with_columns(
            pl.lit(EVIL).alias(column)
            for column in (
                "dataset",
                "model",
                "mechanism",
                "control",
                "beaten_by",
                "sentence",
                "reason",
                "name",
            )
            if column in frame.columns
        )
        for name, frame in tables.items()
    }
    made = parts(
        small_run,
        evil,
        verdict=EVIL,
        why=[EVIL],
        methods=EVIL,
        bibtex=EVIL,
        drawn=[Drawn("why", Missing("two", EVIL, EVIL))],
        table_files=[TableFile(EVIL, EVIL, 1, {"csv": EVIL})],
    )
    html = page_html(made)
    page = Page(html)
    scripts = page.of("script")
    assert scripts == [{"type": "application/json", "id": "evidence"}, {}]
    assert "alert" not in "".join(page.texts["script"][1:])
    assert page.texts["h1"] == [EVIL]
    criteria = json.loads(page.texts["script"][0])["criteria"]
    assert {sentence for _, _, sentence in criteria} == {EVIL}


def test_nothing_runs_but_the_pages_own_script(
    small_run: Run, tables: dict[str, pl.DataFrame]
) -> None:
    html = page_html(parts(small_run, tables))
    page = Page(html)
    policy = next(m["content"] for m in page.of("meta") if m.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for tag, place in (("script", 1), ("style", 0)):
        text = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", html, re.DOTALL)[place]
        digest = base64.b64encode(sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    addresses = [a.get(key) for _, a in page.elements for key in ("src", "href") if a.get(key)]
    assert addresses
    assert not [a for a in addresses if a and (":" in a or a.startswith("//"))]
    handlers = [
        key for _, attributes in page.elements for key in attributes if key.startswith("on")
    ]
    assert handlers == []
    assert not [a for _, attributes in page.elements for a in attributes if a == "style"]


def test_script_json_gives_its_values_back() -> None:
    value = {"a": ["<", ">", "&", "\u2028", "\u2029", EVIL], "n": [1, 2.5, None, True]}
    text = script_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_unavailable_names_what_where_and_why(tables: dict[str, pl.DataFrame]) -> None:
    assert any(
        own.what == "confirmatory role" and own.where == "empty" for own in unavailable(tables)
    )
    none = tables[CONTROL_AVAILABILITY.name].with_columns(available=True)
    one = none.with_columns(
        available=(pl.col("control") != "circular_shift") | (pl.col("model") != "integrated"),
        detail=pl.lit("no time to shift"),
    )
    before = {own.what for own in unavailable(tables | {CONTROL_AVAILABILITY.name: none})}
    found = [
        own
        for own in unavailable(tables | {CONTROL_AVAILABILITY.name: one})
        if own.what == "control circular_shift"
    ]
    assert "control circular_shift" not in before
    assert [own.where for own in found] == [
        "empty, integrated, layers 1, 2",
        "planted, integrated, layers 1, 2",
    ]
    assert found[0].why == "no time to shift"
    assert unavailable({}) == []
    assert EVIDENCE_FEASIBILITY.name in tables


def test_options_are_listed_by_path() -> None:
    config = {"a": 1, "b": {"c": [1, 2], "d": {}}, "e": [{"name": "x", "f": "g"}, {"h": None}]}
    assert options(config) == [
        ("a", "1"),
        ("b.c", "[1, 2]"),
        ("b.d", "{}"),
        ("e[x].name", '"x"'),
        ("e[x].f", '"g"'),
        ("e[1].h", "null"),
    ]


def test_a_claim_row_tells_score_and_verdict(tables: dict[str, pl.DataFrame]) -> None:
    row = next(r for r in claim_rows(tables) if r.dataset == "planted" and r.layer == 2)
    table = tables[DECISIONS.name].filter(
        dataset="planted", model=row.model, layer=2, mechanism=row.mechanism, gate_profile="paper"
    )
    expected = table.row(0, named=True)
    assert row.raw_score == expected["raw_score"]
    assert row.judged["paper"].label == expected["label"]
    assert row.judged["paper"].reason == expected["reason"]
    assert list(row.judged) == ["paper", "calibrated"]


def test_a_claim_that_only_the_correction_stops_says_so(
    small_run: Run, tables: dict[str, pl.DataFrame]
) -> None:
    stopped = tables[DECISIONS.name].with_columns(
        first_failed_gate=pl.lit("none"),
        beaten_by=pl.lit("false_discovery_rate"),
        q_value=pl.lit(0.25),
    )
    html = page_html(parts(small_run, tables | {DECISIONS.name: stopped}))
    said = "passes every test, but not the correction over claims (q = 0.25)"
    assert html.count(said) == stopped.height
    failed = claim_rows(tables)[0].judged["paper"].why
    assert failed.startswith("predictive: ")


def test_characters_that_no_page_can_hold_are_boxes(
    small_run: Run, tables: dict[str, pl.DataFrame]
) -> None:
    odd = "a\x00b\x1b\ufffe"
    named = tables[DECISIONS.name].with_columns(model=pl.lit(odd))
    html = page_html(parts(small_run, tables | {DECISIONS.name: named}, verdict=odd))
    assert not set("\x00\x1b\ufffe") & set(html)
    assert Page(html).texts["h1"] == ["a\ufffdb\ufffd\ufffd"]
    assert 'data-model="a\ufffdb\ufffd\ufffd"' in html
