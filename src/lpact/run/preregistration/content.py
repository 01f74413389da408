"""What is registered of a study. The same is gathered of a run, so that both can be compared item by item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

import polars as pl
from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from lpact.analyses.lpact.tables.audit import (
    CONTROL_AVAILABILITY,
    EVIDENCE_FEASIBILITY,
    UNIT_INVENTORY,
)
from lpact.store import InputFile, code_digest
from lpact.store.manifest import library_versions, lpact_version, without_empty
from lpact.tables import Table

MODEL = "model "
"""How the input files of a model, or of a parser, are named in a manifest, before the model's name."""


class Item(BaseModel):
    """A part of a registration: frozen, strict, and nothing beside the declared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


T = TypeVar("T", bound=Item)


class DatasetRole(Item):
    """What the source audit says a dataset may be used for."""

    dataset: str
    reader: str
    configured_role: str
    role: str
    confirmatory: bool
    role_reason: str
    role_detail: str


class RecordingFacts(Item):
    """Sizes of a recording, whether it is used, and why not."""

    dataset: str
    subject: str
    session: str
    run: str
    stimulus: str
    used: bool
    reason: str
    n_units: int
    n_units_used: int
    unit_order_hash: str
    n_words: int
    n_events: int
    n_events_excluded: int

    @property
    def name(self) -> str:
        """The recording in words."""
        return f"{self.dataset}/{self.subject}/{self.session}/{self.run}"


class ControlFacts(Item):
    """Whether a severe control can be computed, and with how many draws."""

    dataset: str
    model: str
    layer: int
    control: str
    available: bool
    reason: str
    draws: int
    counted: bool


class TableRows(Item):
    """Rows of a table; where ``at_most``, the number is a bound because it depends on results."""

    table: str
    n_rows: int
    at_most: bool


class Claim(Item):
    """A claim that is to be judged."""

    dataset: str
    model: str
    layer: int
    mechanism: str
    confirmatory: bool

    @property
    def name(self) -> str:
        """The claim as commands take it."""
        return f"{self.dataset}/{self.model}/{self.layer}/{self.mechanism}"


class EarlierRun(Item):
    """A run that was looked at when the registration was made, or the study's own place for results.

    ``same`` lists ``dataset/model`` pairs of the registration that it has results of; ``n_finished_tasks`` counts those
    of an unfinished run, which do not say what they are of, or those of the study's own tasks. A note of a run that
    could not be read has its file's name as ``study``.
    """

    state: str
    study: str
    config_digest: str
    same: tuple[str, ...]
    n_finished_tasks: int

    @property
    def has_results(self) -> bool:
        """Whether results of what is registered were there, or may have been."""
        return bool(self.same) or self.n_finished_tasks > 0


class Content(Item):
    """Everything that is registered; the digest of a registration is over all of it."""

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
    datasets: tuple[DatasetRole, ...]
    recordings: tuple[RecordingFacts, ...]
    controls: tuple[ControlFacts, ...]
    rows: tuple[TableRows, ...]
    claims: tuple[Claim, ...]
    after_the_fact: bool
    earlier_runs: tuple[EarlierRun, ...]

    @model_serializer(mode="wrap")
    def _without_nothing(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A study without plugins of other packages has no such field."""
        return without_empty(dump(self), "plugin_code")


class MadeFrom(Protocol):
    """What manifests and provenances say alike."""

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


class Software(Item):
    """lpact and the libraries that numbers depend on."""

    lpact_version: str
    lpact_code: str
    versions: dict[str, str]


def software_now(config: Mapping[str, Any]) -> Software:
    """The versions that a run of ``config`` uses now."""
    return Software(
        lpact_version=lpact_version(),
        lpact_code=code_digest(),
        versions=library_versions(config),
    )


def gather(
    made_from: MadeFrom,
    software: Software,
    tables: Mapping[str, pl.DataFrame],
    *,
    rows: Iterable[TableRows],
    claims: Iterable[Claim],
    after_the_fact: bool = False,
    earlier_runs: Iterable[EarlierRun] = (),
) -> Content:
    """Put together what is registered, or the same of a run; ``tables`` has those of the source audit."""
    return Content(
        study=made_from.study,
        seed=made_from.seed,
        config=dict(made_from.config),
        config_digest=made_from.config_digest,
        lpact_version=software.lpact_version,
        lpact_code=software.lpact_code,
        versions=software.versions,
        plugins=made_from.plugins,
        plugin_code=dict(made_from.plugin_code),
        inputs=tuple(sorted(made_from.inputs, key=lambda file: (file.dataset, file.path))),
        datasets=_rows(DatasetRole, tables, EVIDENCE_FEASIBILITY),
        recordings=_rows(RecordingFacts, tables, UNIT_INVENTORY),
        controls=_rows(ControlFacts, tables, CONTROL_AVAILABILITY),
        rows=tuple(sorted(rows, key=lambda own: own.table)),
        claims=tuple(sorted(claims, key=lambda c: (c.dataset, c.model, c.layer, c.mechanism))),
        after_the_fact=after_the_fact,
        earlier_runs=tuple(earlier_runs),
    )


def _rows(kind: type[T], tables: Mapping[str, pl.DataFrame], table: Table) -> tuple[T, ...]:
    """The rows of a table, in the columns that are registered, sorted by the table's key."""
    frame = tables[table.name].sort(table.key).select(*kind.model_fields)
    return tuple(kind(**row) for row in frame.iter_rows(named=True))
