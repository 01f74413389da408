"""A plugin that is being written keeps its version: its code is in keys, in the manifest, and in a registration."""

from __future__ import annotations

import copy
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lpact
from lpact.archive import diff
from lpact.controls.base import CONTROLS
from lpact.errors import RunError
from lpact.measures import MEASURES
from lpact.registry import Entry
from lpact.run.audit import plugin_code, plugin_packages
from lpact.run.preregistration.compare import check_run
from lpact.run.preregistration.earlier import register, study_tasks
from lpact.store import code, read_manifest
from lpact.study import Study

CONTROL = """
from lpact.controls.base import SevereControl
from plugged.helper import SHIFT

class Mine(SevereControl):
    name = "mine"
    summary = "a control"
    needs = "features only"
    random = False

    def draw(self, inputs, rng, draw):
        return inputs.features[::-1] + SHIFT
"""
STUDY: dict[str, Any] = {
    "name": "plugged",
    "datasets": [
        {
            "name": "sim",
            "reader": "simulated",
            "grid": {"lags_ms": [100.0]},
            "options": {
                "n_subjects": 1,
                "n_runs": 1,
                "n_stories": 2,
                "sentences_per_story": 8,
                "n_units": 6,
                "n_mechanism_units": 2,
            },
        }
    ],
    "models": [{"name": "drift", "layers": [2]}],
    "readout": {"alphas": [10.0], "folds": 3, "gap_events": 2, "min_train_events": 30},
    "controls": {"include": ["circular_shift", "mine"], "draws": 1},
    "mechanisms": {"include": ["surprisal", "context_update"]},
    "lpact": {
        "relational": {"alignments": ["linear"], "profiles": ["pearson"]},
        "stripping": {"methods": ["feature_zeroing"], "mismatch_draws": 1},
        "assay": {"enabled": False},
    },
}
PLUGIN = "control mine"


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with a control; the file that is returned is not the one with its class."""
    package = tmp_path / "site" / "plugged"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "control.py").write_text(CONTROL)
    (package / "helper.py").write_text("SHIFT = 0.0\n")
    monkeypatch.syspath_prepend(str(package.parent))
    CONTROLS.names()
    mine = importlib.import_module("plugged.control").Mine
    CONTROLS._entries["mine"] = Entry("mine", "plugged 1.0", "test", lambda: mine, mine)
    yield package / "helper.py"
    del CONTROLS._entries["mine"]
    for name in [name for name in sys.modules if name.partition(".")[0] == "plugged"]:
        del sys.modules[name]
    code._by_files.cache_clear()


def edit(helper: Path) -> None:
    """Change the package, as a process that is started afterwards will see it."""
    helper.write_text(helper.read_text() + "SHIFT = 0.25\n")
    code._by_files.cache_clear()


def keys(study: Study) -> dict[str, str]:
    return {task.name: task.key for task in study_tasks(study.config, study.audit())}


def test_a_change_anywhere_in_its_package_changes_keys(helper: Path) -> None:
    study = lpact.load_study(STUDY)
    first, code = keys(study), dict(plugin_code(study.config))
    assert code.keys() == {PLUGIN}
    assert keys(study) == first
    edit(helper)
    then = keys(study)
    assert then.keys() == first.keys()
    assert not set(then.values()) & set(first.values())
    assert plugin_packages(study.config) == ("plugged 1.0",)


def test_a_finished_run_is_not_current_once_it_has_changed(helper: Path) -> None:
    """Nor does it change by being kept in the plugin's own package."""
    study, out = lpact.load_study(STUDY), helper.parent / "runs" / "one"
    registration = register(study.config, study.audit())
    run = study.run(out, progress=False)
    code._by_files.cache_clear()
    assert study.run(out, progress=False).manifest == run.manifest
    assert run.manifest.plugin_code == dict(plugin_code(study.config))
    assert read_manifest(run.root) == run.manifest
    item = check_run(registration, run).filter(item=f"code of the plugin '{PLUGIN}'")
    assert item["followed"].to_list() == [True]
    edit(helper)
    with pytest.raises(RunError, match="made from other inputs") as caught:
        study.run(out, progress=False)
    assert f"code of the plugin '{PLUGIN}'" in str(caught.value)
    late = register(study.config, study.audit())
    item = check_run(late, run).filter(item=f"code of the plugin '{PLUGIN}'")
    assert item["followed"].to_list() == [False]
    changed = {"plugin_code": dict(plugin_code(study.config))}
    manifests = (run.manifest, run.manifest.model_copy(update=changed))
    (difference,) = diff._changes(*map(diff._versions, manifests))
    assert difference.name == f"{PLUGIN} (code)"


def test_a_study_of_lpacts_own_plugins_has_no_such_field() -> None:
    values = copy.deepcopy(STUDY)
    values["controls"]["include"] = ["circular_shift"]
    study = lpact.load_study(values)
    content = register(study.config, study.audit()).registered
    assert plugin_code(study.config) == ()
    assert "plugin_code" not in json.loads(content.model_dump_json())


def test_plugins_of_two_kinds_may_have_one_name(helper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that registers itself, as lpact's own do, is another package's all the same."""
    own = MEASURES.get("linear")
    mine: Callable[..., Any] = type("Mine", (own,), {"name": "mine", "summary": "x", "__module__": "plugged.control"})
    entries = dict(MEASURES._entries)
    monkeypatch.setattr(MEASURES, "_entries", entries)
    MEASURES.register(mine)  # type: ignore[arg-type]
    values = copy.deepcopy(STUDY)
    values["lpact"]["relational"]["alignments"] = ["mine"]
    study = lpact.load_study(values)
    assert dict(plugin_code(study.config)).keys() == {PLUGIN, "measure mine"}
