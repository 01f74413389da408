"""What the meta tests look at: the repository, its sources and its documentation."""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
DOCS = ROOT / "docs"


@dataclass(frozen=True)
class Module:
    """A parsed source file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Path inside src."""
        return str(self.path.relative_to(SRC)) if self.path.is_relative_to(SRC) else self.path.name


def read_module(path: Path) -> Module:
    """Parse one file."""
    text = path.read_text(encoding="utf-8")
    return Module(path, text, ast.parse(text))


@cache
def source_modules() -> list[Module]:
    """Every Python file of the package; parsed once, not to be changed."""
    modules = [read_module(path) for path in sorted(SRC.rglob("*.py"))]
    assert len(modules) > 50, "the sources were not found"
    return modules


def pages() -> list[Path]:
    """README and every page of the documentation."""
    found = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    assert len(found) > 5, "the documentation was not found"
    return found


def tracked_files() -> list[Path]:
    """Every file that is or could be committed; without git, every file that is not made by tools."""
    git = shutil.which("git")
    if git is not None and (ROOT / ".git").exists():
        command = [git, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            paths = [ROOT / name for name in listed.stdout.split("\0") if name]
            return [path for path in paths if path.is_file()]
    return [path for path in sorted(ROOT.rglob("*")) if path.is_file() and not _made_by_tools(path)]


def _made_by_tools(path: Path) -> bool:
    made = {"__pycache__", "build", "dist", "runs", "demo"}
    parts = path.relative_to(ROOT).parts
    return any(part in made or (part.startswith(".") and part != ".ci") for part in parts)


def outside_validators(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node but those of Pydantic validators."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef) and any(
            "validator" in ast.unparse(decorator) for decorator in node.decorator_list
        ):
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))
