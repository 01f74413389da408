"""What each control is worth: rows and claims decided again without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import ne
from typing import Any

import polars as pl

from lpact.analyses.lpact.gates import PAPER
from lpact.analyses.lpact.gates.rows import label_predictive, label_relational
from lpact.analyses.lpact.robustness.best_control import (
    MAX,
    MEAN_TOP_3,
    PREDICTIVE,
    Rivals,
    altered,
    configured_rule,
    control_names,
    level1_rivals,
    level2_rivals,
    nuisance_contrasts,
    only_nuisance,
    predictive_contrasts,
    relational_contrasts,
)
from lpact.analyses.lpact.robustness.counting import Counts
from lpact.analyses.lpact.robustness.decided import Tables
from lpact.analyses.lpact.robustness.deciding import Decider
from lpact.analyses.lpact.tables.robustness import CONTROL_ABLATION
from lpact.codes import Reason
from lpact.store import frame, validate

TEMPORAL_CONTROLS = frozenset(
    {"circular_shift", "token_order_shuffle", "within_story_block_shuffle"}
)
"""Controls that keep the features and change only when they occur."""

ALL_CONTROLS = "all_controls"
WITHOUT = "without_"
ONLY_TEMPORAL = "only_temporal_controls"
ALL_MEAN_TOP_3 = "all_controls_mean_top_3"
ONLY_NUISANCE = "only_nuisance"

_BY_BEST_CONTROL = ("predictive", "relational", "ceiling", "replication")
_BY_CONTROLS = (*_BY_BEST_CONTROL, "severe_control")
_BY_LEVEL1 = ("predictive", "severe_control", "replication")


@dataclass(frozen=True)
class Scenario:
    """A choice of controls: its labelled rows by stage, and the claims decided with it."""

    name: str
    rule: str
    n_controls: dict[str, int]
    """Controls that are left, by stage; a stage that the choice does not touch is absent."""
    rows: dict[str, pl.DataFrame]
    counts: Counts


class Ablation:
    """All choices of controls of a run. ``rule`` is how the run itself formed its best control."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._controls = control_names(decider.tables)
        self._level1: Rivals = level1_rivals(decider.tables)
        self._level2: Rivals = level2_rivals(decider.tables)
        self._some: tuple[Tables, tuple[Rivals, Rivals]] | None = None
        self.rule = configured_rule(self._level1, self._level2)
        self.by_rule = {
            rule: self._choice(name, lambda _: True, rule, _BY_BEST_CONTROL)
            for rule, name in ((MAX, ALL_CONTROLS), (MEAN_TOP_3, ALL_MEAN_TOP_3))
        }

    def _choice(
        self,
        name: str,
        keep: Callable[[str], bool],
        rule: str,
        touched: tuple[str, ...] = _BY_CONTROLS,
    ) -> Scenario:
        self._decider.tell(f"deciding with {name}")
        left = {stage: sum(map(keep, names)) for stage, names in self._controls.items()}
        rows = self._labelled(
            predictive_contrasts(self._level1, keep, rule),
            relational_contrasts(self._level2, keep, rule),
        )
        if rule == self.rule and left == {s: len(names) for s, names in self._controls.items()}:
            counts = self._decider.unchanged()
        else:
            counts = self._decider.counts_with_change(
                lambda tables: altered(tables, *self._rivals(tables), keep, rule), touched
            )
        return Scenario(name, rule, left, rows, counts)

    def _rivals(self, tables: Tables) -> tuple[Rivals, Rivals]:
        """Controls of some layers; the tables are the same for many choices."""
        if self._some is None or self._some[0] is not tables:
            self._some = tables, (level1_rivals(tables), level2_rivals(tables))
        return self._some[1]

    def _labelled(
        self, predictive: pl.DataFrame, relational: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        return {
            "predictive": label_predictive(_bare(predictive)),
            "relational": label_relational(_bare(relational), self._decider.gates),
        }

    def _nuisance(self) -> Scenario:
        """Point rules only: tests have nothing to draw from without surrogates."""
        counts = self._decider.counts_with_change(
            lambda tables: only_nuisance(tables, self._rivals(tables)[0]), _BY_LEVEL1
        )
        return Scenario(
            ONLY_NUISANCE,
            "nuisance",
            {PREDICTIVE: 0},
            self._labelled(nuisance_contrasts(self._level1), self._level2.deltas),
            {profile: count for profile, count in counts.items() if profile == PAPER},
        )

    def scenarios(self) -> list[Scenario]:
        """Every choice: all, each one removed, temporal ones only, mean of the top three, nuisance only."""
        names = sorted({name for names in self._controls.values() for name in names})
        return [
            *self.by_rule.values(),
            *(self._choice(f"{WITHOUT}{name}", partial(ne, name), self.rule) for name in names),
            self._choice(ONLY_TEMPORAL, TEMPORAL_CONTROLS.__contains__, self.rule),
            self._nuisance(),
        ]

    def table(self) -> pl.DataFrame:
        """Rows, passes and integrated claims of every choice."""
        rows = [
            {
                "scenario": scenario.name,
                "stage": stage,
                "gate_profile": profile,
                "rule": scenario.rule,
                "n_controls": n_controls,
                **_stage_counts(scenario, stage, self._decider.primary_metric),
                **{k: v for k, v in counts.items() if k != "n_lost_coverage"},
            }
            for scenario in self.scenarios()
            for profile, counts in scenario.counts.items()
            for stage, n_controls in scenario.n_controls.items()
        ]
        return validate(frame(CONTROL_ABLATION, rows), CONTROL_ABLATION)


def _bare(deltas: pl.DataFrame) -> pl.DataFrame:
    """Rows without the columns of an earlier decision."""
    return deltas.drop("label", "gate_pass", strict=False)


def _stage_counts(scenario: Scenario, stage: str, primary_metric: str) -> dict[str, Any]:
    rows = typical = scenario.rows[stage]
    column = "delta_rel"
    if stage == PREDICTIVE:
        typical, column = rows.filter(pl.col("metric") == primary_metric), "delta_control"
    median = typical[column].median()
    reason = Reason.OK
    if median is None:
        left = scenario.n_controls[stage] or scenario.name == ONLY_NUISANCE
        reason = Reason.NOTHING_MEASURED if left else Reason.NO_CONTROL_LEFT
    return {
        "n_rows": rows.height,
        "n_positive": int((rows[column] > 0).sum()),
        "n_stage_pass": int(rows["gate_pass"].sum()),
        "median_delta": median,
        "reason": reason,
    }
