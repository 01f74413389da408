"""What each control contributes: decisions without it, or with another rule for the best control.

Levels 1 and 2 store the score of each control, so nothing is fitted again: `altered` makes the tables that such a study
would have stored, and the decision reads them like any others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import ne
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lpact.analyses.lpact.best_control import best_control
from lpact.analyses.lpact.gates import PAPER
from lpact.analyses.lpact.gates.labels import label_predictive, label_relational
from lpact.analyses.lpact.robustness.decide_again import Counts, Decider, Tables
from lpact.analyses.lpact.tables import levels
from lpact.analyses.lpact.tables.robustness import CONTROL_ABLATION
from lpact.codes import Reason
from lpact.errors import TableError
from lpact.math.types import FloatArray, IntArray
from lpact.store import frame, validate
from lpact.tables import CONTEXT_KEY, Table

Keep = Callable[[str], bool]

MAX, MEAN_TOP_3 = "max", "mean_top_3"
RULES = (MAX, MEAN_TOP_3)
PREDICTIVE, RELATIONAL = "predictive", "relational"
NUISANCE = "nuisance"
MAX_DIFFERENCE = 1e-9
"""Contrasts that differ by less are the same; those of a stored run are equal to the last bit."""
NOT_CONTROLS = frozenset({"real", NUISANCE, "nuisance_plus_model", "unit_order"})
"""Conditions and comparisons that are not severe controls; every choice of controls keeps them."""
TEMPORAL_CONTROLS = frozenset({"circular_shift", "token_order_shuffle", "within_story_block_shuffle"})
"""Controls that keep the features and change only when they occur."""
ALL_CONTROLS = "all_controls"
ALL_MEAN_TOP_3 = "all_controls_mean_top_3"
ONLY_NUISANCE = "only_nuisance"

_BY_BEST_CONTROL = ("predictive", "relational", "ceiling", "replication")
_BY_CONTROLS = (*_BY_BEST_CONTROL, "severe_control")
_BY_LEVEL1 = ("predictive", "severe_control", "replication")


class Stage(NamedTuple):
    """Where a level keeps its contrasts with the best control, and the scores of all controls."""

    deltas: Table
    key: tuple[str, ...]
    real: str
    best: str
    contrast: str
    scores: Table
    control: str
    score: str


_LEVEL1_KEY = (*CONTEXT_KEY, "metric")
_LEVEL2_KEY = (*CONTEXT_KEY, "unit", "alignment", "profile")
_LEVEL1_NAMES = ("real_score", "best_control_score", "delta_control")
_LEVEL2_NAMES = ("real_similarity", "best_control_similarity", "delta_rel")
STAGES = {
    PREDICTIVE: Stage(
        levels.CONTROL_DELTAS,
        _LEVEL1_KEY,
        *_LEVEL1_NAMES,
        levels.CONTROL_NULLS,
        "control",
        "control_score",
    ),
    RELATIONAL: Stage(
        levels.PROFILE_DELTAS,
        _LEVEL2_KEY,
        *_LEVEL2_NAMES,
        levels.PROFILE_SCORES,
        "condition",
        "similarity",
    ),
}


class Rivals:
    """Scores of all counted controls of one stage: ``scores`` is [n_controls, n_rows], NaN if a control has none."""

    def __init__(self, tables: Tables, stage: str) -> None:
        self._stage = where = STAGES[stage]
        self.deltas = deltas = tables[where.deltas.name]
        scores = tables[where.scores.name].filter(pl.col("counted"), pl.col(where.control) != "real")
        self._controls: list[str] = scores[where.control].unique().sort().to_list()
        rows = deltas.select(where.key).with_row_index("_row")
        columns = [*where.key, where.control, where.score]
        placed = scores.select(columns).join(rows, on=where.key, how="inner")
        placed = placed.drop_nulls(where.score)
        self._scores = np.full((len(self._controls), deltas.height), np.nan)
        places = pl.Enum(self._controls)
        which = placed[where.control].cast(places).to_physical().to_numpy()
        self._scores[which, placed["_row"].to_numpy()] = placed[where.score].to_numpy()

    def _best(self, keep: Keep, rule: str) -> tuple[list[str | None], FloatArray, IntArray]:
        """Name and score of the best control left in each row, and the number of controls with a score."""
        kept = [i for i, name in enumerate(self._controls) if keep(name)]
        scores = self._scores[kept]
        left = [self._controls[i] for i in kept]
        chosen, best = best_control(scores, rule)
        # Of equal scores, the run named one, and that name stays.
        place = {name: row for row, name in enumerate(left)}
        named = [place.get(name or "", -1) for name in self.deltas["best_control"]]
        stored = np.array(named, dtype=np.int64)
        columns = np.flatnonzero(stored >= 0)
        tied = columns[scores[stored[columns], columns] == scores[chosen[columns], columns]]
        chosen[tied] = stored[tied]
        names = [left[row] if row >= 0 else None for row in chosen]
        return names, best, np.isfinite(scores).sum(axis=0)

    def contrasts(self, keep: Keep, rule: str) -> pl.DataFrame:
        """The contrasts of a study with only these controls; a row without any control left has a reason."""
        deltas, where = self.deltas, self._stage
        names, best, count = self._best(keep, rule)
        real = deltas[where.real].cast(pl.Float64).fill_null(np.nan).to_numpy()
        n_controls = [pl.Series("n_controls", count, deltas.schema.get("n_controls"))]
        made = deltas.with_columns(
            pl.Series("best_control", names, deltas.schema["best_control"]),
            pl.Series(where.best, best).fill_nan(None),
            pl.Series(where.contrast, real - best).fill_nan(None),
            *(n_controls if "n_controls" in deltas.columns else ()),
        )
        lost = (pl.col("reason") == Reason.OK.value) & pl.col(where.contrast).is_null()
        reason = pl.when(lost).then(pl.lit(Reason.UNDEFINED_SCORE.value)).otherwise("reason")
        return made.with_columns(reason=reason)

    def follows(self, rule: str) -> bool:
        """Whether the stored contrasts are those with the best control by ``rule``."""
        computed, stored = (
            table[self._stage.contrast].cast(pl.Float64).fill_null(np.nan).to_numpy()
            for table in (self.contrasts(lambda _: True, rule), self.deltas)
        )
        return bool(np.allclose(computed, stored, rtol=0.0, atol=MAX_DIFFERENCE, equal_nan=True))


AllRivals = Mapping[str, Rivals]


def read_rivals(tables: Tables) -> dict[str, Rivals]:
    """Counted controls by stage."""
    return {stage: Rivals(tables, stage) for stage in STAGES}


def control_names(tables: Tables) -> dict[str, list[str]]:
    """Every control with a stored score, counted or not, by stage."""
    return {
        name: sorted(set(tables[stage.scores.name][stage.control]) - NOT_CONTROLS) for name, stage in STAGES.items()
    }


def configured_rule(rivals: AllRivals) -> str:
    """The rule by which the run formed its best control: the one that reproduces its contrasts."""
    for rule in RULES:
        if all(own.follows(rule) for own in rivals.values()):
            return rule
    raise TableError(
        "the stored contrasts are not those of the stored control scores",
        where=f"tables '{levels.CONTROL_DELTAS.name}' and '{levels.PROFILE_DELTAS.name}'",
        got="other differences from the best control, by either rule",
        expected=f"real − best control, of '{levels.CONTROL_NULLS.name}' and '{levels.PROFILE_SCORES.name}'",
        remedy="use tables of one run, unchanged",
    )


def altered(tables: Tables, rivals: AllRivals, keep: Keep, rule: str) -> dict[str, pl.DataFrame]:
    """The tables of a study with only the controls that ``keep`` names, and the best one formed by ``rule``.

    Rows of other controls, counted or not, are removed from every table that names controls.
    """
    dropped = {}
    for name, table in tables.items():
        column = next((c for c in ("control", "condition", "against") if c in table.columns), None)
        if column and name not in (levels.CONTROL_DELTAS.name, levels.PROFILE_DELTAS.name):
            kept = [c for c in table[column].unique() if c in NOT_CONTROLS or keep(c)]
            dropped[name] = table.filter(pl.col(column).is_in(kept))
    predictive, relational = (own.contrasts(keep, rule) for own in rivals.values())
    return dropped | _followed(tables, predictive, relational)


def nuisance_contrasts(deltas: pl.DataFrame) -> pl.DataFrame:
    """Level-1 contrasts with nuisance in place of the best control."""
    known = pl.col("nuisance_score").is_not_null()
    return deltas.with_columns(
        best_control=pl.when(known).then(pl.lit(NUISANCE)),
        best_control_score=pl.col("nuisance_score"),
        delta_control=pl.col("delta_nuisance"),
        n_controls=known.cast(pl.Int64),
    )


def only_nuisance(tables: Tables) -> dict[str, pl.DataFrame]:
    """Level 1 as if the nuisance features were the only rival; level 2, which has no such rival, stays the same."""
    deltas = nuisance_contrasts(tables[levels.CONTROL_DELTAS.name])
    values = {
        **dict.fromkeys(tables[levels.CONTROL_NULLS.name].columns, pl.lit(None)),
        **{name: pl.col(name) for name in (*_LEVEL1_KEY, "reason")},
        **dict.fromkeys(("random", "surrogate"), pl.lit(False)),
        "control": pl.lit(NUISANCE),
        "counted": pl.lit(True),
        "n_draws": pl.lit(1),
        "control_score": pl.col("nuisance_score"),
        "delta": pl.col("delta_nuisance"),
    }
    schema = tables[levels.CONTROL_NULLS.name].schema
    nulls = deltas.select(values[name].cast(dtype).alias(name) for name, dtype in schema.items())
    return _followed(tables, deltas, tables[levels.PROFILE_DELTAS.name]) | {levels.CONTROL_NULLS.name: nulls}


def _followed(tables: Tables, predictive: pl.DataFrame, relational: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The contrasts, and the tables that repeat them or divide them by a reliability."""
    summary = tables[levels.SUBJECT_RUN_SUMMARY.name].drop("delta_control")
    deltas = predictive.select(*_LEVEL1_KEY, "delta_control")
    new = relational.select(*_LEVEL2_KEY, "delta_rel", _reason="reason")
    missing = pl.col("_reason") != Reason.OK.value
    ceiling = (
        tables[levels.NORMALIZED_SCORES.name]
        .drop("delta_rel", "delta_fraction")
        .join(new, on=_LEVEL2_KEY, how="left", maintain_order="left")
        .with_columns(
            delta_fraction=pl.when(pl.col("reliability") > 0).then(pl.col("delta_rel") / pl.col("reliability")),
            reason=pl.when(missing).then("_reason").otherwise("reason"),
        )
        .drop("_reason")
    )
    summary = summary.join(deltas, on=_LEVEL1_KEY, how="left", maintain_order="left")
    return {
        levels.CONTROL_DELTAS.name: predictive,
        levels.SUBJECT_RUN_SUMMARY.name: summary,
        levels.PROFILE_DELTAS.name: relational,
        levels.NORMALIZED_SCORES.name: ceiling,
    }


