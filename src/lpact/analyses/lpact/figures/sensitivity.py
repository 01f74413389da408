"""What the verdicts depend on: counts if one threshold, control, dataset or subject-run were different."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures import common
from lpact.analyses.lpact.figures.common import GATE_PROFILES
from lpact.analyses.lpact.tables.robustness import (
    CONTROL_ABLATION,
    LEAVE_DATASET_OUT,
    SUBJECT_RUN_DECISIONS,
    THRESHOLD_SENSITIVITY,
)
from lpact.report import panels
from lpact.report.figure import Drawing, figure
from lpact.wording import span

CLAIMS_WIDTH = 400
_STEP = 20

THIS_RUN = " (this run)"
_FAMILIES: dict[str, str] = {
    # family of thresholds: what is varied
    "integrated_reliability_minimum": "reliability ≥ {}",
    "integrated_fraction_of_ceiling": "fraction of ceiling ≥ {}",
    "integrated_direction": "positive subject-runs ≥ {}",
    "integrated_best_control_rule": "best control: {}",
}
_RULES = {"max": "the largest", "mean_top_3": "mean of the largest three"}
_SCENARIOS = {
    "all_controls": "all controls",
    "all_controls_mean_top_3": "all controls, mean of the largest three",
    "only_temporal_controls": "controls of time only",
    "only_nuisance": "nuisance features only",
}
THRESHOLDS, CONTROLS = "Thresholds and rules", "Choice of controls"
DATASETS, SUBJECT_RUNS = "One dataset left out", "One subject-run left out"

_CLAIMS = ["lane", "gate_profile", "n", "n_high", "n_claims", "changed", "of_run", "words"]
_KINDS = dict.fromkeys(("n", "n_high", "n_claims"), pl.Int64) | dict.fromkeys(("changed", "of_run"), pl.Boolean)


RunCounts = dict[str, tuple[int, int]]
"""Integrated claims and all claims of the run itself, by gate profile."""


@figure("sensitivity", "What the verdicts depend on", THRESHOLD_SENSITIVITY)
def make(material: Material) -> Drawing | str:
    """Claims that pass every gate after each single change."""
    rows, counts = rows_of(material), run_counts(material)
    if rows.is_empty():
        return "no claims were decided again"
    profiles, changes = common.profiles_in(rows), rows.partition_by("change", maintain_order=True)
    most, last = max(rows["n_high"]), len(changes) - 1
    made = [_claims(own, profiles, most, first=i == 0, last=i == last) for i, own in enumerate(changes)]
    run = "; ".join(f"{GATE_PROFILES[name]}: {n:,} of {total:,}" for name, (n, total) in counts.items())
    caption = {
        "Claims that pass every gate if one thing alone is changed and the stored tables are decided again; "
        f"numbers are bold and coloured where they differ from the run ({run}), or where as many claims are gained as "
        "lost. A lane without a mark was not decided under that profile. Hovering says what else the change "
        "does.": True,
        "Leaving out a dataset also removes its own claims.": DATASETS in rows["change"],
        "Subject-runs of a dataset share a lane: the smallest and the largest count.": SUBJECT_RUNS in rows["change"],
    }
    key = panels.key(*common.profile_entries(profiles), width=720)
    return panels.stacked(key, *made), caption, _summary(rows, counts)


def run_counts(material: Material) -> RunCounts:
    """Counts of the run: those of the values that it used."""
    used = material.table(THRESHOLD_SENSITIVITY.name).filter(
        pl.col("configured") & pl.col("family").str.starts_with("integrated_")
    )
    found = {r["gate_profile"]: (r["n_pass"], r["n_eligible"]) for r in used.iter_rows(named=True)}
    return {profile: found[profile] for profile in GATE_PROFILES if profile in found}


def rows_of(material: Material) -> pl.DataFrame:
    """One row per ``change``, lane and gate profile, in the order of the figure.

    ``n`` claims pass every gate after the change (up to ``n_high`` where several changes share the lane). ``changed``:
    other claims pass than in the run, even if as many are gained as lost; ``of_run`` marks what the run itself did,
    ``words`` say what else the change does.
    """
    made = [(change, *row) for change, rows in _CHANGES.items() for row in rows(material)]
    of_run = {profile: n for profile, (n, _) in run_counts(material).items()}
    n_run = pl.col("gate_profile").replace_strict(of_run, default=None, return_dtype=pl.Int64)
    differs = ((pl.col("n") != n_run) | (pl.col("n_high") != n_run)).fill_null(value=False)
    schema = {name: _KINDS.get(name, pl.String) for name in ("change", *_CLAIMS)}
    rows = pl.DataFrame(made, schema=schema, orient="row")
    counts = [span(both) for both in rows.select("n", "n_high").iter_rows()]
    rows = rows.with_columns(changed=pl.col("changed") | differs, count=pl.Series(counts))
    text = "{lane}, {rules}: {count} of {n_claims} claims pass every gate[; {words}]."
    return common.marked(rows, text, "n")


def _thresholds(material: Material) -> Iterator[tuple[Any, ...]]:
    rows = material.table(THRESHOLD_SENSITIVITY.name)
    for family, pattern in _FAMILIES.items():
        for row in rows.filter(family=family).iter_rows(named=True):
            own, n = row["configured"], row["n_pass"]
            lane = pattern.format(_RULES.get(row["rule"], row["rule"])) + (THIS_RUN if own else "")
            yield lane, row["gate_profile"], n, n, row["n_eligible"], False, own, ""


def _controls(material: Material) -> Iterator[tuple[Any, ...]]:
    """The run's own choice first, then each control left out, then other choices."""
    rows = common.table_of(material, CONTROL_ABLATION)
    rules = material.table(THRESHOLD_SENSITIVITY.name).filter(
        pl.col("configured") & pl.col("family").str.ends_with("best_control_rule")
    )["rule"]
    used = "all_controls_mean_top_3" if "mean_top_3" in rules else "all_controls"
    order = {name: i for i, name in enumerate((used, *_SCENARIOS))} | {used: 0}
    for scenario in sorted(set(rows["scenario"]), key=lambda own: (order.get(own, 1.5), own)):
        lane = _SCENARIOS.get(scenario, scenario.replace("without_", "without ", 1))
        lane += THIS_RUN if scenario == used else ""
        own = rows.filter(scenario=scenario).unique("gate_profile", maintain_order=True)
        for row in own.iter_rows(named=True):
            n, gained, lost = row["n_integrated"], row["n_gained"], row["n_lost"]
            words = f"{gained} gained, {lost} lost" if gained or lost else ""
            counts = n, n, row["n_claims"], gained + lost > 0
            yield lane, row["gate_profile"], *counts, scenario == used, words


