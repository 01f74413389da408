"""``lpact assay``: positive controls of a study, or those of a finished run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import (
    Json,
    Models,
    Paths,
    Progress,
    load_asking,
    progress_on_terminals,
    refuse_existing,
    write_tables,
)
from lpact.cli._terminal import heading, print_json, say, show_table
from lpact.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from lpact.analyses.lpact.assays.control_results import ControlResult
    from lpact.analyses.lpact.config import GatesConfig
    from lpact.study import Study

STYLES = {"passes": "green", "does not pass": "red", "not available": "magenta"}


def command(
    study: Annotated[Path, typer.Argument(help="Study file (TOML), or folder of a finished run.")],
    out: Annotated[Path | None, typer.Option("--out", help="New folder for the tables of the controls.")] = None,
    as_json: Json = False,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; default: the study file's.")
    ] = None,
    progress: Progress = None,
    path: Paths = None,
    model: Models = None,
) -> None:
    """Show the positive controls: what the assay can detect."""
    from lpact.analyses.lpact.assays.control_results import control_results
    from lpact.analyses.lpact.config import LPactConfig

    if study.is_dir():
        name, gates, tables = _stored(study, out)
    else:
        if out is not None:
            refuse_existing(out)
        loaded = load_asking("lpact", study, path, model)
        name, gates = loaded.config.name, LPactConfig.of(loaded.config).gates
        tables = _compute(loaded, workers, progress, quiet=as_json)
    if out is not None:
        write_tables(tables, out)
    found = control_results(tables, gates)
    if as_json:
        print_json({"study": name, "findings": [asdict(result) for result in found]})
        return
    _show_results(found)
    if out is not None:
        heading(f"Wrote {counted(len(tables), 'table')} to {out}/")


def _compute(study: Study, workers: int | None, progress: bool | None, *, quiet: bool) -> dict[str, pl.DataFrame]:
    from lpact.analyses.lpact.assays.jobs import measure_controls
    from lpact.run.progress import reporter

    settings = study.run_config
    if not quiet:
        say(f"{study.config.name}: reading the sources …")
    with progress_on_terminals() as bar:
        audit = study.audit(bar)
    n_workers = workers or settings.workers
    if not quiet:
        recordings = counted(audit.n_recordings, "recording")
        say(f"Positive controls of {recordings}, no model, {counted(n_workers, 'worker')} …")
    with reporter(show=settings.progress if progress is None else progress) as bar:
        return measure_controls(study.config, settings=settings, workers=n_workers, reporter=bar, audit=audit)


def _stored(run: Path, out: Path | None) -> tuple[str, GatesConfig, dict[str, pl.DataFrame]]:
    """Tables of the positive controls of a finished run."""
    import lpact
    from lpact.analyses.lpact.config import LPactConfig
    from lpact.analyses.lpact.tables.assay import TABLES
    from lpact.errors import RunError

    opened = lpact.open_run(run)
    opened.analysis("lpact")
    stored = {table.name for table in opened.tables()}
    tables = {t.name: opened.table(t.name) for t in TABLES if t.name in stored}
    if not tables or out is not None:
        raise RunError(
            "the run already holds its tables" if tables else "the run holds no positive controls",
            where=str(run),
            got=f"--out {out}" if tables else "[lpact.assay] enabled = false",
            expected="no --out" if tables else "a run with positive controls",
            remedy="give the study file instead of the run, to compute the positive controls alone",
        )
    return opened.config.name, LPactConfig.of(opened.config).gates, tables


def _show_results(found: Sequence[ControlResult]) -> None:
    """Print one block per control: what passes where, then what is not available and why."""
    for control in dict.fromkeys(result.control for result in found):
        own = [result for result in found if result.control == control]
        heading(control[:1].upper() + control[1:])
        rows = [(f.dataset, f.what, f.result, f.detail) for f in own if f.passes is not None]
        if rows:
            show_table(("dataset", "what", "result", ""), rows, styles=STYLES)
        missing: dict[tuple[str, str], list[str]] = {}
        for result in own:
            if result.passes is None:
                missing.setdefault((result.dataset, result.detail), []).append(result.what)
        for (dataset, why), what in missing.items():
            say(f"{dataset}, not available: {'; '.join(what)}. {why}", indent=2)
    say("\nPositive controls show what the assay can detect. They change no label.")
