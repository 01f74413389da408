"""What single changes do to the counts, as rows of the figure of sensitivity.

Blocks are lists of lanes. ``claims`` has a row a lane and gate profile: how many claims pass every gate after the
change, and whether that differs from the run, be it that as many are gained as lost; ``of_run`` marks what the run
itself did, which is no change. ``shares`` has a row a lane and series: the share of rows that pass.
``told`` has a row a lane and gate profile with words in place of a share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import PROFILES
from lpact.analyses.lpact.figures.profile_marks import PROFILE, with_profile
from lpact.analyses.lpact.tables.robustness import (
    CONTROL_ABLATION,
    LEAVE_DATASET_OUT,
    SUBJECT_RUN_DECISIONS,
    THRESHOLD_SENSITIVITY,
)
from lpact.report.figure import with_marks

THIS_RUN = " (this run)"
ANY, REST = "reach the value", "and pass the row rule"
LEVEL1, LEVEL2 = "level-1 rows that pass", "level-2 rows that pass"
SERIES = (ANY, REST, LEVEL1, LEVEL2)
"""What a share is of."""

_FAMILIES: dict[str, tuple[str, str | None]] = {
    # family: (what is varied, series; none where claims are counted)
    "brain_reliability_minimum": ("reliability ≥ {}", ANY),
    "integrated_reliability_minimum": ("reliability ≥ {}", None),
    "raw_fraction_of_ceiling": ("fraction of ceiling ≥ {}", ANY),
    "control_surviving_fraction_of_ceiling": ("fraction of ceiling ≥ {}", REST),
    "integrated_fraction_of_ceiling": ("fraction of ceiling ≥ {}", None),
    "direction_only": ("positive subject-runs ≥ {}", ANY),
    "direction_gate_qualified": ("positive subject-runs ≥ {}", REST),
    "integrated_direction": ("positive subject-runs ≥ {}", None),
    "predictive_best_control_rule": ("best control: {}", LEVEL1),
    "relational_best_control_rule": ("best control: {}", LEVEL2),
    "integrated_best_control_rule": ("best control: {}", None),
    "brain_as_model_pass_fraction": ("brain as model, passing rows ≥ {}", ANY),
}
_RULES = {"max": "the largest", "mean_top_3": "mean of the largest three"}
_STAGES = {"predictive": LEVEL1, "relational": LEVEL2}
_SCENARIOS = {
    "all_controls": "all controls",
    "all_controls_mean_top_3": "all controls, mean of the largest three",
    "only_temporal_controls": "controls of time only",
    "only_nuisance": "nuisance features only",
}
_WITHOUT = "without_"
DATASETS, SUBJECT_RUNS = "One dataset left out", "One subject-run left out"


@dataclass(frozen=True)
class Block:
    """One kind of change: lanes in order, and what is drawn in them."""

    title: str
    lanes: list[str]
    claims: pl.DataFrame
    shares: pl.DataFrame
    told: pl.DataFrame


@dataclass(frozen=True)
class Counts:
    """Integrated claims and all claims of the run itself, by gate profile."""

    of_run: dict[str, tuple[int, int]]

    def changed(self, profile: str, n: int) -> bool:
        """Whether a count differs from the run's."""
        return profile in self.of_run and self.of_run[profile][0] != n


_CLAIMS = {
    "lane": pl.String,
    "gate_profile": pl.String,
    "n": pl.Int64,
    "n_high": pl.Int64,
    "n_claims": pl.Int64,
    "changed": pl.Boolean,
    "of_run": pl.Boolean,
    "text": pl.String,
}
_SHARES = {
    "lane": pl.String,
    "series": pl.String,
    "n": pl.Int64,
    "n_of": pl.Int64,
    "text": pl.String,
}
_TOLD = {"lane": pl.String, "gate_profile": pl.String, "words": pl.String}


