"""Page state is kept in the URL, which is parsed strictly."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request

from lpact.errors import LPactError, did_you_mean
from lpact.store.frames import is_list
from lpact.tables import Column, Table
from lpact.web.query import OPERATORS, Condition

LONGEST_TEXT = 500
"""Characters of a search or a number."""
LONGEST_NAME = 8_000
"""Characters of a text that a column must equal; names in tables may be long, but the head of a request is limited."""
MOST_CONDITIONS = 12
PAGE_SIZES = (25, 50, 100, 200)
DEFAULT_SIZE = 50
FACET = "is."
"""Prefix of a parameter that says which value a column must have; a column may have the name of another parameter."""
_CONDITION = ("col", "op", "val")
_INT64 = 2**63


class AddressError(LPactError):
    """An address with a parameter that is not valid."""

    status = 400


class NotFoundError(LPactError):
    """An address without a page."""

    status = 404


Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Address:
    """A path and its parameters, in order; empty ones are left out."""

    path: str
    pairs: Pairs = ()

    def get(self, name: str, default: str = "") -> str:
        """The last value of a parameter."""
        found = [value for key, value in self.pairs if key == name]
        return found[-1] if found else default

    def all(self, name: str) -> list[str]:
        """Every value of a parameter."""
        return [value for key, value in self.pairs if key == name]

    def but(self, *names: str) -> Address:
        """The address without some parameters."""
        return Address(self.path, tuple(pair for pair in self.pairs if pair[0] not in names))

    def to(self, path: str) -> Address:
        """The same parameters at another path."""
        return Address(path, self.pairs)

    def having(self, **changes: object) -> Address:
        """The address with other values; an empty one leaves a parameter out. Another filter starts at page 1."""
        added = tuple((name, str(own)) for name, own in changes.items() if own not in ("", None))
        return Address(self.path, self.but(*changes, "page").pairs + added)

    def __str__(self) -> str:
        return self.path + (f"?{urlencode(self.pairs)}" if self.pairs else "")


def _refusal(name: str, problem: str, got: str, expected: str, remedy: str) -> AddressError:
    more = {"where": f"parameter '{name}'", "expected": expected, "remedy": remedy}
    return AddressError(f"'{name}' {problem}", got=got[:80], **more)


def read_text(address: Address, name: str, longest: int = LONGEST_TEXT) -> str:
    """A parameter of bounded length."""
    value = address.get(name)
    if len(value) > longest:
        got, expected = f"{len(value)} characters", f"at most {longest}"
        raise _refusal(name, "is too long", got, expected, "search for a part of it")
    return value


def read_choice(address: Address, name: str, choices: Sequence[str], default: str) -> str:
    """A parameter that is one of a few words."""
    value = address.get(name, default)
    if value not in choices:
        remedy = did_you_mean(value[:80], choices)
        raise _refusal(name, "has an unknown value", value, ", ".join(choices), remedy)
    return value


@dataclass(frozen=True)
class Paging:
    """Page ``number`` of ``last``, from 1: ``size`` rows of ``total``, behind ``offset`` others."""

    address: Address
    total: int
    size: int
    last: int
    number: int
    offset: int


def read_paging(address: Address, total: int) -> Paging:
    """The page that an address names; the last page where the number is too high."""
    size = int(read_choice(address, "size", [str(n) for n in PAGE_SIZES], str(DEFAULT_SIZE)))
    text, last = address.get("page", "1"), max(1, -(-total // size))
    wanted = _whole(text)
    if wanted is None or wanted < 1:
        raise _refusal("page", "must be a whole number", text, "1 or more", "leave it out")
    number = min(wanted, last)
    return Paging(address, total, size, last, number, (number - 1) * size)


def read_sort(address: Address, table: Table) -> tuple[Column | None, bool]:
    """Column to sort by, and whether downwards."""
    name = address.get("sort")
    descending = read_choice(address, "dir", ("asc", "desc"), "asc") == "desc"
    if not name:
        return None, False
    column = find_column(table, name)
    if is_list(column):
        expected = "a column of numbers, texts or truth values"
        raise _refusal("sort", "is a column of lists", name, expected, "sort by another column")
    return column, descending


def read_conditions(address: Address, table: Table) -> tuple[Condition, ...]:
    """Columns that must equal a value (``is.dataset=…``), and further conditions (``col=…&op=…&val=…``, repeated)."""
    made = [
        Condition(column, "is", parse_value(column, value))
        for name, value in address.pairs
        if name.startswith(FACET)
        for column in [find_column(table, name.removeprefix(FACET))]
    ]
    made += [_condition(table, *parts) for parts in free_conditions(address)]
    if len(made) > MOST_CONDITIONS:
        expected = f"at most {MOST_CONDITIONS}"
        raise _refusal("col", "has too many values", str(len(made)), expected, "leave some out")
    return tuple(made)


def free_conditions(address: Address) -> list[tuple[str, str, str]]:
    """Column, relation and value of every free condition, as the address has them."""
    columns, operators, texts = (address.all(name) for name in _CONDITION)
    if not len(columns) == len(operators) == len(texts):
        got = f"{len(columns)} col, {len(operators)} op and {len(texts)} val"
        raise _refusal("col", "has an incomplete condition", got, "as many of each", "use the form")
    return list(zip(columns, operators, texts, strict=True))


def _condition(table: Table, name: str, operator: str, text: str) -> Condition:
    column = find_column(table, name)
    if operator not in OPERATORS:
        expected = ", ".join(OPERATORS)
        raise _refusal("op", "has an unknown value", operator, expected, "choose one of them")
    if operator in ("null", "some"):
        return Condition(column, operator)
    if is_list(column) or (operator == "has" and column.dtype != "str"):
        expected = "'is missing' or 'is not missing'" if is_list(column) else "a text column"
        problem = f"cannot be '{OPERATORS[operator]}' for column '{name}'"
        raise _refusal("op", problem, column.dtype, expected, "choose another relation")
    return Condition(column, operator, parse_value(column, text))


def find_column(table: Table, name: str) -> Column:
    """A declared column; any other name is refused."""
    for column in table.columns:
        if column.name == name:
            return column
    expected, remedy = ", ".join(table.column_names), did_you_mean(name[:80], table.column_names)
    raise _refusal("col", f"is not a column of {table.name}", name, expected, remedy)


def parse_value(column: Column, text: str) -> str | int | float | bool:
    """A value of the column's own type."""
    kind = column.dtype
    value = _PARSE[kind](text) if kind in _PARSE else None
    if value is None or len(text) > (LONGEST_NAME if kind == "str" else LONGEST_TEXT):
        kinds = {"bool": "yes or no", "str": f"at most {LONGEST_NAME} characters"}
        expected = kinds.get(kind, f"a value of type {kind}")
        remedy = "correct the value, or remove the condition"
        raise _refusal(column.name, "has a value of another type", text, expected, remedy)
    return value


