"""``lpact calibrate``: how often gates pass in error, and how often they find a true effect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._options import Json, n_cores
from lpact.cli._terminal import heading, print_json, say, show_table
from lpact.errors import ConfigError
from lpact.wording import MISSING, about, counted, duration, fixed

if TYPE_CHECKING:
    import polars as pl

    from lpact.analyses.lpact.calibration.output import Reference
    from lpact.analyses.lpact.calibration.run_trials import Forecast, Settings

QUANTITIES = {
    "best_of_many_controls": ("score minus best control", "score minus an equal control"),
    "reliability_under_drift": ("agreement of halves", "agreement of recordings"),
    "few_rows_localiser": ("correlation on these rows", "correlation in the long run"),
    "few_rows_localiser_units": ("units picked", "units that carry it"),
}
"""What a bias is about: the quantity that a point rule finds, and the true one."""


def _axis(option: str, meaning: str, **limits: Any) -> Any:
    """An option of the grid; each of its values is a place on one axis."""
    return typer.Option(option, help=f"{meaning}; may be repeated.", **limits)


def command(
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Output folder; an existing calibration is resumed."),
    ] = None,
    reference: Annotated[bool, typer.Option("--reference", help="Show the calibration that ships with lpact.")] = False,
    biases: Annotated[bool, typer.Option("--biases", help="Measure biases of single rules; takes seconds.")] = False,
    trials: Annotated[int | None, typer.Option("--trials", min=1, help="Studies per cell; default: 20.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; default: cores.")] = None,
    truth: Annotated[list[str] | None, _axis("--truth", "Known truth; default: all")] = None,
    snr: Annotated[list[float] | None, _axis("--snr", "Signal-to-noise ratio", min=0)] = None,
    events: Annotated[list[int] | None, _axis("--events", "Words per run", min=100)] = None,
    subjects: Annotated[list[int] | None, _axis("--subjects", "Subjects", min=1)] = None,
    units: Annotated[list[int] | None, _axis("--units", "Units per recording", min=4)] = None,
    autocorrelation: Annotated[list[float] | None, _axis("--autocorrelation", "Of the noise at 100 Hz", min=0)] = None,
    one_at_a_time: Annotated[
        bool,
        typer.Option(
            "--one-at-a-time",
            help="Vary one option at a time; keep the others at their first values.",
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Number of the first study of every cell; default: 0."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure error rates and power on simulated studies."""
    from lpact.analyses.lpact.calibration.biases import measure_biases
    from lpact.analyses.lpact.calibration.output import load_reference
    from lpact.analyses.lpact.calibration.run_trials import OPTIONS, Settings

    given: dict[str, Any] = {
        "truths": truth,
        "snr": snr,
        "n_events": events,
        "n_subjects": subjects,
        "n_units": units,
        "noise_autocorrelation": autocorrelation,
    }
    unused = {OPTIONS[axis]: values for axis, values in given.items()}
    unused |= {"--trials": trials, "--workers": workers, "--one-at-a-time": one_at_a_time or None}
    unused["--seed"] = seed if reference else None
    ignored = [option for option, value in unused.items() if value is not None and out is None]
    tasks = {"--out": out is not None, "--reference": reference, "--biases": biases}
    chosen = [option for option, wanted in tasks.items() if wanted]
    if len(chosen) != 1 or ignored:
        raise ConfigError(
            f"{', '.join(ignored)} cannot be used with {chosen[0]}"
            if len(chosen) == 1
            else "exactly one of --out, --reference and --biases is needed",
            where="lpact calibrate",
            got=" ".join([*chosen, *ignored]) or "none of them",
            expected="--reference, --biases (with --seed), or --out FOLDER with settings",
            remedy="use --reference for the calibration that ships with lpact, or --out FOLDER to simulate",
        )
    if out is not None:
        axes: dict[str, Any] = {axis: tuple(values) for axis, values in given.items() if values}
        if trials is not None:
            axes["n_trials"] = trials
        settings = Settings(first_trial=seed or 0, one_at_a_time=one_at_a_time, **axes)
        _simulate(out, settings, workers or n_cores(), as_json=as_json)
    elif reference:
        shipped = load_reference()
        print_json(shipped.as_json()) if as_json else show_reference(shipped)
    else:
        found = measure_biases(seed or 0)
        print_json({"biases": found.to_dicts()}) if as_json else show_biases(found)


def _simulate(out: Path, settings: Settings, workers: int, *, as_json: bool) -> None:
    from lpact.analyses.lpact.calibration.output import KEPT, check_folder, write_calibration
    from lpact.analyses.lpact.calibration.run_trials import run_grid
    from lpact.analyses.lpact.tables.calibration import RATES, TRUTH_RATES
    from lpact.run.progress import reporter
    from lpact.store import FolderLock

    check_folder(out)
    cells = settings.cells()
    if not as_json:
        each = counted(settings.n_trials, "study")
        n_studies = len(cells) * settings.n_trials
        say(f"{counted(len(cells), 'cell')}, {each} each: {n_studies:,} in all.")

    def show_forecast(left: Forecast) -> None:
        if as_json:
            return
        kept = f"{counted(left.n_kept, 'study')} kept from before; " if left.n_kept else ""
        seconds = left.n_left * left.seconds_each / max(1, min(workers, left.n_left))
        cost = f"{counted(left.n_left, 'more study')} with {counted(workers, 'worker')}"
        more = f"one took {left.seconds_each:.1f} s; {cost}: {about(seconds)}."
        say(kept + (more if left.n_left else "nothing is left to do."))

    lock = FolderLock(out / KEPT, busy="another process is making this calibration")
    try:
        with reporter(show=not as_json) as bar:
            table, pace = run_grid(
                cells,
                trials=settings.trials(),
                kept=out / KEPT,
                effort=settings.effort,
                workers=workers,
                reporter=bar,
                show_forecast=show_forecast,
            )
        tables = write_calibration(out, table, settings, pace)
    finally:
        lock.release()
    truth_rates, rates = tables[TRUTH_RATES.name], tables[RATES.name]
    if as_json:
        print_json(
            {
                "command": settings.command(str(out)),
                "studies_per_minute_and_core": pace.studies_per_minute,
                "truth_rates": truth_rates.to_dicts(),
                "rates": rates.to_dicts(),
            }
        )
        return
    show_rates(truth_rates, rates)
    heading("Where everything is")
    say(f"{out}/calibration/ holds the tables, {out}/report/ the figures.", indent=2)
    took = f"{counted(pace.n_studies, 'study')} took {duration(pace.seconds)} of one core"
    say(f"{took}: {pace.studies_per_minute:.1f} studies per minute and core.", indent=2)


