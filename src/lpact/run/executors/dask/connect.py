"""A connection to a Dask cluster: one that is there, or jobs that SLURM is asked for."""

from __future__ import annotations

import os
import shutil
import tempfile
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
    options = slurm_options(settings)
    with _certificates(settings) as security:
        try:
            cluster = jobqueue.SLURMCluster(**options, security=security)
        except (OSError, ValueError, RuntimeError) as error:
            raise RunError(
                "no scheduler can be started for SLURM's jobs",
                where="table [run.slurm]",
                got=str(error),
                expected="an interface of this machine that the jobs can reach, and a folder that they share",
                remedy="`ip link` lists interfaces",
            ) from error
        with cluster:
            cluster.adapt(minimum_jobs=settings.jobs, maximum_jobs=settings.jobs)
            yield cluster


@contextmanager
def _certificates(settings: SlurmConfig) -> Iterator[Any]:
    """A key and a certificate for this run alone, in a folder that only its owner can read; removed at the end."""
    if not settings.encrypt:
        yield None
        return
    distributed = require("distributed", extra="dask")
    require("cryptography", extra="dask")
    made = distributed.Security.temporary()
    folder = tempfile.mkdtemp(prefix="tls-", dir=settings.folder)  # readable by its owner alone
    try:
        names = {}
        for name in (
            "tls_ca_file",
            *(
                f"tls_{role}_{part}"
                for role in ("scheduler", "worker", "client")
                for part in ("cert", "key")
            ),
        ):
            path = Path(folder).absolute() / f"{name}.pem"
            path.write_text(getattr(made, name))
            names[name] = os.fspath(path)
        yield distributed.Security(require_encryption=True, **names)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
    if shutil.which("sbatch") is None:
        raise RunError(
            "SLURM is not there",
            where="option 'run.cluster'",
            got="no command `sbatch` on this machine",
            expected="a machine from which jobs can be handed in",
            remedy="run this on a login node of the cluster",
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
        "scheduler_options": {"dashboard": False, "dashboard_address": "127.0.0.1:0"},
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
