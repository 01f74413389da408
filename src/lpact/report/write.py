"""Writing a report: figures, page, Methods and tables into one folder, complete or not at all.

::

    report.html          the page, which needs nothing beside it
    methods.md, .tex     a Methods section with this run's parameters
    references.bib       what it cites
    figures/             every figure as SVG, PDF and PNG; dark/ holds dark SVGs; one folder per analysis if several
    tables/              every table as CSV and LaTeX
    contents.json        what was written, with checksums
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl

from lpact.analyses.base import Analysis, Material, analyses_of
from lpact.config import StudyConfig
from lpact.errors import RunError
from lpact.report.export_tables import SUFFIXES, export_tables
from lpact.report.figure import Figure, Missing
from lpact.report.folder import REPORT_PAGE, new_folder, refuse_foreign
from lpact.report.methods import (
    cited_keys,
    methods_latex,
    methods_markdown,
    methods_parts,
    methods_text,
)
from lpact.report.page import AnalysisPart, Drawn, page_html, strongest
from lpact.report.references import bibtex
from lpact.report.render import write_pictures
from lpact.store import RunTables, StoredRun, write_table
from lpact.store.manifest import REPORT_FOLDER
from lpact.tables import PREREGISTRATION_ITEMS, find_table

Tell = Callable[[str], None]
Start = Callable[..., Future[Any]]
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
    config: StudyConfig,
    out: str | Path | None = None,
    with_tables: bool = True,
    workers: int = 0,
    tell: Tell = lambda _: None,
) -> WrittenReport:
    """Write the report of a finished run; nothing is fitted again.

    Parameters
    ----------
    run, config
        The run, and the configuration it was made with.
    out
        Folder of the report; by default ``report/`` in the run. An earlier report there is replaced, and a folder that
        holds anything else is refused.
    with_tables
        Whether every table is written as CSV and LaTeX beside the page.
    workers
        Processes that draw and write meanwhile; with more than none, a script must guard its entry point.
    tell
        Called with a few words on each step.
    """
    folder = run.root / REPORT_FOLDER if out is None else Path(out)
    refuse_foreign(folder)
    analyses = analyses_of(config)
    with new_folder(folder) as made, _background(workers) as start:
        if with_tables:
            start(export_tables, run.root, run.tables(), made / "tables")
        material = Material(RunTables(run), config)
        more: dict[str, pl.DataFrame] = {}
        for analysis in analyses.values():
            more |= analysis.extra_tables(material, tell)
        material = Material(material.tables, config, more)
        tell("drawing figures")
        drawings = {
            name: _draw(
                own, material, made / "figures" / (name if len(analyses) > 1 else ""), start
            )
            for name, own in analyses.items()
        }
        files = _write_tables(run, more, made / "tables", start) if with_tables else []
        tell("drawing figures and writing tables")
        drawn = {
            name: [
                Drawn(section, own, "" if svg is None else svg.result())
                for section, own, svg in all_
            ]
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


def _draw(analysis: Analysis, material: Material, folder: Path, start: Start) -> list[Drawing]:
    """Make all figures of an analysis and have them drawn."""
    made: list[Drawing] = []
    for section, names in analysis.figures.items():
        for name in names:
            figure = analysis.figure(name, material)
            picture = None
            if isinstance(figure, Figure):
                picture = start(write_pictures, folder, figure)
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


def _write_tables(
    run: StoredRun, more: Mapping[str, pl.DataFrame], folder: Path, start: Start
) -> list[tuple[str, str, int, dict[str, str]]]:
    """Add tables that are not the run's own, as Parquet too; return the list of all."""
    added = [find_table(name) for name in sorted(more)]
    for table in added:
        write_table(more[table.name], table, folder)
    start(export_tables, folder, added, folder, ("latex",))
    counts = [(table, run.n_rows(table.name)) for table in run.tables()]
    counts += [(table, more[table.name].height) for table in added]
    return [
        (
            table.name,
            table.meaning,
            n_rows,
            {name: f"tables/{table.name}{suffix}" for name, suffix in SUFFIXES.items()},
        )
        for table, n_rows in counts
    ]


@contextmanager
def _background(workers: int) -> Iterator[Start]:
    """A function that starts jobs in background processes, or does them at once where there are none.

    Leaving the block waits for all of them, and raises what one of them raised.
    """
    if not workers:

        def do(job: Callable[..., Any], *args: Any) -> Future[Any]:
            done: Future[Any] = Future()
            done.set_result(job(*args))
            return done

        yield do
        return
    jobs: list[Future[Any]] = []
    # The main process has most to do and comes first.
    nice = partial(os.nice, 5) if hasattr(os, "nice") else None
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=nice)

    def submit(job: Callable[..., Any], *args: Any) -> Future[Any]:
        jobs.append(pool.submit(job, *args))
        return jobs[-1]

    try:
        yield submit
        for job in jobs:
            job.result()
    except BrokenProcessPool as broken:
        raise RunError(
            "a background process of the report died",
            where="report",
            got=str(broken),
            expected="processes that finish their work",
            remedy="in a script, guard the entry point (if __name__ == '__main__'), or use workers=0",
        ) from broken
    finally:
        pool.shutdown(cancel_futures=True)
