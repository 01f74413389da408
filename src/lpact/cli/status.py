"""``lpact status``: the state of a run, from another terminal."""

from __future__ import annotations

import json
import shlex
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._options import program
from lpact.cli._results import show_claim_counts
from lpact.cli._terminal import console, heading, safe, say, show_table
from lpact.wording import counted, duration, size

if TYPE_CHECKING:
    from lpact.run.status import RunStatus, StatusFile
    from lpact.study import Run

SECONDS_BETWEEN_LOOKS = 2.0
FAILED = 1
LOCK_RECORD = "lock.json"
MANY_FAILED = 5
"""Failed tasks that are listed while a run goes on."""


def command(
    run: Annotated[Path, typer.Argument(help="Folder that was given to `lpact run` as --out.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every two seconds until the run ends.")] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Also show the tracebacks of failed tasks.")] = False,
) -> None:
    """Show the progress, expected end and failures of a run.

    Exit status 0: it runs or is finished; 1: it failed, was interrupted, or is silent; 2: there is no such run.
    """
    from lpact.run.status import run_status

    # Ctrl-C ends the watching, not the run.
    with suppress(*[KeyboardInterrupt] if watch else []):
        status = _watch(run, as_json=as_json) if watch else run_status(run)
        if as_json:
            typer.echo(json.dumps(_values(status)))
        else:
            show_status(status)
            if traceback:
                _show_tracebacks(status)
        if status.state not in ("running", "finished"):
            raise typer.Exit(FAILED)


def _watch(run: Path, *, as_json: bool) -> RunStatus:
    """Look until the run ends: the screen is drawn again on terminals, a line is printed for every change elsewhere."""
    from lpact.run.status import run_status

    out, last = console(), ""
    while (status := run_status(run)).state in ("running", "silent"):
        if out.is_terminal and not as_json:
            out.clear()
            show_status(status)
        else:
            line = json.dumps(status.as_json()) if as_json else status_line(status)
            if line != last:
                typer.echo(safe(line))
            last = line
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return status


def _values(status: RunStatus) -> dict[str, Any]:
    from lpact.run.status import summarise_log
    from lpact.study import Run

    values = status.as_json()
    if status.state == "finished":
        values["finished"] = _finished_values(Run(status.out))
        values["history"] = summarise_log(status.log).as_json()
    return values


def _finished_values(run: Run) -> dict[str, Any]:
    verdicts = []
    for name, analysis in run.analyses.items():
        by = [*(["gate_profile"] if analysis.claims.profiles else []), "label"]
        counts = run.table(analysis.claims.table.name).group_by(by).len("n").sort(by)
        verdicts += [{"analysis": name, **row} for row in counts.iter_rows(named=True)]
    return {
        "study": run.manifest.study,
        "config_digest": run.manifest.config_digest,
        "n_tables": len(run.tables()),
        "n_rows": sum(run.n_rows(table.name) for table in run.tables()),
        "locked": (run.root / LOCK_RECORD).is_file(),
        "verdicts": verdicts,
    }


def show_status(status: RunStatus) -> None:
    """Print the state of a run: how far it is, its stages, and what failed."""
    console().print(safe(f"{status.out.name}: {status.state}"), style="bold", soft_wrap=True)
    if status.state == "finished":
        _show_finished(status)
        return
    said = status.said
    tasks_failed = said is not None and said.n_failed > 0
    for line in status.why.splitlines()[: 1 if tasks_failed else None]:
        say(line, indent=2)
    if said is None:
        return
    running = status.state == "running"
    say(_since(said), indent=2)
    if running:
        say(_overall(said), indent=2)
    if said.stages:
        heading("Stages (memory: peak of one process)")
        columns = ("stage", "done", "resumed", "failed", "time", "left", "workers", "client")
        rows = [
            (
                stage.stage,
                f"{stage.done:,}/{stage.total:,}",
                stage.resumed,
                stage.failed,
                duration(stage.seconds),
                duration(stage.seconds_left) if running and stage.seconds_left is not None else "",
                *_memory(stage),
            )
            for stage in said.stages
        ]
        show_table(columns, rows, right=columns[1:])
    if said.n_failed:
        _show_failed(said, status)
    if status.state in ("failed", "interrupted"):
        say("\nRun the same `lpact run` again to resume: finished results are reused.")


