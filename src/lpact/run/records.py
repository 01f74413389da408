"""What is known of a task when it has ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TaskRecord:
    """A finished task.

    ``task`` is its name among all tasks of the study, ``key`` the hash of all that its result depends on. ``seconds``
    is time of computing, ``peak_bytes`` the most memory that its process has held so far, ``n_bytes`` the size of the
    result on disk; ``worker`` names the process.
    """

    task: str
    key: str
    seconds: float
    peak_bytes: int
    n_bytes: int
    worker: str


@dataclass(frozen=True)
class TaskFailure:
    """A task that ended with an error: ``what`` is the message for people, ``trace`` the traceback."""

    task: str
    key: str
    what: str
    trace: str
    worker: str
