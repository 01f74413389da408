"""A package of its own adds a plugin of every kind, and a study runs on nothing but them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parents[1] / "plugin_package"
ORIGIN = "lpact-example-plugins 0.1.0"
PLUGINS = {
    "analyses": "steady",
    "datasets": "tiny",
    "models": "spelling",
    "controls": "time_reversal",
    "measures": "best_column",
    "profiles": "side_agreement",
    "mechanisms": "vowel_share",
    "strippings": "engaged_silencing",
}

LIST_ALL = """
import json
from lpact.registry import ANALYSES
from lpact.controls.base import CONTROLS
from lpact.datasets.base import DATASETS
from lpact.features.mechanisms import MECHANISMS
from lpact.features.models import MODELS
from lpact.analyses.lpact.levels.profiles.similarity import PROFILES
from lpact.measures import MEASURES
from lpact.analyses.lpact.levels.stripping_methods import STRIPPINGS

registries = (ANALYSES, DATASETS, MODELS, CONTROLS, MEASURES, PROFILES, MECHANISMS, STRIPPINGS)
print(json.dumps({
    r.group.removeprefix("lpact."): {e.name: [e.origin, e.summary] for e in r.entries()} for r in registries
}))
"""

STUDY = {
    "name": "plugins",
    "seed": 3,
    "datasets": [{"name": "mine", "reader": "tiny", "options": {"n_subjects": 2}}],
    "models": [{"name": "letters", "source": "spelling", "layers": [0, 1]}],
    "readout": {"folds": 3, "alphas": [10.0], "min_train_events": 20, "min_test_events": 10},
    "controls": {"include": ["time_reversal"], "options": {"time_reversal": {"within": "story"}}},
    "mechanisms": {"include": ["vowel_share", "surprisal"]},
    "lpact": {
        "relational": {"alignments": ["best_column"], "profiles": ["side_agreement"]},
        "stripping": {
            "methods": ["engaged_silencing"],
            "mismatch_draws": 1,
            "options": {"engaged_silencing": {"engaged_share": 0.4}},
        },
        "audit": {"required_controls": ["time_reversal"]},
    },
}

RUN_STUDY = """
import json, sys
import lpact

if __name__ == "__main__":
    study = lpact.load_study(json.loads(sys.argv[1]))
    n_claims = study.plan().n_claims
    run = study.run(sys.argv[2], workers=2, progress=False)
    assert run.claims().height == n_claims > 0
    print(run.claim("mine/letters/0/vowel_share").explain())
"""


def python(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with ``path`` in front of everything that is installed."""
    inherited = os.environ.get("PYTHONPATH", "")
    search = f"{path}{os.pathsep}{inherited}"
    settings = {"PYTHONPATH": search, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "200"}
    environment = {**os.environ, **settings}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package."""
    target = tmp_path_factory.mktemp("site")
    options = "--quiet --no-index --no-deps --no-build-isolation --disable-pip-version-check"
    result = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options.split(), "--target", target, PACKAGE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return target


@pytest.fixture(scope="module")
def run(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The run directory of a study that uses every plugin, and the explanation of one claim."""
    folder = tmp_path_factory.mktemp("study")
    script = folder / "study.py"
    script.write_text(RUN_STUDY, encoding="utf-8")
    result = python(str(script), json.dumps(STUDY), str(folder / "run"), path=installed)
    assert result.returncode == 0, result.stderr
    return folder / "run", result.stdout


def test_every_plugin_is_listed_with_its_origin(installed: Path) -> None:
    result = python("-c", LIST_ALL, path=installed)
    assert result.returncode == 0, result.stderr
    listed = json.loads(result.stdout)
    assert listed.keys() == PLUGINS.keys()
    for group, name in PLUGINS.items():
        origin, summary = listed[group][name]
        assert origin == ORIGIN
        assert summary
        built_in = [other for other, (where, _) in listed[group].items() if where == "lpact"]
        assert built_in, f"no built-in plugin in {group}"


