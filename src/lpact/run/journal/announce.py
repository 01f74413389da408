"""A run that still audits its sources: locked and shown by `lpact status`, with nothing computed yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lpact.config import StudyConfig
from lpact.errors import RunError
from lpact.run.journal.journal import Journal
from lpact.run.journal.progress import Silent
from lpact.run.journal.status import STATUS_NAME, read_status
from lpact.store import FolderLock, atomic_write_bytes, partial_folder, refuse_foreign
from lpact.store._lock import LOCK_NAME


@contextmanager
def announced(out: str | Path, config: StudyConfig, workers: int) -> Iterator[Journal]:
    """Lock the working folder of ``out`` and keep its status there; an error leaves the folder as it was.

    The block reports to the journal. When it ends well, the status stays for the run that follows, which takes the
    lock and starts its own log.
    """
    partial = partial_folder(Path(out).absolute())
    refuse_foreign(partial)
    made = [folder for folder in (partial, *partial.parents) if not folder.exists()]
    was_locked = (partial / LOCK_NAME).exists()
    lock = FolderLock(partial)
    try:
        status = partial / STATUS_NAME
        before = status.read_bytes() if status.is_file() else None
        said = read_status(partial)
        journal = Journal(
            partial,
            Silent(),
            study=config.name,
            config_digest=config.digest(),
            workers=workers,
            expected=None if said is None else said.expected,
            logged=False,
        )
        try:
            yield journal
        except BaseException:
            journal.leave()
            _put_back(status, before)
            lock.release(remove=not was_locked)
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()
            raise
        journal.leave()
    finally:
        lock.release()


def _put_back(status: Path, before: bytes | None) -> None:
    with suppress(OSError, RunError):
        if before is None:
            status.unlink(missing_ok=True)
        else:
            atomic_write_bytes(status, before)
