"""The process that reads tables nobody vouches for: orders come in, answers go out, a line of JSON each.

A damaged table can end the process that reads it: libraries abort, panic, or ask for all the memory there is. It ends
this one, and `lpact.sealed.apart` names the file.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

MOST_ANSWER = 16 * 2**20
"""Bytes of an answer."""
READY = b"ready\n"
_THREADS = 2
_PAGES = Path("/proc/self/statm")


def serve() -> None:
    """Answer orders until there are none."""
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not be taken for an answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import pyarrow as pa

    import lpact.sealed.examine  # noqa: F401  # now, not within the limits of an order

    pa.set_cpu_count(_THREADS)
    pa.set_io_thread_count(_THREADS)
    answers.write(READY)
    answers.flush()
    for line in sys.stdin.buffer:
        answers.write(_answer(json.loads(line)) + b"\n")
        answers.flush()


def _answer(order: dict[str, Any]) -> bytes:
    from lpact.sealed.examine import examine
    from lpact.sealed.twins import UnreadableError

    limit_memory(order["n_memory"])
    try:
        found = asdict(examine(order))
    except UnreadableError as error:
        found = {"failed": f"{error.what}: {error.got}" if error.got else error.what}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        text = (str(error).splitlines() or [""])[0][:200]
        found = {"failed": f"{type(error).__name__}: {text}"}
    found["n_peak"] = peak_memory()
    answer = json.dumps(found, ensure_ascii=True, default=str).encode()
    if len(answer) > MOST_ANSWER:
        n_problems = len(found.get("problems", ()))
        answer = json.dumps({"failed": f"{n_problems} differences, too long to list"}).encode()
    return answer


def limit_memory(n_bytes: int) -> None:
    """Let this process take so many bytes more than it has now, where the system can see to that."""
    with suppress(ImportError, OSError, ValueError, AttributeError):
        import resource

        taken = int(_PAGES.read_text().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = taken + n_bytes
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def peak_memory() -> int:
    """Bytes of memory that this process has had at most."""
    with suppress(ImportError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(peak) * (1 if sys.platform == "darwin" else 1024)
    return 0
