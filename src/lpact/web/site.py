"""What all pages share: the shelf, the database, the templates, and the way to answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.codes import FinalLabel, Gate, Outcome
from lpact.errors import LPactError, RunError, did_you_mean
from lpact.store import empty
from lpact.tables import Column, Table, declared_tables
from lpact.web import words
from lpact.web.address import Address, NotHereError, canonical
from lpact.web.database import Database
from lpact.web.query import Source, head
from lpact.web.shelf import Shelf, ShelfRun, TableFile
from lpact.web.strip import description, strip

HERE = Path(__file__).parent
PROFILES = {"paper": "point rules (paper)", "calibrated": "every gate a test (calibrated)"}
"""Gate profiles, and how a reader sees them."""
VERDICTS = (
    FinalLabel.INTEGRATED_CANDIDATE,
    FinalLabel.MECHANISM_SPECIFIC_CANDIDATE,
    FinalLabel.RELATIONAL_CANDIDATE,
    FinalLabel.PREDICTIVE_ONLY,
    FinalLabel.CONTROL_EXPLAINED,
    FinalLabel.NULL,
    FinalLabel.INSUFFICIENT_BRAIN_CEILING,
    FinalLabel.INSUFFICIENT_COVERAGE,
    FinalLabel.DIAGNOSTIC_ONLY,
)
"""Verdicts from the strongest to none, then those that say why nothing could be judged."""
GATES: dict[str, tuple[str, Gate]] = {
    "P": ("predictive", Gate.PREDICTIVE),
    "S": ("severe_control", Gate.SEVERE_CONTROL),
    "R": ("relational", Gate.RELATIONAL),
    "M": ("mechanism_specific", Gate.MECHANISM),
    "T": ("ceiling", Gate.CEILING),
    "Rep": ("replication", Gate.REPLICATION),
}
"""Column of the decision table and gate behind each letter, in the order of the chain."""
RUN_COLUMN = Column("run", "str", "Run, as it is named in the explorer.")
MATRIX = Table(
    "decisions/lpact_decision_table",
    DECISIONS.meaning,
    DECISIONS.key,
    (RUN_COLUMN, *DECISIONS.columns),
)
"""The decision tables of all runs, one below the other."""


@dataclass(frozen=True)
class Unread:
    """A run whose decisions cannot be read, and why."""

    run: ShelfRun
    problem: LPactError


@dataclass(frozen=True)
class Site:
    """An explorer: its runs, its database and its templates."""

    shelf: Shelf
    database: Database
    templates: Environment

    def page(
        self, request: Request, template: str, *, status: int = 200, **context: Any
    ) -> Response:
        """A page from a template."""
        made = self.templates.get_template(template).render(
            runs=self.shelf.runs, here=request.url.path, **context
        )
        return HTMLResponse(made, status)

    def error(self, request: Request, error: LPactError, status: int) -> Response:
        """A page that says what is wrong and what to do."""
        return self.page(request, "error.html", status=status, error=error, code=status)

    def run(self, slug: str) -> ShelfRun:
        """A run by its slug."""
        found = self.shelf.find(slug)
        if found is None:
            raise NotHereError(
                "there is no such run here",
                got=words.shortened(slug, 80),
                expected="one of the runs that the explorer was started with",
                remedy=did_you_mean(slug[:80], [run.slug for run in self.shelf.runs]),
            )
        return found

    def source(self, run: ShelfRun, table: Table) -> Source:
        """One table of one run, checked."""
        return Source(table, (run.file(table),))

    def matrix(self, runs: Sequence[ShelfRun]) -> tuple[Source, list[Unread]]:
        """The decision tables of those runs that can be read, and the other runs; an error where none can be."""
        files: dict[str, TableFile] = {}
        unread: list[Unread] = []
        for run in runs:
            try:
                files[run.slug] = self._readable(run.file(DECISIONS))
            except LPactError as error:
                unread.append(Unread(run, error))
        if not files:
            raise unread[0].problem
        return Source(MATRIX, tuple(files.values()), tuple(files)), unread

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


def find_table(run: ShelfRun, name: str) -> Table:
    """A declared table that the run has."""
    table = declared_tables().get(name)
    if table is None or not run.has(table):
        raise NotHereError(
            f"the run '{run.slug}' has no such table",
            got=words.shortened(name, 80),
            expected="a table that the run wrote",
            remedy=did_you_mean(name[:80], [present.name for present in run.tables()]),
        )
    return table


def read_address(request: Request, known: Sequence[str]) -> tuple[Address, Response | None]:
    """The address in its one form, and a redirect to it where the request has another one."""
    given = request.query_params.multi_items()
    address = canonical(request.url.path, given, known)
    if list(address.pairs) != list(given):
        return address, RedirectResponse(str(address), 303)
    return address, None


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
    filters: dict[str, Callable[..., object]] = {
        "breakable": words.breakable,
        "number": words.number,
        "score": words.score,
        "whole": words.whole,
        "cell": words.cell,
        "spoken": words.spoken,
        "needed": words.needed,
        "size": words.size,
        "shortened": words.shortened,
        "strip": strip,
        "described": description,
    }
    templates.filters.update(filters)
    templates.globals.update(
        counted=words.counted,
        kinds=words.KINDS,
        gates=GATES,
        profiles=PROFILES,
        verdicts={label.value: label.explanation for label in FinalLabel},
        outcomes={outcome.value: outcome.explanation for outcome in Outcome},
        claim_address=claim_address,
        matrix_address=matrix_address,
        table_address=table_address,
    )
    return templates


def claim_address(run: str, row: dict[str, Any], profile: str = "") -> str:
    """Where a claim is shown; ``row`` has its four names and, unless it is given, its gate profile."""
    names = ("dataset", "model", "layer", "mechanism")
    pairs = [("run", run), *((name, str(row[name])) for name in names)]
    pairs.append(("profile", profile or str(row["gate_profile"])))
    return str(Address("/claim", tuple(pairs)))


def matrix_address(**filters: object) -> str:
    """The decision matrix under filters."""
    return str(Address("/decisions").having(**filters))


def table_address(run: str, table: Table) -> str:
    """Where a table is shown."""
    return f"/runs/{run}/tables/{table.name}"
