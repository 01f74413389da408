"""A missing tool is an honest skip for a user and a failure in CI."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
BESIDE = ("shared_folder", "tiny_study")
TESTS = """
import pytest

def test_with_tool(require_tool):
    assert require_tool("sh")

def test_without_tool(require_tool):
    require_tool("no-such-program")

@pytest.mark.skipif(True, reason="tool missing: another-program")
def test_marked():
    pass

def test_without_data():
    pytest.skip("data missing: ../shared/data")
"""
MODULE = """
import pytest
pytest.skip("tool missing: module-tool", allow_module_level=True)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.makepyfile(
        test_some=TESTS,
        test_whole_module=MODULE,
        **{name: CONFTEST.with_name(f"{name}.py").read_text(encoding="utf-8") for name in BESIDE},
    )
    return pytester


def test_user_gets_a_green_run_that_names_the_tools(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPACT_REQUIRE_TOOLS", raising=False)
    result = suite.runpytest_subprocess()
    result.assert_outcomes(passed=1, skipped=4)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "*skipped because a tool is missing*",
            "another-program: 1 skipped",
            "module-tool: 1 skipped",
            "no-such-program: 1 skipped",
        ]
    )


def test_ci_fails_for_a_missing_tool_and_not_for_missing_data(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPACT_REQUIRE_TOOLS", "1")
    # Without the module that cannot be collected: an error there stops the whole run.
    result = suite.runpytest_subprocess("test_some.py")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    # A failure before the test body counts as an error.
    result.assert_outcomes(passed=1, failed=1, errors=1, skipped=1)
    result.stdout.fnmatch_lines(["*tool missing: no-such-program*LPACT_REQUIRE_TOOLS=1*"])


def test_ci_fails_for_a_module_that_needs_a_missing_tool(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPACT_REQUIRE_TOOLS", "1")
    result = suite.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*tool missing: module-tool*"])


def test_nothing_is_said_when_no_tool_is_missing(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPACT_REQUIRE_TOOLS", raising=False)
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.makepyfile(
        test_one="def test_it(require_tool): require_tool('sh')",
        **{name: CONFTEST.with_name(f"{name}.py").read_text(encoding="utf-8") for name in BESIDE},
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*tool is missing*")
