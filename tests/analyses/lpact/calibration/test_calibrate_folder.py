"""Where a calibration may be written, what its kept studies are kept under, and what it refuses to simulate."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import lpact
from lpact.analyses.lpact.calibration.output import check_folder
from lpact.analyses.lpact.calibration.run_trials import CODE, Settings, TrialJob, numbers_digest
from lpact.analyses.lpact.calibration.trial import Cell, Effort
from lpact.errors import ConfigError, RunError


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.touch()
        else:
            path.mkdir()
    return folder


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("kept/",),
        ("kept/lock", "kept/0123456789abcdef0123456789abcdef/index"),
        ("calibration.json", "pace.json", "calibration/trials.parquet", "report/power.svg"),
        ("kept/lock", "calibration/rates.csv", "calibration/.0123456789abcdef0123456789abcdef.tmp"),
    ],
)
def test_a_new_or_empty_folder_or_a_calibration_is_taken(tmp_path, names):
    check_folder(tmp_path / "new")
    check_folder(fill(tmp_path, *names))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("manifest.json", "decisions/x.csv"), "not from a calibration.*manifest.json"),
        (("notes.txt",), "not from a calibration.*notes.txt"),
        (("calibration/rates.csv",), "not from a calibration"),
        (("kept",), "not from a calibration.*kept"),
    ],
)
def test_a_folder_of_something_else_is_refused(tmp_path, names, told):
    with pytest.raises(RunError, match=f"(?s){told}"):
        check_folder(fill(tmp_path, *names))


def test_a_file_is_refused(tmp_path):
    with pytest.raises(RunError, match="cannot be read"):
        check_folder(fill(tmp_path, "notes.txt") / "notes.txt")


def covered(name: str) -> bool:
    """Whether a file of the package enters the digest of a trial's numbers."""
    return any(name == part or name.startswith(f"{part}/") for part in CODE)


def test_the_digest_covers_all_that_a_trial_imports():
    module = "lpact.analyses.lpact.calibration.trial"
    code = f"import sys, {module}; print(*(m.__file__ for n, m in sys.modules.items() if n[:6] == 'lpact.'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    package = Path(lpact.__file__).parent
    loaded = {Path(file).relative_to(package).as_posix() for file in run.stdout.split()}
    missing = {name for name in loaded if not covered(name) and not name.endswith("__init__.py")}
    # How tasks are shared out and shown changes no number.
    assert {name.split("/")[0] for name in missing} <= {"run"}
    assert len(loaded) > 100


def test_the_digest_leaves_out_what_no_trial_goes_through():
    own = "analyses/lpact"
    for name in (
        "claim_audit/check.py",
        f"{own}/claims.py",
        f"{own}/robustness/cost.py",
        "report/write.py",
    ):
        assert not covered(name)
    for name in (f"{own}/gates/decision.py", f"{own}/levels/predictive.py", "datasets/base.py"):
        assert covered(name)
        assert (Path(lpact.__file__).parent / name).is_file()


def test_kept_studies_are_those_of_the_code_and_the_libraries():
    key = TrialJob(Cell("drift", "drift"), 3, Effort()).key
    for told in (
        f"code={numbers_digest()}",
        f"numpy={version('numpy')}",
        f"scipy={version('scipy')}",
        f"polars={version('polars')}",
        "trial=3 ",
    ):
        assert told in key


@pytest.mark.parametrize(
    ("axes", "option"),
    [
        ({"noise_autocorrelation": (0.5, 1.0)}, "--autocorrelation"),
        ({"noise_autocorrelation": (-0.1,)}, "--autocorrelation"),
        ({"snr": (1.0, float("inf"))}, "--snr"),
        ({"snr": (float("nan"),)}, "--snr"),
        ({"snr": (-1.0,)}, "--snr"),
        ({"n_units": (12, 2)}, "--units"),
        ({"n_subjects": (0,)}, "--subjects"),
        ({"n_events": (0,)}, "--events"),
        ({"n_trials": 0}, "--trials"),
    ],
)
def test_a_bad_value_is_found_at_once_and_its_option_named(axes, option):
    with pytest.raises(ConfigError) as caught:
        Settings(**axes)
    assert caught.value.where == f"option '{option}'"
    assert "study file" not in str(caught.value)


def test_an_effort_that_cannot_be_spent_is_not_blamed_on_an_option():
    with pytest.raises(ConfigError) as caught:
        Settings(effort=Effort(folds=0))
    assert "option '--" not in str(caught.value)
    assert "folds" in str(caught.value)
