"""The explorer as an application: its addresses, its style sheet and script, and its error pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lpact.errors import LPactError
from lpact.report.explanation import read_file
from lpact.web.address import NotFoundError
from lpact.web.database import Database
from lpact.web.guard import HEADERS, Guard
from lpact.web.pages import browse, claim, compare, matrix, overview
from lpact.web.runs import open_runs
from lpact.web.site import HERE, Redirect, Site, build_templates

STATIC = {
    "explorer.css": "text/css; charset=utf-8",
    "explorer.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The only files that are served, with their types."""


def build(runs: Sequence[str | Path], hosts: Sequence[str]) -> FastAPI:
    """An application over ``runs`` that answers to the names ``hosts``."""
    opened = open_runs(runs)
    paths = [run.path(table) for run in opened for table in run.tables()]
    site = Site(opened, Database(paths), build_templates())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        site.database.close()

    app = FastAPI(
        title="lpact explorer", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan
    )
    app.add_middleware(Guard, hosts=hosts)
    answers: dict[str, Callable[..., Response]] = {
        "/": overview.show,
        "/decisions": matrix.show,
        "/decisions.csv": partial(matrix.download, form="csv"),
        "/decisions.json": partial(matrix.download, form="json"),
        "/claim": claim.show,
        "/compare": compare.show,
        "/runs/{slug}": overview.show_run,
        "/runs/{slug}/tables/{folder}/{name}": browse.show,
        "/runs/{slug}/download/{folder}/{name}.csv": partial(browse.download, form="csv"),
        "/runs/{slug}/download/{folder}/{name}.json": partial(browse.download, form="json"),
    }
    for path, answer in answers.items():
        app.add_route(path, _handler(site, answer), methods=["GET"])
    contents = {name: (HERE / "static" / name).read_bytes() for name in STATIC}
    contents["explorer.css"] += read_file("explanation.css").encode()

    def static(request: Request) -> Response:
        name = str(request.path_params["name"])
        if name not in contents:
            return site.error(request, _nowhere(), 404)
        return Response(contents[name], media_type=STATIC[name])

    app.add_route("/static/{name}", static, methods=["GET"])
    app.add_exception_handler(
        HTTPException, lambda request, _: site.error(request, _nowhere(), 404)
    )
    app.add_exception_handler(Exception, lambda request, _: _unforeseen(site, request))
    return app


def _unforeseen(site: Site, request: Request) -> Response:
    """A page for an error that nobody foresaw; it is made outside the guard, whose headers it needs too."""
    error = LPactError("something went wrong here", remedy="the terminal says what")
    answer = site.error(request, error, 500)
    answer.headers.update(HEADERS)
    return answer


def _handler(site: Site, answer: Callable[..., Response]) -> Callable[[Request], Response]:
    def handle(request: Request) -> Response:
        try:
            return answer(site, request)
        except Redirect as other:
            return RedirectResponse(str(other), 303)
        except LPactError as error:
            return site.error(request, error, getattr(error, "status", 500))

    return handle


def _nowhere() -> NotFoundError:
    return NotFoundError("there is no such page", remedy="start from the overview")
