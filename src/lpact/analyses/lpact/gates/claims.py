"""Which claims a study makes, and what its audit says about their datasets."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from lpact.analyses.lpact.gates._frames import LAYER_KEY, Claim, Layer
from lpact.analyses.lpact.tables.audit import EVIDENCE_FEASIBILITY
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS
from lpact.codes import Reason
from lpact.errors import TableError

NO_MECHANISM = "none"
"""Mechanism of the claims of a study in which nothing was stripped."""

_EXPLANATIONS = {reason.value: reason.explanation for reason in Reason}


@dataclass(frozen=True)
class Standing:
    """What the source audit says about a dataset."""

    role: str
    confirmatory: bool
    chain_complete: bool
    why_not: str
    """Code of the reason why the dataset is not confirmatory."""
    sentence: str


def list_layers(control_deltas: pl.DataFrame) -> list[Layer]:
    """Every (dataset, model, layer) with a level-1 row, sorted."""
    return control_deltas.select(LAYER_KEY).unique().sort(LAYER_KEY).rows()


def list_claims(layers: list[Layer], specificity: pl.DataFrame) -> list[Claim]:
    """Every layer with every mechanism that the study strips anywhere, sorted."""
    mechanisms = specificity["stripped"].unique().sort().to_list() or [NO_MECHANISM]
    return [(*layer, mechanism) for layer in layers for mechanism in mechanisms]


def read_standings(feasibility: pl.DataFrame, layers: list[Layer]) -> dict[str, Standing]:
    """Return the standing of every dataset; a claim about a dataset that was not audited is an error."""
    standings = {row["dataset"]: _standing(row) for row in feasibility.iter_rows(named=True)}
    for dataset, _, _ in layers:
        if dataset not in standings:
            raise TableError(
                f"the dataset '{dataset}' was not audited",
                where=f"table '{EVIDENCE_FEASIBILITY.name}'",
                got=", ".join(sorted(standings)) or "no dataset",
                expected=f"a row for every dataset of '{CONTROL_DELTAS.name}'",
                remedy="run the source audit for the whole study, then decide",
            )
    return standings


def _standing(row: dict[str, object]) -> Standing:
    role, why_not = str(row["role"]), str(row["role_reason"])
    confirmatory = bool(row["confirmatory"])
    if confirmatory:
        sentence = f"The dataset is confirmatory (role {role})."
    else:
        explanation = _EXPLANATIONS.get(why_not, why_not)
        lowered = f"{explanation[:1].lower()}{explanation[1:]}"
        detail = str(row["role_detail"] or lowered).rstrip(".")
        sentence = f"The dataset is not confirmatory (role {role}: {detail})."
    return Standing(role, confirmatory, bool(row["chain_complete"]), why_not, sentence)
