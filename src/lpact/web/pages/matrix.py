"""The decision matrix: claims by gates, over all runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lpact.codes import Gate
from lpact.errors import RunError
from lpact.tables import Column
from lpact.web.address import (
    DEFAULT_SIZE,
    LONGEST_NAME,
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
from lpact.web.query import Condition, Question, Source, count, page, tally, values
from lpact.web.site import MATRIX, PROFILES, VERDICTS, Site, Unread, read_address

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
    question, left_out = ask(site, address)
    everything, unread = site.matrix(site.shelf.runs)
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
        facets=facets(site, address, everything),
        unread=unread,
        complete=not left_out,
        profile=address.get("profile", "paper"),
        counts={label.value: counts[label.value] for label in VERDICTS if label.value in counts},
        sort=question.sort.name if question.sort else "",
        descending=question.descending,
        sizes=PAGE_SIZES,
    )


def download(site: Site, request: Request, form: str) -> Response:
    """Every claim of the filters, in the order of the page; refused where a run that is asked for cannot be read."""
    address, elsewhere = read_address(request, KNOWN)
    if elsewhere is not None:
        return elsewhere
    question, left_out = ask(site, address)
    if left_out:
        raise RunError(
            "the file would not hold every claim: not all runs can be read",
            where=", ".join(one.run.slug for one in left_out),
            got=left_out[0].problem.what,
            expected="runs whose decisions can be read",
            remedy="choose one run in the decision matrix, or start the explorer without the broken one",
        ) from left_out[0].problem
    return attachment(site.database, question, "decisions", form)


def ask(site: Site, address: Address) -> tuple[Question, list[Unread]]:
    """The question that an address stands for, and the runs that it leaves out because they cannot be read."""
    profile = read_choice(address, "profile", PROFILE_CHOICES, "paper")
    conditions = []
    runs = site.shelf.runs
    for name, column_name in FACETS.items():
        text = read_text(address, name, LONGEST_NAME)
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
    source, left_out = site.matrix(runs)
    search = read_text(address, "q")
    return Question(source, tuple(conditions), search, sort, descending), left_out


def facets(site: Site, address: Address, everything: Source) -> list[Facet]:
    """All filters with what may be chosen: codes in their own order, everything else sorted."""
    orders: dict[str, list[str]] = {
        "verdict": [label.value for label in VERDICTS],
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
