"""Request checks and security headers of the explorer.

Only GET requests without a body, and only with a ``Host`` of this server, are answered (protection against DNS
rebinding). Headers keep browsers from guessing content types or loading anything else.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
        named = headers.getlist("host")
        if len(named) != 1 or not self._is_ours(named[0]):
            return PlainTextResponse(
                "This name is not one of the explorer's. Start it with --allow-host NAME to allow it.\n",
                421,
            )
        if scope["method"] != "GET":
            return PlainTextResponse("Only GET is answered.\n", 405, {"Allow": "GET"})
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return PlainTextResponse("No request body is read.\n", 413)
        return None

    def _is_ours(self, host: str) -> bool:
        name = host_name(host)
        return name in self._hosts or (ANY_ADDRESS in self._hosts and _is_address(name))


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
