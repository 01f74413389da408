"""Rates, biases and the shipped calibration, as text and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lpact.cli._layout import Grid
from lpact.cli._render import counted, heading, number, say, show

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from lpact.analyses.lpact.calibration.reference_run import Reference


QUANTITIES = {
    "best_of_many_controls": ("score minus best control", "score minus an equal control"),
    "reliability_under_drift": ("agreement of halves", "agreement of recordings"),
    "few_rows_localiser": ("correlation on these rows", "correlation in the long run"),
    "few_rows_localiser_units": ("units picked", "units that carry it"),
}
"""What a bias is about: the quantity that a point rule finds, and the true one."""


def show_rates(out: Console, truth_rates: pl.DataFrame, rates: pl.DataFrame) -> None:
    """Print false passes by truth, then power by truth and signal, with profiles side by side."""
    truth_rates, rates = _in_order(truth_rates), _in_order(rates)
    profiles = truth_rates["gate_profile"].unique().sort(descending=True).to_list()
    heading(out, "False passes: share of studies in which a gate passes that should not")
    false = truth_rates.filter(role="false_pass")
    grid = Grid(("truth", "gate", *profiles, "nominal", "studies"), right=frozenset({"studies"}))
    for (truth, gate), own in false.group_by("truth", "gate", maintain_order=True):
        alpha = own["alpha"].drop_nulls().max()
        nominal = f"{alpha:g}" if isinstance(alpha, float) else "–"
        grid.add(truth, gate, *_by_profile(own, profiles), nominal, own["n_studies"].max())
    show(out, grid)
    heading(out, "Power: share of studies in which a gate passes that should")
    power = rates.filter(role="power")
    grid = Grid(("truth", "snr", "gate", *profiles, "studies"), right=frozenset({"snr", "studies"}))
    for (truth, snr, gate), own in power.group_by("truth", "snr", "gate", maintain_order=True):
        n = own.filter(gate_profile=profiles[0])["n_studies"].sum()
        grid.add(truth, snr, gate, *_by_profile(own, profiles), n)
    show(out, grid)


def _in_order(rates: pl.DataFrame) -> pl.DataFrame:
    """Truths as they are listed, signals rising, gates in the order of the chain."""
    import polars as pl

    from lpact.analyses.lpact.calibration.truths import GATES, OTHERS, TRUTHS

    orders = {"truth": list(TRUTHS), "gate": [*GATES, *OTHERS]}
    keys = [pl.col(column).cast(pl.Enum(names)) for column, names in orders.items()]
    signal = ["snr"] if "snr" in rates.columns else []
    return rates.sort(keys[0], *signal, keys[1], maintain_order=True)


def _by_profile(rates: pl.DataFrame, profiles: list[str]) -> list[str]:
    """Rate and interval of each profile, the given rows taken together."""
    from lpact.stats import wilson_interval

    cells = []
    for profile in profiles:
        own = rates.filter(gate_profile=profile)
        n, k = int(own["n_studies"].sum()), int(own["n_passes"].sum())
        if n == 0:
            cells.append("–")
            continue
        low, high = wilson_interval(k, n)
        cells.append(f"{number(k / n)} ({number(low)}–{number(high)})")
    return cells


def show_biases(out: Console, biases: pl.DataFrame) -> None:
    """Print what point rules find and what is true, and explain the setting with the largest bias."""
    for (bias, setting), own in biases.group_by("bias", "setting", maintain_order=True):
        heading(out, str(bias).replace("_", " "))
        found, real = QUANTITIES[str(bias)]
        columns = (str(setting), f"found: {found}", f"true: {real}", "bias", "standard error")
        grid = Grid(columns, right=frozenset(columns))
        for row in own.iter_rows(named=True):
            numbers = (row[name] for name in ("apparent", "true", "bias_size", "standard_error"))
            grid.add(f"{row['value']:g}", *(number(value) for value in numbers))
        show(out, grid)
        worst = own.row(int(own["bias_size"].abs().arg_max() or 0), named=True)
        say(out, worst["meaning"], indent=2)


def show_reference(out: Console, reference: Reference) -> None:
    """Print the shipped calibration: what it is, its rates, its pace and its command."""
    meta: dict[str, Any] = reference.meta
    n_studies = counted(meta["n_studies"], "simulated study", "simulated studies")
    say(
        out,
        f"Reference calibration of lpact {meta['lpact_version']}: {n_studies} in {counted(meta['n_cells'], 'cell')}, "
        f"{meta['n_null_studies']:,} of them with nothing to find. Every study went through the real stages and "
        "rules; intervals are Wilson's, 95 %.",
    )
    if not reference.is_of_this_code:
        say(out, f"It was made by an earlier version of the code ({meta['numbers_code']}).")
    _show_promises(out, reference)
    show_rates(out, reference.truth_rates, reference.rates)
    show_biases(out, reference.biases)
    heading(out, "How it was made")
    pace = meta["pace"]["studies_per_minute_and_core"]
    say(out, f"{number(pace, 1)} studies per minute and core.", indent=2)
    say(out, "The same grid again:", indent=2)
    for command in meta["commands"]:
        say(out, command, indent=4)
    for effort in reference.efforts():
        say(
            out,
            f"Settings of a study that these commands do not take: {_in_words(effort)}.",
            indent=2,
        )


def _in_words(effort: dict[str, Any]) -> str:
    """What a study spends, in one line."""

    def shown(value: Any) -> str:
        if isinstance(value, list):
            return "/".join(map(shown, value))
        if isinstance(value, float):
            return f"{value:g}"
        return "default" if value is None else str(value)

    return ", ".join(f"{name} {shown(value)}" for name, value in effort.items())


def _show_promises(out: Console, reference: Reference) -> None:
    """Print what the calibrated profile promises, and whether it holds."""
    heading(out, "What the calibrated gates promise")
    for promise in reference.promises():
        say(out, f"{'kept' if promise.kept else 'NOT kept'}: {promise.sentence}", indent=2)
