"""``lpact power``: could this design have found it?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._options import Json, Models, Paths, Progress, load_asking, n_cores, refuse_existing, write_tables
from lpact.cli._terminal import heading, print_json, say, show_table
from lpact.wording import about, counted, fixed

if TYPE_CHECKING:
    from lpact.analyses.lpact.calibration.power import PowerReport
    from lpact.analyses.lpact.calibration.run_trials import Forecast

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
    run: Annotated[Path | None, typer.Option("--run", help="Finished run of the study: layer by layer.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Closed form only: nothing is simulated.")] = False,
    target: Annotated[float, typer.Option("--target", help="Target power.")] = 0.8,
    trials: Annotated[int, typer.Option("--trials", min=2, help="Simulated studies at each strength.")] = 4,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; default: cores.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="New folder for the tables.")] = None,
    as_json: Json = False,
    progress: Progress = None,
    path: Paths = None,
    model: Models = None,
) -> None:
    """Show which effects the study's design could detect."""
    from lpact.analyses.lpact.calibration.power import FOLDER, Settings, assess_power
    from lpact.analyses.lpact.config import LPactConfig
    from lpact.config import RunConfig
    from lpact.datasets.base import DATASETS
    from lpact.run.progress import reporter
    from lpact.study import Run

    n_workers, kept = workers or n_cores(), Path(FOLDER)
    settings = Settings(target=target, quick=quick, trials=trials, workers=n_workers, kept=kept)
    if out is not None:
        refuse_existing(out, run or study)
    run_config: RunConfig | None
    if (study / "manifest.json").is_file():
        opened: Run | None = (finished := Run(study))
        finished.analysis("lpact")
        config, show = LPactConfig.of(finished.config), progress is not False
        # From its sources if they need no folder, else from its tables.
        needs_path = any(DATASETS.get(own.reader).needs_path for own in config.datasets)
        run_config = None if needs_path else RunConfig()
    else:
        loaded = load_asking("lpact", study, path, model)
        config, run_config = LPactConfig.of(loaded.config), loaded.run_config
        # Finished simulated studies are kept next to the study file, as grids are.
        settings = replace(settings, kept=Path(run_config.grids).parent / FOLDER)
        opened = None if run is None else Run(run)
        show = run_config.progress if progress is None else progress

    def show_forecast(forecast: Forecast) -> None:
        """Standard output is for the answer; the forecast goes to standard error."""
        if forecast.n_left:
            left = f"{forecast.name}: {counted(forecast.n_left, 'more study')} to simulate"
            time = about(forecast.seconds_each * forecast.n_left / n_workers)
            kept = "finished ones are kept; --quick skips them"
            say(f"{left}, {time} with {counted(n_workers, 'process')}; {kept}.", stderr=True)

    with reporter(show=show) as bar:
        report = assess_power(config, run_config, settings, run=opened, reporter=bar, show_forecast=show_forecast)
    if out is not None:
        write_tables(report.tables, out)
    if as_json:
        print_json(
            {
                "study": config.name,
                "target_power": target,
                "simulated_instead": {dataset: list(own) for dataset, own in report.caps.items()},
                "n_claims": report.n_claims,
                "largest_p": report.largest_p,
                **{table.split("/")[1]: rows.to_dicts() for table, rows in report.tables.items()},
            }
        )
    else:
        _show_power(config.name, report, target, quick=quick)


def _show_power(name: str, report: PowerReport, target: float, *, quick: bool) -> None:
    """Print the verdicts first, then the numbers behind them."""
    from lpact.analyses.lpact.calibration.trial import GATES

    def order(row: Row) -> tuple[Any, ...]:
        gate, method = GATES.index(row["gate"]), list(_METHODS).index(row["method"])
        return row["dataset"], row["gate_profile"], gate, method

    effects = sorted(report.tables[EFFECTS].iter_rows(named=True), key=order)
    level1: dict[tuple[str, str], Row] = {}
    for row in effects:
        if row["gate"] == "predictive" and row["reason"] != "not_simulated":
            level1.setdefault((row["dataset"], row["gate_profile"]), row)
    for (dataset, profile), row in level1.items():
        method = _METHODS[row["method"]]
        say(f"{name}: {dataset}, {profile}: {row['sentence']} ({method})")
    if not report.tables[LAYERS].is_empty():
        _show_layers(report, target)
    _show_effects(effects, target)
    if not report.tables[DESIGN].is_empty():
        _show_design(report)
    for dataset, caps in report.caps.items():
        for cap in caps:
            say(f"simulated for {dataset}: {cap}", indent=2)
    if report.n_claims is not None and report.largest_p is not None:
        claims = counted(report.n_claims, "confirmatory claim")
        say(
            f"integrated, calibrated: a simulated study counts where p is at most {report.largest_p:.2g}, the false "
            f"discovery rate over {claims} (Bonferroni's bound).",
            indent=2,
        )
    if quick:
        say("Closed form only; without --quick, studies of this design are simulated.")
    elif report.tables[DESIGN].is_empty():
        say("From the run's tables only. `lpact power STUDY --run RUN` reads its recordings too.")


def _show_effects(effects: list[Row], target: float) -> None:
    heading(f"Smallest effects found with {target:.0%} power")
    numbers = ("contrast", "score", "ceiling", "snr")
    columns = ("dataset", "profile", "gate", "method", *numbers, "95 %", "passed")
    rows = []
    for row in effects:
        place = (row[name] for name in ("dataset", "gate_profile", "gate", "method"))
        contrast = fixed(row["delta"]) if row["reason"] == "ok" else row["reason"]
        cells = (contrast, fixed(row["score"]), fixed(row["ceiling"]), fixed(row["snr"], 2))
        interval = "" if row["snr"] is None else f"{row['snr_low']:.2g} to {row['snr_high']:.2g}"
        passed = f"{row['n_passed']} of {row['n_trials']}" if row["n_trials"] else ""
        rows.append((*place, *cells, interval, passed))
    show_table(columns, rows, right=numbers)
    if any(row["alpha"] is None for row in effects):
        say("paper: point rules, which also pass by chance where there is no effect", indent=2)


def _show_layers(report: PowerReport, target: float) -> None:
    """Print every layer at the first gate that it fails, or as found."""
    from lpact.analyses.lpact.calibration.trial import GATES

    keys = ("dataset", "model", "layer", "gate_profile")
    numbers = ("delta", "detectable_delta", "score", "detectable_score", "ceiling")
    rows, lines = [], []
    for place, own in report.tables[LAYERS].group_by(keys, maintain_order=True):
        gates = sorted(own.iter_rows(named=True), key=lambda row: GATES.index(row["gate"]))
        row = next((row for row in gates if row["verdict"] != "found"), gates[-1])
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
        "worth: effective number of independent events or units; responses, features: correlation with the next event; "
        "ceiling: the highest score that a perfect model could expect",
        indent=2,
    )
