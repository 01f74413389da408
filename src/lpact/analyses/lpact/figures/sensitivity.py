"""What the verdicts depend on: counts if one threshold, control, dataset or subject-run were different."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import (
    PROFILE_LOOKS,
    PROFILES,
    count_columns,
    profile_entries,
    profiles_in,
)
from lpact.analyses.lpact.tables.robustness import (
    CONTROL_ABLATION,
    LEAVE_DATASET_OUT,
    SUBJECT_RUN_DECISIONS,
    THRESHOLD_SENSITIVITY,
)
from lpact.report import panels
from lpact.report.figure import Drawing, figure, with_marks
from lpact.report.panels import Look

CLAIMS_WIDTH, SHARES_WIDTH, WORDS_WIDTH = 200, 240, 276
_HEIGHT = {"step": 20}
_SHIFT = 4.5
"""Pixels from the middle of a lane to the marks of a profile."""

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
_STAGES = {"predictive": LEVEL1, "relational": LEVEL2}
_SCENARIOS = {
    "all_controls": "all controls",
    "all_controls_mean_top_3": "all controls, mean of the largest three",
    "only_temporal_controls": "controls of time only",
    "only_nuisance": "nuisance features only",
}
_WITHOUT = "without_"
DATASETS, SUBJECT_RUNS = "One dataset left out", "One subject-run left out"

_SCHEMAS: dict[str, dict[str, Any]] = {
    "claims": dict.fromkeys(("lane", "gate_profile", "text"), pl.String)
    | dict.fromkeys(("n", "n_high", "n_claims"), pl.Int64)
    | dict.fromkeys(("changed", "of_run"), pl.Boolean),
    "shares": dict.fromkeys(("lane", "series", "text"), pl.String)
    | dict.fromkeys(("n", "n_of"), pl.Int64),
    "outcomes": dict.fromkeys(("lane", "gate_profile", "words"), pl.String),
}


@dataclass(frozen=True)
class Block:
    """One kind of change: lanes in order, and what is drawn in them.

    Attributes
    ----------
    claims
        One row per lane and gate profile: how many claims pass every gate after the change (``n``; up to ``n_high``
        where several changes share the lane), and whether other claims pass than in the run (``changed``), even if as
        many are gained as lost. ``of_run`` marks what the run itself did, which is no change.
    shares
        One row per lane and series: the share of rows that pass.
    outcomes
        One row per lane and gate profile, with words in place of a share.
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
    profiles = profiles_in(pl.concat([block.claims for block in blocks]))
    most = max(max(block.claims["n_high"], default=0) for block in blocks)
    made: list[Any] = []
    for i, block in enumerate(blocks):
        ends = {"first": i == 0, "last": i == len(blocks) - 1}
        right = _shares(block) if block.shares.height else _outcomes(block, profiles)
        # The counts of claims stand between the two panels.
        made.append(panels.beside(_claims(block, profiles, most, **ends), right, spacing=110))
    used = {name for block in blocks for name in block.shares["series"]}
    series = [(name, look) for name, look in SERIES.items() if name in used]
    key = panels.key(*profile_entries(profiles), *series, width=720)
    chart = panels.stacked(key, *made)
    return chart, _caption(blocks, counts), _summary(blocks, counts)


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
    outcomes: list[dict[str, Any]] | None = None,
) -> Block:
    counted = pl.DataFrame(claims, schema=_SCHEMAS["claims"])
    parts = pl.DataFrame(shares or [], schema=_SCHEMAS["shares"]).with_columns(
        share=pl.when(pl.col("n_of") > 0).then(pl.col("n") / pl.col("n_of"))
    )
    words = pl.DataFrame(outcomes or [], schema=_SCHEMAS["outcomes"])
    return Block(
        title,
        list(dict.fromkeys([*counted["lane"], *parts["lane"]])),
        with_marks(counted, lambda row: str(row["text"]), value="n"),
        with_marks(parts, lambda row: str(row["text"]), value="share"),
        with_marks(
            words, lambda row: f"{row['lane']}, {PROFILES[row['gate_profile']]}: {row['words']}."
        ),
    )


def _claim(
    lane: str,
    row: dict[str, Any],
    counts: RunCounts,
    n: tuple[int, int],
    *,
    n_claims: int,
    more: str = "",
    moved: bool = False,
    of_run: bool = False,
) -> dict[str, Any]:
    """A row of ``Block.claims``; ``n`` are the smallest and the largest count."""
    profile = row["gate_profile"]
    many = f"{n[0]}" if n[0] == n[1] else f"{n[0]} to {n[1]}"
    differs = profile in counts and {counts[profile][0]} != set(n)
    return {
        "lane": lane,
        "gate_profile": profile,
        "n": n[0],
        "n_high": n[1],
        "n_claims": n_claims,
        "changed": moved or differs,
        "of_run": of_run,
        "text": f"{lane}, {PROFILES[profile]}: {many} of {n_claims} claims pass every gate{more}.",
    }


