"""How much work the robustness analyses of a run are, before any is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from lpact.analyses.lpact.gates.claims import list_claims, list_layers
from lpact.analyses.lpact.robustness.best_control import control_names
from lpact.analyses.lpact.robustness.thresholds import DIRECTIONS, FRACTIONS, RELIABILITIES
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS, PROFILE_SCORES, SPECIFICITY
from lpact.tables import RECORDING_KEY

_OTHER_CHOICES = 3
"""Choices of controls beside leaving one out: the other rule, temporal ones only, nuisance only."""


@dataclass(frozen=True)
class RobustnessCost:
    """Upper bounds: layers that a change cannot touch, or that level 1 stops, are not looked at again.

    Attributes
    ----------
    n_claims
        Claims of the run, under one gate profile.
    n_changes
        Thresholds, choices of controls, datasets and subject-runs; each is a decision of its own.
    n_claim_decisions
        Claims over all these decisions. A subject-run touches those of its dataset alone.
    n_rows
        Level-2 scores, of which there are most, over all these decisions.
    """

    n_claims: int
    n_changes: int
    n_claim_decisions: int
    n_rows: int


def robustness_cost(tables: Mapping[str, pl.DataFrame]) -> RobustnessCost:
    """Count what `lpact.analyses.lpact.robustness.robustness` would decide again, from the tables that it reads."""
    deltas = tables[CONTROL_DELTAS.name]
    claims = pl.Series([claim[0] for claim in _claims(tables)], dtype=pl.String)
    n_claims = _counts(claims)
    n_rows = _counts(tables[PROFILE_SCORES.name]["dataset"])
    n_runs = _counts(deltas.select(RECORDING_KEY).unique()["dataset"])
    n_controls = len({name for names in control_names(tables).values() for name in names})
    everywhere = len(RELIABILITIES) + len(FRACTIONS) + len(DIRECTIONS) + n_controls + _OTHER_CHOICES
    # Leaving a dataset out evaluates no gate again.
    rounds = {name: everywhere + n for name, n in n_runs.items()}
    return RobustnessCost(
        n_claims=len(claims),
        n_changes=everywhere + len(n_runs) + sum(n_runs.values()),
        n_claim_decisions=sum(n * n_claims[name] for name, n in rounds.items()),
        n_rows=sum(n * n_rows.get(name, 0) for name, n in rounds.items()),
    )


def _claims(tables: Mapping[str, pl.DataFrame]) -> list[tuple[str, str, int, str]]:
    return list_claims(list_layers(tables[CONTROL_DELTAS.name]), tables[SPECIFICITY.name])


def _counts(names: pl.Series) -> dict[str, int]:
    return dict(names.value_counts().iter_rows())
