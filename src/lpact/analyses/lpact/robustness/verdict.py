"""What the outcome hangs on, in plain words: which single change would alter a count of integrated claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from lpact.analyses.lpact.robustness.thresholds import INTEGRATED
from lpact.analyses.lpact.tables.robustness import (
    CONTROL_ABLATION,
    CONVENTIONAL_CONTRAST,
    LEAVE_DATASET_OUT,
    SUBJECT_RUN_DECISIONS,
    THRESHOLD_SENSITIVITY,
)

Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Finding:
    """One kind of change under one gate profile.

    ``changes`` holds, for every change that alters something, what was changed and what became of it; ``tried`` counts
    all changes of the kind.
    """

    gate_profile: str
    kind: str
    tried: int
    changes: tuple[str, ...]

    @property
    def stable(self) -> bool:
        """Whether none of the changes alters anything."""
        return not self.changes


def integrated_counts(tables: Tables) -> dict[str, tuple[int, int]]:
    """Integrated claims and all claims of the run, by gate profile."""
    rows = tables[CONVENTIONAL_CONTRAST.name].filter(analysis="integrated_decision")
    counts = rows.select("gate_profile", "n_claims_pass", "n_claims")
    return {profile: (n, total) for profile, n, total in counts.iter_rows()}


def findings(tables: Tables) -> list[Finding]:
    """Thresholds, controls, datasets and subject-runs, for every gate profile."""
    found = []
    for profile, (n, total) in integrated_counts(tables).items():
        mine = {name: t.filter(gate_profile=profile) for name, t in tables.items() if _has(t)}
        found += [
            _thresholds(profile, mine[THRESHOLD_SENSITIVITY.name], n, total),
            _controls(profile, mine[CONTROL_ABLATION.name]),
            _datasets(profile, mine[LEAVE_DATASET_OUT.name]),
            _subject_runs(profile, mine[SUBJECT_RUN_DECISIONS.name]),
        ]
    return found


def _has(table: pl.DataFrame) -> bool:
    return "gate_profile" in table.columns


def _thresholds(profile: str, rows: pl.DataFrame, n: int, total: int) -> Finding:
    claims = rows.filter(pl.col("family").str.starts_with(INTEGRATED) & ~pl.col("configured"))
    changes = [
        f"{row['family'].removeprefix(INTEGRATED)} {row['rule']}: {row['n_pass']} of {total} "
        f"integrated instead of {n}"
        for row in claims.iter_rows(named=True)
        if row["n_pass"] != n
    ]
    return Finding(profile, "thresholds and rules", claims.height, tuple(changes))


def _moved(row: Mapping[str, int]) -> str:
    return f"{row['n_integrated']} of {row['n_claims']} integrated (+{row['n_gained']}, -{row['n_lost']})"


def _controls(profile: str, rows: pl.DataFrame) -> Finding:
    # One decision a choice of controls, shown once for each stage.
    choices = rows.unique("scenario", keep="first", maintain_order=True)
    changes = [
        f"{row['scenario']}: {_moved(row)}"
        for row in choices.iter_rows(named=True)
        if row["n_gained"] or row["n_lost"]
    ]
    return Finding(profile, "choices of controls", choices.height, tuple(changes))


def _datasets(profile: str, rows: pl.DataFrame) -> Finding:
    # A study of one dataset has no outcome without it.
    rows = rows.filter(pl.col("remaining").list.len() > 0)
    changes = [
        f"without {row['omitted']}: outcome {row['outcome']} instead of {row['outcome_of_run']}"
        for row in rows.iter_rows(named=True)
        if row["outcome"] != row["outcome_of_run"]
    ]
    return Finding(profile, "omitted datasets (outcome)", rows.height, tuple(changes))


def _subject_runs(profile: str, rows: pl.DataFrame) -> Finding:
    changes = []
    for row in rows.iter_rows(named=True):
        if row["n_gained"] or row["n_lost"]:
            place = "/".join(row[k] for k in ("dataset", "subject", "session", "run"))
            short = row["n_lost_coverage"]
            why = f"; {short} for too few subject-runs" if short else ""
            changes.append(f"without {place}: {_moved(row)}{why}")
    return Finding(profile, "omitted subject-runs", rows.height, tuple(changes))
