"""Every page says what the tables say; the numbers are worked out again with Polars."""

from __future__ import annotations

import html
import io
import json
import re
from pathlib import Path
from urllib.parse import urlencode

import polars as pl
import pytest
from starlette.testclient import TestClient

from lpact.wording import fixed

SCORES = "relational/profile_similarity_scores"
GATE_COLUMNS = {
    "P": "predictive",
    "S": "severe_control",
    "R": "relational",
    "M": "mechanism_specific",
    "T": "ceiling",
    "Rep": "replication",
}


def total(page: str) -> int:
    (found,) = re.findall(r'data-total="(\d+)"', page)
    return int(found)


def cells(page: str) -> list[list[str]]:
    """Texts of the body rows of the results."""
    results = page[page.index('id="results"') : page.index("</main>")]
    body = results[results.index("<tbody") : results.index("</tbody>")]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return [
        [
            html.unescape(re.sub(r"<[^>]*>", "", cell)).strip()
            for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)
        ]
        for row in rows
    ]


def get(client: TestClient, path: str, **query: object) -> str:
    answer = client.get(f"{path}?{urlencode(query)}" if query else path)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_the_overview_counts_verdicts_and_gates(client: TestClient, decisions: pl.DataFrame, tiny_run: Path) -> None:
    page = get(client, "/")
    shown = {
        (label, profile): int(n)
        for label, profile, n in re.findall(r'data-verdict="(\w+)" data-profile="(\w+)">(\d+)<', page)
    }
    counted = decisions.group_by("label", "gate_profile").len()
    assert shown == {(label, profile): n for label, profile, n in counted.iter_rows()}
    assert len(shown) >= 2
    outcomes = pl.read_parquet(tiny_run / "decisions" / "lpact_study_outcome.parquet")
    for row in outcomes.iter_rows(named=True):
        assert row["meaning"] in page
    for profile, part in decisions.group_by("gate_profile"):
        column = 1 + ["paper", "calibrated"].index(str(profile[0]))
        for letter, name in GATE_COLUMNS.items():
            row = re.search(rf'<b class="letter">{letter}</b>.*?</tr>', page, re.DOTALL)
            assert row is not None
            numbers = re.findall(r'class="num">(\d+)<', row[0])
            assert int(numbers[column - 1]) == part[name].sum(), (profile, letter)


def test_the_matrix_shows_the_decision_table(client: TestClient, decisions: pl.DataFrame) -> None:
    page = get(client, "/decisions")
    paper = decisions.filter(gate_profile="paper").sort("dataset", "model", "layer", "mechanism")
    assert total(page) == paper.height
    shown = cells(page)
    assert len(shown) == paper.height
    for row, texts in zip(paper.iter_rows(named=True), shown, strict=True):
        assert texts[:5] == [
            row["dataset"],
            row["model"],
            str(row["layer"]),
            row["mechanism"],
            fixed(row["raw_score"]),
        ]
        words = ["pass" if row[name] else "fail" for name in GATE_COLUMNS.values()]
        assert [
            text.split()[-1].removeprefix(letter) for letter, text in zip(GATE_COLUMNS, texts[5:11], strict=True)
        ] == words
        assert texts[11] == row["label"].replace("_", " ")
        assert texts[12] == row["first_failed_gate"]
        assert texts[13] == row["beaten_by"]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ({"model": "drift"}, pl.col("model") == "drift"),
        ({"layer": "2"}, pl.col("layer") == 2),
        ({"layer": "3"}, pl.lit(value=False)),
        (
            {"mechanism": "surprisal", "model": "integrated"},
            (pl.col("mechanism") == "surprisal") & (pl.col("model") == "integrated"),
        ),
        ({"verdict": "control_explained"}, pl.col("label") == "control_explained"),
        ({"first_failed_gate": "predictive"}, pl.col("first_failed_gate") == "predictive"),
        ({"q": "DRIF"}, pl.col("model") == "drift"),
        ({"dataset": "sim' OR 1=1 --"}, pl.lit(value=False)),
        ({"q": "%"}, pl.any_horizontal(pl.col(pl.String).str.contains("%", literal=True))),
    ],
)
@pytest.mark.parametrize("profile", ["paper", "calibrated", "both"])
def test_filters_of_the_matrix(
    client: TestClient, decisions: pl.DataFrame, query: dict[str, str], kept: pl.Expr, profile: str
) -> None:
    chosen = decisions if profile == "both" else decisions.filter(gate_profile=profile)
    n = chosen.filter(kept).height
    page = get(client, "/decisions", **query, **({} if profile == "paper" else {"profile": profile}))
    assert total(page) == n
    assert sum(int(k) for k in re.findall(r'data-count="\w+">(\d+)<', page)) == n
    downloaded = client.get("/decisions.csv", params={**query, "profile": profile}).text
    assert len(downloaded.splitlines()) == n + 1


