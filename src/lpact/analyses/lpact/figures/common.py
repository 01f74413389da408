"""Names, words and rows that figures share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import altair as alt
import polars as pl

from lpact.analyses.base import Material
from lpact.analyses.lpact.analysis import LPact
from lpact.analyses.lpact.explain.claim_rows import METRICS, MODES
from lpact.analyses.lpact.gates import CALIBRATED, PAPER
from lpact.analyses.lpact.gates.keys import LAYER_KEY, SUBJECT_RUN_KEY
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.analyses.lpact.tables.levels import CONTROL_DELTAS
from lpact.codes import FinalLabel
from lpact.report import panels
from lpact.report.figure import Spec, filled, with_marks
from lpact.report.panels import BOX, Look
from lpact.store import empty
from lpact.tables import Table
from lpact.wording import short

GATES = dict(LPact.claims.gates)
"""Column of the decision table behind each gate's letter, in the order of the chain."""

GATE_NAMES: dict[str, str] = {
    "P": "predictive",
    "S": "severe controls",
    "R": "relational",
    "M": "mechanism",
    "T": "brain–brain ceiling",
    "Rep": "replication",
}

GATE_PROFILES: dict[str, str] = {PAPER: "point rules", CALIBRATED: "statistical tests"}
"""Gate profiles in words."""
GATE_PROFILE_ORDER = pl.Enum(list(GATE_PROFILES))

PROFILE_LOOKS: dict[str, Look] = {
    PAPER: Look("circle", "paper", "ink", 48),
    CALIBRATED: Look("square", "ink", "paper", 60),
}
MISSING_BOX = ("not computed", Look(BOX, "missing", "missing", 160))
"""Entry of a key."""

LABEL_RANK: dict[str, int] = {label.value: rank for rank, label in enumerate(FinalLabel)}
"""Verdicts from the strongest."""

LAYER, SUBJECT_RUN = list(LAYER_KEY), list(SUBJECT_RUN_KEY)
LANE = pl.format("{} · layer {}", "model", "layer").alias("lane")
"""Model and layer as the name of a lane."""
REAL, NUISANCE = "real", "nuisance"


def table_of(material: Material, declared: Table) -> pl.DataFrame:
    """A table, without rows where the run has none."""
    return material.table(declared.name) if material.has(declared.name) else empty(declared)


def names(frame: pl.DataFrame, column: str) -> list[str]:
    """The distinct values of a column, in their order."""
    return [str(own) for own in frame[column].unique(maintain_order=True)]


def top(rows: pl.DataFrame, *by: str, then: Sequence[str] = LAYER) -> dict[str, Any]:
    """The row with the highest values of some columns; ties by layer, or by other columns."""
    order = [*by, *then]
    ranked = rows.sort(order, descending=[name in by for name in order], nulls_last=True)
    return ranked.row(0, named=True)


def metric_name(material: Material) -> str:
    """The primary metric in words."""
    metric = material.config.readout.primary_metric
    return METRICS.get(metric, metric)


def layer_name(row: dict[str, Any]) -> str:
    """A layer in a title."""
    return f"{row['dataset']} · {row['model']} · layer {row['layer']}"


def place(row: dict[str, Any]) -> str:
    """Dataset, model, layer and subject-run of a row, as far as it has them."""
    parts = [str(row[name]) for name in ("dataset", "model") if row.get(name) is not None]
    named = ("layer", *SUBJECT_RUN)
    return ", ".join([*parts, *(f"{own} {row[own]}" for own in named if row.get(own) is not None)])


def marked(rows: pl.DataFrame, text: str | Callable[[dict[str, Any]], str], value: str = "") -> pl.DataFrame:
    """`with_marks`; templates may use ``{at}`` (`place`) and ``{rules}`` (the gate profile in words)."""

    def words(row: dict[str, Any]) -> str:
        known = {**row, "at": place(row), "rules": GATE_PROFILES.get(row.get("gate_profile", ""), "")}
        return filled(text, known) if isinstance(text, str) else text(known)

    return with_marks(rows, words, value)


def profiles_in(rows: pl.DataFrame) -> list[str]:
    """Gate profiles of some rows, point rules first."""
    return [name for name in GATE_PROFILES if name in rows["gate_profile"]]


def profile_entries(profiles: Iterable[str] = GATE_PROFILES, gate: str = "") -> list[tuple[str, Look]]:
    """Gate profiles as entries of a key; with a gate, its passes."""
    passed = f"{gate} passed, " if gate else ""
    return [(f"{passed}{GATE_PROFILES[name]}", PROFILE_LOOKS[name]) for name in profiles]


def of_layer(layer: dict[str, Any]) -> list[pl.Expr]:
    """Filters for the rows of a layer."""
    return [pl.col(name) == layer[name] for name in LAYER]


