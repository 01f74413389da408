"""Workers of a cluster: who is there, who is fit for the run, and for how long nobody was."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from lpact.errors import RunError
from lpact.run.executors.dask import entry
from lpact.run.executors.dask.terms import Fit, Unfit, processor

Note = Callable[..., None]
"""Told of what happened: the name of an event, and ``what`` in words (`lpact.run.journal.journal.Journal.note`)."""

LOOK_S = 2.0
"""Seconds between two looks at who is there."""

FIRST_LOOK_S = 30.0
"""Seconds that workers which are busy otherwise are waited for at the start, while others are ready."""


class Crowd:
    """The workers of a cluster, each looked at once, before or while it takes tasks."""

    def __init__(
        self, client: Any, code: str, briefing: bytes, *, note: Note, patience_s: float
    ) -> None:
        self._client = client
        self._asked = (code, briefing)
        self._note = note
        self._patience_s = patience_s
        self._looks: dict[str, Any] = {}
        self._fit: dict[str, Fit] = {}
        self._unfit: dict[str, Unfit] = {}
        self._told: set[str] = set()
        self._looked_at = self._alone_since = -1.0
        self.threads: dict[str, int] = {}

    @property
    def n_threads(self) -> int:
        """Tasks that can run at a time."""
        return sum(n for address, n in self.threads.items() if address not in self._unfit)

    @property
    def permitted(self) -> list[str] | None:
        """Workers that may take tasks; None where all may."""
        if self._unfit.keys().isdisjoint(self.threads):
            return None
        return sorted(self.threads.keys() - self._unfit.keys())

    def assemble(self) -> None:
        """Wait for workers, and look at all of them; one that is not fit is a `RunError` that names it."""
        began = time.monotonic()
        while True:
            self.refresh(now=True)
            if self._unfit:
                raise _refused(self._unfit.values())
            waited = time.monotonic() - began
            if self._fit and (not self._looks or waited > FIRST_LOOK_S):
                return
            time.sleep(0.05)

    def refresh(self, *, now: bool = False) -> None:
        """See who has come and gone; raises `RunError` where nobody was there for too long."""
        if not now and time.monotonic() - self._looked_at < LOOK_S:
            return
        self.threads = dict(connected(self._client, self._client.nthreads))
        self._looked_at = time.monotonic()
        for known in (self._fit, self._unfit, self._looks):
            for address in known.keys() - self.threads.keys():
                del known[address]
        for address in self.threads.keys() - {*self._fit, *self._unfit, *self._looks}:
            self._look_at(address)
        for address, look in list(self._looks.items()):
            if look.done():
                del self._looks[address]
                self._hear(address, look)
        self._check_anybody()

    def refuse(self, unfit: Unfit) -> None:
        """Give a worker no further tasks."""
        if unfit.address not in self._unfit:
            self._unfit[unfit.address] = unfit
            self._note("worker_refused", worker=unfit.worker, what=_named(unfit))

    def look_again(self) -> bool:
        """Look at all workers anew, since something odd came from one; says whether one was refused."""
        before = set(self._unfit)
        self._fit.clear()
        self.refresh(now=True)
        while self._looks:
            time.sleep(0.05)
            self.refresh(now=True)
        return bool(self._unfit.keys() - before)

    def _look_at(self, address: str) -> None:
        self._looks[address] = self._client.submit(
            entry.look,
            *self._asked,
            key=f"lpact-look-{uuid.uuid4().hex}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
            priority=100,
        )

    def _hear(self, address: str, look: Any) -> None:
        try:
            found = look.result()
        except Exception as error:  # a worker without lpact, or with one that has no such function
            what = f"{type(error).__name__}: {error}; lpact's code is {self._asked[0]} here"
            found = Unfit(address, address, what)
        if isinstance(found, Unfit):
            self.refuse(found)
            return
        self._fit[address] = found
        self._check_cores(found.host)
        own = processor()
        if found.processor != own:
            self._once(
                "other_processor",
                f"worker {found.worker} of {found.host} computes with {found.processor}, this machine with {own}: "
                "last digits may differ",
            )

    def _check_cores(self, host: str) -> None:
        """Workers times threads must not be more than cores."""
        there = [fit for fit in self._fit.values() if fit.host == host]
        cores = {fit.cores for fit in there}
        union = set().union(*cores)
        n_cores = len(union) if len(cores) > 1 else min(fit.n_cores for fit in there)
        n_threads = sum(fit.threads for fit in there)
        if n_threads > n_cores:
            self._once(
                "overcommitted",
                f"{host} has {n_cores} core(s) and {n_threads} worker thread(s) that run a task each: tasks there wait "
                "for each other; start fewer workers, with --nthreads 1",
                host,
            )

    def _once(self, event: str, what: str, name: str = "") -> None:
        if (known := f"{event} {name or what}") not in self._told:
            self._told.add(known)
            self._note(event, what=what)

    def _check_anybody(self) -> None:
        if self.threads.keys() - self._unfit.keys():
            self._alone_since = -1.0
            return
        if self.threads:
            raise _refused(self._unfit.values())
        now = time.monotonic()
        if self._alone_since < 0:
            self._alone_since = now
            self._note(
                "no_workers",
                what=f"the cluster has no workers: waiting for some, at most {self._patience_s:.0f} s",
            )
        if now - self._alone_since > self._patience_s:
            raise RunError(
                "the cluster has no workers",
                where=self._client.scheduler.address,
                got=f"none for {self._patience_s:.0f} s",
                expected="at least one worker",
                remedy="start workers and run again: what was finished is kept; 'run.patience_s' is how long to wait",
            )


def connected(client: Any, ask: Callable[[], Any]) -> Any:
    """What the scheduler answers; one that is gone is a `RunError`."""
    try:
        if client.status == "running":
            return ask()
        problem = f"connection is {client.status}"
    except (OSError, TimeoutError) as error:
        problem = str(error) or type(error).__name__
    raise RunError(
        "the scheduler of the cluster is gone",
        where=client.scheduler.address if client.scheduler else "scheduler",
        got=problem,
        expected="a scheduler that lives as long as the run",
        remedy="start scheduler and workers again, then run again: what was finished is kept",
    )


def _named(unfit: Unfit) -> str:
    return f"worker {unfit.worker} ({unfit.address}): {unfit.what}"


def _refused(found: Sequence[Unfit] | Any) -> RunError:
    return RunError(
        "workers of the cluster do not fit this run",
        where="; ".join(sorted(f"{unfit.worker} ({unfit.address})" for unfit in found)),
        got="\n".join(sorted(_named(unfit) for unfit in found)),
        expected="workers with the same code, library versions and sources as here",
        remedy="install the same there and share or copy the same files, start these workers again, then run again",
    )