def _whole(text: str) -> int | None:
    found = re.fullmatch(r"-?[0-9]{1,19}", text)
    return int(text) if found and -_INT64 <= int(text) < _INT64 else None


def _finite(text: str) -> float | None:
    with suppress(ValueError):
        return value if math.isfinite(value := float(text)) else None
    return None


_PARSE: dict[str, Callable[[str], str | int | float | bool | None]] = {
    "str": str,
    "int": _whole,
    "float": _finite,
    "bool": lambda text: {"yes": True, "true": True, "no": False, "false": False}.get(text.lower()),
}


@dataclass(frozen=True)
class Facet:
    """A filter: its parameter, its name in words, its options, and the chosen one; labels are shown as words."""

    name: str
    word: str
    options: list[str]
    chosen: str
    spoken: bool = False


def facet(address: Address, name: str, column: str, options: Sequence[object]) -> Facet:
    """The filter of a column; the chosen value is always among its options."""
    chosen = address.get(name)
    texts = [str(option) for option in options if option != ""]
    if chosen and chosen not in texts:
        texts.append(chosen)
    return Facet(name, column.replace("_", " "), texts, chosen, spoken=column == "label")


def read_address(request: Request, known: Sequence[str]) -> Address:
    """The address of a request with the parameters that its page knows; empty fields of a form are left out.

    Columns that must equal a value (``is.…``) and conditions are kept by pages that know `FACET` and ``col``. A
    condition whose column is empty goes with its three parts.
    """
    pairs = request.query_params.multi_items()
    parts = [[value for name, value in pairs if name == key] for key in _CONDITION]
    if len({len(part) for part in parts}) == 1:
        pairs = [pair for pair in pairs if pair[0] not in _CONDITION]
        for own in zip(*parts, strict=True):
            pairs += zip(_CONDITION, own, strict=True) if own[0] else ()
    kept = [
        (name, value)
        for name, value in pairs
        if (value or name == "val") and (name in known or (FACET in known and name.startswith(FACET)))
    ]
    return Address(request.url.path, tuple(kept))
