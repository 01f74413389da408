"""The explorer on a port of this machine, until it is interrupted."""

from __future__ import annotations

import errno
import ipaddress
import socket
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from lpact.errors import ConfigError
from lpact.web.app import build
from lpact.web.guard import ANY_ADDRESS, LOOPBACK_NAMES, host_name

_EVERYWHERE = {"0.0.0.0", "::", ""}  # noqa: S104 - compared with, never a default


@dataclass(frozen=True)
class Address:
    """Where to listen; without a ``port`` at the default one, or at a free one where that is taken."""

    host: str
    port: int | None
    default_port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host.lower() == "localhost" or _is_loopback(self.host)

    @property
    def names(self) -> tuple[str, ...]:
        """Names that a request may address it by."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        if self.loopback:
            return tuple(dict.fromkeys((*LOOPBACK_NAMES, own)))
        if self.host in _EVERYWHERE:
            return (*LOOPBACK_NAMES, ANY_ADDRESS, socket.gethostname())
        return (own,)

    def url(self, port: int) -> str:
        """What a browser on this machine opens."""
        host = "127.0.0.1" if self.host in _EVERYWHERE else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def run_server(
    runs: Sequence[str | Path],
    address: Address,
    allowed_hosts: tuple[str, ...],
    *,
    open_browser: bool,
) -> None:
    """Open the runs, take the port, say where it is, and serve."""
    app = build(runs, (*address.names, *map(_allowed, allowed_hosts)))
    listening = listen(address)
    port = listening.getsockname()[1]
    url = address.url(port)
    if address.port is None and port != address.default_port:
        _say(
            f"port {address.default_port} is in use (another explorer?): port {port} is used instead"
        )
    if not address.loopback:
        _say("warning: anyone who can reach this machine over the network can read these runs")
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


def listen(address: Address) -> socket.socket:
    """A socket at the address; if the default port is in use, a free one is taken."""
    wanted = [address.default_port, 0] if address.port is None else [address.port]
    for port in wanted:
        try:
            return _bound(address.host, port)
        except OSError as error:
            if port == wanted[-1] or error.errno != errno.EADDRINUSE:
                raise ConfigError(
                    "the explorer cannot listen there",
                    where=f"{address.host}, port {port}",
                    got=error.strerror or str(error),
                    expected="an address of this machine and a free port",
                    remedy="leave --port out to take a free one, or name another --host",
                ) from error
    raise AssertionError("unreachable")


def _bound(host: str, port: int) -> socket.socket:
    where = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(where[4][:2], family=where[0], backlog=128)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _allowed(name: str) -> str:
    """A further name; patterns are refused, since any name would let every page on the web read the runs."""
    plain = host_name(name)
    if not plain or plain != name.lower().removesuffix("."):
        raise ConfigError(
            "the explorer cannot be opened by such a name",
            where="--allow-host",
            got=name[:80],
            expected="one name or address without port, such as lab.example or [2001:db8::1]",
            remedy="give --allow-host once for every name",
        )
    return plain


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
