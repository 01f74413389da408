"""The page: verdict first, every claim with its evidence, nothing from data that is more than text."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest

from lpact.analyses.explanation import ClaimTable, Conclusion, Outcome
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY, EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.decisions import DECISIONS, GATE_EVIDENCE
from lpact.analyses.lpact.terminal_blocks import unavailable
from lpact.config import flat_options
from lpact.report.figure import Figure, Missing
from lpact.report.page import (
    AnalysisPart,
    Drawn,
    claim_rows,
    evidence_data,
    page_html,
    script_json,
    strongest,
)
from lpact.study import Run
from lpact.tables import Column, Table

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


SVG = '<svg width="1"><path class="m" data-dataset="a" aria-label="x" fill="#0072b2"><title>x</title></path></svg>'
DRAWN = (
    Drawn("verdict", Figure("one", "One", "Caption one.", "Summary.", {}), SVG),  # type: ignore[arg-type]
    Drawn("why", Missing("two", "Two", "There is no table for it.")),
)
CONCLUSION = Conclusion("lpact", "One sentence.", ("Because.",), (Outcome("C", "Little.", "paper"),))


def of_lpact(run: Run, tables: dict[str, pl.DataFrame], **changes: Any) -> AnalysisPart:
    content: dict[str, Any] = {
        "conclusion": CONCLUSION,
        "claims": tables[DECISIONS.name],
        "evidence": tables[GATE_EVIDENCE.name],
        "drawn": DRAWN,
        "unavailable": unavailable(tables),
    }
    return AnalysisPart(run.analysis(), **(content | changes))


def page_of(run: Run, *analyses: AnalysisPart, **changes: Any) -> str:
    content: dict[str, Any] = {
        "registration": None,
        "methods": "We did it.",
        "bibtex": "@article{key}",
        "table_files": [("a/b", "A row.", 1234, {"csv": "tables/a/b.csv"})],
    }
    return page_html(run.manifest, analyses, **(content | changes))


def plain_page(run: Run, tables: dict[str, pl.DataFrame], **changes: Any) -> str:
    return page_of(run, of_lpact(run, tables, **changes))


def test_the_page_has_its_parts_in_order(small_run: Run, tables: dict[str, pl.DataFrame]) -> None:
    html = plain_page(small_run, tables)
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
    assert "Because." in html
    assert "Little." in html
    # The picture follows the theme and leaves hovering to the page.
    assert 'fill="var(--pass, #0072b2)"' in html
    assert "<title>x" not in html


def test_every_claim_is_a_row_with_both_profiles(small_run: Run, tables: dict[str, pl.DataFrame]) -> None:
    page = Page(plain_page(small_run, tables))
    keys = [row["data-claim"] for row in page.of("tr") if "data-claim" in row]
    claims = small_run.claims()
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


def test_evidence_of_the_page_is_that_of_the_table(small_run: Run, tables: dict[str, pl.DataFrame]) -> None:
    shown = small_run.analysis().claims
    rows = claim_rows(shown, tables[DECISIONS.name])
    data = evidence_data(shown, rows, tables[GATE_EVIDENCE.name])
    rebuilt = [
        (*map(str, row["key"].values()), profile, *data["criteria"][index])
        for row, profiles in zip(rows, data["claims"], strict=True)
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
    key = {"dataset": EVIL, "model": EVIL, "layer": 2, "mechanism": EVIL}
    example = small_run.claim("planted/integrated/2/surprisal").explain()
    own = of_lpact(
        small_run,
        evil,
        conclusion=Conclusion("lpact", EVIL, (EVIL,), (Outcome(EVIL, EVIL, EVIL),)),
        drawn=[Drawn("why", Missing("two", EVIL, EVIL))],
        example=replace(example, claim=key, reason=EVIL, facts=((EVIL, EVIL),)),
        unavailable=[(EVIL, EVIL, EVIL)],
    )
    files = [(EVIL, EVIL, 1, {"csv": EVIL})]
    html = page_of(small_run, own, methods=EVIL, bibtex=EVIL, table_files=files)
    page = Page(html)
    scripts = page.of("script")
    assert scripts == [{"type": "application/json", "id": "evidence"}, {}]
    assert "alert" not in "".join(page.texts["script"][1:])
    assert page.texts["h1"] == [EVIL]
    criteria = json.loads(page.texts["script"][0])["lpact"]["criteria"]
    assert {sentence for _, _, sentence in criteria} == {EVIL}


def test_nothing_runs_but_the_pages_own_script(small_run: Run, tables: dict[str, pl.DataFrame]) -> None:
    html = plain_page(small_run, tables)
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
    handlers = [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    assert handlers == []
    assert not [a for _, attributes in page.elements for a in attributes if a == "style"]


def test_script_json_gives_its_values_back() -> None:
    value = {"a": ["<", ">", "&", "\u2028", "\u2029", EVIL], "n": [1, 2.5, None, True]}
    text = script_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_unavailable_names_what_where_and_why(tables: dict[str, pl.DataFrame]) -> None:
    roles = [(what, where) for what, where, _ in unavailable(tables)]
    assert ("confirmatory role", "empty") in roles
    none = tables[CONTROL_AVAILABILITY.name].with_columns(available=True)
    one = none.with_columns(
        available=(pl.col("control") != "circular_shift") | (pl.col("model") != "integrated"),
        detail=pl.lit("no time to shift"),
    )
    before = {what for what, _, _ in unavailable(tables | {CONTROL_AVAILABILITY.name: none})}
    found = [
        (where, why)
        for what, where, why in unavailable(tables | {CONTROL_AVAILABILITY.name: one})
        if what == "control circular_shift"
    ]
    assert "control circular_shift" not in before
    assert found == [
        ("empty, integrated, layers 1, 2", "no time to shift"),
        ("planted, integrated, layers 1, 2", "no time to shift"),
    ]
    assert unavailable({}) == []
    assert EVIDENCE_FEASIBILITY.name in tables


def test_options_are_listed_by_path() -> None:
    config = {"a": 1, "b": {"c": [1, 2], "d": {}}, "e": [{"name": "x", "f": "g"}, {"h": None}]}
    assert list(flat_options(config)) == [
        ("a", 1),
        ("b.c", [1, 2]),
        ("b.d", {}),
        ("e", ["x", 1]),
        ("e[x].f", "g"),
        ("e[1].h", None),
    ]


def test_a_claim_row_has_score_and_labels(small_run: Run, tables: dict[str, pl.DataFrame]) -> None:
    rows = claim_rows(small_run.analysis().claims, tables[DECISIONS.name])
    row = next(r for r in rows if r["key"]["dataset"] == "planted" and r["key"]["layer"] == 2)
    expected = tables[DECISIONS.name].filter(**row["key"], gate_profile="paper").row(0, named=True)
    assert row["score"] == f"{expected['raw_score']:.4g}"
    judged = row["judged"]["paper"]
    assert (judged["label"], judged["reason"]) == (expected["label"], expected["reason"])
    assert list(row["judged"]) == ["paper", "calibrated"]


def test_the_strongest_claim_has_the_best_label_then_the_best_score(
    small_run: Run, tables: dict[str, pl.DataFrame]
) -> None:
    shown = small_run.analysis().claims
    claims = tables[DECISIONS.name].filter(gate_profile="paper")
    labels = list(shown.labels)
    best = min(claims["label"], key=labels.index)
    expected = claims.filter(label=best)["raw_score"].max()
    found = strongest(shown, tables[DECISIONS.name])
    assert found is not None
    row = claims.filter(**found).row(0, named=True)
    assert (row["label"], row["raw_score"]) == (best, expected)
    assert strongest(shown, claims.clear()) is None


class Toy:
    """An analysis without profiles, gates, score and evidence."""

    name = "toy"
    summary = "A toy."
    claims = ClaimTable(
        Table("toy/claims", "One row per claim.", ("colour",), (Column("colour", "str", "Colour."),)),
        ("colour",),
        {"yes": "It is so.", "no": "It is not."},
    )


def test_two_analyses_are_shown_on_one_page(small_run: Run, tables: dict[str, pl.DataFrame]) -> None:
    claims = pl.DataFrame({"colour": ["red", "blue"], "label": ["yes", "no"], "reason": ["a", "b"]})
    toy = AnalysisPart(Toy(), Conclusion("toy", "It is a toy."), claims)  # type: ignore[arg-type]
    html = page_of(small_run, of_lpact(small_run, tables), toy)
    page = Page(html)
    assert page.texts["h1"] == ["small"]
    assert "It is a toy." in html
    assert "One sentence." in html
    assert [t["data-analysis"] for t in page.of("table") if "data-analysis" in t] == [
        "lpact",
        "toy",
    ]
    rows = [r for r in page.of("tr") if r.get("data-colour")]
    assert [(r["data-claim"], r["data-colour"]) for r in rows] == [("blue", "blue"), ("red", "red")]
    evidence = json.loads(page.texts["script"][0])
    assert evidence["toy"] == {"profiles": {"": ""}, "criteria": [], "claims": [{}, {}]}
    selects = [s["name"] for s in page.of("select")]
    assert selects == ["dataset", "model", "layer", "mechanism", "colour", "profile"]
    assert 'id="figure-lpact-one"' in html


def test_characters_that_no_page_can_hold_are_boxes(small_run: Run, tables: dict[str, pl.DataFrame]) -> None:
    odd = "a\x00b\x1b\ufffe"
    named = tables[DECISIONS.name].with_columns(model=pl.lit(odd))
    html = plain_page(small_run, tables, claims=named, conclusion=Conclusion("lpact", odd))
    assert not set("\x00\x1b\ufffe") & set(html)
    assert Page(html).texts["h1"] == ["a\ufffdb\ufffd\ufffd"]
    assert 'data-model="a\ufffdb\ufffd\ufffd"' in html
