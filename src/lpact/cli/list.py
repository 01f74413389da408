"""``lpact list``: what is registered, and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._layout import Grid
from lpact.cli._machine import program
from lpact.cli._render import console, say, show

if TYPE_CHECKING:
    from lpact.registry import Registry

SHARED = {
    "analyses": ("lpact.registry:ANALYSES", "a table of its own"),
    "controls": ("lpact.controls.base:CONTROLS", "controls.include"),
    "datasets": ("lpact.datasets.base:DATASETS", "datasets.reader"),
    "mechanisms": ("lpact.features.mechanisms:MECHANISMS", "mechanisms.include"),
    "models": ("lpact.features.models:MODELS", "models.source"),
}
"""Kinds of plug-ins that all analyses share: where the registry is, and the option that names them."""


def command(
    kind: Annotated[
        str | None, typer.Argument(help="A kind, such as controls. Without it: all kinds.")
    ] = None,
) -> None:
    """List registered analyses, controls and other plug-ins."""
    out = console()
    kinds = plugin_kinds()
    if kind is None:
        grid = Grid(
            ("kind", "registered", "named in the study file by"), right=frozenset({"registered"})
        )
        for name, (registry, option) in kinds.items():
            grid.add(name, len(registry.names()), option)
        show(out, grid, indent=0)
        say(out)
        say(out, f"One kind in full: {program()} list controls")
        return
    plugins = Grid(("name", "from", "what"))
    for entry in _registry(kind, kinds).entries():
        built_in = entry.origin == "lpact"
        plugins.add(entry.name, "built in" if built_in else entry.origin, entry.summary)
    show(out, plugins, indent=0)


def plugin_kinds() -> dict[str, tuple[Registry[Any], str]]:
    """Every kind of plug-in: its registry, and the option of the study file that names plug-ins of this kind."""
    from lpact.registry import ANALYSES, resolve

    found = {kind: (resolve(place), option) for kind, (place, option) in SHARED.items()}
    for entry in ANALYSES.entries():
        for kind, (place, option) in entry.plugin.kinds.items():
            found.setdefault(kind, (resolve(place), f"{entry.name}.{option}"))
    return dict(sorted(found.items()))


def _registry(kind: str, kinds: dict[str, tuple[Registry[Any], str]]) -> Registry[Any]:
    from lpact.errors import RegistryError, did_you_mean

    if kind not in kinds:
        raise RegistryError(
            f"there is no kind of plug-in named '{kind}'",
            where="lpact list",
            got=kind,
            expected=f"one of {', '.join(kinds)}",
            remedy=did_you_mean(kind, kinds),
        )
    return kinds[kind][0]
