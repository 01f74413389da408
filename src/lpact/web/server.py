"""The explorer as an application (its addresses, files and error pages), served on a port until it is interrupted.

Only GET requests without a body, and only with a ``Host`` of this server, are answered (protection against DNS
rebinding). Headers keep browsers from guessing content types or loading anything else.
"""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lpact.errors import ConfigError, LPactError
from lpact.report.explanation import read_file
from lpact.store import table_path
from lpact.web import pages
from lpact.web.address import NotFoundError
from lpact.web.query import Database
from lpact.web.runs import open_runs
from lpact.web.site import HERE, Site, build_templates

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
ANY_ADDRESS = "*"
"""Among the names: any address in numbers. Such a ``Host`` cannot be a foreign name."""
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_][a-z0-9._-]*)(:[0-9]{0,5})?", re.ASCII)
"""A ``Host`` header, whole: a name, or an address in numbers, and perhaps a port."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Guard:
    """ASGI middleware around the whole explorer."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts) - {""}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on; either way with the headers."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no WebSocket is served
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        named = [host_name(host) for host in headers.getlist("host")]
        by_number = ANY_ADDRESS in self._hosts and all(map(_is_address, named))
        if len(named) != 1 or not (named[0] in self._hosts or by_number):
            return PlainTextResponse(
                "The explorer does not answer to this host name. Start it with --allow-host NAME to allow it.\n",
                421,
            )
        if scope["method"] != "GET":
            return PlainTextResponse("Only GET is answered.\n", 405, {"Allow": "GET"})
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return PlainTextResponse("No request body is read.\n", 413)
        return None


def host_name(host: str) -> str:
    """The name of a ``Host`` header without its port, in small letters; nothing where the header is not one."""
    found = _HOST.fullmatch(host.lower())
    return found[1].removesuffix(".") if found else ""


def _is_address(name: str) -> bool:
    try:
        if name.startswith("["):
            ipaddress.IPv6Address(name[1:-1])
        else:
            ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True


_EVERYWHERE = {"0.0.0.0", "::", ""}  # noqa: S104 - compared with, never a default
STATIC = {
    "explorer.css": "text/css; charset=utf-8",
    "explorer.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The only files that are served, with their types."""


def build(runs: Sequence[str | Path], hosts: Sequence[str]) -> FastAPI:
    """An application over ``runs`` that answers to the names ``hosts``."""
    opened = open_runs(runs)
    paths = [table_path(run.root, table) for run in opened for table in run.tables()]
    site = Site(opened, Database(paths), build_templates())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        site.database.close()

    app = FastAPI(title="lpact explorer", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.add_middleware(Guard, hosts=hosts)
    answers: dict[str, Callable[..., Response]] = {
        "/": pages.overview,
        "/decisions": pages.matrix,
        "/claim": pages.claim,
        "/compare": pages.compare,
        "/runs/{slug}": pages.one_run,
        "/runs/{slug}/tables/{folder}/{name}": pages.table,
    }
    for form in ("csv", "json"):
        answers[f"/decisions.{form}"] = partial(pages.matrix_file, form=form)
        path = f"/runs/{{slug}}/download/{{folder}}/{{name}}.{form}"
        answers[path] = partial(pages.table_file, form=form)
    contents = {name: (HERE / "static" / name).read_bytes() for name in STATIC}
    contents["explorer.css"] += read_file("explanation.css").encode()

    def static(_: Site, request: Request) -> Response:
        name = str(request.path_params["name"])
        if name not in contents:
            raise _nowhere()
        return Response(contents[name], media_type=STATIC[name])

    answers["/static/{name}"] = static
    for path, answer in answers.items():
        app.add_route(path, _handler(site, answer), methods=["GET"])
    app.add_exception_handler(HTTPException, lambda request, _: site.error(request, _nowhere(), 404))
    app.add_exception_handler(Exception, lambda request, _: _unforeseen(site, request))
    return app


def _unforeseen(site: Site, request: Request) -> Response:
    """Page for an unexpected error. It is built outside the guard, so it adds the same headers."""
    error = LPactError("something went wrong here", remedy="see the message in the terminal")
    answer = site.error(request, error, 500)
    answer.headers.update(HEADERS)
    return answer


def _handler(site: Site, answer: Callable[..., Response]) -> Callable[[Request], Response]:
    def handle(request: Request) -> Response:
        try:
            return answer(site, request)
        except LPactError as error:
            return site.error(request, error, getattr(error, "status", 500))

    return handle


def _nowhere() -> NotFoundError:
    return NotFoundError("there is no such page", remedy="start from the overview")


def run_server(
    runs: Sequence[str | Path],
    host: str,
    port: int | None,
    default_port: int,
    allowed_hosts: Sequence[str],
    *,
    open_browser: bool,
) -> None:
    """Open the runs, take the port, say where it is, and serve.

    Without a ``port`` it listens at the default one, or at a free one where that is taken.
    """
    app = build(runs, (*names_of(host), *map(_allowed, allowed_hosts)))
    listening = listen(host, port, default_port)
    found = listening.getsockname()[1]
    if port is None and found != default_port:
        _say(f"port {default_port} is in use (another explorer?): port {found} is used instead")
    if not is_loopback(host):
        _say("warning: anyone who can reach this machine over the network can read these runs")
    url = url_of(host, found)
    _say(f"explorer: {url}  (Ctrl-C ends it)")
    if open_browser and sys.stdout.isatty():
        webbrowser.open(url)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        return
    finally:
        listening.close()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names_of(host: str) -> tuple[str, ...]:
    """Names that a request may address the host by."""
    own = f"[{host}]" if ":" in host else host
    if is_loopback(host):
        return tuple(dict.fromkeys((*LOOPBACK_NAMES, own)))
    if host in _EVERYWHERE:
        return (*LOOPBACK_NAMES, ANY_ADDRESS, socket.gethostname())
    return (own,)


def url_of(host: str, port: int) -> str:
    """What a browser on this machine opens."""
    host = "127.0.0.1" if host in _EVERYWHERE else host
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def listen(host: str, port: int | None, default_port: int) -> socket.socket:
    """A socket at the host; if the default port is in use, a free one is taken."""
    for wanted in (default_port, 0) if port is None else (port,):
        try:
            found = socket.getaddrinfo(host or None, wanted, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            return socket.create_server(found[4][:2], family=found[0], backlog=128)
        except OSError as error:
            if port is None and wanted and error.errno == errno.EADDRINUSE:
                continue
            raise ConfigError(
                "the explorer cannot listen at this address",
                where=f"{host}, port {wanted}",
                got=error.strerror or str(error),
                expected="an address of this machine and a free port",
                remedy="leave --port out to take a free one, or name another --host",
            ) from error
    raise AssertionError("unreachable")


def _allowed(name: str) -> str:
    """A further name; patterns are refused, since any name would let every page on the web read the runs."""
    plain = host_name(name)
    if not plain or plain != name.lower().removesuffix("."):
        raise ConfigError(
            "the explorer does not answer to this host name",
            where="--allow-host",
            got=name[:80],
            expected="one name or address without port, such as lab.example or [2001:db8::1]",
            remedy="give --allow-host once for every name",
        )
    return plain


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
