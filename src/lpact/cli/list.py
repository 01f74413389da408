"""``lpact list``: what is registered, and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._options import program
from lpact.cli._terminal import say, show_table
from lpact.errors import RegistryError, require_known

if TYPE_CHECKING:
    from lpact.registry import Registry

SHARED = {
    "analyses": ("lpact.registry:ANALYSES", "its own table"),
    "controls": ("lpact.controls.base:CONTROLS", "controls.include"),
    "datasets": ("lpact.datasets.base:DATASETS", "datasets.reader"),
    "mechanisms": ("lpact.features.mechanisms:MECHANISMS", "mechanisms.include"),
    "models": ("lpact.features.models:MODELS", "models.source"),
}
"""Kinds of plug-ins that all analyses share: where the registry is, and the option that names them."""


def command(
    kind: Annotated[str | None, typer.Argument(help="A kind, such as controls. Without it: all kinds.")] = None,
) -> None:
    """List registered analyses, controls and other plug-ins."""
    kinds = plugin_kinds()
    if kind is None:
        rows = [(name, len(registry.names()), option) for name, (registry, option) in kinds.items()]
        show_table(("kind", "registered", "named in the study file by"), rows, indent=0)
        say(f"\nOne kind in full: {program()} list controls")
        return
    require_known(kind, kinds, "kind of plug-in", where="lpact list", error=RegistryError)
    plugins = [
        (entry.name, "built in" if entry.origin == "lpact" else entry.origin, entry.summary)
        for entry in kinds[kind][0].entries()
    ]
    show_table(("name", "from", "what"), plugins, indent=0)


def plugin_kinds() -> dict[str, tuple[Registry[Any], str]]:
    """Every kind of plug-in: its registry, and the option of the study file that names plug-ins of this kind."""
    from lpact.registry import ANALYSES, resolve

    found = {kind: (resolve(place), option) for kind, (place, option) in SHARED.items()}
    for entry in ANALYSES.entries():
        for kind, (place, option) in entry.plugin.kinds.items():
            found.setdefault(kind, (resolve(place), f"{entry.name}.{option}"))
    return dict(sorted(found.items()))
