"""Files and functions stay short enough to be read, and say what they are for."""

from __future__ import annotations

import ast
from pathlib import Path

from source_tree import ROOT, Module, read_module, source_modules

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 80


def long_functions(module: Module) -> list[str]:
    """Functions with more lines than allowed, decorators and docstring included."""
    return [
        f"{module.name}:{node.lineno} {node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]


def test_every_module_says_what_it_is_for() -> None:
    assert [m.name for m in source_modules() if not ast.get_docstring(m.tree)] == []


def test_files_are_short() -> None:
    too_long = {m.name: n for m in source_modules() if (n := m.text.count("\n")) > MAX_FILE_LINES}
    assert too_long == {}


def test_functions_are_short() -> None:
    assert [found for module in source_modules() for found in long_functions(module)] == []


def test_a_long_function_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    for n_lines, found in ((MAX_FUNCTION_LINES, 0), (MAX_FUNCTION_LINES + 1, 1)):
        body = "    x = 1\n" * (n_lines - 1)
        planted.write_text(f"def long():\n{body}", encoding="utf-8")
        assert len(long_functions(read_module(planted))) == found


def test_names_of_test_files_are_unique() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
