"""Writing a report: figures, page, Methods and tables into one folder, complete or not at all.

::

    report.html          the page, complete in one file
    methods.md, .tex     a Methods section with this run's parameters
    references.bib       what it cites
    figures/             every figure as SVG, PDF and PNG; one folder per analysis if there are several
    tables/              every table as CSV, and as LaTeX up to 10,000 rows
    contents.json        what was written, with checksums
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from lpact.analyses.base import Analysis, Material, analyses_of
from lpact.report.figure import Figure, Missing
from lpact.report.folder import REPORT_PAGE, new_folder, refuse_foreign
from lpact.report.latex import latex_table
from lpact.report.methods import cited_keys, methods_latex, methods_markdown, methods_parts, methods_text
from lpact.report.page import AnalysisPart, Drawn, page_html, strongest
from lpact.report.references import bibtex
from lpact.report.render import converter, write_pictures
from lpact.store import RunTables, StoredRun, table_path, write_table
from lpact.store.frames import write_csv
from lpact.store.manifest import REPORT_FOLDER
from lpact.tables import PREREGISTRATION_ITEMS, Table, find_table

MOST_LATEX_ROWS = 10_000
"""Tables with more rows are written as CSV only."""

Tell = Callable[[str], None]
Drawing = tuple[str, Figure | Missing, Future[str] | None]
"""Section, figure, and its picture, which may still be under way."""


@dataclass(frozen=True)
class WrittenReport:
    """Where a report is, and what is in it."""

    folder: Path
    page: Path
    figures: tuple[str, ...]
    missing: tuple[Missing, ...]
    n_tables: int
    page_bytes: int


def write_report(
    run: StoredRun,
    *,
    out: str | Path | None = None,
    with_tables: bool = True,
    workers: int = 0,
    tell: Tell = lambda _: None,
) -> WrittenReport:
    """Write the report of a finished run, with the arguments of `lpact.Run.report`; nothing is fitted again.

    An earlier report is replaced, and a folder that holds anything else is refused.
    """
    folder = run.root / REPORT_FOLDER if out is None else Path(out)
    refuse_foreign(folder)
    analyses = analyses_of(run.config)
    converter()  # before threads use it
    with new_folder(folder) as made, ThreadPoolExecutor(max(1, workers)) as pool:
        exported = pool.submit(export_tables, run.root, made / "tables") if with_tables else None
        material = Material(RunTables(run), run.config)
        more: dict[str, pl.DataFrame] = {}
        for analysis in analyses.values():
            more |= analysis.extra_tables(material, tell)
        material = Material(material.tables, run.config, more)
        tell("drawing figures")
        drawings = {
            name: _draw(own, material, made / "figures" / (name if len(analyses) > 1 else ""), pool)
            for name, own in analyses.items()
        }
        files = []
        if exported is not None:
            files = _listed(run, more, made / "tables")
            exported.result()
        tell("drawing figures and writing tables")
        drawn = {
            name: [Drawn(section, own, "" if svg is None else svg.result()) for section, own, svg in all_]
            for name, all_ in drawings.items()
        }
        tell("writing the page")
        parts = [_part(own, material, drawn[name]) for name, own in analyses.items()]
        methods = methods_parts(run.manifest, analyses, material)
        references = bibtex(cited_keys(methods))
        registration = material.tables.get(PREREGISTRATION_ITEMS.name)
        text = methods_text(methods)
        page = page_html(run.manifest, parts, registration, text, references, files)
        texts = {
            REPORT_PAGE: page,
            "methods.md": methods_markdown(methods),
            "methods.tex": methods_latex(methods),
            "references.bib": references,
        }
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8", newline="\n")
    figures = [own for all_ in drawn.values() for own in all_]
    return WrittenReport(
        folder=folder,
        page=folder / REPORT_PAGE,
        figures=tuple(own.figure.name for own in figures if own.svg),
        missing=tuple(own.figure for own in figures if isinstance(own.figure, Missing)),
        n_tables=len(files),
        page_bytes=len(page.encode()),
    )


def _draw(analysis: Analysis, material: Material, folder: Path, pool: ThreadPoolExecutor) -> list[Drawing]:
    """Make all figures of an analysis and have them drawn."""
    made: list[Drawing] = []
    for section, names in analysis.figures.items():
        for name in names:
            figure = analysis.figure(name, material)
            picture = None
            if isinstance(figure, Figure):
                picture = pool.submit(write_pictures, folder, figure)
            made.append((section, figure, picture))
    return made


def _part(analysis: Analysis, material: Material, drawn: list[Drawn]) -> AnalysisPart:
    """What the page shows of one analysis."""
    own = analysis.claims
    claims = material.table(own.table.name)
    evidence = own.evidence.name if own.evidence is not None else ""

    def rows(table: str, /, **equals: Any) -> pl.DataFrame:
        return material.table(table).filter(**equals)

    claim = strongest(own, claims)
    profile = next(iter(own.profiles), "")
    return AnalysisPart(
        analysis=analysis,
        conclusion=analysis.conclude(material),
        claims=claims,
        evidence=material.table(evidence) if material.has(evidence) else None,
        drawn=drawn,
        example=None if claim is None else analysis.explain(material.config, rows, claim, profile),
        unavailable=analysis.unavailable(material),
    )


def export_tables(root: Path, folder: Path) -> None:
    """Write every table of a run as CSV and LaTeX; a table that has changed since the run is refused."""
    for table in StoredRun(root).tables():
        _export(StoredRun(root).table(table.name), table, folder)


def _export(frame: pl.DataFrame, table: Table, folder: Path) -> None:
    for suffix in _suffixes(frame.height).values():
        path = table_path(folder, table, suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as handle:
            if suffix == ".csv":
                write_csv(frame, table, handle)
            else:
                handle.write(latex_table(frame, table).encode())


def _suffixes(n_rows: int) -> dict[str, str]:
    """Formats of a table with ``n_rows`` rows, and their file suffixes."""
    return {"csv": ".csv", "latex": ".tex"} if n_rows <= MOST_LATEX_ROWS else {"csv": ".csv"}


def _listed(
    run: StoredRun, more: Mapping[str, pl.DataFrame], folder: Path
) -> list[tuple[str, str, int, dict[str, str]]]:
    """Add tables that are not the run's own, as Parquet too; return the list of all."""
    counts = [(table, run.n_rows(table.name)) for table in run.tables()]
    for name in sorted(more):
        table, frame = find_table(name), more[name]
        write_table(frame, table, folder)
        _export(frame, table, folder)
        counts.append((table, frame.height))
    return [
        (
            table.name,
            table.meaning,
            n,
            {form: f"tables/{table.name}{suffix}" for form, suffix in _suffixes(n).items()},
        )
        for table, n in counts
    ]