def shown(material: Material, rows: pl.DataFrame, most: int, table: Table) -> tuple[pl.DataFrame, str]:
    """At most ``most`` layers, and a sentence about the others, whose numbers are in ``table``.

    The best layer of every dataset comes before the second best: best verdict first, then highest score.
    """
    rank = pl.col("label").replace_strict(LABEL_RANK, return_dtype=pl.Int64)
    decisions = table_of(material, DECISIONS)
    verdicts = decisions.group_by(LAYER).agg(rank.min().alias("rank"), score=pl.col("raw_score").fill_nan(None).max())
    layers = rows.select(LAYER).unique()
    ranked = (
        layers.join(verdicts, on=LAYER, how="left")
        .sort("dataset", "rank", -pl.col("score"), "model", "layer", nulls_last=True)
        .sort(pl.int_range(pl.len()).over("dataset"), "dataset")
    )
    text = (
        f"Drawn are {most} of {layers.height} layers, of every dataset first those with the best verdicts; the table "
        f"{table.name} has all of them."
    )
    return ranked.head(most).select(LAYER).sort(LAYER), text if layers.height > most else ""


def blocks(
    rows: pl.DataFrame,
    draw: Callable[[pl.DataFrame, bool], list[Any]],
    spacing: float = 16,
    about: str = "",
) -> list[alt.HConcatChart]:
    """Panels of every dataset side by side, below its name; ``draw`` is given its rows, and whether it is the first.

    The column ``about`` is in brackets after the name.
    """
    made = []
    for i, own in enumerate(rows.partition_by("dataset", maintain_order=True)):
        name = short(own["dataset"][0], 100) + (f" ({own[about][0]})" if about else "")
        title = panels.title(name, limit=900, offset=10 if i == 0 else 4)
        made.append(panels.side_by_side(*draw(own, i == 0), title=title, spacing=spacing))
    return made


def mechanism_order(material: Material, found: pl.Series) -> list[str]:
    """Mechanisms in the order of the study file, then others of the tables, by name."""
    known = [name for name in material.config.mechanisms.include if (found == name).any()]
    return [*known, *sorted(set(found.to_list()) - set(known))]


def primary_deltas(material: Material) -> pl.DataFrame:
    """Level 1 at the primary metric, sorted by key: one row per subject-run, model and layer."""
    metric = material.config.readout.primary_metric
    return table_of(material, CONTROL_DELTAS).filter(metric=metric).sort([*LAYER, *SUBJECT_RUN])


def strictest(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Of the rows of a group that have a reliability, those of the strictest ``mode``."""
    order = {mode: place for place, mode in enumerate(MODES)}
    rank = pl.col("mode").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    return rows.drop_nulls("reliability").filter(rank == rank.min().over(list(by)))


def side(place: int, profiles: Sequence[str]) -> float:
    """By how many pixels the marks of a gate profile are moved, so that those of all are next to each other."""
    return 9.0 * (place - (len(profiles) - 1) / 2)


def profile_marks(
    rows: pl.DataFrame,
    profiles: Sequence[str],
    along: str,
    scale: Spec,
    at: Spec,
    ends: tuple[str, str] = ("low", "high"),
) -> list[alt.Chart]:
    """Symbols and intervals along "x" or "y", those of the gate profiles next to each other."""
    made = []
    for place, profile in enumerate(profiles):
        own, shift = rows.filter(gate_profile=profile), side(place, profiles)
        offset: Spec = {"yOffset" if along == "x" else "xOffset": shift}
        moved = (0.0, shift) if along == "x" else (shift, 0.0)
        both = (scale, at) if along == "x" else (at, scale)
        made += [
            panels.intervals(own, along, at, scale, ends=ends, **offset),
            panels.points(own, *both, PROFILE_LOOKS[profile], shift=moved),
        ]
    return made


def count_columns(
    rows: pl.DataFrame, column: str, y: Any, profiles: Sequence[str], left: float, *, head: bool
) -> list[alt.Chart]:
    """Numbers next to a panel, one column per gate profile from ``left`` on; those that ``changed`` are bold."""
    made = []
    for i, profile in enumerate(profiles):
        x, own = left + 44 * i, rows.filter(gate_profile=profile).drop("mark")
        for changed in (False, True):
            strong = {"ink": "fail", "fontWeight": "bold"} if changed else {}
            part = own.filter(changed=changed)
            made.append(panels.text(part, column, {"value": x}, y, size=10, align="right", **strong))
        if head:
            look = PROFILE_LOOKS[profile]
            made.append(panels.points(pl.DataFrame({"n": [1]}), {"value": x - 4}, {"value": -8}, look))
    return made
