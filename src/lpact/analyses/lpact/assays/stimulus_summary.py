"""From recordings to datasets: in how many a low-level control is seen, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from lpact.analyses.lpact.assays.courses import PROXIES
from lpact.analyses.lpact.assays.low_level import window_name
from lpact.analyses.lpact.assays.shifts import passes_by_chance, reachable_level
from lpact.analyses.lpact.assays.stimulus_rows import METRICS, ONSET, RATE
from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.levels.media import PROXY_LABELS
from lpact.analyses.lpact.tables.assay import (
    ENVELOPE_FULL,
    ENVELOPE_STANDALONE,
    FULL_SUMMARY,
    LOW_LEVEL,
    LOW_LEVEL_SUMMARY,
    PROXY,
    PROXY_SUMMARY,
    STANDALONE_SUMMARY,
)
from lpact.codes import Reason
from lpact.store import concat, frame
from lpact.tables import Table

Row = dict[str, Any]

_SEEN = {
    ONSET: "a response to word onsets",
    RATE: "a response to word rate",
    ENVELOPE_STANDALONE.name: "the acoustic envelope, from the first word to the last",
    ENVELOPE_FULL.name: "the acoustic envelope, over the whole recording",
}


_REASONS = {reason.value: reason for reason in Reason}


def summarise(frames: Mapping[str, pl.DataFrame], config: LPactConfig) -> dict[str, pl.DataFrame]:
    """Return the summaries of recordings' tables, and these tables in canonical order."""
    tables = (LOW_LEVEL, ENVELOPE_STANDALONE, ENVELOPE_FULL, PROXY)
    detailed = {
        table.name: concat(table, [frames[table.name]] if table.name in frames else [])
        for table in tables
    }
    low = _summary(
        LOW_LEVEL_SUMMARY, detailed[LOW_LEVEL.name], config, ("target", "window"), _no_windows
    )
    made = {LOW_LEVEL_SUMMARY.name: low}
    for table, summary in (
        (ENVELOPE_STANDALONE, STANDALONE_SUMMARY),
        (ENVELOPE_FULL, FULL_SUMMARY),
    ):
        rows = detailed[table.name].with_columns(pl.lit(table.name).alias("_what"))
        made[summary.name] = _summary(summary, rows, config, ("_what",), lambda _: [{}])
    made[PROXY_SUMMARY.name] = _summary(
        PROXY_SUMMARY, detailed[PROXY.name], config, ("proxy",), _no_proxies
    )
    return detailed | made


def _summary(
    table: Table,
    rows: pl.DataFrame,
    config: LPactConfig,
    by: Sequence[str],
    without: Callable[[LPactConfig], list[Row]],
) -> pl.DataFrame:
    """One row per dataset and group; ``without`` gives the groups of a dataset that has no recording."""
    extra = [c for c in ("metric", "label") if c in table.column_names]
    made: list[Row] = []
    for entry in config.datasets:
        own = rows.filter(pl.col("dataset") == entry.name)
        groups: Iterable[tuple[Row, pl.DataFrame]] = [
            (dict(zip(by, key, strict=True)) | {c: group[c][0] for c in extra}, group)
            for key, group in own.group_by(by, maintain_order=True)
        ]
        if not own.height:
            groups = [(row, own) for row in without(config)]
        for named, group in groups:
            what = named.get("target") or named.pop("_what", None) or named.get("label")
            seen = _SEEN.get(str(what), str(what or "the acoustic envelope"))
            made.append({"dataset": entry.name, **named, **_counts(group, config, seen)})
    return concat(table, [frame(table, made)])


def _counts(group: pl.DataFrame, config: LPactConfig, seen: str) -> Row:
    computed = group.filter(pl.col("reason") == Reason.OK)
    n, n_passing = computed.height, int(computed["gate_pass"].sum())
    assay = config.assay
    codes = [] if n else sorted(group["reason"].to_list())
    missing = max(codes, key=codes.count, default=Reason.DATASET_HAS_NO_RECORDING)
    reason = Reason.OK if n else _REASONS[missing]
    chance = passes_by_chance(n_passing, n, reachable_level(assay.alpha, assay.shifts))
    passes = bool(n) and chance <= assay.alpha
    return {
        "n_recordings": group.height,
        "n_computed": n,
        "n_passing": n_passing,
        "median_value": computed["value"].median(),
        "median_delta": computed["delta"].median(),
        "p_by_chance": chance if n else None,
        "gate": ("pass" if passes else "no") if n else "not_computed",
        "reason": reason,
        "interpretation": _words(group.height, n, n_passing, seen, reason, passes=passes),
    }


def _words(n_all: int, n: int, n_passing: int, seen: str, reason: Reason, *, passes: bool) -> str:
    if not n:
        return f"Not computed: {reason.explanation[0].lower()}{reason.explanation[1:]}"
    of = f"{n_passing} of {n} recordings" + (f" ({n_all - n} not computed)" if n < n_all else "")
    if passes:
        return f"Seen in {of}, more than chance allows: {seen}."
    return f"Not shown, {of} pass, which chance allows: {seen}."


def _no_windows(config: LPactConfig) -> list[Row]:
    return [
        {"target": target, "window": window_name(window), "metric": METRICS[target]}
        for target in (ONSET, RATE)
        for window in config.assay.onset_windows_ms
    ]


def _no_proxies(_: LPactConfig) -> list[Row]:
    return [{"proxy": proxy, "label": PROXY_LABELS[proxy]} for proxy in PROXIES]
