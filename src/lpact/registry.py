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
from functools import cached_property
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


@dataclass(frozen=True)
class Entry(Generic[P]):
    """A registered plugin class and where it came from."""

    name: str
    summary: str
    plugin: type[P]
    origin: str


@dataclass(frozen=True)
class _Announced:
    """A plugin that is known by name and not imported yet."""

    origin: str
    where: str
    load: Callable[[], Any]


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
        self._entries: dict[str, Entry[P]] = {}

    @property
    def base(self) -> type[P]:
        """Class that every plugin of this kind derives from."""
        found: type[P] = resolve(self._base)
        return found

    def register(self, plugin: type[P]) -> type[P]:
        """Add a plugin class in this session; installed packages use entry points instead."""
        where = f"{plugin.__module__}.{plugin.__qualname__}"
        name = getattr(plugin, "name", "")
        if name in self._announced or name in self._entries:
            raise self._twice(name, where, self._origin_of(name))
        self._add(name, plugin, origin="this session", where=where)
        return plugin

    @cached_property
    def _announced(self) -> dict[str, _Announced]:
        """Every plugin by name: built-in ones and those of entry points."""
        built_in: Mapping[str, str] = importlib.import_module(self.package).BUILT_IN
        found = {
            name: _Announced(BUILT_IN, place, _loader(f"{self.package}.{place}"))
            for name, place in built_in.items()
        }
        for point in importlib.metadata.entry_points(group=self.group):
            dist = point.dist
            origin = f"{dist.name} {dist.version}" if dist is not None else "unknown package"
            where = f"entry point '{point.name} = {point.value}' of {origin}"
            if point.name in found:
                raise self._twice(point.name, where, found[point.name].origin)
            found[point.name] = _Announced(origin, where, point.load)
        return found

    def _twice(self, name: str, where: str, other: str) -> RegistryError:
        return RegistryError(
            f"the {self.kind} '{name}' is registered twice",
            where=where,
            got=f"already registered by {other}",
            expected="one plugin per name",
            remedy="rename one of them, or uninstall one of the packages",
        )

    def _origin_of(self, name: str) -> str:
        if name in self._entries:
            return self._entries[name].origin
        return self._announced[name].origin

    def _import(self, name: str) -> Entry[P]:
        announced = self._announced[name]
        try:
            plugin = announced.load()
        except Exception as error:
            raise RegistryError(
                f"the {self.kind} plugin '{name}' cannot be imported",
                where=announced.where,
                got=f"{type(error).__name__}: {error}",
                expected=f"a subclass of {self._base.replace(':', '.')}",
                remedy="fix or uninstall that package",
            ) from error
        if not (isinstance(plugin, type) and issubclass(plugin, self.base)):
            raise RegistryError(
                f"the {self.kind} plugin '{name}' is not a {self.kind}",
                where=announced.where,
                got=repr(plugin),
                expected=f"a subclass of {self._base.replace(':', '.')}",
                remedy="point the entry point at the plugin class",
            )
        return self._add(name, plugin, origin=announced.origin, where=announced.where)

    def _add(self, name: str, plugin: type[P], *, origin: str, where: str) -> Entry[P]:
        for attribute in ("name", "summary"):
            if not isinstance(getattr(plugin, attribute, None), str):
                raise RegistryError(
                    f"a {self.kind} plugin has no '{attribute}'",
                    where=where,
                    expected=f"a class attribute '{attribute}: str'",
                    remedy="add the attribute to the class",
                )
        if name in self.reserved or not NAME.fullmatch(name) or plugin.name != name:
            raise RegistryError(
                f"'{name}' cannot be the name of a {self.kind}",
                where=where,
                got=f"{name} (the class says '{plugin.name}')",
                expected="the class's own name, of letters, digits, '.', '_' and '-'"
                + (f", and none of {', '.join(self.reserved)}" if self.reserved else ""),
                remedy="rename the plugin, or its entry point",
            )
        self._entries[name] = Entry(name, plugin.summary, plugin, origin)
        return self._entries[name]

    def loaded(self) -> list[Entry[P]]:
        """Every plugin that was imported so far."""
        return list(self._entries.values())

    def entries(self) -> list[Entry[P]]:
        """Import and return every registered plugin, sorted by name."""
        return [self._entry(name) for name in self.names()]

    def names(self) -> list[str]:
        """Return every registered name, sorted; nothing is imported."""
        return sorted({*self._announced, *self._entries})

    def _entry(self, name: str, where: str | None = None) -> Entry[P]:
        if name in self._entries:
            return self._entries[name]
        if name in self._announced:
            return self._import(name)
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

    def build(
        self, name: str, options: Mapping[str, Any] | None = None, *, where: str | None = None
    ) -> P:
        """Return a plugin instance with validated options."""
        plugin = self.get(name, where=where)
        place = f"{where or self.kind} '{name}': options"
        validated = validate_model(
            plugin.Options, dict(options or {}), where=place, what=PLUGIN_OPTIONS
        )
        return plugin(validated)


def _loader(place: str) -> Callable[[], Any]:
    return lambda: resolve(place)


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
