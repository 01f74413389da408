"""Log and status of a run: ``log.jsonl`` and ``status.json`` in its working folder.

The log has one JSON object per line, appended by every attempt and written in one call, so that it survives the
process. Readers skip a line that a kill or a full disk cut short; the next one starts on a new line.
"""

from __future__ import annotations

import json
import math
import os
import platform
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from lpact.config import StudyConfig
from lpact.errors import RunError
from lpact.run.executors.local import TaskFailure, TaskRecord
from lpact.run.machine import peak_bytes
from lpact.run.progress import Estimate, Reporter, RunProgress, StageProgress
from lpact.run.status import ALWAYS_LOGGED, LOG_NAME, STATUS_FORMAT, STATUS_NAME, process_namespace, read_status
from lpact.store import FolderLock, atomic_write_bytes, partial_folder, refuse_foreign
from lpact.store.disk import LOCK_NAME
from lpact.store.manifest import library_versions, lpact_version

Outcome = Literal["finished", "failed", "interrupted"]

SECONDS_BETWEEN_STATUS = 1.0
MOST_FAILURES = 20
LONGEST_MESSAGE = 2_000
LONGEST_TRACE = 50_000


def utc_now() -> str:
    """The time as log and status write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class LogFile:
    """Appends events to a log. A full disk costs lines, never the run: ``say`` is called with the first error."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        self._handle: int | None = None
        self._torn = self._lost = False

    def write(self, event: str, stage: str, fields: Mapping[str, object]) -> None:
        """Append one event, in one call."""
        values: dict[str, object] = {"time": utc_now(), "event": event, "stage": stage}
        for name, value in fields.items():
            values[f"given_{name}" if name in ALWAYS_LOGGED else name] = _plain(value)
        try:
            if self._handle is None:
                self._handle = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
                size = os.fstat(self._handle).st_size
                self._torn = size > 0 and os.pread(self._handle, 1, size - 1) != b"\n"
            content = b"\n" * self._torn + json.dumps(values).encode() + b"\n"
            self._torn = os.write(self._handle, content) < len(content)
            problem = "a line was cut short" if self._torn else ""
        except OSError as error:
            problem = error.strerror or str(error)
        if problem and not self._lost:
            self._lost = True
            self._say(
                f"the log {self._path} cannot be written ({problem}): the run continues, and lines of its log are lost"
            )

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _plain(value: object) -> object:
    """A value as JSON has it; other values as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


@contextmanager
def logged_stage(path: Path, stage: str) -> Iterator[None]:
    """Log a stage that is added to a finished run, if the run has a log."""
    if not path.is_file():
        yield
        return
    log, began = LogFile(path, lambda _: None), time.perf_counter()
    log.write("stage_started", stage, {"total": 1})
    try:
        yield
        seconds = round(time.perf_counter() - began, 3)
        counts = {"total": 1, "done": 1, "seconds": seconds, "own_peak_bytes": peak_bytes()}
        log.write("stage_finished", stage, counts)
    finally:
        log.close()


class Journal(Reporter):
    """Log, status and progress of one attempt at a run.

    ``folder`` is the working folder, which this process has locked. ``expected`` holds the seconds of each stage, if a
    plan knows them; else those of an earlier attempt are used. A second thread writes the status every second; `close`
    and `leave` end it. An error of the log or the status never ends a run. With ``logged=False`` there is no log.
    """

    def __init__(
        self,
        folder: Path,
        reporter: Reporter,
        *,
        study: str,
        config_digest: str,
        workers: int,
        expected: Mapping[str, float] | None = None,
        cluster: str = "",
        logged: bool = True,
    ) -> None:
        self._folder = folder
        self._reporter = reporter
        self._log = LogFile(folder / LOG_NAME, self.say) if logged else None
        before = read_status(folder)
        self._progress = RunProgress(expected or (before.expected if before else {}))
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._outcome: Outcome | None = None
        self._failures: list[dict[str, str]] = []
        self._n_failed = self._n_results = 0
        self._worker_peaks: dict[str, int] = {}
        self._own_peaks: dict[str, int] = {}
        self._status_lost = False
        self._about: dict[str, Any] = {
            "format": STATUS_FORMAT,
            "study": study,
            "config_digest": config_digest,
            "workers": workers,
            "cluster": cluster,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "namespace": process_namespace(),
            "started_at": utc_now(),
            "expected": self._progress.expected,
        }
        versions = {
            "lpact": lpact_version(),
            "versions": library_versions({}),
            "system": platform.platform(),
            "cores": os.cpu_count(),
        }
        self._write("run_started", "", versions | self._about)
        self._tick()
        self._heart = threading.Thread(target=self._beat, name="lpact journal", daemon=True)
        self._heart.start()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None:
            self.close("finished")
        elif issubclass(kind, KeyboardInterrupt):
            self.close("interrupted", "stopped by Ctrl-C or a signal to end")
        else:
            self.close("failed", str(error))

    @property
    def n_failed(self) -> int:
        """Tasks that ended with an error."""
        return self._n_failed

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` tasks begins, and the one before ends."""
        with self._lock:
            self._end_stage()
            self._progress.stage(name, total)
            fields = {"total": total, "expected_seconds": self._progress.expected.get(name)}
            self._write("stage_started", name, fields)
            self._reporter.stage(name, total)
            self._tick()

    def advance(self, steps: int = 1) -> None:
        """Some steps of the stage are done."""
        with self._lock:
            self._advance(steps)

    def resumed(self, n: int) -> None:
        """Some tasks of this stage were finished by an earlier attempt."""
        with self._lock:
            self._n_results += n
            if (stage := self._progress.current) is not None:
                stage.resume(n)
                if n:
                    self._write("resumed", stage.name, {"n": n})
            self._reporter.resumed(n)

    def known(self, name: str, total: int, seconds: float, own_peak_bytes: int) -> None:
        """Log a stage that ended before this journal began."""
        fields = {"total": total, "done": total, "seconds": round(seconds, 3)}
        self._write("stage_finished", name, fields | {"own_peak_bytes": own_peak_bytes})

    def finished(self, record: TaskRecord) -> None:
        """A task is finished."""
        with self._lock:
            self._n_results += 1
            stage = self._stage
            self._worker_peaks[stage] = max(self._worker_peaks.get(stage, 0), record.peak_bytes)
            self._write("task_finished", stage, vars(record))
            self._advance(1)

    def failed(self, failure: TaskFailure) -> None:
        """A task ended with an error: it is logged with its traceback, counted, and shown by `lpact status`."""
        with self._lock:
            self._n_failed += 1
            if self._progress.current is not None:
                self._progress.current.failed += 1
            if len(self._failures) < MOST_FAILURES:
                known = {"stage": self._stage, "task": failure.task, "key": failure.key}
                self._failures.append(known | {"what": _shortened(failure.what, LONGEST_MESSAGE)})
            trace = {"trace": _shortened(failure.trace, LONGEST_TRACE)}
            self._write("task_failed", self._stage, vars(failure) | trace)
            self._advance(1, show=self._n_failed <= MOST_FAILURES)

    def note(self, event: str, **fields: str | int | float) -> None:
        """Log an event, such as a lost worker; ``what`` is shown at once."""
        with self._lock:
            self._write(event, self._stage, fields)
            if "what" in fields:
                self.say(str(fields["what"]))

    def say(self, text: str) -> None:
        """Show a sentence between the lines of progress."""
        self._reporter.say(text)

    def close(self, outcome: Outcome, problem: str = "") -> None:
        """The run ends; ``problem`` says why it is not finished.

        A second call does nothing, unless a run that was to be published could not be: then it corrects the first.
        """
        with self._lock:
            if self._outcome is not None and (outcome == "finished" or self._outcome != "finished"):
                return
            if self._outcome is None:
                self._end_stage()
            self._outcome = outcome
            self._closed.set()
            fields = {"outcome": outcome, "problem": problem, "n_failed": self._n_failed}
            self._write("run_ended", "", fields)
            self._reporter.overall(self._write_status(outcome, problem))
            if self._log is not None:
                self._log.close()
        self._heart.join()

    def leave(self) -> None:
        """Stop, and leave the last status: another journal follows."""
        with self._lock:
            self._closed.set()
        self._heart.join()

    @property
    def _stage(self) -> str:
        return self._progress.current.name if self._progress.current is not None else ""

    def _write(self, event: str, stage: str, fields: Mapping[str, object]) -> None:
        if self._log is not None:
            self._log.write(event, stage, fields)

    def _advance(self, steps: int, *, show: bool = False) -> None:
        if (stage := self._progress.current) is not None:
            stage.advance(steps, self._progress.clock())
            show = show or stage.done == stage.total
        if show:  # first the estimate, so that the line about the end of a stage has the new one
            self._tick()
        self._reporter.advance(steps)

    def _end_stage(self) -> None:
        if (stage := self._progress.current) is not None:
            counts = self._counts(stage)
            self._progress.end_stage()
            self._write("stage_finished", stage.name, counts)

    def _counts(self, stage: StageProgress) -> dict[str, object]:
        """What log and status say of a stage; this process' memory peak is that until the end of the stage."""
        if stage is self._progress.current:
            self._own_peaks[stage.name] = peak_bytes()
        return {
            "total": stage.total,
            "done": stage.done,
            "resumed": stage.resumed,
            "failed": stage.failed,
            "seconds": round(stage.seconds(self._progress.clock()), 3),
            "peak_bytes": self._worker_peaks.get(stage.name, 0),
            "own_peak_bytes": self._own_peaks.get(stage.name, 0),
        }

    def _beat(self) -> None:
        while not self._closed.wait(SECONDS_BETWEEN_STATUS):
            with self._lock:
                self._tick()

    def _tick(self) -> None:
        """Write the status and show the estimate."""
        if not self._closed.is_set():
            self._reporter.overall(self._write_status("running", ""))

    def _write_status(self, state: str, problem: str) -> Estimate:
        progress = self._progress
        estimate = Estimate(1.0, 0.0) if state == "finished" else progress.estimate()
        values = self._about | {
            "state": state,
            "problem": _shortened(problem, LONGEST_MESSAGE),
            "stage": self._stage,
            "stages": [
                self._counts(stage)
                | {"stage": name, "expected_seconds": progress.expected.get(name)}
                | {"seconds_left": progress.stage_left() if stage is progress.current else None}
                for name, stage in progress.stages.items()
            ],
            "fraction": estimate.fraction,
            "seconds_left": estimate.seconds_left,
            "estimated_end": _end(estimate.seconds_left),
            "n_results": self._n_results,
            "n_failed": self._n_failed,
            "failures": self._failures,
            "updated_at": utc_now(),
        }
        path = self._folder / STATUS_NAME
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            # Not flushed to the disk: after a power cut nothing runs. Text that UTF-8 cannot hold gets a question mark.
            temporary.write_bytes(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace"))
            temporary.replace(path)
        except FileNotFoundError:
            pass  # The run is published, and its working folder gone.
        except OSError as error:
            if not self._status_lost:
                self._status_lost = True
                self.say(
                    f"{path} cannot be written ({error.strerror or error}): "
                    "the run continues, and `lpact status` shows an earlier state"
                )
        return estimate


def _end(seconds_left: float | None) -> str | None:
    with suppress(OverflowError):
        if seconds_left is not None:
            end = datetime.now(UTC) + timedelta(seconds=seconds_left)
            return end.isoformat(timespec="seconds")
    return None


def _shortened(text: str, longest: int) -> str:
    """Text without its middle if it is too long; a traceback says most at its ends."""
    if len(text) <= longest:
        return text
    half = longest // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n… {left_out} characters left out …\n{text[len(text) - half :]}"


@contextmanager
def announced(
    out: str | Path, config: StudyConfig, workers: int, reporter: Reporter | None = None
) -> Iterator[Journal]:
    """A run that audits its sources: its working folder is locked, and `lpact status` shows it.

    An error leaves the folder as it was. Otherwise the status stays for the run that follows, which takes the lock.
    """
    partial = partial_folder(Path(out).absolute())
    refuse_foreign(partial)
    made = [folder for folder in (partial, *partial.parents) if not folder.exists()]
    was_locked = (partial / LOCK_NAME).exists()
    lock = FolderLock(partial)
    status = partial / STATUS_NAME
    try:
        before = status.read_bytes() if status.is_file() else None
        journal = Journal(
            partial,
            reporter or Reporter(),
            study=config.name,
            config_digest=config.digest(),
            workers=workers,
            logged=False,
        )
        try:
            yield journal
        except BaseException:
            journal.leave()
            with suppress(OSError, RunError):
                status.unlink(missing_ok=True)
                if before is not None:
                    atomic_write_bytes(status, before)
            lock.release(remove=not was_locked)
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()
            raise
        journal.leave()
    finally:
        lock.release()
