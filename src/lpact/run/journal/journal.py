"""Progress of a run on the terminal, in ``log.jsonl`` and in ``status.json`` of its working folder."""

from __future__ import annotations

import os
import platform
import socket
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from lpact.run.journal.log import LOG_NAME, LogFile, NoLog, utc_now
from lpact.run.journal.model import Estimate, ProgressModel, StageProgress
from lpact.run.journal.progress import Overall, Reporter
from lpact.run.journal.status import STATUS_FORMAT, STATUS_NAME, process_namespace, write_status
from lpact.run.memory import StageMemory
from lpact.run.records import TaskFailure, TaskRecord
from lpact.store.manifest import library_versions, lpact_version

Outcome = Literal["finished", "failed", "interrupted"]

SECONDS_BETWEEN_STATUS = 1.0
HEARTBEAT_S = 5.0
"""A status is written at least this often, whether or not a task ends."""
MOST_FAILURES = 20
LONGEST_MESSAGE = 2_000
LONGEST_TRACE = 50_000


class Journal:
    """Log, status and progress of one attempt at a run; a `Reporter` itself.

    ``folder`` is the working folder of the run, which this process has locked. ``expected`` holds the seconds of each
    stage, as wall time with these workers, if a plan knows them. An error of the log or the status never ends a run:
    ``lost_lines`` counts what was lost.

    A second thread writes the status while a long task keeps the first one waiting; `close` and `leave` end it. With
    ``logged=False`` there is a status and no log.
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
        self._overall = reporter if isinstance(reporter, Overall) else None
        self._log = LogFile(folder / LOG_NAME, self.say) if logged else NoLog()
        self._model = ProgressModel(expected or {}, workers=workers)
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._outcome: Outcome | None = None
        self._failures: list[dict[str, str]] = []
        self._n_failed = self._n_results = 0
        self._worker_peaks: dict[str, int] = {}
        self._own = StageMemory()
        self._status_at = -SECONDS_BETWEEN_STATUS
        self._status_lost = self._pending = False
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
            "expected": self._model.expected,
        }
        self._log.write("run_started", "", _versions() | self._about)
        self._tick(now=True)
        self._heart = threading.Thread(target=self._beat, name="lpact journal", daemon=True)
        self._heart.start()

    def stage(self, name: str, total: int) -> None:
        """A stage of ``total`` tasks begins, and the one before ends."""
        with self._lock:
            self._end_stage()
            self._model.stage(name, total)
            self._own.begin(name)
            fields = {"total": total, "expected_seconds": self._model.expected.get(name)}
            self._log.write("stage_started", name, fields)
            self._reporter.stage(name, total)
            self._tick(now=True)

    def advance(self, steps: int = 1) -> None:
        """Some steps of the stage are done."""
        with self._lock:
            self._advance(steps)

    def resumed(self, n: int) -> None:
        """Some tasks of this stage were finished by an earlier run: done, but no sign of this run's pace."""
        with self._lock:
            self._n_results += n
            self._model.resumed(n)
            stage = self._model.current
            if n and stage is not None:
                self._log.write("resumed", stage.name, {"n": n})
            if self._overall is not None:
                self._overall.resumed(n)
            else:
                self._reporter.advance(n)
            self._tick()

    def known(self, name: str, total: int, seconds: float, own_peak_bytes: int) -> None:
        """A stage was over before this journal began; it is logged for those who read of all stages."""
        fields = {"total": total, "done": total, "seconds": round(seconds, 3)}
        self._log.write("stage_finished", name, fields | {"own_peak_bytes": own_peak_bytes})

    def finished(self, record: TaskRecord) -> None:
        """A task is finished: it is logged and counted."""
        with self._lock:
            self._n_results += 1
            stage = self._stage
            known = self._worker_peaks.get(stage, 0)
            self._worker_peaks[stage] = max(known, record.peak_bytes)
            self._log.write("task_finished", stage, vars(record))
            self._advance(1)

    def failed(self, failure: TaskFailure) -> None:
        """A task ended with an error: it is logged with its traceback, counted, and shown by `lpact status`."""
        with self._lock:
            self._n_failed += 1
            if self._model.current is not None:
                self._model.current.failed += 1
            what = _shortened(failure.what, LONGEST_MESSAGE)
            if len(self._failures) < MOST_FAILURES:
                known = {"stage": self._stage, "task": failure.task, "key": failure.key}
                self._failures.append(known | {"what": what})
            trace = {"trace": _shortened(failure.trace, LONGEST_TRACE)}
            self._log.write("task_failed", self._stage, vars(failure) | trace)
            self._advance(1, show=self._n_failed <= MOST_FAILURES)

    def note(self, event: str, **fields: str | int | float) -> None:
        """Something worth knowing later: a worker lost, a damaged result computed again; ``what`` is shown at once."""
        with self._lock:
            self._log.write(event, self._stage, fields)
            if "what" in fields:
                self.say(str(fields["what"]))

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
            self._log.write("run_ended", "", fields)
            estimate = self._write_status(outcome, problem)
            if self._overall is not None:
                self._overall.overall(estimate)
            self._log.close()
        self._heart.join()

    def leave(self) -> None:
        """Stop, with the last status left as it is: what follows has a journal of its own."""
        with self._lock:
            self._closed.set()
        self._heart.join()

    @property
    def peaks(self) -> Mapping[str, int]:
        """The most memory, in bytes, that one process held, by stage: a worker's or this one's."""
        workers, own = self.worker_peaks, self.own_peaks
        names = [name for name in self._model.stages if name in workers or name in own]
        return {name: max(workers.get(name, 0), own.get(name, 0)) for name in names}

    @property
    def worker_peaks(self) -> Mapping[str, int]:
        """The same for workers alone: at most this, since a worker's own peak may be of an earlier stage."""
        return dict(self._worker_peaks)

    @property
    def own_peaks(self) -> Mapping[str, int]:
        """The same for this process alone."""
        return dict(self._own.peaks)

    @property
    def n_failed(self) -> int:
        """Tasks that ended with an error."""
        return self._n_failed

    @property
    def lost_lines(self) -> int:
        """Lines of the log that could not be written."""
        return self._log.n_lost

    @property
    def _stage(self) -> str:
        return self._model.current.name if self._model.current is not None else ""

    def _advance(self, steps: int, *, show: bool = False) -> None:
        self._model.advance(steps)
        stage = self._model.current
        # The state first, so that the line about the end of a stage has it.
        self._tick(now=show or (stage is not None and stage.done == stage.total))
        self._reporter.advance(steps)

    def _end_stage(self) -> None:
        stage = self._model.current
        if stage is None:
            return
        self._own.look()
        self._model.end_stage()
        fields = _counts(stage, self._model.clock()) | {
            "peak_bytes": self._worker_peaks.get(stage.name, 0),
            "own_peak_bytes": self._own.peaks[stage.name],
        }
        self._log.write("stage_finished", stage.name, fields)

    def _beat(self) -> None:
        while not self._closed.wait(SECONDS_BETWEEN_STATUS):
            with self._lock:
                self._own.look()
                waited = self._model.clock() - self._status_at
                if waited >= (SECONDS_BETWEEN_STATUS if self._pending else HEARTBEAT_S):
                    self._tick(now=True)

    def _tick(self, *, now: bool = False) -> None:
        """Show how far the run is, at most once per second."""
        at = self._model.clock()
        if self._closed.is_set():
            return
        self._pending = not now and at - self._status_at < SECONDS_BETWEEN_STATUS
        if self._pending:
            return
        self._status_at = at
        estimate = self._write_status("running", "")
        if self._overall is not None:
            self._overall.overall(estimate)

    def _write_status(self, state: str, problem: str) -> Estimate:
        now = self._model.clock()
        estimate = Estimate(1.0, 0.0) if state == "finished" else self._model.estimate()
        if self._model.current is not None:
            left = self._stage_left(self._model.current, now)
            estimate = replace(estimate, stage_left=left)
        self._own.look()
        stages = [
            _counts(stage, now)
            | {"stage": name, "expected_seconds": self._model.expected.get(name)}
            | {"seconds_left": self._stage_left(stage, now)}
            | {"peak_bytes": self._worker_peaks.get(name, 0)}
            | {"own_peak_bytes": self._own.peaks.get(name, 0)}
            for name, stage in self._model.stages.items()
        ]
        values = self._about | {
            "state": state,
            "problem": _shortened(problem, LONGEST_MESSAGE),
            "stage": self._stage,
            "stages": stages,
            "fraction": estimate.fraction,
            "seconds_left": estimate.seconds_left,
            "estimated_end": _end(estimate.seconds_left),
            "n_results": self._n_results,
            "n_failed": self._n_failed,
            "failures": self._failures,
            "lost_log_lines": self._log.n_lost,
            "updated_at": utc_now(),
        }
        try:
            write_status(self._folder / STATUS_NAME, values)
        except FileNotFoundError:
            pass  # The run is published, and its working folder gone.
        except OSError as error:
            if not self._status_lost:
                self._status_lost = True
                self.say(
                    f"{self._folder / STATUS_NAME} cannot be written ({error.strerror or error}): "
                    "the run goes on, and `lpact status` shows an earlier state"
                )
        return estimate

    def _stage_left(self, stage: StageProgress, now: float) -> float | None:
        if stage is not self._model.current:
            return None
        return stage.seconds_left(now, self._model.step_seconds(stage, now))

    def say(self, text: str) -> None:
        """Show a sentence between the lines of progress."""
        if self._overall is not None:
            self._overall.say(text)


def _counts(stage: StageProgress, now: float) -> dict[str, object]:
    return {
        "total": stage.total,
        "done": stage.done,
        "resumed": stage.resumed,
        "failed": stage.failed,
        "seconds": round(stage.seconds(now), 3),
    }


def _versions() -> dict[str, Any]:
    return {
        "lpact": lpact_version(),
        "versions": library_versions({}),
        "system": platform.platform(),
        "cores": os.cpu_count(),
    }


def _end(seconds_left: float | None) -> str | None:
    if seconds_left is None:
        return None
    try:
        return (datetime.now(UTC) + timedelta(seconds=seconds_left)).isoformat(timespec="seconds")
    except OverflowError:
        return None


def _shortened(text: str, longest: int) -> str:
    """Text without its middle if it is too long; a traceback says most at its ends."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return (
        f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[len(text) - half :]}"
    )
