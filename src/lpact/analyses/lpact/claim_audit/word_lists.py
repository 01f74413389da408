"""Word lists of the claim audit, from ``words.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files

_TABLES = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))

CLASSES: dict[str, list[str]] = _TABLES["classes"]
"""Classes of words that rules name in capitals."""
LISTS = {name: "|".join(entries) for name, entries in _TABLES["lists"].items()}
"""Lists that rules name in braces."""
SCOPE: dict[str, list[str]] = _TABLES["scope"]
"""Negations, hedges, mentions, and the scope of a study."""
REPORTS: dict[str, list[str]] = _TABLES["reports"]
"""Words by which a text hands a statement to somebody else."""


def words_pattern(alternatives: str | Iterable[str]) -> re.Pattern[str]:
    """A pattern for whole words: one of ``alternatives``."""
    joined = alternatives if isinstance(alternatives, str) else "|".join(alternatives)
    return re.compile(rf"(?<![^ ])(?:{joined})(?= )")
