"""Detectable effects: the verdict first, then the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lpact.cli._layout import Grid
from lpact.cli._render import counted, heading, number, roughly, say, show

if TYPE_CHECKING:
    from rich.console import Console

    from lpact.analyses.lpact.calibration.power import Forecast, PowerReport

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
Row = dict[str, Any]


def told_forecast(out: Console, forecast: Forecast, workers: int) -> None:
    """Print what the remaining simulated studies will cost."""
    if not forecast.n_left:
        return
    seconds = forecast.seconds_each * forecast.n_left / workers
    say(
        out,
        f"{forecast.dataset}: {counted(forecast.n_left, 'more study', 'more studies')} to simulate, "
        f"{roughly(seconds)} with {counted(workers, 'process', 'processes')}; finished ones are kept; --quick "
        "skips them.",
    )


def show_power(out: Console, name: str, report: PowerReport, target: float, *, quick: bool) -> None:
    """Print the whole answer."""
    effects = in_order(report.tables[EFFECTS].iter_rows(named=True))
    for sentence in verdicts(effects):
        say(out, f"{name}: {sentence}")
    if report.after_run:
        _show_layers(out, report, target)
    _show_effects(out, effects, target)
    _show_design(out, report)
    for dataset, caps in report.caps.items():
        for cap in caps:
            say(out, f"simulated for {dataset}: {cap}", indent=2)
    if report.n_claims is not None and report.largest_p is not None:
        say(
            out,
            f"integrated, calibrated: a simulated study counts where p is at most {report.largest_p:.2g}, the false "
            f"discovery rate over {counted(report.n_claims, 'confirmatory claim')}. That is Bonferroni's bound: the "
            "study's own correction is less strict where several claims hold.",
            indent=2,
        )
    if quick:
        say(out, "Closed form only; without --quick, studies of this design are simulated.")
    elif report.tables[DESIGN].is_empty():
        say(
            out,
            "From the run's tables only: its recordings are not here. `lpact power STUDY --run RUN` reads them.",
        )


def in_order(effects: Iterable[Row]) -> list[Row]:
    """Rows in the order in which the decision looks at gates."""
    from lpact.analyses.lpact.calibration.truths import GATES

    def place(row: Row) -> tuple[object, ...]:
        method = list(_METHODS).index(row["method"])
        return row["dataset"], row["gate_profile"], GATES.index(row["gate"]), method

    return sorted(effects, key=place)


def verdicts(effects: list[Row]) -> list[str]:
    """One sentence per dataset and profile about level 1, by the most informative method."""
    chosen: dict[tuple[str, str], Row] = {}
    rank = list(_METHODS)
    for row in effects:
        place = (row["dataset"], row["gate_profile"])
        if row["gate"] != "predictive":
            continue
        if row["reason"] == "not_simulated":
            continue
        if place not in chosen or rank.index(row["method"]) < rank.index(chosen[place]["method"]):
            chosen[place] = row
    return [
        f"{row['dataset']}, {row['gate_profile']}: {row['sentence']} ({_METHODS[row['method']]})"
        for row in chosen.values()
    ]


def _show_effects(out: Console, effects: list[Row], target: float) -> None:
    heading(out, f"Smallest effects found with {target:.0%} power")
    columns = (
        "dataset",
        "profile",
        "gate",
        "method",
        "contrast",
        "score",
        "ceiling",
        "snr",
        "95 %",
    )
    grid = Grid((*columns, "passed"), right=frozenset({"contrast", "score", "ceiling", "snr"}))
    for row in effects:
        interval = "" if row["snr"] is None else f"{row['snr_low']:.2g} to {row['snr_high']:.2g}"
        grid.add(
            row["dataset"],
            row["gate_profile"],
            row["gate"],
            row["method"],
            number(row["delta"]) if row["reason"] == "ok" else row["reason"],
            number(row["score"]),
            number(row["ceiling"]),
            number(row["snr"], 2),
            interval,
            f"{row['n_passed']} of {row['n_trials']}" if row["n_trials"] else "",
        )
    show(out, grid)
    if any(row["alpha"] is None for row in effects):
        say(
            out,
            "paper: point rules, which also pass by chance where there is no effect",
            indent=2,
        )


def _show_layers(out: Console, report: PowerReport, target: float) -> None:
    """Print every layer at the first gate that it fails, or as found."""
    heading(out, f"Layers, at {target:.0%} power")
    grid = Grid(
        (
            "layer",
            "profile",
            "verdict",
            "gate",
            "contrast",
            "needed",
            "score",
            "needed ",
            "ceiling",
        ),
        right=frozenset({"contrast", "needed", "score", "needed ", "ceiling"}),
        styles=_STYLES,
    )
    lines = []
    keys = ("dataset", "model", "layer", "gate_profile")
    for place, rows in report.tables[LAYERS].group_by(keys, maintain_order=True):
        row = telling_row(list(rows.iter_rows(named=True)))
        dataset, model, layer, profile = place
        grid.add(
            f"{dataset}/{model}/{layer}",
            profile,
            VERDICTS[row["verdict"]],
            row["gate"],
            number(row["delta"]),
            number(row["detectable_delta"]),
            number(row["score"]),
            number(row["detectable_score"]),
            number(row["ceiling"]),
        )
        lines.append(f"{dataset}/{model}/{layer}, {profile}: {row['sentence']}")
    show(out, grid)
    out.print()
    for line in lines:
        say(out, line, indent=2)


def telling_row(rows: list[Row]) -> Row:
    """The first gate that a layer fails, in the order of the decision; where none, the last one."""
    from lpact.analyses.lpact.calibration.truths import GATES

    ordered = sorted(rows, key=lambda row: GATES.index(row["gate"]))
    return next((row for row in ordered if row["verdict"] != "found"), ordered[-1])


def _show_design(out: Console, report: PowerReport) -> None:
    rows = list(report.tables[DESIGN].iter_rows(named=True))
    if not rows:
        return
    heading(out, "Design")
    columns = ("dataset", "model", "subject-runs", "events", "worth", "units", "worth ", "rivals")
    more = ("responses", "features", "ceiling")
    grid = Grid((*columns, *more), right=frozenset({*columns[2:], *more}))
    for row in rows:
        grid.add(
            row["dataset"],
            row["model"],
            row["n_subject_runs"],
            number(row["n_events"], 0),
            number(row["n_effective_events"], 0),
            number(row["n_units"], 0),
            number(row["n_effective_units"], 1),
            row["n_rivals"],
            number(row["response_autocorrelation"], 2),
            number(row["feature_autocorrelation"], 2),
            number(row["ceiling"], 2),
        )
    show(out, grid)
    say(
        out,
        "worth: as many independent events, or units; responses, features: correlation with the next event; ceiling: "
        "the largest score that a perfect model could expect",
        indent=2,
    )
