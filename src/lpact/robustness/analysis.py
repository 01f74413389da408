"""All robustness analyses of a run: a pure function of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from lpact.config import GatesConfig
from lpact.decide import NEEDED
from lpact.errors import TableError, did_you_mean
from lpact.robustness.ablation import Ablation
from lpact.robustness.brain_as_model import read_brain_as_model
from lpact.robustness.conventional import conventional_contrast
from lpact.robustness.deciding import Decider
from lpact.robustness.intervals import DRAWS
from lpact.robustness.leave_out import (
    claimed_datasets,
    leave_one_dataset_out,
    leave_one_subject_run_out_decisions,
)
from lpact.robustness.models import model_summary
from lpact.robustness.quantities import level_quantities, mechanism_quantities
from lpact.robustness.thresholds import threshold_sensitivity
from lpact.robustness.uncertainty import (
    leave_one_subject_run_out,
    uncertainty_by_level,
    uncertainty_by_mechanism,
)
from lpact.tables import Table
from lpact.tables.assay_brain import BRAIN_AS_MODEL
from lpact.tables.audit import CONTROL_AVAILABILITY, MODEL_INVENTORY
from lpact.tables.ceilings import BRAIN_CEILING
from lpact.tables.robustness import (
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

READS: tuple[Table, ...] = (*NEEDED, BRAIN_CEILING, CONTROL_AVAILABILITY, MODEL_INVENTORY)
"""Tables that the analyses need."""
READS_IF_THERE: tuple[Table, ...] = (BRAIN_AS_MODEL,)
"""Tables whose rows are shown too, where a run has them."""


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
        The tables of `lpact.tables.robustness`, by full name, each sorted by its key.
    """
    _check(tables, bootstrap_draws)
    decider = Decider({t.name: tables[t.name] for t in READS}, gates, primary_metric, tell)
    brains = read_brain_as_model(tables)
    datasets = claimed_datasets(decider)
    quantities = level_quantities(decider)
    shown = [*quantities, *(brains.quantities() if brains is not None else [])]
    uncertainty = uncertainty_by_level(shown, datasets, seed=seed, draws=bootstrap_draws)
    ablation = Ablation(decider)
    return {
        CONVENTIONAL_CONTRAST.name: conventional_contrast(decider),
        UNCERTAINTY.name: uncertainty,
        CAUSAL_UNCERTAINTY.name: uncertainty_by_mechanism(
            mechanism_quantities(decider.base), seed=seed, draws=bootstrap_draws
        ),
        THRESHOLD_SENSITIVITY.name: threshold_sensitivity(decider, ablation, uncertainty, brains),
        CONTROL_ABLATION.name: ablation.table(),
        LEAVE_DATASET_OUT.name: leave_one_dataset_out(decider),
        LEAVE_SUBJECT_RUN_OUT.name: leave_one_subject_run_out(quantities, datasets),
        SUBJECT_RUN_DECISIONS.name: leave_one_subject_run_out_decisions(decider),
        MODEL_SUMMARY.name: model_summary(decider),
    }


def _check(tables: Mapping[str, pl.DataFrame], bootstrap_draws: int) -> None:
    for table in READS:
        if table.name not in tables:
            raise TableError(
                f"the robustness analyses need the table '{table.name}'",
                where="tables given to lpact.robustness.robustness",
                got=f"{len(tables)} other tables",
                expected=table.name,
                remedy=f"give all tables of a run; {did_you_mean(table.name, tables)}",
            )
    if bootstrap_draws < 1:
        raise TableError(
            "the number of bootstrap draws must be positive",
            where="lpact.robustness.robustness, argument 'bootstrap_draws'",
            got=bootstrap_draws,
            expected="1 or more",
            remedy=f"leave it out for {DRAWS}",
        )
