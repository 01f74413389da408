"""``lpact explore``: look at one or many runs in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs.", metavar="RUN...")],
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=1, max=65535, help="Port; without it 8321, or a free one if it is taken."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen at; the default is this machine only.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            help="A further name that the page may be opened by; can be repeated. No patterns.",
        ),
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = False,
) -> None:
    """Look at runs in a browser: claims, evidence, tables."""
    from lpact.web import serve

    serve(runs, host=host, port=port, allowed_hosts=allow_host or (), open_browser=open_browser)