def _thresholds(material: Material, counts: RunCounts) -> Block:
    claims, shares = [], []
    table = material.table(THRESHOLD_SENSITIVITY.name)
    for family, (pattern, series) in _FAMILIES.items():
        for row in table.filter(family=family).iter_rows(named=True):
            lane = pattern.format(_RULES.get(row["rule"], row["rule"]))
            lane += THIS_RUN if row["configured"] else ""
            n, n_of = row["n_pass"], row["n_eligible"]
            if series is None:
                own = _claim(lane, row, counts, (n, n), n_claims=n_of, of_run=row["configured"])
                claims.append(own)
                continue
            text = f"{lane}: {n:,} of {n_of:,}: {row['interpretation']}."
            shares.append({"lane": lane, "series": series, "n": n, "n_of": n_of, "text": text})
    return _block("Thresholds and rules", claims, shares)


def _controls(material: Material, counts: RunCounts) -> Block:
    if not material.has(CONTROL_ABLATION.name):
        return _block("Choice of controls", [])
    table = material.table(CONTROL_ABLATION.name)
    used = _scenario_of_run(material)
    # The run's own choice comes first, then each control left out, then what is not known here.
    order = {name: i for i, name in enumerate((used, *_SCENARIOS))}
    scenarios = sorted(
        set(table["scenario"]), key=lambda name: (order.get(name, 1.5 if name != used else 0), name)
    )
    claims, shares = [], []
    for scenario in scenarios:
        without = f"without {scenario.removeprefix(_WITHOUT)}"
        lane = without if scenario.startswith(_WITHOUT) else _SCENARIOS.get(scenario, scenario)
        lane += THIS_RUN if scenario == used else ""
        own = table.filter(scenario=scenario)
        claims += [
            _claim(
                lane,
                row,
                counts,
                (row["n_integrated"],) * 2,
                n_claims=row["n_claims"],
                more=f" ({row['n_gained']} gained, {row['n_lost']} lost)",
                moved=row["n_gained"] + row["n_lost"] > 0,
                of_run=scenario == used,
            )
            for row in own.unique("gate_profile", maintain_order=True).iter_rows(named=True)
        ]
        for row in own.unique("stage", maintain_order=True).iter_rows(named=True):
            text = (
                f"{lane}, {row['stage']}: {row['n_stage_pass']:,} of {row['n_rows']:,} rows pass their point rule; "
                f"{row['n_controls']} controls left."
            )
            both = {"n": row["n_stage_pass"], "n_of": row["n_rows"]}
            series = _STAGES.get(row["stage"], LEVEL1)
            shares.append({"lane": lane, "series": series, **both, "text": text})
    return _block("Choice of controls", claims, shares)


def _scenario_of_run(material: Material) -> str:
    """The choice of controls that the run itself made."""
    rules = material.table(THRESHOLD_SENSITIVITY.name).filter(
        pl.col("configured") & pl.col("family").str.ends_with("best_control_rule")
    )["rule"]
    return "all_controls_mean_top_3" if "mean_top_3" in rules else "all_controls"


def _datasets(material: Material, counts: RunCounts) -> Block:
    if not material.has(LEAVE_DATASET_OUT.name):
        return _block(DATASETS, [])
    claims, outcomes = [], []
    for row in material.table(LEAVE_DATASET_OUT.name).sort("omitted").iter_rows(named=True):
        lane, words = f"without {row['omitted']}", f"outcome {row['outcome']}"
        if row["outcome"] != row["outcome_of_run"]:
            words += f" instead of {row['outcome_of_run']}"
        n, n_claims = (row["n_integrated"],) * 2, row["n_claims"]
        claims.append(_claim(lane, row, counts, n, n_claims=n_claims, more=f"; {words}"))
        outcomes.append({"lane": lane, "gate_profile": row["gate_profile"], "words": words})
    return _block(DATASETS, claims, outcomes=outcomes)


def _subject_runs(material: Material, counts: RunCounts) -> Block:
    """Subject-runs of a dataset in one lane: the smallest and the largest count, and how many change a claim."""
    if not material.has(SUBJECT_RUN_DECISIONS.name):
        return _block(SUBJECT_RUNS, [])
    table = material.table(SUBJECT_RUN_DECISIONS.name).sort("dataset", "gate_profile")
    claims, outcomes = [], []
    for own in table.partition_by("dataset", "gate_profile", maintain_order=True):
        row = own.row(0, named=True)
        lane = f"one of {row['dataset']}"
        moved = own.filter((pl.col("n_gained") > 0) | (pl.col("n_lost") > 0)).height
        words = f"{moved or 'none'} of {own.height} change a claim"
        found = own["n_integrated"].to_list()
        more = f"; {words} (at most {max(own['n_gained'])} gained, {max(own['n_lost'])} lost)"
        n, n_claims = (min(found), max(found)), max(own["n_claims"])
        claims.append(_claim(lane, row, counts, n, n_claims=n_claims, more=more, moved=moved > 0))
        outcomes.append({"lane": lane, "gate_profile": row["gate_profile"], "words": words})
    return _block(SUBJECT_RUNS, claims, outcomes=outcomes)


# -- drawing -----------------------------------------------------------------------------------------------------------


