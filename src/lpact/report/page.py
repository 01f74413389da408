"""The report as one HTML file: no network, no script but its own, everything from tables escaped."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import polars as pl
from markupsafe import Markup

from lpact.analyses.base import Analysis
from lpact.analyses.explanation import ClaimTable, Conclusion, Explanation
from lpact.config import flat_options
from lpact.report.explanation import environment, explanation_html, number, read_file
from lpact.report.figure import Figure, Missing, drawable
from lpact.report.theme import following_page, variables
from lpact.store import Manifest
from lpact.tables import AFTER_THE_FACT, BEFORE_RESULTS, BEFORE_RUN, DIGEST
from lpact.wording import size

SECTIONS = ("verdict", "why", "how sure", "how it was made")
"""Sections of figures that the page has a place for, in its order."""
PROFILE = "gate_profile"
_TITLE = re.compile(r"<title>[^<]*</title>")


@dataclass(frozen=True)
class Drawn:
    """A figure of the page and its picture, or why there is none."""

    section: str
    figure: Figure | Missing
    svg: str = ""


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


def page_html(
    manifest: Manifest,
    parts: Sequence[AnalysisPart],
    registration: pl.DataFrame | None,
    methods: str,
    bibtex: str,
    table_files: Sequence[tuple[str, str, int, Mapping[str, str]]] = (),
) -> str:
    """The report as one HTML document; ``methods`` and ``bibtex`` are for pasting.

    ``table_files`` are tables next to the page: name, meaning, number of rows, and files by format.
    """
    style, script = _style(), read_file("page.js")
    shown = [_analysis(part) for part in parts]
    sections = dict.fromkeys([*SECTIONS, *(own.section for part in parts for own in part.drawn)])
    choices: dict[str, set[Any]] = {}
    for own in shown:
        for row in own["rows"]:
            for name, value in row["key"].items():
                choices.setdefault(name, set()).add(value)
    html: str = (
        environment()
        .get_template("page.html.j2")
        .render(
            manifest=manifest,
            analyses=shown,
            sections={
                section: [(part.analysis.name, [own for own in part.drawn if own.section == section]) for part in parts]
                for section in sections
            },
            picture=lambda drawn: _safe(in_page(drawn.svg)),
            explained=lambda shown: _safe(explanation_html(shown)),
            # What the page can be filtered by: the key columns of all analyses, and their values.
            choices={
                name: sorted(values, key=lambda value: (str(type(value)), value)) for name, values in choices.items()
            },
            profiles={name: text for own in shown for name, text in own["profiles"].items() if name},
            options=[(path, json.dumps(value, ensure_ascii=False)) for path, value in flat_options(manifest.config)],
            versions=sorted(manifest.versions.items()),
            inputs=[(f.dataset, f.path, size(f.n_bytes), f.sha256) for f in manifest.inputs],
            outputs=[(f.path, size(f.n_bytes), f.sha256) for f in manifest.outputs],
            unavailable=[row for own in parts for row in own.unavailable],
            registered=None if registration is None else followed(registration),
            methods=methods,
            bibtex=bibtex,
            table_files=table_files,
            evidence=_safe(script_json({own["name"]: own["evidence"] for own in shown})),
            style=_safe(style),
            script=_safe(script),
            # Nothing is loaded and nothing runs but the page's own script and style, named by their hashes.
            policy=f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'",
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
        "rows": rows,
        "evidence": evidence_data(own, rows, part.evidence),
        "example": part.example,
    }


def _safe(made: str) -> Markup:
    """What needs no escaping: the page's own files, and what was escaped when it was made."""
    return Markup(made)  # noqa: S704


def in_page(svg: str) -> str:
    """A picture for the page: it follows the theme, and its marks are named by the page's own tooltip."""
    plain = _TITLE.sub("", following_page(svg))
    return plain.replace("<svg ", '<svg focusable="false" ', 1)


def script_json(value: Any) -> str:
    """JSON for a script element: nothing in it ends the element or starts a comment."""
    text = json.dumps(drawable(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _style() -> str:
    light, dark = variables(of_dark=False), variables(of_dark=True)
    palette = (
        f":root{{{light}color-scheme:light}}\n"
        f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}color-scheme:dark}}}}\n"
        f":root[data-theme=dark]{{{dark}color-scheme:dark}}\n"
    )
    return palette + read_file("page.css") + read_file("explanation.css")


