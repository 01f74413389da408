"""``lpact assay``: positive controls of a study, or those of a finished run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._layout import Grid
from lpact.cli._output import refuse_existing, write_tables
from lpact.cli._render import console, counted, heading, say, show
from lpact.cli._study import Models, Paths, load, progress_on_terminals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from rich.console import Console

    from lpact.analyses.lpact.assays.lines import Finding
    from lpact.analyses.lpact.config import GatesConfig
    from lpact.study import Study

STYLES = {"passes": "green", "does not pass": "red", "not available": "magenta"}
Tables = dict[str, "pl.DataFrame"]


def command(
    study: Annotated[Path, typer.Argument(help="Study file (TOML), or folder of a finished run.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="New folder for the tables of the controls.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; default: the study file's.")
    ] = None,
    progress: Annotated[
        bool | None, typer.Option("--progress/--no-progress", help="Show progress.")
    ] = None,
    path: Paths = None,
    model: Models = None,
) -> None:
    """Show the positive controls: what the assay can detect."""
    from lpact.analyses.lpact.assays.lines import findings
    from lpact.analyses.lpact.config import LPactConfig

    told = console()
    if study.is_dir():
        name, gates, tables = _stored(study, out)
    else:
        if out is not None:
            refuse_existing(out)
        loaded = load(study, path, model, "lpact")
        name, gates = loaded.config.name, LPactConfig.of(loaded.config).gates
        tables = _compute(told, loaded, workers, progress, quiet=as_json)
    if out is not None:
        write_tables(tables, out)
    found = findings(tables, gates)
    if as_json:
        typer.echo(
            json.dumps({"study": name, "findings": _plain(found)}, ensure_ascii=False, indent=2)
        )
        return
    show_findings(told, found)
    if out is not None:
        heading(told, f"Wrote {counted(len(tables), 'table')} to {out}/")


def _compute(
    told: Console, study: Study, workers: int | None, progress: bool | None, *, quiet: bool
) -> Tables:
    from lpact.analyses.lpact.positive_controls import measure_controls
    from lpact.run.progress import reporter

    if not quiet:
        say(told, f"{study.config.name}: reading the sources …")
    with progress_on_terminals() as bar:
        audit = study.audit(bar)
    n_workers = workers or study.run_config.workers
    if not quiet:
        recordings = counted(audit.n_recordings, "recording")
        say(told, f"Positive controls of {recordings}, no model, {counted(n_workers, 'worker')} …")
    show = study.run_config.progress if progress is None else progress
    with reporter(show=show) as shown:
        return measure_controls(
            study.config,
            settings=study.run_config,
            workers=n_workers,
            reporter=shown,
            audit=audit,
        )


def _stored(run: Path, out: Path | None) -> tuple[str, GatesConfig, Tables]:
    """Tables of the positive controls of a finished run."""
    import lpact
    from lpact.analyses.lpact.config import LPactConfig
    from lpact.analyses.lpact.tables import assay
    from lpact.errors import RunError

    opened = lpact.open_run(run)
    opened.analysis("lpact")
    wanted = {t.name for t in assay.TABLES}
    names = [table.name for table in opened.tables() if table.name in wanted]
    if not names or out is not None:
        raise RunError(
            "the run holds no positive controls"
            if not names
            else "the run already holds its tables",
            where=str(run),
            got="[lpact.assay] enabled = false" if not names else f"--out {out}",
            expected="a run with positive controls" if not names else "no --out",
            remedy="give the study file instead of the run, to compute the positive controls alone",
        )
    tables = {name: opened.table(name) for name in names}
    return opened.config.name, LPactConfig.of(opened.config).gates, tables


def show_findings(told: Console, found: Sequence[Finding]) -> None:
    """Print one block per control: what passes where, then what is not available and why."""
    for control in dict.fromkeys(finding.control for finding in found):
        own = [finding for finding in found if finding.control == control]
        heading(told, control[:1].upper() + control[1:])
        grid = Grid(("dataset", "what", "result", ""), styles=STYLES)
        for finding in own:
            if finding.passes is not None:
                grid.add(finding.dataset, finding.what, finding.result, finding.detail)
        if grid.rows:
            show(told, grid)
        missing: dict[tuple[str, str], list[str]] = {}
        for finding in own:
            if finding.passes is None:
                missing.setdefault((finding.dataset, finding.detail), []).append(finding.what)
        for (dataset, why), what in missing.items():
            say(told, f"{dataset}, not available: {'; '.join(what)}. {why}", indent=2)
    say(told)
    say(told, "Positive controls show what the assay can detect. They change no label.")


def _plain(found: Sequence[Finding]) -> list[Mapping[str, object]]:
    return [
        {
            "control": finding.control,
            "dataset": finding.dataset,
            "what": finding.what,
            "passes": finding.passes,
            "expected": finding.expected,
            "detail": finding.detail,
            "reason": finding.reason,
        }
        for finding in found
    ]
