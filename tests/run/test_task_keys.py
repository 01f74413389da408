"""Keys say all that a result depends on: what must change them does, nothing else does, and equal keys never lie."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lpact
from lpact.analyses.base import Task, analyses_of
from lpact.analyses.lpact.assays.jobs import JUDGING
from lpact.analyses.lpact.config import LPactSection
from lpact.analyses.lpact.jobs import MEASURING
from lpact.config import SharedConfig, StudyConfig
from lpact.inputs.workspace import Workspace
from lpact.run.audit import StudyAudit, audit_study, study_keys
from lpact.run.conductor import Conductor, Measuring
from lpact.run.executors.local import perform
from lpact.run.progress import Reporter
from lpact.store import MemoryTasks
from lpact.store.code import SHARED, code_digest, source_digests
from lpact.tables import MODEL_FILES, SOURCE_FILES

PACKAGE = Path(lpact.__file__).parent


def dataset(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "reader": "simulated",
        "grid": {"lags_ms": [100.0]},
        "options": {
            "n_subjects": 1,
            "n_runs": 2,
            "n_stories": 2,
            "sentences_per_story": 8,
            "n_units": 6,
            "n_mechanism_units": 2,
        },
    }


BASE: dict[str, Any] = {
    "name": "keys",
    "seed": 1,
    "datasets": [dataset("one"), dataset("two")],
    "models": [{"name": "integrated", "layers": [2]}, {"name": "drift", "layers": [1, 2]}],
    "readout": {"alphas": [10.0], "folds": 3, "gap_events": 2, "min_train_events": 30},
    "controls": {"include": ["random_matched_dim", "circular_shift"], "draws": 1},
    "mechanisms": {"include": ["surprisal", "context_update"]},
    "lpact": {
        "relational": {"alignments": ["linear"], "profiles": ["pearson"]},
        "stripping": {"methods": ["feature_zeroing"], "mismatch_draws": 1},
        "assay": {"unit_permutations": 5, "shifts": 19},
    },
}

Change = Callable[[dict[str, Any]], None]


def set_option(*path: str | int, to: object) -> Change:
    """A change of one option of the study."""

    def change(values: dict[str, Any]) -> None:
        place: Any = values
        for step in path[:-1]:
            place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
        place[path[-1]] = to

    return change


def of(*kinds: str) -> Callable[[str], bool]:
    """Tasks whose names begin so."""
    return lambda name: name.removeprefix("lpact/").startswith(kinds)


def nothing(_: str) -> bool:
    return False


ONE = ("brain/one", "context/one", "ceiling/one", "controls/brain/one", "controls/stimulus/one")
ASSAYS = ("controls/brain", "controls/stimulus")
IMPLANT = "controls/implant"
MEASURED = ("brain", "context", "ceiling")

CHANGES: dict[str, tuple[Change, Callable[[str], bool]]] = {
    "name": (set_option("name", to="another"), nothing),
    "seed": (set_option("seed", to=2), of(*MEASURED, *ASSAYS)),
    "datasets": (set_option("datasets", 0, "options", "snr", to=3.5), of(*ONE)),
    # One layer more, and one model less.
    "models": (set_option("models", to=[{"name": "integrated", "layers": [1, 2]}]), nothing),
    "readout": (set_option("readout", "alphas", to=[20.0]), lambda _: True),
    "nuisance": (
        set_option("nuisance", "include", to=["word_length"]),
        of("context", "controls"),
    ),
    "controls": (set_option("controls", "draws", to=2), of("context", *ASSAYS, IMPLANT)),
    "mechanisms": (
        set_option("mechanisms", "options", "context_update", to={"layer": 1}),
        of("context", *ASSAYS),
    ),
    "lpact.relational": (
        set_option("lpact", "relational", "profiles", to=["cosine"]),
        lambda _: True,
    ),
    "lpact.stripping": (
        set_option("lpact", "stripping", "mismatch_draws", to=2),
        of("context", *ASSAYS, IMPLANT),
    ),
    "lpact.audit": (set_option("lpact", "audit", "min_subject_runs", to=1), of(*ASSAYS)),
    "lpact.gates": (
        set_option("lpact", "gates", "min_subject_runs", to=77),
        of(IMPLANT, "controls/brain"),
    ),
    "lpact.assay": (set_option("lpact", "assay", "unit_permutations", to=6), of("controls")),
}


class Chosen:
    """An executor that runs the tasks with some keys, and leaves the others undone."""

    workers = 1

    def __init__(self, workspace: Workspace, results: MemoryTasks, keys: Collection[str]) -> None:
        self._workspace, self._results, self._keys = workspace, results, keys

    def run(self, tasks: Iterator[Task]) -> Iterator[Any]:
        for task in tasks:
            if task.key in self._keys:
                yield perform(task, self._workspace, self._results)


class Measured:
    """The tasks of a study."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.config = lpact.load_study(values).config
        self.workspace = Workspace(self.config)
        self.audit = audit_study(self.workspace, Reporter())
        self.measuring = Measuring(self.config, self.audit, analyses_of(self.config)["lpact"])
        self.tasks = [task for stage in self.measuring.stages for task in stage.tasks]

    def run(self, keys: Collection[str]) -> MemoryTasks:
        """Results of the tasks with some keys."""
        results = MemoryTasks()
        executor = Chosen(self.workspace, results, keys)
        conductor = Conductor(results, executor, Reporter())
        self.measuring.run(conductor)
        conductor.check()
        return results


