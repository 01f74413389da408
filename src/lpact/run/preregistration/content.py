"""What is registered of a study. The same is gathered of a run, so that both can be compared item by item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import polars as pl
from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from lpact.analyses.base import Analysis, analyses_of
from lpact.config import StudyConfig, study_config
from lpact.run.audit import StudyAudit
from lpact.store import InputFile, Provenance, code_digest
from lpact.store.manifest import library_versions, lpact_version, without_empty
from lpact.tables import MODEL_FILES, PREREGISTRATION_ITEMS

Cell = str | int | float | bool | None


class Item(BaseModel):
    """A part of a registration: frozen, strict, and without undeclared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class TableRows(Item):
    """Rows of a table; where ``at_most``, the number is a bound because it depends on results."""

    n_rows: int
    at_most: bool


class EarlierRun(Item):
    """A run that was searched for results when the registration was made, or the study's own store of results.

    ``same`` lists ``dataset/model`` pairs of the registration that it has results of. ``n_finished_tasks`` counts the
    results of an unfinished run, which do not say what they are about, or those of the study's own tasks. A note of a
    run that could not be read has its file's name as ``study``.
    """

    state: str
    study: str = ""
    config_digest: str = ""
    same: tuple[str, ...] = ()
    n_finished_tasks: int = 0

    @property
    def has_results(self) -> bool:
        """Whether it has, or may have, results of what is registered."""
        return bool(self.same) or self.n_finished_tasks > 0


class Content(Item):
    """Everything that is registered; the digest of a registration covers all of it.

    ``claims`` are ids by analysis, ``rows`` counts by table. ``audit`` has rows of the audit's tables, in the columns
    that analyses name in ``Analysis.registered``: recordings, units, and what can be computed.
    """

    study: str
    seed: int
    config: dict[str, Any]
    config_digest: str
    lpact_version: str
    lpact_code: str
    versions: dict[str, str]
    plugins: tuple[str, ...]
    plugin_code: dict[str, str] = {}
    inputs: tuple[InputFile, ...]
    audit: dict[str, tuple[dict[str, Cell], ...]]
    claims: dict[str, tuple[str, ...]]
    rows: dict[str, TableRows]
    after_the_fact: bool = False
    earlier_runs: tuple[EarlierRun, ...] = ()

    @model_serializer(mode="wrap")
    def _without_empty(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave ``plugin_code`` out where no plug-in of another package is used."""
        return without_empty(dump(self), "plugin_code")


class MadeFrom(Protocol):
    """What `Provenance` and `Manifest` have in common."""

    @property
    def study(self) -> str: ...  # noqa: D102
    @property
    def seed(self) -> int: ...  # noqa: D102
    @property
    def config(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def config_digest(self) -> str: ...  # noqa: D102
    @property
    def inputs(self) -> tuple[InputFile, ...]: ...  # noqa: D102
    @property
    def plugins(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def plugin_code(self) -> Mapping[str, str]: ...  # noqa: D102


def software_now(config: Mapping[str, Any]) -> dict[str, Any]:
    """lpact, its code, and the libraries that numbers depend on, as they are now."""
    return {
        "lpact_version": lpact_version(),
        "lpact_code": code_digest(),
        "versions": library_versions(config),
    }


def planned_content(
    config: StudyConfig, audit: StudyAudit, made_from: Provenance, **earlier: Any
) -> Content:
    """What a study will do; claims and rows are counted from sizes alone."""
    rows = {name: table.height for name, table in audit.tables.items()}
    rows[MODEL_FILES.name] += audit.sets_to_come
    at_most: set[str] = set()
    for own in audit.of.values():
        rows |= own.rows
        at_most |= own.at_most
    return _gather(
        made_from,
        software_now(made_from.config),
        analyses_of(config),
        audit.tables,
        rows={name: TableRows(n_rows=n, at_most=name in at_most) for name, n in rows.items()},
        claims={name: own.claims for name, own in audit.of.items()},
        **earlier,
    )


def found_content(
    made_from: MadeFrom,
    software: Mapping[str, Any],
    tables: Mapping[str, pl.DataFrame],
    n_rows: Mapping[str, int],
) -> Content:
    """What a run has; ``tables`` has those of the audit and of the claims."""
    analyses = analyses_of(study_config(made_from.config, where="configuration of the run"))
    return _gather(
        made_from,
        software,
        analyses,
        tables,
        rows={
            name: TableRows(n_rows=n, at_most=False)
            for name, n in n_rows.items()
            if name != PREREGISTRATION_ITEMS.name
        },
        claims={
            name: ("/".join(map(str, row)) for row in _keys(analysis, tables))
            for name, analysis in analyses.items()
        },
    )


def _keys(analysis: Analysis, tables: Mapping[str, pl.DataFrame]) -> Iterable[tuple[Any, ...]]:
    about = analysis.claims
    return tables[about.table.name].select(about.key).unique().iter_rows()


def _gather(
    made_from: MadeFrom,
    software: Mapping[str, Any],
    analyses: Mapping[str, Analysis],
    tables: Mapping[str, pl.DataFrame],
    *,
    rows: Mapping[str, TableRows],
    claims: Mapping[str, Iterable[str]],
    **earlier: Any,
) -> Content:
    registered = {
        name: columns for own in analyses.values() for name, columns in own.registered.items()
    }
    return Content(
        study=made_from.study,
        seed=made_from.seed,
        config=dict(made_from.config),
        config_digest=made_from.config_digest,
        plugins=made_from.plugins,
        plugin_code=dict(made_from.plugin_code),
        inputs=tuple(sorted(made_from.inputs, key=lambda file: (file.dataset, file.path))),
        audit={
            name: tuple(tables[name].select(columns).sort(pl.all()).iter_rows(named=True))
            for name, columns in registered.items()
        },
        claims={name: tuple(sorted(ids)) for name, ids in claims.items()},
        rows=dict(sorted(rows.items())),
        **software,
        **earlier,
    )
