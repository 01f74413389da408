"""The shipped bibliography: well formed, complete by type, and sorted on the way out."""

from __future__ import annotations

import inspect
import re

import pytest

from lpact.analyses.deconstruct import explain
from lpact.analyses.lpact import methods
from lpact.analyses.lpact.methods import levels
from lpact.errors import LPactError
from lpact.report import references
from lpact.report.references import author_and_year, bibtex, entries

REQUIRED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "incollection": {"author", "title", "booktitle", "publisher", "year"},
    "techreport": {"author", "title", "institution", "year"},
    "misc": {"title"},
}


def parsed(text: str) -> list[tuple[str, str, dict[str, str]]]:
    """Entries of BibTeX text, by a reader of its own: type, key, fields in braces; anything else is an error."""
    place, found = 0, []

    def blank() -> None:
        nonlocal place
        while place < len(text) and text[place].isspace():
            place += 1

    def take(pattern: str) -> str:
        nonlocal place
        match = re.compile(pattern).match(text, place)
        assert match, f"expected {pattern} at {text[place : place + 60]!r}"
        place = match.end()
        return match.group(1)

    def braced() -> str:
        nonlocal place
        take(r"(\{)")
        depth, start = 1, place
        while depth:
            assert place < len(text), "a brace is not closed"
            if text[place] == "\\":
                place += 1
            elif text[place] in "{}":
                depth += 1 if text[place] == "{" else -1
            place += 1
        return text[start : place - 1]

    blank()
    while place < len(text):
        kind, key = take(r"@(\w+)"), take(r"\{([a-z0-9_]+),")
        fields: dict[str, str] = {}
        while True:
            blank()
            name = take(r"(\w+) = ")
            assert name not in fields, f"{key}: {name} twice"
            fields[name] = braced()
            if text[place : place + 1] != ",":
                break
            place += 1
        blank()
        take(r"(\})")
        found.append((kind, key, fields))
        blank()
    return found


def test_every_entry_is_well_formed_and_complete():
    found = parsed(bibtex(entries()))
    assert len(found) == len(entries()) > 60
    for kind, key, fields in found:
        assert REQUIRED[kind] <= fields.keys(), key
        assert all(value.strip() == value != "" for value in fields.values()), key
        assert re.fullmatch(r"1[89]\d\d|20\d\d", fields.get("year", "2000")), key
        assert re.fullmatch(r"10\.\d{4,}/\S+", fields.get("doi", "10.1234/x")), key


def test_the_reader_of_this_test_refuses_what_is_broken():
    for broken in ("@article{a,\n  title = {x\n}", "@article{a,\n  title = x\n}", "words"):
        with pytest.raises(AssertionError):
            parsed(broken)


def test_specials_are_escaped():
    for _, key, fields in parsed(bibtex(entries())):
        for name, value in fields.items():
            if name != "doi":
                bare = re.sub(r"\\[&%$#_]", "", value)
                assert not re.search(r"[&%$#_~^]", bare), (key, name)
                assert value.isascii(), (key, name)


def test_only_wanted_entries_come_each_once_and_sorted():
    text = bibtex(["hoerl1970", "benjamini1995", "hoerl1970"])
    assert [key for _, key, _ in parsed(text)] == ["benjamini1995", "hoerl1970"]
    assert text == bibtex(("benjamini1995", "hoerl1970"))
    assert text.endswith("}\n")
    assert bibtex([]) == ""


def test_an_unknown_key_is_an_error_that_names_a_near_one():
    with pytest.raises(LPactError, match="hoerl1970"):
        bibtex(["hoerl1971"])


def test_every_key_of_the_rules_has_an_entry_and_every_entry_a_rule():
    used: set[str] = set()
    for value in [*vars(references).values(), levels.MEASURE_KEYS]:
        groups = value.values() if isinstance(value, dict) else [value]
        used.update(key for group in groups if isinstance(group, tuple) for key in group)
    source = "".join(map(inspect.getsource, (methods, levels, explain)))
    for cited in re.findall(r"cite\(([^)*]*)\)", source):
        used.update(re.findall(r"[\"']([^\"']+)[\"']", cited))
    assert used == set(entries())


def test_authors_and_years_in_running_text():
    assert author_and_year("hoerl1970") == "Hoerl & Kennard 1970"
    assert author_and_year("brennan2017") == "Brennan & Pylkkänen 2017"
    assert author_and_year("hale2001") == "Hale 2001"
    assert author_and_year("zada2025") == "Zada et al. 2025"
    assert author_and_year("lpact_paper") == "L-PACT paper"
    assert author_and_year("polars") == "The Polars developers"


def test_a_paper_does_not_carry_the_doi_of_its_data():
    found = {key: fields for _, key, fields in parsed(bibtex(entries()))}
    assert any("doi" in fields for fields in found.values())
    for key, fields in found.items():
        assert "openneuro" not in fields.get("doi", ""), key
    assert "ds005574" in found["zada2025"]["note"]