def levels(found: Measured) -> list[Task]:
    """Tasks of levels 1 to 4."""
    return [task for task in found.tasks if of(*MEASURED)(task.name)]


def keys_of(values: dict[str, Any]) -> dict[str, str]:
    """Keys of all tasks of a study by name."""
    tasks = Measured(values).tasks
    keys = {task.name: task.key for task in tasks}
    assert len(keys) == len(tasks)
    assert len(set(keys.values())) == len(tasks)
    return keys


def changed(change: Change) -> dict[str, Any]:
    values = copy.deepcopy(BASE)
    change(values)
    return values


@pytest.fixture(scope="module")
def base() -> dict[str, str]:
    return keys_of(BASE)


@pytest.fixture(scope="module")
def frames() -> dict[str, dict[str, pl.DataFrame]]:
    """What every task of levels 1 to 4 gives, by key."""
    found = Measured(BASE)
    return found.run({task.key for task in levels(found)}).frames


def test_every_section_is_looked_at() -> None:
    own = {f"lpact.{name}" for name in LPactSection.model_fields}
    assert CHANGES.keys() == SharedConfig.model_fields.keys() | own


def test_the_study_has_tasks_of_every_kind(base) -> None:
    names = [name.removeprefix("lpact/").split("/") for name in base]
    kinds = {"/".join(name[: 2 if name[0] == "controls" else 1]) for name in names}
    assert kinds == {*MEASURED, *ASSAYS, IMPLANT}


@pytest.mark.parametrize("section", CHANGES)
def test_a_change_changes_the_keys_that_it_must_and_no_other(base, frames, section) -> None:
    change, must = CHANGES[section]
    values = changed(change)
    found = Measured(values)
    results, tasks = found.run(frames.keys()), found.tasks
    now = {task.name: task.key for task in tasks}
    assert section == "models" or now.keys() == base.keys()
    both = base.keys() & now.keys()
    different = {name for name in both if now[name] != base[name]}
    assert different == {name for name in both if must(name)}
    # Equal keys are equal results, computed anew in the changed study.
    same = {task.key for task in tasks if task.key in frames}
    assert results.frames.keys() == same
    assert bool(same) == (section not in {"seed", "readout", "lpact.relational"})
    for key in same:
        assert results.frames[key].keys() == frames[key].keys()
        for name, table in results.frames[key].items():
            assert table.equals(frames[key][name], null_equal=True), name


def test_settings_of_the_run_change_no_key(base) -> None:
    values = copy.deepcopy(BASE)
    values["run"] = {"workers": 3, "progress": False, "tasks": "elsewhere", "grids": "elsewhere"}
    assert keys_of(values) == base


def tasks_with(found: Measured, config: StudyConfig, audit: StudyAudit) -> set[str]:
    """Names of the tasks of levels 1 to 4 whose keys differ in another study or on other sources."""
    keys = study_keys(config, audit, "lpact")
    return {t.name for t in levels(found) if keys.task(t.job).key != t.key}


@pytest.fixture(scope="module")
def found() -> Measured:
    return Measured(BASE)


def test_options_of_a_model_are_its_own(found) -> None:
    models = list(found.config.models)
    assert tasks_with(found, found.config, found.audit) == set()
    models[1] = models[1].model_copy(update={"options": {"size": "large"}})
    other = found.config.model_copy(update={"models": tuple(models)})
    different = tasks_with(found, other, found.audit)
    assert different == {t.name for t in levels(found) if "/drift/" in t.name} != set()


def with_file(found: Measured, table: str, **row: str) -> StudyAudit:
    """The audit with one source file more."""
    files = found.audit.tables[table]
    added = files.clear().vstack(
        pl.DataFrame([row], schema_overrides=files.schema).select(
            [pl.col(c) if c in row else pl.lit(None, dtype=d).alias(c) for c, d in files.schema.items()]
        )
    )
    return StudyAudit(found.audit.of, {**found.audit.tables, table: files.vstack(added)})


