"""A server of a few files on this machine, with the faults that downloads meet."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Served:
    """One file. ``cuts`` are bytes after which the connection breaks, one a request; ``refusals`` are status codes.

    ``answers`` are given instead of the file, one a request: status, headers and pieces of the body.
    """

    content: bytes = b""
    etag: str = ""
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    redirect: str = ""
    says_length: int | None = None
    answers: list[tuple[int, dict[str, str], Iterable[bytes]]] = field(default_factory=list)
    n_sent: int = 0


@dataclass
class FileServer:
    """Files by path, and what was asked for."""

    address: str
    files: dict[str, Served]
    asked: list[tuple[str, dict[str, str]]]

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"


@contextmanager
def file_server() -> Iterator[FileServer]:
    """Serve on a free port of 127.0.0.1 until the block ends."""
    files: dict[str, Served] = {}
    asked: list[tuple[str, dict[str, str]]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            asked.append((path, dict(self.headers)))
            served = files.get(path)
            if served is None or served.refusals:
                self.send_error(404 if served is None else served.refusals.pop(0))
                return
            if served.answers:
                self._answer(served, *served.answers.pop(0))
                return
            if served.redirect:
                self.send_response(302)
                self.send_header("Location", served.redirect)
                self.end_headers()
                return
            self._send(served)

        def _answer(
            self, served: Served, status: int, headers: dict[str, str], pieces: Iterable[bytes]
        ) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):
                for piece in pieces:
                    self.wfile.write(piece)
                    served.n_sent += len(piece)

        def _send(self, served: Served) -> None:
            first = 0
            wanted = self.headers.get("Range", "")
            same = self.headers.get("If-Range", served.etag) == served.etag
            if wanted and served.ranges and same:
                first = int(wanted.removeprefix("bytes=").rstrip("-"))
                if first >= len(served.content):
                    self.send_error(416)
                    return
                self.send_response(206)
                last = len(served.content) - 1
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(served.content)}")
            else:
                self.send_response(200)
            body = served.content[first:]
            told = len(body) if served.says_length is None else served.says_length
            self.send_header("Content-Length", str(told))
            if served.etag:
                self.send_header("ETag", served.etag)
            self.end_headers()
            if served.cuts:
                body = body[: served.cuts.pop(0)]
            with suppress(ConnectionError):
                self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield FileServer(f"http://127.0.0.1:{server.server_address[1]}", files, asked)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
