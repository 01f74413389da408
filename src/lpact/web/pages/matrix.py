"""The decision matrix: claims by gates, over all runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lpact.reasons import FinalLabel, Gate
from lpact.tables import Column
from lpact.web.address import (
    DEFAULT_SIZE,
    PAGE_SIZES,
    Address,
    find_column,
    parse_value,
    read_choice,
    read_number,
    read_sort,
    read_text,
)
from lpact.web.downloads import attachment
from lpact.web.paging import Paging
from lpact.web.query import Condition, Question, count, page, tally, values
from lpact.web.site import MATRIX, PROFILES, Site, read_address

FACETS = {
    "run": "run",
    "dataset": "dataset",
    "model": "model",
    "layer": "layer",
    "mechanism": "mechanism",
    "verdict": "label",
    "gate": "first_failed_gate",
}
"""Parameter of every filter, and its column."""
FACET_WORDS = {"gate": "first failed gate"}
KNOWN = ("q", *FACETS, "profile", "sort", "dir", "page", "size")
PROFILE_CHOICES = (*PROFILES, "both")


@dataclass(frozen=True)
class Facet:
    """A filter: its parameter, its name in words, what may be chosen, and what is."""

    name: str
    word: str
    options: list[str]
    chosen: str


def show(site: Site, request: Request) -> Response:
    """One page of the matrix."""
    address, elsewhere = read_address(request, KNOWN)
    if elsewhere is not None:
        return elsewhere
    question = ask(site, address)
    total = count(site.database, question)
    size = int(read_choice(address, "size", [str(n) for n in PAGE_SIZES], str(DEFAULT_SIZE)))
    paging = Paging(address, total, size, read_number(address, "page", 1))
    rows = page(site.database, question, paging.offset, size)
    counts = tally(site.database, question, find_column(MATRIX, "label"))
    return site.page(
        request,
        "matrix.html",
        address=address,
        rows=rows,
        paging=paging,
        facets=facets(site, address),
        profile=address.get("profile", "paper"),
        counts={label.value: counts[label.value] for label in FinalLabel if label.value in counts},
        sort=question.sort.name if question.sort else "",
        descending=question.descending,
        sizes=PAGE_SIZES,
    )


def download(site: Site, request: Request, form: str) -> Response:
    """Every claim of the filters, in the order of the page."""
    address, elsewhere = read_address(request, KNOWN)
    if elsewhere is not None:
        return elsewhere
    return attachment(site.database, ask(site, address), "decisions", form)


def ask(site: Site, address: Address) -> Question:
    """The question that an address stands for."""
    profile = read_choice(address, "profile", PROFILE_CHOICES, "paper")
    conditions = []
    runs = site.shelf.runs
    for name, column_name in FACETS.items():
        text = read_text(address, name)
        if not text:
            continue
        column = find_column(MATRIX, column_name)
        if name == "run":
            runs = (site.run(text),)
        else:
            conditions.append(Condition(column, "is", parse_value(column, text)))
    if profile != "both":
        conditions.append(Condition(find_column(MATRIX, "gate_profile"), "is", profile))
    sort, descending = read_sort(address, MATRIX)
    return Question(site.matrix(runs), tuple(conditions), read_text(address, "q"), sort, descending)


def facets(site: Site, address: Address) -> list[Facet]:
    """All filters with what may be chosen: codes in their own order, everything else sorted."""
    everything = site.matrix(site.shelf.runs)
    orders: dict[str, list[str]] = {
        "verdict": [label.value for label in FinalLabel],
        "gate": [*(gate.value for gate in Gate), "none"],
    }
    made = []
    for name, column_name in FACETS.items():
        column: Column = find_column(MATRIX, column_name)
        if name == "run":
            if len(site.shelf.runs) == 1:
                continue
            options: list[Any] = [run.slug for run in site.shelf.runs]
        else:
            options = values(site.database, everything, column) or []
        if name in orders:
            options = [code for code in orders[name] if code in options]
        chosen = address.get(name)
        texts = [str(option) for option in options]
        if chosen and chosen not in texts:
            texts.append(chosen)
        made.append(Facet(name, FACET_WORDS.get(name, name), texts, chosen))
    return made