def run_counts(material: Material) -> Counts:
    """Counts of the run: those of the values that it used."""
    used = material.table(THRESHOLD_SENSITIVITY.name).filter(
        pl.col("configured") & pl.col("family").str.starts_with("integrated_")
    )
    found = {r["gate_profile"]: (r["n_pass"], r["n_eligible"]) for r in used.iter_rows(named=True)}
    order = [*(p for p in PROFILES if p in found), *sorted(found.keys() - PROFILES.keys())]
    return Counts({profile: found[profile] for profile in order})


def blocks_of(material: Material) -> list[Block]:
    """Thresholds, controls, datasets and subject-runs, where there are any."""
    counts = run_counts(material)
    made = [
        _thresholds(material, counts),
        _controls(material, counts),
        _datasets(material, counts),
        _subject_runs(material, counts),
    ]
    return [block for block in made if block.lanes]


def _block(
    title: str,
    claims: list[dict[str, Any]],
    shares: list[dict[str, Any]] | None = None,
    told: list[dict[str, Any]] | None = None,
    lanes: list[str] | None = None,
) -> Block:
    named = with_profile(pl.DataFrame(claims, schema=_CLAIMS))
    parts = pl.DataFrame(shares or [], schema=_SHARES).with_columns(
        share=pl.when(pl.col("n_of") > 0).then(pl.col("n") / pl.col("n_of"))
    )
    words = with_profile(pl.DataFrame(told or [], schema=_TOLD))
    order = lanes or list(dict.fromkeys([*named["lane"], *parts["lane"]]))
    return Block(
        title,
        order,
        with_marks(named, lambda row: row["text"], value="n"),
        with_marks(parts, lambda row: row["text"], value="share"),
        with_marks(words, lambda row: f"{row['lane']}, {row[PROFILE]}: {row['words']}."),
    )


def _claim(
    lane: str,
    row: dict[str, Any],
    counts: Counts,
    *,
    n: int,
    n_high: int,
    n_claims: int,
    more: str,
    moved: bool = False,
    of_run: bool = False,
) -> dict[str, Any]:
    profile = row["gate_profile"]
    name = PROFILES.get(profile, profile)
    many = f"{n}" if n == n_high else f"{n} to {n_high}"
    return {
        "lane": lane,
        "gate_profile": profile,
        "n": n,
        "n_high": n_high,
        "n_claims": n_claims,
        "changed": moved or counts.changed(profile, n) or counts.changed(profile, n_high),
        "of_run": of_run,
        "text": f"{lane}, {name}: {many} of {n_claims} claims pass every gate{more}.",
    }


def _thresholds(material: Material, counts: Counts) -> Block:
    claims, shares = [], []
    table = material.table(THRESHOLD_SENSITIVITY.name)
    for family, (pattern, series) in _FAMILIES.items():
        for row in table.filter(family=family).iter_rows(named=True):
            lane = pattern.format(_RULES.get(row["rule"], row["rule"]))
            lane += THIS_RUN if row["configured"] else ""
            if series is None:
                n = {"n": row["n_pass"], "n_high": row["n_pass"], "n_claims": row["n_eligible"]}
                claims.append(_claim(lane, row, counts, **n, more="", of_run=row["configured"]))
                continue
            text = f"{lane}: {row['n_pass']:,} of {row['n_eligible']:,}: {row['interpretation']}."
            both = {"n": row["n_pass"], "n_of": row["n_eligible"]}
            shares.append({"lane": lane, "series": series, **both, "text": text})
    return _block("Thresholds and rules", claims, shares)


