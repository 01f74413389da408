"""Shared by all tests: tools and data that may be missing.

A skip names why in its first words: ``tool missing: NAME`` or ``data missing: …``. With
``LPACT_REQUIRE_TOOLS=1`` (CI) a skip for a missing tool is a failure; data that cannot be shipped may
always be missing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from shared_folder import shared_folder

if TYPE_CHECKING:
    from lpact.study import Run

# The same examples in every run: a failure is one that anybody can have again.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")

threadpool_limits(1)  # threads that compete for cores are far slower than one
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same for libraries that are loaded later

pytest_plugins = ["pytester", "tiny_study"]

TOOL_MISSING = "tool missing:"
Report = pytest.TestReport | pytest.CollectReport


def pytest_configure() -> None:
    # Parallel workers are told the width of a terminal that nobody looks at.
    os.environ.pop("COLUMNS", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: workers that share files end at about the same time."""
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run of the small study; not to be changed, so copy its folder where a test must."""
    from filelock import FileLock

    import lpact
    from small_study import SMALL

    folder = shared_folder(tmp_path_factory, "small-run")
    with FileLock(f"{folder}.lock"):
        return lpact.load_study(SMALL).run(folder, workers=1, progress=False)


@pytest.fixture(scope="session")
def small_report(small_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the small run's report; not to be changed."""
    from filelock import FileLock

    folder = shared_folder(tmp_path_factory, "small-report")
    with FileLock(f"{folder}.lock"):
        return folder if folder.exists() else small_run.report(folder).folder


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str], str]:
    """``require_tool("chromium")`` gives the path of a program, or skips the test."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{TOOL_MISSING} {name}")
        return path

    return find


def skip_reason(report: Report) -> str:
    """Why a test or module was skipped; empty if it was not."""
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return ""
    return str(report.longrepr[2]).removeprefix("Skipped: ")


def fail_if_tool_missing(report: Report) -> Report:
    reason = skip_reason(report)
    if reason.startswith(TOOL_MISSING) and os.environ.get("LPACT_REQUIRE_TOOLS") == "1":
        report.outcome = "failed"
        report.longrepr = f"{reason} (LPACT_REQUIRE_TOOLS=1 makes this a failure)"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_if_tool_missing(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_if_tool_missing(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped: Sequence[Report] = terminalreporter.stats.get("skipped", [])
    by_tool: dict[str, int] = {}
    for report in skipped:
        reason = skip_reason(report)
        if reason.startswith(TOOL_MISSING):
            tool = reason.removeprefix(TOOL_MISSING).strip()
            by_tool[tool] = by_tool.get(tool, 0) + 1
    if by_tool:
        terminalreporter.section("skipped because a tool is missing")
        for tool, n in sorted(by_tool.items()):
            terminalreporter.write_line(f"{tool}: {n} skipped")
