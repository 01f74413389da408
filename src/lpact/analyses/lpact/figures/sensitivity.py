"""What the verdicts hang on: counts if one threshold, control, dataset or subject-run were different."""

from __future__ import annotations

import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.figures.common import PROFILES
from lpact.analyses.lpact.figures.lanes import lane, separators
from lpact.analyses.lpact.figures.profile_marks import PROFILE, looks, profile_names
from lpact.analyses.lpact.figures.sensitivity_rows import (
    DATASETS,
    SERIES,
    SUBJECT_RUNS,
    Block,
    Counts,
    blocks_of,
    run_counts,
)
from lpact.analyses.lpact.tables.robustness import THRESHOLD_SENSITIVITY
from lpact.report.figure import DESCRIPTION, Figure, Missing, Spec, values
from lpact.report.theme import colour

NAME, TITLE = "sensitivity", "What the verdicts hang on"
CLAIMS_WIDTH, SHARES_WIDTH, LANE = 200, 240, 18
TOLD_WIDTH = 276
COUNT_AT, COUNT_GAP = 36, 40
_OWN_LOOKS = {"scale": dict.fromkeys(("shape", "fill", "stroke"), "independent")}
SHAPES = ("diamond", "diamond", "triangle-up", "triangle-down")
"""Marks of the series of shares; the first is open."""


def make(material: Material) -> Figure | Missing:
    """Claims that pass every gate, and rows that pass, after each single change."""
    if not material.has(THRESHOLD_SENSITIVITY.name):
        return Missing(NAME, TITLE, "the robustness tables were not given")
    blocks, counts = blocks_of(material), run_counts(material)
    if not any(block.claims.height for block in blocks):
        return Missing(NAME, TITLE, "no claims were decided again")
    profiles = profile_names(sorted({p for b in blocks for p in b.claims["gate_profile"]}))
    most = max(max(block.claims["n_high"], default=0) for block in blocks)
    spec: Spec = {
        "vconcat": [
            _block(block, profiles, most, is_first=i == 0, is_last=i == len(blocks) - 1)
            for i, block in enumerate(blocks)
        ],
        "spacing": 14,
        "resolve": _OWN_LOOKS,
    }
    return Figure(NAME, TITLE, _caption(blocks, counts), _summary(blocks, counts), spec)


def _block(block: Block, profiles: list[str], most: int, *, is_first: bool, is_last: bool) -> Spec:
    right = _shares(block) if block.shares.height else _told(block, profiles)
    left = _claims(block, profiles, most, is_first=is_first, is_last=is_last)
    left["title"] = {"text": block.title, "fontSize": 12, "frame": "group", "offset": 6}
    return {"hconcat": [left, right], "spacing": 24, "resolve": _OWN_LOOKS}


def _claims(block: Block, profiles: list[str], most: int, *, is_first: bool, is_last: bool) -> Spec:
    """Claims that pass every gate: marks on a scale, and the same as numbers right of it."""
    y = lane("lane", block.lanes)
    top = max(most, 1)
    axis = {
        "title": "claims that pass every gate" if is_last else None,
        "format": "d",
        "values": list(range(0, top + 1, _step(top))),
        "grid": True,
        "labelFlush": False,
    }
    scale = {"domain": [0, top], "padding": 8, "nice": False}
    x: Spec = {"field": "n", "type": "quantitative", "axis": axis, "scale": scale}
    within = {"paddingOuter": 0.3, "domain": profiles}
    offset = {"field": PROFILE, "type": "nominal", "sort": None, "scale": within}
    look = looks(profiles, legend=is_first)
    told = pl.when(pl.col("n") == pl.col("n_high")).then(pl.col("n").cast(pl.String))
    rows = block.claims.with_columns(told=told.otherwise(pl.format("{}–{}", "n", "n_high")))
    place = {"y": y, "yOffset": offset}
    return {
        "data": values(rows),
        "width": CLAIMS_WIDTH,
        "height": {"step": LANE, "for": "position"},
        "layer": [
            separators(y),
            {
                "mark": {"type": "rule", "strokeWidth": 1.5},
                "encoding": {**place, "x": x, "x2": {"field": "n_high"}, "stroke": look["stroke"]},
            },
            *(
                {
                    "mark": {"type": "point", "size": 36, "strokeWidth": 1.3},
                    "encoding": {
                        **place,
                        "x": {**x, "field": end},
                        "description": DESCRIPTION,
                        **look,
                    },
                }
                for end in ("n_high", "n")
            ),
            *(_heads(profiles) if is_first else []),
            *(_count(i, name, y) for i, name in enumerate(profiles)),
        ],
    }


def _step(top: int) -> int:
    """Distance of ticks: 1, 2 or 5 times a power of ten, for at most six of them."""
    step, grow = 1, (2.0, 2.5, 2.0)
    for i in range(60):
        if top // step <= 5:
            break
        step = int(step * grow[i % 3])
    return step


def _heads(profiles: list[str]) -> list[Spec]:
    """The profiles' marks above the columns of numbers."""
    return [
        {
            "data": {"values": [{PROFILE: name}]},
            "mark": {
                "type": "point",
                "size": 36,
                "strokeWidth": 1.3,
                "x": CLAIMS_WIDTH + COUNT_AT + i * COUNT_GAP - 4,
                "y": -8,
            },
            "encoding": looks(profiles),
        }
        for i, name in enumerate(profiles)
    ]