def show_rates(truth_rates: pl.DataFrame, rates: pl.DataFrame) -> None:
    """Print false passes by truth, then power by truth and signal, with profiles side by side."""
    truth_rates, rates = _in_order(truth_rates), _in_order(rates)
    profiles = truth_rates["gate_profile"].unique().sort(descending=True).to_list()
    rows: list[tuple[Any, ...]] = []
    false = truth_rates.filter(role="false_pass")
    for (truth, gate), own in false.group_by("truth", "gate", maintain_order=True):
        alpha = own["alpha"].drop_nulls().max()
        nominal = f"{alpha:g}" if isinstance(alpha, float) else MISSING
        rows.append((truth, gate, *_by_profile(own, profiles), nominal, own["n_studies"].max()))
    heading("False passes: share of studies in which a gate passes that should not")
    show_table(("truth", "gate", *profiles, "nominal", "studies"), rows)
    rows = []
    power = rates.filter(role="power")
    for (truth, snr, gate), own in power.group_by("truth", "snr", "gate", maintain_order=True):
        n = own.filter(gate_profile=profiles[0])["n_studies"].sum()
        rows.append((truth, snr, gate, *_by_profile(own, profiles), n))
    heading("Power: share of studies in which a gate passes that should")
    show_table(("truth", "snr", "gate", *profiles, "studies"), rows)


def _in_order(rates: pl.DataFrame) -> pl.DataFrame:
    """Truths as they are listed, signals rising, gates in the order of the chain."""
    import polars as pl

    from lpact.analyses.lpact.calibration.trial import GATES, OTHERS, TRUTHS

    truth = pl.col("truth").cast(pl.Enum(list(TRUTHS)))
    gate = pl.col("gate").cast(pl.Enum([*GATES, *OTHERS]))
    signal = ["snr"] if "snr" in rates.columns else []
    return rates.sort(truth, *signal, gate, maintain_order=True)


def _by_profile(rates: pl.DataFrame, profiles: list[str]) -> list[str | None]:
    """Rate and interval of each profile, over all given rows."""
    from lpact.stats import wilson_interval

    cells: list[str | None] = []
    for profile in profiles:
        own = rates.filter(gate_profile=profile)
        n, k = int(own["n_studies"].sum()), int(own["n_passes"].sum())
        low, high = wilson_interval(k, n) if n else (0.0, 0.0)
        cells.append(f"{fixed(k / n)} ({fixed(low)}–{fixed(high)})" if n else None)
    return cells


def show_biases(biases: pl.DataFrame) -> None:
    """Print what point rules find and what is true, and explain the setting with the largest bias."""
    for (bias, setting), own in biases.group_by("bias", "setting", maintain_order=True):
        found, real = QUANTITIES[str(bias)]
        columns = (str(setting), f"found: {found}", f"true: {real}", "bias", "standard error")
        numbers = own.select("apparent", "true", "bias_size", "standard_error").iter_rows()
        pairs = zip(own["value"], numbers, strict=True)
        heading(str(bias).replace("_", " "))
        rows = [(f"{value:g}", *map(fixed, row)) for value, row in pairs]
        show_table(columns, rows, right=columns)
        worst = own.row(int(own["bias_size"].abs().arg_max() or 0), named=True)
        say(worst["meaning"], indent=2)


def show_reference(reference: Reference) -> None:
    """Print the shipped calibration: what it is, its rates, its pace and its command; JSON has all settings."""
    meta: dict[str, Any] = reference.meta
    n_studies = counted(meta["n_studies"], "simulated study")
    say(
        f"Reference calibration of lpact {meta['lpact_version']}: {n_studies} in {counted(meta['n_cells'], 'cell')}, "
        f"{meta['n_null_studies']:,} of them with nothing to find. Every study went through the real stages and "
        "rules; intervals are Wilson's, 95 %."
    )
    if not reference.is_of_this_code:
        say(f"It was made by an earlier version of the code ({meta['numbers_code']}).")
    heading("What the calibrated gates promise")
    for promise in reference.promises():
        say(f"{'kept' if promise.kept else 'NOT kept'}: {promise.sentence}", indent=2)
    show_rates(reference.truth_rates, reference.rates)
    show_biases(reference.biases)
    heading("How it was made")
    pace = meta["pace"]["studies_per_minute_and_core"]
    say(f"{pace:.1f} studies per minute and core.\nThe same grid again:", indent=2)
    for command in meta["commands"]:
        say(command, indent=4)
