"""The packages of the extras ``lm`` and ``gguf``, imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from lpact.errors import ConfigError


def require(module: str, *, extra: str = "lm") -> Any:
    """Import a package of an extra; a missing one is a `ConfigError` with the install command."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            "a package that reads language models is not installed",
            where=module,
            got=str(error),
            expected=f"the extra '{extra}' of lpact",
            remedy=f"pip install 'lpact[{extra}]'",
        ) from error
