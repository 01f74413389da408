"""What all pages share: runs, database, templates and responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lpact import wording
from lpact.analyses.base import Analysis
from lpact.analyses.explanation import ClaimTable, Value
from lpact.errors import LPactError, RunError, require_known
from lpact.store import LazyTables, empty
from lpact.tables import Column, Table
from lpact.tables import find_table as declared_table
from lpact.web.address import Address, NotFoundError, find_column, read_choice
from lpact.web.query import RUN, Condition, Database, Query, Source, head, select
from lpact.web.runs import OpenRun, TableFile

HERE = Path(__file__).parent
PROFILE = "gate_profile"
RUN_COLUMN = Column(RUN, "str", "Run, as it is named in the explorer.")
TONES = ("strong", "middle", "weak")
"""How labels are marked: the strongest third of an analysis' labels, the next, and the rest."""


def matrix_table(claims: ClaimTable) -> Table:
    """The claim tables of all runs, one below the other."""
    own = claims.table
    return Table(own.name, own.meaning, own.key, (RUN_COLUMN, *own.columns))


def profiles_of(claims: ClaimTable) -> dict[str, str]:
    """Profiles, and how a reader sees them; one without a name where the analysis has none."""
    return {name: f"{text} ({name})" for name, text in claims.profiles.items()} or {"": "claims"}


Unread = list[tuple[OpenRun, LPactError]]
"""Runs whose decisions cannot be read, and why."""


@dataclass(frozen=True)
class Site:
    """An explorer: its runs, its database and its templates."""

    runs: tuple[OpenRun, ...]
    database: Database
    templates: Environment

    def page(self, request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
        """A page from a template."""
        made = self.templates.get_template(template).render(
            runs=self.runs, here=request.url.path, n_analyses=len(self.analyses()), **context
        )
        return HTMLResponse(made, status)

    def error(self, request: Request, error: LPactError, status: int) -> Response:
        """A page that says what is wrong and what to do."""
        return self.page(request, "error.html", status=status, error=error, code=status)

    def run(self, slug: str) -> OpenRun:
        """A run by its slug."""
        found = {run.slug: run for run in self.runs}
        require_known(slug[:80], found, "run", where="runs of the explorer", error=NotFoundError)
        return found[slug]

    def source(self, run: OpenRun, table: Table) -> Source:
        """One table of one run, checked."""
        return Source(table, (run.file(table),))

    def analyses(self) -> dict[str, Analysis]:
        """The analyses of all runs that can be read here, by name."""
        found: dict[str, Analysis] = {}
        for run in self.runs:
            with suppress(LPactError):
                found = run.analyses | found
        return found

    def analysis(self, address: Address, run: OpenRun | None = None) -> Analysis:
        """The analysis that an address names; without a name, the first of the run, or of all runs."""
        known = self.analyses()
        if not known:
            self.runs[0].analyses  # noqa: B018  # raises the reason
        first = next(iter(known if run is None else run.analyses))
        return known[read_choice(address, "analysis", list(known), first)]

    def matrix(self, runs: Sequence[OpenRun], analysis: Analysis) -> tuple[Source, Unread]:
        """Claims of one analysis in those runs that can be read, and the other runs; an error where none can be."""
        files: dict[str, TableFile] = {}
        unread: Unread = []
        for run in runs:
            try:
                if analysis.name in run.analyses:
                    files[run.slug] = self._readable(run.file(analysis.claims.table))
            except LPactError as error:
                unread.append((run, error))
        if not files:
            if unread:
                raise unread[0][1]
            raise NotFoundError(
                f"no chosen run has the analysis '{analysis.name}'",
                where=", ".join(run.slug for run in runs),
                got=", ".join(runs[0].analyses),
                expected=analysis.name,
                remedy="choose another run or another analysis",
            )
        return Source(matrix_table(analysis.claims), tuple(files.values()), tuple(files)), unread

    def _readable(self, file: TableFile) -> TableFile:
        """The file, whose columns are those that are declared; looked at once for the file as it is now."""
        key = ("columns", file.path, file.fingerprint)
        found = self.database.answers.get(key, lambda: head(self.database, file).schema)
        if found != (declared := empty(file.table).schema):
            other = [name for name in declared if found[name] != declared[name]]
            raise RunError(
                f"the table '{file.table.name}' has columns of another type",
                where=str(file.path),
                got=", ".join(f"{name}: {found[name]}" for name in other),
                expected=", ".join(f"{name}: {declared[name]}" for name in other),
                remedy="run the study again with this version of lpact",
            )
        return file


def rows_of(site: Site, run: OpenRun, table: str, /, **equals: Value) -> pl.DataFrame:
    """Rows of a run's table whose columns have these values, in the order of the key."""
    declared = declared_table(table)
    if not run.has(declared):
        return empty(declared)
    query = Query(site.source(run, declared), equal(declared, equals))
    return site.database.frame(*select(query))


def equal(table: Table, equals: Mapping[str, Value]) -> tuple[Condition, ...]:
    """Conditions that columns have these values."""
    return tuple(Condition(find_column(table, name), "is", own) for name, own in equals.items())


def tables_of(site: Site, run: OpenRun) -> LazyTables:
    """The tables of a run by name, each read by the database when it is used."""
    return LazyTables({own.name: partial(rows_of, site, run, own.name) for own in run.tables()})


def find_table(run: OpenRun, name: str) -> Table:
    """A declared table that the run has."""
    found = {table.name: table for table in run.tables()}
    require_known(name[:200], found, "table", where=f"run '{run.slug}'", error=NotFoundError)
    return found[name]


def build_templates() -> Environment:
    """Templates that escape everything."""
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    shown = ("breakable", "whole", "cell", "spoken", "shortened")
    templates.filters.update({name: getattr(wording, name) for name in shown})
    templates.filters.update(score=wording.fixed, size=wording.size)
    templates.globals.update(
        counted=wording.counted,
        tone=tone,
        claim_address=claim_address,
        matrix_address=matrix_address,
        table_address=table_address,
    )
    return templates


def tone(label: str, labels: Mapping[str, str]) -> str:
    """How a label is marked; one that the analysis does not declare is `other`."""
    if label not in labels:
        return "other"
    return TONES[3 * list(labels).index(label) // len(labels)]


def claim_address(run: str, analysis: str, claim: Mapping[str, object], profile: str) -> str:
    """Where a claim is shown; ``claim`` has the values of its key columns, ``analysis`` is empty for the only one."""
    pairs = [(RUN, run), ("analysis", analysis), *claim.items(), ("profile", profile)]
    return str(Address("/claim", tuple((name, str(v)) for name, v in pairs if v not in ("", None))))


def matrix_address(**filters: object) -> str:
    """The decision matrix under filters."""
    return str(Address("/decisions").having(**filters))


def table_address(run: str, table: Table) -> str:
    """Where a table is shown."""
    return f"/runs/{run}/tables/{table.name}"
