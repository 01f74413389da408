"""The machine that commands run on, and how lpact is called there."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

MOST_WORKERS = 4
"""Processes that a command takes by itself, at most."""


def n_cores() -> int:
    """Cores that this process may use."""
    from lpact.run.machine import usable_cores

    return usable_cores()


def program() -> str:
    """What a user types to call lpact: its name, or its path where the name is not found or is another one."""
    called = Path(sys.argv[0])
    found = shutil.which("lpact")
    if called.name != "lpact" or not called.exists() or (found and called.samefile(found)):
        return "lpact"
    return shlex.quote(sys.argv[0])