class Scenario(NamedTuple):
    """A choice of controls: its labelled rows by stage, and the claims decided with it.

    ``n_controls`` counts the controls that are left, by stage; a stage that the choice does not affect is absent.
    """

    name: str
    rule: str
    n_controls: dict[str, int]
    rows: dict[str, pl.DataFrame]
    counts: Counts


class Ablation:
    """All choices of controls of a run. ``rule`` is how the run itself formed its best control."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._controls = control_names(decider.tables)
        self._rivals = read_rivals(decider.tables)
        self._some: tuple[Tables, AllRivals] = decider.tables, self._rivals
        self.rule = configured_rule(self._rivals)
        self.by_rule = {
            rule: self._choice(name, lambda _: True, rule, _BY_BEST_CONTROL)
            for rule, name in ((MAX, ALL_CONTROLS), (MEAN_TOP_3, ALL_MEAN_TOP_3))
        }

    def _choice(self, name: str, keep: Keep, rule: str, touched: tuple[str, ...] = _BY_CONTROLS) -> Scenario:
        self._decider.tell(f"deciding with {name}")
        left = {stage: sum(map(keep, names)) for stage, names in self._controls.items()}
        rows = self._labelled(*(own.contrasts(keep, rule) for own in self._rivals.values()))
        everything = left == {stage: len(names) for stage, names in self._controls.items()}
        change = partial(self._altered, keep=keep, rule=rule)
        counts = (
            self._decider.unchanged()
            if everything and rule == self.rule
            else self._decider.counts(touched, change=change)
        )
        return Scenario(name, rule, left, rows, counts)

    def _altered(self, tables: Tables, keep: Keep, rule: str) -> Tables:
        """The tables of some layers, which are the same for many choices, after a choice."""
        if self._some[0] is not tables:
            self._some = tables, read_rivals(tables)
        return altered(tables, self._some[1], keep, rule)

    def _labelled(self, predictive: pl.DataFrame, relational: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Rows labelled again, without the columns of an earlier decision."""
        level1, level2 = (t.drop("label", "gate_pass", strict=False) for t in (predictive, relational))
        relational = label_relational(level2, self._decider.gates)
        return {PREDICTIVE: label_predictive(level1), RELATIONAL: relational}

    def _nuisance(self) -> Scenario:
        """Point rules only: without surrogates, tests have nothing to draw from."""
        deltas = nuisance_contrasts(self._rivals[PREDICTIVE].deltas)
        counts = self._decider.counts(_BY_LEVEL1, change=only_nuisance)
        rows = self._labelled(deltas, self._rivals[RELATIONAL].deltas)
        paper = {profile: count for profile, count in counts.items() if profile == PAPER}
        return Scenario(ONLY_NUISANCE, NUISANCE, {PREDICTIVE: 0}, rows, paper)

    def scenarios(self) -> list[Scenario]:
        """Every choice: all, each one removed, temporal ones only, mean of the top three, nuisance only."""
        names = sorted({name for names in self._controls.values() for name in names})
        return [
            *self.by_rule.values(),
            *(self._choice(f"without_{name}", partial(ne, name), self.rule) for name in names),
            self._choice("only_temporal_controls", TEMPORAL_CONTROLS.__contains__, self.rule),
            self._nuisance(),
        ]

    def table(self) -> pl.DataFrame:
        """Rows, passes and integrated claims of every choice."""
        rows: list[dict[str, Any]] = []
        for scenario in self.scenarios():
            for stage, n_controls in scenario.n_controls.items():
                labelled, contrast = scenario.rows[stage], STAGES[stage].contrast
                primary = labelled
                if stage == PREDICTIVE:
                    primary = labelled.filter(metric=self._decider.primary_metric)
                median, reason = primary[contrast].median(), Reason.OK
                if median is None:
                    left = n_controls or scenario.name == ONLY_NUISANCE
                    reason = Reason.NOTHING_MEASURED if left else Reason.NO_CONTROL_LEFT
                rows += [
                    {
                        "scenario": scenario.name,
                        "stage": stage,
                        "gate_profile": profile,
                        "rule": scenario.rule,
                        "n_controls": n_controls,
                        "n_rows": labelled.height,
                        "n_positive": int((labelled[contrast] > 0).sum()),
                        "n_stage_pass": int(labelled["gate_pass"].sum()),
                        "median_delta": median,
                        **{k: v for k, v in counts.items() if k != "n_lost_coverage"},
                        "reason": reason,
                    }
                    for profile, counts in scenario.counts.items()
                ]
        return validate(frame(CONTROL_ABLATION, rows), CONTROL_ABLATION)
