"""Claims keyed by recording: a key column has the name ``run``, some of its values are empty, and there is no score."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import lpact
from explorer_runs import STUDY
from lpact.study import Run
from lpact.web import create_app
from toy_analysis import Recordings, toy_registered


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    # Two lags, so that Methods could speak of a choice among them.
    dataset = STUDY["datasets"][0] | {"grid": {"lags_ms": [100.0, 200.0]}}
    study = {name: own for name, own in STUDY.items() if name != "lpact"}
    study |= {"datasets": [dataset], "recordings": {}}
    study["mechanisms"] = {"include": ["surprisal"], "options": {"surprisal": {}}}
    with toy_registered(Recordings):
        made = lpact.load_study(study)
        yield made.run(tmp_path_factory.mktemp("recordings") / "one", progress=False)


@pytest.fixture(scope="module")
def client(run: Run) -> Iterator[TestClient]:
    other = shutil.copytree(run.root, run.root.parent / "other")
    with TestClient(create_app([run.root, other]), base_url="http://127.0.0.1") as made:
        yield made


def test_every_claim_of_every_run_opens(client: TestClient) -> None:
    page = client.get("/decisions").text
    assert 'data-total="4"' in page
    links = [html.unescape(own) for own in re.findall(r'href="(/claim[^"]*)"', page)]
    assert len(set(links)) == 4
    for link in links:
        shown = client.get(link).text
        assert ("Run &#39;2&#39;." if "run=2" in link else "Run &#39;&#39;.") in shown
        behind = html.unescape(re.findall(r'href="(/runs/[^"]*recordings/labels[^"]*)"', shown)[0])
        assert 'data-total="1"' in client.get(behind).text


def test_the_matrix_is_filtered_by_recording_and_by_run(client: TestClient) -> None:
    for query, n in (("run=2", 2), ("run_slug=other", 2), ("run=2&run_slug=other", 1)):
        assert f'data-total="{n}"' in client.get(f"/decisions?{query}").text
    csv = client.get("/decisions.csv?run_slug=one&sort=run&dir=desc").text.splitlines()
    assert csv[0] == "run_slug,dataset,run,label,reason"
    assert csv[1].startswith("one,sim,2,named")
    assert client.get("/decisions?sort=run_slug").status_code == 200


def test_a_claim_that_does_not_exist_is_not_found(client: TestClient) -> None:
    assert client.get("/claim?run_slug=one&dataset=none").status_code == 404


def test_the_report_has_no_score_and_no_shared_parts_that_nobody_uses(run: Run, tmp_path: Path) -> None:
    written = run.report(tmp_path / "report", tables=False)
    assert "The strongest claim in full" in written.page.read_text()
    assert 'data-claim="sim/2"' in written.page.read_text()
    methods = (written.folder / "methods.md").read_text()
    assert "integrated" in methods
    for words in ("readout", "ridge", "training rows", "Control ", "Mechanism "):
        assert words not in methods