def test_source_files_belong_to_their_dataset(found) -> None:
    audit = with_file(found, SOURCE_FILES.name, dataset="two", path="new.npy", sha256="00")
    different = tasks_with(found, found.config, audit)
    assert different == {t.name for t in levels(found) if t.name.split("/")[2] == "two"} != set()


def test_model_files_belong_to_their_model(found) -> None:
    audit = with_file(found, MODEL_FILES.name, model="integrated", path="weights", sha256="00")
    different = tasks_with(found, found.config, audit)
    assert different == {t.name for t in levels(found) if "/integrated/" in t.name} != set()


def test_the_model_that_mechanisms_are_taken_from_is_in_every_key(found) -> None:
    mechanisms = found.config.mechanisms.model_copy(update={"model": "drift"})
    config = found.config.model_copy(update={"mechanisms": mechanisms})
    audit = with_file(found, MODEL_FILES.name, model="drift", path="weights", sha256="00")
    before, after = (study_keys(config, own, "lpact") for own in (found.audit, audit))
    different = {t.name for t in levels(found) if before.task(t.job) != after.task(t.job)}
    assert different == {t.name for t in levels(found) if of("context")(t.name)}


# --- Code ----------------------------------------------------------------------------------------

PLUGINS = ("controls", "datasets", "features", "analyses/lpact/levels")
ORDERING = (
    "run/executors",
    "run/journal.py",
    "run/machine.py",
    "run/progress.py",
    "run/status.py",
    "report",  # an explanation imports its renderers when it is shown, which no task does
)
"""What says when and where work is done, and no number."""


def imports_of(path: Path) -> Iterator[Path]:
    """Files of the package that a file imports anywhere in it, but for types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            place = PACKAGE.parent / name.replace(".", "/")
            yield from (p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file())


def within(path: Path, parts: tuple[str, ...]) -> bool:
    relative = path.relative_to(PACKAGE).as_posix()
    return any(relative == part or relative.startswith(f"{part}/") for part in parts)


@pytest.mark.parametrize(
    ("start", "covered"),
    [
        (("analyses/lpact/jobs.py", *PLUGINS), (*SHARED, *MEASURING)),
        (("analyses/lpact/assays/jobs.py", *PLUGINS), (*SHARED, *JUDGING)),
    ],
)
def test_everything_that_a_task_imports_is_in_its_key(start, covered) -> None:
    waiting = [p for part in start for p in ([PACKAGE / part] if part.endswith(".py") else [])]
    waiting += [p for part in PLUGINS for p in (PACKAGE / part).rglob("*.py")]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or path == PACKAGE / "__init__.py" or within(path, ORDERING):
            continue
        seen.add(path)
        waiting += imports_of(path)
    names = {path.relative_to(PACKAGE).as_posix() for path in seen}
    assert {"math/ridge/__init__.py", "inputs/workspace.py", "store/tasks.py"} <= names
    assert sorted(n for n in names if not within(PACKAGE / n, covered)) in (
        [],
        ["run/__init__.py"],  # a docstring alone
    )
    assert len(ast.parse((PACKAGE / "run/__init__.py").read_text()).body) == 1


def test_the_digest_follows_every_file_under_its_parts(tmp_path, monkeypatch) -> None:
    package = tmp_path / "lpact"
    for name in ("math/ridge.py", "math/list.tsv", "report/page.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("1")
    (package / "store").mkdir()
    monkeypatch.setattr("lpact.store.code.__file__", str(package / "store" / "code.py"))

    def clear() -> None:
        code_digest.cache_clear()
        source_digests.cache_clear()

    def digests() -> tuple[str, str]:
        clear()
        return code_digest(("math",)), code_digest()

    try:
        first = digests()
        (package / "report/page.py").write_text("2")
        second = digests()
        assert first[0] == second[0]
        assert first[1] != second[1]
        for name in ("math/ridge.py", "math/list.tsv"):
            before = digests()[0]
            (package / name).write_text("2")
            assert digests()[0] != before
    finally:
        monkeypatch.undo()
        clear()


def test_data_that_comes_with_the_package_enters_keys() -> None:
    data = {
        path.relative_to(PACKAGE).as_posix()
        for part in (p for p in (*SHARED, *JUDGING) if not p.endswith(".py"))
        for path in (PACKAGE / part).rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    }
    assert {"stats/subject_tests.csv", "datasets/published.toml"} <= data <= set(source_digests())
