"""A connection to a Dask cluster: one that is there, or jobs that SLURM is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lpact.config import RunConfig
from lpact.config.study import SlurmConfig
from lpact.errors import ConfigError, RunError
from lpact.extras import require
from lpact.run.executors.threads import VARIABLES

SLURM = "slurm"
CONNECT_S = 30.0

_QUIET = {
    # A task carries what it needs where no file system is shared.
    "distributed.admin.large-graph-warning-threshold": "1TB",
}


@contextmanager
def open_client(settings: RunConfig) -> Iterator[Any]:
    """A Dask client of the cluster that the run's settings name; what was started for it ends with it."""
    dask = require("dask", extra="dask")
    distributed = require("distributed", extra="dask")
    with dask.config.set(_QUIET):
        if settings.cluster == SLURM:
            with open_slurm(settings.slurm) as cluster, _connect(distributed, cluster) as client:
                yield client
        else:
            with _connect(distributed, settings.cluster) as client:
                yield client


@contextmanager
def open_slurm(settings: SlurmConfig) -> Iterator[Any]:
    """A scheduler in this process, and jobs with workers; jobs that end are asked for again until it is left."""
    jobqueue = require("dask_jobqueue", extra="dask")
    try:
        cluster = jobqueue.SLURMCluster(**slurm_options(settings))
    except (OSError, ValueError, ImportError) as error:
        raise RunError(
            "no scheduler can be started for SLURM's jobs",
            where="table [run.slurm]",
            got=str(error),
            expected="an interface of this machine that the jobs can reach, and a folder that they share",
            remedy="`ip link` lists interfaces; with 'encrypt', the package cryptography is needed",
        ) from error
    with cluster:
        cluster.adapt(minimum_jobs=settings.jobs, maximum_jobs=settings.jobs)
        yield cluster


def slurm_options(settings: SlurmConfig) -> dict[str, Any]:
    """What `dask_jobqueue.SLURMCluster` is called with."""
    if not settings.interface:
        raise ConfigError(
            "jobs must be able to reach this machine, and no network is named for that",
            where="option 'run.slurm.interface'",
            got="nothing",
            expected='the name of a network interface, such as "ib0"',
            remedy="`ip link` lists them; the cluster's own network is the right one",
        )
    folder = Path(settings.folder).absolute()
    for name in (folder, folder / "logs"):
        name.mkdir(mode=0o700, parents=True, exist_ok=True)
    exports = [f"export {name}={value}" for name, value in VARIABLES.items()]
    return {
        "cores": settings.cores,
        "processes": settings.cores,
        "memory": settings.memory,
        "walltime": settings.walltime,
        "queue": settings.queue or None,
        "account": settings.account or None,
        "interface": settings.interface,
        "job_extra_directives": list(settings.directives),
        "job_script_prologue": [*exports, *settings.prologue],
        "log_directory": os.fspath(folder / "logs"),
        "job_name": "lpact",
        "security": True if settings.encrypt else None,
        "shared_temp_directory": os.fspath(folder),
        "scheduler_options": {"dashboard": False, "dashboard_address": None},
    }


@contextmanager
def _connect(distributed: Any, place: Any) -> Iterator[Any]:
    try:
        client = distributed.Client(place, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise RunError(
            "the cluster cannot be reached",
            where=place if isinstance(place, str) else "SLURM",
            got=str(error) or type(error).__name__,
            expected="a Dask scheduler at this address, tcp://host:port or tls://host:port",
            remedy="start one with `dask scheduler`; tls:// needs certificates in Dask's own configuration",
        ) from error
    with client:
        yield client