def _count(place: int, name: str, y: Spec) -> Spec:
    """Numbers of one profile; bold where they differ from the run's."""
    at = CLAIMS_WIDTH + COUNT_AT + place * COUNT_GAP
    layers = [
        {
            "transform": [{"filter": {"field": "changed", "equal": changed}}],
            "mark": {
                "type": "text",
                "align": "right",
                "fontSize": 10,
                "x": at,
                "fontWeight": "bold" if changed else "normal",
                "color": colour("fail" if changed else "ink"),
            },
            "encoding": {"y": y, "text": {"field": "told", "type": "nominal"}},
        }
        for changed in (False, True)
    ]
    return {"transform": [{"filter": {"field": PROFILE, "equal": name}}], "layer": layers}


def _shares(block: Block) -> Spec:
    """Shares of rows that pass, by series."""
    y = lane("lane", block.lanes, labelled=False)
    axis = {
        "title": "share of rows or summaries",
        "values": [0, 0.25, 0.5, 0.75, 1],
        "format": ".2~f",
        "grid": True,
        "labelFlush": False,
    }
    scale = {"domain": [0, 1]}
    used = [name for name in SERIES if name in set(block.shares["series"])]
    shapes = [SHAPES[SERIES.index(name)] for name in used]
    fills = [colour("paper" if name == SERIES[0] else "control") for name in used]
    mark = {"type": "point", "size": 44, "strokeWidth": 1.2}
    field = {"field": "series", "type": "nominal", "legend": {"title": None, "columns": 2}}
    return {
        "data": values(block.shares),
        "width": SHARES_WIDTH,
        "height": {"step": LANE, "for": "position"},
        "layer": [
            separators(y),
            {
                "mark": mark,
                "encoding": {
                    "y": y,
                    "x": {"field": "share", "type": "quantitative", "axis": axis, "scale": scale},
                    "shape": {**field, "scale": {"domain": used, "range": shapes}},
                    "fill": {**field, "scale": {"domain": used, "range": fills}},
                    "stroke": {
                        **field,
                        "scale": {"domain": used, "range": [colour("ink")] * len(used)},
                    },
                    "description": DESCRIPTION,
                },
            },
        ],
    }


def _told(block: Block, profiles: list[str]) -> Spec:
    """What became of each change, in words, a column a profile."""
    y = lane("lane", block.lanes, labelled=False)
    wide = TOLD_WIDTH / max(len(profiles), 1)
    layers: list[Spec] = [separators(y)]
    for i, name in enumerate(profiles):
        own = {"transform": [{"filter": {"field": PROFILE, "equal": name}}]}
        x = 6 + i * wide
        layers.append(
            {
                **own,
                "mark": {"type": "point", "size": 30, "strokeWidth": 1.3, "x": x},
                "encoding": {"y": y, **looks(profiles, legend=False)},
            }
        )
        layers.append(
            {
                **own,
                "mark": {"type": "text", "align": "left", "fontSize": 10, "x": x + 8},
                "encoding": {
                    "y": y,
                    "text": {"field": "words", "type": "nominal"},
                    "description": DESCRIPTION,
                },
            }
        )
    return {
        "data": values(block.told),
        "width": TOLD_WIDTH,
        "height": {"step": LANE, "for": "position"},
        "layer": layers,
    }


def _caption(blocks: list[Block], counts: Counts) -> str:
    run = "; ".join(
        f"{PROFILES.get(profile, profile)}: {n:,} of {total:,}"
        for profile, (n, total) in counts.of_run.items()
    )
    parts = [
        "Left: claims that pass every gate if one thing alone is changed and the stored tables are decided "
        "again; their "
        f"numbers are bold and coloured where they differ from the run ({run}), or where as many claims are gained as "
        "lost."
    ]
    titles = {block.title for block in blocks}
    if any(block.shares.height for block in blocks):
        parts.append(
            "Right: the share of rows, or of dataset and level summaries, that pass; row rules are point rules under "
            "both profiles."
        )
    if any(block.claims["gate_profile"].n_unique() > 1 and _uneven(block) for block in blocks):
        parts.append("A lane without a mark was not decided under that profile.")
    if DATASETS in titles:
        parts.append("A dataset that is left out takes its own claims along.")
    if SUBJECT_RUNS in titles:
        parts.append(
            "Subject-runs of a dataset share a lane: the smallest and the largest count, and how many change a claim."
        )
    return " ".join(parts)


def _uneven(block: Block) -> bool:
    return block.claims.height < len(block.lanes) * block.claims["gate_profile"].n_unique()


def _summary(blocks: list[Block], counts: Counts) -> str:
    told = []
    for profile, (n, total) in counts.of_run.items():
        changed = []
        for block in blocks:
            own = block.claims.filter(pl.col("gate_profile") == profile, ~pl.col("of_run"))
            changed.append(f"{block.title.lower()}: {int(own['changed'].sum())} of {own.height}")
        told.append(
            f"{PROFILES.get(profile, profile)}: {n:,} of {total:,} claims pass every gate; changes that alter "
            f"which claims do: {', '.join(changed)}"
        )
    return ". ".join(told) + "."
