"""A plugin that cannot be used is an error that names it, never a gap in a list."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lpact.controls.base import CONTROLS, SevereControl
from lpact.errors import RegistryError
from lpact.registry import Registry

CONTROL = """
from lpact.controls.base import SevereControl

class Mine(SevereControl):
    name = "{name}"
    summary = "a control"

    def draw(self, inputs, rng, draw):
        return inputs.features
"""


def install(site: Path, package: str, *, points: dict[str, str], source: str) -> None:
    """Lay out a package with entry points, as an installer would."""
    module = package.replace("-", "_")
    (site / f"{module}.py").write_text(source, encoding="utf-8")
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    lines = ["[lpact.controls]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path, with a package that holds no plugin."""
    (tmp_path / "no_built_ins").mkdir()
    (tmp_path / "no_built_ins/__init__.py").write_text("BUILT_IN = {}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def registry() -> Registry[SevereControl]:
    """A registry of controls with no built-in ones."""
    importlib.invalidate_caches()
    return Registry("control", "lpact.controls.base:SevereControl", package="no_built_ins")


def test_a_sound_package_is_registered(site: Path) -> None:
    install(
        site,
        "sound-plugin",
        points={"mine": "sound_plugin:Mine"},
        source=CONTROL.format(name="mine"),
    )
    (entry,) = registry().entries()
    assert (entry.name, entry.origin, entry.summary) == ("mine", "sound-plugin 1.0", "a control")


def test_two_packages_with_one_name(site: Path) -> None:
    for package in ("first-plugin", "second-plugin"):
        module = package.replace("-", "_")
        install(site, package, points={"same": f"{module}:Mine"}, source=CONTROL.format(name="same"))
    with pytest.raises(RegistryError, match="'same' is registered twice") as caught:
        registry().names()
    for origin in ("first-plugin 1.0", "second-plugin 1.0"):
        assert origin in str(caught.value)


def test_a_name_that_lpact_has_taken(tmp_path: Path) -> None:
    install(
        tmp_path,
        "late-plugin",
        points={"circular_shift": "late_plugin:Mine"},
        source=CONTROL.format(name="circular_shift"),
    )
    result = subprocess.run(
        [sys.executable, "-c", "from lpact.controls.base import CONTROLS; CONTROLS.names()"],
        env={
            **os.environ,
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "the control 'circular_shift' is registered twice" in result.stderr
    assert "'circular_shift = late_plugin:Mine' of late-plugin 1.0" in result.stderr
    assert "already registered by lpact" in result.stderr


@pytest.mark.parametrize(
    ("source", "value", "found"),
    [
        ("import a_package_that_is_not_there", "broken_plugin:Mine", "a_package_that_is_not_there"),
        (
            "raise RuntimeError('half installed')",
            "broken_plugin:Mine",
            "RuntimeError: half installed",
        ),
        ("", "broken_plugin:Mine", "AttributeError"),
        ("", "no_such_module:Mine", "no_such_module"),
    ],
)
def test_a_plugin_that_cannot_be_imported(site: Path, source: str, value: str, found: str) -> None:
    install(site, "broken-plugin", points={"mine": value}, source=source)
    assert registry().names() == ["mine"]
    with pytest.raises(RegistryError, match="'mine' cannot be imported") as caught:
        registry().entries()
    message = str(caught.value)
    assert f"entry point 'mine = {value}' of broken-plugin 1.0" in message
    assert found in message
    sys.modules.pop("broken_plugin", None)


def test_a_broken_plugin_stays_an_error(site: Path) -> None:
    install(site, "broken-plugin", points={"mine": "broken_plugin:Mine"}, source="")
    broken = registry()
    for _ in range(2):
        with pytest.raises(RegistryError, match="cannot be imported"):
            broken.get("mine")
    sys.modules.pop("broken_plugin", None)


@pytest.mark.parametrize(
    "source",
    [
        "Mine = 3",
        "class Mine: name = 'mine'; summary = 'not a control'",
        "from lpact.measures import CKA as Mine",
        CONTROL.format(name="mine") + "\nMine = Mine()",
    ],
)
def test_an_entry_point_that_is_not_a_control(site: Path, source: str) -> None:
    install(site, "odd-plugin", points={"mine": "odd_plugin:Mine"}, source=source)
    with pytest.raises(RegistryError, match="'mine' is not a control") as caught:
        registry().get("mine")
    assert "of odd-plugin 1.0" in str(caught.value)
    assert "lpact.controls.base.SevereControl" in str(caught.value)
    sys.modules.pop("odd_plugin", None)


def test_an_entry_point_has_the_name_of_its_class(site: Path) -> None:
    points = {"mine": "renamed_plugin:Mine"}
    install(site, "renamed-plugin", points=points, source=CONTROL.format(name="other"))
    with pytest.raises(RegistryError, match="'mine' cannot be the name of a control") as caught:
        registry().get("mine")
    assert "the class says 'other'" in str(caught.value)
    sys.modules.pop("renamed_plugin", None)


def test_a_broken_analysis_breaks_no_other_command(tmp_path: Path) -> None:
    """Help still lists the other commands and says what is wrong; `lpact list analyses` is an error."""
    install(tmp_path, "broken-plugin", points={}, source="raise RuntimeError('half installed')")
    info = tmp_path / "broken_plugin-1.0.dist-info"
    points = "[lpact.analyses]\nbroken = broken_plugin:Broken\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")

    def lpact(*arguments: str) -> subprocess.CompletedProcess[str]:
        path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        return subprocess.run(
            [sys.executable, "-m", "lpact", *arguments],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    helped = lpact("--help")
    assert helped.returncode == 0
    assert "  robustness " in helped.stdout
    assert "RuntimeError: half installed" in helped.stderr
    assert lpact("assay", "--help").returncode == 0
    assert lpact("plan", "--help").stderr == ""
    listed = lpact("list", "analyses")
    assert listed.returncode == 2
    assert "the analysis plugin 'broken' cannot be imported" in listed.stderr
    assert "Traceback" not in listed.stderr


def test_built_in_controls_are_untouched() -> None:
    assert all(entry.origin == "lpact" for entry in CONTROLS.entries())
