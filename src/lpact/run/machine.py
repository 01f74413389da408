"""Limits of the machine: memory that processes may use together, and free disk space."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class Limits:
    """Bytes of memory, and bytes free where a run and where features are written; None if unknown.

    ``one_disk`` says that both are on the same file system and share what is free. ``cores`` are those that processes
    may use.
    """

    memory: int | None
    out: int | None
    features: int | None
    one_disk: bool = True
    cores: int | None = None


def machine_limits(out: Path, features: Path) -> Limits:
    """What there is on this machine."""
    place, other = _existing(out), _existing(features)
    return Limits(
        memory_limit(),
        shutil.disk_usage(place).free,
        shutil.disk_usage(other).free,
        place.stat().st_dev == other.stat().st_dev,
        usable_cores(),
    )


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; 0 where there is none."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def memory_limit(
    meminfo: Path = _MEMINFO, cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUP
) -> int | None:
    """Memory of the machine, or what the control group of this process may use where that is less."""
    found = [*_cgroup_limits(cgroups, own)]
    total = _total(meminfo)
    if total is not None:
        found.append(total)
    return min(found) if found else None


def _total(meminfo: Path) -> int | None:
    try:
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _cgroup_limits(cgroups: Path, own: Path) -> list[int]:
    files = memory_limit_files(cgroups, own)
    return [limit for file in files if (limit := _read_limit(file)) is not None]


def memory_limit_files(cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUP) -> list[Path]:
    """Files that may hold limits of the group and of those above it, in the newer layout and in the older one."""
    try:
        entries = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        entries = []
    folders = [cgroups / "memory.max", cgroups / "memory" / "memory.limit_in_bytes"]
    for _, controllers, path in (entry for entry in entries if len(entry) == len("0:1")):
        parts = [part for part in path.split("/") if part and part != ".."]
        for depth in range(1, len(parts) + 1):
            inside = Path(*parts[:depth])
            if not controllers:
                folders.append(cgroups / inside / "memory.max")
            elif "memory" in controllers.split(","):
                folders.append(cgroups / "memory" / inside / "memory.limit_in_bytes")
    return folders


def _read_limit(file: Path) -> int | None:
    try:
        return int(file.read_text())  # "max" where there is no limit
    except (OSError, ValueError):
        return None


def _existing(path: Path) -> Path:
    """The nearest existing folder above."""
    place = path.absolute()
    while not place.exists():
        place = place.parent
    return place
