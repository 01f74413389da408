"""The public names: sorted, importable, explained; private ones stay private."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest
from pydantic import BaseModel

import lpact

PACKAGES = sorted(
    module.name
    for module in pkgutil.walk_packages(lpact.__path__, "lpact.")
    if module.ispkg and hasattr(importlib.import_module(module.name), "__all__")
)


def isort_order(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then functions, each by name."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_the_public_api() -> None:
    assert lpact.__all__ == [
        "Claim",
        "Controls",
        "Dataset",
        "Deconstruct",
        "FeatureSet",
        "Gates",
        "Grid",
        "LPact",
        "LPactError",
        "Mechanisms",
        "Model",
        "Nuisance",
        "Patterns",
        "Preprocess",
        "Readout",
        "Responses",
        "Run",
        "RunSettings",
        "Study",
        "Turing",
        "__version__",
        "alignment_patterns",
        "audit",
        "ceilings",
        "deconstruct",
        "diff_runs",
        "export_run",
        "extract_features",
        "load_study",
        "lock_run",
        "measures",
        "open_run",
        "plan_features",
        "read_responses",
        "splits",
        "stats",
        "turing_test",
        "verify_run",
    ]
    assert lpact.__all__ == sorted(lpact.__all__)
    assert dir(lpact) == lpact.__all__


def test_sections_of_the_study_file_have_short_names() -> None:
    study = lpact.Study(
        name="first",
        datasets=[lpact.Dataset(name="meg", reader="simulated")],
        models=[lpact.Model(name="integrated", layers=(2,))],
        readout=lpact.Readout(folds=3),
        nuisance=lpact.Nuisance(include=("word_rate",)),
        controls=lpact.Controls(draws=2),
        mechanisms=lpact.Mechanisms(include=("surprisal", "context_update")),
        analyses=[lpact.LPact()],
        run=lpact.RunSettings(workers=2),
    )
    assert list(study.analyses) == ["lpact"]
    assert (study.config.readout.folds, study.config.controls.draws) == (3, 2)
    assert study.run_config.workers == 2


@pytest.mark.parametrize("name", lpact.__all__)
def test_public_names_are_importable_and_explained(name: str) -> None:
    member = getattr(lpact, name)
    if name == "__version__":
        assert member.count(".") >= 2
        return
    assert inspect.getdoc(member)
    if inspect.ismodule(member):
        for public in member.__all__:
            assert inspect.getdoc(getattr(member, public)), f"{name}.{public}"
        return
    for attribute, value in inspect.getmembers(member):
        if attribute in dir(BaseModel):  # pydantic's own
            continue
        if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
            assert inspect.getdoc(value), f"{name}.{attribute}"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'lpact' has no attribute 'load_studie'"):
        _ = lpact.load_studie


@pytest.mark.parametrize("name", ["ceilings", "measures", "splits", "stats"])
def test_examples_of_the_core_run(name: str) -> None:
    found = doctest.testmod(getattr(lpact, name))
    assert found.attempted > 3
    assert found.failed == 0


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_export_what_they_list(package: str) -> None:
    module = importlib.import_module(package)
    names = list(module.__all__)
    assert names == sorted(names, key=isort_order)
    assert len(set(names)) == len(names)
    for name in names:
        member = getattr(module, name)
        assert not name.startswith("_")
        if inspect.isclass(member) or inspect.isfunction(member):
            assert inspect.getdoc(member), f"{package}.{name}"


def test_importing_lpact_imports_nothing_heavy() -> None:
    code = "import lpact, sys; print(*{'numpy', 'polars', 'scipy', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    code = "import lpact, sys; lpact.splits.contiguous(9, 3); print('polars' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
    code = "import lpact, sys; lpact.Study; print('polars' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]
