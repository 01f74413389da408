"""What the figures of levels 2 and 3 share: layers and their names, which gates they pass, and colours of cells.

A layer is (dataset, model, layer): what a claim is about before its mechanism is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from lpact.decide import CALIBRATED, PAPER
from lpact.report.figure import Material, Spec
from lpact.report.figures.common import PROFILES
from lpact.report.theme import DIVERGING, RAMP, colour

LAYER = ["dataset", "model", "layer"]
RUN = ["subject", "session", "run"]
DECISIONS = "decisions/lpact_decision_table"
REAL, NUISANCE = "real", "nuisance"

PASS_SHAPES = {PAPER: "circle", CALIBRATED: "square"}
"""Shape of the mark for a passed gate, by gate profile."""

MINUS = "\N{MINUS SIGN}"


def layer_name(row: dict[str, Any]) -> str:
    """A layer in words."""
    return f"{row['dataset']} · {row['model']} · layer {row['layer']}"


def clipped(name: str, letters: int) -> str:
    """A name of at most so many letters, in one line; a longer one ends in an ellipsis."""
    line = " ".join(str(name).split())
    return line if len(line) <= letters else f"{line[: letters - 1].rstrip()}…"


def short_layer_name(row: dict[str, Any], letters: int) -> str:
    """A layer in at most so many letters: dataset and model are clipped, so that the layer's number stays."""
    end = f" · layer {row['layer']}"
    room = letters - len(end) - 3
    dataset, model = (" ".join(str(row[name]).split()) for name in ("dataset", "model"))
    if len(dataset) + len(model) > room:
        kept = max(room // 2, room - len(model))
        dataset = clipped(dataset, kept)
        model = clipped(model, room - len(dataset))
    return f"{dataset} · {model}{end}"


def run_name(row: dict[str, Any]) -> str:
    """A subject-run in words."""
    return f"subject {row['subject']}, session {row['session']}, run {row['run']}"


def number(value: float | None, decimals: int = 3, *, sign: bool = True) -> str:
    """A number with a true minus sign; zero has no sign, and what is missing is a dash."""
    if value is None or not math.isfinite(value):
        return "–"
    rounded = round(value, decimals)
    if rounded == 0:
        return f"{0:.{decimals}f}"
    return f"{rounded:{'+' if sign else ''}.{decimals}f}".replace("-", MINUS)


def counted(n: int, one: str, many: str = "") -> str:
    """A count with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def span(low: int, high: int) -> str:
    """A range of counts, or the one count."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def passes(material: Material, gate: str) -> pl.DataFrame:
    """Which layers pass a gate (for any mechanism), one row a layer, one column a gate profile."""
    if not material.has(DECISIONS):
        return pl.DataFrame(
            schema={
                "dataset": pl.String,
                "model": pl.String,
                "layer": pl.Int64,
                PAPER: pl.Boolean,
                CALIBRATED: pl.Boolean,
            }
        )
    held = [
        (pl.col(gate) & (pl.col("gate_profile") == profile)).any().alias(profile)
        for profile in (PAPER, CALIBRATED)
    ]
    return material.table(DECISIONS).sort(LAYER).group_by(LAYER, maintain_order=True).agg(held)


def mechanism_order(material: Material, found: pl.Series) -> list[str]:
    """Mechanisms as the study file names them, then others that the tables hold, by name."""
    known = [name for name in material.config.stripping.mechanisms if (found == name).any()]
    return [*known, *sorted(set(found.to_list()) - set(known))]


def round_down(value: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above the value; 0.001 where there is none."""
    if not math.isfinite(value) or value <= 0:
        return 0.001
    power = math.floor(math.log10(value))
    fits = (m * 10.0**power for m in (5, 2, 1) if m * 10.0**power <= value * (1 + 1e-9))
    return float(next(fits, 10.0**power))


def diverging_breaks(largest: float) -> list[float]:
    """Six bounds of seven classes around zero, the outer ones open: ±b/10, ±0.4 b, ±b, with b about half the largest.

    The classes widen outwards, so that one large value does not leave all others in the middle.
    """
    bound = round_down(largest / 2)
    return [round(k * bound, 12) for k in (-1, -0.4, -0.1, 0.1, 0.4, 1)]


def class_of(value: float | None, breaks: Sequence[float]) -> int | None:
    """Index of the class that a value is in, as a threshold scale counts."""
    if value is None or not math.isfinite(value):
        return None
    return sum(value >= bound for bound in breaks)


def ink_on(roles: tuple[str, ...], place: int | None) -> str:
    """Colour of text over a cell: of the diverging or the rising scale, or of a missing one."""
    strong = {DIVERGING: (0, 1, 5, 6), RAMP: (4, 5, 6)}[roles]
    return colour("on_strong" if place in strong else "on_light")


def fill_of(roles: tuple[str, ...], place: int | None) -> str:
    """Colour of a cell of a class, or of a missing one."""
    return colour("missing" if place is None else roles[place])


def short_number(value: float) -> str:
    """A bound of a class: as few digits as it has, with its sign."""
    return f"{value:+g}".replace("-", MINUS)


def own_colour(field: str) -> Spec:
    """A colour that the data bring along."""
    return {"field": field, "type": "nominal", "scale": None}


def held_under(layer: dict[str, Any]) -> str:
    """Under which gate profiles a gate is passed, in words; ``layer`` has a flag a profile."""
    held = [profile for profile in PROFILES if layer.get(profile)]
    if len(held) == len(PROFILES):
        return "both profiles"
    return f"{PROFILES[held[0]]} only" if held else "not passed"
