"""The archive knows no analysis by name, and its public names are those that are listed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lpact.archive

ROOM = Path(lpact.archive.__file__).parent
FILES = sorted(ROOM.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOM).as_posix())
def test_no_module_imports_an_analysis(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [
        own.name for node in ast.walk(tree) if isinstance(node, ast.Import) for own in node.names
    ]
    analyses = {name for name in names if name.startswith("lpact.analyses")}
    assert analyses <= {"lpact.analyses.base", "lpact.analyses.explanation"}


def test_public_names_exist() -> None:
    assert {name: getattr(lpact.archive, name) for name in lpact.archive.__all__}
    assert {"diff_runs", "export_run", "lock_run", "verify_run"} <= set(lpact.archive.__all__)
    with pytest.raises(AttributeError, match="compare_runs"):
        _ = lpact.archive.compare_runs