def test_sorting_and_paging_the_matrix(client: TestClient, decisions: pl.DataFrame) -> None:
    page = get(client, "/decisions", profile="both", sort="raw_score", dir="desc")
    scores = [float(row[5].replace("−", "-")) for row in cells(page)]
    assert scores == [round(v, 3) for v in sorted(decisions["raw_score"], reverse=True)]
    assert 'aria-sort="descending"' in page


def test_empty_fields_and_unknown_parameters_leave_the_links(client: TestClient) -> None:
    answer = client.get("/decisions?q=&model=drift&x=1")
    assert answer.status_code == 200
    assert 'href="/decisions?model=drift&amp;sort=' in answer.text
    assert "x=1" not in answer.text


def test_downloads_hold_what_is_shown(client: TestClient, decisions: pl.DataFrame) -> None:
    wanted = decisions.filter(gate_profile="calibrated", model="drift").sort("mechanism", descending=True)
    query = {"profile": "calibrated", "model": "drift", "sort": "mechanism", "dir": "desc"}
    text = client.get("/decisions.csv", params=query).text
    read = pl.read_csv(io.StringIO(text), schema_overrides=decisions.schema)
    assert read["run_slug"].to_list() == ["tiny"] * wanted.height
    assert read.drop("run_slug").equals(wanted)
    rows = json.loads(client.get("/decisions.json", params=query).text)
    assert [{k: v for k, v in row.items() if k != "run_slug"} for row in rows] == wanted.to_dicts()
    assert json.loads(client.get("/decisions.json", params={"model": "none"}).text) == []


def test_a_whole_table_downloads_as_its_csv_twin(client: TestClient, tiny_run: Path) -> None:
    names = [path.relative_to(tiny_run).with_suffix("") for path in tiny_run.rglob("*.parquet")]
    assert len(names) > 30
    for name in names:
        answer = client.get(f"/runs/tiny/download/{name.as_posix()}.csv")
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == f'attachment; filename="{name.name}.csv"'
        assert answer.content == (tiny_run / f"{name}.csv").read_bytes(), name


def test_every_table_has_a_page_with_meanings_and_units(client: TestClient, tiny_run: Path) -> None:
    listed = get(client, "/runs/tiny")
    names = [path.relative_to(tiny_run).with_suffix("").as_posix() for path in tiny_run.rglob("*.parquet")]
    for name in names:
        assert f'href="/runs/tiny/tables/{name}"' in listed
        page = get(client, f"/runs/tiny/tables/{name}")
        frame = pl.read_parquet(tiny_run / f"{name}.parquet")
        assert total(page) == frame.height
        if frame.height:
            assert len(cells(page)) == min(frame.height, 50)
    inventory = get(client, "/runs/tiny/tables/audits/lpact_dataset_unit_inventory")
    assert "sampling_rate_hz (Hz)" in inventory
    assert "Hash of the canonical unit order." in inventory


