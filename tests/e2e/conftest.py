"""A real browser for the tests of this folder.

``page`` is a fresh page in a fresh context. It may reach this machine and files, and nothing else; whatever it logs as
an error, throws or fails to load fails the test. ``problems`` is the list of those: a test that means to cause one
removes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
LOCAL_SCHEMES = {"file", "data", "blob", "about"}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium from the system packages."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        pytest.skip("tool missing: chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def problems() -> list[str]:
    """What went wrong in the page, in order."""
    return []


@pytest.fixture
def page(browser: Browser, problems: list[str]) -> Iterator[Page]:
    """A page that must stay free of errors."""
    with watched(browser, problems) as made:
        yield made


@pytest.fixture(scope="session")
def new_page(browser: Browser) -> Callable[[], AbstractContextManager[Page]]:
    """``with new_page() as page``: the same, for tests that only look and can share a visit."""
    return lambda: watched(browser, [])


@contextmanager
def watched(browser: Browser, problems: list[str]) -> Iterator[Page]:
    """A page in a fresh context; whatever goes wrong in it is told in ``problems``, which must be empty in the end."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})

    def local_only(route: Route) -> None:
        parts = urlsplit(route.request.url)
        if parts.scheme in LOCAL_SCHEMES or parts.hostname in LOOPBACK:
            route.continue_()
        else:
            problems.append(f"a request left the machine: {route.request.url}")
            route.abort()

    context.route("**/*", local_only)
    made = context.new_page()
    made.on(
        "console",
        lambda message: problems.append(message.text) if message.type == "error" else None,
    )
    made.on("pageerror", lambda error: problems.append(str(error)))
    yield made
    context.close()
    assert problems == []