@dataclass(frozen=True)
class Followed:
    """How far a run followed its preregistration, in a sentence; followed and registered items of each group."""

    sentence: str
    groups: tuple[tuple[str, int, int], ...]
    deviations: list[dict[str, Any]]


def followed(items: pl.DataFrame) -> Followed:
    """Summarise the table `PREREGISTRATION_ITEMS`."""
    registration = items.filter(item_group="registration")
    own = {row["item"]: row for row in registration.iter_rows(named=True)}
    late = own[BEFORE_RESULTS]["found"] == AFTER_THE_FACT
    text = (
        f"{'Registered after results existed' if late else 'Preregistered'} (digest {own[DIGEST]['registered']}): "
        f"{items['followed'].sum()} of {items.height} items were followed"
    )
    if not own[BEFORE_RUN]["followed"]:
        text += "; that it was made before the run is not shown"
    if not own[DIGEST]["followed"]:
        text += "; the registration was edited after it was made"
    counts = items.group_by("item_group").agg(pl.col("followed").sum(), pl.len()).sort("item_group")
    deviations = items.filter(~pl.col("followed")).sort("item_group", "item").to_dicts()
    return Followed(f"{text}.", tuple(counts.iter_rows()), deviations)


def profiles_of(shown: ClaimTable) -> Mapping[str, str]:
    """Profiles with their meaning; one without a name where the analysis has none."""
    return shown.profiles or {"": ""}


def claim_rows(shown: ClaimTable, claims: pl.DataFrame) -> list[dict[str, Any]]:
    """Claims in the order of their key: id, key columns, score, and gates, label and reason under each profile."""
    rows = []
    for key, own in claims.sort(shown.key).group_by(shown.key, maintain_order=True):
        by_profile = {row.get(PROFILE, ""): row for row in own.iter_rows(named=True)}
        first = next(iter(by_profile.values()))
        rows.append(
            {
                "id": "/".join(map(str, key)),
                "key": dict(zip(shown.key, key, strict=True)),
                "score": number(first[shown.score]) if shown.score else "",
                "judged": {
                    profile: {
                        "gates": [bool(row[column]) for column in shown.gates.values()],
                        "label": row["label"],
                        "reason": row["reason"],
                    }
                    for profile in profiles_of(shown)
                    if (row := by_profile.get(profile)) is not None
                },
            }
        )
    return rows


def evidence_data(shown: ClaimTable, rows: list[dict[str, Any]], evidence: pl.DataFrame | None) -> dict[str, Any]:
    """The criteria of every claim, for the page's script.

    Claims share much of their evidence, so criteria are listed once: ``criteria`` holds [gate, passed, sentence], and
    ``claims`` has for each claim, in the order of ``rows``, {profile: indices}.
    """
    known: dict[tuple[str, bool, str], int] = {}
    claims: dict[tuple[Any, ...], dict[str, list[int]]] = {}
    if evidence is not None:
        own = pl.col(PROFILE) if shown.profiles else pl.lit("").alias(PROFILE)
        order = [name for name in ("gate_order", "criterion_order") if name in evidence.columns]
        found = evidence.sort(*shown.key, *order, maintain_order=True)
        columns = found.select(*shown.key, own, "gate", "passed", "sentence")
        for *key, profile, gate, passed, sentence in columns.iter_rows():
            index = known.setdefault((gate, passed, sentence), len(known))
            claims.setdefault(tuple(key), {}).setdefault(profile, []).append(index)
    return {
        "profiles": dict(profiles_of(shown)),
        "criteria": [list(criterion) for criterion in known],
        "claims": [claims.get(tuple(row["key"].values()), {}) for row in rows],
    }


def strongest(shown: ClaimTable, claims: pl.DataFrame) -> dict[str, Any] | None:
    """The claim with the strongest label under the first profile; of several, the one with the highest score."""
    if shown.profiles:
        claims = claims.filter(pl.col(PROFILE) == next(iter(shown.profiles)))
    if claims.is_empty():
        return None
    order = {label: place for place, label in enumerate(shown.labels)}
    rank = pl.col("label").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    score = [-pl.col(shown.score).fill_null(float("-inf"))] if shown.score else []
    return claims.sort(rank, *score, *shown.key).select(shown.key).row(0, named=True)