def test_conditions_of_a_table(client: TestClient, tiny_run: Path) -> None:
    frame = pl.read_parquet(tiny_run / f"{SCORES}.parquet")
    path = f"/runs/tiny/tables/{SCORES}"
    middle = float(frame["similarity"].median())  # type: ignore[arg-type]
    for relation, kept in {
        "ge": pl.col("similarity") >= middle,
        "le": pl.col("similarity") <= middle,
        "null": pl.col("similarity").is_null(),
        "some": pl.col("similarity").is_not_null(),
    }.items():
        page = get(client, path, **{"is.model": "drift"}, col="similarity", op=relation, val=repr(middle))
        assert total(page) == frame.filter(kept, model="drift").height, relation
    both = f"{path}?col=condition&op=has&val=RANDOM&col=counted&op=is&val=yes"
    kept = frame.filter(pl.col("condition").str.contains("random"), counted=True)
    assert total(client.get(both).text) == kept.height > 0
    other = get(client, path, col="condition", op="not", val="real")
    assert total(other) == frame.filter(pl.col("condition") != "real").height


def test_lists_are_shortened_on_the_page_only(client: TestClient, tiny_run: Path) -> None:
    name = "predictive/predictive_unit_scores"
    frame = pl.read_parquet(tiny_run / f"{name}.parquet")
    (column,) = [n for n, kind in frame.schema.items() if kind == pl.List(pl.Float64)]
    place = frame.columns.index(column)
    first = frame[column].to_list()[0]
    shown = cells(get(client, f"/runs/tiny/tables/{name}"))[0][place]
    assert shown == "[" + ", ".join(f"{v:#.4g}" for v in first[:4]) + f", … {len(first)} values]"


def test_a_claim_page_shows_its_gates_and_draws_its_numbers(
    client: TestClient, decisions: pl.DataFrame, tiny_run: Path
) -> None:
    evidence = pl.read_parquet(tiny_run / "decisions" / "lpact_gate_evidence.parquet")
    for profile in ("paper", "calibrated"):
        claim = {"dataset": "sim", "model": "integrated", "layer": 2, "mechanism": "surprisal"}
        page = html.unescape(get(client, "/claim", run_slug="tiny", **claim, profile=profile))
        row = decisions.filter(**claim, gate_profile=profile).row(0, named=True)
        assert row["reason"] in page
        for one in evidence.filter(**claim, gate_profile=profile).iter_rows(named=True):
            assert one["sentence"] in page, one["criterion"]
        chain = page[page.index('class="x-chain"') : page.index('class="x-facts"')]
        words = re.findall(r"</span> (pass|fail)</span>", chain)
        assert words == ["pass" if row[name] else "fail" for name in GATE_COLUMNS.values()]
        assert page.count('<svg class="distribution" viewBox="0 0 460') > 5


def test_a_missing_claim_is_not_found(client: TestClient) -> None:
    asked = {
        "run_slug": "tiny",
        "dataset": "sim",
        "model": "integrated",
        "layer": 9,
        "mechanism": "surprisal",
    }
    assert client.get("/claim", params=asked).status_code == 404
    assert client.get("/claim", params={**asked, "layer": 2}).status_code == 200
    assert client.get("/claim", params={**asked, "layer": ""}).status_code == 400
    del asked["model"]  # stands for an empty name
    assert client.get("/claim", params=asked).status_code == 404


def test_runs_are_kept_apart_and_compared(two: TestClient, decisions: pl.DataFrame) -> None:
    paper = decisions.filter(gate_profile="paper").height
    assert total(get(two, "/decisions")) == 2 * paper
    assert total(get(two, "/decisions", run_slug="planted")) == paper
    page = get(two, "/compare")
    # No claim has the same names in both: all are only in one of them.
    assert f"{paper} claims only in tiny" in page
    assert f"{paper} claims only in planted" in page
    assert "The same input files." in page
    assert "same run" in get(two, "/compare", a="tiny", b="tiny")
