"""BibTeX entries, and which of them belong to readers, controls, mechanisms and software.

Entries are in ``references.bib`` next to this file. A field that is not known for certain is left out there. What a run
cites is what its Methods section cites (`lpact.report.methods.cited_keys`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from lpact.errors import LPactError, require_known

PACKAGE = ("lpact_software",)
READOUT = ("hoerl1970", "naselaris2011", "varma2006")
CONTIGUOUS = ("feghhi2024",)
FIGURES = ("satyanarayan2017",)
WORD_LISTS = ("speer2022",)
EXTRACTION = ("paszke2019", "wolf2020")

READERS: Mapping[str, tuple[str, ...]] = {
    "alice": ("brennan2016",),
    "bids": ("gorgolewski2016",),
    "bids_fmri": ("gorgolewski2016",),
    "blank2014": ("blank2014",),
    "bold_moments": ("lahner2024",),
    "brain_treebank": ("wang2024",),
    "fedorenko2016": ("fedorenko2016",),
    "meg_masc": ("gwilliams2023",),
    "narratives": ("nastase2021",),
    "natural_stories": ("futrell2021",),
    "pereira2018": ("pereira2018",),
    "petit_prince": ("li2022",),
    "podcast_ecog": ("zada2025",),
    "sentence_table": ("tuckute2024",),
}
CONTROLS: Mapping[str, tuple[str, ...]] = {
    "random_matched_autocorr": ("prichard1994", "theiler1992"),
}
MECHANISMS: Mapping[str, tuple[str, ...]] = {
    "surprisal": ("hale2001", "levy2008"),
    "semantic_transition": ("broderick2018", "frank2017"),
    "dependency_integration": ("gibson2000",),
    "syntactic_boundary": ("brennan2017", "nelson2017"),
    "discourse_boundary": ("carlson2001",),
    "context_update": ("rabovsky2018",),
}
PREDICTION_UPDATE = ("frank2013", "hale2006")
"""In place of the state's change, where ``context_update`` is the change of the model's prediction."""
RESPONSES: Mapping[str, tuple[str, ...]] = {"spm": ("friston1998",), "glover": ("glover1999",)}
LANCZOS = ("huth2016",)
PARSERS: Mapping[str, tuple[str, ...]] = {"spacy": ("spacy",), "stanza": ("qi2020",)}
SOFTWARE: Mapping[str, tuple[str, ...]] = {
    "numpy": ("harris2020",),
    "scipy": ("virtanen2020",),
    "polars": ("polars",),
    "pyarrow": ("arrow",),
    "torch": ("paszke2019",),
    "transformers": ("wolf2020",),
    "mne": ("gramfort2013",),
    "mne-bids": ("appelhoff2019",),
    "nilearn": ("abraham2014",),
    "nibabel": ("nibabel",),
    "xarray": ("hoyer2017",),
    "h5netcdf": ("h5netcdf",),
    "h5py": ("h5py",),
    "pynwb": ("rubel2022",),
    "zarr": ("zarr",),
}

_ACCENTS = {
    r"{\"a}": "ä",
    r"{\"o}": "ö",
    r"{\"u}": "ü",
    r"{\'e}": "é",
}


def filter_keys(grid: Mapping[str, Any]) -> tuple[str, ...]:
    """Where the way from words to volumes comes from."""
    if grid["tr_features"] == "hrf":
        return RESPONSES.get(grid["hrf"], ())
    return LANCZOS if grid["tr_features"] == "lanczos" else ()


def source_keys(source: str) -> tuple[str, ...]:
    """What features were extracted with."""
    return EXTRACTION if source == "transformers" else ()


def mechanism_keys(mechanism: str, options: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Where the definition of a mechanism comes from."""
    if mechanism == "context_update" and options.get(mechanism, {}).get("of") == "prediction":
        return PREDICTION_UPDATE
    return MECHANISMS.get(mechanism, ())


def parser_keys(parser: str | None) -> tuple[str, ...]:
    """The package behind a parser such as ``spacy:en_core_web_sm``."""
    return PARSERS.get((parser or "").split(":", 1)[0], ())


def bibtex(keys: Iterable[str]) -> str:
    """The entries of ``keys`` as BibTeX, each once, in alphabetical order."""
    known = entries()
    wanted = sorted(set(keys))
    for key in wanted:
        require_known(key, known, "reference", where="references.bib", error=LPactError)
    return "".join(f"{known[key]}\n\n" for key in wanted).removesuffix("\n")


@cache
def entries() -> Mapping[str, str]:
    """Every entry of the file, by key."""
    text = files("lpact.report").joinpath("references.bib").read_text(encoding="utf-8")
    found = {}
    for entry in text.strip().split("\n\n"):
        head = re.match(r"@\w+\{([^,\s]+),", entry)
        if head is None:
            raise ValueError(f"not an entry: {entry[:60]!r}")
        found[head.group(1)] = entry
    return found


def author_and_year(key: str) -> str:
    """A reference in running text: ``Hoerl & Kennard 1970``; without authors, its `key` field."""
    entry = entries()[key]
    year = _field(entry, "year")
    people = _field(entry, "author")
    if people is None:
        named = _field(entry, "key") or key
    else:
        names = [_surname(person) for person in people.split(" and ")]
        named = f"{names[0]} et al." if len(names) > 2 or "others" in names else " & ".join(names)
    return named if year is None else f"{named} {year}"


def _field(entry: str, name: str) -> str | None:
    found = re.search(rf"^  {name} = \{{(.*)\}},?$", entry, re.MULTILINE)
    return None if found is None else found.group(1)


def _surname(person: str) -> str:
    for written, letter in _ACCENTS.items():
        person = person.replace(written, letter)
    if person.startswith("{"):
        return person.strip("{}")
    return person.split(",", 1)[0]
