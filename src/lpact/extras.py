"""Packages of lpact's optional parts, imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from lpact.errors import ConfigError


def require(module: str, *, extra: str) -> Any:
    """Import a package of an optional part; a missing one is a `ConfigError` with the install command."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"a required package is not installed: {module.partition('.')[0]}",
            where=module,
            got=str(error),
            expected=f"the optional part '{extra}' of lpact",
            remedy=f"pip install 'lpact[{extra}]'",
        ) from error
