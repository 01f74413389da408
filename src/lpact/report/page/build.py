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

from lpact.analyses.base import Analysis
from lpact.analyses.explanation import Conclusion, Explanation
from lpact.report.explanation import environment, explanation_html
from lpact.report.explanation import style as explanation_style
from lpact.report.figure import Figure, Missing, drawable
from lpact.report.page.claims import claim_rows, evidence_data, profiles_of
from lpact.report.page.preregistration import NOT_REGISTERED, followed
from lpact.report.page.provenance import inputs, options, outputs
from lpact.report.theme import following_page, variables
from lpact.store import Manifest

if TYPE_CHECKING:
    from markupsafe import Markup

SECTIONS = ("verdict", "why", "how sure", "how it was made")
"""Sections of figures that the page has a place for, in its order."""

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
class AnalysisPart:
    """What the page shows of one analysis: conclusion, claims with their evidence, figures, and a claim in full."""

    analysis: Analysis
    conclusion: Conclusion
    claims: pl.DataFrame
    evidence: pl.DataFrame | None = None
    drawn: Sequence[Drawn] = ()
    example: Explanation | None = None
    unavailable: Sequence[tuple[str, str, str]] = ()


@dataclass(frozen=True)
class PageParts:
    """Everything that the page shows; ``methods`` and ``bibtex`` are for pasting."""

    manifest: Manifest
    analyses: Sequence[AnalysisPart]
    registration: pl.DataFrame | None
    methods: str
    bibtex: str
    table_files: Sequence[TableFile] = ()


def page_html(parts: PageParts) -> str:
    """The report as one HTML document."""
    style, script = _style(), _read("page.js")
    shown = [_analysis(part) for part in parts.analyses]
    html: str = (
        environment()
        .get_template("page/page.html.j2")
        .render(
            manifest=parts.manifest,
            analyses=shown,
            sections=_sections(parts.analyses),
            picture=lambda drawn: _as_it_is(in_page(drawn.svg)),
            explained=lambda shown: _as_it_is(explanation_html(shown)),
            choices=_choices(shown),
            profiles={
                name: text for own in shown for name, text in own["profiles"].items() if name
            },
            options=options(parts.manifest.config),
            versions=sorted(parts.manifest.versions.items()),
            inputs=inputs(parts.manifest),
            outputs=outputs(parts.manifest),
            unavailable=[row for own in parts.analyses for row in own.unavailable],
            registered=None if parts.registration is None else followed(parts.registration),
            not_registered=NOT_REGISTERED,
            methods=parts.methods,
            bibtex=parts.bibtex,
            table_files=parts.table_files,
            evidence=_as_it_is(script_json({own["name"]: own["evidence"] for own in shown})),
            style=_as_it_is(style),
            script=_as_it_is(script),
            policy=_policy(style, script),
        )
    )
    return html


def _analysis(part: AnalysisPart) -> dict[str, Any]:
    """One analysis as the template takes it."""
    own = part.analysis.claims
    rows = claim_rows(own, part.claims)
    return {
        "name": part.analysis.name,
        "summary": part.analysis.summary,
        "conclusion": part.conclusion,
        "profiles": profiles_of(own),
        "labels": own.labels,
        "letters": [(letter, own.gate_meanings.get(letter, letter)) for letter in own.gates],
        "score": own.score,
        "key": own.key,
        "rows": rows,
        "evidence": evidence_data(own, rows, part.evidence),
        "example": part.example,
    }


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
    return palette + _read("page.css") + explanation_style()


@cache
def _read(name: str) -> str:
    return files("lpact.report.page").joinpath(name).read_text(encoding="utf-8")


def _sections(parts: Sequence[AnalysisPart]) -> dict[str, list[tuple[str, list[Drawn]]]]:
    """Sections with the figures of each analysis; those of the page first, then others by the analyses' own names."""
    named = dict.fromkeys([*SECTIONS, *(own.section for part in parts for own in part.drawn)])
    return {
        section: [
            (part.analysis.name, [own for own in part.drawn if own.section == section])
            for part in parts
        ]
        for section in named
    }


def _choices(shown: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """What the page can be filtered by: the key columns of all analyses, and their values."""
    found: dict[str, set[Any]] = {}
    for own in shown:
        for row in own["rows"]:
            for name, value in row.key.items():
                found.setdefault(name, set()).add(value)
    return {name: sorted(values, key=lambda v: (str(type(v)), v)) for name, values in found.items()}
