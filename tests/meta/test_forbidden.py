"""Things that must not be in the sources; every search has a twin that plants what it looks for."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import Module, read_module, source_modules

MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
CALLS = {"eval", "exec", "compile", "__import__", "print", "breakpoint", "yaml.load", "os.system"}
TRUE_KEYWORDS = {"allow_pickle", "trust_remote_code", "shell"}
MARKERS = ("TODO", "FIXME", "XXX", "HACK")


def forbidden(module: Module) -> Iterator[str]:
    """What a module must not hold, as ``line: what``."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for name in names:
                if name.split(".")[0] in MODULES:
                    yield f"{node.lineno}: import {name}"
        elif isinstance(node, ast.Call):
            if (called := ast.unparse(node.func)) in CALLS:
                yield f"{node.lineno}: {called}()"
            for keyword in node.keywords:
                if keyword.arg in TRUE_KEYWORDS and not _is_false(keyword.value):
                    yield f"{node.lineno}: {keyword.arg}={ast.unparse(keyword.value)}"
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            yield f"{node.lineno}: bare except"
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            yield f"{node.lineno}: star import"
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) and any(m in token.string for m in MARKERS):
            yield f"{token.start[0]}: {token.string.strip()}"


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def test_sources_hold_nothing_forbidden() -> None:
    found = [f"{module.name}:{what}" for module in source_modules() for what in forbidden(module)]
    assert found == []


@pytest.mark.parametrize(
    "planted",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import dumps",
        "from joblib import load",
        "x = eval('1')",
        "exec('x = 1')",
        "yaml.load(text)",
        "os.system('ls')",
        "print('here')",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=anything)",
        "from_pretrained(name, trust_remote_code=True)",
        "subprocess.run('ls', shell=True)",
        "try:\n    x = 1\nexcept:\n    pass",
        "x = 1  # TODO: later",
        '"""FIXME"""',
    ],
)
def test_the_search_finds_what_is_planted(tmp_path: Path, planted: str) -> None:
    path = tmp_path / "planted.py"
    path.write_text(f"y = 0\n{planted}\n", encoding="utf-8")
    assert list(forbidden(read_module(path)))


@pytest.mark.parametrize(
    "harmless",
    [
        "np.load(path, allow_pickle=False)",
        "model.eval()",
        "yaml.safe_load(text)",
        "try:\n    x = 1\nexcept ValueError:\n    pass",
        "console.print('here')",
        "re.compile('a')",
    ],
)
def test_the_search_leaves_the_harmless_alone(tmp_path: Path, harmless: str) -> None:
    path = tmp_path / "harmless.py"
    path.write_text(f"{harmless}\n", encoding="utf-8")
    assert list(forbidden(read_module(path))) == []
