"""The page itself: parts go in, one HTML string comes out."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import polars as pl

from lpact.analyses.lpact.figures.common import PROFILES
from lpact.analyses.lpact.tables.decisions import DECISIONS, STUDY_OUTCOME
from lpact.report.figure import Figure, Missing, drawable
from lpact.report.page.claims import claim_rows, evidence_data, legend
from lpact.report.page.preregistration import NOT_REGISTERED, preregistration
from lpact.report.page.provenance import inputs, options, outputs, unavailable
from lpact.report.theme import following_page, variables
from lpact.store import Manifest

if TYPE_CHECKING:
    from markupsafe import Markup

_TITLE = re.compile(r"<title>[^<]*</title>")


@dataclass(frozen=True)
class Drawn:
    """A figure of the page and its picture, or why there is none."""

    section: str
    figure: Figure | Missing
    svg: str = ""


@dataclass(frozen=True)
class TableFile:
    """A table beside the page: its name, meaning, rows, and files by format."""

    name: str
    meaning: str
    n_rows: int
    files: Mapping[str, str]


@dataclass(frozen=True)
class PageParts:
    """Everything that the page shows.

    ``verdict`` is the one sentence at its head, ``why`` a few more; ``methods`` and ``bibtex`` are for pasting.
    """

    manifest: Manifest
    tables: Mapping[str, pl.DataFrame]
    verdict: str
    why: Sequence[str]
    drawn: Sequence[Drawn]
    methods: str
    bibtex: str
    table_files: Sequence[TableFile] = ()


def page_html(parts: PageParts) -> str:
    """The report as one HTML document."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_shown
    )
    rows = claim_rows(parts.tables)
    style, script = _style(), _read("page.js")
    html: str = environment.from_string(_read("page.html.j2")).render(
        manifest=parts.manifest,
        verdict=parts.verdict,
        why=parts.why,
        outcomes=_outcomes(parts.tables),
        sections=_sections(parts.drawn),
        picture=lambda drawn: _as_it_is(in_page(drawn.svg)),
        claims=rows,
        profiles=PROFILES,
        letters=legend(),
        choices=_choices(parts.tables),
        options=options(parts.manifest.config),
        versions=sorted(parts.manifest.versions.items()),
        inputs=inputs(parts.manifest),
        outputs=outputs(parts.manifest),
        unavailable=unavailable(parts.tables),
        registered=preregistration(parts.tables),
        not_registered=NOT_REGISTERED,
        methods=parts.methods,
        bibtex=parts.bibtex,
        table_files=parts.table_files,
        evidence=_as_it_is(script_json(evidence_data(parts.tables))),
        style=_as_it_is(style),
        script=_as_it_is(script),
        policy=_policy(style, script),
    )
    return html


def _shown(value: Any) -> Any:
    """What stands in the page: text without characters that no page can hold."""
    return drawable(value) if type(value) is str else value


def _as_it_is(made: str) -> Markup:
    """What needs no escaping: the page's own files, and what was escaped when it was made."""
    from markupsafe import Markup

    return Markup(made)  # noqa: S704


def in_page(svg: str) -> str:
    """A picture for the page: it follows the theme, and its marks are named by the page's own tooltip."""
    plain = _TITLE.sub("", following_page(svg))
    return plain.replace("<svg ", '<svg focusable="false" ', 1)


def script_json(value: Any) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or starts a comment."""
    text = json.dumps(drawable(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for unsafe, safe in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(unsafe, safe)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _policy(style: str, script: str) -> str:
    """Nothing is loaded and nothing runs but the page's own script and style, named by their hashes."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _style() -> str:
    light, dark = variables(of_dark=False), variables(of_dark=True)
    palette = (
        f":root{{{light}color-scheme:light}}\n"
        f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}color-scheme:dark}}}}\n"
        f":root[data-theme=dark]{{{dark}color-scheme:dark}}\n"
    )
    return palette + _read("page.css")


@cache
def _read(name: str) -> str:
    return files("lpact.report.page").joinpath(name).read_text(encoding="utf-8")


def _outcomes(tables: Mapping[str, pl.DataFrame]) -> list[dict[str, Any]]:
    rows = {row["gate_profile"]: row for row in tables[STUDY_OUTCOME.name].iter_rows(named=True)}
    return [
        {**rows[profile], "called": PROFILES[profile]} for profile in PROFILES if profile in rows
    ]


def _sections(drawn: Sequence[Drawn]) -> dict[str, list[Drawn]]:
    sections: dict[str, list[Drawn]] = {}
    for own in drawn:
        sections.setdefault(own.section, []).append(own)
    return sections


def _choices(tables: Mapping[str, pl.DataFrame]) -> dict[str, list[Any]]:
    """What the page can be filtered by."""
    decisions = tables[DECISIONS.name]
    return {
        name: decisions[name].unique().sort().to_list() for name in ("dataset", "model", "layer")
    }
