"""``constraints.txt`` pins everything that is installed, and nothing leads elsewhere."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def pins() -> dict[str, str]:
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            found[canonicalize_name(name)] = version
    return found


def direct() -> list[Requirement]:
    """Requirements of pyproject.toml: runtime, every extra, and the build."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    listed = [
        *project["project"]["dependencies"],
        *(text for extra in extras for text in extra),
        *project["build-system"]["requires"],
        # What hatchling asks for when it makes an editable install.
        "editables",
    ]
    return [Requirement(text) for text in listed]


def closure(start: list[Requirement]) -> dict[str, str]:
    """Installed versions of requirements and all that they require; what is not installed is left out."""
    versions: dict[str, str] = {}
    waiting = list(start)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if name in versions:
            continue
        versions[name] = found.version
        needed = [Requirement(text) for text in found.requires or ()]
        extras = {"", *requirement.extras}
        waiting += [r for r in needed if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in extras)]
    return versions


def test_every_dependency_is_pinned_within_its_bounds() -> None:
    pinned = pins()
    for requirement in direct():
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_everything_that_they_need_is_pinned_too() -> None:
    needed = closure(direct())
    assert len(needed) > len(direct())
    assert sorted(set(needed) - set(pins())) == []


def test_nothing_names_a_package_index() -> None:
    # Users install from where they are; a host in these files would break machines without it.
    for name in ("constraints.txt", "Makefile", ".ci/run", "pyproject.toml"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"--(extra-)?index-url|--find-links|--trusted-host|\bpypi\b", text), name
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"#.*|[\w.-]+==[\w.+-]+", line) for line in lines)
