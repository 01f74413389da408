"""What the verdicts depend on: counts if one threshold, control, dataset or subject-run were different."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import PROFILE_LOOKS, PROFILES
from lpact.analyses.lpact.tables.robustness import (
    CONTROL_ABLATION,
    LEAVE_DATASET_OUT,
    SUBJECT_RUN_DECISIONS,
    THRESHOLD_SENSITIVITY,
)
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import Look
from lpact.report.values import span

CLAIMS_WIDTH, SHARES_WIDTH, WORDS_WIDTH = 200, 240, 276
_STEP, _SHIFT = 20, 4.5
"""Pixels of a lane, and from its middle to the marks of a profile."""

THIS_RUN = " (this run)"
ANY, REST = "reach the value", "and pass the row rule"
LEVEL1, LEVEL2 = "level-1 rows that pass", "level-2 rows that pass"
SERIES = {
    ANY: Look("diamond", "paper", "ink", 48),
    REST: Look("diamond", "control", "ink", 48),
    LEVEL1: Look("triangle-up", "control", "ink", 48),
    LEVEL2: Look("triangle-down", "control", "ink", 48),
}
"""What a share is of, and its symbol."""

_FAMILIES: dict[str, tuple[str, str | None]] = {
    # family: (what is varied, series; None where claims are counted)
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
_SCENARIOS = {
    "all_controls": "all controls",
    "all_controls_mean_top_3": "all controls, mean of the largest three",
    "only_temporal_controls": "controls of time only",
    "only_nuisance": "nuisance features only",
}
_WITHOUT = "without_"
THRESHOLDS, CONTROLS = "Thresholds and rules", "Choice of controls"
DATASETS, SUBJECT_RUNS = "One dataset left out", "One subject-run left out"

_CLAIMS = ["lane", "gate_profile", "n", "n_high", "n_claims", "changed", "of_run", "more"]
_SHARES = ["lane", "series", "n", "n_of", "text"]
_OUTCOMES = ["lane", "gate_profile", "words"]
_NUMBERS = {"n": pl.Int64, "n_high": pl.Int64, "n_claims": pl.Int64, "n_of": pl.Int64}
_KINDS = _NUMBERS | {"changed": pl.Boolean, "of_run": pl.Boolean}
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Block:
    """One kind of change: lanes in order, and what is drawn in them.

    ``claims`` has one row per lane and gate profile: how many claims pass every gate after the change (``n``; up to
    ``n_high`` where several changes share the lane), and whether other claims pass than in the run (``changed``), even
    if as many are gained as lost; ``of_run`` marks what the run itself did. ``shares`` has one row per lane and series:
    the share of rows that pass. ``outcomes`` has words in place of a share.
    """

    title: str
    lanes: list[str]
    claims: pl.DataFrame
    shares: pl.DataFrame
    outcomes: pl.DataFrame


RunCounts = dict[str, tuple[int, int]]
"""Integrated claims and all claims of the run itself, by gate profile."""


@figure("sensitivity", "What the verdicts depend on", THRESHOLD_SENSITIVITY)
def make(material: Material) -> Drawing | str:
    """Claims that pass every gate, and rows that pass, after each single change."""
    blocks, counts = blocks_of(material), run_counts(material)
    if not any(block.claims.height for block in blocks):
        return "no claims were decided again"
    profiles = common.profiles_in(pl.concat([block.claims for block in blocks]))
    most = max(max(block.claims["n_high"], default=0) for block in blocks)
    made = []
    for i, block in enumerate(blocks):
        ends = {"first": i == 0, "last": i == len(blocks) - 1}
        right = _shares(block) if block.shares.height else _outcomes(block, profiles)
        # The counts of claims stand between the two panels.
        made.append(panels.beside(_claims(block, profiles, most, **ends), right, spacing=110))
    used = {name for block in blocks for name in block.shares["series"]}
    series = [(name, look) for name, look in SERIES.items() if name in used]
    key = panels.key(*common.profile_entries(profiles), *series, width=720)
    return panels.stacked(key, *made), _caption(blocks, counts), _summary(blocks, counts)


# -- rows --------------------------------------------------------------------------------------------------------------


def run_counts(material: Material) -> RunCounts:
    """Counts of the run: those of the values that it used."""
    used = material.table(THRESHOLD_SENSITIVITY.name).filter(
        pl.col("configured") & pl.col("family").str.starts_with("integrated_")
    )
    found = {r["gate_profile"]: (r["n_pass"], r["n_eligible"]) for r in used.iter_rows(named=True)}
    return {profile: found[profile] for profile in PROFILES if profile in found}


def blocks_of(material: Material) -> list[Block]:
    """Thresholds, controls, datasets and subject-runs, where there are any."""
    counts, made = run_counts(material), []
    for title, (claims, shares, outcomes) in _changes(material):
        claims_frame = _frame(claims, _CLAIMS)
        n_run = pl.col("gate_profile").replace_strict(
            {profile: n for profile, (n, _) in counts.items()}, default=None, return_dtype=pl.Int64
        )
        differs = ((pl.col("n") != n_run) | (pl.col("n_high") != n_run)).fill_null(value=False)
        claims_frame = claims_frame.with_columns(changed=pl.col("changed") | differs)
        share = pl.when(pl.col("n_of") > 0).then(pl.col("n") / pl.col("n_of"))
        shares_frame = _frame(shares, _SHARES).with_columns(share=share)
        lanes = list(dict.fromkeys([*claims_frame["lane"], *shares_frame["lane"]]))
        if lanes:
            made.append(
                Block(
                    title,
                    lanes,
                    common.marked(claims_frame, _claim_tooltip, "n"),
                    with_marks(shares_frame, "{text}", "share"),
                    common.marked(_frame(outcomes, _OUTCOMES), "{lane}, {rules}: {words}."),
                )
            )
    return made


def _frame(rows: Rows, columns: list[str]) -> pl.DataFrame:
    schema = {name: _KINDS.get(name, pl.String) for name in columns}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _claim_tooltip(row: dict[str, Any]) -> str:
    many = span((row["n"], row["n_high"]))
    return f"{row['lane']}, {row['rules']}: {many} of {row['n_claims']} claims pass every gate{row['more']}."


def _changes(material: Material) -> Iterator[tuple[str, tuple[Rows, Rows, Rows]]]:
    """Claims, shares and outcomes of each kind of change, as rows of `Block`."""
    yield THRESHOLDS, _thresholds(material)
    yield CONTROLS, _controls(material)
    claims, outcomes = [], []
    for row in common.table(material, LEAVE_DATASET_OUT).sort("omitted").iter_rows(named=True):
        lane, words, n = (
            f"without {row['omitted']}",
            f"outcome {row['outcome']}",
            row["n_integrated"],
        )
        if row["outcome"] != row["outcome_of_run"]:
            words += f" instead of {row['outcome_of_run']}"
        profile = row["gate_profile"]
        claims.append((lane, profile, n, n, row["n_claims"], False, False, f"; {words}"))
        outcomes.append((lane, profile, words))
    yield DATASETS, (claims, [], outcomes)
    claims, outcomes = [], []
    by = ["dataset", "gate_profile"]
    moved = ((pl.col("n_gained") > 0) | (pl.col("n_lost") > 0)).sum().alias("moved")
    low, most = (
        pl.col("n_integrated").min().alias("low"),
        pl.col("n_integrated", "n_claims", "n_gained", "n_lost"),
    )
    rows = (
        common.table(material, SUBJECT_RUN_DECISIONS)
        .group_by(by)
        .agg(moved, low, most.max(), n=pl.len())
    )
    for row in rows.sort(by).iter_rows(named=True):
        lane, profile = f"one of {row['dataset']}", row["gate_profile"]
        words = f"{row['moved'] or 'none'} of {row['n']} change a claim"
        more = f"; {words} (at most {row['n_gained']} gained, {row['n_lost']} lost)"
        counts = row["low"], row["n_integrated"], row["n_claims"]
        claims.append((lane, profile, *counts, row["moved"] > 0, False, more))
        outcomes.append((lane, profile, words))
    yield SUBJECT_RUNS, (claims, [], outcomes)


def _thresholds(material: Material) -> tuple[Rows, Rows, Rows]:
    claims, shares = [], []
    rows = material.table(THRESHOLD_SENSITIVITY.name)
    for family, (pattern, series) in _FAMILIES.items():
        for row in rows.filter(family=family).iter_rows(named=True):
            own, n, n_of = row["configured"], row["n_pass"], row["n_eligible"]
            lane = pattern.format(_RULES.get(row["rule"], row["rule"])) + (THIS_RUN if own else "")
            if series is None:
                claims.append((lane, row["gate_profile"], n, n, n_of, False, own, ""))
            else:
                text = f"{lane}: {n:,} of {n_of:,}: {row['interpretation']}."
                shares.append((lane, series, n, n_of, text))
    return claims, shares, []


def _controls(material: Material) -> tuple[Rows, Rows, Rows]:
    rows = common.table(material, CONTROL_ABLATION)
    rules = material.table(THRESHOLD_SENSITIVITY.name).filter(
        pl.col("configured") & pl.col("family").str.ends_with("best_control_rule")
    )["rule"]
    used = "all_controls_mean_top_3" if "mean_top_3" in rules else "all_controls"
    # The run's own choice comes first, then each control left out, then what is not known here.
    order = {name: i for i, name in enumerate((used, *_SCENARIOS))}
    claims, shares = [], []
    for scenario in sorted(
        set(rows["scenario"]), key=lambda name: (order.get(name, 1.5) if name != used else 0, name)
    ):
        without = f"without {scenario.removeprefix(_WITHOUT)}"
        lane = without if scenario.startswith(_WITHOUT) else _SCENARIOS.get(scenario, scenario)
        lane += THIS_RUN if scenario == used else ""
        own = rows.filter(scenario=scenario)
        for row in own.unique("gate_profile", maintain_order=True).iter_rows(named=True):
            n, gained, lost = row["n_integrated"], row["n_gained"], row["n_lost"]
            more, moved = f" ({gained} gained, {lost} lost)", gained + lost > 0
            counts = n, n, row["n_claims"]
            claims.append((lane, row["gate_profile"], *counts, moved, scenario == used, more))
        for row in own.unique("stage", maintain_order=True).iter_rows(named=True):
            n, n_of = row["n_stage_pass"], row["n_rows"]
            text = (
                f"{lane}, {row['stage']}: {n:,} of {n_of:,} rows pass their point rule; {row['n_controls']} controls "
                "left."
            )
            series = LEVEL2 if row["stage"] == "relational" else LEVEL1
            shares.append((lane, series, n, n_of, text))
    return claims, shares, []


# -- drawing -----------------------------------------------------------------------------------------------------------


def _claims(
    block: Block, profiles: list[str], most: int, *, first: bool, last: bool
) -> alt.LayerChart:
    """Claims that pass every gate: marks on a scale, and the same as numbers right of it."""
    y, top = panels.lanes("lane", block.lanes, grid=True), max(most, 1)
    steps = (k * 10**power for power in range(20) for k in (1, 2, 5))
    ticks = range(0, top + 1, next(step for step in steps if top // step <= 5))
    title = "claims that pass every gate" if last else None
    x = panels.axis("n", title, (0, top), ticks=ticks, fmt="d", grid=True, labelFlush=False)
    x["scale"]["padding"] = 8
    layers = []
    for place, profile in enumerate(profiles):
        shift = _SHIFT * (2 * place - len(profiles) + 1)
        own, look = block.claims.filter(gate_profile=profile), PROFILE_LOOKS[profile]
        ranges = own.filter(pl.col("n") < pl.col("n_high"))
        layers += [
            panels.intervals(ranges.drop("mark"), "x", y, x, ends=("n", "n_high"), yOffset=shift),
            panels.points(ranges, {**x, "field": "n_high"}, y, look, shift=(0, shift)),
            panels.points(own, x, y, look, shift=(0, shift)),
        ]
    one = pl.when(pl.col("n") == pl.col("n_high")).then(pl.format("{}", "n"))
    counts = block.claims.with_columns(count=one.otherwise(pl.format("{}–{}", "n", "n_high")))
    layers += common.count_columns(counts, "count", y, profiles, CLAIMS_WIDTH + 36, head=first)
    heading = panels.title(block.title, fontSize=12, frame="group", offset=6)
    return panels.overlay(*layers, width=CLAIMS_WIDTH, step=_STEP, title=heading)


def _shares(block: Block) -> alt.LayerChart:
    """Shares of rows that pass, by series."""
    y = panels.lanes("lane", block.lanes, labels=False, grid=True)
    ticks = [0, 0.25, 0.5, 0.75, 1]
    title, look = "share of rows or summaries", {"grid": True, "labelFlush": False}
    x = panels.axis("share", title, (0, 1), ticks=ticks, fmt=".2~f", **look)
    absent = block.shares.filter(pl.col("share").is_null()).with_columns(words=pl.lit("no rows"))
    return panels.overlay(
        panels.points(block.shares.drop_nulls("share"), x, y, SERIES, "series"),
        panels.text(absent, "words", {"value": 6}, y, size=10, ink="muted"),
        width=SHARES_WIDTH,
        step=_STEP,
    )


def _outcomes(block: Block, profiles: list[str]) -> alt.LayerChart:
    """The outcome of each change in words, one column per profile."""
    y = panels.lanes("lane", block.lanes, shown=False)
    layers = []
    for place, profile in enumerate(profiles):
        left = 6 + place * WORDS_WIDTH / len(profiles)
        own, look = block.outcomes.filter(gate_profile=profile), PROFILE_LOOKS[profile]
        layers += [
            panels.points(own.drop("mark"), {"value": left}, y, replace(look, size=30)),
            panels.text(own, "words", {"value": left + 8}, y, size=10),
        ]
    return panels.overlay(*layers, width=WORDS_WIDTH, step=_STEP)


def _caption(blocks: list[Block], counts: RunCounts) -> list[str]:
    run = "; ".join(f"{PROFILES[name]}: {n:,} of {total:,}" for name, (n, total) in counts.items())
    titles = {block.title for block in blocks}
    return [
        "Left: claims that pass every gate if one thing alone is changed and the stored tables are decided again; "
        f"numbers are bold and coloured where they differ from the run ({run}), or where as many claims are gained as "
        "lost. A lane without a mark was not decided under that profile.",
        "Right: the share of rows, or of dataset and level summaries, that pass; row rules are point rules under "
        "both profiles.",
        "Leaving out a dataset also removes its own claims." if DATASETS in titles else "",
        "Subject-runs of a dataset share a lane: the smallest and the largest count, and how many change a claim."
        if SUBJECT_RUNS in titles
        else "",
    ]


def _summary(blocks: list[Block], counts: RunCounts) -> str:
    parts = []
    for profile, (n, total) in counts.items():
        changed = []
        for block in blocks:
            own = block.claims.filter(~pl.col("of_run"), gate_profile=profile)
            changed.append(f"{block.title.lower()}: {own['changed'].sum()} of {own.height}")
        parts.append(
            f"{PROFILES[profile]}: {n:,} of {total:,} claims pass every gate; changes that alter which claims do: "
            f"{', '.join(changed)}"
        )
    return ". ".join(parts) + "."
