"""How a table is declared, the tables of the engine, and every declared table by name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from lpact.errors import RegistryError, TableError, did_you_mean
from lpact.registry import ANALYSES

DType = Literal["str", "int", "float", "bool", "list[float]", "list[str]", "list[int]"]


@dataclass(frozen=True)
class Column:
    """One column.

    ``decided`` columns are filled by `Analysis.decide`; all others are measurements. ``nullable`` columns may be
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


# Tables that the engine writes for every analysis.

SOURCE_FILES = Table(
    "audits/lpact_source_files",
    "One row per source file: size, checksum and licence.",
    ("dataset", "path"),
    (
        Column("dataset", "str", "Dataset name in the study file."),
        Column(
            "path", "str", "Path inside the dataset's folder, or the name of a generated source."
        ),
        Column("n_bytes", "int", "Size.", "bytes"),
        Column("sha256", "str", "SHA-256 of the content."),
        Column("licence", "str", "Licence."),
    ),
)

MODEL_FILES = Table(
    "audits/lpact_model_files",
    "One row per file of a language model that features were extracted from, or of a parser; and one row per set of "
    "features that was extracted.",
    ("model", "path"),
    (
        Column("model", "str", "Model name in the study file, or `(parser)`."),
        Column(
            "path",
            "str",
            "Name of the file in its folder, or package and version; `features/`, dataset and name of a set.",
        ),
        Column("n_bytes", "int", "Size; of a set, of its arrays.", "bytes"),
        Column("sha256", "str", "Checksum of the content; of a set, of all files of its arrays."),
        Column(
            "source",
            "str",
            "Name of the model as it was asked for, with its revision where it has one; empty for a set.",
        ),
    ),
)

DIGEST = "digest"
BEFORE_RESULTS = "made before results were looked at"
BEFORE_RUN = "made before the run"
"""Items of the group `registration`."""

AFTER_THE_FACT = "after the fact"
"""What is found of a registration that was made although results existed."""

PREREGISTRATION_ITEMS = Table(
    "audits/preregistration_items",
    "One row per item of the preregistration: what was registered, what the run has, and whether that is the same. "
    "Items that were not followed come first.",
    ("followed", "item_group", "item"),
    (
        Column(
            "followed",
            "bool",
            "Whether the run has what was registered, or stays within its bound.",
        ),
        Column(
            "item_group",
            "str",
            "`registration`, `seed`, `configuration`, `datasets`, `models`, `audit` (recordings, units, and what can "
            "be computed), `claims`, `rows` or `software`.",
        ),
        Column("item", "str", "What was registered, by its name in the study file or the run."),
        Column("registered", "str", "What the preregistration says."),
        Column("found", "str", "What the run has."),
        Column("detail", "str", "The comparison in words; empty where both columns say it all."),
    ),
)

ENGINE_TABLES = (SOURCE_FILES, MODEL_FILES, PREREGISTRATION_ITEMS)


def run_tables(analyses: Sequence[str]) -> dict[str, Table]:
    """Tables that a run of these analyses writes, by name."""
    own = [table for name in analyses for table in ANALYSES.get(name).tables]
    return {table.name: table for table in (SOURCE_FILES, MODEL_FILES, *own)}


def declared_tables() -> dict[str, Table]:
    """Every declared table by name: those of the engine and of all analyses that can be imported.

    A broken plug-in that nobody asked for stops nothing; using or listing it is an error.
    """
    for name in ANALYSES.names():
        with suppress(RegistryError):
            ANALYSES.get(name)
    return _loaded_tables()


def _loaded_tables() -> dict[str, Table]:
    """Tables of the engine and of the analyses that were imported so far."""
    tables = {table.name: table for table in ENGINE_TABLES}
    for entry in ANALYSES.loaded():
        for table in (*entry.plugin.tables, *entry.plugin.other_tables):
            if table.name in tables:
                raise TableError(
                    f"the table '{table.name}' is declared twice",
                    where=f"analysis '{entry.name}' ({entry.origin})",
                    got=table.name,
                    expected="a name that no other analysis uses",
                    remedy=f"name it '{entry.name}/…'",
                )
            tables[table.name] = table
    return tables


def find_table(name: str) -> Table:
    """Return the declaration of ``name``; the folder may be left out where that is unambiguous."""
    loaded = _loaded_tables()
    if name in loaded:
        return loaded[name]
    known = declared_tables()
    found = [full for full in known if name in (full, full.partition("/")[2])]
    if len(found) == 1:
        return known[found[0]]
    raise TableError(
        f"the name '{name}' fits several tables" if found else f"there is no table named '{name}'",
        got=name,
        expected=" or ".join(found) or "a table of docs/reference/tables.md",
        remedy="name its folder too"
        if found
        else did_you_mean(name, known if "/" in name else [n.partition("/")[2] for n in known]),
    )
