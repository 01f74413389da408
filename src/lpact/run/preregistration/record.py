"""The content of a preregistration and its file: canonical JSON with a digest of everything except its time.

A run is described in the same form, so that both can be compared item by item.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NoReturn

import polars as pl
from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from lpact.analyses.base import analyses_of
from lpact.config import StudyConfig, study_config
from lpact.errors import RunError
from lpact.run.audit import StudyAudit
from lpact.store import InputFile, Manifest, Provenance, code_digest, storage_errors
from lpact.store.disk import atomic_write_bytes
from lpact.store.manifest import Record, library_versions, lpact_version
from lpact.tables import MODEL_FILES, PREREGISTRATION_ITEMS
from lpact.validation import json_digest, parse_digest

FORMAT: Literal["lpact preregistration"] = "lpact preregistration"
FORMAT_VERSION: Literal[2] = 2
REGISTRATION_NAME = "preregistration.json"
"""Name of the copy that a run keeps."""

Cell = str | int | float | bool | None


class Item(Record):
    """A part of a registration; its numbers are finite."""

    model_config = ConfigDict(allow_inf_nan=False)


class TableRows(Item):
    """Rows of a table; ``at_most``: a bound, because the number depends on results."""

    n_rows: int
    at_most: bool


class EarlierRun(Item):
    """A run that was searched for results when the registration was made, or the study's own store of results.

    ``same`` lists ``dataset/model`` pairs of the registration that it has results of. ``n_finished_tasks`` counts
    results of an unfinished run, or of the study's own tasks.
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
    """Everything that is registered.

    ``claims`` are ids by analysis, ``rows`` counts by table. ``audit`` has rows of the audit tables, in the columns of
    ``Analysis.registered``: recordings, units, and what can be computed.
    """

    study: str
    seed: int
    config: dict[str, Any]
    config_digest: str
    lpact_version: str
    lpact_code: str
    versions: dict[str, str]
    plugins: tuple[str, ...]
    plugin_code: dict[str, str] = Field(default_factory=dict)
    inputs: tuple[InputFile, ...]
    audit: dict[str, tuple[dict[str, Cell], ...]]
    claims: dict[str, tuple[str, ...]]
    rows: dict[str, TableRows]
    after_the_fact: bool = False
    earlier_runs: tuple[EarlierRun, ...] = ()

    @model_serializer(mode="wrap")
    def _without_empty(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave ``plugin_code`` out if the study uses no plug-in of another package."""
        values: dict[str, Any] = dump(self)
        return {name: own for name, own in values.items() if own or name != "plugin_code"}


def planned_content(config: StudyConfig, audit: StudyAudit, made_from: Provenance, **earlier: Any) -> Content:
    """What a study will do; claims and rows are counted from sizes alone."""
    rows = {name: table.height for name, table in audit.tables.items()}
    rows[MODEL_FILES.name] += audit.sets_to_come
    at_most: set[str] = set()
    for own in audit.of.values():
        rows |= own.rows
        at_most |= own.at_most
    return _gather(
        made_from,
        config,
        audit.tables,
        rows={name: TableRows(n_rows=n, at_most=name in at_most) for name, n in rows.items()},
        claims={name: own.claims for name, own in audit.of.items()},
        **earlier,
    )


def found_content(
    made_from: Provenance | Manifest, tables: Mapping[str, pl.DataFrame], n_rows: Mapping[str, int]
) -> Content:
    """What a run contains; ``tables`` are those of the audit and of the claims."""
    config = study_config(made_from.config, where="configuration of the run")
    claims = {}
    for name, analysis in analyses_of(config).items():
        found = tables[analysis.claims.table.name].select(analysis.claims.key).unique()
        claims[name] = ["/".join(map(str, row)) for row in found.iter_rows()]
    rows = {name: TableRows(n_rows=n, at_most=False) for name, n in n_rows.items()}
    rows.pop(PREREGISTRATION_ITEMS.name, None)
    return _gather(made_from, config, tables, rows=rows, claims=claims)


def _gather(
    made_from: Provenance | Manifest,
    config: StudyConfig,
    tables: Mapping[str, pl.DataFrame],
    *,
    rows: Mapping[str, TableRows],
    claims: Mapping[str, Iterable[str]],
    **earlier: Any,
) -> Content:
    analyses = analyses_of(config).values()
    software: dict[str, Any] = {
        "lpact_version": lpact_version(),
        "lpact_code": code_digest(),
        "versions": library_versions(made_from.config),
    }
    if isinstance(made_from, Manifest):
        software = {name: getattr(made_from, name) for name in software}
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
            for analysis in analyses
            for name, columns in analysis.registered.items()
        },
        claims={name: tuple(sorted(ids)) for name, ids in claims.items()},
        rows=dict(sorted(rows.items())),
        **software,
        **earlier,
    )


class Registration(Item):
    """What was registered, and when; ``digest`` and ``dated_digest`` were written with it."""

    format: Literal["lpact preregistration"] = FORMAT
    format_version: Literal[2] = FORMAT_VERSION
    digest: str
    dated_digest: str
    registered_at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    registered: Content

    @property
    def found_digest(self) -> str:
        """Digest of the content as it is now: SHA-256 of its JSON without white space."""
        own = {"format": FORMAT, "format_version": FORMAT_VERSION}
        return json_digest(own | {"registered": self.registered.model_dump(mode="json")})

    @property
    def found_dated_digest(self) -> str:
        """SHA-256 of digest and time, which shows an edit of the time alone."""
        return hashlib.sha256(f"{self.digest} {self.registered_at}".encode()).hexdigest()

    @property
    def time_intact(self) -> bool:
        """Whether the time is the one that was written with the digest."""
        return self.dated_digest == self.found_dated_digest

    @property
    def intact(self) -> bool:
        """Whether content and time are as they were written."""
        return self.digest == self.found_digest and self.time_intact

    def text(self) -> str:
        """The file: sorted keys, two spaces, a newline at the end."""
        values = self.model_dump(mode="json")
        return json.dumps(values, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def new_registration(content: Content, now: datetime | None = None) -> Registration:
    """Freeze ``content``; ``now`` is this moment by default."""
    moment = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    # As it is read back: JSON has lists instead of tuples.
    plain = Content.model_validate_json(content.model_dump_json())
    made = Registration(digest="", dated_digest="", registered_at=moment, registered=plain)
    made = made.model_copy(update={"digest": made.found_digest})
    return made.model_copy(update={"dated_digest": made.found_dated_digest})


def refuse_other_digest(registration: Registration, digest: str, *, where: str) -> None:
    """Raise `RunError` for a registration whose content does not have the deposited ``digest``."""
    wanted = deposited_digest(digest, where=where)
    if registration.found_digest != wanted:
        raise RunError(
            "the registration is not the one that was deposited",
            where=where,
            got=f"a file whose content has the digest {registration.found_digest}",
            expected=f"the digest {wanted}",
            remedy="use the file that was deposited; an edited or new one is another registration",
        )


def deposited_digest(text: str, *, where: str) -> str:
    """A digest in lower case; anything else is a `ConfigError`."""
    remedy = "give the whole digest that `lpact preregister` printed"
    what = "this is not the digest of a registration"
    return parse_digest(text, what, where=where, remedy=remedy)


def refuse_taken(path: Path) -> None:
    """Raise `RunError` if ``path`` exists: a registration is never overwritten."""
    if path.exists() or path.is_symlink():
        raise RunError(
            "a registration is never overwritten",
            where=str(path),
            got="an existing file, folder or link",
            expected="a new name",
            remedy="choose another file with --out; keep the first registration, so that both can be seen",
        )


def write_registration(registration: Registration, path: Path) -> None:
    """Write the file completely or not at all; an existing ``path`` is a `RunError`."""
    refuse_taken(path)
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    atomic_write_bytes(temporary, registration.text().encode())
    with storage_errors(path, "the registration cannot be written"):
        try:
            os.link(temporary, path)  # unlike a rename, never replaces a file that has appeared meanwhile
        except OSError:
            if path.exists():
                raise
            temporary.rename(path)  # a file system without links
        finally:
            temporary.unlink(missing_ok=True)


def read_registration(path: str | Path) -> Registration:
    """Read a registration; a file that is none, or is damaged or newer, is a `RunError`.

    An edited file that can still be read is returned: `Registration.intact` is False, and every comparison says so.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise _unreadable(path, "a pipe, a device or another special file")
    with storage_errors(path, "the registration cannot be read"):
        content = path.read_bytes()
    try:
        values = json.loads(content, object_pairs_hook=_once, parse_constant=_no_number)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError("JSON of another kind")
        version = values.get("format_version")
        if version == FORMAT_VERSION:
            return Registration.model_validate_json(json.dumps(values))
    except ValidationError as error:
        first = error.errors()[0]
        raise _unreadable(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from None
    raise RunError(
        "the registration was made by another version of lpact",
        where=str(path),
        got=f"format version {version!r}",
        expected=f"format version {FORMAT_VERSION}",
        remedy="use the version of lpact that made it",
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A repeated field would show one value to a reader and another to a program."""
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"the field {twice!r} twice")
    return dict(pairs)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name}, which JSON does not have")


def _unreadable(path: Path, got: str) -> RunError:
    return RunError(
        "the file is not a registration, or it was damaged or edited",
        where=str(path),
        got=got,
        expected="a file as `lpact preregister` wrote it",
        remedy="name the registration itself, or restore it from where it was deposited",
    )
