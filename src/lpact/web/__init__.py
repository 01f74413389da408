"""WEB: a local page over one or many runs. FastAPI, Jinja2, and DuckDB on the Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lpact.extras import require

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app", "serve"]

NEEDED = ("duckdb", "fastapi", "jinja2", "uvicorn")
LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8321


def create_app(runs: Sequence[str | Path], *, hosts: Sequence[str] | None = None) -> FastAPI:
    """The explorer of ``runs`` (folders of finished runs), to be served by any ASGI server.

    ``hosts`` are the names that a request's ``Host`` may have, ``None`` for this machine's loopback names. Another name
    is refused: it would be a page elsewhere that has had its own name point here.
    """
    _require()
    from lpact.web.server import LOOPBACK_NAMES, build

    return build(runs, LOOPBACK_NAMES if hosts is None else hosts)


def serve(
    runs: Sequence[str | Path],
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    allowed_hosts: Sequence[str] = (),
    open_browser: bool = False,
) -> None:
    """Serve the explorer until it is interrupted; its address is printed.

    Without a ``port``, the default one is taken, or a free one where that is in use.
    """
    _require()
    from lpact.web.server import run_server

    run_server(runs, host, port, DEFAULT_PORT, allowed_hosts, open_browser=open_browser)


def _require() -> None:
    for module in NEEDED:
        require(module, extra="web")
