"""What the explorer refuses: foreign names, other methods, paths, links, changed files, odd addresses."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb
import pytest
from starlette.testclient import TestClient

from explorer_runs import IN_SENTENCES, PLANTED
from lpact.errors import ConfigError, RunError
from lpact.tables import Column, declared_tables
from lpact.web import create_app
from lpact.web.address import FACET, AddressError, parse_value
from lpact.web.pages import MATRIX
from lpact.web.pages import TABLE as TABLE_PARAMETERS
from lpact.web.query import Database
from lpact.web.runs import open_runs, unique_slugs
from lpact.web.server import HEADERS, host_name

BASE = "http://127.0.0.1"
TABLE = "decisions/lpact_decision_table"
CLAIM = "/claim?run_slug=tiny&dataset=sim&model=integrated&layer=2&mechanism=surprisal"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:80",
        "",
        "[::1",
        "[::1]evil.com",
        "[::1]:80evil.com",
        "localhost:@evil.com",
        "localhost:80@evil.com",
        "localhost/evil",
        "localhost:80:80",
        "evil.com@localhost",
    ],
)
def test_another_host_name_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9999", "[::1]:80", "LOCALHOST"])
def test_names_of_this_machine_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


def test_further_names_are_answered_if_allowed(tiny_run: Path) -> None:
    with TestClient(create_app([tiny_run], hosts=("lab.example", "*")), base_url=BASE) as client:
        assert client.get("/", headers={"Host": "lab.example:80"}).status_code == 200
        assert client.get("/", headers={"Host": "192.0.2.7"}).status_code == 200
        assert client.get("/", headers={"Host": "[2001:db8::1]:80"}).status_code == 200
        for other in ("other.example", "[2001:db8::1", "[192.0.2.7]", "192.0.2.7:@other.example"):
            assert client.get("/", headers={"Host": other}).status_code == 421, other


def test_host_names_lose_port_case_and_last_dot() -> None:
    assert host_name("LocalHost.:80") == "localhost"
    assert host_name("[::1]:8321") == "[::1]"
    assert host_name("[::1]8321") == ""


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_only_get_is_answered(client: TestClient, method: str) -> None:
    assert client.request(method, "/").status_code == 405


def test_a_request_body_is_not_read(client: TestClient) -> None:
    assert client.request("GET", "/", content=b"x" * 10).status_code == 413


@pytest.mark.parametrize(
    "path",
    ["/", "/decisions", "/decisions.csv", "/static/explorer.js", "/nowhere", "/decisions?sort=x"],
)
def test_every_answer_carries_the_headers(client: TestClient, path: str) -> None:
    answer = client.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value, name
    assert "'unsafe" not in answer.headers["Content-Security-Policy"]
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/decisions", f"/runs/tiny/tables/{TABLE}", "/runs/tiny", "/compare"])
def test_pages_have_no_inline_script_or_style(client: TestClient, path: str) -> None:
    page = client.get(path).text
    assert page.count("<script") == 1
    assert '<script src="/static/explorer.js"></script>' in page
    assert "<style" not in page
    assert " style=" not in page
    assert " onclick" not in page


@pytest.mark.parametrize(
    "path",
    [
        "/runs/%2e%2e/tables/decisions/lpact_decision_table",
        "/runs/tiny/tables/%2e%2e/manifest.json",
        "/runs/tiny/tables/..%2f..%2fetc/passwd",
        "/runs/tiny/tables/decisions/..%2f..%2fmanifest.json",
        "/runs/tiny/tables/decisions/%2fetc%2fpasswd",
        "/runs/tiny/download/decisions/lpact_decision_table.parquet.csv",
        "/runs/tiny/download/report/verdicts.csv",
        "/runs/%2fetc",
        "/runs/tiny%00",
        "/static/..%2fapp.py",
        "/static/%2e%2e/templates/base.html",
        "/static/base.html",
        "/manifest.json",
        "/docs",
        "/openapi.json",
    ],
)
def test_no_path_leads_out(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "config_digest" not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "query",
    [
        "sort=raw_score;drop table x",
        'sort="raw_score"',
        "sort=file_row_number",
        "dir=sideways",
        "page=0",
        "page=-1",
        "page=1e3",
        "page=99999999999999999999999",
        "page=٣",
        "size=1000000",
        "layer=two",
        "layer=9223372036854775808",
        "profile=other",
        f"q={'x' * 501}",
    ],
)
def test_an_odd_address_is_an_error_page(client: TestClient, query: str) -> None:
    answer = client.get(f"/decisions?{query}")
    assert answer.status_code == 400
    assert "what to do" in answer.text


@pytest.mark.parametrize(
    "query",
    [
        "col=nope&op=is&val=1",
        "col=layer&op=like&val=1",
        "col=layer&op=has&val=1",
        "col=raw_score&op=ge&val=nan",
        "col=layer&op=is",
        "is.nope=1",
        'is.dataset"=1',
        "&".join(["col=layer&op=ge&val=1"] * 13),
    ],
)
def test_odd_conditions_are_an_error_page(client: TestClient, query: str) -> None:
    assert client.get(f"/runs/tiny/tables/{TABLE}?{query}").status_code == 400


@pytest.mark.parametrize("path", ["/decisions", "/compare", CLAIM])
def test_parameters_that_a_page_does_not_know_are_dropped(client: TestClient, path: str) -> None:
    """Or every link of the page would carry them."""
    more = "&".join(f"is.x{i}=1" for i in range(50))
    answer = client.get(f"{path}{'&' if '?' in path else '?'}{more}")
    assert answer.status_code == 200
    assert "is.x" not in answer.text


def test_of_a_repeated_parameter_the_last_one_counts(client: TestClient) -> None:
    one, two = (client.get(f"/decisions?{q}").text for q in ("model=drift", "model=a&model=drift"))
    assert one.count("data-row") == two.count("data-row") > 0


def test_quotes_nulls_and_long_pages_are_only_text(client: TestClient) -> None:
    for text in ("'; DROP TABLE x; --", '" OR 1=1', "a\x00b", "\\", "$p0", "[*]", "é" * 200):
        page = client.get("/decisions", params={"q": text, "dataset": text})
        assert page.status_code == 200
        assert 'data-total="0"' in page.text
    assert client.get("/decisions?page=9223372036854775807").status_code == 200


def test_values_have_the_type_of_their_column() -> None:
    assert parse_value(Column("n", "int", ""), "-3") == -3
    assert parse_value(Column("b", "bool", ""), "No") is False
    assert parse_value(Column("x", "float", ""), "1e-3") == 0.001
    for kind, text in (
        ("int", "1.0"),
        ("int", "+1"),
        ("bool", "1"),
        ("float", "inf"),
        ("list[int]", "1"),
    ):
        with pytest.raises(AddressError):
            parse_value(Column("c", kind, ""), text)  # type: ignore[arg-type]


def test_no_column_has_the_name_of_a_parameter_of_a_table() -> None:
    assert FACET.endswith(".")
    names = {f"{FACET}{column.name}" for table in declared_tables().values() for column in table.columns}
    assert not names & {*TABLE_PARAMETERS, *MATRIX}


def copied(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "copy"))


def test_a_changed_table_is_an_error_page(tiny_run: Path, tmp_path: Path) -> None:
    run = copied(tiny_run, tmp_path)
    with TestClient(create_app([run]), base_url=BASE) as client:
        address = f"/runs/copy/tables/{TABLE}"
        assert client.get(address).status_code == 200
        file = run / f"{TABLE}.parquet"
        content = bytearray(file.read_bytes())
        content[200] ^= 1
        file.write_bytes(content)  # the same size: only the checksum tells
        os.utime(file, ns=(1, 1))
        answer = client.get(address)
        assert answer.status_code == 500
        assert "has changed since the run was published" in answer.text
        assert client.get("/").status_code == 200  # the overview says it in its place
        assert "has changed since the run was published" in client.get("/").text
        file.write_bytes(b"PAR1")
        assert "4 bytes" in client.get(address).text
        file.unlink()
        assert client.get(address).status_code == 500
        assert client.get("/runs/copy").status_code == 200
        assert client.get("/runs/copy/tables/audits/lpact_source_files").status_code == 200


@pytest.mark.parametrize("what", ["file", "folder", "inside"])
def test_links_in_a_run_are_refused(tiny_run: Path, tmp_path: Path, what: str) -> None:
    run = copied(tiny_run, tmp_path)
    file = run / f"{TABLE}.parquet"
    if what == "folder":
        shutil.move(file.parent, tmp_path / "elsewhere")
        file.parent.symlink_to(tmp_path / "elsewhere")
    else:
        target = (run if what == "inside" else tmp_path) / "moved.parquet"
        shutil.move(file, target)
        file.symlink_to(target)
    with TestClient(create_app([run]), base_url=BASE) as client:
        answer = client.get(f"/runs/copy/tables/{TABLE}")
        assert answer.status_code == 500
        assert "a symbolic link" in answer.text


def test_a_run_that_is_itself_a_link_is_shown(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tiny_run)
    with TestClient(create_app([tmp_path / "link"]), base_url=BASE) as client:
        assert client.get("/decisions").status_code == 200


def test_a_linked_manifest_is_refused(tiny_run: Path, tmp_path: Path) -> None:
    run = copied(tiny_run, tmp_path)
    shutil.move(run / "manifest.json", tmp_path / "manifest.json")
    (run / "manifest.json").symlink_to(tmp_path / "manifest.json")
    with pytest.raises(RunError, match="a link to another place"):
        create_app([run])


def test_the_database_reads_nothing_else(tiny_run: Path, tmp_path: Path) -> None:
    own = tiny_run / f"{TABLE}.parquet"
    other = tmp_path / "other.parquet"
    shutil.copy(own, other)
    database = Database([own])
    assert database.rows("SELECT count(*) FROM read_parquet($p)", {"p": str(own)})[0][0] > 0
    for sql in (
        f"SELECT * FROM read_parquet('{other}')",
        f"SELECT * FROM read_text('{tiny_run / 'manifest.json'}')",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'x.db'}'",
        "SET enable_external_access = true",
        "SET temp_directory = '.'",
        "INSTALL httpfs",
        "LOAD httpfs",
    ):
        with pytest.raises(RunError):
            database.rows(sql, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.parquet"]
    database.close()
    with pytest.raises(RunError, match="cannot be read") as told:
        database.rows("SELECT 1", {})
    assert isinstance(told.value.__cause__, duckdb.Error)


def test_planted_markup_stays_text(two: TestClient) -> None:
    claim = {
        "run_slug": "planted",
        "dataset": PLANTED["sim"],
        "model": PLANTED["integrated"],
        "layer": 2,
        "mechanism": PLANTED["surprisal"],
    }
    unit_table = "/runs/planted/tables/relational/profile_similarity_deltas"
    pages = [
        two.get("/"),
        two.get("/decisions", params={"q": PLANTED["sim"]}),
        two.get("/decisions", params={"dataset": PLANTED["sim"], "model": PLANTED["integrated"]}),
        two.get("/claim", params=claim),
        two.get("/claim", params={**claim, "profile": "calibrated"}),
        two.get("/compare"),
        two.get("/runs/planted"),
        two.get(unit_table, params={"is.unit": PLANTED["u001"]}),
        two.get(unit_table, params={"col": "unit", "op": "is", "val": PLANTED["u002"]}),
        two.get("/runs/planted/tables/decisions/lpact_gate_evidence"),
        two.get("/decisions", params={"sort": PLANTED["integrated"]}),
    ]
    for answer in pages:
        assert answer.status_code in (200, 400), answer.text
        text = answer.text
        for planted in (*PLANTED.values(), IN_SENTENCES):
            assert planted not in text
        assert text.count("<script") == 1
        assert "<img" not in text
        assert "<iframe" not in text
        assert "49" not in text.partition("{{7*7}}")[0][-20:]
    assert "&lt;script&gt;window.planted=1&lt;/script&gt;" in pages[0].text
    assert "window.planted=3" in pages[3].text
    assert "{{7*7}}" in pages[3].text


def test_downloads_are_not_changed_for_spreadsheets(two: TestClient) -> None:
    answer = two.get(
        "/runs/planted/download/relational/brain_unit_index.json",
        params={"is.unit": PLANTED["u002"]},
    )
    rows = answer.json()
    assert rows
    assert {row["unit"] for row in rows} == {PLANTED["u002"]}
    assert answer.headers["content-type"] == "application/json"


def test_folders_that_are_no_runs(tmp_path: Path, tiny_run: Path) -> None:
    with pytest.raises(RunError, match="not a finished run"):
        create_app([tiny_run, tmp_path])
    with pytest.raises(RunError, match="not a finished run") as told:
        create_app([tiny_run, tmp_path / "nowhere"])
    assert told.value.where == str(tmp_path / "nowhere")
    with pytest.raises(RunError, match="no run is given"):
        create_app([])


def test_slugs_are_plain_and_told_apart() -> None:
    assert unique_slugs(["a b", "a/b", "a b", "<script>", "..", ""]) == [
        "a-b",
        "a-b-2",
        "a-b-3",
        "script",
        "run",
        "run-2",
    ]


def test_the_same_run_twice_is_shown_twice(tiny_run: Path) -> None:
    opened = open_runs([tiny_run, tiny_run])
    assert [run.slug for run in opened] == ["tiny", "tiny-2"]


def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch, tiny_run: Path) -> None:
    import lpact.web

    monkeypatch.setattr(lpact.web, "NEEDED", ("no_such_package",))
    with pytest.raises(ConfigError, match=r"lpact\[web\]"):
        create_app([tiny_run])
