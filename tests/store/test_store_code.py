"""Code of other packages: every file that a plugin can run changes its digest, and nothing else does."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from lpact.controls.reordered import CircularShift
from lpact.store import code
from lpact.store.code import is_own, package_digest

CLASS = "class Mine:\n    pass\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the import path; what is imported from it is forgotten."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    known = set(sys.modules)
    yield folder
    for name in set(sys.modules) - known:
        del sys.modules[name]


def write(site: Path, **files: str) -> None:
    """Files by name; two underscores stand for a folder."""
    for name, text in files.items():
        path = site / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def digest(module: str) -> str:
    """What a process that starts now would find."""
    code._by_files.cache_clear()
    importlib.invalidate_caches()
    return package_digest(importlib.import_module(module).Mine)


def test_all_code_of_a_package_counts(site: Path) -> None:
    write(site, pk__init="", pk__control=CLASS, pk__deep__helper="C = 1\n")
    (site / "pk/init.py").rename(site / "pk/__init__.py")
    seen = [digest("pk.control")]
    compiled = site / f"pk/_fast{EXTENSION_SUFFIXES[0]}"
    for change in (
        lambda: write(site, pk__deep__helper="C = 2\n"),
        lambda: compiled.write_bytes(b"\x7fELF"),
        lambda: compiled.write_bytes(b"\x7fELF2"),
        lambda: (site / "pk/deep/helper.py").rename(site / "pk/deep/other.py"),
        lambda: (site / "pk/deep/other.py").unlink(),
    ):
        change()
        assert digest("pk.control") not in seen
        seen.append(digest("pk.control"))
    for name in ("pk/__pycache__/x.pyc", "pk/.helper.py.swp", "pk/.cache/x.py", "beside.py"):
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_bytes(b"anything")
    assert digest("pk.control") == seen[-1]


def test_what_a_package_and_runs_write_into_it_does_not_count(site: Path) -> None:
    write(site, pk__init="", pk__control=CLASS)
    (site / "pk/init.py").rename(site / "pk/__init__.py")
    first = digest("pk.control")
    for name, text in {
        "runs/one/manifest.json": '{"lpact_version": "1"}',
        "runs/one/page.py": "",
        "runs/two.partial/log.jsonl": "{}",
        "cache/table.tsv": "1",
        "env/pyvenv.cfg": "",
        "env/lib/x.py": "",
        "node_modules/x/y.py": "",
    }.items():
        path = site / "pk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        assert digest("pk.control") == first, name
    # The twin: another program's manifest hides no code.
    other = site / "pk/web"
    other.mkdir()
    (other / "manifest.json").write_text('{"name": "site"}')
    (other / "x.py").write_text("")
    assert digest("pk.control") != first


def test_it_is_looked_at_once_a_process(site: Path) -> None:
    write(site, mod=CLASS)
    first = digest("mod")
    write(site, mod=CLASS + "X = 1\n")
    assert package_digest(sys.modules["mod"].Mine) == first
    assert digest("mod") != first


def test_a_single_module_counts_with_the_neighbours_that_it_imports(site: Path) -> None:
    write(
        site,
        mod=f"import os\n{CLASS}    def f(self):\n        import near.part\n",
        near__part="from other import C\n",
        other="C = 1\n",
        unused="C = 1\n",
    )
    (site / "near/__init__.py").write_text("")
    seen = [digest("mod")]
    for name in ("mod", "near__part", "other"):
        path = site / f"{name.replace('__', '/')}.py"
        path.write_text(path.read_text() + "# changed\n")
        assert digest("mod") not in seen, name
        seen.append(digest("mod"))
    write(site, unused="C = 2\n")
    assert digest("mod") == seen[-1]


def test_an_installed_module_counts_without_what_lies_beside_it(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions identify other distributions."""
    installed = site / "site-packages"
    write(installed, mod=f"import library\n{CLASS}", library="C = 1\n")
    monkeypatch.syspath_prepend(str(installed))
    first = digest("mod")
    write(installed, library="C = 2\n")
    assert digest("mod") == first
    write(installed, mod=f"import library\n{CLASS}# changed\n")
    assert digest("mod") != first


def test_a_package_without_init_counts_in_all_its_folders(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "more"
    write(site, lab__control=CLASS, lab__same="C = 1\n")
    write(other, lab__helper="C = 1\n", lab__same="C = 1\n")
    monkeypatch.syspath_prepend(str(other))
    seen = [digest("lab.control")]
    for folder, name in ((site, "lab__same"), (other, "lab__same"), (other, "lab__helper")):
        write(folder, **{name: "C = 2\n"})
        assert digest("lab.control") not in seen, name
        seen.append(digest("lab.control"))


def test_neighbours_without_init_and_compiled_ones_count(site: Path) -> None:
    late = "    def f(self):\n        from helpers.deep.consts import F\n        import fast\n"
    write(site, mod=CLASS + late, helpers__deep__consts="F = 1\n")
    compiled = site / f"fast{EXTENSION_SUFFIXES[0]}"
    compiled.write_bytes(b"1")
    seen = [digest("mod")]
    write(site, helpers__deep__consts="F = 2\n")
    seen.append(digest("mod"))
    compiled.write_bytes(b"2")
    seen.append(digest("mod"))
    assert len(set(seen)) == len(seen)
    (site / "helpers/notes.txt").write_text("x")
    assert digest("mod") == seen[-1]


SCRIPT = """
import multiprocessing, sys
import beside
from lpact.store.code import package_digest
class Mine: ...
def found(_):
    return package_digest(Mine)
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(package_digest(Mine), *pool.map(found, [0]))
"""


def test_a_script_is_the_same_in_its_workers_and_another_when_it_changes(tmp_path: Path) -> None:
    write(tmp_path, script=SCRIPT, beside="C = 1\n")

    def said() -> list[str]:
        command = [sys.executable, str(tmp_path / "script.py")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    first = said()
    assert len(first) == 2
    assert len(set(first)) == 1
    write(tmp_path, beside="C = 2\n")
    assert set(said()).isdisjoint(first)


def test_a_class_without_any_file_is_never_taken_for_another(tmp_path: Path) -> None:
    code = (
        "from lpact.store.code import package_digest\n"
        "class Mine: ...\n"
        "assert package_digest(Mine) == package_digest(Mine)\n"
        "print(package_digest(Mine))"
    )
    said = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        for _ in range(2)
    }
    assert len(said) == 2


def test_lpacts_own_classes_are_known(site: Path) -> None:
    write(site, mod=CLASS, lpactical=CLASS)
    assert is_own(CircularShift)
    for name in ("mod", "lpactical"):
        assert not is_own(importlib.import_module(name).Mine)
