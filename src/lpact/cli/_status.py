"""The state of a run in words and tables, as ``lpact status`` shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpact.cli._layout import Grid
from lpact.cli._machine import program
from lpact.cli._render import counted, duration, heading, memory, say, show, whole

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from lpact.analyses.base import Analysis
    from lpact.run.status import FailedTask, RunStatus, StatusFile

LOCK_RECORD = "lock.json"
MANY_FAILED = 5
_RIGHT = frozenset({"done", "resumed", "failed", "tasks", "time", "left", "workers", "client"})


def show_status(out: Console, status: RunStatus) -> None:
    """Everything that a reader wants to know first."""
    from lpact.run.progress import plain

    name = plain(status.out.name)
    if status.state == "finished":
        _show_finished(out, status, name)
        return
    out.print(f"{name}: {status.state}", style="bold", soft_wrap=True)
    listed = status.said is not None and status.said.n_failed > 0
    for line in status.why.splitlines()[: 1 if listed else None]:
        say(out, plain(line), indent=2)
    said = status.said
    if said is None:
        return
    say(out, _since(said), indent=2)
    if status.state == "running":
        say(out, overall(said), indent=2)
    _show_stages(out, said, running=status.state == "running")
    if said.n_failed:
        _show_failed(out, said, status)
    if said.lost_log_lines:
        say(out)
        lost = counted(said.lost_log_lines, "line")
        say(out, f"{lost} of the log could not be written.", indent=2)
    if status.state in ("failed", "interrupted"):
        say(out)
        say(out, "The same `lpact run` again computes what is missing; what is finished is kept.")


def status_line(status: RunStatus) -> str:
    """The state in one line, for plain logs."""
    from lpact.run.progress import plain

    said = status.said
    if said is None:
        return f"{status.state}: {plain(status.why)}"
    stage = next((s for s in said.stages if s.stage == said.stage), None)
    parts: list[str] = [status.state]
    if stage is not None:
        parts.append(f"{plain(stage.stage)} {stage.done}/{stage.total}")
    parts.append(overall(said))
    if said.n_failed:
        parts.append(f"{counted(said.n_failed, 'task')} failed")
    return "; ".join(parts)


def overall(said: StatusFile) -> str:
    """Share of the work that is done, and when the rest will be."""
    from lpact.run.progress import clock_time, time_left

    if said.fraction is None:
        return "how long it takes in all is not known yet"
    done = f"overall {int(100 * said.fraction)} %"
    if said.estimated_end is None:
        return done
    left = max((said.estimated_end - datetime.now(UTC)).total_seconds(), 0.0)
    return f"{done}, {time_left(left)}, ends {clock_time(left)}"


def _since(said: StatusFile) -> str:
    from lpact.run.progress import plain

    started = said.started_at.astimezone().strftime("%Y-%m-%d %H:%M")
    where = f"on the cluster {plain(said.cluster)}" if said.cluster else ""
    spent = (said.updated_at - said.started_at).total_seconds()
    return (
        f"{plain(said.study)} (configuration {plain(said.config_digest[:12])}), "
        f"{where or counted(said.workers, 'worker')}, since {started}, {duration(spent)} until it last wrote"
    )


def _show_stages(out: Console, said: StatusFile, *, running: bool) -> None:
    from lpact.run.progress import plain

    if not said.stages:
        return
    heading(out, "Stages (memory: the most that one process held)")
    grid = Grid(
        ("stage", "done", "resumed", "failed", "time", "left", "workers", "client"), right=_RIGHT
    )
    for stage in said.stages:
        known = running and stage.seconds_left is not None
        left = duration(stage.seconds_left or 0.0) if known else ""
        grid.add(
            plain(stage.stage),
            f"{whole(stage.done)}/{whole(stage.total)}",
            whole(stage.resumed),
            whole(stage.failed),
            duration(stage.seconds),
            left,
            _memory(stage.peak_bytes),
            _memory(stage.own_peak_bytes),
        )
    show(out, grid)


def _memory(n_bytes: int) -> str:
    return memory(n_bytes) if n_bytes else "–"


def _show_failed(out: Console, said: StatusFile, status: RunStatus) -> None:
    from lpact.run.progress import plain

    shown = said.failures[:MANY_FAILED] if status.state == "running" else said.failures
    more = f", the first {len(shown)}" if said.n_failed > len(shown) else ""
    heading(out, f"Failed tasks ({whole(said.n_failed)}{more})")
    for failure in shown:
        _show_failure(out, failure)
    say(out, f"Tracebacks: {program()} status {_quoted(status.out)} --traceback", indent=2)
    say(out, f"or the lines task_failed of {plain(str(status.log))}", indent=2)


def _show_failure(out: Console, failure: FailedTask) -> None:
    from lpact.run.progress import plain

    say(out, plain(failure.task), indent=2)
    say(out, f"key {plain(failure.key)}", indent=4)
    for line in failure.what.splitlines():
        say(out, plain(line), indent=4)


def _quoted(path: Path) -> str:
    """A folder as it is typed here."""
    import shlex

    from lpact.run.progress import plain

    here = Path.cwd()
    return plain(shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path)))


def finished_values(folder: Path) -> dict[str, Any]:
    """What a finished run holds, in plain values."""
    from lpact.study import Run

    run = Run(folder)
    return {
        "study": run.manifest.study,
        "config_digest": run.manifest.config_digest,
        "n_tables": len(run.tables()),
        "n_rows": sum(run.n_rows(table.name) for table in run.tables()),
        "locked": (folder / LOCK_RECORD).is_file(),
        "verdicts": [
            {"analysis": name, **row}
            for name, analysis in run.analyses.items()
            for row in _label_counts(analysis, run.table(analysis.claims.table.name))
        ],
    }


def _label_counts(analysis: Analysis, claims: pl.DataFrame) -> list[dict[str, Any]]:
    by = [*(["gate_profile"] if analysis.claims.profiles else []), "label"]
    return claims.group_by(by).len("n").sort(by).to_dicts()


def _show_finished(out: Console, status: RunStatus, name: str) -> None:
    from lpact.cli._results import show_claim_counts
    from lpact.report.folder import REPORT_PAGE, report_writer
    from lpact.run.progress import plain
    from lpact.run.status import summarise_log
    from lpact.store.manifest import REPORT_FOLDER
    from lpact.study import Run

    values = finished_values(status.out)
    out.print(f"{name}: finished", style="bold", soft_wrap=True)
    about = (
        f"{plain(values['study'])} (configuration {values['config_digest'][:12]}), "
        f"{counted(values['n_tables'], 'table')}, {counted(values['n_rows'], 'row')}"
    )
    say(out, about, indent=2)
    folder = _quoted(status.out)
    writer = report_writer(status.out / REPORT_FOLDER)
    if writer is not None:
        say(out, f"process {writer} is writing its report", indent=2)
    elif not (status.out / REPORT_FOLDER / REPORT_PAGE).is_file():
        say(out, f"no report; {program()} report {folder} writes it", indent=2)
    say(
        out,
        f"locked; {program()} verify {folder} checks it"
        if values["locked"]
        else f"not locked; {program()} lock {folder} freezes it",
        indent=2,
    )
    run = Run(status.out)
    for analysis in run.analyses.values():
        show_claim_counts(out, analysis, run.table(analysis.claims.table.name))
    history = summarise_log(status.log)
    if not history.stages:
        return
    attempts = counted(history.n_attempts, "attempt")
    heading(out, f"Stages ({attempts}; memory: the most that one process held)")
    grid = Grid(("stage", "tasks", "time", "workers", "client"), right=_RIGHT)
    for stage, spent in history.stages.items():
        tasks = whole(spent.n_finished) if spent.n_finished else "–"
        grid.add(
            plain(stage),
            tasks,
            duration(spent.seconds),
            _memory(spent.peak_bytes),
            _memory(spent.own_peak_bytes),
        )
    show(out, grid)
