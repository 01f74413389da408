"""A run as it was decided: what the analyses that decide nothing again are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import (
    CONTROL_DELTAS,
    DISSOCIATIONS,
    NORMALIZED_SCORES,
    PROFILE_DELTAS,
    SPECIFICITY,
    STRIPPING_DELTAS,
)
from lpact.tables import Table

Tables = Mapping[str, pl.DataFrame]

DECIDED: tuple[Table, ...] = (
    CONTROL_DELTAS,
    PROFILE_DELTAS,
    STRIPPING_DELTAS,
    SPECIFICITY,
    DISSOCIATIONS,
    NORMALIZED_SCORES,
    DECISIONS,
)
"""Tables of a decision that are read: rows of all levels with their labels, and the claims."""


@dataclass
class DecidedRun:
    """Tables of a run in ``tables``, those with decided columns in ``base``, and what it was decided with."""

    tables: Tables
    base: Tables
    gates: GatesConfig
    primary_metric: str

    @property
    def decisions(self) -> pl.DataFrame:
        """The decision table of the run."""
        return self.base[DECISIONS.name]

    @property
    def profiles(self) -> list[str]:
        """Gate profiles, sorted."""
        return self.decisions["gate_profile"].unique().sort().to_list()
