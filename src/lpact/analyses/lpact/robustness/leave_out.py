"""The study decided again without one dataset, or without one subject-run."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.robustness.decided import DecidedRun
from lpact.analyses.lpact.robustness.deciding import Decider
from lpact.analyses.lpact.tables.decisions import STUDY_OUTCOME
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS
from lpact.analyses.lpact.tables.robustness import LEAVE_DATASET_OUT, SUBJECT_RUN_DECISIONS
from lpact.codes import FinalLabel
from lpact.store import frame, validate
from lpact.tables import RECORDING_KEY

_GATES = {
    "n_predictive": "predictive",
    "n_relational": "relational",
    "n_mechanism": "mechanism_specific",
    "n_ceiling": "ceiling",
    "n_severe_control": "severe_control",
    "n_replication": "replication",
    "n_integrated": "integrated",
}


def leave_one_dataset_out(decider: Decider) -> pl.DataFrame:
    """Gates passed and outcome of the study without each dataset that claims are made about.

    All rows of the dataset are taken out and the rest is decided anew, so that corrections over the claims of a study,
    where a gate profile has them, are made over those that are left.
    """
    datasets = claimed_datasets(decider)
    whole = _outcomes(decider.base[STUDY_OUTCOME.name])
    rows = []
    for omitted in datasets:
        decider.tell(f"deciding without {omitted}")
        decided, outcome = decider.without_dataset(omitted)
        outcomes = _outcomes(outcome)
        for profile in decider.profiles:
            claims = decided.filter(gate_profile=profile)
            explained = claims["label"] == FinalLabel.CONTROL_EXPLAINED.value
            rows.append(
                {
                    "omitted": omitted,
                    "gate_profile": profile,
                    "remaining": [name for name in datasets if name != omitted],
                    "n_claims": claims.height,
                    **{name: int(claims[gate].sum()) for name, gate in _GATES.items()},
                    "n_control_explained": int(explained.sum()),
                    "outcome": outcomes[profile],
                    "outcome_of_run": whole[profile],
                }
            )
    return validate(frame(LEAVE_DATASET_OUT, rows), LEAVE_DATASET_OUT)


def leave_one_subject_run_out_decisions(decider: Decider) -> pl.DataFrame:
    """Integrated claims without each subject-run.

    Reliabilities of the subject-runs that stay were measured with the one that goes among their partners; they are kept
    as stored.
    """
    runs = decider.tables[CONTROL_DELTAS.name].select(RECORDING_KEY).unique().sort(RECORDING_KEY)
    rows = []
    for number, recording in enumerate(runs.iter_rows(), start=1):
        decider.tell(f"deciding without subject-run {number} of {runs.height}")
        place = dict(zip(RECORDING_KEY, recording, strict=True))
        rows += [
            {**place, "gate_profile": profile, **counts}
            for profile, counts in decider.counts_without(recording).items()
        ]
    return validate(frame(SUBJECT_RUN_DECISIONS, rows), SUBJECT_RUN_DECISIONS)


def claimed_datasets(run: DecidedRun) -> list[str]:
    """Datasets with claims, sorted."""
    return run.decisions["dataset"].unique().sort().to_list()


def _outcomes(table: pl.DataFrame) -> dict[str, str]:
    return dict(table.select("gate_profile", "outcome").iter_rows())
