"""A run that asks two questions: every page shows both, and knows neither by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import lpact
from explorer_runs import STUDY
from lpact.study import Run
from lpact.web import create_app
from toy_analysis import toy_registered

BASE = "http://127.0.0.1"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with toy_registered():
        study = lpact.load_study({**STUDY, "toy": {}})
        yield study.run(tmp_path_factory.mktemp("two") / "both", progress=False)


@pytest.fixture(scope="module")
def client(run: Run) -> Iterator[TestClient]:
    with TestClient(create_app([run.root]), base_url=BASE) as made:
        yield made


def test_the_overview_shows_both(client: TestClient) -> None:
    page = client.get("/").text
    assert "0 names are long." in page
    assert "confirmatory claim" in page
    assert "Decision matrix of toy" in page
    assert re.findall(r'data-verdict="(\w+)" data-profile="">(\d+)<', page) == [("short_name", "1")]


def test_the_matrix_shows_one_at_a_time(client: TestClient) -> None:
    first, toy = client.get("/decisions").text, client.get("/decisions?analysis=toy").text
    assert "first failed gate" in first
    assert "first failed gate" not in toy
    assert 'data-total="1"' in toy
    assert "short name" in toy
    assert 'href="/claim?run_slug=both&amp;analysis=toy&amp;dataset=sim"' in toy
    assert client.get("/decisions?analysis=other").status_code == 400
    csv = client.get("/decisions.csv?analysis=toy").text.splitlines()
    assert csv == [
        "run_slug,dataset,n_letters,long,label,reason",
        "both,sim,3.0,false,short_name,The name has 3 letters.",
    ]


def test_without_a_name_the_first_analysis_of_the_run_is_shown(run: Run, tmp_path: Path) -> None:
    alone = lpact.load_study({**STUDY, "toy": {}}).only("toy").run(tmp_path / "toyb", progress=False)
    with TestClient(create_app([run.root, alone.root]), base_url=BASE) as client:
        assert "short name" in client.get("/decisions?run_slug=toyb").text
        assert "short_name" in client.get("/decisions.csv?run_slug=toyb").text
        assert "The name has 3 letters." in client.get("/claim?run_slug=toyb&dataset=sim").text
        assert "first failed gate" in client.get("/decisions?run_slug=both").text
        assert client.get("/decisions?run_slug=toyb&analysis=lpact").status_code == 404


def test_a_claim_without_profiles_is_explained(client: TestClient) -> None:
    page = client.get("/claim?run_slug=both&analysis=toy&dataset=sim").text
    assert "The name has 3 letters." in page
    assert "3; must be above 4" in page
    assert 'href="/runs/both/tables/toy/name_lengths?is.dataset=sim"' in page
    assert "Gate profile" not in page
    assert client.get("/claim?run_slug=both&analysis=toy&dataset=none").status_code == 404
    assert client.get("/runs/both/tables/toy/name_lengths?is.dataset=sim").status_code == 200


def test_the_report_shows_both(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = type(run.analysis("lpact"))
    monkeypatch.setattr(analysis, "figures", {})
    written = run.report(tmp_path / "report", tables=False)
    page = written.page.read_text()
    assert "0 names are long." in page
    assert 'data-analysis="toy"' in page
    assert 'data-analysis="lpact"' in page
    assert "toy: Counting" in page
    assert "Letters of names were counted." in (written.folder / "methods.md").read_text()
    assert "The strongest claim in full (toy)" in page


def test_a_notebook_shows_both(run: Run) -> None:
    page = run._repr_html_()
    assert "toy: 0 names are long." in page
    assert "1 claim of toy" in page
    assert run.claim("sim", analysis="toy").label == "short_name"
