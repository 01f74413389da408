"""One claim: its chain of evidence, gate by gate."""

from __future__ import annotations

from typing import Any

import polars as pl
from starlette.requests import Request
from starlette.responses import Response

from lpact.analyses.lpact.claim_story import claim_story
from lpact.analyses.lpact.config import GatesConfig
from lpact.analyses.lpact.tables.decisions import DECISIONS
from lpact.store import empty
from lpact.tables import CLAIM_KEY, Table
from lpact.tables import find_table as declared_table
from lpact.validation import validate_model
from lpact.web.address import (
    FACET,
    Address,
    AddressError,
    NotHereError,
    find_column,
    parse_value,
    read_choice,
)
from lpact.web.query import Condition, Question, count, select
from lpact.web.shelf import ShelfRun
from lpact.web.site import PROFILES, Site, read_address, table_address

KNOWN = ("run", *CLAIM_KEY, "profile")
BEHIND = (
    "decisions/lpact_gate_evidence",
    "predictive/predictive_scores",
    "predictive/predictive_control_nulls",
    "relational/profile_similarity_deltas",
    "relational/relational_null_draws",
    "causal/mechanism_specificity_summary",
    "ceilings/ceiling_normalized_scores",
)
"""Tables whose rows a claim's page leads to."""


def show(site: Site, request: Request) -> Response:
    """The claim that an address names, under one gate profile."""
    address, elsewhere = read_address(request, KNOWN)
    if elsewhere is not None:
        return elsewhere
    run = site.run(address.get("run"))
    profile = read_choice(address, "profile", list(PROFILES), "paper")
    names = _names(address)
    claim = tuple(parse_value(find_column(DECISIONS, name), text) for name, text in names.items())
    if not _exists(site, run, claim, profile):
        raise NotHereError(
            f"the run '{run.slug}' has no such claim",
            got=" / ".join(names.values())[:200],
            expected="a claim of the decision table",
            remedy="choose one in the decision matrix",
        )
    config = run.manifest.config
    story = claim_story(
        Rows(site, run),
        claim,  # type: ignore[arg-type]  # types are those of the declared columns
        profile,
        gates=validate_model(GatesConfig, config["gates"], where=run.slug)
        if "gates" in config
        else None,
        primary_metric=config.get("readout", {}).get("primary_metric"),
    )
    return site.page(
        request,
        "claim.html",
        run=run,
        story=story,
        names=names,
        address=address,
        behind=[(table, _rows_address(run, table, names)) for table in _behind(run)],
    )


class Rows:
    """Rows of a run's tables by equality of columns, answered by the database."""

    def __init__(self, site: Site, run: ShelfRun) -> None:
        self._site, self._run = site, run

    def __call__(self, table: str, /, **equals: str | int) -> pl.DataFrame:
        """The rows of ``table`` whose columns have these values, in the order of the key."""
        declared = declared_table(table)
        if not self._run.has(declared):
            return empty(declared)
        source = self._site.source(self._run, declared)
        conditions = tuple(
            Condition(find_column(declared, name), "is", value) for name, value in equals.items()
        )
        question = Question(source, conditions)
        return self._site.database.frame(*select(self._site.database, question, declared.columns))


def _names(address: Address) -> dict[str, str]:
    names = {name: address.get(name) for name in CLAIM_KEY}
    for name, value in names.items():
        if not value:
            raise AddressError(
                "the address does not name a claim",
                where=f"parameter '{name}'",
                got="nothing",
                expected="dataset, model, layer and mechanism",
                remedy="choose a claim in the decision matrix",
            )
    return names


def _exists(site: Site, run: ShelfRun, claim: tuple[Any, ...], profile: str) -> bool:
    equal = zip((*CLAIM_KEY, "gate_profile"), (*claim, profile), strict=True)
    conditions = tuple(
        Condition(find_column(DECISIONS, name), "is", value) for name, value in equal
    )
    return count(site.database, Question(site.source(run, DECISIONS), conditions)) == 1


def _behind(run: ShelfRun) -> list[Table]:
    return [table for table in run.tables() if table.name in BEHIND]


def _rows_address(run: ShelfRun, table: Table, names: dict[str, str]) -> str:
    """A table, held to the claim as far as it has its columns."""
    as_columns = dict(names)
    if "stripped" in table.column_names and "mechanism" not in table.column_names:
        as_columns["stripped"] = names["mechanism"]
    pairs = tuple(
        (f"{FACET}{name}", value)
        for name, value in as_columns.items()
        if name in table.column_names
    )
    return str(Address(table_address(run.slug, table), pairs))
