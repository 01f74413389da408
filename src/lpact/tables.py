"""How a table is declared, the tables of the engine, and every declared table by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_args

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
    """One Parquet table of a run directory, with its CSV copy."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = [c.name for c in self.columns]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: a column is declared twice")
        if wrong := [c for c in self.columns if c.dtype not in get_args(DType)]:
            raise ValueError(f"{self.name}: column {wrong[0].name} has no type {wrong[0].dtype}")
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


_COLUMN = re.compile(
    r"(?P<name>\w+) +(?P<dtype>[a-z]+(?:\[[a-z]+\])?)(?P<nullable>\??)(?P<decided>!?)"
    r"(?: \((?P<unit>\w+)\))?  +(?P<meaning>\S.*)"
)


class Vocabulary:
    """Columns that tables share, by name, and the tables that were declared with them.

    A declaration is text, one line per column: name, type and meaning, set apart by two spaces. After the type, ``?``
    marks a nullable column, ``!`` a decided one, and ``(ms)`` a unit. A line of names alone repeats shared columns, or
    groups of them.
    """

    def __init__(self, words: Mapping[str, tuple[Column, ...]]) -> None:
        self._words = words
        self.tables: list[Table] = []

    def add(self, text: str = "", **groups: str) -> Vocabulary:
        """A vocabulary with further columns and groups."""
        words = {**self._words, **{c.name: (c,) for c in self.columns(text)}}
        for name, own in groups.items():
            words[name] = Vocabulary(words).columns(own)
        return Vocabulary(words)

    def columns(self, text: str) -> tuple[Column, ...]:
        """Columns of a declaration."""
        found: list[Column] = []
        for line in filter(None, map(str.strip, text.splitlines())):
            if (match := _COLUMN.fullmatch(line)) is None:
                found += (column for word in line.split() for column in self._words[word])
                continue
            dtype: Any = match["dtype"]
            meaning = " ".join(match["meaning"].split())
            flags = {flag: bool(match[flag]) for flag in ("nullable", "decided")}
            found.append(Column(match["name"], dtype, meaning, match["unit"] or "", **flags))
        return tuple(found)

    def table(self, text: str) -> Table:
        """A table: its name, its meaning, a line ``key:``, and its columns.

        Shared columns of the key come first, unless they are among the columns.
        """
        head, key, rest = re.split(r"^ *key: (.*)$", text, maxsplit=1, flags=re.MULTILINE)
        name, *meaning = head.split()
        declared = self.columns(rest)
        names = {column.name for column in declared}
        of_key = [
            own for word in key.split() for own in ((word,) if word in names else (c.name for c in self._words[word]))
        ]
        first = [self._words[own][0] for own in of_key if own not in names]
        self.tables.append(Table(name, " ".join(meaning), tuple(of_key), (*first, *declared)))
        return self.tables[-1]


SHARED = Vocabulary({}).add(
    """
    dataset    str  Dataset name in the study file.
    subject    str  Subject.
    session    str  Session.
    run        str  Run.
    model      str  Model name in the study file.
    layer      int  Layer; 0 is the input embedding.
    mechanism  str  Candidate mechanism.
    reason     str  `ok`, or the reason code for missing numbers.
    """,
    recording="dataset subject session run",
    context="dataset subject session run model layer",
    claim="dataset model layer mechanism",
)
RECORDING, CONTEXT, CLAIM = map(SHARED.columns, ("recording", "context", "claim"))
RECORDING_KEY = tuple(c.name for c in RECORDING)
CONTEXT_KEY = tuple(c.name for c in CONTEXT)
CLAIM_KEY = tuple(c.name for c in CLAIM)


# Tables that the engine writes for every analysis.

SOURCE_FILES = SHARED.table("""
    audits/lpact_source_files
    One row per source file: size, checksum and licence.
    key: dataset path

    path     str          Path inside the dataset's folder, or the name of a generated source.
    n_bytes  int (bytes)  Size.
    sha256   str          SHA-256 of the content.
    licence  str          Licence.
""")

MODEL_FILES = SHARED.table("""
    audits/lpact_model_files
    One row per file of a language model that features were extracted from, or of a parser; and one row per set of
    features that was extracted.
    key: model path

    model    str          Model name in the study file, or `(parser)`.
    path     str          Name of the file in its folder, or package and version; \
                          `features/`, dataset and name of a set.
    n_bytes  int (bytes)  Size; of a set, of its arrays.
    sha256   str          Checksum of the content; of a set, of all files of its arrays.
    source   str          Requested model, with its revision if it has one; empty for a set.
""")

DIGEST = "digest"
BEFORE_RESULTS = "made before results were looked at"
BEFORE_RUN = "made before the run"
"""Items of the group `registration`."""

AFTER_THE_FACT = "after the fact"
"""Value of ``found`` for a registration that was made although results existed."""

PREREGISTRATION_ITEMS = SHARED.table("""
    audits/preregistration_items
    One row per item of the preregistration: what was registered, what the run has, and whether they are the same.
    Items that were not followed come first.
    key: followed item_group item

    followed    bool  Whether the run has what was registered, or stays within its bound.
    item_group  str   `registration`, `seed`, `configuration`, `datasets`, `models`, `audit` (recordings, units, \
                      and what can be computed), `claims`, `rows` or `software`.
    item        str   What was registered, by its name in the study file or the run.
    registered  str   What the preregistration says.
    found       str   What the run has.
    detail      str   The comparison in words; empty where both columns say it all.
""")

ENGINE_TABLES = tuple(SHARED.tables)


def run_tables(analyses: Sequence[str]) -> dict[str, Table]:
    """Tables that a run of these analyses writes, by name."""
    own = [table for name in analyses for table in ANALYSES.get(name).tables]
    return {table.name: table for table in (SOURCE_FILES, MODEL_FILES, *own)}


def declared_tables() -> dict[str, Table]:
    """Every declared table by name: those of the engine and of all analyses that can be imported.

    A broken plug-in is an error only when it is used or listed.
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


def find_table(name: str, among: Collection[str] | None = None) -> Table:
    """Return the declaration of ``name``; the folder may be left out where that is unambiguous.

    ``among`` are tables, by full name, that a short name is looked for in first.
    """
    loaded = _loaded_tables()
    if name in loaded:
        return loaded[name]
    known = declared_tables()
    found = [full for full in known if name in (full, full.partition("/")[2])]
    found = [full for full in found if among is None or full in among] or found
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
