"""Brains in a model's place, where the run has them: their contrasts and how many summaries pass."""

from __future__ import annotations

import polars as pl

from lpact.analyses.lpact.robustness.decided import Tables
from lpact.analyses.lpact.robustness.quantities import Quantity
from lpact.analyses.lpact.tables.assay import BRAIN_AS_MODEL
from lpact.codes import Reason

PASS_FRACTIONS = (0.5, 0.6, 0.7)
_SUMMARY = ("dataset", "comparison", "alignment", "profile")
_PAIR = ("source", "target")
_OK = pl.col("reason") == Reason.OK.value


class BrainAsModel:
    """Rows of the brain-as-model positive control."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self._rows = rows.sort(BRAIN_AS_MODEL.key).with_columns(value=pl.when(_OK).then("delta"))

    def quantities(self) -> list[Quantity]:
        """The contrast with shuffled unit orders, one for each kind of pair; pairs are the aggregation units."""
        return [
            Quantity(
                f"brain_as_model_{comparison}",
                rows.select(
                    "dataset",
                    *_PAIR,
                    "value",
                    passed=pl.col("gate_pass"),
                    best_control=pl.lit(None, pl.String),
                ),
                _PAIR,
            )
            for (comparison,), rows in self._rows.group_by(["comparison"], maintain_order=True)
        ]

    def passing(self, fraction: float) -> tuple[int, int]:
        """Summaries with a positive mean contrast whose share of passing rows reaches ``fraction``, and all of them.

        Means run over the units of a pair first, then over pairs; rows without a contrast do not enter.
        """
        known = self._rows.drop_nulls("value")
        shares = known.group_by(_SUMMARY, maintain_order=True).agg(share=pl.col("gate_pass").mean())
        means = (
            known.group_by(*_SUMMARY, *_PAIR, maintain_order=True)
            .agg(pl.col("value").mean())
            .group_by(_SUMMARY, maintain_order=True)
            .agg(pl.col("value").mean())
        )
        both = shares.join(means, on=_SUMMARY)
        passes = both.filter((pl.col("share") >= fraction) & (pl.col("value") > 0))
        return passes.height, both.height


def read_brain_as_model(tables: Tables) -> BrainAsModel | None:
    """The positive control of a run that made it, and found pairs."""
    rows = tables.get(BRAIN_AS_MODEL.name)
    return BrainAsModel(rows) if rows is not None and rows.height else None
