"""How a table is declared: columns with type, unit and meaning, a key, and who fills which column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DType = Literal["str", "int", "float", "bool", "list[float]", "list[str]", "list[int]"]


@dataclass(frozen=True)
class Column:
    """One column.

    ``decided`` columns are filled by ``lpact.analyses.lpact.gates``; all others are measurements. ``nullable`` columns may be
    missing, and then a reason column of the same row says why.
    """

    name: str
    dtype: DType
    meaning: str
    unit: str = ""
    nullable: bool = False
    decided: bool = False


@dataclass(frozen=True)
class Table:
    """One Parquet table of a run directory, with its CSV twin."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = [c.name for c in self.columns]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: a column is declared twice")
        if missing := [k for k in self.key if k not in names]:
            raise ValueError(f"{self.name}: key column {missing[0]} is not declared")

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(c.name for c in self.columns)

    def measured(self) -> Table:
        """The table as a level makes it: without the columns that the decision fills."""
        kept = tuple(c for c in self.columns if not c.decided)
        return Table(self.name, self.meaning, self.key, kept)


RECORDING = (
    Column("dataset", "str", "Dataset name in the study file."),
    Column("subject", "str", "Subject."),
    Column("session", "str", "Session."),
    Column("run", "str", "Run."),
)
CONTEXT = (
    *RECORDING,
    Column("model", "str", "Model name in the study file."),
    Column("layer", "int", "Layer; 0 is the input embedding."),
)
CLAIM = (
    Column("dataset", "str", "Dataset name in the study file."),
    Column("model", "str", "Model name in the study file."),
    Column("layer", "int", "Layer; 0 is the input embedding."),
    Column("mechanism", "str", "Candidate mechanism."),
)
RECORDING_KEY = tuple(c.name for c in RECORDING)
CONTEXT_KEY = tuple(c.name for c in CONTEXT)
CLAIM_KEY = tuple(c.name for c in CLAIM)


def reason() -> Column:
    """The column that says why a row's numbers are missing."""
    return Column("reason", "str", "`ok`, or the reason code for missing numbers.")
