"""One lazy registry per kind of plugin.

A plugin is a class with a ``name``, a one-line ``summary`` and an ``Options`` model. The package of a kind lists its
built-in plugins by name in ``BUILT_IN``; other packages announce theirs by entry points (``lpact.controls`` and so on)
of the plugin's name. A plugin is imported when it is used or listed, never before. A name can be taken once.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, TypeVar

from lpact.errors import RegistryError, did_you_mean
from lpact.validation import PLUGIN_OPTIONS, Section, validate_model

BUILT_IN = "lpact"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class PluginOptions(Section):
    """Options of a plugin."""


class Plugin:
    """Base of everything that can be registered.

    Subclasses set ``name`` and ``summary``, and may replace ``Options`` with their own model.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    Options: ClassVar[type[Section]] = PluginOptions

    def __init__(self, options: Any = None) -> None:
        self.options = options if options is not None else self.Options()


P = TypeVar("P", bound=Plugin)


@dataclass
class Entry(Generic[P]):
    """A registered plugin: its name, the package that it comes from, and its class, imported on first use."""

    name: str
    origin: str
    where: str
    load: Callable[[], Any]
    loaded: type[P] | None = None

    @property
    def plugin(self) -> type[P]:
        """The plugin's class; `Registry.get` imports it."""
        assert self.loaded is not None
        return self.loaded

    @property
    def summary(self) -> str:
        """One line about the plugin."""
        return self.plugin.summary


class Registry(Generic[P]):
    """All plugins of one kind.

    Parameters
    ----------
    kind
        Singular noun for messages, such as ``"control"``.
    base
        Class that every plugin of this kind derives from, as ``"module:Class"``.
    package
        Package that lists the built-in plugins in ``BUILT_IN``: ``{name: "module:Class"}``, modules relative to it.
    plural
        Plural of ``kind``; also the ending of the entry-point group.
    reserved
        Names that mean something else in the tables.
    """

    def __init__(
        self,
        kind: str,
        base: str,
        *,
        package: str,
        plural: str = "",
        reserved: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.plural = plural or f"{kind}s"
        self.package = package
        self.reserved = reserved
        self.group = f"lpact.{self.plural}"
        self._base = base

    @property
    def base(self) -> type[P]:
        """Class that every plugin of this kind derives from."""
        found: type[P] = resolve(self._base)
        return found

    def register(self, plugin: type[P]) -> type[P]:
        """Add a plugin class in this session; installed packages use entry points instead."""
        where = f"{plugin.__module__}.{plugin.__qualname__}"
        entry = Entry[P](getattr(plugin, "name", ""), "this session", where, lambda: plugin)
        if entry.name in self._entries:
            raise self._twice(entry, self._entries[entry.name])
        self._check(entry, plugin)
        self._entries[entry.name] = entry
        return plugin

    @cached_property
    def _entries(self) -> dict[str, Entry[P]]:
        """Every plugin by name: built-in ones, those of entry points, and those of this session."""
        found: dict[str, Entry[P]] = {}
        for name, place in importlib.import_module(self.package).BUILT_IN.items():
            found[name] = Entry(name, BUILT_IN, place, partial(resolve, f"{self.package}.{place}"))
        for point in importlib.metadata.entry_points(group=self.group):
            dist = point.dist
            origin = f"{dist.name} {dist.version}" if dist is not None else "unknown package"
            where = f"entry point '{point.name} = {point.value}' of {origin}"
            entry = Entry[P](point.name, origin, where, point.load)
            if point.name in found:
                raise self._twice(entry, found[point.name])
            found[point.name] = entry
        return found

    def _twice(self, entry: Entry[P], other: Entry[P]) -> RegistryError:
        return RegistryError(
            f"the {self.kind} '{entry.name}' is registered twice",
            where=entry.where,
            got=f"already registered by {other.origin}",
            expected="one plugin per name",
            remedy="rename one of them, or uninstall one of the packages",
        )

    def _check(self, entry: Entry[P], plugin: Any) -> None:
        """Keep a plugin's class, or raise `RegistryError` if it is none."""
        expected = f"a subclass of {self._base.replace(':', '.')}"
        lacking = [a for a in ("name", "summary") if not isinstance(getattr(plugin, a, None), str)]
        if not (isinstance(plugin, type) and issubclass(plugin, self.base)) or lacking:
            raise RegistryError(
                f"the {self.kind} plugin '{entry.name}' is not a {self.kind}",
                where=entry.where,
                got=f"{plugin!r}" + "".join(f", without '{attribute}'" for attribute in lacking),
                expected=f"{expected}, with the texts 'name' and 'summary'",
                remedy="point the entry point at the plugin class, and add what it lacks",
            )
        name = entry.name
        if name in self.reserved or not NAME.fullmatch(name) or plugin.name != name:
            raise RegistryError(
                f"'{name}' cannot be the name of a {self.kind}",
                where=entry.where,
                got=f"{name} (the class says '{plugin.name}')",
                expected="the class's own name, of letters, digits, '.', '_' and '-'"
                + (f", and none of {', '.join(self.reserved)}" if self.reserved else ""),
                remedy="rename the plugin, or its entry point",
            )
        entry.loaded = plugin

    def loaded(self) -> list[Entry[P]]:
        """Every plugin that was imported so far."""
        return [entry for entry in self._entries.values() if entry.loaded is not None]

    def entries(self) -> list[Entry[P]]:
        """Import and return every registered plugin, sorted by name."""
        return [self._entry(name) for name in self.names()]

    def names(self) -> list[str]:
        """Return every registered name, sorted; nothing is imported."""
        return sorted(self._entries)

    def _entry(self, name: str, where: str | None = None) -> Entry[P]:
        if name in self._entries:
            entry = self._entries[name]
            if entry.loaded is None:
                try:
                    plugin = entry.load()
                except Exception as error:
                    raise RegistryError(
                        f"the {self.kind} plugin '{name}' cannot be imported",
                        where=entry.where,
                        got=f"{type(error).__name__}: {error}",
                        expected=f"a subclass of {self._base.replace(':', '.')}",
                        remedy="fix or uninstall that package",
                    ) from error
                self._check(entry, plugin)
            return entry
        raise RegistryError(
            f"there is no {self.kind} named '{name}'",
            where=where,
            got=name,
            expected=f"one of the registered {self.plural} (`lpact list {self.plural}`)",
            remedy=did_you_mean(name, self.names()),
        )

    def get(self, name: str, *, where: str | None = None) -> type[P]:
        """Return the plugin class registered under ``name``."""
        return self._entry(name, where).plugin

    def origin(self, name: str) -> str:
        """Return the package that registered ``name``, with its version; `BUILT_IN` for lpact's own."""
        return self._entry(name).origin

    def build(self, name: str, options: Mapping[str, Any] | None = None, *, where: str | None = None) -> P:
        """Return a plugin instance with validated options."""
        plugin = self.get(name, where=where)
        place = f"{where or self.kind} '{name}': options"
        validated = validate_model(plugin.Options, dict(options or {}), where=place, what=PLUGIN_OPTIONS)
        return plugin(validated)


def resolve(place: str) -> Any:
    """The object that ``"module:name"`` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


ANALYSES: Registry[Any] = Registry(
    "analysis",
    "lpact.analyses.base:Analysis",
    package="lpact.analyses",
    plural="analyses",
    reserved=(
        *("name", "seed", "datasets", "models", "readout", "nuisance", "controls", "mechanisms"),
        *("run", "analyses"),
    ),
)
"""The questions that a study can ask; none can have the name of a shared table of the study file."""
