"""``lpact calibrate``: how often gates pass in error, and how often they find a true effect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.analyses.lpact.cli._calibration import show_biases, show_rates, show_reference
from lpact.cli._machine import n_cores
from lpact.cli._render import console, counted, duration, heading, number, roughly, say
from lpact.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.analyses.lpact.calibration.settings import Settings
    from lpact.analyses.lpact.calibration.study import Forecast, Pace


def command(
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the calibration; new, or to continue.")
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Show the calibration that ships with lpact.")
    ] = False,
    biases: Annotated[
        bool, typer.Option("--biases", help="Measure biases of single rules; takes seconds.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option("--trials", min=1, help="Studies per cell; default: 20.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; default: cores.")
    ] = None,
    truth: Annotated[
        list[str] | None,
        typer.Option("--truth", help="Known truth; may be repeated. Default: all."),
    ] = None,
    snr: Annotated[
        list[float] | None,
        typer.Option("--snr", min=0, help="Signal-to-noise ratio; may be repeated."),
    ] = None,
    events: Annotated[
        list[int] | None, typer.Option("--events", min=100, help="Words per run; may be repeated.")
    ] = None,
    subjects: Annotated[
        list[int] | None, typer.Option("--subjects", min=1, help="Subjects; may be repeated.")
    ] = None,
    units: Annotated[
        list[int] | None,
        typer.Option("--units", min=4, help="Units per recording; may be repeated."),
    ] = None,
    autocorrelation: Annotated[
        list[float] | None,
        typer.Option("--autocorrelation", min=0, help="Of the noise at 100 Hz; may be repeated."),
    ] = None,
    one_at_a_time: Annotated[
        bool,
        typer.Option(
            "--one-at-a-time",
            help="First values are the base; others depart from it one at a time.",
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Number of the first study of every cell; default: 0."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Measure error rates and power on simulated studies."""
    told = console()
    _one_task(out, reference=reference, biases=biases)
    axes: dict[str, Any] = {
        "truths": truth,
        "snr": snr,
        "n_events": events,
        "n_subjects": subjects,
        "n_units": units,
        "noise_autocorrelation": autocorrelation,
    }
    if out is None:
        from lpact.analyses.lpact.calibration.settings import OPTIONS

        given = {OPTIONS[axis]: values for axis, values in axes.items()} | {
            "--trials": trials,
            "--workers": workers,
            "--one-at-a-time": one_at_a_time or None,
            "--seed": seed if reference else None,
        }
        _refuse_unread(given, "--reference" if reference else "--biases")
    if reference:
        _show_reference(told, as_json=as_json)
    elif biases:
        _show_biases(told, seed or 0, as_json=as_json)
    else:
        assert out is not None
        settings = _settings(axes, trials, seed or 0, one_at_a_time=one_at_a_time)
        _simulate(told, out, settings, workers or n_cores(), as_json=as_json)


def _refuse_unread(given: dict[str, Any], asked: str) -> None:
    """Refuse options that the command would ignore."""
    unread = [option for option, value in given.items() if value is not None]
    if unread:
        raise ConfigError(
            f"{', '.join(unread)} cannot be used with {asked}",
            where="lpact calibrate",
            got=f"{asked} {' '.join(unread)}",
            expected=f"{asked} with {'--seed and --json' if asked == '--biases' else '--json'} at most",
            remedy=f"leave {'it' if len(unread) == 1 else 'them'} out, or type --out FOLDER to simulate",
        )


def _one_task(out: Path | None, *, reference: bool, biases: bool) -> None:
    """Refuse none, and more than one, of the three tasks."""
    if sum((out is not None, reference, biases)) != 1:
        raise ConfigError(
            "exactly one of --out, --reference and --biases is needed",
            where="lpact calibrate",
            got="none, or more than one, of --out, --reference and --biases",
            expected="one of them",
            remedy="type --reference for what ships with lpact, or --out FOLDER to simulate",
        )


def _settings(
    given: dict[str, Any], trials: int | None, seed: int, *, one_at_a_time: bool
) -> Settings:
    from lpact.analyses.lpact.calibration.settings import Settings

    axes: dict[str, Any] = {axis: tuple(values) for axis, values in given.items() if values}
    if trials is not None:
        axes["n_trials"] = trials
    return Settings(first_trial=seed, one_at_a_time=one_at_a_time, **axes)


def _simulate(told: Console, out: Path, settings: Settings, workers: int, *, as_json: bool) -> None:
    from lpact.analyses.lpact.calibration.output import KEPT, check_folder, write_calibration
    from lpact.analyses.lpact.calibration.study import run_grid
    from lpact.analyses.lpact.tables.calibration import RATES, TRUTH_RATES
    from lpact.run.progress import reporter
    from lpact.store import FolderLock

    check_folder(out)
    cells = settings.cells()
    n_studies = len(cells) * settings.n_trials
    if not as_json:
        n_each = counted(settings.n_trials, "study", "studies")
        say(told, f"{counted(len(cells), 'cell')}, {n_each} each: {n_studies:,} in all.")

    def forecast(left: Forecast) -> None:
        if not as_json:
            say(told, _cost(left, workers))

    lock = FolderLock(out / KEPT, busy="another process is making this calibration")
    try:
        with reporter(show=not as_json) as shown:
            table, pace = run_grid(
                cells,
                trials=settings.trials(),
                kept=out / KEPT,
                effort=settings.effort,
                workers=workers,
                reporter=shown,
                told=forecast,
            )
        tables = write_calibration(out, table, settings, pace)
    finally:
        lock.release()
    if as_json:
        _print_json(
            {
                "command": settings.command(str(out)),
                "studies_per_minute_and_core": pace.studies_per_minute,
                "truth_rates": tables[TRUTH_RATES.name].to_dicts(),
                "rates": tables[RATES.name].to_dicts(),
            }
        )
        return
    show_rates(told, tables[TRUTH_RATES.name], tables[RATES.name])
    _show_places(told, out, pace)


def _cost(left: Forecast, workers: int) -> str:
    kept = f"{counted(left.n_kept, 'study', 'studies')} kept from before; " if left.n_kept else ""
    if not left.n_left:
        return f"{kept}nothing else is left."
    seconds = left.n_left * left.seconds_a_study / min(workers, left.n_left)
    return (
        f"{kept}one took {number(left.seconds_a_study, 1)} s; {counted(left.n_left, 'more study', 'more studies')} "
        f"with {counted(workers, 'worker')}: {roughly(seconds)}."
    )


def _show_places(told: Console, out: Path, pace: Pace) -> None:
    heading(told, "Where everything is")
    say(told, f"{out}/calibration/ holds the tables, {out}/report/ the pictures.", indent=2)
    say(
        told,
        f"{counted(pace.n_studies, 'study', 'studies')} took {duration(pace.seconds)} of one core: "
        f"{number(pace.studies_per_minute, 1)} studies per minute and core.",
        indent=2,
    )


def _show_reference(told: Console, *, as_json: bool) -> None:
    from lpact.analyses.lpact.calibration.reference_run import load_reference

    reference = load_reference()
    if as_json:
        _print_json(reference.as_json())
    else:
        show_reference(told, reference)


def _show_biases(told: Console, seed: int, *, as_json: bool) -> None:
    from lpact.analyses.lpact.calibration.biases import measure_biases

    found = measure_biases(seed)
    if as_json:
        _print_json({"biases": found.to_dicts()})
    else:
        show_biases(told, found)


def _print_json(values: dict[str, Any]) -> None:
    typer.echo(json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False))
