"""What the numbers were measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import sys
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "himalaya",
    "torch",
    "transformers",
    "zarr",
    "rsatoolbox",
)


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that are there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {"python": platform.python_version(), "lpact": project["version"]}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@cache
def machine() -> str:
    """Processor, number of cores, memory and BLAS, in words."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{_processor()}, {os.cpu_count()} cores, {pages / 2**30:.0f} GiB, "
        f"{platform.system()} {platform.machine()}, {_blas()}"
    )


def threads() -> int:
    """The most threads that a loaded BLAS or OpenMP would use."""
    from threadpoolctl import threadpool_info

    return max((int(pool["num_threads"]) for pool in threadpool_info()), default=1)


def peak_bytes() -> int:
    """The most memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def _blas() -> str:
    from threadpoolctl import threadpool_info

    named = {
        f"{pool['internal_api']} {pool.get('version')} {pool.get('architecture', '')}".strip()
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return " and ".join(sorted(named)) or "unknown BLAS"
