"""The process that reads tables nobody vouches for: orders come in, answers go out, a line of JSON each.

A damaged table can end the process that reads it: libraries abort, panic, or ask for all the memory there is. It ends
this one, and `lpact.archive.apart` names the file and says whether it was for want of memory.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

MOST_ANSWER = 16 * 2**20
"""Bytes of an answer."""
READY = b"ready\n"
_THREADS = 2
_LIKELY = Path("/proc/self/oom_score_adj")


def serve() -> None:
    """Answer orders until there are none."""
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not be taken for an answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _leave_nothing()
    _go_first()
    _warm_up()
    _stand_nowhere()
    answers.write(READY)
    answers.flush()
    for line in sys.stdin.buffer:
        answers.write(_answer(json.loads(line)) + b"\n")
        answers.flush()


def _answer(order: dict[str, Any]) -> bytes:
    from lpact.archive.examine import examine
    from lpact.archive.twins import UnreadableError

    try:
        found = asdict(examine(order))
    except MemoryError as error:
        found = {"short": _first_line(error) or "no more is given"}
    except UnreadableError as error:
        found = {"failed": f"{error.what}: {error.got}" if error.got else error.what}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        found = {"failed": f"{type(error).__name__}: {_first_line(error)}"}
    found["n_peak"] = peak_memory()
    answer = json.dumps(found, ensure_ascii=True, default=str).encode()
    if len(answer) > MOST_ANSWER:
        n_problems = len(found.get("problems", ()))
        answer = json.dumps({"failed": f"{n_problems} differences, too long to list"}).encode()
    return answer


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]


def _leave_nothing() -> None:
    """No image of the memory on the disk, where this process is ended by what it reads."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _go_first() -> None:
    """Where memory runs out, the system ends this process and no other."""
    with suppress(OSError):
        _LIKELY.write_text("1000")


def _warm_up() -> None:
    """Import what orders need and read a table of one cell: threads are started then, and memory is taken for them."""
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    import lpact.archive.examine  # noqa: F401

    pa.set_cpu_count(_THREADS)
    pa.set_io_thread_count(_THREADS)
    handle = io.BytesIO()
    pq.write_table(pa.table({"a": ["b"]}), handle, compression="zstd")
    pl.from_arrow(pq.ParquetFile(handle).read())
    pl.read_csv(b"a\nb\n").write_csv(io.BytesIO())


def _stand_nowhere() -> None:
    """Leave the folder one stands in, which may be the run: for an empty one, in which nothing can be written."""
    with suppress(OSError):
        folder = tempfile.mkdtemp(prefix="lpact-apart-")
        os.chdir(folder)
        os.rmdir(folder)


def peak_memory() -> int:
    """Bytes of memory that this process has had at most."""
    with suppress(ImportError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(peak) * (1 if sys.platform == "darwin" else 1024)
    return 0
