"""The decision is a pure function of rows: same rows, same bytes; and it agrees with a plain-Python reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_tables import (
    CEILING,
    CONTROL_DELTAS,
    DECISIONS,
    FEASIBILITY,
    GATES,
    NULLS,
    PROFILE_DELTAS,
    SIMILARITIES,
    SPECIFICITY,
    Tables,
    decided,
    passing_tables,
    put,
    stack,
)

from lpact.store import read_table, write_table
from lpact.tables import find_table

NOISY = {
    CONTROL_DELTAS: ("real_score", "delta_nuisance", "delta_control"),
    NULLS: ("control_score", "delta"),
    SIMILARITIES: ("similarity",),
    PROFILE_DELTAS: ("real_similarity", "delta_rel", "split_half_reliability"),
    SPECIFICITY: ("matching_drop", "margin", "mismatch_margin"),
    CEILING: ("reliability", "fraction_of_ceiling", "delta_fraction"),
}
REASONS = {
    CONTROL_DELTAS: "too_few_events",
    NULLS: "undefined_score",
    PROFILE_DELTAS: "undefined_score",
    SPECIFICITY: "degenerate_direction",
    CEILING: "nonpositive_reliability",
}
SUBJECT_RUN = ("subject", "session", "run")


def random_study(seed: int) -> Tables:
    """Four layers around the thresholds, with missing numbers, reasons and mismatched unit orders."""
    rng = np.random.default_rng(seed)
    layers = []
    for layer in range(4):
        tables = passing_tables(layer=layer)
        for name, columns in NOISY.items():
            table = tables[name]
            shift, spread = rng.uniform(-0.3, 1.0), rng.uniform(0.05, 0.5)
            for column in columns:
                noise = table[column].mean() * shift + spread * rng.normal(size=table.height)
                gone = rng.random(table.height) < 0.1
                table = table.with_columns(
                    pl.when(pl.Series(gone)).then(None).otherwise(pl.Series(noise)).alias(column)
                )
            tables[name] = table
            if name in REASONS:
                excused = pl.Series(rng.random(table.height) < 0.1)
                tables = put(tables, name, pl.lit(excused), reason=REASONS[name])
        swapped = pl.Series(rng.random(tables[PROFILE_DELTAS].height) < 0.05)
        tables = put(tables, PROFILE_DELTAS, pl.lit(swapped), brain_unit_order_hash="other")
        few = pl.Series(rng.random(tables[SPECIFICITY].height) < 0.1)
        tables = put(tables, SPECIFICITY, pl.lit(few), n_targets=1)
        layers.append(tables)
    return stack(*layers)


def assert_same(left: Tables, right: Tables) -> None:
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].equals(right[name]), name


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=4, deadline=None)
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    tables = random_study(seed)
    shuffled = {name: table.sample(fraction=1.0, shuffle=True, seed=seed) for name, table in tables.items()}
    assert_same(decided(tables), decided(shuffled))


def test_deciding_again_changes_nothing_whatever_the_earlier_verdicts() -> None:
    tables = random_study(3)
    once = decided(tables)
    forged = {**tables, **once}
    assert_same(decided(forged), once)
    for name in (CONTROL_DELTAS, PROFILE_DELTAS, CEILING):
        forged = put(forged, name, gate_pass=True, label="pass")
    assert_same(decided(forged), once)


def test_deciding_a_stored_study_gives_the_same_frames(tmp_path: Path) -> None:
    tables = random_study(5)
    once = decided(tables)
    for name, table in {**tables, **once}.items():
        write_table(table, find_table(name), tmp_path)
    stored = {name: read_table(tmp_path, find_table(name)) for name in {**tables, **once}}
    assert_same(decided(stored), once)


def group(rows: Iterable[dict[str, Any]], *key: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in key)].append(row)
    return groups


def mean_of_means(rows: list[dict[str, Any]], column: str) -> float | None:
    per_run = [
        fmean(values)
        for run in group(rows, *SUBJECT_RUN).values()
        if (values := [r[column] for r in run if r[column] is not None])
    ]
    return fmean(per_run) if per_run else None


def plain_gates(tables: Tables, layer: int) -> dict[str, bool]:
    """Gates of the claim (demo, gpt2, layer, surprisal), read off the rows without Polars."""

    def rows(name: str) -> list[dict[str, Any]]:
        return [r for r in tables[name].to_dicts() if r["layer"] == layer]

    level1 = [
        r
        for r in rows(CONTROL_DELTAS)
        if r["metric"] == "pearson" and r["reason"] == "ok" and None not in (r["delta_nuisance"], r["delta_control"])
    ]
    positive = [r for r in level1 if r["delta_nuisance"] > 0 and r["delta_control"] > 0]
    out = {
        "predictive": bool(level1)
        and fmean(r["delta_nuisance"] for r in level1) > 0
        and fmean(r["delta_control"] for r in level1) > 0,
        "replication": len(level1) >= 3 and len(positive) >= 0.6 * len(level1),
    }
    by_control = group(
        (
            r
            for r in rows(NULLS)
            if r["metric"] == "pearson" and r["counted"] and r["reason"] == "ok"
            if None not in (r["delta"], r["control_score"])
        ),
        "control",
    )
    out["severe_control_level1"] = bool(by_control) and all(
        fmean(r["delta"] for r in part) > 0 for part in by_control.values()
    )

    contrasts = [r for r in rows(PROFILE_DELTAS) if r["reason"] == "ok" and r["delta_rel"] is not None]
    passing, summaries = 0, group(contrasts, "alignment", "profile")
    for part in summaries.values():
        ordered = [r for r in part if r["model_unit_order_hash"] == r["brain_unit_order_hash"]]
        good = [r for r in ordered if r["delta_rel"] > 0 and (r["split_half_reliability"] or 0) >= 0.1]
        mean = mean_of_means(ordered, "delta_rel")
        passing += len(good) >= 0.6 * len(part) and mean is not None and mean > 0
    out["relational"] = bool(summaries) and passing > 0.5 * len(summaries)

    unit_key = ("subject", "session", "run", "unit", "alignment", "profile")
    real = {
        tuple(r[k] for k in unit_key): r["real_similarity"]
        for r in contrasts
        if r["model_unit_order_hash"] == r["brain_unit_order_hash"]
    }
    reached: dict[str, list[bool]] = defaultdict(list)
    rivals = [
        {**r, "advantage": real[key] - r["similarity"]}
        for r in rows(SIMILARITIES)
        if r["counted"] and r["condition"] != "real" and r["similarity"] is not None
        if real.get(key := tuple(r[k] for k in unit_key)) is not None
    ]
    for (condition, *_), part in group(rivals, "condition", "alignment", "profile").items():
        advantage = mean_of_means(part, "advantage")
        assert advantage is not None
        reached[condition].append(advantage <= 0)
    out["severe_control_level2"] = bool(reached) and all(sum(votes) <= 0.5 * len(votes) for votes in reached.values())

    numbers = ("matching_drop", "margin", "mismatch_margin")
    strips = [
        r
        for r in rows(SPECIFICITY)
        if r["stripped"] == "surprisal" and r["reason"] == "ok" and r["n_targets"] >= 2
        if all(r[c] is not None for c in numbers)
    ]
    methods = group(strips, "method").values()
    agreeing = [m for m in methods if all(median(r[c] for r in m) > 0 for c in numbers)]
    out["mechanism_specific"] = bool(methods) and len(agreeing) >= 0.5 * len(methods)

    ceiling = rows(CEILING)
    bounded = [
        r
        for r in ceiling
        if r["reason"] == "ok" and (r["reliability"] or 0) >= 0.1
        if None not in (r["fraction_of_ceiling"], r["delta_fraction"])
    ]
    reliability = mean_of_means(ceiling, "reliability")
    fraction, delta = (mean_of_means(bounded, c) for c in ("fraction_of_ceiling", "delta_fraction"))
    summaries = group(bounded, "alignment", "profile").values()
    typical = median(mean_of_means(part, "fraction_of_ceiling") for part in summaries) if bounded else None
    out["ceiling"] = (
        None not in (reliability, fraction, delta, typical)
        and typical >= 0.25  # type: ignore[operator]
        and reliability >= 0.1  # type: ignore[operator]
        and fraction >= 0.25  # type: ignore[operator]
        and delta > 0  # type: ignore[operator]
    )
    return out


def test_gates_agree_with_a_plain_reading() -> None:
    seen = defaultdict(set)
    for seed in range(8):
        tables = random_study(seed)
        decisions = decided(tables)[DECISIONS].filter(pl.col("mechanism") == "surprisal")
        for row in decisions.iter_rows(named=True):
            expected = plain_gates(tables, row["layer"])
            assert {gate: row[gate] for gate in expected} == expected, (seed, row["layer"])
            for gate, passed in expected.items():
                seen[gate].add(passed)
    assert {gate: values for gate, values in seen.items() if len(values) < 2} == {}


def test_default_thresholds_are_those_of_the_plain_reading() -> None:
    assert (GATES.direction_fraction, GATES.min_subject_runs, GATES.min_reliability) == (
        0.6,
        3,
        0.1,
    )
    assert (GATES.min_ceiling_fraction, GATES.summary_majority) == (0.25, 0.5)
    assert GATES.method_majority == 0.5
    assert passing_tables()[FEASIBILITY].height == 1