def _datasets(material: Material) -> Iterator[tuple[Any, ...]]:
    for row in common.table_of(material, LEAVE_DATASET_OUT).sort("omitted").iter_rows(named=True):
        words = f"outcome {row['outcome']}"
        if row["outcome"] != row["outcome_of_run"]:
            words += f" instead of {row['outcome_of_run']}"
        counts = row["n_integrated"], row["n_integrated"], row["n_claims"]
        yield f"without {row['omitted']}", row["gate_profile"], *counts, False, False, words


def _subject_runs(material: Material) -> Iterator[tuple[Any, ...]]:
    by = ["dataset", "gate_profile"]
    rows = common.table_of(material, SUBJECT_RUN_DECISIONS).group_by(by)
    found = rows.agg(
        pl.col("n_integrated", "n_claims", "n_gained", "n_lost").max(),
        moved=((pl.col("n_gained") > 0) | (pl.col("n_lost") > 0)).sum(),
        low=pl.col("n_integrated").min(),
        n=pl.len(),
    )
    for row in found.sort(by).iter_rows(named=True):
        moved, counts = row["moved"], (row["low"], row["n_integrated"], row["n_claims"])
        most = f"at most {row['n_gained']} gained, {row['n_lost']} lost"
        words = f"{moved or 'none'} of {row['n']} change a claim ({most})"
        lane = f"one of {row['dataset']}"
        yield lane, row["gate_profile"], *counts, moved > 0, False, words


_CHANGES: dict[str, Callable[[Material], Iterator[tuple[Any, ...]]]] = {
    THRESHOLDS: _thresholds,
    CONTROLS: _controls,
    DATASETS: _datasets,
    SUBJECT_RUNS: _subject_runs,
}
"""Kinds of changes, and the rows of their claims."""


def _claims(block: pl.DataFrame, profiles: list[str], most: int, *, first: bool, last: bool) -> alt.LayerChart:
    """Claims that pass every gate: marks on a scale, and as numbers to the right."""
    y, top = panels.lanes("lane", common.names(block, "lane"), grid=True), max(most, 1)
    steps = (k * 10**power for power in range(20) for k in (1, 2, 5))
    ticks = range(0, top + 1, next(step for step in steps if top // step <= 5))
    title = "claims that pass every gate" if last else None
    x = panels.axis("n", title, (0, top), ticks=ticks, fmt="d", grid=True, labelFlush=False)
    x["scale"]["padding"] = 8
    ranges = block.filter(pl.col("n") < pl.col("n_high"))
    far = {**x, "field": "n_high"}
    layers = [
        *common.profile_marks(ranges.drop("mark"), profiles, "x", far, y, ("n", "n_high")),
        *common.profile_marks(block, profiles, "x", x, y, ("n", "n")),
    ]
    counts = block.with_columns(pl.col("count").str.replace(" to ", "–"))
    layers += common.count_columns(counts, "count", y, profiles, CLAIMS_WIDTH + 36, head=first)
    heading = panels.title(block["change"][0], fontSize=12, frame="group", offset=6)
    return panels.overlay(*layers, width=CLAIMS_WIDTH, step=_STEP, title=heading)


def _summary(rows: pl.DataFrame, counts: RunCounts) -> str:
    parts = []
    for profile, (n, total) in counts.items():
        own = rows.filter(~pl.col("of_run"), gate_profile=profile)
        changed = own.group_by("change", maintain_order=True).agg(pl.col("changed").sum(), pl.len())
        found = ", ".join(f"{change.lower()}: {k} of {of}" for change, k, of in changed.iter_rows())
        parts.append(
            f"{GATE_PROFILES[profile]}: {n:,} of {total:,} claims pass every gate; changes that alter which claims do: "
            f"{found}."
        )
    return " ".join(parts)
