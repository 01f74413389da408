"""``lpact explore`` as it is run: its port, what it says, and how it ends."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lpact.cli import app
from lpact.errors import ConfigError
from lpact.web.server import is_loopback, listen, names_of, run_server, url_of


def taken() -> socket.socket:
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    held.listen()
    return held


def test_a_taken_default_port_gives_way_to_a_free_one() -> None:
    with taken() as held:
        port = held.getsockname()[1]
        with listen("127.0.0.1", None, port) as found:
            assert found.getsockname()[1] not in (port, 0)
        with pytest.raises(ConfigError, match="cannot listen at this address"):
            listen("127.0.0.1", port, 8321)


def test_a_free_port_is_taken_as_asked() -> None:
    with taken() as held:
        port = held.getsockname()[1]
    with listen("127.0.0.1", port, 8321) as found:
        assert found.getsockname() == ("127.0.0.1", port)


def test_names_that_an_address_answers_to() -> None:
    assert names_of("127.0.0.1") == ("127.0.0.1", "localhost", "[::1]")
    assert names_of("127.0.0.2") == ("127.0.0.1", "localhost", "[::1]", "127.0.0.2")
    assert is_loopback("127.0.0.2")
    assert is_loopback("::1")
    assert not is_loopback("192.0.2.7")
    assert not is_loopback("lab.example")
    assert names_of("192.0.2.7") == ("192.0.2.7",)
    assert "*" in names_of("0.0.0.0")
    assert not is_loopback("0.0.0.0")
    assert url_of("0.0.0.0", 80) == "http://127.0.0.1:80/"
    assert url_of("::1", 80) == "http://[::1]:80/"


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["explore", str(tmp_path)])
    assert result.exit_code == 2
    assert "not a finished run" in result.stderr


@pytest.mark.parametrize("name", ["*", "*.example", "lab.example:80", "::1", "", "a b"])
def test_names_that_are_no_names_are_refused(tiny_run: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)  # or it would serve on
    result = CliRunner().invoke(app, ["explore", str(tiny_run), "--allow-host", name])
    assert result.exit_code == 2
    assert "--allow-host" in result.stderr
    assert "does not answer to this host name" in result.stderr


@pytest.mark.parametrize("in_use", [True, False])
def test_another_port_is_explained(
    tiny_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_use: bool,
) -> None:
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    held = taken()
    port = held.getsockname()[1]
    if not in_use:
        held.close()
    run_server([tiny_run], "127.0.0.1", None, port, ("lab.example",), open_browser=False)
    held.close()
    said = capsys.readouterr().out
    assert (f"port {port} is in use" in said) is in_use
    assert (f"http://127.0.0.1:{port}/" in said) is not in_use
    assert "over the network" not in said


def raw(port: int, path: str) -> tuple[int, str]:
    """An answer to a path that no client has tidied."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", f"127.0.0.1:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_the_command_serves_and_ends_quietly(tiny_run: Path) -> None:
    code = "from lpact.cli import main; main()"
    with taken() as held:
        port = held.getsockname()[1]
    command = [sys.executable, "-c", code, "explore", str(tiny_run), "--port", str(port)]
    server = subprocess.Popen(
        [*command, "--host", "0.0.0.0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        assert "anyone who can reach this machine" in server.stdout.readline()
        assert server.stdout.readline().startswith(f"explorer: http://127.0.0.1:{port}/")
        assert raw(port, "/decisions")[0] == 200
        for path in (
            "/runs/../../etc/passwd",
            "/runs/tiny/tables/../../manifest.json",
            "/static/../app.py",
            "//etc/passwd",
            "/runs/tiny/tables/decisions/../../../../../../etc/passwd",
        ):
            status, text = raw(port, path)
            assert status == 404, path
            assert "root:" not in text
        server.send_signal(signal.SIGINT)
        said, complained = server.communicate(timeout=20)
    finally:
        server.kill()
    assert server.returncode == 0
    assert said == ""
    assert complained == ""
