"""``lpact list``: what is registered, and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._layout import Grid
from lpact.cli._machine import program
from lpact.cli._render import console, say, show

if TYPE_CHECKING:
    from lpact.registry import Registry

KINDS = {
    "controls": ("lpact.controls.base", "CONTROLS"),
    "datasets": ("lpact.datasets.base", "DATASETS"),
    "measures": ("lpact.measures", "MEASURES"),
    "mechanisms": ("lpact.features.mechanisms", "MECHANISMS"),
    "models": ("lpact.features.models", "MODELS"),
    "profiles": ("lpact.analyses.lpact.levels.profiles.similarity", "PROFILES"),
    "strippings": ("lpact.analyses.lpact.levels.strip", "STRIPPINGS"),
}
"""Kinds of plugins, and where their registry is."""

SUMMARIES = {
    "controls": "severe controls",
    "datasets": "dataset readers",
    "measures": "alignment measures",
    "mechanisms": "mechanisms, one scalar an event",
    "models": "sources of model features",
    "profiles": "similarities between patterns over units",
    "strippings": "methods that take a mechanism out of features",
}


def command(
    kind: Annotated[
        str | None, typer.Argument(help=f"One of: {', '.join(KINDS)}. Without it: all kinds.")
    ] = None,
) -> None:
    """List registered controls, measures and other plugins."""
    out = console()
    if kind is None:
        kinds = Grid(("kind", "registered", "what"), right=frozenset({"registered"}))
        for name in KINDS:
            kinds.add(name, len(_registry(name).entries()), SUMMARIES[name])
        show(out, kinds, indent=0)
        say(out)
        say(out, f"One kind in full: {program()} list controls")
        return
    plugins = Grid(("name", "from", "what"))
    for entry in _registry(kind).entries():
        built_in = entry.origin == "lpact"
        plugins.add(entry.name, "built in" if built_in else entry.origin, entry.summary)
    show(out, plugins, indent=0)


def _registry(kind: str) -> Registry[Any]:
    import importlib

    from lpact.errors import RegistryError, did_you_mean

    if kind not in KINDS:
        raise RegistryError(
            f"there is no kind of plugin named '{kind}'",
            where="lpact list",
            got=kind,
            expected=f"one of {', '.join(KINDS)}",
            remedy=did_you_mean(kind, KINDS),
        )
    module, name = KINDS[kind]
    registry: Registry[Any] = getattr(importlib.import_module(module), name)
    return registry