def _controls(material: Material, counts: Counts) -> Block:
    if not material.has(CONTROL_ABLATION.name):
        return _block("Choice of controls", [])
    table = material.table(CONTROL_ABLATION.name)
    used = _scenario_of_run(material)
    order = {name: i for i, name in enumerate((used, *_SCENARIOS))}
    scenarios = sorted(
        set(table["scenario"]), key=lambda name: (order.get(name, 1.5 if name != used else 0), name)
    )
    claims, shares = [], []
    for scenario in scenarios:
        lane = _scenario_words(scenario) + (THIS_RUN if scenario == used else "")
        own = table.filter(scenario=scenario)
        for row in own.unique("gate_profile", maintain_order=True).iter_rows(named=True):
            n = {
                "n": row["n_integrated"],
                "n_high": row["n_integrated"],
                "n_claims": row["n_claims"],
            }
            more = f" ({row['n_gained']} gained, {row['n_lost']} lost)"
            moved = row["n_gained"] + row["n_lost"] > 0
            own_choice = scenario == used
            claims.append(_claim(lane, row, counts, **n, more=more, moved=moved, of_run=own_choice))
        for row in own.unique("stage", maintain_order=True).iter_rows(named=True):
            text = (
                f"{lane}, {row['stage']}: {row['n_stage_pass']:,} of {row['n_rows']:,} rows pass their point rule; "
                f"{row['n_controls']} controls left"
            )
            both = {"n": row["n_stage_pass"], "n_of": row["n_rows"]}
            series = _STAGES.get(row["stage"], LEVEL1)
            shares.append({"lane": lane, "series": series, **both, "text": f"{text}."})
    return _block("Choice of controls", claims, shares)


def _scenario_of_run(material: Material) -> str:
    """The choice of controls that the run itself made."""
    rules = material.table(THRESHOLD_SENSITIVITY.name).filter(
        pl.col("configured") & pl.col("family").str.ends_with("best_control_rule")
    )["rule"]
    return "all_controls_mean_top_3" if "mean_top_3" in rules else "all_controls"


def _scenario_words(scenario: str) -> str:
    if scenario.startswith(_WITHOUT):
        return f"without {scenario.removeprefix(_WITHOUT)}"
    return _SCENARIOS.get(scenario, scenario)


def _datasets(material: Material, counts: Counts) -> Block:
    if not material.has(LEAVE_DATASET_OUT.name):
        return _block(DATASETS, [])
    claims, told = [], []
    for row in material.table(LEAVE_DATASET_OUT.name).sort("omitted").iter_rows(named=True):
        lane = f"without {row['omitted']}"
        same = row["outcome"] == row["outcome_of_run"]
        words = f"outcome {row['outcome']}" + (
            "" if same else f" instead of {row['outcome_of_run']}"
        )
        n = {"n": row["n_integrated"], "n_high": row["n_integrated"], "n_claims": row["n_claims"]}
        claims.append(_claim(lane, row, counts, **n, more=f"; {words}"))
        told.append({"lane": lane, "gate_profile": row["gate_profile"], "words": words})
    return _block(DATASETS, claims, told=told)


def _subject_runs(material: Material, counts: Counts) -> Block:
    """Subject-runs of a dataset in one lane: the smallest and the largest count, and how many change a claim."""
    if not material.has(SUBJECT_RUN_DECISIONS.name):
        return _block(SUBJECT_RUNS, [])
    table = material.table(SUBJECT_RUN_DECISIONS.name).sort("dataset", "gate_profile")
    claims, told = [], []
    for _, own in table.group_by("dataset", "gate_profile", maintain_order=True):
        row = own.row(0, named=True)
        lane = f"one of {row['dataset']}"
        moved = own.filter((pl.col("n_gained") > 0) | (pl.col("n_lost") > 0)).height
        words = f"{moved or 'none'} of {own.height} change a claim"
        found = own["n_integrated"].to_list()
        n = {"n": min(found), "n_high": max(found), "n_claims": max(own["n_claims"])}
        gained, lost = max(own["n_gained"]), max(own["n_lost"])
        more = f"; {words} (at most {gained} gained, {lost} lost)"
        claims.append(_claim(lane, row, counts, **n, more=more, moved=moved > 0))
        told.append({"lane": lane, "gate_profile": row["gate_profile"], "words": words})
    return _block(SUBJECT_RUNS, claims, told=told)
