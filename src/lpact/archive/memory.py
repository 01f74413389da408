"""How much memory can be had here, and how much a process has."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
_USED = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}
"""The file that says what a group uses, beside the one that says what it may."""
_GIVEN_BACK = ("inactive_file", "active_file")
"""Memory of a group that only keeps files at hand, and is given back when somebody needs it."""
_OWN = ("RssAnon", "RssShmem", "VmSwap")
"""Memory of a process, without files that are at hand anyway."""


def free_memory(
    meminfo: Path = MEMINFO, cgroups: Path = CGROUPS, own: Path = OWN_CGROUP
) -> int | None:
    """Bytes of memory that can be had, by the machine and by the control groups of this process.

    None where nobody can tell.
    """
    from lpact.run.machine import memory_limit_files

    found = [_free_in(file) for file in memory_limit_files(cgroups, own)]
    with suppress(OSError, ValueError, IndexError):
        text = meminfo.read_text()
        found.append(int(text.partition("MemAvailable:")[2].split()[0]) * 1024)
    known = [n_bytes for n_bytes in found if n_bytes is not None]
    if not known:
        with suppress(OSError, ValueError, AttributeError):
            known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    return max(0, min(known)) if known else None


def _free_in(limit: Path) -> int | None:
    """What the group of this file may use more; None where it has no limit, or does not tell what it uses."""
    try:
        most = int(limit.read_text())  # "max" where there is no limit
        used = int(limit.with_name(_USED[limit.name]).read_text())
    except (OSError, ValueError):
        return None
    with suppress(OSError, ValueError):
        lines = limit.with_name("memory.stat").read_text().splitlines()
        stat = {name: int(value) for name, _, value in (line.partition(" ") for line in lines)}
        # The older layout tells of the group alone and, as "total", of those below it too.
        used -= sum(stat.get(f"total_{name}", stat.get(name, 0)) for name in _GIVEN_BACK)
    return most - max(0, used)


def memory_of(pid: int) -> int | None:
    """Bytes of memory that a process has to itself, swapped out or not; None where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        values = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
        names = _OWN if "RssAnon" in values else ("VmRSS", "VmSwap")
        return 1024 * sum(int(values[name][0]) for name in names if name in values)
    except (OSError, ValueError, IndexError):
        return None
