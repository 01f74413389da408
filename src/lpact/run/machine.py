"""Memory, cores and free disk space of this machine, and the memory that this process uses."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")
_STATUS = Path("/proc/self/status")
_STATM = Path("/proc/self/statm")


@dataclass(frozen=True)
class Limits:
    """Bytes of memory, and bytes free where a run and where features are written; None if unknown.

    ``one_disk``: both are on the same file system. ``cores`` are those that this process may use.
    """

    memory: int | None
    out: int | None
    features: int | None
    one_disk: bool = True
    cores: int | None = None


def machine_limits(out: Path, features: Path) -> Limits:
    """The limits of this machine."""
    place, other = _existing(out), _existing(features)
    return Limits(
        memory_limit(),
        shutil.disk_usage(place).free,
        shutil.disk_usage(other).free,
        place.stat().st_dev == other.stat().st_dev,
        usable_cores(),
    )


def _existing(path: Path) -> Path:
    """The nearest existing folder above."""
    place = path.absolute()
    return next(folder for folder in (place, *place.parents) if folder.exists())


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; 0 if it does not exist."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def memory_limit(cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUP) -> int | None:
    """Memory of the machine, or of the control group of this process if that is less."""
    found = []
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in memory_limit_files(cgroups, own):
        try:
            found.append(int(file.read_text()))  # "max" without a limit
        except (OSError, ValueError):
            continue
    return min(found, default=None)


def memory_limit_files(cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUP) -> list[Path]:
    """Files that may hold limits of the control group and its parents, for versions 2 and 1 of cgroups."""
    files = [cgroups / "memory.max", cgroups / "memory" / "memory.limit_in_bytes"]
    lines = own.read_text().splitlines() if own.is_file() else []
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        for group in (Path(path), *Path(path).parents):
            inside = [part for part in group.parts if part not in ("/", "..")]
            if not controllers:
                files.append(cgroups.joinpath(*inside, "memory.max"))
            elif "memory" in controllers.split(","):
                files.append(cgroups.joinpath("memory", *inside, "memory.limit_in_bytes"))
    return files


def peak_bytes() -> int:
    """The memory peak of this process.

    ``getrusage`` would include the process that started it, so that a small worker of a large client would seem large;
    it is used only without ``/proc``.
    """
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def held_bytes() -> int:
    """The memory of this process now, or its peak if the system does not report it."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak_bytes()
