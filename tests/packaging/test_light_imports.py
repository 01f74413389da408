"""``import lpact`` and ``lpact --help`` import nothing heavy; a run imports what it uses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lpact.datasets.base import DATASETS

HEAVY = {"numpy", "polars", "pyarrow", "scipy", "pydantic", "pandas", "sklearn", "torch", "rich"}

LIST_IMPORTED = """
import sys
try:
    {code}
except SystemExit as end:
    assert not end.code, end.code
print(*sorted({{name.split(".")[0] for name in sys.modules}}), file=sys.stderr)
"""


def imported_by(code: str) -> set[str]:
    """Top-level packages in ``sys.modules`` after ``code`` has run in a new interpreter."""
    result = subprocess.run(
        [sys.executable, "-c", LIST_IMPORTED.format(code=code)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(result.stderr.split())


@pytest.mark.parametrize(
    "code",
    [
        "import lpact",
        "import lpact; lpact.__version__",
        "sys.argv = ['lpact', '--help']; from lpact.cli import main; main()",
        "sys.argv = ['lpact', '--version']; from lpact.cli import main; main()",
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    imported = imported_by(code)
    assert "lpact" in imported
    assert imported & HEAVY == set()


def test_help_of_a_command_is_nearly_as_light() -> None:
    # Typer checks ranges of numbers with pydantic.
    code = "sys.argv = ['lpact', 'run', '--help']; from lpact.cli import main; main()"
    assert imported_by(code) & HEAVY <= {"pydantic"}


def test_heavy_imports_would_be_seen() -> None:
    assert {"numpy", "polars", "pydantic"} <= imported_by("import lpact; lpact.load_study")


RUN = """
import json, sys
import lpact
study = {
    "name": "light",
    "datasets": [
        {
            "name": "sim",
            "reader": "simulated",
            "grid": {"lags_ms": [100.0]},
            "options": {"n_subjects": 1, "n_runs": 1, "n_stories": 3, "n_units": 8},
        }
    ],
    "models": [{"name": "integrated", "layers": [2]}],
    "readout": {"folds": 3, "min_train_events": 30},
    "controls": {"include": ["random_matched_dim"], "draws": 1},
    "lpact": {"stripping": {"mismatch_draws": 1}, "assay": {"enabled": False}},
}
loaded = lpact.load_study(study)
run = loaded.run(sys.argv[1], workers=1, progress=False, plan=loaded.plan())
if len(sys.argv) > 2:
    lpact.open_run(run.root).lock()
print(json.dumps([name for name in sys.modules]))
"""


def modules_of_a_run(*arguments: str) -> set[str]:
    """Modules that were loaded when a run of a simulated study is finished, without a report."""
    command = [sys.executable, "-c", RUN, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.slow
def test_a_run_imports_the_reader_that_it_uses_and_nothing_that_shows_or_archives(
    tmp_path: Path,
) -> None:
    modules = modules_of_a_run(str(tmp_path / "run"))
    rooms = [name.split(".")[1:] for name in modules if name.startswith("lpact.")]
    readers = {room[1] for room in rooms if room[0] == "datasets" and len(room) > 1}
    assert readers & set(DATASETS.names()) == {"simulated"}
    assert {"run", "store", "math"} <= {room[0] for room in rooms}
    assert {"report", "web", "archive", "cli"}.isdisjoint(room[0] for room in rooms)
    figures = [room for room in rooms if "figures" in room]
    assert figures == []
    heavy = {"pandas", "sklearn", "torch", "mne", "nibabel", "altair", "jinja2", "distributed"}
    assert heavy.isdisjoint(name.split(".")[0] for name in modules)


@pytest.mark.slow
def test_modules_of_an_archive_would_be_seen(tmp_path: Path) -> None:
    modules = modules_of_a_run(str(tmp_path / "run"), "lock")
    assert any(name.startswith("lpact.archive") for name in modules)
