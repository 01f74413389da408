"""The oracle check: a brain in a model's place, through the relational gate and the ceiling together.

The ceiling is the split-half reliability within the recordings: the comparison itself is the next stricter mode, and
cannot bound itself. No readout is fitted and nothing can be stripped, so that the other gates do not apply.
"""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.assays.base import of_role
from lpact.analyses.lpact.assays.reliability import most_frequent_reason
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.gates.wording import words
from lpact.analyses.lpact.tables.assay import BRAIN_AS_MODEL_SUMMARY, BRAIN_ORACLE
from lpact.codes import Reason
from lpact.store import frame, validate


def check(summaries: pl.DataFrame, gates: GatesConfig) -> pl.DataFrame:
    """One row per dataset and comparison, from the summaries of `lpact.analyses.lpact.assays.brain_as_model`."""
    table = validate(summaries, BRAIN_AS_MODEL_SUMMARY)
    bounded = pl.col("ceiling") >= gates.min_reliability
    near = pl.col("mean_similarity") >= gates.min_ceiling_fraction * pl.col("ceiling")
    table = table.with_columns(ceiling_valid=(bounded & near).fill_null(False))
    rows = []
    for (dataset, role, comparison), part in table.group_by(
        "dataset", "role", "comparison", maintain_order=True
    ):
        done = part.filter(pl.col("reason") == Reason.OK.value)
        n_joint = done.filter("gate_pass", "ceiling_valid").height
        passed = bool(done.height) and n_joint / done.height > gates.summary_majority
        reason = Reason.OK if done.height else most_frequent_reason(part["reason"])
        what = f"a brain in a model's place, {words(str(comparison))}"
        if reason is not Reason.OK:
            sentence = f"{what}: not available. {reason.explanation}"
        else:
            verb = "passes" if passed else "does not pass"
            sentence = (
                f"{what}, {verb} the relational gate and the ceiling together: "
                f"{n_joint} of {done.height} summaries do."
            )
        rows.append(
            {
                "dataset": dataset,
                "role": role,
                "comparison": comparison,
                "n_summaries": done.height,
                "n_relational_pass": done.filter("gate_pass").height,
                "n_ceiling_valid": done.filter("ceiling_valid").height,
                "n_joint_pass": n_joint,
                "predictive_gate_applicable": False,
                "mechanism_gate_applicable": False,
                "gate_pass": passed,
                "interpretation": of_role(str(role)) + sentence,
                "reason": reason.value,
            }
        )
    return validate(frame(BRAIN_ORACLE, rows), BRAIN_ORACLE)
