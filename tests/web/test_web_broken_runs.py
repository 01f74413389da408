"""One broken run among several: the others are shown, and the page says which is not and why."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient

from lpact.errors import RunError
from lpact.web import create_app
from lpact.web.query import Database

BASE = "http://127.0.0.1"
TABLE = "decisions/lpact_decision_table"


def relist(run: Path, frame: pl.DataFrame) -> None:
    """Put another table there, as if the run had been published with it."""
    file = run / f"{TABLE}.parquet"
    frame.write_parquet(file)
    manifest = json.loads((run / "manifest.json").read_text())
    for output in manifest["outputs"]:
        if output["path"] == f"{TABLE}.parquet":
            output["n_bytes"] = file.stat().st_size
            output["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    (run / "manifest.json").write_text(json.dumps(manifest))


def unlist(run: Path) -> None:
    """Take the table out of the manifest."""
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["outputs"] = [output for output in manifest["outputs"] if not output["path"].startswith(TABLE)]
    (run / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture(params=["vanished", "table away", "not listed", "column away", "other type"])
def three(
    request: pytest.FixtureRequest, tiny_run: Path, planted: Path, tmp_path: Path
) -> Iterator[tuple[TestClient, str]]:
    """An explorer over three runs of which the first is broken, and what the page must say about it."""
    broken = Path(shutil.copytree(tiny_run, tmp_path / "broken"))
    frame = pl.read_parquet(broken / f"{TABLE}.parquet")
    why = {
        "vanished": str(broken),
        "table away": f"{TABLE}.parquet",
        "not listed": f"he run has no table '{TABLE}'",
        "column away": "beaten_by",
        "other type": "layer: String",
    }[request.param]
    if request.param == "not listed":
        unlist(broken)
    elif request.param == "column away":
        relist(broken, frame.drop("beaten_by"))
    elif request.param == "other type":
        relist(broken, frame.with_columns(pl.col("layer").cast(pl.String)))
    with TestClient(create_app([broken, tiny_run, planted]), base_url=BASE) as client:
        if request.param == "vanished":
            shutil.rmtree(broken)
        elif request.param == "table away":
            (broken / f"{TABLE}.parquet").unlink()
        yield client, why


def total(page: str) -> int:
    (found,) = re.findall(r'data-total="(\d+)"', page)
    return int(found)


def test_a_broken_run_takes_nothing_from_the_others(three: tuple[TestClient, str], decisions: pl.DataFrame) -> None:
    client, why = three
    n = decisions.filter(gate_profile="paper").height
    for path, expected in (("/decisions", 2 * n), ("/decisions?run_slug=tiny", n)):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert total(answer.text) == expected
        said = answer.text.replace("&#39;", "'")
        assert "The claims of the run broken are not shown" in said
        assert why in said
        assert '<option value="drift"' in answer.text  # a filter from the readable runs
    assert client.get("/decisions?run_slug=broken").status_code == 500
    assert client.get("/").status_code == 200


def test_a_download_is_whole_or_refused(three: tuple[TestClient, str], decisions: pl.DataFrame) -> None:
    client, _ = three
    n = decisions.filter(gate_profile="paper").height
    refused = client.get("/decisions.csv")
    assert refused.status_code == 500
    assert "not all runs can be read" in refused.text
    assert "broken" in refused.text
    one = client.get("/decisions.csv?run_slug=tiny")
    assert one.status_code == 200
    assert len(one.text.splitlines()) == n + 1
    assert "/decisions.csv" not in client.get("/decisions").text
    assert "/decisions.csv?run_slug=tiny" in client.get("/decisions?run_slug=tiny").text


def test_whole_runs_are_shown_without_a_warning(two: TestClient) -> None:
    page = two.get("/decisions").text
    assert "are not shown" not in page
    assert "/decisions.csv" in page


def test_a_comparison_that_cannot_be_made_keeps_its_form(tiny_run: Path, planted: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(tiny_run, tmp_path / "broken"))
    with TestClient(create_app([broken, tiny_run, planted]), base_url=BASE) as client:
        shutil.rmtree(broken)
        answer = client.get("/compare")
        assert answer.status_code == 500
        assert str(broken) in answer.text
        assert '<select name="a">' in answer.text
        assert client.get("/compare?a=tiny&b=planted").status_code == 200


def test_a_manifest_that_becomes_a_link_is_not_followed(tiny_run: Path, planted: Path, tmp_path: Path) -> None:
    """What is compared is what was checked when the explorer started."""
    copy = Path(shutil.copytree(tiny_run, tmp_path / "copy"))
    elsewhere = tmp_path / "elsewhere.json"
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["config"]["name"] = "read from elsewhere"
    elsewhere.write_text(json.dumps(manifest))
    with TestClient(create_app([tiny_run, copy]), base_url=BASE) as client:
        (copy / "manifest.json").unlink()
        os.symlink(elsewhere, copy / "manifest.json")
        answer = client.get("/compare")
    assert answer.status_code == 200
    assert "read from elsewhere" not in answer.text
    assert "Nothing differs" in answer.text


def test_a_table_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.parquet"
    file.write_bytes(b"PAR1 this is no table PAR1")
    database = Database([file])
    with pytest.raises(RunError) as told:
        database.rows("SELECT * FROM read_parquet($file)", {"file": str(file), "other": ["x"]})
    assert told.value.where == str(file)
    database.close()


def test_an_error_while_rows_are_streamed_is_told() -> None:
    database = Database([])
    sql = "SELECT CASE WHEN i > 150000 THEN error('planted') ELSE i END AS x FROM range(200000) t(i)"
    # Whether the first piece still comes depends on how far the engine reads ahead.
    with pytest.raises(RunError, match="cannot be read") as told:
        list(database.batches(sql, {}))
    assert "planted" in str(told.value.got)
    whole = list(database.batches("SELECT i FROM range(120000) t(i)", {}))
    assert sum(piece.height for piece in whole) == 120_000
    database.close()
