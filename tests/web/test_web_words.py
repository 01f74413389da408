"""What a new reader sees: names of gate profiles, numbers and their bounds, order of verdicts, what to do next."""

from __future__ import annotations

import html
import re
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient

from explorer_runs import rewrite
from lpact.analyses.lpact.analysis import LPact
from lpact.codes import FinalLabel
from lpact.report.explanation import needed
from lpact.web import create_app
from lpact.web.site import tone

BASE = "http://127.0.0.1"
CLAIM = {
    "run_slug": "tiny",
    "dataset": "sim",
    "model": "integrated",
    "layer": 2,
    "mechanism": "surprisal",
}


@pytest.mark.parametrize(
    ("value", "relation", "threshold", "said"),
    [
        (-0.0025521, ">", 0.0, "−0.002552; must be above 0"),
        (0.0, ">=", 0.5, "0; must be at least 0.5"),
        (0.2, "<=", 0.05, "0.2; must be at most 0.05"),
        (None, ">", 0.0, "missing; must be above 0"),
        (float("nan"), ">", 0.0, "missing; must be above 0"),
    ],
)
def test_a_number_and_its_bound_are_no_false_statement(
    value: float | None, relation: str, threshold: float, said: str
) -> None:
    assert needed(value, relation, threshold) == said


def test_a_claim_says_what_its_numbers_must_be(client: TestClient, tiny_run: Path) -> None:
    page = html.unescape(client.get("/claim", params=CLAIM).text)
    evidence = pl.read_parquet(tiny_run / "decisions" / "lpact_gate_evidence.parquet").filter(
        pl.col("criterion") != "confirmatory",
        gate_profile="paper",
        **{name: value for name, value in CLAIM.items() if name != "run_slug"},
    )
    above = evidence.filter(pl.col("relation") == ">", pl.col("value").is_not_null())
    assert above.height > 0
    for row in above.iter_rows(named=True):
        value = f"{row['value']:.4g}".replace("-", "−")
        assert f"{value}; must be above {row['threshold']:.4g}" in page


def test_every_label_has_its_place_and_mark() -> None:
    labels = LPact.claims.labels
    assert set(labels) == {label.value for label in FinalLabel}
    assert next(iter(labels)) == "integrated_candidate"
    assert list(labels)[-1] == "diagnostic_only"
    assert [tone(label, labels) for label in labels] == [
        *["strong"] * 3,
        *["middle"] * 3,
        *["weak"] * 3,
    ]
    assert tone("unheard_of", labels) == "other"


def test_the_filter_of_verdicts_starts_with_the_strongest(tiny_run: Path, tmp_path: Path) -> None:
    labels = ["diagnostic_only", "null", "integrated_candidate"]

    def relabel(frame: pl.DataFrame) -> pl.DataFrame:
        if not {"label", "first_failed_gate"} <= set(frame.columns):
            return frame
        made = [labels[i % 3] for i in range(frame.height)]
        return frame.with_columns(pl.Series("label", made, pl.String))

    run = rewrite(tiny_run, tmp_path / "labelled", relabel, "labelled")
    with TestClient(create_app([run]), base_url=BASE) as client:
        page = client.get("/decisions?profile=both").text
        (options,) = re.findall(r'<select name="verdict">(.*?)</select>', page, re.DOTALL)
        wanted = ["integrated_candidate", "null", "diagnostic_only"]
        assert re.findall(r'value="(\w+)"', options) == wanted
        assert re.findall(r'data-count="(\w+)"', page) == wanted
        over = re.findall(r'data-verdict="(\w+)" data-profile="paper"', client.get("/").text)
        assert over == [label for label in wanted if label in over]


@pytest.mark.parametrize("path", ["/", "/decisions", "/claim", "/runs/tiny"])
def test_gate_profiles_are_named_as_in_the_report(client: TestClient, path: str) -> None:
    page = client.get(path, params=CLAIM if path == "/claim" else {}).text
    assert "point rules of the paper (paper)" in page
    assert "every gate is a test (calibrated)" in page
    assert "paper (point rules)" not in page


def test_one_run_is_not_compared_with_itself(client: TestClient, two: TestClient) -> None:
    page = client.get("/compare").text
    assert "A second run is needed" in page
    assert "lpact explore tiny OTHER_RUN" in page
    assert "<form" not in page
    assert '<select name="a">' in two.get("/compare").text
    assert "every gate is a test (calibrated)" in two.get("/compare").text


def test_very_long_names_lead_to_their_claim(tiny_run: Path, tmp_path: Path) -> None:
    """What a table holds can be asked for: the links of the matrix open."""
    long = {"integrated": "ä" * 900, "surprisal": "m" * 3_000}

    def lengthen(frame: pl.DataFrame) -> pl.DataFrame:
        names = [n for n in ("model", "mechanism", "stripped", "target") if n in frame.columns]
        return frame.with_columns(pl.col(name).replace(long) for name in names)

    run = rewrite(tiny_run, tmp_path / "long", lengthen, "long")
    with TestClient(create_app([run]), base_url=BASE) as client:
        page = client.get("/decisions", params={"model": long["integrated"]})
        assert page.status_code == 200
        links = re.findall(r'href="(/claim\?[^"]*)"', page.text)
        assert len(links) == 2
        for link in links:
            answer = client.get(html.unescape(link))
            assert answer.status_code == 200
            for behind in re.findall(r'href="(/runs/long/tables/[^"]*)"', answer.text):
                assert client.get(html.unescape(behind)).status_code == 200
        assert client.get("/decisions", params={"model": "x" * 8_001}).status_code == 400
