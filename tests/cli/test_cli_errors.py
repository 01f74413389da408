"""The command line as a whole: help, versions, errors without tracebacks, interruptions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lpact.cli import list as list_command
from lpact.cli.list import plugin_kinds
from tiny_study import TINY, Lpact, TinyRun

COMMANDS = (
    "demo",
    "init",
    "plan",
    "run",
    "audit",
    "decide",
    "tables",
    "explain",
    "list",
    "datasets",
    "lpact",
)


def test_help_names_every_command_in_full(lpact: Lpact) -> None:
    result = lpact("--help", COLUMNS="80")
    assert result.exit_code == 0
    assert "..." not in result.stdout.split("Commands:")[1]
    for command in COMMANDS:
        assert f"  {command} " in result.stdout
        assert lpact(command, "--help").exit_code == 0


def test_version(lpact: Lpact) -> None:
    import lpact as api

    assert lpact("--version").stdout == f"lpact {api.__version__}\n"


def test_missing_study_file_names_the_remedy(lpact: Lpact, tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    result = lpact("run", path, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: the study file does not exist\n")
    assert f"lpact init {path}" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_misspelt_option_gets_a_suggestion(lpact: Lpact, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TINY.replace("gap_events", "gap_event"))
    result = lpact("plan", path)
    assert result.exit_code == 2
    assert "readout.gap_event: unknown option; did you mean 'gap_events'?" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("by", ["flag", "environment"])
def test_debug_shows_the_traceback(lpact: Lpact, tmp_path: Path, by: str) -> None:
    args = ("--debug",) if by == "flag" else ()
    env = {} if by == "flag" else {"LPACT_DEBUG": "1"}
    result = lpact(*args, "plan", tmp_path / "none.toml", **env)
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


def test_interruption_is_a_message(lpact: Lpact, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(list_command, "plugin_kinds", interrupted)
    result = lpact("list", "controls")
    assert result.exit_code == 130
    assert result.stderr == "interrupted; run the same command again to continue\n"


def test_short_memory_is_a_message(lpact: Lpact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_command, "plugin_kinds", lambda: np.empty(2**62, np.int8))
    result = lpact("list", "controls")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: memory is short\n  found:    Unable to allocate")


def test_a_simulated_study_has_a_largest_size(lpact: Lpact, tiny_study: Path, tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_text(tiny_study.read_text().replace("n_units = 8", "n_units = 1000000000"))
    result = lpact("plan", path)
    assert result.exit_code == 2
    assert "n_units: Input should be less than or equal to 1000000" in result.stderr


def test_a_bug_is_not_dressed_up(lpact: Lpact, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(list_command, "plugin_kinds", broken)
    with pytest.raises(ZeroDivisionError, match="planted"):
        lpact("list", "controls")


def test_list_counts_every_kind(lpact: Lpact) -> None:
    result = lpact("list")
    assert result.exit_code == 0
    kinds = plugin_kinds()
    counts = {x.split()[0]: x.split()[1] for x in result.stdout.splitlines()[1 : len(kinds) + 1]}
    assert counts.keys() == kinds.keys()
    assert {"analyses", "controls", "measures", "strippings"} <= kinds.keys()
    for kind, count in counts.items():
        assert len(lpact("list", kind).stdout.splitlines()) == int(count) + 1


def test_list_shows_name_origin_and_summary(lpact: Lpact) -> None:
    from lpact.controls.base import CONTROLS

    lines = lpact("list", "controls").stdout.splitlines()[1:]
    for line, entry in zip(lines, CONTROLS.entries(), strict=True):
        assert line.split()[0] == entry.name
        assert line.endswith(entry.summary)
        assert ("built in" in line) == (entry.origin == "lpact")


def test_unknown_kind_gets_a_suggestion(lpact: Lpact) -> None:
    result = lpact("list", "control")
    assert result.exit_code == 2
    assert "did you mean 'controls'?" in result.stderr


def test_a_misspelt_command_gets_a_suggestion(lpact: Lpact) -> None:
    result = lpact("robustnes")
    assert result.exit_code == 2
    assert "Did you mean 'robustness'?" in result.stderr


def test_terminal_without_unicode_gets_another_character(tiny_run: TinyRun) -> None:
    command = [sys.executable, "-c", "from lpact.cli import main; main()", "plan", tiny_run.study]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "(?: at most)" in result.stdout
