"""``lpact power``: could this design have found it?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._options import (
    Models,
    Paths,
    Progress,
    load_asking,
    n_cores,
    refuse_existing,
    write_tables,
)
from lpact.cli._terminal import heading, print_json, say, show_table
from lpact.wording import about, counted, fixed

if TYPE_CHECKING:
    from lpact.analyses.lpact.calibration.power import PowerReport, Settings
    from lpact.analyses.lpact.calibration.study import Forecast
    from lpact.analyses.lpact.config import LPactConfig
    from lpact.config import RunConfig
    from lpact.study import Run

MANIFEST = "manifest.json"
DESIGN = "controls/study_design"
EFFECTS = "controls/minimum_detectable_effect"
LAYERS = "controls/layer_detectability"
VERDICTS = {
    "found": "found",
    "could_have_found": "could have found it and did not",
    "could_not_have_found": "could not have found it",
    "not_known": "not known",
}
_STYLES = {VERDICTS["found"]: "green", VERDICTS["could_not_have_found"]: "magenta"}
_METHODS = {
    "simulated": "simulated",
    "observed_spread": "the run's own spread",
    "closed_form": "closed form",
}
"""Methods, the most informative first."""
Row = dict[str, Any]


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
    progress: Progress = None,
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
        loaded = load_asking("lpact", study, path, model)
        name, run_config = loaded.config.name, loaded.run_config
        # Finished simulated studies are kept beside the study file, as grids are.
        settings = replace(settings, kept=Path(run_config.grids).parent / FOLDER)
        opened = None if run is None else Run(run)
        show = run_config.progress if progress is None else progress
        report = _assess(LPactConfig.of(loaded.config), run_config, settings, opened, show=show)
    if out is not None:
        write_tables(report.tables, out)
    if as_json:
        print_json(
            {
                "study": name,
                "target_power": target,
                "simulated_instead": {dataset: list(own) for dataset, own in report.caps.items()},
                "n_claims": report.n_claims,
                "largest_p": report.largest_p,
                **{table.split("/")[1]: rows.to_dicts() for table, rows in report.tables.items()},
            }
        )
    else:
        _show_power(name, report, target, quick=quick)


def _assess(
    config: LPactConfig, run_config: RunConfig, settings: Settings, run: Run | None, *, show: bool
) -> PowerReport:
    from lpact.analyses.lpact.calibration.power import assess
    from lpact.run.progress import reporter

    def show_forecast(forecast: Forecast) -> None:
        """Standard output is for the answer; the forecast goes to standard error."""
        if forecast.n_left:
            seconds = forecast.seconds_each * forecast.n_left / settings.workers
            say(
                f"{forecast.name}: {counted(forecast.n_left, 'more study')} to simulate, {about(seconds)} with "
                f"{counted(settings.workers, 'process')}; finished ones are kept; --quick skips them.",
                stderr=True,
            )

    with reporter(show=show) as bar:
        return assess(
            config, run_config, settings, run=run, reporter=bar, show_forecast=show_forecast
        )


def _of_run(run: Run, settings: Settings, *, show: bool | None) -> tuple[str, PowerReport]:
    """A run alone: from its sources if they need no folder, else from its tables."""
    from lpact.analyses.lpact.calibration.power import assess_run
    from lpact.analyses.lpact.config import LPactConfig
    from lpact.config import RunConfig
    from lpact.datasets.base import DATASETS

    run.analysis("lpact")
    config = LPactConfig.of(run.config)
    if any(DATASETS.get(dataset.reader).needs_path for dataset in config.datasets):
        return config.name, assess_run(run, config, settings)
    return config.name, _assess(config, RunConfig(), settings, run, show=show is not False)


def _show_power(name: str, report: PowerReport, target: float, *, quick: bool) -> None:
    """Print the verdicts first, then the numbers behind them."""
    effects = in_order(report.tables[EFFECTS].iter_rows(named=True))
    for sentence in verdicts(effects):
        say(f"{name}: {sentence}")
    if report.after_run:
        _show_layers(report, target)
    _show_effects(effects, target)
    if not report.tables[DESIGN].is_empty():
        _show_design(report)
    for dataset, caps in report.caps.items():
        for cap in caps:
            say(f"simulated for {dataset}: {cap}", indent=2)
    if report.n_claims is not None and report.largest_p is not None:
        say(
            f"integrated, calibrated: a simulated study counts where p is at most {report.largest_p:.2g}, the false "
            f"discovery rate over {counted(report.n_claims, 'confirmatory claim')}. That is Bonferroni's bound: the "
            "study's own correction is less strict where several claims hold.",
            indent=2,
        )
    if quick:
        say("Closed form only; without --quick, studies of this design are simulated.")
    elif report.tables[DESIGN].is_empty():
        say("From the run's tables only. `lpact power STUDY --run RUN` reads its recordings too.")


def in_order(effects: Iterable[Row]) -> list[Row]:
    """Rows in the order in which the decision looks at gates."""
    from lpact.analyses.lpact.calibration.truths import GATES

    methods = list(_METHODS)
    return sorted(
        effects,
        key=lambda row: (
            row["dataset"],
            row["gate_profile"],
            GATES.index(row["gate"]),
            methods.index(row["method"]),
        ),
    )


def verdicts(effects: list[Row]) -> list[str]:
    """One sentence per dataset and profile about level 1, by the most informative method."""
    level1 = [r for r in effects if r["gate"] == "predictive" and r["reason"] != "not_simulated"]
    chosen: dict[tuple[str, str], Row] = {}
    for row in sorted(level1, key=lambda row: list(_METHODS).index(row["method"]), reverse=True):
        chosen[row["dataset"], row["gate_profile"]] = row
    return [
        f"{dataset}, {profile}: {row['sentence']} ({_METHODS[row['method']]})"
        for (dataset, profile), row in sorted(chosen.items())
    ]


def _show_effects(effects: list[Row], target: float) -> None:
    heading(f"Smallest effects found with {target:.0%} power")
    numbers = ("contrast", "score", "ceiling", "snr")
    columns = ("dataset", "profile", "gate", "method", *numbers, "95 %", "passed")
    rows = [
        (
            row["dataset"],
            row["gate_profile"],
            row["gate"],
            row["method"],
            fixed(row["delta"]) if row["reason"] == "ok" else row["reason"],
            fixed(row["score"]),
            fixed(row["ceiling"]),
            fixed(row["snr"], 2),
            "" if row["snr"] is None else f"{row['snr_low']:.2g} to {row['snr_high']:.2g}",
            f"{row['n_passed']} of {row['n_trials']}" if row["n_trials"] else "",
        )
        for row in effects
    ]
    show_table(columns, rows, right=numbers)
    if any(row["alpha"] is None for row in effects):
        say("paper: point rules, which also pass by chance where there is no effect", indent=2)


def _show_layers(report: PowerReport, target: float) -> None:
    """Print every layer at the first gate that it fails, or as found."""
    keys = ("dataset", "model", "layer", "gate_profile")
    numbers = ("delta", "detectable_delta", "score", "detectable_score", "ceiling")
    rows, lines = [], []
    for place, own in report.tables[LAYERS].group_by(keys, maintain_order=True):
        row = telling_row(list(own.iter_rows(named=True)))
        *layer, profile = place
        name = "/".join(map(str, layer))
        cells = [fixed(row[number]) for number in numbers]
        rows.append((name, profile, VERDICTS[row["verdict"]], row["gate"], *cells))
        lines.append(f"{name}, {profile}: {row['sentence']}")
    heading(f"Layers, at {target:.0%} power")
    right = ("contrast", "needed", "score", "needed ", "ceiling")
    columns = ("layer", "profile", "verdict", "gate", *right)
    show_table(columns, rows, right=right, styles=_STYLES)
    say()
    for line in lines:
        say(line, indent=2)


def telling_row(rows: list[Row]) -> Row:
    """The first gate that a layer fails, in the order of the decision; if none, the last one."""
    from lpact.analyses.lpact.calibration.truths import GATES

    ordered = sorted(rows, key=lambda row: GATES.index(row["gate"]))
    return next((row for row in ordered if row["verdict"] != "found"), ordered[-1])


_DESIGN_COLUMNS = {
    "subject-runs": ("n_subject_runs", 0),
    "events": ("n_events", 0),
    "worth": ("n_effective_events", 0),
    "units": ("n_units", 0),
    "worth ": ("n_effective_units", 1),
    "rivals": ("n_rivals", 0),
    "responses": ("response_autocorrelation", 2),
    "features": ("feature_autocorrelation", 2),
    "ceiling": ("ceiling", 2),
}
"""Columns of the printed design: column of the table, and decimals."""


def _show_design(report: PowerReport) -> None:
    heading("Design")
    rows = [
        (row["dataset"], row["model"], *(fixed(row[c], d) for c, d in _DESIGN_COLUMNS.values()))
        for row in report.tables[DESIGN].iter_rows(named=True)
    ]
    show_table(("dataset", "model", *_DESIGN_COLUMNS), rows, right=_DESIGN_COLUMNS)
    say(
        "worth: as many independent events, or units; responses, features: correlation with the next event; ceiling: "
        "the largest score that a perfect model could expect",
        indent=2,
    )
