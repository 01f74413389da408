"""The packages of the optional parts ``lm`` and ``gguf``, imported where they are used."""

from __future__ import annotations

from typing import Any

from lpact import extras


def require(module: str, *, extra: str = "lm") -> Any:
    """Import a package that reads language models; a missing one is a `ConfigError` with the install command."""
    return extras.require(module, extra=extra)
