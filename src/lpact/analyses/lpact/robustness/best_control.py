"""Contrasts with the best of any choice of controls, from the stored score of every control.

Levels 1 and 2 store the score of each control beside the contrast with the best one. Leaving controls out, or forming
the best one by another rule, therefore needs no refitting: `altered` makes the tables that such a study would have
stored, and the decision reads them like any others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lpact.analyses.lpact.tables.levels import (
    CONTROL_DELTAS,
    CONTROL_NULLS,
    NORMALIZED_SCORES,
    PROFILE_DELTAS,
    PROFILE_SCORES,
    SUBJECT_RUN_SUMMARY,
)
from lpact.codes import Reason
from lpact.errors import TableError
from lpact.math.types import FloatArray, IntArray
from lpact.tables import CONTEXT_KEY

MAX, MEAN_TOP_3 = "max", "mean_top_3"
RULES = (MAX, MEAN_TOP_3)
PREDICTIVE, RELATIONAL = "predictive", "relational"
REAL = "real"
NUISANCE = "nuisance"
SAME = 1e-9
"""Contrasts that differ by less are the same; those of a stored run are equal to the last bit."""
NOT_CONTROLS = frozenset({REAL, NUISANCE, "nuisance_plus_model", "unit_order"})
"""Conditions and comparisons that are no severe control; they stay in every choice of controls."""
LEVEL1_KEY = [*CONTEXT_KEY, "metric"]
LEVEL2_KEY = [*CONTEXT_KEY, "unit", "alignment", "profile"]

Tables = Mapping[str, pl.DataFrame]


def best_of(scores: FloatArray, rule: str) -> FloatArray:
    """Score of the best control in every column of [n_controls, m]; NaN where no control has a score.

    ``max``, or ``mean_top_3``: the mean of the three highest, or of fewer where there are fewer.
    """
    if not len(scores):
        return np.full(scores.shape[1], np.nan)
    filled = np.where(np.isnan(scores), -np.inf, scores)
    top = -np.sort(-filled, axis=0)[: 1 if rule == MAX else 3]
    finite = np.isfinite(top)
    total = np.where(finite, top, 0.0).sum(axis=0)
    count = finite.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class Rivals:
    """Scores of all counted controls against the rows of a contrast.

    ``scores`` is [n_controls, n_rows], NaN where a control has none; ``controls`` are sorted by name.
    """

    deltas: pl.DataFrame
    controls: tuple[str, ...]
    scores: FloatArray
    real: FloatArray
    stored_best: tuple[str | None, ...]

    def contrast(
        self, keep: Callable[[str], bool], rule: str
    ) -> tuple[list[str | None], FloatArray, FloatArray, IntArray]:
        """Name and score of the best control left, real − best, and the number of controls with a score."""
        kept = [i for i, name in enumerate(self.controls) if keep(name)]
        scores = self.scores[kept]
        best = best_of(scores, rule)
        count = np.isfinite(scores).sum(axis=0)
        names: list[str | None] = [None] * len(best)
        if kept and names:
            filled = np.where(np.isnan(scores), -np.inf, scores)
            chosen, highest = filled.argmax(axis=0), filled.max(axis=0)
            # Equal scores: the run named one of them, and that name stays.
            place = {self.controls[i]: row for row, i in enumerate(kept)}
            stored = np.array([place.get(name or "", -1) for name in self.stored_best])
            columns = np.flatnonzero(stored >= 0)
            tied = columns[filled[stored[columns], columns] == highest[columns]]
            chosen[tied] = stored[tied]
            left = [self.controls[i] for i in kept]
            names = [left[row] if n else None for row, n in zip(chosen, count, strict=True)]
        return names, best, self.real - best, count


def level1_rivals(tables: Tables) -> Rivals:
    """Counted controls of level 1."""
    nulls = tables[CONTROL_NULLS.name].filter("counted")
    return _rivals(
        tables[CONTROL_DELTAS.name], LEVEL1_KEY, "real_score", nulls, "control", "control_score"
    )


def level2_rivals(tables: Tables) -> Rivals:
    """Counted controls of level 2."""
    scores = tables[PROFILE_SCORES.name].filter(pl.col("counted") & (pl.col("condition") != REAL))
    return _rivals(
        tables[PROFILE_DELTAS.name],
        LEVEL2_KEY,
        "real_similarity",
        scores,
        "condition",
        "similarity",
    )


def _rivals(
    deltas: pl.DataFrame,
    key: Sequence[str],
    real: str,
    scores: pl.DataFrame,
    name: str,
    value: str,
) -> Rivals:
    controls = tuple(scores[name].unique().sort().to_list())
    rows = deltas.select(key).with_row_index("_row")
    placed = scores.select(*key, name, value).join(rows, on=key, how="inner").drop_nulls(value)
    place = {control: i for i, control in enumerate(controls)}
    matrix = np.full((len(controls), deltas.height), np.nan)
    if placed.height:
        which = placed[name].replace_strict(place, return_dtype=pl.Int64).to_numpy()
        matrix[which, placed["_row"].to_numpy()] = placed[value].to_numpy()
    return Rivals(
        deltas,
        controls,
        matrix,
        deltas[real].cast(pl.Float64).fill_null(np.nan).to_numpy(),
        tuple(deltas["best_control"].to_list()),
    )


def control_names(tables: Tables) -> dict[str, list[str]]:
    """Every control with a stored score, counted or not, by stage."""
    level1 = tables[CONTROL_NULLS.name]["control"].unique()
    level2 = tables[PROFILE_SCORES.name]["condition"].unique()
    return {
        PREDICTIVE: sorted(level1.to_list()),
        RELATIONAL: sorted(name for name in level2.to_list() if name not in NOT_CONTROLS),
    }


def configured_rule(level1: Rivals, level2: Rivals) -> str:
    """The rule by which the run formed its best control: the one that reproduces its contrasts."""
    for rule in RULES:
        if all(
            _same(rivals.contrast(_everything, rule)[2], rivals.deltas[column])
            for rivals, column in ((level1, "delta_control"), (level2, "delta_rel"))
        ):
            return rule
    raise TableError(
        "the stored contrasts are not those of the stored control scores",
        where=f"tables '{CONTROL_DELTAS.name}' and '{PROFILE_DELTAS.name}'",
        got="other differences from the best control, by either rule",
        expected=f"real − best control, of '{CONTROL_NULLS.name}' and '{PROFILE_SCORES.name}'",
        remedy="give tables of one run, as it stored them",
    )


def _same(computed: FloatArray, stored: pl.Series) -> bool:
    known = stored.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return bool(np.allclose(computed, known, rtol=0.0, atol=SAME, equal_nan=True))


def _everything(control: str) -> bool:  # noqa: ARG001
    return True


def altered(
    tables: Tables, level1: Rivals, level2: Rivals, keep: Callable[[str], bool], rule: str
) -> dict[str, pl.DataFrame]:
    """The tables of a study with only the controls that ``keep`` names, and the best one formed by ``rule``.

    Rows of a control that is left out vanish from every table that names controls, counted or not. A row without any
    control left has no contrast, and says so in its reason.
    """
    dropped = {
        name: table.filter(_kept_rows(table, keep))
        for name, table in tables.items()
        if name not in (CONTROL_DELTAS.name, PROFILE_DELTAS.name) and _control_column(table)
    }
    predictive = predictive_contrasts(level1, keep, rule)
    return dropped | _followed(tables, predictive, relational_contrasts(level2, keep, rule))


def predictive_contrasts(level1: Rivals, keep: Callable[[str], bool], rule: str) -> pl.DataFrame:
    """The level-1 contrasts of `altered`."""
    names, best, delta, count = level1.contrast(keep, rule)
    return _with_contrast(
        level1.deltas,
        {"best_control": names, "n_controls": count},
        {"best_control_score": best, "delta_control": delta},
        "delta_control",
    )


def relational_contrasts(level2: Rivals, keep: Callable[[str], bool], rule: str) -> pl.DataFrame:
    """The level-2 contrasts of `altered`."""
    names, best, delta, _ = level2.contrast(keep, rule)
    return _with_contrast(
        level2.deltas,
        {"best_control": names},
        {"best_control_similarity": best, "delta_rel": delta},
        "delta_rel",
    )


def nuisance_contrasts(level1: Rivals) -> pl.DataFrame:
    """The level-1 contrasts of `only_nuisance`."""
    return level1.deltas.with_columns(
        best_control=pl.when(pl.col("nuisance_score").is_not_null()).then(pl.lit(NUISANCE)),
        best_control_score=pl.col("nuisance_score"),
        delta_control=pl.col("delta_nuisance"),
        n_controls=pl.col("nuisance_score").is_not_null().cast(pl.Int64),
    )


def only_nuisance(tables: Tables, level1: Rivals) -> dict[str, pl.DataFrame]:
    """Level 1 as if the nuisance features were the only rival; level 2, which has no such rival, stays as it is."""
    deltas = nuisance_contrasts(level1)
    nuisance: dict[str, pl.Expr] = {
        "control": pl.lit(NUISANCE),
        "counted": pl.lit(True),
        "n_draws": pl.lit(1),
        "control_score": pl.col("nuisance_score"),
        "delta": pl.col("delta_nuisance"),
    }
    schema = tables[CONTROL_NULLS.name].schema
    nulls = deltas.select(
        pl.col(name)
        if name in (*LEVEL1_KEY, "reason")
        else nuisance.get(name, pl.lit(False if dtype == pl.Boolean else None))
        .cast(dtype)
        .alias(name)
        for name, dtype in schema.items()
    )
    return {
        CONTROL_NULLS.name: nulls,
        **_followed(tables, deltas, tables[PROFILE_DELTAS.name]),
    }


def _control_column(table: pl.DataFrame) -> str | None:
    return next((c for c in ("control", "condition", "against") if c in table.columns), None)


def _kept_rows(table: pl.DataFrame, keep: Callable[[str], bool]) -> pl.Expr:
    column = _control_column(table) or ""
    present = table[column].unique().to_list()
    return pl.col(column).is_in([name for name in present if name in NOT_CONTROLS or keep(name)])


def _with_contrast(
    deltas: pl.DataFrame,
    columns: Mapping[str, Sequence[str | None] | IntArray],
    numbers: Mapping[str, FloatArray],
    contrast: str,
) -> pl.DataFrame:
    out = deltas.with_columns(
        *(pl.Series(name, values, deltas.schema[name]) for name, values in columns.items()),
        *(pl.Series(name, values).fill_nan(None) for name, values in numbers.items()),
    )
    lost = (pl.col("reason") == Reason.OK.value) & pl.col(contrast).is_null()
    return out.with_columns(
        reason=pl.when(lost).then(pl.lit(Reason.UNDEFINED_SCORE.value)).otherwise("reason")
    )


def _followed(
    tables: Tables, predictive: pl.DataFrame, relational: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """The contrasts, and the tables that repeat them or divide them by a reliability."""
    summary = tables[SUBJECT_RUN_SUMMARY.name].drop("delta_control")
    new = relational.select(*LEVEL2_KEY, "delta_rel", _reason="reason")
    ceiling = (
        tables[NORMALIZED_SCORES.name]
        .drop("delta_rel", "delta_fraction")
        .join(new, on=LEVEL2_KEY, how="left", maintain_order="left")
        .with_columns(
            delta_fraction=pl.when(pl.col("reliability") > 0).then(
                pl.col("delta_rel") / pl.col("reliability")
            ),
            reason=pl.when(pl.col("_reason") != Reason.OK.value)
            .then("_reason")
            .otherwise("reason"),
        )
        .drop("_reason")
    )
    return {
        CONTROL_DELTAS.name: predictive,
        SUBJECT_RUN_SUMMARY.name: summary.join(
            predictive.select(*LEVEL1_KEY, "delta_control"),
            on=LEVEL1_KEY,
            how="left",
            maintain_order="left",
        ),
        PROFILE_DELTAS.name: relational,
        NORMALIZED_SCORES.name: ceiling,
    }
