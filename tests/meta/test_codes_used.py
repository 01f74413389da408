"""Every label and reason code is used by the code, not only explained."""

from __future__ import annotations

import ast
from pathlib import Path

from source_tree import Module, read_module, source_modules

from lpact.codes import ALL_CODES


def used_codes(modules: list[Module]) -> set[str]:
    """Members that are named as ``Family.MEMBER`` outside reasons.py."""
    families = {family.__name__ for family in ALL_CODES}
    return {
        f"{node.value.id}.{node.attr}"
        for module in modules
        if module.path.name != "reasons.py"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in families
    }


def test_every_code_is_used() -> None:
    declared = {f"{family.__name__}.{name}" for family in ALL_CODES for name in family.__members__}
    assert declared - used_codes(source_modules()) == set()


def test_a_code_that_does_not_exist_is_never_used() -> None:
    declared = {f"{family.__name__}.{name}" for family in ALL_CODES for name in family.__members__}
    assert {code for code in used_codes(source_modules()) if code.split(".")[1].isupper()} <= declared


def test_the_search_finds_uses_and_only_uses(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("a = Reason.OK\nb = 'Reason.EMPTY_RUN'\nc = Other.PASS\n", encoding="utf-8")
    assert used_codes([read_module(planted)]) == {"Reason.OK"}
