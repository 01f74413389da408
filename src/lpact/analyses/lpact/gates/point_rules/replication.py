"""Gate Rep.

Rep ⇔ at least min_subject_runs subject-runs have a level-1 contrast,
      and both deltas are positive in at least direction_fraction of them
"""

from __future__ import annotations

from collections.abc import Sequence

from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates._frames import Layer, Row
from lpact.analyses.lpact.gates.criteria import Criterion, CriterionName, GateEvidence
from lpact.analyses.lpact.gates.wording import count, percent
from lpact.codes import Gate


def replication_gate(
    summaries: dict[Layer, Row], layers: Sequence[Layer], gates: GatesConfig
) -> dict[Layer, GateEvidence]:
    """Evaluate Rep for every layer from the level-1 summaries."""
    return {layer: _evidence(summaries.get(layer), gates) for layer in layers}


def _evidence(row: Row | None, gates: GatesConfig) -> GateEvidence:
    n, n_positive = (row["n"], row["n_positive"]) if row else (0, 0)
    counted = count(n, "subject-run")
    verb = "has" if n == 1 else "have"
    return GateEvidence(
        Gate.REPLICATION,
        (
            Criterion(
                CriterionName.N_SUBJECT_RUNS,
                float(n),
                ">=",
                float(gates.min_subject_runs),
                n,
                "",
                f"{counted} {verb} a finite level-1 contrast; {gates.min_subject_runs} are needed.",
                counted,
            ),
            Criterion(
                CriterionName.POSITIVE_DIRECTION,
                n_positive / n if n else None,
                ">=",
                gates.direction_fraction,
                n,
                "",
                f"Both contrasts are positive in {n_positive} of {counted}; "
                f"{percent(gates.direction_fraction)} are needed.",
                f"{n_positive} of {counted}",
            ),
        ),
    )
