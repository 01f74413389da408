"""What the verdicts of a run depend on, from its stored tables alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import polars as pl

from lpact.analyses.lpact.config import GatesConfig, LPactConfig
from lpact.analyses.lpact.gates import NEEDED
from lpact.analyses.lpact.gates.claims import list_claims, list_layers
from lpact.analyses.lpact.robustness.changes import (
    DIRECTIONS,
    FRACTIONS,
    RELIABILITIES,
    leave_one_dataset_out,
    leave_one_subject_run_out_decisions,
    threshold_sensitivity,
)
from lpact.analyses.lpact.robustness.controls import Ablation, control_names
from lpact.analyses.lpact.robustness.deciding import DECIDED, DecidedRun, Decider
from lpact.analyses.lpact.robustness.summaries import (
    Finding,
    conventional_contrast,
    findings,
    integrated_counts,
    model_summary,
)
from lpact.analyses.lpact.robustness.uncertainty import (
    BrainAsModel,
    leave_one_subject_run_out,
    level_quantities,
    mechanism_quantities,
    read_brain_as_model,
    uncertainty_by_level,
    uncertainty_by_mechanism,
)
from lpact.analyses.lpact.tables.assay import BRAIN_AS_MODEL
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY, MODEL_INVENTORY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING, CONTROL_DELTAS, SPECIFICITY
from lpact.analyses.lpact.tables.robustness import (
    CAUSAL_UNCERTAINTY,
    CONTROL_ABLATION,
    CONVENTIONAL_CONTRAST,
    LEAVE_DATASET_OUT,
    LEAVE_SUBJECT_RUN_OUT,
    MODEL_SUMMARY,
    SUBJECT_RUN_DECISIONS,
    TABLES,
    THRESHOLD_SENSITIVITY,
    UNCERTAINTY,
)
from lpact.errors import TableError, did_you_mean
from lpact.store import validate
from lpact.tables import RECORDING_KEY, Table

__all__ = [
    "READS",
    "READS_DECIDED",
    "READS_IF_THERE",
    "Finding",
    "findings",
    "integrated_counts",
    "n_claim_decisions",
    "robustness",
    "tables_for_report",
    "uncertainty_tables",
]

READS: tuple[Table, ...] = (*NEEDED, BRAIN_CEILING, CONTROL_AVAILABILITY, MODEL_INVENTORY)
"""Tables that `robustness` needs."""
READS_DECIDED: tuple[Table, ...] = (*DECIDED, CONTROL_AVAILABILITY, MODEL_INVENTORY)
"""Tables that `uncertainty_tables` needs."""
READS_IF_THERE: tuple[Table, ...] = (BRAIN_AS_MODEL,)
"""Tables that are used if a run has them."""
MAX_CLAIM_DECISIONS = 20_000
"""Claims that a report decides again at most; a thousand take about a second."""
_OTHER_CHOICES = 3
"""Choices of controls beside leaving one out: the other rule, temporal ones only, nuisance only."""


def robustness(
    tables: Mapping[str, pl.DataFrame],
    *,
    gates: GatesConfig,
    primary_metric: str,
    seed: int,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, pl.DataFrame]:
    """What the verdicts of a run depend on; nothing is fitted again.

    ``tables`` are those of `READS`, and of `READS_IF_THERE` if the run has them; ``gates``, ``primary_metric`` and
    ``seed`` are the run's. Returns the tables of `lpact.analyses.lpact.tables.robustness` by full name. ``tell`` is
    called with the name of each step.
    """
    decider = Decider(_needed(tables, READS), gates, primary_metric, tell)
    brains = read_brain_as_model(tables)
    made = _of_decision(decider, brains, seed)
    ablation = Ablation(decider)
    made |= {
        THRESHOLD_SENSITIVITY.name: threshold_sensitivity(
            decider, ablation, made[UNCERTAINTY.name], brains
        ),
        CONTROL_ABLATION.name: ablation.table(),
        LEAVE_DATASET_OUT.name: leave_one_dataset_out(decider),
        SUBJECT_RUN_DECISIONS.name: leave_one_subject_run_out_decisions(decider),
    }
    return {table.name: made[table.name] for table in TABLES}


def uncertainty_tables(
    tables: Mapping[str, pl.DataFrame], *, gates: GatesConfig, primary_metric: str, seed: int
) -> dict[str, pl.DataFrame]:
    """The tables of `robustness` that need no other decision than the run's own, which is taken as stored.

    ``tables`` are those of `READS_DECIDED`, and of `READS_IF_THERE` if the run has them. Returns, by full name: what
    weaker rules call positive, intervals by level and by mechanism, means without each subject-run, and the models.
    """
    mine = _needed(tables, READS_DECIDED)
    base = {table.name: validate(mine[table.name], table) for table in DECIDED}
    run = DecidedRun(mine, base, gates, primary_metric)
    return _of_decision(run, read_brain_as_model(tables), seed)


def _of_decision(
    run: DecidedRun, brains: BrainAsModel | None, seed: int
) -> dict[str, pl.DataFrame]:
    """Tables that decide nothing again."""
    quantities = level_quantities(run)
    shown = [*quantities, *(brains.quantities() if brains is not None else [])]
    mechanisms = mechanism_quantities(run.base)
    return {
        CONVENTIONAL_CONTRAST.name: conventional_contrast(run),
        UNCERTAINTY.name: uncertainty_by_level(shown, run.datasets, seed=seed),
        CAUSAL_UNCERTAINTY.name: uncertainty_by_mechanism(mechanisms, seed=seed),
        LEAVE_SUBJECT_RUN_OUT.name: leave_one_subject_run_out(quantities, run.datasets),
        MODEL_SUMMARY.name: model_summary(run),
    }


def _needed(tables: Mapping[str, pl.DataFrame], reads: Iterable[Table]) -> dict[str, pl.DataFrame]:
    for table in reads:
        if table.name not in tables:
            raise TableError(
                f"the robustness analyses need the table '{table.name}'",
                where="tables of the run",
                got=f"{len(tables)} other tables",
                expected=table.name,
                remedy=f"pass all tables of a run; {did_you_mean(table.name, tables)}",
            )
    return {table.name: tables[table.name] for table in reads}


def n_claim_decisions(tables: Mapping[str, pl.DataFrame]) -> int:
    """Claims that `robustness` decides again at most, over thresholds, controls and subject-runs.

    A subject-run affects the claims of its dataset alone. Leaving a dataset out evaluates no gate again.
    """
    deltas = tables[CONTROL_DELTAS.name]
    claims = list_claims(list_layers(deltas), tables[SPECIFICITY.name])
    n_controls = len({name for names in control_names(tables).values() for name in names})
    n_thresholds = len(RELIABILITIES) + len(FRACTIONS) + len(DIRECTIONS)
    runs = deltas.select(RECORDING_KEY).unique()["dataset"].to_list()
    everywhere = n_thresholds + n_controls + _OTHER_CHOICES
    return sum(everywhere + runs.count(claim[0]) for claim in claims)


def tables_for_report(
    config: LPactConfig, tables: Mapping[str, pl.DataFrame], tell: Callable[[str], None]
) -> dict[str, pl.DataFrame]:
    """Uncertainty of the verdicts; and, unless that takes minutes, the verdicts under other thresholds and data."""
    again = n_claim_decisions(tables) <= MAX_CLAIM_DECISIONS
    reads = [*(READS if again else READS_DECIDED), *READS_IF_THERE]
    read = {table.name: tables[table.name] for table in reads if table.name in tables}
    metric, seed = config.readout.primary_metric, config.seed
    if again:
        return robustness(read, gates=config.gates, primary_metric=metric, seed=seed, tell=tell)
    return uncertainty_tables(read, gates=config.gates, primary_metric=metric, seed=seed)
