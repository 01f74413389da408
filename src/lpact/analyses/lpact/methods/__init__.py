r"""A Methods section with a run's real parameters, ready to paste.

Every number is a setting of the run or stands in one of its tables. Text is put together once, with marks where
citations go, and written out as plain text, Markdown (``[@key]``) or LaTeX (``\citep{key}``). Strings from data stay
text in all three.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lpact.analyses.lpact.config import LPactConfig
from lpact.analyses.lpact.methods import data, decision, levels, made_with
from lpact.analyses.lpact.methods.data import Tables
from lpact.analyses.lpact.methods.words import CLOSE, OPEN
from lpact.report.latex import latex_prose
from lpact.report.references import author_and_year
from lpact.store import Manifest

__all__ = [
    "MethodsPart",
    "cited_keys",
    "methods_latex",
    "methods_markdown",
    "methods_paragraph",
    "methods_parts",
    "methods_text",
]

_CITATION = re.compile(f" {OPEN}([^{CLOSE}]*){CLOSE}")
_MARKDOWN = str.maketrans(
    {c: f"\\{c}" for c in "\\`*_[]|#~^$@{}"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)


@dataclass(frozen=True)
class MethodsPart:
    """One part of the section: its heading, and sentences with marks where citations go."""

    title: str
    sentences: tuple[str, ...]


def methods_parts(
    manifest: Manifest, config: LPactConfig, tables: Tables
) -> tuple[MethodsPart, ...]:
    """The section in parts; ``tables`` may lack any table, and the text then says less."""
    made = {
        "Overview": made_with.overview(config),
        "Datasets": data.datasets(config, tables),
        "Preprocessing": data.preparation(config),
        "Events and responses": data.events(config, tables),
        "Models": data.models(config, tables),
        "Readout": levels.readout(config),
        "Nuisance features": levels.nuisance(config, tables),
        "Severe controls": levels.controls(config, tables),
        "Relational patterns": levels.relational(config),
        "Mechanism stripping": levels.stripping(config),
        "Brain–brain ceilings": levels.ceilings(config, tables),
        "Decision by point rules": decision.point_rules(config, tables),
        "Decision by tests": decision.tests(config),
        "Positive controls": decision.positive_controls(config),
        "What was not available": made_with.unavailable(tables),
        "Software and reproducibility": made_with.software(manifest, config),
        "Further options": made_with.remaining_options(config),
    }
    return tuple(MethodsPart(title, tuple(said)) for title, said in made.items() if said)


def methods_paragraph(manifest: Manifest, config: LPactConfig, tables: Tables) -> str:
    """Running text, one paragraph a part, with citations as ``[@key; @other]``."""
    return _written(manifest, config, tables, "{}. ", _keys_in_brackets, str)


def methods_markdown(manifest: Manifest, config: LPactConfig, tables: Tables) -> str:
    """Markdown with a heading a part and citations as ``[@key; @other]``."""
    return _written(manifest, config, tables, "### {}\n\n", _keys_in_brackets, _markdown)


def methods_latex(manifest: Manifest, config: LPactConfig, tables: Tables) -> str:
    r"""LaTeX with a ``\paragraph`` a part and citations as ``\citep{key,other}`` (natbib)."""
    return _written(manifest, config, tables, "\\paragraph{{{}.}} ", _citep, latex_prose)


def methods_text(manifest: Manifest, config: LPactConfig, tables: Tables) -> str:
    """Plain text with citations as authors and year."""
    return _written(manifest, config, tables, "{}\n", _authors, str)


def cited_keys(manifest: Manifest, config: LPactConfig, tables: Tables) -> tuple[str, ...]:
    """Keys that the section cites, in the order of the alphabet."""
    parts = methods_parts(manifest, config, tables)
    found = [m for part in parts for s in part.sentences for m in _CITATION.findall(s)]
    return tuple(sorted({key for keys in found for key in keys.split(",")}))


def _written(
    manifest: Manifest,
    config: LPactConfig,
    tables: Tables,
    heading: str,
    citation: Callable[[list[str]], str],
    escape: Callable[[str], str],
) -> str:
    parts = methods_parts(manifest, config, tables)
    paragraphs = [
        heading.format(escape(part.title))
        + " ".join(_sentence(sentence, citation, escape) for sentence in part.sentences)
        for part in parts
    ]
    return "\n\n".join(paragraphs) + "\n"


def _sentence(
    sentence: str, citation: Callable[[list[str]], str], escape: Callable[[str], str]
) -> str:
    pieces = _CITATION.split(sentence)
    return "".join(
        citation(piece.split(",")) if place % 2 else escape(piece)
        for place, piece in enumerate(pieces)
    )


def _keys_in_brackets(keys: list[str]) -> str:
    return f" [{'; '.join(f'@{key}' for key in keys)}]"


def _citep(keys: list[str]) -> str:
    return f" \\citep{{{','.join(keys)}}}"


def _authors(keys: list[str]) -> str:
    return f" ({'; '.join(author_and_year(key) for key in keys)})"


def _markdown(text: str) -> str:
    return text.translate(_MARKDOWN)