def status_line(status: RunStatus) -> str:
    """The state in one line, for plain logs."""
    said = status.said
    if said is None:
        return f"{status.state}: {status.why}"
    stage = next((s for s in said.stages if s.stage == said.stage), None)
    parts: list[str] = [status.state]
    if stage is not None:
        parts.append(f"{stage.stage} {stage.done}/{stage.total}")
    parts.append(_overall(said))
    if said.n_failed:
        parts.append(f"{counted(said.n_failed, 'task')} failed")
    return "; ".join(parts)


def _overall(said: StatusFile) -> str:
    """Share of the work that is done, and when the rest will be."""
    from lpact.run.progress import clock_time, time_left

    if said.fraction is None:
        return "total time not known yet"
    done = f"overall {int(100 * said.fraction)} %"
    if said.estimated_end is None:
        return done
    left = max((said.estimated_end - datetime.now(UTC)).total_seconds(), 0.0)
    return f"{done}, {time_left(left)}, ends {clock_time(left)}"


def _since(said: StatusFile) -> str:
    started = said.started_at.astimezone().strftime("%Y-%m-%d %H:%M")
    where = f"on the cluster {said.cluster}" if said.cluster else counted(said.workers, "worker")
    spent = (said.updated_at - said.started_at).total_seconds()
    return (
        f"{said.study} (configuration {said.config_digest[:12]}), {where}, since {started}, "
        f"last update after {duration(spent)}"
    )


def _memory(stage: Any) -> list[str | None]:
    """The most memory of a worker and of the client."""
    return [size(n) if n else None for n in (stage.peak_bytes, stage.own_peak_bytes)]


def _show_failed(said: StatusFile, status: RunStatus) -> None:
    shown = said.failures[:MANY_FAILED] if status.state == "running" else said.failures
    more = f", the first {len(shown)}" if said.n_failed > len(shown) else ""
    heading(f"Failed tasks ({said.n_failed:,}{more})")
    for failure in shown:
        say(failure.task, indent=2)
        for line in (f"key {failure.key}", *failure.what.splitlines()):
            say(line, indent=4)
    say(f"Tracebacks: {program()} status {_quoted(status.out)} --traceback", indent=2)
    say(f"or the lines task_failed of {status.log}", indent=2)


def _show_tracebacks(status: RunStatus) -> None:
    from lpact.run.status import summarise_log

    failures = summarise_log(status.log).failures
    for failure in failures:
        heading(f"{failure.get('task')} (key {failure.get('key')})")
        for line in str(failure.get("trace", "")).splitlines():
            console().print(f"  {safe(line)}", soft_wrap=True)
    if not failures:
        say(f"\nNo task of the last attempt failed, according to {status.log}.")


def _quoted(path: Path) -> str:
    """A folder as a user types it here."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _show_finished(status: RunStatus) -> None:
    from lpact.report.folder import REPORT_PAGE, report_writer
    from lpact.run.status import summarise_log
    from lpact.store.manifest import REPORT_FOLDER
    from lpact.study import Run

    run = Run(status.out)
    values = _finished_values(run)
    say(
        f"{values['study']} (configuration {values['config_digest'][:12]}), "
        f"{counted(values['n_tables'], 'table')}, {counted(values['n_rows'], 'row')}",
        indent=2,
    )
    folder = _quoted(status.out)
    writer = report_writer(status.out / REPORT_FOLDER)
    if writer is not None:
        say(f"process {writer} is writing its report", indent=2)
    elif not (status.out / REPORT_FOLDER / REPORT_PAGE).is_file():
        say(f"no report; {program()} report {folder} writes it", indent=2)
    locked = f"locked; {program()} verify {folder} checks it"
    say(
        locked if values["locked"] else f"not locked; {program()} lock {folder} freezes it",
        indent=2,
    )
    for analysis in run.analyses.values():
        show_claim_counts(analysis, run.table(analysis.claims.table.name))
    history = summarise_log(status.log)
    if not history.stages:
        return
    attempts = counted(history.n_attempts, "attempt")
    heading(f"Stages ({attempts}; memory: peak of one process)")
    columns = ("stage", "tasks", "time", "workers", "client")
    rows = [
        (name, spent.n_finished or None, duration(spent.seconds), *_memory(spent))
        for name, spent in history.stages.items()
    ]
    show_table(columns, rows, right=columns[1:])
