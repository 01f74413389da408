"""``lpact robustness``: what the verdicts of a run depend on, from its tables alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpact.cli._layout import Grid
from lpact.cli._output import refuse_existing, write_tables
from lpact.cli._render import console, counted, heading, number, say, show, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from rich.console import Console

    from lpact.analyses.lpact.robustness import Finding
    from lpact.study import Run

MOST_SHOWN = 8
"""Changes of one kind that are listed; the tables hold all."""


def command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path | None, typer.Option("--out", help="New folder for the tables.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print verdict and tables as JSON.")
    ] = False,
) -> None:
    """Show what the verdicts of a finished run depend on."""
    import lpact
    from lpact.analyses.lpact.robustness import findings, integrated_counts

    if out is not None:
        refuse_existing(out, run)
    opened = lpact.open_run(run)
    tables = compute(opened)
    if out is not None:
        write_tables(tables, out, what="the robustness tables")
    if as_json:
        typer.echo(_as_json(tables))
        return
    told = console()
    show_verdict(told, integrated_counts(tables), findings(tables))
    show_tables(told, tables)
    if out is not None:
        heading(told, f"Wrote {counted(len(tables), 'table')} to {out}/")


def compute(run: Run) -> dict[str, pl.DataFrame]:
    """Robustness tables of a finished run; a line on the terminal shows the current step."""
    from rich.console import Console

    from lpact.analyses.lpact.config import LPactConfig
    from lpact.analyses.lpact.robustness import READS, READS_IF_THERE, robustness

    run.analysis("lpact")
    config = LPactConfig.of(run.config)
    stored = {table.name for table in run.tables()}
    reads = [*READS, *(table for table in READS_IF_THERE if table.name in stored)]
    with Console(stderr=True, markup=False).status("reading the tables") as status:
        return robustness(
            {table.name: run.table(table.name) for table in reads},
            gates=config.gates,
            primary_metric=config.readout.primary_metric,
            seed=config.seed,
            tell=status.update,
        )


def show_verdict(
    out: Console, counts: Mapping[str, tuple[int, int]], found: Sequence[Finding]
) -> None:
    """Print which changes alter the number of integrated claims or the outcome."""
    for profile, (n, total) in counts.items():
        mine = [finding for finding in found if finding.gate_profile == profile]
        shaky = [finding.kind for finding in mine if not finding.stable]
        say(out, f"Gate profile {profile}: {n} of {counted(total, 'claim')} integrated.")
        if not shaky:
            say(out, "No single change alters that.", indent=2)
        grid = Grid(("changed", "tried", "alter the result"), right=frozenset({"tried"}))
        for finding in mine:
            grid.add(finding.kind, finding.tried, len(finding.changes) or "none")
        show(out, grid)
        for finding in mine:
            for change in finding.changes[:MOST_SHOWN]:
                say(out, change, indent=4)
            if len(finding.changes) > MOST_SHOWN:
                rest = len(finding.changes) - MOST_SHOWN
                say(out, f"and {rest} more {finding.kind}", indent=4)
        say(out)


def show_tables(out: Console, tables: Mapping[str, pl.DataFrame]) -> None:
    """Print every table, in the columns that a reader compares."""
    from lpact.tables import find_table

    for name, columns in _SHOWN.items():
        table, frame = find_table(name), tables[find_table(name).name]
        heading(out, name)
        say(out, table.meaning, indent=2)
        numbers = {c.name for c in table.columns if c.dtype in ("int", "float")}
        grid = Grid(columns, right=frozenset(numbers & set(columns)))
        for row in frame.select(columns).iter_rows():
            grid.add(*map(_cell, row))
        show(out, grid)


_SHOWN: dict[str, tuple[str, ...]] = {
    "main_table_conventional_vs_lpact_contrast": (
        "analysis",
        "gate_profile",
        "counted",
        "n_positive",
        "n_total",
        "n_lpact_pass",
        "n_claims_pass",
        "n_claims",
    ),
    "main_table_lpact_uncertainty_by_dataset_level": (
        "dataset",
        "level",
        "n_units",
        "mean",
        "ci_low",
        "ci_high",
        "positive_rate",
        "best_control",
        "reason",
    ),
    "si_table_causal_uncertainty_by_mechanism": (
        "dataset",
        "mechanism",
        "quantity",
        "n_units",
        "mean",
        "ci_low",
        "ci_high",
        "positive_rate",
        "reason",
    ),
    "main_table_gate_threshold_sensitivity": (
        "family",
        "rule",
        "gate_profile",
        "configured",
        "n_pass",
        "n_eligible",
    ),
    "main_table_control_family_ablation": (
        "scenario",
        "stage",
        "gate_profile",
        "rule",
        "n_positive",
        "n_rows",
        "n_stage_pass",
        "median_delta",
        "n_integrated",
        "reason",
    ),
    "main_table_leave_one_dataset_out_summary": (
        "omitted",
        "gate_profile",
        "n_claims",
        "n_predictive",
        "n_relational",
        "n_mechanism",
        "n_ceiling",
        "n_integrated",
        "n_control_explained",
        "outcome",
    ),
    "main_table_leave_one_subject_run_out_summary": (
        "dataset",
        "level",
        "n_units",
        "full_mean",
        "leave_one_min",
        "leave_one_max",
        "sign_flip",
        "positive_rate",
        "reason",
    ),
    "leave_one_subject_run_out_decisions": (
        "dataset",
        "subject",
        "session",
        "run",
        "gate_profile",
        "n_integrated",
        "n_gained",
        "n_lost",
    ),
    "model_inventory_summary": ("model", "source", "layers", "datasets", "n_claims", "status"),
}


def _cell(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return whole(value)
        case float() | None:
            return number(value)
        case list():
            return ", ".join(str(item) for item in value) or "–"
    return str(value)


def _as_json(tables: Mapping[str, pl.DataFrame]) -> str:
    import json
    from dataclasses import asdict

    from lpact.analyses.lpact.robustness import findings, integrated_counts

    counts = [
        {"gate_profile": profile, "n_integrated": n, "n_claims": total}
        for profile, (n, total) in integrated_counts(tables).items()
    ]
    found = [{**asdict(finding), "stable": finding.stable} for finding in findings(tables)]
    rows = {name: frame.to_dicts() for name, frame in tables.items()}
    document = {"integrated": counts, "findings": found, "tables": rows}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
