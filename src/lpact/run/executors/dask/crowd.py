"""Workers of a cluster: who is there, who is fit for the run, and for how long nobody was."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lpact.errors import RunError
from lpact.run.executors.dask import entry
from lpact.run.executors.dask.ask import Fetch, threads_of_workers
from lpact.run.executors.dask.terms import Fit, Unfit, processor

Note = Callable[..., None]
"""Told of what happened: the name of an event, and ``what`` in words (`lpact.run.journal.journal.Journal.note`)."""

LOOK_S = 2.0
"""Seconds between two looks at who is there."""

FIRST_LOOK_S = 30.0
"""Seconds that workers which are busy otherwise are waited for at the start, while others are ready."""


@dataclass(frozen=True)
class Doubt:
    """Something odd has come from some worker. ``looks`` are under way; ``n_refused`` workers were refused before."""

    looks: frozenset[str]
    n_refused: int


@dataclass
class Look:
    """A look at a worker: the task that looks, and the question for its answer, once there is one."""

    future: Any
    fetch: Fetch | None = None


class Crowd:
    """The workers of a cluster, each looked at once, before or while it takes tasks."""

    def __init__(
        self, client: Any, code: str, briefing: bytes, *, note: Note, patience_s: float
    ) -> None:
        self._client = client
        self._asked = (code, briefing)
        self._note = note
        self._patience_s = patience_s
        self._looks: dict[str, Look] = {}
        self._fit: dict[str, Fit] = {}
        self._unfit: dict[str, Unfit] = {}
        self._told: set[str] = set()
        self._n_refused = 0
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
        self.threads = threads_of_workers(self._client)
        self._looked_at = time.monotonic()
        known = {*self._fit, *self._unfit, *self._looks}
        for address in known - self.threads.keys():
            self._drop(address)
        for address in self.threads.keys() - known:
            self._look_at(address)
        for address in list(self._looks):
            self._follow(address)
        self._check_anybody()

    def forget(self, address: str) -> None:
        """A worker is gone; another one may have its address soon."""
        self.threads.pop(address, None)
        self._drop(address)

    def somebody(self) -> str:
        """A worker that takes tasks now; empty where there is none."""
        running = threads_of_workers(self._client, running=True)
        fit = self._fit.keys() & running.keys() & self.threads.keys()
        return min(fit, default="")

    def refuse(self, unfit: Unfit) -> None:
        """Give a worker no further tasks."""
        if unfit.address not in self._unfit:
            self._unfit[unfit.address] = unfit
            self._fit.pop(unfit.address, None)
            self._n_refused += 1
            self._note("worker_refused", worker=unfit.worker, what=_named(unfit))

    def look_again(self) -> Doubt:
        """Begin to look at all workers anew, since something odd came from one. Busy ones answer late."""
        n_refused = self._n_refused
        self._fit.clear()
        self.refresh(now=True)
        return Doubt(frozenset(look.future.key for look in self._looks.values()), n_refused)

    def has_refused_since(self, doubt: Doubt) -> bool | None:
        """Whether a worker was refused after something odd came from one; None while that is not known."""
        if self._n_refused > doubt.n_refused:
            return True
        under_way = {look.future.key for look in self._looks.values()}
        return False if doubt.looks.isdisjoint(under_way) else None

    def _drop(self, address: str) -> None:
        self._fit.pop(address, None)
        self._unfit.pop(address, None)
        self._looks.pop(address, None)

    def _look_at(self, address: str) -> None:
        future = self._client.submit(
            entry.look,
            *self._asked,
            key=f"lpact-look-{uuid.uuid4().hex}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
            priority=100,
        )
        self._looks[address] = Look(future)

    def _follow(self, address: str) -> None:
        """See how far a look is. One whose answer was lost, with its worker, is forgotten."""
        look = self._looks[address]
        if look.fetch is not None:
            if look.fetch.is_over:
                del self._looks[address]
                for found in look.fetch.found()[0].values():
                    self._hear(address, found)
        elif look.future.status == "finished":
            look.fetch = Fetch(self._client, [look.future.key])
        elif look.future.status == "error":  # no lpact there, or one that has no such function
            del self._looks[address]
            error = look.future.exception()
            what = f"{type(error).__name__}: {error}; lpact's code is {self._asked[0]} here"
            self._hear(address, Unfit(address, address, what))
        elif look.future.status != "pending":
            del self._looks[address]

    def _hear(self, address: str, found: Fit | Unfit) -> None:
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
