"""All robustness analyses of a run: a pure function of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates import NEEDED, decide
from lpact.analyses.lpact.robustness.ablation import Ablation
from lpact.analyses.lpact.robustness.brain_as_model import BrainAsModel, read_brain_as_model
from lpact.analyses.lpact.robustness.conventional import conventional_contrast
from lpact.analyses.lpact.robustness.decided import DECIDED, DecidedRun
from lpact.analyses.lpact.robustness.deciding import Decider
from lpact.analyses.lpact.robustness.intervals import DRAWS
from lpact.analyses.lpact.robustness.leave_out import (
    claimed_datasets,
    leave_one_dataset_out,
    leave_one_subject_run_out_decisions,
)
from lpact.analyses.lpact.robustness.models import model_summary
from lpact.analyses.lpact.robustness.quantities import level_quantities, mechanism_quantities
from lpact.analyses.lpact.robustness.thresholds import threshold_sensitivity
from lpact.analyses.lpact.robustness.uncertainty import (
    leave_one_subject_run_out,
    uncertainty_by_level,
    uncertainty_by_mechanism,
)
from lpact.analyses.lpact.tables.assay import BRAIN_AS_MODEL
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY, MODEL_INVENTORY
from lpact.analyses.lpact.tables.levels import BRAIN_CEILING
from lpact.analyses.lpact.tables.robustness import (
    CAUSAL_UNCERTAINTY,
    CONTROL_ABLATION,
    CONVENTIONAL_CONTRAST,
    LEAVE_DATASET_OUT,
    LEAVE_SUBJECT_RUN_OUT,
    MODEL_SUMMARY,
    SUBJECT_RUN_DECISIONS,
    THRESHOLD_SENSITIVITY,
    UNCERTAINTY,
)
from lpact.errors import TableError, did_you_mean
from lpact.store import validate
from lpact.tables import Table

READS: tuple[Table, ...] = (*NEEDED, BRAIN_CEILING, CONTROL_AVAILABILITY, MODEL_INVENTORY)
"""Tables that the analyses need."""
READS_DECIDED: tuple[Table, ...] = (*DECIDED, CONTROL_AVAILABILITY, MODEL_INVENTORY)
"""Tables that `uncertainty_tables` needs of a run that is decided."""
READS_IF_THERE: tuple[Table, ...] = (BRAIN_AS_MODEL,)
"""Tables whose rows are shown too, where a run has them."""

_MAKES: tuple[Table, ...] = (
    CONVENTIONAL_CONTRAST,
    UNCERTAINTY,
    CAUSAL_UNCERTAINTY,
    THRESHOLD_SENSITIVITY,
    CONTROL_ABLATION,
    LEAVE_DATASET_OUT,
    LEAVE_SUBJECT_RUN_OUT,
    SUBJECT_RUN_DECISIONS,
    MODEL_SUMMARY,
)


def robustness(
    tables: Mapping[str, pl.DataFrame],
    *,
    gates: GatesConfig,
    primary_metric: str,
    seed: int,
    bootstrap_draws: int = DRAWS,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, pl.DataFrame]:
    """What the verdicts of a run hang on; nothing is fitted again.

    Parameters
    ----------
    tables
        Tables of the run by full name: those of `READS`, and of `READS_IF_THERE` where it has them.
    gates, primary_metric
        As the run was decided.
    seed
        Study seed; the bootstrap draws of a row follow from it and the row's key.
    bootstrap_draws
        Resamples of an interval.
    tell
        Called with what is being done, for those who wait.

    Returns
    -------
    dict
        The tables of `lpact.analyses.lpact.tables.robustness`, by full name, each sorted by its key.
    """
    _check(tables, READS, bootstrap_draws)
    decider = Decider({t.name: tables[t.name] for t in READS}, gates, primary_metric, tell)
    brains = read_brain_as_model(tables)
    made = _of_decision(decider, brains, seed, bootstrap_draws)
    ablation = Ablation(decider)
    made |= {
        THRESHOLD_SENSITIVITY.name: threshold_sensitivity(
            decider, ablation, made[UNCERTAINTY.name], brains
        ),
        CONTROL_ABLATION.name: ablation.table(),
        LEAVE_DATASET_OUT.name: leave_one_dataset_out(decider),
        SUBJECT_RUN_DECISIONS.name: leave_one_subject_run_out_decisions(decider),
    }
    return {table.name: made[table.name] for table in _MAKES}


def uncertainty_tables(
    tables: Mapping[str, pl.DataFrame],
    *,
    gates: GatesConfig,
    primary_metric: str,
    seed: int,
    bootstrap_draws: int = DRAWS,
    as_decided: bool = False,
) -> dict[str, pl.DataFrame]:
    """The robustness tables that need the run's own decision and no other: `robustness` without what takes long.

    Parameters
    ----------
    tables, gates, primary_metric, seed, bootstrap_draws
        As for `robustness`.
    as_decided
        Take the labels, gates and claims that the tables hold, as the run stored them, in place of deciding here.
        The tables of `READS_DECIDED` are needed then, and no others. They must have been decided with ``gates``.

    Returns
    -------
    dict
        By full name: what weaker rules call positive, intervals by level and by mechanism, means without each
        subject-run, and the models. Each is equal to that of `robustness`.
    """
    reads = READS_DECIDED if as_decided else READS
    _check(tables, reads, bootstrap_draws)
    mine = {table.name: tables[table.name] for table in reads}
    if as_decided:
        base = {table.name: validate(mine[table.name], table) for table in DECIDED}
        run = DecidedRun(mine, base, gates, primary_metric)
    else:
        run = DecidedRun(
            mine, decide(mine, gates=gates, primary_metric=primary_metric), gates, primary_metric
        )
    return _of_decision(run, read_brain_as_model(tables), seed, bootstrap_draws)


def _of_decision(
    run: DecidedRun, brains: BrainAsModel | None, seed: int, draws: int
) -> dict[str, pl.DataFrame]:
    """Tables that decide nothing again."""
    datasets = claimed_datasets(run)
    quantities = level_quantities(run)
    shown = [*quantities, *(brains.quantities() if brains is not None else [])]
    return {
        CONVENTIONAL_CONTRAST.name: conventional_contrast(run),
        UNCERTAINTY.name: uncertainty_by_level(shown, datasets, seed=seed, draws=draws),
        CAUSAL_UNCERTAINTY.name: uncertainty_by_mechanism(
            mechanism_quantities(run.base), seed=seed, draws=draws
        ),
        LEAVE_SUBJECT_RUN_OUT.name: leave_one_subject_run_out(quantities, datasets),
        MODEL_SUMMARY.name: model_summary(run),
    }


def _check(
    tables: Mapping[str, pl.DataFrame], reads: Sequence[Table], bootstrap_draws: int
) -> None:
    for table in reads:
        if table.name not in tables:
            raise TableError(
                f"the robustness analyses need the table '{table.name}'",
                where="tables given to lpact.analyses.lpact.robustness.robustness",
                got=f"{len(tables)} other tables",
                expected=table.name,
                remedy=f"give all tables of a run; {did_you_mean(table.name, tables)}",
            )
    if bootstrap_draws < 1:
        raise TableError(
            "the number of bootstrap draws must be positive",
            where="lpact.analyses.lpact.robustness.robustness, argument 'bootstrap_draws'",
            got=bootstrap_draws,
            expected="1 or more",
            remedy=f"leave it out for {DRAWS}",
        )
