"""Shared commands name no analysis; each analysis brings its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lpact.cli
from lpact.analyses import BUILT_IN, COMMANDS
from lpact.cli import SHARED
from lpact.registry import ANALYSES, resolve
from tiny_study import Lpact

CLI = Path(lpact.cli.__file__).parent


def imported(path: Path) -> set[str]:
    """Modules that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.stem)
def test_no_shared_command_imports_an_analysis(path: Path) -> None:
    private = {f"lpact.analyses.{name}" for name in BUILT_IN}
    assert not {module for module in imported(path) if ".".join(module.split(".")[:3]) in private}


def test_an_import_of_an_analysis_would_be_seen(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("def f():\n    from lpact.analyses.lpact import analysis\n")
    assert "lpact.analyses.lpact" in imported(planted)


def test_commands_of_built_in_analyses_are_those_of_their_classes() -> None:
    assert COMMANDS.keys() == BUILT_IN.keys()
    for name, commands in COMMANDS.items():
        assert ANALYSES.get(name).commands == commands


def test_every_listed_command_exists() -> None:
    for place in (*SHARED.values(), *(p for own in COMMANDS.values() for p in own.values())):
        assert resolve(place) is not None


def test_help_lists_shared_commands_then_those_of_analyses(lpact: Lpact) -> None:
    lines = lpact("--help").stdout.split("Commands:")[1].splitlines()
    names = [line.split()[0] for line in lines if line.strip()]
    own = [name for analysis in BUILT_IN for name in (*COMMANDS[analysis], analysis)]
    assert names[: len(SHARED)] == list(SHARED)
    assert names[len(SHARED) : len(SHARED) + len(own)] == own


def test_the_verb_of_an_analysis_has_the_options_of_run(lpact: Lpact) -> None:
    options = lpact("run", "--help").stdout.count("\n  --")
    verb = lpact("lpact", "--help").stdout
    assert verb.count("\n  --") == options - 1
    assert "--analysis" not in verb
