"""What every figure must be: a valid specification, well-formed SVG, colours of the palette only."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any

import jsonschema
import polars as pl
from altair.vegalite.v6.schema.core import load_schema

from lpact.analyses.base import Material
from lpact.analyses.lpact.config import LPactSection
from lpact.config import StudyConfig
from lpact.report.figure import Figure, Missing
from lpact.report.render import to_svg
from lpact.report.theme import unknown_colours
from lpact.validation import validate_model

SVG = "{http://www.w3.org/2000/svg}"
EVIL = """</title></svg><script>alert("1")</script>'&\n<img src=x onerror=alert(1)>"""


VEGA_LITE = jsonschema.Draft7Validator(load_schema())
"""The schema of Vega-Lite as Altair carries it; its own check is the same, and takes ten times as long."""


def without_rows(spec: Any) -> Any:
    """A specification whose data are empty: they are rows of ours, and long to check."""
    if isinstance(spec, dict):
        return {
            key: {"values": []} if key == "data" and "values" in own else without_rows(own) for key, own in spec.items()
        }
    return [without_rows(own) for own in spec] if isinstance(spec, list) else spec


@dataclass(frozen=True)
class DrawnMark:
    """A mark of a picture that stands for rows."""

    text: str
    dataset: str | None
    model: str | None
    layer: str | None
    profile: str | None
    value: float | None
    element: ElementTree.Element


def checked_svg(made: Figure | Missing) -> ElementTree.Element:
    """The picture, parsed; its specification is valid, and its colours are of the palette."""
    assert isinstance(made, Figure), made
    wrong = jsonschema.exceptions.best_match(VEGA_LITE.iter_errors(without_rows(made.spec)))
    assert wrong is None, wrong
    svg = to_svg(made)
    assert unknown_colours(svg) == []
    assert made.title
    assert made.caption
    assert made.summary
    return ElementTree.fromstring(svg)


def marks(root: ElementTree.Element) -> list[DrawnMark]:
    """Every mark that stands for rows, in the order in which they are drawn."""
    found = [own for own in root.iter() if own.get("class") == "m"]
    return [
        DrawnMark(
            text=own.get("aria-label") or "",
            dataset=own.get("data-dataset"),
            model=own.get("data-model"),
            layer=own.get("data-layer"),
            profile=own.get("data-profile"),
            value=None if own.get("data-value") is None else float(own.get("data-value", "")),
            element=own,
        )
        for own in found
    ]


def texts(root: ElementTree.Element) -> list[str]:
    """Every text of a picture; the title of a marked one is not part of it."""
    return [(own.text or "") + "".join(child.tail or "" for child in own) for own in root.iter(f"{SVG}text")]


def width_of(root: ElementTree.Element) -> float:
    """Width of the picture in pixels."""
    return float(root.get("width", "nan"))


OWN_TABLES = set(LPactSection.model_fields)


def material(tables: dict[str, pl.DataFrame], more: dict[str, pl.DataFrame] | None = None, **config: Any) -> Material:
    """Tables with the smallest study; ``config`` are further tables of it, those of L-PACT under their own names."""
    shared = {
        "name": "s",
        "datasets": [{"name": "d", "reader": "simulated"}],
        "models": [{"name": "m", "layers": [1]}],
        **{name: own for name, own in config.items() if name not in OWN_TABLES},
    }
    own = {name: own for name, own in config.items() if name in OWN_TABLES}
    section = validate_model(LPactSection, own, where="tests")
    study = validate_model(StudyConfig, {**shared, "analyses": {"lpact": section}}, where="tests")
    return Material(tables, study, more or {})
