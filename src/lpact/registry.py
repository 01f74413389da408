"""One registry for every kind of plugin.

A plugin is a class with a ``name``, a one-line ``summary`` and an ``Options`` model. Built-in plugins register with a
decorator in their own file; plugins of other packages are found through entry points (``lpact.controls`` and so
on) whose value is the class. A name can be taken once; a plugin that cannot be imported is an error, never skipped.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from lpact.config import PLUGIN_OPTIONS, validate_model
from lpact.errors import RegistryError, did_you_mean

BUILT_IN = "lpact"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class PluginOptions(BaseModel):
    """Options of a plugin: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Plugin:
    """Base of everything that can be registered.

    Subclasses set ``name`` and ``summary``, and may replace ``Options`` with a model of their own.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    Options: ClassVar[type[PluginOptions]] = PluginOptions

    def __init__(self, options: PluginOptions | None = None) -> None:
        self.options = options if options is not None else self.Options()


P = TypeVar("P", bound=Plugin)


@dataclass(frozen=True)
class Entry(Generic[P]):
    """A registered plugin class and where it came from."""

    name: str
    summary: str
    plugin: type[P]
    origin: str


class Registry(Generic[P]):
    """All plugins of one kind.

    Parameters
    ----------
    kind
        Singular noun for messages, such as ``"control"``.
    base
        Class that every plugin of this kind derives from.
    package
        Package whose modules hold the built-in plugins.
    reserved
        Names that mean something else in the tables.
    """

    def __init__(
        self, kind: str, base: type[P], *, package: str, reserved: tuple[str, ...] = ()
    ) -> None:
        self.reserved = reserved
        self.kind = kind
        self.base = base
        self.package = package
        self.group = f"lpact.{kind}s"
        self._entries: dict[str, Entry[P]] = {}
        self._loaded = False

    def register(self, plugin: type[P]) -> type[P]:
        """Class decorator for built-in plugins."""
        self._add(plugin, origin=BUILT_IN)
        return plugin

    def _add(self, plugin: type[P], *, origin: str) -> None:
        where = f"{plugin.__module__}.{plugin.__qualname__} ({origin})"
        for attribute in ("name", "summary"):
            if not isinstance(getattr(plugin, attribute, None), str):
                raise RegistryError(
                    f"a {self.kind} plugin has no '{attribute}'",
                    where=where,
                    expected=f"a class attribute '{attribute}: str'",
                    remedy="add the attribute to the class",
                )
        name = plugin.name
        if name in self.reserved or not NAME.fullmatch(name):
            raise RegistryError(
                f"'{name}' cannot be the name of a {self.kind}",
                where=where,
                got=name,
                expected="letters, digits, '.', '_' and '-'"
                + (f", and none of {', '.join(self.reserved)}" if self.reserved else ""),
                remedy="rename the plugin",
            )
        if name in self._entries and self._entries[name].plugin is not plugin:
            other = self._entries[name]
            raise RegistryError(
                f"the {self.kind} '{name}' is registered twice",
                where=where,
                got=f"already registered by {other.plugin.__module__} ({other.origin})",
                expected="one plugin a name",
                remedy="rename one of them, or uninstall one of the packages",
            )
        self._entries[name] = Entry(name, plugin.summary, plugin, origin)

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        try:
            package = importlib.import_module(self.package)
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{self.package}.{module.name}")
            for point in importlib.metadata.entry_points(group=self.group):
                self._load_entry_point(point)
        except BaseException:
            self._loaded = False
            raise

    def _load_entry_point(self, point: importlib.metadata.EntryPoint) -> None:
        dist = point.dist
        origin = f"{dist.name} {dist.version}" if dist is not None else "unknown package"
        try:
            plugin = point.load()
        except Exception as error:
            raise RegistryError(
                f"the {self.kind} plugin '{point.name}' cannot be imported",
                where=f"entry point '{point.name} = {point.value}' of {origin}",
                got=f"{type(error).__name__}: {error}",
                expected=f"a subclass of {self.base.__module__}.{self.base.__name__}",
                remedy="mend or uninstall that package",
            ) from error
        if not (isinstance(plugin, type) and issubclass(plugin, self.base)):
            raise RegistryError(
                f"the {self.kind} plugin '{point.name}' is not a {self.kind}",
                where=f"entry point '{point.name} = {point.value}' of {origin}",
                got=repr(plugin),
                expected=f"a subclass of {self.base.__module__}.{self.base.__name__}",
                remedy="point the entry point at the plugin class",
            )
        self._add(plugin, origin=origin)

    def entries(self) -> list[Entry[P]]:
        """Return every registered plugin, sorted by name."""
        self._load()
        return [self._entries[name] for name in sorted(self._entries)]

    def names(self) -> list[str]:
        """Return every registered name, sorted."""
        return [entry.name for entry in self.entries()]

    def get(self, name: str, *, where: str | None = None) -> type[P]:
        """Return the plugin class registered under ``name``."""
        self._load()
        try:
            return self._entries[name].plugin
        except KeyError:
            raise RegistryError(
                f"there is no {self.kind} named '{name}'",
                where=where,
                got=name,
                expected=f"one of the registered {self.kind}s (`lpact list {self.kind}s`)",
                remedy=did_you_mean(name, self._entries),
            ) from None

    def origin(self, name: str) -> str:
        """Return the package that registered ``name``, with its version; `BUILT_IN` for lpact's own."""
        self.get(name)
        return self._entries[name].origin

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
