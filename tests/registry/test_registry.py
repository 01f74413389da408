"""One registry for every kind: built-in plugins, lookup, options."""

from __future__ import annotations

import sys
import types
from typing import ClassVar

import pytest
from pydantic import Field

from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.analyses.lpact.levels.stripping_methods import STRIPPINGS
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS
from lpact.errors import ConfigError, RegistryError
from lpact.features.mechanisms import MECHANISMS
from lpact.features.models import MODELS
from lpact.measures import MEASURES
from lpact.registry import ANALYSES, Plugin, PluginOptions, Registry

REGISTRIES = (ANALYSES, CONTROLS, DATASETS, MEASURES, MECHANISMS, MODELS, PROFILES, STRIPPINGS)


class Cake(Plugin):
    """What this test's registry holds."""


class SpongeOptions(PluginOptions):
    """Options of `sponge`."""

    n_eggs: int = Field(3, ge=1, description="Eggs.")


class Sponge(Cake):
    """A plugin with options."""

    name = "sponge"
    summary = "eggs, sugar, flour"
    Options: ClassVar[type[PluginOptions]] = SpongeOptions
    options: SpongeOptions


class Biscuit(Cake):
    """A plugin without options."""

    name = "biscuit"
    summary = "twice baked"


def made(package: str, built_in: dict[str, str]) -> Registry[Cake]:
    """A registry whose package lists these built-in plugins."""
    sys.modules[package] = types.ModuleType(package)
    vars(sys.modules[package])["BUILT_IN"] = built_in
    return Registry("cake", f"{__name__}:Cake", package=package)


@pytest.fixture
def cakes() -> Registry[Cake]:
    """A registry with two plugins, registered out of order."""
    registry = made("no_cakes", {})
    registry.register(Sponge)
    registry.register(Biscuit)
    return registry


def test_register_returns_the_class() -> None:
    assert made("no_cakes", {}).register(Sponge) is Sponge


def test_built_in_plugins_are_imported_when_they_are_used_or_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = made("bakery", {"sponge": "shelf:Sponge", "lost": "no_such_shelf:Lost"})
    assert registry.names() == ["lost", "sponge"]
    assert "bakery.shelf" not in sys.modules
    shelf = types.ModuleType("bakery.shelf")
    vars(shelf)["Sponge"] = Sponge
    monkeypatch.setitem(sys.modules, "bakery.shelf", shelf)
    assert registry.get("sponge") is Sponge
    assert registry.origin("sponge") == "lpact"
    for use in (lambda: registry.get("lost"), registry.entries):
        with pytest.raises(RegistryError, match="the cake plugin 'lost' cannot be imported"):
            use()


def test_a_plugin_under_another_name_than_its_own_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = made("bakery", {"torte": "shelf:Sponge"})
    shelf = types.ModuleType("bakery.shelf")
    vars(shelf)["Sponge"] = Sponge
    monkeypatch.setitem(sys.modules, "bakery.shelf", shelf)
    with pytest.raises(RegistryError, match="the class says 'sponge'"):
        registry.get("torte")


def test_entries_are_sorted_and_know_their_origin(cakes: Registry[Cake]) -> None:
    assert cakes.names() == ["biscuit", "sponge"]
    assert [(e.name, e.summary, e.plugin, e.origin) for e in cakes.entries()] == [
        ("biscuit", "twice baked", Biscuit, "this session"),
        ("sponge", "eggs, sugar, flour", Sponge, "this session"),
    ]


def test_get(cakes: Registry[Cake]) -> None:
    assert cakes.get("sponge") is Sponge


def test_unknown_name(cakes: Registry[Cake]) -> None:
    with pytest.raises(RegistryError) as caught:
        cakes.get("spunge", where="party.toml")
    assert str(caught.value).splitlines() == [
        "there is no cake named 'spunge'",
        "  where:    party.toml",
        "  found:    spunge",
        "  expected: one of the registered cakes (`lpact list cakes`)",
        "  remedy:   did you mean 'sponge'?",
    ]


def test_build_with_options(cakes: Registry[Cake]) -> None:
    default, given = cakes.build("sponge"), cakes.build("sponge", {"n_eggs": 5})
    assert isinstance(default, Sponge)
    assert isinstance(given, Sponge)
    assert (default.options.n_eggs, given.options.n_eggs) == (3, 5)


def test_a_plugin_can_be_made_without_a_registry() -> None:
    assert isinstance(Sponge().options, SpongeOptions)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("sponge", {"n_egs": 5}, "n_egs: unknown option; did you mean 'n_eggs'?"),
        ("sponge", {"n_eggs": 0}, "n_eggs: Input should be greater than or equal to 1 (found 0)"),
        ("sponge", {"n_eggs": "many"}, "(found 'many')"),
        ("biscuit", {"n_eggs": 1}, "n_eggs: unknown option; none is known"),
    ],
)
def test_options_are_validated(cakes: Registry[Cake], name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        cakes.build(name, options, where="party.toml")
    assert message in str(caught.value)
    assert f"party.toml '{name}': options" in str(caught.value)


def test_options_are_frozen(cakes: Registry[Cake]) -> None:
    with pytest.raises(ValueError, match="frozen"):
        cakes.build("sponge").options.n_eggs = 2  # type: ignore[attr-defined]


def test_a_name_can_be_taken_once(cakes: Registry[Cake]) -> None:
    class Other(Cake):
        name = "sponge"
        summary = "an impostor"

    with pytest.raises(RegistryError, match="the cake 'sponge' is registered twice") as caught:
        cakes.register(Other)
    assert "rename one of them" in str(caught.value)
    assert cakes.get("sponge") is Sponge


@pytest.mark.parametrize("missing", ["name", "summary"])
def test_a_plugin_says_what_it_is(cakes: Registry[Cake], missing: str) -> None:
    attributes = {"name": "torte", "summary": "layers"}
    del attributes[missing]
    with pytest.raises(RegistryError, match=f"without '{missing}'"):
        cakes.register(type("Torte", (Cake,), attributes))


def test_a_failed_import_is_not_forgotten() -> None:
    registry: Registry[Cake] = Registry("cake", f"{__name__}:Cake", package="lpact.no_such_package")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_package"):
            registry.names()


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda r: r.kind)
def test_every_built_in_plugin_is_complete(registry: Registry[Plugin]) -> None:
    assert registry.group == f"lpact.{registry.plural}"
    assert registry.entries()
    for entry in registry.entries():
        assert issubclass(entry.plugin, registry.base)
        assert not getattr(entry.plugin, "__abstractmethods__", None), entry.name
        assert entry.plugin.__doc__
        assert entry.summary
        assert "\n" not in entry.summary
        assert not entry.summary.endswith(".")
        assert isinstance(registry.build(entry.name), entry.plugin)