def _claims(
    block: Block, profiles: list[str], most: int, *, first: bool, last: bool
) -> alt.LayerChart:
    """Claims that pass every gate: marks on a scale, and the same as numbers right of it."""
    y, top = panels.lanes("lane", block.lanes, grid=True), max(most, 1)
    title = "claims that pass every gate" if last else None
    ticks = list(range(0, top + 1, _step(top)))
    x = panels.axis("n", title, (0, top), ticks=ticks, fmt="d", grid=True, labelFlush=False)
    x["scale"]["padding"] = 8
    layers = []
    for place, profile in enumerate(profiles):
        shift = _SHIFT * (2 * place - len(profiles) + 1)
        own, look = block.claims.filter(gate_profile=profile), PROFILE_LOOKS[profile]
        ranges = own.filter(pl.col("n") < pl.col("n_high"))
        layers += [
            panels.intervals(ranges.drop("mark"), "x", y, x, low="n", high="n_high", yOffset=shift),
            panels.symbols(ranges, look, {**x, "field": "n_high"}, y, shift=(0, shift)),
            panels.symbols(own, look, x, y, shift=(0, shift)),
        ]
    one = pl.when(pl.col("n") == pl.col("n_high")).then(pl.format("{}", "n"))
    counts = block.claims.with_columns(count=one.otherwise(pl.format("{}–{}", "n", "n_high")))
    layers += count_columns(counts, "count", y, profiles, CLAIMS_WIDTH + 36, head=first)
    heading = panels.title(block.title, fontSize=12, frame="group", offset=6)
    return panels.overlay(*layers, width=CLAIMS_WIDTH, height=_HEIGHT, title=heading)


def _step(top: int) -> int:
    """Distance of ticks: 1, 2 or 5 times a power of ten, for at most six of them."""
    steps = (k * 10**power for power in range(20) for k in (1, 2, 5))
    return int(next(step for step in steps if top // step <= 5))


def _shares(block: Block) -> alt.LayerChart:
    """Shares of rows that pass, by series."""
    y = panels.lanes("lane", block.lanes, labels=False, grid=True)
    x = panels.axis(
        "share",
        "share of rows or summaries",
        (0, 1),
        ticks=[0, 0.25, 0.5, 0.75, 1],
        fmt=".2~f",
        grid=True,
        labelFlush=False,
    )
    known = panels.with_looks(block.shares.drop_nulls("share"), "series", SERIES)
    absent = block.shares.filter(pl.col("share").is_null()).with_columns(words=pl.lit("no rows"))
    return panels.overlay(
        panels.points(known, x, y),
        panels.text(absent, "words", {"value": 6}, y, size=10, ink="muted"),
        width=SHARES_WIDTH,
        height=_HEIGHT,
    )


def _outcomes(block: Block, profiles: list[str]) -> alt.LayerChart:
    """The outcome of each change in words, one column per profile."""
    y = {**panels.lanes("lane", block.lanes), "axis": None}
    layers = []
    for place, profile in enumerate(profiles):
        left = 6 + place * WORDS_WIDTH / len(profiles)
        own = block.outcomes.filter(gate_profile=profile)
        look = replace(PROFILE_LOOKS[profile], size=30)
        layers += [
            panels.symbols(own.drop("mark"), look, {"value": left}, y),
            panels.text(own, "words", {"value": left + 8}, y, size=10),
        ]
    return panels.overlay(*layers, width=WORDS_WIDTH, height=_HEIGHT)


def _caption(blocks: list[Block], counts: RunCounts) -> str:
    run = "; ".join(
        f"{PROFILES[profile]}: {n:,} of {total:,}" for profile, (n, total) in counts.items()
    )
    parts = [
        "Left: claims that pass every gate if one thing alone is changed and the stored tables are decided again; "
        f"numbers are bold and coloured where they differ from the run ({run}), or where as many claims are gained as "
        "lost."
    ]
    titles = {block.title for block in blocks}
    if any(block.shares.height for block in blocks):
        parts.append(
            "Right: the share of rows, or of dataset and level summaries, that pass; row rules are point rules under "
            "both profiles."
        )
    per_lane = [(block.claims["gate_profile"].n_unique(), block) for block in blocks]
    if any(n > 1 and block.claims.height < n * len(block.lanes) for n, block in per_lane):
        parts.append("A lane without a mark was not decided under that profile.")
    if DATASETS in titles:
        parts.append("Leaving out a dataset also removes its own claims.")
    if SUBJECT_RUNS in titles:
        parts.append(
            "Subject-runs of a dataset share a lane: the smallest and the largest count, and how many change a claim."
        )
    return " ".join(parts)


def _summary(blocks: list[Block], counts: RunCounts) -> str:
    parts = []
    for profile, (n, total) in counts.items():
        changed = []
        for block in blocks:
            own = block.claims.filter(pl.col("gate_profile") == profile, ~pl.col("of_run"))
            changed.append(f"{block.title.lower()}: {int(own['changed'].sum())} of {own.height}")
        parts.append(
            f"{PROFILES[profile]}: {n:,} of {total:,} claims pass every gate; changes that alter which claims do: "
            f"{', '.join(changed)}"
        )
    return ". ".join(parts) + "."
