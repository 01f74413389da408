"""Jobs of SLURM: the script that is handed in, and the whole way with stand-ins for ``sbatch`` and ``scancel``.

No SLURM runs here. The stand-ins run the script in the background on this machine, and end it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from cluster_jobs import Numbers, task

import lpact
from lpact.config import RunConfig
from lpact.config.study import SlurmConfig
from lpact.errors import ConfigError, RunError
from lpact.inputs.workspace import Workspace
from lpact.run.executors.cluster import slurm_options
from lpact.run.executors.local import TaskRecord, open_executor
from lpact.store import TaskStore
from lpact.validation import validate_model

pytest.importorskip("dask_jobqueue", reason="tool missing: dask-jobqueue")

pytestmark = pytest.mark.stress

STUDY = {
    "name": "nothing",
    "datasets": [{"name": "sim", "reader": "simulated"}],
    "models": [{"name": "integrated", "layers": [1]}],
}

SBATCH = """#!/bin/sh
# Runs the script of a job in the background, in a session of its own, and says its number.
script=$(mktemp "$JOBS/script.XXXXXX")
cp "$1" "$script"
setsid sh -c 'echo $$ > "$1.pid"; exec bash "$1"' sh "$script" > "$script.out" 2>&1 < /dev/null &
while [ ! -s "$script.pid" ]; do sleep 0.02; done
echo "Submitted batch job $(cat "$script.pid")"
"""

SCANCEL = """#!/bin/sh
echo "$1" >> "$JOBS/cancelled"
kill -TERM -- "-$1" 2>/dev/null || true
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch) -> Path:
    """Stand-ins on the path; gives the folder in which they keep their jobs."""
    programs, jobs = tmp_path / "bin", tmp_path / "jobs"
    programs.mkdir()
    jobs.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("JOBS", str(jobs))
    here = f"{Path(__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    monkeypatch.setenv("PYTHONPATH", here)
    return jobs


def settings(place: Path, /, **more) -> SlurmConfig:
    given = {"interface": "lo", "folder": str(place / "shared"), "memory": "1 GiB", **more}
    return validate_model(SlurmConfig, given, where="test")


def test_the_job_script_says_what_the_study_says(slurm, tmp_path):
    asked = settings(
        tmp_path,
        cores=4,
        memory="16 GiB",
        walltime="1-12:00:00",
        queue="long",
        account="lab",
        directives=["--constraint=haswell"],
        prologue=["module load python"],
        encrypt=False,
    )
    import dask_jobqueue

    with dask_jobqueue.SLURMCluster(**slurm_options(asked)) as cluster:
        script = cluster.job_script()
        assert cluster.scheduler_address.startswith("tcp://127.0.0.1:")
    lines = script.splitlines()
    for line in (
        "#SBATCH -J lpact",
        "#SBATCH -p long",
        "#SBATCH -A lab",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --mem=16G",
        "#SBATCH -t 1-12:00:00",
        "#SBATCH --constraint=haswell",
        "module load python",
        "export OPENBLAS_NUM_THREADS=1",
        "export POLARS_MAX_THREADS=1",
    ):
        assert line in lines, script
    (command,) = [line for line in lines if "distributed.cli.dask_worker" in line]
    assert command.startswith(sys.executable)
    # As many processes as cores, one thread each.
    assert "--nthreads 1 " in command
    assert "--nworkers 4 " in command
    assert "--interface lo" in command


def test_a_network_must_be_named(slurm, tmp_path):
    with pytest.raises(ConfigError, match="option 'interface'"):
        slurm_options(settings(tmp_path, interface=""))


@pytest.mark.parametrize(
    "wrong",
    [
        {"queue": "long; rm"},
        {"memory": "plenty"},
        {"walltime": "soon"},
        {"interface": "lo --x"},
        {"folder": "$HOME/x"},
        {"cores": 0},
    ],
)
def test_settings_that_would_be_commands_are_refused(tmp_path, wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        settings(tmp_path, **wrong)


def test_jobs_run_tasks_are_renewed_and_cancelled(slurm, tmp_path):
    run = RunConfig(cluster="slurm", patience_s=60.0, slurm=settings(tmp_path))
    store = TaskStore(tmp_path / "results")
    workspace = Workspace(lpact.load_study(STUDY).config, run)
    import dask

    # Dask waits a while before it believes that a worker will not come back.
    quick = dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"})
    with quick, open_executor(workspace, store, 1) as executor:
        first = list(executor.run([task(Numbers(i, 0.15)) for i in range(5)]))
        assert executor._client.scheduler.address.startswith("tls://127.0.0.1:")
        # The job ends, as at the end of its time: another is asked for, and the tasks go on.
        ended = []
        for one in executor.run([task(Numbers(100 + i, 0.15)) for i in range(10)]):
            ended.append(one)
            if len(ended) == 2:
                (pid,) = [path.read_text().strip() for path in slurm.glob("*.pid")]
                os.killpg(int(pid), 9)
    assert all(isinstance(e, TaskRecord) for e in first + ended)
    assert len(first) == 5
    assert len(ended) == 10
    pids = {path.read_text().strip() for path in slurm.glob("*.pid")}
    assert len(pids) > 1
    # Nothing stays behind: no job, and no certificate.
    gone = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < gone:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert {path.name for path in (tmp_path / "shared").iterdir()} == {"logs"}


def test_a_machine_without_slurm_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="sbatch"):
        slurm_options(settings(tmp_path))