@pytest.mark.parametrize(("kind", "name"), PLUGINS.items())
def test_the_command_line_lists_it(installed: Path, kind: str, name: str) -> None:
    result = python("-c", "from lpact.cli import main; main()", "list", kind, path=installed)
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if line.startswith(name)]
    assert ORIGIN in line


def test_the_manifest_names_the_package(run: tuple[Path, str]) -> None:
    manifest = json.loads((run[0] / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["plugins"] == [ORIGIN]
    options = manifest["config"]["controls"]["options"]
    assert options["time_reversal"] == {"within": "story"}


def test_one_file_and_one_line_per_plugin() -> None:
    import tomllib

    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = project["entry-points"]
    assert {group: list(names) for group, names in points.items()} == {
        f"lpact.{group}": [name] for group, name in PLUGINS.items()
    }
    modules = [value.split(":")[0].split(".")[-1] for names in points.values() for value in names.values()]
    files = sorted(p.stem for p in (PACKAGE / "src/lpact_example_plugins").glob("[!_]*.py"))
    assert sorted(modules) == files


def test_without_the_package_its_names_are_unknown(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(RUN_STUDY, encoding="utf-8")
    result = python(str(script), json.dumps(STUDY), str(tmp_path / "run"), path=tmp_path)
    assert result.returncode == 1
    assert "there is no dataset named 'tiny'" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("table", "column", "name"),
    [
        ("decisions/lpact_decision_table", "dataset", "mine"),
        ("decisions/lpact_decision_table", "model", "letters"),
        ("decisions/lpact_decision_table", "mechanism", "vowel_share"),
        ("audits/lpact_evidence_feasibility", "reader", "tiny"),
        ("audits/lpact_control_availability", "control", "time_reversal"),
        ("controls/main_table_model_inventory", "source", "spelling"),
        ("predictive/predictive_scores", "condition", "time_reversal"),
        ("predictive/predictive_control_deltas", "best_control", "time_reversal"),
        ("relational/profile_similarity_scores", "alignment", "best_column"),
        ("relational/profile_similarity_scores", "profile", "side_agreement"),
        ("relational/profile_similarity_scores", "condition", "time_reversal"),
        ("causal/causal_stripping_deltas", "method", "engaged_silencing"),
        ("causal/causal_stripping_deltas", "stripped", "vowel_share"),
        ("causal/causal_stripping_deltas", "target", "vowel_share"),
        ("ceilings/ceiling_normalized_scores", "alignment", "best_column"),
    ],
)
def test_plugins_appear_in_the_tables(run: tuple[Path, str], table: str, column: str, name: str) -> None:
    assert name in pl.read_parquet(run[0] / f"{table}.parquet")[column].to_list()


def test_plugins_give_finite_results(run: tuple[Path, str]) -> None:
    root, explanation = run
    scores = pl.read_parquet(root / "predictive/predictive_scores.parquet")
    control = scores.filter(pl.col("condition") == "time_reversal")
    # 2 subjects × 2 runs × 2 layers × 3 metrics; a fixed control has one draw.
    assert control.height == 24
    assert control["score_median"].is_finite().all()
    drops = pl.read_parquet(root / "causal/causal_stripping_deltas.parquet")
    assert drops["drop"].is_finite().all()
    relational = pl.read_parquet(root / "relational/profile_similarity_deltas.parquet")
    assert relational["delta_rel"].is_finite().all()
    assert "vowel_share" in explanation


def test_options_of_a_plugin_are_validated(installed: Path, tmp_path: Path) -> None:
    study = json.loads(json.dumps(STUDY))
    study["controls"]["options"]["time_reversal"] = {"withn": "story"}
    script = tmp_path / "study.py"
    script.write_text(RUN_STUDY, encoding="utf-8")
    result = python(str(script), json.dumps(study), str(tmp_path / "run"), path=installed)
    assert result.returncode == 1
    assert "did you mean 'within'?" in result.stderr
