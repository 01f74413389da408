"""How often each rival is the strongest one, and whether the real features beat it there."""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import LAYER, primary_deltas
from lpact.analyses.lpact.tables.audit import CONTROL_AVAILABILITY
from lpact.analyses.lpact.tables.predictive import CONTROL_NULLS
from lpact.analyses.lpact.tables.relational import PROFILE_DELTAS
from lpact.codes import Reason

NUISANCE = "nuisance"
NOT_COMPUTED = "not computed"
LEVEL1, LEVEL2 = "level 1", "level 2"
_OK = pl.col("reason") == Reason.OK.value
_SAME_ORDER = pl.col("model_unit_order_hash") == pl.col("brain_unit_order_hash")


def rows_of(material: Material) -> pl.DataFrame:
    """One row a level, dataset, model, layer and rival: ``n_wins`` and ``n_beaten``, of ``n_all`` comparisons.

    Level 1 compares a subject-run: the strongest rival is the better of nuisance and the best counted control (a tie
    goes to nuisance). Level 2 compares a subject-run, unit and relational summary, with the best counted control only.
    A rival wins where real − rival is not positive. What has no contrast is the rival `NOT_COMPUTED`, with ``n_wins``
    the number of such comparisons. Level-2 rows whose unit orders differ compare different units; as in the decision,
    they are no evidence, and are left out (`n_other_order`).
    """
    parts = [_counts(_level1(material), LEVEL1)]
    if material.has(PROFILE_DELTAS.name):
        parts.append(_counts(_level2(material), LEVEL2))
    return pl.concat(parts).sort(["level", *LAYER, "rival"])


def n_other_order(material: Material) -> int:
    """Level-2 rows with a contrast that are left out, since brain and model have different unit orders."""
    if not material.has(PROFILE_DELTAS.name):
        return 0
    known = _OK & pl.col("delta_rel").is_not_null()
    return material.table(PROFILE_DELTAS.name).filter(known & ~_SAME_ORDER).height


def rivals_of(material: Material, rows: pl.DataFrame) -> list[str]:
    """Nuisance, then every counted control of the study and every other rival of ``rows``, by how often it is one."""
    known = {str(name) for name in rows["rival"]}
    for name in (CONTROL_NULLS.name, CONTROL_AVAILABILITY.name):
        if material.has(name):
            counted = material.table(name).filter(pl.col("counted"))
            known |= {str(control) for control in counted["control"].unique()}
    total = {
        str(rival): int(n)
        for rival, n in rows.filter(pl.col("level") == LEVEL1)
        .group_by("rival")
        .agg((pl.col("n_wins") + pl.col("n_beaten")).sum())
        .iter_rows()
    }
    known -= {NUISANCE, NOT_COMPUTED}
    return [NUISANCE, *sorted(known, key=lambda name: (-total.get(name, 0), name))]


def _level1(material: Material) -> pl.DataFrame:
    known = _OK & pl.col("delta_nuisance").is_not_null() & pl.col("delta_control").is_not_null()
    by_nuisance = pl.col("delta_nuisance") <= pl.col("delta_control")
    return primary_deltas(material).select(
        *LAYER,
        rival=pl.when(~known)
        .then(pl.lit(NOT_COMPUTED))
        .when(by_nuisance)
        .then(pl.lit(NUISANCE))
        .otherwise(pl.col("best_control")),
        delta=pl.when(known).then(pl.min_horizontal("delta_nuisance", "delta_control")),
    )


def _level2(material: Material) -> pl.DataFrame:
    known = _OK & pl.col("delta_rel").is_not_null()
    return (
        material.table(PROFILE_DELTAS.name)
        .filter(~known | _SAME_ORDER)
        .select(
            *LAYER,
            rival=pl.when(known).then(pl.col("best_control")).otherwise(pl.lit(NOT_COMPUTED)),
            delta=pl.when(known).then(pl.col("delta_rel")),
        )
    )


def _counts(contrasts: pl.DataFrame, level: str) -> pl.DataFrame:
    beaten = (pl.col("delta") > 0).fill_null(value=False)
    counts = contrasts.group_by([*LAYER, "rival"]).agg(
        n_wins=(~beaten).sum().cast(pl.Int64), n_beaten=beaten.sum().cast(pl.Int64)
    )
    return counts.with_columns(
        n_all=(pl.col("n_wins") + pl.col("n_beaten")).sum().over(LAYER), level=pl.lit(level)
    )
