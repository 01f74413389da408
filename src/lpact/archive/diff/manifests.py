"""What two runs were made from: differences in options, versions, source files and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lpact.store import Manifest, StoredRun
from lpact.tables import declared_tables

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Kind = Literal["changed", "added", "removed"]
"""``added``: only in the second run; ``removed``: only in the first."""

_NAME = "name"
_TABLE_END = ".parquet"


@dataclass(frozen=True)
class OptionChange:
    """An option of the configuration; lists of named tables are identified by name: ``datasets[meg].grid.lags_ms``."""

    path: str
    kind: Kind
    before: Json
    after: Json


@dataclass(frozen=True)
class VersionChange:
    """A package or code version; None if the run does not record it."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class InputChange:
    """A source file, by its checksum; None if the run does not have it."""

    dataset: str
    path: str
    kind: Kind
    before: str | None
    after: str | None


@dataclass(frozen=True)
class TableChange:
    """A table with other content, or of one run only.

    ``only_before`` and ``only_after`` count rows whose key only one of the runs has; None if that was not counted.
    """

    table: str
    kind: Kind
    rows_before: int | None = None
    rows_after: int | None = None
    only_before: int | None = None
    only_after: int | None = None


def option_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[OptionChange, ...]:
    """Options that differ, by dotted path. A missing option differs from one that is null."""
    first, second = dict(_leaves(before)), dict(_leaves(after))
    return tuple(
        OptionChange(path, _kind(path, first, second), first.get(path), second.get(path))
        for path in sorted({*first, *second})
        if path not in first or path not in second or _differ(first[path], second[path])
    )


def _differ(before: Json, after: Json) -> bool:
    """Whether two values differ; 1 and true do, 1 and 1.0 do not."""
    return before != after or isinstance(before, bool) != isinstance(after, bool)


def _kind(key: object, before: Mapping[Any, object], after: Mapping[Any, object]) -> Kind:
    if key not in before:
        return "added"
    return "changed" if key in after else "removed"


def _leaves(value: Mapping[str, Any], path: str = "") -> list[tuple[str, Json]]:
    """Every value with its path. An empty table is a value; a list of named tables is that of its names."""
    found: list[tuple[str, Json]] = []
    for key, inner in value.items():
        here = f"{path}.{key}" if path else key
        if isinstance(inner, Mapping) and inner:
            found += _leaves(inner, here)
        elif _is_named_list(inner):
            found.append((here, [table[_NAME] for table in inner]))
            for table in inner:
                rest = {name: part for name, part in table.items() if name != _NAME}
                found += _leaves(rest, f"{here}[{table[_NAME]}]")
        else:
            found.append((here, inner))
    return found


def _is_named_list(value: object) -> bool:
    """Whether it is a list of tables with distinct names."""
    if not isinstance(value, list) or not value:
        return False
    if not all(isinstance(table, Mapping) and _NAME in table for table in value):
        return False
    return len({str(table[_NAME]) for table in value}) == len(value)


def version_changes(before: Manifest, after: Manifest) -> tuple[VersionChange, ...]:
    """Code, libraries and plugins that differ."""
    first, second = _versions(before), _versions(after)
    return tuple(
        VersionChange(name, first.get(name), second.get(name))
        for name in sorted({*first, *second})
        if first.get(name) != second.get(name)
    )


def _versions(manifest: Manifest) -> dict[str, str]:
    plugins = {f"plugin {name}": "in use" for name in manifest.plugins}
    plugins |= {f"{name} (code)": code[:16] for name, code in manifest.plugin_code.items()}
    return {
        **manifest.versions,
        **plugins,
        "lpact": manifest.lpact_version,
        "lpact (code)": manifest.lpact_code,
    }


def input_changes(before: Manifest, after: Manifest) -> tuple[InputChange, ...]:
    """Source files of one run only, or with other content."""
    first, second = (
        {(file.dataset, file.path): file.sha256 for file in manifest.inputs}
        for manifest in (before, after)
    )
    return tuple(
        InputChange(*key, _kind(key, first, second), first.get(key), second.get(key))
        for key in sorted({*first, *second})
        if first.get(key) != second.get(key)
    )


def table_changes(before: StoredRun, after: StoredRun, *, rows: bool) -> tuple[TableChange, ...]:
    """Tables of one run only, or with other content; with ``rows``, rows that only one run has are counted."""
    first, second = (
        {
            file.path.removesuffix(_TABLE_END): file.sha256
            for file in run.manifest.outputs
            if file.path.endswith(_TABLE_END)
        }
        for run in (before, after)
    )
    changed = [
        TableChange(name, _kind(name, first, second))
        for name in sorted({*first, *second})
        if first.get(name) != second.get(name)
    ]
    return tuple(_counted(own, before, after) if rows else own for own in changed)


def _counted(change: TableChange, before: StoredRun, after: StoredRun) -> TableChange:
    table = declared_tables().get(change.table)
    if table is None or change.kind != "changed":
        return change
    key = list(table.key)
    old, new = (run.table(change.table).select(key) for run in (before, after))
    return TableChange(
        change.table,
        change.kind,
        old.height,
        new.height,
        old.join(new, on=key, how="anti", nulls_equal=True).height,
        new.join(old, on=key, how="anti", nulls_equal=True).height,
    )
