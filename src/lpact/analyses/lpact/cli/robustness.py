"""``lpact robustness``: what the verdicts of a run depend on, from its tables alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpact.cli._options import Json, RunFolder, refuse_existing, write_tables
from lpact.cli._terminal import console, heading, print_json, say, show_table
from lpact.wording import cell, counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from lpact.analyses.lpact.robustness import Sensitivity
    from lpact.study import Run

MOST_SHOWN = 8
"""Changes of one kind that are listed; the tables hold all."""


def command(
    run: RunFolder,
    out: Annotated[Path | None, typer.Option("--out", help="New folder for the tables.")] = None,
    as_json: Json = False,
) -> None:
    """Show what the verdicts of a finished run depend on."""
    import lpact
    from lpact.analyses.lpact.robustness import integrated_counts, sensitivities

    if out is not None:
        refuse_existing(out, run)
    tables = compute(lpact.open_run(run))
    if out is not None:
        write_tables(tables, out)
    counts, found = integrated_counts(tables), sensitivities(tables)
    if as_json:
        print_json(
            {
                "integrated": [
                    {"gate_profile": profile, "n_integrated": n, "n_claims": total}
                    for profile, (n, total) in counts.items()
                ],
                "findings": [{**asdict(one), "stable": one.stable} for one in found],
                "tables": {name: frame.to_dicts() for name, frame in tables.items()},
            }
        )
        return
    _show_verdict(counts, found)
    _show_tables(tables)
    if out is not None:
        heading(f"Wrote {counted(len(tables), 'table')} to {out}/")


def compute(run: Run) -> dict[str, pl.DataFrame]:
    """Robustness tables of a finished run; a line on the terminal shows the current step."""
    from lpact.analyses.lpact.config import LPactConfig
    from lpact.analyses.lpact.robustness import READS, READS_IF_THERE, robustness

    run.analysis("lpact")
    config = LPactConfig.of(run.config)
    stored = {table.name for table in run.tables()}
    reads = [*READS, *(table for table in READS_IF_THERE if table.name in stored)]
    with console(stderr=True).status("reading the tables") as status:
        return robustness(
            {table.name: run.table(table.name) for table in reads},
            gates=config.gates,
            primary_metric=config.readout.primary_metric,
            seed=config.seed,
            tell=status.update,
        )


def _show_verdict(counts: Mapping[str, tuple[int, int]], found: Sequence[Sensitivity]) -> None:
    """Print which changes alter the number of integrated claims or the outcome."""
    for profile, (n, total) in counts.items():
        mine = [one for one in found if one.gate_profile == profile]
        say(f"Gate profile {profile}: {n} of {counted(total, 'claim')} integrated.")
        if all(one.stable for one in mine):
            say("No single change alters that.", indent=2)
        rows = [(one.kind, one.tried, cell(len(one.changes) or "none")) for one in mine]
        show_table(("changed", "tried", "alter the result"), rows)
        for kind in mine:
            for change in kind.changes[:MOST_SHOWN]:
                say(change, indent=4)
            if len(kind.changes) > MOST_SHOWN:
                say(f"and {len(kind.changes) - MOST_SHOWN} more {kind.kind}", indent=4)
        say()


def _show_tables(tables: Mapping[str, pl.DataFrame]) -> None:
    """Print every table, in the columns that a reader compares."""
    from lpact.tables import find_table

    for name, shown in _SHOWN.items():
        table, columns = find_table(name), shown.split()
        heading(name)
        say(table.meaning, indent=2)
        show_table(columns, tables[table.name].select(columns).iter_rows())


_UNCERTAINTY = "n_units mean ci_low ci_high positive_rate"
_SHOWN = {
    "main_table_conventional_vs_lpact_contrast": "analysis gate_profile counted n_positive n_total n_lpact_pass "
    "n_claims_pass n_claims",
    "main_table_lpact_uncertainty_by_dataset_level": f"dataset level {_UNCERTAINTY} best_control reason",
    "si_table_causal_uncertainty_by_mechanism": f"dataset mechanism quantity {_UNCERTAINTY} reason",
    "main_table_gate_threshold_sensitivity": "family rule gate_profile configured n_pass n_eligible",
    "main_table_control_family_ablation": "scenario stage gate_profile rule n_positive n_rows n_stage_pass "
    "median_delta n_integrated reason",
    "main_table_leave_one_dataset_out_summary": "omitted gate_profile n_claims n_predictive n_relational n_mechanism "
    "n_ceiling n_integrated n_control_explained outcome",
    "main_table_leave_one_subject_run_out_summary": "dataset level n_units full_mean leave_one_min leave_one_max "
    "sign_flip positive_rate reason",
    "leave_one_subject_run_out_decisions": "dataset subject session run gate_profile n_integrated n_gained n_lost",
    "model_inventory_summary": "model source layers datasets n_claims status",
}
"""Printed columns of every table."""
