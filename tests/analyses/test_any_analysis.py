"""An analysis of another package, in under 150 lines, gets all of the engine: each test shows one part of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "run"))
from dask_here import DaskHere

pytestmark = [pytest.mark.slow, pytest.mark.stress]

PACKAGE = Path(__file__).parents[1] / "plugin_package"
SOURCE = PACKAGE / "src" / "lpact_example_plugins" / "steady.py"

STUDY = """
name = "steady"
seed = 3

[[datasets]]
name = "sim"
reader = "simulated"
grid.lags_ms = [100.0]
options = { n_subjects = 3, n_runs = 1, n_stories = 3, sentences_per_story = 6, n_units = 8 }

[readout]
folds = 3
min_train_events = 20

[steady]
min_correlation = 0.2
"""
BOTH = (
    STUDY
    + """
[[models]]
name = "integrated"
layers = [2]

[controls]
include = ["random_matched_dim", "random_matched_autocorr", "circular_shift"]
draws = 2

[mechanisms]
include = ["surprisal", "context_update"]

[lpact.relational]
alignments = ["cka"]
profiles = ["pearson"]
permutations = 19

[lpact.stripping]
methods = ["feature_zeroing"]
mismatch_draws = 1

[lpact.assay]
enabled = false
"""
)

Lpact = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which pip has installed the package."""
    target = tmp_path_factory.mktemp("site")
    options = "--quiet --no-index --no-deps --no-build-isolation --disable-pip-version-check"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options.split(), "--target", target, PACKAGE],
        check=True,
    )
    path = os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "160"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("study")
    (made / "study.toml").write_text(STUDY, encoding="utf-8")
    (made / "both.toml").write_text(BOTH, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def lpact(environment: dict[str, str], folder: Path) -> Lpact:
    """``lpact("plan", "study.toml")`` runs the command in the study's folder."""

    def run(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "lpact", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def run(lpact: Lpact, folder: Path) -> Path:
    """A finished run of the study, with its report."""
    lpact("run", "study.toml", "--out", "run", "--workers", "2")
    return folder / "run"


def read(run: Path, table: str) -> pl.DataFrame:
    return pl.read_parquet(run / f"{table}.parquet")


def test_it_is_short() -> None:
    assert len(SOURCE.read_text(encoding="utf-8").splitlines()) < 150


def test_it_is_listed(lpact: Lpact) -> None:
    assert "steady" in lpact("list", "analyses").stdout


def test_it_is_planned(lpact: Lpact) -> None:
    said = lpact("plan", "study.toml").stdout
    assert "halves" in said
    assert "steady/claims" in said
    assert "1 claim" in said


def test_it_runs_and_decides(run: Path) -> None:
    halves, claims = read(run, "steady/halves"), read(run, "steady/claims")
    assert halves.height == 3
    assert claims["correlation"][0] == pytest.approx(halves["correlation"].mean())
    assert claims["label"][0] == ("steady" if claims["correlation"][0] >= 0.2 else "drifting")


def test_what_cannot_be_computed_is_a_row_with_a_reason(lpact: Lpact, folder: Path) -> None:
    one = STUDY.replace("n_units = 8", "n_units = 1, n_regions = 1, n_mechanism_units = 1")
    (folder / "one.toml").write_text(one, encoding="utf-8")
    lpact("run", "one.toml", "--out", "one")
    halves, claims = read(folder / "one", "steady/halves"), read(folder / "one", "steady/claims")
    assert halves["correlation"].to_list() == [None] * 3
    assert halves["reason"].unique().to_list() == ["same_mean_in_all_units"]
    assert claims["label"].to_list() == ["unknown"]
    assert claims["reason"][0] in " ".join(lpact("explain", "one", "sim").stdout.split())
    lpact("lock", "one")
    lpact("verify", "one")


def test_its_own_verb_answers_that_question_alone(lpact: Lpact, folder: Path, run: Path) -> None:
    lpact("steady", "both.toml", "--out", "alone", "--no-report")
    assert not (folder / "alone" / "decisions").exists()
    assert read(folder / "alone", "steady/halves").equals(read(run, "steady/halves"))


def test_one_study_asks_two_questions(lpact: Lpact, folder: Path, run: Path) -> None:
    said = lpact("run", "both.toml", "--out", "both", "--no-report").stdout
    assert read(folder / "both", "steady/claims").equals(read(run, "steady/claims"))
    assert read(folder / "both", "decisions/lpact_decision_table").height > 0
    assert "steady: halves" in lpact("status", "both").stdout
    assert "datasets are steady" in said
    assert "lpact" in said


def test_other_thresholds_compute_nothing_again(lpact: Lpact, folder: Path) -> None:
    study = STUDY + '\n[run]\ntasks = "results"\n'
    (folder / "kept.toml").write_text(study, encoding="utf-8")
    lpact("run", "kept.toml", "--out", "kept", "--no-report")
    before = {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*.*")}
    strict = study.replace("min_correlation = 0.2", "min_correlation = 0.999")
    (folder / "strict.toml").write_text(strict, encoding="utf-8")
    lpact("run", "strict.toml", "--out", "strict", "--no-report")
    assert read(folder / "strict", "steady/claims")["label"].to_list() == ["drifting"]
    after = {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*.*")}
    results = {path for path in before if not path.name.startswith("sources-")}
    assert results
    assert {path: after[path] for path in results} == {path: before[path] for path in results}


def test_a_killed_run_resumes_to_the_same_bytes(
    environment: dict[str, str], lpact: Lpact, folder: Path, run: Path
) -> None:
    command = [sys.executable, "-m", "lpact", "run", "study.toml", "--out", "killed", "--no-report"]
    victim = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    tasks = folder / "killed.partial" / "tasks"
    deadline = time.monotonic() + 120
    while not any(tasks.rglob("*")) and victim.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    assert victim.poll() is None, "it must be killed before it ends"
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert not (folder / "killed").exists()
    lpact("run", "study.toml", "--out", "killed", "--no-report")
    for name in ("steady/halves", "steady/claims"):
        own, other = (folder / f"{where}/{name}.parquet" for where in ("killed", "run"))
        assert own.read_bytes() == other.read_bytes()


def test_a_cluster_gives_the_same_bytes(environment: dict[str, str], lpact: Lpact, folder: Path, run: Path) -> None:
    with DaskHere(folder / "dask") as cluster:
        for name in ("first", "second"):
            cluster.worker(name, env={"PYTHONPATH": environment["PYTHONPATH"]})
        lpact("run", "study.toml", "--out", "far", "--no-report", "--cluster", cluster.address)
    for name in ("steady/halves", "steady/claims"):
        own, other = (folder / f"{where}/{name}.parquet" for where in ("far", "run"))
        assert own.read_bytes() == other.read_bytes()


def test_status_knows_its_stages(lpact: Lpact, run: Path) -> None:
    assert "halves" in lpact("status", "run").stdout


def test_a_claim_is_explained(lpact: Lpact, run: Path) -> None:
    claim = read(run, "steady/claims").row(0, named=True)
    assert claim["label"] in lpact("explain", "run").stdout
    said = " ".join(lpact("explain", "run", "sim").stdout.split())
    assert claim["reason"] in said
    assert "mean_correlation" in said or "mean correlation" in said


def test_the_report_shows_conclusion_claim_and_figure(run: Path) -> None:
    page = (run / "report" / "report.html").read_text(encoding="utf-8")
    assert "datasets are steady" in page
    assert read(run, "steady/claims")["reason"][0] in page
    assert "Agreement of both halves" in page
    assert (run / "report" / "figures" / "halves.svg").is_file()
    assert "Mean responses in both halves" in (run / "report" / "methods.md").read_text()


def test_it_is_locked_verified_exported_and_tampering_is_found(lpact: Lpact, folder: Path, run: Path) -> None:
    lpact("lock", "run")
    lpact("verify", "run")
    lpact("export", "run", "run.zip")
    lpact("verify", "run.zip", "--no-report")
    lpact("run", "study.toml", "--out", "edited", "--no-report")
    lpact("lock", "edited")
    table = folder / "edited" / "steady" / "halves.csv"
    table.write_text(table.read_text().replace("0.", "1.", 1))
    said = lpact("verify", "edited", status=1)
    assert "steady/halves" in said.stdout + said.stderr


def test_two_runs_are_compared(lpact: Lpact, folder: Path, run: Path) -> None:
    strict = STUDY.replace("min_correlation = 0.2", "min_correlation = 0.999")
    (folder / "stricter.toml").write_text(strict, encoding="utf-8")
    lpact("run", "stricter.toml", "--out", "stricter", "--no-report")
    said = lpact("diff", "run", "stricter", status=1).stdout
    assert "min_correlation" in said
    assert "drifting" in said


def test_it_is_preregistered(lpact: Lpact, folder: Path) -> None:
    lpact("preregister", "study.toml", "--out", "plan.json")
    assert "sim" in json.dumps(json.loads((folder / "plan.json").read_text()))
    lpact("run", "study.toml", "--out", "registered", "--no-report", "--preregistration", "plan.json")
    items = read(folder / "registered", "audits/preregistration_items")
    assert items.height > 5
    assert items["followed"].all(), items.filter(~pl.col("followed"))


EXPLORE = """
import sys
from starlette.testclient import TestClient
from lpact.web import create_app

client = TestClient(create_app([sys.argv[1]]), base_url="http://127.0.0.1")
pages = [client.get("/"), client.get("/decisions"), client.get(sys.argv[2])]
assert all(page.status_code == 200 for page in pages), [page.text[:300] for page in pages]
print("".join(page.text for page in pages))
"""

NOTEBOOK = """
import sys
import lpact

run = lpact.open_run(sys.argv[1])
claim = run.claim("sim")
for shown in (run, claim, claim.explain(), lpact.load_study("study.toml")):
    assert "<" in shown._repr_html_()
print(claim.label, claim.gates[0].passed, run.conclusion().headline, run.figure("halves").to_json()[:9])
"""


@pytest.mark.parametrize("script", [EXPLORE, NOTEBOOK], ids=["explorer", "notebook"])
def test_explorer_and_notebook_show_it(script: str, environment: dict[str, str], folder: Path, run: Path) -> None:
    arguments = [str(run), "/claim?run_slug=run&analysis=steady&dataset=sim"]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert read(run, "steady/claims")["label"][0] in done.stdout
    assert "steady" in done.stdout
