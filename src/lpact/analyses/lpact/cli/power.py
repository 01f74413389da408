"""``lpact power``: could this design have found it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.analyses.lpact.cli._power import show_power, told_forecast
from lpact.cli._machine import n_cores
from lpact.cli._output import refuse_existing, write_tables
from lpact.cli._render import console
from lpact.cli._study import Models, Paths, load

if TYPE_CHECKING:
    from lpact.analyses.lpact.calibration.power import PowerReport, Settings
    from lpact.analyses.lpact.config import LPactConfig
    from lpact.config import RunConfig
    from lpact.study import Run

MANIFEST = "manifest.json"


def command(
    study: Annotated[Path, typer.Argument(help="Study file (TOML), or the folder of a run.")],
    run: Annotated[
        Path | None, typer.Option("--run", help="Finished run of the study: layer by layer.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Closed form only: nothing is simulated.")
    ] = False,
    target: Annotated[
        float, typer.Option("--target", help="Power with which an effect is to be found.")
    ] = 0.8,
    trials: Annotated[
        int, typer.Option("--trials", min=2, help="Simulated studies at each strength.")
    ] = 4,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; default: cores.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="New folder for the tables.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
    progress: Annotated[
        bool | None, typer.Option("--progress/--no-progress", help="Show progress.")
    ] = None,
    path: Paths = None,
    model: Models = None,
) -> None:
    """Show which effects the study's design could detect."""
    from lpact.analyses.lpact.calibration.power import FOLDER, Settings
    from lpact.analyses.lpact.config import LPactConfig
    from lpact.study import Run

    settings = Settings(
        target=target, quick=quick, trials=trials, workers=workers or n_cores(), kept=Path(FOLDER)
    )
    settings.check()
    if out is not None:
        refuse_existing(out, run or study)
    if (study / MANIFEST).is_file():
        name, report = _of_run(Run(study), settings, show=progress)
    else:
        loaded = load(study, path, model, "lpact")
        name = loaded.config.name
        settings = _kept_beside(settings, loaded.run_config)
        opened = None if run is None else Run(run)
        show = loaded.run_config.progress if progress is None else progress
        config = LPactConfig.of(loaded.config)
        report = _assess(config, loaded.run_config, settings, opened, show=show)
    if out is not None:
        write_tables(report.tables, out)
    if as_json:
        typer.echo(_as_json(name, target, report))
    else:
        show_power(console(), name, report, target, quick=quick)


def _assess(
    config: LPactConfig, run_config: RunConfig, settings: Settings, run: Run | None, *, show: bool
) -> PowerReport:
    from rich.console import Console

    from lpact.analyses.lpact.calibration.power import assess
    from lpact.run.progress import reporter

    # Standard output is for the answer; progress goes to standard error.
    aside = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with reporter(show=show) as shown:
        return assess(
            config,
            run_config,
            settings,
            run=run,
            reporter=shown,
            told=lambda forecast: told_forecast(aside, forecast, settings.workers),
        )


def _of_run(run: Run, settings: Settings, *, show: bool | None) -> tuple[str, PowerReport]:
    """A run alone: from its sources where they need no folder, else from its tables."""
    from lpact.analyses.lpact.calibration.power import assess_run
    from lpact.analyses.lpact.config import LPactConfig
    from lpact.config import RunConfig
    from lpact.datasets.base import DATASETS

    run.analysis("lpact")
    config = LPactConfig.of(run.config)
    if any(DATASETS.get(dataset.reader).needs_path for dataset in config.datasets):
        return config.name, assess_run(run, config, settings)
    return config.name, _assess(config, RunConfig(), settings, run, show=show is not False)


def _kept_beside(settings: Settings, run_config: RunConfig) -> Settings:
    """Finished simulated studies are kept where grids are kept: beside the study file."""
    from dataclasses import replace

    from lpact.analyses.lpact.calibration.power import FOLDER

    return replace(settings, kept=Path(run_config.grids).parent / FOLDER)


def _as_json(name: str, target: float, report: PowerReport) -> str:
    tables = {table.split("/", 1)[1]: rows.to_dicts() for table, rows in report.tables.items()}
    caps = {dataset: list(texts) for dataset, texts in report.caps.items()}
    answer = {
        "study": name,
        "target_power": target,
        "simulated_instead": caps,
        "n_claims": report.n_claims,
        "largest_p": report.largest_p,
        **tables,
    }
    return json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False)
