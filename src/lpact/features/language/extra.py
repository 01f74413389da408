"""The packages of the extra ``lm``, imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from lpact.errors import ConfigError


def require(module: str) -> Any:
    """Import a package of the extra; a missing one is a `ConfigError` with the install command."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            "a package that reads language models is not installed",
            where=module,
            got=str(error),
            expected="the extra 'lm' of lpact",
            remedy="pip install 'lpact[lm]'",
        ) from error
