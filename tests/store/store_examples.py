"""A table with every column type, and rows for it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lpact.store import InputFile, Provenance
from lpact.tables import Column, Table

EVERY_TYPE = Table(
    "audits/every_type",
    "One row a name and draw: every column type.",
    ("name", "draw"),
    (
        Column("name", "str", "Name."),
        Column("draw", "int", "Draw."),
        Column("score", "float", "Score that is always there.", "uV"),
        Column("delta", "float", "Score that may be missing.", nullable=True),
        Column("passed", "bool", "Flag."),
        Column("best", "str", "Text that may be missing.", nullable=True),
        Column("pattern", "list[float]", "Floats; elements may be missing."),
        Column("layers", "list[int]", "Integers."),
        Column("units", "list[str]", "Texts that may be missing.", nullable=True),
    ),
)


def row(**changes: Any) -> dict[str, Any]:
    """A valid row of `EVERY_TYPE` with some cells changed."""
    plain: dict[str, Any] = {
        "name": "a",
        "draw": 0,
        "score": 0.5,
        "delta": None,
        "passed": True,
        "best": None,
        "pattern": [0.25, None],
        "layers": [1, 2],
        "units": ["u1", "u2"],
    }
    return plain | changes


_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_int = st.integers(-(2**63), 2**63 - 1)
_float = st.floats(allow_nan=False, allow_infinity=False)

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": _text,
            "draw": _int,
            "score": _float,
            "delta": st.none() | _float,
            "passed": st.booleans(),
            "best": st.none() | _text,
            "pattern": st.lists(st.none() | _float, max_size=4),
            "layers": st.lists(_int, max_size=3),
            "units": st.none() | st.lists(_text, max_size=3),
        }
    ),
    max_size=6,
    unique_by=lambda cells: (cells["name"], cells["draw"]),
)


def provenance(**changes: Any) -> Provenance:
    """What a small run is made from."""
    plain: dict[str, Any] = {
        "study": "tiny",
        "seed": 3,
        "config": {"name": "tiny", "seed": 3, "alphas": (1.0, 10.0)},
        "inputs": (InputFile(dataset="d", path="x.npy", n_bytes=4, sha256="00" * 32),),
    }
    return Provenance(**(plain | changes))
